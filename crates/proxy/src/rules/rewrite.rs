//! Edits of heads: their texts, their limit, and the consequence of a failed edit.
//!
//! An edited head may not grow beyond a buffer (`tune.bufsize`), and a request's first line must stay one. An edit that cannot be
//! done ends the evaluation with 500, or with `strict-mode off` is left out.
//!
//! Heads have a buffer to themselves. Files with `tune.maxrewrite` count on HAProxy's layout, in which the waiting body takes
//! from the same buffer, and that many bytes are kept free for rules.

use super::{Flow, RuleSet};
use crate::inspection::Side;
use crate::reply;
use crate::stream::Stream;
use terse_balance::Count;
use terse_message::{BodyLength, Fields};
use terse_sample::LogFormat;

/// Writes a format's text and hands it on.
pub(super) fn with_text<R>(format: &LogFormat, stream: &mut Stream, then: impl FnOnce(&mut Stream, &[u8]) -> R) -> R {
    let session = stream.facts.session.clone();
    let mut made = None;
    let text = match format.as_text() {
        Some(text) => text,
        None => {
            let text = made.insert(session.worker.take_scratch());
            format.write(&stream.env(), text);
            text
        }
    };
    let result = then(stream, text);
    if let Some(text) = made {
        session.worker.give_scratch(text);
    }
    result
}

/// Returns the continuation after an edit. An edit that could not be done is counted.
pub(super) fn outcome(done: bool, stream: &Stream) -> Flow {
    if done { Flow::Next } else { failed(stream) }
}

#[cold]
fn failed(stream: &Stream) -> Flow {
    let facts = &stream.facts;
    let worker = facts.session.worker.index;
    facts.frontend().tally.of(worker).rewrite_failures.add(1);
    facts.session.address_counters().into_iter().for_each(|counters| counters.rewrite_failures.add(1));
    if let Some(backend) = facts.backend() {
        backend.tally.of(worker).rewrite_failures.add(1);
    }
    if let Some(server) = &facts.server {
        server.counters.bump(Count::RewriteFailures);
    }
    if facts.soft_rewrites { Flow::Next } else { Flow::Deny(Box::new(reply::page(stream, 500))) }
}

/// The most bytes that a head may have when a set of rules edits it. Heads of answers made here have a buffer to themselves.
pub(super) fn limit(stream: &Stream, set: RuleSet) -> usize {
    let buffer = stream.facts.plan().process.buffer_bytes;
    match set {
        RuleSet::AfterResponse => buffer,
        _ => buffer.min(stream.facts.head_most),
    }
}

/// Makes a head share the buffer with the bytes that wait after it, where `tune.maxrewrite` asks for that: before rules see
/// the head.
pub fn share(head: Side, waiting: &[u8], stream: &mut Stream) {
    let process = &stream.facts.plan().process;
    let Some(reserve) = process.rewrite_bytes else { return };
    let (fields, body) = match head {
        Side::Request => (&stream.request.fields, stream.request.body),
        Side::Response => (&stream.response.fields, stream.response.body),
    };
    // The bytes after the body belong to the next message.
    let body = match body {
        BodyLength::None => 0,
        BodyLength::Exact(n) => usize::try_from(n).unwrap_or(usize::MAX),
        BodyLength::Framed | BodyLength::UntilClose => usize::MAX,
    };
    let free = process.buffer_bytes.saturating_sub(waiting.len().min(body));
    stream.facts.head_most = free.max(bytes(fields).saturating_add(reserve));
}

/// Bytes of a field's line beside its name and its value.
pub(super) const FIELD_BYTES: usize = ": \r\n".len();

/// Whether a head stays within a limit when so many bytes are added.
pub(super) fn fits(fields: &Fields, more: usize, limit: usize) -> bool {
    // The head's size in memory is never less than its text; counting is for heads that are near the limit.
    fields.capacity().saturating_add(more) <= limit || bytes(fields).saturating_add(more) <= limit
}

fn bytes(fields: &Fields) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len() + FIELD_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_stay_within_their_limit() {
        let mut fields = Fields::default();
        fields.push(b"A", &[b'x'; 95]);
        assert!(fits(&fields, 0, 100));
        assert!(!fits(&fields, 1, 100));
        assert!(fits(&fields, 1_000, 10_000));
        assert!(!fits(&fields, usize::MAX, 10_000));
    }
}
