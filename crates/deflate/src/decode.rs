//! Decoding, for bytes that come and go in pieces of any size.
//!
//! ```text
//!              ┌──────────────── block ended, not the last one ─────────────────┐
//!              v                                                                │
//!   Between ──> Opening ──stored──> Stored ──> Copying ─────────────────────────┤
//!                  │ fixed code                                                 │
//!                  ├──────────────────────────────────┐                         │
//!                  └──codes of its own──> Counts ──> LengthCodes ──> Lengths ──> Symbol <─┐ ──> Between, or Ended
//!                                                                                 │      │
//!                                                            Byte, Length ──> Distance ──> Match
//! ```
//!
//! Each step takes the bits of a single element, once they are all there, so that a call may end between any two bytes; in
//! the middle of blocks, where there is enough of both, a loop does many steps at once ([`fast`]).
//!
//! Invariant: a decoder is at most [`Decoder::BYTES`] large, tables and all: the size of zlib's beside its window. It
//! allocates nothing. While a block's head is read, the lengths of codes are kept where the table of distances will be, and
//! the code in which they are written where that of bytes and lengths will be.
//!
//! Invariant: of the input no byte is taken that was not needed, once [`Decoder::bits`] were given back.

mod fast;
mod inflate;
mod input;
mod output;
mod table;

#[cfg(test)]
mod tests;

pub use inflate::{Inflate, Progress};
pub use input::{Bits, Input};
pub use output::{Before, Fill, History, Output};

use crate::processor::Processor;
use crate::symbols::{END_OF_BLOCK, LITLEN_SYMBOLS};
use fast::Fast;
use table::{DISTANCES, Entry, LITLEN, Table};

/// Of 286 symbols with codes of up to 15 bits, a first table of 10 and its second ones have no more entries.
type Litlen = Table<1332, 10>;
/// Of 30 symbols, a first table of 8.
type Distances = Table<402, 8>;

/// A decoder of raw deflate streams.
#[derive(Clone, Copy)]
pub struct Decoder {
    litlen: Litlen,
    distances: Distances,
    /// Bits before, in and after the stream.
    pub bits: Bits,
    step: Step,
    is_last: bool,
    /// Whether the tables are those of the fixed code.
    is_fixed: bool,
    /// A call has returned after the head of a block, and nothing was decoded since.
    is_behind_head: bool,
    /// Lengths of the codes of bytes and lengths, and of distances, in the head of a block.
    counts: (u16, u16),
    /// Number of lengths that were read.
    known: u16,
    /// Bits of the element that is decoded now.
    back: u8,
    /// A byte, the base of a length or distance, with bits that are to be added.
    entry: Entry,
    /// Bytes of a stored block or a match that are still to come.
    length: u16,
    /// Bytes of a match.
    whole: u16,
    distance: u16,
    /// Entries of both tables, the last time that a block had codes of its own.
    entries: u16,
}

/// The next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Between,
    Opening,
    Stored,
    Copying,
    Counts,
    LengthCodes,
    Lengths,
    Symbol,
    Byte,
    Length,
    Distance,
    DistanceBits,
    Match,
    Ended,
    Broken(Flaw),
}

/// Places at which a call returns to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Nowhere.
    Never,
    /// Before each block, and after the last one: [`Decoder::resume`] goes on.
    Blocks,
    /// There, and after the head of each.
    Heads,
}

/// Why a call is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// More input is needed.
    Input,
    /// More room is needed.
    Room,
    /// It stands between blocks.
    Block,
    /// The head of a block was read.
    Head,
    /// The stream ended, at the border of a byte.
    End,
}

/// Flaw of a stream. RFC 1951 allows none of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// A block of the fourth kind.
    Block,
    /// The length of a stored block is not the complement of the number after it.
    Stored,
    /// More symbols than there are.
    Counts,
    /// Lengths in which the lengths are written that are no code.
    LengthCodes,
    /// A length that repeats one before the first, or goes beyond the last.
    Repeat,
    /// A block that cannot end.
    NoEnd,
    /// Lengths of the codes of bytes and lengths that are no code.
    SymbolCodes,
    /// Lengths of the codes of distances that are no code.
    DistanceCodes,
    /// Bits that are no code for a byte or length.
    Symbol,
    /// Bits that are no code for a distance.
    DistanceSymbol,
    /// A distance to before the begin, or farther than the kept bytes.
    Distance,
}

/// Why a step was not done.
enum Cut {
    Stop(Stop),
    Flaw(Flaw),
}

impl From<Flaw> for Cut {
    fn from(flaw: Flaw) -> Cut {
        Cut::Flaw(flaw)
    }
}

impl Decoder {
    /// Bytes of a decoder.
    pub const BYTES: usize = size_of::<Decoder>();

    /// At the begin of a stream.
    pub const fn new() -> Decoder {
        Decoder {
            litlen: Table::EMPTY,
            distances: Table::EMPTY,
            bits: Bits::NONE,
            step: Step::Between,
            is_last: false,
            is_fixed: false,
            is_behind_head: false,
            counts: (0, 0),
            known: 0,
            back: 0,
            entry: Entry::NONE,
            length: 0,
            whole: 0,
            distance: 0,
            entries: 0,
        }
    }

    /// Begins another stream.
    pub fn reset(&mut self) {
        self.begin_block();
        (self.bits, self.entries) = (Bits::NONE, 0);
    }

    /// Goes on with a block that is not known to be the last one, with the bits that are there.
    pub fn begin_block(&mut self) {
        (self.step, self.is_last, self.is_behind_head) = (Step::Between, false, false);
    }

    /// Decodes until input or room is missing, or a `pause` is reached. Bits that were read and not used stay in
    /// [`Decoder::bits`]: whole bytes of them are to be given back when `input` goes, unless it was the input that was
    /// missing.
    ///
    /// # Errors
    /// The flaw of the stream: the same from then on.
    pub fn decode(&mut self, input: &mut Input<'_>, output: &mut Output<'_>, pause: Pause) -> Result<Stop, Flaw> {
        self.is_behind_head = false;
        loop {
            match self.advance(input, output, pause) {
                Ok(()) => {}
                Err(Cut::Stop(stop)) => return Ok(stop),
                Err(Cut::Flaw(flaw)) => {
                    self.step = Step::Broken(flaw);
                    return Err(flaw);
                }
            }
        }
    }

    /// Goes on where a caller was asked between blocks.
    pub fn resume(&mut self) {
        if self.step == Step::Between {
            self.step = Step::Opening;
        }
    }

    /// Whether a block ended, or none has begun, and nothing was done since.
    pub fn is_between(&self) -> bool {
        self.step == Step::Between
    }

    /// Whether a block began, and a call has returned for that.
    pub fn is_behind_head(&self) -> bool {
        self.is_behind_head
    }

    /// Whether the block is the last one.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Whether a stored block begins at the border of a byte: the mark of a flush.
    pub fn is_at_flush(&self) -> bool {
        self.step == Step::Stored && self.bits.count() == 0
    }

    /// Entries of the tables of the last block that had codes of its own.
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// Position in a block: bits back to the element that is decoded now, if there are any to count, and bytes of it that
    /// were put out; or bytes of a stored block that are to come.
    pub fn mark(&self) -> (Option<u8>, u16) {
        match self.step {
            _ if self.is_behind_head => (None, 0),
            Step::Copying => (None, self.length),
            Step::Match => (Some(self.back), self.whole - self.length),
            Step::Symbol => (Some(0), 0),
            Step::Byte | Step::Length | Step::Distance | Step::DistanceBits => (Some(self.back), 0),
            _ => (None, 0),
        }
    }

    /// A step.
    fn advance(&mut self, input: &mut Input<'_>, output: &mut Output<'_>, pause: Pause) -> Result<(), Cut> {
        match self.step {
            Step::Between if pause != Pause::Never => return Err(Cut::Stop(Stop::Block)),
            Step::Between | Step::Opening if self.is_last => {
                self.bits.align();
                self.step = Step::Ended;
            }
            Step::Between | Step::Opening => {
                let bits = self.need(3, input)?;
                self.is_last = bits & 1 != 0;
                self.step = match bits >> 1 {
                    0 => Step::Stored,
                    1 => {
                        self.use_fixed();
                        return self.begin(Step::Symbol, pause);
                    }
                    2 => Step::Counts,
                    _ => return Err(Flaw::Block.into()),
                };
            }
            Step::Stored => {
                self.bits.align();
                let bits = self.need(32, input)?;
                if bits & 0xffff != !bits >> 16 {
                    return Err(Flaw::Stored.into());
                }
                self.length = bits as u16;
                // Its bytes are copied from the input.
                self.bits.give_back(input);
                self.bits = Bits::NONE;
                return self.begin(Step::Copying, pause);
            }
            Step::Copying => return self.copy(input, output),
            Step::Counts => {
                let bits = self.need(14, input)?;
                self.counts = (257 + (bits & 31) as u16, 1 + (bits >> 5 & 31) as u16);
                if self.counts.0 > 286 || self.counts.1 > 30 {
                    return Err(Flaw::Counts.into());
                }
                self.is_fixed = false;
                for place in 0..LENGTH_CODES {
                    self.distances.keep(place, 0);
                }
                (self.entry, self.known, self.step) = (Entry::number(4 + (bits >> 10) as u16, 0), 0, Step::LengthCodes);
            }
            Step::LengthCodes => return self.read_length_codes(input),
            Step::Lengths => return self.read_lengths(input, pause),
            Step::Symbol => return self.symbol(input, output),
            Step::Byte => {
                if !output.put(self.entry.byte()) {
                    return Err(Cut::Stop(Stop::Room));
                }
                self.step = Step::Symbol;
            }
            Step::Length => {
                (self.whole, self.step) = (self.number(input)?, Step::Distance);
                self.length = self.whole;
            }
            Step::Distance => (self.entry, self.step) = (self.distance_code(input)?, Step::DistanceBits),
            Step::DistanceBits => {
                self.distance = self.number(input)?;
                self.step = Step::Match;
            }
            Step::Match => {
                if output.left() == 0 {
                    return Err(Cut::Stop(Stop::Room));
                }
                if usize::from(self.distance) > output.reach() {
                    return Err(Flaw::Distance.into());
                }
                self.length -= output.repeat(self.distance.into(), self.length.into()) as u16;
                if self.length == 0 {
                    self.step = Step::Symbol;
                }
            }
            Step::Ended => return Err(Cut::Stop(Stop::End)),
            Step::Broken(flaw) => return Err(flaw.into()),
        }
        Ok(())
    }

    #[inline]
    fn need(&mut self, count: u32, input: &mut Input<'_>) -> Result<u32, Cut> {
        self.bits.take(count, input).ok_or(Cut::Stop(Stop::Input))
    }

    fn begin(&mut self, step: Step, pause: Pause) -> Result<(), Cut> {
        self.step = step;
        self.is_behind_head = pause == Pause::Heads;
        if self.is_behind_head { Err(Cut::Stop(Stop::Head)) } else { Ok(()) }
    }

    fn copy(&mut self, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Cut> {
        self.length -= output.put_all(input.take(output.left().min(self.length.into()))) as u16;
        match self.length {
            0 => self.step = Step::Between,
            _ if input.rest().is_empty() => return Err(Cut::Stop(Stop::Input)),
            _ => return Err(Cut::Stop(Stop::Room)),
        }
        Ok(())
    }

    /// RFC 1951 section 3.2.7: the lengths of the codes in which the lengths are written.
    fn read_length_codes(&mut self, input: &mut Input<'_>) -> Result<(), Cut> {
        const ORDER: [u8; LENGTH_CODES] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        while u32::from(self.known) < self.entry.base() {
            let length = self.need(3, input)? as u8;
            let place = ORDER.get(usize::from(self.known)).copied().unwrap_or(0);
            self.distances.keep(place.into(), length);
            self.known += 1;
        }
        let lengths = self.distances.kept::<LENGTH_CODES>();
        // A single symbol with a code of one bit is no code here. Where there is none at all, all lengths are zero, and the
        // block has no end.
        let is_code = lengths.iter().map(|&length| u32::from(length)).sum::<u32>() != 1;
        let filled = self.litlen.fill(&lengths, |symbol| Entry::number(symbol as u16, 0));
        self.entries = filled.ok().filter(|_| is_code).ok_or(Flaw::LengthCodes)? as u16;
        (self.known, self.step) = (0, Step::Lengths);
        Ok(())
    }

    fn read_lengths(&mut self, input: &mut Input<'_>, pause: Pause) -> Result<(), Cut> {
        let all = self.counts.0 + self.counts.1;
        let mut last = if self.known > 0 { self.distances.kept_at(self.known - 1) } else { 0 };
        while self.known < all {
            self.bits.refill(input);
            let entry = self.litlen.find(self.bits.peek());
            let (bits, least) = match entry.base() {
                16 => (2, 3),
                17 => (3, 3),
                18 => (7, 11),
                _ => (0, 1),
            };
            if self.bits.count() < entry.all_bits() + bits {
                return Err(Cut::Stop(Stop::Input));
            }
            self.bits.skip(entry.all_bits());
            let times = least + (self.bits.peek() & ((1 << bits) - 1)) as u16;
            self.bits.skip(bits);
            if (entry.base() == 16 && self.known == 0) || times > all - self.known {
                return Err(Flaw::Repeat.into());
            }
            last = match entry.base() {
                16 => last,
                17 | 18 => 0,
                length => length as u8,
            };
            for _ in 0..times {
                self.distances.keep(self.known.into(), last);
                self.known += 1;
            }
        }
        let lengths = self.distances.kept::<MAX_LENGTHS>();
        let (of_symbols, of_distances) = lengths[..all.into()].split_at(self.counts.0.into());
        if of_symbols[END_OF_BLOCK] == 0 {
            return Err(Flaw::NoEnd.into());
        }
        let symbols = self.litlen.fill(of_symbols, |symbol| LITLEN[symbol]).map_err(|_| Flaw::SymbolCodes)?;
        let distances = self.distances.fill(of_distances, |symbol| DISTANCES[symbol]).map_err(|_| Flaw::DistanceCodes)?;
        self.entries = (symbols + distances) as u16;
        self.begin(Step::Symbol, pause)
    }

    /// RFC 1951 section 3.2.6.
    fn use_fixed(&mut self) {
        if !std::mem::replace(&mut self.is_fixed, true) {
            let lengths = std::array::from_fn::<u8, LITLEN_SYMBOLS, _>(|symbol| match symbol {
                0..144 => 8,
                144..256 => 9,
                256..280 => 7,
                _ => 8,
            });
            // They are codes.
            let _ = self.litlen.fill(&lengths, |symbol| LITLEN[symbol]);
            let _ = self.distances.fill(&[5; 32], |symbol| DISTANCES[symbol]);
        }
    }

    /// Decodes a byte, a length, or the end of a block; as many symbols as can be done at once.
    fn symbol(&mut self, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Cut> {
        if output.left() >= fast::ROOM && input.rest().len() >= fast::INPUT && output.may_spill() {
            let (litlen, distances, bits) = (&self.litlen, &self.distances, &mut self.bits);
            if Processor::here().run(Fast { litlen, distances, bits, input, output })? {
                self.step = Step::Between;
                return Ok(());
            }
        }
        self.bits.refill(input);
        let bits = self.bits.peek();
        let mut entry = self.litlen.find(bits);
        if entry.is_other() && entry.is_table() && entry.all_bits() <= self.bits.count() {
            entry = self.litlen.follow(entry, bits);
        }
        self.found(entry)?;
        if entry.is_literal() {
            (self.entry, self.step) = (entry, Step::Byte);
        } else if !entry.is_other() {
            (self.entry, self.step) = (entry, Step::Length);
        } else if entry.is_end() {
            self.step = Step::Between;
        } else {
            return Err(Flaw::Symbol.into());
        }
        Ok(())
    }

    fn distance_code(&mut self, input: &mut Input<'_>) -> Result<Entry, Cut> {
        let before = self.back;
        self.bits.refill(input);
        let bits = self.bits.peek();
        let mut entry = self.distances.find(bits);
        if entry.is_other() && entry.is_table() && entry.all_bits() <= self.bits.count() {
            entry = self.distances.follow(entry, bits);
        }
        self.found(entry)?;
        self.back += before;
        if entry.is_other() { Err(Flaw::DistanceSymbol.into()) } else { Ok(entry) }
    }

    /// Takes the bits of a code, if it is all there.
    fn found(&mut self, entry: Entry) -> Result<(), Cut> {
        if entry.is_other() && entry.is_table() || entry.code_bits() > self.bits.count() {
            return Err(Cut::Stop(Stop::Input));
        }
        self.bits.skip(entry.code_bits());
        self.back = entry.code_bits() as u8;
        Ok(())
    }

    /// Adds the extra bits of a length or distance.
    fn number(&mut self, input: &mut Input<'_>) -> Result<u16, Cut> {
        let count = self.entry.all_bits() - self.entry.code_bits();
        let added = self.need(count, input)?;
        self.back += count as u8;
        Ok((self.entry.base() + added) as u16)
    }
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

/// Symbols in which lengths are written.
const LENGTH_CODES: usize = 19;
/// Lengths in the head of a block.
const MAX_LENGTHS: usize = 286 + 30;
