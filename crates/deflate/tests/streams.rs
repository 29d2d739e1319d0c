//! Streams with flushes between: what two decoders make of them, at every border, whatever was left and taken up again; the same on every
//! processor; and no more memory than is said.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bodies;

use bodies::{noise, text};
use flate2::{Decompress, FlushDecompress, Status};
use proptest::prelude::*;
use std::cell::RefCell;
use terse_deflate::decode::{Inflate, Stop};
use terse_deflate::{Flush, Lists, Processor, RESTING, Room, STREAMING, Stock, Stream, Table};
use terse_trial::{Form, stream};

/// Levels that differ.
const LEVELS: std::ops::RangeInclusive<u8> = 1..=8;

/// A stock that keeps everything, so that what a stream leaves has been used by another.
#[derive(Default)]
struct Shelf {
    lists: RefCell<Vec<Lists>>,
    rooms: RefCell<Vec<Room>>,
    tables: RefCell<Vec<Table>>,
}

impl Stock for Shelf {
    fn take_lists(&self) -> Option<Lists> {
        self.lists.borrow_mut().pop()
    }

    fn give_lists(&self, lists: Lists) {
        self.lists.borrow_mut().push(lists);
    }

    fn take_room(&self) -> Option<Room> {
        self.rooms.borrow_mut().pop()
    }

    fn give_room(&self, room: Room) {
        self.rooms.borrow_mut().push(room);
    }

    fn take_table(&self, kind: usize) -> Option<Table> {
        let mut tables = self.tables.borrow_mut();
        let place = tables.iter().position(|table| table.kind() == kind)?;
        Some(tables.swap_remove(place))
    }

    fn give_table(&self, table: Table) {
        self.tables.borrow_mut().push(table);
    }
}

/// Both decoders, which are given what comes out as it comes.
struct Decoders {
    theirs: Decompress,
    ours: Inflate,
}

impl Decoders {
    fn new() -> Decoders {
        Decoders { theirs: Decompress::new(false), ours: Inflate::new() }
    }

    /// What they make of the next bytes, which is the same, and whether the stream ends there.
    fn decode(&mut self, coded: &[u8]) -> (Vec<u8>, bool) {
        let (mut buffer, mut theirs, mut ours) = (vec![0; 1 << 16], Vec::new(), Vec::new());
        let (first, mut ended) = (self.theirs.total_in(), false);
        loop {
            let (taken, given) = (self.theirs.total_in(), self.theirs.total_out());
            let rest = &coded[(taken - first) as usize..];
            let status = self.theirs.decompress(rest, &mut buffer, FlushDecompress::None).unwrap();
            let new = (self.theirs.total_out() - given) as usize;
            theirs.extend_from_slice(&buffer[..new]);
            ended |= status == Status::StreamEnd;
            if ended || (new == 0 && self.theirs.total_in() == taken) {
                break;
            }
        }
        let (mut rest, mut ended_ours) = (coded, false);
        while !ended_ours {
            let progress = self.ours.decode(rest, &mut buffer).unwrap();
            ours.extend_from_slice(&buffer[..progress.given]);
            rest = &rest[progress.taken..];
            ended_ours = matches!(progress.stop, Stop::End);
            if progress.given == 0 && progress.taken == 0 {
                break;
            }
        }
        assert!(theirs == ours && ended == ended_ours, "both decoders agree");
        assert!(!ended || (rest.is_empty() && self.theirs.total_in() - first == coded.len() as u64), "all is taken");
        (theirs, ended)
    }
}

/// What is done with the next bytes.
#[derive(Clone, Debug)]
enum Act {
    /// They are pushed.
    Push(Vec<u8>, bool),
    /// It makes itself small, and keeps so many bytes.
    Lighten(usize),
    Level(u8),
}

/// Runs a stream through both decoders.
fn run(processor: Processor, level: u8, acts: &[Act], stock: &dyn Stock) -> Vec<u8> {
    let (mut stream, mut decoders) = (Stream::on(processor, level), Decoders::new());
    let (mut out, mut all, mut fed, mut came) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut push = |stream: &mut Stream, bytes: &[u8], flush| {
        fed.extend_from_slice(bytes);
        out.clear();
        stream.push(bytes, flush, stock, &mut out);
        all.extend_from_slice(&out);
        let (decoded, ended) = decoders.decode(&out);
        came.extend(decoded);
        assert_eq!(ended, flush == Flush::Finish);
        assert!(fed.starts_with(&came) && (flush == Flush::None || came.len() == fed.len()), "{} of {}", came.len(), fed.len());
        assert!(stream.memory() <= if flush == Flush::None { STREAMING } else { RESTING }, "{} {flush:?}", stream.memory());
    };
    for act in acts {
        match act {
            Act::Push(bytes, flush) => push(&mut stream, bytes, if *flush { Flush::Sync } else { Flush::None }),
            Act::Lighten(most) => {
                push(&mut stream, &[], Flush::Sync);
                stream.lighten(*most, stock);
                assert!(stream.memory() <= *most);
            }
            Act::Level(level) => stream.set_level(*level),
        }
    }
    push(&mut stream, &[], Flush::Finish);
    assert_eq!(stream.memory(), 0, "nothing is held behind the end");
    all
}

/// Pieces of every kind and of lengths from none to more than the window's ring.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (any::<u64>(), 0..12usize).prop_map(|(seed, length)| text(seed, length)),
        8 => (any::<u64>(), 0..5000usize).prop_map(|(seed, length)| text(seed, length)),
        2 => (any::<u64>(), 1..=256u64, 0..4000usize).prop_map(|(seed, letters, length)| {
            let mut next = noise(seed);
            (0..length).map(|_| (next() >> 8).wrapping_rem(letters) as u8).collect()
        }),
        2 => (any::<u8>(), 0..3000usize).prop_map(|(byte, length)| vec![byte; length]),
        1 => (any::<u64>(), 1..40usize, 0..3000usize).prop_map(|(seed, length, times)| text(seed, length).repeat(times)),
        1 => (any::<u64>(), 20_000..90_000usize).prop_map(|(seed, length)| text(seed, length)),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => (pieces(), any::<bool>()).prop_map(|(bytes, flush)| Act::Push(bytes, flush)),
        1 => (0..9000usize).prop_map(Act::Lighten),
        1 => LEVELS.prop_map(Act::Level),
    ];
    prop::collection::vec(act, 0..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn everything_comes_back_at_every_border(acts in acts(), level in LEVELS) {
        let shelf = Shelf::default();
        let forms: Vec<Vec<u8>> = Processor::all().into_iter().map(|processor| run(processor, level, &acts, &shelf)).collect();
        prop_assert!(forms.iter().all(|form| form == &forms[0]), "the same on every processor");
        // What others have left changes nothing, in the middle of a block, too.
        prop_assert!(run(Processor::here(), level, &acts, &()) == forms[0]);
        let mut left = Stream::new(level);
        left.push(&text(1, 3000), Flush::None, &shelf, &mut Vec::new());
        left.leave(&shelf);
        prop_assert!(left.memory() == 0);
        prop_assert!(run(Processor::here(), level, &acts, &shelf) == forms[0]);
    }
}

/// Borders at every bit of a byte, one behind the other.
#[test]
fn a_border_may_fall_on_any_bit() {
    let body = text(3, 4000);
    for length in 1..40 {
        let acts: Vec<Act> = body.chunks(length).map(|piece| Act::Push(piece.to_vec(), true)).collect();
        run(Processor::here(), 8, &acts, &());
    }
}

#[test]
fn a_border_behind_nothing_is_nothing() {
    let (mut stream, mut out) = (Stream::new(8), Vec::new());
    stream.push(&[], Flush::Sync, &(), &mut out);
    assert!(out.is_empty());
    stream.push(b"something", Flush::Sync, &(), &mut out);
    let length = out.len();
    stream.push(&[], Flush::Sync, &(), &mut out);
    stream.push(&[], Flush::None, &(), &mut out);
    assert_eq!(out.len(), length);
}

/// An empty stored block is three and a half bytes longer in the mean.
#[test]
fn a_border_is_an_empty_stored_block_and_comes_once() {
    let body = text(5, 100_000);
    let (mut stream, mut coded) = (Stream::new(8), Vec::new());
    let mut borders = 0;
    for piece in body.chunks(1000) {
        stream.push(piece, Flush::Sync, &(), &mut coded);
        borders += usize::from(coded.ends_with(&[0, 0, 0xff, 0xff]));
    }
    assert_eq!(borders, 100);
    let length = coded.len();
    stream.push(&[], Flush::Sync, &(), &mut coded);
    assert_eq!(coded.len(), length, "nothing new");
}

/// As many bytes as a block has, and one less and one more, behind as many as can be referred to.
#[test]
fn blocks_may_be_full() {
    let body = text(7, 160 << 10);
    for level in LEVELS {
        for length in [32_767, 32_768, 32_769, 65_536] {
            for flush in [true, false] {
                let acts: Vec<Act> = body.chunks(length).map(|piece| Act::Push(piece.to_vec(), flush)).collect();
                run(Processor::here(), level, &acts, &());
            }
        }
    }
}

/// The farthest match is used across pieces, and what is farther is not.
#[test]
fn matches_reach_back_over_the_whole_window() {
    let mut next = noise(5);
    let block: Vec<u8> = (0..32_768).map(|_| next() as u8).collect();
    let mut stream = Stream::new(8);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    stream.push(&block, Flush::Sync, &(), &mut first);
    stream.push(&block, Flush::Sync, &(), &mut second);
    assert!(second.len() < 2000, "{}", second.len());
    let acts = [Act::Push([&block[..], &[0]].concat(), true), Act::Push(block, true)];
    run(Processor::here(), 8, &acts, &());
}

#[test]
fn a_dictionary_is_referred_to() {
    let body = text(9, 3000);
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    Stream::new(8).push(&body, Flush::Finish, &(), &mut alone);
    let mut stream = Stream::new(8);
    stream.begin(&body);
    stream.push(&body, Flush::Finish, &(), &mut with);
    assert!(with.len() * 5 < alone.len(), "{} of {}", with.len(), alone.len());
}

/// Many connections with little on each.
#[test]
fn a_short_stream_holds_little_and_a_limited_one_no_more() {
    let mut stream = Stream::new(8);
    stream.push(&text(1, 1500), Flush::Sync, &(), &mut Vec::new());
    let little = stream.memory();
    assert!(little < 80 << 10, "{little}");
    stream.limit(0);
    stream.push(&text(2, 100_000), Flush::Sync, &(), &mut Vec::new());
    assert_eq!(stream.memory(), little);
    stream.limit(Table::SIZES);
    stream.push(&text(2, 100), Flush::Sync, &(), &mut Vec::new());
    assert!(stream.memory() > 2 * little && stream.memory() <= RESTING && RESTING <= 212 << 10);
}

/// The cases that all engines pass.
struct Face(Processor);

impl stream::Streams for Face {
    fn name(&self) -> String {
        format!("streams, {:?}", self.0)
    }

    fn form(&self) -> Form {
        Form::Raw
    }

    fn levels(&self) -> Vec<u8> {
        LEVELS.collect()
    }

    fn open(&self, level: u8) -> Box<dyn stream::Stream> {
        Box::new(Open(Stream::on(self.0, level)))
    }
}

struct Open(Stream);

impl stream::Stream for Open {
    fn push(&mut self, input: &[u8], flush: stream::Flush, out: &mut Vec<u8>) -> Result<(), String> {
        let flush = match flush {
            stream::Flush::None => Flush::None,
            stream::Flush::Sync => Flush::Sync,
            stream::Flush::Finish => Flush::Finish,
        };
        self.0.push(input, flush, &(), out);
        Ok(())
    }

    fn reset(&mut self) {
        self.0.leave(&());
    }

    fn lighten(&mut self, all: bool) {
        self.0.lighten(if all { 0 } else { 4096 }, &());
    }
}

#[test]
fn what_all_engines_pass() {
    Processor::all().into_iter().for_each(|processor| stream::try_all(&Face(processor)));
}
