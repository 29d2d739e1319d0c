//! Streams by rows of earlier positions.
//!
//! Each push parses what it takes, but for the last [`AHEAD`] bytes, which a match may reach into what comes. A block ends at a flush, and where
//! its bytes would leave the window's ring: its literals are read from there. What a stream keeps between flushes is the window and the rows; the lists
//! of an open block are borrowed from a [`Stock`], as are the rows, which begin small and grow with what has been there.

use super::{Flush, Kind, Left, Lists, Stock, Table};
use crate::bits::Rest;
use crate::block;
use crate::lazy::Lazy;
use crate::parse::{self, Sequences, Stretch};
use crate::processor::Processor;
use crate::rows::{self, Nature, STREAM_SIZES};
use crate::symbols::WINDOW;
use crate::window::{AHEAD, RING, STRIDE};
use crate::{EFFORTS, write_parts};

/// The most bytes of a stream for which tables of each size but the last do.
const FITS: [u64; STREAM_SIZES - 1] = [2048, 8192];

/// Sequences of a block.
const BLOCK_SEQUENCES: usize = 6144;

/// Bytes of a block. All of them are in the ring yet when it is written, with the longest match, what waits, and zeros behind.
const BLOCK_BYTES: u64 = 45 * 1024;
const _: () = assert!(BLOCK_BYTES as usize + 2 * AHEAD + STRIDE + AHEAD <= RING && WINDOW + STRIDE + 3 * AHEAD <= RING);

/// Bytes that say where a place belongs in the rows.
const HASHED: u64 = 7;

/// Bytes that an open block holds.
pub(super) const OPEN_BYTES: usize = parse::held(BLOCK_SEQUENCES, BLOCK_BYTES as usize);

/// A stream of one body.
pub(super) struct ByRows {
    level: u8,
    processor: Processor,
    parser: Option<Lazy>,
    /// Which of [`Table::SIZES`] the parser has.
    size: usize,
    /// What the open block has so far.
    open: Option<Lists>,
    /// Bits of the last byte.
    rest: Rest,
    /// Whether there is something behind the last border that is in no open block.
    owes: bool,
    /// The largest of the sizes that it may have.
    most: usize,
    /// The last bytes, while there are no tables.
    history: Vec<u8>,
    /// Places are numbers of bytes since the first of the dictionary: the first one of the open block,
    from: u64,
    /// the first that is in no sequence,
    at: u64,
    /// the first that is not in the window,
    filled: u64,
    /// and the first that may not be in the rows, though it is in a sequence: what followed was not there.
    learned: u64,
}

impl ByRows {
    /// Goes on where another left off.
    pub(super) fn new(processor: Processor, level: u8, most: usize, left: Left) -> ByRows {
        let Left { history, rest, owes } = left;
        ByRows {
            level,
            processor,
            parser: None,
            size: 0,
            open: None,
            rest,
            owes,
            most,
            history,
            from: 0,
            at: 0,
            filled: 0,
            learned: 0,
        }
    }

    /// [`super::Stream::push`].
    pub(super) fn push(&mut self, input: &[u8], flush: Flush, stock: &dyn Stock, out: &mut Vec<u8>) {
        if !input.is_empty() {
            self.grow(input, stock);
        }
        for part in input.chunks(STRIDE) {
            self.put(part);
            self.learn();
            self.parse(self.filled.saturating_sub(AHEAD as u64), stock, out);
        }
        match flush {
            Flush::None => {}
            Flush::Sync => {
                self.parse_all(stock, out);
                // Without an open block all bytes so far are behind a border.
                if self.open.is_some() || self.owes {
                    self.end_block(false, stock, out);
                }
            }
            Flush::Finish => {
                self.parse_all(stock, out);
                self.end_block(true, stock, out);
                std::mem::take(&mut self.rest).finish(out);
            }
        }
    }

    /// Bytes that it holds now.
    pub(super) fn memory(&self) -> usize {
        let tables = self.parser.as_ref().map_or(0, Lazy::bytes);
        tables + self.open.as_ref().map_or(0, Lists::bytes) + self.history.capacity()
    }

    /// Leaves its tables until the next push, and keeps the last bytes that it took, so many at most, for matches. Only behind a flush.
    pub(super) fn lighten(&mut self, most: usize, stock: &dyn Stock) {
        debug_assert!(self.open.is_none(), "only after a flush");
        if let Some(mut parser) = self.parser.take() {
            let bytes = self.filled.min(most.min(WINDOW) as u64) as usize;
            self.history = Vec::with_capacity(bytes);
            parser.window().copy((self.filled - bytes as u64) as u16, bytes, &mut self.history);
            stock.give_table(Table::of_rows(self.size, parser.into_tables()));
        } else if self.history.len() > most {
            self.history = self.history[self.history.len() - most..].to_vec();
        }
        (self.from, self.at, self.filled, self.learned) = (0, 0, 0, 0);
    }

    /// Has tables of so large a size at most.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most;
    }

    /// Tries so hard from now on.
    pub(super) fn set_level(&mut self, level: u8) {
        self.level = level;
        if let Some(parser) = &mut self.parser {
            parser.set_effort(effort(level));
        }
    }

    /// Codes all that has come, and gives what another needs to go on.
    pub(super) fn end(&mut self, stock: &dyn Stock, out: &mut Vec<u8>) -> Left {
        self.parse_all(stock, out);
        if let Some(lists) = self.open.is_some().then(|| self.write(false, out)).and_then(|()| self.open.take()) {
            self.owes = true;
            stock.give_lists(lists);
        }
        self.lighten(WINDOW, stock);
        Left { history: std::mem::take(&mut self.history), rest: std::mem::take(&mut self.rest), owes: self.owes }
    }

    /// Leaves all that it borrowed.
    pub(super) fn leave(&mut self, stock: &dyn Stock) {
        if let Some(parser) = self.parser.take() {
            stock.give_table(Table::of_rows(self.size, parser.into_tables()));
        }
        if let Some(mut lists) = self.open.take() {
            lists.0.abandon();
            stock.give_lists(lists);
        }
    }

    /// Sees to it that there are tables, as large as all that has come needs.
    fn grow(&mut self, input: &[u8], stock: &dyn Stock) {
        let history = std::mem::take(&mut self.history);
        let bytes = self.filled + (history.len() + input.len()) as u64;
        let size = FITS.iter().take_while(|most| bytes > **most).count().min(self.most);
        if self.parser.is_some() && size <= self.size {
            return;
        }
        let mut tables = match stock.take_table(size).map(|table| table.0) {
            Some(Kind::Rows(_, tables)) => tables,
            _ => rows::of_stream(size),
        };
        match self.parser.take().map(Lazy::into_tables) {
            Some(mut old) => {
                *tables.window() = *old.window();
                stock.give_table(Table::of_rows(self.size, old));
            }
            None => tables.window().reset(&[]),
        }
        self.size = size;
        let parser = self.parser.insert(Lazy::new(effort(self.level), self.processor, tables));
        parser.restart(usize::MAX, Nature::of(input));
        self.learned = self.at.saturating_sub(WINDOW as u64);
        if !history.is_empty() {
            self.put(&history);
            (self.from, self.at) = (self.filled, self.filled);
        }
    }

    /// Puts bytes into the window.
    fn put(&mut self, bytes: &[u8]) {
        if let Some(parser) = &mut self.parser {
            parser.window().put(bytes);
            self.filled += bytes.len() as u64;
        }
    }

    /// Puts those places into the rows of which all is there now that says where they belong.
    fn learn(&mut self) {
        let end = self.at.min(self.filled.saturating_sub(HASHED));
        if let Some(parser) = self.parser.as_mut().filter(|_| end > self.learned) {
            let first = u32::from(self.learned as u16);
            parser.learn(first..first + (end - self.learned) as u32, 1);
            self.learned = end;
        }
    }

    /// Parses all that has come.
    fn parse_all(&mut self, stock: &dyn Stock, out: &mut Vec<u8>) {
        if let Some(parser) = self.parser.as_mut().filter(|_| self.at < self.filled) {
            parser.window().put_zeros();
            self.parse(self.filled, stock, out);
        }
    }

    /// Parses up to a border, or beyond it by a part of a match.
    fn parse(&mut self, border: u64, stock: &dyn Stock, out: &mut Vec<u8>) {
        while self.at < border {
            let Some(parser) = &mut self.parser else { return };
            let lists = self.open.get_or_insert_with(|| stock.take_lists().unwrap_or_else(Lists::new));
            let border = border.min(self.from + BLOCK_BYTES);
            if self.at >= border || lists.0.is_full() {
                self.write(false, out);
                continue;
            }
            // What is far off is of no interest, so 32 bits do.
            let from = u32::from(self.at as u16);
            let mut stretch = Stretch {
                at: from,
                border: from + (border - self.at) as u32,
                end: from + (self.filled - self.at) as u32,
                history: self.at.min(1 << 24) as u32,
            };
            parser.run(&mut stretch, &mut lists.0);
            self.at += u64::from(stretch.at - from);
            lists.0.flush_many();
            self.learned = self.learned.max(self.at.min(self.filled.saturating_sub(HASHED)));
        }
    }

    /// Writes what the open block has.
    fn write(&mut self, last: bool, out: &mut Vec<u8>) {
        let (Some(lists), Some(parser)) = (&mut self.open, &mut self.parser) else { return };
        let sequences = &mut lists.0;
        sequences.end();
        let bytes = (self.at - self.from) as usize;
        let mut block = Vec::with_capacity(bytes);
        parser.window().copy(self.from as u16, bytes, &mut block);
        self.rest = write_parts(self.processor, sequences, &block, last, self.rest, out);
        sequences.clear();
        self.from = self.at;
    }

    /// Writes what the open block has, and what comes behind the last byte of all.
    fn end_block(&mut self, last: bool, stock: &dyn Stock, out: &mut Vec<u8>) {
        let is_empty = self.from == self.at;
        if !is_empty {
            self.write(last, out);
        }
        if let Some(lists) = self.open.take() {
            stock.give_lists(lists);
        }
        self.rest = match last {
            false => block::write_border(self.rest, out),
            true if is_empty => block::write_end(self.rest, out),
            true => self.rest,
        };
        self.owes = false;
    }
}

impl Lists {
    fn new() -> Lists {
        Lists(Sequences::with(BLOCK_SEQUENCES, BLOCK_BYTES as usize))
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

fn effort(level: u8) -> crate::lazy::Effort {
    EFFORTS[usize::from(level.saturating_sub(3)).min(EFFORTS.len() - 1)]
}
