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
use crate::block::{self, Body, Codes, FIXED, Litlens};
use crate::lanes::{Lanes, Plain, Text, WORD, before};
use crate::processor::{Processor, Work};
use crate::sequence::Histogram;
use crate::symbols::{DISTANCE_SYMBOLS, FIRST_LENGTH, LENGTH_SLOT, MAX_MATCH, MIN_MATCH, WINDOW};
use std::hint::select_unpredictable as select;
use std::ops::Range;
use std::sync::LazyLock;

/// The most bytes of a segment, which is a block. Half of 132 KB, as pages are, fit in.
const SEGMENT: usize = 72 * 1024;

/// Lanes: so many that a lane's turn comes when its comparison is done.
const COUNT: usize = 6;

/// A segment that is shorter has fewer lanes: at each border between two the end of a match is lost, of which there are few in it.
const ALONE: usize = 1024;
const FEW: usize = 4096;
const FEW_LANES: usize = 3;

/// A lane that is at its end takes half of another's rest, if that is so much.
const WORTH_SHARING: usize = 256;

/// Bytes or symbols that a step with vectors goes ahead of a step without.
const SOME: usize = 512;

/// Rounds for a segment of so many bytes. Each takes a byte at least from each lane. There are at most this many rounds, and no more
/// symbols near the ends of lanes: fifteen of each part that is shared, which has half of [`WORTH_SHARING`] at least, and the last ones.
pub(crate) const fn rounds_of(segment: usize) -> usize {
    assert!(segment / (WORTH_SHARING / 2) * (WORD - 1) + COUNT * WORTH_SHARING <= segment / COUNT);
    segment / COUNT
}

/// Bytes by which places are found.
const NEAR: usize = 4;
pub(crate) const FAR: usize = 7;

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
    latest: Places<{ 1 << 16 }>,
    room: Room<{ span_of(SEGMENT) }, { rounds_of(SEGMENT) }>,
    processor: Processor,
}

/// The latest places by a hash, of which `N` there are at most. A place is a byte's number in the input, modulo 65,536.
pub(crate) struct Places<const N: usize> {
    /// By [`NEAR`] bytes. With 65,536 a hash of sixteen bits cannot reach beyond, so that no bound needs to be kept.
    near: Box<[u16; N]>,
    /// By [`FAR`] bytes; only at the second level.
    far: Option<Box<[u16; N]>>,
    /// Bits of a hash.
    bits: u32,
}

/// Tables of latest places of some size.
pub(crate) trait Latest: Send {
    /// Forgets everything.
    fn begin(&mut self);

    /// Finds for each byte of a part of the text the latest place before it, and puts its own down as the latest. The text goes on behind the
    /// part; `place` is its first.
    fn look_back(&mut self, processor: Processor, text: &[u8], place: u16, near: &mut [i16], far: &mut [i16]);

    /// Whether there are places by [`FAR`] bytes.
    fn has_far(&self) -> bool;

    /// Bytes that they hold.
    fn bytes(&self) -> usize;
}

/// What a segment needs while it is coded.
pub(crate) struct Room<const SPAN: usize, const ROUNDS: usize> {
    /// For each byte of the segment, where the latest place before it lies that has the same hash, seen from it: below zero, or it is too
    /// far. Numbered as in the text that lanes are given. By [`NEAR`] bytes,
    near: Box<[i16; SPAN]>,
    /// and by [`FAR`] bytes; only at the second level.
    far: Option<Box<[i16; SPAN]>>,
    /// A row for each lane, and a row for the symbols that it takes near its end.
    rows: Box<Rows<ROUNDS>>,
    pieces: Vec<Piece>,
}

type Rows<const ROUNDS: usize> = [[Symbol; ROUNDS]; COUNT + 1];

/// Places of a text with a segment of so many bytes, and the next one, which the last byte is asked about, too.
pub(crate) const fn span_of(segment: usize) -> usize {
    WINDOW + segment + 1
}

/// Bytes that a room for such segments holds, with so many places for each byte.
pub(crate) const fn room_bytes(places: usize, segment: usize) -> usize {
    places * span_of(segment) * size_of::<i16>() + (COUNT + 1) * rounds_of(segment) * size_of::<Symbol>()
}

/// Bytes that a coder of the second level holds: the tables, the symbols, and room for a joined segment, which may have grown by doubling.
pub(crate) const HELD: usize = 2 * size_of::<[u16; 1 << 16]>() + room_bytes(2, SEGMENT) + 2 * (WINDOW + SEGMENT);

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
pub(crate) struct Symbols<'a, const ROUNDS: usize> {
    rows: &'a Rows<ROUNDS>,
    pieces: &'a [Piece],
}

impl Quick {
    /// `looks_twice` at the second level.
    pub(crate) fn new(looks_twice: bool, processor: Processor) -> Quick {
        Quick { joined: Vec::new(), latest: Places::new(looks_twice), room: Room::new(looks_twice), processor }
    }

    /// Writes the input, a block for each segment.
    pub(crate) fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) -> Rest {
        let Quick { joined, latest, room, processor } = self;
        latest.begin_with(dictionary.len() + input.len());
        let dictionary = &dictionary[dictionary.len().saturating_sub(WINDOW)..];
        joined.clear();
        joined.extend_from_slice(dictionary);
        // Of equal length, so that the last one is worth its head.
        let bytes = input.len().div_ceil(input.len().div_ceil(SEGMENT).max(1)).max(1);
        let mut rest = Rest::default();
        for start in (0..input.len()).step_by(bytes) {
            let end = input.len().min(start + bytes);
            let (segment, last) = (&input[start..end], last && end == input.len());
            let place = start as u16;
            let (symbols, histogram) = if dictionary.is_empty() {
                room.find(*processor, latest, Part { text: input, segment: start..end, again: 0, place })
            } else {
                let before = joined.len();
                joined.extend_from_slice(segment);
                // What of the bytes before has not been put down yet.
                let again = if start == 0 { before } else { 0 };
                room.find(*processor, latest, Part { text: joined, segment: before..joined.len(), again, place })
            };
            rest = block::write(*processor, segment, &symbols, &histogram, last, rest, out);
            joined.drain(..joined.len().saturating_sub(WINDOW));
        }
        rest
    }
}

impl<const N: usize> Places<N> {
    pub(crate) fn new(looks_twice: bool) -> Places<N> {
        Places { near: zeros(), far: looks_twice.then(zeros), bits: HASH_BITS.min(N.ilog2()) }
    }

    /// Begins with an input of so many bytes, its dictionary among them.
    fn begin_with(&mut self, bytes: usize) {
        self.bits = FEW_BITS.iter().find(|(most, _)| bytes <= *most).map_or(HASH_BITS, |(_, bits)| *bits).min(N.ilog2());
        self.begin();
    }
}

impl<const N: usize> Latest for Places<N> {
    fn begin(&mut self) {
        // Seen from the first places this is too far back, and later it is among the input's own.
        for table in std::iter::once(&mut self.near).chain(&mut self.far) {
            table[..1 << self.bits].fill(WINDOW as u16 - 1);
        }
    }

    fn look_back(&mut self, processor: Processor, text: &[u8], place: u16, near: &mut [i16], far: &mut [i16]) {
        processor.run(LookBack::<NEAR, N> { text, place, bits: self.bits, latest: &mut self.near, back: near });
        if let Some(latest) = &mut self.far {
            processor.run(LookBack::<FAR, N> { text, place, bits: self.bits, latest, back: far });
        }
    }

    fn has_far(&self) -> bool {
        self.far.is_some()
    }

    fn bytes(&self) -> usize {
        size_of::<[u16; N]>() * (1 + usize::from(self.far.is_some()))
    }
}

/// An array on the heap; a thread's stack may have no room for it, where a box of a value would put it first.
fn zeros<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    // It has as many as the array, so this never makes another.
    vec![T::default(); N].into_boxed_slice().try_into().unwrap_or_else(|_| Box::new([T::default(); N]))
}

/// A segment in a text.
pub(crate) struct Part<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) segment: Range<usize>,
    /// Bytes before it whose places are put down as well.
    pub(crate) again: usize,
    /// The place of its first byte.
    pub(crate) place: u16,
}

impl<const SPAN: usize, const ROUNDS: usize> Room<SPAN, ROUNDS> {
    pub(crate) fn new(looks_twice: bool) -> Room<SPAN, ROUNDS> {
        let rows = vec![[0; ROUNDS]; COUNT + 1].into_boxed_slice();
        let rows = rows.try_into().unwrap_or_else(|_| Box::new([[0; ROUNDS]; COUNT + 1]));
        Room { near: zeros(), far: looks_twice.then(zeros), rows, pieces: Vec::new() }
    }

    /// The symbols of a segment, counted.
    pub(crate) fn find(
        &mut self,
        processor: Processor,
        latest: &mut (impl Latest + ?Sized),
        part: Part<'_>,
    ) -> (Symbols<'_, ROUNDS>, Histogram) {
        let Part { text, segment, again, place } = part;
        let before = segment.start.min(WINDOW);
        let text = &text[segment.start - before..];
        let segment_bytes = segment.len();
        let segment = before..before + segment_bytes;
        let looked = before - again..segment.end;
        if latest.has_far() && self.far.is_none() {
            self.far = Some(zeros());
        }
        let far = self.far.as_mut().map_or(&mut [][..], |far| &mut far[looked.clone()]);
        latest.look_back(processor, &text[looked.start..], place.wrapping_sub(again as u16), &mut self.near[looked.clone()], far);
        self.pieces.clear();
        let (text, near, rows, pieces) = (Text::new(text), &*self.near, &mut *self.rows, &mut self.pieces);
        match self.far.as_ref().filter(|_| latest.has_far()) {
            None => processor.run(Take { given: Given { text, near, more: Once }, segment, rows, pieces }),
            Some(far) => processor.run(Take { given: Given { text, near, more: Twice(far) }, segment, rows, pieces }),
        }
        self.pieces.sort_unstable_by_key(|piece| piece.at);
        let (rows, pieces) = (&mut *self.rows, &self.pieces);
        let histogram = if segment_bytes <= ALONE {
            count::<1, ROUNDS>(processor, rows, pieces)
        } else {
            count::<4, ROUNDS>(processor, rows, pieces)
        };
        (Symbols { rows: &self.rows, pieces: &self.pieces }, histogram)
    }
}

/// Work of [`Latest::look_back`].
struct LookBack<'a, const BYTES: usize, const N: usize> {
    /// From the first byte on.
    text: &'a [u8],
    /// Place of its first byte.
    place: u16,
    bits: u32,
    latest: &'a mut [u16; N],
    back: &'a mut [i16],
}

impl<const BYTES: usize, const N: usize> Work for LookBack<'_, BYTES, N> {
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
            let mut latest_of = |hash: u16, place| std::mem::replace(&mut latest[usize::from(hash) & (N - 1)], place);
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
struct Given<'a, M, const SPAN: usize> {
    text: Text<'a>,
    near: &'a [i16; SPAN],
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
struct Twice<'a, const SPAN: usize>(&'a [i16; SPAN]);

impl<const SPAN: usize> More for Twice<'_, SPAN> {
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
struct Take<'a, M, const SPAN: usize, const ROUNDS: usize> {
    given: Given<'a, M, SPAN>,
    segment: Range<usize>,
    rows: &'a mut Rows<ROUNDS>,
    pieces: &'a mut Vec<Piece>,
}

impl<M: More, const SPAN: usize, const ROUNDS: usize> Work for Take<'_, M, SPAN, ROUNDS> {
    type Result = ();

    #[inline(always)]
    fn run(self, vectors: impl Lanes) {
        match self.segment.len() {
            bytes if bytes <= ALONE => self.take::<1>(vectors),
            bytes if bytes <= FEW => self.take::<FEW_LANES>(vectors),
            _ => self.take::<COUNT>(vectors),
        }
    }
}

impl<M: More, const SPAN: usize, const ROUNDS: usize> Take<'_, M, SPAN, ROUNDS> {
    /// Takes all symbols, in so many lanes.
    #[inline(always)]
    fn take<const LANES: usize>(self, vectors: impl Lanes) {
        let Take { given, segment, rows, pieces } = self;
        let border = |lane: usize| segment.start + segment.len() * lane / LANES;
        let mut lanes: [Lane; LANES] = std::array::from_fn(|lane| Lane::new(border(lane), border(lane + 1)));
        let mut starts: [(usize, usize); LANES] = std::array::from_fn(|lane| (border(lane), 0));
        let (rows, [row]) = rows.split_at_mut(COUNT) else { return };
        let Some(rows) = rows.first_chunk_mut::<LANES>() else { return };
        let mut ends = Ends { row, count: 0, pieces };
        let mut round = 0;
        loop {
            round = rounds(vectors, given, &mut lanes, rows, round);
            let mut all = true;
            for lane in 0..LANES {
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
        for lane in 0..LANES {
            if lanes[lane].at < lanes[lane].end {
                let (at, first) = starts[lane];
                ends.close(vectors, given, &mut lanes[lane], Piece { at, row: lane, first, end: round });
            }
        }
    }
}

/// The symbols at the lanes' ends, which are taken apart.
struct Ends<'a, const ROUNDS: usize> {
    row: &'a mut [Symbol; ROUNDS],
    count: usize,
    /// All pieces so far.
    pieces: &'a mut Vec<Piece>,
}

impl<const ROUNDS: usize> Ends<'_, ROUNDS> {
    /// Ends a lane, of which this piece is taken.
    #[inline(always)]
    fn close<const SPAN: usize>(&mut self, vectors: impl Lanes, given: Given<'_, impl More, SPAN>, lane: &mut Lane, taken: Piece) {
        let (at, first) = (lane.at, self.count);
        lane.finish(vectors, given, self.row, &mut self.count);
        self.pieces.extend([taken, Piece { at, row: COUNT, first, end: self.count }]);
    }
}

/// Takes a symbol in each lane, again and again, until a lane is near its end.
#[inline(always)]
fn rounds<const SPAN: usize, const ROUNDS: usize, const LANES: usize>(
    vectors: impl Lanes,
    given: Given<'_, impl More, SPAN>,
    kept: &mut [Lane; LANES],
    rows: &mut [[Symbol; ROUNDS]; LANES],
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
fn share(lanes: &mut [Lane], lane: usize) -> bool {
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
    fn step<const SPAN: usize>(&mut self, vectors: impl Lanes, given: Given<'_, impl More, SPAN>, most: usize) -> Symbol {
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
    fn finish<const SPAN: usize, const ROUNDS: usize>(
        &mut self,
        vectors: impl Lanes,
        given: Given<'_, impl More, SPAN>,
        row: &mut [Symbol; ROUNDS],
        next: &mut usize,
    ) {
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

/// Counts a segment's symbols, so many side by side.
fn count<const SIDES: usize, const ROUNDS: usize>(processor: Processor, rows: &mut Rows<ROUNDS>, pieces: &[Piece]) -> Histogram {
    let mut counts = [Counts::EMPTY; SIDES];
    processor.run(Count { rows, pieces, counts: &mut counts });
    Counts::histogram(&counts)
}

/// Gives symbols their last form, and counts them.
struct Count<'a, const ROUNDS: usize, const SIDES: usize> {
    rows: &'a mut Rows<ROUNDS>,
    pieces: &'a [Piece],
    counts: &'a mut [Counts; SIDES],
}

impl<const ROUNDS: usize, const SIDES: usize> Work for Count<'_, ROUNDS, SIDES> {
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
                let (fours, few) = some.as_chunks::<SIDES>();
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

    fn histogram(all: &[Counts]) -> Histogram {
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

impl<const ROUNDS: usize> Body for Symbols<'_, ROUNDS> {
    type Forms = ([u64; 512], [u64; 256]);

    #[inline(always)]
    fn forms(codes: &Codes, litlens: &Litlens) -> Self::Forms {
        let lengths = codes.lengths(litlens);
        let distances = codes.distances();
        let litlens = std::array::from_fn(|at| if at < 256 { litlens[at] } else { lengths[at - 256] }.packed());
        // The byte that a slot is in has a bit of the litlen's too.
        (litlens, std::array::from_fn(|at| distances[at & 31].packed()))
    }

    fn fixed() -> &'static Self::Forms {
        static FORMS: LazyLock<([u64; 512], [u64; 256])> =
            LazyLock::new(|| Symbols::<{ rounds_of(SEGMENT) }>::forms(&FIXED, &FIXED.litlens()));
        &FORMS
    }

    #[inline(always)]
    fn write<'w>(&self, _: &[u8], (litlens, distances): &Self::Forms, mut writer: Writer<'w>) -> Writer<'w> {
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
