//! Every engine in both of its interfaces, through the cases that all engines pass ([`terse_trial`]), and the cases that only
//! these have.

use super::parts::PART_BYTES;
use super::{Coder, ENGINES, Engine, Flush, Keep, Pool, Tuning};
use crate::coding::{Coding, Level};
use std::sync::Arc;
use terse_trial::bodies::{mixed, text};
use terse_trial::{Form, Stream, Streams, Whole, decode, stream, whole};

/// The form of a coding in these cases.
fn form(coding: Coding) -> Form {
    match coding {
        Coding::Gzip => Form::Gzip,
        Coding::Deflate => Form::Zlib,
        Coding::RawDeflate => Form::Raw,
        Coding::Zstd => Form::Zstd,
        Coding::Brotli => Form::Brotli,
        Coding::Identity => Form::Identity,
        // What needs a dictionary has no engine for everybody: dcz's own tests have its cases.
        Coding::Dcz => unreachable!("dcz is not among these"),
    }
}

/// The engines that need nothing beside the body.
fn ordinary() -> impl Iterator<Item = &'static Engine> {
    ENGINES.iter().filter(|engine| !engine.coding.has_dictionary())
}

/// Decodes what has to be complete.
pub(crate) fn decode_whole(coding: Coding, coded: &[u8]) -> Vec<u8> {
    decode::whole(form(coding), coded)
}

/// An engine, with a pool of its own.
struct Face {
    engine: &'static Engine,
    pool: Arc<Pool>,
}

impl Face {
    fn new(engine: &'static Engine, tuning: Tuning) -> Face {
        Face { engine, pool: Arc::new(Pool::new(tuning)) }
    }

    fn levels(&self) -> Vec<u8> {
        self.engine.coding.entry().levels.clone().collect()
    }
}

impl Whole for Face {
    fn name(&self) -> String {
        format!("{:?}, whole bodies", self.engine.coding)
    }

    fn form(&self) -> Form {
        form(self.engine.coding)
    }

    fn levels(&self) -> Vec<u8> {
        Face::levels(self)
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        (self.engine.whole)(body, Level(level), &self.pool, out).map_err(|fault| format!("{fault:?}"))
    }
}

/// The same, in parts where a body is large and its coding has some for it.
struct InParts(Face);

impl Whole for InParts {
    fn name(&self) -> String {
        format!("{:?}, whole bodies in parts", self.0.engine.coding)
    }

    fn form(&self) -> Form {
        Whole::form(&self.0)
    }

    fn levels(&self) -> Vec<u8> {
        self.0.levels()
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        let is_large = body.len() > PART_BYTES;
        if is_large && in_parts(self.0.engine, body, Level(level), &self.0.pool, out) {
            Ok(())
        } else {
            self.0.code(body, level, out)
        }
    }
}

/// A body in parts, if its coding has some for it; false otherwise.
fn in_parts(engine: &Engine, body: &[u8], level: Level, pool: &Arc<Pool>, out: &mut Vec<u8>) -> bool {
    let Some(mut parts) = (engine.parts)(body, level, pool) else { return false };
    let mut at = 0;
    while at < body.len() {
        let end = parts.code(body, at, out).unwrap();
        assert!(end > at && end <= at + 4 * PART_BYTES, "{:?} {level:?}: {at} to {end}", engine.coding);
        at = end;
    }
    true
}

impl Streams for Face {
    fn name(&self) -> String {
        format!("{:?}, streams, {:?}", self.engine.coding, self.pool.tuning())
    }

    fn form(&self) -> Form {
        match self.engine.coding {
            // A coder that makes itself small ends its frame.
            Coding::Zstd => Form::ZstdFrames,
            coding => form(coding),
        }
    }

    fn levels(&self) -> Vec<u8> {
        Face::levels(self)
    }

    fn open(&self, level: u8) -> Box<dyn Stream> {
        Box::new(Incremental((self.engine.stream)(Level(level), None, &self.pool)))
    }
}

struct Incremental(Box<dyn Coder>);

impl Stream for Incremental {
    fn push(&mut self, input: &[u8], flush: stream::Flush, out: &mut Vec<u8>) -> Result<(), String> {
        let flush = match flush {
            stream::Flush::None => Flush::None,
            stream::Flush::Sync => Flush::Sync,
            stream::Flush::Finish => Flush::Finish,
        };
        self.0.push(input, out, flush).map_err(|fault| format!("{fault:?}"))
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn lighten(&mut self, all: bool) {
        self.0.lighten(if all { Keep::Nothing } else { Keep::History });
    }
}

#[test]
fn the_table_is_in_the_order_of_the_codings() {
    for (i, engine) in ENGINES.iter().enumerate() {
        assert_eq!(engine.coding as usize, i);
    }
}

#[test]
fn whole_bodies() {
    for engine in ordinary() {
        whole::try_all(&Face::new(engine, Tuning::default()));
    }
}

#[test]
fn whole_bodies_in_parts() {
    for engine in ordinary() {
        whole::try_all(&InParts(Face::new(engine, Tuning::default())));
    }
}

#[test]
fn parts_are_no_larger_than_one_go_makes() {
    let pool = Arc::new(Pool::new(Tuning::default()));
    // With a zero it would be no text.
    let text: Vec<u8> = text(1, 600_000).into_iter().map(|byte| byte.max(1)).collect();
    for (coding, levels) in [(Coding::Gzip, &[1, 4, 5, 6][..]), (Coding::Zstd, &[1, 6, 9, 13]), (Coding::Brotli, &[1, 4, 6, 9])] {
        let engine = Engine::of(coding);
        for &level in levels {
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            (engine.whole)(&text, Level(level), &pool, &mut whole).unwrap();
            assert!(in_parts(engine, &text, Level(level), &pool, &mut parts));
            assert!(parts.len() * 100 <= whole.len() * 102, "{coding:?} {level}: {} beside {}", parts.len(), whole.len());
        }
    }
}

#[test]
fn streams() {
    for engine in ordinary() {
        stream::try_all(&Face::new(engine, Tuning::default()));
    }
}

#[test]
fn streams_with_other_windows_and_memories() {
    for tuning in [Tuning { window_bits: 8, memory_level: 1 }, Tuning { window_bits: 12, memory_level: 9 }] {
        stream::try_all(&Face::new(Engine::of(Coding::Gzip), tuning));
    }
}

/// By this it is decided whether a worker does a push itself.
#[test]
fn a_push_that_is_worth_nothing_brings_nothing_out() {
    let body = mixed(600_000);
    for engine in ordinary().filter(|engine| !engine.coding.is_identity()) {
        for level in [1, 2, 6, 9] {
            let mut coder = (engine.stream)(Level(level), None, &Arc::new(Pool::new(Tuning::default())));
            let (mut out, mut worth) = (Vec::new(), 0);
            for (i, piece) in body.chunks(3000).enumerate() {
                let flush = if i % 70 == 69 { Flush::Sync } else { Flush::None };
                let (due, before) = (coder.due(piece.len(), flush), out.len());
                coder.push(piece, &mut out, flush).unwrap();
                // A head is no work.
                let head = if i == 0 { 10 } else { 0 };
                assert!(due > 0 || out.len() <= before + head, "{:?} {level}: {} bytes", engine.coding, out.len() - before);
                assert!(due > 0 || flush == Flush::None);
                worth += due;
            }
            worth += coder.due(0, Flush::Finish);
            assert!((body.len()..body.len() * 2).contains(&worth), "{:?} {level}: {worth}", engine.coding);
            coder.push(&[], &mut out, Flush::Finish).unwrap();
            assert!(decode_whole(engine.coding, &out) == body);
        }
    }
}

#[test]
fn a_coder_that_makes_itself_small_holds_what_it_says() {
    let body = mixed(20_000);
    for engine in ordinary() {
        for keep in [Keep::History, Keep::Nothing] {
            let (mut coder, mut out) = ((engine.stream)(Level(6), None, &Arc::new(Pool::new(Tuning::default()))), Vec::new());
            for piece in body.chunks(500) {
                coder.push(piece, &mut out, Flush::Sync).unwrap();
                coder.lighten(keep);
                let most = if keep == Keep::History { coder.history_memory() } else { 0 };
                assert!(coder.memory() <= most, "{:?}: {}", engine.coding, coder.memory());
            }
            coder.push(&[], &mut out, Flush::Finish).unwrap();
            assert_eq!(coder.memory(), 0, "nothing is held behind the end");
        }
    }
}
