//! A raw deflate stream (RFC 1951), by zlib-rs. Wrappers and their checksums are [`super::gzip`]'s and [`super::deflate`]'s.

use super::{Flaw, Next, Piece, Progress};
use zlib_rs::{Inflate, InflateError, InflateFlush, Status};

/// Bytes of a state: its window and its tables.
pub(super) const STATE_BYTES: usize = 48 * 1024;

const WINDOW_BITS: u8 = 15;

pub(super) struct Inflater(Inflate);

impl Inflater {
    pub(super) fn new() -> Inflater {
        Inflater(Inflate::new(false, WINDOW_BITS))
    }

    /// Begins another stream.
    pub(super) fn reset(&mut self) {
        self.0.reset(false);
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
            let piece = pieces.next(limit - start);
            out.resize(start + piece, 0);
            let (before_in, before_out) = (self.0.total_in(), self.0.total_out());
            let status = self.0.decompress(rest, &mut out[start..], InflateFlush::NoFlush);
            let took = (self.0.total_in() - before_in) as usize;
            let gave = (self.0.total_out() - before_out) as usize;
            out.truncate(start + gave);
            taken += took;
            match status {
                Err(InflateError::NeedDict { .. }) => return Err(Flaw::Dictionary),
                Err(_) => return Err(Flaw::Corrupt),
                Ok(Status::StreamEnd) => return Ok(Progress { taken, next: Next::Ended }),
                // Where output fills its piece, there may be more of it inside.
                Ok(_) if gave == piece => {}
                Ok(_) if taken == input.len() => return Ok(Progress { taken, next: Next::Input }),
                Ok(_) if took == 0 && gave == 0 => return Err(Flaw::Corrupt),
                Ok(_) => {}
            }
        }
    }
}
