//! zlib twice, as tables of the same functions: the system's own, and terse's.
#![allow(dead_code, non_snake_case, reason = "no target uses all of it; the names are zlib's")]

use libz_rs_sys::{gz_header, gzFile, in_func, out_func, z_stream};
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::OnceLock;

macro_rules! zlib {
    ($(fn $name:ident($($type:ty),*) -> $result:ty;)*) => {
        /// Functions of zlib.
        pub struct Zlib {
            $(pub $name: unsafe extern "C" fn($($type),*) -> $result,)*
        }

        /// The system's.
        pub fn theirs() -> &'static Zlib {
            static ZLIB: OnceLock<Zlib> = OnceLock::new();
            ZLIB.get_or_init(|| {
                // SAFETY: zlib, which finds its own functions before those of this program, and functions of it with the types that
                // they have.
                unsafe {
                    let library = libc::dlopen(c"libz.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND);
                    assert!(!library.is_null(), "the system has no zlib");
                    let function = |name: &str| {
                        let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("a name");
                        let at = libc::dlsym(library, name.as_ptr());
                        assert!(!at.is_null(), "{name:?}");
                        at
                    };
                    Zlib {
                        $($name: std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(
                            function(concat!(stringify!($name), "\0")),
                        ),)*
                    }
                }
            })
        }

        /// Terse's.
        pub static OURS: Zlib = Zlib { $($name: terse_z::$name,)* };
    };
}

zlib! {
    fn zlibVersion() -> *const c_char;
    fn deflateInit2_(*mut z_stream, c_int, c_int, c_int, c_int, c_int, *const c_char, c_int) -> c_int;
    fn deflate(*mut z_stream, c_int) -> c_int;
    fn deflateSetDictionary(*mut z_stream, *const u8, c_uint) -> c_int;
    fn deflateEnd(*mut z_stream) -> c_int;
    fn inflateInit2_(*mut z_stream, c_int, *const c_char, c_int) -> c_int;
    fn inflate(*mut z_stream, c_int) -> c_int;
    fn inflateEnd(*mut z_stream) -> c_int;
    fn inflateBackInit_(*mut z_stream, c_int, *mut u8, *const c_char, c_int) -> c_int;
    fn inflateBack(*mut z_stream, Option<in_func>, *mut c_void, Option<out_func>, *mut c_void) -> c_int;
    fn inflateBackEnd(*mut z_stream) -> c_int;
    fn inflateReset(*mut z_stream) -> c_int;
    fn inflateReset2(*mut z_stream, c_int) -> c_int;
    fn inflatePrime(*mut z_stream, c_int, c_int) -> c_int;
    fn inflateSync(*mut z_stream) -> c_int;
    fn inflateSyncPoint(*mut z_stream) -> c_int;
    fn inflateMark(*const z_stream) -> c_long;
    fn inflateValidate(*mut z_stream, c_int) -> c_int;
    fn inflateCopy(*mut z_stream, *const z_stream) -> c_int;
    fn inflateSetDictionary(*mut z_stream, *const u8, c_uint) -> c_int;
    fn inflateGetDictionary(*const z_stream, *mut u8, *mut c_uint) -> c_int;
    fn inflateGetHeader(*mut z_stream, *mut gz_header) -> c_int;
    fn compressBound(c_ulong) -> c_ulong;
    fn compress2(*mut u8, *mut c_ulong, *const u8, c_ulong, c_int) -> c_int;
    fn uncompress(*mut u8, *mut c_ulong, *const u8, c_ulong) -> c_int;
    fn uncompress2(*mut u8, *mut c_ulong, *const u8, *mut c_ulong) -> c_int;
    fn gzdopen(c_int, *const c_char) -> gzFile;
    fn gzbuffer(gzFile, c_uint) -> c_int;
    fn gzread(gzFile, *mut c_void, c_uint) -> c_int;
    fn gzgetc(gzFile) -> c_int;
    fn gzungetc(c_int, gzFile) -> c_int;
    fn gzgets(gzFile, *mut c_char, c_int) -> *mut c_char;
    fn gzseek(gzFile, c_long, c_int) -> c_long;
    fn gztell(gzFile) -> c_long;
    fn gzeof(gzFile) -> c_int;
    fn gzdirect(gzFile) -> c_int;
    fn gzrewind(gzFile) -> c_int;
    fn gzerror(gzFile, *mut c_int) -> *const c_char;
    fn gzclearerr(gzFile) -> ();
    fn gzwrite(gzFile, *const c_void, c_uint) -> c_int;
    fn gzputc(gzFile, c_int) -> c_int;
    fn gzflush(gzFile, c_int) -> c_int;
    fn gzsetparams(gzFile, c_int, c_int) -> c_int;
    fn gzclose(gzFile) -> c_int;
}

/// A stream with zlib's own allocator.
pub fn stream() -> z_stream {
    z_stream { zalloc: None, zfree: None, ..z_stream::default() }
}

/// What the system's zlib makes of a whole stream: what comes out, and what it says at last. It stops there, where the stream wants a
/// dictionary or more input, or when so many bytes have come out.
pub fn read(window_bits: c_int, packed: &[u8], most: usize) -> (Vec<u8>, c_int, usize) {
    let (zlib, mut stream, mut out) = (theirs(), stream(), Vec::new());
    // SAFETY: a stream of this function's; input and room are as long as is said.
    unsafe {
        assert_eq!((zlib.inflateInit2_)(&mut stream, window_bits, (zlib.zlibVersion)(), size_of::<z_stream>() as c_int), 0);
        (stream.next_in, stream.avail_in) = (packed.as_ptr(), packed.len() as c_uint);
        let code = loop {
            let start = out.len();
            out.resize(start + 65_536, 0);
            (stream.next_out, stream.avail_out) = (out[start..].as_mut_ptr(), 65_536);
            let code = (zlib.inflate)(&mut stream, 0);
            out.truncate(start + 65_536 - stream.avail_out as usize);
            if code != 0 || out.len() > most {
                break code;
            }
        };
        let left = stream.avail_in as usize;
        (zlib.inflateEnd)(&mut stream);
        (out, code, left)
    }
}

/// A stream of the system's zlib, in pieces that are flushed.
pub fn write(window_bits: c_int, level: c_int, strategy: c_int, dictionary: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    let (zlib, mut stream) = (theirs(), stream());
    let length: usize = pieces.iter().map(|piece| piece.len() * 2 + 100).sum();
    let mut out = vec![0; length + 100];
    // SAFETY: a stream of this function's; input and room are as long as is said.
    unsafe {
        let version = (zlib.zlibVersion)();
        let size = size_of::<z_stream>() as c_int;
        assert_eq!((zlib.deflateInit2_)(&mut stream, level, 8, window_bits, 8, strategy, version, size), 0);
        if !dictionary.is_empty() && window_bits < 16 {
            assert_eq!((zlib.deflateSetDictionary)(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), 0);
        }
        (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), out.len() as c_uint);
        for piece in pieces {
            (stream.next_in, stream.avail_in) = (piece.as_ptr(), piece.len() as c_uint);
            (zlib.deflate)(&mut stream, 3);
        }
        assert_eq!((zlib.deflate)(&mut stream, 4), 1);
        (zlib.deflateEnd)(&mut stream);
    }
    out.truncate(stream.total_out as usize);
    out
}
