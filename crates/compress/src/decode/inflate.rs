//! A raw deflate stream (RFC 1951), by our own decoder. Wrappers and their checksums are [`super::gzip`]'s and [`super::deflate`]'s.

use super::{Flaw, Next, Piece, Progress};
use terse_deflate::decode::{Inflate, Stop};

/// Bytes of a state: its window and its tables.
pub(super) const STATE_BYTES: usize = 40 * 1024;
const _: () = assert!(Inflate::BYTES <= STATE_BYTES);

pub(super) struct Inflater(Inflate);

impl Inflater {
    pub(super) fn new() -> Inflater {
        Inflater(Inflate::new())
    }

    /// Begins another stream.
    pub(super) fn reset(&mut self) {
        self.0.reset();
    }

    /// As [`super::Decoder::push`].
    pub(super) fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
        let (mut taken, limit) = (0, out.len().saturating_add(room));
        let mut pieces = Piece::first();
        loop {
            let start = out.len();
            if start >= limit {
                return Ok(Progress { taken, next: Next::Room });
            }
            let rest = input.get(taken..).unwrap_or_default();
            out.resize(start + pieces.next(limit - start), 0);
            let decoded = self.0.decode(rest, &mut out[start..]);
            out.truncate(start + decoded.map_or(0, |progress| progress.given));
            let progress = decoded.map_err(|_| Flaw::Corrupt)?;
            taken += progress.taken;
            match progress.stop {
                Stop::End => return Ok(Progress { taken, next: Next::Ended }),
                Stop::Input => return Ok(Progress { taken, next: Next::Input }),
                Stop::Room | Stop::Block | Stop::Head => {}
            }
        }
    }
}
