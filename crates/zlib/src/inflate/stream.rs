//! Processing of a call of `inflate`.
//!
//! ```text
//!         ┌─gzip──> Flags ─> Time ─> System ─> ExtraLength ─> Extra ─> Name ─> Comment ─> HeadSum ─┐
//!   Head ─┼─raw──────────────────────────────────────────────────────────────────────────────────┐ │
//!         └─zlib──> DictionarySum ─> Dictionary ──────────────────────────────────────────────┐  v v
//!                └───────────────────────────────────────────────────────────────────────────>└> Body ─> Sum ─> Length ─> Done
//! ```
//!
//! A step is taken when all its input is there. A malformed stream leads to `Bad`, from which only `inflateSync` and a
//! reset lead on.

use super::message;
use super::state::{Phase, State, Takes};
use super::wrap::{HAS_COMMENT, HAS_EXTRA, HAS_NAME, HAS_SUM, RESERVED};
use libz_rs_sys::{
    Z_BLOCK, Z_BUF_ERROR, Z_DATA_ERROR, Z_DEFLATED, Z_FINISH, Z_MEM_ERROR, Z_NEED_DICT, Z_OK, Z_STREAM_END, Z_STREAM_ERROR,
    Z_TREES, z_stream,
};
use std::ffi::{CStr, c_int, c_ulong};
use std::ptr;
use terse_deflate::decode::{Before, Bits, Input, Output, Pause, Stop};

/// A call: the stream, its state, and the program's buffers.
pub(super) struct Call<'a> {
    pub(super) stream: *mut z_stream,
    pub(super) state: &'a mut State,
    pub(super) input: Input<'a>,
    pub(super) room: &'a mut [u8],
    /// Bytes of output in this call, the number of them in the checksum, and the number to be left out of the window.
    /// With the right checksum, as in zlib, the stream is over.
    given: usize,
    summed: usize,
    settled: usize,
    /// Whether the input ended within a step.
    is_starved: bool,
}

/// The call is over, with that code.
struct Leave(c_int);

/// Output is added to the checksum while it is in the processor's cache: slices of so many bytes.
const SLICE: usize = 256 * 1024;

impl<'a> Call<'a> {
    pub(super) fn new(stream: *mut z_stream, state: &'a mut State, input: &'a [u8], room: &'a mut [u8]) -> Call<'a> {
        Call { stream, state, input: Input::new(input), room, given: 0, summed: 0, settled: 0, is_starved: false }
    }

    /// `inflate`, whose arguments were checked.
    ///
    /// # Safety
    /// The stream is the state's, and its pointers are the program's.
    pub(super) unsafe fn run(mut self, flush: c_int) -> c_int {
        match self.state.phase {
            Phase::Memory => return Z_MEM_ERROR,
            Phase::Sync => return Z_STREAM_ERROR,
            Phase::Body => self.state.decoder.resume(),
            _ => {}
        }
        let mut code = loop {
            match self.step(flush) {
                Ok(()) => {}
                Err(Leave(code)) => break code,
            }
        };
        if !self.is_starved {
            self.state.decoder.bits.give_back(&mut self.input);
        }
        self.add_up();
        if self.remembers(flush) {
            // SAFETY: as the caller vouches.
            if unsafe { self.state.remember(self.stream, &self.room[self.settled..self.given]) }.is_none() {
                self.state.phase = Phase::Memory;
                code = Z_MEM_ERROR;
            }
        }
        let (taken, given) = (self.input.taken(), self.given);
        // SAFETY: as the caller vouches; so many bytes were there.
        unsafe {
            let stream = &mut *self.stream;
            if taken > 0 {
                stream.next_in = stream.next_in.add(taken);
            }
            stream.next_out = stream.next_out.add(given);
            stream.avail_in -= taken as u32;
            stream.avail_out -= given as u32;
            stream.total_in = stream.total_in.wrapping_add(taken as c_ulong);
            stream.total_out = stream.total_out.wrapping_add(given as c_ulong);
            stream.data_type = self.data_type();
        }
        let has_done_nothing = taken == 0 && given == 0;
        if code == Z_OK && (has_done_nothing || flush == Z_FINISH) { Z_BUF_ERROR } else { code }
    }

    /// zlib's `data_type`: unused bits of the last byte, and the phase.
    fn data_type(&self) -> c_int {
        let decoder = &self.state.decoder;
        let is_in_body = self.state.phase == Phase::Body;
        decoder.bits.count() as c_int
            + if decoder.is_last() { 64 } else { 0 }
            + if is_in_body && decoder.is_between() { 128 } else { 0 }
            + if is_in_body && decoder.is_behind_head() { 256 } else { 0 }
    }

    /// Whether the window must hold the output, as in zlib: not where a body came in one call.
    fn remembers(&self, flush: c_int) -> bool {
        let is_over = match self.state.phase {
            Phase::Bad | Phase::Memory | Phase::Sync => true,
            phase => phase > Phase::Body && flush == Z_FINISH,
        };
        self.state.is_kept() || (self.given > self.settled && !is_over)
    }

    fn step(&mut self, flush: c_int) -> Result<(), Leave> {
        match self.state.phase {
            Phase::Head => self.head(),
            Phase::Flags => self.flags(),
            Phase::Time => {
                let time = self.field(4)?;
                // SAFETY: the program keeps its head; here and below.
                if let Some(head) = unsafe { self.state.head() } {
                    head.time = time.into();
                }
                self.go(Phase::System)
            }
            Phase::System => {
                let field = self.field(2)?;
                // SAFETY: as above.
                if let Some(head) = unsafe { self.state.head() } {
                    (head.xflags, head.os) = ((field & 0xff) as c_int, (field >> 8) as c_int);
                }
                self.go(Phase::ExtraLength)
            }
            Phase::ExtraLength => {
                if self.state.has(HAS_EXTRA) {
                    self.state.field = self.field(2)?;
                    // SAFETY: as above.
                    if let Some(head) = unsafe { self.state.head() } {
                        head.extra_len = self.state.field;
                    }
                // SAFETY: as above.
                } else if let Some(head) = unsafe { self.state.head() } {
                    head.extra = ptr::null_mut();
                }
                self.go(Phase::Extra)
            }
            Phase::Extra => self.extra(),
            Phase::Name => {
                if !self.text(HAS_NAME, State::keep_name)? {
                    // SAFETY: as above.
                    if let Some(head) = unsafe { self.state.head() } {
                        head.name = ptr::null_mut();
                    }
                }
                self.go(Phase::Comment)
            }
            Phase::Comment => {
                if !self.text(HAS_COMMENT, State::keep_comment)? {
                    // SAFETY: as above.
                    if let Some(head) = unsafe { self.state.head() } {
                        head.comment = ptr::null_mut();
                    }
                }
                self.go(Phase::HeadSum)
            }
            Phase::HeadSum => self.head_sum(),
            Phase::DictionarySum => {
                let sum = self.bits(32)?.swap_bytes();
                self.set_sum(sum);
                self.go(Phase::Dictionary)
            }
            Phase::Dictionary => {
                if !self.state.has_dictionary {
                    return Err(Leave(Z_NEED_DICT));
                }
                self.set_sum(1);
                self.go(Phase::Body)
            }
            Phase::Body => self.body(flush),
            Phase::Sum => self.sum(),
            Phase::Length => self.length(),
            Phase::Done => Err(Leave(Z_STREAM_END)),
            Phase::Bad => Err(Leave(Z_DATA_ERROR)),
            Phase::Memory => Err(Leave(Z_MEM_ERROR)),
            Phase::Sync => Err(Leave(Z_STREAM_ERROR)),
        }
    }

    fn go(&mut self, phase: Phase) -> Result<(), Leave> {
        self.state.phase = phase;
        Ok(())
    }

    fn fail(&mut self, message: &'static CStr) -> Result<(), Leave> {
        // SAFETY: the stream is the program's, for the time of the call.
        unsafe { (*self.stream).msg = message.as_ptr().cast_mut() };
        self.go(Phase::Bad)
    }

    fn starve<T>(&mut self) -> Result<T, Leave> {
        self.is_starved = true;
        Err(Leave(Z_OK))
    }

    /// Takes bits before or after the body: whole bytes, after which nothing is read ahead.
    fn bits(&mut self, count: u32) -> Result<u32, Leave> {
        let bits = &mut self.state.decoder.bits;
        let Some(taken) = bits.take(count, &mut self.input) else { return self.starve() };
        bits.give_back(&mut self.input);
        *bits = Bits::NONE;
        Ok(taken)
    }

    /// A number of gzip's head.
    fn field(&mut self, bytes: u32) -> Result<u32, Leave> {
        let number = self.bits(bytes * 8)?;
        self.state.add_head(&number.to_le_bytes()[..bytes as usize]);
        Ok(number)
    }

    /// Sets the checksum, and the program's view of it.
    fn set_sum(&mut self, sum: u32) {
        self.state.sum = sum;
        // SAFETY: the stream is the program's, for the time of the call.
        unsafe { (*self.stream).adler = sum.into() };
    }

    fn head(&mut self) -> Result<(), Leave> {
        let takes = self.state.takes;
        if takes.is_raw() {
            // Without a head, there is no stop between it and the body.
            self.state.decoder.resume();
            return self.go(Phase::Body);
        }
        let head = self.bits(16)?;
        if takes.gzip && head == 0x8b1f {
            if self.state.window_bits == 0 {
                self.state.window_bits = 15;
            }
            self.state.sum = zlib_rs::crc32::crc32(0, &[0x1f, 0x8b]);
            return self.go(Phase::Flags);
        }
        // SAFETY: the program keeps its head.
        if let Some(head) = unsafe { self.state.head() } {
            head.done = -1;
        }
        let [method, flags] = [head as u8, (head >> 8) as u8];
        if !takes.zlib || u16::from_be_bytes([method, flags]) % 31 != 0 {
            return self.fail(c"incorrect header check");
        }
        if c_int::from(method & 15) != Z_DEFLATED {
            return self.fail(c"unknown compression method");
        }
        let bits = (method >> 4) + 8;
        let most = if self.state.window_bits == 0 { 15 } else { self.state.window_bits };
        if bits > most {
            return self.fail(c"invalid window size");
        }
        if self.state.window_bits == 0 {
            self.state.window_bits = bits;
        }
        self.state.flags = Some(0);
        self.set_sum(1);
        if flags & 0x20 != 0 {
            return self.go(Phase::DictionarySum);
        }
        self.go(Phase::Body)
    }

    fn flags(&mut self) -> Result<(), Leave> {
        let flags = self.bits(16)? as u16;
        self.state.flags = Some(flags);
        if c_int::from(flags & 0xff) != Z_DEFLATED {
            return self.fail(c"unknown compression method");
        }
        if flags & RESERVED != 0 {
            return self.fail(c"unknown header flags set");
        }
        // SAFETY: the program keeps its head.
        if let Some(head) = unsafe { self.state.head() } {
            head.text = (flags >> 8 & 1).into();
        }
        self.state.add_head(&flags.to_le_bytes());
        self.go(Phase::Time)
    }

    fn extra(&mut self) -> Result<(), Leave> {
        if self.state.has(HAS_EXTRA) {
            let bytes = self.input.take(self.state.field as usize);
            // SAFETY: the program keeps its head.
            let before = unsafe { self.state.head() }.map_or(0, |head| head.extra_len.saturating_sub(self.state.field));
            self.state.keep_extra(before as usize, bytes);
            self.state.add_head(bytes);
            self.state.field -= bytes.len() as u32;
            if self.state.field > 0 {
                return self.starve();
            }
        }
        self.state.field = 0;
        self.go(Phase::Name)
    }

    /// Reads a field that ends with a zero, if there is one.
    fn text(&mut self, flag: u16, keep: impl Fn(&State, usize, &[u8])) -> Result<bool, Leave> {
        if !self.state.has(flag) {
            return Ok(false);
        }
        let rest = self.input.rest();
        let end = rest.iter().position(|&byte| byte == 0);
        let bytes = self.input.take(end.map_or(rest.len(), |end| end + 1));
        keep(self.state, self.state.field as usize, bytes);
        self.state.add_head(bytes);
        self.state.field = self.state.field.saturating_add(bytes.len() as u32);
        if end.is_none() {
            return self.starve();
        }
        self.state.field = 0;
        Ok(true)
    }

    fn head_sum(&mut self) -> Result<(), Leave> {
        if self.state.has(HAS_SUM) {
            let sum = self.bits(16)?;
            if self.state.takes.is_checked && sum != self.state.sum & 0xffff {
                return self.fail(c"header crc mismatch");
            }
        }
        // SAFETY: the program keeps its head.
        if let Some(head) = unsafe { self.state.head() } {
            (head.hcrc, head.done) = (self.state.has(HAS_SUM).into(), 1);
        }
        self.set_sum(0);
        self.go(Phase::Body)
    }

    fn body(&mut self, flush: c_int) -> Result<(), Leave> {
        let pause = match flush {
            Z_BLOCK => Pause::Blocks,
            Z_TREES => Pause::Heads,
            _ => Pause::Never,
        };
        let end = self.room.len().min(self.given + SLICE);
        // SAFETY: the window changes when the call is over.
        let before = Before::History(unsafe { self.state.history() });
        let mut output = Output::new(&mut self.room[..end], self.given, before);
        let stop = self.state.decoder.decode(&mut self.input, &mut output, pause);
        self.given = output.put_out();
        match stop {
            Ok(Stop::End) => self.go(Phase::Sum),
            Ok(Stop::Room) if end < self.room.len() => {
                self.add_up();
                Ok(())
            }
            Ok(Stop::Input) => self.starve(),
            Ok(Stop::Room | Stop::Block | Stop::Head) => Err(Leave(Z_OK)),
            Err(flaw) => self.fail(message(flaw)),
        }
    }

    /// Adds the output to the checksum.
    fn add_up(&mut self) {
        let bytes = &self.room[self.summed..self.given];
        self.state.total = self.state.total.wrapping_add(bytes.len() as u64);
        self.summed = self.given;
        if bytes.is_empty() {
            return;
        }
        match self.state.takes {
            Takes { is_checked: false, .. } => {}
            _ if self.state.flags.unwrap_or(0) != 0 => self.set_sum(zlib_rs::crc32::crc32(self.state.sum, bytes)),
            _ => self.set_sum(zlib_rs::adler32::adler32(self.state.sum, bytes)),
        }
    }

    fn sum(&mut self) -> Result<(), Leave> {
        if !self.state.takes.is_raw() {
            self.add_up();
            let sum = self.bits(32)?;
            let sum = if self.state.flags.unwrap_or(0) != 0 { sum } else { sum.swap_bytes() };
            if self.state.takes.is_checked && sum != self.state.sum {
                return self.fail(c"incorrect data check");
            }
            self.settled = self.given;
        }
        self.go(Phase::Length)
    }

    fn length(&mut self) -> Result<(), Leave> {
        if !self.state.takes.is_raw() && self.state.flags.unwrap_or(0) != 0 {
            let length = self.bits(32)?;
            if self.state.takes.is_checked && length != self.state.total as u32 {
                return self.fail(c"incorrect length check");
            }
        }
        self.go(Phase::Done)
    }
}
