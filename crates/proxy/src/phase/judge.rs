//! Judging a connection, and each request on it, by rules.

use crate::counters::{Counter, Counters};
use crate::inspection::lend_if;
use crate::phase::Client;
use crate::phase::inspect::{self, Decision};
use crate::reply::Answer;
use crate::rules::{self, Flow, Rule};
use crate::service::Service;
use crate::session::Session;
use crate::settings::TcpRules;
use crate::stream::Stream;
use std::rc::Rc;
use std::sync::Arc;
use terse_sample::Needs;

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

/// Runs `tcp-request connection`; false when the connection is refused.
pub fn connection(session: &Rc<Session>) -> bool {
    accepts(session, &session.frontend().tcp.connection, |counters| &counters.denied_connections)
}

/// Runs `tcp-request session`; false when the connection is refused.
pub fn session(session: &Rc<Session>) -> bool {
    accepts(session, &session.frontend().tcp.session, |counters| &counters.denied_sessions)
}

/// Rules from before there is a stream get one of their own; what they leave in the session stays.
fn accepts(session: &Rc<Session>, rules: &[Arc<Rule>], denied: fn(&Counters) -> &Counter) -> bool {
    if rules.is_empty() {
        return true;
    }
    let accepted = matches!(rules::run(rules, &mut Stream::new(session, session.accepted)), Flow::Next | Flow::Stop);
    if !accepted {
        denied(session.frontend().tally.of(session.worker.index)).add(1);
    }
    accepted
}

/// Runs a proxy's `tcp-request content` rules on a request, before its others see it.
pub async fn content(client: &mut Client, stream: &mut Stream, tcp: &TcpRules, looks: Needs) -> Option<Verdict> {
    if tcp.content.is_empty() {
        return None;
    }
    match Box::pin(inspect::request(client, stream, tcp, looks)).await {
        Decision::Pass | Decision::Http => None,
        Decision::Drop | Decision::Close => Some(Verdict::Drop),
    }
}

/// Runs the frontend's `http-request` rules, and asks its service.
pub fn frontend(client: &mut Client, stream: &mut Stream) -> Option<Verdict> {
    let worker = stream.facts.session.worker.clone();
    let frontend = &worker.plan.frontends[stream.facts.session.frontend];
    run(client, stream, &frontend.request_rules, frontend.looks).or_else(|| serve(frontend.service.as_ref(), stream))
}

/// Runs the backend's rules on the request and asks its service, when it is not the other half of the frontend.
pub async fn backend(client: &mut Client, stream: &mut Stream) -> Option<Verdict> {
    let worker = stream.facts.session.worker.clone();
    let backend = &worker.plan.backends[stream.facts.backend?];
    if backend.twin == Some(stream.facts.session.frontend) {
        return None;
    }
    if let Some(verdict) = content(client, stream, &backend.tcp, backend.looks).await {
        return Some(verdict);
    }
    run(client, stream, &backend.request_rules, backend.looks).or_else(|| serve(backend.service.as_ref(), stream))
}

fn serve(service: Option<&Arc<dyn Service>>, stream: &Stream) -> Option<Verdict> {
    service.filter(|service| service.takes(stream)).map(|service| Verdict::Serve(service.clone()))
}

fn run(client: &mut Client, stream: &mut Stream, rules: &[Arc<Rule>], looks: Needs) -> Option<Verdict> {
    if rules.is_empty() {
        return None;
    }
    match lend_if(client, stream, looks, |stream| rules::run(rules, stream)) {
        Flow::Answer(answer) => Some(Verdict::Answer(answer)),
        Flow::Deny(answer) => Some(Verdict::Deny(answer)),
        Flow::Tarpit(answer) => Some(Verdict::Tarpit(answer)),
        Flow::Drop => Some(Verdict::Drop),
        Flow::Next | Flow::Stop | Flow::Close | Flow::Http | Flow::More => None,
    }
}
