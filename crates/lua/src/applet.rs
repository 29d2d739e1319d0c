//! The class `AppletHTTP`: a request that a script answers, over a socket whose other end the proxy treats as a server's
//! connection.
//!
//! ```text
//!   no output -- set_status, add_header --> start_response --> send ... --> the script ends: last chunk, all of it sent
//!                 receive, getline: the request's body, at any time
//! ```
//!
//! Memory: output of a script waits in at most [`ENOUGH`] bytes and one piece. Then the script waits until the socket takes
//! more, which it does as the client does. As much of a body waits to be received as the script has asked for.

use crate::burst;
use crate::guard;
use crate::home::Home;
use crate::run::Ended;
use crate::wire::{ENOUGH, PIECE};
use crate::{http, samples, vars};
use mlua::{Lua, Table, UserData, UserDataRef, Value};
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use terse_http::h1::{self, ChunkDecoder, Parsed, Step, encode};
use terse_message::{BodyLength, Fields, Request, Version, status};
use terse_proxy::rules::edit::is_field;
use terse_proxy::stream::Stream;
use tokio::net::UnixStream;

/// The class's name among a state's own values.
const CLASS: &str = "AppletHTTP";

/// Most bytes of a response's head.
const LONGEST_HEAD: usize = 64 * 1024;

/// A request and its response.
pub(crate) struct Http {
    inner: Mutex<Inner>,
}

struct Inner {
    /// `None` once it has ended.
    socket: Option<UnixStream>,
    status: u16,
    reason: Option<Vec<u8>>,
    /// The response's fields, as lines.
    fields: Vec<u8>,
    length: Option<u64>,
    body: Body,
    out: Vec<u8>,
    sent: usize,
    input: Input,
    asked_head: bool,
    /// The most bytes that may wait to be received; 0: any.
    most: usize,
}

/// State of the response's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    /// The head has not been sent.
    NotYet,
    /// There is no body, whatever the script sends.
    None,
    /// A body of which so many bytes may follow.
    Exact(u64),
    Chunked,
}

/// The request's body.
#[derive(Default)]
struct Input {
    raw: Vec<u8>,
    begun: bool,
    rest: Rest,
    /// Bytes that can be received.
    ready: Vec<u8>,
}

/// State of its remaining bytes.
#[derive(Default)]
enum Rest {
    #[default]
    Nothing,
    Exact(u64),
    Chunked(Box<ChunkDecoder>),
}

/// Data of an object of the class.
struct Handle(Arc<Http>);

impl UserData for Handle {}

impl Http {
    /// An applet for a stream's request.
    pub(crate) fn new(socket: UnixStream, stream: &Stream) -> Http {
        Http {
            inner: Mutex::new(Inner {
                socket: Some(socket),
                status: 200,
                reason: None,
                fields: Vec::new(),
                length: None,
                body: Body::NotYet,
                out: Vec::new(),
                sent: 0,
                input: Input::default(),
                asked_head: stream.request.method() == b"HEAD",
                most: 0,
            }),
        }
    }

    /// Limits the bytes that may wait to be received.
    pub(crate) fn limit(&self, bytes: usize) {
        self.lock().most = bytes;
    }

    /// The object for the script.
    pub(crate) fn object(http: &Arc<Http>, lua: &Lua, stream: &Stream) -> mlua::Result<Table> {
        let request = &stream.request;
        let object = lua.create_table()?;
        object.raw_set(0, lua.create_userdata(Handle(http.clone()))?)?;
        samples::give(lua, &object)?;
        object.raw_set("method", lua.create_string(request.method())?)?;
        object.raw_set("path", lua.create_string(request.path())?)?;
        object.raw_set("qs", lua.create_string(request.query().unwrap_or_default())?)?;
        let version = if request.version == Version::Http10 { "HTTP/1.0" } else { "HTTP/1.1" };
        object.raw_set("version", version)?;
        object.raw_set(
            "length",
            match request.body {
                BodyLength::None => 0,
                BodyLength::Exact(n) => i64::try_from(n).unwrap_or(i64::MAX),
                BodyLength::Framed | BodyLength::UntilClose => -1,
            },
        )?;
        object.raw_set("headers", http::table(lua, &request.fields)?)?;
        object.set_metatable(Some(lua.named_registry_value(CLASS)?))?;
        Ok(object)
    }

    /// Notes that the script has ended. False when it has not responded.
    pub(crate) fn finish(&self) -> bool {
        let mut inner = self.lock();
        if inner.body == Body::Chunked {
            encode::last_chunk(Fields::none(), &mut inner.out);
        }
        let answered = inner.body != Body::NotYet;
        if answered {
            inner.body = Body::None;
        }
        answered
    }

    /// Closes the socket.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.socket = None;
        (inner.out, inner.input) = (Vec::new(), Input::default());
    }

    /// Sends the waiting bytes.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.lock();
        loop {
            let waiting = &inner.out[inner.sent.min(inner.out.len())..];
            if waiting.is_empty() {
                inner.out.clear();
                inner.sent = 0;
                return Poll::Ready(Ok(()));
            }
            let Some(socket) = &inner.socket else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
            match socket.try_write(waiting) {
                Ok(n) => inner.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(socket.poll_write_ready(cx))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Reads some of the request's body. False at its end.
    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<mlua::Result<bool>> {
        let inner = &mut *self.lock();
        loop {
            if inner.input.is_done() {
                return Poll::Ready(Ok(false));
            }
            if inner.most > 0 && inner.input.ready.len() > inner.most {
                return Poll::Ready(Err(mlua::Error::runtime("the request's body is larger than 'tune.lua.maxmem' allows")));
            }
            let Some(socket) = &inner.socket else { return Poll::Ready(Err(gone())) };
            let mut piece = [0; PIECE];
            match socket.try_read(&mut piece) {
                Ok(0) => return Poll::Ready(Err(gone())),
                Ok(n) => {
                    let before = inner.input.ready.len();
                    inner.input.take(&piece[..n]).map_err(|()| gone())?;
                    if inner.input.ready.len() > before {
                        return Poll::Ready(Ok(true));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(socket.poll_read_ready(cx)).map_err(|_| gone())?;
                }
                Err(_) => return Poll::Ready(Err(gone())),
            }
        }
    }

    /// Receives bytes until there are as many as `enough` asks for, given those that are there, or no more come.
    async fn receive(&self, enough: impl Fn(&[u8]) -> Option<usize>) -> mlua::Result<Vec<u8>> {
        loop {
            {
                let mut inner = self.lock();
                let found = enough(&inner.input.ready);
                let all = inner.input.is_done().then_some(inner.input.ready.len());
                if let Some(n) = found.or(all) {
                    return Ok(inner.input.ready.drain(..n).collect());
                }
            }
            poll_fn(|cx| self.poll_more(cx)).await?;
        }
    }

    /// Takes a piece of the response's body; returns whether so many bytes wait that they should be sent.
    fn put(&self, piece: &[u8]) -> mlua::Result<bool> {
        let mut inner = self.lock();
        match inner.body {
            Body::NotYet => return Err(mlua::Error::runtime("the response is not started: call applet:start_response() first")),
            Body::None => {}
            Body::Exact(left) => {
                let n = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                inner.body = Body::Exact(left - n as u64);
                inner.out.extend_from_slice(&piece[..n]);
            }
            Body::Chunked => {
                encode::chunk_start(piece.len(), &mut inner.out);
                inner.out.extend_from_slice(piece);
                inner.out.extend_from_slice(encode::CHUNK_END);
            }
        }
        if inner.socket.is_none() {
            return Err(gone());
        }
        Ok(inner.out.len() - inner.sent >= ENOUGH)
    }

    /// Writes the response's head.
    fn begin(&self) -> mlua::Result<()> {
        let inner = &mut *self.lock();
        if inner.body != Body::NotYet {
            return Err(mlua::Error::runtime("the response is started already"));
        }
        let bodyless = matches!(inner.status, 100..=199 | 204 | 304);
        let reason = inner.reason.take().unwrap_or_else(|| status::reason(inner.status).into());
        inner.out.extend_from_slice(format!("HTTP/1.1 {} ", inner.status).as_bytes());
        inner.out.extend_from_slice(&reason);
        inner.out.extend_from_slice(b"\r\n");
        inner.out.append(&mut inner.fields);
        inner.body = match inner.length {
            _ if bodyless => Body::None,
            Some(length) => Body::Exact(length),
            None => Body::Chunked,
        };
        match inner.body {
            Body::Exact(length) => inner.out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
            Body::Chunked => inner.out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Body::None | Body::NotYet => {}
        }
        if inner.asked_head {
            inner.body = Body::None;
        }
        inner.out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Puts a field into the response's head.
    fn add_field(&self, name: &[u8], value: &[u8]) -> mlua::Result<()> {
        let inner = &mut *self.lock();
        if inner.body != Body::NotYet {
            return Err(mlua::Error::runtime("the response is started already"));
        }
        if !is_field(name, value) {
            return Err(mlua::Error::runtime(format!("'{}' is no header with such a value", name.escape_ascii())));
        }
        if inner.fields.len() + name.len() + value.len() > LONGEST_HEAD {
            return Err(mlua::Error::runtime("the response's head is too large"));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
            inner.length = Some(length.ok_or_else(|| mlua::Error::runtime("content-length is no number"))?);
        } else if !name.eq_ignore_ascii_case(b"transfer-encoding") {
            // The framing of the body follows from its length.
            for part in [name, b": ", value, b"\r\n"] {
                inner.fields.extend_from_slice(part);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Input {
    fn is_done(&self) -> bool {
        self.begun && matches!(self.rest, Rest::Nothing)
    }

    /// Takes bytes from the socket: the request's head, which the script knows, and its body.
    fn take(&mut self, bytes: &[u8]) -> Result<(), ()> {
        self.raw.extend_from_slice(bytes);
        if !self.begun {
            let mut request = Request::default();
            match h1::parse_request(&self.raw, &mut request).map_err(drop)? {
                Parsed::Partial => return Ok(()),
                Parsed::Complete(n) => {
                    self.raw.drain(..n);
                    self.begun = true;
                    self.rest = match request.body {
                        BodyLength::None | BodyLength::Exact(0) | BodyLength::UntilClose => Rest::Nothing,
                        BodyLength::Exact(n) => Rest::Exact(n),
                        BodyLength::Framed => Rest::Chunked(Box::default()),
                    };
                }
            }
        }
        let mut at = 0;
        match &mut self.rest {
            Rest::Nothing => {}
            Rest::Exact(left) => {
                at = self.raw.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                self.ready.extend_from_slice(&self.raw[..at]);
                *left -= at as u64;
                if *left == 0 {
                    self.rest = Rest::Nothing;
                }
            }
            Rest::Chunked(decoder) => loop {
                let (used, step) = decoder.step(&self.raw[at..]).map_err(drop)?;
                match step {
                    Step::Data(range) => {
                        self.ready.extend_from_slice(&self.raw[at + range.start..at + range.end]);
                        at += range.end;
                    }
                    Step::More => {
                        at += used;
                        break;
                    }
                    Step::End => {
                        at += used;
                        self.rest = Rest::Nothing;
                        break;
                    }
                }
            },
        }
        self.raw.drain(..at);
        Ok(())
    }
}

fn gone() -> mlua::Error {
    mlua::Error::external(Ended::Gone)
}

/// Puts the class into a state.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let class = lua.create_table()?;
    vars::install(lua, home, &class)?;
    class.set(
        "set_status",
        lua.create_function(|_, (this, status, reason): (Table, i64, Option<mlua::String>)| {
            let status = u16::try_from(status).ok().filter(|status| (100..=599).contains(status));
            let status = status.ok_or_else(|| mlua::Error::runtime("a status is a number from 100 to 599"))?;
            let reason = reason.map(|reason| reason.as_bytes().to_vec());
            if reason.as_ref().is_some_and(|reason| reason.iter().any(|b| b.is_ascii_control())) {
                return Err(mlua::Error::runtime("a reason is one line"));
            }
            let http = of(&this)?;
            let mut inner = http.lock();
            (inner.status, inner.reason) = (status, reason);
            Ok(())
        })?,
    )?;
    class.set(
        "add_header",
        lua.create_function(|_, (this, name, value): (Table, mlua::String, mlua::String)| {
            of(&this)?.add_field(&name.as_bytes(), &value.as_bytes())
        })?,
    )?;
    class.set("start_response", lua.create_function(|_, this: Table| of(&this)?.begin())?)?;
    class.set(
        "send",
        lua.create_async_function(|_, (this, data): (Table, mlua::String)| async move {
            let http = of(&this)?;
            if burst::is_long() {
                tokio::task::yield_now().await;
            }
            let (mut at, length) = (0, data.as_bytes().len());
            while at < length {
                let full = {
                    let bytes = data.as_bytes();
                    let piece = &bytes[at..length.min(at + PIECE)];
                    at += piece.len();
                    http.put(piece)?
                };
                if full {
                    poll_fn(|cx| http.poll_flush(cx)).await.map_err(|_| gone())?;
                }
            }
            Ok(length)
        })?,
    )?;
    class.set(
        "receive",
        lua.create_async_function(|lua, (this, size): (Table, Option<i64>)| async move {
            let http = of(&this)?;
            let size = size.and_then(|size| usize::try_from(size).ok());
            let bytes = http.receive(|ready| size.filter(|size| ready.len() >= *size)).await?;
            lua.create_string(bytes)
        })?,
    )?;
    class.set(
        "getline",
        lua.create_async_function(|lua, this: Table| async move {
            let http = of(&this)?;
            let bytes = http.receive(|ready| ready.iter().position(|b| *b == b'\n').map(|at| at + 1)).await?;
            lua.create_string(bytes)
        })?,
    )?;
    let meta = guard::hidden(lua)?;
    meta.set("__index", class)?;
    lua.set_named_registry_value(CLASS, meta)
}

/// The request that an object stands for.
fn of(object: &Table) -> mlua::Result<Arc<Http>> {
    match object.raw_get::<Value>(0)? {
        Value::UserData(data) => {
            let handle: UserDataRef<Handle> = data.borrow()?;
            Ok(handle.0.clone())
        }
        _ => Err(mlua::Error::runtime("expects the applet's object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_the_same_however_they_come() {
        for (request, body) in [
            (&b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"[..], &b"hello"[..]),
            (
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: 1\r\n\r\n",
                b"hello",
            ),
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b""),
        ] {
            for at in 0..request.len() {
                let mut input = Input::default();
                let (first, rest) = request.split_at(at);
                [first, rest].into_iter().for_each(|bytes| input.take(bytes).unwrap());
                assert!(input.is_done() && input.ready == body, "{at}");
            }
        }
        assert!(Input::default().take(b"\x00\r\n\r\n").is_err());
    }
}
