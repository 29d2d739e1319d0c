//! Programs that use zlib's API: any sequence of calls makes a stream that the system's own zlib reads back, and ends without a panic,
//! within the memory that zlib documents.
#![no_main]

mod system;

use libfuzzer_sys::fuzz_target;
use libz_rs_sys::{gz_header, z_stream};
use std::ffi::{c_int, c_uint};
use std::ptr;
use terse_z::{
    deflate, deflateBound, deflateCopy, deflateEnd, deflateGetDictionary, deflateInit2_, deflateParams, deflatePending,
    deflatePrime, deflateReset, deflateResetKeep, deflateSetDictionary, deflateSetHeader, deflateTune, zlibVersion,
};

/// What the system's zlib makes of a stream that begins behind so many bits.
fn read_back(window_bits: c_int, packed: &[u8], bits: usize, dictionary: &[u8]) -> Vec<u8> {
    let (zlib, mut stream, mut out) = (system::theirs(), system::stream(), Vec::new());
    // SAFETY: buffers are as long as is said.
    unsafe {
        assert_eq!((zlib.inflateInit2_)(&mut stream, window_bits, (zlib.zlibVersion)(), size_of::<z_stream>() as c_int), 0);
        if window_bits < 0 && !dictionary.is_empty() {
            assert_eq!((zlib.inflateSetDictionary)(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), 0);
        }
        if bits % 8 > 0 {
            let value = c_int::from(packed[bits / 8]) >> (bits % 8);
            assert_eq!((zlib.inflatePrime)(&mut stream, 8 - (bits % 8) as c_int, value), 0);
        }
        let packed = &packed[bits.div_ceil(8)..];
        (stream.next_in, stream.avail_in) = (packed.as_ptr(), packed.len() as c_uint);
        loop {
            let start = out.len();
            out.resize(start + 65_536, 0);
            (stream.next_out, stream.avail_out) = (out[start..].as_mut_ptr(), 65_536);
            let code = (zlib.inflate)(&mut stream, 0);
            out.truncate(start + 65_536 - stream.avail_out as usize);
            match code {
                0 => {}
                1 => break,
                2 => assert_eq!((zlib.inflateSetDictionary)(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), 0),
                code => panic!("zlib says {code} behind {} bytes", out.len()),
            }
        }
        assert_eq!(stream.avail_in, 0);
        (zlib.inflateEnd)(&mut stream);
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
    let mut stream = system::stream();
    let (mut at, mut out) = (0, Vec::new());
    // gzip's fields, each there or not.
    let field = |mask: u8, bytes: &'static [u8]| if setup[1] & mask == 0 { ptr::null_mut() } else { bytes.as_ptr().cast_mut() };
    let mut head = gz_header {
        text: c_int::from(setup[3] & 1),
        time: text.len() as _,
        os: 3,
        extra: field(0x80, b"ab"),
        extra_len: 2,
        name: field(0x40, b"a name\0"),
        comment: field(0x20, b"a comment\0"),
        hcrc: c_int::from(setup[3] >> 1 & 1),
        ..gz_header::default()
    };
    let mut bits = 0;
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
        if window_bits > 16 && setup[0] & 0x40 != 0 {
            assert_eq!(deflateSetHeader(&mut stream, &mut head), 0);
        }
        if window_bits < 0 && setup[0] & 0x40 != 0 {
            bits = usize::from(setup[3] >> 4);
            assert_eq!(deflatePrime(&mut stream, bits as c_int, c_int::from(setup[2]) << 3), 0);
        }
        for act in acts.chunks_exact(3).take(40) {
            match act[1] {
                // Bits that are a block, an empty one: wherever they are taken, they change nothing.
                // Within a head they would be in its place.
                253 if window_bits < 0 => assert!(matches!(deflatePrime(&mut stream, 10, 2), 0 | -5)),
                252 => assert_eq!(deflateTune(&mut stream, 4, 5, c_int::from(act[2]), 8), 0),
                251 => {
                    let (mut pending, mut some) = (0, 0);
                    assert_eq!(deflatePending(&mut stream, &mut pending, &mut some), 0);
                    let (mut window, mut length) = (vec![0u8; 32_768], 0);
                    assert_eq!(deflateGetDictionary(&stream, window.as_mut_ptr(), &mut length), 0);
                    let given = [dictionary, &text[..at]].concat();
                    assert!(given.ends_with(&window[..length as usize]));
                }
                _ => {}
            }
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
        assert!(read_back(window_bits, &out, bits, dictionary) == text[..at]);
        // Once more, in one call.
        let code = if setup[2] & 0x80 == 0 { deflateReset(&mut stream) } else { deflateResetKeep(&mut stream) };
        assert_eq!(code, 0);
        let bound = deflateBound(&mut stream, text.len() as _) as usize;
        out.clear();
        out.resize(bound, 0);
        (stream.next_in, stream.avail_in) = (text.as_ptr(), text.len() as c_uint);
        (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), bound as c_uint);
        assert_eq!(deflate(&mut stream, 4), 1);
        out.truncate(bound - stream.avail_out as usize);
        assert!(read_back(window_bits, &out, 0, &[]) == text);
        assert_eq!(deflateEnd(&mut stream), 0);
    }
});
