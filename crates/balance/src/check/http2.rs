//! Requests of a check over HTTP/2, and what comes of them, without a socket.

use std::time::Instant;
use terse_http::h2::{Code, Connection, Event, Limits, Unavailable};
use terse_message::{Request, Response};

/// A connection. It carries one request at a time.
pub(super) struct Session {
    connection: Connection,
    /// The stream of the last request; 0 before the first.
    stream: u32,
    /// What of its body the server has not taken.
    body: Vec<u8>,
    fault: Option<String>,
}

/// What has come of an answer.
#[derive(Default)]
pub(super) struct Answer {
    /// The head; interim ones do not count.
    pub(super) head: Option<Response>,
    /// More of the body.
    pub(super) content: Vec<u8>,
    /// Whether that was all of it.
    pub(super) whole: bool,
}

impl Default for Session {
    fn default() -> Session {
        Session { connection: Connection::client(Limits::default()), stream: 0, body: Vec::new(), fault: None }
    }
}

impl Session {
    /// Asks. A request before this one is forgotten.
    ///
    /// # Errors
    /// The server takes no more requests.
    pub(super) fn ask(&mut self, request: &Request, scheme: &str, body: Vec<u8>) -> Result<(), Unavailable> {
        self.connection.release(self.stream, Code::CANCEL);
        self.stream = self.connection.send_request(request, scheme.as_bytes(), None, body.is_empty())?;
        (self.body, self.fault) = (body, None);
        Ok(())
    }

    /// Why nothing more of the answer will come, in the log's words.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Takes what is to be sent now. There is nothing once all was, or while the server's windows are closed.
    pub(super) fn output(&mut self) -> Option<Vec<u8>> {
        if !self.body.is_empty() {
            let taken = self.connection.send_data(self.stream, &self.body, true);
            self.body.drain(..taken);
        }
        let output = self.connection.output().to_vec();
        self.connection.wrote(output.len());
        Some(output).filter(|output| !output.is_empty())
    }

    /// Takes what came.
    pub(super) fn receive(&mut self, mut bytes: &[u8], now: Instant) -> Answer {
        let mut answer = Answer::default();
        let speaks_http1 = bytes.starts_with(b"HTTP/1.");
        loop {
            let (used, event) = self.connection.receive(bytes, now);
            bytes = bytes.get(used..).unwrap_or_default();
            match event {
                None => return answer,
                Some(Event::Failed(_)) if speaks_http1 => self.fail("HTTP/1 answer to HTTP/2 request".into()),
                Some(Event::Failed(failure)) => self.fail(format!("invalid HTTP/2: {}", failure.cause)),
                // Who goes away in peace still answers what it has taken; what it has not is reset.
                Some(Event::GoAway { code, .. }) if code != Code::NO_ERROR => {
                    self.fail(format!("HTTP/2 connection ended by server: {}", code.name()));
                }
                Some(event) => self.note(event, &mut answer),
            }
        }
    }

    /// Takes an event of the stream.
    fn note(&mut self, event: Event, answer: &mut Answer) {
        match event {
            Event::Response { id, end } if id == self.stream => {
                self.connection.take_response(answer.head.get_or_insert_default());
                answer.whole |= end;
            }
            Event::Data { id, end } if id == self.stream => {
                let before = answer.content.len();
                self.connection.take_data(id, &mut answer.content);
                self.connection.consume(id, answer.content.len() - before);
                answer.whole |= end;
            }
            Event::Trailers { id } if id == self.stream => answer.whole = true,
            Event::Reset { id, code, by_peer } if id == self.stream => {
                let what = if by_peer { "HTTP/2 stream reset by server" } else { "invalid HTTP/2 answer" };
                self.fail(format!("{what}: {}", code.name()));
            }
            _ => {}
        }
    }

    /// Notes a fault; the first one counts.
    fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}
