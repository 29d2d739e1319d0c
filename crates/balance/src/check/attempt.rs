//! One check: the steps of a script over a connection.

use super::expect::{Expect, Judgement, bytes_of, written};
use super::probe::{Act, Action, Assigned, Connect, ConnectTls, ProbeKind, Script};
use super::protocol::Answer;
use super::stream::{Security, Stream, described};
use super::{CheckStatus, LastCheck, Surroundings};
use crate::farm::Farm;
use crate::server::{Address, Server};
use crate::state::Operation;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use terse_http::h1::{self, ChunkDecoder, Parsed};
use terse_message::{BodyLength, Known, Response};
use terse_sample::{Env, LogFormat, Store, Target, Value, Vars};
use terse_tls::Request;
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
pub(super) async fn attempt(farm: &Farm, server: &Arc<Server>, limits: Limits, surroundings: &dyn Surroundings) -> LastCheck {
    let started = Instant::now();
    let mut attempt = Attempt {
        script: farm.script_of(server),
        farm,
        server,
        subject: surroundings.subject(farm, server),
        limits,
        surroundings,
        variables: Store::default(),
        response: None,
        stream: None,
        received: Vec::new(),
        method: "",
        code: 0,
        status: CheckStatus::L7Ok,
        info: String::new(),
        ended: false,
        unmet: false,
    };
    let outcome = attempt.run(started).await;
    surroundings.variables().forget(&attempt.variables, None);
    LastCheck { duration: started.elapsed(), ..outcome }
}

struct Attempt<'a> {
    script: &'a Script,
    farm: &'a Farm,
    server: &'a Server,
    /// What expressions see of both.
    subject: Box<dyn Any + Send + Sync>,
    limits: Limits,
    surroundings: &'a dyn Surroundings,
    /// The scope `check`.
    variables: Store,
    /// The head of the last response.
    response: Option<Response>,
    stream: Option<Stream>,
    /// What came since the last step that sent something.
    received: Vec<u8>,
    method: &'a str,
    /// The status of the last response.
    code: u16,
    /// What it means if no step follows.
    status: CheckStatus,
    /// More about it.
    info: String,
    /// Whether the server has closed its side.
    ended: bool,
    /// Whether an answer came that is not what was expected.
    unmet: bool,
}

/// A check that is over before its last step.
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
                Act::Request(request) => {
                    let state = self.script.tells_state.then(|| self.state());
                    let bytes = request.bytes(&self.env(), state);
                    self.send(step, &bytes, request.method(), deadline).await
                }
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

    /// What expressions see.
    fn env(&self) -> Env<'_> {
        let vars = Vars { process: Some(self.surroundings.variables()), check: Some(&self.variables), ..Vars::default() };
        Env { response: self.response.as_ref(), vars, facts: &*self.subject, ..Env::bare(self.surroundings.world()) }
    }

    /// What a server is told of itself (`http-check send-state`).
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

    /// What it means to have come to the end.
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
        (self.stream, self.ended) = (None, false);
        self.received.clear();
        let mut limit = *deadline;
        if self.limits.answer.is_some() {
            limit = Instant::now() + self.limits.connect.unwrap_or(self.limits.whole).min(self.limits.whole);
        }
        match timeout_at(limit, Stream::connect(self.server, to)).await {
            Err(_) => Err(self.ended(CheckStatus::L4Timeout, self.at_step(step))),
            Ok(Err(error)) => Err(self.ended(CheckStatus::L4Connection, described(&error) + &self.at_step(step))),
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
                if let Some(security) = self.security(&to.tls) {
                    stream = match timeout_at(limit, stream.secure(security)).await {
                        Err(_) => return Err(self.ended(CheckStatus::L6Timeout, self.at_step(step))),
                        Ok(Err(why)) => return Err(self.ended(CheckStatus::L6Response, why + &self.at_step(step))),
                        Ok(Ok(secured)) => secured,
                    };
                }
                self.stream = Some(stream);
                if let Some(answer) = self.limits.answer {
                    *deadline = Instant::now() + answer;
                }
                Ok(())
            }
        }
    }

    /// What makes the connection secure, where it is to be.
    fn security<'s>(&self, tls: &'s ConnectTls) -> Option<Security<'s>>
    where
        'a: 's,
    {
        let settings = self.server.settings();
        let by_server = || settings.tls.check_alpn.as_deref().unwrap_or_default();
        let (name, protocols) = match tls {
            ConnectTls::No => return None,
            ConnectTls::Yes(tls) => (&tls.name, &*tls.protocols),
            ConnectTls::AsServer { .. } if !settings.checks_over_tls() => return None,
            ConnectTls::AsServer { .. } if settings.tls.no_check_sni_auto => (&None, by_server()),
            ConnectTls::AsServer { name } => (name, by_server()),
        };
        let name = settings.tls.check_sni.as_deref().or(name.as_deref());
        let request = Request::Check { protocols, http: self.script.kind == ProbeKind::Http };
        self.server.connector().map(|connector| Security { connector, name, request })
    }

    async fn send(&mut self, step: &Action, bytes: &[u8], method: &'a str, deadline: Instant) -> Result<(), Ended> {
        (self.method, self.code, self.response) = (method, 0, None);
        self.received.clear();
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
            // What its formats say may depend on the response, which is not there yet.
            ProbeKind::Http => Cow::Borrowed(expect),
            _ => expect.resolved(&self.env()),
        };
        let expect = &*expect;
        loop {
            let judgement = match self.script.kind {
                ProbeKind::Http => self.judge_http(step, expect)?,
                _ if self.received.is_empty() && !self.ended => Judgement::Wait,
                _ if self.received.is_empty() => return Err(self.empty(step)),
                _ if expect.judge_content(&self.received, self.ended) == Judgement::Failed => {
                    self.unmet = true;
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
                // Who closes without having read what was said resets the connection (RFC 2525 section 2.17): no answer, either.
                CheckStatus::SocketError if self.received.is_empty() => LastCheck { status: answer.missing, ..self.empty(step) },
                _ => ended,
            })?;
        }
    }

    /// Judges what has come of a response. Never [`Judgement::Failed`]: that ends the check.
    fn judge_http(&mut self, step: &Action, expect: &Expect) -> Result<Judgement, Ended> {
        let response = &mut *self.response.get_or_insert_default();
        let broken = || LastCheck { status: CheckStatus::L7Response, ..LastCheck::default() };
        let head = match h1::parse_response(&self.received, self.method.as_bytes(), response) {
            Ok(Parsed::Complete(length)) => length,
            Ok(Parsed::Partial) if self.received.is_empty() && self.ended => return Err(self.empty(step)),
            Ok(Parsed::Partial) if self.ended || self.received.len() >= MOST_BYTES => return Err(broken()),
            Ok(Parsed::Partial) => return Ok(Judgement::Wait),
            Err(_) => return Err(broken()),
        };
        let response = response.clone();
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
        match judgement {
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
        let at = |number| format!("TCPCHK got an empty response at step {number}{}", commented(step));
        let info = step.number.map_or_else(String::new, at);
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

/// What a format says, as a log can show it.
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

/// The most bytes of an answer that are looked at, as HAProxy's buffer (`tune.bufsize`) has it.
const MOST_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Nowhere, farm};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Checks, by the lines of a backend, a server that answers each connection so: a text for each text that it must have read
    /// before, and then closes, or stays when the last text is "stay".
    async fn checked(lines: &str, answers: &[(&str, &str)]) -> LastCheck {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lines = lines.replace("PORT", &port.to_string());
        let farm = farm(&format!("{lines}\nserver s 127.0.0.1:{port} check"));
        let server = farm.servers()[0].clone();
        tokio::select! {
            outcome = attempt(&farm, &server, limits(5000, None), &Nowhere) => outcome,
            never = serve(listener, answers) => match never {},
        }
    }

    async fn serve(listener: TcpListener, answers: &[(&str, &str)]) -> std::convert::Infallible {
        let (mut stream, _) = listener.accept().await.unwrap();
        for (wanted, answer) in answers {
            let mut read = Vec::new();
            while !read.ends_with(wanted.as_bytes()) && stream.read_buf(&mut read).await.unwrap_or(0) != 0 {}
            match *answer {
                "stay" => std::future::pending().await,
                answer => stream.write_all(answer.as_bytes()).await.unwrap(),
            }
        }
        drop((stream, listener));
        std::future::pending().await
    }

    fn limits(whole: u64, answer: Option<u64>) -> Limits {
        Limits { whole: Duration::from_millis(whole), connect: None, answer: answer.map(Duration::from_millis) }
    }

    async fn refused_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
    }

    fn told(outcome: &LastCheck) -> (CheckStatus, u16, &str) {
        (outcome.status, outcome.code, outcome.info.as_str())
    }

    #[tokio::test]
    async fn connecting_is_enough_without_more_words() {
        assert_eq!(told(&checked("", &[("", "stay")]).await), (CheckStatus::L4Ok, 0, ""));
        let farm = farm(&format!("server s 127.0.0.1:{} check", refused_port().await));
        let outcome = attempt(&farm, &farm.servers()[0], limits(5000, None), &Nowhere).await;
        assert_eq!(told(&outcome), (CheckStatus::L4Connection, 0, "ECONNREFUSED returned by OS (Connection refused)"));
    }

    #[tokio::test]
    async fn what_is_said_and_expected_may_depend_on_variables() {
        let answers = [("GET /7 HTTP/1.0\r\nN: 7\r\n\r\n", "HTTP/1.0 200 OK\r\nX: one\r\nY: X\r\n\r\none body")];
        let lines = |expected: &str| {
            format!(
                "option httpchk\nhttp-check set-var(check.n) int(7)\n\
                 http-check send meth GET uri-lf /%[var(check.n)] hdr N %[var(check.n)]\n\
                 http-check expect status 200\nhttp-check set-var(check.y) res.hdr(y)\n\
                 http-check set-var-fmt(check.one) %[res.hdr(x)]\nhttp-check expect {expected}"
            )
        };
        for expected in [
            "hdr name-lf %[var(check.y)] value-lf -m beg on",
            "hdr name x value-lf %[var(check.one)]",
            "hdr name-lf %[res.hdr(y)]",
            "hdr name -m reg ^x$ value -m reg ^on",
            "string-lf \"%[var(check.one)] body\"",
        ] {
            let outcome = checked(&lines(expected), &answers).await;
            assert_eq!((outcome.status, outcome.code), (CheckStatus::L7Ok, 200), "{expected}: {}", outcome.info);
        }
        for expected in ["hdr name-lf %[var(check.one)]", "hdr name x value-lf %[var(check.y)]", "! string-lf %[var(check.one)]"] {
            assert!(!checked(&lines(expected), &answers).await.status.is_pass(), "{expected}");
        }
        let forgotten = lines("string-lf %[var(check.one,two)]")
            .replace("http-check expect string", "http-check unset-var(check.one)\nhttp-check expect string");
        assert_eq!(checked(&forgotten, &answers).await.status, CheckStatus::L7Response);
    }

    #[tokio::test]
    async fn outcomes_are_told_as_the_line_says() {
        let words = "ok-status L7OKC error-status L7STS tout-status L4TOUT on-success \"fine: %[var(check.a)]\" \
                     on-error \"bad: %[var(check.a)]\" status-code int(7) comment c";
        let lines = format!("option tcp-check\ntcp-check set-var(check.a) str(x)\ntcp-check expect {words} string ok");
        assert_eq!(told(&checked(&lines, &[("", "ok")]).await), (CheckStatus::L7OkStopping, 7, "fine: x"));
        assert_eq!(told(&checked(&lines, &[("", "no")]).await), (CheckStatus::L7Status, 7, "bad: x comment: c"));
        let none = "\r\n\r\n";
        let lines = "option httpchk\nhttp-check expect error-status L7RSP on-error %[res.hdr(x)] status-code res.hdr(y) status 200";
        let outcome = checked(lines, &[(none, "HTTP/1.0 503 No\r\nX: broken\r\nY: 42\r\n\r\n")]).await;
        assert_eq!(told(&outcome), (CheckStatus::L7Response, 42, "broken"));
        // What is no answer at all is told as ever.
        let outcome = checked(lines, &[(none, "junk\r\n\r\n")]).await;
        assert_eq!((outcome.status, outcome.code), (CheckStatus::L7Response, 0));
    }

    #[tokio::test]
    async fn servers_are_told_their_state() {
        let state = "UP; address=127.0.0.1; port=PORT; name=be/s; node=; weight=1/1; scur=0/0; qcur=0\r\n\r\n";
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let farm = farm(&format!("option httpchk\nhttp-check send-state\nserver s 127.0.0.1:{port} check rise 1 fall 1"));
        let state = state.replace("PORT", &port.to_string());
        let answers = [(&*format!("x-haproxy-server-state: {state}"), "HTTP/1.0 200 OK\r\n\r\n")];
        let server = farm.servers()[0].clone();
        let outcome = tokio::select! {
            outcome = attempt(&farm, &server, limits(5000, None), &Nowhere) => outcome,
            never = serve(listener, &answers) => match never {},
        };
        assert_eq!(outcome.code, 200);
    }

    #[tokio::test]
    async fn statuses_are_judged() {
        const NONE: &str = "\r\n\r\n";
        let lines = "option httpchk";
        let ok = checked(lines, &[(NONE, "HTTP/1.1 204 No Content\r\n\r\n")]).await;
        assert_eq!(told(&ok), (CheckStatus::L7Ok, 204, ""));
        let bad = checked(lines, &[(NONE, "HTTP/1.0 503 Service Unavailable\r\n\r\nx")]).await;
        assert_eq!(told(&bad), (CheckStatus::L7Status, 503, "Service Unavailable"));
        assert_eq!(checked(lines, &[(NONE, "220 smtp\r\n")]).await.status, CheckStatus::L7Response);
        assert_eq!(checked(lines, &[(NONE, "HTTP/1.1 200 OK\r\nA: ")]).await.status, CheckStatus::L7Response);
        let empty = checked("option httpchk\nhttp-check expect status 200", &[(NONE, "")]).await;
        assert_eq!(told(&empty), (CheckStatus::L7Response, 0, "TCPCHK got an empty response at step 1"));
        let stopping = checked("option httpchk\nhttp-check disable-on-404", &[(NONE, "HTTP/1.0 404 Not Found\r\n\r\n")]).await;
        assert_eq!(told(&stopping), (CheckStatus::L7OkStopping, 404, ""));
    }

    #[tokio::test]
    async fn bodies_are_judged_when_enough_has_come() {
        let lines = "option httpchk GET / HTTP/1.1\nhttp-check expect string healthy";
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nheal\r\n4\r\nthy!\r\n";
        let request = "\r\n\r\n";
        assert_eq!(
            checked(lines, &[(request, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhealthy"), ("", "stay")]).await.status,
            CheckStatus::L7Ok
        );
        assert_eq!(checked(lines, &[(request, head), ("", "stay")]).await.status, CheckStatus::L7Ok);
        let sick = checked(lines, &[(request, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsick"), ("", "stay")]).await;
        assert_eq!(told(&sick), (CheckStatus::L7Response, 200, "HTTP content check did not match"));
        let none = checked(lines, &[(request, "HTTP/1.1 204 No Content\r\n\r\n")]).await;
        assert_eq!(told(&none), (CheckStatus::L7Response, 204, "HTTP content check could not find a response body"));
    }

    #[tokio::test]
    async fn scripts_go_step_by_step() {
        let lines = "option tcp-check\ntcp-check connect port PORT\ntcp-check expect min-recv 5 !rstring ^error\n\
                     tcp-check expect string valid\ntcp-check send 0123\ntcp-check expect string again";
        let ok = checked(lines, &[("", "valid"), ("0123", "again"), ("", "stay")]).await;
        assert_eq!(told(&ok), (CheckStatus::L7Ok, 0, "(tcp-check)"));
        let bad = checked(lines, &[("", "error 3"), ("", "stay")]).await;
        assert_eq!(told(&bad), (CheckStatus::L7Response, 0, "TCPCHK matched unwanted content (regex) at step 2"));
    }

    #[tokio::test]
    async fn who_closes_without_an_answer_gave_an_empty_one() {
        let info = "TCPCHK got an empty response at step 2";
        // With and without having read what was said.
        for wanted in ["", "PING\r\n"] {
            assert_eq!(told(&checked("option redis-check", &[(wanted, "")]).await), (CheckStatus::L7Response, 0, info));
        }
        assert_eq!(told(&checked("option ssl-hello-chk", &[("", "")]).await), (CheckStatus::L6Response, 0, info));
    }

    #[tokio::test]
    async fn a_broken_script_says_where() {
        let port = refused_port().await;
        let lines = format!("option tcp-check\ntcp-check connect port PORT\ntcp-check connect port {port} comment why");
        let outcome = checked(&lines, &[("", "stay")]).await;
        let info =
            format!("ECONNREFUSED returned by OS (Connection refused) at step 2 of tcp-check (connect port {port}) comment: 'why'");
        assert_eq!(told(&outcome), (CheckStatus::L4Connection, 0, info.as_str()));
    }

    #[tokio::test]
    async fn who_says_nothing_is_out_of_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("server s {} check", listener.local_addr().unwrap());
        for (lines, info) in [
            ("option httpchk\n", ""),
            ("option tcp-check\ntcp-check connect\ntcp-check expect string a\n", " at step 2 of tcp-check (expect string 'a')"),
        ] {
            let farm = farm(&format!("{lines}{server}"));
            for limits in [limits(20, None), limits(60_000, Some(20))] {
                let outcome = attempt(&farm, &farm.servers()[0], limits, &Nowhere).await;
                assert_eq!(told(&outcome), (CheckStatus::L7Timeout, 0, info));
                assert!(outcome.duration >= Duration::from_millis(20));
            }
        }
    }

    #[tokio::test]
    async fn another_address_may_have_a_port_and_the_word_port_wins() {
        let listener = TcpListener::bind("127.0.0.3:0").await.unwrap();
        let (there, refused) = (listener.local_addr().unwrap(), refused_port().await);
        for (words, status) in [
            (format!("addr {there}"), CheckStatus::L4Ok),
            (format!("addr {there} port {refused}"), CheckStatus::L4Connection),
            (format!("addr 127.0.0.3:{refused} port {}", there.port()), CheckStatus::L4Ok),
            ("addr 127.0.0.3".to_owned(), CheckStatus::L4Connection),
        ] {
            let farm = farm(&format!("server s 127.0.0.2:{refused} check {words}"));
            assert_eq!(attempt(&farm, &farm.servers()[0], limits(5000, None), &Nowhere).await.status, status, "{words}");
        }
    }

    #[tokio::test]
    async fn steps_may_connect_elsewhere() {
        let path = std::env::temp_dir().join(format!("terse-elsewhere-{}", std::process::id()));
        for step in ["addr 127.0.0.1:PORT", "addr 127.0.0.1 port PORT", "addr 127.0.0.1:1 port PORT"] {
            let lines = format!("option tcp-check\ntcp-check connect {step}\ntcp-check expect string here");
            // The server itself is nowhere.
            let lines = format!("{lines}\nserver nowhere {} check", path.display());
            assert_eq!(checked(&lines, &[("", "here"), ("", "stay")]).await.status, CheckStatus::L7Ok, "{step}");
        }
    }

    #[tokio::test]
    async fn unix_sockets_are_checked_too() {
        let path = std::env::temp_dir().join(format!("terse-check-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        let farm = farm(&format!("server s {} check\nserver t abns@terse-nobody check", path.display()));
        let outcomes = [
            attempt(&farm, &farm.servers()[0], limits(5000, None), &Nowhere).await,
            attempt(&farm, &farm.servers()[1], limits(5000, None), &Nowhere).await,
        ];
        std::fs::remove_file(&path).unwrap();
        assert_eq!(outcomes.map(|outcome| outcome.status), [CheckStatus::L4Ok, CheckStatus::L4Connection]);
    }
}
