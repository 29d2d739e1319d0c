//! A connection of HTTP/2 in clear text, by prior knowledge (RFC 9113 section 3.3), driven by one task: it reads, lets each stream send a
//! piece in turn, and writes.

use super::{Answer, Framing, PIECE_BYTES, SUM_START, Server, What, add_to_sum};
use crate::origin::request::Request as Asked;
use bytes::BytesMut;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Instant;
use terse_http::h2::{Code, Connection, Event, Limits};
use terse_message::{Fields, Request, Response};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Serves a connection to its end; `input` has come already.
pub(super) async fn serve(socket: TcpStream, input: BytesMut, server: Rc<Server>) -> io::Result<()> {
    let limits = Limits { stream_window: 256 * 1024, ..Limits::default() };
    let connection = Connection::server(limits);
    let driver = Driver { socket, connection, server, streams: BTreeMap::new(), request: Request::default() };
    driver.run(input).await
}

struct Driver {
    socket: TcpStream,
    connection: Connection,
    server: Rc<Server>,
    streams: BTreeMap<u32, Stream>,
    request: Request,
}

/// A request and the progress of its answer.
struct Stream {
    stage: Stage,
    head_only: bool,
    /// Nothing is sent before.
    pause: Option<tokio::time::Instant>,
}

enum Stage {
    /// The request's body is waited for, and is none of the answer's business.
    Receive(Answer),
    /// Sends the body back.
    Echo(Vec<u8>),
    Sink {
        bytes: usize,
        sum: u64,
    },
    Wait(Answer),
    /// The head was sent, and so much of the body.
    Send(Answer, u64),
    /// Sends the bytes back as they come.
    Tunnel(Vec<u8>),
}

impl Driver {
    async fn run(mut self, mut input: BytesMut) -> io::Result<()> {
        loop {
            self.receive(&input);
            input.clear();
            while self.streams.len() > 1 && self.turn() {}
            while self.turn() {}
            while !self.connection.output().is_empty() {
                match self.socket.try_write(self.connection.output()) {
                    Ok(bytes) => self.connection.wrote(bytes),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                while self.turn() {}
            }
            let has_output = !self.connection.output().is_empty();
            if self.connection.is_finished() && !has_output {
                return self.linger().await;
            }
            let pause = self.streams.values().filter_map(|stream| stream.pause).min();
            tokio::select! {
                ready = self.socket.readable(), if self.connection.wants_input() => {
                    ready?;
                    match self.socket.try_read_buf(&mut input) {
                        Ok(0) => return Ok(()),
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                        _ => {}
                    }
                }
                ready = self.socket.writable(), if has_output => ready?,
                () = sleep_until(pause) => {}
            }
        }
    }

    /// The client reads the last frames before it learns that this side reads no more.
    async fn linger(mut self) -> io::Result<()> {
        tokio::io::AsyncWriteExt::shutdown(&mut self.socket).await?;
        let mut rest = [0; 4096];
        let drop = async { while self.socket.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {} };
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), drop).await;
        Ok(())
    }

    fn receive(&mut self, mut input: &[u8]) {
        loop {
            let (used, event) = self.connection.receive(input, Instant::now());
            input = &input[used..];
            match event {
                None => return,
                Some(Event::Request { id, end }) => {
                    self.open(id);
                    self.take(id, end);
                }
                Some(Event::TooLarge { id, .. }) => {
                    let answer = Answer::new(431, "text/plain", "too large\n");
                    self.streams.insert(id, Stream { stage: Stage::Wait(answer), head_only: false, pause: None });
                }
                Some(Event::Data { id, end }) => self.take(id, end),
                Some(Event::Trailers { id }) => self.take(id, true),
                Some(Event::Reset { id, .. }) => {
                    self.streams.remove(&id);
                    self.connection.release(id, Code::CANCEL);
                }
                Some(_) => {}
            }
        }
    }

    fn open(&mut self, id: u32) {
        self.connection.take_request(&mut self.request);
        let asked = Asked::of(&self.request);
        let head_only = asked.method == "HEAD";
        let stage = if self.connection.protocol().is_empty() {
            match self.server.job(&asked).what {
                What::Answer(answer) => Stage::Receive(answer),
                What::Echo(lines) => Stage::Echo((lines + "\n").into_bytes()),
                What::Sink => Stage::Sink { bytes: 0, sum: SUM_START },
                What::Raw(_) | What::Upgrade(_) => Stage::Receive(Answer::new(400, "text/plain", "not over HTTP/2\n")),
            }
        } else {
            let mut response = Response::default();
            response.status = 200;
            self.connection.send_response(id, &response, false);
            Stage::Tunnel(Vec::new())
        };
        self.streams.insert(id, Stream { stage, head_only, pause: None });
    }

    /// Takes data of a request, and its end.
    fn take(&mut self, id: u32, end: bool) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let data = self.connection.data(id);
        let bytes = data.len();
        match &mut stream.stage {
            Stage::Echo(text) | Stage::Tunnel(text) => text.extend_from_slice(data),
            Stage::Sink { bytes, sum } => {
                *bytes += data.len();
                *sum = data.iter().fold(*sum, |sum, byte| add_to_sum(sum, *byte));
            }
            Stage::Receive(_) | Stage::Wait(_) | Stage::Send(..) => {}
        }
        self.connection.take_data(id, &mut Vec::new());
        self.connection.consume(id, bytes);
        if !end {
            return;
        }
        let answer = match &mut stream.stage {
            Stage::Echo(text) => Answer::new(200, "text/plain", std::mem::take(text)),
            Stage::Sink { bytes, sum } => {
                Answer::new(200, "application/json", format!("{{\"bytes\":{bytes},\"sum\":\"{sum:016x}\"}}\n"))
            }
            Stage::Receive(answer) => answer.clone(),
            _ => return,
        };
        stream.stage = Stage::Wait(answer);
    }

    /// Lets each stream send a piece; true if one did.
    fn turn(&mut self) -> bool {
        let Driver { connection, streams, server, .. } = self;
        let mut has_sent = false;
        streams.retain(|id, stream| {
            let (sent, stays) = stream.send(*id, connection, server);
            has_sent |= sent;
            if !stays {
                connection.release(*id, if sent { Code::NO_ERROR } else { Code::CANCEL });
            }
            stays
        });
        has_sent
    }
}

impl Stream {
    /// Sends on a stream; returns whether something was sent, and whether there is more.
    fn send(&mut self, id: u32, connection: &mut Connection, server: &Server) -> (bool, bool) {
        if self.pause.is_some_and(|until| until > tokio::time::Instant::now()) {
            return (false, true);
        }
        let waited = self.pause.take().is_some();
        match &mut self.stage {
            Stage::Receive(_) | Stage::Echo(_) | Stage::Sink { .. } => (false, true),
            Stage::Tunnel(text) => {
                let end = connection.has_peer_ended(id);
                let sent = connection.send_data(id, text, end);
                text.drain(..sent);
                let stays = !(end && text.is_empty());
                (sent > 0 || !stays, stays)
            }
            Stage::Wait(answer) => {
                if !waited && !answer.pace.delay.is_zero() {
                    self.pause = Some(tokio::time::Instant::now() + answer.pace.delay);
                    return (false, true);
                }
                let ends = self.head_only || answer.body.bytes == 0 && answer.trailers.is_empty();
                connection.send_response(id, &head(answer, server), ends);
                let answer = answer.clone();
                self.stage = Stage::Send(answer, 0);
                (true, !ends)
            }
            Stage::Send(answer, at) => {
                let last = answer.pace.cut.unwrap_or(u64::MAX).min(answer.body.bytes);
                let is_paced = !answer.pace.pause.is_zero();
                if is_paced && *at > 0 && !waited {
                    self.pause = Some(tokio::time::Instant::now() + answer.pace.pause);
                    return (false, true);
                }
                let piece = match (answer.framing, answer.pace.piece) {
                    (Framing::Chunks(chunk), _) => chunk,
                    (_, 0) => PIECE_BYTES,
                    (_, piece) => piece,
                };
                let most = piece.min(PIECE_BYTES / 4).min(connection.capacity_of(id));
                let mut data = Vec::new();
                let left = usize::try_from(last - *at).unwrap_or(usize::MAX);
                answer.body.put(*at, most.min(left), &mut data);
                if data.is_empty() && *at < last {
                    return (false, true);
                }
                *at += data.len() as u64;
                let is_last = *at == last;
                let ends = is_last && answer.pace.cut.is_none() && answer.trailers.is_empty();
                connection.send_data(id, &data, ends);
                if is_last && answer.pace.cut.is_some() {
                    return (false, false);
                }
                if is_last && !ends {
                    connection.send_trailers(id, &trailers(answer));
                }
                (true, !is_last)
            }
        }
    }
}

/// The lines of an answer as a head.
fn head(answer: &Answer, server: &Server) -> Response {
    let mut response = Response::default();
    let text = String::from_utf8_lossy(&answer.head);
    response.status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(500);
    push_lines(&text, &mut response.fields);
    push_lines(server.name(), &mut response.fields);
    response
}

fn trailers(answer: &Answer) -> Fields {
    let mut fields = Fields::default();
    push_lines(&answer.trailers, &mut fields);
    fields
}

fn push_lines(text: &str, fields: &mut Fields) {
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        fields.push(name.as_bytes(), value.as_bytes());
    }
}

async fn sleep_until(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
