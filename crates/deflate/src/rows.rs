//! Finds the longest earlier occurrence of the bytes ahead, in rows.
//!
//! A hash of the next bytes chooses a row, and eight further bits of it are the entry's tag. A row is the last positions that were put
//! into it, sixteen in each line:
//!
//! ```text
//!   tags       16 x 8 bits    of the hash: entries of other bytes are told apart here
//!   checks     16 x 8 bits    a hash of the two bytes after those
//!   positions  16 x 16 bits   in the window's ring
//! ```
//!
//! A single comparison of all tags and checks of a line gives the candidates, each by itself, where a chain of hashes follows
//! everything and waits for each step. The best search differs with the input ([`Nature`]):
//!
//! * In texts, nearly all places have been there in part. A row is two lines and is chosen by five bytes, and the checks give those
//!   candidates that reach seven bytes: only among these is the longest looked for; of the others the latest is as good as any, and the
//!   nearest. Matches of three bytes win on some texts what they lose on others, and are not looked for.
//! * In programs, tables and pictures there are fewer candidates. A row is one line, half as many rows do, and the longest is
//!   looked for among all that six bytes let in; checks would cost 5 % of the time. Matches of three bytes save 1 % where
//!   bytes vary.
//!
//! Shorter matches than those of the rows come from tables with the latest position alone.
//!
//! Tried, on an image of /usr: a bucket of eight positions without tags is slower by half where nothing is found, because
//! each candidate is a miss of the first cache; twice as many rows of one line take 4 % more time and leave 0.05 % fewer
//! bytes, rows of two lines 8 % and 0.1 %, rows of eight entries gain nothing; to look at two or more candidates without a
//! branch is slower by 10 %, because most places have fewer; to try the distance of the last match first is slower and
//! larger; the same as a table of the two latest positions of three bytes, for fours and threes, is larger and slower.
//!
//! Entries are never removed: a stale entry, or an entry that the hash let in by chance, is a position in the window like any
//! other, and only bytes that were compared count.

use crate::lanes::{LANES, Lanes};
use crate::lazy::{Run, Seek};
use crate::processor::Processor;
use crate::symbols::MIN_MATCH;
use crate::window::{Match, WIDE, Window, common, distance, usable};
use std::ops::Range;

/// The most rows, of two lines with 16 positions each: four times as far as a match reaches. That is for a text that is larger than [`LARGE`]: 0.2 % fewer bytes for 5 % more time. Half of them do for others.
const MAX_ROWS: usize = 1 << 12;
/// Bytes of a text for which more rows pay.
const LARGE: usize = 192 * 1024;
/// A row for about so many bytes of input.
const BYTES_PER_ROW: usize = 16;

/// Nature of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nature {
    Text,
    Other,
}

impl Nature {
    /// The nature of bytes, by samples: input with a zero in any of them is no text.
    pub(crate) fn of(input: &[u8]) -> Nature {
        if samples(input).any(is_no_text) { Nature::Other } else { Nature::Text }
    }

    /// Whether it is no text for the most part.
    pub(crate) fn is_mostly_other(input: &[u8]) -> bool {
        2 * samples(input).filter(|sample| is_no_text(sample)).count() > SAMPLES
    }
}

fn samples(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input.chunks(input.len() / SAMPLES + 1).map(|part| &part[..part.len().min(SAMPLE)])
}

fn is_no_text(sample: &[u8]) -> bool {
    sample.contains(&0)
}

/// Samples, spread over the input, and bytes of each.
const SAMPLES: usize = 16;
const SAMPLE: usize = 256;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    /// Tags, and checks after them.
    signs: [u8; LANES],
    positions: [u16; ENTRIES],
}

const EMPTY: Line = Line { signs: [0; LANES], positions: [0; ENTRIES] };

/// Entries of a line.
const ENTRIES: usize = LANES / 2;
/// Entries of a text's row.
const TEXT_ENTRIES: usize = 2 * ENTRIES;

/// Bytes of tables and window that a whole body's are.
pub(crate) const WHOLE_BYTES: usize = size_of::<Whole>();

/// What a whole body has: double rows, and places in the tables of four and three bytes.
type Whole = Rows<MAX_ROWS, { 1 << 15 }, { 1 << 14 }>;

/// Bytes of other input than text that are probably equal where a tag is.
const TAGGED: u32 = 6;
/// Bytes of a text that are probably equal where both tag and check are.
const REACH: u16 = 7;
/// Of these so many at most are looked at in a stream: 0.2 % more bytes for 3 % less time. With ten, 0.6 % more for 5 % less.
const DEPTH: u32 = 16;
/// A match of three bytes saves nothing where it is farther off.
const THREE_REACH: u32 = 8192;

/// The window, and where in it what has been. All three numbers are powers of two.
#[derive(Clone, Copy)]
pub(crate) struct Rows<const ROWS: usize, const FOURS: usize, const THREES: usize> {
    lines: [[Line; 2]; ROWS],
    /// Where the latest entry of each row is.
    heads: [[u8; 2]; ROWS],
    /// The latest position of four bytes.
    fours: [u16; FOURS],
    /// The latest position of three bytes at which a match was looked for, where that is no text.
    threes: [u16; THREES],
    pub(crate) window: Window,
    /// The number of rows in use less one.
    mask: u32,
}

/// Index of some bytes in the tables.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    tag: u8,
    check: u8,
    four: usize,
    three: usize,
}

impl<const ROWS: usize, const FOURS: usize, const THREES: usize> Rows<ROWS, FOURS, THREES> {
    const EMPTY: Rows<ROWS, FOURS, THREES> = {
        assert!(ROWS.is_power_of_two() && FOURS.is_power_of_two() && THREES.is_power_of_two() && ROWS <= MAX_ROWS);
        Rows {
            lines: [[EMPTY; 2]; ROWS],
            heads: [[0; 2]; ROWS],
            fours: [0; FOURS],
            threes: [0; THREES],
            window: Window::EMPTY,
            mask: 0,
        }
    };

    #[inline(always)]
    fn place<const TEXT: bool>(&self, word: u64) -> Place {
        // The lower bits of a product come from the lower bytes alone, so one product is a hash of three, four, five and six bytes.
        let product = word.wrapping_mul(0x9e37_79b1_85eb_ca87);
        let hash = (product >> (8 * if TEXT { 5 } else { 6 } - 8 - MAX_ROWS.ilog2())) as u32;
        Place {
            row: (hash >> 8 & self.mask) as usize & if TEXT { ROWS - 1 } else { 2 * ROWS - 1 },
            tag: hash as u8,
            check: (((word >> 40) as u16).wrapping_mul(0x9e35) >> 8) as u8,
            four: (product as u32 >> (32 - FOURS.ilog2())) as usize,
            three: ((product as u32 & 0xff_ffff) >> (24 - THREES.ilog2())) as usize,
        }
    }

    /// Puts a position in, but not among those of three bytes: where a match was taken, these are worth little.
    #[inline(always)]
    pub(crate) fn insert<const TEXT: bool>(&mut self, at: u32) {
        let place = self.place::<TEXT>(self.window.word(at as u16));
        self.put::<TEXT>(place, at as u16);
    }

    #[inline(always)]
    fn put<const TEXT: bool>(&mut self, place: Place, at: u16) {
        let heads = self.heads.as_flattened_mut();
        let head = heads[place.row].wrapping_sub(1);
        heads[place.row] = head;
        let entry = usize::from(head) % ENTRIES;
        let line = if TEXT {
            let line = &mut self.lines[place.row][usize::from(head) % TEXT_ENTRIES / ENTRIES];
            line.signs[ENTRIES + entry] = place.check;
            line
        } else {
            &mut self.lines.as_flattened_mut()[place.row]
        };
        line.signs[entry] = place.tag;
        line.positions[entry] = at;
        self.fours[place.four] = at;
    }

    /// The longest match at a place that is longer than `least`, the nearest of those; and puts the place in.
    #[inline(always)]
    pub(crate) fn longest<const TEXT: bool>(&mut self, lanes: impl Lanes, at: u32, least: u32, nice: u32) -> Match {
        let place = self.place::<TEXT>(self.window.word(at as u16));
        let best = if TEXT { self.of_text(lanes, place, at, least, nice) } else { self.of_other(lanes, place, at, least, nice) };
        self.put::<TEXT>(place, at as u16);
        if !TEXT {
            self.threes[place.three] = at as u16;
        }
        best
    }

    #[inline(always)]
    fn of_text(&self, lanes: impl Lanes, place: Place, at: u32, least: u32, nice: u32) -> Match {
        let window = &self.window;
        let word = window.word(at as u16);
        let row = &self.lines[place.row];
        let first = u32::from(self.heads.as_flattened()[place.row]);
        let position = |set: u32| {
            let entry = (set.trailing_zeros() + first) as usize % TEXT_ENTRIES;
            row[entry / ENTRIES].positions[entry % ENTRIES]
        };
        let [newer, older] = [&row[0], &row[1]].map(|line| lanes.equal(&line.signs, place.tag, place.check));
        let (tags, checks) = (newer & 0xffff | older << 16, newer >> 16 | older & 0xffff_0000);
        let same = tags.rotate_right(first);
        let mut best = Match { length: least, distance: 0 };
        let mut reaching = (tags & checks).rotate_right(first);
        if reaching != 0 {
            let ahead = window.word((at as u16).wrapping_add(REACH));
            let mut depth = DEPTH;
            loop {
                let earlier = position(reaching);
                let distance = distance(at, earlier);
                // Later ones are older still.
                if !usable(distance) {
                    break;
                }
                let difference = ahead ^ window.word(earlier.wrapping_add(REACH));
                let mut length = u32::from(REACH) + difference.trailing_zeros() / 8;
                if difference == 0 {
                    length = window.common(lanes, earlier, at as u16, u32::from(REACH) + 8);
                }
                if length > best.length && (word ^ window.word(earlier)) << 8 == 0 {
                    best = Match { length, distance };
                    if length >= nice {
                        break;
                    }
                }
                reaching &= reaching - 1;
                depth -= u32::from(ROWS < MAX_ROWS);
                if reaching == 0 || depth == 0 {
                    break;
                }
            }
        }
        if best.length < u32::from(REACH) {
            // Branches that cannot be foretold cost more than a look in vain: where no tag is the same, this looks somewhere.
            let earlier = position(same);
            best = best.or(common(word ^ window.word(earlier)), at, earlier);
            let earlier = self.fours[place.four];
            best = best.or(common(word ^ window.word(earlier)), at, earlier);
        }
        best
    }

    #[inline(always)]
    fn of_other(&self, lanes: impl Lanes, place: Place, at: u32, least: u32, nice: u32) -> Match {
        let window = &self.window;
        let word = window.word(at as u16);
        let row = &self.lines.as_flattened()[place.row];
        let first = u32::from(self.heads.as_flattened()[place.row]);
        let mut best = Match { length: least, distance: 0 };
        let mut same = u32::from((lanes.equal(&row.signs, place.tag, 0) as u16).rotate_right(first));
        if same != 0 {
            let here = window.wide(at as u16);
            loop {
                let earlier = row.positions[(same.trailing_zeros() + first) as usize % ENTRIES];
                let distance = distance(at, earlier);
                if !usable(distance) {
                    break;
                }
                let mut length = lanes.common_wide(here, window.wide(earlier));
                if length == WIDE as u32 && self.may_be_longer(best, earlier, at) {
                    length = window.common(lanes, earlier, at as u16, WIDE as u32);
                }
                if length > best.length {
                    best = Match { length, distance };
                    if length >= nice {
                        break;
                    }
                }
                same &= same - 1;
                if same == 0 {
                    break;
                }
            }
        }
        if best.length < TAGGED {
            let earlier = self.fours[place.four];
            best = best.or(common(word ^ window.word(earlier)), at, earlier);
            if best.length < MIN_MATCH as u32 {
                let earlier = self.threes[place.three];
                let distance = distance(at, earlier);
                if distance.wrapping_sub(1) < THREE_REACH && (word ^ window.word(earlier)) << 40 == 0 {
                    best = Match { length: MIN_MATCH as u32, distance };
                }
            }
        }
        best
    }

    /// Whether an earlier place, of which as many bytes as are compared at once are equal, may have a longer match than the
    /// best one: the last bytes of such a match are looked at first.
    #[inline(always)]
    fn may_be_longer(&self, best: Match, earlier: u16, at: u32) -> bool {
        let last = (best.length as u16).saturating_sub(size_of::<u64>() as u16 - 1);
        self.window.word(earlier.wrapping_add(last)) == self.window.word((at as u16).wrapping_add(last))
    }
}

/// Rows of some size.
pub(crate) trait Tables: Send {
    /// Forgets everything, and makes itself as large as so many bytes need.
    fn reset(&mut self, bytes: usize, nature: Nature);

    /// The window.
    fn window(&mut self) -> &mut Window;

    /// Puts every so many-th place of a range into the rows.
    fn learn(&mut self, nature: Nature, places: Range<u32>, step: usize);

    /// Goes over a stretch.
    fn seek(&mut self, processor: Processor, nature: Nature, seek: Seek<'_>);

    /// Bytes that it holds.
    fn bytes(&self) -> usize;
}

/// Rows on the heap.
struct Kept<const ROWS: usize, const FOURS: usize, const THREES: usize>(Box<[Rows<ROWS, FOURS, THREES>]>);

impl<const ROWS: usize, const FOURS: usize, const THREES: usize> Tables for Kept<ROWS, FOURS, THREES> {
    fn reset(&mut self, bytes: usize, nature: Nature) {
        let all = &mut self.0[0];
        let (most, lines) = match nature {
            Nature::Text if bytes > LARGE => (MAX_ROWS.min(ROWS), 2),
            Nature::Text => ((MAX_ROWS / 2).min(ROWS), 2),
            Nature::Other => ((MAX_ROWS / 2).min(2 * ROWS), 1),
        };
        let rows = (bytes / BYTES_PER_ROW).next_power_of_two().clamp(64, most);
        all.mask = rows as u32 - 1;
        all.lines.as_flattened_mut()[..rows * lines].fill(EMPTY);
        all.heads.as_flattened_mut()[..rows].fill(0);
        all.fours.fill(0);
        all.threes.fill(0);
    }

    fn window(&mut self) -> &mut Window {
        &mut self.0[0].window
    }

    fn learn(&mut self, nature: Nature, places: Range<u32>, step: usize) {
        let rows = &mut self.0[0];
        for at in places.step_by(step) {
            match nature {
                Nature::Text => rows.insert::<true>(at),
                Nature::Other => rows.insert::<false>(at),
            }
        }
    }

    fn seek(&mut self, processor: Processor, nature: Nature, seek: Seek<'_>) {
        let rows = &mut self.0[0];
        match nature {
            Nature::Text => processor.run(Run::<true, ROWS, FOURS, THREES> { rows, seek }),
            Nature::Other => processor.run(Run::<false, ROWS, FOURS, THREES> { rows, seek }),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Rows<ROWS, FOURS, THREES>>()
    }
}

/// Empty rows, on the heap: a thread's stack may have no room for them, where a box of a value would put them first.
macro_rules! rows {
    ($rows:ty) => {{
        static EMPTY_ROWS: $rows = <$rows>::EMPTY;
        Box::new(Kept(Box::from(std::slice::from_ref(&EMPTY_ROWS))))
    }};
}

/// Those of whole bodies.
pub(crate) fn whole() -> Box<dyn Tables> {
    rows!(Whole)
}

/// Sizes of a stream's.
pub(crate) const STREAM_SIZES: usize = 3;

/// Bytes of the largest of them.
pub(crate) const STREAM_BYTES: usize = size_of::<Large>();
const _: () = assert!(STREAM_BYTES <= 212 << 10);

type Small = Rows<64, { 1 << 10 }, { 1 << 10 }>;
type Medium = Rows<256, { 1 << 11 }, { 1 << 10 }>;
/// As many places as a match reaches back. Twice as many rows leave 0.2 % fewer bytes, half as many 0.3 % more. A quarter of the places of four
/// bytes leaves 0.2 % more of texts and 1.3 % of WebAssembly; four times as many leave 0.1 and 0.7 % fewer, for 48 KB. More places of three
/// bytes win nothing.
type Large = Rows<1024, { 1 << 13 }, { 1 << 9 }>;

/// Those of a stream, of one of the sizes; the smallest first.
pub(crate) fn of_stream(size: usize) -> Box<dyn Tables> {
    match size {
        0 => rows!(Small),
        1 => rows!(Medium),
        _ => rows!(Large),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Work;
    use std::collections::VecDeque;

    /// Letters of a small alphabet, with repetitions near and far.
    fn bytes() -> Vec<u8> {
        let (mut bytes, mut dice) = (Vec::new(), 7u32);
        while bytes.len() < 12_000 {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (length, back) = (dice >> 8 & 63, (dice >> 14) as usize % (bytes.len() + 1));
            match dice >> 30 {
                0 => (0..length as usize)
                    .for_each(|_| bytes.push(bytes.get(bytes.len().wrapping_sub(back)).map_or(b'a', |byte| *byte))),
                _ => bytes.push(b'a' + (dice >> 27) as u8 % 3),
            }
        }
        bytes
    }

    /// Search in the list of each row's entries.
    struct Compared<const TEXT: bool>(Nature);

    impl<const TEXT: bool> Work for Compared<TEXT> {
        type Result = usize;

        fn run(self, lanes: impl Lanes) -> usize {
            let bytes = bytes();
            let mut all = Kept(Box::from(std::slice::from_ref(&Whole::EMPTY)));
            all.reset(bytes.len(), self.0);
            let rows = &mut all.0[0];
            rows.window.reset(&[]);
            assert_eq!(rows.window.fill(&bytes, 0), bytes.len());
            let entries = if TEXT { TEXT_ENTRIES } else { ENTRIES };
            let common = |a: usize, b: usize| bytes[a..].iter().zip(&bytes[b..]).take_while(|(a, b)| a == b).count();
            let mut lists = vec![VecDeque::new(); MAX_ROWS];
            let mut full = 0;
            for at in 0..bytes.len() - 300 {
                let place = rows.place::<TEXT>(rows.window.word(at as u16));
                let signs = (place.tag, if TEXT { place.check } else { 0 });
                let list: &mut VecDeque<((u8, u8), usize)> = &mut lists[place.row];
                let lengths = list.iter().filter(|entry| entry.0 == signs).map(|entry| common(at, entry.1));
                let longest = lengths.filter(|length| !TEXT || *length >= usize::from(REACH)).max().unwrap_or(0);
                // Every third place is only put in.
                if at % 3 == 0 {
                    rows.insert::<TEXT>(at as u32);
                } else {
                    let found = rows.longest::<TEXT>(lanes, at as u32, 3, 1000);
                    let length = found.length as usize;
                    if found.distance != 0 {
                        assert!(common(at, at - found.distance as usize) >= length, "{at}: {found:?}");
                    }
                    assert!(longest <= 3 || length >= longest.min(258), "{at}: {longest}, {found:?}");
                }
                list.push_front((signs, at));
                full += usize::from(list.len() > entries);
                list.truncate(entries);
            }
            full
        }
    }

    #[test]
    fn the_longest_of_a_row_is_found() {
        for processor in Processor::all() {
            // Rows have been full, and overwritten.
            assert!(processor.run(Compared::<true>(Nature::Text)) > 100);
            assert!(processor.run(Compared::<false>(Nature::Other)) > 100);
        }
    }
}
