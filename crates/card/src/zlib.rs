//! A shared library with zlib's API, loaded at run time.
//!
//! Source: the declarations of zlib.h 1.2 and 1.3, which are one binary interface.
#![allow(unsafe_code)]

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::Path;
use terse_compress::Level;
use terse_compress::device::Wrapper;

/// An examined library. It is never unloaded: threads that it has made may run in it.
pub struct Library {
    init: DeflateInit2,
    deflate: Deflate,
    end: DeflateEnd,
    version: &'static CStr,
    _handle: ManuallyDrop<Handle>,
}

/// Reason why a library cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The loader refuses it; the loader's message.
    Unloadable(String),
    /// It lacks a function.
    Lacks(&'static str),
    /// It is of another major version than 1.
    Version(String),
    /// It does not begin a stream: zlib's error number. -6 means that its `z_stream` differs.
    Init(i32),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unloadable(reason) => write!(f, "cannot be loaded: {reason}"),
            Unfit::Lacks(name) => write!(f, "has not zlib's API: it lacks {name}"),
            Unfit::Version(version) => write!(f, "has the API of zlib {version}, not of 1"),
            Unfit::Init(VERSION_ERROR) => {
                write!(f, "has another z_stream than zlib 1 (of {STREAM_BYTES} bytes)")
            }
            Unfit::Init(code) => write!(f, "does not begin a stream: deflateInit2 returns {code}"),
        }
    }
}

impl Library {
    /// Loads and examines a library. Its initializers run.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn open(path: &Path) -> Result<Library, Unfit> {
        // Its names stay its own, and it finds its own first: this program may hold other functions of the same names.
        let flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
        // SAFETY: the operator names the library; the caller has chosen the process in which its initializers may run.
        let handle = ManuallyDrop::new(unsafe { Handle::open(Some(path), flags) }.map_err(unloadable)?);
        // SAFETY: the types are those of zlib.h.
        let (zlib_version, init, deflate, end) = unsafe {
            (
                symbol::<ZlibVersion>(&handle, "zlibVersion")?,
                symbol::<DeflateInit2>(&handle, "deflateInit2_")?,
                symbol::<Deflate>(&handle, "deflate")?,
                symbol::<DeflateEnd>(&handle, "deflateEnd")?,
            )
        };
        // SAFETY: takes nothing.
        let version = unsafe { zlib_version() };
        if version.is_null() {
            return Err(Unfit::Version("(none)".into()));
        }
        // SAFETY: zlib's version is a string that lives as long as the library, which is never unloaded.
        let version: &'static CStr = unsafe { CStr::from_ptr(version) };
        if version.to_bytes().first() != Some(&b'1') {
            return Err(Unfit::Version(version.to_string_lossy().into_owned()));
        }
        let library = Library { init, deflate, end, version, _handle: handle };
        library.begin(Wrapper::Gzip, Level(1)).map(drop).map_err(Unfit::Init)?;
        Ok(library)
    }

    /// Version that the library reports.
    pub fn version(&self) -> String {
        self.version.to_string_lossy().into_owned()
    }

    /// Codes a body into `room`; returns the length of the coded form.
    ///
    /// # Errors
    /// zlib's number; -5 (`Z_BUF_ERROR`) when there is too little room, or when it does nothing.
    pub fn code<'a>(
        &self,
        pieces: impl Iterator<Item = &'a [u8]>,
        wrapper: Wrapper,
        level: Level,
        room: &mut [u8],
    ) -> Result<usize, i32> {
        let mut stream = self.begin(wrapper, level)?;
        let mut given = 0;
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            // SAFETY: the pointers and lengths are those of the slices.
            given += unsafe { stream.push(piece.as_ptr(), piece.len(), room[given..].as_mut_ptr(), room.len() - given, NO_FLUSH) }?;
        }
        // SAFETY: as above; there is no input.
        given += unsafe { stream.push([].as_ptr(), 0, room[given..].as_mut_ptr(), room.len() - given, FINISH) }?;
        Ok(given)
    }

    /// Codes a body in one piece, in memory that other processes may see.
    ///
    /// # Safety
    /// `input` can be read for `bytes`, `room` can be written for `room_bytes`, and they do not overlap.
    ///
    /// # Errors
    /// As [`Library::code`].
    pub(crate) unsafe fn code_raw(
        &self,
        (input, bytes): (*const u8, usize),
        wrapper: Wrapper,
        level: Level,
        (room, room_bytes): (*mut u8, usize),
    ) -> Result<usize, i32> {
        let mut stream = self.begin(wrapper, level)?;
        // SAFETY: the caller's promise.
        unsafe { stream.push(input, bytes, room, room_bytes, FINISH) }
    }

    fn begin(&self, wrapper: Wrapper, level: Level) -> Result<Running<'_>, i32> {
        let window = match wrapper {
            Wrapper::Gzip => 15 + 16,
            Wrapper::Zlib => 15,
        };
        // zlib keeps the stream's address.
        let mut stream = Box::new(Stream::EMPTY);
        let (level, version) = (c_int::from(level.0), self.version.as_ptr());
        // SAFETY: the stream is zlib's, of the size that is named; null functions mean that the library allocates by itself.
        match unsafe { (self.init)(&raw mut *stream, level, DEFLATED, window, MEMORY_LEVEL, 0, version, STREAM_BYTES as c_int) } {
            OK => Ok(Running { library: self, stream }),
            code => Err(code),
        }
    }
}

/// A stream that has begun.
struct Running<'l> {
    library: &'l Library,
    stream: Box<Stream>,
}

impl Running<'_> {
    /// Takes all of the input, and with [`FINISH`] ends the stream; returns the number of output bytes.
    ///
    /// # Safety
    /// The pointers are valid for the lengths beside them.
    unsafe fn push(
        &mut self,
        input: *const u8,
        bytes: usize,
        room: *mut u8,
        room_bytes: usize,
        flush: c_int,
    ) -> Result<usize, i32> {
        let (Ok(in_length), Ok(room_length)) = (c_uint::try_from(bytes), c_uint::try_from(room_bytes)) else {
            return Err(BUF_ERROR);
        };
        (self.stream.next_in, self.stream.avail_in) = (input, in_length);
        (self.stream.next_out, self.stream.avail_out) = (room, room_length);
        loop {
            let before = (self.stream.avail_in, self.stream.avail_out);
            // SAFETY: the stream has begun, and the caller has promised that its pointers are good.
            let code = unsafe { (self.library.deflate)(&raw mut *self.stream, flush) };
            let after = (self.stream.avail_in, self.stream.avail_out);
            if after.0 > before.0 || after.1 > before.1 {
                return Err(STREAM_ERROR);
            }
            match code {
                STREAM_END if flush == FINISH && after.0 == 0 => return Ok(room_bytes - after.1 as usize),
                OK if flush == NO_FLUSH && after.0 == 0 && after.1 > 0 => return Ok(room_bytes - after.1 as usize),
                OK if after != before && after.1 > 0 => {}
                OK => return Err(BUF_ERROR),
                STREAM_END => return Err(STREAM_ERROR),
                code => return Err(code),
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the stream has begun, and is not used any more.
        unsafe { (self.library.end)(&raw mut *self.stream) };
    }
}

fn unloadable(error: libloading::Error) -> Unfit {
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    Unfit::Unloadable(cause.unwrap_or_else(|| error.to_string()))
}

/// A function of a library.
///
/// # Safety
/// `T` is its type.
pub(crate) unsafe fn symbol<T: Copy>(handle: &Handle, name: &'static str) -> Result<T, Unfit> {
    // SAFETY: the caller's promise.
    let found = unsafe { handle.get::<T>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| Unfit::Lacks(name))
}

type ZlibVersion = unsafe extern "C" fn() -> *const c_char;
type DeflateInit2 = unsafe extern "C" fn(*mut Stream, c_int, c_int, c_int, c_int, c_int, *const c_char, c_int) -> c_int;
type Deflate = unsafe extern "C" fn(*mut Stream, c_int) -> c_int;
type DeflateEnd = unsafe extern "C" fn(*mut Stream) -> c_int;

/// zlib.h's `z_stream`.
#[repr(C)]
struct Stream {
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

impl Stream {
    const EMPTY: Stream = Stream {
        next_in: std::ptr::null(),
        avail_in: 0,
        total_in: 0,
        next_out: std::ptr::null_mut(),
        avail_out: 0,
        total_out: 0,
        msg: std::ptr::null(),
        state: std::ptr::null_mut(),
        zalloc: std::ptr::null_mut(),
        zfree: std::ptr::null_mut(),
        opaque: std::ptr::null_mut(),
        data_type: 0,
        adler: 0,
        reserved: 0,
    };
}

/// The library compares this with its own: 112 where pointers have 64 bits.
const STREAM_BYTES: usize = size_of::<Stream>();
#[cfg(target_pointer_width = "64")]
const _: () = assert!(STREAM_BYTES == 112);

pub(crate) const RTLD_DEEPBIND: c_int = 8;

const DEFLATED: c_int = 8;
const MEMORY_LEVEL: c_int = 8;
const NO_FLUSH: c_int = 0;
const FINISH: c_int = 4;
const OK: c_int = 0;
const STREAM_END: c_int = 1;
const STREAM_ERROR: c_int = -2;
const BUF_ERROR: c_int = -5;
const VERSION_ERROR: c_int = -6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_library_says_why() {
        let unfit = |path: &str| Library::open(Path::new(path)).err().map(|unfit| unfit.to_string()).unwrap_or_default();
        assert!(unfit("/no/such/lib.so").contains("/no/such/lib.so: cannot open"), "{}", unfit("/no/such/lib.so"));
        assert!(unfit("/etc/passwd").contains("cannot be loaded"), "{}", unfit("/etc/passwd"));
        assert_eq!(unfit("libm.so.6"), "has not zlib's API: it lacks zlibVersion");
    }
}
