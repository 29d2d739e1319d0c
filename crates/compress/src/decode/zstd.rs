//! zstd (RFC 8878), by its reference library: frames in sequence, skippable ones among them, with windows of up to 8 MB (RFC
//! 9659).

use super::{Decoder, Flaw, Next, Piece, Progress};
use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// The largest window: 8 MB, as a power of two.
const MAX_WINDOW_LOG: u32 = 23;
/// Bytes at the begin of a frame that identify it.
const MAGIC_BYTES: usize = 4;

pub(super) struct Zstd {
    state: DCtx<'static>,
    /// Frames that have ended.
    frames: u64,
    /// Bytes of the frame so far.
    taken: usize,
    ended: bool,
}

impl Zstd {
    pub(super) fn new() -> Option<Zstd> {
        let mut state = DCtx::try_create()?;
        state.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).ok()?;
        Some(Zstd { state, frames: 0, taken: 0, ended: false })
    }
}

impl Decoder for Zstd {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
        let (mut taken, limit) = (0, out.len().saturating_add(room));
        let mut pieces = Piece::first();
        loop {
            let (start, rest) = (out.len(), input.get(taken..).unwrap_or_default());
            let begins = self.taken == 0;
            if self.ended {
                return Ok(Progress { taken, next: Next::Ended });
            }
            if begins && rest.is_empty() {
                return Ok(Progress { taken, next: Next::Input });
            }
            if start >= limit {
                return Ok(Progress { taken, next: Next::Room });
            }
            // A frame's first byte comes alone. The library judges a frame that it gets as a whole by other rules (no limit
            // of its window, another look at its length), and the verdict on a body must not depend on how it is split.
            let (rest, piece) = if begins { (&rest[..1], 0) } else { (rest, pieces.next(limit - start)) };
            out.resize(start + piece, 0);
            let (mut source, mut target) = (InBuffer::around(rest), OutBuffer::around(&mut out[start..]));
            let wanted = self.state.decompress_stream(&mut target, &mut source);
            let (took, gave) = (source.pos, target.pos());
            out.truncate(start + gave);
            match wanted {
                // After a frame, bytes that do not begin as a frame are no part of the body.
                Err(code) if self.frames > 0 && self.taken < MAGIC_BYTES && flaw(code) == Flaw::Format => self.ended = true,
                Err(code) => return Err(flaw(code)),
                Ok(0) => {
                    taken += took;
                    self.frames += 1;
                    self.taken = 0;
                }
                Ok(_) => {
                    taken += took;
                    self.taken = self.taken.saturating_add(took);
                    if !begins && gave < piece && took == rest.len() {
                        return Ok(Progress { taken, next: Next::Input });
                    }
                    if gave == 0 && took == 0 {
                        return Err(Flaw::Corrupt);
                    }
                }
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.ended || (self.frames > 0 && self.taken == 0)
    }

    fn reset(&mut self) {
        // Without a frame in hand there is nothing that could fail.
        let _ = self.state.reset(ResetDirective::SessionOnly);
        (self.frames, self.taken, self.ended) = (0, 0, false);
    }

    fn memory(&self) -> usize {
        self.state.sizeof()
    }
}

/// The library's errors are its codes, negative.
fn flaw(code: usize) -> Flaw {
    let is = |error: ZSTD_ErrorCode| code == 0usize.wrapping_sub(error as usize);
    if is(ZSTD_ErrorCode::ZSTD_error_prefix_unknown) {
        Flaw::Format
    } else if is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge) {
        Flaw::Window
    } else if is(ZSTD_ErrorCode::ZSTD_error_checksum_wrong) {
        Flaw::Checksum
    } else if is(ZSTD_ErrorCode::ZSTD_error_dictionary_wrong) {
        Flaw::Dictionary
    } else {
        Flaw::Corrupt
    }
}
