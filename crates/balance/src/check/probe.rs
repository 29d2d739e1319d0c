//! Steps of a check: from the configuration's lines to a script.

use super::expect::{Expect, Expectation, written};
use super::program::Program;
use super::protocol::Answer;
use std::net::IpAddr;
use terse_message::{Protocol, Request};
use terse_sample::{Env, Expr, LogFormat, Target, VarSlot};

/// `option httpchk` and `http-check`, `option tcp-check` and `tcp-check`.
#[derive(Clone, Default, Debug)]
pub struct Probe {
    /// Kind of check.
    pub kind: ProbeKind,
    /// Request of `option httpchk`.
    pub request: HttpRequest,
    /// The `http-check` lines.
    pub http: Vec<Step>,
    /// The `tcp-check` lines.
    pub tcp: Vec<Step>,
    /// The steps of a protocol.
    pub protocol: Vec<Step>,
    /// Settings of the program.
    pub program: Program,
    /// `http-check disable-on-404`.
    pub stops_on_404: bool,
    /// `http-check send-state`.
    pub tells_state: bool,
    /// Whether the lines came from the defaults: the first one of the section's own replaces them all.
    pub inherited: bool,
}

/// Kind of check of a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ProbeKind {
    /// Connecting.
    #[default]
    Connect,
    /// An HTTP request.
    Http,
    /// `tcp-check` lines.
    Tcp,
    /// A few steps of a protocol: `option redis-check` and its kin.
    Protocol,
    /// A program.
    Program,
}

/// A step of a check.
#[derive(Clone, Debug)]
pub enum Step {
    /// `connect`: to another address and another port, if given.
    Connect {
        /// `addr`
        address: Option<IpAddr>,
        /// `port`, or that of `addr`.
        port: Option<u16>,
        /// `send-proxy`: the connection begins with a PROXY header.
        announces: bool,
        /// `via-socks4`: through the proxy that the server's line names.
        via_socks4: bool,
        /// `proto`: the version of HTTP that is spoken.
        protocol: Option<Protocol>,
        /// `ssl`
        tls: Option<StepTls>,
        /// `default`: as the server's line has it.
        default: bool,
        /// `comment`
        comment: Option<String>,
    },
    /// `http-check send`
    Request(HttpRequest),
    /// `tcp-check send`
    Send {
        /// Bytes to send.
        bytes: Vec<u8>,
        /// `comment`
        comment: Option<String>,
    },
    /// `tcp-check send-lf`, `send-binary-lf`
    SendFormat {
        /// Text to send.
        format: LogFormat,
        /// Whether the text is the hexadecimal digits of bytes.
        hexadecimal: bool,
        /// `comment`
        comment: Option<String>,
    },
    /// `set-var`, `set-var-fmt`
    SetVar {
        /// The variable.
        target: Target,
        /// Value of the variable.
        value: Assigned,
    },
    /// `unset-var`
    UnsetVar(VarSlot),
    /// `expect`
    Expect(Expect),
    /// Response of a protocol.
    Answer(Answer),
}

/// TLS settings of `connect ssl`.
#[derive(Clone, Default, Debug)]
pub struct StepTls {
    /// `sni`: server name.
    pub name: Option<String>,
    /// `alpn`: offered protocols.
    pub protocols: Vec<Box<str>>,
}

/// Value of a variable.
#[derive(Clone, Debug)]
pub enum Assigned {
    /// `set-var`
    Value(Box<Expr>),
    /// `set-var-fmt`
    Text(LogFormat),
}

/// A request, with only the parts that lines set.
#[derive(Clone, Default, Debug)]
pub struct HttpRequest {
    /// `meth`
    pub method: Option<String>,
    /// `uri`, `uri-lf`
    pub uri: Option<LogFormat>,
    /// `ver`
    pub version: Option<String>,
    /// `hdr`: names and values.
    pub fields: Vec<(String, LogFormat)>,
    /// `body`, `body-lf`
    pub body: Option<LogFormat>,
}

impl HttpRequest {
    /// Returns the request, with parts that are not set taken from `other`.
    fn completed_by(&self, other: &HttpRequest) -> HttpRequest {
        HttpRequest {
            method: self.method.as_ref().or(other.method.as_ref()).cloned(),
            uri: self.uri.as_ref().or(other.uri.as_ref()).cloned(),
            version: self.version.as_ref().or(other.version.as_ref()).cloned(),
            fields: other.fields.iter().chain(&self.fields).cloned().collect(),
            body: self.body.as_ref().or(other.body.as_ref()).cloned(),
        }
    }

    /// Method; HAProxy's default where none is set.
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("OPTIONS")
    }

    fn target(&self, env: &Env<'_>) -> Vec<u8> {
        self.uri.as_ref().map(|uri| written(uri, env)).filter(|uri| !uri.is_empty()).unwrap_or_else(|| b"/".to_vec())
    }

    fn has(&self, wanted: &str) -> bool {
        self.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    }

    /// The request as HTTP/1 writes it, with HAProxy's defaults where nothing is set. `state` is the text of
    /// `http-check send-state`.
    pub(super) fn bytes(&self, env: &Env<'_>, state: Option<String>) -> Vec<u8> {
        let version = self.version.as_deref().unwrap_or("HTTP/1.0");
        let mut head = [self.method().as_bytes(), b" ", &self.target(env), b" ", version.as_bytes(), b"\r\n"].concat();
        for (name, value) in &self.fields {
            head.extend_from_slice(&[name.as_bytes(), b": ", &written(value, env), b"\r\n"].concat());
        }
        if version == "HTTP/1.1" && !self.has("host") {
            // A client without a host name sends an empty field (RFC 9112 section 3.2): without the field, servers must
            // refuse the request.
            head.extend_from_slice(b"host:\r\n");
        }
        if version != "HTTP/1.0" && !self.has("connection") {
            head.extend_from_slice(b"connection: close\r\n");
        }
        if let Some(state) = state {
            head.extend_from_slice(format!("{STATE}: {state}\r\n").as_bytes());
        }
        let body = self.body.as_ref().map(|body| written(body, env));
        if let Some(body) = &body
            && !self.has("content-length")
        {
            head.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(&body.unwrap_or_default());
        head
    }

    /// The request for HTTP/2, which has no version to send: its head and its body.
    pub(super) fn message(&self, env: &Env<'_>, state: Option<String>) -> (Request, Vec<u8>) {
        let mut head = Request::default();
        head.set_method(self.method().as_bytes());
        head.set_target(&self.target(env));
        for (name, value) in &self.fields {
            head.fields.push(name.as_bytes(), &written(value, env));
        }
        if let Some(state) = state {
            head.fields.push(STATE.as_bytes(), state.as_bytes());
        }
        let body = self.body.as_ref().map(|body| written(body, env));
        if let Some(body) = &body
            && !self.has("content-length")
        {
            head.fields.push(b"content-length", body.len().to_string().as_bytes());
        }
        (head, body.unwrap_or_default())
    }
}

/// The field that tells a server its state.
const STATE: &str = "x-haproxy-server-state";

/// All steps of a check: it begins with connecting.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) kind: ProbeKind,
    /// Program of the check: it alone decides the outcome.
    pub(super) program: Option<Program>,
    pub(super) steps: Vec<Action>,
    pub(super) stops_on_404: bool,
    pub(super) tells_state: bool,
}

/// A step of a script.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) what: Act,
    /// Number of the step in the log; `None` when it comes from no line of the configuration.
    pub(super) number: Option<usize>,
    pub(super) comment: Option<String>,
}

/// Whether a check's connection uses TLS, and the name of its SNI.
#[derive(Clone, Debug)]
pub(super) enum ConnectTls {
    No,
    Yes(StepTls),
    /// TLS as the server's line sets it.
    AsServer {
        name: Option<String>,
    },
}

/// Kind of step.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Connect(Box<Connect>),
    Send { bytes: Vec<u8> },
    SendFormat { format: LogFormat, hexadecimal: bool },
    Request(Box<HttpRequest>),
    SetVar { target: Target, value: Assigned },
    UnsetVar(VarSlot),
    Expect(Expect),
    Answer(Answer),
}

/// Destination of a connection, and its opening.
#[derive(Clone, Debug)]
pub(super) struct Connect {
    pub(super) address: Option<IpAddr>,
    pub(super) port: Option<u16>,
    /// Whether a PROXY header is sent, whatever the server's line sets.
    pub(super) announces: bool,
    pub(super) via_socks4: bool,
    /// The version of HTTP that is spoken.
    pub(super) protocol: Option<Protocol>,
    /// Whether the server line's settings of PROXY headers, of SOCKS4 and of the version of HTTP apply, too.
    pub(super) as_server: bool,
    pub(super) tls: ConnectTls,
}

impl Probe {
    /// Whether any step sets TLS by itself.
    pub fn uses_tls(&self) -> bool {
        self.http.iter().chain(&self.tcp).any(|step| matches!(step, Step::Connect { tls: Some(_), .. }))
    }

    /// The host of its first request, as far as its text is fixed.
    fn host(&self) -> Option<String> {
        let sent = self.http.iter().find_map(|step| if let Step::Request(request) = step { Some(request) } else { None });
        let fields = sent.into_iter().chain([&self.request]).flat_map(|request| &request.fields);
        let (_, host) = fields.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("host"))?;
        let host = String::from_utf8(host.as_text()?.to_vec()).ok()?;
        // Without the port, and without the brackets of an address.
        let end = if host.starts_with('[') {
            host.find(']').map_or(host.len(), |at| at + 1)
        } else {
            host.find(':').unwrap_or(host.len())
        };
        Some(host[..end].to_owned())
    }
}

impl Script {
    /// Builds the script of these settings.
    pub fn new(probe: &Probe) -> Script {
        let lines: &[Step] = match probe.kind {
            ProbeKind::Connect | ProbeKind::Program => &[],
            ProbeKind::Http => &probe.http,
            ProbeKind::Tcp => &probe.tcp,
            ProbeKind::Protocol => &probe.protocol,
        };
        let mut steps = Vec::new();
        let implicit = |what| Action { what, number: None, comment: None };
        if !matches!(lines.first(), Some(Step::Connect { .. })) {
            let tls = ConnectTls::AsServer { name: probe.host() };
            let connect =
                Connect { address: None, port: None, announces: false, via_socks4: false, protocol: None, as_server: true, tls };
            steps.push(implicit(Act::Connect(Box::new(connect))));
        }
        // `option httpchk` completes the first request; when there is none before the first answer is expected, it is one itself.
        let is_before = |step: &Step| matches!(step, Step::Connect { .. } | Step::SetVar { .. } | Step::UnsetVar(_));
        let first = lines.iter().position(|step| !is_before(step));
        let mut own = probe.kind == ProbeKind::Http;
        for (i, step) in lines.iter().enumerate() {
            if own && Some(i) == first && !matches!(step, Step::Request(_)) {
                steps.push(implicit(request(&HttpRequest::default(), &probe.request)));
                own = false;
            }
            let (what, comment) = match step {
                Step::Connect { address, port, announces, via_socks4, protocol, tls, default, comment } => {
                    let (address, port, announces, via_socks4, as_server) = (*address, *port, *announces, *via_socks4, *default);
                    let tls = match tls {
                        Some(tls) => ConnectTls::Yes(tls.clone()),
                        None if *default => ConnectTls::AsServer { name: None },
                        None => ConnectTls::No,
                    };
                    let connect = Connect { address, port, announces, via_socks4, protocol: *protocol, as_server, tls };
                    (Act::Connect(Box::new(connect)), comment.clone())
                }
                Step::Send { bytes, comment } => (Act::Send { bytes: bytes.clone() }, comment.clone()),
                Step::SendFormat { format, hexadecimal, comment } => {
                    (Act::SendFormat { format: format.clone(), hexadecimal: *hexadecimal }, comment.clone())
                }
                Step::SetVar { target, value } => (Act::SetVar { target: *target, value: value.clone() }, None),
                Step::UnsetVar(slot) => (Act::UnsetVar(*slot), None),
                Step::Expect(expect) => (Act::Expect(expect.clone()), expect.comment.clone()),
                Step::Answer(answer) => (Act::Answer(*answer), None),
                Step::Request(told) if own => {
                    own = false;
                    (request(told, &probe.request), None)
                }
                Step::Request(told) => (request(told, &HttpRequest::default()), None),
            };
            steps.push(Action { what, number: Some(i + 1), comment });
        }
        if own {
            steps.push(implicit(request(&HttpRequest::default(), &probe.request)));
        }
        if probe.kind == ProbeKind::Http && matches!(steps.last(), Some(Action { what: Act::Request(_), .. })) {
            let what = Expectation::Status(vec![200..=399]);
            steps.push(implicit(Act::Expect(Expect {
                what,
                negated: false,
                min_bytes: None,
                comment: None,
                telling: Box::default(),
            })));
        }
        let program = Some(&probe.program).filter(|_| probe.kind == ProbeKind::Program).cloned();
        Script { kind: probe.kind, program, steps, stops_on_404: probe.stops_on_404, tells_state: probe.tells_state }
    }

    /// Whether it sets the port of each connection.
    pub fn names_its_ports(&self) -> bool {
        !self.steps.iter().any(|step| matches!(&step.what, Act::Connect(connect) if connect.port.is_none()))
    }
}

fn request(told: &HttpRequest, other: &HttpRequest) -> Act {
    Act::Request(Box::new(told.completed_by(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Nowhere;

    fn sent(probe: &Probe) -> Vec<String> {
        let text = |action: &Action| match &action.what {
            Act::Connect { .. } => "connect".to_owned(),
            Act::Request(request) => String::from_utf8(request.bytes(&Env::bare(&Nowhere), None)).unwrap(),
            Act::Expect(_) => "expect".to_owned(),
            other => format!("{other:?}"),
        };
        Script::new(probe).steps.iter().map(text).collect()
    }

    fn told(method: &str, uri: &str, version: &str) -> HttpRequest {
        HttpRequest {
            method: Some(method.into()),
            uri: Some(LogFormat::text(uri.as_bytes())),
            version: Some(version.into()),
            ..HttpRequest::default()
        }
    }

    #[test]
    fn without_any_word_a_check_connects() {
        assert_eq!(sent(&Probe::default()), ["connect"]);
    }

    #[test]
    fn option_httpchk_alone_is_a_whole_script() {
        let probe = Probe { kind: ProbeKind::Http, ..Probe::default() };
        assert_eq!(sent(&probe), ["connect", "OPTIONS / HTTP/1.0\r\n\r\n", "expect"]);
        let probe = Probe { request: told("GET", "/t", "HTTP/1.1"), ..probe };
        assert_eq!(sent(&probe)[1], "GET /t HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n");
    }

    #[test]
    fn http_check_send_completes_the_option() {
        let fields = vec![("Host".to_owned(), LogFormat::text(b"h"))];
        let send = HttpRequest { fields, body: Some(LogFormat::text(b"test")), ..HttpRequest::default() };
        let probe = Probe {
            kind: ProbeKind::Http,
            request: told("GET", "/status", "HTTP/1.1"),
            http: vec![Step::Request(send)],
            ..Probe::default()
        };
        let wanted = "GET /status HTTP/1.1\r\nHost: h\r\nconnection: close\r\ncontent-length: 4\r\n\r\ntest";
        assert_eq!(sent(&probe), ["connect", wanted, "expect"]);
    }

    fn connect(port: Option<u16>) -> Step {
        let (address, protocol, tls, comment) = (None, None, None, None);
        Step::Connect { address, port, announces: false, via_socks4: false, protocol, tls, default: false, comment }
    }

    #[test]
    fn only_the_first_request_is_completed() {
        let probe = Probe {
            kind: ProbeKind::Http,
            request: told("GET", "/1", "HTTP/1.0"),
            http: vec![
                connect(None),
                Step::Expect(Expect {
                    what: Expectation::Status(vec![]),
                    negated: false,
                    min_bytes: None,
                    comment: None,
                    telling: Box::default(),
                }),
                connect(Some(1)),
                Step::Request(told("GET", "/2", "HTTP/1.0")),
            ],
            ..Probe::default()
        };
        assert_eq!(sent(&probe), ["connect", "GET /1 HTTP/1.0\r\n\r\n", "expect", "connect", "GET /2 HTTP/1.0\r\n\r\n", "expect"]);
    }
}
