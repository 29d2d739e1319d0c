//! Every decoder, through the cases that all decoders pass ([`terse_trial`]), and the case of incremental ones: however a
//! body comes in, it comes out.

use super::{Decoder, Flaw, Next, Progress, decoder};
use crate::coder::{Engine, Flush, Pool, Tuning};
use crate::coding::{Coding, Level};
use proptest::prelude::*;
use std::sync::Arc;
use terse_trial::bodies::mixed;
use terse_trial::reader::{self, coded};
use terse_trial::{Form, Reader};

/// The forms that are decoded.
const FORMS: &[(&str, Coding, Form)] = &[
    ("gzip", Coding::Gzip, Form::Gzip),
    ("zlib", Coding::Deflate, Form::Zlib),
    ("raw deflate", Coding::Deflate, Form::Raw),
    ("zstd", Coding::Zstd, Form::ZstdFrames),
    ("br", Coding::Brotli, Form::Brotli),
];

/// Decodes pieces, with so much room at a time; returns the output, the number of bytes taken, and the end.
fn decode(decoder: &mut dyn Decoder, pieces: &[&[u8]], room: usize) -> (Vec<u8>, usize, Result<bool, Flaw>) {
    let (mut out, mut all) = (Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        loop {
            let before = out.len();
            let Progress { taken, next } = match decoder.push(&piece[at..], &mut out, room) {
                Ok(progress) => progress,
                Err(flaw) => return (out, all, Err(flaw)),
            };
            assert!(out.len() - before <= room && taken <= piece.len() - at);
            (at, all) = (at + taken, all + taken);
            match next {
                Next::Input => {
                    assert_eq!(at, piece.len(), "all input is taken before more is asked for");
                    break;
                }
                Next::Room => assert_eq!(out.len() - before, room, "the room is used before more is asked for"),
                Next::Ended => return (out, all, Ok(true)),
            }
        }
    }
    (out, all, Ok(decoder.is_complete()))
}

fn whole(coding: Coding, coded: &[u8]) -> (Vec<u8>, Result<bool, Flaw>) {
    let (out, _, end) = decode(&mut *decoder(coding).unwrap(), &[coded], 1 << 20);
    (out, end)
}

/// A form's decoder, for the cases that all decoders pass.
struct Face(Form);

impl Reader for Face {
    fn name(&self) -> String {
        format!("{:?}, decoded", self.0)
    }

    fn form(&self) -> Form {
        self.0
    }

    fn read(&self, coded: &[u8]) -> Result<Vec<u8>, String> {
        let coding = FORMS.iter().find(|(_, _, form)| *form == self.0).unwrap().1;
        match whole(coding, coded) {
            (body, Ok(true)) => Ok(body),
            (_, Ok(false)) => Err(Flaw::Truncated.name().into()),
            (_, Err(flaw)) => Err(flaw.name().into()),
        }
    }

    /// A body that is no zlib stream is tried as a raw one.
    fn knows_noise(&self) -> bool {
        matches!(self.0, Form::Gzip | Form::ZstdFrames)
    }
}

#[test]
fn whole_bodies() {
    for (_, _, form) in FORMS {
        reader::try_all(&Face(*form));
    }
}

#[test]
fn one_byte_at_a_time_and_one_byte_of_room() {
    for (name, coding, form) in FORMS {
        let body = mixed(3000);
        let coded = coded(*form, &body);
        let bytes: Vec<&[u8]> = coded.chunks(1).collect();
        for room in [1, 7, 100_000] {
            let (out, taken, end) = decode(&mut *decoder(*coding).unwrap(), &bytes, room);
            assert!(out == body && end == Ok(true) && taken == coded.len(), "{name}, {room}: {end:?}");
        }
    }
}

#[test]
fn what_is_cut_is_not_complete() {
    for (name, coding, form) in FORMS {
        let body = mixed(2000);
        let coded = coded(*form, &body);
        for end in 0..coded.len() {
            let (out, result) = whole(*coding, &coded[..end]);
            assert!(result == Ok(false) && body.starts_with(&out), "{name}: {end} of {}: {result:?}", coded.len());
        }
    }
}

#[test]
fn what_follows_the_end_is_left() {
    for (name, coding, form) in FORMS {
        let body = mixed(2000);
        let coded = coded(*form, &body);
        for behind in [&b"<!-- end -->"[..], b"x", b"\xff\xff\xff\xff\xff\xff\xff\xff"] {
            let all = [&coded[..], behind].concat();
            let (out, taken, end) = decode(&mut *decoder(*coding).unwrap(), &[&all], 1 << 16);
            assert!(out == body && end == Ok(true) || taken == all.len(), "{name}: {end:?}");
            let (out, _, end) = decode(&mut *decoder(*coding).unwrap(), &[&coded, behind], 1 << 16);
            assert_eq!((out == body, end), (true, Ok(true)), "{name}");
        }
    }
}

#[test]
fn a_checksum_and_a_length_are_told_apart() {
    let mut wrong = coded(Form::Gzip, &mixed(5000));
    let end = wrong.len();
    wrong[end - 5] ^= 1;
    assert_eq!(whole(Coding::Gzip, &wrong).1, Err(Flaw::Checksum));
    wrong[end - 5] ^= 1;
    wrong[end - 1] ^= 1;
    assert_eq!(whole(Coding::Gzip, &wrong).1, Err(Flaw::Length));
}

#[test]
fn a_decoder_can_begin_again_at_any_point() {
    for (name, coding, form) in FORMS {
        let (first, second) = (coded(*form, &mixed(50_000)), mixed(30_000));
        for end in [0, 1, 5, 1000, first.len()] {
            let mut decoder = decoder(*coding).unwrap();
            decoder.push(&first[..end.min(first.len())], &mut Vec::new(), 10_000).unwrap();
            decoder.reset();
            let (out, _, end) = decode(&mut *decoder, &[&coded(*form, &second)], 1 << 16);
            assert!(out == second && end == Ok(true), "{name}: {end:?}");
        }
        let mut decoder = decoder(*coding).unwrap();
        let garbage = decode(&mut *decoder, &[&[0x06; 3], &[0xff; 500]], 1 << 16).2;
        decoder.reset();
        let (out, _, end) = decode(&mut *decoder, &[&coded(*form, &second)], 1 << 16);
        assert!(out == second && end == Ok(true), "{name} behind {garbage:?}: {end:?}");
    }
}

#[test]
fn other_formats_are_named() {
    for (coding, coded, flaw) in [
        (Coding::Gzip, &b"<html>"[..], Flaw::Format),
        (Coding::Gzip, b"\x1f\x8b\x07", Flaw::Format),
        (Coding::Gzip, b"\x1f\x8b\x08\x20", Flaw::Format),
        (Coding::Deflate, b"\x78\xbb____", Flaw::Dictionary),
        (Coding::Deflate, b"\x88\x1c____", Flaw::Window),
        (Coding::Deflate, b"<html>", Flaw::Corrupt),
        (Coding::Zstd, b"<html>", Flaw::Format),
        // A window of 16 MB.
        (Coding::Zstd, b"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00", Flaw::Window),
        // The same, for a frame whose whole content has that length.
        (Coding::Zstd, b"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x01\x01\x00\x00", Flaw::Window),
        // A frame that names a dictionary.
        (Coding::Zstd, b"\x28\xb5\x2f\xfd\x01\x40\x07\x01\x00\x00", Flaw::Dictionary),
        // The head of a large window.
        (Coding::Brotli, b"\x11\x1e\x00\x00\x00", Flaw::Corrupt),
    ] {
        assert_eq!(whole(coding, coded).1, Err(flaw), "{}", coded.escape_ascii());
    }
}

#[test]
fn a_window_of_8_mb_is_taken() {
    let coded = b"\x28\xb5\x2f\xfd\x00\x68\x01\x00\x00";
    assert_eq!(whole(Coding::Zstd, coded), (Vec::new(), Ok(true)));
}

#[test]
fn all_members_and_frames_are_one_body() {
    for (name, coding, form) in FORMS.iter().filter(|(_, coding, _)| matches!(coding, Coding::Gzip | Coding::Zstd)) {
        let parts = [mixed(10), Vec::new(), mixed(5000)];
        let mut coded: Vec<u8> = parts.iter().flat_map(|part| coded(*form, part)).collect();
        if *coding == Coding::Gzip {
            coded.extend_from_slice(&[0; 512]);
        } else {
            coded.extend_from_slice(b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc");
        }
        for room in [1, 1 << 16] {
            for split in [0, 1, 20, coded.len() - 1] {
                let (before, behind) = coded.split_at(split);
                let (out, taken, end) = decode(&mut *decoder(*coding).unwrap(), &[before, behind], room);
                assert!(out == parts.concat() && end == Ok(true) && taken == coded.len(), "{name}, {room}, {split}: {end:?}");
            }
        }
    }
}

#[test]
fn a_later_member_that_is_wrong_is_no_trailing_garbage() {
    for (coding, form) in [(Coding::Gzip, Form::Gzip), (Coding::Zstd, Form::ZstdFrames)] {
        let (first, mut second) = (coded(form, b"first"), coded(form, &mixed(3000)));
        let at = second.len() / 2;
        second[at..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        let (_, end) = whole(coding, &[first, second].concat());
        assert!(end.is_err(), "{coding:?}: {end:?}");
    }
}

#[test]
fn the_fields_of_a_gzip_head_are_read_and_their_checksum_checked() {
    let body = b"hello";
    let deflated = coded(Form::Raw, body);
    let mut head = b"\x1f\x8b\x08\x1f\x00\x00\x00\x00\x00\xff".to_vec();
    head.extend_from_slice(b"\x04\x00abcdname\0comment\0");
    let checksum = libdeflater::crc32(&head) as u16;
    for (sum, expected) in [(checksum, Ok(true)), (checksum ^ 1, Err(Flaw::Checksum))] {
        let mut coded = [&head[..], &sum.to_le_bytes(), &deflated, &libdeflater::crc32(body).to_le_bytes()].concat();
        coded.extend_from_slice(&5u32.to_le_bytes());
        assert_eq!(whole(Coding::Gzip, &coded).1, expected);
    }
    let endless = [&b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff"[..], &[b'a'; 200_000]].concat();
    assert_eq!(whole(Coding::Gzip, &endless).1, Err(Flaw::Head));
}

#[test]
fn what_was_flushed_comes_out_at_once() {
    for coding in [Coding::Gzip, Coding::Deflate, Coding::RawDeflate, Coding::Zstd, Coding::Brotli] {
        let mut coder = (Engine::of(coding).stream)(Level(3), None, &Arc::new(Pool::new(Tuning::default())));
        let mut decoder = decoder(coding).unwrap();
        for (bytes, room) in [(1, 1 << 16), (30, 7), (700, 1 << 16), (4000, 1 << 16), (4000, 100), (50_000, 1 << 16), (1, 1)] {
            for body in [mixed(bytes), b"again ".iter().copied().cycle().take(bytes).collect()] {
                let mut coded = Vec::new();
                coder.push(&body, &mut coded, Flush::Sync).unwrap();
                let (out, taken, end) = decode(&mut *decoder, &[&coded], room);
                assert_eq!((out.len(), taken, end), (bytes, coded.len(), Ok(false)), "{coding:?}");
                assert!(out == body, "{coding:?}");
            }
        }
    }
}

#[test]
fn memory_is_what_the_formats_say() {
    for (name, coding, form) in FORMS {
        let mut decoder = decoder(*coding).unwrap();
        let coded = coded(*form, &mixed(300_000));
        decoder.push(&coded, &mut Vec::new(), 100_000).unwrap();
        assert!((10_000..2_000_000).contains(&decoder.memory()), "{name}: {}", decoder.memory());
    }
    // A window of 16 MB, and a block that is not the last.
    let mut decoder = decoder(Coding::Brotli).unwrap();
    let coded: Vec<u8> = {
        let mut parameters = brotli::enc::BrotliEncoderParams::default();
        (parameters.quality, parameters.lgwin) = (1, 24);
        let mut out = Vec::new();
        brotli::BrotliCompress(&mut &mixed(9_000_000)[..], &mut out, &parameters).unwrap();
        out
    };
    let mut out = Vec::new();
    let progress = decoder.push(&coded, &mut out, usize::MAX / 2).unwrap();
    assert!(progress.next == Next::Ended && out.len() == 9_000_000);
    assert!((9_000_000..36_000_000).contains(&decoder.memory()), "{}", decoder.memory());
    decoder.reset();
    assert!(decoder.memory() < 100_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_comes_back(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), 1usize..40), 0..8),
        cuts in prop::collection::vec(1usize..500, 1..30),
        room in 1usize..5000,
        form in 0..FORMS.len(),
    ) {
        let (_, coding, form) = FORMS[form];
        let body: Vec<u8> = pieces.iter().flat_map(|(bytes, times)| bytes.repeat(*times)).collect();
        let coded = coded(form, &body);
        let (mut rest, mut parts) = (&coded[..], Vec::new());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (part, behind) = rest.split_at((*cut).min(rest.len()));
            parts.push(part);
            rest = behind;
        }
        let (out, taken, end) = decode(&mut *decoder(coding).unwrap(), &parts, room);
        prop_assert_eq!((out, taken, end), (body, coded.len(), Ok(true)));
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 1usize..50, room in 1usize..5000, form in 0..FORMS.len()) {
        let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
        let whole = decode(&mut *decoder(FORMS[form].1).unwrap(), &[&bytes], 1 << 16);
        let split = decode(&mut *decoder(FORMS[form].1).unwrap(), &pieces, room);
        prop_assert_eq!(whole.2.is_ok(), split.2.is_ok());
        prop_assert_eq!(whole.2, split.2);
        if whole.2.is_ok() {
            prop_assert_eq!(whole.0, split.0);
        }
    }

    #[test]
    fn damaged_bodies_never_come_out_larger_than_asked(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), room in 1usize..3000, form in 0..FORMS.len(),
    ) {
        let (_, coding, form) = FORMS[form];
        let mut coded = coded(form, &mixed(4000));
        let at = at.index(coded.len());
        coded[at] = byte;
        let _ = decode(&mut *decoder(coding).unwrap(), &[&coded], room);
    }
}
