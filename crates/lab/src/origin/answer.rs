//! An answer: its head, its body, and the pace at which the body goes out.

use crate::content::{STAMP_BYTES, stamp};
use bytes::Bytes;
use std::rc::Rc;
use std::time::Duration;

/// Response to send.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Status line and fields, each with its line end; fields that depend on the connection are added after them.
    pub(super) head: Bytes,
    pub(super) body: Body,
    pub(super) framing: Framing,
    pub(super) pace: Pace,
    /// Fields after a chunked body.
    pub(super) trailers: String,
}

/// Framing of the body's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Framing {
    /// By a length in the head.
    Length,
    /// By chunks of so many bytes.
    Chunks(usize),
    /// By the end of the connection.
    Close,
}

/// Times and pieces of sending, and the ways to break off.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Pace {
    /// Before the head.
    pub(super) delay: Duration,
    /// Before each piece of the body but the first.
    pub(super) pause: Duration,
    /// The bytes of a piece where the framing sets none; 0: as many as go.
    pub(super) piece: usize,
    /// The connection is closed after so many bytes of the body.
    pub(super) cut: Option<u64>,
    /// True if it is reset there.
    pub(super) resets: bool,
    /// True if it is closed, and nothing is sent.
    pub(super) mute: bool,
    /// The answer is sent before the request's body is read.
    pub(super) hasty: bool,
    /// The connection is closed after the answer.
    pub(super) close: bool,
}

/// A body: a block of bytes, over and over until there are enough.
#[derive(Clone, Default, Debug)]
pub(super) struct Body {
    pub(super) block: Bytes,
    /// Offset in the block at which it begins.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Offsets of the stamps; ascending.
    pub(super) stamps: Rc<[usize]>,
    /// Number that is stamped.
    pub(super) count: u64,
}

impl Body {
    /// The bytes once.
    pub(super) fn once(block: impl Into<Bytes>) -> Body {
        let block = block.into();
        Body { bytes: block.len() as u64, block, ..Body::default() }
    }

    /// Appends the bytes from `at` on, at most `most`, and never across the end of the block; the answer is how many.
    pub(super) fn put(&self, at: u64, most: usize, out: &mut Vec<u8>) -> usize {
        let length = self.block.len() as u64;
        if at >= self.bytes || length == 0 {
            return 0;
        }
        let from = ((self.start + at) % length) as usize;
        let end = from + most.min(self.block.len() - from).min(usize::try_from(self.bytes - at).unwrap_or(usize::MAX));
        let placed = out.len();
        out.extend_from_slice(&self.block[from..end]);
        self.put_stamps(from, &mut out[placed..]);
        end - from
    }

    /// Writes the stamps that fall into a part of the block, which begins at `from`.
    fn put_stamps(&self, from: usize, part: &mut [u8]) {
        let end = from + part.len();
        let first = self.stamps.partition_point(|at| at + STAMP_BYTES <= from);
        for (place, &at) in self.stamps.iter().enumerate().skip(first).take_while(|(_, at)| **at < end) {
            let skipped = from.saturating_sub(at);
            let target = &mut part[(at + skipped) - from..];
            let digits = &stamp(self.count, place)[skipped..];
            let width = digits.len().min(target.len());
            target[..width].copy_from_slice(&digits[..width]);
        }
    }
}

/// The beginning of a head.
pub(super) fn head(status: u16, fields: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\nServer: terse-lab\r\n", reason(status));
    for (name, value) in fields {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head
}

impl Answer {
    /// An answer with a length.
    pub(super) fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Answer {
        let body = Body::once(body);
        let length = body.bytes.to_string();
        let head = head(status, &[("Content-Type", kind), ("Content-Length", &length)]);
        Answer { head: head.into(), body, framing: Framing::Length, pace: Pace::default(), trailers: String::new() }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "As Asked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_the_same_however_the_body_is_cut() {
        let body = Body { stamps: [0, 20, 84].into(), count: 9, ..Body::once(vec![b'.'; 100]) };
        let mut whole = Vec::new();
        assert_eq!(body.put(0, 1000, &mut whole), 100);
        assert_eq!(whole.iter().filter(|b| **b == b'.').count(), 100 - 3 * STAMP_BYTES);
        for step in 1..40 {
            let mut cut = Vec::new();
            while body.put(cut.len() as u64, step, &mut cut) > 0 {}
            assert_eq!(cut, whole);
        }
    }

    #[test]
    fn a_block_goes_round() {
        let body = Body { bytes: 8, start: 2, ..Body::once(&b"abc"[..]) };
        let mut out = Vec::new();
        while body.put(out.len() as u64, 100, &mut out) > 0 {}
        assert_eq!(out, b"cabcabca");
    }
}
