//! Work: a stream's next bytes, or a whole body.
//!
//! ```text
//!   Stream ──┐ slices
//!      ^ ^───┘
//!      │       Parts ──┐ one after the other
//!      │         ^ ^───┘
//!      │         │ a large body, unless an engine does it: a stream where its coding has no parts for it
//!   Whole ───────┴─────────> done
//!      ^                      ^
//!      │ it is false          │ it is sound
//!   Check: what an engine has made of a whole body
//! ```

use super::lane::Lane;
use super::twins::{Kind, Lead};
use super::verify;
use crate::budget::{Budget, Held};
use crate::coder::{Coder, CoderFault, Engine, Flush, Keep, Parts, Pool};
use crate::coding::{Coding, Level};
use crate::device::{Piece, Pieces};
use crate::engine::EngineId;
use crate::spent::{self, Site};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a stream that are coded in a turn; then it is another's.
pub const TURN_BYTES: usize = 64 * 1024;

/// The first bytes of a slice, after which it is known how long a byte takes: 150 µs at the most, for bytes that are hardest
/// for zlib's level 9. Each part is at most twice as long as the part before, since later bytes may be harder.
const FIRST_PART_BYTES: usize = 512;
/// The longest part.
const PART_BYTES: usize = 4 * 1024;
/// A slice is over when there is no time for so many: a push costs some 100 ns whatever it takes.
const LEAST_PART_BYTES: usize = 256;

/// Progress of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Its slice is over.
    Slice,
    /// A turn is over.
    Turn,
    /// All is done.
    Done,
}

/// A piece of work that owns all it needs, so that it can be done anywhere.
pub(crate) struct Work {
    task: Task,
    /// The output.
    pub(crate) out: Vec<u8>,
    /// The level of a whole body's output, where software had it at another level than was planned.
    level: Option<Level>,
    ties: Box<Ties>,
}

/// Ties of work to other jobs.
#[derive(Default)]
struct Ties {
    /// The kind of work that has the same output.
    kind: Option<Kind>,
    /// The mark of a job whose output others wait for.
    lead: Option<Lead>,
    /// Its part of the memory limit, for as long as the work lives: an engine may have the body of a client that has gone.
    held: Option<Held<dyn Budget>>,
    /// Time in coders so far, in nanoseconds, for the form that is remembered.
    spent_ns: u64,
}

enum Task {
    Stream { coder: Box<dyn Coder>, coding: Coding, input: Arc<dyn Piece>, at: usize, flush: Flush, lighten: Option<Keep> },
    Parts { parts: Box<dyn Parts>, coding: Coding, input: Arc<dyn Piece>, at: usize },
    Whole(Whole),
    Check { whole: Whole, coded: Vec<u8>, lane: Arc<Lane> },
}

/// A whole body. It is kept until its coded form is.
#[derive(Clone)]
pub(crate) struct Whole {
    engine: &'static Engine,
    level: Level,
    pool: Arc<Pool>,
    input: Pieces,
    /// The engine that is to do it, if not software.
    by: Option<EngineId>,
}

impl Work {
    /// Pushes `input` through a coder with that flush, and then makes the coder small if `lighten` is set.
    pub(crate) fn stream(
        coder: Box<dyn Coder>,
        coding: Coding,
        input: Arc<dyn Piece>,
        flush: Flush,
        lighten: Option<Keep>,
    ) -> Work {
        Work::new(Task::Stream { coder, coding, input, at: 0, flush, lighten })
    }

    /// Codes a whole body.
    pub(crate) fn whole(engine: &'static Engine, level: Level, pool: Arc<Pool>, input: Pieces) -> Work {
        Work::new(Task::Whole(Whole { engine, level, pool, input, by: None }))
    }

    fn new(task: Task) -> Work {
        Work { task, out: Vec::new(), level: None, ties: Box::default() }
    }

    /// Answers for bytes of the memory limit from now on.
    pub(crate) fn holding(mut self, bytes: usize, limit: &Arc<dyn Budget>) -> Work {
        self.ties.held = Some(Held::of(limit.clone(), bytes));
        self
    }

    /// Releases the counted memory; returns its bytes.
    pub(crate) fn release(&mut self) -> usize {
        self.ties.held.take().map_or(0, Held::into_bytes)
    }

    /// Prefers an engine for a whole body.
    pub(crate) fn by(mut self, engine: Option<EngineId>) -> Work {
        if let Task::Whole(whole) = &mut self.task {
            whole.by = engine;
        }
        self
    }

    /// Sets the kind of work that has the same output.
    pub(crate) fn of_kind(mut self, kind: Option<Kind>) -> Work {
        self.ties.kind = kind;
        self
    }

    /// The kind of work that has the same output.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.ties.kind
    }

    /// Marks it as work whose output others wait for.
    pub(super) fn leading(mut self, lead: Lead) -> Work {
        self.ties.lead = Some(lead);
        self
    }

    /// Gives the complete output to the jobs that wait for it.
    pub(crate) fn share(&mut self) {
        if let Some(lead) = self.ties.lead.take() {
            lead.share(&self.out, self.level);
        }
    }

    /// Takes the output of another work of its kind, and its level.
    pub(super) fn copied(mut self, out: &[u8], level: Option<Level>) -> Work {
        (self.out, self.level) = (out.to_vec(), level);
        self
    }

    /// The level of a whole body's output, where it is another than was planned.
    pub(crate) fn level(&self) -> Option<Level> {
        self.level
    }

    /// Time in coders so far, in nanoseconds.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.ties.spent_ns
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

    /// Leaves a whole body to software, at `level` if there is one. A large body is done in parts, as others want their turn,
    /// unless there is no memory for the state between them.
    pub(crate) fn into_software(mut self, level: Option<u8>) -> Work {
        if let Task::Whole(whole) = self.task {
            let level = level.map(Level);
            self.level = level.or(self.level);
            self.task = whole.into_software(level, self.ties.held.as_mut());
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
        matches!(&self.task, Task::Stream { coder, .. } if coder.is_steady())
    }

    /// Does a turn, or as much of it as takes about so long, and counts the time there.
    pub(crate) fn step(&mut self, slice: Option<Duration>, site: Site) -> Result<Progress, CoderFault> {
        let (progress, spent) = spent::timed(self.coding(), site, || self.code(slice));
        self.ties.spent_ns += spent;
        progress
    }

    fn coding(&self) -> Coding {
        match &self.task {
            Task::Stream { coding, .. } | Task::Parts { coding, .. } => *coding,
            Task::Whole(whole) | Task::Check { whole, .. } => whole.coding(),
        }
    }

    fn code(&mut self, slice: Option<Duration>) -> Result<Progress, CoderFault> {
        match &mut self.task {
            Task::Whole(whole) => {
                (whole.engine.whole)(&whole.input.joined(), whole.level, &whole.pool, &mut self.out).map(|()| Progress::Done)
            }
            Task::Parts { parts, input, at, .. } => {
                let input = input.bytes();
                *at = parts.code(input, *at, &mut self.out)?;
                Ok(if *at < input.len() { Progress::Turn } else { Progress::Done })
            }
            Task::Stream { coder, input, at, flush, lighten, .. } => {
                let input = input.bytes();
                let is_one_push = *at == 0 && *flush == Flush::Finish && input.len() <= coder.whole_bytes();
                let turn = if is_one_push { input.len() } else { input.len().min((*at + 1).next_multiple_of(TURN_BYTES)) };
                let mut pace = slice.map(Slice::begin);
                loop {
                    let end = pace.as_ref().map_or(turn, |pace| turn.min(*at + pace.next_bytes));
                    let last = end == input.len();
                    coder.push(&input[*at..end], &mut self.out, if last { *flush } else { Flush::None })?;
                    let pushed = end - *at;
                    *at = end;
                    if last {
                        if let Some(keep) = *lighten {
                            coder.lighten(keep);
                        }
                        return Ok(Progress::Done);
                    }
                    if end == turn {
                        return Ok(Progress::Turn);
                    }
                    if pace.as_mut().is_some_and(|pace| pace.is_over(pushed)) {
                        return Ok(Progress::Slice);
                    }
                }
            }
            Task::Check { whole, coded, lane } => {
                let found = verify::judge(coded, &whole.input, whole.coding(), lane.settings().verify);
                lane.judged(found.is_some(), whole.input.bytes(), coded.len());
                match found {
                    Some(range) => {
                        self.out = cut(std::mem::take(coded), range);
                        Ok(Progress::Done)
                    }
                    None => {
                        let level = lane.settings().fallback.map(Level);
                        self.level = level.or(self.level);
                        self.task = whole.clone().into_software(level, self.ties.held.as_mut());
                        Ok(Progress::Slice)
                    }
                }
            }
        }
    }

    /// The coder, if it was a stream's, and the output.
    pub(crate) fn into_parts(self) -> (Option<Box<dyn Coder>>, Vec<u8>) {
        match self.task {
            Task::Stream { coder, .. } => (Some(coder), self.out),
            Task::Parts { .. } | Task::Whole(_) | Task::Check { .. } => (None, self.out),
        }
    }
}

/// A slice of a stream: parts are as long as there is time for, by the time that the first ones took.
struct Slice {
    begun: Instant,
    time: Duration,
    bytes: usize,
    next_bytes: usize,
}

impl Slice {
    fn begin(time: Duration) -> Slice {
        Slice { begun: Instant::now(), time, bytes: 0, next_bytes: FIRST_PART_BYTES }
    }

    /// Counts so many bytes more; returns whether the time is over.
    fn is_over(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        let (spent, time) = (self.begun.elapsed().as_nanos().max(1), self.time.as_nanos());
        let left = (self.bytes as u128).saturating_mul(time.saturating_sub(spent)) / spent;
        self.next_bytes = usize::try_from(left).unwrap_or(PART_BYTES).min(bytes * 2).min(PART_BYTES);
        self.next_bytes < LEAST_PART_BYTES
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

    fn into_software(mut self, level: Option<Level>, mut held: Option<&mut Held<dyn Budget>>) -> Task {
        self.by = None;
        self.level = level.unwrap_or(self.level);
        if !self.is_large() {
            return Task::Whole(self);
        }
        let (coding, input) = (self.coding(), self.input.into_one());
        // Every job that waits for a turn holds a state meanwhile.
        let mut has_room = |state: usize| held.as_mut().is_none_or(|held| held.take(state));
        match (self.engine.parts)(input.bytes(), self.level, &self.pool) {
            Some(parts) if has_room(parts.memory()) => return Task::Parts { parts, coding, input, at: 0 },
            Some(_) => {}
            None => {
                let coder = (self.engine.stream)(self.level, Some(input.bytes().len() as u64), &self.pool);
                if has_room(coder.full_memory()) {
                    return Task::Stream { coder, coding, input, at: 0, flush: Flush::Finish, lighten: None };
                }
            }
        }
        self.input = input.into();
        Task::Whole(self)
    }

    /// Whether a single step would hold a thread for long.
    fn is_large(&self) -> bool {
        let bytes = self.input.bytes();
        bytes > MAX_WHOLE_BYTES || self.engine.whole_ns(self.level, bytes) > MAX_WHOLE_NS
    }
}

/// The part of the bytes that is wanted.
pub(super) fn cut(mut bytes: Vec<u8>, range: std::ops::Range<usize>) -> Vec<u8> {
    bytes.truncate(range.end);
    bytes.drain(..range.start.min(range.end));
    bytes
}

/// A larger body is not done in a single step by software: a thread of the queue would be gone for tens of milliseconds.
const MAX_WHOLE_BYTES: usize = crate::body::DEFAULT_COLLECT_BYTES;

/// Nor is a body that is expected to take longer, in nanoseconds: such as 128 KB by brotli's level 9.
const MAX_WHOLE_NS: u64 = 20_000_000;
