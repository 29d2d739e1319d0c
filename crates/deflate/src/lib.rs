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
mod parse;
mod rows;
mod sequence;
mod split;
mod symbols;
mod window;

use bits::Rest;
use lazy::{Effort, Lazy};
use parse::{Cursor, Sequences};
use sequence::Histogram;
use split::Part;
use symbols::WINDOW;

/// Levels that there are. Above them, time buys nothing with these rows.
pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=7;

/// The most bytes that a coder holds.
pub const MEMORY: usize = 1 << 20;

/// The most bytes that so many bytes of input can become.
pub const fn bound(bytes: usize) -> usize {
    // Stored blocks, each as long as the shortest that a part can become, and the end.
    bytes + bytes / 256 + 64
}

/// Bytes that are parsed before their blocks are written.
const SEGMENT: usize = 192 * 1024;

/// By level less one. Bytes of a script of 131,882 (zlib: level 5 42,511, level 6 41,945, level 7 41,908), and nanoseconds a byte:
const EFFORTS: [Effort; 7] = [
    effort(16, 0, 0),   // 42,704 (16)
    effort(32, 0, 0),   // 42,632
    effort(32, 4, 0),   // 42,358
    effort(64, 6, 0),   // 41,802 (17)
    effort(64, 8, 0),   // 41,746 (18)
    effort(258, 8, 5),  // 41,658 (19)
    effort(258, 16, 8), // 41,720, but 0.4 % less than level 6 on prose
];

const fn effort(nice: u32, lazy: u32, patient: u32) -> Effort {
    Effort { nice, lazy, patient }
}

/// A reusable coder.
pub struct Encoder {
    parser: Lazy,
    sequences: Sequences,
    parts: Vec<Part>,
}

impl Encoder {
    /// A coder of one of [`LEVELS`]; what is beyond is as the nearest.
    pub fn new(level: u8) -> Encoder {
        let effort = EFFORTS[usize::from(level.saturating_sub(1)).min(EFFORTS.len() - 1)];
        Encoder { parser: Lazy::new(effort), sequences: Sequences::new(), parts: Vec::new() }
    }

    /// Appends the coded form of `input` to `out`. Matches may refer to `dictionary`, of which the last 32 KB count: the decoder must have
    /// put it out just before.
    ///
    /// `last` ends the stream. Without it an empty stored block brings the output to a byte's border, so that another part may follow.
    pub fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) {
        let dictionary = &dictionary[dictionary.len().saturating_sub(WINDOW)..];
        let mut cursor = Cursor::new(&mut self.parser, dictionary, input);
        let mut rest = Rest::default();
        while cursor.at < input.len() {
            let start = cursor.at;
            cursor.advance(&mut self.parser, input, SEGMENT, &mut self.sequences);
            let last = last && cursor.at == input.len();
            rest = self.write(&input[start..cursor.at], last, rest, out);
        }
        if !last {
            rest = block::write_stored(&[], false, rest, out);
        } else if input.is_empty() {
            rest = block::write(&[], &[], &Histogram::of_nothing(), true, rest, out);
        }
        rest.finish(out);
    }

    /// Writes a segment, in blocks.
    fn write(&mut self, mut input: &[u8], last: bool, mut rest: Rest, out: &mut Vec<u8>) -> Rest {
        let mut sequences = &self.sequences.list[..];
        split::split(sequences, input, &mut self.parts);
        for (at, part) in self.parts.iter().enumerate() {
            let (bytes, now);
            (bytes, input) = input.split_at(part.bytes);
            (now, sequences) = sequences.split_at(part.sequences);
            rest = block::write(bytes, now, &part.histogram, last && at + 1 == self.parts.len(), rest, out);
        }
        rest
    }
}
