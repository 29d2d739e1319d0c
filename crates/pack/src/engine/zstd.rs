//! Pieces as frames of zstd (RFC 8878), one after the other: decoders take them as one body (section 3).

use super::{Coder, Piece};
use crate::fault::Fault;
use zstd_safe::{CCtx, CParameter};

/// The coder.
pub(super) fn frames(level: u8) -> Result<Box<dyn Coder>, Fault> {
    let mut state = CCtx::try_create().ok_or(Fault::Engine)?;
    for parameter in [CParameter::CompressionLevel(i32::from(level)), CParameter::ChecksumFlag(true)] {
        state.set_parameter(parameter).map_err(|_| Fault::Engine)?;
    }
    Ok(Box::new(Frames(state)))
}

struct Frames(CCtx<'static>);

impl Coder for Frames {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        out.resize(start + zstd_safe::compress_bound(piece.bytes.len()), 0);
        let given = self.0.compress2(&mut out[start..], piece.bytes).map_err(|_| Fault::Engine)?;
        out.truncate(start + given);
        Ok(())
    }
}
