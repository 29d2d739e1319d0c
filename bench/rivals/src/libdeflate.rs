//! libdeflate, which takes whole bodies only.

use crate::{Coder, Mode, Program};
use libdeflate_sys::{libdeflate_alloc_compressor, libdeflate_compressor, libdeflate_free_compressor, libdeflate_gzip_compress};

/// What is measured.
pub fn program() -> Program {
    Program { name: "libdeflate-1.26".into(), coding: "gzip", levels: (1..=12).collect(), has_parts: false, make }
}

struct Compressor(*mut libdeflate_compressor);

fn make(level: i32) -> Option<Box<dyn Coder>> {
    // SAFETY: it takes a number, and returns null where it cannot.
    let compressor = unsafe { libdeflate_alloc_compressor(level) };
    if compressor.is_null() { None } else { Some(Box::new(Compressor(compressor))) }
}

impl Coder for Compressor {
    fn code(&mut self, body: &[u8], _mode: Mode, out: &mut [u8]) -> Option<usize> {
        // SAFETY: the compressor is alive; pointers and lengths are those of two slices.
        let bytes =
            unsafe { libdeflate_gzip_compress(self.0, body.as_ptr().cast(), body.len(), out.as_mut_ptr().cast(), out.len()) };
        (bytes > 0).then_some(bytes)
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: it is alive, and used no more.
        unsafe { libdeflate_free_compressor(self.0) };
    }
}
