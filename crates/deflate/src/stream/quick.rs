//! Streams in the quick way.
//!
//! What has come stands in a text, behind the bytes that may be referred to; it is coded at a flush, or when it is a block. What a stream keeps between
//! flushes is that text and the latest places.
//!
//! ```text
//!   text   | a window at most | what is in no block yet | zeros |
//!                             ^ coded
//! ```
//!
//! Invariant: the text has all bytes that a place in the tables may be taken for: as many as there have been, or a window of them.

use super::{Flush, Kind, Left, Stock};
use crate::bits::Rest;
use crate::block;
use crate::lanes::WORD;
use crate::processor::Processor;
use crate::quick::{self, FAR, Latest, Part, Places};
use crate::rows::STREAM_SIZES;
use crate::symbols::WINDOW;

/// The most bytes of a block. A text has a window and a block.
const BLOCK: usize = 32 * 1024;

/// Zeros behind the text, so that as many bytes as are compared at once can be read at its end.
const BEHIND: usize = WORD;

/// The most bytes of a stream for which tables of each size but the last do, and their bits.
const FITS: [usize; STREAM_SIZES - 1] = [2048, 16 * 1024];

/// Kinds of tables: for each size those of one place and those of two.
pub(super) const KINDS: usize = 2 * STREAM_SIZES;

/// The most bytes that a stream holds between pushes.
pub(super) const RESTING: usize = TEXT + 2 * TABLE;

/// Bytes of the largest table.
const TABLE: usize = size_of::<[u16; 1 << 15]>();

/// Bytes of a full text.
const TEXT: usize = WINDOW + BLOCK + BEHIND;

/// The most bytes that it holds in a push. The room is the stock's again when that returns: a thread's streams share it.
pub(super) const fn full_memory(looks_twice: bool) -> usize {
    let places = if looks_twice { 2 } else { 1 };
    TEXT + places * TABLE + quick::room_bytes(places, BLOCK)
}

/// Room for a block.
pub(super) type Room = quick::Room<{ quick::span_of(BLOCK) }, { quick::rounds_of(BLOCK) }>;

/// Text, and the latest places in it.
pub(super) struct Table {
    size: usize,
    latest: Box<dyn Latest>,
    text: Vec<u8>,
}

impl Table {
    /// Which it is of [`KINDS`].
    pub(super) fn kind(&self) -> usize {
        kind(self.size, self.latest.has_far())
    }

    /// One of a size.
    fn take(size: usize, looks_twice: bool, stock: &dyn Stock) -> Box<Table> {
        let mut table = match stock.take_table(super::Table::SIZES + kind(size, looks_twice)).map(|table| table.0) {
            Some(Kind::Quick(table)) => table,
            _ => Box::new(Table { size, latest: latest(size, looks_twice), text: Vec::new() }),
        };
        table.text.clear();
        table.latest.begin();
        table
    }
}

fn kind(size: usize, looks_twice: bool) -> usize {
    size + if looks_twice { STREAM_SIZES } else { 0 }
}

fn latest(size: usize, looks_twice: bool) -> Box<dyn Latest> {
    match size {
        0 => Box::new(Places::<{ 1 << 11 }>::new(looks_twice)),
        1 => Box::new(Places::<{ 1 << 13 }>::new(looks_twice)),
        _ => Box::new(Places::<{ 1 << 15 }>::new(looks_twice)),
    }
}

/// A stream of one body.
pub(super) struct ByQuick {
    looks_twice: bool,
    processor: Processor,
    table: Option<Box<Table>>,
    /// Bits of the last byte.
    rest: Rest,
    /// Whether something is behind the last border.
    owes: bool,
    /// The largest of the sizes that it may have.
    most: usize,
    /// The last bytes, while there is no table.
    history: Vec<u8>,
    /// The place of the text's first byte.
    place: u16,
    /// Numbers of bytes of the text: of all,
    end: usize,
    /// of those in blocks,
    coded: usize,
    /// and of those whose places have been put down with what follows them.
    known: usize,
}

impl ByQuick {
    /// Goes on where another left off.
    pub(super) fn new(processor: Processor, looks_twice: bool, most: usize, left: Left) -> ByQuick {
        let Left { history, rest, owes } = left;
        ByQuick { looks_twice, processor, table: None, rest, owes, most, history, place: 0, end: 0, coded: 0, known: 0 }
    }

    pub(super) fn looks_twice(&self) -> bool {
        self.looks_twice
    }

    /// [`super::Stream::due`].
    pub(super) fn due(&self, bytes: usize, flush: Flush) -> usize {
        let all = (self.end - self.coded).saturating_add(bytes);
        match flush {
            Flush::None => all / BLOCK * BLOCK,
            Flush::Sync | Flush::Finish => all,
        }
    }

    /// [`super::Stream::push`].
    pub(super) fn push(&mut self, mut input: &[u8], flush: Flush, stock: &dyn Stock, out: &mut Vec<u8>) {
        while !input.is_empty() {
            let (now, later) = input.split_at(input.len().min(BLOCK - (self.end - self.coded)));
            self.put(now, stock);
            // What may be the last block waits for its end.
            if self.end - self.coded == BLOCK && !(later.is_empty() && flush == Flush::Finish) {
                self.code(false, stock, out);
            }
            input = later;
        }
        let is_coded = self.end == self.coded;
        match flush {
            Flush::None => {}
            Flush::Sync => {
                if !is_coded {
                    self.code(false, stock, out);
                }
                if std::mem::take(&mut self.owes) {
                    self.rest = block::write_border(self.rest, out);
                }
            }
            Flush::Finish => {
                if is_coded {
                    self.rest = block::write_end(self.rest, out);
                } else {
                    self.code(true, stock, out);
                }
                std::mem::take(&mut self.rest).finish(out);
            }
        }
    }

    /// Bytes that it holds now.
    pub(super) fn memory(&self) -> usize {
        self.history.capacity() + self.table.as_ref().map_or(0, |table| table.text.capacity() + table.latest.bytes())
    }

    /// Has tables of so large a size at most.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most;
    }

    /// [`super::Stream::lighten`].
    pub(super) fn lighten(&mut self, most: usize, stock: &dyn Stock) {
        debug_assert!(self.end == self.coded, "only after a flush");
        let last = |text: &[u8]| text[text.len() - text.len().min(most).min(WINDOW)..].to_vec();
        if let Some(table) = self.table.take() {
            self.history = last(&table.text[..self.end]);
            stock.give_table(super::Table(Kind::Quick(table)));
        } else if self.history.len() > most {
            self.history = last(&self.history);
        }
        (self.end, self.coded, self.known) = (0, 0, 0);
    }

    /// Codes all that has come, and gives what another needs to go on.
    pub(super) fn end(&mut self, stock: &dyn Stock, out: &mut Vec<u8>) -> Left {
        if self.end > self.coded {
            self.code(false, stock, out);
        }
        self.lighten(WINDOW, stock);
        Left { history: std::mem::take(&mut self.history), rest: std::mem::take(&mut self.rest), owes: self.owes }
    }

    /// Leaves all that it borrowed.
    pub(super) fn leave(&mut self, stock: &dyn Stock) {
        if let Some(table) = self.table.take() {
            stock.give_table(super::Table(Kind::Quick(table)));
        }
    }

    /// Sees to it that there is a table, as large as all that has come and so many bytes more need.
    fn grow(&mut self, more: usize, stock: &dyn Stock) {
        let bytes = self.history.len() + self.end + more;
        let size = FITS.iter().take_while(|most| bytes > **most).count().min(self.most);
        if self.table.as_ref().is_some_and(|table| size <= table.size) {
            return;
        }
        let mut table = Table::take(size, self.looks_twice, stock);
        if let Some(old) = self.table.take() {
            table.text.extend_from_slice(&old.text[..self.end]);
            stock.give_table(super::Table(Kind::Quick(old)));
            self.known = self.coded.saturating_sub(WINDOW);
        } else {
            let history = std::mem::take(&mut self.history);
            self.place = 0u16.wrapping_sub(history.len() as u16);
            (self.end, self.coded, self.known) = (history.len(), history.len(), 0);
            table.text.extend_from_slice(&history);
        }
        self.table = Some(table);
    }

    /// Puts bytes behind the text, which has room for them in its block.
    fn put(&mut self, bytes: &[u8], stock: &dyn Stock) {
        self.grow(bytes.len(), stock);
        let Some(table) = &mut self.table else { return };
        let text = &mut table.text;
        text.truncate(self.end);
        if self.end + bytes.len() > WINDOW + BLOCK {
            let gone = self.coded - WINDOW;
            text.drain(..gone);
            self.place = self.place.wrapping_add(gone as u16);
            (self.end, self.coded, self.known) = (self.end - gone, WINDOW, self.known - gone);
        }
        self.end += bytes.len();
        if text.capacity() < self.end + BEHIND {
            text.reserve_exact(self.end.next_power_of_two() + BEHIND - text.len());
        }
        text.extend_from_slice(bytes);
        text.resize(self.end + BEHIND, 0);
        self.owes = true;
    }

    /// Codes what is in no block yet.
    fn code(&mut self, last: bool, stock: &dyn Stock, out: &mut Vec<u8>) {
        let Some(table) = &mut self.table else { return };
        let mut room = stock.take_room().unwrap_or_else(|| super::Room(Box::new(Room::new(self.looks_twice))));
        let (segment, place) = (self.coded..self.end, self.place.wrapping_add(self.coded as u16));
        let part = Part { text: &table.text, segment: segment.clone(), again: self.coded - self.known, place };
        let (symbols, histogram) = room.0.find(self.processor, &mut *table.latest, part);
        self.rest = block::write(self.processor, &table.text[segment], &symbols, &histogram, last, self.rest, out);
        stock.give_room(room);
        self.coded = self.end;
        // More bytes are hashed at once than count.
        self.known = self.known.max(self.end.saturating_sub(FAR));
    }
}
