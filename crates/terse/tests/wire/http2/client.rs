//! A client of HTTP/2 over a blocking socket, which sends what a test tells it to, at the time that the test chooses.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use terse_http::h2::{Code, Connection, Event, Limits};
use terse_message::{Request, Response};

use super::support::PATIENCE;

/// Stream that a client's connection is read from and written to.
pub(crate) trait Transport: Read + Write {
    /// The socket below.
    fn socket(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

/// A client's connection.
pub(crate) struct Client {
    io: Box<dyn Transport>,
    pub(crate) codec: Connection,
    pub(crate) streams: BTreeMap<u32, Answer>,
    /// True if data is consumed as it comes.
    pub(crate) consumes: bool,
    pub(crate) goaway: Option<(u32, Code)>,
    pub(crate) is_closed: bool,
}

/// Data received on a stream.
#[derive(Default, Debug)]
pub(crate) struct Answer {
    pub(crate) interim: Vec<Response>,
    pub(crate) head: Response,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) has_ended: bool,
    pub(crate) reset: Option<Code>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<String> {
        self.head.fields.get(name.as_bytes()).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    fn is_over(&self) -> bool {
        self.has_ended || self.reset.is_some()
    }
}

/// A request's head of these fields.
pub(crate) fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request {
    let mut request = Request::default();
    request.set_method(method.as_bytes());
    request.set_target(path.as_bytes());
    request.fields.push(b"Host", b"a.test");
    for (name, value) in fields {
        request.fields.push(name.as_bytes(), value.as_bytes());
    }
    request
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        Client::with(address, Limits::default())
    }

    pub(crate) fn with(address: SocketAddr, limits: Limits) -> Client {
        Client::over(Box::new(TcpStream::connect(address).unwrap()), limits)
    }

    pub(crate) fn over(io: Box<dyn Transport>, limits: Limits) -> Client {
        io.socket().set_nodelay(true).unwrap();
        let mut client = Client {
            io,
            codec: Connection::client(limits),
            streams: BTreeMap::new(),
            consumes: true,
            goaway: None,
            is_closed: false,
        };
        client.flush();
        client
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let _ = self.io.write_all(bytes);
    }

    /// The kinds of frames that come until the end, none of which is answered.
    pub(crate) fn unanswered(&mut self) -> Vec<u8> {
        self.io.socket().set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = Vec::new();
        self.io.read_to_end(&mut bytes).unwrap();
        let (mut kinds, mut rest) = (Vec::new(), &bytes[..]);
        while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
            kinds.push(*kind);
            rest = &after[u32::from_be_bytes([0, *a, *b, *c]) as usize..];
        }
        kinds
    }

    pub(crate) fn flush(&mut self) {
        let bytes = self.codec.output().to_vec();
        self.codec.wrote(bytes.len());
        let _ = self.io.write_all(&bytes);
    }

    /// Opens a stream; `end` where no body follows.
    pub(crate) fn open(&mut self, request: &Request, end: bool) -> u32 {
        self.open_as(request, None, end)
    }

    pub(crate) fn open_as(&mut self, request: &Request, protocol: Option<&[u8]>, end: bool) -> u32 {
        let id = self.codec.send_request(request, b"http", protocol, end).unwrap();
        self.streams.insert(id, Answer::default());
        self.flush();
        id
    }

    /// Opens streams in one write.
    pub(crate) fn open_all(&mut self, request: &Request, count: usize) -> Vec<u32> {
        let ids: Vec<u32> = (0..count).map(|_| self.codec.send_request(request, b"http", None, true).unwrap()).collect();
        ids.iter().for_each(|id| drop(self.streams.insert(*id, Answer::default())));
        self.flush();
        ids
    }

    /// Sends data, all of it, as fast as it is taken.
    pub(crate) fn send(&mut self, id: u32, mut data: &[u8], end: bool) {
        loop {
            let n = self.codec.send_data(id, data, end);
            data = &data[n..];
            self.flush();
            if data.is_empty() || !self.codec.can_send(id) {
                return;
            }
            self.receive();
        }
    }

    pub(crate) fn reset(&mut self, id: u32) {
        self.codec.reset(id, Code::CANCEL);
        self.flush();
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask(&request("GET", path, &[]))
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        let id = self.open(request, true);
        self.answer(id)
    }

    /// The whole answer of a stream, which is let go of.
    pub(crate) fn answer(&mut self, id: u32) -> Answer {
        self.wait("an answer", |client| client.streams[&id].is_over());
        self.codec.release(id, Code::CANCEL);
        self.flush();
        self.streams.remove(&id).unwrap()
    }

    /// Waits until something has come.
    pub(crate) fn wait(&mut self, what: &str, is_there: impl Fn(&Client) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there(self) {
            assert!(!self.is_closed, "the connection has ended without {what}: {:?} {:?}", self.goaway, self.streams);
            assert!(Instant::now() < deadline, "waited too long for {what}: {:?}", self.streams);
            self.receive();
        }
    }

    /// True if the connection ends in time.
    pub(crate) fn ends(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_closed && Instant::now() < deadline {
            self.receive();
        }
        self.is_closed
    }

    /// Receives once, for a moment.
    pub(crate) fn receive(&mut self) {
        self.io.socket().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut room = [0; 16 * 1024];
        let n = match self.io.read(&mut room) {
            Ok(n) => n,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
            Err(_) => 0,
        };
        self.is_closed = n == 0;
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
        let Client { codec, streams, consumes, goaway, .. } = self;
        match event {
            Event::Interim { id } => {
                let mut head = Response::default();
                codec.take_response(&mut head);
                streams.entry(id).or_default().interim.push(head);
            }
            Event::Response { id, end } => {
                let answer = streams.entry(id).or_default();
                codec.take_response(&mut answer.head);
                answer.has_ended = end;
            }
            Event::Data { id, end } => {
                let answer = streams.entry(id).or_default();
                let before = answer.body.len();
                codec.take_data(id, &mut answer.body);
                if *consumes {
                    codec.consume(id, answer.body.len() - before);
                }
                answer.has_ended |= end;
            }
            Event::Trailers { id } => {
                let answer = streams.entry(id).or_default();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let fields = codec.take_trailers(id).unwrap_or_default();
                answer.trailers = fields.iter().map(|(name, value)| (text(name), text(value))).collect();
                answer.has_ended = true;
            }
            Event::Reset { id, code, .. } => streams.entry(id).or_default().reset = Some(code),
            Event::GoAway { last, code } => *goaway = Some((last, code)),
            _ => {}
        }
    }
}
