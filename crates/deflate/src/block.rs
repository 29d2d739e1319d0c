//! A block: stored, in the fixed code, or in a code of its own, whichever is smallest to the bit (RFC 1951 section 3.2.3).

use crate::bits::{ROOM, Rest, Writer};
use crate::header::Header;
use crate::huffman;
use crate::lanes::Lanes;
use crate::processor::{Processor, Work};
use crate::sequence::{Histogram, Sequence};
use crate::split;
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH, LENGTH_BASE, LENGTH_EXTRA, LENGTH_SLOT, LITLEN_SYMBOLS, MIN_MATCH, distance_extra,
};
use std::sync::LazyLock;

/// The longest code of a literal or a length: four of them fit between two stores of the writer.
const LITLEN_LIMIT: usize = 14;
const _: () = assert!(4 * LITLEN_LIMIT <= ROOM as usize);

/// The longest code of a distance. With a length and all extra bits it fits between two stores.
const DISTANCE_LIMIT: usize = 15;
const _: () = assert!(LITLEN_LIMIT + 5 + DISTANCE_LIMIT + 13 <= ROOM as usize);

/// The most bytes of a stored block.
const STORED_MAX: usize = 65_535;

/// Bytes of a block that may be too short for a code of its own. That it is is told by an estimate, which is quicker than to make one.
const SHORT: usize = 1024;

/// Bits by which the fixed code may be larger than the estimate. Of 9,000 blocks of pieces of 30 to 2048 bytes none came out larger so.
const SURE: f32 = 16.0;

/// Content of a block.
pub(crate) trait Body {
    /// The codes as it wants them.
    type Forms: 'static;

    /// These codes. To be `#[inline(always)]`, like the other.
    fn forms(codes: &Codes, litlens: &Litlens) -> Self::Forms;

    /// Those of the fixed code, which are made once.
    fn fixed() -> &'static Self::Forms;

    /// Writes it, without the end of the block. `input`: the bytes that it stands for.
    fn write<'w>(&self, input: &[u8], forms: &Self::Forms, writer: Writer<'w>) -> Writer<'w>;
}

/// Writes the input as a single block, or as several stored ones.
pub(crate) fn write<B: Body + ?Sized>(
    processor: Processor,
    input: &[u8],
    body: &B,
    histogram: &Histogram,
    last: bool,
    rest: Rest,
    out: &mut Vec<u8>,
) -> Rest {
    let stored = stored_bits(input.len(), rest);
    let (fixed, extra) = processor.run(WeighFixed { histogram });
    let fixed = 3 + fixed;
    if input.len() <= SHORT && stored > fixed && (fixed - extra) as f32 <= split::cost_of(processor, histogram) + SURE {
        return write_fixed(processor, input, body, last, (rest, fixed), out);
    }
    let own = Codes::new(histogram);
    let header = Header::new(&own.litlen_lengths, &own.distance_lengths);
    let dynamic = 3 + header.bits() + processor.run(Weigh { codes: &own, histogram });
    if stored < dynamic.min(fixed) {
        return write_stored(input, last, rest, out);
    }
    if fixed <= dynamic {
        return write_fixed(processor, input, body, last, (rest, fixed), out);
    }
    let mut writer = Writer::new(out, rest, dynamic);
    writer.put(u64::from(last) | 2 << 1, 3);
    writer.store();
    header.write(&mut writer);
    let (end, rest) = processor.run(Write { codes: &own, input, body, writer }).finish();
    out.truncate(end);
    rest
}

/// Writes the input as a block in the fixed code, of so many bits.
fn write_fixed<B: Body + ?Sized>(
    processor: Processor,
    input: &[u8],
    body: &B,
    last: bool,
    (rest, bits): (Rest, u64),
    out: &mut Vec<u8>,
) -> Rest {
    let mut writer = Writer::new(out, rest, bits);
    writer.put(u64::from(last) | 1 << 1, 3);
    writer.store();
    let mut writer = processor.run(WriteFixed { input, body, writer });
    // The end of a block is seven zeros.
    writer.put(0, 7);
    let (end, rest) = writer.finish();
    out.truncate(end);
    rest
}

/// Writes the input in stored blocks, as many as it takes. An empty input becomes an empty block, which ends at a byte's
/// border.
pub(crate) fn write_stored(mut input: &[u8], last: bool, mut rest: Rest, out: &mut Vec<u8>) -> Rest {
    loop {
        let (now, later) = input.split_at(input.len().min(STORED_MAX));
        let mut writer = Writer::new(out, rest, stored_bits(now.len(), rest));
        writer.put(u64::from(last && later.is_empty()), 3);
        writer.align();
        writer.put(now.len() as u64, 16);
        writer.put(!now.len() as u64 & 0xffff, 16);
        writer.store();
        writer.bytes(now);
        let end;
        (end, rest) = writer.finish();
        out.truncate(end);
        input = later;
        if input.is_empty() {
            return rest;
        }
    }
}

/// Writes a last block of nothing, in the fixed code.
pub(crate) fn write_end(rest: Rest, out: &mut Vec<u8>) -> Rest {
    let mut writer = Writer::new(out, rest, NOTHING_BITS);
    // The fixed code's end of a block is seven zeros.
    writer.put(1 | 1 << 1, NOTHING_BITS as u32);
    let (end, rest) = writer.finish();
    out.truncate(end);
    rest
}

/// Bits of a block of nothing.
const NOTHING_BITS: u64 = 10;

/// Brings the output to a byte's border by an empty stored block. Nothing shorter will do: Go's compress/flate hands on what it has there,
/// and not after an empty block in the fixed code.
pub(crate) fn write_border(rest: Rest, out: &mut Vec<u8>) -> Rest {
    write_stored(&[], false, rest, out)
}

/// Bits of the input in stored blocks.
fn stored_bits(bytes: usize, rest: Rest) -> u64 {
    let first = (rest.count() + 3).next_multiple_of(8) - rest.count() + 32;
    let others = bytes.saturating_sub(1) / STORED_MAX;
    u64::from(first) + 40 * others as u64 + 8 * bytes as u64
}

/// The two codes of a block.
pub(crate) struct Codes {
    litlen_lengths: [u8; LITLEN_SYMBOLS],
    distance_lengths: [u8; DISTANCE_SYMBOLS],
}

impl Codes {
    fn new(histogram: &Histogram) -> Codes {
        let mut codes = Codes { litlen_lengths: [0; LITLEN_SYMBOLS], distance_lengths: [0; DISTANCE_SYMBOLS] };
        huffman::lengths(&histogram.litlen, LITLEN_LIMIT, &mut codes.litlen_lengths);
        huffman::lengths(&histogram.distance, DISTANCE_LIMIT, &mut codes.distance_lengths);
        codes
    }

    #[inline(always)]
    pub(crate) fn litlens(&self) -> Litlens {
        let codes = huffman::codes(&self.litlen_lengths);
        std::array::from_fn(|at| Bits { bits: u32::from(codes[at]), count: u32::from(self.litlen_lengths[at]) })
    }

    /// By the match's length less [`MIN_MATCH`], the extra bits among them.
    #[inline(always)]
    pub(crate) fn lengths(&self, litlens: &Litlens) -> [Bits; 256] {
        std::array::from_fn(|length| {
            let slot = usize::from(LENGTH_SLOT[length]);
            let code = litlens[FIRST_LENGTH + slot];
            let extra = length as u32 - u32::from(LENGTH_BASE[slot]);
            Bits { bits: code.bits | extra << code.count, count: code.count + u32::from(LENGTH_EXTRA[slot]) }
        })
    }

    #[inline(always)]
    pub(crate) fn distances(&self) -> [Distance; 32] {
        let codes = huffman::codes(&self.distance_lengths);
        let mut distances = [Distance { code: Bits { bits: 0, count: 0 }, extra: 0 }; 32];
        for (slot, (code, length)) in codes.into_iter().zip(self.distance_lengths).enumerate() {
            let code = Bits { bits: u32::from(code), count: u32::from(length) };
            distances[slot] = Distance { code, extra: distance_extra(slot) };
        }
        distances
    }
}

/// Writes a block's symbols and its end.
struct Write<'a, 'w, B: ?Sized> {
    codes: &'a Codes,
    input: &'a [u8],
    body: &'a B,
    writer: Writer<'w>,
}

impl<'w, B: Body + ?Sized> Work for Write<'_, 'w, B> {
    type Result = Writer<'w>;

    #[inline(always)]
    fn run(self, _: impl Lanes) -> Writer<'w> {
        let litlens = self.codes.litlens();
        let mut writer = self.body.write(self.input, &B::forms(self.codes, &litlens), self.writer);
        litlens[END_OF_BLOCK].put(&mut writer);
        writer.store();
        writer
    }
}

/// The same in the fixed code, without the end.
struct WriteFixed<'a, 'w, B: ?Sized> {
    input: &'a [u8],
    body: &'a B,
    writer: Writer<'w>,
}

impl<'w, B: Body + ?Sized> Work for WriteFixed<'_, 'w, B> {
    type Result = Writer<'w>;

    #[inline(always)]
    fn run(self, _: impl Lanes) -> Writer<'w> {
        self.body.write(self.input, B::fixed(), self.writer)
    }
}

impl Body for [Sequence] {
    type Forms = (Litlens, [Bits; 256], [Distance; 32]);

    #[inline(always)]
    fn forms(codes: &Codes, litlens: &Litlens) -> Self::Forms {
        (*litlens, codes.lengths(litlens), codes.distances())
    }

    fn fixed() -> &'static Self::Forms {
        static FORMS: LazyLock<<[Sequence] as Body>::Forms> = LazyLock::new(|| <[Sequence]>::forms(&FIXED, &FIXED.litlens()));
        &FORMS
    }

    #[inline(always)]
    fn write<'w>(&self, mut input: &[u8], (litlens, lengths, distances): &Self::Forms, mut writer: Writer<'w>) -> Writer<'w> {
        for sequence in self {
            let (literals, rest) = input.split_at(usize::from(sequence.literals));
            let (fours, few) = literals.as_chunks::<4>();
            for four in fours {
                for byte in four {
                    litlens[usize::from(*byte)].put(&mut writer);
                }
                writer.store();
            }
            for byte in few {
                litlens[usize::from(*byte)].put(&mut writer);
            }
            writer.store();
            input = &rest[usize::from(sequence.length)..];
            if sequence.length != 0 {
                lengths[(usize::from(sequence.length) - MIN_MATCH) & 255].put(&mut writer);
                let Distance { code, extra } = distances[usize::from(sequence.slot) & 31];
                code.put(&mut writer);
                writer.put(u64::from(sequence.extra), extra);
                writer.store();
            }
        }
        writer
    }
}

/// The codes of literals, lengths and the end.
pub(crate) type Litlens = [Bits; LITLEN_SYMBOLS];

/// A symbol's code.
#[derive(Clone, Copy)]
pub(crate) struct Bits {
    bits: u32,
    count: u32,
}

/// A distance's code.
#[derive(Clone, Copy)]
pub(crate) struct Distance {
    pub(crate) code: Bits,
    /// Extra bits after it.
    pub(crate) extra: u32,
}

impl Distance {
    /// The code's length, from bit 8 on the length with the extra bits, and from bit 16 on the code.
    pub(crate) fn packed(self) -> u64 {
        let Distance { code: Bits { bits, count }, extra } = self;
        u64::from(bits) << 16 | u64::from(count + extra) << 8 | u64::from(count)
    }
}

impl Bits {
    /// The length, and from bit 16 on the code.
    pub(crate) fn packed(self) -> u64 {
        u64::from(self.bits) << 16 | u64::from(self.count)
    }

    #[inline(always)]
    pub(crate) fn put(self, writer: &mut Writer<'_>) {
        writer.put(u64::from(self.bits), self.count);
    }
}

const fn fixed_length(symbol: usize) -> u8 {
    match symbol {
        0..=143 => 8,
        144..=255 => 9,
        256..=279 => 7,
        _ => 8,
    }
}

/// Lengths of the fixed code.
const FIXED_LENGTHS: [u8; LITLEN_SYMBOLS] = {
    let mut lengths = [0; LITLEN_SYMBOLS];
    let mut symbol = 0;
    while symbol < LITLEN_SYMBOLS {
        lengths[symbol] = fixed_length(symbol);
        symbol += 1;
    }
    lengths
};

/// RFC 1951 section 3.2.6.
pub(crate) const FIXED: Codes = Codes { litlen_lengths: FIXED_LENGTHS, distance_lengths: [5; DISTANCE_SYMBOLS] };

/// Extra bits of each distance symbol.
const DISTANCE_EXTRA: [u8; DISTANCE_SYMBOLS] = {
    let mut extra = [0; DISTANCE_SYMBOLS];
    let mut slot = 0;
    while slot < DISTANCE_SYMBOLS {
        extra[slot] = distance_extra(slot) as u8;
        slot += 1;
    }
    extra
};

/// Bits of a block's symbols in the fixed code, and those among them that are extra bits.
struct WeighFixed<'a> {
    histogram: &'a Histogram,
}

impl Work for WeighFixed<'_> {
    type Result = (u64, u64);

    #[inline(always)]
    fn run(self, _: impl Lanes) -> (u64, u64) {
        let Histogram { litlen, distance } = self.histogram;
        let extra = weigh(&litlen[FIRST_LENGTH..], &LENGTH_EXTRA) + weigh(distance, &DISTANCE_EXTRA);
        (extra + weigh(litlen, &FIXED_LENGTHS) + weigh(distance, &[5; DISTANCE_SYMBOLS]), extra)
    }
}

/// Bits of a block's symbols in some codes.
struct Weigh<'a> {
    codes: &'a Codes,
    histogram: &'a Histogram,
}

impl Work for Weigh<'_> {
    type Result = u64;

    #[inline(always)]
    fn run(self, _: impl Lanes) -> u64 {
        let Histogram { litlen, distance } = self.histogram;
        let extra = weigh(&litlen[FIRST_LENGTH..], &LENGTH_EXTRA) + weigh(distance, &DISTANCE_EXTRA);
        extra + weigh(litlen, &self.codes.litlen_lengths) + weigh(distance, &self.codes.distance_lengths)
    }
}

/// Bits of symbols that occur so often and have so many each. A block has less than 2^24 symbols.
#[inline(always)]
fn weigh(counts: &[u32], lengths: &[u8]) -> u64 {
    u64::from(counts.iter().zip(lengths).map(|(count, length)| count * u32::from(*length)).sum::<u32>())
}
