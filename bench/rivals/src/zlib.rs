//! zlib and zlib-ng: the same functions of two libraries.

macro_rules! library {
    ($module:ident, $library:ident, $name:literal, $levels:expr) => {
        /// The coder of one of them.
        pub mod $module {
            use crate::{Coder, Mode, PIECE_BYTES, Program};
            use std::ffi::{CStr, c_int};
            use std::mem::{MaybeUninit, size_of};
            use $library::{deflate, deflateEnd, deflateInit2_, deflateReset, z_stream, zlibVersion};

            /// What is measured.
            pub fn program() -> Program {
                // SAFETY: it returns a string that lives as long as the library.
                let version = unsafe { CStr::from_ptr(zlibVersion()) }.to_string_lossy().into_owned();
                Program { name: format!("{}-{version}", $name), coding: "gzip", levels: $levels.collect(), has_parts: true, make }
            }

            struct Stream(Box<z_stream>);

            fn make(level: i32) -> Option<Box<dyn Coder>> {
                let mut stream = Box::new(MaybeUninit::<z_stream>::zeroed());
                // SAFETY: zeros are what the library takes for a stream that it has to initialise; it fills in the allocator, so that the
                // structure is whole then. It stays where it is, in a box.
                unsafe {
                    // 31: a window of 32 KB, in gzip's format.
                    let rc = deflateInit2_(stream.as_mut_ptr(), level, 8, 31, 8, 0, zlibVersion(), size_of::<z_stream>() as c_int);
                    if rc == 0 { Some(Box::new(Stream(stream.assume_init()))) } else { None }
                }
            }

            impl Coder for Stream {
                fn code(&mut self, body: &[u8], mode: Mode, out: &mut [u8]) -> Option<usize> {
                    let stream = &mut *self.0;
                    // SAFETY: the stream is initialised; its pointers and lengths are those of two slices that outlive the calls.
                    unsafe {
                        deflateReset(stream);
                        (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), out.len().try_into().ok()?);
                        let piece = if mode == Mode::Parts { PIECE_BYTES } else { body.len().max(1) };
                        let last = body.len().saturating_sub(1) / piece;
                        for (index, part) in body.chunks(piece).enumerate() {
                            (stream.next_in, stream.avail_in) = (part.as_ptr().cast_mut(), part.len().try_into().ok()?);
                            let (flush, wanted) = if index == last { (4, 1) } else { (2, 0) };
                            if deflate(stream, flush) != wanted || stream.avail_in > 0 {
                                return None;
                            }
                        }
                        Some(out.len() - stream.avail_out as usize)
                    }
                }
            }

            impl Drop for Stream {
                fn drop(&mut self) {
                    // SAFETY: it is initialised, and used no more.
                    unsafe { deflateEnd(&mut *self.0) };
                }
            }
        }
    };
}

library!(plain, libz_sys, "zlib", 1..=9);
library!(next, libz_ng_sys, "zlib-ng", 1..=9);
