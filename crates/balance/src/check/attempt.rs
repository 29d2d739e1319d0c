//! One check: the steps of a script over a connection.

use super::expect::{Expect, Judgement};
use super::probe::{Act, Action, ProbeKind, Script};
use super::{CheckStatus, LastCheck};
use crate::server::{Address, Server};
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use terse_http::h1::{self, ChunkDecoder, Parsed};
use terse_message::{BodyLength, Known, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

/// How long a check may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// All of it; with `answer`, only the connecting.
    pub(super) whole: Duration,
    /// `timeout connect`: looked at with `answer` only.
    pub(super) connect: Option<Duration>,
    /// `timeout check`: what follows the connecting.
    pub(super) answer: Option<Duration>,
}

/// Checks a server.
pub(super) async fn attempt(script: &Script, server: &Server, limits: Limits) -> LastCheck {
    let started = Instant::now();
    let mut attempt = Attempt { script, server, limits, stream: None, received: Vec::new(), method: "", code: 0, ended: false };
    let outcome = attempt.run(started).await;
    LastCheck { duration: started.elapsed(), ..outcome }
}

struct Attempt<'a> {
    script: &'a Script,
    server: &'a Server,
    limits: Limits,
    stream: Option<Stream>,
    /// What came since the last step that sent something.
    received: Vec<u8>,
    method: &'a str,
    /// The status of the last response.
    code: u16,
    /// Whether the server has closed its side.
    ended: bool,
}

/// A check that is over before its last step.
type Ended = LastCheck;

impl<'a> Attempt<'a> {
    async fn run(&mut self, started: Instant) -> LastCheck {
        let mut deadline = started + self.limits.whole;
        for step in &self.script.steps {
            let done = match &step.what {
                Act::Connect { port } => self.connect(step, *port, &mut deadline).await,
                Act::Send { bytes, method } => self.send(step, bytes, method, deadline).await,
                Act::Expect(expect) => self.expect(step, expect, deadline).await,
            };
            if let Err(ended) = done {
                return ended;
            }
        }
        self.passed()
    }

    /// What it means to have come to the end.
    fn passed(&self) -> LastCheck {
        let ended_by_connecting = matches!(self.script.steps.last(), Some(Action { what: Act::Connect { .. }, .. }));
        let info = if self.script.kind == ProbeKind::Tcp { "(tcp-check)" } else { "" };
        let status = if ended_by_connecting { CheckStatus::L4Ok } else { CheckStatus::L7Ok };
        LastCheck { status, code: self.code, info: info.into(), ..LastCheck::default() }
    }

    async fn connect(&mut self, step: &Action, port: Option<u16>, deadline: &mut Instant) -> Result<(), Ended> {
        (self.stream, self.ended) = (None, false);
        self.received.clear();
        let mut limit = *deadline;
        if self.limits.answer.is_some() {
            limit = Instant::now() + self.limits.connect.unwrap_or(self.limits.whole).min(self.limits.whole);
        }
        match timeout_at(limit, Stream::connect(self.server, port)).await {
            Err(_) => Err(self.ended(CheckStatus::L4Timeout, self.at_step(step))),
            Ok(Err(error)) => Err(self.ended(CheckStatus::L4Connection, described(&error) + &self.at_step(step))),
            Ok(Ok(stream)) => {
                self.stream = Some(stream);
                if let Some(answer) = self.limits.answer {
                    *deadline = Instant::now() + answer;
                }
                Ok(())
            }
        }
    }

    async fn send(&mut self, step: &Action, bytes: &[u8], method: &'a str, deadline: Instant) -> Result<(), Ended> {
        (self.method, self.code) = (method, 0);
        self.received.clear();
        let Some(stream) = &mut self.stream else { return Err(self.ended(CheckStatus::SocketError, self.at_step(step))) };
        match timeout_at(deadline, stream.send(bytes)).await {
            Err(_) => Err(self.ended(CheckStatus::L7Timeout, self.at_step(step))),
            Ok(Err(error)) => Err(self.ended(CheckStatus::SocketError, described(&error) + &self.at_step(step))),
            Ok(Ok(())) => Ok(()),
        }
    }

    async fn expect(&mut self, step: &Action, expect: &Expect, deadline: Instant) -> Result<(), Ended> {
        loop {
            let judgement = match self.script.kind {
                ProbeKind::Http => self.judge_http(step, expect)?,
                _ if self.received.is_empty() && !self.ended => Judgement::Wait,
                _ if self.received.is_empty() => return Err(self.empty(step)),
                _ if expect.judge_content(&self.received, self.ended) == Judgement::Failed => {
                    return Err(self.unexpected(CheckStatus::L7Response, step, expect));
                }
                _ => expect.judge_content(&self.received, self.ended),
            };
            if judgement == Judgement::Met {
                return Ok(());
            }
            self.receive(step, deadline).await?;
        }
    }

    /// Judges what has come of a response. Never [`Judgement::Failed`]: that ends the check.
    fn judge_http(&mut self, step: &Action, expect: &Expect) -> Result<Judgement, Ended> {
        let mut response = Response::default();
        let broken = || LastCheck { status: CheckStatus::L7Response, ..LastCheck::default() };
        let head = match h1::parse_response(&self.received, self.method.as_bytes(), &mut response) {
            Ok(Parsed::Complete(length)) => length,
            Ok(Parsed::Partial) if self.received.is_empty() && self.ended => return Err(self.empty(step)),
            Ok(Parsed::Partial) if self.ended || self.received.len() >= MOST_BYTES => return Err(broken()),
            Ok(Parsed::Partial) => return Ok(Judgement::Wait),
            Err(_) => return Err(broken()),
        };
        self.code = response.status;
        if response.status == 404 && self.script.stops_on_404 && self.server.is_up() {
            return Err(self.ended(CheckStatus::L7OkStopping, String::new()));
        }
        if let Some(judgement) = expect.judge_head(&response) {
            let reason = String::from_utf8_lossy(response.reason()).into_owned();
            return match judgement {
                Judgement::Failed => Err(self.ended(CheckStatus::L7Status, reason + &commented(step))),
                judgement => Ok(judgement),
            };
        }
        let (content, whole) = content(&response, &self.received[head..]).ok_or_else(broken)?;
        let last = whole || self.ended || self.received.len() >= MOST_BYTES;
        match expect.judge_content(&content, last) {
            Judgement::Failed => Err(self.ended(CheckStatus::L7Response, body_info(expect, &content) + &commented(step))),
            _ if last && content.is_empty() => {
                Err(self.ended(CheckStatus::L7Response, body_info(expect, &content) + &commented(step)))
            }
            judgement => Ok(judgement),
        }
    }

    async fn receive(&mut self, step: &Action, deadline: Instant) -> Result<(), Ended> {
        if self.ended || self.received.len() >= MOST_BYTES {
            return Err(self.ended(CheckStatus::L7Response, self.at_step(step)));
        }
        let Some(stream) = &mut self.stream else { return Err(self.ended(CheckStatus::SocketError, self.at_step(step))) };
        match timeout_at(deadline, stream.receive(&mut self.received)).await {
            Err(_) => Err(self.ended(CheckStatus::L7Timeout, self.at_step(step))),
            Ok(Err(error)) => Err(self.ended(CheckStatus::SocketError, described(&error) + &self.at_step(step))),
            Ok(Ok(n)) => {
                self.ended = n == 0;
                Ok(())
            }
        }
    }

    fn ended(&self, status: CheckStatus, info: String) -> Ended {
        LastCheck { status, code: self.code, info, ..LastCheck::default() }
    }

    fn empty(&self, step: &Action) -> Ended {
        let info = format!("TCPCHK got an empty response at step {}{}", step.number.unwrap_or(0), commented(step));
        self.ended(CheckStatus::L7Response, info)
    }

    fn unexpected(&self, status: CheckStatus, step: &Action, expect: &Expect) -> Ended {
        let verdict = if expect.negated { "TCPCHK matched unwanted content" } else { "TCPCHK did not match content" };
        let info = format!("{verdict}{} at step {}{}", expect.described(), step.number.unwrap_or(0), commented(step));
        self.ended(status, info)
    }

    /// Where a script of `tcp-check` lines broke off.
    fn at_step(&self, step: &Action) -> String {
        if self.script.kind != ProbeKind::Tcp {
            return String::new();
        }
        let what = match &step.what {
            _ if step.number.is_none() => return " at initial connection step of tcp-check".into(),
            Act::Connect { port: Some(port) } => format!("connect port {port}"),
            Act::Connect { port: None } => "connect".into(),
            Act::Send { .. } => "send".into(),
            Act::Expect(expect) => format!("expect{}", expect.described().replace(['(', ')'], "")),
        };
        let comment = step.comment.as_ref().map_or(String::new(), |comment| format!(" comment: '{comment}'"));
        format!(" at step {} of tcp-check ({what}){comment}", step.number.unwrap_or(0))
    }
}

fn commented(step: &Action) -> String {
    step.comment.as_ref().map_or(String::new(), |comment| format!(" comment: {comment}"))
}

fn body_info(expect: &Expect, content: &[u8]) -> String {
    match (content.is_empty(), expect.negated) {
        (true, _) => "HTTP content check could not find a response body".into(),
        (false, true) => "HTTP check matched unwanted content".into(),
        (false, false) => "HTTP content check did not match".into(),
    }
}

/// What has come of a body, and whether that is all; `None` when its chunks are broken.
fn content(response: &Response, raw: &[u8]) -> Option<(Vec<u8>, bool)> {
    if !response.fields.has(Known::TransferEncoding) {
        return Some(match response.body {
            BodyLength::None => (Vec::new(), true),
            BodyLength::Exact(length) => (raw.to_vec(), raw.len() as u64 >= length),
            BodyLength::Unknown => (raw.to_vec(), false),
        });
    }
    let (mut decoder, mut content, mut at) = (ChunkDecoder::default(), Vec::new(), 0);
    loop {
        let rest = raw.get(at..)?;
        let (used, step) = decoder.step(rest).ok()?;
        at += used;
        match step {
            h1::Step::Data(place) => content.extend_from_slice(rest.get(place)?),
            h1::Step::More => return Some((content, false)),
            h1::Step::End => return Some((content, true)),
        }
    }
}

/// An error in the log's words: HAProxy's name for it, and the system's.
fn described(error: &io::Error) -> String {
    let text = error.to_string();
    let system = text.split(" (os error").next().unwrap_or_default();
    let name = match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED returned by OS",
        io::ErrorKind::ConnectionReset => "ECONNRESET returned by OS",
        io::ErrorKind::BrokenPipe => "EPIPE returned by OS",
        _ => "General socket error",
    };
    format!("{name} ({system})")
}

/// A connection to a server.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    async fn connect(server: &Server, port: Option<u16>) -> io::Result<Stream> {
        let check = &server.settings().check;
        match server.address() {
            Address::Ip(address) => {
                let ip = check.address.unwrap_or(address.ip());
                let port = port.or(check.port).unwrap_or(address.port());
                let stream = TcpStream::connect(SocketAddr::new(ip, port)).await?;
                // A check leaves by a reset, so that its port need not wait for packets that come late.
                stream.set_zero_linger()?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
            Address::Abstract(name) => {
                Ok(Stream::Unix(UnixStream::connect(OsStr::from_bytes(&[b"\0", &name[..]].concat())).await?))
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes).await,
            Stream::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    /// Appends what comes next; says how many bytes.
    async fn receive(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read_buf(bytes).await,
            Stream::Unix(stream) => stream.read_buf(bytes).await,
        }
    }
}

/// The most bytes of an answer that are looked at, as HAProxy's buffer (`tune.bufsize`) has it.
const MOST_BYTES: usize = 16 * 1024;
