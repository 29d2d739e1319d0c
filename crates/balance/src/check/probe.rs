//! What a check says, step by step: from the configuration's lines to a script.

use super::expect::{Expect, Expectation};

/// `option httpchk` and `http-check`, `option tcp-check` and `tcp-check`.
#[derive(Clone, Default, Debug)]
pub struct Probe {
    /// Which of the two, if any.
    pub kind: ProbeKind,
    /// What `option httpchk` says of the request.
    pub request: HttpRequest,
    /// The `http-check` lines.
    pub http: Vec<Step>,
    /// The `tcp-check` lines.
    pub tcp: Vec<Step>,
    /// `http-check disable-on-404`.
    pub stops_on_404: bool,
    /// Whether the lines came from the defaults: the first one of the section's own replaces them all.
    pub inherited: bool,
}

/// How a server is checked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ProbeKind {
    /// By connecting.
    #[default]
    Connect,
    /// By a request.
    Http,
    /// By what `tcp-check` lines say.
    Tcp,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// `connect`: to another port, if given.
    Connect {
        /// `port`
        port: Option<u16>,
        /// `comment`
        comment: Option<String>,
    },
    /// `http-check send`
    Request(HttpRequest),
    /// `tcp-check send`
    Send {
        /// What is sent.
        bytes: Vec<u8>,
        /// `comment`
        comment: Option<String>,
    },
    /// `expect`
    Expect(Expect),
}

/// A request, as far as it was told.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HttpRequest {
    /// `meth`
    pub method: Option<String>,
    /// `uri`
    pub uri: Option<String>,
    /// `ver`
    pub version: Option<String>,
    /// `hdr`: names and values.
    pub fields: Vec<(String, String)>,
    /// `body`
    pub body: Option<String>,
}

impl HttpRequest {
    /// The request on the wire. What was not told is taken from `other`, then from HAProxy's habit.
    fn bytes(&self, other: &HttpRequest) -> (String, Vec<u8>) {
        let told = |own: &Option<String>, other: &Option<String>, habit: &str| {
            own.as_ref().or(other.as_ref()).map_or_else(|| habit.to_owned(), Clone::clone)
        };
        let method = told(&self.method, &other.method, "OPTIONS");
        let version = told(&self.version, &other.version, "HTTP/1.0");
        let mut head = format!("{method} {} {version}\r\n", told(&self.uri, &other.uri, "/"));
        let fields: Vec<_> = other.fields.iter().chain(&self.fields).collect();
        let has = |wanted: &str| fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        for (name, value) in &fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if version != "HTTP/1.0" && !has("connection") {
            head.push_str("connection: close\r\n");
        }
        let body = self.body.as_ref().or(other.body.as_ref());
        if let Some(body) = body
            && !has("content-length")
        {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        head.push_str(body.map_or("", String::as_str));
        (method, head.into_bytes())
    }
}

/// The steps of a check, whole: it begins with connecting.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) kind: ProbeKind,
    pub(super) steps: Vec<Action>,
    pub(super) stops_on_404: bool,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) what: Act,
    /// Its number in the log; `None` when no line of the configuration stands behind it.
    pub(super) number: Option<usize>,
    pub(super) comment: Option<String>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Connect { port: Option<u16> },
    Send { bytes: Vec<u8>, method: String },
    Expect(Expect),
}

impl Script {
    /// What these settings come to.
    pub fn new(probe: &Probe) -> Script {
        let lines: &[Step] = match probe.kind {
            ProbeKind::Connect => &[],
            ProbeKind::Http => &probe.http,
            ProbeKind::Tcp => &probe.tcp,
        };
        let mut steps = Vec::new();
        let implicit = |what| Action { what, number: None, comment: None };
        if !matches!(lines.first(), Some(Step::Connect { .. })) {
            steps.push(implicit(Act::Connect { port: None }));
        }
        // `option httpchk` completes the first request; when there is none before the first answer is expected, it is one itself.
        let first = lines.iter().position(|step| !matches!(step, Step::Connect { .. }));
        let mut own = probe.kind == ProbeKind::Http;
        for (i, step) in lines.iter().enumerate() {
            if own && Some(i) == first && !matches!(step, Step::Request(_)) {
                steps.push(implicit(request(&HttpRequest::default(), &probe.request)));
                own = false;
            }
            let (what, comment) = match step {
                Step::Connect { port, comment } => (Act::Connect { port: *port }, comment.clone()),
                Step::Send { bytes, comment } => (Act::Send { bytes: bytes.clone(), method: String::new() }, comment.clone()),
                Step::Expect(expect) => (Act::Expect(expect.clone()), expect.comment.clone()),
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
        if probe.kind == ProbeKind::Http && matches!(steps.last(), Some(Action { what: Act::Send { .. }, .. })) {
            let what = Expectation::Status(vec![200..=399]);
            steps.push(implicit(Act::Expect(Expect { what, negated: false, min_bytes: None, comment: None })));
        }
        Script { kind: probe.kind, steps, stops_on_404: probe.stops_on_404 }
    }
}

fn request(told: &HttpRequest, other: &HttpRequest) -> Act {
    let (method, bytes) = told.bytes(other);
    Act::Send { bytes, method }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(probe: &Probe) -> Vec<String> {
        let text = |action: &Action| match &action.what {
            Act::Connect { .. } => "connect".to_owned(),
            Act::Send { bytes, .. } => String::from_utf8(bytes.clone()).unwrap(),
            Act::Expect(_) => "expect".to_owned(),
        };
        Script::new(probe).steps.iter().map(text).collect()
    }

    fn told(method: &str, uri: &str, version: &str) -> HttpRequest {
        HttpRequest { method: Some(method.into()), uri: Some(uri.into()), version: Some(version.into()), ..HttpRequest::default() }
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
        assert_eq!(sent(&probe)[1], "GET /t HTTP/1.1\r\nconnection: close\r\n\r\n");
    }

    #[test]
    fn http_check_send_completes_the_option() {
        let fields = vec![("Host".to_owned(), "h".to_owned())];
        let send = HttpRequest { fields, body: Some("test".into()), ..HttpRequest::default() };
        let probe = Probe {
            kind: ProbeKind::Http,
            request: told("GET", "/status", "HTTP/1.1"),
            http: vec![Step::Request(send)],
            ..Probe::default()
        };
        let wanted = "GET /status HTTP/1.1\r\nHost: h\r\nconnection: close\r\ncontent-length: 4\r\n\r\ntest";
        assert_eq!(sent(&probe), ["connect", wanted, "expect"]);
    }

    #[test]
    fn only_the_first_request_is_completed() {
        let probe = Probe {
            kind: ProbeKind::Http,
            request: told("GET", "/1", "HTTP/1.0"),
            http: vec![
                Step::Connect { port: None, comment: None },
                Step::Expect(Expect { what: Expectation::Status(vec![]), negated: false, min_bytes: None, comment: None }),
                Step::Connect { port: Some(1), comment: None },
                Step::Request(told("GET", "/2", "HTTP/1.0")),
            ],
            ..Probe::default()
        };
        assert_eq!(sent(&probe), ["connect", "GET /1 HTTP/1.0\r\n\r\n", "expect", "connect", "GET /2 HTTP/1.0\r\n\r\n", "expect"]);
    }
}
