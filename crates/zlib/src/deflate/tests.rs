use super::api::*;
use crate::ledger::{Ledger, give, take};
use libz_rs_sys::{
    Z_BLOCK, Z_BUF_ERROR, Z_DATA_ERROR, Z_FINISH, Z_FULL_FLUSH, Z_NO_FLUSH, Z_OK, Z_PARTIAL_FLUSH, Z_STREAM_END, Z_STREAM_ERROR,
    Z_SYNC_FLUSH, gz_header, inflate, inflateEnd, inflateInit2_, inflateSetDictionary, z_stream, zlibVersion,
};
use proptest::prelude::*;
use std::ffi::{c_int, c_uint};
use std::mem::size_of;
use std::ptr;

/// Parameters of a stream.
#[derive(Clone, Copy, Debug)]
struct Kind {
    level: c_int,
    window_bits: c_int,
    memory_level: c_int,
    strategy: c_int,
}

const PLAIN: Kind = Kind { level: 6, window_bits: 31, memory_level: 8, strategy: 0 };

/// A compressor.
struct Packer {
    stream: Box<z_stream>,
    ledger: Box<Ledger>,
    out: Vec<u8>,
}

impl Packer {
    fn new(kind: Kind) -> Packer {
        let mut ledger = Box::<Ledger>::default();
        let mut stream =
            Box::new(z_stream { zalloc: Some(take), zfree: Some(give), opaque: (&raw mut *ledger).cast(), ..z_stream::default() });
        let Kind { level, window_bits, memory_level, strategy } = kind;
        // SAFETY: a stream of the test's.
        let code = unsafe {
            let size = size_of::<z_stream>() as c_int;
            deflateInit2_(&mut *stream, level, 8, window_bits, memory_level, strategy, zlibVersion(), size)
        };
        assert_eq!(code, Z_OK, "{kind:?}");
        let documented = (1 << (window_bits.abs() % 16).max(9)) * 4 + (1 << (memory_level + 9)) + 6144;
        assert!(ledger.taken <= documented && ledger.blocks == 1, "{kind:?}: {}", ledger.taken);
        Packer { stream, ledger, out: Vec::new() }
    }

    /// Makes a call, with so much room.
    fn call(&mut self, input: &[u8], room: usize, flush: c_int) -> (c_int, usize) {
        let start = self.out.len();
        self.out.resize(start + room, 0xaa);
        self.stream.next_in = input.as_ptr();
        self.stream.avail_in = input.len() as c_uint;
        self.stream.next_out = self.out[start..].as_mut_ptr();
        self.stream.avail_out = room as c_uint;
        // SAFETY: input and room have the lengths in the stream.
        let code = unsafe { deflate(&mut *self.stream, flush) };
        self.out.truncate(start + room - self.stream.avail_out as usize);
        (code, input.len() - self.stream.avail_in as usize)
    }

    /// Calls until all input is taken and the flush is done.
    fn push(&mut self, mut input: &[u8], room: usize, flush: c_int) {
        for _ in 0..1_000_000 {
            let (code, taken) = self.call(input, room, flush);
            input = &input[taken..];
            let has_room = self.stream.avail_out > 0;
            match code {
                Z_STREAM_END => return assert!(input.is_empty() && flush == Z_FINISH),
                Z_OK if input.is_empty() && flush != Z_FINISH && has_room => return,
                Z_BUF_ERROR if input.is_empty() && flush != Z_FINISH => return,
                Z_OK => {}
                _ => panic!("{code} with {} bytes left", input.len()),
            }
        }
        panic!("it never ends");
    }

    fn end(mut self) -> Vec<u8> {
        // SAFETY: a stream of the test's.
        assert_eq!(unsafe { deflateEnd(&mut *self.stream) }, Z_OK);
        assert_eq!(self.ledger.blocks, 0, "memory is given back");
        std::mem::take(&mut self.out)
    }
}

/// Decompresses by zlib-rs, with the announced window; returns the output, and the last code.
fn unpack(window_bits: c_int, packed: &[u8], dictionary: &[u8]) -> (Vec<u8>, c_int) {
    let mut stream = z_stream::default();
    let mut out = Vec::new();
    // SAFETY: a stream of the test's; input and room have the lengths in the stream.
    unsafe {
        assert_eq!(inflateInit2_(&mut stream, window_bits, zlibVersion(), size_of::<z_stream>() as c_int), Z_OK);
        if window_bits < 0 && !dictionary.is_empty() {
            assert_eq!(inflateSetDictionary(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), Z_OK);
        }
        stream.next_in = packed.as_ptr();
        stream.avail_in = packed.len() as c_uint;
        let code = loop {
            let start = out.len();
            out.resize(start + 65_536, 0);
            stream.next_out = out[start..].as_mut_ptr();
            stream.avail_out = 65_536;
            let code = inflate(&mut stream, Z_NO_FLUSH);
            out.truncate(start + 65_536 - stream.avail_out as usize);
            match code {
                Z_OK => {}
                2 => assert_eq!(inflateSetDictionary(&mut stream, dictionary.as_ptr(), dictionary.len() as c_uint), Z_OK),
                code => break code,
            }
        };
        inflateEnd(&mut stream);
        (out, code)
    }
}

fn body(length: usize) -> Vec<u8> {
    let mut state = 99u32;
    (0..length)
        .map(|at| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if (at / 30_000) % 3 == 2 { (state >> 24) as u8 } else { b"function(a,b){return a+b;} var x"[(state >> 27) as usize] }
        })
        .collect()
}

/// Call of a random program.
#[derive(Clone, Debug)]
enum Act {
    Push { bytes: usize, room: usize, flush: c_int },
    Params { level: c_int, strategy: c_int },
}

fn act() -> impl Strategy<Value = Act> {
    let flush = prop_oneof![
        6 => Just(Z_NO_FLUSH),
        1 => Just(Z_PARTIAL_FLUSH),
        2 => Just(Z_SYNC_FLUSH),
        1 => Just(Z_FULL_FLUSH),
        1 => Just(Z_BLOCK)
    ];
    prop_oneof![
        8 => (prop_oneof![0..50usize, 0..5000usize, 0..400_000usize], prop_oneof![1..40usize, 1000..300_000usize], flush)
            .prop_map(|(bytes, room, flush)| Act::Push { bytes, room, flush }),
        1 => (0..=9, 0..=4).prop_map(|(level, strategy)| Act::Params { level, strategy })
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let bits = prop_oneof![Just(31), Just(15), Just(-15), 9..=15, -15..=-9, 25..=31];
    (0..=9, bits, 1..=9, prop_oneof![4 => Just(0), 1 => 0..=4]).prop_map(|(level, window_bits, memory_level, strategy)| Kind {
        level,
        window_bits,
        memory_level,
        strategy,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_program_s_stream_comes_back(kind in kind(), acts in prop::collection::vec(act(), 0..12), last_room in 1..5000usize) {
        let text = body(1_000_000);
        let mut packer = Packer::new(kind);
        let mut at = 0;
        for act in acts {
            match act {
                Act::Push { bytes, room, flush } => {
                    let end = (at + bytes).min(text.len());
                    packer.push(&text[at..end], room, flush);
                    at = end;
                    if matches!(flush, Z_SYNC_FLUSH | Z_FULL_FLUSH) {
                        let seen = unpack(kind.window_bits, &packer.out, &[]).0;
                        prop_assert!(seen == text[..at], "what was flushed can be read");
                    }
                }
                Act::Params { level, strategy } => loop {
                    let (start, room) = (packer.out.len(), 3000);
                    packer.out.resize(start + room, 0);
                    packer.stream.avail_in = 0;
                    packer.stream.next_out = packer.out[start..].as_mut_ptr();
                    packer.stream.avail_out = room as c_uint;
                    // SAFETY: there is so much room.
                    let code = unsafe { deflateParams(&mut *packer.stream, level, strategy) };
                    packer.out.truncate(start + room - packer.stream.avail_out as usize);
                    match code {
                        Z_OK => break,
                        code => prop_assert_eq!(code, Z_BUF_ERROR),
                    }
                },
            }
        }
        packer.push(&[], last_room, Z_FINISH);
        prop_assert_eq!(packer.stream.total_in as usize, at);
        prop_assert_eq!(packer.stream.total_out as usize, packer.out.len());
        let packed = packer.end();
        let (out, code) = unpack(kind.window_bits, &packed, &[]);
        prop_assert_eq!(code, Z_STREAM_END);
        prop_assert!(out == text[..at]);
    }

    #[test]
    fn one_call_with_the_bound_is_enough(kind in kind(), length in prop_oneof![0..300usize, 0..700_000usize], seed: u32, gather: bool) {
        let mut state = seed;
        let noise: Vec<u8> = (0..length).map(|_| { state = state.wrapping_mul(1_664_525).wrapping_add(1); (state >> 24) as u8 }).collect();
        let mut packer = Packer::new(kind);
        // SAFETY: a stream of the test's.
        let bound = unsafe { deflateBound(&mut *packer.stream, length as _) } as usize;
        if gather {
            // As nginx does: first all input, then the end.
            packer.push(&noise, bound, Z_NO_FLUSH);
            let left = bound - packer.out.len();
            prop_assert_eq!(packer.call(&[], left, Z_FINISH).0, Z_STREAM_END);
        } else {
            prop_assert_eq!(packer.call(&noise, bound, Z_FINISH), (Z_STREAM_END, length));
        }
        let packed = packer.end();
        prop_assert!(unpack(kind.window_bits, &packed, &[]).0 == noise);
    }
}

#[test]
fn a_page_is_no_larger_than_zlib_s_and_comes_in_small_rooms() {
    let text = body(131_882);
    let mut packer = Packer::new(PLAIN);
    for piece in text.chunks(32_768) {
        assert_eq!(packer.call(piece, 4096, Z_NO_FLUSH), (Z_OK, piece.len()));
    }
    packer.push(&[], 4096, Z_FINISH);
    let packed = packer.end();
    assert!(unpack(31, &packed, &[]).0 == text);
    let mut theirs = vec![0; text.len()];
    let config = zlib_rs::DeflateConfig { level: 6, window_bits: 31, ..zlib_rs::DeflateConfig::default() };
    let theirs = zlib_rs::compress_slice(&mut theirs, &text, config).0.len();
    assert!(packed.len() <= theirs, "{} {theirs}", packed.len());
}

#[test]
fn dictionaries_are_used_and_named() {
    let (dictionary, text) = (body(3000), &body(3000)[500..2500]);
    for (window_bits, limit) in [(15, 60), (-15, 50)] {
        let mut packer = Packer::new(Kind { window_bits, ..PLAIN });
        // SAFETY: a stream and bytes of the test's.
        let code = unsafe { deflateSetDictionary(&mut *packer.stream, dictionary.as_ptr(), dictionary.len() as c_uint) };
        assert_eq!(code, Z_OK);
        if window_bits > 0 {
            assert_eq!(packer.stream.adler as u32, zlib_rs::adler32::adler32(1, &dictionary));
        }
        packer.push(text, 100, Z_FINISH);
        let packed = packer.end();
        assert!(packed.len() < limit, "{}", packed.len());
        assert!(unpack(window_bits, &packed, &dictionary).0 == text);
    }
    let mut packer = Packer::new(Kind { window_bits: 15, ..PLAIN });
    // SAFETY: a stream and bytes of the test's.
    assert_eq!(unsafe { deflateSetDictionary(&mut *packer.stream, dictionary.as_ptr(), 0) }, Z_OK);
    assert_eq!(packer.stream.adler, 1);
    packer.push(text, 100, Z_FINISH);
    let packed = packer.end();
    assert_eq!(packed[1] & 0x20, 0, "an empty one is not asked for");
    assert!(unpack(15, &packed, &[]).0 == text);
    let mut packer = Packer::new(PLAIN);
    // SAFETY: a stream and bytes of the test's.
    unsafe {
        assert_eq!(deflateSetDictionary(&mut *packer.stream, dictionary.as_ptr(), 10), Z_STREAM_ERROR, "gzip has none");
        deflateEnd(&mut *packer.stream);
    }
}

#[test]
fn heads_are_the_program_s() {
    let (name, comment, extra) = (c"a name", c"a comment", [1u8, 2, 3]);
    let mut head = gz_header {
        text: 1,
        time: 12345,
        os: 7,
        extra: extra.as_ptr().cast_mut(),
        extra_len: 3,
        name: name.as_ptr().cast_mut().cast(),
        comment: comment.as_ptr().cast_mut().cast(),
        hcrc: 1,
        ..gz_header::default()
    };
    for room in [1, 1000] {
        let mut packer = Packer::new(PLAIN);
        // SAFETY: the head outlives the stream.
        assert_eq!(unsafe { deflateSetHeader(&mut *packer.stream, &mut head) }, Z_OK);
        packer.push(b"hello", room, Z_FINISH);
        let packed = packer.end();
        assert_eq!(&packed[..10], &[0x1f, 0x8b, 8, 0x1f, 0x39, 0x30, 0, 0, 0, 7]);
        assert_eq!(&packed[10..32], b"\x03\0\x01\x02\x03a name\0a comment\0");
        assert_eq!(unpack(31, &packed, &[]), (b"hello".to_vec(), Z_STREAM_END));
    }
}

#[test]
fn bits_before_the_stream_stay_before_it() {
    for (bits, value) in [(0, 0), (3, 0b010), (8, 0x55), (11, 0x123), (16, 0xffff)] {
        let mut packer = Packer::new(Kind { window_bits: -15, ..PLAIN });
        // SAFETY: a stream of the test's.
        assert_eq!(unsafe { deflatePrime(&mut *packer.stream, bits, value) }, Z_OK);
        packer.push(b"hello hello hello", 100, Z_FINISH);
        let packed = packer.end();
        // The same bits are taken away before the rest is read.
        let mut stream = z_stream::default();
        let mut out = [0u8; 64];
        let skipped = bits as usize / 8;
        // SAFETY: a stream and buffers of the test's.
        let code = unsafe {
            inflateInit2_(&mut stream, -15, zlibVersion(), size_of::<z_stream>() as c_int);
            if bits % 8 > 0 {
                libz_rs_sys::inflatePrime(&mut stream, 8 - bits % 8, i32::from(packed[skipped]) >> (bits % 8));
            }
            let from = skipped + usize::from(bits % 8 > 0);
            (stream.next_in, stream.avail_in) = (packed[from..].as_ptr(), (packed.len() - from) as c_uint);
            (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), out.len() as c_uint);
            let code = inflate(&mut stream, Z_FINISH);
            inflateEnd(&mut stream);
            code
        };
        assert_eq!((code, &out[..stream.total_out as usize]), (Z_STREAM_END, &b"hello hello hello"[..]), "{bits}");
        let first = u32::from(packed[0]) | u32::from(packed[1]) << 8;
        assert_eq!(first & ((1 << bits) - 1), value as u32, "{bits}");
    }
}

#[test]
fn a_copy_goes_its_own_way() {
    let text = body(50_000);
    let mut one = Packer::new(PLAIN);
    one.push(&text[..20_000], 1000, Z_NO_FLUSH);
    let mut two = Packer { stream: Box::default(), ledger: Box::default(), out: one.out.clone() };
    // SAFETY: streams of the test's.
    assert_eq!(unsafe { deflateCopy(&mut *two.stream, &mut *one.stream) }, Z_OK);
    one.push(&text[20_000..], 1000, Z_FINISH);
    two.push(b"another end", 1000, Z_FINISH);
    assert!(unpack(31, &one.out, &[]).0 == text);
    assert!(unpack(31, &two.out, &[]).0 == [&text[..20_000], b"another end"].concat());
    // SAFETY: the same.
    unsafe {
        assert_eq!(deflateEnd(&mut *two.stream), Z_OK);
        // A stream's state is not another's.
        let mut stray = *one.stream;
        assert_eq!(deflate(&mut stray, Z_FINISH), Z_STREAM_ERROR);
    }
    one.end();
}

#[test]
fn calls_that_can_do_nothing_say_so() {
    let mut packer = Packer::new(PLAIN);
    assert_eq!(packer.call(b"", 0, Z_FINISH).0, Z_BUF_ERROR);
    assert_eq!(packer.call(b"abc", 1000, 9).0, Z_STREAM_ERROR);
    assert_eq!(packer.call(b"abc", 1000, Z_SYNC_FLUSH), (Z_OK, 3));
    let length = packer.out.len();
    assert_eq!(packer.call(b"", 1000, Z_SYNC_FLUSH).0, Z_BUF_ERROR, "the same flush again");
    assert_eq!(packer.out.len(), length);
    assert_eq!(packer.call(b"", 1000, Z_FINISH).0, Z_STREAM_END);
    assert_eq!(packer.call(b"", 1000, Z_FINISH).0, Z_STREAM_END, "it stays ended");
    assert_eq!(packer.call(b"abc", 1000, Z_FINISH).0, Z_BUF_ERROR);
    assert_eq!(packer.call(b"abc", 1000, Z_NO_FLUSH).0, Z_STREAM_ERROR);
    // SAFETY: a stream of the test's.
    unsafe {
        assert_eq!(deflateReset(&mut *packer.stream), Z_OK);
        packer.call(b"abc", 1000, Z_NO_FLUSH);
        assert_eq!(deflateEnd(&mut *packer.stream), Z_DATA_ERROR, "a stream that is cut off");
        assert_eq!(deflateEnd(&mut *packer.stream), Z_STREAM_ERROR);
        assert_eq!(deflate(ptr::null_mut(), Z_FINISH), Z_STREAM_ERROR);
        let mut stream = z_stream::default();
        let version = zlibVersion();
        let size = size_of::<z_stream>() as c_int;
        for (level, bits, memory, strategy) in
            [(10, 15, 8, 0), (6, 16, 8, 0), (6, 7, 8, 0), (6, 15, 0, 0), (6, 15, 8, 5), (6, i32::MIN, 8, 0)]
        {
            assert_eq!(deflateInit2_(&mut stream, level, 8, bits, memory, strategy, version, size), Z_STREAM_ERROR);
        }
        assert_eq!(deflateInit2_(&mut stream, 6, 8, 15, 8, 0, c"2".as_ptr(), size), libz_rs_sys::Z_VERSION_ERROR);
    }
}

#[test]
fn whole_bodies_fit_where_zlib_says() {
    for length in [0, 1, 100, 70_000, 2_500_000] {
        let mut state = 5u32;
        let noise: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1);
                (state >> 24) as u8
            })
            .collect();
        for body in [&noise, &body(length)] {
            for level in [0, 1, 6, 9] {
                let mut out = vec![0; libz_rs_sys::compressBound(length as _) as usize];
                let mut given = out.len() as _;
                // SAFETY: buffers of the test's.
                let code = unsafe { crate::compress2(out.as_mut_ptr(), &mut given, body.as_ptr(), length as _, level) };
                assert_eq!(code, Z_OK, "{length} {level}");
                assert!(unpack(15, &out[..given as usize], &[]).0 == *body);
                let mut short = given - 1;
                // SAFETY: the same.
                let code = unsafe { crate::compress2(out.as_mut_ptr(), &mut short, body.as_ptr(), length as _, level) };
                assert_eq!(code, Z_BUF_ERROR);
            }
        }
    }
}
