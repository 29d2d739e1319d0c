//! Finds the longest earlier occurrence of the bytes ahead, in rows.
//!
//! A hash of five bytes chooses a row, and eight further bits of it are the entry's tag. A row is the last sixteen positions that
//! were put into it, and it is one line of the cache:
//!
//! ```text
//!   tags       16 x 8 bits    of the hash: entries of other five bytes are told apart here
//!   checks     16 x 8 bits    a hash of the two bytes behind the five
//!   positions  16 x 16 bits   in the window's ring
//! ```
//!
//! One comparison of sixteen tags gives all candidates, one of sixteen checks those that reach seven bytes. Only among these is the
//! longest looked for; of the others the latest is as good as any, and the nearest. So the usual search follows one or two positions,
//! where a chain of hashes follows all candidates, each of them waiting for the one before. Matches of four and
//! three bytes, which are only worth taking when they are near, have a table each with the latest position alone.
//!
//! Entries are never removed: one that is stale, or that the hash let in by chance, is a position in the window like any other, and
//! only bytes that were compared count.

use crate::boxed;
use crate::lanes::{LANES as ENTRIES, equal};
use crate::symbols::MAX_MATCH;
use crate::window::Window;

/// The most rows: with sixteen positions each, twice the window.
const MAX_ROWS: usize = 4096;
/// A row for about so many bytes of input.
const BYTES_PER_ROW: usize = 8;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Row {
    tags: [u8; ENTRIES],
    checks: [u8; ENTRIES],
    positions: [u16; ENTRIES],
}

const EMPTY: Row = Row { tags: [0; ENTRIES], checks: [0; ENTRIES], positions: [0; ENTRIES] };

/// An earlier occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Bytes.
    pub(crate) length: u32,
    /// How far back, 1 to 32,768; 0 where there is none.
    pub(crate) distance: u16,
}

impl Match {
    pub(crate) const NONE: Match = Match { length: 0, distance: 0 };
}

/// The rows.
pub(crate) struct Rows {
    rows: Box<[Row; MAX_ROWS]>,
    /// Where the latest entry of each row is.
    heads: Box<[u8; MAX_ROWS]>,
    /// The latest position of three bytes.
    threes: Box<[u16; 1 << THREE_BITS]>,
    /// The latest position of four bytes.
    fours: Box<[u16; 1 << FOUR_BITS]>,
    /// The number of rows in use less one.
    mask: usize,
}

const THREE_BITS: u32 = 12;
const FOUR_BITS: u32 = 14;

impl Rows {
    pub(crate) fn new() -> Rows {
        Rows { rows: boxed(EMPTY), heads: boxed(0), threes: boxed(0), fours: boxed(0), mask: 0 }
    }

    /// Forgets everything, and makes itself as large as so many bytes need.
    pub(crate) fn reset(&mut self, bytes: usize) {
        let rows = (bytes / BYTES_PER_ROW).next_power_of_two().clamp(64, MAX_ROWS);
        self.mask = rows - 1;
        self.rows[..rows].fill(EMPTY);
        self.heads[..rows].fill(0);
        self.threes.fill(0);
        self.fours.fill(0);
    }

    #[inline(always)]
    fn hash(word: u64) -> usize {
        ((word << 24).wrapping_mul(0x9e37_79b1_85eb_ca87) >> 44) as usize
    }

    #[inline(always)]
    fn three(word: u64) -> usize {
        (((word as u32) << 8).wrapping_mul(0x9e37_79b1) >> (32 - THREE_BITS)) as usize
    }

    #[inline(always)]
    fn four(word: u64) -> usize {
        ((word as u32).wrapping_mul(0x9e37_79b1) >> (32 - FOUR_BITS)) as usize
    }

    #[inline(always)]
    fn check(word: u64) -> u8 {
        (((word >> 40) as u16).wrapping_mul(0x9e35) >> 8) as u8
    }

    /// Puts a position in.
    #[inline(always)]
    pub(crate) fn insert(&mut self, window: &Window, at: u16) {
        let word = window.word(at);
        let hash = Rows::hash(word);
        let place = hash >> 8 & self.mask;
        self.put(word, hash as u8, place, self.heads[place], at);
        self.threes[Rows::three(word)] = at;
        self.fours[Rows::four(word)] = at;
    }

    #[inline(always)]
    fn put(&mut self, word: u64, tag: u8, place: usize, head: u8, at: u16) {
        let head = head.wrapping_sub(1);
        self.heads[place] = head;
        let entry = usize::from(head) & (ENTRIES - 1);
        let row = &mut self.rows[place];
        row.tags[entry] = tag;
        row.checks[entry] = Rows::check(word);
        row.positions[entry] = at;
    }

    /// The longest match at a place that is longer than `least`, the nearest of those; and puts the place in.
    #[inline(always)]
    pub(crate) fn longest(&mut self, window: &Window, at: u16, least: u32, nice: u32) -> Match {
        let wide = window.wide(at);
        let word = wide as u64;
        let hash = Rows::hash(word);
        let place = hash >> 8 & self.mask;
        let row = &self.rows[place];
        let head = self.heads[place];
        let first = u32::from(head) & (ENTRIES as u32 - 1);
        let mut best = Match { length: least, distance: 0 };

        let same = equal(&row.tags, hash as u8).rotate_right(first);
        let mut reaching = same & equal(&row.checks, Rows::check(word)).rotate_right(first);
        if best.length < 6 && same != 0 {
            let entry = (same.trailing_zeros() + first) as usize & (ENTRIES - 1);
            let earlier = row.positions[entry];
            let distance = at.wrapping_sub(earlier);
            let length = common(word ^ window.word(earlier));
            if length > best.length && usable(distance) {
                best = Match { length, distance };
            }
        }
        while reaching != 0 {
            let entry = (reaching.trailing_zeros() + first) as usize & (ENTRIES - 1);
            reaching &= reaching - 1;
            let earlier = row.positions[entry];
            let distance = at.wrapping_sub(earlier);
            let difference = wide ^ window.wide(earlier);
            let length = if difference != 0 { difference.trailing_zeros() / 8 } else { window.common(earlier, at) };
            if length > best.length && usable(distance) {
                best = Match { length, distance };
                if length >= nice {
                    break;
                }
            }
        }
        if best.length < 4 {
            let earlier = self.fours[Rows::four(word)];
            let distance = at.wrapping_sub(earlier);
            let length = common(word ^ window.word(earlier));
            if length > 3 && usable(distance) {
                best = Match { length, distance };
            } else if best.length < 3 {
                let earlier = self.threes[Rows::three(word)];
                let distance = at.wrapping_sub(earlier);
                if distance.wrapping_sub(1) < 4096 && (window.word(earlier) ^ word) << 40 == 0 {
                    best = Match { length: 3, distance };
                }
            }
        }
        self.put(word, hash as u8, place, head, at);
        self.threes[Rows::three(word)] = at;
        self.fours[Rows::four(word)] = at;
        best.length = best.length.min(MAX_MATCH as u32);
        best
    }
}

#[inline(always)]
fn common(difference: u64) -> u32 {
    (difference | 1 << 63).trailing_zeros() / 8
}

#[inline(always)]
fn usable(distance: u16) -> bool {
    distance.wrapping_sub(1) < 1 << 15
}
