//! `compress`, `uncompress` and their kin: a body from one buffer into another.

use crate::deflate::piece::{self, Manner, Piece};
use crate::{guarded, inflate, inflateEnd, inflateInit_};
use libz_rs_sys::{
    Bytef, Z_BUF_ERROR, Z_DATA_ERROR, Z_DEFAULT_COMPRESSION, Z_DEFAULT_STRATEGY, Z_NEED_DICT, Z_NO_FLUSH, Z_OK, Z_STREAM_END,
    Z_STREAM_ERROR, uInt, z_stream, zlibVersion,
};
use std::ffi::{c_int, c_ulong};
use std::{ptr, slice};

/// Larger bodies are coded in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
/// zlib's window.
const WINDOW_BITS: u8 = 15;

/// # Safety
/// As zlib's: `source` points to `source_len` bytes, `dest` to as many as `dest_len` points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compress2_z(
    dest: *mut Bytef,
    dest_len: *mut usize,
    source: *const Bytef,
    source_len: usize,
    level: c_int,
) -> c_int {
    guarded(|| {
        let level = if level == Z_DEFAULT_COMPRESSION { 6 } else { level };
        if dest_len.is_null() || (source_len > 0 && source.is_null()) || !(0..=9).contains(&level) {
            return Z_STREAM_ERROR;
        }
        // SAFETY: the caller vouches for so many bytes.
        let body = if source_len == 0 { &[] } else { unsafe { slice::from_raw_parts(source, source_len) } };
        // SAFETY: as the caller vouches.
        let mut room = Room { next: dest, left: if dest.is_null() { 0 } else { unsafe { *dest_len } } };
        let all = room.left;
        let fits = code(body, level as u8, &mut room);
        // SAFETY: as the caller vouches.
        unsafe { *dest_len = all - room.left };
        match fits {
            Some(true) => Z_OK,
            Some(false) => Z_BUF_ERROR,
            None => Z_STREAM_ERROR,
        }
    })
}

/// A program's buffer.
struct Room {
    next: *mut Bytef,
    left: usize,
}

impl Room {
    /// Puts all of the bytes; false if they do not fit.
    fn put(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.left {
            return false;
        }
        // SAFETY: there is room for so many, in a buffer that is nothing of ours.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.next, bytes.len());
            self.next = self.next.add(bytes.len());
        }
        self.left -= bytes.len();
        true
    }
}

/// Codes a body; returns whether it fitted. `None`: a coder broke.
fn code(body: &[u8], level: u8, room: &mut Room) -> Option<bool> {
    let manner = Manner { level, window_bits: WINDOW_BITS, strategy: Z_DEFAULT_STRATEGY };
    if !room.put(&crate::deflate::zlib_head(level)) {
        return Some(false);
    }
    let mut at = 0;
    loop {
        let end = (at + PIECE_BYTES).min(body.len());
        let is_last = end == body.len();
        let history = &body[at.saturating_sub(1 << WINDOW_BITS)..at];
        if !piece::code(&Piece { bytes: &body[at..end], history, is_last }, manner, |coded| room.put(coded))? {
            return Some(false);
        }
        if is_last {
            return Some(room.put(&zlib_rs::adler32::adler32(1, body).to_be_bytes()));
        }
        at = end;
    }
}

/// # Safety
/// As [`compress2_z`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compress_z(dest: *mut Bytef, dest_len: *mut usize, source: *const Bytef, source_len: usize) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { compress2_z(dest, dest_len, source, source_len, Z_DEFAULT_COMPRESSION) }
}

/// # Safety
/// As [`compress2_z`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compress2(
    dest: *mut Bytef,
    dest_len: *mut c_ulong,
    source: *const Bytef,
    source_len: c_ulong,
    level: c_int,
) -> c_int {
    if dest_len.is_null() {
        return Z_STREAM_ERROR;
    }
    // SAFETY: as the caller vouches.
    unsafe {
        let mut length = *dest_len as usize;
        let code = compress2_z(dest, &mut length, source, source_len as usize, level);
        *dest_len = length as c_ulong;
        code
    }
}

/// # Safety
/// As [`compress2_z`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compress(dest: *mut Bytef, dest_len: *mut c_ulong, source: *const Bytef, source_len: c_ulong) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { compress2(dest, dest_len, source, source_len, Z_DEFAULT_COMPRESSION) }
}

/// # Safety
/// As zlib's: `source` points to as many bytes as `source_len` points to, `dest` to as many as `dest_len` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncompress2_z(
    dest: *mut Bytef,
    dest_len: *mut usize,
    source: *const Bytef,
    source_len: *mut usize,
) -> c_int {
    if dest_len.is_null() || source_len.is_null() {
        return Z_STREAM_ERROR;
    }
    // SAFETY: as the caller vouches; the stream is this function's.
    unsafe {
        let (given, mut left) = (*source_len, *dest_len);
        // Without room, a spare byte shows whether there is any output.
        let (mut spare, has_room) = ([0u8; 1], left > 0);
        left = left.max(1);
        let mut stream = z_stream { next_in: source, ..z_stream::default() };
        (stream.zalloc, stream.zfree) = (None, None);
        let code = inflateInit_(&mut stream, zlibVersion(), size_of::<z_stream>() as c_int);
        if code != Z_OK {
            return code;
        }
        stream.next_out = if has_room { dest } else { spare.as_mut_ptr() };
        let mut rest = given;
        let code = loop {
            // A stream's counters have 32 bits.
            if stream.avail_out == 0 {
                stream.avail_out = left.min(uInt::MAX as usize) as uInt;
                left -= stream.avail_out as usize;
            }
            if stream.avail_in == 0 {
                stream.avail_in = rest.min(uInt::MAX as usize) as uInt;
                rest -= stream.avail_in as usize;
            }
            let code = inflate(&mut stream, Z_NO_FLUSH);
            if code != Z_OK {
                break code;
            }
        };
        inflateEnd(&mut stream);
        *source_len = given - rest - stream.avail_in as usize;
        *dest_len = if has_room { stream.total_out as usize } else { 0 };
        // With room left, the input was truncated.
        let is_full = has_room && left == 0 && stream.avail_out == 0;
        match code {
            Z_STREAM_END => Z_OK,
            Z_NEED_DICT => Z_DATA_ERROR,
            Z_BUF_ERROR if !is_full => Z_DATA_ERROR,
            code => code,
        }
    }
}

/// # Safety
/// As [`uncompress2_z`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncompress_z(
    dest: *mut Bytef,
    dest_len: *mut usize,
    source: *const Bytef,
    mut source_len: usize,
) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { uncompress2_z(dest, dest_len, source, &mut source_len) }
}

/// # Safety
/// As [`uncompress2_z`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncompress2(
    dest: *mut Bytef,
    dest_len: *mut c_ulong,
    source: *const Bytef,
    source_len: *mut c_ulong,
) -> c_int {
    if dest_len.is_null() || source_len.is_null() {
        return Z_STREAM_ERROR;
    }
    // SAFETY: as the caller vouches.
    unsafe {
        let (mut made, mut taken) = (*dest_len as usize, *source_len as usize);
        let code = uncompress2_z(dest, &mut made, source, &mut taken);
        (*dest_len, *source_len) = (made as c_ulong, taken as c_ulong);
        code
    }
}

/// # Safety
/// As [`uncompress2_z`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncompress(
    dest: *mut Bytef,
    dest_len: *mut c_ulong,
    source: *const Bytef,
    mut source_len: c_ulong,
) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { uncompress2(dest, dest_len, source, &mut source_len) }
}
