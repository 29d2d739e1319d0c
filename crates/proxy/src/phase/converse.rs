//! A session: requests and responses on one connection, one after the other.

use crate::cancel::{self, Cancel};
use crate::connection::{detect, http2};
use crate::facts::Times;
use crate::inspection::lend_if;
use crate::io::{Buffer, Incoming, clock};
use crate::log::Origin;
use crate::phase::prepare::Exchange;
use crate::phase::{
    Client, Next, announce, answer, assign, finish, handshake, judge, linger, persist, prepare, read, record, retry, route,
    transfer,
};
use crate::plan::Backend;
use crate::registry::{Place, Registry};
use crate::reply;
use crate::session::Session;
use crate::settings::Mode;
use crate::stick::{self, Sticking};
use crate::stream::Stream;
use crate::track;
use crate::tunnel;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use terse_message::{Abort, BodyLength, Cause, Known, Malformed, Phase, Request, Who};

/// Serves a client's connection to its end, and gives its place back then.
///
/// This future is what an idle connection costs: so it is one block, and what waits for other things than requests lies in boxes.
#[allow(clippy::manual_async_fn, reason = "an async fn would hold what it is called with twice")]
pub fn run(mut client: Client, session: Rc<Session>, place: impl Sized) -> impl Future<Output = ()> {
    async move {
        let _place = place;
        if !judge::connection(&session, &client.io) {
            return;
        }
        let announced = !session.expects_proxy.get() || Box::pin(announce::receive(&mut client, &session)).await;
        if !announced {
            return;
        }
        if session.worker.plan.binds[session.bind].tls.is_some() {
            match Box::pin(handshake::accept(client, &session)).await {
                Some(secured) => client = secured,
                None => return,
            }
        }
        session.handshake_ms.set(Times::between(Some(session.accepted), Some(clock::now())));
        if !judge::session(&session, &client.io) {
            return;
        }
        session.count_accepted();
        session.frontend().tally.of(session.worker.index).sessions.add(1);
        session.address_counters().inspect(|counters| counters.sessions.add(1));
        record::accepted(&session);
        // Rules, or the backend's mode, may say that bytes are HTTP after all.
        if session.frontend().mode == Mode::Tcp {
            match Box::pin(tunnel::serve(client, &session)).await {
                Some(untouched) => client = untouched,
                None => return,
            }
        }
        if http(&mut client, &session).await {
            Box::pin(http2::serve(client, &session)).await;
        }
    }
}

/// While it has been waiting for a request for more than a moment, a connection is this future and nothing else: no buffer, no stream.
/// What requests need lives in the boxed future of [`converse`].
///
/// Says whether the connection is one of HTTP/2, of which nothing but the preface may have been read.
async fn http(client: &mut Client, session: &Rc<Session>) -> bool {
    let mut idle_since = clock::now();
    if detect::begins_as_http2(session) {
        return true;
    }
    loop {
        let limit = keep_alive(session).map(|limit| limit.saturating_sub(clock::now().saturating_duration_since(idle_since)));
        match wait(client, session, limit).await {
            Arrival::Bytes if session.requests.get() == 0 && detect::is_http2(client, session).await => return true,
            Arrival::Bytes => {}
            Arrival::Nothing => {
                if session.requests.get() == 0 {
                    Box::pin(finish::silent(client, session, Who::Client)).await;
                }
                break;
            }
            Arrival::Late => {
                if session.requests.get() == 0 {
                    Box::pin(finish::silent(client, session, Who::ClientTimeout)).await;
                }
                break;
            }
        }
        let next = Box::pin(converse(client, session, &mut idle_since)).await;
        match next {
            Next::Request => {}
            Next::Close | Next::Linger => break,
            Next::Reset => {
                client.io.reset();
                break;
            }
        }
    }
    if !client.io.is_sent() {
        Box::pin(deliver(client, session)).await;
    }
    false
}

/// Hands over what TLS has taken and the kernel has not.
async fn deliver(client: &mut Client, session: &Session) {
    client.timer.set(session.frontend().timeouts.client);
    let Client { io, timer, .. } = client;
    poll_fn(|cx| match io.poll_flush(cx) {
        Poll::Pending if timer.is_due(cx) => Poll::Ready(()),
        poll => poll.map(drop),
    })
    .await;
}

/// How long a connection keeps the room of a request for the next one: busy clients send it within a moment. Longer would win little, and
/// leave the memory of many connections that were busy at one time in pieces.
const MOMENT: Duration = Duration::from_millis(10);

/// How long a draining worker waits for the request behind a response that did not say `Connection: close`.
const FAREWELL: Duration = Duration::from_secs(2);

/// One request after the other, as long as the next one comes soon.
async fn converse(client: &mut Client, session: &Rc<Session>, idle_since: &mut Instant) -> Next {
    let mut place = Registry::enter(session);
    loop {
        if session.requests.get() > 0 {
            record::accepted(session);
        }
        let next = exchange(client, session, &mut place, &session.cancel, *idle_since, None).await;
        if next != Next::Request {
            return next;
        }
        *idle_since = clock::now();
        let moment = keep_alive(session).map_or(MOMENT, |limit| limit.min(MOMENT));
        match wait(client, session, Some(moment)).await {
            Arrival::Bytes => {}
            Arrival::Late => return Next::Request,
            Arrival::Nothing => return Next::Close,
        }
    }
}

/// How long a client may be silent before its next request.
fn keep_alive(session: &Session) -> Option<Duration> {
    let timeouts = &session.frontend().timeouts;
    match session.requests.get() {
        0 => timeouts.request.or(timeouts.client),
        _ => timeouts.keep_alive.or(timeouts.request).or(timeouts.client),
    }
}

enum Arrival {
    /// There are bytes to look at.
    Bytes,
    /// The client has gone, or the worker drains.
    Nothing,
    /// The client was silent too long.
    Late,
}

/// Waits for the first byte of a request.
///
/// A worker that drains closes connections that are idle. One whose response had begun before that was not told so: its next
/// request is waited for, and that one's response says it.
fn wait<'a>(client: &'a mut Client, session: &'a Session, limit: Option<Duration>) -> impl Future<Output = Arrival> + 'a {
    let (is_first, is_running) = (session.requests.get() == 0, session.worker.is_running());
    let keeps_idle = session.frontend().options.keeps_idle;
    let closes_idle = !is_first && is_running && !keeps_idle;
    if client.buffer.is_empty() {
        client.buffer.release_if_empty();
        client.timer.set(match limit {
            limit if is_first || is_running || keeps_idle => limit,
            limit => Some(limit.map_or(FAREWELL, |limit| limit.min(FAREWELL))),
        });
    }
    // Waits for memory, where there is none.
    let mut room: Option<Pin<Box<dyn Future<Output = Buffer> + 'a>>> = None;
    poll_fn(move |cx| {
        loop {
            if let Some(waiting) = &mut room {
                client.buffer = ready!(waiting.as_mut().poll(cx));
                room = None;
            }
            match poll_first_bytes(client, session, cx) {
                Poll::Ready(Some(arrival)) => return Poll::Ready(arrival),
                Poll::Ready(None) => room = Some(Box::pin(session.worker.pools.small.get())),
                Poll::Pending if closes_idle && !session.worker.is_running() => return Poll::Ready(Arrival::Nothing),
                Poll::Pending if client.timer.is_due(cx) => return Poll::Ready(Arrival::Late),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
}

/// Reads, once there is something to read, unless the client has sent its next request already; `None` when a buffer is needed and there is none.
fn poll_first_bytes(client: &mut Client, session: &Session, cx: &mut Context<'_>) -> Poll<Option<Arrival>> {
    let Client { io, buffer, .. } = client;
    if !buffer.is_empty() {
        return Poll::Ready(Some(Arrival::Bytes));
    }
    if buffer.is_released() {
        if io.poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        match session.worker.pools.small.take() {
            Some(taken) => *buffer = taken,
            None => return Poll::Ready(None),
        }
    }
    match io.split().0.poll_read(cx, buffer) {
        Poll::Pending => {
            buffer.release_if_empty();
            Poll::Pending
        }
        Poll::Ready(Ok(1..)) => Poll::Ready(Some(Arrival::Bytes)),
        Poll::Ready(_) => Poll::Ready(Some(Arrival::Nothing)),
    }
}

/// One request and its response on a stream of HTTP/2, whose head has arrived. What follows on its connection is no matter of the exchange.
pub async fn stream(client: &mut Client, session: &Rc<Session>, request: &mut Request, cancel: Rc<Cancel>, idle_since: Instant) {
    let mut place = Registry::enter_stream(session, cancel.clone());
    exchange(client, session, &mut place, &cancel, idle_since, Some(request)).await;
}

/// Answers a stream of HTTP/2 whose head is larger than heads may be, or is none.
pub async fn refused(client: &mut Client, session: &Rc<Session>, malformed: Malformed) {
    let mut stream = Stream::new(session, clock::now());
    stream.facts.refused = Some(malformed);
    stream.facts.times.idle_ms = 0;
    let (status, cause) = match malformed {
        Malformed::HeadTooLarge => (431, Cause::TooLarge),
        _ => (400, Cause::Malformed),
    };
    stream.facts.instead = Some(Box::new(reply::page(&stream, status)));
    let mut out = session.worker.take_scratch();
    let abort = Abort::new(Who::Proxy, Phase::Request, cause);
    answer::to_abort(client, &mut stream, &mut out, abort).await;
    session.worker.give_scratch(out);
    stream.facts.figures.bytes_in.set(1);
    finish::stream(&mut stream);
}

/// Logs and counts a head of HTTP/2 that is none; its stream was reset.
pub fn malformed(session: &Rc<Session>, malformed: Malformed) {
    let mut stream = Stream::new(session, clock::now());
    let abort = Abort::new(Who::Proxy, Phase::Request, Cause::Malformed);
    (stream.facts.abort, stream.facts.refused, stream.facts.status) = (Some(abort), Some(malformed), 400);
    finish::blame(&stream, abort);
    stream.facts.figures.bytes_in.set(1);
    finish::stream(&mut stream);
}

/// One request and its response; the request is read where it has not arrived.
async fn exchange(
    client: &mut Client,
    session: &Rc<Session>,
    place: &mut Place,
    cancel: &Cancel,
    idle_since: Instant,
    arrived: Option<&mut Request>,
) -> Next {
    let mut stream = Stream::counted(session, clock::now(), place.figures());
    stream.facts.figures.open(stream.facts.id, stream.facts.times.start);
    stream.facts.times.handshake_ms = session.handshake_ms.take();
    stream.facts.times.idle_ms = Times::between(Some(idle_since), Some(stream.facts.times.start));
    session.requests.set(session.requests.get() + 1);
    let mut out = session.worker.take_scratch();
    let served = cancel::until!(cancel, async {
        let head = match arrived {
            Some(request) => {
                std::mem::swap(&mut stream.request, request);
                stream.facts.frames_id = client.io.stream().map_or(0, |frames| frames.id());
                read::arrived(client, &mut stream);
                Ok(())
            }
            None => read::head(client, &mut stream).await,
        };
        let served = match head {
            Ok(()) => serve(client, &mut stream, &mut out).await,
            Err(abort) => Err(abort),
        };
        match served {
            Ok(next) => next,
            Err(abort) => answer::to_abort(client, &mut stream, &mut out, abort).await,
        }
    });
    let next = match served {
        Ok(next) => next,
        Err(who) => answer::to_cancelled(client, &mut stream, &mut out, who).await,
    };
    if stream.facts.version.is_none() {
        stream.facts.figures.bytes_in.set(client.buffer.filled().len() as u64);
    }
    session.worker.give_scratch(out);
    finish::stream(&mut stream);
    stream.facts.figures.close();
    if next == Next::Linger && client.io.stream().is_none() {
        let request = &stream.request;
        // A client that was too slow already is not waited for again.
        let is_slow = stream.facts.abort.is_some_and(|abort| abort.who == Who::ClientTimeout);
        let held_back = is_slow || request.fields.has(Known::Expect);
        let rest = stream.left.take().unwrap_or_else(|| Incoming::of(request));
        drop(stream);
        Box::pin(linger::linger(client, session, rest, held_back)).await;
    }
    next
}

async fn serve(client: &mut Client, stream: &mut Stream, out: &mut Vec<u8>) -> Result<Next, Abort> {
    let session = stream.facts.session.clone();
    let frontend = session.frontend();
    let judges_content = !frontend.tcp.content.is_empty() && !stream.take_over();
    stream.facts.count_tracked(track::REQUESTS, 1);
    if frontend.mode == Mode::Http {
        record::step(stream, Origin::Accept);
    }
    if judges_content && let Some(verdict) = judge::content(client, stream, &frontend.tcp, frontend.looks).await {
        // These rules come before the request is looked at: logs show none, as in HAProxy.
        stream.request.clear();
        stream.facts.request_captures.clear();
        return answer::by_rule(client, stream, out, verdict).await;
    }
    // A client that leaves within its body is judged all the same, and its backend is told, as HAProxy has it.
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
        return answer::send(client, stream, out, &ready).await;
    }
    record::step(stream, Origin::Request);
    if frontend.is_judged()
        && let Some(verdict) = judge::frontend(client, stream).await?
    {
        return answer::by_rule(client, stream, out, verdict).await;
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
        return answer::by_rule(client, stream, out, verdict).await;
    }
    read::settle_length(client, stream);
    let bound = persist::before(client, stream);
    let mut exchange = prepare::request(stream, bound);
    persist::behind(client, stream, &mut exchange);
    let next = forward(client, stream, &mut exchange, out).await;
    leave(stream, &mut exchange);
    next
}

/// What of the body is still to come decides whether the connection can go on behind an answer of ours.
pub(super) fn leave(stream: &mut Stream, exchange: &mut Exchange) {
    stream.request.body = match stream.request.body {
        _ if exchange.upload.is_read() => BodyLength::None,
        // What stands in the buffer is not its beginning: no length fits.
        length if exchange.body_begun || length == BodyLength::Framed && stream.facts.times.connected.is_some() => {
            BodyLength::Exact(u64::MAX)
        }
        untouched => untouched,
    };
    stream.left = Some(std::mem::take(&mut exchange.upload));
}

/// Sends the request to a server, and to another when that may help.
async fn forward(client: &mut Client, stream: &mut Stream, exchange: &mut Exchange, out: &mut Vec<u8>) -> Result<Next, Abort> {
    loop {
        let mut server = assign::server(client, stream, exchange).await?;
        record::step(stream, Origin::Connect);
        match transfer::run(client, &mut server.connection, stream, exchange, out).await {
            Ok(next) => {
                server.keep_if(exchange.server_keeps, stream);
                return Ok(next);
            }
            Err(failure) if retry::may_retry(stream, exchange, &failure) => {
                out.clear();
                exchange.rewind();
                client.io.stream().inspect(|stream| stream.begin_again());
            }
            Err(failure) => {
                if failure.abort.who == Who::Client {
                    // Its server is told at once that nobody waits; a close of ours would also hold the port for a minute each time.
                    server.connection.io.reset();
                }
                return Err(failure.abort);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_bytes<C, S, P, F: Future>(_: impl Fn(C, S, P) -> F) -> usize {
        size_of::<F>()
    }

    /// With the runtime's own 104 bytes, a task takes a multiple of 128: here 384.
    #[test]
    fn an_idle_connection_is_small() {
        let bytes = future_bytes(|client, session, place: [usize; 2]| run(client, session, place));
        assert!(bytes <= 280, "{bytes} bytes");
    }
}
