//! One suite for every engine: what goes in comes out of somebody else's decoder.

use super::parts::PART_BYTES;
use super::{Coder, ENGINES, Engine, Flush, Keep, Pool, Tuning};
use crate::coding::{Coding, Level};
use flate2::{Decompress, FlushDecompress};
use proptest::prelude::*;
use std::sync::Arc;

/// What of `coded` can be decoded, and whether it is complete. The decoders share no line with the engines.
fn decode(coding: Coding, coded: &[u8]) -> (Vec<u8>, bool) {
    let (mut decoder, body) = match coding {
        Coding::Identity => return (coded.to_vec(), true),
        Coding::Gzip => (Decompress::new(false), coded.get(10..).unwrap_or_default()),
        Coding::Deflate => (Decompress::new(true), coded),
        Coding::RawDeflate => (Decompress::new(false), coded),
        Coding::Zstd => return decode_zstd(coded),
        Coding::Brotli => return decode_brotli(coded),
    };
    let mut out = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (taken, given) = (decoder.total_in() as usize, decoder.total_out());
        let status = decoder.decompress(&body[taken..], &mut buffer, FlushDecompress::None).unwrap();
        let new = (decoder.total_out() - given) as usize;
        out.extend_from_slice(&buffer[..new]);
        let ended = status == flate2::Status::StreamEnd;
        if ended || (new == 0 && decoder.total_in() as usize == taken) {
            let tail = &body[decoder.total_in() as usize..];
            return (out.clone(), ended && tail == gzip_tail(coding, &out));
        }
    }
}

/// Decodes what has to be complete.
pub(crate) fn decode_whole(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let (body, complete) = decode(coding, coded);
    assert!(complete, "{coding:?}: {} bytes are not a whole body", coded.len());
    body
}

/// By ruzstd, frame after frame. It keeps a window's bytes to itself until a frame ends, so one that has not ended gets an end.
fn decode_zstd(coded: &[u8]) -> (Vec<u8>, bool) {
    match zstd_frames(coded) {
        Some(body) => (body, true),
        None => (zstd_frames(&[coded, &[1, 0, 0]].concat()).unwrap_or_default(), false),
    }
}

fn zstd_frames(mut coded: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while !coded.is_empty() {
        let mut decoder = ruzstd::decoding::FrameDecoder::new();
        decoder.reset(&mut coded).ok()?;
        decoder.decode_blocks(&mut coded, ruzstd::decoding::BlockDecodingStrategy::All).ok()?;
        body.extend_from_slice(&decoder.collect()?);
    }
    Some(body)
}

/// By the decoder beside the `brotli` crate.
fn decode_brotli(coded: &[u8]) -> (Vec<u8>, bool) {
    let mut decoder = brotli::DecompressorWriter::new(Vec::new(), 64 * 1024);
    let taken = std::io::Write::write_all(&mut decoder, coded).is_ok();
    match decoder.into_inner() {
        Ok(body) => (body, taken),
        Err(part) => (part, false),
    }
}

fn gzip_tail(coding: Coding, body: &[u8]) -> Vec<u8> {
    if coding != Coding::Gzip {
        return Vec::new();
    }
    let mut tail = libdeflater::crc32(body).to_le_bytes().to_vec();
    tail.extend_from_slice(&(body.len() as u32).to_le_bytes());
    tail
}

fn levels(engine: &Engine) -> Vec<Level> {
    engine.coding.entry().levels.clone().chain([engine.coding.entry().default_level.0]).map(Level).collect()
}

fn pool() -> Arc<Pool> {
    Arc::new(Pool::new(Tuning::default()))
}

/// Text, then zeros, then noise: every kind of block.
fn sample(bytes: usize) -> Vec<u8> {
    let words = ["function", " ", "return", "(", ");\n", "value", "=", "0x1f", "prototype", "\u{e9}"];
    let mut state = 88_172_645_463_325_252u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::new();
    while out.len() < bytes * 2 / 3 {
        out.extend_from_slice(words[(next() % words.len() as u64) as usize].as_bytes());
    }
    out.resize(out.len() + bytes / 6, 0);
    while out.len() < bytes {
        out.push(next() as u8);
    }
    out.truncate(bytes);
    out
}

#[test]
fn the_table_is_in_the_order_of_the_codings() {
    for (i, engine) in ENGINES.iter().enumerate() {
        assert_eq!(engine.coding as usize, i);
    }
}

#[test]
fn whole_bodies_come_back() {
    let pool = pool();
    for engine in ENGINES {
        for level in levels(engine) {
            for body in [sample(0), sample(1), sample(1000), sample(100_000)] {
                let mut out = b"before".to_vec();
                (engine.whole)(&body, level, &pool, &mut out).unwrap();
                assert_eq!(decode(engine.coding, &out[6..]), (body, true), "{:?} {level:?}", engine.coding);
            }
        }
    }
}

/// A large body in parts, if its coding has some for it.
fn in_parts(engine: &Engine, body: &[u8], level: Level, pool: &Arc<Pool>) -> Option<Vec<u8>> {
    let mut parts = (engine.parts)(body, level, pool)?;
    let (mut at, mut out) = (0, Vec::new());
    while at < body.len() {
        let end = parts.code(body, at, &mut out).unwrap();
        assert!(end > at && end <= at + 4 * PART_BYTES, "{:?} {level:?}: {at} to {end}", engine.coding);
        at = end;
    }
    Some(out)
}

#[test]
fn parts_come_back_at_every_level() {
    let (pool, body) = (pool(), sample(300_000));
    let flat = b"a flat picture ".repeat(20_000);
    for engine in ENGINES {
        for level in levels(engine) {
            for body in [&body, &flat] {
                let Some(out) = in_parts(engine, body, level, &pool) else { continue };
                assert_eq!(decode(engine.coding, &out), (body.clone(), true), "{:?} {level:?}", engine.coding);
            }
        }
    }
}

#[test]
fn parts_are_no_larger_than_one_go_makes() {
    let (pool, text) = (pool(), sample(900_000)[..600_000].to_vec());
    for (coding, levels) in [(Coding::Gzip, &[1, 4, 5, 6][..]), (Coding::Zstd, &[1, 6, 9, 13]), (Coding::Brotli, &[1, 4, 6, 9])] {
        let engine = Engine::of(coding);
        for &level in levels {
            let mut whole = Vec::new();
            (engine.whole)(&text, Level(level), &pool, &mut whole).unwrap();
            let parts = in_parts(engine, &text, Level(level), &pool).unwrap();
            assert!(parts.len() * 100 <= whole.len() * 101, "{coding:?} {level}: {} beside {}", parts.len(), whole.len());
        }
    }
}

#[test]
fn streams_come_back_at_every_level() {
    let pool = pool();
    let body = sample(70_000);
    for engine in ENGINES {
        for level in levels(engine) {
            let (mut coder, mut out) = ((engine.stream)(level, &pool), Vec::new());
            for piece in body.chunks(64 * 1024) {
                coder.push(piece, &mut out, Flush::None).unwrap();
            }
            coder.push(&[], &mut out, Flush::Finish).unwrap();
            assert_eq!(decode(engine.coding, &out), (body.clone(), true), "{:?} {level:?}", engine.coding);
        }
    }
}

#[test]
fn an_empty_body_is_a_sound_stream() {
    for engine in ENGINES {
        for flush in [Flush::None, Flush::Sync] {
            let (mut coder, mut out) = ((engine.stream)(Level(6), &pool()), Vec::new());
            coder.push(&[], &mut out, flush).unwrap();
            coder.push(&[], &mut out, Flush::Finish).unwrap();
            assert_eq!(decode(engine.coding, &out), (Vec::new(), true), "{:?}", engine.coding);
        }
    }
}

#[test]
fn what_was_flushed_can_be_decoded() {
    let body = sample(60_000);
    for engine in ENGINES {
        for (pieces, light) in
            [(1, None), (7, None), (500, Some(Keep::History)), (500, Some(Keep::Nothing)), (20_000, Some(Keep::History))]
        {
            let (mut coder, mut out, mut fed) = ((engine.stream)(Level(6), &pool()), Vec::new(), 0);
            for piece in body.chunks(pieces).take(40) {
                coder.push(piece, &mut out, Flush::Sync).unwrap();
                fed += piece.len();
                let (came, _) = decode(engine.coding, &out);
                assert!(came == body[..fed], "{:?} {pieces}: {} of {fed}", engine.coding, came.len());
                if let Some(keep) = light {
                    coder.lighten(keep);
                    let most = if keep == Keep::History { coder.history_memory() } else { 0 };
                    assert!(coder.memory() <= most, "{:?}: {}", engine.coding, coder.memory());
                }
            }
            coder.push(&[], &mut out, Flush::Finish).unwrap();
            assert_eq!(decode(engine.coding, &out), (body[..fed].to_vec(), true), "{:?} {pieces}", engine.coding);
            assert_eq!(coder.memory(), 0, "nothing is held behind the end");
        }
    }
}

#[test]
fn a_coder_can_begin_again_at_any_point() {
    let (first, second) = (sample(50_000), sample(30_000));
    for engine in ENGINES {
        for flush in [Flush::None, Flush::Sync, Flush::Finish] {
            let mut coder = (engine.stream)(Level(6), &pool());
            coder.push(&first, &mut Vec::new(), flush).unwrap();
            coder.reset();
            let mut out = Vec::new();
            coder.push(&second, &mut out, Flush::Finish).unwrap();
            assert_eq!(decode(engine.coding, &out), (second.clone(), true), "{:?} {flush:?}", engine.coding);
        }
    }
}

#[test]
fn an_aborted_body_leaves_a_sound_state() {
    let pool = pool();
    let body = sample(40_000);
    for engine in ENGINES {
        let mut coder = (engine.stream)(Level(6), &pool);
        coder.push(&sample(100_000), &mut Vec::new(), Flush::None).unwrap();
        drop(coder);
        let (mut coder, mut out) = ((engine.stream)(Level(6), &pool), Vec::new());
        coder.push(&body, &mut out, Flush::Finish).unwrap();
        assert_eq!(decode(engine.coding, &out), (body.clone(), true), "{:?}", engine.coding);
    }
}

#[test]
fn small_windows_and_memories_work() {
    let body = sample(100_000);
    for tuning in [Tuning { window_bits: 8, memory_level: 1 }, Tuning { window_bits: 12, memory_level: 9 }] {
        let (mut coder, mut out) = ((Engine::of(Coding::Gzip).stream)(Level(9), &Arc::new(Pool::new(tuning))), Vec::new());
        for piece in body.chunks(9000) {
            coder.push(piece, &mut out, Flush::Sync).unwrap();
            coder.lighten(Keep::History);
        }
        coder.push(&[], &mut out, Flush::Finish).unwrap();
        assert_eq!(decode(Coding::Gzip, &out), (body.clone(), true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_split_with_any_flushes_comes_back(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), 1usize..40, 0u8..5), 0..12),
        level in 1u8..=9,
        engine in 0..ENGINES.len(),
    ) {
        let engine = &ENGINES[engine];
        let mut coder: Box<dyn Coder> = (engine.stream)(Level(level), &pool());
        let (mut body, mut out) = (Vec::new(), Vec::new());
        for (bytes, times, then) in &pieces {
            let piece = bytes.repeat(*times);
            body.extend_from_slice(&piece);
            coder.push(&piece, &mut out, if *then == 0 { Flush::None } else { Flush::Sync }).unwrap();
            match then {
                3 => coder.lighten(Keep::History),
                4 => coder.lighten(Keep::Nothing),
                _ => {}
            }
        }
        coder.push(&[], &mut out, Flush::Finish).unwrap();
        prop_assert_eq!(decode(engine.coding, &out), (body, true));
    }
}
