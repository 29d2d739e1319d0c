//! `inflateBack`: a raw stream from the program's function to the program's function, through the program's window.

use super::message;
use crate::memory::set_allocator;
use crate::tag::{Kind, Tag};
use crate::{guarded, is_version};
use libz_rs_sys::{
    Z_BUF_ERROR, Z_DATA_ERROR, Z_MEM_ERROR, Z_OK, Z_STREAM_END, Z_STREAM_ERROR, Z_VERSION_ERROR, in_func, out_func, z_streamp,
};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::{mem, ptr, slice};
use terse_deflate::decode::{Before, Decoder, Input, Output, Pause, Stop};

#[repr(C)]
struct State {
    tag: Tag,
    /// Pointer from the allocator.
    memory: *mut c_void,
    window: *mut c_uchar,
    window_bytes: usize,
    decoder: Decoder,
}

/// # Safety
/// As zlib's: `strm` points to a stream whose allocator is set or null, `window` to `1 << window_bits` bytes, and
/// `version` to a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateBackInit_(
    strm: z_streamp,
    window_bits: c_int,
    window: *mut c_uchar,
    version: *const c_char,
    stream_size: c_int,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for a string.
        if !unsafe { is_version(version, stream_size) } {
            return Z_VERSION_ERROR;
        }
        if strm.is_null() || window.is_null() || !(8..=15).contains(&window_bits) {
            return Z_STREAM_ERROR;
        }
        // SAFETY: as the caller vouches; an allocator of zlib's kind takes a number of items and their size. It need
        // not align as ours do, and the request includes the padding.
        unsafe {
            (*strm).msg = ptr::null_mut();
            set_allocator(strm);
            let Some(zalloc) = (*strm).zalloc else { return Z_STREAM_ERROR };
            let bytes = mem::size_of::<State>() + mem::align_of::<State>() - 1;
            let memory = zalloc((*strm).opaque, bytes as c_uint, 1);
            if memory.is_null() {
                return Z_MEM_ERROR;
            }
            let at = memory.cast::<u8>().add(memory.align_offset(mem::align_of::<State>())).cast::<State>();
            let tag = Tag { owner: strm, kind: Kind::INFLATE_BACK };
            at.write(State { tag, memory, window, window_bytes: 1 << window_bits, decoder: Decoder::new() });
            (*strm).state = at.cast();
        }
        Z_OK
    })
}

/// # Safety
/// As zlib's: `strm` is null or a stream of [`inflateBackInit_`], and the functions do what zlib requires of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateBack(
    strm: z_streamp,
    take: Option<in_func>,
    take_for: *mut c_void,
    give: Option<out_func>,
    give_for: *mut c_void,
) -> c_int {
    let (Some(take), Some(give)) = (take, give) else { return Z_STREAM_ERROR };
    guarded(|| {
        // SAFETY: as the caller vouches. A state of that kind is one that `inflateBackInit_` has made, and the stream
        // is the program's.
        let (state, next_in, avail_in) = unsafe {
            if !Tag::is(strm, Kind::INFLATE_BACK) {
                return Z_STREAM_ERROR;
            }
            (*strm).msg = ptr::null_mut();
            (&mut *(*strm).state.cast::<State>(), (*strm).next_in, (*strm).avail_in)
        };
        state.decoder.reset();
        // SAFETY: the caller vouches for so many bytes; all but the first turn's were written.
        let window = unsafe { slice::from_raw_parts_mut(state.window, state.window_bytes) };
        let (mut at, mut filled, mut is_short) = (0, 0, false);
        let mut bytes = match avail_in {
            // SAFETY: as the caller vouches.
            1.. if !next_in.is_null() => unsafe { slice::from_raw_parts(next_in, avail_in as usize) },
            _ => &[],
        };
        let mut code = loop {
            let mut input = Input::new(bytes);
            let mut output = Output::new(window, at, Before::Room(filled));
            let stop = state.decoder.decode(&mut input, &mut output, Pause::Never);
            at = output.put_out();
            filled = filled.max(at);
            if stop != Ok(Stop::Input) {
                state.decoder.bits.give_back(&mut input);
            }
            bytes = input.rest();
            match stop {
                Ok(Stop::End) => break Z_STREAM_END,
                Err(flaw) => {
                    // SAFETY: as the caller vouches.
                    unsafe { (*strm).msg = message(flaw).as_ptr().cast_mut() };
                    break Z_DATA_ERROR;
                }
                Ok(Stop::Room) => {
                    let full = mem::take(&mut at);
                    // SAFETY: as the caller vouches.
                    if unsafe { give(give_for, window.as_mut_ptr(), full as c_uint) } != 0 {
                        break Z_BUF_ERROR;
                    }
                }
                Ok(Stop::Input | Stop::Block | Stop::Head) => {
                    let mut next = ptr::null();
                    // SAFETY: as the caller vouches.
                    let count = unsafe { take(take_for, &mut next) };
                    if count == 0 || next.is_null() {
                        is_short = true;
                        break Z_BUF_ERROR;
                    }
                    // SAFETY: as the caller vouches.
                    bytes = unsafe { slice::from_raw_parts(next, count as usize) };
                }
            }
        };
        // SAFETY: as the caller vouches.
        if at > 0 && unsafe { give(give_for, window.as_mut_ptr(), at as c_uint) } != 0 && code == Z_STREAM_END {
            code = Z_BUF_ERROR;
        }
        // A null pointer reports that the input's function had nothing.
        // SAFETY: as the caller vouches.
        unsafe {
            (*strm).next_in = if is_short { ptr::null() } else { bytes.as_ptr() };
            (*strm).avail_in = bytes.len() as c_uint;
        }
        code
    })
}

/// # Safety
/// As [`inflateBack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateBackEnd(strm: z_streamp) -> c_int {
    // SAFETY: as the caller vouches; the state is gone after this.
    unsafe {
        if !Tag::is(strm, Kind::INFLATE_BACK) {
            return Z_STREAM_ERROR;
        }
        let memory = (*(*strm).state.cast::<State>()).memory;
        (*strm).state = ptr::null_mut();
        if let Some(zfree) = (*strm).zfree {
            zfree((*strm).opaque, memory);
        }
    }
    Z_OK
}
