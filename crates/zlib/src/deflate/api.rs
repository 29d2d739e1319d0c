//! Functions of zlib's API: each makes zlib's checks, in zlib's order.

use super::header::Wrap;
use super::piece::{self, Manner};
use super::state::{self, Area, NO_FLUSH_YET, Phase, State};
use super::stream::{Call, Out};
use crate::memory::set_allocator;
use crate::{guarded, is_version};
use libz_rs_sys::{
    Bytef, Z_BLOCK, Z_BUF_ERROR, Z_DEFAULT_COMPRESSION, Z_DEFAULT_STRATEGY, Z_DEFLATED, Z_FINISH, Z_MEM_ERROR, Z_OK, Z_STREAM_END,
    Z_STREAM_ERROR, Z_VERSION_ERROR, gz_headerp, uInt, z_stream, z_streamp, zError,
};
use std::ffi::{c_char, c_int, c_uint, c_ulong};
use std::{ptr, slice};

/// The strategies that exist.
const STRATEGIES: std::ops::RangeInclusive<c_int> = Z_DEFAULT_STRATEGY..=4;
/// Default of memLevel.
const MEMORY_LEVEL: c_int = 8;

/// # Safety
/// As zlib's: `strm` points to a stream whose allocator is set or null, `version` to a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateInit_(strm: z_streamp, level: c_int, version: *const c_char, stream_size: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { deflateInit2_(strm, level, Z_DEFLATED, 15, MEMORY_LEVEL, Z_DEFAULT_STRATEGY, version, stream_size) }
}

/// # Safety
/// As [`deflateInit_`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateInit2_(
    strm: z_streamp,
    level: c_int,
    method: c_int,
    window_bits: c_int,
    memory_level: c_int,
    strategy: c_int,
    version: *const c_char,
    stream_size: c_int,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for a string.
        if !unsafe { is_version(version, stream_size) } {
            return Z_VERSION_ERROR;
        }
        if strm.is_null() {
            return Z_STREAM_ERROR;
        }
        let (wrap, bits) = match window_bits {
            ..0 => (Wrap::Raw, window_bits.checked_neg().unwrap_or(0)),
            16.. => (Wrap::Gzip, window_bits - 16),
            _ => (Wrap::Zlib, window_bits),
        };
        let level = if level == Z_DEFAULT_COMPRESSION { 6 } else { level };
        let is_sound = method == Z_DEFLATED
            && (1..=9).contains(&memory_level)
            && (8..=15).contains(&bits)
            && (0..=9).contains(&level)
            && STRATEGIES.contains(&strategy)
            && !(bits == 8 && wrap != Wrap::Zlib);
        if !is_sound {
            return Z_STREAM_ERROR;
        }
        // zlib has no window of 256 bytes either, and writes so in its head.
        let manner = Manner { level: level as u8, window_bits: bits.max(9) as u8, strategy };
        // SAFETY: as the caller vouches.
        unsafe {
            (*strm).msg = ptr::null_mut();
            set_allocator(strm);
            (*strm).state = ptr::null_mut();
            if state::create(strm, wrap, manner, memory_level as u8).is_none() {
                (*strm).msg = zError(Z_MEM_ERROR).cast_mut();
                return Z_MEM_ERROR;
            }
            deflateReset(strm)
        }
    })
}

/// # Safety
/// As zlib's: `strm` is null or a stream, with room and input of the lengths in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflate(strm: z_streamp, flush: c_int) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }).filter(|_| (0..=Z_BLOCK).contains(&flush)) else {
            return Z_STREAM_ERROR;
        };
        // SAFETY: a state was loaded from it.
        let stream = unsafe { &mut *strm };
        let lacks = stream.next_out.is_null() || (stream.avail_in != 0 && stream.next_in.is_null());
        if lacks || (state.phase == Phase::Tail && flush != Z_FINISH) {
            return fail(stream, Z_STREAM_ERROR);
        }
        if stream.avail_out == 0 {
            return fail(stream, Z_BUF_ERROR);
        }
        let input = match stream.avail_in {
            0 => &[],
            // SAFETY: the caller vouches for so many bytes.
            count => unsafe { slice::from_raw_parts(stream.next_in, count as usize) },
        };
        let wrap = state.wrap;
        // SAFETY: as the caller vouches; the area is this stream's alone.
        let mut call = unsafe {
            Call { state, area: Area::of(strm, &state), input, out: Out::new(stream.next_out, stream.avail_out as usize) }
        };
        let code = call.run(flush);
        let taken = stream.avail_in as usize - call.input.len();
        let given = stream.avail_out as usize - call.out.left();
        // SAFETY: so many bytes were there.
        unsafe {
            state::save(strm, &call.state);
            if taken > 0 {
                stream.next_in = stream.next_in.add(taken);
            }
            stream.next_out = stream.next_out.add(given);
        }
        stream.avail_in -= taken as uInt;
        stream.avail_out -= given as uInt;
        stream.total_in = stream.total_in.wrapping_add(taken as c_ulong);
        stream.total_out = stream.total_out.wrapping_add(given as c_ulong);
        if wrap != Wrap::Raw && call.state.phase != Phase::Head {
            stream.adler = call.state.sum.into();
        }
        if matches!(code, Z_OK | Z_STREAM_END) { code } else { fail(stream, code) }
    })
}

fn fail(stream: &mut z_stream, code: c_int) -> c_int {
    stream.msg = zError(code).cast_mut();
    code
}

/// # Safety
/// As [`deflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateEnd(strm: z_streamp) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches; the state is gone after this.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        // SAFETY: a state was loaded from it.
        unsafe { state::free(strm) };
        // A stream that had begun and was not ended is truncated.
        if state.phase == Phase::Body { libz_rs_sys::Z_DATA_ERROR } else { Z_OK }
    })
}

/// # Safety
/// As [`deflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateReset(strm: z_streamp) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(mut state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        state.restart();
        // SAFETY: a state was loaded from it.
        unsafe {
            state::save(strm, &state);
            let stream = &mut *strm;
            (stream.total_in, stream.total_out, stream.msg) = (0, 0, ptr::null_mut());
            stream.data_type = libz_rs_sys::Z_UNKNOWN;
            stream.adler = state.sum.into();
        }
        Z_OK
    })
}

/// # Safety
/// As [`deflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateResetKeep(strm: z_streamp) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { deflateReset(strm) }
}

/// # Safety
/// As [`deflate`]. `head` stays where it is until the head of the stream has gone out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateSetHeader(strm: z_streamp, head: gz_headerp) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe {
        change(strm, |state| {
            if state.wrap != Wrap::Gzip {
                return Z_STREAM_ERROR;
            }
            state.header = head;
            Z_OK
        })
    }
}

/// Changes a stream's state.
///
/// # Safety
/// As [`deflate`].
unsafe fn change(strm: z_streamp, edit: impl FnOnce(&mut State) -> c_int) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(mut state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        let code = edit(&mut state);
        // SAFETY: a state was loaded from it.
        unsafe { state::save(strm, &state) };
        code
    })
}

/// # Safety
/// As [`deflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateParams(strm: z_streamp, level: c_int, strategy: c_int) -> c_int {
    let level = if level == Z_DEFAULT_COMPRESSION { 6 } else { level };
    if !(0..=9).contains(&level) || !STRATEGIES.contains(&strategy) {
        return Z_STREAM_ERROR;
    }
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    let is_other = state.manner.level != level as u8 || state.manner.strategy != strategy;
    if is_other && state.last_flush != NO_FLUSH_YET {
        // Input of before is coded in the old manner.
        // SAFETY: as the caller vouches.
        let code = unsafe { deflate(strm, Z_BLOCK) };
        if code == Z_STREAM_ERROR {
            return code;
        }
        // SAFETY: as the caller vouches; a state was loaded before.
        let is_done = unsafe {
            state::load(strm).is_some_and(|state| state.gathered == 0 && state.waiting.0 >= state.waiting.1)
                && (*strm).avail_in == 0
        };
        if !is_done {
            return Z_BUF_ERROR;
        }
    }
    // SAFETY: as the caller vouches.
    unsafe {
        change(strm, |state| {
            (state.manner.level, state.manner.strategy) = (level as u8, strategy);
            Z_OK
        })
    }
}

/// There is nothing here to tune: libdeflate has its own parameters for each level.
///
/// # Safety
/// As [`deflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateTune(strm: z_streamp, _: c_int, _: c_int, _: c_int, _: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { change(strm, |_| Z_OK) }
}

/// # Safety
/// As [`deflate`]; `dictionary` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateSetDictionary(strm: z_streamp, dictionary: *const Bytef, length: uInt) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        let is_late = state.gathered > 0 || (state.wrap == Wrap::Zlib && state.phase != Phase::Head);
        if dictionary.is_null() || state.wrap == Wrap::Gzip || is_late || state.waiting.0 < state.waiting.1 {
            return Z_STREAM_ERROR;
        }
        // SAFETY: as the caller vouches.
        let bytes = unsafe { slice::from_raw_parts(dictionary, length as usize) };
        // SAFETY: a state was loaded; nothing is given or taken.
        let mut call = unsafe { Call { state, area: Area::of(strm, &state), input: &[], out: Out::new(ptr::null_mut(), 0) } };
        call.remember(bytes);
        if state.wrap == Wrap::Zlib {
            let sum = Wrap::Zlib.add(state.dictionary.unwrap_or(1), bytes);
            // An empty one is none: readers would ask for it.
            if !bytes.is_empty() {
                call.state.dictionary = Some(sum);
            }
            // SAFETY: as the caller vouches.
            unsafe { (*strm).adler = sum.into() };
        }
        // SAFETY: a state was loaded from it.
        unsafe { state::save(strm, &call.state) };
        Z_OK
    })
}

/// # Safety
/// As [`deflate`]; `dictionary` is null or has room for a window, `length` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateGetDictionary(strm: *const z_stream, dictionary: *mut Bytef, length: *mut uInt) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        let count = (state.history + state.gathered).min(state.window());
        // SAFETY: history and gathered bytes are adjacent and were written; the caller vouches for the room.
        unsafe {
            if !dictionary.is_null() && count > 0 {
                let bytes = Area::of(strm.cast_mut(), &state).read(state.window() + state.gathered - count, count);
                ptr::copy_nonoverlapping(bytes.as_ptr(), dictionary, count);
            }
            if !length.is_null() {
                *length = count as uInt;
            }
        }
        Z_OK
    })
}

/// # Safety
/// As zlib's: both are null or point to streams, `source` to one of ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateCopy(dest: z_streamp, source: z_streamp) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(source) }).filter(|_| !dest.is_null()) else { return Z_STREAM_ERROR };
        // SAFETY: as the caller vouches.
        if unsafe { state::duplicate(dest, source, &state) }.is_some() { Z_OK } else { Z_MEM_ERROR }
    })
}

/// # Safety
/// As [`deflate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflatePrime(strm: z_streamp, bits: c_int, value: c_int) -> c_int {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
    if !(0..=16).contains(&bits) || state.gathered > 0 || state.phase == Phase::Tail {
        return Z_BUF_ERROR;
    }
    guarded(|| {
        // SAFETY: a state was loaded; nothing is given or taken.
        let mut call = unsafe { Call { state, area: Area::of(strm, &state), input: &[], out: Out::new(ptr::null_mut(), 0) } };
        if !call.prime(bits as u8, value as u32) {
            return Z_BUF_ERROR;
        }
        // SAFETY: a state was loaded from it.
        unsafe { state::save(strm, &call.state) };
        Z_OK
    })
}

/// # Safety
/// As [`deflate`]; `pending` and `bits` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflatePending(strm: z_streamp, pending: *mut c_uint, bits: *mut c_int) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        let Some(state) = (unsafe { state::load(strm) }) else { return Z_STREAM_ERROR };
        // SAFETY: as the caller vouches.
        unsafe {
            if !pending.is_null() {
                *pending = (state.waiting.1 - state.waiting.0) as c_uint;
            }
            if !bits.is_null() {
                *bits = state.prime.0.into();
            }
        }
        Z_OK
    })
}

/// # Safety
/// As [`deflate`]; `bits` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateUsed(strm: z_streamp, bits: *mut c_int) -> c_int {
    guarded(|| {
        // SAFETY: as the caller vouches.
        if unsafe { state::load(strm) }.is_none() {
            return Z_STREAM_ERROR;
        }
        if !bits.is_null() {
            // Pieces end at the border of a byte.
            // SAFETY: as the caller vouches.
            unsafe { *bits = 8 };
        }
        Z_OK
    })
}

/// # Safety
/// `strm` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateBound(strm: z_streamp, length: c_ulong) -> c_ulong {
    // SAFETY: as the caller vouches.
    unsafe { deflateBound_z(strm, length as usize) as c_ulong }
}

/// # Safety
/// `strm` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deflateBound_z(strm: z_streamp, length: usize) -> usize {
    // SAFETY: as the caller vouches.
    let Some(state) = (unsafe { state::load(strm) }) else {
        // A stream of any kind: the smallest memory codes pieces of two thousand bytes.
        return length.saturating_add(length >> 5).saturating_add((length >> 7) + 64);
    };
    let head = match state.wrap {
        Wrap::Raw => 0,
        Wrap::Zlib => 2 + 4,
        // SAFETY: the program keeps what it gave to deflateSetHeader.
        Wrap::Gzip => match unsafe { state.header.as_ref() } {
            // SAFETY: the same.
            Some(header) => unsafe { super::header::gzip(header, 6, false).len() },
            None => 10,
        },
    };
    let pieces = length / state.room() + 1;
    let pieces_bytes = (piece::bound(state.room()) - state.room()).saturating_mul(pieces);
    length.saturating_add(pieces_bytes).saturating_add(head + 32)
}
