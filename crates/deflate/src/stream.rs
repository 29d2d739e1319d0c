//! Deflate of bytes as they come, with flushes between.
//!
//! ```text
//!              bytes                    bytes, the tables grow
//!   no tables ───────> a block is open ──┐       flush
//!                       ^    ^───────────┘────────────────> at a border: text and tables are kept
//!                       └──────────────────── bytes ─────────────┘
//! ```
//!
//! The first two levels go the quick way ([`quick`]), the others that of rows ([`rows`]). What a stream needs for as long as a block is open, it borrows
//! from a [`Stock`], as it does its tables.
//!
//! Invariant: the same pushes behind the same dictionary give the same bytes, whatever its parts have done before, and on every processor.

mod quick;
mod rows;

use crate::bits::Rest;
use crate::parse::Sequences;
use crate::processor::Processor;
use crate::rows::{STREAM_BYTES, STREAM_SIZES, Tables};
use crate::symbols::WINDOW;
use quick::ByQuick;
use rows::ByRows;

/// What has to be decodable when a push returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Nothing.
    None,
    /// All input so far, at a byte's border: an empty stored block ends there, unless nothing came since the last one.
    Sync,
    /// All input, and the stream ends.
    Finish,
}

/// Where streams borrow what they need, and leave what they need no longer.
pub trait Stock {
    /// Lists of another block, if any wait here.
    fn take_lists(&self) -> Option<Lists>;

    /// Keeps lists for another block.
    fn give_lists(&self, lists: Lists);

    /// Room of another block, if any waits here.
    fn take_room(&self) -> Option<Room>;

    /// Keeps room for another block.
    fn give_room(&self, room: Room);

    /// A table of one of [`Table::KINDS`], if any waits here.
    fn take_table(&self, kind: usize) -> Option<Table>;

    /// Keeps a table for another stream.
    fn give_table(&self, table: Table);
}

/// A stock that keeps nothing.
impl Stock for () {
    fn take_lists(&self) -> Option<Lists> {
        None
    }

    fn give_lists(&self, _: Lists) {}

    fn take_room(&self) -> Option<Room> {
        None
    }

    fn give_room(&self, _: Room) {}

    fn take_table(&self, _: usize) -> Option<Table> {
        None
    }

    fn give_table(&self, _: Table) {}
}

/// What an open block needs.
pub struct Lists(Sequences);

/// What a block of the first two levels needs while it is coded.
pub struct Room(Box<quick::Room>);

/// A stream's last bytes, and what finds places in them.
pub struct Table(Kind);

enum Kind {
    /// Rows of a size.
    Rows(usize, Box<dyn Tables>),
    Quick(Box<quick::Table>),
}

impl Table {
    /// Sizes that there are of each, the smallest first.
    pub const SIZES: usize = STREAM_SIZES;

    /// Kinds that there are.
    pub const KINDS: usize = Table::SIZES + quick::KINDS;

    /// Which it is of [`Table::KINDS`].
    pub fn kind(&self) -> usize {
        match &self.0 {
            Kind::Rows(size, _) => *size,
            Kind::Quick(table) => Table::SIZES + table.kind(),
        }
    }

    fn of_rows(size: usize, tables: Box<dyn Tables>) -> Table {
        Table(Kind::Rows(size, tables))
    }
}

/// The most bytes that a stream holds behind a flush.
pub const RESTING: usize = STREAM_BYTES;
const _: () = assert!(quick::RESTING <= RESTING);

/// The most bytes that a stream holds.
pub const STREAMING: usize = STREAM_BYTES + rows::OPEN_BYTES;

/// A stream of one body.
pub struct Stream {
    level: u8,
    processor: Processor,
    /// The largest of the sizes that its tables may have.
    most: usize,
    way: Way,
}

enum Way {
    Rows(Box<ByRows>),
    Quick(Box<ByQuick>),
}

/// What is left of a stream that goes on in another way.
#[derive(Default)]
struct Left {
    /// Its last bytes.
    history: Vec<u8>,
    /// Bits of the last byte.
    rest: Rest,
    /// Whether something is behind the last border.
    owes: bool,
}

impl Way {
    fn new(processor: Processor, level: u8, most: usize, left: Left) -> Way {
        match level {
            0..=2 => Way::Quick(Box::new(ByQuick::new(processor, level == 2, most, left))),
            _ => Way::Rows(Box::new(ByRows::new(processor, level, most, left))),
        }
    }

    fn is_for(&self, level: u8) -> bool {
        match self {
            Way::Rows(_) => level > 2,
            Way::Quick(way) => level <= 2 && way.looks_twice() == (level == 2),
        }
    }
}

impl Stream {
    /// A stream at one of [`crate::LEVELS`]; what is beyond is as the nearest.
    pub fn new(level: u8) -> Stream {
        Stream::on(Processor::here(), level)
    }

    /// The same, on a processor that can do so much: it gives the same bytes.
    pub fn on(processor: Processor, level: u8) -> Stream {
        let most = STREAM_SIZES - 1;
        Stream { level, processor, most, way: Way::new(processor, level, most, Left::default()) }
    }

    /// Has tables of this one of [`Table::SIZES`] at most.
    pub fn limit(&mut self, size: usize) {
        self.most = size.min(STREAM_SIZES - 1);
        match &mut self.way {
            Way::Rows(way) => way.limit(self.most),
            Way::Quick(way) => way.limit(self.most),
        }
    }

    /// Begins behind a dictionary, of which the last 32 KB count: the decoder must have put it out just before. Only before the first push.
    pub fn begin(&mut self, dictionary: &[u8]) {
        let history = dictionary[dictionary.len().saturating_sub(WINDOW)..].to_vec();
        self.way = Way::new(self.processor, self.level, self.most, Left { history, ..Left::default() });
    }

    /// Takes all of `input`, and appends what comes out to `out`. Nothing may follow [`Flush::Finish`].
    pub fn push(&mut self, input: &[u8], flush: Flush, stock: &dyn Stock, out: &mut Vec<u8>) {
        if !input.is_empty() && !self.way.is_for(self.level) {
            let left = match &mut self.way {
                Way::Rows(way) => way.end(stock, out),
                Way::Quick(way) => way.end(stock, out),
            };
            self.way = Way::new(self.processor, self.level, self.most, left);
        }
        match &mut self.way {
            Way::Rows(way) => way.push(input, flush, stock, out),
            Way::Quick(way) => way.push(input, flush, stock, out),
        }
        if flush == Flush::Finish {
            self.leave(stock);
        }
    }

    /// Bytes that a push of so many has coded, of those that it was given before, too.
    pub fn due(&self, bytes: usize, flush: Flush) -> usize {
        match &self.way {
            Way::Rows(_) => bytes,
            Way::Quick(way) => way.due(bytes, flush),
        }
    }

    /// Whether bytes are coded as they come, but for the symbols of a block. Otherwise they are kept until they are one.
    pub fn is_steady(&self) -> bool {
        matches!(self.way, Way::Rows(_))
    }

    /// Bytes that it holds now.
    pub fn memory(&self) -> usize {
        match &self.way {
            Way::Rows(way) => way.memory(),
            Way::Quick(way) => way.memory(),
        }
    }

    /// The most bytes that it holds, with those that a push gives back before it returns.
    pub fn full_memory(&self) -> usize {
        match self.level {
            0..=2 => quick::full_memory(self.level == 2),
            _ => STREAMING,
        }
    }

    /// Leaves its tables until the next push, and keeps the last bytes that it took, so many at most, for matches. Only behind a flush.
    pub fn lighten(&mut self, most: usize, stock: &dyn Stock) {
        match &mut self.way {
            Way::Rows(way) => way.lighten(most, stock),
            Way::Quick(way) => way.lighten(most, stock),
        }
    }

    /// Goes on at another level.
    pub fn set_level(&mut self, level: u8) {
        self.level = level;
        if let Way::Rows(way) = &mut self.way {
            way.set_level(level);
        }
    }

    /// Leaves all that it borrowed, and forgets what it was given.
    pub fn leave(&mut self, stock: &dyn Stock) {
        match &mut self.way {
            Way::Rows(way) => way.leave(stock),
            Way::Quick(way) => way.leave(stock),
        }
        self.way = Way::new(self.processor, self.level, self.most, Left::default());
    }
}
