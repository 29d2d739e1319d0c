//! Brotli (RFC 7932): streams and whole bodies.
//!
//! By mbrotli, a port of the reference library to Rust without unsafe code: it gives the bytes of the reference's 1.2, in
//! less time, and its states can be used again. Bodies of others are decoded by another port ([`crate::decode`]).
//!
//! Levels are the format's own qualities. The configuration names 0 to 9; 10 and 11 take a hundred times as long as gzip and
//! are for forms that are made once, in idle time ([`crate::memory`]). Bytes (nanoseconds a byte), of files of npm's
//! packages, each in turn, states used again; the reference's 1.0.9 beside it takes 1.3 times as long at levels 4 and 5 for
//! 132 KB, as long for 8 KB, 4 and 9 times at 9, 1.6 times at 11:
//!
//! ```text
//!               4 scripts of 8,192   4 scripts of 131,882   4 of JSON of 131,882   2 of WebAssembly of 131,882
//!   brotli 0    12,966 (4)           176,580 (2.2)          148,042 (1.9)          146,110 (3.0)
//!   brotli 2    11,713 (9)           156,333 (6.4)          120,516 (4.9)          129,917 (8.8)
//!   brotli 3    11,516 (9)           154,237 (6.4)          118,849 (5.4)          129,484 (9.6)
//!   brotli 4    11,194 (13)          150,505 (10)           115,637 (8.0)          127,944 (13)
//!   brotli 5    10,469 (19)          141,111 (16)           110,783 (14)           122,163 (23)
//!   brotli 6    10,460 (24)          139,793 (18)           109,570 (16)           121,689 (26)
//!   brotli 7    10,446 (37)          138,872 (28)           108,568 (24)           121,486 (40)
//!   brotli 9    10,427 (48)          138,044 (37)           107,724 (35)           121,419 (53)
//!   brotli 11   9,566 (580)          126,118 (610)          97,025 (610)           112,795 (710)
//! ```
//!
//! The length that the library is given decides much. Where it knows that there are only a few kilobytes it takes two
//! contexts of literals rather than thirteen, and tables that are soon filled. Given a megabyte for each body, as it once was
//! here, 1 KB of script came out 13 % larger in 1.8 times the time, 8 KB 2 % in 1.4 times, 132 KB 0.4 % in 1.2 times, and 132
//! KB of WebAssembly 2 % in 1.4 times. JSON and SVG are the exception ([`is_records`]).
//!
//! A state cannot be replaced in the middle of a stream. A stream whose server pauses, and that must give its memory back,
//! goes on without compression: blocks of plain bytes need no state (section 9.2, ISUNCOMPRESSED). For the same reason its
//! level stays while a brake is on.

use super::blocks::Blocks;
use super::parts::{PART_BYTES, Parts};
use super::pool::Pool;
use super::{Coder, CoderFault, Flush, Keep};
use crate::coding::Level;
use mbrotli::{BlockBits, BlockSize, EncoderConfig, EncoderSessionOwned, EncoderStatus, InputSize, Operation, Quality, Window};
use std::sync::Arc;

/// Nanoseconds a byte on text, by level.
pub(super) const COST_NS: &[u16] = &[5, 7, 11, 12, 17, 26, 30, 44, 52, 66, 700, 1300];

/// Bytes of a state, by level, without its window: measured, rounded up.
const STATE_BYTES: &[usize] = &[
    900_000, 1_700_000, 900_000, 900_000, 1_700_000, 2_300_000, 3_600_000, 9_500_000, 20_300_000, 37_200_000, 13_000_000,
    16_000_000,
];

/// Below this level each part is a block of its own, and quick: longer ones come out up to 3 % smaller.
const SHORT_PARTS_FROM: u8 = 2;

/// From this level on the library works in blocks of 256 KB, 30 ms each, where 64 KB come out 0.1 % larger at the most.
const LARGE_BLOCKS_FROM: u8 = 9;

/// Bytes that the library gathers before it codes them, by level, the first row up to [`SHORT_PARTS_FROM`], where they are those of the window.
const BLOCKS: [(u8, usize); 3] = [(1, 1 << LEAST_WINDOW_BITS), (3, 16 * 1024), (u8::MAX, 64 * 1024)];

/// Matches are looked for block by block, and written when a good deal of them is there, or at a flush: that is so much of the time of the bytes
/// since the last such moment.
const WRITING_SHARE: usize = 2;

/// Windows, as powers of two. A stream of unknown length has the largest that streams have: its memory grows with the bytes
/// that it has seen. The largest is the format's usual window, 4 MB.
const LEAST_WINDOW_BITS: u8 = 18;
const MOST_STREAM_WINDOW_BITS: u8 = 20;
const MOST_WINDOW_BITS: u8 = 22;

/// For texts of records that are as long the library is given [`RECORDS_HINT`]: it looks for places of five bytes rather than
/// four then, and considers 13 contexts of literals. JSON of 132 KB comes out 3 % smaller in 4 % more time, where scripts
/// come out 1 % larger in a fifth more.
const RECORDS_BYTES: usize = 64 * 1024;
const RECORDS_HINT: u64 = 1 << 20;
const RECORDS_WINDOW_BITS: u8 = 19;

/// A stream that begins and ends with nothing in it: a window of 64 KB, and a last block that is empty (section 9.1).
const EMPTY_STREAM: u8 = 0x06;
/// A last block that is empty, at the border of a byte.
const LAST_EMPTY_BLOCK: u8 = 0x03;
/// Plain bytes in a block whose length takes four nibbles.
const BLOCK_BYTES: usize = 1 << 16;

/// The least room that is offered for output.
const MIN_ROOM: usize = 1024;

/// Appends the coded form of a body to `out`.
pub(super) fn whole(input: &[u8], level: Level, pool: &Pool, out: &mut Vec<u8>) -> Result<(), CoderFault> {
    if input.is_empty() {
        out.push(EMPTY_STREAM);
        return Ok(());
    }
    let mut state = begin(pool, level, Shape::of_whole(input))?;
    compress(&mut state, input, out, Flush::Finish)?;
    pool.give_brotli(level.0, state.into_compressor());
    Ok(())
}

/// An incremental coder, of a body whose length may be known.
pub(super) fn stream(level: Level, bytes: Option<u64>, pool: &Arc<Pool>) -> Box<dyn Coder> {
    let blocks = Blocks::of(block_bytes(level));
    Box::new(Stream { level, bytes, taken: 0, blocks, unwritten: 0, state: None, plain: false, pool: pool.clone() })
}

/// A large whole body.
pub(super) fn parts(body: &[u8], level: Level, pool: &Arc<Pool>) -> Box<dyn Parts> {
    Box::new(Large { level, shape: Shape::of_whole(body).in_parts(level), state: None, pool: pool.clone() })
}

/// The parameters of the library for a body.
#[derive(Clone, Copy)]
struct Shape {
    window_bits: u8,
    size: InputSize,
    /// Whether blocks are to be short at all levels.
    in_parts: bool,
}

impl Shape {
    fn of_whole(body: &[u8]) -> Shape {
        if body.len() >= RECORDS_BYTES && is_records(body) && (body.len() as u64) < RECORDS_HINT {
            return Shape {
                window_bits: RECORDS_WINDOW_BITS.max(bits(body.len() as u64)),
                size: RECORDS_HINT.into(),
                in_parts: false,
            };
        }
        let length = body.len() as u64;
        Shape { window_bits: bits(length).clamp(LEAST_WINDOW_BITS, MOST_WINDOW_BITS), size: length.into(), in_parts: false }
    }

    fn of_stream(level: Level, bytes: Option<u64>) -> Shape {
        let window_bits = bytes.map_or(MOST_STREAM_WINDOW_BITS, bits).clamp(LEAST_WINDOW_BITS, MOST_STREAM_WINDOW_BITS);
        Shape { window_bits, size: bytes.map_or(InputSize::Unknown, InputSize::from), in_parts: false }.in_parts(level)
    }

    /// In blocks that are short. At the lowest levels they are as long as the window, and nothing is looked for beyond the shortest.
    fn in_parts(self, level: Level) -> Shape {
        let window_bits = if level.0 < SHORT_PARTS_FROM { LEAST_WINDOW_BITS } else { self.window_bits };
        Shape { window_bits, in_parts: true, ..self }
    }
}

fn block_bytes(level: Level) -> usize {
    BLOCKS.iter().find(|(most, _)| level.0 <= *most).map_or(PART_BYTES, |(_, bytes)| *bytes)
}

/// Bits of the smallest window that holds so many bytes.
fn bits(bytes: u64) -> u8 {
    bytes.max(1).next_power_of_two().ilog2() as u8
}

/// Whether a body begins as JSON or as a picture in XML does.
fn is_records(body: &[u8]) -> bool {
    let begin = body.trim_ascii_start();
    [&b"{"[..], b"[", b"<svg", b"<?xml"].iter().any(|of| begin.starts_with(of))
}

struct Large {
    level: Level,
    shape: Shape,
    /// `None` before the first part and after the last.
    state: Option<EncoderSessionOwned>,
    pool: Arc<Pool>,
}

impl Parts for Large {
    /// From [`SHORT_PARTS_FROM`] on the bytes are those of [`whole`], but for the shorter blocks of [`LARGE_BLOCKS_FROM`].
    fn code(&mut self, body: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, CoderFault> {
        let most = if self.level.0 < SHORT_PARTS_FROM { 4 * PART_BYTES } else { PART_BYTES };
        let end = body.len().min(at + most);
        let part = body.get(at..end).ok_or(CoderFault)?;
        let mut begun = match self.state.take() {
            Some(begun) => begun,
            None => begin(&self.pool, self.level, self.shape)?,
        };
        let last = end == body.len();
        compress(&mut begun, part, out, if last { Flush::Finish } else { Flush::None })?;
        if last {
            self.pool.give_brotli(self.level.0, begun.into_compressor());
        } else {
            self.state = Some(begun);
        }
        Ok(end)
    }

    fn memory(&self) -> usize {
        state_bytes(self.level) + window_memory(self.shape.window_bits)
    }
}

struct Stream {
    level: Level,
    /// The body's length, where it is known.
    bytes: Option<u64>,
    /// Bytes of the body so far.
    taken: usize,
    blocks: Blocks,
    /// Bytes in which matches were looked for that are not written yet.
    unwritten: usize,
    /// `None` before the first byte, when memory was taken away, and after the end.
    state: Option<EncoderSessionOwned>,
    /// Whether bytes go on as they are, the stream having begun.
    plain: bool,
    pool: Arc<Pool>,
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
        let mut begun = match self.state.take() {
            Some(begun) => begun,
            None => begin(&self.pool, self.level, Shape::of_stream(self.level, self.bytes))?,
        };
        let (before, coded) = (out.len(), self.blocks.due(input.len(), flush));
        compress(&mut begun, input, out, flush)?;
        self.taken = self.taken.saturating_add(input.len());
        self.blocks.pushed(input.len(), flush);
        self.unwritten = if out.len() > before { 0 } else { self.unwritten + coded };
        if ends {
            self.pool.give_brotli(self.level.0, begun.into_compressor());
        } else {
            self.state = Some(begun);
        }
        Ok(())
    }

    fn due(&self, bytes: usize, flush: Flush) -> usize {
        let coded = self.blocks.due(bytes, flush);
        match flush {
            _ if self.plain => 0,
            Flush::None => coded,
            Flush::Sync | Flush::Finish => coded + self.unwritten / WRITING_SHARE,
        }
    }

    fn reset(&mut self) {
        self.release();
        (self.taken, self.plain) = (0, false);
    }

    fn lighten(&mut self, _: Keep) {
        self.plain |= self.release();
    }

    fn memory(&self) -> usize {
        self.state.as_ref().map_or(0, |_| self.full_memory())
    }

    fn full_memory(&self) -> usize {
        full_memory(self.level, self.bytes, self.taken)
    }

    fn history_memory(&self) -> usize {
        0
    }
}

impl Stream {
    /// Gives the state back; returns whether there was one.
    fn release(&mut self) -> bool {
        self.blocks.reset();
        self.unwritten = 0;
        self.state.take().map(|state| self.pool.give_brotli(self.level.0, state.into_compressor())).is_some()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.release();
    }
}

/// Bytes of a stream's state after so many bytes of the body: a window grows with the bytes that it sees, by doubling.
fn full_memory(level: Level, bytes: Option<u64>, taken: usize) -> usize {
    let most = window_memory(Shape::of_stream(level, bytes).window_bits);
    let seen = taken.saturating_add(PART_BYTES).checked_next_power_of_two().unwrap_or(usize::MAX);
    state_bytes(level) + most.min(seen.saturating_mul(4))
}

fn state_bytes(level: Level) -> usize {
    STATE_BYTES[usize::from(level.0).min(STATE_BYTES.len() - 1)]
}

/// The library's ring is twice the window and a block longer, and may have room for as much again.
fn window_memory(window_bits: u8) -> usize {
    (4 << window_bits) + (2 << LEAST_WINDOW_BITS)
}

/// A state at the beginning of a stream.
fn begin(pool: &Pool, level: Level, shape: Shape) -> Result<EncoderSessionOwned, CoderFault> {
    let mut config = EncoderConfig::new()
        .with_quality(Quality::try_from(level.0).map_err(|_| CoderFault)?)
        .with_window(Window::standard(shape.window_bits).map_err(|_| CoderFault)?);
    if shape.in_parts && level.0 >= LARGE_BLOCKS_FROM {
        config = config.with_block_size(BlockSize::from(BlockBits::MIN));
    }
    let state = pool.take_brotli(level.0, config).ok_or(CoderFault)?;
    state.into_session(shape.size.into()).map_err(|_| CoderFault)
}

/// A block of up to [`BLOCK_BYTES`] plain bytes at the border of a byte, from the lowest bit on: not the last, four nibbles of
/// length, the length less one, uncompressed (section 9.2).
fn plain_block(piece: &[u8], out: &mut Vec<u8>) {
    let head = (piece.len() as u32 - 1) << 3 | 1 << 19;
    out.extend_from_slice(&head.to_le_bytes()[..3]);
    out.extend_from_slice(piece);
}

/// Pushes all of `input` through a state.
fn compress(state: &mut EncoderSessionOwned, mut input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
    let operation = match flush {
        Flush::None => Operation::Process,
        Flush::Sync => Operation::Flush,
        Flush::Finish => Operation::Finish,
    };
    let mut room = (input.len() / 2).max(MIN_ROOM);
    loop {
        let start = out.len();
        out.resize(start + room, 0);
        let done = state.process(input, &mut out[start..], operation);
        out.truncate(start + done.as_ref().map_or(0, |done| done.produced));
        let done = done.map_err(|_| CoderFault)?;
        input = &input[done.consumed..];
        match done.status {
            EncoderStatus::Finished => return Ok(()),
            EncoderStatus::NeedsInput if input.is_empty() && flush != Flush::Finish => return Ok(()),
            _ if done.consumed == 0 && done.produced == 0 => return Err(CoderFault),
            _ => room = (input.len() / 2).max(2 * MIN_ROOM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::Tuning;

    /// Words, numbers and bytes that do not come again: many symbols and many matches.
    fn body(bytes: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut body = Vec::new();
        while body.len() < bytes {
            body.extend_from_slice([&b"value"[..], b" = ", b"function(", b");\n", b"0x"][next() as usize % 5]);
            body.extend_from_slice(format!("{:x}", next() % 0xfff).as_bytes());
        }
        body.truncate(bytes);
        body
    }

    #[test]
    fn states_are_no_larger_than_the_tables_say() {
        let body = body(3 << 20);
        let (mut wrong, pool) = (Vec::new(), Arc::new(Pool::new(Tuning::default())));
        for level in 0..=11 {
            for bytes in [8 << 10, 132 << 10, if level > 9 { 500 << 10 } else { 3 << 20 }] {
                let mut state = begin(&pool, Level(level), Shape::of_stream(Level(level), None)).unwrap();
                for piece in body[..bytes].chunks(PART_BYTES) {
                    compress(&mut state, piece, &mut Vec::new(), Flush::Sync).unwrap();
                }
                compress(&mut state, &[], &mut Vec::new(), Flush::Finish).unwrap();
                let held = state.into_compressor().retained_bytes();
                let said = full_memory(Level(level), None, bytes);
                if !(1..=said).contains(&held) {
                    wrong.push(format!("level {level}, {bytes} bytes: {held}, not {said}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn records_are_told_from_other_texts() {
        for records in [&b" \n{\"a\":1}"[..], b"[1]", b"<svg xmlns", b"<?xml version"] {
            assert!(is_records(records));
        }
        for other in [&b""[..], b"(function", b"<!doctype html>", b"\0asm"] {
            assert!(!is_records(other));
        }
        let long = [&b"["[..], &b"1234,".repeat(20_000)].concat();
        assert_eq!(Shape::of_whole(&long).size, InputSize::Exact(RECORDS_HINT));
        assert_eq!(Shape::of_whole(&long[..1000]).size, InputSize::Exact(1000));
    }

    #[test]
    fn windows_are_as_long_as_bodies() {
        let of = |bytes| Shape::of_stream(Level(5), bytes).window_bits;
        assert_eq!([of(Some(0)), of(Some(1000)), of(Some(300_000)), of(Some(1 << 40)), of(None)], [18, 18, 19, 20, 20]);
        assert_eq!(Shape::of_whole(&vec![b'a'; (1 << 20) + 1]).window_bits, 21);
    }
}
