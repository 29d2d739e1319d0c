//! Judging a request by rules.

use crate::reply::Answer;
use crate::rules::{self, Flow};
use crate::service::Service;
use crate::stream::Stream;
use std::sync::Arc;

/// What a rule has decided.
pub enum Verdict {
    /// The client gets this.
    Answer(Box<Answer>),
    /// The client gets this, and it counts as denied.
    Deny(Box<Answer>),
    /// The same, later.
    Tarpit(Box<Answer>),
    /// The connection closes.
    Drop,
    /// The client gets what this says, once the request's body is there.
    Serve(Arc<dyn Service>),
}

/// `monitor-uri`: the answer, when the request is one to it. Such a request is neither logged nor forwarded.
pub fn monitor(stream: &mut Stream) -> Option<Answer> {
    let worker = stream.facts.session.worker.clone();
    let frontend = &worker.plan.frontends[stream.facts.session.frontend];
    let uri = frontend.monitor_uri.as_deref()?;
    // A path is meant whatever stands before it; anything else is compared as a whole.
    let asked = match uri.first() {
        Some(b'/') => stream.request.path_and_query() == uri,
        _ => stream.request.target() == uri,
    };
    if !asked {
        return None;
    }
    stream.facts.log_level = crate::facts::LogLevel::Silent;
    let fails = frontend.monitor_failures.iter().any(|condition| condition.eval(&stream.env()));
    let status = if fails { 503 } else { 200 };
    if let Some(page) = frontend.pages.get(status) {
        return Some(Answer::clone(page));
    }
    let ready = Arc::from(&b"<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n"[..]);
    Some(if fails { Answer::error(503) } else { Answer { body: ready, ..Answer::error(200) } })
}

/// Runs the frontend's `http-request` rules, and asks its service.
pub fn frontend(stream: &mut Stream) -> Option<Verdict> {
    let worker = stream.facts.session.worker.clone();
    let frontend = &worker.plan.frontends[stream.facts.session.frontend];
    run(&frontend.request_rules, stream).or_else(|| serve(frontend.service.as_ref(), stream))
}

/// Runs the backend's `http-request` rules and asks its service, when it is not the other half of the frontend.
pub fn backend(stream: &mut Stream) -> Option<Verdict> {
    let worker = stream.facts.session.worker.clone();
    let backend = &worker.plan.backends[stream.facts.backend?];
    if backend.twin == Some(stream.facts.session.frontend) {
        return None;
    }
    run(&backend.request_rules, stream).or_else(|| serve(backend.service.as_ref(), stream))
}

fn serve(service: Option<&Arc<dyn Service>>, stream: &Stream) -> Option<Verdict> {
    service.filter(|service| service.takes(stream)).map(|service| Verdict::Serve(service.clone()))
}

fn run(rules: &[Arc<rules::Rule>], stream: &mut Stream) -> Option<Verdict> {
    if rules.is_empty() {
        return None;
    }
    match rules::run(rules, stream) {
        Flow::Next | Flow::Stop => None,
        Flow::Answer(answer) => Some(Verdict::Answer(answer)),
        Flow::Deny(answer) => Some(Verdict::Deny(answer)),
        Flow::Tarpit(answer) => Some(Verdict::Tarpit(answer)),
        Flow::Drop => Some(Verdict::Drop),
    }
}
