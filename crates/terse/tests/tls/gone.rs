//! Clients that go away while their bodies are with the offload queue or an engine: their jobs are cancelled, whatever
//! `option abortonclose` is. A client that has closed only its own half is served on where that option is off.
//!
//! The engine is the test card, which hangs when it is told to: so a job is under way for as long as a test wants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::{certificates, support, talk};

use certificates::{Kind, authority, signed};
use openssl::ssl::SslVersion;
use socket2::SockRef;
use std::io::Write;
use std::net::Shutdown;
use std::path::PathBuf;
use std::time::Duration;
use support::client::Client;
use support::gzip::gunzip;
use support::origin::Origin;
use support::proxy::DEFAULTS;
use support::{Terse, column_of, readable, until};
use talk::Ask;

/// A proxy with an origin whose responses are [`body`], or endless.
struct Site {
    terse: Terse,
    _origin: Origin,
}

impl Site {
    /// With an engine that has one job at a time and so long for it.
    fn start(deadline: &str) -> Site {
        let origin = Origin::start(|request, stream| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
            if request.line.contains("/endless") {
                let mut chunk = format!("{:x}\r\n", ENDLESS_CHUNK).into_bytes();
                chunk.resize(chunk.len() + ENDLESS_CHUNK, b'x');
                chunk.extend_from_slice(b"\r\n");
                let _ = write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n");
                while stream.write_all(&chunk).is_ok() {}
                return;
            }
            let body = body();
            let answer = [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
            let _ = stream.write_all(&answer);
        });
        let card = std::env::current_exe().unwrap().with_file_name("libterse_testcard.so");
        assert!(card.exists(), "{} is not there", card.display());
        let at = origin.address();
        let mut listeners = String::new();
        for (name, lines) in LISTENERS {
            for (prefix, words) in [("", ""), (SECURE, " ssl crt a.pem")] {
                listeners += &format!(
                    "listen {prefix}{name}\n bind fd@${{{prefix}{name}}}{words}\n{lines}\n compression engine card\n server s {at}\n"
                );
            }
        }
        let text = format!(
            "global\n nbthread 2\n tune.comp.threads 1\n stats socket fd@${{cli}} level admin\n\
             engine card\n library {}\n smallest 1k\n jobs 1\n verify none\n deadline {deadline}\n fall 1000\n\
             {DEFAULTS} compression memory off\n log stdout format raw local0\n log-format \"%HU %ts\"\n{listeners}",
            card.display(),
        );
        let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
        let mut terse = Terse::with(&text).file("faults", "").file("a.pem", pem).listen("cli").arg(&["-db"]);
        for (name, _) in LISTENERS {
            terse = terse.listen(name).listen(&format!("{SECURE}{name}"));
        }
        let variables = [("TERSE_TESTCARD_CLOCK", "clock"), ("TERSE_TESTCARD_FAULTS", "faults")];
        for (variable, file) in variables {
            let path: PathBuf = terse.path(file);
            terse = terse.env(variable, path.to_str().unwrap());
        }
        let site = Site { terse: terse.start(), _origin: origin };
        until("the engine", || (site.engine("state") == "UP").then_some(()));
        site
    }

    /// Has the card hang from now on.
    fn hang(&self) {
        std::fs::write(self.terse.path("faults.new"), "hang 1").unwrap();
        std::fs::rename(self.terse.path("faults.new"), self.terse.path("faults")).unwrap();
    }

    /// Returns the value that `show engines` has for the card.
    fn engine(&self, column: &str) -> String {
        column_of(&self.terse.told("show engines"), "engine", "engine", column)
    }

    /// Returns the value that `show compression` has for the queue.
    fn queue(&self, column: &str) -> u64 {
        column_of(&self.terse.told("show compression"), "queue", "queue", column).parse().unwrap()
    }

    /// A client whose body has come to the engine, as `column` tells. With TLS it leaves by its socket alone.
    fn client(&self, listener: &str, request: &str, column: &str) -> Client {
        // A body whose server pauses, as happens on a busy machine, becomes a stream, which no engine gets.
        until("a job of the engine", || {
            let mut client = self.asking(listener, request);
            let is_there = until("a job or an answer", || match self.engine(column).as_str() {
                "0" => readable(client.stream(), Duration::from_millis(1)).then_some(false),
                _ => Some(true),
            });
            is_there.then_some(client)
        })
    }

    /// A client that has sent a request.
    fn asking(&self, listener: &str, request: &str) -> Client {
        let address = self.terse.address(listener);
        if !listener.starts_with(SECURE) {
            let mut client = Client::connect(address);
            client.send(request);
            return client;
        }
        // In TLS 1.3 tickets would look like the beginning of an answer.
        let mut secured = Ask { version: Some(SslVersion::TLS1_2), ..Ask::default() }.connect(address).unwrap();
        secured.write_all(request.as_bytes()).unwrap();
        Client::over(secured.get_ref().try_clone().unwrap())
    }

    /// Waits until the log has this line.
    fn logs(&self, line: &str) {
        until(line, || self.terse.stdout().lines().any(|said| said == line).then_some(()));
    }
}

/// Listeners and their lines: each in plain and, as [`SECURE`] and its name, with TLS.
const LISTENERS: [(&str, &str); 3] = [
    ("web", " compression algo gzip"),
    ("patient", " no option abortonclose\n compression algo gzip"),
    (
        "upload",
        " no option abortonclose\n compression direction request\n compression algo-req gzip\n compression type-req text/plain",
    ),
];

const SECURE: &str = "secure_";

/// So large that it is not compressed in place, and sent in one piece.
fn body() -> Vec<u8> {
    (0u32..).flat_map(|n| format!("{} ", n * n % 977).into_bytes()).take(100_000).collect()
}

/// Size of chunks that shrink to nothing: a client need not read them.
const ENDLESS_CHUNK: usize = 64 * 1024;

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
}

fn post(path: &str) -> String {
    let body = String::from_utf8(body()).unwrap();
    let fields = format!("Host: a\r\nContent-Type: text/plain\r\nContent-Length: {}", body.len());
    format!("POST {path} HTTP/1.1\r\n{fields}\r\n\r\n{body}")
}

fn close(client: Client) {
    drop(client);
}

fn shut(client: &mut Client) {
    client.stream().shutdown(Shutdown::Write).unwrap();
}

fn reset(mut client: Client) {
    SockRef::from(&*client.stream()).set_linger(Some(Duration::ZERO)).unwrap();
}

fn shut_and_reset(mut client: Client) {
    shut(&mut client);
    reset(client);
}

fn shut_and_see(mut client: Client) {
    shut(&mut client);
    assert!(client.rest().is_empty(), "it is not answered");
}

#[test]
fn their_jobs_are_cancelled() {
    let site = Site::start("10m");
    site.hang();
    let flying = site.client("web", &get("/flying"), "in_flight");
    let mut cancelled = 0;
    for (listener, path, leave) in [
        ("web", "/closed", close as fn(Client)),
        ("web", "/reset", reset),
        ("web", "/shut", shut_and_see),
        ("patient", "/reset-all-the-same", reset),
        ("patient", "/shut-and-reset", shut_and_reset),
        ("upload", "/upload", reset),
        ("web", "/next-and-closed", close),
        ("web", "/next-and-shut", shut_and_see),
        ("web", "/next-and-reset", reset),
        ("patient", "/next-and-reset-all-the-same", reset),
        ("secure_web", "/secure-and-closed", close),
        ("secure_web", "/secure-and-reset", reset),
        ("secure_patient", "/secure-and-reset-all-the-same", reset),
        ("secure_patient", "/secure-and-shut-and-reset", shut_and_reset),
        ("secure_patient", "/next-and-secure-and-reset", reset),
        ("secure_upload", "/secure-upload", reset),
    ] {
        let mut request = if listener.ends_with("upload") { post(path) } else { get(path) };
        if path.contains("next") {
            // Another request follows it in the buffer.
            request += &get("/pipelined");
        }
        leave(site.client(listener, &request, "waiting"));
        cancelled += 1;
        site.logs(&format!("{path} CD"));
        until("an empty line", || (site.engine("waiting") == "0").then_some(()));
        assert_eq!(site.engine("cancelled"), cancelled.to_string(), "{path}");
    }
    // A job of the engine stays with it until it gives it back.
    reset(flying);
    site.logs("/flying CD");
    assert_eq!((site.engine("cancelled"), site.engine("in_flight")), ((cancelled + 1).to_string(), "1".to_owned()));
    site.terse.end();
}

/// The engine hangs, so software answers.
#[test]
fn who_still_listens_is_answered() {
    let site = Site::start("500ms");
    site.hang();
    let mut client = site.client("patient", &get("/listens"), "in_flight");
    shut(&mut client);
    let response = client.response("GET");
    assert_eq!((response.status, response.field("content-encoding")), (200, Some("gzip")));
    assert!(gunzip(&response.body) == body());
    assert!(client.is_closed());
    site.logs("/listens --");
    assert_eq!(site.engine("cancelled"), "0");
    site.terse.end();
}

/// Streams that never end, and one thread for all of them: nearly always each has a slice in the line.
#[test]
fn streams_are_cancelled() {
    let site = Site::start("1s");
    for listener in ["web", "patient"] {
        let before = site.queue("cancelled");
        until("a slice that is cancelled", || {
            let clients: Vec<Client> = (0..4)
                .map(|_| {
                    let mut client = Client::connect(site.terse.address(listener));
                    client.send(get("/endless"));
                    assert_eq!(client.head().status, 200);
                    client
                })
                .collect();
            until("a line", || (site.queue("waiting") > 1).then_some(()));
            clients.into_iter().for_each(reset);
            until("an empty line", || (site.queue("waiting") == 0).then_some(()));
            (site.queue("cancelled") > before).then_some(())
        });
    }
    site.logs("/endless CD");
    site.terse.end();
}

/// Before the server has sent anything there is no job; the option decides, and the log tells the state.
#[test]
fn requests_end_by_default_and_not_with_no_option() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, stream| {
        let _ = wait.lock().unwrap().recv();
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    });
    let at = origin.address();
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS} log stdout format raw local0\n log-format \"%HU %ts %ST\"\n\
         listen web\n bind fd@${{web}}\n server s {at}\n\
         frontend front\n bind fd@${{front}}\n no option abortonclose\n default_backend back\n\
         backend back\n server s {at}\n\
         listen patient\n bind fd@${{patient}}\n no option abortonclose\n server s {at}\n"
    );
    let terse = Terse::with(&text).listen("web").listen("front").listen("patient").arg(&["-db"]).start();
    let logs = |line: &str| until(line, || terse.stdout().lines().any(|said| said == line).then_some(()));
    let ask = |listener: &str, request: &str| {
        let seen = origin.requests().len();
        let mut client = Client::connect(terse.address(listener));
        client.send(request);
        until("the request", || (origin.requests().len() > seen).then_some(()));
        client
    };
    for (n, listener) in ["web", "front"].into_iter().enumerate() {
        for (method, body) in [("GET", "\r\n"), ("POST", "Content-Length: 3\r\n\r\nabc")] {
            let path = format!("/{method}{n}");
            let mut client = ask(listener, &format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{body}"));
            shut(&mut client);
            assert_eq!(client.response(method).status, 400);
            logs(&format!("{path} CH 400"));
        }
    }
    for (method, body) in [("GET", "\r\n"), ("POST", "Content-Length: 3\r\n\r\nabc")] {
        let mut client = ask("patient", &format!("{method} /patient HTTP/1.1\r\nHost: a\r\n{body}"));
        shut(&mut client);
        // Those that were given up wait before it.
        (0..5).for_each(|_| go.send(()).unwrap());
        assert_eq!(client.response(method).text(), "late");
        logs("/patient -- 200");
    }
    terse.end();
}
