//! `dcz` (RFC 9842 section 5): a head that names the dictionary, and zstd.
//!
//! ```text
//!   5E 2A 4D 18 20 00 00 00 | SHA-256 of the dictionary | a frame, with its checksum; of a whole body, with its length
//!                                                       | further frames, without the dictionary, where memory was wanting
//! ```
//!
//! The checksum is there because nothing else tells: browsers took a damaged frame without one for what it had become.
//!
//! The window holds dictionary and body: with the 256 KB of ordinary streams a script of 640 KB came out at 69 % of brotli's level 5, with all
//! of it at 13 %. RFC 9842 section 5 has decoders take 8 MB, or 1.25 dictionaries where that is more, and 128 MB at the most.
//!
//! A stream whose state has to go ends its frame: what follows is another one, which refers to nothing before it.

use super::blocks::Blocks;
use super::primed::Primed;
use super::zstd::{PARTS_BYTES, STREAM_BYTES, WINDOW_LOG, in_blocks, part_bytes};
use super::{Coder, CoderFault, Engine, Flush, Keep, Pool};
use crate::coding::{Coding, Level};
use crate::dictionary::Trial;
use std::sync::Arc;
use terse_dictionary::{Dictionary, MAGIC};
use zstd_safe::{CCtx, CParameter, ResetDirective};

/// Nanoseconds a byte of a dictionary that a state has to read before its first byte.
pub(crate) const PRIME_NS: u64 = 6;

/// The window that every decoder takes (RFC 8878 section 3.1.1.1.2, RFC 9659).
const LEAST_LIMIT: u64 = 8 << 20;
/// The window that none takes more than.
const MOST_LIMIT: u64 = 128 << 20;
/// The smallest window of the format.
const LEAST_WINDOW_LOG: u32 = 10;
/// What a body of unknown length is taken for.
const USUAL_BYTES: u64 = 256 << 10;

/// The window for a dictionary and a body, as far as that is known: the power of two that holds both, if decoders must take it.
pub(crate) fn window_log(dictionary: usize, body: Option<u64>) -> u32 {
    let dictionary = dictionary as u64;
    let limit = (dictionary + dictionary / 4).clamp(LEAST_LIMIT, MOST_LIMIT);
    let body = body.unwrap_or(dictionary.max(USUAL_BYTES));
    let needed = dictionary.saturating_add(body).min(limit);
    needed.next_power_of_two().ilog2().min(limit.ilog2()).max(LEAST_WINDOW_LOG)
}

/// A body that takes up to so many nanoseconds is coded at once: as long as other codings have a thread for a part.
const WHOLE_NS: u64 = 12_000_000;

/// The coder of one body.
pub(crate) struct Stream {
    level: Level,
    bytes: Option<u64>,
    /// Whether the body has exactly so many.
    is_exact: bool,
    dictionary: Arc<Dictionary>,
    pool: Arc<Pool>,
    blocks: Blocks,
    state: Option<Primed>,
    /// Whether the head is written, and a frame begun.
    begun: bool,
    /// Whether even the first frame goes without the dictionary: reading it would take too much memory or time.
    is_bare: bool,
    /// The end of a frame whose state has gone.
    rest: Vec<u8>,
    /// What the form of a whole body is compared with.
    trial: Option<Trial>,
}

impl Stream {
    /// The coder of a body of so many bytes, as far as that is known.
    pub(crate) fn new(level: Level, bytes: Option<u64>, is_exact: bool, dictionary: &Arc<Dictionary>, pool: &Arc<Pool>) -> Stream {
        let (dictionary, pool) = (dictionary.clone(), pool.clone());
        let blocks = Blocks::of(part_bytes(level));
        Stream {
            level,
            bytes,
            is_exact,
            dictionary,
            pool,
            blocks,
            state: None,
            begun: false,
            is_bare: false,
            rest: Vec::new(),
            trial: None,
        }
    }

    /// The same, and the form of a body that comes in one piece is compared with its ordinary one.
    pub(crate) fn compared(mut self, trial: Option<Trial>) -> Stream {
        self.trial = trial;
        self
    }

    /// A state at the beginning of a frame: of the first one with the dictionary.
    fn prime(&mut self) -> Result<Primed, CoderFault> {
        let is_first = !self.begun;
        let mut state = self.pool.take_zstd().ok_or(CoderFault)?;
        let has_dictionary = is_first && !self.is_bare;
        let window_log = if has_dictionary { window_log(self.dictionary.bytes().len(), self.bytes) } else { WINDOW_LOG };
        let set = |state: &mut CCtx<'_>| -> zstd_safe::SafeResult {
            state.reset(ResetDirective::SessionAndParameters)?;
            state.set_parameter(CParameter::CompressionLevel(i32::from(self.level.0)))?;
            state.set_parameter(CParameter::WindowLog(window_log))?;
            state.set_parameter(CParameter::ChecksumFlag(true))?;
            match is_first && self.is_exact {
                true => state.set_pledged_src_size(self.bytes),
                false => Ok(0),
            }
        };
        set(&mut state).map_err(|_| CoderFault)?;
        Primed::new(state, has_dictionary.then(|| self.dictionary.clone()))
    }

    fn release(&mut self) {
        self.blocks.reset();
        if let Some(state) = self.state.take().and_then(Primed::into_state) {
            self.pool.give_zstd(state);
        }
    }
}

/// Appends the form of a whole body that refers to a dictionary.
///
/// # Errors
/// The library fails, or there is no memory for its state.
pub fn whole(
    body: &[u8],
    level: Level,
    dictionary: &Arc<Dictionary>,
    pool: &Arc<Pool>,
    out: &mut Vec<u8>,
) -> Result<(), CoderFault> {
    Stream::new(level, Some(body.len() as u64), true, dictionary, pool).push(body, out, Flush::Finish)
}

impl Coder for Stream {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
        let ends = flush == Flush::Finish;
        let (is_whole, before) = (ends && !self.begun, out.len());
        out.append(&mut self.rest);
        if self.state.is_none() {
            if input.is_empty() && (self.begun || !ends) {
                return Ok(());
            }
            let state = self.prime()?;
            if !std::mem::replace(&mut self.begun, true) {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&self.dictionary.hash().0);
            }
            self.state = Some(state);
        }
        let Some(state) = &mut self.state else { return Err(CoderFault) };
        match is_whole {
            // A difference has few bytes: each block's head is a part of them.
            true => state.push_whole(input, out)?,
            false => in_blocks(&mut self.blocks, input, flush, |piece, flush| state.push(piece, out, flush))?,
        }
        if ends {
            self.release();
        }
        if let (true, false, Some(trial)) = (is_whole, self.is_bare, &self.trial) {
            trial.run(input, out.len() - before, &self.dictionary, &self.pool);
        }
        Ok(())
    }

    fn due(&self, bytes: usize, flush: Flush) -> usize {
        self.blocks.due(bytes, flush)
    }

    fn whole_bytes(&self) -> usize {
        usize::try_from(WHOLE_NS / Engine::of(Coding::Dcz).whole_ns(self.level, 1).max(1)).unwrap_or(0)
    }

    fn reset(&mut self) {
        self.release();
        (self.begun, self.is_bare, self.rest) = (false, false, Vec::new());
    }

    fn lighten(&mut self, _: Keep) {
        let Some(state) = &mut self.state else {
            self.is_bare |= !self.begun;
            return;
        };
        // A frame that states its length ends with its body.
        if self.is_exact || state.push(&[], &mut self.rest, Flush::Finish).is_err() {
            return;
        }
        self.release();
    }

    fn memory(&self) -> usize {
        self.state.as_ref().map_or(0, Primed::memory)
    }

    fn full_memory(&self) -> usize {
        let dictionary = self.dictionary.bytes().len();
        let window = 1usize << window_log(dictionary, self.bytes);
        let of_level = |bytes: &[usize]| bytes[usize::from(self.level.0).min(bytes.len() - 1)];
        if self.is_bare {
            return of_level(STREAM_BYTES);
        }
        // The library's tables go by the sum, and are a large body's above a length.
        match self.bytes.unwrap_or(0).saturating_add(dictionary as u64) > MIDDLE_BYTES {
            true => of_level(STREAM_BYTES).max(of_level(PARTS_BYTES)) + window,
            false => of_level(STREAM_BYTES) + window + (2 * window).min(TABLES),
        }
    }

    fn history_memory(&self) -> usize {
        0
    }
}

/// The library has parameters of their own for what is not larger, counting half a kilobyte more for what it does not know.
const MIDDLE_BYTES: u64 = 255 << 10;

/// The most that tables take more for a long window.
const TABLES: usize = 8 << 20;

impl Drop for Stream {
    fn drop(&mut self) {
        self.release();
    }
}

/// In the place of a coder whose dictionary is missing: it codes nothing.
pub(super) struct Lacking;

impl Coder for Lacking {
    fn push(&mut self, _: &[u8], _: &mut Vec<u8>, _: Flush) -> Result<(), CoderFault> {
        Err(CoderFault)
    }

    fn reset(&mut self) {}

    fn lighten(&mut self, _: Keep) {}

    fn memory(&self) -> usize {
        0
    }

    fn full_memory(&self) -> usize {
        0
    }

    fn history_memory(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests;
