//! Processing of a call of `deflate`.
//!
//! ```text
//!   Head ──(all of it out)──> Body ──(Z_FINISH: last piece coded, tail after it)──> Tail ──(all of it out)──> Z_STREAM_END
//! ```
//!
//! Invariant: while output waits, no input is taken and nothing coded, so that it has room where input is gathered.

use super::header::{self, Wrap};
use super::piece::{self, Piece};
use super::state::{Area, NO_FLUSH_YET, Phase, State};
use libz_rs_sys::{
    Z_BUF_ERROR, Z_DEFAULT_STRATEGY, Z_FILTERED, Z_FINISH, Z_FULL_FLUSH, Z_NO_FLUSH, Z_OK, Z_STREAM_END, Z_STREAM_ERROR,
};
use std::ffi::c_int;
use std::ptr;

/// A call: the stream's state, and the program's buffers.
pub(super) struct Call<'a> {
    pub(super) state: State,
    pub(super) area: Area,
    pub(super) input: &'a [u8],
    pub(super) out: Out,
}

/// Room for output.
pub(super) struct Out {
    next: *mut u8,
    left: usize,
}

impl Out {
    /// # Safety
    /// `next` points to `left` bytes that may be written.
    pub(super) unsafe fn new(next: *mut u8, left: usize) -> Out {
        Out { next, left }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Writes the bytes that fit; returns their number.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.left);
        // SAFETY: there is room for so many, and the program's room does not overlap with our memory.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.next, count);
            self.next = self.next.add(count);
        }
        self.left -= count;
        count
    }
}

/// Piece size of input that is coded in place, without being gathered.
const MAX_DIRECT: usize = 1 << 20;
/// Limit of the bytes after a piece.
const BEHIND: usize = 24;

/// Rank of a flush (zlib's `RANK`).
fn rank(flush: c_int) -> c_int {
    flush * 2 - if flush > 4 { 9 } else { 0 }
}

impl Call<'_> {
    /// `deflate`, whose arguments were checked.
    pub(super) fn run(&mut self, flush: c_int) -> c_int {
        let before = std::mem::replace(&mut self.state.last_flush, flush);
        if self.is_waiting() {
            self.drain();
            if self.out.left == 0 {
                return self.pause();
            }
        } else if self.input.is_empty() && rank(flush) <= rank(before) && flush != Z_FINISH {
            return Z_BUF_ERROR;
        }
        if self.state.phase == Phase::Tail && !self.input.is_empty() {
            return Z_BUF_ERROR;
        }
        if !self.give_head() {
            return self.pause();
        }
        self.work(flush).unwrap_or(Z_STREAM_ERROR)
    }

    /// Returns for lack of output room; the next call may have the same flush.
    fn pause(&mut self) -> c_int {
        self.state.last_flush = -1;
        Z_OK
    }

    /// Writes the rest of the head; returns whether that was all.
    fn give_head(&mut self) -> bool {
        if self.state.phase != Phase::Head {
            return true;
        }
        let head = self.head();
        self.state.head_given += self.out.put(head.get(self.state.head_given..).unwrap_or_default());
        if self.state.head_given < head.len() {
            return false;
        }
        self.state.phase = Phase::Body;
        true
    }

    fn head(&self) -> Vec<u8> {
        let (state, manner) = (&self.state, self.state.manner);
        let is_hasty = !matches!(manner.strategy, Z_DEFAULT_STRATEGY | Z_FILTERED);
        match state.wrap {
            Wrap::Raw => Vec::new(),
            Wrap::Zlib => header::zlib(manner.window_bits, manner.level, is_hasty, state.dictionary),
            Wrap::Gzip if state.header.is_null() => header::plain_gzip(manner.level, is_hasty),
            // SAFETY: the program keeps the head of deflateSetHeader until it has been written.
            Wrap::Gzip => unsafe { header::gzip(&*state.header, manner.level, is_hasty) },
        }
    }

    /// Takes the input, and codes it as far as necessary. `None`: a coder broke.
    fn work(&mut self, flush: c_int) -> Option<c_int> {
        while !self.input.is_empty() {
            self.state.flushed = NO_FLUSH_YET;
            if let Some(count) = self.direct(flush) {
                let is_last = flush == Z_FINISH && count == self.input.len();
                self.code_input(count, is_last)?;
                if is_last {
                    return Some(self.end());
                }
            } else {
                self.gather();
                if self.input.is_empty() {
                    break;
                }
                self.code_gathered(false)?;
            }
            if self.is_waiting() {
                return Some(self.pause());
            }
        }
        match flush {
            Z_NO_FLUSH => {}
            Z_FINISH if self.state.phase == Phase::Tail => return Some(self.end()),
            Z_FINISH => {
                self.code_gathered(true)?;
                return Some(self.end());
            }
            _ if rank(flush) <= rank(self.state.flushed) => {}
            _ => {
                self.code_gathered(false)?;
                self.state.flushed = flush;
                if flush == Z_FULL_FLUSH {
                    self.state.history = 0;
                }
            }
        }
        if self.out.left == 0 && flush != Z_NO_FLUSH {
            return Some(self.pause());
        }
        Some(Z_OK)
    }

    /// Writes the tail after the last piece, once; then the waiting output.
    fn end(&mut self) -> c_int {
        if self.state.phase == Phase::Body {
            self.state.phase = Phase::Tail;
            let (tail, count) = self.state.wrap.tail(self.state.sum, self.state.length);
            self.emit(&tail[..count]);
        }
        if self.is_waiting() { Z_OK } else { Z_STREAM_END }
    }

    /// Number of input bytes that are coded in place.
    fn direct(&self, flush: c_int) -> Option<usize> {
        let most = if self.out.left >= piece::bound(MAX_DIRECT) + BEHIND { MAX_DIRECT } else { self.state.room() };
        let is_worth_it = self.state.gathered == 0 && (self.input.len() >= most || flush == Z_FINISH);
        is_worth_it.then_some(self.input.len().min(most))
    }

    /// Takes as much input as there is room for.
    fn gather(&mut self) {
        let count = (self.state.room() - self.state.gathered).min(self.input.len());
        let bytes = self.take(count);
        self.area.write(self.state.window() + self.state.gathered, bytes);
        self.state.gathered += count;
    }

    fn code_gathered(&mut self, is_last: bool) -> Option<()> {
        let (window, history, gathered) = (self.state.window(), self.state.history, self.state.gathered);
        // SAFETY: history and gathered bytes were written; nothing is written there before the piece is coded.
        let (before, bytes) = unsafe { (self.area.read(window - history, history), self.area.read(window, gathered)) };
        let piece = Piece { bytes, history: before, is_last };
        let manner = self.state.manner;
        piece::code(&piece, manner, |coded| {
            let kept = (history + gathered).min(window);
            self.area.shift(window + gathered - kept, window - kept, kept);
            (self.state.history, self.state.gathered) = (kept, 0);
            self.emit(coded);
        })
    }

    fn code_input(&mut self, count: usize, is_last: bool) -> Option<()> {
        let (window, history) = (self.state.window(), self.state.history);
        let bytes = self.take(count);
        // SAFETY: the history was written, and is written again only when the piece is coded.
        let before = unsafe { self.area.read(window - history, history) };
        let piece = Piece { bytes, history: before, is_last };
        piece::code(&piece, self.state.manner, |coded| {
            self.remember(bytes);
            self.emit(coded);
        })
    }

    /// Takes input, which is added to the checksum.
    fn take<'a>(&mut self, count: usize) -> &'a [u8]
    where
        Self: 'a,
    {
        let (now, later) = self.input.split_at(count);
        // SAFETY: the same bytes, which are the program's, for the time of the call.
        let now = unsafe { std::slice::from_raw_parts(now.as_ptr(), now.len()) };
        self.input = later;
        self.state.sum = self.state.wrap.add(self.state.sum, now);
        self.state.length += now.len() as u64;
        now
    }

    /// Appends bytes to the history.
    pub(super) fn remember(&mut self, bytes: &[u8]) {
        let window = self.state.window();
        let bytes = &bytes[bytes.len().saturating_sub(window)..];
        let kept = self.state.history.min(window - bytes.len());
        self.area.shift(window - kept, window - bytes.len() - kept, kept);
        self.area.write(window - bytes.len(), bytes);
        self.state.history = kept + bytes.len();
    }

    /// `deflatePrime`: bits before the next output. False: there is no room for them.
    pub(super) fn prime(&mut self, count: u8, value: u32) -> bool {
        let (held, bits) = self.state.prime;
        let mut bits = u32::from(bits) | (value & ((1 << count) - 1)) << held;
        let mut held = held + count;
        let room = self.state.area_bytes - self.state.window() - self.state.waiting.1;
        if room < BEHIND {
            return false;
        }
        self.state.prime = (0, 0);
        // The head comes before them.
        if self.state.phase == Phase::Head {
            let head = self.head();
            if head.len() + BEHIND > room {
                return false;
            }
            self.emit_bytes(&head);
            self.state.phase = Phase::Body;
        }
        while held >= 8 {
            self.emit_bytes(&[bits as u8]);
            (bits, held) = (bits >> 8, held - 8);
        }
        self.state.prime = (held, bits as u8);
        true
    }

    /// Writes bytes, or lets them wait; those of `deflatePrime` before them.
    fn emit(&mut self, bytes: &[u8]) {
        if self.state.prime.0 > 0 && !bytes.is_empty() {
            // An empty stored block brings the stream to the border of a byte: three bits, zeros, then its length.
            let (count, bits) = std::mem::take(&mut self.state.prime);
            let opening = [bits, 0, 0, 0, 0xff, 0xff];
            let (first, rest) = opening.split_at(1);
            self.emit_bytes(first);
            self.emit_bytes(if count > 5 { rest } else { &rest[1..] });
        }
        self.emit_bytes(bytes);
    }

    fn emit_bytes(&mut self, bytes: &[u8]) {
        let given = if self.is_waiting() { 0 } else { self.out.put(bytes) };
        let rest = &bytes[given..];
        if rest.is_empty() {
            return;
        }
        if !self.is_waiting() {
            self.state.waiting = (0, 0);
        }
        self.area.write(self.state.window() + self.state.waiting.1, rest);
        self.state.waiting.1 += rest.len();
    }

    /// Writes the waiting output.
    fn drain(&mut self) {
        let (begin, end) = self.state.waiting;
        // SAFETY: the waiting output was written there.
        let bytes = unsafe { self.area.read(self.state.window() + begin, end - begin) };
        self.state.waiting.0 += self.out.put(bytes);
    }

    fn is_waiting(&self) -> bool {
        self.state.waiting.0 < self.state.waiting.1
    }
}
