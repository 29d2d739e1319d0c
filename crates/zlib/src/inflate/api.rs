//! Functions of zlib's API: each makes zlib's checks, in zlib's order.

use super::state::{self, Phase, State, Takes};
use super::stream::Call;
use crate::memory::set_allocator;
use crate::{guarded, is_version};
use libz_rs_sys::{
    Bytef, Z_BUF_ERROR, Z_DATA_ERROR, Z_MEM_ERROR, Z_OK, Z_STREAM_ERROR, Z_VERSION_ERROR, gz_headerp, uInt, z_stream, z_streamp,
};
use std::ffi::{c_char, c_int, c_long, c_ulong};
use std::{ptr, slice};
use terse_deflate::decode::Input;

/// # Safety
/// As zlib's: `strm` points to a stream whose allocator is set or null, `version` to a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateInit_(strm: z_streamp, version: *const c_char, stream_size: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { inflateInit2_(strm, 15, version, stream_size) }
}

/// # Safety
/// As [`inflateInit_`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateInit2_(strm: z_streamp, window_bits: c_int, version: *const c_char, stream_size: c_int) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for a string.
        if !unsafe { is_version(version, stream_size) } {
            return Z_VERSION_ERROR;
        }
        if strm.is_null() {
            return Z_STREAM_ERROR;
        }
        // SAFETY: as the caller vouches.
        unsafe {
            (*strm).msg = ptr::null_mut();
            set_allocator(strm);
            (*strm).state = ptr::null_mut();
            let Some((takes, bits)) = Takes::of(window_bits) else { return Z_STREAM_ERROR };
            if state::create(strm, takes, bits).is_none() {
                return Z_MEM_ERROR;
            }
            inflateReset(strm)
        }
    })
}

/// # Safety
/// As zlib's: `strm` is null or a stream, with room and input of the lengths in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflate(strm: z_streamp, flush: c_int) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        // SAFETY: a state was loaded from it.
        let z_stream { next_in, avail_in, next_out, avail_out, .. } = unsafe { *strm };
        if next_out.is_null() || (next_in.is_null() && avail_in != 0) {
            return Z_STREAM_ERROR;
        }
        // SAFETY: the caller vouches for so many bytes of each; they do not overlap.
        unsafe {
            let input = if avail_in == 0 { &[] } else { slice::from_raw_parts(next_in, avail_in as usize) };
            let room = slice::from_raw_parts_mut(next_out, avail_out as usize);
            Call::new(strm, state, input, room).run(flush)
        }
    })
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateEnd(strm: z_streamp) -> c_int {
    // SAFETY: as the caller vouches; the state is gone after this.
    unsafe {
        if state::load(strm).is_none() {
            return Z_STREAM_ERROR;
        }
        state::free(strm);
    }
    Z_OK
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateReset(strm: z_streamp) -> c_int {
    // SAFETY: as the caller vouches; the stream is the state's.
    unsafe {
        let Some(state) = state::load(strm) else { return Z_STREAM_ERROR };
        state.forget();
        restart(&mut *strm, state);
    }
    Z_OK
}

/// Restarts a stream, with the window as it is.
fn restart(stream: &mut z_stream, state: &mut State) {
    state.restart();
    (stream.total_in, stream.total_out, stream.msg) = (0, 0, ptr::null_mut());
    if !state.takes.is_raw() {
        // zlib's value before a head: 1 for its own wrapper, 0 for gzip's.
        stream.adler = state.takes.zlib.into();
    }
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateResetKeep(strm: z_streamp) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    // SAFETY: a state was loaded from it.
    restart(unsafe { &mut *strm }, state);
    Z_OK
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateReset2(strm: z_streamp, window_bits: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    let Some((takes, bits)) = Takes::of(window_bits) else { return Z_STREAM_ERROR };
    if bits != state.window_bits {
        // SAFETY: a state was loaded from it.
        unsafe { state.drop_window(strm) };
    }
    (state.takes, state.window_bits) = (takes, bits);
    state.forget();
    // SAFETY: a state was loaded from it.
    restart(unsafe { &mut *strm }, state);
    Z_OK
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflatePrime(strm: z_streamp, bits: c_int, value: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    let Ok(count) = u32::try_from(bits) else {
        state.decoder.bits = terse_deflate::decode::Bits::NONE;
        return Z_OK;
    };
    if state.decoder.bits.prime(count, value as u32) { Z_OK } else { Z_STREAM_ERROR }
}

/// # Safety
/// As [`inflate`]; `dictionary` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateSetDictionary(strm: z_streamp, dictionary: *const Bytef, length: uInt) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        let is_asked_for = state.phase == Phase::Dictionary;
        if !state.takes.is_raw() && !is_asked_for {
            return Z_STREAM_ERROR;
        }
        // SAFETY: as the caller vouches.
        let bytes = if length == 0 { &[] } else { unsafe { slice::from_raw_parts(dictionary, length as usize) } };
        if is_asked_for && zlib_rs::adler32::adler32(1, bytes) != state.sum {
            return Z_DATA_ERROR;
        }
        // SAFETY: a state was loaded from it.
        if unsafe { state.remember(strm, bytes) }.is_none() {
            state.phase = Phase::Memory;
            return Z_MEM_ERROR;
        }
        state.has_dictionary = true;
        Z_OK
    })
}

/// # Safety
/// As [`inflate`]; `dictionary` is null or has room for a window, `length` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateGetDictionary(strm: *const z_stream, dictionary: *mut Bytef, length: *mut uInt) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        // SAFETY: the window does not change; the caller vouches for the room.
        unsafe {
            let history = state.history();
            let [old, new] = history.parts();
            if !dictionary.is_null() {
                ptr::copy_nonoverlapping(old.as_ptr(), dictionary, old.len());
                ptr::copy_nonoverlapping(new.as_ptr(), dictionary.add(old.len()), new.len());
            }
            if !length.is_null() {
                *length = (old.len() + new.len()) as uInt;
            }
        }
        Z_OK
    })
}

/// # Safety
/// As [`inflate`]. `head` stays where it is until the head of the stream was read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateGetHeader(strm: z_streamp, head: gz_headerp) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }).filter(|state| state.takes.gzip) else { return Z_STREAM_ERROR };
    state.header = head;
    // SAFETY: as the caller vouches.
    if let Some(head) = unsafe { state.head() } {
        head.done = 0;
    }
    Z_OK
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateSync(strm: z_streamp) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        // SAFETY: a state was loaded from it.
        let stream = unsafe { &mut *strm };
        if stream.avail_in == 0 && state.decoder.bits.count() < 8 {
            return Z_BUF_ERROR;
        }
        if state.phase != Phase::Sync {
            (state.phase, state.found) = (Phase::Sync, 0);
            state.decoder.bits.align();
            let mut none = Input::new(&[]);
            while let Some(byte) = state.decoder.bits.take(8, &mut none) {
                search(&mut state.found, &[byte as u8]);
            }
        }
        let bytes = match stream.avail_in {
            0 => &[],
            // SAFETY: the caller vouches for so many bytes.
            count => unsafe { slice::from_raw_parts(stream.next_in, count as usize) },
        };
        let taken = search(&mut state.found, bytes);
        // SAFETY: so many bytes were there.
        stream.next_in = unsafe { stream.next_in.add(taken) };
        stream.avail_in -= taken as uInt;
        stream.total_in = stream.total_in.wrapping_add(taken as c_ulong);
        if state.found < 4 {
            return Z_DATA_ERROR;
        }
        // The tail after the body cannot be checked, since a part of the body is missing.
        match state.flags {
            None => state.takes = Takes { zlib: false, gzip: false, is_checked: false },
            Some(_) => state.takes.is_checked = false,
        }
        let (flags, total_in, total_out) = (state.flags, stream.total_in, stream.total_out);
        state.forget();
        restart(stream, state);
        (stream.total_in, stream.total_out) = (total_in, total_out);
        (state.flags, state.phase) = (flags, Phase::Body);
        Z_OK
    })
}

/// Searches for the mark of a flush, 0 0 255 255, of which `found` bytes have been found; returns the number of bytes
/// examined.
fn search(found: &mut u8, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while *found < 4
        && let Some(&byte) = bytes.get(taken)
    {
        *found = match byte {
            0 if *found < 2 => *found + 1,
            0xff if *found >= 2 => *found + 1,
            // The zero may be the second of two, after the byte that was taken for the first.
            0 => 4 - *found,
            _ => 0,
        };
        taken += 1;
    }
    taken
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateSyncPoint(strm: z_streamp) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    (state.phase == Phase::Body && state.decoder.is_at_flush()).into()
}

/// # Safety
/// As zlib's: both are null or point to streams, `source` to one of ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateCopy(dest: z_streamp, source: *const z_stream) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(source) }).filter(|_| !dest.is_null()) else { return Z_STREAM_ERROR };
        // SAFETY: as the caller vouches.
        if unsafe { state::duplicate(dest, source, state) }.is_some() { Z_OK } else { Z_MEM_ERROR }
    })
}

/// There is nothing here to turn off: a distance beyond the window's data is an error.
///
/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateUndermine(strm: z_streamp, _: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    if unsafe { state::load(strm) }.is_some() { Z_DATA_ERROR } else { Z_STREAM_ERROR }
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateValidate(strm: z_streamp, check: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    state.takes.is_checked = check != 0 && !state.takes.is_raw();
    Z_OK
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateMark(strm: *const z_stream) -> c_long {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return -(1 << 16) };
    let (back, done) = match state.phase {
        Phase::Body => state.decoder.mark(),
        _ => (None, 0),
    };
    back.map_or(-(1 << 16), |back| c_long::from(back) << 16) + c_long::from(done)
}

/// # Safety
/// As [`inflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateCodesUsed(strm: z_streamp) -> c_ulong {
    // SAFETY: as the caller vouches.
    unsafe { state::load(strm) }.map_or(c_ulong::MAX, |state: &mut State| state.decoder.entries().into())
}
