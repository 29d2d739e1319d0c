//! Judging a connection, and each request on it, by rules.

use crate::cache::Hit;
use crate::counters::{Counter, Counters};
use crate::deferral;
use crate::exchange::Client;
use crate::inspection::lend_if;
use crate::phase::inspect::{self, Decision};
use crate::phase::read;
use crate::reply::{Answer, Pieces};
use crate::rules::{self, Cursor, Flow, Rule, Wait};
use crate::script::{self, Applet};
use crate::service::Service;
use crate::session::Session;
use crate::settings::TcpRules;
use crate::stream::Stream;
use socket2::SockRef;
use std::rc::Rc;
use std::sync::Arc;
use terse_message::{Abort, Cause, Phase, Who};
use terse_sample::Needs;

/// Decision of a rule.
pub enum Verdict {
    /// The client gets this.
    Answer(Box<Answer>),
    /// The client gets this, with a body that is made meanwhile.
    Pieces(Box<Answer>, Box<dyn Pieces>),
    /// The client gets this, and it counts as denied.
    Deny(Box<Answer>),
    /// The same, later.
    Tarpit(Box<Answer>),
    /// The client gets this stored response.
    Stored(Box<Hit>),
    /// The connection closes.
    Drop,
    /// The client gets this service's response, once the request's body is there.
    Serve(Arc<dyn Service>),
    /// The client gets this applet's response.
    Perform(Arc<dyn Applet>),
}

/// `monitor-uri`: the answer, when the request asks for it. Such a request is neither logged nor forwarded.
#[inline]
pub fn monitor(stream: &mut Stream) -> Option<Answer> {
    stream.facts.frontend().monitor_uri.as_ref()?;
    monitored(stream)
}

fn monitored(stream: &mut Stream) -> Option<Answer> {
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
        return Some(page.answer(stream));
    }
    let ready = Arc::from(&b"<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n"[..]);
    Some(if fails { Answer::error(503) } else { Answer { body: ready, ..Answer::error(200) } })
}

/// Runs `tcp-request connection`; false when the connection is refused.
pub fn connection(session: &Rc<Session>, socket: &SockRef<'_>) -> bool {
    accepts(session, socket, &session.frontend().tcp.connection, |counters| &counters.denied_connections)
}

/// Runs `tcp-request session`; false when the connection is refused.
pub fn session(session: &Rc<Session>, socket: &SockRef<'_>) -> bool {
    accepts(session, socket, &session.frontend().tcp.session, |counters| &counters.denied_sessions)
}

/// Rules from before there is a stream get a stream of their own; their changes of the session stay.
fn accepts(session: &Rc<Session>, socket: &SockRef<'_>, rules: &[Arc<Rule>], denied: fn(&Counters) -> &Counter) -> bool {
    if rules.is_empty() {
        return true;
    }
    let mut stream = Stream::new(session, session.accepted);
    let accepted = matches!(rules::run(rules, &mut stream), Flow::Next | Flow::Stop);
    mark(&mut stream, socket);
    if !accepted {
        denied(session.frontend().tally.of(session.worker.index)).add(1);
        session.address_counters().inspect(|counters| denied(counters).add(1));
    }
    accepted
}

/// Applies the rules' changes of the packets to the client's connection.
pub fn mark(stream: &mut Stream, socket: &SockRef<'_>) {
    if let Some(changes) = stream.facts.changed_mut() {
        std::mem::take(&mut changes.client_packets).apply(socket, stream.facts.session.local.get());
    }
}

/// Runs a proxy's `tcp-request content` rules on a request, before its others see it.
pub async fn content(client: &mut Client<'_>, stream: &mut Stream, tcp: &TcpRules, looks: Needs) -> Option<Verdict> {
    if tcp.content.is_empty() {
        return None;
    }
    let decision = Box::pin(inspect::request(client, stream, tcp, looks)).await;
    mark(stream, &client.socket());
    match decision {
        Decision::Pass | Decision::Http => None,
        // A service's takeover is refused in mode http, and where bytes have turned out to be HTTP it comes too late.
        Decision::Drop | Decision::Close | Decision::Perform(_) => Some(Verdict::Drop),
    }
}

/// Runs the frontend's `http-request` rules, and asks its service.
pub async fn frontend(client: &mut Client<'_>, stream: &mut Stream) -> Result<Option<Verdict>, Abort> {
    let worker = stream.facts.session.worker.clone();
    let frontend = &worker.plan.frontends[stream.facts.session.frontend];
    let verdict = run(client, stream, &frontend.request_rules, frontend.looks).await?;
    Ok(verdict.or_else(|| serve(frontend.service.as_ref(), stream)))
}

/// Runs the backend's rules on the request and asks its service, when it is not the other half of the frontend.
pub async fn backend(client: &mut Client<'_>, stream: &mut Stream) -> Result<Option<Verdict>, Abort> {
    let Some(backend) = stream.facts.backend.clone() else { return Ok(None) };
    if let Some(verdict) = content(client, stream, &backend.tcp, backend.looks).await {
        return Ok(Some(verdict));
    }
    let verdict = run(client, stream, &backend.request_rules, backend.looks).await?;
    Ok(verdict.or_else(|| serve(backend.service.as_ref(), stream)))
}

fn serve(service: Option<&Arc<dyn Service>>, stream: &Stream) -> Option<Verdict> {
    service.filter(|service| service.takes(stream)).map(|service| Verdict::Serve(service.clone()))
}

async fn run(client: &mut Client<'_>, stream: &mut Stream, rules: &[Arc<Rule>], looks: Needs) -> Result<Option<Verdict>, Abort> {
    if rules.is_empty() {
        return Ok(None);
    }
    let mut at = Cursor::default();
    loop {
        let waits = looks.has(Needs::TIME);
        if waits {
            stream.facts.session.worker.deferral.open(true);
        }
        let flow = lend_if(client, stream, looks, |stream| rules::run_from(rules, &mut at, stream));
        if waits {
            stream.facts.session.worker.deferral.open(false);
        }
        if stream.facts.changed().is_some() {
            Box::pin(ahead(client, stream)).await?;
        }
        let flow = match flow {
            Flow::Play(play) => Box::pin(script::to_its_end(stream, play)).await,
            flow => flow,
        };
        return Ok(match flow {
            Flow::Next if !at.is_behind(rules) => continue,
            Flow::Wait(wait) => {
                Box::pin(wait_for(client, stream, wait)).await?;
                continue;
            }
            Flow::Work(work) => {
                Box::pin(deferral::elsewhere(work)).await;
                continue;
            }
            Flow::Answer(answer) => Some(Verdict::Answer(answer)),
            Flow::Deny(answer) => Some(Verdict::Deny(answer)),
            Flow::Tarpit(answer) => Some(Verdict::Tarpit(answer)),
            Flow::Stored(hit) => Some(Verdict::Stored(hit)),
            Flow::Drop => Some(Verdict::Drop),
            Flow::Perform(service) => Some(Verdict::Perform(service)),
            // A program that has ended has nothing more to wait for.
            Flow::Play(_) => None,
            Flow::Next | Flow::Stop | Flow::Close | Flow::Http | Flow::More => None,
        });
    }
}

/// Carries out the rules' work before the request goes on: marks on packets, a 103 response ahead.
async fn ahead(client: &mut Client<'_>, stream: &mut Stream) -> Result<(), Abort> {
    mark(stream, &client.socket());
    match stream.facts.changed_mut().and_then(|changes| changes.hints.take()) {
        Some(mut hints) => read::interim(client, stream, &mut hints).await,
        None => Ok(()),
    }
}

/// Waits for the handshake of a client whose request came as early data.
async fn settled(client: &mut Client<'_>, stream: &Stream) -> Result<(), Abort> {
    let timeouts = &stream.facts.session.frontend().timeouts;
    client.settled(timeouts.client_handshake.or(timeouts.client)).await.map_err(|failure| match failure.cause {
        terse_tls::Cause::Timeout => Abort::new(Who::ClientTimeout, Phase::Request, Cause::Timeout),
        _ => Abort::new(Who::Client, Phase::Request, Cause::Closed),
    })
}

async fn wait_for(client: &mut Client<'_>, stream: &mut Stream, wait: Wait) -> Result<(), Abort> {
    match wait {
        Wait::Body(wait) => read::some_of_body(client, stream, wait).await,
        Wait::Name(wait) => {
            wait.run(stream).await;
            Ok(())
        }
        Wait::Handshake => settled(client, stream).await,
        Wait::Pause(time) => {
            client.timer().set(Some(time));
            client.timer().expired().await;
            client.timer().clear();
            Ok(())
        }
    }
}
