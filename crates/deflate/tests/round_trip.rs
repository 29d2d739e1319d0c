//! Tests of this coder alone: matches, dictionaries, parts that join, the same bytes on every processor. That coded bytes
//! decode to the input: `conformance.rs`.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod bodies;

use bodies::{noise, text};
use flate2::{Decompress, FlushDecompress, Status};
use proptest::prelude::*;
use terse_deflate::{Encoder, LEVELS, Processor, bound};

/// By miniz: the bytes of `coded` that can be decoded after `dictionary`, and whether it ends there.
fn inflate(dictionary: &[u8], coded: &[u8]) -> (Vec<u8>, bool) {
    let mut decoder = Decompress::new(false);
    // A stored block in front stands for the dictionary, which miniz cannot be given.
    let mut stream = Vec::new();
    for part in dictionary.chunks(65_535) {
        stream.push(0);
        stream.extend_from_slice(&(part.len() as u16).to_le_bytes());
        stream.extend_from_slice(&(!part.len() as u16).to_le_bytes());
        stream.extend_from_slice(part);
    }
    stream.extend_from_slice(coded);
    let (mut out, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let (taken, given) = (decoder.total_in() as usize, decoder.total_out());
        let status = decoder.decompress(&stream[taken..], &mut buffer, FlushDecompress::None).expect("a sound stream");
        let new = (decoder.total_out() - given) as usize;
        out.extend_from_slice(&buffer[..new]);
        let ended = status == Status::StreamEnd;
        if ended || (new == 0 && decoder.total_in() as usize == taken) {
            assert_eq!(decoder.total_in() as usize, stream.len());
            return (out.split_off(dictionary.len()), ended);
        }
    }
}

/// By libdeflate, which wants whole streams without a dictionary.
fn inflate_whole(coded: &[u8], length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    let given = libdeflater::Decompressor::new().deflate_decompress(coded, &mut out);
    assert_eq!(given, Ok(length));
    out
}

/// A coder for each way that the processor knows.
type Ways = Vec<Encoder>;

fn ways(level: u8) -> Ways {
    Processor::all().into_iter().map(|processor| Encoder::on(processor, level)).collect()
}

fn check(ways: &mut Ways, input: &[u8]) {
    let mut forms = ways.iter_mut().map(|encoder| {
        let mut coded = b"before".to_vec();
        encoder.encode(&[], input, true, &mut coded);
        coded
    });
    let coded = forms.next().expect("a way");
    assert!(forms.all(|form| form == coded), "the same on every processor");
    let coded = &coded[6..];
    assert!(coded.len() <= bound(input.len()), "{} of {}", coded.len(), input.len());
    assert!(inflate_whole(coded, input.len()) == input);
    assert!(inflate(&[], coded) == (input.to_vec(), true));
}

#[test]
fn the_farthest_match_is_used_and_no_farther_one() {
    let mut next = noise(5);
    let block: Vec<u8> = (0..32_768).map(|_| next() as u8).collect();
    for level in LEVELS {
        let mut out = Vec::new();
        Encoder::new(level).encode(&[], &[&block[..], &block[..]].concat(), true, &mut out);
        assert!(out.len() < 34_000, "level {level}: {}", out.len());
        check(&mut ways(level), &[&block[..], &[0], &block[..]].concat());
    }
}

#[test]
fn what_is_beyond_the_end_is_no_part_of_a_match() {
    for level in LEVELS {
        for length in 0..40 {
            let words = text(17, 100 + length);
            check(&mut ways(level), &[&words[..], &[0; 300], &words[..], &[0; 3], b"end"].concat());
            check(&mut ways(level), &[&words[..], b"other", &words[..]].concat());
        }
    }
}

#[test]
fn a_dictionary_is_referred_to() {
    let input = text(9, 3000);
    for level in LEVELS {
        let mut encoder = Encoder::new(level);
        let (mut alone, mut with) = (Vec::new(), Vec::new());
        encoder.encode(&[], &input, true, &mut alone);
        encoder.encode(&input, &input, true, &mut with);
        assert!(with.len() * 4 < alone.len(), "level {level}: {} of {}", with.len(), alone.len());
        assert!(inflate(&input, &with) == (input.clone(), true));
    }
}

/// Rare symbols with all the extra bits that there are: two together are longer than the bits that are written at once.
#[test]
fn two_matches_in_a_row_may_be_long_to_write() {
    let mut next = noise(23);
    let mut input: Vec<u8> = (0..26_000).map(|_| b'0' + next() as u8 % 64).collect();
    for pair in 0..60 {
        for back in [17_000, 25_000] {
            let (place, length) = (input.len() - back, 131 + next() as usize % 96);
            input.extend_from_within(place..place + length);
        }
        // Now the first of two, now the second.
        input.extend((0..20 + pair % 2).map(|_| b'0' + next() as u8 % 64));
    }
    for level in LEVELS {
        check(&mut ways(level), &input);
    }
}

/// Three segments of as many bytes as one may have; and one less, and one more.
#[test]
fn segments_may_be_full() {
    let body = text(31, 3 * 72 * 1024 + 1);
    for level in LEVELS {
        for less in 0..3 {
            check(&mut ways(level), &body[less..]);
        }
    }
}

/// Bytes of every kind: noise over an alphabet of any size, runs, repetitions of earlier bytes, words.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        (any::<u64>(), 1..=256u64, 0..3000usize).prop_map(|(seed, letters, length)| {
            let mut next = noise(seed);
            (0..length).map(|_| (next() >> 8).wrapping_rem(letters) as u8).collect()
        }),
        (any::<u8>(), 0..2000usize).prop_map(|(byte, length)| vec![byte; length]),
        (any::<u64>(), 0..6000usize).prop_map(|(seed, length)| text(seed, length)),
        (any::<u64>(), 1..40usize, 0..200usize).prop_map(|(seed, length, times)| text(seed, length).repeat(times)),
    ];
    (prop::collection::vec(part, 0..8), 1..4usize).prop_map(|(parts, times)| parts.concat().repeat(times))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_comes_back(body in bodies(), level in LEVELS) {
        check(&mut ways(level), &body);
    }

    #[test]
    fn parts_coded_apart_join_to_one_stream(body in bodies(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4), level in LEVELS) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(body.len());
        let (mut encoder, mut out, mut from) = (Encoder::new(level), Vec::new(), 0);
        for (at, to) in cuts.iter().enumerate() {
            let last = at + 1 == cuts.len();
            let start = out.len();
            encoder.encode(&body[..from], &body[from..*to], last, &mut out);
            prop_assert!(out.len() - start <= bound(to - from));
            let (part, ended) = inflate(&body[..from], &out[start..]);
            prop_assert!(part == body[from..*to] && ended == last);
            from = *to;
        }
        prop_assert!(inflate_whole(&out, body.len()) == body);
    }
}
