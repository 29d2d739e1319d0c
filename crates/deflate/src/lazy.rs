//! Takes a match only where no better one begins at the next place, or at the one behind it.

use crate::parse::{Sequences, Stretch};
use crate::rows::Rows;
use crate::symbols::MIN_MATCH;
use crate::window::Match;

/// How hard it is tried. What it buys stands beside the levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// A match of this length ends the search for a longer one at its place.
    pub(crate) nice: u32,
    /// A match of this length is taken without a look at the next place.
    pub(crate) lazy: u32,
    /// A match of this length is taken without a look at the place behind the next.
    pub(crate) patient: u32,
}

/// Rows, and when to be content with what they find.
pub(crate) struct Lazy {
    pub(crate) rows: Box<Rows>,
    effort: Effort,
}

/// What a match must save more, in bits, than the one before it that it makes into literals.
const NEXT_GAIN: i32 = 2;
/// The same, for a match two places on.
const SECOND_GAIN: i32 = 6;

/// Of a longer match only the last places are put into the rows, [`TAIL`] of them: the others would push out what they are a copy of.
/// That halves the time of a bitmap. Where texts have long matches, leaving out places of shorter ones costs up to 2 % of the bytes.
const LONG: u32 = 200;
const TAIL: u32 = 16;

impl Lazy {
    pub(crate) fn new(effort: Effort) -> Lazy {
        Lazy { rows: Rows::new(), effort }
    }

    /// Goes on from `stretch.at` to its border, or beyond it by a part of a match, or not so far if the sequences are full.
    ///
    /// ```text
    ///   no match held --- one found at `at` ---> held --- a better one one or two places on ---> that one is held
    ///         ^                                    |
    ///         '----------- none found: taken ------'
    /// ```
    pub(crate) fn run(&mut self, stretch: &mut Stretch, out: &mut Sequences) {
        let (rows, effort) = (&mut *self.rows, self.effort);
        let (mut held, mut held_at) = (Match::NONE, stretch.at);
        while stretch.at < stretch.border || held.distance != 0 {
            let at = stretch.at;
            let mut found = Match::NONE;
            if at < stretch.border {
                if held.distance == 0 || held.length < effort.lazy {
                    found = rows.longest(at, held.length.saturating_sub(1), effort.nice);
                } else {
                    rows.insert(at);
                }
            }
            if held.distance == 0 {
                if found.length >= MIN_MATCH as u32 {
                    (held, held_at) = (found, at);
                }
                stretch.at += 1;
                continue;
            }
            let gain = if at - held_at > 1 { SECOND_GAIN } else { NEXT_GAIN };
            if found.distance != 0 && worth(found) > worth(held) + gain {
                (held, held_at) = (found, at);
                stretch.at += 1;
            } else if held.length < effort.patient && at - held_at == 1 && at + 1 < stretch.border {
                stretch.at += 1;
            } else {
                if stretch.take(held_at, held, out) {
                    let end = stretch.at;
                    let first = if held.length > LONG { end - TAIL.min(end - at - 1) } else { at + 1 };
                    for at in first..end {
                        rows.insert(at);
                    }
                }
                held = Match::NONE;
                if out.is_full() {
                    return;
                }
            }
        }
    }
}

/// What a match saves, in bits: about four for each byte, less the bits of its distance.
#[inline(always)]
fn worth(found: Match) -> i32 {
    4 * found.length as i32 - (found.distance | 1).ilog2() as i32
}
