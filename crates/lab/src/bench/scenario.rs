//! Scenarios of the measurements.

/// A kind of traffic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    /// Name for `--only` and in the tables.
    pub(super) name: &'static str,
    /// For the reader of the results.
    pub(super) about: &'static str,
    /// The name of its files in the folder of scenarios, without their ends.
    pub(super) config: &'static str,
    /// Path that is fetched.
    pub(super) path: &'static str,
    /// Way of fetching it.
    pub(super) traffic: Traffic,
}

/// Way of fetching a scenario's path, and the metrics of interest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Traffic {
    /// Over so many connections at once that stay open: CPU time per answer.
    Requests(usize),
    /// The same, the proxy itself answering with nothing.
    Answers(usize),
    /// As `Requests`, each answer followed by the end of its connection.
    Close(usize),
    /// The same for bodies so large that many are under way when time is up: CPU time per 64 MB.
    Bulk(usize),
    /// Downloads, one after the other: CPU time, and the duration of each.
    Downloads,
    /// Through the test card, in software ([`WITHOUT_CARD`]) and uncompressed: so many clients, each one after the other.
    Card(usize),
    /// As `Requests`, by nginx as it is and with our library in place of zlib.
    Library(usize),
    /// Over a few connections, alone and while others download something else compressed: how long the slowest of a hundred takes.
    Tail {
        /// Number of connections.
        connections: usize,
        /// Path that the other clients download.
        beside: &'static str,
    },
    /// Small requests at a leisurely rate, by two workers, alone and while others download that path compressed: how long the usual and the
    /// slowest of a hundred take.
    Bystander(&'static str),
    /// So many connections, each silent after one answer: memory.
    Idle(usize),
    /// Connections over TLS, one after the other, each for one request: CPU time for each.
    Handshakes {
        /// True if each resumes the session of the one before.
        resumed: bool,
    },
    /// Over HTTP/2, so many streams at once on each of so many connections: CPU time per answer.
    Http2 {
        /// Number of connections.
        connections: usize,
        /// Streams of each.
        streams: usize,
    },
    /// The same with a small message in each request, as unary calls of gRPC have it.
    Grpc {
        /// Number of connections.
        connections: usize,
        /// Streams of each.
        streams: usize,
    },
    /// As `Requests`, by one worker and by two.
    Scale(usize),
}

impl Scenario {
    /// True if a proxy with that file compresses the body that is fetched.
    pub(super) fn compresses(&self, config: &str) -> bool {
        COMPRESSING.iter().any(|beginning| config.starts_with(beginning))
            && !matches!(self.traffic, Traffic::Tail { .. } | Traffic::Bystander(_))
    }

    /// Accept-Encoding of the clients, a line of their requests.
    pub(super) fn accept(&self) -> &'static str {
        if matches!(self.config, "zstd" | "br" | "br-6" | "br-9" | "tls-h2-zstd" | "tls-h2-br") {
            "Accept-Encoding: gzip, zstd, br"
        } else {
            "Accept-Encoding: gzip"
        }
    }
}

/// The beginnings of the names of files that compress.
const COMPRESSING: [&str; 6] = ["gzip-", "zstd", "br", "card", "tls-gzip-", "tls-h2-"];

/// The same service as that of [`Traffic::Card`], without the card.
pub(super) const WITHOUT_CARD: &str = "card-off";
/// nginx's, as in the founding document.
pub(super) const FOUNDING: &str = "gzip-9";

const BITMAP: &str = "/bitmap.bmp";

/// All of them.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "plain",
        about: "100 bytes, 32 connections, not compressed",
        config: PLAIN,
        path: "/tiny",
        traffic: Traffic::Requests(32),
    },
    Scenario {
        name: "rules",
        about: "plain with ten rules: two ACLs, edits of fields, a map, a stick table",
        config: "rules",
        path: "/tiny",
        traffic: Traffic::Requests(32),
    },
    Scenario {
        name: "vars-100",
        about: "101 variables, each the sum of up to ten others",
        config: "vars-100",
        path: "/",
        traffic: Traffic::Answers(32),
    },
    Scenario {
        name: "vars-1000",
        about: "1,001 variables, each the sum of up to ten others",
        config: "vars-1000",
        path: "/",
        traffic: Traffic::Answers(32),
    },
    Scenario {
        name: "small",
        about: "8 KB of JavaScript with a length, gzip level 6",
        config: "gzip-6",
        path: "/small.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-6",
        about: "132 KB of JavaScript with a length, gzip level 6",
        config: "gzip-6",
        path: "/page.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-6-chunked",
        about: "132 KB of JavaScript in chunks, gzip level 6",
        config: "gzip-6",
        path: "/page-chunked.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-again",
        about: "page-6, the same body each time",
        config: "gzip-6",
        path: "/static/page.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-again-chunked",
        about: "the same in chunks",
        config: "gzip-6",
        path: "/again-chunked.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-1",
        about: "132 KB of JavaScript with a length, gzip level 1",
        config: "gzip-1",
        path: "/page.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-1-chunked",
        about: "132 KB of JavaScript in chunks, gzip level 1",
        config: "gzip-1",
        path: "/page-chunked.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-zstd",
        about: "page-6, as zstd at the level that is usual, beside nginx's gzip at level 6",
        config: "zstd",
        path: "/page.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "page-br",
        about: "page-6, as br at the level that is usual, beside nginx's gzip at level 6",
        config: "br",
        path: "/page.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "zlib-nginx",
        about: "page-6 by nginx, as it is and with libterse_z.so preloaded: another body each time",
        config: "gzip-6",
        path: "/page.js",
        traffic: Traffic::Library(16),
    },
    Scenario {
        name: "bitmap",
        about: "the bitmap of 7.3 MB, one after the other, gzip level 9",
        config: "gzip-9",
        path: "/bitmap.bmp",
        traffic: Traffic::Downloads,
    },
    Scenario {
        name: "card-simulated",
        about: "simulated: the bitmap of 7.3 MB, the same each time, one client; through a test card of 2.5 Gbit/s that answers from \
                results made beforehand, in software at level 6, and uncompressed; nginx at level 9. No memory of bodies, no verification",
        config: "card",
        path: "/static/picture.bmp",
        traffic: Traffic::Card(1),
    },
    Scenario {
        name: "card-simulated-2",
        about: "simulated: the same with two clients at once. The card does 42.8 bitmaps a second",
        config: "card",
        path: "/static/picture.bmp",
        traffic: Traffic::Card(2),
    },
    Scenario {
        name: "large",
        about: "64 MB, four connections, not compressed",
        config: PLAIN,
        path: "/large",
        traffic: Traffic::Bulk(4),
    },
    Scenario {
        name: "close",
        about: "100 bytes, 32 connections, each for one request",
        config: PLAIN,
        path: "/tiny",
        traffic: Traffic::Close(32),
    },
    Scenario {
        name: "tail-1",
        about: "100 bytes, four connections, alone and beside eight clients that fetch the bitmap, gzip level 1",
        config: "gzip-1",
        path: "/tiny",
        traffic: Traffic::Tail { connections: 4, beside: BITMAP },
    },
    Scenario {
        name: "tail-6",
        about: "the same at level 6",
        config: "gzip-6",
        path: "/tiny",
        traffic: Traffic::Tail { connections: 4, beside: BITMAP },
    },
    Scenario {
        name: "tail-page-1",
        about: "100 bytes, four connections, alone and beside eight clients that fetch pages as in page-1",
        config: "gzip-1",
        path: "/tiny",
        traffic: Traffic::Tail { connections: 4, beside: "/page.js" },
    },
    Scenario {
        name: "bystander-br-6",
        about: "100 bytes, 2,000 times a second, two workers on two cores, alone and beside eight clients that fetch the bitmap, br level 6",
        config: "br-6",
        path: "/tiny",
        traffic: Traffic::Bystander(BITMAP),
    },
    Scenario {
        name: "bystander-br-9",
        about: "the same at level 9",
        config: "br-9",
        path: "/tiny",
        traffic: Traffic::Bystander(BITMAP),
    },
    Scenario {
        name: "bystander-br-page",
        about: "the same beside eight clients that fetch pages as in page-br, level 6",
        config: "br-6",
        path: "/tiny",
        traffic: Traffic::Bystander("/page.js"),
    },
    Scenario {
        name: "bystander-zstd",
        about: "the same beside eight clients that fetch the bitmap, zstd level 6",
        config: "zstd",
        path: "/tiny",
        traffic: Traffic::Bystander(BITMAP),
    },
    Scenario {
        name: "idle",
        about: "4,000 connections that are silent after one answer",
        config: PLAIN,
        path: "/tiny",
        traffic: Traffic::Idle(4000),
    },
    Scenario {
        name: "tls-page",
        about: "page-6 over TLS 1.3; bytes without what TLS adds",
        config: "tls-gzip-6",
        path: "/page.js",
        traffic: Traffic::Requests(16),
    },
    Scenario {
        name: "tls-full",
        about: "a handshake of TLS 1.3 (RSA of 2,048 bits), 100 bytes, and the connection's end",
        config: "tls",
        path: "/tiny",
        traffic: Traffic::Handshakes { resumed: false },
    },
    Scenario {
        name: "tls-resumed",
        about: "the same, each going on with the session of the one before",
        config: "tls",
        path: "/tiny",
        traffic: Traffic::Handshakes { resumed: true },
    },
    Scenario {
        name: "tls-idle",
        about: "2,000 connections over TLS 1.3 that are silent after one answer",
        config: "tls",
        path: "/tiny",
        traffic: Traffic::Idle(2000),
    },
    Scenario {
        name: "h2",
        about: "100 bytes over HTTP/2 in clear text, eight connections with 100 streams each, not compressed; HTTP/1 to the server",
        config: "h2",
        path: "/tiny",
        traffic: Traffic::Http2 { connections: 8, streams: 100 },
    },
    Scenario {
        name: "h2-h2c",
        about: "the same, and HTTP/2 in clear text to the server",
        config: "h2-h2c",
        path: "/tiny",
        traffic: Traffic::Http2 { connections: 8, streams: 100 },
    },
    Scenario {
        name: "grpc",
        about: "unary calls of gRPC with 16 bytes each way and a status behind the answer, eight connections with 100 calls each; HTTP/2 \
                in clear text to the server",
        config: "h2-h2c",
        path: "/made?bytes=21&type=application/grpc&trailer=grpc-status:0",
        traffic: Traffic::Grpc { connections: 8, streams: 100 },
    },
    Scenario {
        name: "h1-h2c",
        about: "100 bytes over 64 connections of HTTP/1, not compressed; HTTP/2 in clear text to the server",
        config: "plain-h2c",
        path: "/tiny",
        traffic: Traffic::Requests(64),
    },
    Scenario {
        name: "h1-h2c-1000",
        about: "the same over 1,000 connections",
        config: "plain-h2c",
        path: "/tiny",
        traffic: Traffic::Requests(1000),
    },
    Scenario {
        name: "h2-page-br",
        about: "132 KB of JavaScript over HTTP/2 and TLS 1.3, four connections with four streams each, as br at the level that is \
                usual; beside gzip at level 6",
        config: "tls-h2-br",
        path: "/page.js",
        traffic: Traffic::Http2 { connections: 4, streams: 4 },
    },
    Scenario {
        name: "h2-page-zstd",
        about: "the same as zstd at the level that is usual",
        config: "tls-h2-zstd",
        path: "/page.js",
        traffic: Traffic::Http2 { connections: 4, streams: 4 },
    },
    Scenario {
        name: "scale-plain",
        about: "plain, by one worker on one core and by two on two",
        config: PLAIN,
        path: "/tiny",
        traffic: Traffic::Scale(32),
    },
    Scenario {
        name: "scale-page",
        about: "page-6, by one worker on one core and by two on two",
        config: "gzip-6",
        path: "/page.js",
        traffic: Traffic::Scale(16),
    },
];

/// The clients beside the small requests of [`Traffic::Tail`].
pub(super) const DOWNLOADERS: usize = 8;

/// The files without compression.
pub(super) const PLAIN: &str = "plain";
