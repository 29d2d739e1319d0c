//! Takes a match only where no better one begins at the next place, or at the place after it.

use crate::lanes::Lanes;
use crate::parse::{Sequences, Stretch};
use crate::processor::{Processor, Work};
use crate::rows::{Nature, Rows, Tables};
use crate::symbols::{MAX_MATCH, MIN_MATCH};
use crate::window::{Match, Window};
use std::ops::Range;

/// Effort of the search. The gain is given beside the levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// A match of this length ends the search for a longer one at its place.
    pub(crate) nice: u32,
    /// After a match that is shorter than this the next place is looked at,
    pub(crate) sure: u32,
    /// and after a match that is shorter than this while it pays.
    pub(crate) lazy: u32,
    /// A match of this length is taken without a look at the place after the next.
    pub(crate) patient: u32,
    /// Whether the effort is that of [`THOROUGH`] where matches are long.
    pub(crate) adapts: bool,
}

/// Effort where matches are long: they are few then, so that looks are few too, and each wins more. Headers of C come out at
/// zlib's size so, at 0.9 % more without, for a tenth of the time.
const THOROUGH: Effort = Effort { nice: 258, sure: 32, lazy: 32, patient: 8, adapts: false };

/// Bytes that a match stands for where matches are long, with the literals before it, in a text and in other input. Scripts
/// have nine, headers of C twice that.
/// headers of C twice that.
const LONG_TEXT: u32 = 10;
const LONG_OTHER: u32 = 16;

/// Bytes of a stretch after which it is known how long matches are.
const TELLING: u32 = 256;

/// Rows, and when to be content with what they find.
pub(crate) struct Lazy {
    tables: Box<dyn Tables>,
    effort: Effort,
    processor: Processor,
    /// Nature of the input.
    nature: Nature,
    /// Bytes that a match stood for in the last stretch, with the literals before it.
    bytes_per_match: u32,
}

/// Looks after longer matches that are tried in each stretch, and the least share of them, as a divisor, that must win a byte
/// for more to be tried. A script's win one of four, records' almost one each, which is 1.5 % of their bytes; to look always
/// takes 12 % more time.
const TRIES: u32 = 32;
const WORTHWHILE: u32 = 4;

/// Bits that a match must save more than the match before it, which it makes into literals. With 3 and 6, and four bits for
/// each byte, an image of /usr is 0.02 % larger, English 0.1 %.
const NEXT_GAIN: i32 = 2;
/// The same, for a match two places on.
const SECOND_GAIN: i32 = 4;

/// Of the places of a match that is longer than this every second one is put into the rows, and the last ones: a match that
/// begins between two of them is found one place later, and then goes back by it. Half the work, and not a thousandth more
/// bytes; texts that are to be quick would lose 0.4 % with the smaller number. With fewer last ones, pictures come out a
/// tenth larger.
const SPARSE_TEXT: u32 = 16;
const SPARSE_OTHER: u32 = 8;
/// Of a longer run of a few bytes only the last places are put in: the others would push out the places that they are a copy
/// of.
const LONG_RUN: u32 = 16;
const RUN_DISTANCE: u32 = 8;
const TAIL: u32 = 4;

/// After a while without a match, not every place is looked at: one of two after so many bytes in vain, then one
/// of three, up to one of so many; a match is found later so, and goes back. Bytes that are coded already take a third of the
/// time, and 0.2 % more room. Texts have use for more looks.
const VAIN_TEXT: (u32, u32) = (64, 4);
const VAIN_OTHER: (u32, u32) = (32, 12);

/// With so many different bytes, of [`crate::window::VARIETY_OF`], each needs so many bits that a match of three of them saves
/// some. Random letters come out 1.3 % larger with such matches.
const VARIED: u32 = 64;

impl Lazy {
    pub(crate) fn new(effort: Effort, processor: Processor, tables: Box<dyn Tables>) -> Lazy {
        Lazy { tables, effort, processor, nature: Nature::Other, bytes_per_match: 0 }
    }

    /// Begins with `input`, after a dictionary.
    pub(crate) fn begin(&mut self, dictionary: &[u8], input: &[u8]) {
        self.restart(dictionary.len() + input.len(), Nature::of(input));
        self.tables.window().reset(dictionary);
    }

    /// Forgets what is in the rows, which become as large as so many bytes need; the window stays.
    pub(crate) fn restart(&mut self, bytes: usize, nature: Nature) {
        (self.nature, self.bytes_per_match) = (nature, 0);
        self.tables.reset(bytes, nature);
    }

    /// Puts every so many-th place into the rows; what is behind them is in the window by now.
    pub(crate) fn learn(&mut self, places: Range<u32>, step: usize) {
        self.tables.learn(self.nature, places, step);
    }

    /// Tries so hard from now on.
    pub(crate) fn set_effort(&mut self, effort: Effort) {
        self.effort = effort;
    }

    /// What it has found places in.
    pub(crate) fn into_tables(self) -> Box<dyn Tables> {
        self.tables
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.bytes()
    }

    pub(crate) fn window(&mut self) -> &mut Window {
        self.tables.window()
    }

    /// Goes on from `stretch.at` to its border, or beyond it by a part of a match, or not so far if the sequences are full.
    ///
    /// ```text
    ///   no match held --- one found at `at` ---> held --- a better one one or two places on ---> that one is held
    ///         ^                                    |
    ///         '----------- none found: taken ------'
    /// ```
    pub(crate) fn run(&mut self, stretch: &mut Stretch, out: &mut Sequences) {
        let (from, before) = (stretch.at, out.list.len());
        let least = match self.nature {
            Nature::Other if self.tables.window().variety(stretch.at, stretch.border) >= VARIED => MIN_MATCH as u32 - 1,
            _ => MIN_MATCH as u32,
        };
        let long = if self.nature == Nature::Text { LONG_TEXT } else { LONG_OTHER };
        let effort = if self.effort.adapts && self.bytes_per_match >= long { THOROUGH } else { self.effort };
        self.tables.seek(self.processor, self.nature, Seek { effort, least, stretch, out });
        if stretch.at - from >= TELLING {
            self.bytes_per_match = (stretch.at - from) / (out.list.len() - before + 1) as u32;
        }
    }
}

/// What [`Lazy::run`] does, in some rows.
pub(crate) struct Seek<'a> {
    effort: Effort,
    /// Matches are longer than this.
    least: u32,
    stretch: &'a mut Stretch,
    out: &'a mut Sequences,
}

/// The same, in these.
pub(crate) struct Run<'a, const TEXT: bool, const ROWS: usize, const FOURS: usize, const THREES: usize> {
    pub(crate) rows: &'a mut Rows<ROWS, FOURS, THREES>,
    pub(crate) seek: Seek<'a>,
}

impl<const TEXT: bool, const ROWS: usize, const FOURS: usize, const THREES: usize> Work for Run<'_, TEXT, ROWS, FOURS, THREES> {
    type Result = ();

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Run { rows, seek: Seek { effort, least, stretch, out } } = self;
        let (begin, border) = (stretch.at, stretch.border);
        // The place that comes next, and the first that is in no sequence yet.
        let (mut here, mut taken) = (begin, begin.wrapping_sub(out.literals));
        let mut lazy = effort.lazy;
        let (mut tries, mut gained) = (0, 0);
        let (step, most_passed) = if TEXT { VAIN_TEXT } else { VAIN_OTHER };
        let sparse = if TEXT { SPARSE_TEXT } else { SPARSE_OTHER };
        let mut vain = 0;
        while here < border && !out.is_full() {
            let mut held = rows.longest::<TEXT>(lanes, here, least, effort.nice);
            if held.distance == 0 {
                let passed = (1 + vain / step).min(most_passed).min(border - here);
                for _ in 0..passed {
                    out.count(rows.window.byte(here));
                    here += 1;
                }
                vain += passed;
                continue;
            }
            vain = 0;
            let mut at = here + 1;
            while at < border {
                if held.length >= lazy {
                    rows.insert::<TEXT>(at);
                    at += 1;
                    break;
                }
                let next = rows.longest::<TEXT>(lanes, at, held.length - 1, effort.nice);
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
                    out.count(rows.window.byte(here));
                    here += 1;
                    held = next;
                    continue;
                }
                if held.length >= effort.patient || at >= border {
                    break;
                }
                let second = rows.longest::<TEXT>(lanes, at, held.length - 1, effort.nice);
                at += 1;
                if second.distance == 0 || worth(second) <= worth(held) + SECOND_GAIN {
                    break;
                }
                out.count(rows.window.byte(here));
                out.count(rows.window.byte(here + 1));
                here += 2;
                held = second;
            }
            // Places that were passed may belong to it.
            let earliest = here - here.wrapping_sub(taken).min(here - begin);
            while here > earliest && held.distance < stretch.history + (here - begin) && held.length < MAX_MATCH as u32 {
                let before = rows.window.byte(here - 1);
                if before != rows.window.byte((here - 1).wrapping_sub(held.distance)) {
                    break;
                }
                out.count_back(before);
                here -= 1;
                held.length += 1;
            }
            let length = held.length.min(MAX_MATCH as u32).min(stretch.end - here);
            if length < MIN_MATCH as u32 {
                out.count(rows.window.byte(here));
                here += 1;
                continue;
            }
            out.push(here.wrapping_sub(taken), length, held.distance);
            let end = here + length;
            let is_run = held.distance < RUN_DISTANCE && length > LONG_RUN;
            let tail = end - TAIL.min(end.saturating_sub(at));
            if length > sparse {
                if !is_run {
                    for at in (at..tail).step_by(2) {
                        rows.insert::<TEXT>(at);
                    }
                }
                at = tail;
            }
            for at in at..end {
                rows.insert::<TEXT>(at);
            }
            here = end;
            taken = end;
        }
        stretch.at = here;
        out.literals = here.wrapping_sub(taken);
    }
}

/// Saving of a match, in bits: about five for each byte, less the bits of its distance.
#[inline(always)]
fn worth(found: Match) -> i32 {
    5 * found.length as i32 - (found.distance | 1).ilog2() as i32
}
