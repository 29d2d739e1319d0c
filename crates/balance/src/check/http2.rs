//! A request of a check over HTTP/2 and its response, without a socket.

use std::time::Instant;
use terse_http::h2::{Code, Connection, Event, Limits};
use terse_message::{Known, Request, Response};

/// A connection. It carries one request.
pub(super) struct Session {
    connection: Connection,
    /// Authority of a request that has none.
    authority: String,
    /// The request's stream; 0 before it.
    stream: u32,
    /// Part of the request's body that the server has not taken.
    body: Vec<u8>,
    fault: Option<String>,
}

/// Received part of a response.
#[derive(Default)]
pub(super) struct Answer {
    /// The head; interim ones do not count.
    pub(super) head: Option<Response>,
    /// More of the body.
    pub(super) content: Vec<u8>,
    /// Whether that was all of it.
    pub(super) whole: bool,
}

impl Session {
    pub(super) fn new(authority: String) -> Session {
        let connection = Connection::client(Limits::default());
        Session { connection, authority, stream: 0, body: Vec::new(), fault: None }
    }

    /// Sends the request.
    pub(super) fn ask(&mut self, mut request: Request, scheme: &str, body: Vec<u8>) {
        // Servers refuse a request without an authority.
        if request.authority().is_none_or(<[u8]>::is_empty) {
            request.fields.remove_known(Known::Host);
            request.fields.push(b"host", self.authority.as_bytes());
        }
        match self.connection.send_request(&request, scheme.as_bytes(), None, body.is_empty()) {
            Ok(stream) => (self.stream, self.body) = (stream, body),
            Err(_) => self.fail("HTTP/2 server takes no request".into()),
        }
    }

    /// Reason why no more of the answer will come, in the log's words.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Takes pending output. There is none once all was taken, or while the server's windows are closed.
    pub(super) fn output(&mut self) -> Option<Vec<u8>> {
        if !self.body.is_empty() {
            let taken = self.connection.send_data(self.stream, &self.body, true);
            self.body.drain(..taken);
        }
        let output = self.connection.output().to_vec();
        self.connection.wrote(output.len());
        Some(output).filter(|output| !output.is_empty())
    }

    /// Processes received bytes.
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
                // A server that goes away without an error still answers the requests that it has taken; it resets
                // others.
                Some(Event::GoAway { code, .. }) if code != Code::NO_ERROR => {
                    self.fail(format!("HTTP/2 connection ended by server: {}", code.name()));
                }
                Some(event) => self.note(event, &mut answer),
            }
        }
    }

    /// Processes an event of the stream.
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

    /// Records a fault; the first counts.
    fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a body of either side, above all windows.
    const LONG: usize = 700_000;

    fn sent(server: &mut Connection) -> Vec<u8> {
        let output = server.output().to_vec();
        server.wrote(output.len());
        output
    }

    #[test]
    fn bodies_go_beyond_windows() {
        let (mut session, mut server) = (Session::new("a.test".into()), Connection::server(Limits::default()));
        let mut request = Request::default();
        request.set_method(b"POST");
        request.set_target(b"/");
        session.ask(request, "http", vec![b'q'; LONG]);
        let (mut asked, mut rest, mut content, mut whole) = (0, vec![b'a'; LONG], 0, false);
        for _ in 0..1000 {
            let output = session.output().unwrap_or_default();
            let mut bytes = &output[..];
            while let (used, Some(event)) = server.receive(bytes, Instant::now()) {
                bytes = &bytes[used..];
                if let Event::Data { id, end } = event {
                    let mut data = Vec::new();
                    server.take_data(id, &mut data);
                    server.consume(id, data.len());
                    asked += data.len();
                    if end {
                        let mut response = Response::default();
                        response.status = 200;
                        server.send_response(id, &response, false);
                    }
                }
            }
            if asked == LONG {
                let taken = server.send_data(1, &rest, true);
                rest.drain(..taken);
            }
            let answer = session.receive(&sent(&mut server), Instant::now());
            content += answer.content.len();
            whole |= answer.whole;
        }
        assert_eq!((asked, content, whole, session.fault()), (LONG, LONG, true, None));
    }

    #[test]
    fn who_has_gone_takes_no_requests() {
        let (mut session, mut server) = (Session::new("a.test".into()), Connection::server(Limits::default()));
        server.goaway(Code::NO_ERROR);
        assert!(session.receive(&sent(&mut server), Instant::now()).head.is_none() && session.fault().is_none());
        session.ask(Request::default(), "http", Vec::new());
        assert_eq!(session.fault(), Some("HTTP/2 server takes no request"));
    }
}
