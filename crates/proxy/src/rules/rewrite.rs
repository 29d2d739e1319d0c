//! Edits of heads: their texts, their limit, and what follows one that cannot be done.
//!
//! An edited head may not grow beyond a buffer (`tune.bufsize`), and a request's first line must stay one. An edit that cannot be
//! done ends the evaluation with 500, or with `strict-mode off` is left out.

use super::Flow;
use crate::reply;
use crate::stream::Stream;
use terse_message::Fields;
use terse_sample::LogFormat;

/// Writes a format's text and hands it on.
pub(super) fn with_text<R>(format: &LogFormat, stream: &mut Stream, then: impl FnOnce(&mut Stream, &[u8]) -> R) -> R {
    if let Some(text) = format.as_text() {
        return then(stream, text);
    }
    let session = stream.facts.session.clone();
    let mut text = session.worker.take_scratch();
    format.write(&stream.env(), &mut text);
    let result = then(stream, &text);
    session.worker.give_scratch(text);
    result
}

/// What follows an edit.
pub(super) fn outcome(done: bool, stream: &Stream) -> Flow {
    if done || stream.facts.soft_rewrites { Flow::Next } else { Flow::Deny(Box::new(reply::page(&stream.facts, 500))) }
}

/// The most bytes that a head may have.
pub(super) fn limit(stream: &Stream) -> usize {
    stream.facts.plan().process.buffer_bytes
}

/// Whether a head stays within a limit when so many bytes are added.
pub(super) fn fits(fields: &Fields, more: usize, limit: usize) -> bool {
    // What the head holds in memory is never less than what it says; counting is for heads that are near the limit.
    fields.capacity().saturating_add(more) <= limit || bytes(fields).saturating_add(more) <= limit
}

fn bytes(fields: &Fields) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum()
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
