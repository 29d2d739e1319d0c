//! HTTP/1 with a client: requests and responses on a connection, in sequence.

use super::downstream::ClientConnection;
use super::{detect, linger};
use crate::exchange::{After, Client, cancel};
use crate::io::{Buffer, clock};
use crate::phase::serve::{self, Before, Cut};
use crate::phase::{finish, record};
use crate::registry::{Place, Registry};
use crate::session::Session;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use terse_http::h1::{self, Parsed};
use terse_message::Who;

/// Serves requests, as long as they come. After more than a moment of waiting for the next request, a connection is this
/// future and nothing else: no buffer, no stream. The state that requests need lives in the boxed future of [`converse`].
///
/// Returns whether the connection speaks HTTP/2, of which nothing but the preface may have been read.
pub async fn serve(client: &mut ClientConnection, session: &Rc<Session>) -> bool {
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
                    Box::pin(silent(client, session, Who::Client)).await;
                }
                break;
            }
            Arrival::Late => {
                if session.requests.get() == 0 {
                    Box::pin(silent(client, session, Who::ClientTimeout)).await;
                }
                break;
            }
        }
        let began = clock::now();
        // Boxed, so that an incomplete request costs as much as an idle connection does, and little more.
        let cut = if is_half(client, session) { Box::pin(rest_of_head(client, session, began)).await } else { None };
        match Box::pin(converse(client, session, &mut idle_since, began, cut)).await {
            After::Request => {}
            After::Close | After::Linger => break,
            After::Reset => {
                client.io.reset();
                break;
            }
        }
    }
    if !client.io.is_sent() {
        client.timer.set(session.frontend().timeouts.client);
        Box::pin(client.deliver()).await;
    }
    false
}

/// Ends a connection on which no request has come.
async fn silent(connection: &mut ClientConnection, session: &Rc<Session>, who: Who) {
    let mut client = Client::new(connection, session.worker.take_scratch());
    finish::silent(&mut client, session, who).await;
    session.worker.give_scratch(client.take_out());
}

/// Time for which a connection keeps the room of a request for the next request: busy clients send it within a moment. A
/// longer time would gain little, and would fragment the memory of many connections that were busy at the same time.
const MOMENT: Duration = Duration::from_millis(10);

/// Time for which a draining worker waits for the request after a response without `Connection: close`.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves requests in sequence, as long as the next one comes soon.
async fn converse(
    client: &mut ClientConnection,
    session: &Rc<Session>,
    idle_since: &mut Instant,
    mut began: Instant,
    mut cut: Option<Cut>,
) -> After {
    let mut place = Registry::enter(session);
    loop {
        if session.requests.get() > 0 {
            record::accepted(session);
        }
        let before = Before { cancel: &session.cancel, idle_since: *idle_since, began, cut: cut.take() };
        let after = exchange(client, session, &mut place, before).await;
        if after != After::Request {
            return after;
        }
        *idle_since = clock::now();
        let moment = keep_alive(session).map_or(MOMENT, |limit| limit.min(MOMENT));
        match wait(client, session, Some(moment)).await {
            Arrival::Bytes if is_half(client, session) => return After::Request,
            Arrival::Bytes => began = clock::now(),
            Arrival::Late => return After::Request,
            Arrival::Nothing => return After::Close,
        }
    }
}

/// Serves a request.
async fn exchange(connection: &mut ClientConnection, session: &Rc<Session>, place: &mut Place, before: Before<'_>) -> After {
    let mut client = Client::new(connection, session.worker.take_scratch());
    let served = serve::run(&mut client, session, place, before).await;
    session.worker.give_scratch(client.take_out());
    if served.after == After::Linger {
        let rest = client.take_rest();
        Box::pin(linger::linger(connection, session, rest, served.held_back)).await;
    }
    served.after
}

/// Whether the head of a request has begun to come, and more of it must come before it can be judged.
fn is_half(client: &ClientConnection, session: &Session) -> bool {
    let bytes = client.buffer.filled();
    // Nearly all heads come whole, and most of them with no bytes after them.
    if bytes.ends_with(HEAD_END) || client.buffer.is_full() || memchr::memmem::find(bytes, HEAD_END).is_some() {
        return false;
    }
    let worker = &session.worker;
    let mut request = worker.requests.take().unwrap_or_default();
    let parsed = h1::parse_request_with(bytes, &mut request, session.frontend().reading);
    worker.requests.give(request.fields.capacity(), || {
        request.clear();
        request
    });
    parsed == Ok(Parsed::Partial)
}

/// The end of a head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Waits for the rest of a head that [is half](is_half) there; returns the reason if anything but the head's end ended the
/// wait. The exchange is listed meanwhile, and can be ended.
async fn rest_of_head(client: &mut ClientConnection, session: &Rc<Session>, began: Instant) -> Option<Cut> {
    let mut place = Registry::enter(session);
    let figures = place.figures();
    figures.open(session.worker.number_stream(), began);
    let timeouts = &session.frontend().timeouts;
    client.timer.set(timeouts.request.or(timeouts.client));
    let waited = cancel::until!(&session.cancel, async {
        loop {
            if let Err(broken) = client.more().await {
                return Some(Cut::Broken(broken));
            }
            if !is_half(client, session) {
                return None;
            }
        }
    });
    figures.close();
    waited.unwrap_or_else(|who| Some(Cut::Cancelled(who)))
}

/// Time limit of a client's silence before its next request.
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
/// A worker that drains closes idle connections. A connection whose response had begun before that had no `Connection:
/// close`: its next request is waited for, and the response to that carries it.
fn wait<'a>(client: &'a mut ClientConnection, session: &'a Session, limit: Option<Duration>) -> impl Future<Output = Arrival> + 'a {
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
    // A wait for a buffer, where the pool has none.
    let mut room: Option<Pin<Box<dyn Future<Output = Buffer> + 'a>>> = None;
    poll_fn(move |cx| {
        loop {
            if let Some(waiting) = &mut room {
                client.buffer = ready!(waiting.as_mut().poll(cx));
                room = None;
            }
            match poll_first_bytes(client, session, cx) {
                Poll::Ready(Some(arrival)) => return Poll::Ready(arrival),
                Poll::Ready(None) => room = Some(Box::pin(session.worker.room_for_request())),
                Poll::Pending if closes_idle && !session.worker.is_running() => return Poll::Ready(Arrival::Nothing),
                Poll::Pending if client.timer.is_due(cx) => return Poll::Ready(Arrival::Late),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
}

/// Reads, once there are bytes to read, unless the client has sent its next request already; `None` when a buffer is needed
/// and there is none.
fn poll_first_bytes(client: &mut ClientConnection, session: &Session, cx: &mut Context<'_>) -> Poll<Option<Arrival>> {
    let ClientConnection { io, buffer, .. } = client;
    if !buffer.is_empty() {
        return Poll::Ready(Some(Arrival::Bytes));
    }
    if buffer.is_released() {
        if io.poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let worker = &session.worker;
        let is_open = !worker.plan.limits.memory.is_closed();
        match is_open.then(|| worker.pools.small.take()).flatten() {
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
