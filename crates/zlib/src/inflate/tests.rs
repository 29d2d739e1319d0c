use super::api::*;
use super::back::*;
use super::state;
use crate::ledger::{Ledger, give, take};
use libz_rs_sys::{
    Z_BLOCK, Z_BUF_ERROR, Z_DATA_ERROR, Z_FINISH, Z_NO_FLUSH, Z_OK, Z_STREAM_END, Z_STREAM_ERROR, Z_TREES, gz_header, z_stream,
    zlibVersion,
};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::size_of;

fn text() -> Vec<u8> {
    let mut state = 7u32;
    let mut line = |number| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("{number}: a window is filled, and more than one, {}\n", state >> 20)
    };
    (0..4000).flat_map(|number| line(number).into_bytes()).collect()
}

/// A stream of flate2's, with a head of its own for gzip.
fn packed(window_bits: c_int, text: &[u8]) -> Vec<u8> {
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use std::io::Write;
    let level = flate2::Compression::default();
    match window_bits {
        ..0 => {
            let mut coder = DeflateEncoder::new(Vec::new(), level);
            coder.write_all(text).unwrap();
            coder.finish().unwrap()
        }
        16.. => {
            let head =
                flate2::GzBuilder::new().filename("a name").comment("and a word on it").extra("four").mtime(77).operating_system(3);
            let mut coder = head.write(Vec::new(), level);
            coder.write_all(text).unwrap();
            coder.finish().unwrap()
        }
        _ => {
            let mut coder = ZlibEncoder::new(Vec::new(), level);
            coder.write_all(text).unwrap();
            coder.finish().unwrap()
        }
    }
}

/// A stream whose memory is counted.
fn stream(ledger: &mut Ledger, window_bits: c_int) -> Box<z_stream> {
    let mut stream =
        Box::new(z_stream { zalloc: Some(take), zfree: Some(give), opaque: (&raw mut *ledger).cast(), ..z_stream::default() });
    // SAFETY: a stream of the test's.
    let code = unsafe { inflateInit2_(&mut *stream, window_bits, zlibVersion(), size_of::<z_stream>() as c_int) };
    assert_eq!(code, Z_OK, "{window_bits}");
    stream
}

/// Makes a call with the rest of the input, and room.
fn step(stream: &mut z_stream, room: usize, flush: c_int) -> (c_int, Vec<u8>) {
    let mut out = vec![0; room];
    (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), room as c_uint);
    // SAFETY: room of the length in the stream, and input of the test's.
    let code = unsafe { inflate(stream, flush) };
    out.truncate(room - stream.avail_out as usize);
    (code, out)
}

fn feed(stream: &mut z_stream, bytes: &[u8]) {
    (stream.next_in, stream.avail_in) = (bytes.as_ptr(), bytes.len() as c_uint);
}

#[test]
fn memory_is_what_zlib_documents() {
    let text = text();
    for window_bits in [-15, -9, -8, 8, 9, 12, 15, 24, 31, 40, 47] {
        let mut ledger = Ledger::default();
        let mut stream = stream(&mut ledger, window_bits);
        assert_eq!((ledger.taken, ledger.blocks), (state::BYTES, 1), "{window_bits}");
        if matches!(window_bits, -15 | 15 | 31 | 47) {
            let packed = packed(window_bits, &text);
            feed(&mut stream, &packed);
            let mut back = Vec::new();
            while back.len() < text.len() {
                let (code, out) = step(&mut stream, 1000, Z_NO_FLUSH);
                assert!(matches!(code, Z_OK | Z_STREAM_END), "{code}");
                back.extend_from_slice(&out);
            }
            assert!(back == text);
            assert_eq!((ledger.taken, ledger.blocks), (state::BYTES + 32_768, 2), "{window_bits}");
        }
        let window = 1 << if window_bits < 0 { -window_bits } else { window_bits & 15 };
        assert!(ledger.taken <= window + 7160, "{window_bits}: {}", ledger.taken);
        // SAFETY: a stream of the test's.
        assert_eq!(unsafe { inflateEnd(&mut *stream) }, Z_OK);
        assert_eq!(ledger.blocks, 0);
    }
}

#[test]
fn one_call_needs_no_window() {
    let text = text();
    for window_bits in [-15, 15, 31] {
        let (mut ledger, packed) = (Ledger::default(), packed(window_bits, &text));
        let mut stream = stream(&mut ledger, window_bits);
        feed(&mut stream, &packed);
        let (code, out) = step(&mut stream, text.len(), Z_FINISH);
        assert_eq!((code, ledger.blocks), (Z_STREAM_END, 1));
        assert!(out == text);
        // SAFETY: a stream of the test's.
        assert_eq!(unsafe { inflateEnd(&mut *stream) }, Z_OK);
    }
}

#[test]
fn an_allocator_need_not_align() {
    unsafe extern "C" fn crooked(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
        // SAFETY: any size will do; the memory is as long as was asked for, and one byte more.
        unsafe { libc::malloc(items as usize * size as usize + 1).cast::<u8>().add(1).cast() }
    }
    unsafe extern "C" fn straight(_: *mut c_void, memory: *mut c_void) {
        // SAFETY: it came from `crooked`.
        unsafe { libc::free(memory.cast::<u8>().sub(1).cast()) }
    }
    let (text, mut stream) = (text(), z_stream { zalloc: Some(crooked), zfree: Some(straight), ..z_stream::default() });
    let packed = packed(15, &text);
    // SAFETY: a stream of the test's.
    unsafe { assert_eq!(inflateInit_(&mut stream, zlibVersion(), size_of::<z_stream>() as c_int), Z_OK) };
    feed(&mut stream, &packed);
    let (first, second) = (step(&mut stream, 70_000, Z_NO_FLUSH), step(&mut stream, text.len(), Z_NO_FLUSH));
    assert_eq!((first.0, second.0), (Z_OK, Z_STREAM_END));
    assert!([first.1, second.1].concat() == text);
    // SAFETY: a stream of the test's.
    assert_eq!(unsafe { inflateEnd(&mut stream) }, Z_OK);
}

#[test]
fn a_program_gets_the_head_as_it_has_room() {
    let packed = packed(31, b"text");
    let mut ledger = Ledger::default();
    let mut stream = stream(&mut ledger, 47);
    let (mut name, mut comment, mut extra) = ([9u8; 20], [9u8; 5], [9u8; 3]);
    let mut head = gz_header {
        name: name.as_mut_ptr(),
        name_max: 20,
        comment: comment.as_mut_ptr(),
        comm_max: 5,
        extra: extra.as_mut_ptr(),
        extra_max: 3,
        ..gz_header::default()
    };
    // SAFETY: a stream and a head of the test's.
    assert_eq!(unsafe { inflateGetHeader(&mut *stream, &mut head) }, Z_OK);
    // Byte by byte.
    let mut out = Vec::new();
    for byte in packed.chunks(1) {
        feed(&mut stream, byte);
        out.extend_from_slice(&step(&mut stream, 100, Z_NO_FLUSH).1);
    }
    assert_eq!(out, b"text");
    assert_eq!((head.done, head.time, head.os, head.extra_len, head.hcrc), (1, 77, 3, 4, 0));
    assert_eq!((&name[..7], &comment, &extra), (&b"a name\0"[..], b"and a", b"fou"));
    // SAFETY: a stream of the test's.
    assert_eq!(unsafe { inflateEnd(&mut *stream) }, Z_OK);
}

#[test]
fn what_is_wrong_is_said() {
    let text = b"some text, some text";
    let (zlib, gzip) = (packed(15, text), packed(31, text));
    let broken = |bytes: &[u8], place: usize, by: u8| {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= by;
        bytes
    };
    let cases: [(c_int, Vec<u8>, &CStr); 8] = [
        (15, broken(&zlib, 0, 0x40), c"incorrect header check"),
        (15, vec![0x77, 0x85], c"unknown compression method"),
        (12, zlib.clone(), c"invalid window size"),
        (31, broken(&gzip, 3, 0x80), c"unknown header flags set"),
        (15, broken(&zlib, zlib.len() - 1, 1), c"incorrect data check"),
        (31, broken(&gzip, gzip.len() - 8, 1), c"incorrect data check"),
        (31, broken(&gzip, gzip.len() - 1, 1), c"incorrect length check"),
        (-15, vec![7], c"invalid block type"),
    ];
    for (window_bits, bytes, message) in cases {
        let mut ledger = Ledger::default();
        let mut stream = stream(&mut ledger, window_bits);
        feed(&mut stream, &bytes);
        assert_eq!(step(&mut stream, 100, Z_NO_FLUSH).0, Z_DATA_ERROR, "{message:?}");
        // SAFETY: a message of the library's, and a stream of the test's.
        unsafe {
            assert_eq!(CStr::from_ptr(stream.msg), message);
            assert_eq!(step(&mut stream, 100, Z_NO_FLUSH).0, Z_DATA_ERROR, "still");
            assert_eq!(inflateEnd(&mut *stream), Z_OK);
        }
    }
}

#[test]
fn a_program_is_asked_between_blocks_and_behind_their_heads() {
    // A stored block of two bytes, and a last one of the fixed code, which is empty.
    let bytes = [0, 2, 0, 0xfd, 0xff, b'h', b'i', 3, 0];
    let mut ledger = Ledger::default();
    let mut stream = stream(&mut ledger, -15);
    feed(&mut stream, &bytes);
    let mut seen = Vec::new();
    loop {
        let (code, out) = step(&mut stream, 10, Z_TREES);
        seen.push((out.len(), stream.data_type & 0x1c0));
        if code == Z_STREAM_END {
            break;
        }
        assert_eq!(code, Z_OK);
    }
    assert_eq!(seen, [(0, 256), (2, 128), (0, 256 + 64), (0, 128 + 64), (0, 64)]);
    // SAFETY: a stream of the test's.
    unsafe {
        assert_eq!(inflateReset(&mut *stream), Z_OK);
        feed(&mut stream, &bytes);
        assert_eq!(step(&mut stream, 10, Z_BLOCK), (Z_OK, b"hi".to_vec()));
        assert_eq!(inflateEnd(&mut *stream), Z_OK);
    }
}

#[test]
fn a_stream_of_another_kind_is_none() {
    let mut ledger = Ledger::default();
    let mut one = stream(&mut ledger, 15);
    let mut copy = *one;
    // SAFETY: streams of the test's.
    unsafe {
        assert_eq!(crate::deflateEnd(&mut *one), Z_STREAM_ERROR);
        assert_eq!(inflateBackEnd(&mut *one), Z_STREAM_ERROR);
        assert_eq!(inflateEnd(&mut copy), Z_STREAM_ERROR, "its state belongs to another");
        assert_eq!(inflateEnd(&mut *one), Z_OK);
        assert_eq!(inflateEnd(&mut *one), Z_STREAM_ERROR);
        let mut two = z_stream { zalloc: None, zfree: None, ..z_stream::default() };
        assert_eq!(crate::deflateInit_(&mut two, 6, zlibVersion(), size_of::<z_stream>() as c_int), Z_OK);
        assert_eq!(inflateEnd(&mut two), Z_STREAM_ERROR);
        assert_eq!(crate::deflateEnd(&mut two), Z_OK);
    }
}

#[test]
fn a_window_is_as_large_as_its_memory() {
    let text = text();
    let packed = packed(15, &text);
    let whole = |stream: &mut z_stream| {
        feed(stream, &packed);
        let mut back = Vec::new();
        loop {
            let (code, out) = step(stream, 1000, Z_NO_FLUSH);
            back.extend_from_slice(&out);
            if code != Z_OK {
                return (code, back == text);
            }
        }
    };
    let mut ledger = Ledger::default();
    let mut stream = stream(&mut ledger, 0);
    // A window of 64 KB, which none is.
    feed(&mut stream, &[0x88, 0x1c]);
    assert_eq!(step(&mut stream, 10, Z_NO_FLUSH).0, Z_DATA_ERROR);
    // SAFETY: a stream of the test's.
    unsafe {
        assert_eq!(inflateReset(&mut *stream), Z_OK);
        assert_eq!(whole(&mut stream), (Z_STREAM_END, true));
        // A raw stream after a flush, before any head has given the size of the window; then a stream whose head does.
        assert_eq!(inflateReset2(&mut *stream, 0), Z_OK);
        feed(&mut stream, &[0, 0, 0xff, 0xff, 0x63, 4, 2, 0]);
        assert_eq!(inflateSync(&mut *stream), Z_OK);
        assert_eq!(step(&mut stream, 100, Z_NO_FLUSH), (Z_STREAM_END, vec![1; 4]));
        assert_eq!(inflateReset2(&mut *stream, 0), Z_OK);
        assert_eq!(whole(&mut stream), (Z_STREAM_END, true));
        assert_eq!(inflateEnd(&mut *stream), Z_OK);
    }
    assert_eq!(ledger.blocks, 0);
}

/// Input and output of `inflateBack`.
struct Ends<'a> {
    input: std::slice::Chunks<'a, u8>,
    out: Vec<u8>,
}

unsafe extern "C" fn more(ends: *mut c_void, piece: *mut *const u8) -> c_uint {
    // SAFETY: the test's ends, and a place for a pointer.
    unsafe {
        let Some(bytes) = (*ends.cast::<Ends>()).input.next() else { return 0 };
        *piece = bytes.as_ptr();
        bytes.len() as c_uint
    }
}

unsafe extern "C" fn put(ends: *mut c_void, bytes: *mut u8, count: c_uint) -> c_int {
    // SAFETY: the test's ends, and as many bytes as is said.
    unsafe { (*ends.cast::<Ends>()).out.extend_from_slice(std::slice::from_raw_parts(bytes, count as usize)) };
    0
}

#[test]
fn back_to_back() {
    let text = text();
    let packed = packed(-15, &text);
    let (mut ledger, mut window) = (Ledger::default(), vec![0; 32_768]);
    let mut stream = z_stream { zalloc: Some(take), zfree: Some(give), opaque: (&raw mut ledger).cast(), ..z_stream::default() };
    for (size, part) in [(1, packed.len()), (777, packed.len()), (1 << 20, packed.len()), (500, packed.len() - 1)] {
        let mut ends = Ends { input: packed[..part].chunks(size), out: Vec::new() };
        let both = (&raw mut ends).cast();
        // SAFETY: a stream and a window of the test's.
        unsafe {
            let size = size_of::<z_stream>() as c_int;
            assert_eq!(inflateBackInit_(&mut stream, 15, window.as_mut_ptr(), zlibVersion(), size), Z_OK);
            feed(&mut stream, &[]);
            let code = inflateBack(&mut stream, Some(more), both, Some(put), both);
            let is_whole = part == packed.len();
            assert_eq!(code, if is_whole { Z_STREAM_END } else { Z_BUF_ERROR });
            assert_eq!(stream.next_in.is_null(), !is_whole);
            assert_eq!(inflateBackEnd(&mut stream), Z_OK);
        }
        assert!(ends.out == text || part < packed.len());
        assert!(ledger.taken <= 7160);
        ledger.taken = 0;
    }
    assert_eq!(ledger.blocks, 0);
}
