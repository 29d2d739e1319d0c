//! Brotli (RFC 7932): streams and whole bodies.
//!
//! Levels are the format's own qualities, 0 to 9; 10 and 11 take a hundred times as long as gzip and are for files that are made
//! once. Bytes (nanoseconds a byte), beside gzip's level 6 by libdeflate:
//!
//! ```text
//!               a script of 131,882    alice29.txt 152,089    a script of 8,192
//!   gzip 6      41,670 (38)            53,819 (28)            3,614 (22)
//!   brotli 1    47,953 (13)            60,292 (14)            4,053 (16)
//!   brotli 3    44,469 (20)            56,876 (25)            3,768 (23)
//!   brotli 5    41,247 (49)            52,808 (69)            3,407 (55)
//!   brotli 7    40,638 (141)           51,451 (156)           3,415 (205)
//! ```
//!
//! A state cannot be replaced in the middle of a stream. A stream whose server pauses, and that must give its memory back, goes on
//! without compression: blocks of plain bytes need no state (section 9.2, ISUNCOMPRESSED).

use super::{Coder, CoderFault, Flush, Keep};
use crate::coding::Level;
use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};

/// Nanoseconds a byte on text, by level.
pub(super) const COST_NS: &[u16] = &[11, 15, 20, 24, 36, 60, 90, 170, 250, 400];

/// Bytes of a state, by level: measured, rounded up.
const STATE_BYTES: &[usize] =
    &[220_000, 240_000, 1_120_000, 1_120_000, 1_460_000, 2_010_000, 3_100_000, 9_400_000, 17_800_000, 34_800_000];

/// The window: 256 KB, as a power of two.
const WINDOW_BITS: u32 = 18;

/// The least length that the library is told. From a megabyte on it considers 13 contexts of literals instead of two, which is worth it
/// for every text: 1.6 % of a script of 132 KB in the same time, 1.8 % of one of 8 KB in a quarter more.
const LEAST_HINT_BYTES: u32 = 1 << 20;

/// A whole body of [`LONG_BYTES`] is coded as the library codes what is above this length, with a window to match: by a table of places
/// of five bytes rather than four. Texts come out smaller in the same time, by 0.6 % (a script), 2 % (alice29.txt), 3 % (lcet10.txt); a
/// spreadsheet of binary records (kennedy.xls) 6 % larger.
const LONG_HINT_BYTES: u32 = (4 << 20) + 1;
/// See [`LONG_HINT_BYTES`].
const LONG_WINDOW_BITS: u32 = 19;
/// The table takes 2 MB: shorter bodies are done before it pays.
const LONG_BYTES: usize = 64 * 1024;

/// A stream that begins and ends with nothing in it: a window of 64 KB, and a last block that is empty (section 9.1).
const EMPTY_STREAM: u8 = 0x06;
/// A last block that is empty, at the border of a byte.
const LAST_EMPTY_BLOCK: u8 = 0x03;
/// Plain bytes in a block whose length takes four nibbles.
const BLOCK_BYTES: usize = 1 << 16;

/// The least room that is offered for output.
const MIN_ROOM: usize = 1024;

type State = BrotliEncoderStateStruct<StandardAlloc>;

/// Appends the coded form of a body to `out`.
pub(super) fn whole(input: &[u8], level: Level, out: &mut Vec<u8>) -> Result<(), CoderFault> {
    if input.is_empty() {
        out.push(EMPTY_STREAM);
        return Ok(());
    }
    let mut state = state(level);
    if input.len() >= LONG_BYTES {
        let hint = u32::try_from(input.len()).unwrap_or(u32::MAX).max(LONG_HINT_BYTES);
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, hint);
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, LONG_WINDOW_BITS);
    }
    compress(&mut state, input, out, Flush::Finish)
}

/// An incremental coder.
pub(super) fn stream(level: Level) -> Box<dyn Coder> {
    Box::new(Stream { level, state: None, plain: false })
}

struct Stream {
    level: Level,
    /// None before the first byte, when memory was taken away, and after the end.
    state: Option<Box<State>>,
    /// Whether bytes go on as they are, the stream having begun.
    plain: bool,
}

impl Coder for Stream {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
        let ends = flush == Flush::Finish;
        if self.plain {
            input.chunks(BLOCK_BYTES).for_each(|piece| plain_block(piece, out));
            if ends {
                out.push(LAST_EMPTY_BLOCK);
            }
            return Ok(());
        }
        if self.state.is_none() && input.is_empty() {
            out.extend(ends.then_some(EMPTY_STREAM));
            return Ok(());
        }
        let level = self.level;
        let begun = self.state.get_or_insert_with(|| Box::new(state(level)));
        compress(begun, input, out, flush)?;
        if ends {
            self.state = None;
        }
        Ok(())
    }

    fn reset(&mut self) {
        (self.state, self.plain) = (None, false);
    }

    fn lighten(&mut self, _: Keep) {
        self.plain |= self.state.take().is_some();
    }

    fn memory(&self) -> usize {
        self.state.as_ref().map_or(0, |_| self.full_memory())
    }

    fn full_memory(&self) -> usize {
        STATE_BYTES[usize::from(self.level.0).min(STATE_BYTES.len() - 1)]
    }

    fn history_memory(&self) -> usize {
        0
    }
}

fn state(level: Level) -> State {
    let mut state = State::new(StandardAlloc::default());
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, u32::from(level.0));
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, WINDOW_BITS);
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, LEAST_HINT_BYTES);
    state
}

/// A block of up to [`BLOCK_BYTES`] plain bytes at the border of a byte, from the lowest bit on: not the last, four nibbles of
/// length, the length less one, uncompressed (section 9.2).
fn plain_block(piece: &[u8], out: &mut Vec<u8>) {
    let head = (piece.len() as u32 - 1) << 3 | 1 << 19;
    out.extend_from_slice(&head.to_le_bytes()[..3]);
    out.extend_from_slice(piece);
}

/// Pushes all of `input` through a state.
fn compress(state: &mut State, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
    let operation = match flush {
        Flush::None => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Flush::Sync => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Flush::Finish => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut left, mut at) = (input.len(), 0);
    loop {
        let start = out.len();
        out.resize(start + (input.len() / 2).max(MIN_ROOM), 0);
        let (mut room, mut end) = (out.len() - start, start);
        let sound =
            state.compress_stream(operation, &mut left, input, &mut at, &mut room, out, &mut end, &mut None, &mut |_, _, _, _| ());
        out.truncate(end);
        if !sound {
            return Err(CoderFault);
        }
        let all_out = if flush == Flush::Finish { state.is_finished() } else { !state.has_more_output() };
        if left == 0 && all_out {
            return Ok(());
        }
    }
}
