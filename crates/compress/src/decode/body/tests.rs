use super::*;
use crate::budget::Limit;
use crate::coding::Coding;
use crate::decode::policy::{self, Decision};
use crate::decode::settings::{Decompression, Effective};
use crate::testing::request;
use std::io::Write;
use std::sync::Arc;
use terse_message::BodyLength;

/// The plan for a Content-Encoding.
fn plan(coding: &str) -> Plan {
    let settings = Decompression { request: Some(vec![Coding::Gzip, Coding::Brotli, Coding::Deflate]), ..Decompression::default() };
    let mut post = request(&format!("POST /\nContent-Encoding: {coding}"));
    post.body = BodyLength::Framed;
    match policy::decide_request(&post, false, &Effective::new(Some(&settings), None)) {
        Some(Decision::Decode(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

fn place(bytes: usize) -> (Rc<Place>, Arc<Limit>) {
    let limit = Arc::new(Limit::new(bytes));
    (Rc::new(Place::new(limit.clone())), limit)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    coder.write_all(body).unwrap();
    coder.finish().unwrap()
}

fn brotli(body: &[u8], window: i32) -> Vec<u8> {
    let mut parameters = brotli::enc::BrotliEncoderParams::default();
    (parameters.quality, parameters.lgwin) = (5, window);
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &body[..], &mut out, &parameters).unwrap();
    out
}

/// Pushes pieces; returns the number of bytes that came out, and the end.
fn decode(coding: &str, limits: Limits, pieces: &[&[u8]]) -> (usize, Result<(), Fault>) {
    let (place, limit) = place(64 << 20);
    let mut decompressor = Decompressor::new(plan(coding), limits, &place).unwrap();
    let mut out = 0;
    let mut run = || {
        for piece in pieces {
            let mut at = 0;
            loop {
                let pushed = decompressor.push(&piece[at..])?;
                assert!(decompressor.output().len() <= PIECE_BYTES);
                out += decompressor.output().len();
                decompressor.clear_output();
                at += pushed.taken;
                if !pushed.more {
                    assert_eq!(at, piece.len());
                    break;
                }
            }
        }
        decompressor.finish()
    };
    let result = run();
    assert!(limit.used() >= STATE_BYTES);
    drop(decompressor);
    assert_eq!(limit.used(), 0, "all memory is given back");
    (out, result)
}

const FREE: Limits = Limits { max_bytes: 0, max_ratio: 0, strict: false };

#[test]
fn chains_undo_what_was_done_twice() {
    let body: Vec<u8> = (0..300_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    for (coding, coded) in [
        ("gzip, gzip", gzip(&gzip(&body))),
        ("br, gzip", gzip(&brotli(&body, 18))),
        ("gzip, br", brotli(&gzip(&body), 18)),
        ("gzip, br, gzip", gzip(&brotli(&gzip(&body), 18))),
    ] {
        for size in [1000, coded.len()] {
            let pieces: Vec<&[u8]> = coded.chunks(size).collect();
            assert_eq!(decode(coding, FREE, &pieces), (body.len(), Ok(())), "{coding} {size}");
        }
        let cut = decode(coding, FREE, &[&coded[..coded.len() - 1]]);
        assert_eq!(cut, (body.len(), Err(Fault::Flaw(Flaw::Truncated))), "{coding}: the outer end counts");
    }
}

#[test]
fn bombs_are_known_by_their_ratio_once_they_are_large() {
    let limits = Limits { max_ratio: 100, ..FREE };
    assert_eq!(decode("gzip", limits, &[&gzip(&vec![0; FREE_BYTES as usize])]).1, Ok(()));
    let (out, end) = decode("gzip", limits, &[&gzip(&vec![0; 8 << 20])]);
    assert!(end == Err(Fault::Ratio) && out <= FREE_BYTES as usize, "{out} {end:?}");
    // Earlier bytes of a fair ratio are to its credit, and no more.
    let noise: Vec<u8> = (0..50_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let coded = [gzip(&noise), gzip(&vec![0; 64 << 20])].concat();
    let (out, end) = decode("gzip", limits, &[&coded]);
    assert!(end == Err(Fault::Ratio) && out < 150 * coded.len(), "{out} {end:?}");
    // A bomb between decoders makes work too.
    let empty: Vec<u8> = gzip(b"").repeat(60_000);
    let (out, end) = decode("gzip, gzip", limits, &[&gzip(&empty)]);
    assert_eq!((out, end), (0, Err(Fault::Ratio)));
}

#[test]
fn bodies_have_a_limit_of_size() {
    let coded = gzip(&vec![0; 300_000]);
    assert_eq!(decode("gzip", Limits { max_bytes: 300_000, ..FREE }, &[&coded]).1, Ok(()));
    let (out, end) = decode("gzip", Limits { max_bytes: 299_999, ..FREE }, &[&coded]);
    assert!(end == Err(Fault::Size) && out < 300_000);
}

#[test]
fn what_follows_the_end_is_dropped_or_an_error() {
    let coded = gzip(b"hello");
    let strict = Limits { strict: true, ..FREE };
    for pieces in [&[&[&coded[..], b"more"].concat()[..]][..], &[&coded, b"more"], &[&coded, b"m", b"ore"]] {
        assert_eq!(decode("gzip", FREE, pieces), (5, Ok(())));
        assert_eq!(decode("gzip", strict, pieces).1, Err(Fault::Flaw(Flaw::Trailing)));
    }
    assert_eq!(decode("gzip", strict, &[&coded, &[0; 1000]]), (5, Ok(())), "padding");
    assert_eq!(decode("gzip", strict, &[]), (0, Ok(())), "a body of no bytes");
}

#[test]
fn a_suspect_is_one_until_it_is_a_bomb_or_none() {
    let (place, _) = place(64 << 20);
    let limits = Limits { max_ratio: 100, ..FREE };
    let mut decompressor = Decompressor::new(plan("gzip"), limits, &place).unwrap();
    let coded = gzip(&vec![0; 64 << 20]);
    let mut pushes = 0;
    let fault = loop {
        match decompressor.push(&coded[decompressor.bytes_in() as usize..]) {
            Ok(_) => assert!(decompressor.is_suspect()),
            Err(fault) => break fault,
        }
        pushes += 1;
    };
    assert_eq!((fault, pushes), (Fault::Ratio, FREE_BYTES as usize / PIECE_BYTES));
    assert!(decompressor.output().len() <= FREE_BYTES as usize + PIECE_BYTES);
    let mut innocent = Decompressor::new(plan("gzip"), limits, &place).unwrap();
    let _ = innocent.push(&gzip(&b"abc".repeat(20))).unwrap();
    assert!(!innocent.is_suspect() && innocent.output().len() == 60);
}

#[test]
fn memory_that_is_not_there_is_an_error_and_no_more() {
    let (small, limit) = place(STATE_BYTES - 1);
    assert!(Decompressor::new(plan("gzip"), FREE, &small).is_none());
    assert_eq!(limit.used(), 0);
    // A window of 16 MB does not fit.
    let (place, limit) = place(4 << 20);
    let coded = brotli(&vec![7; 20 << 20], 24);
    let mut decompressor = Decompressor::new(plan("br"), FREE, &place).unwrap();
    let fault = loop {
        match decompressor.push(&coded[decompressor.bytes_in() as usize..]) {
            Ok(_) => decompressor.clear_output(),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault, Fault::Memory);
    drop(decompressor);
    assert_eq!(limit.used(), 0);
}

#[test]
fn idle_bodies_hold_their_state_alone() {
    let (place, limit) = place(64 << 20);
    let mut decompressor = Decompressor::new(plan("gzip"), FREE, &place).unwrap();
    let _ = decompressor.push(&gzip(&vec![1; 1 << 20])).unwrap();
    assert!(limit.used() > PIECE_BYTES);
    decompressor.clear_output();
    decompressor.relax();
    assert_eq!(limit.used(), STATE_BYTES);
}

#[test]
fn what_trails_inside_ends_alike_however_it_is_split() {
    let inner = [gzip(b"hello"), b"this is part of nothing ".repeat(2_000)].concat();
    let outer = brotli(&inner, 22);
    for step in [1, 7, 100, outer.len()] {
        let pieces: Vec<_> = outer.chunks(step).collect();
        let limits = |strict| Limits { strict, ..Limits::default() };
        assert_eq!(decode("gzip, br", limits(false), &pieces), (5, Ok(())), "{step}");
        assert_eq!(decode("gzip, br", limits(true), &pieces).1, Err(Fault::Flaw(Flaw::Trailing)), "{step}");
        // An outer coding that is cut short is, whatever the inner coding has had.
        let cut: Vec<_> = outer[..outer.len() - 1].chunks(step).collect();
        assert_eq!(decode("gzip, br", limits(false), &cut).1, Err(Fault::Flaw(Flaw::Truncated)), "{step}");
    }
}
