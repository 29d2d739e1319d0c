//! What a parse is: literals, then a match, again and again.

use crate::symbols::{DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH, LENGTH_SLOT, LITLEN_SYMBOLS, MIN_MATCH, distance_slot};

/// Literals and the match behind them. The literals themselves stay in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Literals before the match.
    pub(crate) literals: u32,
    /// The match's length, or 0 where none follows.
    pub(crate) length: u16,
    /// How far back the match begins, 1 to 32,768.
    pub(crate) distance: u16,
}

impl Sequence {
    /// Bytes of input it stands for.
    #[inline(always)]
    pub(crate) fn bytes(self) -> usize {
        self.literals as usize + usize::from(self.length)
    }
}

/// How often each symbol occurs.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) litlen: [u32; LITLEN_SYMBOLS],
    pub(crate) distance: [u32; DISTANCE_SYMBOLS],
}

impl Histogram {
    pub(crate) const EMPTY: Histogram = Histogram { litlen: [0; LITLEN_SYMBOLS], distance: [0; DISTANCE_SYMBOLS] };

    /// Counts sequences, which begin at the beginning of `input`.
    pub(crate) fn count(&mut self, sequences: &[Sequence], mut input: &[u8]) {
        for sequence in sequences {
            let mut run = sequence.literals;
            loop {
                for (i, byte) in four(input).into_iter().enumerate() {
                    self.litlen[usize::from(byte)] += u32::from(run > i as u32);
                }
                input = &input[run.min(4) as usize..];
                if run <= 4 {
                    break;
                }
                run -= 4;
            }
            if sequence.length != 0 {
                let slot = LENGTH_SLOT[usize::from(sequence.length) - MIN_MATCH];
                self.litlen[FIRST_LENGTH + usize::from(slot)] += 1;
                self.distance[distance_slot(sequence.distance)] += 1;
            }
            input = &input[usize::from(sequence.length)..];
        }
    }

    /// Adds the counts of another part of the block.
    pub(crate) fn add(&mut self, other: &Histogram) {
        for (sum, count) in self.litlen.iter_mut().zip(&other.litlen) {
            *sum += count;
        }
        for (sum, count) in self.distance.iter_mut().zip(&other.distance) {
            *sum += count;
        }
    }

    /// Of a block without input.
    pub(crate) fn of_nothing() -> Histogram {
        let mut histogram = Histogram::EMPTY;
        histogram.end();
        histogram
    }

    /// Says that the block ends, once.
    pub(crate) fn end(&mut self) {
        self.litlen[END_OF_BLOCK] = 1;
    }
}

/// Four bytes, zeros where there are no more.
///
/// Literals are few between two matches, and how few cannot be foretold. So they are taken four at a time, and those that are not
/// literals count nothing: that costs less than a branch that is taken wrongly.
#[inline(always)]
pub(crate) fn four(bytes: &[u8]) -> [u8; 4] {
    bytes.first_chunk().copied().unwrap_or_else(|| std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0)))
}
