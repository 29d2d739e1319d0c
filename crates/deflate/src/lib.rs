//! Deflate (RFC 1951), for bytes that are all there.
//!
//! Input is copied through a ring ([`window`]), where rows of earlier positions ([`rows`]) say what has been there before; the parse
//! ([`lazy`]) makes sequences of literals and matches of it ([`sequence`]), which are cut into blocks ([`split`]); each block is
//! written in the form that is smallest ([`block`], [`header`], [`huffman`], [`bits`]).
//!
//! Invariant: the same input, dictionary and level give the same bytes, whatever the coder has done before.
//!
//! Invariant: a coder holds [`MEMORY`] bytes or less, whatever it is given, and the output is at most [`bound`] bytes.

mod bits;
mod block;
mod header;
mod huffman;
mod lanes;
mod lazy;
mod rows;
mod sequence;
mod split;
mod symbols;
mod window;

use bits::Rest;
use lazy::{Cursor, Effort, Sequences};
use rows::Rows;
use sequence::Histogram;
use split::Part;
use symbols::WINDOW;
use window::Window;

/// Bytes that are parsed before their blocks are written.
const SEGMENT: usize = 192 * 1024;

/// Levels that there are.
pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=9;

/// The most bytes that a coder holds.
pub const MEMORY: usize = 1 << 20;

/// The most bytes that so many bytes of input can become.
pub const fn bound(bytes: usize) -> usize {
    // Stored blocks, each as long as the shortest that a part can become, and the end.
    bytes + bytes / 256 + 64
}

/// By level.
const EFFORTS: [Effort; 10] = {
    const fn effort(lazy: u32, nice: u32) -> Effort {
        Effort { lazy, nice }
    }
    [
        effort(0, 16),
        effort(0, 16),
        effort(0, 32),
        effort(4, 32),
        effort(8, 64),
        effort(16, 64),
        effort(32, 130),
        effort(64, 258),
        effort(258, 258),
        effort(258, 258),
    ]
};

/// A reusable coder.
pub struct Encoder {
    window: Window,
    rows: Rows,
    sequences: Sequences,
    parts: Vec<Part>,
    effort: Effort,
}

impl Encoder {
    /// A coder of a level, 1 to 9.
    pub fn new(level: u8) -> Encoder {
        Encoder {
            window: Window::new(),
            rows: Rows::new(),
            sequences: Sequences::new(),
            parts: Vec::new(),
            effort: EFFORTS[usize::from(level).min(EFFORTS.len() - 1)],
        }
    }

    /// Appends the deflate stream of `input` to `out`.
    pub fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) {
        let dictionary = &dictionary[dictionary.len().saturating_sub(WINDOW)..];
        self.rows.reset(dictionary.len() + input.len());
        self.window.reset(dictionary);
        let mut cursor = Cursor { at: 0, filled: 0, base: dictionary.len() as u16 };
        cursor.filled = self.window.fill(input, 0);
        for at in 0..dictionary.len() {
            self.rows.insert(&self.window, at as u16);
        }
        let mut rest = Rest::default();
        while cursor.at < input.len() {
            self.segment(input, &mut cursor, last, &mut rest, out);
        }
        if !last {
            rest = block::write_stored(&[], false, rest, out);
        } else if input.is_empty() {
            let mut histogram = Histogram::EMPTY;
            histogram.end();
            rest = block::write(&[], &[], &histogram, true, rest, out);
        }
        rest.finish(out);
    }

    fn segment(&mut self, input: &[u8], cursor: &mut Cursor, last: bool, rest: &mut Rest, out: &mut Vec<u8>) {
        self.sequences.list.clear();
        let start = cursor.at;
        lazy::parse(&mut self.rows, &mut self.window, input, cursor, SEGMENT, self.effort, &mut self.sequences);
        let mut bytes = &input[start..cursor.at];
        let mut sequences = &self.sequences.list[..];
        split::split(sequences, bytes, &mut self.parts);
        let last = last && cursor.at == input.len();
        for (at, part) in self.parts.iter().enumerate() {
            let (input, later) = bytes.split_at(part.bytes);
            let (now, later_sequences) = sequences.split_at(part.sequences);
            *rest = block::write(input, now, &part.histogram, last && at + 1 == self.parts.len(), *rest, out);
            (bytes, sequences) = (later, later_sequences);
        }
    }
}

/// An array on the heap that was never on the stack.
fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("it was made with that length"),
    }
}
