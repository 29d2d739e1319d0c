//! Programs that use zlib's API: any sequence of calls makes a stream that the system's own zlib reads back, and ends without a panic,
//! within the memory that zlib documents.
#![no_main]

use libfuzzer_sys::fuzz_target;
use libz_rs_sys::z_stream;
use std::ffi::{c_char, c_int, c_uint};
use std::mem::{size_of, transmute};
use std::sync::OnceLock;
use terse_z::{
    deflate, deflateBound, deflateCopy, deflateEnd, deflateInit2_, deflateParams, deflateReset, deflateSetDictionary, zlibVersion,
};

type Init = unsafe extern "C" fn(*mut z_stream, c_int, *const c_char, c_int) -> c_int;
type Run = unsafe extern "C" fn(*mut z_stream, c_int) -> c_int;
type SetDictionary = unsafe extern "C" fn(*mut z_stream, *const u8, c_uint) -> c_int;
type End = unsafe extern "C" fn(*mut z_stream) -> c_int;

/// The decompressor of the system's zlib.
struct System {
    init: Init,
    run: Run,
    set_dictionary: SetDictionary,
    end: End,
}

fn system() -> &'static System {
    static SYSTEM: OnceLock<System> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        // SAFETY: zlib, and functions of it with the types that they have.
        unsafe {
            let library = libc::dlopen(c"libz.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND);
            assert!(!library.is_null(), "the system has no zlib");
            let function = |name: &std::ffi::CStr| {
                let at = libc::dlsym(library, name.as_ptr());
                assert!(!at.is_null());
                at
            };
            System {
                init: transmute::<*mut libc::c_void, Init>(function(c"inflateInit2_")),
                run: transmute::<*mut libc::c_void, Run>(function(c"inflate")),
                set_dictionary: transmute::<*mut libc::c_void, SetDictionary>(function(c"inflateSetDictionary")),
                end: transmute::<*mut libc::c_void, End>(function(c"inflateEnd")),
            }
        }
    })
}

/// What the system's zlib makes of a stream.
fn read_back(window_bits: c_int, packed: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let zlib = system();
    let mut stream = z_stream { zalloc: None, zfree: None, ..z_stream::default() };
    let mut out = Vec::new();
    // SAFETY: buffers are as long as is said.
    unsafe {
        assert_eq!((zlib.init)(&mut stream, window_bits, zlibVersion(), size_of::<z_stream>() as c_int), 0);
        if window_bits < 0 && !dictionary.is_empty() {
            assert_eq!((zlib.set_dictionary)(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), 0);
        }
        (stream.next_in, stream.avail_in) = (packed.as_ptr(), packed.len() as c_uint);
        loop {
            let start = out.len();
            out.resize(start + 65_536, 0);
            (stream.next_out, stream.avail_out) = (out[start..].as_mut_ptr(), 65_536);
            let code = (zlib.run)(&mut stream, 0);
            out.truncate(start + 65_536 - stream.avail_out as usize);
            match code {
                0 => {}
                1 => break,
                2 => assert_eq!((zlib.set_dictionary)(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), 0),
                code => panic!("zlib says {code} behind {} bytes", out.len()),
            }
        }
        assert_eq!(stream.avail_in, 0);
        (zlib.end)(&mut stream);
    }
    out
}

fuzz_target!(|bytes: &[u8]| {
    let [head @ .., _] = bytes else { return };
    let Some((setup, acts)) = head.split_at_checked(4) else { return };
    let level = c_int::from(setup[0] % 10);
    let bits = 9 + c_int::from(setup[1] % 7);
    let window_bits = [bits, -bits, bits + 16][usize::from(setup[1] / 7 % 3)];
    let (memory, strategy) = (1 + c_int::from(setup[2] % 9), c_int::from(setup[3] % 5));
    let text: Vec<u8> = acts.iter().cycle().take(if acts.is_empty() { 0 } else { 300_000 }).copied().collect();
    let mut stream = z_stream { zalloc: None, zfree: None, ..z_stream::default() };
    let (mut at, mut out) = (0, Vec::new());
    // SAFETY: a stream and buffers of this function's.
    unsafe {
        let size = size_of::<z_stream>() as c_int;
        assert_eq!(deflateInit2_(&mut stream, level, 8, window_bits, memory, strategy, zlibVersion(), size), 0);
        let mut dictionary: &[u8] = &[];
        if setup[0] & 0x80 != 0 && window_bits < 16 {
            dictionary = &text[..text.len().min(500)];
            if !dictionary.is_empty() {
                assert_eq!(deflateSetDictionary(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), 0);
            }
        }
        for act in acts.chunks_exact(3).take(40) {
            let count = (usize::from(act[1]) << (act[0] & 7)).min(text.len() - at);
            let room = 1 + (usize::from(act[2]) << (act[0] >> 3 & 7));
            let flush = [0, 0, 0, 1, 2, 3, 5, 0][usize::from(act[0] >> 5)];
            let start = out.len();
            out.resize(start + room, 0);
            (stream.next_in, stream.avail_in) = (text[at..].as_ptr(), count as c_uint);
            (stream.next_out, stream.avail_out) = (out[start..].as_mut_ptr(), room as c_uint);
            let code = if act[2] == 255 {
                deflateParams(&mut stream, c_int::from(act[1] % 10), c_int::from(act[0] % 5))
            } else {
                deflate(&mut stream, flush)
            };
            assert!(matches!(code, 0 | -5), "{code}");
            out.truncate(start + room - stream.avail_out as usize);
            at += count - stream.avail_in as usize;
            if act[1] == 254 {
                let mut copy = z_stream::default();
                assert_eq!(deflateCopy(&mut copy, &mut stream), 0);
                deflateEnd(&mut stream);
                // The copy takes the stream's place, at its own address.
                stream = z_stream::default();
                assert_eq!(deflateCopy(&mut stream, &mut copy), 0);
                deflateEnd(&mut copy);
            }
        }
        loop {
            let start = out.len();
            out.resize(start + 1000, 0);
            stream.avail_in = 0;
            (stream.next_out, stream.avail_out) = (out[start..].as_mut_ptr(), 1000);
            let code = deflate(&mut stream, 4);
            out.truncate(start + 1000 - stream.avail_out as usize);
            match code {
                0 => assert_eq!(stream.avail_out, 0),
                code => break assert_eq!(code, 1),
            }
        }
        assert!(read_back(window_bits, &out, dictionary) == text[..at]);
        // Once more, in one call.
        assert_eq!(deflateReset(&mut stream), 0);
        let bound = deflateBound(&mut stream, text.len() as _) as usize;
        out.clear();
        out.resize(bound, 0);
        (stream.next_in, stream.avail_in) = (text.as_ptr(), text.len() as c_uint);
        (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), bound as c_uint);
        assert_eq!(deflate(&mut stream, 4), 1);
        out.truncate(bound - stream.avail_out as usize);
        assert!(read_back(window_bits, &out, &[]) == text);
        assert_eq!(deflateEnd(&mut stream), 0);
    }
});
