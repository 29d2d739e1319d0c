//! Pieces of a brotli stream (RFC 7932).
//!
//! Each piece is coded as a stream that can be joined to others. All but the first do without the format's dictionary,
//! whose words are addressed by a distance that depends on the earlier output.

use super::{Coder, Piece};
use crate::fault::Fault;
use brotli::concat::{BroCatli, BroCatliResult};
use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};

/// The window: 4 MB, as a power of two.
const WINDOW_BITS: u32 = 22;

/// Least room that is offered for output.
const MIN_ROOM: usize = 4096;

/// The coder.
pub(super) fn pieces(level: u8) -> Result<Box<dyn Coder>, Fault> {
    Ok(Box::new(Pieces { level }))
}

struct Pieces {
    level: u8,
}

impl Coder for Pieces {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        let catable = !piece.is_first || !piece.is_last;
        for (parameter, value) in [
            (BrotliEncoderParameter::BROTLI_PARAM_QUALITY, u32::from(self.level)),
            (BrotliEncoderParameter::BROTLI_PARAM_LGWIN, WINDOW_BITS),
            (BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, u32::try_from(piece.bytes.len()).unwrap_or(u32::MAX)),
            (BrotliEncoderParameter::BROTLI_PARAM_CATABLE, u32::from(catable && !piece.is_first)),
            (BrotliEncoderParameter::BROTLI_PARAM_APPENDABLE, u32::from(catable)),
        ] {
            state.set_parameter(parameter, value);
        }
        let (mut left, mut at) = (piece.bytes.len(), 0);
        let finish = BrotliEncoderOperation::BROTLI_OPERATION_FINISH;
        loop {
            let start = out.len();
            out.resize(start + (left / 2).max(MIN_ROOM), 0);
            let (mut room, mut end) = (out.len() - start, start);
            let bytes = piece.bytes;
            let sound =
                state.compress_stream(finish, &mut left, bytes, &mut at, &mut room, out, &mut end, &mut None, &mut |_, _, _, _| ());
            out.truncate(end);
            match (sound, state.is_finished()) {
                (true, true) => return Ok(()),
                (true, false) => {}
                (false, _) => return Err(Fault::Engine),
            }
        }
    }
}

/// Joins pieces, in order, to one stream.
pub(crate) struct Joiner(BroCatli);

impl Joiner {
    pub(crate) fn new() -> Joiner {
        Joiner(BroCatli::new())
    }

    /// Appends a piece to `out`, except for its last bytes, which wait for the next piece.
    pub(crate) fn add(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.0.new_brotli_file();
        let mut at = 0;
        let start = out.len();
        // The waiting bytes, and the bits of a header that is written anew, fit beside it.
        out.resize(start + piece.len() + 16, 0);
        let mut end = start;
        match self.0.stream(piece, &mut at, out, &mut end) {
            BroCatliResult::Success | BroCatliResult::NeedsMoreInput if at == piece.len() => {
                out.truncate(end);
                Ok(())
            }
            _ => Err(Fault::Engine),
        }
    }

    /// Appends the waiting bytes.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        out.resize(start + 16, 0);
        let mut end = start;
        let result = self.0.finish(out, &mut end);
        out.truncate(end);
        if result == BroCatliResult::Success { Ok(()) } else { Err(Fault::Engine) }
    }
}
