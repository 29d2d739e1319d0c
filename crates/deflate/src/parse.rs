//! How input becomes sequences: the window is filled, and the parser sent over what is in it.

use crate::lazy::Lazy;
use crate::sequence::Sequence;
use crate::symbols::{MAX_MATCH, MIN_MATCH};
use crate::window::{AHEAD, Match};

/// Input that is in the window.
///
/// Places are positions in the window that are not cut to sixteen bits.
pub(crate) struct Stretch {
    /// The next place.
    pub(crate) at: u32,
    /// Where the literals begin that are in no sequence yet; may have wrapped below zero.
    pub(crate) literals: u32,
    /// The first place that may not be looked up.
    pub(crate) border: u32,
    /// The first place to which no match may reach.
    pub(crate) end: u32,
}

impl Stretch {
    /// Makes a sequence of the literals so far and a match behind them. False: it would be too short, where the input ends.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: u32, found: Match, out: &mut Sequences) -> bool {
        let length = found.length.min(MAX_MATCH as u32).min(self.end - at);
        if length < MIN_MATCH as u32 {
            return false;
        }
        out.push(at.wrapping_sub(self.literals), length, found.distance);
        self.at = at + length;
        self.literals = self.at;
        true
    }
}

/// How far the input has been taken.
pub(crate) struct Cursor {
    /// Bytes that are in sequences.
    pub(crate) at: usize,
    /// Bytes that are in the window.
    filled: usize,
    /// The first byte's position in the window.
    base: usize,
}

impl Cursor {
    /// Begins with `input`, behind a dictionary.
    pub(crate) fn new(parser: &mut Lazy, dictionary: &[u8], input: &[u8]) -> Cursor {
        let rows = &mut parser.rows;
        rows.reset(dictionary.len() + input.len());
        rows.window.reset(dictionary);
        let filled = rows.window.fill(input, 0);
        for at in 0..dictionary.len() {
            rows.insert(at as u32);
        }
        Cursor { at: 0, filled, base: dictionary.len() }
    }

    /// Cuts the next `most` bytes, and what a match reaches beyond them, into sequences; fewer when there is no room for more.
    pub(crate) fn advance(&mut self, parser: &mut Lazy, input: &[u8], most: usize, out: &mut Sequences) {
        out.list.clear();
        let end = input.len().min(self.at + most);
        let mut literals = self.at;
        while self.at < end && !out.is_full() {
            if self.filled < input.len() && self.at + AHEAD >= self.filled {
                self.filled = parser.rows.window.fill(input, self.filled);
                continue;
            }
            let border = if self.filled == input.len() { end } else { end.min(self.filled - AHEAD) };
            // What is far off is of no interest, so 32 bits do for inputs of any length.
            let from = u32::from((self.base + self.at) as u16);
            let mut stretch = Stretch {
                at: from,
                literals: from.wrapping_sub((self.at - literals) as u32),
                border: from + (border - self.at) as u32,
                end: from + (input.len() - self.at).min(1 << 24) as u32,
            };
            parser.run(&mut stretch, out);
            self.at += (stretch.at - from) as usize;
            literals = self.at - stretch.at.wrapping_sub(stretch.literals) as usize;
        }
        if self.at > literals {
            out.push((self.at - literals) as u32, 0, 1);
        }
    }
}

/// The sequences of a segment.
pub(crate) struct Sequences {
    /// In order.
    pub(crate) list: Vec<Sequence>,
}

/// Sequences after which no further match is taken.
const MOST: usize = 24 * 1024;

/// Literals of one sequence: few, so that a block may end among many.
const MOST_LITERALS: u32 = 4096;

impl Sequences {
    pub(crate) fn new() -> Sequences {
        Sequences { list: Vec::with_capacity(MOST + 64) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    #[inline(always)]
    fn push(&mut self, mut literals: u32, length: u32, distance: u32) {
        while literals > MOST_LITERALS {
            self.list.push(Sequence { literals: MOST_LITERALS, length: 0, distance: 1 });
            literals -= MOST_LITERALS;
        }
        self.list.push(Sequence { literals, length: length as u16, distance: distance as u16 });
    }
}
