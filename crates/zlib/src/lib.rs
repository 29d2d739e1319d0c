//! `libterse_z.so`: the API of zlib 1.3 over terse's coders, for other programs.
//!
//! zlib's compressor gets a body in pieces and works through them as they come. This one gathers its input, as its
//! contract allows (`deflate` with `Z_NO_FLUSH` may keep input "to maximize compression"). It codes the input as a
//! whole when it must: at `Z_FINISH`, at a flush, or when the stream's memory is full. A body that fits there is coded
//! in one go, in a fraction of zlib's time and to no more bytes.
//!
//! Its decompressor is our own too ([`terse_deflate::decode`]): quicker than zlib's, in no more memory.
//!
//! ```text
//!   deflate* ──> deflate::stream: takes input, gives output ──> deflate::piece: a coder of this thread, borrowed for a piece
//!   inflate* ──> inflate::stream: head and tail of a body ──> terse_deflate::decode, in the stream's memory
//!   compress*, uncompress* ──> whole: the same coders, without a stream of the program's
//!   crc32*, adler32*, gz* ──> zlib-rs
//! ```
//!
//! Invariants:
//! * All data of a stream is in memory by its own `zalloc`: a compressor in one piece, a decompressor in two, the
//!   second for its window. A decompressor has a window when there is something to keep. A program that drops that
//!   memory without `deflateEnd` or `inflateEnd` loses nothing else.
//! * It is no larger than zlib documents: `(1 << (windowBits + 2)) + (1 << (memLevel + 9))` and some 6 kilobytes less
//!   than zlib's own state beside it; `(1 << windowBits)` and 7 kilobytes.
//! * There is no thread, no signal handler, no file and no lock here; coders belong to threads, so that `fork` is harmless.
//! * Nothing unwinds across the API: a panic ends in `Z_STREAM_ERROR`.
//! * Output is never larger than the results of `deflateBound` and `compressBound`.
//!
//! Unsafe code: the API is C's, and so are its rules; each function documents its requirements.

#![allow(unsafe_code, non_snake_case, missing_docs)]

pub mod deflate;
pub mod inflate;
#[cfg(test)]
mod ledger;
mod memory;
mod passed;
mod tag;
mod whole;

pub use deflate::api::*;
pub use inflate::api::*;
pub use inflate::back::*;
pub use passed::*;
pub use whole::*;

use std::ffi::{c_char, c_int};

/// Runs a function; a panic becomes `Z_STREAM_ERROR`.
pub(crate) fn guarded(work: impl FnOnce() -> c_int) -> c_int {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(libz_rs_sys::Z_STREAM_ERROR)
}

/// Whether a program was made for this version of the API (`ZLIB_VERSION`, `sizeof(z_stream)`).
///
/// # Safety
/// `version` is null or points to a string.
pub(crate) unsafe fn is_version(version: *const c_char, stream_size: c_int) -> bool {
    // SAFETY: the caller vouches for a string, whose first character there always is.
    !version.is_null() && unsafe { *version } == b'1' as c_char && stream_size == size_of::<libz_rs_sys::z_stream>() as c_int
}
