//! An exchange: the phases of a request and its response, from its head to its line in the log.

use crate::exchange::{After, Broken, Cancel, Client, Ended, cancel};
use crate::facts::Times;
use crate::inspection::lend_if;
use crate::log::Origin;
use crate::phase::prepare::Exchange;
use crate::phase::{answer, assign, dictionary, finish, judge, persist, prepare, read, record, retry, route, transfer};
use crate::plan::Backend;
use crate::registry::Place;
use crate::session::Session;
use crate::settings::Mode;
use crate::stick::{self, Sticking};
use crate::stream::Stream;
use crate::track;
use std::rc::Rc;
use std::time::Instant;
use terse_message::{Abort, Cause, Known, Phase, Who};

/// State at the start of an exchange.
pub struct Before<'a> {
    /// The signal that ends it from outside.
    pub cancel: &'a Cancel,
    /// The time from which on its connection was idle.
    pub idle_since: Instant,
    /// The time of its first byte.
    pub began: Instant,
    /// The reason why the wait for its head ended, where that was waited for before and did not come.
    pub cut: Option<Cut>,
}

/// Reason for the end of the wait for a request's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// The client.
    Broken(Broken),
    /// A signal from outside.
    Cancelled(Who),
}

/// State at the end of an exchange.
pub struct Served {
    /// The continuation of its connection.
    pub after: After,
    /// Whether its client may never send the rest of its request.
    pub held_back: bool,
}

/// Serves a request, and counts and logs it.
pub async fn run(client: &mut Client<'_>, session: &Rc<Session>, place: &mut Place, before: Before<'_>) -> Served {
    let mut stream = Stream::counted(session, before.began, place.figures());
    stream.facts.figures.open(stream.facts.id, stream.facts.times.start);
    stream.facts.times.handshake_ms = session.handshake_ms.take();
    stream.facts.times.idle_ms = Times::between(Some(before.idle_since), Some(stream.facts.times.start));
    session.requests.set(session.requests.get() + 1);
    match before.cut {
        Some(Cut::Broken(broken)) => client.broke_off(broken),
        Some(Cut::Cancelled(who)) => before.cancel.set(who),
        None => {}
    }
    let served = cancel::until!(before.cancel, async {
        let served = match read::head(client, &mut stream).await {
            Ok(()) => phases(client, &mut stream).await,
            Err(abort) => Err(abort),
        };
        match served {
            Ok(ended) => ended,
            Err(abort) => answer::to_abort(client, &mut stream, abort).await,
        }
    });
    let ended = match served {
        Ok(ended) => ended,
        Err(who) => answer::to_cancelled(client, &mut stream, who).await,
    };
    if stream.facts.version.is_none() {
        stream.facts.figures.bytes_in.set(client.bytes().len() as u64);
    }
    let after = client.after(ended, stream.response.body, stream.request.must_close);
    finish::stream(&mut stream);
    stream.facts.figures.close();
    // A client that was too slow already is not waited for again.
    let is_slow = stream.facts.abort.is_some_and(|abort| abort.who == Who::ClientTimeout);
    Served { after, held_back: is_slow || stream.request.fields.has(Known::Expect) }
}

/// The phases after the head.
async fn phases(client: &mut Client<'_>, stream: &mut Stream) -> Result<Ended, Abort> {
    let session = stream.facts.session.clone();
    let frontend = session.frontend();
    let judges_content = !frontend.tcp.content.is_empty() && !stream.take_over();
    stream.facts.count_tracked(track::REQUESTS, 1);
    if frontend.mode == Mode::Http {
        record::step(stream, Origin::Accept);
    }
    if judges_content && let Some(verdict) = judge::content(client, stream, &frontend.tcp, frontend.looks).await {
        // These rules come before the request is parsed: logs show none, as in HAProxy.
        stream.request.clear();
        stream.facts.request_captures.clear();
        return answer::by_rule(client, stream, verdict).await;
    }
    // A client that leaves within its body is judged all the same, and its backend gets the request, as in HAProxy.
    let mut left = None;
    if frontend.options.buffer_request
        && let Err(abort) = read::body(client, stream).await
    {
        if abort.who != Who::Client {
            return Err(abort);
        }
        left = Some(abort);
    }
    if let Some(ready) = judge::monitor(stream) {
        answer::count_intercepted(stream);
        return answer::send(client, stream, &ready).await;
    }
    record::step(stream, Origin::Request);
    if frontend.is_judged()
        && let Some(verdict) = judge::frontend(client, stream).await?
    {
        return answer::by_rule(client, stream, verdict).await;
    }
    lend_if(client, stream, frontend.looks, route::choose)?;
    if let Some(abort) = left {
        return Err(abort);
    }
    let waits = |backend: &Backend| {
        let for_key = |sticking: &Sticking| stick::waits_for_body(&stream.request, sticking);
        backend.options.buffer_request || backend.sticking.as_deref().is_some_and(for_key)
    };
    if stream.facts.backend().is_some_and(waits) && !frontend.options.buffer_request {
        read::body(client, stream).await?;
    }
    if stream.facts.backend().is_some_and(|backend| backend.is_judged(session.frontend))
        && let Some(verdict) = judge::backend(client, stream).await?
    {
        return answer::by_rule(client, stream, verdict).await;
    }
    if let Some(bytes) = dictionary::published(stream) {
        answer::count_intercepted(stream);
        stream.facts.abort = Some(Abort::new(Who::Local, Phase::Request, Cause::Denied));
        return answer::send(client, stream, &bytes).await;
    }
    client.settle_length(&mut stream.request);
    let bound = persist::before(client, stream);
    let mut exchange = prepare::request(client, stream, bound);
    persist::behind(client, stream, &mut exchange);
    forward(client, stream, &mut exchange).await
}

/// Sends the request to a server, and to another when that may help.
async fn forward(client: &mut Client<'_>, stream: &mut Stream, exchange: &mut Exchange) -> Result<Ended, Abort> {
    loop {
        let mut server = assign::server(client, stream, exchange).await?;
        record::step(stream, Origin::Connect);
        match transfer::run(client, &mut server.connection, stream, exchange).await {
            Ok(ended) => {
                server.keep_if(exchange.server_keeps, stream);
                return Ok(ended);
            }
            Err(failure) if retry::may_retry(stream, exchange, &failure) => {
                client.rewind(exchange.recording.take());
            }
            Err(failure) => {
                if failure.abort.who == Who::Client {
                    // Its server learns at once that the answer is not awaited; a close by the proxy would also hold the port
                    // for a minute each time.
                    server.connection.abandon();
                }
                return Err(failure.abort);
            }
        }
    }
}

#[cfg(test)]
mod tests;
