//! zstd (RFC 8878), by its reference library: streams and whole bodies.
//!
//! Levels are the library's own, 1 to 19; those from 20 on want windows that RFC 9659 forbids on the web. Bytes (nanoseconds a byte),
//! whole, beside gzip's level 6 by libdeflate:
//!
//! ```text
//!              a script of 131,882    alice29.txt 152,089    a script of 8,192
//!   gzip 6     41,670 (38)            53,819 (28)            3,614 (22)
//!   zstd 1     47,107 (9)             59,657 (5)             3,790 (5)
//!   zstd 3     44,285 (8)             56,970 (7)             3,739 (6)
//!   zstd 6     42,163 (21)            53,111 (21)            3,647 (21)
//!   zstd 9     41,524 (38)            52,188 (49)            3,641 (34)
//!   zstd 13    39,485 (398)           49,705 (402)           3,593 (105)
//! ```
//!
//! A stream's window is [`WINDOW_LOG`], or [`LONG_WINDOW_LOG`]: with the first a state takes a megabyte rather than the library's several, and bodies of the web are
//! seldom larger. Whole bodies have a window of their size, which is below the 8 MB of RFC 9659 as long as they are.
//!
//! A stream whose server pauses can do without its state: the frame is ended, and further bytes are another frame, which
//! decoders take for the same body (RFC 8878 section 3).
//!
//! So it is with a stream that is to be eased for a while ([`Coder::ease`]): the library takes another level within a frame
//! only where it has threads of its own. A new frame does not see the bytes before: it is the lowest level at once, and the
//! stream's own again when the brake has been off for [`CALM_PIECES`]. Of 3 MB of Rust the half at level 1 came out as by
//! level 1 from the beginning, at a quarter of level 6's time.

use super::blocks::Blocks;
use super::parts::{PART_BYTES, Parts};
use super::pool::Pool;
use super::{Coder, CoderFault, Flush, Keep};
use crate::coding::Level;
use std::sync::Arc;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, Strategy};

/// Nanoseconds a byte on text, by level.
pub(super) const COST_NS: &[u16] = &[9, 9, 11, 11, 14, 18, 21, 36, 36, 48, 48, 160, 200, 400, 450, 500, 600, 800, 1150, 1500];

/// Bytes of a stream's state, by level, its buffers included: what the library itself says, rounded up.
pub(super) const STREAM_BYTES: &[usize] = &[
    1_130_000, 1_130_000, 1_340_000, 1_870_000, 3_210_000, 2_400_000, 2_400_000, 2_400_000, 2_400_000, 2_400_000, 2_400_000,
    2_400_000, 2_400_000, 3_210_000, 3_210_000, 3_210_000, 3_360_000, 3_360_000, 4_020_000, 4_020_000,
];

/// Bytes of the state of a large whole body, by level, its buffers included: of one that is larger than the library's largest window.
pub(super) const PARTS_BYTES: &[usize] = &[
    1_400_000, 1_400_000, 2_100_000, 3_700_000, 5_000_000, 5_500_000, 5_500_000, 8_200_000, 8_200_000, 15_500_000, 26_000_000,
    26_000_000, 47_000_000, 38_600_000, 55_400_000, 72_100_000, 38_700_000, 59_700_000, 60_300_000, 93_900_000,
];

/// From this level on 64 KB may take more than 20 ms.
const SHORT_PARTS_FROM: u8 = 13;

/// Bytes of a part, and of a stream's block. The library's own would be of 128 KB: shorter ones come out 0.1 % larger of scripts, and up to 14 %
/// smaller of records.
pub(super) fn part_bytes(level: Level) -> usize {
    if level.0 >= SHORT_PARTS_FROM { PART_BYTES / 2 } else { PART_BYTES }
}

/// A stream's window: 256 KB; 1 MB where the body is known to be longer, which leaves 1 % fewer bytes of a megabyte in 0.95 of the time.
pub(super) const WINDOW_LOG: u32 = 18;
const LONG_WINDOW_LOG: u32 = 20;
/// Further bytes of such a window: the window, and a copy of it.
const LONG_WINDOW_BYTES: usize = 2 * ((1 << LONG_WINDOW_LOG) - (1 << WINDOW_LOG));
/// The first level whose tables are larger than such a window deserves.
const LARGE_TABLES_FROM: u8 = 5;

/// Whole bodies for which levels are tuned: those for which the library has the same row of parameters, above 128 KB.
const MIDDLE_BYTES: std::ops::RangeInclusive<usize> = 128 * 1024 + 1..=256 * 1024;

/// Parameters of the library instead of its own for a level.
struct Tuned {
    level: Level,
    strategy: Strategy,
    hash_log: u32,
    chain_log: u32,
    /// `None` where the strategy has no use for it.
    search_log: Option<u32>,
}

/// Tables of the library's own are larger than bodies of that size pay for, and matches of four bytes win nothing there. Beside the library's
/// own, on pages, scripts, style sheets, JSON and WebAssembly of 132 KB, 26 bodies in turn, states used again:
///
/// ```text
///   level 3: bytes 0.999, time 0.78     level 5: bytes 1.002, time 0.85
///   level 4: bytes 0.990, time 0.96     level 6: bytes 1.000, time 0.85
/// ```
///
/// Tried, and not better: level 6 with the first match that is found, looked for in 64 places of a table of 1 MB (bytes 1.009, time 0.93);
/// level 9 with 18 bits and 32 places (1.006, 0.90).
const TUNED: [Tuned; 4] = [
    Tuned { level: Level(3), strategy: Strategy::ZSTD_dfast, hash_log: 15, chain_log: 13, search_log: None },
    Tuned { level: Level(4), strategy: Strategy::ZSTD_greedy, hash_log: 16, chain_log: 16, search_log: Some(4) },
    Tuned { level: Level(5), strategy: Strategy::ZSTD_greedy, hash_log: 16, chain_log: 16, search_log: Some(5) },
    Tuned { level: Level(6), strategy: Strategy::ZSTD_lazy, hash_log: 17, chain_log: 17, search_log: Some(3) },
];

/// The shortest match of all of them.
const TUNED_MATCH: u32 = 5;

impl Tuned {
    /// For a body, if its level is tuned for its length.
    fn of(level: Level, bytes: usize) -> Option<&'static Tuned> {
        TUNED.iter().find(|tuned| tuned.level == level && MIDDLE_BYTES.contains(&bytes))
    }

    fn set(&self, state: &mut CCtx<'_>) -> zstd_safe::SafeResult {
        state.set_parameter(CParameter::Strategy(self.strategy))?;
        state.set_parameter(CParameter::HashLog(self.hash_log))?;
        state.set_parameter(CParameter::ChainLog(self.chain_log))?;
        state.set_parameter(CParameter::MinMatch(TUNED_MATCH))?;
        match self.search_log {
            Some(search_log) => state.set_parameter(CParameter::SearchLog(search_log)),
            None => Ok(0),
        }
    }
}

/// The level that a stream is eased to.
const LEAST_LEVEL: Level = Level(1);
/// Pieces that come with the brake off before a stream goes back to its level: each change costs the content of the window.
const CALM_PIECES: u8 = 8;

/// A raw block that is empty and the last: the end of a frame without a checksum (RFC 8878 section 3.1.1.2).
const LAST_EMPTY_BLOCK: &[u8] = &[1, 0, 0];

/// The least room that is offered for output.
const MIN_ROOM: usize = 1024;

/// Appends the coded form of a body to `out`.
pub(super) fn whole(input: &[u8], level: Level, pool: &Pool, out: &mut Vec<u8>) -> Result<(), CoderFault> {
    let mut state = state(pool, level, None)?;
    if let Some(tuned) = Tuned::of(level, input.len()) {
        tuned.set(&mut state).map_err(|_| CoderFault)?;
    }
    let start = out.len();
    out.resize(start + zstd_safe::compress_bound(input.len()), 0);
    let given = state.compress2(&mut out[start..], input);
    pool.give_zstd(state);
    out.truncate(start + given.unwrap_or(0));
    given.map(|_| ()).map_err(|_| CoderFault)
}

/// A large whole body.
pub(super) fn parts(_: &[u8], level: Level, pool: &Arc<Pool>) -> Option<Box<dyn Parts>> {
    Some(Box::new(Large { level, state: None, pool: pool.clone() }))
}

struct Large {
    level: Level,
    /// `None` before the first part and after the last.
    state: Option<CCtx<'static>>,
    pool: Arc<Pool>,
}

impl Parts for Large {
    fn code(&mut self, body: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, CoderFault> {
        let end = body.len().min(at + part_bytes(self.level));
        let part = body.get(at..end).ok_or(CoderFault)?;
        let mut state = match self.state.take() {
            Some(state) => state,
            None => {
                let mut state = state(&self.pool, self.level, None)?;
                state.set_pledged_src_size(Some(body.len() as u64)).map_err(|_| CoderFault)?;
                state
            }
        };
        let last = end == body.len();
        compress(&mut state, part, out, if last { Flush::Finish } else { Flush::Sync })?;
        if last {
            self.pool.give_zstd(state);
        } else {
            self.state = Some(state);
        }
        Ok(end)
    }

    fn memory(&self) -> usize {
        PARTS_BYTES[usize::from(self.level.0).min(PARTS_BYTES.len() - 1)]
    }
}

/// An incremental coder.
pub(super) fn stream(level: Level, bytes: Option<u64>, pool: &Arc<Pool>) -> Box<dyn Coder> {
    let window_log = if bytes.is_some_and(|bytes| bytes > 1 << WINDOW_LOG) { LONG_WINDOW_LOG } else { WINDOW_LOG };
    let blocks = Blocks::of(part_bytes(level));
    Box::new(Stream { level, eased: level, window_log, calm: 0, blocks, state: None, unended: false, pool: pool.clone() })
}

struct Stream {
    level: Level,
    /// The level for now, at most that one.
    eased: Level,
    window_log: u32,
    /// Pieces since the brake was last on.
    calm: u8,
    blocks: Blocks,
    /// `None` before the first byte, while the coder is light, and after the end.
    state: Option<CCtx<'static>>,
    /// Whether there is a frame whose state has gone, and whose end is still to be written.
    unended: bool,
    pool: Arc<Pool>,
}

impl Coder for Stream {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
        let ends = flush == Flush::Finish;
        if self.state.is_none() && input.is_empty() && !ends {
            return Ok(());
        }
        if std::mem::take(&mut self.unended) {
            out.extend_from_slice(LAST_EMPTY_BLOCK);
            if input.is_empty() {
                return Ok(());
            }
        }
        let mut state = match self.state.take() {
            Some(state) => state,
            None => state(&self.pool, self.eased, Some(self.window_log))?,
        };
        in_blocks(&mut self.blocks, input, flush, |piece, flush| compress(&mut state, piece, out, flush))?;
        if ends {
            self.pool.give_zstd(state);
        } else {
            self.state = Some(state);
        }
        Ok(())
    }

    fn due(&self, bytes: usize, flush: Flush) -> usize {
        self.blocks.due(bytes, flush)
    }

    fn reset(&mut self) {
        self.release();
        (self.unended, self.eased, self.calm) = (false, self.level, 0);
    }

    fn lighten(&mut self, _: Keep) {
        self.unended |= self.release();
    }

    fn can_ease(&self) -> bool {
        self.level > LEAST_LEVEL
    }

    fn ease(&mut self, less: bool) {
        self.calm = if less { 0 } else { self.calm.saturating_add(1) };
        let level = match less {
            true => LEAST_LEVEL,
            false if self.calm >= CALM_PIECES => self.level,
            false => self.eased,
        };
        if level != self.eased {
            self.unended |= self.release();
            self.eased = level;
        }
    }

    fn is_eased(&self) -> bool {
        self.eased < self.level
    }

    fn memory(&self) -> usize {
        self.state.as_ref().map_or(0, CCtx::sizeof)
    }

    fn full_memory(&self) -> usize {
        let long = if self.window_log == LONG_WINDOW_LOG { LONG_WINDOW_BYTES } else { 0 };
        STREAM_BYTES[usize::from(self.level.0).min(STREAM_BYTES.len() - 1)] + long
    }

    fn history_memory(&self) -> usize {
        0
    }
}

impl Stream {
    /// Gives the state back; returns whether there was one.
    fn release(&mut self) -> bool {
        self.blocks.reset();
        self.state.take().map(|state| self.pool.give_zstd(state)).is_some()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.release();
    }
}

/// A state at the beginning of a frame, a stream's with its window.
fn state(pool: &Pool, level: Level, window_log: Option<u32>) -> Result<CCtx<'static>, CoderFault> {
    let mut state = pool.take_zstd().ok_or(CoderFault)?;
    let set = |state: &mut CCtx<'_>| -> zstd_safe::SafeResult {
        state.reset(ResetDirective::SessionAndParameters)?;
        state.set_parameter(CParameter::CompressionLevel(i32::from(level.0)))?;
        if let Some(window_log) = window_log {
            state.set_parameter(CParameter::WindowLog(window_log))?;
            // For a length that it does not know the library makes tables as for a gigabyte.
            if level.0 >= LARGE_TABLES_FROM {
                state.set_parameter(CParameter::HashLog(WINDOW_LOG))?;
                state.set_parameter(CParameter::ChainLog(WINDOW_LOG))?;
            }
        }
        Ok(0)
    };
    set(&mut state).map_err(|_| CoderFault)?;
    Ok(state)
}

/// Pushes all of `input`, each block that it fills with a flush.
pub(super) fn in_blocks(
    blocks: &mut Blocks,
    mut input: &[u8],
    flush: Flush,
    mut push: impl FnMut(&[u8], Flush) -> Result<(), CoderFault>,
) -> Result<(), CoderFault> {
    while let Some((piece, rest)) = blocks.to_border(input.len()).and_then(|left| input.split_at_checked(left)) {
        push(piece, Flush::Sync)?;
        blocks.pushed(piece.len(), Flush::Sync);
        input = rest;
    }
    push(input, flush)?;
    blocks.pushed(input.len(), flush);
    Ok(())
}

/// Pushes all of `input` through a state.
pub(super) fn compress(state: &mut CCtx<'_>, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
    compress_into(state, input, out, flush, (input.len() / 2).max(MIN_ROOM))
}

/// Pushes a whole body through a state. With room for the worst case the library has all of it in view when it chooses blocks.
pub(super) fn compress_whole(state: &mut CCtx<'_>, input: &[u8], out: &mut Vec<u8>) -> Result<(), CoderFault> {
    let room = zstd_safe::compress_bound(input.len()).max(MIN_ROOM);
    compress_into(state, input, out, Flush::Finish, room)?;
    out.shrink_to_fit();
    Ok(())
}

fn compress_into(state: &mut CCtx<'_>, input: &[u8], out: &mut Vec<u8>, flush: Flush, room_bytes: usize) -> Result<(), CoderFault> {
    let directive = match flush {
        Flush::None => ZSTD_EndDirective::ZSTD_e_continue,
        Flush::Sync => ZSTD_EndDirective::ZSTD_e_flush,
        Flush::Finish => ZSTD_EndDirective::ZSTD_e_end,
    };
    let mut source = InBuffer::around(input);
    loop {
        let start = out.len();
        out.resize(start + room_bytes, 0);
        let mut room = OutBuffer::around(&mut out[start..]);
        let left = state.compress_stream2(&mut room, &mut source, directive);
        let given = room.pos();
        out.truncate(start + given);
        // `left`: bytes that wait inside, beyond those that the directive allows to wait.
        match left.map_err(|_| CoderFault)? {
            _ if flush == Flush::None && source.pos == input.len() => return Ok(()),
            0 if flush != Flush::None => return Ok(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::Tuning;

    #[test]
    fn states_are_no_larger_than_the_table_says() {
        let body: Vec<u8> = (0u32..120_000).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for level in 1..=19 {
            let pool = Arc::new(Pool::new(Tuning::default()));
            let held = |bytes| {
                let mut coder = stream(Level(level), bytes, &pool);
                coder.push(&body, &mut Vec::new(), Flush::Sync).unwrap();
                (coder.memory(), coder.full_memory())
            };
            let (usual, said) = held(None);
            assert!(usual <= said && said - usual < said / 8, "{level}: {usual}, not {said}");
            let (long, said) = held(Some(1 << 20));
            assert!(usual < long && long <= said, "{level}, a long window: {long}, not {said}");
        }
    }

    #[test]
    fn tuned_levels_come_back_and_no_higher_one_leaves_more() {
        let words = ["value", " = ", "function", "(", ");\n", "return ", "0x", "prototype"];
        let (mut body, mut noise) = (Vec::new(), 7u32);
        while body.len() < 132_000 {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            body.extend_from_slice(words[(noise >> 20) as usize % 8].as_bytes());
            body.extend_from_slice(format!("{:x}", noise >> 22 & 0xff).as_bytes());
        }
        assert!(TUNED.iter().all(|tuned| Tuned::of(tuned.level, body.len()).is_some() && Tuned::of(tuned.level, 8192).is_none()));
        let pool = Pool::new(Tuning::default());
        let mut before = body.len();
        for level in [1, 3, 4, 5, 6] {
            let mut out = Vec::new();
            whole(&body, Level(level), &pool, &mut out).unwrap();
            let mut back = vec![0; body.len()];
            assert_eq!(zstd_safe::decompress(&mut back[..], &out), Ok(body.len()));
            assert!(back == body && out.len() < before + before / 200, "{level}: {} behind {before}", out.len());
            before = out.len();
        }
    }
}
