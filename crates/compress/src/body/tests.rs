use super::*;
use crate::budget::Limit;
use crate::coder::Tuning;
use crate::coder::conformance::decode_whole;
use crate::coding::{Coding, Level};
use crate::device::{Coded, Device, Order, Status};
use crate::engine::EngineSettings;
use crate::memory::{Form, Memory, Name, Owner, Recall, Remembrance};
use crate::offload::tests::{Bench, block_on};
use crate::offload::{Cause, Standing};
use proptest::prelude::*;
use std::io::Read;

use std::time::{Duration, Instant};

const GZIP: Plan = Plan { coding: Coding::Gzip, level: Level(6) };

pub(super) fn place(queue: Option<Queue>, limit: usize) -> (Arc<Workplace>, Arc<Limit>) {
    let limit = Arc::new(Limit::new(limit));
    let place = Workplace {
        pool: Arc::new(Pool::new(Tuning::default())),
        queue: queue.map(Arc::new),
        budget: limit.clone(),
        in_place_ns: IN_PLACE_NS,
        meter: None,
        brake: None,
    };
    (Arc::new(place), limit)
}

pub(super) fn text(bytes: usize) -> Vec<u8> {
    (0u32..)
        .flat_map(|i| format!("item {} is {}; ", i.wrapping_mul(2_654_435_761) >> 20, i % 17).into_bytes())
        .take(bytes)
        .collect()
}

/// The decodable part of a gzip stream.
fn decoded(gzip: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(gzip);
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = decoder.read(&mut buffer) {
        out.extend_from_slice(&buffer[..n]);
    }
    out
}

/// Ends a step and hands on its output; returns whether the step was done elsewhere.
pub(super) fn drive(compressor: &mut Compressor, step: Result<Step, Fault>, out: &mut Vec<u8>) -> bool {
    let step = step.unwrap();
    let away = matches!(step, Step::Away(_));
    block_on(compressor.settle(step)).unwrap();
    out.extend_from_slice(&compressor.take_output());
    compressor.delivered();
    away
}

#[test]
fn a_coder_whose_receiver_takes_nothing_rests() {
    let body = text(600_000);
    for (coding, rests) in [(Coding::Gzip, true), (Coding::Deflate, true), (Coding::Zstd, false), (Coding::Brotli, false)] {
        let (place, limit) = place(None, usize::MAX);
        let mut compressor = Compressor::new(Plan { coding, level: Level(6) }, Some(600_000), 0, &place);
        let mut out = Vec::new();
        for piece in body.chunks(50_000) {
            let step = compressor.feed(piece).unwrap();
            block_on(compressor.settle(step)).unwrap();
            let output = compressor.take_output();
            let held = limit.used();
            compressor.rest().unwrap();
            out.extend_from_slice(&output);
            compressor.delivered();
            assert_eq!(limit.used() < held.min(60_000), rests, "{coding:?}: {held} and {}", limit.used());
            assert!(!rests || compressor.has_pending(), "what the rest brought out is still to be taken");
        }
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        assert_eq!(compressor.bytes_out(), out.len() as u64);
        assert!(decode_whole(coding, &out) == body, "{coding:?}");
        drop(compressor);
        assert_eq!(limit.used(), 0);
    }
}

#[test]
fn a_coder_without_a_slot_keeps_nothing_between_two_pieces() {
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd, Coding::Brotli] {
        let (place, limit) = place(None, usize::MAX);
        let slots = crate::slots::Slots::new(1);
        let begin = || {
            let mut compressor = Compressor::new(Plan { coding, level: Level(6) }, Some(9000), DEFAULT_COLLECT_BYTES, &place);
            compressor.within(slots.clone(), None);
            compressor
        };
        let (mut first, mut second, mut out) = (begin(), begin(), [Vec::new(), Vec::new()]);
        let mut held = [0, 0];
        for piece in text(9000).chunks(3000) {
            for (at, compressor) in [&mut first, &mut second].into_iter().enumerate() {
                let before = limit.used();
                drop(compressor.feed(piece).unwrap());
                let step = compressor.pause();
                drive(compressor, step, &mut out[at]);
                held[at] += limit.used().saturating_sub(before);
            }
        }
        assert!(held[0] > 50_000 && held[1] < 1000, "{coding:?}: {held:?}");
        for (compressor, out) in [&mut first, &mut second].into_iter().zip(&mut out) {
            let step = compressor.finish();
            drive(compressor, step, out);
            // Each piece is a frame of its own.
            let is_whole = match coding {
                Coding::Zstd => terse_trial::decode::whole(terse_trial::Form::ZstdFrames, out) == text(9000),
                _ => decode_whole(coding, out) == text(9000),
            };
            assert!(is_whole, "{coding:?}");
        }
        assert!(slots.has_room(), "{coding:?}: a body that has ended has no slot");
    }
}

#[test]
fn a_body_that_fits_is_compressed_as_a_whole() {
    let (place, limit) = place(None, 1 << 20);
    let body = text(132_000);
    let mut whole = Vec::new();
    (Engine::of(Coding::Gzip).whole)(&body, Level(6), &place.pool, &mut whole).unwrap();
    for known in [None, Some(body.len() as u64)] {
        let mut compressor = Compressor::new(GZIP, known, DEFAULT_COLLECT_BYTES, &place);
        let mut out = Vec::new();
        for piece in body.chunks(16_000) {
            let step = compressor.feed(piece);
            drive(&mut compressor, step, &mut out);
        }
        assert!(out.is_empty() && compressor.has_pending());
        assert!(limit.used() >= body.len() && limit.used() <= DEFAULT_COLLECT_BYTES);
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        assert_eq!(out, whole);
        assert_eq!((compressor.bytes_in(), compressor.bytes_out()), (body.len() as u64, whole.len() as u64));
        assert_eq!(limit.used(), 0);
    }
}

#[test]
fn what_came_before_a_pause_can_be_decoded_after_it() {
    for tight in [false, true] {
        let (place, limit) = place(None, if tight { 450_000 } else { 8 << 20 });
        let mut compressor = Compressor::new(GZIP, None, DEFAULT_COLLECT_BYTES, &place);
        let (mut fed, mut out) = (Vec::new(), Vec::new());
        for (i, piece) in text(9000).chunks(300).enumerate() {
            drop(compressor.feed(piece).unwrap());
            fed.extend_from_slice(piece);
            let step = compressor.pause();
            drive(&mut compressor, step, &mut out);
            assert!(!compressor.has_pending());
            assert_eq!(decoded(&out), fed, "{i}");
            assert_eq!(limit.used() < 10_000, tight, "a coder is small when memory is tight: {}", limit.used());
        }
        let length = out.len();
        let step = compressor.pause();
        drive(&mut compressor, step, &mut out);
        assert_eq!(out.len(), length, "a second pause adds nothing");
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        assert_eq!(decoded(&out), fed);
        assert_eq!(limit.used(), 0);
    }
}

#[test]
fn large_bodies_stream() {
    let (place, limit) = place(None, 4 << 20);
    let body = text(700_000);
    for known in [None, Some(body.len() as u64)] {
        let mut compressor = Compressor::new(GZIP, known, DEFAULT_COLLECT_BYTES, &place);
        let mut out = Vec::new();
        for piece in body.chunks(64 * 1024) {
            let step = compressor.feed(piece);
            drive(&mut compressor, step, &mut out);
        }
        assert!(out.len() > 10_000, "it comes out while it goes in");
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        assert_eq!(decoded(&out), body);
        assert_eq!(limit.used(), 0);
        assert!(compressor.feed(b"more").is_err() && compressor.finish().is_err());
    }
}

#[test]
fn without_memory_it_streams_and_holds_nothing() {
    let (place, limit) = place(None, 1000);
    let body = text(400_000);
    let mut compressor = Compressor::new(GZIP, None, DEFAULT_COLLECT_BYTES, &place);
    let mut out = Vec::new();
    for piece in body.chunks(10_000) {
        let step = compressor.feed(piece);
        drive(&mut compressor, step, &mut out);
        assert!(limit.used() <= 1000);
    }
    let step = compressor.finish();
    drive(&mut compressor, step, &mut out);
    assert_eq!(decoded(&out), body);
    assert!(limit.refused() > 0 && limit.used() == 0);
}

#[test]
fn output_counts_until_it_is_delivered() {
    let (place, limit) = place(None, 4 << 20);
    let mut compressor = Compressor::new(GZIP, Some(100_000), DEFAULT_COLLECT_BYTES, &place);
    drop(compressor.feed(&text(100_000)).unwrap());
    let step = compressor.finish().unwrap();
    assert!(limit.used() >= 100_000, "it is held until it is coded");
    block_on(compressor.settle(step)).unwrap();
    let output = compressor.take_output();
    assert!(output.len() > 5_000 && limit.used() >= output.len() && limit.used() < 100_000, "{}", limit.used());
    compressor.delivered();
    assert_eq!(limit.used(), 0);
}

#[test]
fn large_work_leaves_and_small_work_stays() {
    let (place, limit) = place(Some(Queue::start(2, 0, 8).unwrap()), 4 << 20);
    let body = text(600_000);
    let mut compressor = Compressor::new(GZIP, None, DEFAULT_COLLECT_BYTES, &place);
    let (mut left, mut out) = (Vec::new(), Vec::new());
    for piece in body.chunks(60_000) {
        let step = compressor.feed(piece);
        left.push(drive(&mut compressor, step, &mut out));
    }
    let step = compressor.pause();
    left.push(drive(&mut compressor, step, &mut out));
    let step = compressor.finish();
    left.push(drive(&mut compressor, step, &mut out));
    assert_eq!(left, [false, false, false, false, true, true, true, true, true, true, false, false]);
    assert_eq!(decoded(&out), body);
    assert_eq!(limit.used(), 0);

    let mut small = Compressor::new(GZIP, Some(8000), DEFAULT_COLLECT_BYTES, &place);
    drop(small.feed(&body[..8000]).unwrap());
    let step = small.finish();
    assert!(!drive(&mut small, step, &mut out));
    assert_eq!(decoded(&out[out.len() - small.bytes_out() as usize..]), body[..8000]);
}

/// A device that does everything at once.
struct Prompt;

impl Device for Prompt {
    fn submit(&self, batch: Vec<Order>) {
        for order in batch {
            let (mut bytes, pool) = (Vec::new(), Pool::new(Tuning::default()));
            (Engine::of(Coding::Gzip).whole)(&order.input.joined(), order.level, &pool, &mut bytes).unwrap();
            order.end(Ok(Coded { bytes, took: Duration::ZERO }));
        }
    }
    fn overdue(&self, _: u64) {}
    fn status(&self) -> Status {
        Status::default()
    }
}

/// Whether a body at the first level is coded in place, with an engine or without.
fn stays(body: &[u8], engine: Option<(EngineSettings, Arc<dyn Device>)>) -> (bool, Arc<Workplace>) {
    let preferred = engine.as_ref().map(|_| EngineId(0));
    let queue = Queue::with_engines(1, 0, 8, engine.into_iter().collect()).unwrap();
    let (place, _) = place(Some(queue), 4 << 20);
    let lane = || place.queue.as_ref().and_then(|queue| queue.engines().first());
    let deadline = Instant::now() + Duration::from_secs(10);
    while lane().is_some_and(|lane| lane.standing() != Standing::Up && &*lane.settings().name == "prompt") {
        assert!(Instant::now() < deadline, "it answers at once");
        std::thread::yield_now();
    }
    let mut compressor = Compressor::new(Plan { level: Level(1), ..GZIP }, Some(body.len() as u64), DEFAULT_COLLECT_BYTES, &place);
    compressor.prefer(preferred);
    let mut out = Vec::new();
    let step = compressor.feed(body);
    drive(&mut compressor, step, &mut out);
    assert!(compressor.is_collecting());
    let step = compressor.finish();
    if let Ok(Step::Here(ns)) = &step {
        assert_eq!(*ns, Engine::of(Coding::Gzip).body_ns(Level(1), body));
    }
    let stays = !drive(&mut compressor, step, &mut out);
    assert_eq!(decoded(&out), *body);
    (stays, place)
}

#[test]
fn a_text_at_the_first_level_stays() {
    let text = text(132_000);
    let other: Vec<u8> = text.iter().map(|byte| byte ^ b'i').collect();
    // A body that is no text takes twice as long, and below 48 KB libdeflate's time.
    let bodies = [&text[..], &other, &other[..60_000], &other[..40_000]];
    assert_eq!(bodies.map(|body| stays(body, None).0), [true, false, true, false]);
}

#[test]
fn a_text_at_the_first_level_goes_to_an_engine_that_takes_it() {
    let text = text(132_000);
    let (idle, prompt): (Arc<dyn Device>, Arc<dyn Device>) = (Arc::new(Idle), Arc::new(Prompt));
    let settings = |name: &str| EngineSettings { name: name.into(), ..EngineSettings::default() };
    let cases = [
        (settings("prompt"), prompt.clone(), false, [1, 0, 0]),
        (EngineSettings { largest: 100_000, ..settings("prompt") }, prompt, true, [0, 1, 0]),
        (settings("down"), idle.clone(), true, [0, 0, 1]),
        (EngineSettings { fallback: Some(1), ..settings("down") }, idle.clone(), true, [0, 0, 1]),
        // Software is to do it at another level, at which it takes long.
        (EngineSettings { fallback: Some(9), ..settings("down") }, idle, false, [0, 0, 1]),
    ];
    for (settings, device, expected, counted) in cases {
        let (stays, place) = stays(&text, Some((settings.clone(), device)));
        let lane = &place.queue.as_ref().unwrap().engines()[0];
        let numbers = lane.numbers();
        let counts = [numbers.jobs.load(Relaxed), numbers.unfit.load(Relaxed), numbers.fallen(Cause::Down)];
        assert_eq!((stays, counts), (expected, counted), "{settings:?}");
    }
}

#[test]
fn what_finds_the_line_full_is_done_here_step_by_step() {
    let (queue, bench) = (Queue::start(1, 0, 1).unwrap(), Bench::new());
    let (busy, go) = bench.work(1, 1);
    let busy = queue.submit(busy).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let (waiting, go_too) = bench.work(2, 1);
    let waiting = queue.submit(waiting).ok().unwrap();
    let (place, limit) = place(Some(queue), 16 << 20);
    let body = text(400_000);
    // A whole body, the collected part of a stream, and its end.
    for pauses in [false, true] {
        let mut compressor = Compressor::new(GZIP, None, 1 << 20, &place);
        let (mut steps, mut out) = (0, Vec::new());
        let mut work = |compressor: &mut Compressor, mut step: Step| {
            while let Step::Here(ns) = step {
                assert!(ns > IN_PLACE_NS && limit.used() >= body.len());
                step = compressor.work().unwrap();
                steps += 1;
            }
            assert!(matches!(step, Step::Done));
            out.extend_from_slice(&compressor.take_output());
            compressor.delivered();
        };
        drop(compressor.feed(&body).unwrap());
        if pauses {
            let step = compressor.pause().unwrap();
            work(&mut compressor, step);
        }
        let step = compressor.finish().unwrap();
        work(&mut compressor, step);
        assert!(compressor.work().is_err(), "there is nothing to do");
        assert_eq!(decoded(&out), body);
        assert!(steps >= 2, "{steps}");
        assert_eq!(limit.used(), 0);
    }
    assert_eq!(place.queue.as_ref().unwrap().numbers().full.load(Relaxed), 2);
    [go, go_too].iter().for_each(|go| go.send(()).unwrap());
    assert!(block_on(busy).0.is_ok() && block_on(waiting).0.is_ok());
}

#[test]
fn without_a_queue_what_is_large_is_done_in_steps_too() {
    let (place, limit) = place(None, 16 << 20);
    let body = text(400_000);
    let mut compressor = Compressor::new(GZIP, Some(body.len() as u64), 1 << 20, &place);
    drop(compressor.feed(&body).unwrap());
    let (mut step, mut steps) = (compressor.finish().unwrap(), 0);
    while let Step::Here(_) = step {
        assert!(limit.used() >= body.len());
        step = compressor.work().unwrap();
        steps += 1;
    }
    assert!(steps >= 2, "{steps}");
    assert_eq!(decoded(&compressor.take_output()), body);
    compressor.delivered();
    assert_eq!(limit.used(), 0);
    // For example the bytes that a decoder has held: more than a turn's bytes at once, in a stream.
    let mut stream = Compressor::new(GZIP, None, 0, &place);
    let step = stream.feed(&body[..1]).unwrap();
    block_on(stream.settle(step)).unwrap();
    let step = stream.feed(&body[1..]).unwrap();
    assert!(matches!(step, Step::Here(_)));
    block_on(stream.settle(step)).unwrap();
    assert!(matches!(stream.finish(), Ok(Step::Done)));
    assert_eq!(decoded(&stream.take_output()), body);
}

#[test]
fn a_large_body_is_done_in_parts_where_there_is_memory_for_its_state() {
    let body = text(400_000);
    let plan = Plan { coding: Coding::Zstd, level: Level(9) };
    let mut forms = Vec::new();
    for memory in [1 << 20, 64 << 20] {
        let (place, limit) = place(Some(Queue::start(1, 0, 8).unwrap()), memory);
        let mut compressor = Compressor::new(plan, Some(body.len() as u64), 1 << 20, &place);
        drop(compressor.feed(&body).unwrap());
        let step = compressor.finish();
        assert_eq!(limit.used() > 8 << 20, memory > 8 << 20, "{}", limit.used());
        let mut out = Vec::new();
        assert!(drive(&mut compressor, step, &mut out), "it is large enough to leave");
        assert_eq!(limit.used(), 0);
        assert!(decode_whole(plan.coding, &out) == body);
        forms.push(out);
    }
    let mut whole = Vec::new();
    (Engine::of(plan.coding).whole)(&body, plan.level, &Pool::new(Tuning::default()), &mut whole).unwrap();
    assert!(forms[0] == whole && forms[1] != whole);
}

/// A job that waits for another's output holds a body and no state, until it is its turn to make the output.
#[test]
fn a_state_counts_where_it_is_made() {
    const STATE_BYTES: usize = 8 << 20;
    let (queue, bench) = (Queue::start(1, 0, 8).unwrap(), Bench::new());
    let (busy, go) = bench.work(1, 1);
    let busy = queue.submit(busy).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let (place, limit) = place(Some(queue), 64 << 20);
    let (memory, body) = (Arc::new(Memory::new(1 << 20)), text(400_000));
    let plan = Plan { coding: Coding::Zstd, level: Level(9) };
    let begin = || {
        let mut compressor = Compressor::new(plan, Some(body.len() as u64), 1 << 20, &place);
        compressor.remember(Remembrance::new(memory.clone(), &owner(), plan.level));
        drop(compressor.feed(&body).unwrap());
        let step = compressor.finish().unwrap();
        (compressor, step)
    };
    let first = begin();
    let used = limit.used();
    assert!(used > STATE_BYTES);
    let (mut compressor, step) = begin();
    assert!(limit.used() < used + STATE_BYTES);
    drop(first);
    assert_eq!(limit.used(), used, "the second is to make it now");
    go.send(()).unwrap();
    let mut out = Vec::new();
    drive(&mut compressor, Ok(step), &mut out);
    assert!(decode_whole(plan.coding, &out) == body && block_on(busy).0.is_ok());
    assert_eq!(limit.used(), 0);
}

#[test]
fn a_dropped_job_ends_the_compressor() {
    let (place, limit) = place(Some(Queue::start(1, 0, 8).unwrap()), 4 << 20);
    let mut compressor = Compressor::new(GZIP, Some(200_000), DEFAULT_COLLECT_BYTES, &place);
    drop(compressor.feed(&text(200_000)).unwrap());
    let Ok(Step::Away(job)) = compressor.finish() else { panic!("it is large enough to leave") };
    drop(job);
    assert!(compressor.feed(b"x").is_err() && compressor.pause().is_err() && compressor.finish().is_err());
    drop(compressor);
    // A thread that has begun lets go of the body when it is done; the queue waits for its threads.
    drop(place);
    assert_eq!(limit.used(), 0);
}

#[test]
fn identity_passes_at_once() {
    let (place, _) = place(None, 1000);
    let plan = Plan { coding: Coding::Identity, level: Level(0) };
    let mut compressor = Compressor::new(plan, Some(50), DEFAULT_COLLECT_BYTES, &place);
    let mut out = Vec::new();
    let step = compressor.feed(b"abc");
    drive(&mut compressor, step, &mut out);
    assert_eq!(out, b"abc");
    let step = compressor.finish();
    drive(&mut compressor, step, &mut out);
    assert_eq!(out, b"abc");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_drive_comes_back(
        pieces in prop::collection::vec((0usize..50_000, any::<bool>()), 0..12),
        collect in prop::sample::select(vec![0usize, 1, 10_000, DEFAULT_COLLECT_BYTES]),
        memory in prop::sample::select(vec![0usize, 5000, 400_000, 1 << 22]),
        threads in any::<bool>(),
        coding in prop::sample::select(vec![Coding::Gzip, Coding::Identity]),
    ) {
        let (place, limit) = place(threads.then(|| Queue::start(1, 0, 1).unwrap()), memory);
        let mut compressor = Compressor::new(Plan { coding, level: Level(3) }, None, collect, &place);
        let body = text(pieces.iter().map(|(bytes, _)| bytes).sum());
        let mut at = 0;
        let mut out = Vec::new();
        for (bytes, pause) in pieces {
            let step = compressor.feed(&body[at..at + bytes]);
            drive(&mut compressor, step, &mut out);
            at += bytes;
            if pause {
                let step = compressor.pause();
                drive(&mut compressor, step, &mut out);
                let so_far = if coding.is_identity() { out.clone() } else { decoded(&out) };
                prop_assert!(so_far == body[..at]);
            }
        }
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        prop_assert_eq!(compressor.bytes_out(), out.len() as u64);
        let came_back = if coding.is_identity() { out } else { decoded(&out) };
        prop_assert!(came_back == body);
        prop_assert_eq!(limit.used(), 0);
    }
}

fn owner() -> Owner {
    Owner::new(&[7; 32], "test")
}

#[test]
fn what_was_compressed_before_comes_out_of_the_memory() {
    for threads in [false, true] {
        let (place, limit) = place(threads.then(|| Queue::start(1, 0, 8).unwrap()), 8 << 20);
        let memory = Arc::new(Memory::new(1 << 20));
        let body = text(200_000);
        let mut forms: Vec<Vec<u8>> = Vec::new();
        for expected in [Recall::New, Recall::Kept, Recall::Hit, Recall::Hit] {
            let mut compressor = Compressor::new(GZIP, None, DEFAULT_COLLECT_BYTES, &place);
            compressor.remember(Remembrance::new(memory.clone(), &owner(), Level(6)));
            let mut out = Vec::new();
            for piece in body.chunks(16_000) {
                let step = compressor.feed(piece);
                drive(&mut compressor, step, &mut out);
            }
            let step = compressor.finish();
            let away = drive(&mut compressor, step, &mut out);
            assert_eq!((compressor.recall(), away), (Some(expected), threads && expected != Recall::Hit));
            assert_eq!((compressor.level(), compressor.bytes_out()), (Level(6), out.len() as u64));
            assert_eq!(limit.used(), 0);
            forms.push(out);
        }
        assert!(decoded(&forms[0]) == body && forms.iter().all(|form| *form == forms[0]));
    }
}

/// A device that does nothing: its engine never comes up, so all is done at the level of `fallback`.
struct Idle;

impl Device for Idle {
    fn submit(&self, _: Vec<Order>) {}
    fn overdue(&self, _: u64) {}
    fn status(&self) -> Status {
        Status::default()
    }
}

#[test]
fn what_software_made_for_an_engine_is_remembered_at_its_own_level() {
    for (fallback, used, least, last) in [(0, 0, 6, Recall::Kept), (1, 1, 1, Recall::Hit), (9, 9, 6, Recall::Hit)] {
        let settings = EngineSettings { fallback: Some(fallback), said_smallest: Some(100), ..EngineSettings::default() };
        let queue = Queue::with_engines(1, 0, 8, vec![(settings, Arc::new(Idle))]).unwrap();
        let (place, limit) = place(Some(queue), 8 << 20);
        let memory = Arc::new(Memory::new(1 << 20));
        let body = text(200_000);
        for expected in [Recall::New, Recall::Kept, last] {
            let mut compressor = Compressor::new(GZIP, None, DEFAULT_COLLECT_BYTES, &place);
            compressor.remember(Remembrance::new(memory.clone(), &owner(), Level(least)));
            compressor.prefer(Some(EngineId(0)));
            let mut out = Vec::new();
            let step = compressor.feed(&body);
            drive(&mut compressor, step, &mut out);
            let step = compressor.finish();
            let away = drive(&mut compressor, step, &mut out);
            assert_eq!((compressor.recall(), away), (Some(expected), expected != Recall::Hit), "{fallback} {least}");
            assert_eq!((compressor.level(), limit.used()), (Level(used), 0), "{fallback} {least}");
            assert!(decoded(&out) == body);
        }
    }
}

#[test]
fn a_form_that_is_being_sent_counts_until_it_is_delivered() {
    let (place, limit) = place(None, 8 << 20);
    let memory = Arc::new(Memory::new(1 << 20));
    let form = Form { coding: Coding::Gzip, level: Level(6), bytes: vec![1; 40_000].into(), cost_ns: 7 };
    memory.keep(&Name::of(&owner(), b"body"), form);
    let mut compressor = Compressor::new(GZIP, None, DEFAULT_COLLECT_BYTES, &place);
    compressor.remember(Remembrance::new(memory.clone(), &owner(), Level(6)));
    drop(compressor.feed(b"body").unwrap());
    drop(compressor.finish().unwrap());
    let output = compressor.take_output();
    memory.clear();
    assert_eq!((output.len(), limit.used()), (40_000, 40_000), "the memory does not hold it any more");
    compressor.delivered();
    assert_eq!(limit.used(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// However bodies come, and whatever the memory holds of them: the output decodes to the input.
    #[test]
    fn what_is_remembered_decodes_to_its_body(
        drives in prop::collection::vec((0usize..5, 1usize..70_000, any::<bool>(), 1u8..4, 1u8..4), 1..24),
        memory_bytes in prop::sample::select(vec![64usize << 10, 1 << 20]),
        threads in any::<bool>(),
    ) {
        let (place, limit) = place(threads.then(|| Queue::start(1, 0, 2).unwrap()), 4 << 20);
        let memory = Arc::new(Memory::new(memory_bytes));
        let bodies: Vec<Vec<u8>> = (0..5).map(|i| text(60_000 + i * 7_000).split_off(i * 1_000)).collect();
        for (i, pieces, pause, level, least) in drives {
            let plan = Plan { coding: Coding::Gzip, level: Level(level.max(least)) };
            let mut compressor = Compressor::new(plan, None, DEFAULT_COLLECT_BYTES, &place);
            compressor.remember(Remembrance::new(memory.clone(), &owner(), Level(least)));
            let mut out = Vec::new();
            for (at, piece) in bodies[i].chunks(pieces).enumerate() {
                let step = compressor.feed(piece);
                drive(&mut compressor, step, &mut out);
                if pause && at == 0 {
                    let step = compressor.pause();
                    drive(&mut compressor, step, &mut out);
                }
            }
            let step = compressor.finish();
            drive(&mut compressor, step, &mut out);
            prop_assert!(decoded(&out) == bodies[i]);
            prop_assert_eq!(compressor.bytes_out(), out.len() as u64);
            prop_assert!(compressor.level() >= Level(least));
            prop_assert_eq!(compressor.recall() == Some(Recall::Stream), pause);
            prop_assert!(memory.held().1 <= memory_bytes && limit.used() == 0);
        }
    }
}

#[test]
fn streams_are_eased_while_a_brake_is_on() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let body = terse_trial::bodies::text(1, 1 << 20);
    let on = Arc::new(AtomicBool::new(false));
    let asked = on.clone();
    let place = Workplace {
        pool: Arc::new(Pool::new(Tuning::default())),
        queue: None,
        budget: Arc::new(Limit::new(usize::MAX)),
        in_place_ns: IN_PLACE_NS,
        meter: None,
        brake: Some(Box::new(move || asked.load(Relaxed))),
    };
    let place = Arc::new(place);
    // The bytes that came out of each half.
    let halves = |coding, first: bool, second: bool| {
        let mut compressor = Compressor::new(Plan { coding, level: Level(6) }, None, 0, &place);
        let (mut out, mut half) = (Vec::new(), 0);
        for (i, piece) in body.chunks(1 << 14).enumerate() {
            on.store(if i < 32 { first } else { second }, Relaxed);
            let step = compressor.feed(piece);
            drive(&mut compressor, step, &mut out);
            if i == 31 {
                let step = compressor.pause();
                drive(&mut compressor, step, &mut out);
                half = out.len();
            }
        }
        let step = compressor.finish();
        drive(&mut compressor, step, &mut out);
        let came_back = match coding {
            // Each change of its level begins a frame.
            Coding::Zstd => terse_trial::decode::whole(terse_trial::Form::ZstdFrames, &out),
            _ => decode_whole(coding, &out),
        };
        assert!(came_back == body);
        (half, out.len() - half)
    };
    for coding in [Coding::Gzip, Coding::Zstd] {
        let [free, braked, late, early] =
            [(false, false), (true, true), (false, true), (true, false)].map(|(first, second)| halves(coding, first, second));
        assert!(braked.0 > free.0 * 21 / 20 && braked.1 > free.1 * 21 / 20, "{coding:?} {free:?} {braked:?}");
        assert!(late.0 == free.0 && late.1 > free.1 * 21 / 20, "{coding:?} {free:?} {late:?}");
        assert!(early.0 == braked.0 && early.1 < braked.1, "{coding:?} {early:?} {braked:?}");
    }
    assert_eq!(halves(Coding::Brotli, true, true), halves(Coding::Brotli, false, false), "a level that is fixed costs no flush");
}

/// Memory that a job holds counts until it is released, whichever task has left before.
#[test]
fn a_job_holds_what_it_was_counted_with() {
    let queue = Queue::start(1, 0, 8).unwrap();
    let bench = Bench::new();
    let (busy, go) = bench.work(1, 1);
    let busy = queue.submit(busy).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let (place, limit) = place(Some(queue), 4 << 20);
    let body = text(200_000);
    for comes_back in [false, true] {
        let mut compressor = Compressor::new(GZIP, Some(body.len() as u64), DEFAULT_COLLECT_BYTES, &place);
        assert!(matches!(compressor.feed(&body), Ok(Step::Done)));
        let Ok(Step::Away(job)) = compressor.finish() else { panic!("it is too much to be done in place") };
        if comes_back {
            go.send(()).unwrap();
            block_on(compressor.settle(Step::Away(job))).unwrap();
            assert_eq!(decoded(&compressor.take_output()), body);
        } else {
            drop(compressor);
            assert!(limit.used() >= body.len());
            drop(job);
        }
    }
    assert!(block_on(busy).0.is_ok());
    assert_eq!(limit.used(), 0);
}
