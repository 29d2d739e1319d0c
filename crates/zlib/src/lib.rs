//! `libterse_z.so`: the API of zlib 1.3 over terse's coders, for programs that are not ours.
//!
//! zlib's compressor is given a body in pieces and works through them as they come. This one gathers what it is given, as its
//! contract allows (`deflate` with `Z_NO_FLUSH` may keep input "to maximize compression"), and codes it as a whole when it must: at
//! `Z_FINISH`, at a flush, or when the stream's memory is full. A body that fits there is coded in one go, in a fraction of zlib's
//! time and to no more bytes.
//!
//! ```text
//!   deflate* ──> deflate::stream: takes input, gives output ──> deflate::piece: a coder of this thread, borrowed for a piece
//!   compress* ──> whole: the same coders, without a stream
//!   inflate*, crc32*, adler32*, gz* ──> zlib-rs
//! ```
//!
//! Invariants:
//! * What a stream holds it holds in one allocation by its own `zalloc`. A program that drops that memory without `deflateEnd` or
//!   `inflateEnd` loses nothing else.
//! * A compressor's is no larger than zlib documents (`(1 << (windowBits + 2)) + (1 << (memLevel + 9))`, and some 6 kilobytes less than
//!   the state that zlib has beside it). A decompressor's is: zlib-rs takes 47,561 bytes at once for any `windowBits`, since its window
//!   has always 32 kilobytes, and its state with the tables 14; zlib's `(1 << windowBits)` and 7 kilobytes are at most 39,928.
//! * There is no thread, no signal handler, no file and no lock here; coders belong to threads, so that `fork` is harmless.
//! * Nothing unwinds across the API: a panic ends in `Z_STREAM_ERROR`.
//! * Output is never larger than `deflateBound` and `compressBound` say.
//!
//! Unsafe code: the API is C's, and so are its rules; each function says what it takes for granted.

#![allow(unsafe_code, non_snake_case, missing_docs)]

pub mod deflate;
#[cfg(test)]
mod ledger;
mod passed;
mod whole;

pub use deflate::api::*;
pub use passed::*;
pub use whole::*;

/// What a panic of ours becomes.
pub(crate) fn guarded(work: impl FnOnce() -> std::ffi::c_int) -> std::ffi::c_int {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(libz_rs_sys::Z_STREAM_ERROR)
}
