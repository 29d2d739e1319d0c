//! A server of HTTP/2 that sends exactly what a test tells it to.

use super::super::support::server::{Connection, Server};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;
use terse_http::h2::{self, Code, Event, Limits};
use terse_message::{Fields, Request, Response};

/// A connection of a server; a script tells what it sends. Every wait is false, or none, once the other side has gone.
pub(crate) struct Peer<'a> {
    connection: &'a mut Connection,
    pub(crate) codec: h2::Connection,
    pub(crate) streams: BTreeMap<u32, Asked>,
    new: VecDeque<u32>,
    pub(crate) goaway: Option<Code>,
    /// Number of PINGs of this side that came back.
    pub(crate) pongs: usize,
    pub(crate) failure: Option<&'static str>,
    has_gone: bool,
    /// True if it sends nothing yet, not even its SETTINGS.
    pub(crate) is_silent: bool,
}

/// Data received on a stream.
#[derive(Default, Debug)]
pub(crate) struct Asked {
    pub(crate) head: Request,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) has_ended: bool,
    pub(crate) reset: Option<Code>,
}

impl Asked {
    /// Its method and its path.
    pub(crate) fn line(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        format!("{} {}", text(self.head.method()), self.path())
    }

    pub(crate) fn path(&self) -> String {
        String::from_utf8(self.head.path_and_query().to_vec()).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<String> {
        self.head.fields.get(name.as_bytes()).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }
}

/// A server each of whose connections follows a script, and ends with it.
pub(crate) fn scripted(limits: Limits, script: impl Fn(&mut Peer<'_>) + Send + Sync + 'static) -> Server {
    Server::start(move |connection| script(&mut Peer::open(connection, limits, false)))
}

/// The same, of a server that is silent at first.
pub(crate) fn silent(limits: Limits, script: impl Fn(&mut Peer<'_>) + Send + Sync + 'static) -> Server {
    Server::start(move |connection| script(&mut Peer::open(connection, limits, true)))
}

/// A server that does this to each request, once its head is there.
pub(crate) fn answering(answer: impl Fn(&mut Peer<'_>, u32) + Send + Sync + 'static) -> Server {
    scripted(Limits::default(), move |peer| {
        while let Some(id) = peer.next() {
            answer(peer, id);
        }
    })
}

impl<'a> Peer<'a> {
    fn open(connection: &'a mut Connection, limits: Limits, is_silent: bool) -> Peer<'a> {
        let codec = h2::Connection::server(limits);
        let mut peer = Peer {
            connection,
            codec,
            streams: BTreeMap::new(),
            new: VecDeque::new(),
            goaway: None,
            pongs: 0,
            failure: None,
            has_gone: false,
            is_silent,
        };
        peer.flush();
        peer
    }

    /// Number of connections accepted before it.
    pub(crate) fn number(&self) -> usize {
        self.connection.number
    }

    /// Waits for the head of another request.
    pub(crate) fn next(&mut self) -> Option<u32> {
        self.wait(|peer| !peer.new.is_empty());
        self.new.pop_front()
    }

    /// The next request whose head is there.
    pub(crate) fn asked(&mut self) -> Option<u32> {
        self.new.pop_front()
    }

    /// Receives once; false when the other side has gone.
    pub(crate) fn turn(&mut self) -> bool {
        self.receive();
        !self.has_gone
    }

    /// Waits for so many requests that end, and gives their streams.
    pub(crate) fn several(&mut self, count: usize) -> Option<Vec<u32>> {
        (0..count).map(|_| self.next().filter(|id| self.whole(*id))).collect()
    }

    /// Waits for a request's end.
    pub(crate) fn whole(&mut self, id: u32) -> bool {
        self.wait(|peer| peer.streams[&id].has_ended)
    }

    /// Waits until something is so; false when the other side has gone.
    pub(crate) fn wait(&mut self, is_so: impl Fn(&Peer<'_>) -> bool) -> bool {
        while !is_so(self) {
            if self.has_gone {
                return false;
            }
            self.receive();
        }
        true
    }

    /// Waits for the end of the connection by the other side.
    pub(crate) fn ends(&mut self) -> bool {
        self.wait(|peer| peer.has_gone)
    }

    /// Sends a head; `end` where no body follows.
    pub(crate) fn head(&mut self, id: u32, status: u16, fields: &[(&str, &str)], end: bool) {
        self.put_head(id, status, fields, end);
        self.flush();
    }

    fn put_head(&mut self, id: u32, status: u16, fields: &[(&str, &str)], end: bool) {
        let mut response = Response::default();
        response.status = status;
        fields.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
        self.codec.send_response(id, &response, end);
    }

    /// Sends data, all of it, as fast as it is taken; false where it is not taken.
    pub(crate) fn data(&mut self, id: u32, mut data: &[u8], end: bool) -> bool {
        loop {
            data = &data[self.codec.send_data(id, data, end)..];
            self.flush();
            if data.is_empty() {
                return true;
            }
            if self.has_gone || !self.codec.can_send(id) {
                return false;
            }
            self.receive();
        }
    }

    /// Sends a whole response with a length; as much of it as the windows take goes with its head.
    pub(crate) fn answer(&mut self, id: u32, status: u16, body: &[u8]) {
        self.put_head(id, status, &[("content-length", &body.len().to_string())], false);
        self.data(id, body, true);
        self.forget(id);
    }

    pub(crate) fn trailers(&mut self, id: u32, trailers: &[(&str, &str)]) {
        let mut fields = Fields::default();
        trailers.iter().for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
        self.codec.send_trailers(id, &fields);
        self.flush();
    }

    /// Resets a stream, by a frame that the codec does not see: it may come after the end, too.
    pub(crate) fn reset(&mut self, id: u32, code: Code) {
        self.frame(RST_STREAM, 0, id, &code.0.to_be_bytes());
        self.codec.reset(id, code);
        let repeated = self.codec.output().len();
        self.codec.wrote(repeated);
        self.forget(id);
    }

    /// Sends a head if there is one, the last data, and a reset, in one write.
    pub(crate) fn end_and_reset(&mut self, id: u32, status: Option<u16>, data: &[u8], code: Code) {
        if let Some(status) = status {
            self.put_head(id, status, &[("content-length", &data.len().to_string())], false);
        }
        assert_eq!(self.codec.send_data(id, data, true), data.len());
        let before = self.codec.output().len();
        self.codec.reset(id, code);
        assert!(self.codec.output().len() > before, "the request has not ended");
        self.flush();
        self.forget(id);
    }

    /// Takes no streams above `last`. Those that are there go on.
    pub(crate) fn goaway(&mut self, last: u32, code: Code) {
        self.frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.0.to_be_bytes()].concat());
    }

    /// Sends a frame as it is.
    pub(crate) fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        self.flush();
        let length = (payload.len() as u32).to_be_bytes();
        self.raw(&[&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat());
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.has_gone |= !self.connection.send(bytes);
    }

    pub(crate) fn flush(&mut self) {
        if self.is_silent {
            return;
        }
        let bytes = self.codec.output().to_vec();
        self.codec.wrote(bytes.len());
        self.raw(&bytes);
    }

    fn forget(&mut self, id: u32) {
        if self.codec.has_peer_ended(id) {
            self.codec.release(id, Code::NO_ERROR);
            self.flush();
        }
    }

    fn receive(&mut self) {
        let mut room = [0; 16 * 1024];
        let n = self.connection.some(&mut room);
        self.has_gone |= n == 0;
        let mut at = 0;
        loop {
            let (used, event) = self.codec.receive(&room[at..n], Instant::now());
            at += used;
            let Some(event) = event else { break };
            self.take(event);
        }
        self.flush();
    }

    fn take(&mut self, event: Event) {
        let Peer { codec, streams, new, .. } = self;
        match event {
            Event::Request { id, end } => {
                let asked = streams.entry(id).or_default();
                codec.take_request(&mut asked.head);
                asked.has_ended = end;
                new.push_back(id);
            }
            Event::Data { id, end } => {
                let Some(asked) = streams.get_mut(&id) else { return };
                let before = asked.body.len();
                codec.take_data(id, &mut asked.body);
                codec.consume(id, asked.body.len() - before);
                asked.has_ended |= end;
            }
            Event::Trailers { id } => {
                let Some(asked) = streams.get_mut(&id) else { return };
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let fields = codec.take_trailers(id).unwrap_or_default();
                asked.trailers = fields.iter().map(|(name, value)| (text(name), text(value))).collect();
                asked.has_ended = true;
            }
            Event::Reset { id, code, .. } => {
                if let Some(asked) = streams.get_mut(&id) {
                    asked.reset = Some(code);
                }
            }
            Event::GoAway { code, .. } => self.goaway = Some(code),
            Event::Pong => self.pongs += 1,
            Event::Failed(failure) => self.failure = Some(failure.cause),
            _ => {}
        }
    }
}

/// Kinds of frames (RFC 9113 section 6).
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
