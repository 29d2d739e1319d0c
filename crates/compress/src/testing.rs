//! Heads and settings for tests, written as they stand in files and on the wire.

use crate::keywords::KEYWORDS;
use crate::policy::{self, Link, Load, Offer, Verdict};
use crate::settings::{Compression, Effective, Process};
use terse_config::{Config, Diagnostics, Environment, Keyword, Loader, Settings, Source};
use terse_message::{BodyLength, Fields, Request, Response, Version};

/// A configuration with a single `listen` section.
pub(crate) struct Setup {
    listen: Option<Compression>,
    process: Process,
}

impl Setup {
    /// The lines of a `listen` section; lines after `global:` belong there.
    pub(crate) fn new(lines: &str) -> Setup {
        let (listen, global) = lines.split_once("global:").unwrap_or((lines, ""));
        let (config, said) = load(&[KEYWORDS], &format!("global\n{global}\nlisten l\n{listen}\n"));
        assert_eq!(said, [""; 0]);
        let process = config.global.settings.get().cloned().unwrap_or_default();
        let listen = config.sections[0].settings.get::<Compression>().cloned().map(Compression::settled);
        Setup { listen, process }
    }

    /// The same under `http-conformance haproxy`.
    pub(crate) fn like_haproxy(mut self) -> Setup {
        self.process.as_haproxy = true;
        self
    }

    pub(crate) fn listen(&self) -> Option<&Compression> {
        self.listen.as_ref()
    }

    pub(crate) fn effective(&self) -> Effective<'_> {
        Effective::new(self.listen.as_ref(), self.listen.as_ref(), &self.process)
    }

    /// The decision under other settings of `global`.
    pub(crate) fn decide_with(&self, process: &Process, request: &Request, response: &Response) -> Verdict {
        let settings = Effective::new(self.listen.as_ref(), self.listen.as_ref(), process);
        let offer = policy::offer(request, None, Link::default(), &settings);
        policy::decide(&offer, response, &Load::IDLE, &settings, || true)
    }

    pub(crate) fn offer(&self, request: &Request) -> Offer {
        policy::offer(request, None, Link::default(), &self.effective())
    }

    pub(crate) fn decide(&self, request: &Request, response: &Response) -> Verdict {
        policy::decide(&self.offer(request), response, &Load::IDLE, &self.effective(), || true)
    }
}

/// A file of these lines, and the reasons of its faults.
pub(crate) fn load(tables: &[&'static [Keyword]], text: &str) -> (Config, Vec<String>) {
    let (config, diagnostics) = read(tables, text);
    (config, reasons(&diagnostics))
}

/// The same, with the diagnostics.
pub(crate) fn read(tables: &[&'static [Keyword]], text: &str) -> (Config, Diagnostics) {
    let loader = Loader { tables: tables.to_vec(), environment: Environment::default() };
    loader.load(&[Source { name: "test.cfg".into(), bytes: text.into() }], Settings::default())
}

/// The reasons of the faults, without places and hints.
pub(crate) fn reasons(diagnostics: &Diagnostics) -> Vec<String> {
    diagnostics.iter().map(|diagnostic| diagnostic.reason.clone()).collect()
}

/// `METHOD target`, then fields, one a line. HTTP/1.0 after the target sets the version.
pub(crate) fn request(head: &str) -> Request {
    let mut request = Request::default();
    let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
    let mut words = line.split(' ');
    request.set_method(words.next().unwrap().as_bytes());
    request.set_target(words.next().unwrap_or("/").as_bytes());
    if words.next() == Some("HTTP/1.0") {
        request.version = Version::Http10;
    }
    push_all(&mut request.fields, fields);
    if let Some(length) = request.fields.get(b"Content-Length") {
        request.body = BodyLength::Exact(std::str::from_utf8(length).unwrap().parse().unwrap());
    }
    request
}

/// The status, then fields, one a line. The body is chunked unless Content-Length gives its length; `close` after the status:
/// it ends with the connection.
pub(crate) fn response(head: &str) -> Response {
    let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
    let (status, version) = line.split_once(' ').unwrap_or((line, ""));
    let mut response = Response::default();
    (response.status, response.body) = (status.parse().unwrap(), BodyLength::UntilClose);
    response.version = if version == "HTTP/1.0" { Version::Http10 } else { Version::Http11 };
    push_all(&mut response.fields, fields);
    if let Some(length) = response.fields.get(b"Content-Length") {
        response.body = BodyLength::Exact(std::str::from_utf8(length).unwrap().parse().unwrap());
    } else if version != "close" {
        response.body = BodyLength::Framed;
        response.fields.push(b"Transfer-Encoding", b"chunked");
    }
    response
}

/// The fields as lines, but for the framing, which is not compression's.
pub(crate) fn lines(fields: &Fields) -> String {
    let mut out = Vec::new();
    fields.write_to(&mut out);
    String::from_utf8(out).unwrap().replace("\r\n", "\n").replace("Transfer-Encoding: chunked\n", "").trim_end().to_owned()
}

fn push_all(fields: &mut Fields, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        fields.push(name.as_bytes(), value.trim().as_bytes());
    }
}
