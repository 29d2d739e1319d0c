//! The incremental coder of the deflate family on our own coder, at the levels where it leaves no more bytes than zlib.
//!
//! Its state is 212 KB at most behind a flush, 128 KB at level 1, and less for what is short: tables grow with the stream. A stream whose server pauses
//! can do without one: another goes on, given the last bytes as its dictionary.

use super::frame::{Format, Frame};
use super::pool::Pool;
use super::{Coder, CoderFault, Flush, Keep};
use crate::coding::Level;
use std::sync::Arc;
use terse_deflate::stream_for_zlib;

/// Bytes of a body that are kept for a coder that makes itself small.
const HISTORY_BYTES: usize = 4096;

/// The level of zlib's that a stream is eased to at least.
const LEAST_LEVEL: u8 = 1;

/// A coder for one of zlib's levels; none where another is better.
pub(super) fn of(format: Format, level: Level, pool: &Arc<Pool>) -> Option<Box<dyn Coder>> {
    let mut state = terse_deflate::Stream::new(stream_for_zlib(level.0)?);
    state.limit(pool.tuning().table());
    Some(Box::new(Stream { frame: Frame::new(format), level: level.0, eased: level.0, state, pool: pool.clone() }))
}

struct Stream {
    frame: Frame,
    /// zlib's.
    level: u8,
    /// The level for now, at most that one.
    eased: u8,
    state: terse_deflate::Stream,
    pool: Arc<Pool>,
}

impl Coder for Stream {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
        self.frame.update(input, out);
        self.state.push(input, own(flush), &*self.pool, out);
        if flush == Flush::Finish {
            self.frame.finish(out);
        }
        Ok(())
    }

    fn due(&self, bytes: usize, flush: Flush) -> usize {
        self.state.due(bytes, own(flush))
    }

    fn reset(&mut self) {
        self.state.leave(&*self.pool);
        self.set_level(self.level);
        self.frame.reset();
    }

    fn lighten(&mut self, keep: Keep) {
        let most = if keep == Keep::History { HISTORY_BYTES } else { 0 };
        self.state.lighten(most, &*self.pool);
    }

    fn is_prompt(&self) -> bool {
        true
    }

    fn is_steady(&self) -> bool {
        self.state.is_steady()
    }

    fn can_ease(&self) -> bool {
        self.level > LEAST_LEVEL
    }

    fn ease(&mut self, less: bool) {
        self.set_level(if less { self.eased.saturating_sub(1).max(LEAST_LEVEL) } else { self.eased + 1 }.min(self.level));
    }

    fn is_eased(&self) -> bool {
        self.eased < self.level
    }

    fn memory(&self) -> usize {
        self.state.memory()
    }

    fn full_memory(&self) -> usize {
        self.state.full_memory()
    }

    fn history_memory(&self) -> usize {
        HISTORY_BYTES
    }
}

fn own(flush: Flush) -> terse_deflate::Flush {
    match flush {
        Flush::None => terse_deflate::Flush::None,
        Flush::Sync => terse_deflate::Flush::Sync,
        Flush::Finish => terse_deflate::Flush::Finish,
    }
}

impl Stream {
    fn set_level(&mut self, level: u8) {
        self.eased = level;
        if let Some(own) = stream_for_zlib(level) {
            self.state.set_level(own);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.state.leave(&*self.pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::pool::Tuning;

    const BLOCK: usize = 32 << 10;

    #[test]
    fn quick_levels_keep_a_block() {
        let pool = Arc::new(Pool::new(Tuning::default()));
        for (level, is_steady) in [(1, false), (2, false), (3, true), (6, true)] {
            let mut coder = of(Format::Gzip, Level(level), &pool).unwrap();
            assert_eq!(coder.is_steady(), is_steady, "{level}");
            let mut out = Vec::new();
            let pieces = [vec![7; BLOCK - 1], vec![7; 1], vec![7; 100], vec![7; BLOCK], Vec::new()];
            let flushes = [Flush::None, Flush::None, Flush::None, Flush::Sync, Flush::Finish];
            let due = pieces.iter().zip(flushes).map(|(piece, flush)| {
                let due = coder.due(piece.len(), flush);
                coder.push(piece, &mut out, flush).unwrap();
                due
            });
            let expected = if is_steady { [BLOCK - 1, 1, 100, BLOCK, 0] } else { [0, BLOCK, 0, BLOCK + 100, 0] };
            assert_eq!(due.collect::<Vec<_>>(), expected, "{level}");
        }
    }
}
