//! A check: the steps of a script over a connection.

use super::expect::{Expect, Judgement, bytes_of, written};
use super::http2::Session;
use super::probe::{Act, Action, Assigned, Connect, ConnectTls, HttpRequest, ProbeKind, Script};
use super::program;
use super::protocol::Answer;
use super::stream::{Security, Stream, described};
use super::{CheckStatus, LastCheck, Surroundings};
use crate::address::Address;
use crate::exhaustion::{EXHAUSTION, Purpose};
use crate::farm::Farm;
use crate::server::Server;
use crate::state::Operation;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use terse_http::h1::{self, ChunkDecoder, Parsed};
use terse_message::{BodyLength, Protocol, Response, Version};
use terse_sample::{Env, LogFormat, Store, Target, Value, Vars};
use tokio::time::{Instant, timeout_at};

/// Time limits of a check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Limit of the whole check; with `answer`, only of connecting.
    pub(super) whole: Duration,
    /// `timeout connect`: used with `answer` only.
    pub(super) connect: Option<Duration>,
    /// `timeout check`: limit after connecting.
    pub(super) answer: Option<Duration>,
}

/// Checks a server. `None`: this process has no descriptor left for it, which is no result about the server.
pub(super) async fn attempt(
    farm: &Farm,
    server: &Arc<Server>,
    limits: Limits,
    surroundings: &dyn Surroundings,
) -> Option<LastCheck> {
    let script = farm.script_of(server);
    if let Some(program) = &script.program {
        return program::attempt(program, farm, server, limits, surroundings).await;
    }
    let started = Instant::now();
    let mut attempt = Attempt {
        script,
        farm,
        server,
        subject: surroundings.subject(farm, server),
        limits,
        surroundings,
        variables: Store::default(),
        response: None,
        stream: None,
        http2: None,
        received: Vec::new(),
        method: "",
        code: 0,
        status: CheckStatus::L7Ok,
        info: String::new(),
        ended: false,
        unmet: false,
        starved: false,
    };
    let outcome = attempt.run(started).await;
    surroundings.variables().forget(&attempt.variables, None);
    (!attempt.starved).then(|| LastCheck { duration: started.elapsed(), ..outcome })
}

struct Attempt<'a> {
    script: &'a Script,
    farm: &'a Farm,
    server: &'a Server,
    /// Farm and server as expressions see them.
    subject: Box<dyn Any + Send + Sync>,
    limits: Limits,
    surroundings: &'a dyn Surroundings,
    /// The scope `check`.
    variables: Store,
    /// The head of the last response.
    response: Option<Response>,
    stream: Option<Stream>,
    /// Session of HTTP/2, where the connection speaks that.
    http2: Option<Box<Session>>,
    /// Bytes received since the last step that sent something; over HTTP/2, those of the body.
    received: Vec<u8>,
    method: &'a str,
    /// The status of the last response.
    code: u16,
    /// Outcome if no step follows.
    status: CheckStatus,
    /// Details of the outcome.
    info: String,
    /// Whether the server has closed its side, or its stream of HTTP/2.
    ended: bool,
    /// Whether an answer came that did not meet the expectation.
    unmet: bool,
    /// Whether this process had no descriptor for a connection.
    starved: bool,
}

/// Outcome of a check that is over before its last step.
type Ended = LastCheck;

impl<'a> Attempt<'a> {
    async fn run(&mut self, started: Instant) -> LastCheck {
        let mut deadline = started + self.limits.whole;
        for step in &self.script.steps {
            let done = match &step.what {
                Act::Connect(to) => self.connect(step, to, &mut deadline).await,
                Act::Send { bytes } => self.send(step, bytes, "", deadline).await,
                Act::SendFormat { format, hexadecimal } => {
                    let text = written(format, &self.env());
                    let bytes = if *hexadecimal { bytes_of(&text).unwrap_or_default() } else { text };
                    self.send(step, &bytes, "", deadline).await
                }
                Act::Request(request) => self.request(step, request, deadline).await,
                Act::SetVar { target, value } => {
                    self.set(*target, value);
                    Ok(())
                }
                Act::UnsetVar(slot) => {
                    self.env().vars.unset(*slot);
                    Ok(())
                }
                Act::Expect(expect) => self.expect(step, expect, deadline).await,
                Act::Answer(answer) => self.answer(step, answer, deadline).await,
            };
            if let Err(ended) = done {
                return ended;
            }
        }
        self.passed()
    }

    /// Environment of expressions.
    fn env(&self) -> Env<'_> {
        let vars = Vars { process: Some(self.surroundings.variables()), check: Some(&self.variables), ..Vars::default() };
        Env { response: self.response.as_ref(), vars, facts: &*self.subject, ..Env::bare(self.surroundings.world()) }
    }

    /// Value of the field that tells a server its state (`http-check send-state`).
    fn state(&self) -> String {
        let (server, state) = (self.server, self.server.state());
        let rules = server.settings().rules();
        let is_stopped = state.operation == Operation::Stopped;
        let word = match state.operation {
            Operation::Stopped if state.health == 0 => "DOWN".into(),
            Operation::Stopped => format!("DOWN {}/{}", state.health, rules.rise),
            operation => {
                let word = if operation == Operation::Stopping { "NOLB" } else { "UP" };
                match state.health >= rules.best() {
                    true => word.into(),
                    false => format!("{word} {}/{}", (state.health + 1).saturating_sub(rules.rise), rules.fall),
                }
            }
        };
        let (address, port) = match &*server.address() {
            Address::Ip(address) => (address.ip().to_string(), address.port().to_string()),
            Address::AsAsked(to) => (to.ip.to_string(), to.fixed_port().unwrap_or(0).to_string()),
            Address::Unix(_) | Address::Abstract(_) => ("unix".into(), "unix".into()),
        };
        let servers = self.farm.servers();
        let total: u32 = servers.iter().filter(|server| server.is_eligible()).map(|server| server.effective_weight()).sum();
        let served: u32 = servers.iter().map(|server| server.served()).sum();
        let weight = if is_stopped { 0 } else { server.effective_weight() };
        format!(
            "{word}; address={address}; port={port}; name={}/{}; node={}; weight={weight}/{total}; scur={}/{served}; qcur={}",
            self.farm.name(),
            server.name(),
            self.surroundings.node(),
            server.served(),
            server.queued(),
        )
    }

    fn set(&self, target: Target, value: &Assigned) {
        let env = self.env();
        match value {
            Assigned::Value(expression) => {
                if let Some(value) = expression.eval(&env) {
                    target.set(&env.vars, value);
                }
            }
            Assigned::Text(format) => {
                target.set(&env.vars, Value::Str(written(format, &env).into()));
            }
        }
    }

    /// Outcome of a check that has come to its end.
    fn passed(&self) -> LastCheck {
        let written = self.script.steps.last().is_some_and(|step| step.number.is_some());
        let last = self.script.steps.last().map(|step| &step.what);
        let ended_by_connecting = matches!(last, Some(Act::Connect(_)));
        let info = if self.script.kind == ProbeKind::Tcp && written { "(tcp-check)" } else { &self.info };
        if let Some(Act::Expect(Expect { telling, .. })) = last {
            let env = self.env();
            return LastCheck {
                status: telling.met.unwrap_or(self.status),
                code: telling.code(&env).unwrap_or(self.code),
                info: telling.on_success.as_ref().map_or_else(|| info.into(), |format| said(format, &env)),
                ..LastCheck::default()
            };
        }
        let secured = matches!(self.stream, Some(Stream::Tls(_)));
        let status = match ended_by_connecting {
            true if secured => CheckStatus::L6Ok,
            true => CheckStatus::L4Ok,
            false => self.status,
        };
        LastCheck { status, code: self.code, info: info.into(), ..LastCheck::default() }
    }

    async fn connect(&mut self, step: &Action, to: &Connect, deadline: &mut Instant) -> Result<(), Ended> {
        (self.stream, self.http2, self.ended) = (None, None, false);
        self.received.clear();
        let mut limit = *deadline;
        if self.limits.answer.is_some() {
            limit = Instant::now() + self.limits.connect.unwrap_or(self.limits.whole).min(self.limits.whole);
        }
        match timeout_at(limit, Stream::connect(self.server, to)).await {
            Err(_) => Err(self.ended(CheckStatus::L4Timeout, self.at_step(step))),
            Ok(Err(error)) => {
                self.starved = EXHAUSTION.note(&error, Purpose::Check);
                Err(self.ended(CheckStatus::L4Connection, described(&error) + &self.at_step(step)))
            }
            Ok(Ok(mut stream)) => {
                let (settings, aim) = (self.server.settings(), self.server.aim());
                let elsewhere = self.server.is_added()
                    || to.address.is_some()
                    || to.port.is_some()
                    || aim.check_port.is_some()
                    || aim.check_address.is_some();
                let announces = to.announces || to.as_server;
                let head = announces.then(|| settings.announcement.of_check(to.announces, elsewhere, stream.ends())).flatten();
                if let Some(head) = head {
                    match timeout_at(limit, stream.send(&head)).await {
                        Err(_) => return Err(self.ended(CheckStatus::L4Timeout, self.at_step(step))),
                        Ok(sent) => {
                            sent.map_err(|error| self.ended(CheckStatus::SocketError, described(&error) + &self.at_step(step)))?
                        }
                    }
                }
                let mut authority = stream.ends().map_or_else(|| "localhost".into(), |(_, server)| server.to_string());
                if let Some(security) = self.security(to) {
                    authority = security.name.map_or(authority, str::to_owned);
                    stream = match timeout_at(limit, stream.secure(security)).await {
                        Err(_) => return Err(self.ended(CheckStatus::L6Timeout, self.at_step(step))),
                        Ok(Err(why)) => return Err(self.ended(CheckStatus::L6Response, why + &self.at_step(step))),
                        Ok(Ok(secured)) => secured,
                    };
                }
                self.http2 = self.speaks_http2(to, &stream).then(|| Session::new(authority).into());
                self.stream = Some(stream);
                if let Some(answer) = self.limits.answer {
                    *deadline = Instant::now() + answer;
                }
                Ok(())
            }
        }
    }

    /// The version of HTTP that lines set for a connection.
    fn protocol(&self, to: &Connect) -> Option<Protocol> {
        let settings = self.server.settings();
        to.protocol.or(settings.check.protocol.or(settings.protocol).filter(|_| to.as_server))
    }

    /// Whether requests go over HTTP/2: as lines set, else as ALPN selected.
    fn speaks_http2(&self, to: &Connect, stream: &Stream) -> bool {
        self.script.kind == ProbeKind::Http
            && match self.protocol(to) {
                Some(protocol) => protocol == Protocol::Http2,
                None => stream.agreed_on(Protocol::Http2.alpn()),
            }
    }

    /// TLS settings of the connection, where it uses TLS.
    fn security<'s>(&self, to: &'s Connect) -> Option<Security<'s>>
    where
        'a: 's,
    {
        let settings = self.server.settings();
        let (name, protocols) = match &to.tls {
            ConnectTls::No => return None,
            ConnectTls::Yes(tls) => (&tls.name, Some(&*tls.protocols).filter(|names| !names.is_empty())),
            ConnectTls::AsServer { .. } if !settings.checks_over_tls() => return None,
            ConnectTls::AsServer { .. } if settings.tls.no_check_sni_auto => (&None, None),
            ConnectTls::AsServer { name } => (name, None),
        };
        let name = settings.tls.check_sni.as_deref().or(name.as_deref());
        let by_server = settings.tls.check_alpn.as_deref().filter(|_| to.as_server).or(settings.tls.alpn.as_deref());
        let (is_http, speaks_http1) = (self.script.kind == ProbeKind::Http, self.protocol(to) == Some(Protocol::Http1));
        let is_spoken = |name: &str| terse_tls::is_http_protocol(name) && !(speaks_http1 && name == Protocol::Http2.alpn());
        let protocols = protocols.or(by_server).unwrap_or_default().iter().map(|name| &**name);
        let protocols = protocols.filter(|name| !is_http || is_spoken(name)).collect();
        self.server.connector().map(|connector| Security { connector, name, protocols })
    }

    async fn request(&mut self, step: &Action, request: &'a HttpRequest, deadline: Instant) -> Result<(), Ended> {
        let state = self.script.tells_state.then(|| self.state());
        if self.http2.is_none() {
            let bytes = request.bytes(&self.env(), state);
            return self.send(step, &bytes, request.method(), deadline).await;
        }
        let (head, body) = request.message(&self.env(), state);
        self.begin(request.method());
        let scheme = if matches!(self.stream, Some(Stream::Tls(_))) { "https" } else { "http" };
        if let Some(session) = &mut self.http2 {
            session.ask(head, scheme, body);
            // The end of an earlier response does not end this one.
            self.ended = false;
        }
        self.flush(step, deadline).await
    }

    /// Sends the pending output of HTTP/2.
    async fn flush(&mut self, step: &Action, deadline: Instant) -> Result<(), Ended> {
        while let Some(bytes) = self.http2.as_mut().and_then(|session| session.output()) {
            self.write(step, &bytes, deadline).await?;
        }
        Ok(())
    }

    /// Forgets the response to an earlier request.
    fn begin(&mut self, method: &'a str) {
        (self.method, self.code, self.response) = (method, 0, None);
        self.received.clear();
    }

    async fn send(&mut self, step: &Action, bytes: &[u8], method: &'a str, deadline: Instant) -> Result<(), Ended> {
        self.begin(method);
        self.write(step, bytes, deadline).await
    }

    async fn write(&mut self, step: &Action, bytes: &[u8], deadline: Instant) -> Result<(), Ended> {
        let Some(stream) = &mut self.stream else { return Err(self.ended(CheckStatus::SocketError, self.at_step(step))) };
        match timeout_at(deadline, stream.send(bytes)).await {
            Err(_) => Err(self.ended(CheckStatus::L7Timeout, self.at_step(step))),
            Ok(Err(error)) => Err(self.ended(CheckStatus::SocketError, described(&error) + &self.at_step(step))),
            Ok(Ok(())) => Ok(()),
        }
    }

    async fn expect(&mut self, step: &Action, expect: &Expect, deadline: Instant) -> Result<(), Ended> {
        let ended = match self.await_expected(step, expect, deadline).await {
            Ok(()) => return Ok(()),
            Err(ended) => ended,
        };
        let telling = &expect.telling;
        if ended.status == CheckStatus::L7Timeout {
            return Err(LastCheck { status: telling.late.unwrap_or(ended.status), ..ended });
        }
        if !std::mem::take(&mut self.unmet) {
            return Err(ended);
        }
        let env = self.env();
        Err(LastCheck {
            status: telling.failed.unwrap_or(ended.status),
            code: telling.code(&env).unwrap_or(ended.code),
            info: telling.on_error.as_ref().map_or(ended.info, |format| said(format, &env) + &commented(step)),
            ..ended
        })
    }

    async fn await_expected(&mut self, step: &Action, expect: &Expect, deadline: Instant) -> Result<(), Ended> {
        let expect = match self.script.kind {
            // Its formats may depend on the response, which is not there yet.
            ProbeKind::Http => Cow::Borrowed(expect),
            _ => expect.resolved(&self.env()),
        };
        let expect = &*expect;
        loop {
            let judgement = match self.script.kind {
                ProbeKind::Http => self.judge_http(step, expect)?,
                _ if self.received.is_empty() && !self.ended => Judgement::Wait,
                _ if self.received.is_empty() => return Err(self.empty(step)),
                _ => expect.judge_content(&self.received, self.ended),
            };
            match judgement {
                Judgement::Met => return Ok(()),
                Judgement::Failed => {
                    self.unmet = true;
                    return Err(self.unexpected(step, expect));
                }
                Judgement::Wait => {}
            }
            self.receive(step, deadline).await?;
        }
    }

    /// Waits for a protocol's answer. Information that it gives takes the place of what an earlier answer gave.
    async fn answer(&mut self, step: &Action, answer: &Answer, deadline: Instant) -> Result<(), Ended> {
        loop {
            let last = self.ended || self.received.len() >= MOST_BYTES;
            if self.received.is_empty() && last {
                return Err(LastCheck { status: answer.missing, ..self.empty(step) });
            }
            match (answer.read)(&self.received, last) {
                Some(read) if !read.status.is_pass() => return Err(read),
                Some(read) => {
                    (self.status, self.code) = (read.status, read.code);
                    if !read.info.is_empty() {
                        self.info = read.info;
                    }
                    return Ok(());
                }
                None if last => return Err(self.ended(answer.missing, String::new())),
                None => {}
            }
            self.receive(step, deadline).await.map_err(|ended| match ended.status {
                CheckStatus::L7Timeout => LastCheck { status: answer.late, ..ended },
                // A server that closes without having read all data resets the connection (RFC 2525 section 2.17): no
                // answer, either.
                CheckStatus::SocketError if self.received.is_empty() => LastCheck { status: answer.missing, ..self.empty(step) },
                _ => ended,
            })?;
        }
    }

    /// Judges the received part of a response. Never [`Judgement::Failed`]: that ends the check.
    fn judge_http(&mut self, step: &Action, expect: &Expect) -> Result<Judgement, Ended> {
        let Some((response, head)) = self.head(step)? else { return Ok(Judgement::Wait) };
        self.code = response.status;
        let expect = &*expect.resolved(&self.env());
        if response.status == 404 && self.script.stops_on_404 && self.server.is_up() {
            return Err(self.ended(CheckStatus::L7OkStopping, String::new()));
        }
        if let Some(judgement) = expect.judge_head(&response) {
            let reason = String::from_utf8_lossy(response.reason()).into_owned();
            self.unmet = judgement == Judgement::Failed;
            return match judgement {
                Judgement::Failed => Err(self.ended(CheckStatus::L7Status, reason + &commented(step))),
                judgement => Ok(judgement),
            };
        }
        let (content, whole) = content(&response, &self.received[head..]).ok_or_else(broken)?;
        let last = whole || self.ended || self.received.len() >= MOST_BYTES;
        let judgement = expect.judge_content(&content, last);
        self.unmet = judgement == Judgement::Failed || last && content.is_empty();
        match self.unmet {
            true => Err(self.ended(CheckStatus::L7Response, body_info(expect, &content) + &commented(step))),
            false => Ok(judgement),
        }
    }

    /// Head of a response that has come, and the offset of the body in the received bytes.
    fn head(&mut self, step: &Action) -> Result<Option<(Response, usize)>, Ended> {
        if self.http2.is_some() {
            return match &self.response {
                None if self.ended => Err(self.empty(step)),
                response => Ok(response.clone().map(|response| (response, 0))),
            };
        }
        let response = &mut *self.response.get_or_insert_default();
        match h1::parse_response(&self.received, self.method.as_bytes(), response) {
            Ok(Parsed::Complete(length)) => Ok(Some((response.clone(), length))),
            Ok(Parsed::Partial) if self.received.is_empty() && self.ended => Err(self.empty(step)),
            Ok(Parsed::Partial) if self.ended || self.received.len() >= MOST_BYTES => Err(broken()),
            Ok(Parsed::Partial) => Ok(None),
            Err(_) => Err(broken()),
        }
    }

    async fn receive(&mut self, step: &Action, deadline: Instant) -> Result<(), Ended> {
        if self.ended || self.received.len() >= MOST_BYTES {
            return Err(self.ended(CheckStatus::L7Response, self.at_step(step)));
        }
        if let Some(fault) = self.http2.as_ref().and_then(|session| session.fault()) {
            return Err(self.ended(CheckStatus::L7Response, fault.to_owned() + &commented(step)));
        }
        // A server that accepts no more data may have answered before: reading shows it.
        let _ = self.flush(step, deadline).await;
        let Some(stream) = &mut self.stream else { return Err(self.ended(CheckStatus::SocketError, self.at_step(step))) };
        let mut frames = Vec::new();
        let bytes = if self.http2.is_some() { &mut frames } else { &mut self.received };
        match timeout_at(deadline, stream.receive(bytes)).await {
            Err(_) => Err(self.ended(CheckStatus::L7Timeout, self.at_step(step))),
            Ok(Err(error)) => Err(self.ended(CheckStatus::SocketError, described(&error) + &self.at_step(step))),
            Ok(Ok(n)) => {
                self.ended = n == 0;
                if let Some(session) = &mut self.http2 {
                    let answer = session.receive(&frames, std::time::Instant::now());
                    self.response = answer.head.or(self.response.take());
                    self.received.extend_from_slice(&answer.content);
                    self.ended |= answer.whole;
                }
                Ok(())
            }
        }
    }

    fn ended(&self, status: CheckStatus, info: String) -> Ended {
        LastCheck { status, code: self.code, info, ..LastCheck::default() }
    }

    fn empty(&self, step: &Action) -> Ended {
        let at = |number| format!("TCPCHK got an empty response at step {number}{}", commented(step));
        let info = step.number.map_or_else(String::new, at);
        self.ended(CheckStatus::L7Response, info)
    }

    fn unexpected(&self, step: &Action, expect: &Expect) -> Ended {
        let verdict = if expect.negated { "TCPCHK matched unwanted content" } else { "TCPCHK did not match content" };
        let info = format!("{verdict}{} at step {}{}", expect.described(), step.number.unwrap_or(0), commented(step));
        self.ended(CheckStatus::L7Response, info)
    }

    /// Text about the step at which a script of `tcp-check` lines broke off.
    fn at_step(&self, step: &Action) -> String {
        if self.script.kind != ProbeKind::Tcp {
            return String::new();
        }
        let what = match &step.what {
            _ if step.number.is_none() => return " at initial connection step of tcp-check".into(),
            Act::Connect(connect) => connect.port.map_or_else(|| "connect".into(), |port| format!("connect port {port}")),
            Act::Send { .. } => "send".into(),
            Act::SendFormat { .. } => "send log-format string".into(),
            Act::Request(_) => "send http request".into(),
            Act::SetVar { .. } | Act::UnsetVar(_) => "variable".into(),
            Act::Expect(expect) => expect.awaited(),
            Act::Answer(_) => "expect answer".into(),
        };
        let comment = step.comment.as_ref().map_or(String::new(), |comment| format!(" comment: '{comment}'"));
        format!(" at step {} of tcp-check ({what}){comment}", step.number.unwrap_or(0))
    }
}

/// Outcome of bytes that are no response.
fn broken() -> Ended {
    LastCheck { status: CheckStatus::L7Response, ..LastCheck::default() }
}

/// Text of a format, without control characters, for a log.
fn said(format: &LogFormat, env: &Env<'_>) -> String {
    String::from_utf8_lossy(&written(format, env)).chars().filter(|c| !c.is_control()).collect()
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

/// Received part of a body, and whether it is complete by its head and its chunks; `None` when they are malformed.
fn content(response: &Response, raw: &[u8]) -> Option<(Vec<u8>, bool)> {
    match response.body {
        BodyLength::None => return Some((Vec::new(), true)),
        BodyLength::Exact(length) => return Some((raw.to_vec(), raw.len() as u64 >= length)),
        BodyLength::Framed if response.version == Version::Http2 => return Some((raw.to_vec(), false)),
        BodyLength::UntilClose => return Some((raw.to_vec(), false)),
        BodyLength::Framed => {}
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

/// Limit of the bytes of an answer that are read, as HAProxy's buffer (`tune.bufsize`) has it.
const MOST_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
