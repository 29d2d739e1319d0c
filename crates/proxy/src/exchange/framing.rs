//! Framing of a body, and its remaining length.

use super::held::Held;
use super::replay::Again;
use crate::io::Buffer;
use terse_http::h1::{ChunkDecoder, Step};
use terse_message::{BodyLength, Fields, Malformed, Request, Response, Version};

/// Framing of a body.
#[derive(Debug, Default)]
pub enum Framing {
    /// It has ended, or there was none.
    #[default]
    Done,
    /// The number of bytes that are left.
    Exact(u64),
    /// In chunks.
    Chunked(Box<Chunks>),
    /// In frames of HTTP/2, which say where it ends.
    Frames(Box<Frames>),
    /// All until the peer closes: a body without a length, or a tunnel.
    UntilClose,
    /// It is in memory: nothing is read.
    Held(Held),
    /// Some of it was sent before, and comes from memory first.
    Again(Box<Again>),
}

/// A body in chunks.
#[derive(Debug, Default)]
pub struct Chunks {
    pub(super) decoder: ChunkDecoder,
    /// Bytes of data that were found at the front of the buffer.
    pub(super) found: usize,
    /// The trailers, once the last chunk has come.
    pub(super) trailers: Fields,
}

/// A body in frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// Remaining bytes of data, where the head gives their number.
    pub(super) left: Option<u64>,
    pub(super) has_ended: bool,
    /// The trailers, once the body has ended.
    pub(super) trailers: Option<Box<Fields>>,
}

impl Framing {
    /// The framing of a body of this length, in HTTP/1.
    pub fn new(length: BodyLength) -> Framing {
        match length {
            BodyLength::None | BodyLength::Exact(0) => Framing::Done,
            BodyLength::Exact(n) => Framing::Exact(n),
            BodyLength::Framed => Framing::Chunked(Box::default()),
            BodyLength::UntilClose => Framing::UntilClose,
        }
    }

    /// The framing of a request's body.
    pub fn of(request: &Request) -> Framing {
        match request.body {
            BodyLength::Framed if request.version == Version::Http2 => Framing::Frames(Box::default()),
            length => Framing::new(length),
        }
    }

    /// The framing of a server's response.
    pub fn of_response(response: &Response) -> Framing {
        let left = match response.body {
            BodyLength::Exact(n) => Some(n),
            _ => None,
        };
        match response.body {
            BodyLength::Exact(1..) | BodyLength::Framed if response.version == Version::Http2 => {
                Framing::Frames(Box::new(Frames { left, ..Frames::default() }))
            }
            length => Framing::new(length),
        }
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        matches!(self, Framing::Done)
    }

    /// The part of a body in these bytes, counted up to about `enough`. Frames that lie with their connection are left out.
    pub(super) fn at_hand(&self, filled: &[u8], enough: u64) -> AtHand {
        let here = filled.len() as u64;
        let (bytes, whole) = match self {
            Framing::Done => (0, true),
            Framing::Held(held) => (held.left(), true),
            Framing::Again(again) => (again.data().len() as u64, again.rest().is_done()),
            Framing::Exact(left) => (here, here >= *left),
            Framing::UntilClose => (here, false),
            Framing::Frames(frames) => (here, frames.has_ended),
            Framing::Chunked(chunks) => return chunks.walk(filled, enough).0,
        };
        AtHand { bytes, whole, malformed: None }
    }

    /// Drops the rest of a body from its buffer, if all of it is there; returns whether nothing is left to come.
    pub(super) fn skip(&mut self, buffer: &mut Buffer) -> bool {
        while let Framing::Again(again) = self {
            *self = again.take_rest();
        }
        let bytes = match self {
            Framing::Done | Framing::Held(_) => 0,
            Framing::Exact(left) if *left <= buffer.filled().len() as u64 => *left as usize,
            Framing::Chunked(chunks) => match chunks.walk(buffer.filled(), u64::MAX) {
                (AtHand { whole: true, .. }, bytes) => bytes,
                _ => return false,
            },
            Framing::Exact(_) | Framing::UntilClose | Framing::Frames(_) | Framing::Again(_) => return false,
        };
        buffer.consume(bytes);
        *self = Framing::Done;
        true
    }
}

/// The part of a body that has come.
pub(super) struct AtHand {
    /// Bytes of data.
    pub(super) bytes: u64,
    /// Whether the body ends with them.
    pub(super) whole: bool,
    /// The fault in the bytes after them.
    pub(super) malformed: Option<Malformed>,
}

impl Chunks {
    /// The part of the remaining chunks in these bytes, counted up to about `enough`, and the number of bytes that it takes.
    fn walk(&self, filled: &[u8], enough: u64) -> (AtHand, usize) {
        let (mut ahead, mut at) = (self.decoder.clone(), self.found);
        let mut found = AtHand { bytes: self.found as u64, whole: false, malformed: None };
        while found.bytes < enough
            && let Some(rest) = filled.get(at..)
        {
            let (used, step) = match ahead.step(rest) {
                Ok(stepped) => stepped,
                Err(malformed) => {
                    found.malformed = Some(malformed);
                    break;
                }
            };
            at += used;
            match step {
                Step::Data(data) => found.bytes += data.len() as u64,
                Step::More => break,
                Step::End => {
                    found.whole = true;
                    break;
                }
            }
        }
        (found, at)
    }
}
