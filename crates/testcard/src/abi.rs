//! zlib's functions, as far as a user of `deflate` calls them.
//!
//! Source: zlib.h 1.3.
#![allow(unsafe_code)]

use crate::clock::clock;
use crate::faults::{Fault, draw};
use crate::results::Made;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// zlib.h's `z_stream`.
#[repr(C)]
pub(crate) struct Stream {
    next_in: *const u8,
    avail_in: c_uint,
    total_in: c_ulong,
    next_out: *mut u8,
    avail_out: c_uint,
    total_out: c_ulong,
    msg: *const c_char,
    state: *mut c_void,
    zalloc: *mut c_void,
    zfree: *mut c_void,
    opaque: *mut c_void,
    data_type: c_int,
    adler: c_ulong,
    reserved: c_ulong,
}

/// State that `state` points to.
struct State {
    window_bits: c_int,
    level: c_int,
    input: Vec<u8>,
    /// The result, and how much of it was handed out; none before all of the input has come.
    output: Option<(Vec<u8>, usize)>,
}

struct Environment {
    results: Option<PathBuf>,
    /// Whether results that had to be computed are kept.
    learns: bool,
    faults: Option<PathBuf>,
}

fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    ENVIRONMENT.get_or_init(|| Environment {
        results: path("TERSE_TESTCARD_RESULTS"),
        learns: path("TERSE_TESTCARD_LEARN").is_some(),
        faults: path("TERSE_TESTCARD_FAULTS"),
    })
}

#[unsafe(no_mangle)]
extern "C" fn zlibVersion() -> *const c_char {
    c"1.3-testcard".as_ptr()
}

/// # Safety
/// As in zlib.h: a stream, and a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn deflateInit_(stream: *mut Stream, level: c_int, version: *const c_char, bytes: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { deflateInit2_(stream, level, 8, 15, 8, 0, version, bytes) }
}

/// # Safety
/// As in zlib.h: a stream, and a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn deflateInit2_(
    stream: *mut Stream,
    level: c_int,
    method: c_int,
    window_bits: c_int,
    _memory_level: c_int,
    _strategy: c_int,
    version: *const c_char,
    bytes: c_int,
) -> c_int {
    // SAFETY: a string that is not null has a first byte.
    if version.is_null() || unsafe { *version } != b'1' as c_char || bytes != size_of::<Stream>() as c_int {
        return VERSION_ERROR;
    }
    if stream.is_null() || method != 8 || !(-1..=9).contains(&level) || !matches!(window_bits.abs(), 8..=15 | 24..=31) {
        return STREAM_ERROR;
    }
    let state = Box::new(State { window_bits, level: if level < 0 { 6 } else { level }, input: Vec::new(), output: None });
    // SAFETY: the stream is the caller's.
    unsafe { (*stream).state = Box::into_raw(state).cast() };
    OK
}

/// # Safety
/// As in zlib.h: a stream that has begun.
#[unsafe(no_mangle)]
unsafe extern "C" fn deflateReset(stream: *mut Stream) -> c_int {
    // SAFETY: the caller's promise.
    let Some((stream, state)) = (unsafe { parts(stream) }) else { return STREAM_ERROR };
    (state.input, state.output) = (Vec::new(), None);
    (stream.total_in, stream.total_out) = (0, 0);
    OK
}

/// # Safety
/// As in zlib.h: a stream that has begun.
#[unsafe(no_mangle)]
unsafe extern "C" fn deflateEnd(stream: *mut Stream) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { parts(stream) }.is_none() {
        return STREAM_ERROR;
    }
    // SAFETY: the state was made by deflateInit2_, and is not used any more.
    unsafe {
        drop(Box::from_raw((*stream).state.cast::<State>()));
        (*stream).state = std::ptr::null_mut();
    }
    OK
}

/// # Safety
/// As in zlib.h: a stream that has begun, and is not used by another thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn deflate(stream: *mut Stream, flush: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some((stream, state)) = (unsafe { parts(stream) }) else { return STREAM_ERROR };
    let input: &[u8] = match stream.avail_in {
        0 => &[],
        // SAFETY: the caller's promise: so many bytes lie there.
        bytes => unsafe { std::slice::from_raw_parts(stream.next_in, bytes as usize) },
    };
    // SAFETY: the pointer moves to the end of these bytes.
    stream.next_in = unsafe { stream.next_in.add(input.len()) };
    stream.total_in += input.len() as c_ulong;
    stream.avail_in = 0;
    let fault = if flush == FINISH && state.output.is_none() { draw_fault() } else { None };
    match fault {
        Some(Fault::Error) => return STREAM_ERROR,
        Some(Fault::Hang) => loop {
            std::thread::park();
        },
        // SAFETY: takes nothing.
        Some(Fault::Abort) => unsafe { libc::abort() },
        _ => {}
    }
    if flush != FINISH {
        state.input.extend_from_slice(input);
        return OK;
    }
    if state.output.is_none() {
        let mut output = if state.input.is_empty() {
            coded(input, state)
        } else {
            state.input.extend_from_slice(input);
            coded(&std::mem::take(&mut state.input), state)
        };
        spoil(fault, &mut output);
        state.output = Some((output, 0));
    }
    let Some((output, at)) = &mut state.output else { return STREAM_ERROR };
    let part = &output[*at..(*at + stream.avail_out as usize).min(output.len())];
    let length = if fault == Some(Fault::Die) { part.len() / 2 } else { part.len() };
    // SAFETY: the caller's promise: there is room for so many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(part.as_ptr(), stream.next_out, length);
        stream.next_out = stream.next_out.add(length);
    }
    if fault == Some(Fault::Die) {
        // SAFETY: takes a number.
        unsafe { libc::_exit(3) };
    }
    stream.avail_out -= length as c_uint;
    stream.total_out += length as c_ulong;
    *at += length;
    if *at == output.len() { STREAM_END } else { OK }
}

#[unsafe(no_mangle)]
extern "C" fn deflateBound(_: *mut Stream, bytes: c_ulong) -> c_ulong {
    compressBound(bytes)
}

#[unsafe(no_mangle)]
extern "C" fn compressBound(bytes: c_ulong) -> c_ulong {
    bytes + bytes / 1000 + 64
}

/// # Safety
/// As in zlib.h: so many bytes, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn crc32(sum: c_ulong, bytes: *const u8, length: c_uint) -> c_ulong {
    if bytes.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, length as usize) };
    c_ulong::from(if sum == 0 { libdeflater::crc32(bytes) } else { bytewise_crc(sum as u32, bytes) })
}

/// # Safety
/// As in zlib.h: so many bytes, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn adler32(sum: c_ulong, bytes: *const u8, length: c_uint) -> c_ulong {
    if bytes.is_null() {
        return 1;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, length as usize) };
    let (a, b) = bytes.iter().fold((sum & 0xffff, sum >> 16), |(a, b), byte| {
        let a = (a + c_ulong::from(*byte)) % 65521;
        (a, (a + b) % 65521)
    });
    b << 16 | a
}

fn bytewise_crc(sum: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!sum, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

/// A stream that has begun, and its state.
///
/// # Safety
/// The pointer is null or a stream's, whose state is null or of [`deflateInit2_`].
unsafe fn parts<'s>(stream: *mut Stream) -> Option<(&'s mut Stream, &'s mut State)> {
    // SAFETY: the caller's promise; the state is a box of its own.
    unsafe {
        let stream = stream.as_mut()?;
        let state = stream.state.cast::<State>().as_mut()?;
        Some((stream, state))
    }
}

fn draw_fault() -> Option<Fault> {
    let job = clock().number_job();
    environment().faults.as_deref().and_then(|path| draw(path, job))
}

/// The result, when the card has had its time.
fn coded(body: &[u8], state: &State) -> Vec<u8> {
    let results = environment().results.as_deref();
    let made = results.and_then(|folder| Made::read(folder, body)).unwrap_or_else(|| {
        let made = Made::new(body, state.level);
        if let Some(folder) = results.filter(|_| environment().learns) {
            // A result that could not be kept is computed again.
            let _ = made.write(folder, body);
        }
        made
    });
    clock().pass(body.len());
    match state.window_bits {
        ..0 => made.stream,
        0..=15 => [&[0x78, 0x9c], &made.stream[..], &made.adler.to_be_bytes()].concat(),
        _ => {
            let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
            [&head[..], &made.stream, &made.crc.to_le_bytes(), &(body.len() as u32).to_le_bytes()].concat()
        }
    }
}

/// Falsifies a result.
fn spoil(fault: Option<Fault>, output: &mut [u8]) {
    match fault {
        Some(Fault::Garbage) => {
            let middle = output.len() / 2;
            output[middle] ^= 0x10;
        }
        Some(Fault::Noise) => {
            let mut word = output.len() as u64;
            output.iter_mut().for_each(|byte| {
                word = crate::results::mix(word);
                *byte = word as u8;
            });
        }
        _ => {}
    }
}

const FINISH: c_int = 4;
const OK: c_int = 0;
const STREAM_END: c_int = 1;
const STREAM_ERROR: c_int = -2;
const VERSION_ERROR: c_int = -6;
