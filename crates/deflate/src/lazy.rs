//! Takes a match only where no better one begins at the next place, or at the one behind it.

use crate::lanes::Lanes;
use crate::parse::{Sequences, Stretch};
use crate::processor::{Processor, Work};
use crate::rows::Rows;
use crate::symbols::{MAX_MATCH, MIN_MATCH};
use crate::window::Match;

/// How hard it is tried. What it buys stands beside the levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// A match of this length ends the search for a longer one at its place.
    pub(crate) nice: u32,
    /// Behind a match that is shorter than this the next place is looked at,
    pub(crate) sure: u32,
    /// and behind one that is shorter than this while it pays.
    pub(crate) lazy: u32,
    /// A match of this length is taken without a look at the place behind the next.
    pub(crate) patient: u32,
}

/// Rows, and when to be content with what they find.
pub(crate) struct Lazy {
    /// One.
    rows: Box<[Rows]>,
    effort: Effort,
    processor: Processor,
}

/// Looks behind longer matches that are tried in each stretch, and how many of them must win a byte at least for more to be tried: one
/// of so many. A script's win one of four, records' almost one each, which is 1.5 % of their bytes; to look always takes 12 % more time.
const TRIES: u32 = 32;
const WORTHWHILE: u32 = 4;

/// What a match must save more, in bits, than the one before it that it makes into literals.
const NEXT_GAIN: i32 = 3;
/// The same, for a match two places on.
const SECOND_GAIN: i32 = 6;

/// Of a longer match only the last places are put into the rows, [`TAIL`] of them, and of a longer run of a few bytes too: the others
/// would push out what they are a copy of. That takes 3 % off a bitmap, and half of its time; texts come out the same.
const LONG: u32 = 64;
const LONG_RUN: u32 = 16;
const RUN_DISTANCE: u32 = 8;
const TAIL: u32 = 8;

impl Lazy {
    pub(crate) fn new(effort: Effort, processor: Processor) -> Lazy {
        Lazy { rows: Rows::new(), effort, processor }
    }

    pub(crate) fn rows(&mut self) -> &mut Rows {
        &mut self.rows[0]
    }

    /// Goes on from `stretch.at` to its border, or beyond it by a part of a match, or not so far if the sequences are full.
    ///
    /// ```text
    ///   no match held --- one found at `at` ---> held --- a better one one or two places on ---> that one is held
    ///         ^                                    |
    ///         '----------- none found: taken ------'
    /// ```
    pub(crate) fn run(&mut self, stretch: &mut Stretch, out: &mut Sequences) {
        let (rows, effort) = (&mut self.rows[0], self.effort);
        self.processor.run(Run { rows, effort, stretch, out });
    }
}

/// What [`Lazy::run`] does.
struct Run<'a> {
    rows: &'a mut Rows,
    effort: Effort,
    stretch: &'a mut Stretch,
    out: &'a mut Sequences,
}

impl Work for Run<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Run { rows, effort, stretch, out } = self;
        let mut lazy = effort.lazy;
        let (mut tries, mut gained) = (0, 0);
        while stretch.at < stretch.border {
            let mut held = rows.longest(lanes, stretch.at, 3, effort.nice);
            if held.distance == 0 {
                out.literal(rows.window.byte(stretch.at));
                stretch.at += 1;
                continue;
            }
            let mut at = stretch.at + 1;
            while at < stretch.border {
                if held.length >= lazy {
                    rows.insert(at);
                    at += 1;
                    break;
                }
                let next = rows.longest(lanes, at, held.length - 1, effort.nice);
                at += 1;
                if held.length >= effort.sure {
                    tries += 1;
                    if tries >= TRIES && gained * WORTHWHILE < tries {
                        lazy = effort.sure;
                    }
                }
                if next.distance != 0 && worth(next) > worth(held) + NEXT_GAIN {
                    if held.length >= effort.sure {
                        gained += next.length - held.length;
                    }
                    out.literal(rows.window.byte(stretch.at));
                    stretch.at += 1;
                    held = next;
                    continue;
                }
                if held.length >= effort.patient || at >= stretch.border {
                    break;
                }
                let second = rows.longest(lanes, at, held.length - 1, effort.nice);
                at += 1;
                if second.distance == 0 || worth(second) <= worth(held) + SECOND_GAIN {
                    break;
                }
                out.literal(rows.window.byte(stretch.at));
                out.literal(rows.window.byte(stretch.at + 1));
                stretch.at += 2;
                held = second;
            }
            let length = held.length.min(MAX_MATCH as u32).min(stretch.end - stretch.at);
            if length < MIN_MATCH as u32 {
                out.literal(rows.window.byte(stretch.at));
                stretch.at += 1;
                continue;
            }
            out.push(length, held.distance);
            let end = stretch.at + length;
            let is_run = held.distance < RUN_DISTANCE && length > LONG_RUN;
            let first = if is_run || length > LONG { end - TAIL.min(end - at) } else { at };
            for at in first..end {
                rows.insert(at);
            }
            stretch.at = end;
            if out.is_full() {
                return;
            }
        }
    }
}

/// What a match saves, in bits: about four for each byte, less the bits of its distance.
#[inline(always)]
fn worth(found: Match) -> i32 {
    4 * found.length as i32 - (found.distance | 1).ilog2() as i32
}
