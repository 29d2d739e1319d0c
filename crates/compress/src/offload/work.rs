//! What there is to do: a stream's next bytes, or a whole body.
//!
//! ```text
//!   Stream ──┐ slices
//!      ^ ^───┘
//!      │       Parts ──┐ one after the other
//!      │         ^ ^───┘
//!      │         │ a large body, unless an engine does it: a stream where its coding has no parts for it
//!   Whole ───────┴─────────> done
//!      ^                      ^
//!      │ it lies              │ it is sound
//!   Check: what an engine has made of a whole body
//! ```

use super::lane::Lane;
use super::twins::{Kind, Lead};
use super::verify;
use crate::coder::{Coder, CoderFault, Engine, Flush, Keep, Parts, Pool};
use crate::coding::{Coding, Level};
use crate::device::{Piece, Pieces};
use crate::engine::EngineId;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a stream that are coded in one turn; then it is another's.
pub(crate) const TURN_BYTES: usize = 64 * 1024;

/// Of which a slice takes about so long: for so long a worker may have to wait for its core, or for a slice that it does itself.
const SLICE: Duration = Duration::from_micros(100);

/// Bytes after which the clock is looked at.
const PART_BYTES: usize = 4 * 1024;

/// A piece of work that owns all it needs, so that it can be done anywhere.
pub(crate) struct Work {
    task: Task,
    /// What came out.
    pub(crate) out: Vec<u8>,
    /// What else would come out the same.
    kind: Option<Box<Kind>>,
    /// For those who wait for what comes out of it.
    lead: Option<Box<Lead>>,
}

enum Task {
    Stream {
        coder: Box<dyn Coder>,
        input: Arc<dyn Piece>,
        at: usize,
        flush: Flush,
        lighten: Option<Keep>,
    },
    /// `turns`: parts that were done.
    Parts {
        parts: Box<dyn Parts>,
        input: Arc<dyn Piece>,
        at: usize,
        turns: usize,
    },
    Whole(Whole),
    Check {
        whole: Whole,
        coded: Vec<u8>,
        lane: Arc<Lane>,
    },
}

/// A whole body. It is kept until its coded form is.
#[derive(Clone)]
pub(crate) struct Whole {
    engine: &'static Engine,
    level: Level,
    pool: Arc<Pool>,
    input: Pieces,
    /// Who is to do it, if not software.
    by: Option<EngineId>,
    /// Software does it at one go, however large it is.
    at_one_go: bool,
}

impl Work {
    /// Pushes `input` through a coder with that flush, and then makes the coder small if told so.
    pub(crate) fn stream(coder: Box<dyn Coder>, input: Arc<dyn Piece>, flush: Flush, lighten: Option<Keep>) -> Work {
        Work { task: Task::Stream { coder, input, at: 0, flush, lighten }, out: Vec::new(), kind: None, lead: None }
    }

    /// Codes a whole body.
    pub(crate) fn whole(engine: &'static Engine, level: Level, pool: Arc<Pool>, input: Pieces) -> Work {
        Work {
            task: Task::Whole(Whole { engine, level, pool, input, by: None, at_one_go: false }),
            out: Vec::new(),
            kind: None,
            lead: None,
        }
    }

    /// Prefers an engine for a whole body.
    pub(crate) fn by(mut self, engine: Option<EngineId>) -> Work {
        if let Task::Whole(whole) = &mut self.task {
            whole.by = engine;
        }
        self
    }

    /// Bytes of memory that software holds between two parts of a whole body that it does not do at one go.
    pub(crate) fn parts_memory(&self) -> usize {
        self.as_whole().map_or(0, Whole::parts_memory)
    }

    /// Has software do a whole body at one go, for want of memory to hold between its parts.
    pub(crate) fn at_one_go(mut self) -> Work {
        if let Task::Whole(whole) = &mut self.task {
            whole.at_one_go = true;
        }
        self
    }

    /// Says what else would come out the same.
    pub(crate) fn of_kind(self, kind: Option<Kind>) -> Work {
        Work { kind: kind.map(Box::new), ..self }
    }

    /// What else would come out the same.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind.as_deref().copied()
    }

    /// Others wait for what comes out of it.
    pub(super) fn leading(self, lead: Lead) -> Work {
        Work { lead: Some(Box::new(lead)), ..self }
    }

    /// Gives what has come out, which is all, to those who wait for it.
    pub(super) fn share(&mut self) {
        if let Some(lead) = self.lead.take() {
            lead.share(&self.out);
        }
    }

    /// The engine that is preferred.
    pub(super) fn engine(&self) -> Option<EngineId> {
        self.as_whole().and_then(|whole| whole.by)
    }

    /// The body, if it is one.
    pub(super) fn as_whole(&self) -> Option<&Whole> {
        match &self.task {
            Task::Whole(whole) => Some(whole),
            Task::Stream { .. } | Task::Parts { .. } | Task::Check { .. } => None,
        }
    }

    /// Leaves a whole body to software, at that level if one is named. A large one is done in slices: others want their turn.
    pub(super) fn into_software(mut self, level: Option<u8>) -> Work {
        if let Task::Whole(whole) = self.task {
            self.task = whole.into_software(level);
        }
        self
    }

    /// Has a whole body's coded form looked at.
    pub(super) fn into_check(mut self, coded: Vec<u8>, lane: Arc<Lane>) -> Work {
        if let Task::Whole(whole) = self.task {
            self.task = Task::Check { whole, coded, lane };
        }
        self
    }

    /// Bytes that go in.
    pub(crate) fn bytes(&self) -> usize {
        match &self.task {
            Task::Stream { input, .. } | Task::Parts { input, .. } => input.bytes().len(),
            Task::Whole(whole) | Task::Check { whole, .. } => whole.input.bytes(),
        }
    }

    /// Whether it is done in slices that are short.
    pub(super) fn has_slices(&self) -> bool {
        matches!(&self.task, Task::Stream { coder, .. } if coder.is_prompt())
    }

    /// Bytes of a stream's input that are coded; a part of a large body counts as a turn.
    pub(super) fn taken(&self) -> usize {
        match &self.task {
            Task::Stream { at, .. } => *at,
            Task::Parts { turns, .. } => turns.saturating_mul(TURN_BYTES),
            Task::Whole(_) | Task::Check { .. } => 0,
        }
    }

    /// Does a slice; says whether that was the last.
    pub(crate) fn step(&mut self) -> Result<bool, CoderFault> {
        match &mut self.task {
            Task::Whole(whole) => {
                (whole.engine.whole)(&whole.input.joined(), whole.level, &whole.pool, &mut self.out).map(|()| true)
            }
            Task::Parts { parts, input, at, turns } => {
                let input = input.bytes();
                (*at, *turns) = (parts.code(input, *at, &mut self.out)?, *turns + 1);
                Ok(*at >= input.len())
            }
            Task::Stream { coder, input, at, flush, lighten } => {
                let (input, begun) = (input.bytes(), Instant::now());
                loop {
                    let end = input.len().min(*at + PART_BYTES);
                    let last = end == input.len();
                    coder.push(&input[*at..end], &mut self.out, if last { *flush } else { Flush::None })?;
                    *at = end;
                    if let Some(keep) = lighten.filter(|_| last) {
                        coder.lighten(keep);
                    }
                    if last || end.is_multiple_of(TURN_BYTES) || begun.elapsed() >= SLICE {
                        return Ok(last);
                    }
                }
            }
            Task::Check { whole, coded, lane } => {
                let found = verify::judge(coded, &whole.input, whole.coding(), lane.settings().verify);
                lane.judged(found.is_some(), whole.input.bytes(), coded.len());
                match found {
                    Some(range) => {
                        self.out = cut(std::mem::take(coded), range);
                        Ok(true)
                    }
                    None => {
                        self.task = whole.clone().into_software(lane.settings().fallback);
                        Ok(false)
                    }
                }
            }
        }
    }

    /// Does all of it.
    pub(crate) fn run(mut self) -> Result<Work, CoderFault> {
        while !self.step()? {}
        self.share();
        Ok(self)
    }

    /// The coder, if it was a stream's, and what came out.
    pub(crate) fn into_parts(self) -> (Option<Box<dyn Coder>>, Vec<u8>) {
        match self.task {
            Task::Stream { coder, .. } => (Some(coder), self.out),
            Task::Parts { .. } | Task::Whole(_) | Task::Check { .. } => (None, self.out),
        }
    }
}

impl Whole {
    pub(super) fn coding(&self) -> Coding {
        self.engine.coding
    }

    pub(super) fn level(&self) -> Level {
        self.level
    }

    pub(super) fn input(&self) -> &Pieces {
        &self.input
    }

    fn into_software(mut self, level: Option<u8>) -> Task {
        self.by = None;
        self.level = level.map_or(self.level, Level);
        if self.at_one_go || !self.is_large() {
            return Task::Whole(self);
        }
        let input = self.input.into_one();
        match (self.engine.parts)(input.bytes(), self.level, &self.pool) {
            Some(parts) => Task::Parts { parts, input, at: 0, turns: 0 },
            None => {
                let coder = (self.engine.stream)(self.level, &self.pool);
                Task::Stream { coder, input, at: 0, flush: Flush::Finish, lighten: None }
            }
        }
    }

    /// Whether one go would hold a thread for long.
    fn is_large(&self) -> bool {
        let bytes = self.input.bytes();
        bytes > MAX_WHOLE_BYTES || self.engine.whole_ns(self.level, bytes) > MAX_WHOLE_NS
    }

    fn parts_memory(&self) -> usize {
        if !self.is_large() {
            return 0;
        }
        match (self.engine.parts)(&self.input.joined(), self.level, &self.pool) {
            Some(parts) => parts.memory(),
            None => (self.engine.stream)(self.level, &self.pool).full_memory(),
        }
    }
}

/// The part of the bytes that is wanted.
pub(super) fn cut(mut bytes: Vec<u8>, range: std::ops::Range<usize>) -> Vec<u8> {
    bytes.truncate(range.end);
    bytes.drain(..range.start.min(range.end));
    bytes
}

/// A larger body is not done at one go by software: a thread of the queue would be gone for tens of milliseconds.
const MAX_WHOLE_BYTES: usize = crate::body::DEFAULT_COLLECT_BYTES;

/// Nor is one that is expected to take longer, in nanoseconds: such as 128 KB by brotli's level 9.
const MAX_WHOLE_NS: u64 = 20_000_000;
