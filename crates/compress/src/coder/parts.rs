//! Large whole bodies, a part at a time: others get their turns between, and the output is about that of a single step.
//!
//! For brotli and zstd that is a stream that knows the body; for the deflate family our own coder where it takes the body,
//! given the bytes before each part as its dictionary. libdeflate has no such interface: bodies for it go through the
//! incremental coder instead.

use super::frame::{Format, Frame};
use super::pool::{Pool, stream_memory};
use super::{Coder, CoderFault, Flush, deflate};
use crate::coding::Level;
use std::sync::Arc;

/// A whole body that is coded a part at a time.
pub trait Parts: Send {
    /// Codes a part of `body` from `at` on, and returns its end: after the last part, the body's end. The body is always the
    /// same.
    fn code(&mut self, body: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, CoderFault>;

    /// Bytes of memory that are held from the first part to the last.
    fn memory(&self) -> usize;
}

/// Makes the parts of a body; `None` where the coding has none for it, and the incremental coder does it.
pub type MakeParts = fn(&[u8], Level, &Arc<Pool>) -> Option<Box<dyn Parts>>;

/// Bytes of a part, where the level leaves them: as many as a stream's turn.
pub(super) const PART_BYTES: usize = 64 * 1024;

/// The deflate family's parts, on our own coder, where that takes the body.
pub(super) fn own(format: Format, body: &[u8], level: Level, pool: &Arc<Pool>) -> Option<Box<dyn Parts>> {
    let own = terse_deflate::for_zlib(level.0, body)?;
    Some(Box::new(Own { format, frame: Frame::new(format), level, own, other: None, pool: pool.clone() }))
}

struct Own {
    format: Format,
    frame: Frame,
    level: Level,
    /// Our coder's level for that level.
    own: u8,
    /// The coder that does it instead, where the first part was unfit for our coder.
    other: Option<Box<dyn Coder>>,
    pool: Arc<Pool>,
}

impl Parts for Own {
    fn code(&mut self, body: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, CoderFault> {
        let end = body.len().min(at + PART_BYTES);
        let (before, part) = (body.get(..at).ok_or(CoderFault)?, body.get(at..end).ok_or(CoderFault)?);
        let last = end == body.len();
        if let Some(other) = &mut self.other {
            other.push(part, out, if last { Flush::Finish } else { Flush::None })?;
            return Ok(end);
        }
        let start = out.len();
        self.frame.update(part, out);
        // No state is held between two parts: others take it meanwhile.
        let mut state = self.pool.take_own(self.own);
        state.encode(before, part, last, out);
        self.pool.give_own(self.own, state);
        if at == 0 && !last && (out.len() - start) * terse_deflate::WORST < part.len() {
            // Quick to code, so little is lost by doing it twice.
            out.truncate(start);
            let other = self.other.insert(deflate::zlib(self.format, self.level, &self.pool));
            other.push(part, out, Flush::None)?;
            return Ok(end);
        }
        if last {
            self.frame.finish(out);
        }
        Ok(end)
    }

    fn memory(&self) -> usize {
        stream_memory(self.pool.tuning())
    }
}
