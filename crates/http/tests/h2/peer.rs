//! A peer by hand, its frames, and two connections of ours.

use std::time::Instant;
use terse_http::h2::hpack::Encoder;
use terse_http::h2::{Code, Connection, Event, Limits, PREFACE};
use terse_message::{Request, Response};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

pub(crate) fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

/// Frames of an output: kind, flags, stream, payload.
pub(crate) fn frames(mut output: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((&[a, b, c, kind, flags, d, e, f, g], rest)) = output.split_first_chunk() {
        let (payload, more) = rest.split_at(u32::from_be_bytes([0, a, b, c]) as usize);
        all.push((kind, flags, u32::from_be_bytes([d, e, f, g]), payload.to_vec()));
        output = more;
    }
    assert!(output.is_empty());
    all
}

/// A peer by hand.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) encoder: Encoder,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    pub(crate) requests: Vec<(u32, Request)>,
}

impl Peer {
    /// A client's, of a server with such limits.
    pub(crate) fn of_server(limits: Limits) -> Peer {
        let mut peer = Peer::unconfirmed(limits);
        peer.send(&frame(SETTINGS, ACK, 0, b""));
        peer.output();
        peer
    }

    /// The same, which does not know yet that its SETTINGS have come.
    pub(crate) fn unconfirmed(limits: Limits) -> Peer {
        let mut peer = Peer {
            connection: Connection::server(limits),
            encoder: Encoder::default(),
            now: Instant::now(),
            events: Vec::new(),
            requests: Vec::new(),
        };
        assert!(peer.send(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat()).contains(&Event::Settings));
        peer.output();
        peer
    }

    /// The events of these bytes.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        let start = self.events.len();
        loop {
            let (used, event) = self.connection.receive(bytes, self.now);
            bytes = &bytes[used..];
            let Some(event) = event else { break };
            if let Event::Request { id, .. } = event {
                let mut request = Request::default();
                self.connection.take_request(&mut request);
                self.requests.push((id, request));
            }
            self.events.push(event);
        }
        assert!(bytes.is_empty());
        self.events[start..].to_vec()
    }

    pub(crate) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        fields.iter().for_each(|(name, value)| self.encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
        block
    }

    pub(crate) fn head(&mut self, id: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<Event> {
        let block = self.block(fields);
        self.send(&frame(HEADERS, flags | END_HEADERS, id, &block))
    }

    pub(crate) fn output(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let output = self.connection.output().to_vec();
        self.connection.wrote(output.len());
        frames(&output)
    }

    /// The code of the GOAWAY that ends the connection.
    pub(crate) fn failure(&self) -> Option<Code> {
        self.connection.failure().map(|failure| failure.code)
    }
}

pub(crate) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/a?b"), (":authority", "example.org")];
pub(crate) const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "example.org")];

pub(crate) fn with<'a>(head: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [head, more].concat()
}

/// Two connections of ours, and their events.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) now: Instant,
}

impl Pair {
    pub(crate) fn new() -> Pair {
        let mut pair = Pair {
            client: Connection::client(Limits::default()),
            server: Connection::server(Limits::default()),
            now: Instant::now(),
        };
        assert_eq!(pair.ask(), [Event::Settings]);
        assert_eq!(pair.answer(), [Event::Settings]);
        pair.ask();
        pair
    }

    pub(crate) fn carry(from: &mut Connection, to: &mut Connection, now: Instant) -> Vec<Event> {
        let (bytes, mut events) = (from.output().to_vec(), Vec::new());
        from.wrote(bytes.len());
        let mut rest = &bytes[..];
        loop {
            let (used, event) = to.receive(rest, now);
            rest = &rest[used..];
            match event {
                Some(event) => events.push(event),
                None => return events,
            }
        }
    }

    pub(crate) fn ask(&mut self) -> Vec<Event> {
        Pair::carry(&mut self.client, &mut self.server, self.now)
    }

    pub(crate) fn answer(&mut self) -> Vec<Event> {
        Pair::carry(&mut self.server, &mut self.client, self.now)
    }
}

pub(crate) fn request(method: &[u8], target: &[u8], fields: &[(&str, &str)]) -> Request {
    let mut request = Request::default();
    fields.iter().for_each(|(name, value)| request.fields.push(name.as_bytes(), value.as_bytes()));
    request.set_method(method);
    request.set_target(target);
    request
}

pub(crate) fn response(status: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::default();
    response.status = status;
    fields.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
    response
}
