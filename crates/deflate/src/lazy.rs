//! Takes a match only where the next place has no better one.

use crate::rows::{Match, Rows};
use crate::sequence::Sequence;
use crate::window::Window;

/// How hard it is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// A match of this length is good enough to stop looking for a longer one.
    pub(crate) nice: u32,
    /// A match of this length is good enough not to look for a longer one at the next place.
    pub(crate) lazy: u32,
}

/// How far the input has been taken.
pub(crate) struct Cursor {
    /// Bytes that are in sequences.
    pub(crate) at: usize,
    /// Bytes that are in the window.
    pub(crate) filled: usize,
    /// The first byte's position in the window.
    pub(crate) base: u16,
}

/// Cuts the next `most` bytes of the input, and what a match reaches beyond them, into sequences; fewer when there is no room for more.
pub(crate) fn parse(
    rows: &mut Rows,
    window: &mut Window,
    input: &[u8],
    cursor: &mut Cursor,
    most: usize,
    effort: Effort,
    out: &mut Sequences,
) {
    let start = cursor.at;
    let mut run = cursor.at;
    let mut at = cursor.at;
    let end = input.len().min(start + most);
    'all: while at < end {
        if cursor.filled < input.len() && at >= Window::border(cursor.filled, input.len()) {
            cursor.filled = window.fill(input, cursor.filled);
            continue;
        }
        let border = Window::border(cursor.filled, input.len()).min(end);
        let mut held = Match::NONE;
        while at < border || held.distance != 0 {
            let place = (at as u16).wrapping_add(cursor.base);
            let mut found = Match::NONE;
            if held.length < effort.lazy && at < border {
                found = rows.longest(window, place, held.length.saturating_sub(1), effort.nice);
            } else if at < border {
                rows.insert(window, place);
            }
            if held.distance == 0 {
                if found.length >= 3 {
                    held = found;
                }
                at += 1;
            } else if found.distance != 0 && worth(found) > worth(held) + 2 {
                held = found;
                at += 1;
            } else {
                let first = at - 1;
                let length = (held.length as usize).min(input.len() - first);
                if length < 3 {
                    held = Match::NONE;
                    continue;
                }
                out.push(first - run, length, held.distance);
                let mut place = place;
                for _ in 2..length {
                    place = place.wrapping_add(1);
                    rows.insert(window, place);
                }
                held = Match::NONE;
                at = first + length;
                run = at;
                if out.is_full() {
                    break 'all;
                }
            }
        }
    }
    if at > run {
        out.push(at - run, 0, 1);
    }
    cursor.at = at;
}

/// What a match saves, in bits: about four for each byte, less the bits of its distance.
#[inline(always)]
fn worth(found: Match) -> i32 {
    4 * found.length as i32 - (u32::from(found.distance) | 1).ilog2() as i32
}

/// The sequences of a segment.
pub(crate) struct Sequences {
    pub(crate) list: Vec<Sequence>,
}

/// The most sequences of a segment, but for runs of literals without matches.
pub(crate) const MOST: usize = 24 * 1024;

/// Literals of one sequence: few, so that a block may end among many.
const MOST_LITERALS: usize = 4096;

impl Sequences {
    pub(crate) fn new() -> Sequences {
        Sequences { list: Vec::with_capacity(MOST + 256) }
    }

    fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    #[inline(always)]
    fn push(&mut self, mut literals: usize, length: usize, distance: u16) {
        while literals > MOST_LITERALS {
            self.list.push(Sequence { literals: MOST_LITERALS as u16, length: 0, distance: 1 });
            literals -= MOST_LITERALS;
        }
        self.list.push(Sequence { literals: literals as u16, length: length as u16, distance });
    }
}
