//! Streams without sockets: for tests of rules and formats.

use crate::plan::build::{Host, build};
use crate::session::Session;
use crate::stream::Stream;
use crate::worker::{Control, Shared, Worker};
use crate::{keywords, log, rules, samples};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_config::{Diagnostics, Settings};
use terse_http::h1;
use terse_sample::{PatternFiles, Registry};
use tokio::sync::watch;

/// A worker with a configuration, and a client's connection to its first frontend.
pub(crate) struct Trial {
    pub(crate) session: Rc<Session>,
}

impl Trial {
    /// A trial of a configuration without remarks.
    pub(crate) fn new(text: &str) -> Trial {
        let (plan, said) = load(text);
        assert_eq!(said, [""; 0], "{text}");
        let (_, control) = watch::channel(Control::Running);
        let worker = Worker::new(Arc::new(plan.unwrap()), 0, Shared::alone(control));
        let (client, local) = ("192.0.2.7:1234".parse().ok(), "192.0.2.1:80".parse().ok());
        Trial { session: Session::between(&worker, 0, client, local) }
    }

    /// Of a frontend `fe` with these lines, and a backend `be` with two servers.
    pub(crate) fn front(lines: &str) -> Trial {
        Trial::new(&front(lines))
    }

    /// A stream whose request has been read.
    pub(crate) fn stream(&self, head: &str) -> Stream {
        let mut stream = Stream::new(&self.session, self.session.accepted);
        let head = head.replace('\n', "\r\n") + "\r\n\r\n";
        assert_eq!(h1::parse_request(head.as_bytes(), &mut stream.request), Ok(h1::Parsed::Complete(head.len())), "{head}");
        stream.facts.version = Some(stream.request.version);
        stream.facts.times.request = Some(self.session.accepted + Duration::from_millis(5));
        crate::captures::request(&mut stream);
        stream
    }

    /// Gives a stream the response of the backend's first server.
    pub(crate) fn respond(&self, stream: &mut Stream, head: &str) {
        let head = head.replace('\n', "\r\n") + "\r\n\r\n";
        let parsed = h1::parse_response(head.as_bytes(), b"GET", &mut stream.response);
        assert_eq!(parsed, Ok(h1::Parsed::Complete(head.len())), "{head}");
        stream.has_response = true;
        stream.facts.backend = self.session.worker.backend(0);
        stream.facts.server = self.session.worker.plan.backends.now()[0].farm.servers().first().cloned();
        stream.facts.server_status = stream.response.status;
        crate::captures::response(stream);
    }

    /// Runs the frontend's rules on requests.
    pub(crate) fn judge_request(&self, stream: &mut Stream) -> rules::Flow {
        rules::run(&self.session.frontend().request_rules, stream)
    }

    /// Runs the frontend's rules on responses.
    pub(crate) fn judge_response(&self, stream: &mut Stream) -> rules::Flow {
        rules::run(&self.session.frontend().response_rules, stream)
    }

    /// The line of the frontend's log for a stream.
    pub(crate) fn line(&self, stream: &Stream) -> String {
        let mut line = Vec::new();
        self.session.frontend().log.format.as_ref().unwrap().write(&stream.env(), &mut line);
        String::from_utf8(line).unwrap()
    }
}

/// The text of a frontend `fe` with these lines, and a backend `be` with two servers.
pub(crate) fn front(lines: &str) -> String {
    format!(
        "defaults d\n mode http\n timeout client 5s\n timeout server 6s\n timeout connect 1s\n\
         http-errors set\n errorfile 404 page\n\
         frontend fe\n bind :80 name door\n default_backend be\n {lines}\n\
         backend be\n timeout tunnel 9s\n server one 127.0.0.1:81 weight 5\n server two 127.0.0.1:82 maxconn 4\n"
    )
}

/// The plan of a text, and the remarks about it.
pub(crate) fn load(text: &str) -> (Option<crate::plan::Plan>, Vec<String>) {
    let mut shared = Settings::default();
    let registry = shared.entry::<Registry>();
    registry.files = Some(Arc::new(Files));
    samples::FETCHES.iter().for_each(|table| registry.add_fetches(table));
    samples::CONVERTERS.iter().for_each(|table| registry.add_converters(table));
    samples::ALIASES.iter().for_each(|table| registry.add_aliases(table));
    let (config, mut said) = keywords::tests::load_with(text, shared);
    if said.iter().any(|said| said.contains("! ")) {
        return (None, said);
    }
    let host = Host {
        workers: 1,
        maxconn: 0,
        buffer_bytes: 16384,
        rewrite_bytes: None,
        memory_bytes: 1 << 20,
        http2: Default::default(),
        http2_servers: Default::default(),
        body_key: [7; 32],
        tag: "terse".into(),
        started: Instant::now(),
        sinks: log::Sinks::new(|_| Err(std::io::ErrorKind::NotFound.into())),
        notices: None,
        local_peer: "a".into(),
    };
    let mut diagnostics = Diagnostics::default();
    let plan = build(config, &host, &mut diagnostics);
    said.extend(keywords::tests::said(diagnostics.iter()));
    (plan, said)
}

struct Files;

impl PatternFiles for Files {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        match name {
            "page" => Ok(b"HTTP/1.1 404 Gone fishing\r\nX-Page: yes\r\n\r\nNo.\n".to_vec()),
            "empty" => Ok(Vec::new()),
            "text" => Ok(b"path is %[path]\n".to_vec()),
            _ => Err("No such file or directory".into()),
        }
    }
}
