//! A worker is not held by the blocks of codings that work in blocks.

use super::tests::{drive, place, text};
use super::*;
use crate::coder::conformance::decode_whole;
use crate::coding::Coding;
use crate::offload::tests::block_on;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use terse_dictionary::Pattern;
use terse_dictionary::field::UseAs;

/// Codings and levels a block of which takes longer than a worker may.
const SLOW: [(Coding, u8); 7] = [
    (Coding::Brotli, 0),
    (Coding::Brotli, 5),
    (Coding::Brotli, 6),
    (Coding::Brotli, 9),
    (Coding::Zstd, 3),
    (Coding::Zstd, 9),
    (Coding::Dcz, 6),
];

const PIECE: usize = 4096;

fn compressor(plan: Plan, place: &Arc<Workplace>) -> Compressor {
    let dictionary = || Dictionary::new("d".into(), UseAs::of(Pattern::new("/*").unwrap()), "/", text(100_000));
    let dictionary = plan.coding.has_dictionary().then(|| Arc::new(dictionary()));
    Compressor::with_dictionary(plan, dictionary, None, 0, place)
}

/// Whether these bytes are all of the body: dcz's own tests decode its form.
fn is_whole(coding: Coding, out: &[u8], body: &[u8]) -> bool {
    if coding.has_dictionary() { !out.is_empty() } else { decode_whole(coding, out) == body }
}

#[test]
fn no_piece_however_small_has_a_worker_code_a_block() {
    let body = text(700_000);
    for (coding, level) in SLOW {
        let (place, limit) = place(Some(Queue::start(1, 0, 8).unwrap()), usize::MAX);
        let mut compressor = compressor(Plan { coding, level: Level(level) }, &place);
        let (mut out, mut jobs) = (Vec::new(), 0);
        for piece in body.chunks(PIECE) {
            let before = out.len();
            let step = compressor.feed(piece);
            let away = drive(&mut compressor, step, &mut out);
            assert!(away || out.len() == before, "{coding:?} {level}: {} bytes came out at once", out.len() - before);
            jobs += usize::from(away);
        }
        let step = compressor.finish();
        jobs += usize::from(drive(&mut compressor, step, &mut out));
        // A block is of 256 KB at the most, and no piece goes that fills none.
        assert!((2..=body.len() / 16_384 + 1).contains(&jobs), "{coding:?} {level}: {jobs} jobs");
        assert!(is_whole(coding, &out, &body), "{coding:?} {level}");
        drop(compressor);
        assert_eq!(limit.used(), 0);
    }
}

#[test]
fn a_pause_with_much_in_hand_leaves_and_with_little_stays() {
    let body = text(300_000);
    for (coding, level) in SLOW {
        let (place, _) = place(Some(Queue::start(1, 0, 8).unwrap()), usize::MAX);
        let mut compressor = compressor(Plan { coding, level: Level(level) }, &place);
        let mut out = Vec::new();
        // The first piece makes a state, and may read a dictionary.
        for bytes in [1000, 60_000, 1000, 60_000, 500] {
            let fed = compressor.bytes_in() as usize;
            for piece in body[fed..fed + bytes].chunks(PIECE) {
                let step = compressor.feed(piece);
                drive(&mut compressor, step, &mut out);
            }
            let before = out.len();
            let step = compressor.pause();
            let away = drive(&mut compressor, step, &mut out);
            assert!(out.len() > before, "{coding:?} {level}: a pause brings out what came");
            let is_long = Engine::of(coding).stream_ns(Level(level), bytes) > IN_PLACE_NS;
            assert_eq!(away, is_long, "{coding:?} {level}, {bytes} bytes");
        }
        let fed = compressor.bytes_in() as usize;
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        assert!(is_whole(coding, &out, &body[..fed]), "{coding:?} {level}");
    }
}

/// The worker of a body looks after others for as long as each block is coded.
#[test]
fn others_go_on_between_two_blocks() {
    let body = text(700_000);
    for (coding, level) in [(Coding::Brotli, 6), (Coding::Brotli, 9), (Coding::Zstd, 9)] {
        let (place, _) = place(Some(Queue::start(1, 0, 8).unwrap()), usize::MAX);
        let mut compressor = compressor(Plan { coding, level: Level(level) }, &place);
        let (mut out, mut looks) = (Vec::new(), 0);
        for piece in body.chunks(PIECE) {
            match compressor.feed(piece).unwrap() {
                Step::Away(job) => {
                    let mut job = pin!(job);
                    // The job may be done by the first look; the task still had to give its worker up.
                    looks += 1;
                    let finished = match job.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(finished) => finished,
                        Poll::Pending => block_on(job),
                    };
                    compressor.resume(finished).unwrap();
                }
                step => block_on(compressor.settle(step)).unwrap(),
            }
            out.extend_from_slice(&compressor.take_output());
            compressor.delivered();
        }
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        assert!(looks >= body.len() / TURN_BYTES, "{coding:?} {level}: {looks}");
        assert!(decode_whole(coding, &out) == body);
    }
}

/// A client that goes while a thread has its block takes nothing of it, and leaves nothing counted.
#[test]
fn a_body_whose_block_is_away_can_be_dropped() {
    let body = text(190_000);
    for (coding, level) in SLOW {
        let (place, limit) = place(Some(Queue::start(1, 0, 8).unwrap()), usize::MAX);
        let mut compressor = compressor(Plan { coding, level: Level(level) }, &place);
        let mut out = Vec::new();
        for piece in body.chunks(PIECE) {
            let step = compressor.feed(piece);
            drive(&mut compressor, step, &mut out);
        }
        let job = compressor.finish().unwrap();
        assert!(matches!(job, Step::Away(_)), "{coding:?} {level}");
        assert!(limit.used() > 0);
        drop(job);
        assert_eq!(compressor.feed(b"more").err(), Some(CoderFault));
        drop(compressor);
        // A thread ends with the block that it has; with the queue all threads have ended.
        drop(place);
        assert_eq!(limit.used(), 0, "{coding:?} {level}");
    }
}
