//! Heads on their way out, and the framing of the bodies after them.
//!
//! **Invariant:** the framing fields of a head and the framing that the sender uses after it are decided in a single place,
//! from the message's [`BodyLength`] and the version that the peer speaks.

use super::{Outgoing, Sender};
use crate::io::Writer;
use crate::io::websocket;
use std::time::Duration;
use terse_http::h1::Spellings;
use terse_http::h1::encode::{self, Connection};
use terse_message::hop::unframe;
use terse_message::{BodyLength, Known, Request, Response, Version};

/// The connection option that a server gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionOption {
    /// Another request may follow.
    KeepAlive,
    /// No other request follows.
    Close,
    /// Another protocol is asked for (RFC 9110 section 7.8).
    Upgrade,
}

impl ConnectionOption {
    fn said_in(self, version: Version) -> Connection {
        match self {
            ConnectionOption::KeepAlive => encode::connection(true, version),
            ConnectionOption::Close => Connection::Close,
            ConnectionOption::Upgrade => Connection::Upgrade,
        }
    }
}

/// The peer's understanding of heads.
pub struct Peer<'a> {
    /// The version that it speaks.
    pub version: Version,
    /// Spelling of field names for it.
    pub spellings: Option<&'a Spellings>,
    /// Whether trailers are kept from it.
    pub drops_trailers: bool,
    /// Whether a message of HTTP/1.0 stays one (`http-conformance haproxy`); an intermediary's own version is 1.1 (RFC 9112
    /// section 2.3).
    pub keeps_version: bool,
    /// The scheme of a request's target, for HTTP/2 (RFC 9113 section 8.3.1).
    pub scheme: &'static [u8],
}

impl Peer<'_> {
    /// Chunks are unknown to HTTP/1.0 (RFC 9112 section 7.1).
    fn reads_chunks(&self) -> bool {
        self.version != Version::Http10
    }

    /// The version in which a response goes to it. Chunks are HTTP/1.1's.
    fn answers_in(&self, response: &Response) -> Version {
        match response.version {
            Version::Http10 if self.keeps_version && response.body != BodyLength::Framed => Version::Http10,
            _ => Version::Http11,
        }
    }

    fn spell(&self, head: &mut [u8]) {
        if let Some(spellings) = self.spellings {
            spellings.apply(head);
        }
    }
}

impl Sender<'_> {
    /// Appends a request's head, and frames the body that follows as the request's length requires.
    pub fn request(&mut self, request: &mut Request, connection: ConnectionOption, to: &Peer<'_>) {
        if let Writer::Stream(stream) = self.writer {
            if to.drops_trailers {
                request.fields.remove_known(Known::Trailer);
            }
            self.framing = Outgoing::Frames { trailers: !to.drops_trailers };
            // The bytes after a CONNECT are a tunnel's.
            let ends = matches!(request.body, BodyLength::None | BodyLength::Exact(0)) && request.method() != b"CONNECT";
            // Of other protocols, and of requests with bodies, the upgrade is dropped: HTTP/2 has none (RFC 9113 section 8.6).
            let upgrades = connection == ConnectionOption::Upgrade && ends && websocket::is_asked_for(request);
            let bytes = stream.request(request, to.scheme, upgrades, ends) as u64;
            self.written += bytes;
            self.count.set(self.count.get() + bytes);
            return;
        }
        self.framing = match request.body {
            BodyLength::None | BodyLength::Exact(_) | BodyLength::UntilClose => Outgoing::Plain,
            BodyLength::Framed => {
                if !request.fields.has(Known::TransferEncoding) {
                    request.fields.push(b"Transfer-Encoding", b"chunked");
                }
                if to.drops_trailers {
                    request.fields.remove_known(Known::Trailer);
                }
                Outgoing::Chunked { trailers: !to.drops_trailers }
            }
        };
        let start = self.out.len();
        let version = encode::request_version(request, to.keeps_version);
        encode::request_head(request, version, connection.said_in(version), self.out);
        to.spell(&mut self.out[start..]);
    }

    /// Appends a final response's head, and frames the body that follows; from here on the response holds the framing for its
    /// client. Returns whether another message may follow, where that is wanted (`keep`).
    ///
    /// A body that ends with the server's connection goes in chunks where the client understands them: so it sees whether the
    /// body is whole.
    pub fn response(&mut self, response: &mut Response, keep: bool, to: &Peer<'_>) -> bool {
        if to.drops_trailers || !to.reads_chunks() {
            response.fields.remove_known(Known::Trailer);
        }
        if let Writer::Stream(stream) = self.writer {
            if response.body != BodyLength::None || response.status == 204 {
                response.fields.remove_known(Known::TransferEncoding);
            }
            match response.body {
                BodyLength::None if response.status == 204 => unframe(&mut response.fields),
                BodyLength::UntilClose => response.body = BodyLength::Framed,
                BodyLength::None | BodyLength::Exact(_) | BodyLength::Framed => {}
            }
            self.framing = Outgoing::Frames { trailers: !to.drops_trailers };
            stream.hold(response, response.body == BodyLength::None);
            return keep;
        }
        self.framing = Outgoing::Plain;
        match response.body {
            // 1xx, 204 and a response that opens a tunnel have no framing fields (RFC 9112 section 6.1, RFC 9110 section
            // 8.6).
            BodyLength::None if response.status == 204 => unframe(&mut response.fields),
            BodyLength::None => {}
            BodyLength::Exact(n) => {
                response.fields.remove_known(Known::TransferEncoding);
                // In HTTP/2 the end of a head may be that of the message, without a length.
                if response.version == Version::Http2 && !response.fields.has(Known::ContentLength) {
                    response.fields.push(Known::ContentLength.name().as_bytes(), n.to_string().as_bytes());
                }
            }
            BodyLength::Framed | BodyLength::UntilClose if to.reads_chunks() => {
                response.body = BodyLength::Framed;
                if !response.fields.has(Known::TransferEncoding) {
                    response.fields.push(b"Transfer-Encoding", b"chunked");
                }
                self.framing = Outgoing::Chunked { trailers: !to.drops_trailers };
            }
            BodyLength::Framed | BodyLength::UntilClose => {
                response.body = BodyLength::UntilClose;
                response.fields.remove_known(Known::TransferEncoding);
            }
        }
        let keeps = keep && response.body != BodyLength::UntilClose;
        let version = to.answers_in(response);
        self.append(response, encode::connection(keeps, to.version.min(version)), to);
        keeps
    }

    /// Appends a head that HTTP gives no body: an interim response, or a response that opens a tunnel. It has no framing
    /// fields.
    pub fn bare(&mut self, response: &mut Response, to: &Peer<'_>) {
        unframe(&mut response.fields);
        if let Writer::Stream(stream) = self.writer {
            return stream.hold(response, false);
        }
        self.append(response, Connection::Implied, to);
    }

    /// No body follows the head that waits, though it may say how long it is: the answer to HEAD.
    pub fn end_with_head(&mut self) {
        self.framing = Outgoing::Plain;
        if let Writer::Stream(stream) = self.writer {
            stream.end_with_head();
        }
    }

    fn append(&mut self, response: &Response, connection: Connection, to: &Peer<'_>) {
        let start = self.out.len();
        encode::response_head(response, to.answers_in(response), connection.beside(&response.fields), self.out);
        to.spell(&mut self.out[start..]);
    }

    /// Makes a tunnel of the connection: further bytes go as they are. `limit`: time limit of the peer's taking nothing.
    pub fn tunnel(&mut self, limit: Option<Duration>) {
        self.framing = match self.writer {
            Writer::Stream(_) => Outgoing::Frames { trailers: false },
            _ => Outgoing::Plain,
        };
        self.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Transport;
    use crate::io::Wheel;
    use std::cell::Cell;

    /// The output of a sender: its bytes, its framing of the body, and the result of `make`.
    fn made<T>(make: impl FnOnce(&mut Sender<'_>) -> T) -> (String, Outgoing, T) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let mut transport = Transport::Unix(tokio::net::UnixStream::pair().unwrap().0);
        let (mut out, timer, count) = (Vec::new(), Wheel::new().timer(), Cell::new(0));
        let mut sender = Sender::new(transport.split().1, &mut out, &timer, None, &count);
        let value = make(&mut sender);
        let framing = sender.framing;
        (String::from_utf8(out).unwrap(), framing, value)
    }

    fn peer(version: Version, drops_trailers: bool) -> Peer<'static> {
        Peer { version, spellings: None, drops_trailers, keeps_version: false, scheme: b"" }
    }

    const CHUNKS: Outgoing = Outgoing::Chunked { trailers: true };

    #[test]
    fn responses_end_as_their_clients_understand() {
        use BodyLength::{Exact, Framed, None, UntilClose};
        use Version::{Http10, Http11};
        const CODED: &str = "Transfer-Encoding: chunked\r\n";
        let close = "Connection: close\r\n";
        for (to, from, status, body, fields, keep, head, framing, ends, keeps) in [
            (
                Http11,
                Http11,
                200,
                Exact(3),
                "Content-Length: 3\r\n",
                true,
                "Content-Length: 3\r\n",
                Outgoing::Plain,
                Exact(3),
                true,
            ),
            (Http11, Http11, 200, Exact(3), CODED, true, "", Outgoing::Plain, Exact(3), true),
            (Http11, Http11, 200, Framed, CODED, true, CODED, CHUNKS, Framed, true),
            (Http11, Http11, 200, Framed, "", true, CODED, CHUNKS, Framed, true),
            (Http11, Http10, 200, UntilClose, "", true, CODED, CHUNKS, Framed, true),
            (Http10, Http11, 200, Framed, CODED, true, close, Outgoing::Plain, UntilClose, false),
            (Http10, Http10, 200, UntilClose, "", true, close, Outgoing::Plain, UntilClose, false),
            (Http11, Http11, 204, None, "Content-Length: 0\r\n", true, "", Outgoing::Plain, None, true),
            // Fields for HEAD that describe GET's body stay.
            (Http11, Http11, 200, None, "Content-Length: 3\r\n", true, "Content-Length: 3\r\n", Outgoing::Plain, None, true),
            (
                Http11,
                Http11,
                304,
                None,
                CODED,
                false,
                "Transfer-Encoding: chunked\r\nConnection: close\r\n",
                Outgoing::Plain,
                None,
                false,
            ),
            (Http10, Http11, 304, None, "", true, "Connection: keep-alive\r\n", Outgoing::Plain, None, true),
        ] {
            let mut response = Response::default();
            (response.version, response.status, response.body) = (from, status, body);
            response.set_reason(b"R");
            for (name, value) in fields.lines().filter_map(|line| line.split_once(": ")) {
                response.fields.push(name.as_bytes(), value.as_bytes());
            }
            let (text, framed, kept) = made(|sender| sender.response(&mut response, keep, &peer(to, false)));
            let what = format!("{status} {body:?} {fields:?} of {from:?} to {to:?}");
            assert_eq!(text, format!("HTTP/1.1 {status} R\r\n{head}\r\n"), "{what}");
            assert_eq!((framed, response.body, kept), (framing, ends, keeps), "{what}");
        }
    }

    #[test]
    fn versions_are_our_own_or_haproxys() {
        for (keeps, host, asked, answered) in [
            (false, true, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 R\r\n\r\n"),
            (
                true,
                true,
                "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
                "HTTP/1.0 200 R\r\nConnection: keep-alive\r\n\r\n",
            ),
            // A server of HTTP/1.1 would refuse an empty Host.
            (false, false, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HTTP/1.1 200 R\r\n\r\n"),
        ] {
            let to = Peer { keeps_version: keeps, ..peer(Version::Http11, false) };
            let mut request = Request::default();
            request.set_method(b"GET");
            request.set_target(b"/");
            request.version = Version::Http10;
            if host {
                request.fields.push(b"Host", b"h");
            }
            assert_eq!(made(|sender| sender.request(&mut request, ConnectionOption::KeepAlive, &to)).0, asked);
            let mut response = Response::default();
            (response.version, response.status) = (Version::Http10, 200);
            response.set_reason(b"R");
            assert_eq!(made(|sender| sender.response(&mut response, true, &to)).0, answered);
        }
    }

    #[test]
    fn trailers_are_announced_where_they_come() {
        for (version, drops, announced) in
            [(Version::Http11, false, true), (Version::Http11, true, false), (Version::Http10, false, false)]
        {
            let mut response = Response::default();
            (response.status, response.body) = (200, BodyLength::Framed);
            response.fields.push(b"Trailer", b"Sum");
            let (text, framing, _) = made(|sender| sender.response(&mut response, true, &peer(version, drops)));
            assert_eq!(text.contains("Trailer: Sum\r\n"), announced, "{version:?} {drops}");
            assert_eq!(framing == CHUNKS, announced, "{version:?} {drops}");
        }
    }

    #[test]
    fn requests_are_framed_by_their_bodies() {
        for (version, body, fields, drops, expected, framing) in [
            (Version::Http11, BodyLength::None, "", false, "HTTP/1.1\r\nHost: h\r\n", Outgoing::Plain),
            (Version::Http10, BodyLength::Exact(3), "", false, "HTTP/1.1\r\nHost: h\r\n", Outgoing::Plain),
            (Version::Http10, BodyLength::Framed, "", false, "HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n", CHUNKS),
            (
                Version::Http11,
                BodyLength::Framed,
                "Sum",
                true,
                "HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
                Outgoing::Chunked { trailers: false },
            ),
        ] {
            let mut request = Request::default();
            request.set_method(b"POST");
            request.set_target(b"/");
            (request.version, request.body) = (version, body);
            request.fields.push(b"Host", b"h");
            if !fields.is_empty() {
                request.fields.push(b"Trailer", fields.as_bytes());
            }
            let (text, framed, ()) =
                made(|sender| sender.request(&mut request, ConnectionOption::KeepAlive, &peer(Version::Http11, drops)));
            assert_eq!((text, framed), (format!("POST / {expected}\r\n"), framing), "{version:?} {body:?}");
        }
    }

    #[test]
    fn bare_heads_say_nothing_of_a_body() {
        let mut response = Response::default();
        response.status = 101;
        response.fields.push(b"Upgrade", b"websocket");
        response.fields.push(b"Content-Length", b"3");
        let (text, framing, ()) = made(|sender| sender.bare(&mut response, &peer(Version::Http11, false)));
        assert_eq!(text, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
        assert_eq!(framing, Outgoing::Plain);
    }
}
