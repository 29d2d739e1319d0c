//! The class `HTTPClient` (`core.httpclient`): requests of a script's own. Each has a connection of its own.
//!
//! Failures give a response too, as in HAProxy. It is 503 where no connection can be made, 504 where the server is silent
//! for too long, 502 where its bytes are no response.

use crate::home::Home;
use crate::http;
use crate::run::may_wait;
use crate::socket;
use crate::wire::{PIECE, Wire};
use mlua::{Lua, Table, Value};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::Duration;
use terse_http::h1::{self, ChunkDecoder, Parsed, Step};
use terse_message::{BodyLength, Response, status};
use terse_proxy::rules::edit::is_field;

/// Time limit of a step, in milliseconds, where the script sets none.
const PATIENCE_MS: u64 = 5_000;
/// The largest head, and the largest body where 'tune.lua.maxmem' does not limit it.
const LARGEST_HEAD: usize = 64 * 1024;
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// Puts `core.httpclient` into a state.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let class = lua.create_table()?;
    for (name, method) in [("get", "GET"), ("head", "HEAD"), ("put", "PUT"), ("post", "POST"), ("delete", "DELETE")] {
        let house = home.house.clone();
        let ask = move |lua: Lua, (_, options): (Value, Table)| {
            let limit = house.upgrade().map_or(0, |house| house.tuning().memory_bytes);
            ask(lua, options, method, if limit == 0 { LARGEST_BODY } else { limit })
        };
        class.set(name, lua.create_async_function(ask)?)?;
    }
    let core: Table = lua.globals().get("core")?;
    // It holds no data: all objects are one.
    core.set("httpclient", lua.create_function(move |_, (): ()| Ok(class.clone()))?)
}

/// Request of a script.
struct Question {
    head: Vec<u8>,
    body: Option<mlua::String>,
    address: String,
    port: Option<u16>,
    secure: bool,
    limit: Duration,
}

async fn ask(lua: Lua, options: Table, method: &'static str, most: usize) -> mlua::Result<Table> {
    may_wait()?;
    let question = Question::read(&options, method)?;
    let answer = lua.create_table()?;
    match exchange(&question, method, most).await {
        Ok((response, body)) => {
            answer.set("status", response.status)?;
            answer.set("reason", lua.create_string(response.reason())?)?;
            answer.set("headers", http::table(&lua, &response.fields)?)?;
            answer.set("body", lua.create_string(body)?)?;
        }
        Err(error) => {
            let status = match error.kind() {
                ErrorKind::TimedOut => 504,
                ErrorKind::InvalidData => 502,
                _ => 503,
            };
            answer.set("status", status)?;
            answer.set("reason", status::reason(status))?;
            answer.set("headers", lua.create_table()?)?;
            answer.set("body", "")?;
        }
    }
    Ok(answer)
}

impl Question {
    fn read(options: &Table, method: &str) -> mlua::Result<Question> {
        let wrong = |what: &str| mlua::Error::runtime(format!("httpclient: {what}"));
        let url: String = options.get::<Option<String>>("url")?.ok_or_else(|| wrong("an 'url' is expected"))?;
        if url.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return Err(wrong("the url holds blanks"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("the url begins with http:// or https://"))?;
        let secure = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("the url begins with http:// or https://")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        let body = options.get::<Option<mlua::String>>("body")?;
        let mut head = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        let mut has_host = false;
        if let Some(headers) = options.get::<Option<Table>>("headers")? {
            for pair in headers.pairs::<mlua::String, Table>() {
                let (name, values) = pair?;
                let name = name.as_bytes().to_vec();
                has_host |= name.eq_ignore_ascii_case(b"host");
                // Scripts cannot set the framing of the message.
                if name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding") {
                    continue;
                }
                for value in values.sequence_values::<mlua::String>() {
                    let value = value?.as_bytes().to_vec();
                    if !is_field(&name, &value) {
                        return Err(wrong("a header is none"));
                    }
                    head.extend([&name[..], b": ", &value, b"\r\n"].concat());
                }
            }
        }
        if !has_host {
            head.extend(format!("Host: {authority}\r\n").into_bytes());
        }
        if body.is_some() || matches!(method, "POST" | "PUT") {
            let length = body.as_ref().map_or(0, |body| body.as_bytes().len());
            head.extend(format!("Content-Length: {length}\r\n").into_bytes());
        }
        head.extend(b"\r\n");
        let (address, port) = match options.get::<Option<String>>("dst")? {
            Some(to) => (to, None),
            None => (authority.to_owned(), None),
        };
        // An authority without a port has its scheme's.
        let bare = address.trim_start_matches("ipv4@").trim_start_matches("ipv6@");
        let has_port = bare
            .rsplit_once(':')
            .is_some_and(|(host, port)| port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']')));
        let port = if has_port { port } else { Some(if secure { 443 } else { 80 }) };
        let limit = Duration::from_millis(options.get::<Option<u64>>("timeout")?.unwrap_or(PATIENCE_MS));
        Ok(Question { head, body, address, port, secure, limit })
    }
}

async fn exchange(question: &Question, method: &str, most: usize) -> io::Result<(Response, Vec<u8>)> {
    let socket = in_time(question, socket::open(&question.address, question.port, question.secure)).await?;
    let wire = Wire::of(socket);
    wire.put(&question.head);
    let length = question.body.as_ref().map_or(0, |body| body.as_bytes().len());
    let mut at = 0;
    while at < length {
        let Some(body) = &question.body else { break };
        let full = {
            let bytes = body.as_bytes();
            let piece = &bytes[at..length.min(at + PIECE)];
            at += piece.len();
            wire.put(piece)
        };
        if full {
            in_time(question, wire.flush()).await?;
        }
    }
    in_time(question, wire.flush()).await?;
    let response = head(question, &wire, method).await?;
    let body = match response.body {
        BodyLength::None => Vec::new(),
        BodyLength::Exact(n) => {
            let n = usize::try_from(n).ok().filter(|n| *n <= most).ok_or(ErrorKind::InvalidData)?;
            let bytes = gather(question, &wire, most, |ready| ready.len() >= n).await?;
            bytes.get(..n).ok_or(ErrorKind::InvalidData)?.to_vec()
        }
        BodyLength::Framed => chunks(question, &wire, most).await?,
        BodyLength::UntilClose => gather(question, &wire, most, |_| false).await?,
    };
    wire.close();
    Ok((response, body))
}

/// The head of the final response.
async fn head(question: &Question, wire: &Wire, method: &str) -> io::Result<Response> {
    let mut response = Response::default();
    loop {
        let parsed = wire.look(|ready| h1::parse_response(ready, method.as_bytes(), &mut response));
        match parsed.map_err(|_| ErrorKind::InvalidData)? {
            Parsed::Complete(n) => {
                wire.take(n);
                if !matches!(response.status, 100..=199) {
                    return Ok(response);
                }
            }
            Parsed::Partial if wire.waiting().0 > LARGEST_HEAD => return Err(ErrorKind::InvalidData.into()),
            Parsed::Partial => {
                if !in_time(question, wire.more()).await? {
                    return Err(ErrorKind::InvalidData.into());
                }
            }
        }
    }
}

/// Reads bytes until there are enough, or the server closes.
async fn gather(question: &Question, wire: &Wire, most: usize, enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    while !wire.look(&enough) {
        if wire.waiting().0 > most {
            return Err(ErrorKind::InvalidData.into());
        }
        if !in_time(question, wire.more()).await? {
            break;
        }
    }
    Ok(wire.take(usize::MAX))
}

async fn chunks(question: &Question, wire: &Wire, most: usize) -> io::Result<Vec<u8>> {
    let (mut decoder, mut body) = (ChunkDecoder::default(), Vec::new());
    loop {
        let bytes = wire.look(<[u8]>::to_vec);
        let (used, step) = decoder.step(&bytes).map_err(|_| ErrorKind::InvalidData)?;
        match step {
            Step::Data(range) => {
                body.extend_from_slice(&bytes[range.clone()]);
                wire.take(range.end);
            }
            Step::End => return Ok(body),
            Step::More => {
                wire.take(used);
                if body.len() > most || !in_time(question, wire.more()).await? {
                    return Err(ErrorKind::InvalidData.into());
                }
            }
        }
    }
}

async fn in_time<T>(question: &Question, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(question.limit, step).await.map_err(|_| ErrorKind::TimedOut)?
}
