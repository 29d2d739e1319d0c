//! The incremental coder of the deflate family: our own ([`super::stream`]) where that is smaller or quicker, else on zlib-rs, which is here.
//!
//! Sizes and costs of its levels are not zlib's, so a level here is the one of zlib-rs that comes out no larger than zlib's of that
//! number where the processor's time lets it. Bytes (nanoseconds a byte), fed in pieces of 64 KB:
//!
//! ```text
//!                      a script of 131,882    alice29.txt 152,089    kennedy.xls 1,029,744   a bitmap of 7,298,358
//!   zlib 1             50,368 (14)            65,130 (14)            242,293 (8)             285,297 (4)
//!   level 1: zlib-rs 2 47,200 (10)            61,116 (14)            235,105 (6)             285,524 (2)
//!   zlib 6             42,308 (42)            54,398 (70)            203,986 (35)            205,167 (11)
//!            zlib-rs 6 42,543 (21)            54,637 (32)            217,424 (15)            203,099 (9)
//!   level 6: zlib-rs 7 42,242 (29)            54,041 (46)            208,770 (34)            200,679 (10)
//!   zlib 9             42,259 (59)            54,164 (98)            207,023 (475)           176,255 (53)
//!   level 9: zlib-rs 9 42,269 (37)            54,220 (71)            207,025 (312)           174,867 (47)
//! ```
//!
//! That is with blocks of 16,384 symbols, zlib's own; with the 4,096 of [`crate::settings::MEMORY_LEVEL`] the bitmap is 0.7 % larger at
//! levels 1 and 6, kennedy.xls 6 and 4 % smaller, text and the script the same to two thousandths.
//!
//! A state is 294 KB. A stream whose server pauses can do without one: after a sync flush the output is at a byte's border, and
//! another state goes on from there, given the last bytes as its dictionary. In pieces of 200 bytes that script takes 53,616 bytes
//! with its state kept, 65,559 with [`HISTORY_BYTES`] of history, 98,049 with none.

use super::frame::{Format, Frame};
use super::pool::{Pool, stream_memory};
use super::{Coder, CoderFault, Flush, Keep};
use crate::coding::Level;
use std::sync::Arc;
use zlib_rs::{Deflate, DeflateFlush, Status};

/// The levels of zlib-rs that stand for zlib's 0 to 9.
const LEVELS: [u8; 10] = [0, 2, 3, 3, 5, 6, 7, 7, 8, 9];

/// Nanoseconds a byte of streams on text, by zlib's level: of our own coder from 1 to 7.
pub(super) const COST_NS: [u16; 10] = [1, 4, 6, 17, 28, 28, 30, 30, 75, 71];

/// Bytes of a body that are kept for a coder that makes itself small.
const HISTORY_BYTES: usize = 4096;

/// A deflate block of the fixed code that holds nothing and is the last.
const LAST_EMPTY_BLOCK: &[u8] = &[0x03, 0x00];

/// The lowest level that a stream is eased to.
const LEAST_LEVEL: u8 = 1;

/// The least room that is offered for output: a flush must not be cut into pieces, and zlib wants six bytes for its mark.
const MIN_ROOM: usize = 256;

/// An incremental coder: our own where that wins.
pub(super) fn stream(format: Format, level: Level, pool: &Arc<Pool>) -> Box<dyn Coder> {
    super::stream::of(format, level, pool).unwrap_or_else(|| zlib(format, level, pool))
}

/// The one on zlib-rs.
pub(super) fn zlib(format: Format, level: Level, pool: &Arc<Pool>) -> Box<dyn Coder> {
    let level = LEVELS[usize::from(level.0).min(LEVELS.len() - 1)];
    Box::new(Stream { frame: Frame::new(format), level, eased: level, state: None, history: Vec::new(), pool: pool.clone() })
}

struct Stream {
    frame: Frame,
    level: u8,
    /// The level for now, at most that one.
    eased: u8,
    /// `None` before the first byte, while the coder is light, and after the end.
    state: Option<Deflate>,
    /// The last bytes of the body, at most [`HISTORY_BYTES`].
    history: Vec<u8>,
    pool: Arc<Pool>,
}

impl Coder for Stream {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
        self.frame.update(input, out);
        if input.is_empty() && self.state.is_none() {
            if flush == Flush::Finish {
                out.extend_from_slice(LAST_EMPTY_BLOCK);
                self.history = Vec::new();
                self.frame.finish(out);
            }
            return Ok(());
        }
        let mut state = self.take_state()?;
        deflate(&mut state, input, out, flush)?;
        if flush == Flush::Finish {
            self.pool.give_stream(self.eased, state);
            self.history = Vec::new();
            self.frame.finish(out);
        } else {
            self.state = Some(state);
            self.remember(input);
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.release();
        self.eased = self.level;
        self.history.clear();
        self.frame.reset();
    }

    fn lighten(&mut self, keep: Keep) {
        self.release();
        if keep == Keep::Nothing {
            self.history = Vec::new();
        }
    }

    fn is_prompt(&self) -> bool {
        true
    }

    fn can_ease(&self) -> bool {
        self.level > LEAST_LEVEL
    }

    fn ease(&mut self, less: bool) {
        let level = if less { self.eased.saturating_sub(1).max(LEAST_LEVEL) } else { self.eased + 1 }.min(self.level);
        // The next state begins with the last bytes, as after [`Coder::lighten`].
        if level != self.eased {
            self.release();
            self.eased = level;
        }
    }

    fn is_eased(&self) -> bool {
        self.eased < self.level
    }

    fn memory(&self) -> usize {
        self.history.capacity() + self.state.as_ref().map_or(0, |_| stream_memory(self.pool.tuning()))
    }

    fn full_memory(&self) -> usize {
        stream_memory(self.pool.tuning()) + HISTORY_BYTES
    }

    fn history_memory(&self) -> usize {
        HISTORY_BYTES
    }
}

impl Stream {
    fn take_state(&mut self) -> Result<Deflate, CoderFault> {
        if let Some(state) = self.state.take() {
            return Ok(state);
        }
        let mut state = self.pool.take_stream(self.eased);
        if !self.history.is_empty() {
            state.set_dictionary(&self.history).map_err(|_| CoderFault)?;
        }
        Ok(state)
    }

    fn release(&mut self) {
        if let Some(state) = self.state.take() {
            self.pool.give_stream(self.eased, state);
        }
    }

    fn remember(&mut self, input: &[u8]) {
        let input = &input[input.len().saturating_sub(HISTORY_BYTES)..];
        let surplus = (self.history.len() + input.len()).saturating_sub(HISTORY_BYTES);
        self.history.drain(..surplus);
        self.history.reserve_exact(HISTORY_BYTES - self.history.len());
        self.history.extend_from_slice(input);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.release();
    }
}

/// Pushes all of `input` through a state.
fn deflate(state: &mut Deflate, mut input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
    let flush = match flush {
        Flush::None => DeflateFlush::NoFlush,
        Flush::Sync => DeflateFlush::SyncFlush,
        Flush::Finish => DeflateFlush::Finish,
    };
    // Most bodies come out at less than half; output that does not fit, such as a block of earlier bytes, gets another turn
    // with more.
    let mut room = (input.len() / 2).max(MIN_ROOM);
    loop {
        let start = out.len();
        out.resize(start + room, 0);
        let (taken, given) = (state.total_in(), state.total_out());
        let status = state.compress(input, &mut out[start..], flush).map_err(|_| CoderFault)?;
        let (taken, given) = ((state.total_in() - taken) as usize, (state.total_out() - given) as usize);
        out.truncate(start + given);
        input = &input[taken..];
        match status {
            Status::StreamEnd => return Ok(()),
            // All that the flush demands is out when there was room left.
            Status::Ok | Status::BufError if flush != DeflateFlush::Finish && input.is_empty() && given < room => return Ok(()),
            _ if taken == 0 && given == 0 => return Err(CoderFault),
            _ => room *= 2,
        }
    }
}
