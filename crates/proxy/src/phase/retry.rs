//! Whether a failed exchange is tried again, and whether with another server: `retries`, `retry-on`, `option redispatch`.

use crate::phase::observe;
use crate::phase::prepare::Exchange;
use crate::phase::transfer::Failure;
use crate::plan::Backend;
use crate::stream::Stream;
use terse_balance::CookieFound;

/// Progress of an exchange when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// No byte of the request was taken by the server's kernel.
    Unsent,
    /// The server has reported that it took nothing of the request, or its connection takes no more requests (RFC 9113
    /// section 8.7).
    Refused,
    /// No byte of a response came.
    Empty,
    /// The server has reset the stream: it may have processed the request.
    Reset,
    /// No byte came, on a connection whose end counted against its server by another of its streams.
    Beside,
    /// The bytes that came were no response.
    Junk,
    /// Nothing came in time.
    Timeout,
    /// The status is among those that are tried again.
    Status(u16),
    /// The early data has to come after the handshake.
    TooEarly,
    /// A part came, which its client may join with bytes that it got coded here: the whole is asked for instead.
    Part,
    /// Part of the response has gone to the client, or the client is to blame.
    Late,
}

/// Whether a failed exchange may be tried again.
pub fn may_retry(stream: &mut Stream, exchange: &mut Exchange, failure: &Failure) -> bool {
    let Some(held) = stream.facts.backend.clone() else { return false };
    let backend: &Backend = &held;
    observe::failure(backend, stream, failure);
    // A connection that had been idle may have been closed by the server just then, and a connection of HTTP/2 ends for
    // reasons that are not its streams'. A request that can be repeated without harm is, on another connection (RFC 9110
    // section 9.2.2); repetition of others is configured by the operator.
    let repeatable = exchange.is_repeatable();
    let harmless = repeatable && stream.request.is_idempotent();
    let is_collateral = stream.facts.server_was_idle || stream.facts.server_http2.is_some();
    let sent_once = stream.facts.changed().is_some_and(|changes| changes.sent_once);
    let retry_on = &backend.retry_on;
    let allowed = match failure.kind {
        FailureKind::Unsent => repeatable,
        FailureKind::Refused if repeatable && exchange.refusals < MOST_REFUSALS => {
            // No attempt was made that could fail.
            exchange.refusals += 1;
            return true;
        }
        FailureKind::Refused => repeatable,
        _ if sent_once => false,
        FailureKind::Empty | FailureKind::Beside => harmless && is_collateral || repeatable && retry_on.empty,
        FailureKind::Reset => repeatable && retry_on.empty,
        FailureKind::Junk => repeatable && retry_on.junk,
        FailureKind::Timeout => repeatable && retry_on.timeout,
        FailureKind::Status(status) => repeatable && retry_on.statuses.contains(&status),
        FailureKind::TooEarly => {
            // That is no attempt of its own, only the other half of one, and there is a single one of it.
            return !std::mem::replace(&mut exchange.waits, true);
        }
        FailureKind::Part => {
            // Nor is this an attempt of its own, and there is a single one of it: there is no range any more.
            terse_compress::range::whole(&mut stream.request);
            return std::mem::take(&mut exchange.joins);
        }
        FailureKind::Late => false,
    };
    // The close of an idle connection does not count against its server.
    let blames_server = match failure.kind {
        FailureKind::Unsent | FailureKind::Empty => !stream.facts.server_was_idle,
        FailureKind::Refused | FailureKind::Beside => false,
        _ => true,
    };
    exchange.retries = allowed && next_attempt(stream, exchange, backend, blames_server);
    exchange.retries
}

/// Limit of immediate repetitions of a request that was refused.
const MOST_REFUSALS: u8 = 3;

/// Chooses the server of the attempt after a failed one; false when there shall be none.
pub(super) fn next_attempt(stream: &mut Stream, exchange: &mut Exchange, backend: &Backend, blames_server: bool) -> bool {
    let retries = stream.facts.retries_allowed();
    if exchange.failures >= retries {
        return false;
    }
    exchange.failures += 1;
    stream.facts.retries += 1;
    let Some(failed) = &stream.facts.server else { return true };
    if !blames_server {
        return true;
    }
    let bound = exchange.affinity.server.is_some();
    exchange.holds_on = !redispatches(backend.redispatch, exchange.failures, retries);
    if !exchange.holds_on || !bound {
        if bound {
            redispatch(&mut stream.facts.cookie_found, exchange);
        }
        exchange.failed.push(failed.index());
    }
    true
}

/// `option redispatch <interval>`: after every nth failure; a negative interval counts from the last: -1 is the last attempt.
fn redispatches(interval: i32, failures: u32, retries: u32) -> bool {
    match interval {
        0 => false,
        n if n > 0 => failures.is_multiple_of(n.unsigned_abs()),
        n => (retries + 1).checked_sub(n.unsigned_abs()).is_some_and(|first| failures.is_multiple_of(first)),
    }
}

/// Lets go of the server that the request is bound to.
pub(super) fn redispatch(found: &mut CookieFound, exchange: &mut Exchange) {
    exchange.affinity = exchange.affinity.redispatched();
    exchange.holds_on = false;
    *found = exchange.affinity.found;
}
