//! libzstd, with the checksum off and the length told, as servers use it.

use crate::{Coder, Mode, PIECE_BYTES, Program};
use zstd_sys as sys;

/// What is measured.
pub fn program() -> Program {
    // Levels above 12 take longer than an answer may.
    let levels = [-5, -3, -1].into_iter().chain(1..=12).collect();
    Program { name: "libzstd-1.5.7".into(), coding: "zstd", levels, has_parts: true, make }
}

struct Context(*mut sys::ZSTD_CCtx);

fn make(level: i32) -> Option<Box<dyn Coder>> {
    // SAFETY: it takes nothing, and returns null where it cannot; the parameter is one of the library's.
    unsafe {
        let context = sys::ZSTD_createCCtx();
        if context.is_null() {
            return None;
        }
        sys::ZSTD_CCtx_setParameter(context, sys::ZSTD_cParameter::ZSTD_c_compressionLevel, level);
        Some(Box::new(Context(context)))
    }
}

impl Coder for Context {
    fn code(&mut self, body: &[u8], mode: Mode, out: &mut [u8]) -> Option<usize> {
        // SAFETY: the context is alive; pointers and lengths are those of two slices.
        unsafe {
            if mode == Mode::Whole {
                let rc = sys::ZSTD_compress2(self.0, out.as_mut_ptr().cast(), out.len(), body.as_ptr().cast(), body.len());
                return (sys::ZSTD_isError(rc) == 0).then_some(rc);
            }
            sys::ZSTD_CCtx_reset(self.0, sys::ZSTD_ResetDirective::ZSTD_reset_session_only);
            let mut output = sys::ZSTD_outBuffer { dst: out.as_mut_ptr().cast(), size: out.len(), pos: 0 };
            let last = body.len().saturating_sub(1) / PIECE_BYTES;
            for (index, part) in body.chunks(PIECE_BYTES).enumerate() {
                let mut input = sys::ZSTD_inBuffer { src: part.as_ptr().cast(), size: part.len(), pos: 0 };
                let end = if index == last { sys::ZSTD_EndDirective::ZSTD_e_end } else { sys::ZSTD_EndDirective::ZSTD_e_flush };
                if sys::ZSTD_compressStream2(self.0, &mut output, &mut input, end) != 0 {
                    return None;
                }
            }
            Some(output.pos)
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is alive, and used no more.
        unsafe { sys::ZSTD_freeCCtx(self.0) };
    }
}
