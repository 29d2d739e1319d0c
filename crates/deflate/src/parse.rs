//! From input to sequences: the window is filled, and the parser sent over its content.
//!
//! Symbols are counted as they are found, by pieces of about [`PIECE_SYMBOLS`], of which [`crate::split`] makes blocks: counting them
//! afterwards would read the input and the sequences once more, and guess wrong at the end of each run of literals.

use crate::SEGMENT;
use crate::lazy::Lazy;
use crate::sequence::{Histogram, Sequence};
use crate::split::Part;
use crate::symbols::{FIRST_LENGTH, LENGTH_SLOT, MIN_MATCH, distance_extra, distance_slot};
use crate::window::AHEAD;

/// Input that is in the window.
///
/// Places are positions in the window that are not cut to sixteen bits.
pub(crate) struct Stretch {
    /// The next place.
    pub(crate) at: u32,
    /// The first place that may not be looked up.
    pub(crate) border: u32,
    /// The first place to which no match may reach.
    pub(crate) end: u32,
    /// Bytes before `at` that there have been, as far as they matter.
    pub(crate) history: u32,
}

/// Progress in the input.
pub(crate) struct Cursor {
    /// Bytes that are in sequences.
    pub(crate) at: usize,
    /// Bytes that are in the window.
    filled: usize,
    /// The first byte's position in the window.
    base: usize,
}

impl Cursor {
    /// Begins with `input`, after a dictionary.
    pub(crate) fn new(parser: &mut Lazy, dictionary: &[u8], input: &[u8]) -> Cursor {
        parser.begin(dictionary, input);
        let filled = parser.window().fill(input, 0);
        parser.learn(0..dictionary.len() as u32, 4);
        Cursor { at: 0, filled, base: dictionary.len() }
    }

    /// Cuts the next `most` bytes, and those that a match reaches beyond them, into sequences; fewer when there is no room
    /// for more.
    pub(crate) fn advance(&mut self, parser: &mut Lazy, input: &[u8], most: usize, out: &mut Sequences) {
        out.clear();
        let end = input.len().min(self.at + most);
        while self.at < end && !out.is_full() {
            if self.filled < input.len() && self.at + AHEAD >= self.filled {
                self.filled = parser.window().fill(input, self.filled);
                continue;
            }
            let border = if self.filled == input.len() { end } else { end.min(self.filled - AHEAD) };
            // Distant positions are of no interest, so 32 bits do for inputs of any length.
            let from = u32::from((self.base + self.at) as u16);
            let mut stretch = Stretch {
                at: from,
                border: from + (border - self.at) as u32,
                end: from + (input.len() - self.at).min(1 << 24) as u32,
                history: (self.base + self.at).min(1 << 24) as u32,
            };
            parser.run(&mut stretch, out);
            self.at += (stretch.at - from) as usize;
            out.flush_many();
        }
        out.end();
    }
}

/// The sequences of a segment, counted in pieces.
pub(crate) struct Sequences {
    /// In order.
    pub(crate) list: Vec<Sequence>,
    /// The pieces that are complete.
    pub(crate) parts: Vec<Part>,
    /// Symbols of the piece at hand.
    histogram: Histogram,
    /// Literals that are in no sequence yet.
    pub(crate) literals: u32,
    /// Symbols of the piece at hand.
    symbols: u32,
    /// The first sequence of the piece at hand.
    first: usize,
    /// Sequences after which no further match is taken.
    most: usize,
}

/// Sequences after which no further match is taken.
const MOST: usize = 24 * 1024;

/// Literals after which a sequence ends: few, so that a block may end among many.
const MOST_LITERALS: u32 = 4096;

/// Symbols of the smallest part that is looked at.
const PIECE_SYMBOLS: u32 = 1024;

/// Pieces of a segment: each but the last has more symbols, so more bytes.
pub(crate) const MOST_PARTS: usize = SEGMENT / PIECE_SYMBOLS as usize + 2;

/// Bytes that the lists of a segment hold.
pub(crate) const HELD: usize = held(MOST, SEGMENT);

/// Bytes that lists of so many sequences hold, which stand for so many bytes.
pub(crate) const fn held(sequences: usize, bytes: usize) -> usize {
    (sequences + 64) * size_of::<Sequence>() + (bytes / PIECE_SYMBOLS as usize + 2) * size_of::<Part>() + size_of::<Sequences>()
}

impl Sequences {
    pub(crate) fn new() -> Sequences {
        Sequences::with(MOST, SEGMENT)
    }

    /// Room for so many, which stand for so many bytes.
    pub(crate) fn with(most: usize, bytes: usize) -> Sequences {
        Sequences {
            list: Vec::with_capacity(most + 64),
            parts: Vec::with_capacity(bytes / PIECE_SYMBOLS as usize + 2),
            histogram: Histogram::EMPTY,
            literals: 0,
            symbols: 0,
            first: 0,
            most,
        }
    }

    /// Bytes that they hold.
    pub(crate) fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<Sequence>() + self.parts.capacity() * size_of::<Part>() + size_of::<Sequences>()
    }

    /// Begins another block.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.parts.clear();
        self.first = 0;
    }

    /// Forgets what has not come to a piece, too.
    pub(crate) fn abandon(&mut self) {
        self.clear();
        self.histogram.clear();
        (self.literals, self.symbols) = (0, 0);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= self.most
    }

    /// Counts a byte as it is: it will be among the literals before the next match.
    #[inline(always)]
    pub(crate) fn count(&mut self, byte: u8) {
        self.histogram.litlen[usize::from(byte)] += 1;
    }

    /// Takes back the count of a byte, which has been counted after the last sequence.
    #[inline(always)]
    pub(crate) fn count_back(&mut self, byte: u8) {
        self.histogram.litlen[usize::from(byte)] -= 1;
    }

    /// Takes a match, after so many literals.
    #[inline(always)]
    pub(crate) fn push(&mut self, literals: u32, length: u32, distance: u32) {
        let slot = distance_slot(distance as u16);
        let extra = (distance as u16).wrapping_sub(1) & ((1 << distance_extra(slot)) - 1);
        self.histogram.litlen[FIRST_LENGTH + usize::from(LENGTH_SLOT[(length as usize - MIN_MATCH) & 255])] += 1;
        self.histogram.distance[slot] += 1;
        self.list.push(Sequence { literals: literals as u16, length: length as u16, slot: slot as u16, extra });
        self.symbols += literals + 1;
        if self.symbols >= PIECE_SYMBOLS {
            self.close();
        }
    }

    /// Sees to it that literals that are in no sequence yet are no more than a sequence can have.
    pub(crate) fn flush_many(&mut self) {
        self.flush(MOST_LITERALS);
    }

    /// Puts all literals into sequences, and all sequences into pieces.
    pub(crate) fn end(&mut self) {
        self.flush(0);
        self.close();
    }

    /// Makes literals into a sequence without a match if there are more than so many.
    fn flush(&mut self, most: u32) {
        if self.literals > most {
            self.list.push(Sequence { literals: self.literals as u16, length: 0, slot: 0, extra: 0 });
            self.symbols += self.literals;
            self.literals = 0;
            if self.symbols >= PIECE_SYMBOLS {
                self.close();
            }
        }
    }

    /// Ends the piece at hand.
    #[inline(never)]
    fn close(&mut self) {
        if self.first < self.list.len() {
            self.parts.push(Part::new(&self.list[self.first..], &self.histogram));
            self.histogram.clear();
            self.symbols = 0;
            self.first = self.list.len();
        }
    }
}
