//! Timers: the duration of each phase of a stream, in milliseconds, -1 for a phase that it did not come to.
//!
//! ```text
//! accepted  first byte   head read   server chosen   connected   response's head   last byte
//!   |--- Ti ---|--- TR ---|---- Tw ----|---- Tc ----|----- Tr -----|----- Td -----|
//!              |------------------------------ Ta --------------------------------|
//!   |----------------------------------- Tt --------------------------------------|
//! ```

use super::alias::still;
use super::facts;
use crate::facts::Times;
use std::time::Instant;
use terse_sample::{Alias, Env, Fetch, Needs, Type, Value};

/// The table of fetches.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("req.timer.idle", Type::Int, "How long the connection was idle before the request.", |_, env| timer(env, idle)),
    Fetch::one("req.timer.hdr", Type::Int, "How long the request's head took to come.", |_, env| timer(env, head)),
    Fetch::one("req.timer.tq", Type::Int, "`req.timer.idle` and `req.timer.hdr`.", |_, env| timer(env, request)),
    Fetch::one("req.timer.queue", Type::Int, "How long the request waited for a server.", |_, env| timer(env, queue))
        .needs(Needs::SERVER),
    Fetch::one("bc.timer.connect", Type::Int, "How long it took to connect to the server.", |_, env| timer(env, connect))
        .needs(Needs::SERVER),
    Fetch::one("res.timer.hdr", Type::Int, "How long the server took to begin its response.", |_, env| timer(env, response))
        .needs(Needs::RESPONSE),
    Fetch::one("res.timer.data", Type::Int, "How long the response's body took.", |_, env| body(env)).needs(Needs::RESPONSE),
    Fetch::one("txn.timer.total", Type::Int, "From the first byte of the request to the last of the response.", |_, env| {
        timer(env, active)
    }),
    Fetch::one("txn.timer.user", Type::Int, "The same, as the client saw it.", |_, env| timer(env, active)),
    Fetch::one("fc.timer.handshake", Type::Int, "How long the handshake of the client's connection took.", |_, env| {
        timer(env, |times| times.handshake_ms)
    }),
    Fetch::one("fc.timer.total", Type::Int, "`txn.timer.total`, and what was idle before.", |_, env| timer(env, total)),
];

/// The table of aliases.
pub(super) const ALIASES: &[Alias] = &[
    Alias::number("Ti", "How long the connection was idle before the request.", |env| timer(env, idle)),
    Alias::number("TR", "How long the request's head took to come.", |env| timer(env, head)),
    Alias::number("Tq", "`%Th`, `%Ti` and `%TR`.", |env| timer(env, request)),
    Alias::number("Tw", "How long the request waited for a server.", |env| timer(env, queue)),
    Alias::number("Tc", "How long it took to connect to the server.", |env| timer(env, connect)),
    Alias::number("Tr", "How long the server took to begin its response.", |env| timer(env, response)),
    Alias::number("Td", "How long the response's body took.", body),
    Alias::number("Ta", "From the first byte of the request to the last of the response.", |env| {
        timer(env, active).map(|t| soon(env, t))
    }),
    Alias::number("Tu", "The same, as the client saw it.", |env| timer(env, active).map(|t| soon(env, t))),
    Alias::number("Th", "How long the handshake of the client's connection took.", |env| timer(env, |times| times.handshake_ms)),
    Alias::number("Tt", "`%Ta`, and what was idle before.", |env| timer(env, total).map(|t| soon(env, t))),
];

fn timer<'a>(env: &Env<'a>, of: fn(&Times) -> i64) -> Option<Value<'a>> {
    Some(Value::Int(of(&facts(env)?.times)))
}

/// A connection of bytes has no request and no head: all after the connection to the server is data.
fn body<'a>(env: &Env<'a>) -> Option<Value<'a>> {
    let facts = facts(env)?;
    let request = facts.times.request.filter(|_| facts.version.is_some());
    Some(Value::Int(data(&Times { request, ..facts.times })))
}

fn soon<'a>(env: &Env<'a>, number: Value<'a>) -> Value<'a> {
    facts(env).map_or(Value::Int(-1), |facts| still(facts, number))
}

fn idle(times: &Times) -> i64 {
    times.idle_ms
}

fn head(times: &Times) -> i64 {
    Times::between(Some(times.start), times.request)
}

fn request(times: &Times) -> i64 {
    times.request.map_or(-1, |request| times.handshake_ms + times.idle_ms + Times::between(Some(times.start), Some(request)))
}

fn queue(times: &Times) -> i64 {
    Times::between(times.request.or(Some(times.start)), times.queued)
}

fn connect(times: &Times) -> i64 {
    Times::between(times.queued, times.connected)
}

fn response(times: &Times) -> i64 {
    Times::between(times.connected, times.response)
}

fn data(times: &Times) -> i64 {
    let from = times.response.or(if times.request.is_none() { times.connected } else { None });
    if from.is_some() { Times::between(from, Some(end(times))) } else { -1 }
}

fn active(times: &Times) -> i64 {
    Times::between(Some(times.start), Some(end(times)))
}

fn total(times: &Times) -> i64 {
    times.handshake_ms + times.idle_ms + active(times)
}

/// The end, or now.
fn end(times: &Times) -> Instant {
    times.end.unwrap_or_else(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn times(steps: [Option<u64>; 5]) -> [i64; 9] {
        let start = Instant::now();
        let at = |ms: Option<u64>| ms.map(|ms| start + Duration::from_millis(ms));
        let [request, queued, connected, response, end] = steps.map(at);
        let times = Times { start, start_unix_us: 0, handshake_ms: 0, idle_ms: 7, request, queued, connected, response, end };
        let all: [fn(&Times) -> i64; 9] = [idle, head, super::request, queue, connect, super::response, data, active, total];
        all.map(|of| of(&times))
    }

    #[test]
    fn parts_of_the_way() {
        assert_eq!(times([Some(10), Some(30), Some(60), Some(100), Some(150)]), [7, 10, 17, 20, 30, 40, 50, 150, 157]);
        // Answered here.
        assert_eq!(times([Some(10), None, None, None, Some(10)]), [7, 10, 17, -1, -1, -1, -1, 10, 17]);
        // A server that does not answer.
        assert_eq!(times([Some(0), Some(0), Some(1), None, Some(9)]), [7, 0, 7, 0, 1, -1, -1, 9, 16]);
        // Never a whole request.
        assert_eq!(times([None, None, None, None, Some(9)]), [7, -1, -1, -1, -1, -1, -1, 9, 16]);
        // Bytes.
        assert_eq!(times([None, Some(1), Some(3), None, Some(9)]), [7, -1, -1, 1, 2, -1, 6, 9, 16]);
    }
}
