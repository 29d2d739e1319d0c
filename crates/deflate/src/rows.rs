//! Finds the longest earlier occurrence of the bytes ahead, in rows.
//!
//! A hash of five bytes chooses a row, and eight further bits of it are the entry's tag. A row is the last 32 positions that
//! were put into it, in two lines of the cache:
//!
//! ```text
//!   tags       32 x 8 bits    of the hash: entries of other five bytes are told apart here
//!   checks     32 x 8 bits    a hash of the two bytes behind the five
//!   positions  32 x 16 bits   in the window's ring
//! ```
//!
//! One comparison of all tags gives the candidates, one of all checks those that reach seven bytes. Only among these is the
//! longest looked for; of the others the latest is as good as any, and the nearest. So the usual search follows one or two positions,
//! where a chain of hashes follows all candidates, each of them waiting for the one before. Matches of four
//! bytes have a table with the latest position alone. Those of three are not looked for: what they win on some texts they lose on
//! others, and a table for them takes 5 % of the time.
//!
//! Rows of sixteen, twice as many, take 7 % less time and leave 0.5 % more bytes: too many for level 6 to stay below zlib's.
//!
//! Entries are never removed: one that is stale, or that the hash let in by chance, is a position in the window like any other, and
//! only bytes that were compared count.

use crate::lanes::{LANES as ENTRIES, Lanes};
use crate::window::{Match, Window, common, distance, usable};

/// The most rows: with 32 positions each, twice the window.
const MAX_ROWS: usize = 4096;
/// Inputs that are larger have use for the most rows: 0.2 % fewer bytes for 5 % more time. Half of them do for others.
const LARGE: usize = 192 * 1024;
/// A row for about so many bytes of input.
const BYTES_PER_ROW: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Row {
    tags: [u8; ENTRIES],
    checks: [u8; ENTRIES],
    positions: [u16; ENTRIES],
}

const EMPTY: Row = Row { tags: [0; ENTRIES], checks: [0; ENTRIES], positions: [0; ENTRIES] };

/// The window, and where in it what has been.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    rows: [Row; MAX_ROWS],
    /// Where the latest entry of each row is.
    heads: [u8; MAX_ROWS],
    /// The latest position of four bytes.
    fours: [u16; 1 << FOUR_BITS],
    pub(crate) window: Window,
    /// The number of rows in use less one.
    mask: u32,
}

const FOUR_BITS: u32 = 14;

impl Rows {
    /// Empty ones, on the heap: a thread's stack may have no room for them, where a box of a value would put them first.
    pub(crate) fn new() -> Box<[Rows]> {
        static EMPTY_ROWS: Rows =
            Rows { rows: [EMPTY; MAX_ROWS], heads: [0; MAX_ROWS], fours: [0; 1 << FOUR_BITS], window: Window::EMPTY, mask: 0 };
        Box::from(std::slice::from_ref(&EMPTY_ROWS))
    }

    /// Forgets everything, and makes itself as large as so many bytes need.
    pub(crate) fn reset(&mut self, bytes: usize) {
        let most = if bytes > LARGE { MAX_ROWS } else { MAX_ROWS / 2 };
        let rows = (bytes / BYTES_PER_ROW).next_power_of_two().clamp(64, most);
        self.mask = rows as u32 - 1;
        self.rows[..rows].fill(EMPTY);
        self.heads[..rows].fill(0);
        self.fours.fill(0);
    }

    /// Of five bytes, bits for the row above eight for the tag.
    #[inline(always)]
    fn hash(word: u64) -> u32 {
        ((word << 24).wrapping_mul(0x9e37_79b1_85eb_ca87) >> (64 - 20)) as u32
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
    pub(crate) fn insert(&mut self, at: u32) {
        let word = self.window.word(at as u16);
        let hash = Rows::hash(word);
        let place = (hash >> 8 & self.mask) as usize;
        self.put(word, hash as u8, place, at as u16);
    }

    #[inline(always)]
    fn put(&mut self, word: u64, tag: u8, place: usize, at: u16) {
        let head = self.heads[place].wrapping_sub(1);
        self.heads[place] = head;
        let entry = usize::from(head) & (ENTRIES - 1);
        let row = &mut self.rows[place];
        row.tags[entry] = tag;
        row.checks[entry] = Rows::check(word);
        row.positions[entry] = at;
        self.fours[Rows::four(word)] = at;
    }

    /// The longest match at a place that is longer than `least`, the nearest of those; and puts the place in.
    #[inline(always)]
    pub(crate) fn longest(&mut self, lanes: impl Lanes, at: u32, least: u32, nice: u32) -> Match {
        let window = &self.window;
        let word = window.word(at as u16);
        let hash = Rows::hash(word);
        let place = (hash >> 8 & self.mask) as usize;
        let row = &self.rows[place];
        let first = u32::from(self.heads[place]);
        let mut best = Match { length: least, distance: 0 };

        let same = lanes.equal(&row.tags, hash as u8).rotate_right(first);
        let mut reaching = same & lanes.equal(&row.checks, Rows::check(word)).rotate_right(first);
        if reaching != 0 {
            let ahead = window.word((at as u16).wrapping_add(REACH));
            loop {
                let earlier = row.positions[(reaching.trailing_zeros() + first) as usize & (ENTRIES - 1)];
                let distance = distance(at, earlier);
                // Those that follow are older still.
                if !usable(distance) {
                    break;
                }
                let difference = ahead ^ window.word(earlier.wrapping_add(REACH));
                let mut length = u32::from(REACH) + difference.trailing_zeros() / 8;
                if difference == 0 {
                    length = window.common(earlier, at as u16, REACH + 8);
                }
                if length > best.length && (word ^ window.word(earlier)) << 8 == 0 {
                    best = Match { length, distance };
                    if length >= nice {
                        break;
                    }
                }
                reaching &= reaching - 1;
                if reaching == 0 {
                    break;
                }
            }
        }
        if best.length < u32::from(REACH) {
            // Branches that cannot be foretold cost more than looking in vain: where no tag is the same, this looks somewhere.
            let earlier = row.positions[(same.trailing_zeros() + first) as usize & (ENTRIES - 1)];
            best.update(common(word ^ window.word(earlier)), at, earlier);
            let earlier = self.fours[Rows::four(word)];
            best.update(common(word ^ window.word(earlier)), at, earlier);
        }
        self.put(word, hash as u8, place, at as u16);
        best
    }
}

/// Bytes that are equal where both tag and check are.
const REACH: u16 = 7;
