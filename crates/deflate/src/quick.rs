//! The quick way to symbols: one earlier place for each byte, or two, and hardly a branch that must be guessed.
//!
//! On text the time of a quick coder goes where no processor can guess: is there a match here, and how long is it? Here neither is
//! branched on. A segment goes through in four steps:
//!
//! 1. [`LookBack`] finds for each byte the distance to the latest place whose four bytes have the same hash. Nothing is
//!    compared, so these steps wait for nothing.
//! 2. [`Take`] compares sixteen bytes at both places and takes the match or the literal by selection. The begin of the next
//!    symbol is known only when that is done, so several lanes, each in a part of the segment, take a symbol each in turns: one
//!    computes while the others wait. Only a match of sixteen bytes or more is followed apart. A lane that is at its end takes
//!    half of another's part.
//! 3. [`Count`] finds the symbols of distances, many at once, and counts.
//! 4. The symbols, which are a word each, are written ([`Body::write`]), literals and matches in the same way, two at a time:
//!    hardly any two are longer than the room between two stores.
//!
//! Of 1.45 ns a byte on a hundred scripts (a symbol for 4.7 bytes), with AVX2, the steps take 0.42, 0.50, 0.14 and 0.34. The
//! scripts must be many: a processor remembers a branch that it could not guess if it comes again. As long as the one branch
//! that `Take` has left asked first whether there is a place at all, and then whether the match is long, a hundred scripts
//! took 1.85, one over and over 1.41.
//!
//! The second level looks harder in the same way: a second table has the latest place of the same seven bytes, the longer
//! match of both is taken, and where the next byte's place of seven gives a match that is longer by two, the byte before it
//! stays a literal. Nothing of that is a branch either. Of 60 scripts, 15 style sheets and 34 of JSON it leaves 7, 9 and 9 %
//! fewer bytes for 1.55 times the time, fewer than zlib's third level, in less time than libdeflate's second. A third
//! candidate, by five or eight bytes, won nothing.
//!
//! Tried, and not better: places in half as many or a quarter of the hashes (1 and 4 % more bytes, no time: the table need
//! not stay in the nearest cache); only every second place put down (6 % more bytes, 0.97 of the time on prose, none on
//! scripts); to store the match of each byte apart (a third more time in that step: a processor finishes one store in a
//! cycle, unless the next is beside it); four lanes instead of six (0.98 of the speed), and eight (no time); 32 bytes
//! compared at once (0.98 of the time on scripts, 1.03 on prose); lanes that look for room only as often as they must (1.01
//! of the time); all symbols put in order before they are written (0.99, and 288 KB more).
//!
//! Invariant: matches end with their part, so a segment stands for its own bytes exactly.

use crate::bits::{ROOM, Rest, Writer};
use crate::block::{self, Body, Codes, Litlens};
use crate::lanes::{Lanes, Plain, Text, WORD, before};
use crate::processor::{Processor, Work};
use crate::sequence::Histogram;
use crate::symbols::{DISTANCE_SYMBOLS, FIRST_LENGTH, LENGTH_SLOT, MAX_MATCH, MIN_MATCH, WINDOW};
use std::hint::select_unpredictable as select;
use std::ops::Range;

/// The most bytes of a segment, which is a block. Half of 132 KB, as pages are, fit in.
const SEGMENT: usize = 72 * 1024;

/// Lanes: so many that a lane's turn comes when its comparison is done.
const COUNT: usize = 6;

/// A lane that is at its end takes half of another's rest, if that is so much.
const WORTH_SHARING: usize = 256;

/// Bytes or symbols that a step with vectors goes ahead of a step without.
const SOME: usize = 512;

/// Each round takes a byte at least from each lane. There are at most this many rounds, and no more symbols near the ends of
/// lanes: fifteen of each part that is shared, which has half of [`WORTH_SHARING`] at least, and the last ones.
const ROUNDS: usize = SEGMENT / COUNT;
const _: () = assert!(SEGMENT / (WORTH_SHARING / 2) * (WORD - 1) + COUNT * WORTH_SHARING <= ROUNDS);

/// Bytes by which places are found.
const NEAR: usize = 4;
const FAR: usize = 7;

/// Bits of the hash by which places are found; fewer where the input is short, up to so many bytes: the tables have to be
/// emptied first.
const HASH_BITS: u32 = 15;
const FEW_BITS: [(usize, u32); 2] = [(2048, 11), (16 * 1024, 13)];

/// Matches are found by their first bytes, so many.
const SHORTEST: isize = 4;

/// The coder of the first two levels.
pub(crate) struct Quick {
    /// With a dictionary: the segment, and the bytes before it.
    joined: Vec<u8>,
    finder: Finder,
    processor: Processor,
}

/// The latest places by a hash.
struct Places {
    /// By hash, the latest place. A place is a byte's number in the input, modulo 65,536.
    latest: Box<Latest>,
    /// For each byte of the segment, where the latest place before it lies that has the same hash, seen from it: below zero, or it is too
    /// far. Numbered as in the text that lanes are given.
    back: Box<Back>,
}

/// With the place behind the last of the longest segment, about which that is asked where the text goes on.
type Back = [i16; WINDOW + SEGMENT + 1];

/// Bytes that a coder of the second level holds: the tables, the symbols, and room for a joined segment, which may have grown by doubling.
pub(crate) const HELD: usize =
    2 * (size_of::<Latest>() + size_of::<Back>()) + size_of::<[[Symbol; ROUNDS]; COUNT + 1]>() + 2 * (WINDOW + SEGMENT);

/// Finds the symbols of the segments in sequence.
struct Finder {
    /// By [`NEAR`] bytes.
    near: Places,
    /// By [`FAR`] bytes; only at the second level.
    far: Option<Places>,
    /// Bits of a hash.
    bits: u32,
    /// A row for each lane, and a row for the symbols that it takes near its end.
    symbols: Box<[[Symbol; ROUNDS]; COUNT + 1]>,
    pieces: Vec<Piece>,
    processor: Processor,
}

/// As long as a hash of sixteen bits can reach, so that no bound needs to be checked; [`HASH_BITS`] of them are used.
type Latest = [u16; 1 << 16];

/// A literal or a match. First, from the lowest bit on: its index in [`Counts::litlen`] (16 bits), and the distance,
/// negative. Once counted: the extra bits of the distance, from [`SLOT_AT`] on the distance's symbol, and from [`LITLEN_AT`]
/// on its index in [`Counts::litlen`]. So each is taken out in a single step: as the upper bits, or as a half or a byte.
type Symbol = u32;

const SLOT_AT: u32 = 16;
const LITLEN_AT: u32 = 23;

/// The symbol of the distance that literals have: none.
const NO_DISTANCE: u32 = 31;
const _: () = assert!(NO_DISTANCE as usize >= DISTANCE_SYMBOLS);

/// Counts of the symbols.
struct Counts {
    /// The bytes, and after these the lengths, less [`MIN_MATCH`].
    litlen: [u32; 512],
    distance: [u32; 32],
}

/// A part of the segment, by its first byte, and where its symbols are.
#[derive(Clone, Copy)]
struct Piece {
    at: usize,
    row: usize,
    first: usize,
    end: usize,
}

/// The symbols of a segment.
struct Symbols<'a> {
    rows: &'a [[Symbol; ROUNDS]; COUNT + 1],
    pieces: &'a [Piece],
}

impl Quick {
    /// `looks_twice` at the second level.
    pub(crate) fn new(looks_twice: bool, processor: Processor) -> Quick {
        let finder = Finder {
            near: Places::new(),
            far: looks_twice.then(Places::new),
            bits: HASH_BITS,
            symbols: Box::new([[0; ROUNDS]; COUNT + 1]),
            pieces: Vec::new(),
            processor,
        };
        Quick { joined: Vec::new(), finder, processor }
    }

    /// Writes the input, a block for each segment.
    pub(crate) fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) -> Rest {
        self.finder.begin(dictionary.len() + input.len());
        let dictionary = &dictionary[dictionary.len().saturating_sub(WINDOW)..];
        self.joined.clear();
        self.joined.extend_from_slice(dictionary);
        // Of equal length, so that the last one is worth its head.
        let bytes = input.len().div_ceil(input.len().div_ceil(SEGMENT).max(1)).max(1);
        let mut rest = Rest::default();
        for start in (0..input.len()).step_by(bytes) {
            let end = input.len().min(start + bytes);
            let (segment, last) = (&input[start..end], last && end == input.len());
            let (symbols, histogram) = if dictionary.is_empty() {
                self.finder.find(input, start..end, start as u16)
            } else {
                let before = self.joined.len();
                self.joined.extend_from_slice(segment);
                if start == 0 {
                    self.finder.look_back(&self.joined, 0..before, 0u16.wrapping_sub(before as u16));
                }
                self.finder.find(&self.joined, before..self.joined.len(), start as u16)
            };
            rest = block::write(self.processor, segment, &symbols, &histogram, last, rest, out);
            self.joined.drain(..self.joined.len().saturating_sub(WINDOW));
        }
        rest
    }
}

impl Places {
    fn new() -> Places {
        Places { latest: Box::new([0; 1 << 16]), back: Box::new([0; WINDOW + SEGMENT + 1]) }
    }

    /// Seen from the first places this is too far back, and later it is among the input's own.
    fn begin(&mut self, bits: u32) {
        self.latest[..1 << bits].fill(WINDOW as u16 - 1);
    }

    /// Finds for each byte of a part of the text the latest place before it, and puts its own down as the latest.
    fn look_back<const BYTES: usize>(&mut self, processor: Processor, text: &[u8], part: Range<usize>, place: u16, bits: u32) {
        let (text, back) = (&text[part.start..], &mut self.back[part]);
        processor.run(LookBack::<BYTES> { text, place, bits, latest: &mut self.latest, back });
    }
}

impl Finder {
    /// Begins with an input of so many bytes, its dictionary among them.
    fn begin(&mut self, bytes: usize) {
        self.bits = FEW_BITS.iter().find(|(most, _)| bytes <= *most).map_or(HASH_BITS, |(_, bits)| *bits);
        self.near.begin(self.bits);
        if let Some(far) = &mut self.far {
            far.begin(self.bits);
        }
    }

    /// The symbols of a segment, counted. It stands in `text`, with the bytes before it; `place` is its first.
    fn find(&mut self, text: &[u8], segment: Range<usize>, place: u16) -> (Symbols<'_>, Histogram) {
        let before = segment.start.min(WINDOW);
        let text = &text[segment.start - before..];
        let segment = before..before + segment.len();
        self.look_back(text, segment.clone(), place);
        self.pieces.clear();
        let (text, near, rows, pieces) = (Text::new(text), &*self.near.back, &mut self.symbols, &mut self.pieces);
        match &self.far {
            None => self.processor.run(Take { given: Given { text, near, more: Once }, segment, rows, pieces }),
            Some(far) => self.processor.run(Take { given: Given { text, near, more: Twice(&far.back) }, segment, rows, pieces }),
        }
        self.pieces.sort_unstable_by_key(|piece| piece.at);
        let mut counts = [Counts::EMPTY; 4];
        self.processor.run(Count { rows: &mut self.symbols, pieces: &self.pieces, counts: &mut counts });
        (Symbols { rows: &self.symbols, pieces: &self.pieces }, Counts::histogram(&counts))
    }

    /// [`Places::look_back`], in all tables.
    fn look_back(&mut self, text: &[u8], part: Range<usize>, place: u16) {
        self.near.look_back::<NEAR>(self.processor, text, part.clone(), place, self.bits);
        if let Some(far) = &mut self.far {
            far.look_back::<FAR>(self.processor, text, part, place, self.bits);
        }
    }
}

/// Work of [`Places::look_back`].
struct LookBack<'a, const BYTES: usize> {
    /// From the first byte on.
    text: &'a [u8],
    /// Place of its first byte.
    place: u16,
    bits: u32,
    latest: &'a mut Latest,
    back: &'a mut [i16],
}

impl<const BYTES: usize> Work for LookBack<'_, BYTES> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: impl Lanes) {
        let LookBack { mut text, mut place, bits, latest, back } = self;
        let mut hashes = [0; SOME];
        for some in back.chunks_mut(SOME) {
            if BYTES == NEAR {
                hash(text, bits, &mut hashes)
            } else {
                hash_far(text, bits, &mut hashes)
            }
            text = &text[some.len()..];
            let mut latest_of = |hash: u16, place| std::mem::replace(&mut latest[usize::from(hash)], place);
            let (eights, few) = some.as_chunks_mut::<8>();
            let (hashes, last) = hashes.split_at(8 * eights.len());
            for (back, hashes) in eights.iter_mut().zip(hashes.as_chunks::<8>().0) {
                *back = before(place, std::array::from_fn(|at| latest_of(hashes[at], place.wrapping_add(at as u16))));
                place = place.wrapping_add(8);
            }
            for (back, hash) in few.iter_mut().zip(last) {
                *back = (latest_of(*hash, place).wrapping_sub(place) as i16).min(1);
                place = place.wrapping_add(1);
            }
        }
    }
}

/// The hashes of the four bytes at each place; zero where they are not all there. Sixteen bits are multiplied: many are at once.
#[inline(always)]
fn hash(text: &[u8], bits: u32, hashes: &mut [u16; SOME]) {
    let count = text.len().saturating_sub(3).min(SOME);
    let (hashes, others) = hashes.split_at_mut(count);
    let [a, b, c, d] = std::array::from_fn(|at| text.get(at..at + count).unwrap_or(&[]));
    for ((((hash, a), b), c), d) in hashes.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        let [a, b, c, d] = [(a, FACTORS[0]), (b, FACTORS[1]), (c, FACTORS[2]), (d, FACTORS[3])]
            .map(|(byte, factor)| u16::from(*byte).wrapping_mul(factor));
        *hash = a.wrapping_add(b).wrapping_add(c).wrapping_add(d) >> (16 - bits);
    }
    others.fill(0);
}

/// The hashes of the [`FAR`] bytes at each place; zero where eight are not all there.
#[inline(always)]
fn hash_far(text: &[u8], bits: u32, hashes: &mut [u16; SOME]) {
    let count = text.len().saturating_sub(7).min(SOME);
    let (hashes, others) = hashes.split_at_mut(count);
    for (hash, bytes) in hashes.iter_mut().zip(text.windows(8)) {
        let word = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) << (64 - 8 * FAR);
        *hash = (word.wrapping_mul(FAR_FACTOR) >> (64 - bits)) as u16;
    }
    others.fill(0);
}

const FAR_FACTOR: u64 = 0x9e37_79b1_85eb_ca87;

/// Factors of the bytes for a hash.
const FACTORS: [u16; 4] = [0x9e37, 0x79b1, 0x85eb, 0xca87];

/// Input of the lanes.
#[derive(Clone, Copy)]
struct Given<'a, M> {
    text: Text<'a>,
    near: &'a Back,
    more: M,
}

/// Places that are looked at beside the nearest place of four bytes.
trait More: Copy {
    /// Distance of the better place, and the number of bytes that are equal there, given those of the place of four bytes.
    fn better(self, vectors: impl Lanes, text: Text<'_>, at: usize, near: (isize, isize)) -> (isize, isize);

    /// Whether the next place has a match that is worth the byte before it.
    fn waits(self, vectors: impl Lanes, text: Text<'_>, at: usize, length: isize) -> bool;
}

/// Nothing.
#[derive(Clone, Copy)]
struct Once;

impl More for Once {
    #[inline(always)]
    fn better(self, _: impl Lanes, _: Text<'_>, _: usize, near: (isize, isize)) -> (isize, isize) {
        near
    }

    #[inline(always)]
    fn waits(self, _: impl Lanes, _: Text<'_>, _: usize, _: isize) -> bool {
        false
    }
}

/// The place of seven bytes, here and at the next byte.
#[derive(Clone, Copy)]
struct Twice<'a>(&'a Back);

impl More for Twice<'_> {
    #[inline(always)]
    fn better(self, vectors: impl Lanes, text: Text<'_>, at: usize, (near, length): (isize, isize)) -> (isize, isize) {
        let far = isize::from(self.0[at]);
        let there = text.word(at.wrapping_add_signed(far)).unwrap_or_else(nothing);
        let also = vectors.common(there, text.word(at).unwrap_or_else(nothing)) as isize;
        let better = (far < 0) & ((also > length) | (near >= 0));
        (select(better, far, near), select(better, also, length))
    }

    #[inline(always)]
    fn waits(self, vectors: impl Lanes, text: Text<'_>, at: usize, length: isize) -> bool {
        let next = at + 1;
        let far = isize::from(self.0[next]);
        let there = text.word(next.wrapping_add_signed(far)).unwrap_or_else(nothing);
        let longer = vectors.common(there, text.word(next).unwrap_or_else(nothing)) as isize;
        (far < 0) & (longer > length + 1) & (length < WORD as isize)
    }
}

/// Takes all symbols.
struct Take<'a, M> {
    given: Given<'a, M>,
    segment: Range<usize>,
    rows: &'a mut [[Symbol; ROUNDS]; COUNT + 1],
    pieces: &'a mut Vec<Piece>,
}

impl<M: More> Work for Take<'_, M> {
    type Result = ();

    #[inline(always)]
    fn run(self, vectors: impl Lanes) {
        let Take { given, segment, rows, pieces } = self;
        let border = |lane: usize| segment.start + segment.len() * lane / COUNT;
        let mut lanes: [Lane; COUNT] = std::array::from_fn(|lane| Lane::new(border(lane), border(lane + 1)));
        let mut starts: [(usize, usize); COUNT] = std::array::from_fn(|lane| (border(lane), 0));
        let (rows, [row]) = rows.split_at_mut(COUNT) else { return };
        let Some(rows) = rows.first_chunk_mut::<COUNT>() else { return };
        let mut ends = Ends { row, count: 0, pieces };
        let mut round = 0;
        loop {
            round = rounds(vectors, given, &mut lanes, rows, round);
            let mut all = true;
            for lane in 0..COUNT {
                if !lanes[lane].has_room() {
                    let (at, first) = starts[lane];
                    ends.close(vectors, given, &mut lanes[lane], Piece { at, row: lane, first, end: round });
                    all &= share(&mut lanes, lane);
                    starts[lane] = (lanes[lane].at, round);
                }
            }
            if !all {
                break;
            }
        }
        for lane in 0..COUNT {
            if lanes[lane].at < lanes[lane].end {
                let (at, first) = starts[lane];
                ends.close(vectors, given, &mut lanes[lane], Piece { at, row: lane, first, end: round });
            }
        }
    }
}

/// The symbols at the lanes' ends, which are taken apart.
struct Ends<'a> {
    row: &'a mut [Symbol; ROUNDS],
    count: usize,
    /// All pieces so far.
    pieces: &'a mut Vec<Piece>,
}

impl Ends<'_> {
    /// Ends a lane, of which this piece is taken.
    #[inline(always)]
    fn close(&mut self, vectors: impl Lanes, given: Given<'_, impl More>, lane: &mut Lane, taken: Piece) {
        let (at, first) = (lane.at, self.count);
        lane.finish(vectors, given, self.row, &mut self.count);
        self.pieces.extend([taken, Piece { at, row: COUNT, first, end: self.count }]);
    }
}

/// Takes a symbol in each lane, again and again, until a lane is near its end.
#[inline(always)]
fn rounds(
    vectors: impl Lanes,
    given: Given<'_, impl More>,
    kept: &mut [Lane; COUNT],
    rows: &mut [[Symbol; ROUNDS]; COUNT],
    from: usize,
) -> usize {
    let mut lanes = *kept;
    let mut round = from;
    while round < ROUNDS && lanes.iter().all(Lane::has_room) {
        for (lane, row) in lanes.iter_mut().zip(&mut *rows) {
            row[round] = lane.step(vectors, given, MAX_MATCH);
        }
        round += 1;
    }
    *kept = lanes;
    round
}

/// Gives a lane half of the rest of the longest; false if that is too little.
fn share(lanes: &mut [Lane; COUNT], lane: usize) -> bool {
    let Some(longest) = lanes.iter_mut().max_by_key(|lane| lane.end - lane.at) else { return false };
    let left = longest.end - longest.at;
    if left < WORTH_SHARING {
        return false;
    }
    let (end, middle) = (longest.end, longest.end - left / 2);
    *longest = Lane::new(longest.at, middle);
    lanes[lane] = Lane::new(middle, end);
    true
}

/// A part of the segment that is gone through.
#[derive(Clone, Copy)]
struct Lane {
    at: usize,
    end: usize,
    /// The first place from which a word would reach beyond the end.
    near_end: usize,
}

impl Lane {
    fn new(at: usize, end: usize) -> Lane {
        Lane { at, end, near_end: (end + 1).saturating_sub(WORD) }
    }

    /// Whether all bytes that a step compares lie in the lane.
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.at < self.near_end
    }

    /// Takes a symbol, of a match of so many bytes at most.
    #[inline(always)]
    fn step(&mut self, vectors: impl Lanes, given: Given<'_, impl More>, most: usize) -> Symbol {
        let at = self.at;
        let back = isize::from(given.near[at]);
        let here = given.text.word(at).unwrap_or_else(nothing);
        let there = given.text.word(at.wrapping_add_signed(back)).unwrap_or_else(nothing);
        let found = (back, vectors.common(there, here) as isize);
        let (back, mut length) = given.more.better(vectors, given.text, at, found);
        let waits = given.more.waits(vectors, given.text, at, length);
        if length == WORD as isize {
            // Whether the place is valid is not asked before: that branch could not be guessed.
            length = longer(given.text, at.wrapping_add_signed(back), at, self.end).min(most) as isize;
        } else if most < WORD {
            length = length.min(most as isize);
        }
        // Both less than zero: the place is not too far, and the match is long enough.
        let is_match = (back & (SHORTEST - 1 - length) < 0) & !waits;
        let litlen = select(is_match, length as u32 + 256 - MIN_MATCH as u32, u32::from(here[0]));
        self.at = at + select(is_match, length, 1) as usize;
        litlen | (back as u32) << 16
    }

    /// Takes the rest.
    #[inline(always)]
    fn finish(&mut self, vectors: impl Lanes, given: Given<'_, impl More>, row: &mut [Symbol; ROUNDS], next: &mut usize) {
        while self.at < self.end {
            row[*next] = if given.text.word(self.at).is_some() {
                self.step(vectors, given, self.end - self.at)
            } else {
                self.at += 1;
                u32::from(given.text.byte(self.at - 1))
            };
            *next += 1;
        }
    }
}

/// The word beyond the text, where hardly anything is read.
#[cold]
#[inline(never)]
fn nothing<'a>() -> &'a [u8; WORD] {
    &[0; WORD]
}

/// Number of bytes that are equal at two places, of which the first [`WORD`] are. The earlier one may be invalid: it is at
/// `at` or after it then, and whatever is equal there is no match.
#[cold]
#[inline(never)]
fn longer(text: Text<'_>, earlier: usize, at: usize, end: usize) -> usize {
    if earlier >= at {
        return WORD;
    }
    let most = MAX_MATCH.min(end - at);
    let mut length = WORD;
    while length < most {
        let (there, here) = (earlier.wrapping_add(length), at + length);
        let (Some(there), Some(here)) = (text.word(there), text.word(here)) else {
            // At the end of the text.
            let bytes = (there..).zip(here..at + most).take_while(|(there, here)| text.byte(*there) == text.byte(*here));
            return length + bytes.count();
        };
        let more = Plain.common(there, here) as usize;
        length += more;
        if more < WORD {
            break;
        }
    }
    length.min(most)
}

/// Gives symbols their last form, and counts them.
struct Count<'a> {
    rows: &'a mut [[Symbol; ROUNDS]; COUNT + 1],
    pieces: &'a [Piece],
    counts: &'a mut [Counts; 4],
}

impl Work for Count<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: impl Lanes) {
        let Count { rows, pieces, counts } = self;
        for piece in pieces {
            for some in rows[piece.row][piece.first..piece.end].chunks_mut(SOME) {
                for symbol in &mut *some {
                    *symbol = last_form(*symbol);
                }
                // A count that follows another of its kind would wait for it.
                let (fours, few) = some.as_chunks::<4>();
                for four in fours {
                    counts.iter_mut().zip(four).for_each(|(counts, symbol)| counts.count(*symbol));
                }
                counts.iter_mut().zip(few).for_each(|(counts, symbol)| counts.count(*symbol));
            }
        }
    }
}

/// Puts the distance into its symbol and extra bits.
#[inline(always)]
fn last_form(symbol: Symbol) -> Symbol {
    let (litlen, less) = (symbol & 0xffff, !symbol >> 16);
    // The two highest bits of a number and the number of bits below them are the first bits of a float.
    let float = ((less as i32 as f32).to_bits() >> 22) as i32 - 254;
    let slot = float.max(less.min(1) as i32) as u32;
    let extra = less & !(u32::MAX << ((slot.max(2) >> 1) - 1));
    litlen << LITLEN_AT | if litlen < 256 { NO_DISTANCE << SLOT_AT } else { slot << SLOT_AT | extra }
}

impl Counts {
    const EMPTY: Counts = Counts { litlen: [0; 512], distance: [0; 32] };

    #[inline(always)]
    fn count(&mut self, symbol: Symbol) {
        self.litlen[(symbol >> LITLEN_AT) as usize] += 1;
        self.distance[(symbol >> SLOT_AT) as usize & 31] += 1;
    }

    fn histogram(all: &[Counts; 4]) -> Histogram {
        let mut histogram = Histogram::of_nothing();
        let litlen: [u32; 512] = std::array::from_fn(|at| all.iter().map(|counts| counts.litlen[at]).sum());
        let (bytes, lengths) = litlen.split_at(256);
        histogram.litlen[..256].copy_from_slice(bytes);
        for (slot, count) in LENGTH_SLOT.iter().zip(lengths) {
            histogram.litlen[FIRST_LENGTH + usize::from(*slot)] += count;
        }
        histogram.distance = std::array::from_fn(|at| all.iter().map(|counts| counts.distance[at]).sum());
        histogram
    }
}

impl Body for Symbols<'_> {
    #[inline(always)]
    fn write<'w>(&self, _: &[u8], codes: &Codes, litlens: &Litlens, mut writer: Writer<'w>) -> Writer<'w> {
        let lengths = codes.lengths(litlens);
        let litlens: [u64; 512] = std::array::from_fn(|at| if at < 256 { litlens[at] } else { lengths[at - 256] }.packed());
        let distances = codes.distances();
        // The byte that a slot is in has a bit of the litlen's too.
        let distances: [u64; 256] = std::array::from_fn(|at| distances[at & 31].packed());
        let coded = |symbol: &Symbol| {
            let litlen = litlens[(symbol >> LITLEN_AT) as usize];
            let distance = distances[usize::from((symbol >> SLOT_AT) as u8)];
            // The higher bits of a shift's count are ignored.
            let behind = distance >> 16 | u64::from(*symbol as u16).wrapping_shl(distance as u32);
            let bits = litlen >> 16 | behind.wrapping_shl(litlen as u32);
            (bits, litlen.wrapping_add(distance >> 8) as u32 & 63)
        };
        for piece in self.pieces {
            let (pairs, last) = self.rows[piece.row][piece.first..piece.end].as_chunks::<2>();
            for [first, second] in pairs {
                let ((first, first_count), (second, second_count)) = (coded(first), coded(second));
                if first_count + second_count <= ROOM {
                    writer.put(first | second.wrapping_shl(first_count), first_count + second_count);
                } else {
                    writer.put(first, first_count);
                    writer.store();
                    writer.put(second, second_count);
                }
                writer.store();
            }
            for symbol in last {
                let (bits, count) = coded(symbol);
                writer.put(bits, count);
                writer.store();
            }
        }
        writer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_before_is_compared() {
        let bytes: Vec<u8> = b"0123456789abcdef".repeat(40);
        let (text, end) = (Text::new(&bytes), bytes.len());
        assert_eq!(longer(text, 0, 32, end), MAX_MATCH);
        assert_eq!(longer(text, 0, end - 32, end), 2 * WORD);
        // A place as far back as places can be told apart is taken for itself; a place before the beginning is far beyond the
        // end.
        for none in [32, 48, usize::MAX] {
            assert_eq!(longer(text, none, 32, end), WORD);
        }
    }
}
