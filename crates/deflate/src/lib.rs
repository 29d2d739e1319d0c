//! Deflate (RFC 1951), for bytes that are all there.
//!
//! Input is copied through a ring ([`window`]), where rows of earlier positions ([`rows`]) say what has been there before; the parse
//! ([`lazy`]) makes sequences of literals and matches of it ([`sequence`]), which are cut into blocks ([`split`]); each block is
//! written in the form that is smallest ([`block`], [`header`], [`huffman`], [`bits`]). The first level has a way of its own from input
//! to symbols ([`quick`]). What has a loop for each byte or symbol is compiled more than once, for what the processor can do ([`processor`]).
//!
//! Invariant: the same input, dictionary and level give the same bytes, whatever the coder has done before, and on every processor.
//!
//! Invariant: a coder holds [`MEMORY`] bytes or less, whatever it is given, and the output is at most [`bound`] bytes.

mod bits;
mod block;
mod header;
mod huffman;
mod lanes;
mod lazy;
mod parse;
mod processor;
mod quick;
mod rows;
mod sequence;
mod split;
mod symbols;
mod window;

use bits::Rest;
use lazy::{Effort, Lazy};
use parse::{Cursor, Sequences};
use quick::Quick;
use sequence::{Histogram, Sequence};
use symbols::WINDOW;

pub use processor::Processor;

/// Levels that there are. Above them, time buys nothing with these rows.
pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=7;

/// Bytes of the shortest text for which this coder is taken. Of shorter ones it makes some larger than zlib does, by up to 0.5 %: 200
/// records of 30 KB.
const LEAST_BYTES: usize = 48 * 1024;

/// The same at the first level. At 8 KB it takes 0.63 of libdeflate's time; shorter ones pay less and less for its tables.
const LEAST_BYTES_QUICK: usize = 8 * 1024;

/// The level that stands for one of zlib's, for a text of some length: its form is no larger, and it is quicker there than libdeflate.
///
/// What has a zero among its first 4096 bytes is no text: programs come out 1.4 % larger than zlib's at level 6, 4 % at level 1.
pub fn for_zlib(level: u8, input: &[u8]) -> Option<u8> {
    let (level, least) = match level {
        1 => (1, LEAST_BYTES_QUICK),
        4 => (2, LEAST_BYTES),
        5 => (4, LEAST_BYTES),
        6 => (6, LEAST_BYTES),
        _ => return None,
    };
    (input.len() >= least && !input[..input.len().min(4096)].contains(&0)).then_some(level)
}

/// The most bytes that a coder holds.
pub const MEMORY: usize = 1 << 20;

/// The most bytes that so many bytes of input can become.
pub const fn bound(bytes: usize) -> usize {
    // Stored blocks, each as long as the shortest that a part can become, and the end.
    bytes + bytes / 256 + 64
}

/// Bytes that are parsed before their blocks are written.
const SEGMENT: usize = 192 * 1024;

/// By level less two. Bytes of four scripts of 131,882 (zlib: level 4 178,698, level 5 173,180, level 6 171,229), and nanoseconds a byte:
const EFFORTS: [Effort; 6] = [
    effort(32, 0, 0, 0), // 173,245 (8.8)
    effort(32, 4, 4, 0),
    effort(64, 6, 6, 0),    // 170,870 (9.6)
    effort(64, 8, 8, 0),    // 170,576 (9.8)
    effort(258, 8, 16, 5),  // 170,282 (10.1)
    effort(258, 32, 32, 8), // 170,101 (11.9), and 0.5 % less than level 6 on prose
];

const fn effort(nice: u32, sure: u32, lazy: u32, patient: u32) -> Effort {
    Effort { nice, sure, lazy, patient }
}

/// A reusable coder.
pub struct Encoder(Way);

/// How symbols are found.
enum Way {
    Quick(Box<Quick>),
    Rows(Box<Rows>),
}

impl Encoder {
    /// A coder of one of [`LEVELS`]; what is beyond is as the nearest.
    pub fn new(level: u8) -> Encoder {
        Encoder::on(Processor::here(), level)
    }

    /// The same, on a processor that can do so much: it gives the same bytes, which is what this is for.
    pub fn on(processor: Processor, level: u8) -> Encoder {
        Encoder(match level.checked_sub(2) {
            None => Way::Quick(Box::new(Quick::new(processor))),
            Some(level) => Way::Rows(Box::new(Rows::new(EFFORTS[usize::from(level).min(EFFORTS.len() - 1)], processor))),
        })
    }

    /// Appends the coded form of `input` to `out`. Matches may refer to `dictionary`, of which the last 32 KB count: the decoder must have
    /// put it out just before.
    ///
    /// `last` ends the stream. Without it an empty stored block brings the output to a byte's border, so that another part may follow.
    pub fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) {
        let rest = match &mut self.0 {
            Way::Quick(quick) => quick.encode(dictionary, input, last, out),
            Way::Rows(rows) => rows.encode(dictionary, input, last, out),
        };
        let rest = match (last, input) {
            (false, _) => block::write_stored(&[], false, rest, out),
            (true, []) => block::write::<[Sequence]>(Processor::here(), &[], &[], &Histogram::of_nothing(), true, rest, out),
            _ => rest,
        };
        rest.finish(out);
    }
}

/// The way of all levels but the first.
struct Rows {
    parser: Lazy,
    sequences: Sequences,
    processor: Processor,
}

impl Rows {
    fn new(effort: Effort, processor: Processor) -> Rows {
        Rows { parser: Lazy::new(effort, processor), sequences: Sequences::new(), processor }
    }

    fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) -> Rest {
        let dictionary = &dictionary[dictionary.len().saturating_sub(WINDOW)..];
        let mut cursor = Cursor::new(&mut self.parser, dictionary, input);
        let mut rest = Rest::default();
        while cursor.at < input.len() {
            let start = cursor.at;
            cursor.advance(&mut self.parser, input, SEGMENT, &mut self.sequences);
            let last = last && cursor.at == input.len();
            rest = self.write(&input[start..cursor.at], last, rest, out);
        }
        rest
    }

    /// Writes a segment, in blocks.
    fn write(&mut self, mut input: &[u8], last: bool, mut rest: Rest, out: &mut Vec<u8>) -> Rest {
        split::join(&mut self.sequences.parts);
        let mut sequences = &self.sequences.list[..];
        let parts = &self.sequences.parts;
        for (at, part) in parts.iter().enumerate() {
            let (bytes, now);
            (bytes, input) = input.split_at(part.bytes);
            (now, sequences) = sequences.split_at(part.sequences);
            rest = block::write(self.processor, bytes, now, &part.histogram, last && at + 1 == parts.len(), rest, out);
        }
        rest
    }
}
