//! The client's side of HTTP/2: one stream at a time.

use super::{Reply, Socket};
use anyhow::{Result, anyhow, bail};
use std::io::{Read, Write};
use std::time::Instant;
use terse_http::h2::{Code, Connection, Event, Limits};
use terse_message::{Request, Response};

/// A connection that waits for each answer.
#[derive(Debug)]
pub(super) struct Http2 {
    connection: Connection,
    room: Vec<u8>,
    /// Bytes that have come so far.
    received: usize,
    response: Response,
}

/// A request.
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) lines: &'a [&'a str],
    pub(super) body: Option<&'a [u8]>,
}

/// Part of an answer that has come.
#[derive(Default)]
struct Partial {
    has_begun: bool,
    body: Vec<u8>,
    is_whole: bool,
}

impl Http2 {
    /// Exchanges the settings.
    pub(super) fn begin(socket: &mut Socket) -> Result<Http2> {
        let connection = Connection::client(Limits { stream_window: 256 * 1024, ..Limits::default() });
        let mut http2 = Http2 { connection, room: vec![0; ROOM_BYTES], received: 0, response: Response::default() };
        let mut is_agreed = false;
        while !is_agreed {
            http2.turn(socket, &mut |_, event| {
                is_agreed |= matches!(event, Event::Settings);
                Ok(())
            })?;
        }
        Ok(http2)
    }

    /// True if no further stream can be opened.
    pub(super) fn is_given_up(&self) -> bool {
        self.connection.is_going()
    }

    /// Asks for a path; lines about the connection are left out.
    pub(super) fn ask(&mut self, socket: &mut Socket, asked: &Asked<'_>, has_begun: &mut bool) -> Result<Reply> {
        let mut request = Request::default();
        request.fields.push(b"Host", asked.host.as_bytes());
        for (name, value) in asked.lines.iter().filter_map(|line| line.split_once(':')) {
            if !name.eq_ignore_ascii_case("connection") {
                request.fields.push(name.as_bytes(), value.trim().as_bytes());
            }
        }
        request.set_method(asked.method.as_bytes());
        request.set_target(asked.path.as_bytes());
        let scheme: &[u8] = if matches!(socket, Socket::Secured(_)) { b"https" } else { b"http" };
        let (begun, before) = (Instant::now(), self.received);
        let mut unsent = asked.body.filter(|body| !body.is_empty());
        let id = self
            .connection
            .send_request(&request, scheme, None, unsent.is_none())
            .map_err(|error| anyhow!("no stream: {error:?}"))?;
        let (mut partial, mut response) = (Partial::default(), std::mem::take(&mut self.response));
        while !partial.is_whole {
            // The output has room again once it was written: an answer is waited for when the windows are closed.
            while let Some(rest) = unsent {
                let sent = self.connection.send_data(id, rest, true);
                unsent = Some(&rest[sent..]).filter(|rest| !rest.is_empty());
                self.flush(socket)?;
                if sent == 0 {
                    break;
                }
            }
            self.turn(socket, &mut |connection, event| partial.take(id, event, connection, &mut response))?;
            *has_begun |= partial.has_begun;
        }
        self.connection.release(id, Code::NO_ERROR);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = response.fields.iter().map(|(name, value)| (text(name).to_ascii_lowercase(), text(value))).collect();
        let reply = Reply {
            status: response.status,
            fields,
            body: partial.body,
            wire_bytes: self.received - before,
            time: begun.elapsed(),
        };
        self.response = response;
        Ok(reply)
    }

    fn flush(&mut self, socket: &mut Socket) -> Result<()> {
        while !self.connection.output().is_empty() {
            let count = socket.write(self.connection.output())?;
            self.connection.wrote(count);
        }
        Ok(())
    }

    /// Sends the pending bytes, waits for something, and takes it.
    fn turn(&mut self, socket: &mut Socket, take: &mut dyn FnMut(&mut Connection, Event) -> Result<()>) -> Result<()> {
        self.flush(socket)?;
        let count = socket.read(&mut self.room)?;
        if count == 0 {
            bail!("the connection was closed");
        }
        self.received += count;
        let mut input = &self.room[..count];
        loop {
            let (used, event) = self.connection.receive(input, Instant::now());
            input = &input[used..];
            match event {
                None => return Ok(()),
                Some(Event::Failed(failure)) => bail!("{failure:?}"),
                Some(event) => take(&mut self.connection, event)?,
            }
        }
    }
}

impl Partial {
    fn take(&mut self, asked: u32, event: Event, connection: &mut Connection, response: &mut Response) -> Result<()> {
        match event {
            Event::Interim { .. } => connection.take_response(response),
            Event::Response { id, end } if id == asked => {
                connection.take_response(response);
                self.is_whole = end;
                self.has_begun = true;
            }
            Event::Data { id, end } if id == asked => {
                let count = connection.data(id).len();
                self.body.extend_from_slice(connection.data(id));
                connection.take_data(id, &mut Vec::new());
                connection.consume(id, count);
                self.is_whole = end;
            }
            Event::Trailers { id } if id == asked => self.is_whole = true,
            Event::Reset { code, .. } => bail!("the stream was reset: {code:?}"),
            Event::GoAway { last, code } if last < asked => bail!("the server goes away: {code:?}"),
            _ => {}
        }
        Ok(())
    }
}

const ROOM_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use crate::client::Client;
    use crate::origin::{Options, Origin};
    use std::time::Duration;

    #[test]
    fn answers_are_the_same_as_over_http_1() {
        let origin = Origin::start(&Options::local(1)).unwrap();
        let (address, patience) = (origin.addresses()[0], Duration::from_secs(60));
        let mut old = Client::connect(address, patience).unwrap();
        let mut new = Client::connect_http2(address, patience, None).unwrap();
        for path in ["/static/tiny", "/static/page.js", "/static/picture.bmp"] {
            let (one, other) = (old.get(path, &[]).unwrap(), new.get(path, &["Accept: a", "Connection: close"]).unwrap());
            assert!(one.status == other.status && one.body == other.body && other.wire_bytes > other.body.len(), "{path}");
            assert_eq!(one.field("content-type"), other.field("content-type"));
        }
    }
}
