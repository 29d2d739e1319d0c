//! Whether a device's result is the coded body, and the part of it that is sent.
//!
//! Each check includes those before it:
//! * the wrapper is the plain one, and gzip's tail states the body's length;
//! * `checksum`: the tail states the body's checksum, so that the engine has read the body that it was given;
//! * `full`: the stream decompresses to the body and ends where the tail begins.

use crate::coding::Coding;
use crate::device::{Pieces, Wrapper};
use crate::engine::Verify;
use terse_deflate::decode::{Inflate, Stop};

/// Judges a device's result for a body; returns the range of the bytes for the coding, or `None` if the result is false.
pub(super) fn judge(coded: &[u8], input: &Pieces, coding: Coding, how: Verify) -> Option<std::ops::Range<usize>> {
    let wrapper = Wrapper::of(coding)?;
    let (head, tail) = match wrapper {
        Wrapper::Gzip => (GZIP_HEAD_BYTES, 8),
        Wrapper::Zlib => (2, 4),
    };
    let stream = head..coded.len().checked_sub(tail)?;
    let (first, middle, last) = (coded.get(..head)?, coded.get(stream.clone())?, coded.get(stream.end..)?);
    if middle.is_empty() || !has_plain_head(first, wrapper) {
        return None;
    }
    let states_length = wrapper == Wrapper::Zlib || last.get(4..) == Some(&(input.bytes() as u32).to_le_bytes());
    let sound = states_length
        && (how == Verify::None || last.get(..4) == Some(&checksum(input, wrapper)))
        && (how != Verify::Full || comes_back(middle, input));
    sound.then_some(if coding == Coding::RawDeflate { stream } else { 0..coded.len() })
}

/// gzip: no name, no comment, no other fields. zlib: no dictionary.
fn has_plain_head(head: &[u8], wrapper: Wrapper) -> bool {
    match (wrapper, head) {
        (Wrapper::Gzip, [0x1f, 0x8b, 8, 0, ..]) => true,
        (Wrapper::Zlib, [method, flags]) => {
            let sum = u16::from_be_bytes([*method, *flags]);
            method & 15 == 8 && method >> 4 <= 7 && sum.is_multiple_of(31) && flags & 0x20 == 0
        }
        _ => false,
    }
}

fn checksum(input: &Pieces, wrapper: Wrapper) -> [u8; 4] {
    match wrapper {
        Wrapper::Gzip => input.iter().fold(0, zlib_rs::crc32::crc32).to_le_bytes(),
        Wrapper::Zlib => input.iter().fold(1, zlib_rs::adler32::adler32).to_be_bytes(),
    }
}

/// Whether a raw stream is that body's, no more and no less.
fn comes_back(mut stream: &[u8], input: &Pieces) -> bool {
    let mut inflate = Inflate::new();
    let mut buffer = vec![0; COMPARE_BYTES];
    let mut pieces = input.iter();
    let mut expected: &[u8] = &[];
    loop {
        let Ok(progress) = inflate.decode(stream, &mut buffer) else { return false };
        let mut plain = &buffer[..progress.given];
        stream = &stream[progress.taken..];
        while !plain.is_empty() {
            if expected.is_empty() {
                let Some(piece) = pieces.next() else { return false };
                expected = piece;
                continue;
            }
            let (both, rest) = plain.split_at(plain.len().min(expected.len()));
            let (wanted, later) = expected.split_at(both.len());
            if both != wanted {
                return false;
            }
            (plain, expected) = (rest, later);
        }
        match progress.stop {
            Stop::End => return stream.is_empty() && expected.is_empty() && pieces.all(<[u8]>::is_empty),
            Stop::Room => {}
            Stop::Input | Stop::Block | Stop::Head => return false,
        }
    }
}

const GZIP_HEAD_BYTES: usize = 10;

/// Bytes that are decompressed at a time.
const COMPARE_BYTES: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::{Engine, Pool, Tuning};
    use crate::coding::Level;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn body() -> Vec<u8> {
        (0u32..40_000).flat_map(|i| (i / 7 * 31).to_le_bytes()).collect()
    }

    fn coded(coding: Coding) -> Vec<u8> {
        let mut out = Vec::new();
        (Engine::of(coding).whole)(&body(), Level(6), &Pool::new(Tuning::default()), &mut out).unwrap();
        out
    }

    #[test]
    fn sound_results_pass_every_check() {
        let body = body();
        let (one, rest) = body.split_at(33_333);
        let several = Pieces::new(vec![Arc::new(one.to_vec()), Arc::new(Vec::new()), Arc::new(rest.to_vec())]);
        for how in [Verify::None, Verify::Checksum, Verify::Full] {
            for pieces in [Pieces::from(body.clone()), several.clone()] {
                let (gzip, zlib, raw) = (coded(Coding::Gzip), coded(Coding::Deflate), coded(Coding::RawDeflate));
                assert_eq!(judge(&gzip, &pieces, Coding::Gzip, how), Some(0..gzip.len()));
                assert_eq!(judge(&zlib, &pieces, Coding::Deflate, how), Some(0..zlib.len()));
                let stream = judge(&zlib, &pieces, Coding::RawDeflate, how).unwrap();
                assert!(zlib[stream] == raw, "a raw stream is what lies in zlib's wrapper");
                assert_eq!(judge(&gzip, &pieces, Coding::Zstd, how), None);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Whatever a library's process has written: no panic, and nothing passes in full that is not the body's.
        #[test]
        fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..2000, cut in 0usize..40) {
            let pieces = Pieces::from(body());
            for (coding, sound) in [(Coding::Gzip, coded(Coding::Gzip)), (Coding::RawDeflate, coded(Coding::Deflate))] {
                let mut lie = sound.clone();
                let at = at % lie.len();
                let end = (at + bytes.len()).min(lie.len());
                lie.splice(at..end, bytes.iter().copied());
                lie.truncate(lie.len() - cut.min(lie.len()));
                for lie in [&lie, &bytes] {
                    for how in [Verify::None, Verify::Checksum, Verify::Full] {
                        let judged = judge(lie, &pieces, coding, how);
                        prop_assert!(judged.as_ref().is_none_or(|range| range.end <= lie.len() && range.start <= range.end));
                    }
                }
            }
        }
    }

    #[test]
    fn lies_are_found_by_the_check_that_promises_it() {
        let pieces = Pieces::from(body());
        let sound = coded(Coding::Gzip);
        let at = |from_end: usize| sound.len() - from_end;
        let edit = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut lie = sound.clone();
            change(&mut lie);
            [Verify::None, Verify::Checksum, Verify::Full].map(|how| judge(&lie, &pieces, Coding::Gzip, how).is_some())
        };
        assert_eq!(edit(&|lie| lie[0] = 0), [false; 3], "not gzip");
        assert_eq!(edit(&|lie| lie[3] = 8), [false; 3], "a name follows");
        assert_eq!(edit(&|lie| lie[at(1)] ^= 1), [false; 3], "another length");
        assert_eq!(edit(&|lie| lie.truncate(17)), [false; 3]);
        assert_eq!(edit(&|lie| lie.clear()), [false; 3]);
        assert_eq!(edit(&|lie| lie[at(8)] ^= 1), [true, false, false], "another checksum");
        assert_eq!(edit(&|lie| lie[at(400)] ^= 1), [true, true, false], "another stream");
        let tail = sound[at(8)..].to_vec();
        assert_eq!(edit(&|lie| lie.extend_from_slice(&tail)), [true, true, false], "bytes behind the stream");
        let cut = |lie: &mut Vec<u8>| {
            lie.truncate(at(300));
            lie.extend_from_slice(&tail);
        };
        assert_eq!(edit(&cut), [true, true, false], "a stream that does not end");
    }
}
