//! Brotli (RFC 7932): streams and whole bodies.
//!
//! By the reference library, which is written in C: the port of it to Rust takes one and a half times as long. What is read
//! from others is decoded by the port ([`crate::decode`]).
//!
//! Levels are the format's own qualities, 0 to 9; 10 and 11 take a hundred times as long as gzip and are for files that are made
//! once. Bytes (nanoseconds a byte), beside zlib's level 6:
//!
//! ```text
//!               a script of 131,882    alice29.txt 152,089    a script of 8,192
//!   zlib 6      43,043 (28)            54,404 (40)            3,366 (17)
//!   brotli 1    48,814 (5)             60,292 (4)             3,760 (4)
//!   brotli 3    45,452 (9)             56,892 (9)             3,576 (7)
//!   brotli 5    41,148 (20)            51,225 (22)            3,165 (25)
//!   brotli 6    40,864 (23)            50,825 (24)            3,161 (26)
//!   brotli 7    40,883 (30)            50,901 (33)            3,166 (32)
//!   brotli 9    40,723 (120)           50,501 (114)           3,167 (423)
//! ```
//!
//! A state cannot be replaced in the middle of a stream. A stream whose server pauses, and that must give its memory back, goes on
//! without compression: blocks of plain bytes need no state (section 9.2, ISUNCOMPRESSED). For the same reason its level stays what it
//! was while a brake is on.

use super::parts::{PART_BYTES, Parts};
use super::{Coder, CoderFault, Flush, Keep};
use crate::coding::Level;
use brotlic::encode::{BrotliEncoder, BrotliEncoderOptions, BrotliOperation};
use brotlic::{BlockSize, Quality, WindowSize};

/// Nanoseconds a byte on text, by level.
pub(super) const COST_NS: &[u16] = &[5, 7, 11, 13, 18, 30, 34, 44, 52, 180];

/// Bytes of a state, by level: measured with a long text, rounded up.
const STATE_BYTES: &[usize] =
    &[160_000, 100_000, 1_280_000, 1_280_000, 7_300_000, 4_300_000, 5_300_000, 11_600_000, 20_000_000, 38_700_000];

/// The same with the window of long bodies.
const PARTS_BYTES: &[usize] =
    &[160_000, 290_000, 2_200_000, 2_200_000, 9_500_000, 7_800_000, 9_900_000, 14_100_000, 22_500_000, 41_500_000];

/// Below this level each part is a block of its own, and quick: longer ones come out up to 3 % smaller.
const SHORT_PARTS_FROM: u8 = 2;

/// From this level on the library works in blocks of 256 KB, 30 ms each, where 64 KB come out 0.1 % larger at the most.
const LARGE_BLOCKS_FROM: u8 = 9;

/// The window: 256 KB, as a power of two.
const WINDOW_BITS: u8 = 18;

/// The length that the library is told, whatever it is. From here on it considers 13 contexts of literals instead of two, which is worth
/// it for every text: 1.6 % of a script of 132 KB in the same time, 1.8 % of one of 8 KB in a quarter more.
const HINT_BYTES: u32 = 1 << 20;

/// A whole body of [`LONG_BYTES`] gets a window with which the library looks for places of five bytes rather than four. Texts come out
/// smaller in the same time, by 0.8 % (a script), 2 % (alice29.txt), 3 % (lcet10.txt); a spreadsheet of binary records (kennedy.xls)
/// 4 % larger.
const LONG_WINDOW_BITS: u8 = 19;
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

/// Appends the coded form of a body to `out`.
pub(super) fn whole(input: &[u8], level: Level, out: &mut Vec<u8>) -> Result<(), CoderFault> {
    if input.is_empty() {
        out.push(EMPTY_STREAM);
        return Ok(());
    }
    let window_bits = if input.len() >= LONG_BYTES { LONG_WINDOW_BITS } else { WINDOW_BITS };
    compress(&mut state(level, window_bits)?, input, out, Flush::Finish)
}

/// An incremental coder.
pub(super) fn stream(level: Level) -> Box<dyn Coder> {
    Box::new(Stream { level, state: None, plain: false })
}

/// A large whole body.
pub(super) fn parts(level: Level) -> Box<dyn Parts> {
    Box::new(Large { level, state: None })
}

struct Large {
    level: Level,
    /// None before the first part and behind the last.
    state: Option<BrotliEncoder>,
}

impl Parts for Large {
    /// From [`SHORT_PARTS_FROM`] on the bytes are those of [`whole`], but for the shorter blocks of [`LARGE_BLOCKS_FROM`].
    fn code(&mut self, body: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, CoderFault> {
        let most = if self.level.0 < SHORT_PARTS_FROM { 4 * PART_BYTES } else { PART_BYTES };
        let end = body.len().min(at + most);
        let part = body.get(at..end).ok_or(CoderFault)?;
        let begun = match &mut self.state {
            Some(begun) => begun,
            none => {
                let mut options = options(self.level, LONG_WINDOW_BITS)?;
                if self.level.0 >= LARGE_BLOCKS_FROM {
                    options.block_size(BlockSize::worst());
                }
                none.insert(options.build().map_err(|_| CoderFault)?)
            }
        };
        let last = end == body.len();
        compress(begun, part, out, if last { Flush::Finish } else { Flush::None })?;
        if last {
            self.state = None;
        }
        Ok(end)
    }

    fn memory(&self) -> usize {
        PARTS_BYTES[usize::from(self.level.0).min(PARTS_BYTES.len() - 1)]
    }
}

struct Stream {
    level: Level,
    /// None before the first byte, when memory was taken away, and after the end.
    state: Option<BrotliEncoder>,
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
        let begun = match &mut self.state {
            Some(begun) => begun,
            none => none.insert(state(self.level, WINDOW_BITS)?),
        };
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

fn state(level: Level, window_bits: u8) -> Result<BrotliEncoder, CoderFault> {
    options(level, window_bits)?.build().map_err(|_| CoderFault)
}

fn options(level: Level, window_bits: u8) -> Result<BrotliEncoderOptions, CoderFault> {
    let mut options = BrotliEncoderOptions::new();
    options.quality(Quality::new(level.0).map_err(|_| CoderFault)?);
    options.window_size(WindowSize::new(window_bits).map_err(|_| CoderFault)?);
    options.size_hint(HINT_BYTES);
    Ok(options)
}

/// A block of up to [`BLOCK_BYTES`] plain bytes at the border of a byte, from the lowest bit on: not the last, four nibbles of
/// length, the length less one, uncompressed (section 9.2).
fn plain_block(piece: &[u8], out: &mut Vec<u8>) {
    let head = (piece.len() as u32 - 1) << 3 | 1 << 19;
    out.extend_from_slice(&head.to_le_bytes()[..3]);
    out.extend_from_slice(piece);
}

/// Pushes all of `input` through a state.
fn compress(state: &mut BrotliEncoder, mut input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
    let operation = match flush {
        Flush::None => BrotliOperation::Process,
        Flush::Sync => BrotliOperation::Flush,
        Flush::Finish => BrotliOperation::Finish,
    };
    let room = (input.len() / 2).max(MIN_ROOM);
    loop {
        let start = out.len();
        out.resize(start + room, 0);
        let done = state.compress(input, &mut out[start..], operation);
        out.truncate(start + done.as_ref().map_or(0, |done| done.bytes_written));
        input = &input[done.map_err(|_| CoderFault)?.bytes_read..];
        let all_out = if flush == Flush::Finish { state.is_finished() } else { !state.has_output() };
        if input.is_empty() && all_out {
            return Ok(());
        }
    }
}
