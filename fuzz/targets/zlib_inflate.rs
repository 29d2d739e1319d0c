//! The decompressing half of zlib's API: whatever is called and whatever comes, it says and does what the system's zlib does.
#![no_main]

mod system;

use libfuzzer_sys::fuzz_target;
use libz_rs_sys::{gz_header, gzFile, z_stream};
use std::ffi::{CStr, c_int, c_long, c_uint, c_ulong, c_void};
use std::fmt::Debug;
use system::{OURS, Zlib, theirs};

fuzz_target!(|script: &[u8]| {
    let Some((&[kind, ..], _)) = script.split_first_chunk::<1>() else { return };
    match kind % 4 {
        _ if kind >= 0xf0 => back(&script[1..]),
        0 | 1 => streams(&script[1..]),
        2 => whole(&script[1..]),
        _ => files(&script[1..]),
    }
});

/// What is decompressed: something sound from the script, mostly, with an edit or two.
fn packed(window_bits: c_int, setup: [u8; 4], script: &[u8]) -> (Vec<u8>, Vec<u8>) {
    if setup[0] & 1 != 0 {
        return (script.to_vec(), script[..script.len().min(300)].to_vec());
    }
    let text = script.repeat(1 + usize::from(setup[0] >> 1 & 31));
    let dictionary = if setup[0] & 0x80 != 0 { &script[..script.len().min(300)] } else { &[] };
    let pieces: Vec<&[u8]> = text.chunks(text.len() / (1 + usize::from(setup[1] & 3)) + 1).collect();
    let bits = match window_bits {
        0 => 15,
        47 => 31,
        8 | 40 => 9,
        -8 => -9,
        24 => 25,
        bits => bits,
    };
    let mut packed = system::write(bits, c_int::from(setup[1] >> 2) % 10, c_int::from(setup[2] % 5), dictionary, &pieces);
    let place = packed.len() * usize::from(setup[3]) / 256;
    match setup[2] >> 5 {
        0 => packed[place] ^= 1 << (setup[3] & 7),
        1 => packed.truncate(place),
        2 => packed.insert(place, setup[3]),
        3 => drop(packed.drain(place..(place + 20).min(packed.len()))),
        4 => packed.extend_from_slice(&packed.clone()),
        _ => {}
    }
    (packed, dictionary.to_vec())
}

/// One zlib with a stream.
struct Side {
    zlib: &'static Zlib,
    stream: Box<z_stream>,
    head: Box<gz_header>,
    /// Where the head's fields go.
    fields: Box<[[u8; 40]; 3]>,
    out: Vec<u8>,
    window_bits: c_int,
}

impl Side {
    fn new(zlib: &'static Zlib, window_bits: c_int) -> Side {
        let mut side = Side {
            zlib,
            stream: Box::new(system::stream()),
            head: Box::default(),
            fields: Box::new([[0; 40]; 3]),
            out: Vec::new(),
            window_bits,
        };
        // SAFETY: a stream of this type's, which does not move.
        let code =
            unsafe { (zlib.inflateInit2_)(&mut *side.stream, window_bits, (zlib.zlibVersion)(), size_of::<z_stream>() as c_int) };
        assert_eq!(code, 0);
        side
    }

    /// A call of `inflate`.
    fn inflate(&mut self, input: &[u8], room: usize, flush: c_int) -> c_int {
        self.out = vec![0xaa; room];
        (self.stream.next_in, self.stream.avail_in) = (input.as_ptr(), input.len() as c_uint);
        (self.stream.next_out, self.stream.avail_out) = (self.out.as_mut_ptr(), room as c_uint);
        let taken = self.stream.total_in;
        // SAFETY: input and room are as long as is said.
        let code = unsafe { (self.zlib.inflate)(&mut *self.stream, flush) };
        if code == 2 {
            // zlib forgets to count what it took, and to say where it stands.
            self.stream.data_type = 0;
            self.stream.total_in = taken + (input.len() - self.stream.avail_in as usize) as c_ulong;
        }
        self.out.truncate(room - self.stream.avail_out as usize);
        code
    }

    /// What a program can see of the stream.
    fn state(&self) -> (c_uint, c_ulong, c_ulong, c_int, c_ulong) {
        let stream = &*self.stream;
        (stream.avail_in, stream.total_in, stream.total_out, stream.data_type, stream.adler)
    }

    fn mark(&self) -> c_long {
        // SAFETY: a stream of the side's.
        unsafe { (self.zlib.inflateMark)(&*self.stream) }
    }
}

/// What both say to the same question.
fn both<T: PartialEq + Debug>(sides: &mut [Side; 2], name: &str, mut ask: impl FnMut(&mut Side) -> T) -> T {
    let [ours, theirs] = sides;
    let (said, expected) = (ask(ours), ask(theirs));
    assert_eq!(said, expected, "{name}");
    assert_eq!(ours.state(), theirs.state(), "{name}");
    said
}

fn streams(script: &[u8]) {
    let Some((&[kind, acts, a, b, c, d], rest)) = script.split_first_chunk() else { return };
    let setup = [a, b, c, d];
    let window_bits = WINDOWS[usize::from(kind) % WINDOWS.len()];
    let Some((acts, text)) = rest.split_at_checked(usize::from(acts % 32) * 3) else { return };
    let (packed, dictionary) = packed(window_bits, setup, text);
    let mut sides = [Side::new(&OURS, window_bits), Side::new(theirs(), window_bits)];
    let sides = &mut sides;
    if kind & 0x80 != 0 {
        both(sides, "inflateGetHeader", |side| {
            let [extra, name, comment] = &mut *side.fields;
            (side.head.extra, side.head.extra_max) = (extra.as_mut_ptr(), 40);
            (side.head.name, side.head.name_max) = (name.as_mut_ptr(), 40);
            (side.head.comment, side.head.comm_max) = (comment.as_mut_ptr(), 40);
            // SAFETY: the fields live as long as the stream.
            unsafe { (side.zlib.inflateGetHeader)(&mut *side.stream, &mut *side.head) }
        });
    }
    let mut at = 0;
    for act in acts.chunks_exact(3) {
        let count = usize::from(act[1]) << (act[2] & 7);
        let input = &packed[at..(at + count).min(packed.len())];
        let code = match act[0] % 16 {
            0..=6 => {
                let flush = [0, 0, 2, 4, 5, 6, 0][usize::from(act[0] % 16)];
                let room = 1 + (usize::from(act[0] >> 4) << (act[2] >> 3 & 15));
                let [ours, theirs] = sides.each_mut().map(|side| side.inflate(input, room, flush));
                assert_eq!(ours, theirs, "inflate");
                if ours == -3 {
                    // How much is taken of what is broken hangs on how far a coder looks ahead.
                    assert_eq!(sides[0].out, sides[1].out, "inflate");
                    return end(sides);
                }
                let code = both(sides, "inflate", |side| (ours, side.out.clone(), (ours == 0).then(|| side.mark()))).0;
                at += input.len() - sides[0].stream.avail_in as usize;
                code
            }
            // zlib keeps the window of one byte that it makes where a head was to say the size and none came, and writes past its end
            // when one comes after all.
            7 if sides[1].window_bits != 0 => both(sides, "inflateSync", |side| {
                (side.stream.next_in, side.stream.avail_in) = (input.as_ptr(), input.len() as c_uint);
                // SAFETY: the input is as long as is said.
                unsafe { (side.zlib.inflateSync)(&mut *side.stream) }
            }),
            // SAFETY: a stream of the side's, and room for a window, here and below.
            8 => both(sides, "inflateReset", |side| unsafe { (side.zlib.inflateReset)(&mut *side.stream) }),
            9 => both(sides, "inflateReset2", |side| unsafe {
                side.window_bits = WINDOWS[usize::from(act[1]) % WINDOWS.len()];
                (side.zlib.inflateReset2)(&mut *side.stream, side.window_bits)
            }),
            // Less than a byte at a time: both give whole bytes back to the input, even those that never were in it. And not within a
            // head, as the manual has it: zlib reads numbers there that are longer than their fields.
            10 if sides[1].window_bits < 0 || sides[1].stream.total_out > 0 => both(sides, "inflatePrime", |side| unsafe {
                (side.zlib.inflatePrime)(&mut *side.stream, -1, 0);
                let bits = if act[1] > 240 { 17 } else { c_int::from(act[1] % 8) };
                (side.zlib.inflatePrime)(&mut *side.stream, bits, c_int::from(act[2]))
            }),
            11 => both(sides, "inflateSyncPoint", |side| unsafe { (side.zlib.inflateSyncPoint)(&mut *side.stream) }),
            12 => both(sides, "inflateValidate", |side| unsafe {
                (side.zlib.inflateValidate)(&mut *side.stream, c_int::from(act[1] & 1))
            }),
            13 => copy(sides),
            14 => set_dictionary(sides, &dictionary),
            _ => {
                both(sides, "inflateGetDictionary", |side| unsafe {
                    let (mut window, mut length) = (vec![0u8; 32_768], 0);
                    let code = (side.zlib.inflateGetDictionary)(&*side.stream, window.as_mut_ptr(), &mut length);
                    window.truncate(length as usize);
                    (code, window)
                })
                .0
            }
        };
        if code == 2 {
            set_dictionary(sides, &dictionary);
        }
    }
    both(sides, "the head", |side| {
        let head = &side.head;
        let plain = (head.text, head.time, head.xflags, head.os, head.extra_len, head.hcrc, head.done);
        (plain, *side.fields)
    });
    end(sides);
}

fn end(sides: &mut [Side; 2]) {
    for side in sides {
        // SAFETY: a stream of the side's.
        assert_eq!(unsafe { (side.zlib.inflateEnd)(&mut *side.stream) }, 0);
    }
}

/// A copy takes the stream's place.
fn copy(sides: &mut [Side; 2]) -> c_int {
    both(sides, "inflateCopy", |side| {
        let mut copy = Box::new(system::stream());
        // SAFETY: a stream of the side's, and room for one.
        unsafe {
            let code = (side.zlib.inflateCopy)(&mut *copy, &*side.stream);
            assert_eq!((side.zlib.inflateEnd)(&mut *side.stream), 0);
            side.stream = copy;
            code
        }
    })
}

fn set_dictionary(sides: &mut [Side; 2], dictionary: &[u8]) -> c_int {
    both(sides, "inflateSetDictionary", |side| {
        // SAFETY: a stream of the side's, and bytes as many as is said.
        unsafe { (side.zlib.inflateSetDictionary)(&mut *side.stream, dictionary.as_ptr(), dictionary.len() as c_uint) }
    })
}

/// What `inflateBack` is given, and gives.
struct Ends<'a> {
    input: std::slice::Chunks<'a, u8>,
    out: Vec<Vec<u8>>,
    /// How often there is room.
    most: usize,
}

unsafe extern "C" fn take(ends: *mut c_void, piece: *mut *const u8) -> c_uint {
    // SAFETY: the ends of the call, and a place for a pointer.
    unsafe {
        let Some(bytes) = (*ends.cast::<Ends>()).input.next() else { return 0 };
        *piece = bytes.as_ptr();
        bytes.len() as c_uint
    }
}

unsafe extern "C" fn give(ends: *mut c_void, bytes: *mut u8, count: c_uint) -> c_int {
    // SAFETY: the ends of the call, and as many bytes as is said.
    unsafe {
        let ends = &mut *ends.cast::<Ends>();
        ends.out.push(std::slice::from_raw_parts(bytes, count as usize).to_vec());
        c_int::from(ends.out.len() > ends.most)
    }
}

/// `inflateBack`, of streams that are sound or broken off: where a distance leads to before the begin, zlib takes what was in the window.
fn back(script: &[u8]) {
    let Some((&[bits, size, first, most, a, b, c, d], text)) = script.split_first_chunk() else { return };
    let window_bits = 8 + c_int::from(bits % 8);
    let edit = if matches!(c >> 5, 0 | 2..=4) { c | 0xe0 } else { c };
    let (packed, _) = packed(-window_bits, [a & 0x7e, b, edit, d], text);
    let (begin, rest) = packed.split_at(packed.len().min(first.into()));
    let said = [&OURS, theirs()].map(|zlib| {
        let mut window = vec![0xaa; 1 << window_bits];
        let mut stream = system::stream();
        let mut ends = Ends { input: rest.chunks(1 + usize::from(size)), out: Vec::new(), most: most.into() };
        // SAFETY: a stream and a window of this function's, which outlive the calls.
        unsafe {
            let version = (zlib.zlibVersion)();
            let code =
                (zlib.inflateBackInit_)(&mut stream, window_bits, window.as_mut_ptr(), version, size_of::<z_stream>() as c_int);
            assert_eq!(code, 0);
            let mut calls = Vec::new();
            for begin in [begin, &[]] {
                (stream.next_in, stream.avail_in) = (begin.as_ptr(), begin.len() as c_uint);
                let both_ends = (&raw mut ends).cast();
                let code = (zlib.inflateBack)(&mut stream, Some(take), both_ends, Some(give), both_ends);
                let is_short = stream.next_in.is_null();
                // How much is taken of what is broken hangs on how far a coder looks ahead.
                calls.push((code, if code == -3 { (false, 0) } else { (is_short, stream.avail_in) }));
                // A second call begins where the first has left the input's function: where that is the middle of a stream, its
                // distances may lead to before the begin.
                if code == -3 || (code == -5 && !is_short) {
                    break;
                }
            }
            assert_eq!((zlib.inflateBackEnd)(&mut stream), 0);
            (if calls[0].0 == -3 { Vec::new() } else { ends.out }, calls)
        }
    });
    assert_eq!(said[0], said[1]);
}

/// `compress2`, `uncompress` and `uncompress2`.
fn whole(script: &[u8]) {
    let Some((&[room, a, b, c, d], text)) = script.split_first_chunk() else { return };
    let (packed, _) = packed(15, [a & 0x7f, b, c, d], text);
    let most = text.len() * usize::from(room % 34);
    let uncompressed = [&OURS, theirs()].map(|zlib| {
        let (mut out, mut length, mut taken) = (vec![0u8; most], most as c_ulong, packed.len() as c_ulong);
        // SAFETY: buffers as long as is said.
        let code = unsafe { (zlib.uncompress2)(out.as_mut_ptr(), &mut length, packed.as_ptr(), &mut taken) };
        out.truncate(length as usize);
        (code, out, if code == -3 { 0 } else { taken })
    });
    assert_eq!(uncompressed[0], uncompressed[1]);
    // SAFETY: buffers as long as is said.
    unsafe {
        let mut length = (OURS.compressBound)(text.len() as c_ulong);
        let mut out = vec![0u8; length as usize];
        let code = (OURS.compress2)(out.as_mut_ptr(), &mut length, text.as_ptr(), text.len() as c_ulong, c_int::from(room % 10));
        assert_eq!(code, 0);
        let (mut back, mut count) = (vec![0u8; text.len() + 1], text.len() as c_ulong + 1);
        assert_eq!((theirs().uncompress)(back.as_mut_ptr(), &mut count, out.as_ptr(), length), 0);
        assert_eq!(&back[..count as usize], text);
    }
}

/// The functions on files.
fn files(script: &[u8]) {
    let Some((&[kind, acts, a, b, c, d], rest)) = script.split_first_chunk() else { return };
    let Some((acts, text)) = rest.split_at_checked(usize::from(acts % 32) * 2) else { return };
    if kind & 1 != 0 {
        return write_file(acts, text, kind >> 1);
    }
    let (packed, _) = packed(31, [a, b, c, d], text);
    // Where a broken file is broken off, and when that is told, hangs on how far ahead was read.
    let is_sound = if a & 1 == 0 { c >> 5 > 3 } else { !packed.starts_with(&[0x1f]) };
    let sides = [&OURS, theirs()].map(|zlib| {
        let descriptor = memory_file(&packed);
        // SAFETY: a descriptor that is the file's from now on.
        let file = unsafe { (zlib.gzdopen)(descriptor, c"rb".as_ptr()) };
        assert!(!file.is_null());
        (zlib, file)
    });
    let both = |name: &str, ask: &dyn Fn(&Zlib, gzFile) -> (c_long, Vec<u8>)| {
        let [said, expected] = sides.map(|(zlib, file)| {
            let said = ask(zlib, file);
            let mut error = 0;
            // SAFETY: an open file, here and below.
            unsafe { (zlib.gzerror)(file, &mut error) };
            // SAFETY: the same.
            (said, error, unsafe { (zlib.gztell)(file) }, unsafe { (zlib.gzeof)(file) })
        });
        assert!(!is_sound || said == expected, "{name}: {said:?} and {expected:?}");
    };
    if kind & 2 != 0 {
        // SAFETY: the same.
        both("gzbuffer", &|zlib, file| unsafe { ((zlib.gzbuffer)(file, c_uint::from(kind)).into(), Vec::new()) });
    }
    // zlib 1.2.13 takes bytes back before it has any memory for them, unless something was asked before.
    // SAFETY: the same.
    both("gzdirect", &|zlib, file| unsafe { ((zlib.gzdirect)(file).into(), Vec::new()) });
    for act in acts.chunks_exact(2) {
        let count = usize::from(act[1]) << (act[0] >> 4);
        // SAFETY: the same; buffers are as long as is said.
        match act[0] % 8 {
            0..=2 => both("gzread", &|zlib, file| unsafe {
                let mut out = vec![0u8; count];
                let code = (zlib.gzread)(file, out.as_mut_ptr().cast(), count as c_uint);
                out.truncate(code.max(0) as usize);
                (code.into(), out)
            }),
            3 => both("gzgetc", &|zlib, file| unsafe { ((zlib.gzgetc)(file).into(), Vec::new()) }),
            4 => both("gzgets", &|zlib, file| unsafe {
                let mut out = vec![0u8; count + 1];
                let line = (zlib.gzgets)(file, out.as_mut_ptr().cast(), count as c_int + 1);
                let line = if line.is_null() { Vec::new() } else { CStr::from_ptr(line).to_bytes().to_vec() };
                (line.len() as c_long, line)
            }),
            // There is always room for one that was taken.
            5 => both("gzungetc", &|zlib, file| unsafe {
                let taken = (zlib.gzgetc)(file);
                let given = if taken < 0 { taken } else { (zlib.gzungetc)(act[1].into(), file) };
                (given.into(), Vec::new())
            }),
            6 => {
                let (offset, whence) = (count as c_long - 64, c_int::from(act[0] >> 3 & 1));
                // A seek that fails undoes one that is still to be done, but for what of it was read ahead: that one is done first.
                both("gzgetc", &|zlib, file| unsafe {
                    let is_before = offset + if whence == 0 { 0 } else { (zlib.gztell)(file) } < 0;
                    (if is_before { (zlib.gzgetc)(file).into() } else { 0 }, Vec::new())
                });
                both("gzseek", &|zlib, file| unsafe { ((zlib.gzseek)(file, offset, whence), Vec::new()) });
            }
            _ => both("gzrewind", &|zlib, file| unsafe {
                if act[1] & 1 != 0 {
                    (zlib.gzclearerr)(file);
                }
                let is_direct = (zlib.gzdirect)(file);
                (c_long::from((zlib.gzrewind)(file)) * 2 + c_long::from(is_direct), Vec::new())
            }),
        }
    }
    // SAFETY: the same, for the last time.
    let _ = sides.map(|(zlib, file)| unsafe { (zlib.gzclose)(file) });
}

/// What is written here, the system's zlib reads.
fn write_file(acts: &[u8], text: &[u8], kind: u8) {
    let descriptor = memory_file(b"");
    let mut written = Vec::new();
    // SAFETY: descriptors that are open, one for each file; buffers are as long as is said.
    unsafe {
        let again = libc::dup(descriptor);
        let mode = [c"wb", c"wb1", c"wb9", c"wb6h", c"wb0", c"wb3", c"wb6f", c"wb6R"][usize::from(kind % 8)];
        let file = (OURS.gzdopen)(descriptor, mode.as_ptr());
        assert!(!file.is_null());
        for act in acts.chunks_exact(2) {
            match act[0] % 6 {
                0..=2 => {
                    let part = &text[..text.len() * usize::from(act[1]) / 255];
                    assert_eq!((OURS.gzwrite)(file, part.as_ptr().cast(), part.len() as c_uint), part.len() as c_int);
                    written.extend_from_slice(part);
                }
                3 => {
                    assert_eq!((OURS.gzputc)(file, act[1].into()), act[1].into());
                    written.push(act[1]);
                }
                4 => assert_eq!((OURS.gzflush)(file, [2, 3, 4][usize::from(act[1] % 3)]), 0),
                _ if act[1] & 1 == 0 => {
                    let at = written.len() + usize::from(act[1]) * 8;
                    assert_eq!((OURS.gzseek)(file, at as c_long, 0), at as c_long);
                    written.resize(at, 0);
                }
                _ => {
                    assert_eq!((OURS.gzsetparams)(file, c_int::from(act[1] % 10), c_int::from(act[1] >> 4) % 5), 0);
                }
            }
        }
        assert_eq!((OURS.gzclose)(file), 0);
        libc::lseek(again, 0, libc::SEEK_SET);
        let file = (theirs().gzdopen)(again, c"rb".as_ptr());
        let mut back = vec![0u8; written.len() + 1];
        let count = (theirs().gzread)(file, back.as_mut_ptr().cast(), back.len() as c_uint);
        assert_eq!(count, written.len() as c_int);
        assert!(back[..written.len()] == written);
        assert_eq!((theirs().gzclose)(file), 0);
    }
}

/// A file without a name, to be read from its begin.
fn memory_file(bytes: &[u8]) -> c_int {
    // SAFETY: a descriptor of this function's, and as many bytes as is said.
    unsafe {
        let descriptor = libc::memfd_create(c"file".as_ptr(), 0);
        assert!(descriptor >= 0);
        assert_eq!(libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()), bytes.len() as isize);
        libc::lseek(descriptor, 0, libc::SEEK_SET);
        descriptor
    }
}

/// What `windowBits` may be.
const WINDOWS: [c_int; 14] = [15, -15, 31, 47, 0, 9, 12, 8, -9, -8, -12, 24, 25, 40];
