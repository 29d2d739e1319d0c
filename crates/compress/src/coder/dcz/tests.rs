use super::*;
use crate::coder::Tuning;
use terse_dictionary::Pattern;
use terse_dictionary::field::UseAs;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

fn dictionary(bytes: &[u8]) -> Arc<Dictionary> {
    Arc::new(Dictionary::new("d".into(), UseAs::of(Pattern::new("/*").unwrap()), "/", bytes.to_vec()))
}

fn pool() -> Arc<Pool> {
    Arc::new(Pool::new(Tuning::default()))
}

/// Text that differs with its seed, in a twentieth of its words.
fn text(bytes: usize, seed: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 16);
    let (mut noise, mut other) = (7u32, seed.wrapping_mul(977));
    while out.len() < bytes {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        other = other.wrapping_mul(22_695_477).wrapping_add(1);
        let word = if other >> 16 & 31 == 0 { other } else { noise };
        out.extend_from_slice(format!("f{:x}();\n", word >> 12).as_bytes());
    }
    out.truncate(bytes);
    out
}

/// What a decoder makes of a body that takes no window above what RFC 9842 has it take; none if it objects.
fn decode(body: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    let frames = body.strip_prefix(&MAGIC)?.strip_prefix(&terse_dictionary::Hash::of(dictionary).0)?;
    let limit = (dictionary.len() as u64 * 5 / 4).max(8 << 20).ilog2();
    let mut state = DCtx::create();
    state.set_parameter(DParameter::WindowLogMax(limit)).unwrap();
    state.ref_prefix(dictionary).unwrap();
    let (mut input, mut out, mut left) = (InBuffer::around(frames), Vec::new(), 1);
    let mut piece = vec![0; 1 << 17];
    while left != 0 || input.pos < frames.len() {
        let before = input.pos;
        let mut room = OutBuffer::around(&mut piece[..]);
        left = state.decompress_stream(&mut room, &mut input).ok()?;
        let given = room.pos();
        out.extend_from_slice(&piece[..given]);
        if given == 0 && input.pos == before {
            return None;
        }
    }
    Some(out)
}

fn code(body: &[u8], pieces: usize, exact: bool, dictionary: &Arc<Dictionary>, level: u8) -> Vec<u8> {
    let known = exact.then_some(body.len() as u64);
    let mut coder = Stream::new(Level(level), known, exact, dictionary, &pool());
    let mut out = Vec::new();
    for piece in body.chunks(pieces) {
        coder.push(piece, &mut out, Flush::None).unwrap();
    }
    coder.push(&[], &mut out, Flush::Finish).unwrap();
    assert_eq!(coder.memory(), 0, "the state is given back");
    out
}

#[test]
fn a_body_comes_back_and_is_small() {
    let (old, new) = (dictionary(&text(300_000, 1)), text(310_000, 2));
    for exact in [false, true] {
        for pieces in [4096, 70_000, 1 << 20] {
            let out = code(&new, pieces, exact, &old, 6);
            assert_eq!(decode(&out, old.bytes()).as_ref(), Some(&new));
            let frame = zstd_safe::get_frame_content_size(&out[40..]).unwrap();
            assert_eq!(frame, exact.then_some(new.len() as u64), "a whole body states its length");
            let alone = zstd_safe::compress_bound(0) + {
                let mut room = vec![0; zstd_safe::compress_bound(new.len())];
                zstd_safe::compress(&mut room[..], &new, 6).unwrap()
            };
            assert!(out.len() < alone / 3, "{} with it, {alone} without", out.len());
        }
    }
}

#[test]
fn what_looks_like_a_formatted_dictionary_is_raw_all_the_same() {
    let bytes = [&[0x37, 0xa4, 0x30, 0xec][..], &text(20_000, 1)].concat();
    let (dictionary, body) = (dictionary(&bytes), text(20_000, 1));
    let out = code(&body, 8192, true, &dictionary, 3);
    assert_eq!(decode(&out, &bytes), Some(body));
    assert!(out.len() < 200, "{}", out.len());
}

#[test]
fn a_state_that_goes_ends_its_frame() {
    let (old, new) = (dictionary(&text(100_000, 1)), text(100_000, 2));
    let mut coder = Stream::new(Level(3), None, false, &old, &pool());
    let mut out = Vec::new();
    for piece in new.chunks(30_000) {
        coder.push(piece, &mut out, Flush::Sync).unwrap();
        coder.lighten(Keep::History);
        assert_eq!(coder.memory(), 0);
    }
    coder.push(&[], &mut out, Flush::Finish).unwrap();
    assert_eq!(decode(&out, old.bytes()), Some(new));
}

#[test]
fn nothing_is_a_body_too() {
    let old = dictionary(b"abc");
    let mut coder = Stream::new(Level(3), None, false, &old, &pool());
    let mut out = Vec::new();
    coder.push(&[], &mut out, Flush::Sync).unwrap();
    assert!(out.is_empty());
    coder.push(&[], &mut out, Flush::Finish).unwrap();
    assert_eq!(decode(&out, b"abc"), Some(Vec::new()));
    coder.reset();
    coder.push(b"abcabc", &mut out, Flush::Finish).unwrap();
}

#[test]
fn each_byte_that_changes_is_an_error_or_no_matter() {
    let (old, new) = (dictionary(&text(3_000, 1)), text(3_000, 2));
    for exact in [false, true] {
        let out = code(&new, 1000, exact, &old, 3);
        let mut noticed = 0;
        for at in 0..out.len() {
            for bit in [1u8, 0x80] {
                let mut damaged = out.clone();
                damaged[at] ^= bit;
                match decode(&damaged, old.bytes()) {
                    None => noticed += 1,
                    Some(back) => assert!(back == new, "byte {at}"),
                }
            }
        }
        assert!(noticed > out.len() * 2 - 40, "{noticed} of {}", out.len() * 2);
        for cut in 0..out.len() {
            assert_ne!(decode(&out[..cut], old.bytes()).as_ref(), Some(&new), "{cut} of {}", out.len());
        }
    }
}

#[test]
fn another_dictionary_gives_no_bytes() {
    let old = dictionary(&text(3_000, 1));
    let out = code(&text(3_000, 2), 1000, true, &old, 3);
    let mut other = text(3_000, 1);
    other[2_000] ^= 1;
    assert_eq!(decode(&out, &other), None);
    let renamed = [&MAGIC[..], &terse_dictionary::Hash::of(&other).0, &out[40..]].concat();
    assert_ne!(decode(&renamed, &other), Some(text(3_000, 2)));
}

#[test]
fn windows_hold_both_as_far_as_decoders_take_them() {
    for (dictionary, body, log) in [
        (0, Some(0), 10),
        (1000, Some(24), 10),
        (1000, Some(25), 11),
        (640 << 10, Some(640 << 10), 21),
        (4 << 20, Some(4 << 20), 23),
        (4 << 20, Some(40 << 20), 23),
        (9 << 20, Some(9 << 20), 23),
        (16 << 20, Some(16 << 20), 24),
        (100 << 20, Some(100 << 20), 26),
        (200 << 20, Some(1), 27),
        (1 << 20, None, 21),
        (32 << 10, None, 19),
    ] {
        assert_eq!(window_log(dictionary, body), log, "{dictionary} {body:?}");
    }
}

#[test]
fn states_are_no_larger_than_is_said() {
    for level in [3, 6, 9, 12, 19] {
        for (dictionary_bytes, body_bytes) in [(30_000, 20_000), (300_000, 310_000), (1_400_000, 1_500_000)] {
            let old = dictionary(&text(dictionary_bytes, 1));
            let body = text(body_bytes, 2);
            for known in [None, Some(body.len() as u64)] {
                let mut coder = Stream::new(Level(level), known, known.is_some(), &old, &pool());
                coder.push(&body[..body.len() / 2], &mut Vec::new(), Flush::Sync).unwrap();
                let (held, said) = (coder.memory(), coder.full_memory());
                assert!(held <= said && said < held * 8, "level {level}, {dictionary_bytes}, {known:?}: {held}, not {said}");
            }
        }
    }
}

/// A coder that is made light before its first byte does without the dictionary, and its answer is decoded as any other.
#[test]
fn without_memory_even_the_first_frame_goes_without() {
    let given = dictionary(&text(300_000, 1));
    let body = text(100_000, 2);
    for exact in [true, false] {
        let mut coder = Stream::new(Level(6), exact.then_some(body.len() as u64), exact, &given, &pool());
        let with = coder.full_memory();
        coder.lighten(Keep::Nothing);
        assert!(coder.full_memory() < with, "{} {with}", coder.full_memory());
        let mut out = Vec::new();
        coder.push(&body, &mut out, Flush::Finish).unwrap();
        assert_eq!(decode(&out, given.bytes()).unwrap(), body);
        assert!(out.len() > 2 * code(&body, body.len(), exact, &given, 6).len(), "nothing refers to the dictionary");
    }
}

#[test]
fn what_a_dictionary_is_no_help_for_is_noted() {
    use crate::coding::Coding;
    let code = |body: &[u8], dictionary: &Arc<Dictionary>, coding, pair| {
        let trial = Trial { pair, coding, level: Level(3) };
        let mut coder = Stream::new(Level(3), Some(body.len() as u64), true, dictionary, &pool()).compared(Some(trial));
        let mut out = Vec::new();
        coder.push(body, &mut out, Flush::Finish).unwrap();
        assert_eq!(decode(&out, dictionary.bytes()).as_deref(), Some(body));
        dictionary.notes.has(pair)
    };
    let (old, other, body) = (dictionary(&text(60_000, 1)), dictionary(&b"nothing alike ".repeat(3000)), text(60_000, 2));
    for (number, coding) in [Coding::Zstd, Coding::Gzip, Coding::Brotli].into_iter().enumerate() {
        let pair = (number as u64 + 1) << 40;
        assert!(code(&body, &other, coding, pair), "{coding:?}");
        assert!(!code(&body, &old, coding, pair), "{coding:?}");
    }
    assert!(!code(&body, &other, Coding::Identity, 9 << 40), "the client would get it as it is");
    // Pieces are not compared, since nobody has the whole.
    let trial = Trial { pair: 10 << 40, coding: Coding::Zstd, level: Level(3) };
    let mut coder = Stream::new(Level(3), None, false, &other, &pool()).compared(Some(trial));
    let mut out = Vec::new();
    coder.push(&body[..30_000], &mut out, Flush::Sync).unwrap();
    coder.push(&body[30_000..], &mut out, Flush::Finish).unwrap();
    assert!(!other.notes.has(trial.pair));
}
