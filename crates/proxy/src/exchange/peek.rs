//! Bytes that have come from a peer, lent to rules.

use super::framing::Framing;
use crate::io::Buffer;
use std::cell::OnceCell;
use std::ops::Range;
use terse_http::h1::{self, ChunkDecoder, Parsed, Step};
use terse_message::{BodyLength, Malformed, Request};

/// Bytes that have come and have not gone on, taken out of their side while rules look at them.
#[derive(Default)]
pub struct Peek {
    buffer: Buffer,
    /// The number of bytes at the front that are to go on already.
    gone: usize,
    /// The chunks that the bytes are in, and the number of bytes that are left of the first chunk; `None` where the bytes are
    /// the data.
    chunks: Option<(ChunkDecoder, usize)>,
    /// The data of chunks, put together, and whether that is all of it.
    joined: OnceCell<(Vec<u8>, bool)>,
}

/// A body, as far as it is there.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// Its bytes, without frames.
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub whole: bool,
}

/// A side whose bytes rules may look at.
pub trait Lend {
    /// Takes the bytes that have come out of the side.
    fn lend(&mut self) -> Peek;

    /// Puts it back.
    fn restore(&mut self, peek: Peek);
}

impl Peek {
    /// A buffer's bytes, framed so.
    pub(super) fn of(buffer: &mut Buffer, framing: &Framing) -> Peek {
        let chunks = match framing {
            Framing::Chunked(chunks) => Some((chunks.decoder.clone(), chunks.found)),
            _ => None,
        };
        Peek { buffer: std::mem::take(buffer), gone: 0, chunks, joined: OnceCell::new() }
    }

    /// The buffer, to be put back.
    pub(super) fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// The bytes, frames included.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.filled().get(self.gone..).unwrap_or_default()
    }

    /// The number of bytes before them that are to go on already.
    pub fn gone(&self) -> usize {
        self.gone
    }

    /// Lets bytes at the front go on: no rule sees them any more. Returns the number of all that do.
    pub fn let_go(&mut self, bytes: usize) -> usize {
        self.gone = self.gone.saturating_add(bytes).min(self.buffer.filled().len());
        self.gone
    }

    /// Replaces `range` of [`Peek::bytes`]. False where the result does not fit into the buffer, or the range is none of its;
    /// then nothing has changed.
    pub fn replace(&mut self, range: Range<usize>, by: &[u8]) -> bool {
        let Some(rest) = self.bytes().get(range.start..range.end) else { return false };
        let all = self.buffer.filled();
        if all.len() - rest.len() + by.len() > self.buffer.size() {
            return false;
        }
        let (head, tail) = (&all[..self.gone + range.start], &all[self.gone + range.end..]);
        let (edited, before) = ([head, by, tail].concat(), all.len());
        self.buffer.consume(before);
        self.buffer.room()[..edited.len()].copy_from_slice(&edited);
        self.buffer.advance(edited.len());
        self.joined.take();
        true
    }

    /// Whether no more can come: the buffer is full.
    pub fn is_full(&self) -> bool {
        self.buffer.is_full() && !self.buffer.is_released()
    }

    /// Parses the head of a request that the bytes begin with. Returns whether more of it must come, and whether it is the
    /// preface of HTTP/2. Bytes that are no head leave the request empty.
    pub fn sniff(&self, request: &mut Request) -> (bool, bool) {
        let parsed = h1::parse_request(self.bytes(), request);
        if !matches!(parsed, Ok(Parsed::Complete(_))) {
            request.clear();
        }
        (parsed == Ok(Parsed::Partial), parsed == Err(Malformed::Preface))
    }

    /// The body that these bytes begin with; `length` is that of its head.
    pub fn body(&self, length: BodyLength) -> Body<'_> {
        let bytes = self.bytes();
        match (length, &self.chunks) {
            (BodyLength::None, _) => Body { bytes: b"", whole: true },
            (BodyLength::Exact(n), _) => match bytes.get(..usize::try_from(n).unwrap_or(usize::MAX)) {
                Some(bytes) => Body { bytes, whole: true },
                None => Body { bytes, whole: false },
            },
            (BodyLength::Framed, Some((decoder, found))) => {
                let (bytes, whole) = self.joined.get_or_init(|| join(bytes, decoder.clone(), *found));
                Body { bytes, whole: *whole }
            }
            (BodyLength::Framed | BodyLength::UntilClose, _) => Body { bytes, whole: false },
        }
    }
}

/// The data of chunks without their frames, and whether the last chunk is among them; `found` bytes at the front are data. A
/// malformed chunk ends it; it is found again, and reported, when the body is moved.
pub(super) fn join(bytes: &[u8], mut decoder: ChunkDecoder, found: usize) -> (Vec<u8>, bool) {
    let mut body = bytes.get(..found).unwrap_or(bytes).to_vec();
    let mut at = found;
    while let Ok((used, step)) = decoder.step(bytes.get(at..).unwrap_or_default()) {
        match step {
            Step::Data(range) => body.extend_from_slice(bytes.get(at..).and_then(|rest| rest.get(range)).unwrap_or_default()),
            Step::More => return (body, false),
            Step::End => return (body, true),
        }
        at += used;
    }
    (body, false)
}

/// Bytes without a side.
#[cfg(test)]
impl Lend for Buffer {
    fn lend(&mut self) -> Peek {
        Peek::of(self, &Framing::UntilClose)
    }

    fn restore(&mut self, peek: Peek) {
        *self = peek.into_buffer();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_replaced_as_far_as_there_is_room() {
        let pool = crate::io::Pool::new(8, std::sync::Arc::new(terse_compress::Limit::new(1024)));
        let mut buffer = pool.take().unwrap();
        buffer.room()[..5].copy_from_slice(b"abcde");
        buffer.advance(5);
        let mut peek = buffer.lend();
        assert_eq!((peek.let_go(1), peek.bytes()), (1, &b"bcde"[..]));
        assert!(peek.replace(1..3, b"XYZ") && peek.bytes() == b"bXYZe");
        assert!(!peek.replace(0..0, b"1234") && !peek.replace(5..6, b""), "neither of these");
        assert!(peek.replace(5..5, b"12") && peek.bytes() == b"bXYZe12");
        assert_eq!((peek.let_go(99), peek.bytes()), (8, &b""[..]));
        buffer.restore(peek);
        assert_eq!(buffer.filled(), b"abXYZe12", "they go on from where they are");
        let mut none = Buffer::default().lend();
        assert!(!none.replace(0..0, b"x"), "a buffer without memory has no room");
    }

    #[test]
    fn chunks_are_joined_from_where_their_decoder_stands() {
        let wire = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(join(wire, ChunkDecoder::default(), 0), (b"abcde".to_vec(), true));
        assert_eq!(join(&wire[..9], ChunkDecoder::default(), 0), (b"abc".to_vec(), false));
        let mut decoder = ChunkDecoder::default();
        let (_, step) = decoder.step(wire).unwrap();
        let Step::Data(range) = step else { panic!("{step:?}") };
        assert_eq!(join(&wire[range.start..], decoder, range.len()), (b"abcde".to_vec(), true));
    }
}
