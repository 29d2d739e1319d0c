//! The quick way to symbols: one earlier place for each byte, and hardly a branch that must be guessed.
//!
//! On text the time of a quick coder goes where no processor can guess: is there a match here, and how long is it? Here neither is
//! branched on. A segment goes through in three steps:
//!
//! 1. [`Quick::look_back`] finds for each byte how far back the latest place lies whose four bytes have the same hash. Nothing is
//!    compared, so these steps wait for nothing.
//! 2. [`Lane::step`] compares sixteen bytes at both places and takes the match or the literal by selection. Where the next symbol begins
//!    is known only when that is done, so two lanes, the halves of the segment, take a symbol each in turns: one computes while the
//!    other waits. Only a match of sixteen bytes or more is followed apart.
//! 3. The symbols, which are one word each, are written ([`Body::write`]), literals and matches in the same way.
//!
//! Invariant: matches end with their lane, so a segment stands for its own bytes exactly.

use crate::bits::{Rest, Writer};
use crate::block::{self, Bits, Body, Codes, Distance, Litlens};
use crate::lanes::{Lanes, Plain};
use crate::processor::{Processor, Work};
use crate::sequence::Histogram;
use crate::symbols::{DISTANCE_SYMBOLS, FIRST_LENGTH, LENGTH_SLOT, MAX_MATCH, MIN_MATCH, WINDOW, distance_extra, distance_slot};
use std::hint::select_unpredictable as select;

/// Bytes of a segment, which is a block. Places are kept modulo 65,536, so they stay what they are when the text moves on by a segment.
const SEGMENT: usize = 1 << 16;

/// Symbols of half a segment.
const LANE: usize = SEGMENT / 2;

/// Bytes that are compared at once.
const WORD: usize = 16;

/// Places are found by as many bits of a hash.
const HASH_BITS: u32 = 15;

/// Matches are found by their first bytes, so many.
const SHORTEST: u32 = 4;

/// Places in the text: more than are used, so that a place modulo this is one without being looked at.
const TEXT: usize = (WINDOW + SEGMENT).next_power_of_two();
type Text = [u8; TEXT + WORD];

/// Finds the symbols of one segment after the other.
pub(crate) struct Quick {
    /// What came before the segment, up to its first byte at [`WINDOW`]; the segment; and what is read behind it.
    text: Box<Text>,
    /// Bytes before the segment that matches may refer to.
    behind: usize,
    /// By hash, the latest place.
    latest: Box<[u16; 1 << HASH_BITS]>,
    /// For each byte of the segment, how far back the place before it is that has the same hash.
    back: Box<[u16; SEGMENT]>,
    symbols: Box<[[Symbol; LANE]; 2]>,
    processor: Processor,
}

/// A literal or a match: from the lowest bit on, what the extra bits of the distance say (13 bits), the distance's symbol (5), and which
/// of [`Counts::litlen`] it is.
type Symbol = u32;

/// The symbol of the distance that literals have: none.
const NO_DISTANCE: u32 = 31;
const _: () = assert!(NO_DISTANCE as usize >= DISTANCE_SYMBOLS);

/// The bits of a symbol that are a distance's extra bits.
const EXTRA: u32 = (1 << 13) - 1;

/// By the distance less one up to 256; behind these, for each 128 of the others: its symbol, and those of its bits that are extra.
static DISTANCES: [u32; 512] = distances();

const fn distances() -> [u32; 512] {
    let mut table = [0; 512];
    let mut at = 0;
    while at < 512 {
        let less = if at < 256 { at } else { (at - 256) << 7 };
        let slot = distance_slot(less as u16 + 1);
        table[at] = (slot as u32) << 13 | ((1 << distance_extra(slot)) - 1);
        at += 1;
    }
    table
}

/// How often symbols occur.
struct Counts {
    /// The bytes, and behind these the lengths, less [`MIN_MATCH`].
    litlen: [u32; 512],
    distance: [u32; 32],
}

/// The symbols of a segment.
struct Symbols<'a>([&'a [Symbol]; 2]);

impl Quick {
    pub(crate) fn new(processor: Processor) -> Quick {
        Quick {
            text: Box::new([0; TEXT + WORD]),
            behind: 0,
            latest: Box::new([0; 1 << HASH_BITS]),
            back: Box::new([0; SEGMENT]),
            symbols: Box::new([[0; LANE]; 2]),
            processor,
        }
    }

    /// Writes the input, a block for each segment.
    pub(crate) fn encode(&mut self, dictionary: &[u8], input: &[u8], last: bool, out: &mut Vec<u8>) -> Rest {
        self.reset(dictionary);
        let (processor, mut rest) = (self.processor, Rest::default());
        let mut segments = input.chunks(SEGMENT).peekable();
        while let Some(segment) = segments.next() {
            let (symbols, histogram) = self.parse(segment);
            rest = block::write(processor, segment, &symbols, &histogram, last && segments.peek().is_none(), rest, out);
        }
        rest
    }

    /// Begins again, behind a dictionary, of which the last 32 KB count.
    fn reset(&mut self, dictionary: &[u8]) {
        let dictionary = &dictionary[dictionary.len().saturating_sub(WINDOW)..];
        self.behind = dictionary.len();
        self.latest.fill(0);
        self.text[WINDOW - self.behind..WINDOW].copy_from_slice(dictionary);
        self.text[WINDOW..WINDOW + WORD].fill(0);
        // Places that were not looked at would be taken for matches as well as any: they are compared before they are used.
        self.look_back(WINDOW - self.behind, self.behind);
    }

    /// The symbols of the next segment, counted.
    fn parse(&mut self, segment: &[u8]) -> (Symbols<'_>, Histogram) {
        let end = WINDOW + segment.len();
        self.text[WINDOW..end].copy_from_slice(segment);
        self.text[end..end + WORD].fill(0);
        self.look_back(WINDOW, segment.len());
        let mut counts = Counts { litlen: [0; 512], distance: [0; 32] };
        let middle = WINDOW + segment.len() / 2;
        let [first, second] = &mut *self.symbols;
        let mut lanes =
            [Lane { at: WINDOW, end: middle, count: 0, symbols: first }, Lane { at: middle, end, count: 0, symbols: second }];
        let given = Given { text: &self.text, back: &self.back, start: WINDOW - self.behind };
        self.processor.run(Take { given, lanes: &mut lanes, counts: &mut counts });
        let found = lanes.map(|lane| lane.count);
        self.behind = WINDOW.min(self.behind + segment.len());
        self.text.copy_within(segment.len()..end, 0);
        let [first, second] = &*self.symbols;
        (Symbols([&first[..found[0]], &second[..found[1]]]), counts.histogram())
    }

    /// Finds for each of `count` bytes from `start` on the latest place before, and puts down the byte as the latest.
    fn look_back(&mut self, start: usize, count: usize) {
        self.processor.run(LookBack {
            text: &self.text[start..],
            place: start as u16,
            latest: &mut self.latest,
            back: &mut self.back[..count],
        });
    }
}

/// What [`Quick::look_back`] does.
struct LookBack<'a> {
    /// From the first byte on.
    text: &'a [u8],
    /// Where that is.
    place: u16,
    latest: &'a mut [u16; 1 << HASH_BITS],
    back: &'a mut [u16],
}

impl Work for LookBack<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: impl Lanes) {
        let LookBack { text, mut place, latest, back } = self;
        for (four, back) in text.windows(4).zip(back) {
            let four = u32::from_le_bytes(*four.first_chunk().unwrap_or(&[0; 4]));
            let latest = &mut latest[(four.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize];
            *back = place.wrapping_sub(*latest);
            *latest = place;
            place = place.wrapping_add(1);
        }
    }
}

/// What lanes look at.
struct Given<'a> {
    text: &'a Text,
    back: &'a [u16; SEGMENT],
    /// The first place that a match may refer to.
    start: usize,
}

/// Takes all symbols.
struct Take<'a, 'l> {
    given: Given<'a>,
    lanes: &'a mut [Lane<'l>; 2],
    counts: &'a mut Counts,
}

impl Work for Take<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run(self, vectors: impl Lanes) {
        let Take { given, lanes, counts } = self;
        while lanes.iter().all(Lane::has_room) {
            lanes.iter_mut().for_each(|lane| lane.step(vectors, &given, counts));
        }
        for lane in lanes {
            lane.finish(vectors, &given, counts);
        }
    }
}

impl Given<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> [u8; WORD] {
        match self.text[at % TEXT..].first_chunk() {
            Some(word) => *word,
            None => [0; WORD],
        }
    }

    /// How many bytes are equal at two places, of which the first [`WORD`] are.
    #[inline(never)]
    fn common(&self, earlier: usize, at: usize, end: usize) -> u32 {
        let most = MAX_MATCH.min(end - at);
        let mut length = WORD;
        while length < most {
            let more = Plain.common(self.word(earlier + length), self.word(at + length)) as usize;
            length += more;
            if more < WORD {
                break;
            }
        }
        length.min(most) as u32
    }
}

/// A part of the segment.
struct Lane<'a> {
    at: usize,
    end: usize,
    count: usize,
    symbols: &'a mut [Symbol; LANE],
}

impl Lane<'_> {
    /// Whether all that a step compares lies in the lane.
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.at + WORD <= self.end
    }

    /// Takes one symbol.
    #[inline(always)]
    fn step(&mut self, vectors: impl Lanes, given: &Given<'_>, counts: &mut Counts) {
        let at = self.at;
        let distance = given.back[at.wrapping_sub(WINDOW) % SEGMENT];
        let earlier = at.wrapping_sub(usize::from(distance));
        let usable = (usize::from(distance).wrapping_sub(1) < WINDOW) & (earlier >= given.start);
        let here = given.word(at);
        let mut length = vectors.common(given.word(earlier), here);
        let is_match = usable & (length >= SHORTEST);
        if is_match & (length == WORD as u32) {
            length = given.common(earlier, at, self.end);
        }
        let less = usize::from(distance.wrapping_sub(1));
        let symbol = DISTANCES[select(less < 256, less, 256 + (less >> 7)) & 511] & (less as u32 | !EXTRA);
        let litlen = select(is_match, 256 - MIN_MATCH as u32 + length, u32::from(given.text[at % TEXT]));
        self.put(litlen, select(is_match, symbol, NO_DISTANCE << 13), counts);
        self.at += select(is_match, length as usize, 1);
    }

    /// Takes what is left.
    #[inline(always)]
    fn finish(&mut self, vectors: impl Lanes, given: &Given<'_>, counts: &mut Counts) {
        while self.has_room() {
            self.step(vectors, given, counts);
        }
        for byte in &given.text[self.at..self.end] {
            self.put(u32::from(*byte), NO_DISTANCE << 13, counts);
        }
    }

    #[inline(always)]
    fn put(&mut self, litlen: u32, distance: u32, counts: &mut Counts) {
        counts.litlen[litlen as usize & 511] += 1;
        counts.distance[(distance >> 13) as usize & 31] += 1;
        self.symbols[self.count % LANE] = litlen << 18 | distance;
        self.count += 1;
    }
}

impl Counts {
    fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::of_nothing();
        let (bytes, lengths) = self.litlen.split_at(256);
        histogram.litlen[..256].copy_from_slice(bytes);
        for (slot, count) in LENGTH_SLOT.iter().zip(lengths) {
            histogram.litlen[FIRST_LENGTH + usize::from(*slot)] += count;
        }
        histogram.distance.copy_from_slice(&self.distance[..DISTANCE_SYMBOLS]);
        histogram
    }
}

impl Body for Symbols<'_> {
    #[inline(always)]
    fn write<'w>(&self, _: &[u8], codes: &Codes, litlens: &Litlens, mut writer: Writer<'w>) -> Writer<'w> {
        let lengths = codes.lengths(litlens);
        let litlens: [Bits; 512] = std::array::from_fn(|at| if at < 256 { litlens[at] } else { lengths[at - 256] });
        let distances = codes.distances();
        for symbol in self.0.into_iter().flatten() {
            let litlen = litlens[(symbol >> 18) as usize & 511];
            let Distance { code, extra } = distances[(symbol >> 13) as usize & 31];
            litlen.put(&mut writer);
            code.put(&mut writer);
            writer.put(u64::from(symbol & 0x1fff), extra);
            writer.store();
        }
        writer
    }
}
