//! Brotli's C library; its encoder has no reset, so that a state is made for each body, as nginx's module makes it.

use crate::{Coder, Mode, PIECE_BYTES, Program};
use compu_brotli_sys as sys;
use std::ptr::null_mut;

/// What is measured.
pub fn program() -> Program {
    Program { name: "brotli-1.2".into(), coding: "br", levels: (0..=11).collect(), has_parts: true, make }
}

struct Quality(i32);

fn make(level: i32) -> Option<Box<dyn Coder>> {
    Some(Box::new(Quality(level)))
}

impl Coder for Quality {
    fn code(&mut self, body: &[u8], mode: Mode, out: &mut [u8]) -> Option<usize> {
        // SAFETY: the state is made and destroyed here; pointers and lengths are those of two slices.
        unsafe {
            let state = sys::BrotliEncoderCreateInstance(None, None, null_mut());
            if state.is_null() {
                return None;
            }
            sys::BrotliEncoderSetParameter(state, sys::BrotliEncoderParameter_BROTLI_PARAM_QUALITY, self.0 as u32);
            let piece = if mode == Mode::Parts {
                PIECE_BYTES
            } else {
                sys::BrotliEncoderSetParameter(state, sys::BrotliEncoderParameter_BROTLI_PARAM_SIZE_HINT, body.len() as u32);
                body.len().max(1)
            };
            let (mut next_out, mut left_out) = (out.as_mut_ptr(), out.len());
            let last = body.len().saturating_sub(1) / piece;
            let mut is_well = true;
            for (index, part) in body.chunks(piece).enumerate() {
                let (mut next_in, mut left_in) = (part.as_ptr(), part.len());
                let operation = if index == last {
                    sys::BrotliEncoderOperation_BROTLI_OPERATION_FINISH
                } else {
                    sys::BrotliEncoderOperation_BROTLI_OPERATION_FLUSH
                };
                loop {
                    let rc = sys::BrotliEncoderCompressStream(
                        state,
                        operation,
                        &mut left_in,
                        &mut next_in,
                        &mut left_out,
                        &mut next_out,
                        null_mut(),
                    );
                    is_well &= rc != 0 && left_out > 0;
                    if !is_well || (left_in == 0 && sys::BrotliEncoderHasMoreOutput(state) == 0) {
                        break;
                    }
                }
            }
            sys::BrotliEncoderDestroyInstance(state);
            is_well.then_some(out.len() - left_out)
        }
    }
}

/// Decodes a body of that length.
pub fn decode(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length + 1];
    let mut bytes = body.len();
    // SAFETY: pointers and lengths are those of a slice and a vector.
    let rc = unsafe { sys::BrotliDecoderDecompress(coded.len(), coded.as_ptr(), &mut bytes, body.as_mut_ptr()) };
    body.truncate(bytes);
    (rc == 1).then_some(body)
}
