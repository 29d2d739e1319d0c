//! Sequences of a parse: literals, then a match, again and again.

use crate::symbols::{DISTANCE_SYMBOLS, END_OF_BLOCK, LITLEN_SYMBOLS};

/// Literals and the match after them. The literals themselves stay in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Literals before the match.
    pub(crate) literals: u16,
    /// The match's length, or 0 where none follows.
    pub(crate) length: u16,
    /// The symbol of the match's distance.
    pub(crate) slot: u16,
    /// The symbol's extra bits.
    pub(crate) extra: u16,
}

impl Sequence {
    /// Bytes of input it stands for.
    #[inline(always)]
    pub(crate) fn bytes(self) -> usize {
        usize::from(self.literals) + usize::from(self.length)
    }
}

/// Counts of the symbols.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) litlen: [u32; LITLEN_SYMBOLS],
    pub(crate) distance: [u32; DISTANCE_SYMBOLS],
}

impl Histogram {
    pub(crate) const EMPTY: Histogram = Histogram { litlen: [0; LITLEN_SYMBOLS], distance: [0; DISTANCE_SYMBOLS] };

    /// Forgets all counts.
    pub(crate) fn clear(&mut self) {
        *self = Histogram::EMPTY;
    }

    /// Adds the counts of another part of the block.
    #[inline(always)]
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

    /// Counts the end of the block, once.
    pub(crate) fn end(&mut self) {
        self.litlen[END_OF_BLOCK] = 1;
    }
}
