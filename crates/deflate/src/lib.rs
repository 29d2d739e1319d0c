//! Deflate (RFC 1951): coding of bytes that are all there, and decoding of bytes as they come ([`decode`]).
//!
//! Input is copied through a ring ([`window`]), where rows of earlier positions ([`rows`]) say what has been there before; the parse
//! ([`lazy`]) makes sequences of literals and matches of it ([`sequence`]), which are cut into blocks ([`split`]); each block is
//! written in the form that is smallest ([`block`], [`header`], [`huffman`], [`bits`]). The first two levels have a way of their own from input
//! to symbols ([`quick`]). What comes in pieces goes the same ways with smaller tables, which are kept between ([`stream`]).
//! What has a loop for each byte or symbol is compiled more than once, for what the processor can do ([`processor`]). Whole
//! streams are opened at their end, so that others can follow ([`splice_streams`]).
//!
//! Invariant: the same input, dictionary and level give the same bytes, whatever the coder has done before, and on every processor.
//!
//! Invariant: a coder holds [`MEMORY`] bytes or less, whatever it is given, a stream [`STREAMING`] bytes between pushes, and the output is at most [`bound`] bytes.

mod bits;
mod block;
pub mod decode;
mod header;
mod huffman;
mod lanes;
mod lazy;
mod parse;
mod processor;
mod quick;
mod rows;
mod sequence;
pub mod splice_streams;
mod split;
mod stream;
mod symbols;
mod window;

use bits::Rest;
use lazy::{Effort, Lazy};
use parse::{Cursor, Sequences};
use quick::Quick;
use rows::Nature;
use symbols::WINDOW;

pub use processor::Processor;
pub use stream::{Flush, Lists, RESTING, Room, STREAMING, Stock, Stream, Table};

/// Levels that there are. Above them, time buys nothing with these rows.
pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=8;

/// Bytes of the shortest text for which this coder is taken: shorter ones come out larger than zlib's now and then, by up to 0.3 %.
const LEAST_TEXT: usize = 32 * 1024;

/// The same for input that is no text.
const LEAST_OTHER: usize = 48 * 1024;

/// The same for a text at the first level. At 8 KB it takes 0.84 of libdeflate's time; shorter ones pay less and less for its tables.
const LEAST_QUICK: usize = 8 * 1024;

/// The same at the second level. At 8 KB libdeflate's third is as small and quicker, at 24 KB no smaller and slower.
const LEAST_TWICE: usize = 16 * 1024;

/// The level that stands for a level of zlib's, for an input of some length: its form is no larger, and it is quicker there
/// than libdeflate.
///
/// Within a hundredth or two of single inputs; over many it holds, as it does for libdeflate's levels.
pub fn for_zlib(level: u8, input: &[u8]) -> Option<u8> {
    let (level, least) = match (level, Nature::of(input)) {
        (1, Nature::Text) => (1, LEAST_QUICK),
        (2 | 3, Nature::Text) => (2, LEAST_TWICE),
        (4, Nature::Text) => (3, LEAST_TEXT),
        (5, Nature::Text) => (5, LEAST_TEXT),
        (6, Nature::Text) => (7, LEAST_TEXT),
        (7, Nature::Text) => (8, LEAST_TEXT),
        (1, Nature::Other) => (1, LEAST_OTHER),
        (2, Nature::Other) => (2, LEAST_OTHER),
        (3, Nature::Other) => (3, LEAST_OTHER),
        (4, Nature::Other) => (4, LEAST_OTHER),
        (5, Nature::Other) => (6, LEAST_OTHER),
        (6 | 7, Nature::Other) => (8, LEAST_OTHER),
        _ => return None,
    };
    (input.len() >= least).then_some(level)
}

/// The level of a [`Stream`] that stands for one of zlib's: its form is no larger, and it is quicker.
///
/// zlib's 8 and 9 leave fewer bytes than any of a stream's. Bytes and time, of those of zlib's 6, with a flush behind each piece, on scripts, style
/// sheets, pages and JSON:
///
/// ```text
///             pieces of 1 KB    of 4 KB          of 16 KB
///   zlib 1    1.184 (0.53)      1.194 (0.44)     1.198 (0.39)
///   level 3   1.023 (0.44)      1.033 (0.38)     1.035 (0.36)
///   level 8   0.989 (0.50)      0.996 (0.45)     0.996 (0.44)
/// ```
///
/// Pieces of 8 KB of bodies of 132 KB; bytes, and microseconds on an AMD EPYC:
///
/// ```text
///               scripts        style sheets   pages          JSON           SVG            WebAssembly
///   zlib 1      37146 (895)    21315 (512)    36311 (858)    14417 (407)    53244 (1036)   65736 (1598)
///   zlib-rs 2   35457 (626)    20675 (341)    34525 (616)    13960 (274)    50882 (839)    63031 (1212)
///   level 1     35495 (247)    20962 (207)    34940 (244)    14034 (210)    50180 (263)    63217 (337)
///   zlib 3      34313 (1114)   19399 (669)    33817 (1100)   13481 (463)    50512 (1852)   62480 (2368)
///   level 2     32963 (410)    18696 (335)    31446 (394)    12718 (325)    48873 (448)    60917 (566)
///   level 3     31683 (797)    17414 (546)    30067 (726)    12125 (390)    47866 (972)    62278 (994)
///   zlib 4      32010 (1321)   17857 (739)    30674 (1250)   12384 (588)    49014 (1741)   60877 (2537)
///   level 6     31174 (811)    17069 (570)    29616 (769)    11859 (420)    46811 (1153)   60755 (1128)
/// ```
///
/// Microseconds for a short piece of scripts with a flush behind it:
///
/// ```text
///                 100 bytes   1 KB    4 KB
///   zlib 1        2.2         11.5    28
///   level 1       0.6          5.1     9.5
///   zlib 6        3.0         20.5    63
///   level 8       0.9          9.1    28
/// ```
pub fn stream_for_zlib(level: u8) -> Option<u8> {
    match level {
        1 => Some(1),
        2 => Some(2),
        3 | 4 => Some(6),
        5 => Some(7),
        6 | 7 => Some(8),
        _ => None,
    }
}

/// Whether an input is no text for the most part: its second level is quicker there than libdeflate's first, and leaves fewer bytes.
pub fn is_mostly_no_text(input: &[u8]) -> bool {
    Nature::is_mostly_other(input)
}

/// Output at less than this part of the input's size is better coded by another coder too, and the smaller form taken:
/// pictures of even colours have more places for each match than rows hold, and come out up to 15 % larger than zlib's. They
/// are quick to code.
pub const WORST: usize = 20;

/// The most bytes that a coder holds.
pub const MEMORY: usize = 10 << 17;
const _: () = assert!(rows::WHOLE_BYTES + parse::HELD + (64 << 10) <= MEMORY && quick::HELD + (63 << 10) <= MEMORY);

/// The most bytes that so many bytes of input can become.
pub const fn bound(bytes: usize) -> usize {
    // Stored blocks, each as long as the shortest that a part can become, and the end.
    bytes + bytes / 256 + 64
}

/// Bytes that are parsed before their blocks are written.
const SEGMENT: usize = 192 * 1024;

/// By level less three. Bytes of four scripts of 131,882 (zlib: level 4 178,718, level 5 173,186, level 6 171,228), and nanoseconds a byte.
///
/// Tried, and not better: to look at eight candidates of a text at most. At zlib's level 6 scripts and JSON take 5 to 9 % less time and 0.3 to 0.7 %
/// more bytes, style sheets and pages 7 % less and 1 to 1.4 % more, which is larger than zlib's, and where libdeflate's 6 is quicker still.
const EFFORTS: [Effort; 6] = [
    effort(32, 0, 0, 0), // 173,221 (7.7)
    effort(32, 4, 4, 0),
    effort(64, 6, 6, 0),    // 170,554 (8.3)
    effort(64, 8, 8, 0),    // 170,269 (8.5)
    effort(258, 7, 14, 5),  // 169,975 (8.9)
    effort(258, 32, 32, 8), // 169,612 (10.8)
];

const fn effort(nice: u32, sure: u32, lazy: u32, patient: u32) -> Effort {
    Effort { nice, sure, lazy, patient, adapts: patient > 0 }
}

/// A reusable coder.
pub struct Encoder(Way);

/// Method of finding symbols.
enum Way {
    Quick(Box<Quick>),
    Rows(Box<Rows>),
}

impl Encoder {
    /// A coder at a level of [`LEVELS`]; other levels are as the nearest.
    pub fn new(level: u8) -> Encoder {
        Encoder::on(Processor::here(), level)
    }

    /// The same, for a given processor: it gives the same bytes, for a test of just that.
    pub fn on(processor: Processor, level: u8) -> Encoder {
        Encoder(match level.checked_sub(3) {
            None => Way::Quick(Box::new(Quick::new(level == 2, processor))),
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
            (false, _) => block::write_border(rest, out),
            (true, []) => block::write_end(rest, out),
            _ => rest,
        };
        rest.finish(out);
    }
}

/// The way of all levels but the first two.
struct Rows {
    parser: Lazy,
    sequences: Sequences,
    processor: Processor,
}

impl Rows {
    fn new(effort: Effort, processor: Processor) -> Rows {
        Rows { parser: Lazy::new(effort, processor, rows::whole()), sequences: Sequences::new(), processor }
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
    fn write(&mut self, input: &[u8], last: bool, rest: Rest, out: &mut Vec<u8>) -> Rest {
        write_parts(self.processor, &mut self.sequences, input, last, rest, out)
    }
}

/// Writes what these sequences stand for, in blocks.
fn write_parts(
    processor: Processor,
    sequences: &mut Sequences,
    mut input: &[u8],
    last: bool,
    mut rest: Rest,
    out: &mut Vec<u8>,
) -> Rest {
    split::join(processor, &mut sequences.parts);
    let mut list = &sequences.list[..];
    let parts = &sequences.parts;
    for (at, part) in parts.iter().enumerate() {
        let (bytes, now);
        (bytes, input) = input.split_at(part.bytes);
        (now, list) = list.split_at(part.sequences);
        rest = block::write(processor, bytes, now, &part.histogram, last && at + 1 == parts.len(), rest, out);
    }
    rest
}
