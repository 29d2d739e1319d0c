//! A body's way through its coder, driven by the proxy.
//!
//! ```text
//!                feed                                          feed: a slice        pause: flush
//!               ┌────┐                                           ┌────┐               ┌────┐
//!               │    v          pause, or too large              │    v               │    v
//!   new ──────> Collecting ───────────────────────────────────> Streaming ────────────────────
//!                   │ finish: the whole at once                     │ finish: the rest
//!                   v                                               v
//!                 Ended <─────────────────────────────────────────────
//! ```
//!
//! Collecting is worth its memory: as a whole a body costs half the time and comes out smaller. It ends where the client
//! would have to wait for it: at the server's first pause. Each arrow that means more than [`IN_PLACE_NS`] of work may leave
//! through [`Step::Away`] and come back through [`Compressor::resume`]. A collected body that does not leave is
//! [`Step::Here`]: the caller, which may have other clients to look after first, does it with [`Compressor::work`].
//!
//! A body that will go to an engine of another process is collected in memory that the engine lends ([`Collected`]), as soon
//! as it is known to be large enough: it can be received there ([`Compressor::room`]), and the engine, the checks and the
//! software after it all read those bytes.
//!
//! A body that was collected is looked for in the memory of compressed bodies, if there is one for it ([`Compressor::remember`]): then
//! its form comes out, as if the coder had made it.
//!
//! Memory: the collected bytes and the coder count against [`Workplace::budget`]. Where it refuses, the body is streamed, and its coder
//! makes itself small after each piece: larger on the wire, but nothing fails. So it is where its connection has no slot left for a coder that
//! lasts ([`Compressor::within`]). Where it is tight, coders do so at each pause. Coders that
//! can at once do so as well while many wait for the queue, and for a receiver that takes nothing for long. A job takes
//! what it was counted with along.

mod making;

use crate::budget::Budget;
use crate::coder::{Coder, CoderFault, Engine, Flush, Keep, Pool};
use crate::coding::Level;
use crate::collected::Collected;
use crate::dictionary::Trial;
use crate::dictionary::learning::Recording;
use crate::engine::EngineId;
use crate::memory::{Recall, Remembrance};
use crate::offload::{Finished, Job, Kind, Progress, Queue, TURN_BYTES, Work};
use crate::policy::Plan;
use crate::slots::{Slot, Slots};
use crate::spent::{self, Site};
use making::{Length, coder_of};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terse_dictionary::Dictionary;

/// Bytes of a body held for work on the whole of it, unless `compression collect` is set. Larger ones win little: a bitmap
/// of 7.3 MB at level 6 comes out 4 % smaller in one piece than streamed, and a script's bytes beyond 32 KB see no further back.
pub const DEFAULT_COLLECT_BYTES: usize = 256 * 1024;

/// The most that `compression collect` may say.
pub const MAX_COLLECT_BYTES: usize = 64 << 20;

/// Work that is expected to take less is done in place, in nanoseconds: so long may a worker's other clients wait for it; it
/// is half of that in fact for most codings and levels. What a coder has kept back and would code now counts
/// ([`Coder::due`]). Leaving costs 2 to 10 µs of processor time: for work that is expected
/// to take 200 to 300 µs more than a twentieth for most, for longer work less (`bench/breakeven.md`).
pub const IN_PLACE_NS: u64 = 300_000;

/// A broken coder: the stream must be aborted ([`terse_message::Who::Internal`]).
pub type Fault = CoderFault;

/// State that compressors share: a worker has one.
pub struct Workplace {
    /// States of coders.
    pub pool: Arc<Pool>,
    /// Queue for larger work; without it all work is done in place.
    pub queue: Option<Arc<Queue>>,
    /// The memory that coders and collected bytes count against.
    pub budget: Arc<dyn Budget>,
    /// Work that takes less is done in place, in nanoseconds: [`IN_PLACE_NS`].
    pub in_place_ns: u64,
    /// Meter of bytes that enter a coder, at that time: for `maxcomprate`.
    pub meter: Option<Meter>,
    /// Asked at each piece of a stream: for `maxcomprate` and `maxcompcpuusage`.
    pub brake: Option<Brake>,
}

/// Counts bytes.
pub type Meter = Box<dyn Fn(u64) + Send + Sync>;

/// Whether streams are to try less hard: [`crate::Process::brake`].
pub type Brake = Box<dyn Fn() -> bool + Send + Sync>;

/// Outcome of a call.
#[must_use]
pub enum Step {
    /// It is done; the output is to be [taken](Compressor::take_output).
    Done,
    /// It is to be done here, in one step or several, which take about so many nanoseconds together: call
    /// [`Compressor::work`] for each, and nothing else before.
    Here(u64),
    /// It is being done elsewhere: await the job, hand its output to [`Compressor::resume`], and call nothing else before. A
    /// dropped job ends the compressor: later calls return a [`Fault`].
    Away(Job),
}

/// Output of a compressor.
pub enum Output {
    /// Made for this response.
    Own(Vec<u8>),
    /// Found in the memory, which may hold it too.
    Kept(Arc<[u8]>),
}

impl Deref for Output {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Output::Own(bytes) => bytes,
            Output::Kept(bytes) => bytes,
        }
    }
}

/// The compressor of a body.
///
/// Drive: `feed` for each piece that the server sends, `pause` when it has been silent for a moment and bytes were fed since,
/// and `finish` at the end. After each call (and its work), take the output, hand it on, and report that it is delivered.
pub struct Compressor {
    plan: Plan,
    engine: &'static Engine,
    place: Arc<Workplace>,
    collect_bytes: usize,
    state: State,
    output: Vec<u8>,
    /// A form that was found in the memory: the whole output.
    found: Option<Arc<[u8]>>,
    memory: Option<Box<Remembrance>>,
    pending: bool,
    bytes_in: u64,
    bytes_out: u64,
    /// Time in coders, in nanoseconds.
    spent_ns: u64,
    /// Bytes taken from the budget.
    held: usize,
    /// The engine for the whole body, if it is not software.
    preferred: Option<EngineId>,
    /// Bytes of the body, where the head gives its length.
    known_bytes: Option<usize>,
    /// The slots for coders that last, where they are limited, and its own.
    slots: Option<Rc<Slots>>,
    slot: Option<Slot>,
    /// What the body is coded with, where its coding needs one.
    dictionary: Option<Arc<Dictionary>>,
    /// What its form with that is compared with.
    trial: Option<Trial>,
    /// What hears the body as it comes, to learn it.
    recording: Option<Box<Recording>>,
}

enum State {
    Collecting(Collected),
    Streaming(Box<dyn Coder>),
    /// A whole body is to be coded here.
    Whole(Collected),
    /// Other work is to be done here, which takes about so many nanoseconds.
    Here {
        work: Work,
        ns: u64,
        last: bool,
    },
    /// A job has the coder or the body.
    Away {
        last: bool,
    },
    Ended,
    Broken,
}

impl Compressor {
    /// A compressor; `known_bytes` is the body's length where the head gives it, `collect_bytes` that of
    /// [`crate::Effective::collect_bytes`].
    pub fn new(plan: Plan, known_bytes: Option<u64>, collect_bytes: usize, place: &Arc<Workplace>) -> Compressor {
        Compressor::with_dictionary(plan, None, known_bytes, collect_bytes, place)
    }

    /// The same with a dictionary, which a plan whose coding [needs one](crate::Coding::has_dictionary) must have.
    pub fn with_dictionary(
        plan: Plan,
        dictionary: Option<Arc<Dictionary>>,
        known_bytes: Option<u64>,
        collect_bytes: usize,
        place: &Arc<Workplace>,
    ) -> Compressor {
        let engine = Engine::of(plan.coding);
        // A body that passes unchanged, or is known to be too large, is not collected.
        let fits = known_bytes.is_none_or(|bytes| bytes <= collect_bytes as u64) && !plan.coding.is_identity();
        let state = match fits {
            true => State::Collecting(Collected::Own(Vec::new())),
            false => {
                let dictionary = dictionary.as_ref().map(|dictionary| (dictionary, None));
                State::Streaming(coder_of(engine, plan.level, dictionary, Length::of_stream(known_bytes), &place.pool))
            }
        };
        let known_bytes = known_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let collect_bytes = known_bytes.unwrap_or(collect_bytes).min(collect_bytes);
        Compressor {
            plan,
            engine,
            place: place.clone(),
            collect_bytes,
            state,
            output: Vec::new(),
            found: None,
            memory: None,
            pending: false,
            bytes_in: 0,
            bytes_out: 0,
            spent_ns: 0,
            held: 0,
            preferred: None,
            known_bytes,
            slots: None,
            slot: None,
            dictionary,
            trial: None,
            recording: None,
        }
    }

    /// Limits the coders that last: this one has a slot, or takes one once it needs it. Where none is left then, the coder keeps nothing from one
    /// piece to the next. To be called before anything is fed.
    pub fn within(&mut self, slots: Rc<Slots>, slot: Option<Slot>) {
        (self.slots, self.slot) = (Some(slots), slot);
    }

    /// Has the form of a whole body compared with its ordinary one, so that later answers know. To be called before anything is fed.
    pub fn compare(&mut self, trial: Option<Trial>) {
        self.trial = trial;
    }

    /// Prefers an engine for the whole body: that of [`crate::Effective::engine`].
    pub fn prefer(&mut self, engine: Option<EngineId>) {
        self.preferred = engine;
    }

    /// Lets the body be looked for in a memory, and kept there. To be called before anything is fed.
    pub fn remember(&mut self, remembrance: Remembrance) {
        if !self.plan.coding.is_identity() {
            self.memory = Some(Box::new(remembrance));
        }
    }

    /// Lets the body be learned, once its client has all of it. To be called before anything is fed.
    pub fn record(&mut self, recording: Box<Recording>) {
        self.recording = Some(recording);
    }

    /// Records that the client has all of the body.
    pub fn arrived(&mut self) {
        if let Some(recording) = self.recording.take() {
            recording.finish();
        }
    }

    /// Takes a piece of the body. Pieces of up to 64 KB are best: longer ones are cut into slices of that length.
    pub fn feed(&mut self, input: &[u8]) -> Result<Step, Fault> {
        if input.is_empty() {
            return Ok(Step::Done);
        }
        self.bytes_in += input.len() as u64;
        if let Some(recording) = &mut self.recording {
            recording.hear(input);
        }
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Collecting(mut body) => {
                let room = self.make_room(&mut body, input.len());
                body.extend(input);
                if room {
                    self.collected(body);
                    return Ok(Step::Done);
                }
                let coder = self.new_coder();
                self.push_owned(coder, body, Flush::None)
            }
            State::Streaming(coder) => self.push(coder, input, Flush::None),
            State::Whole(_) | State::Here { .. } | State::Away { .. } | State::Ended | State::Broken => Err(CoderFault),
        }
    }

    /// Room to receive the next bytes of the body into, instead of feeding them; `None` where they have to be fed.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        let State::Collecting(Collected::Lent(body)) = &self.state else { return None };
        let length = body.filled().len();
        let most = RECEIVE_BYTES.min(self.collect_bytes.saturating_sub(length));
        let needed = body.memory(length + most);
        if most == 0 || !self.hold(needed) {
            return None;
        }
        let State::Collecting(Collected::Lent(body)) = &mut self.state else { return None };
        body.room().get_mut(..most)
    }

    /// Records that so many bytes of the body were received into the room.
    pub fn received(&mut self, bytes: usize) {
        if let State::Collecting(Collected::Lent(body)) = &mut self.state {
            body.advance(bytes);
            self.bytes_in += bytes as u64;
            if let Some(recording) = &mut self.recording {
                recording.hear(&body.filled()[body.filled().len() - bytes..]);
            }
            if let Some(memory) = &mut self.memory {
                memory.see(body.filled());
            }
            self.pending |= bytes > 0;
        }
    }

    /// Handles the server's silence: all bytes that were fed come out decodable.
    pub fn pause(&mut self) -> Result<Step, Fault> {
        if !self.pending {
            return Ok(Step::Done);
        }
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Collecting(body) => {
                let coder = self.new_coder();
                self.push_owned(coder, body, Flush::Sync)
            }
            State::Streaming(coder) => self.push(coder, &[], Flush::Sync),
            State::Whole(_) | State::Here { .. } | State::Away { .. } | State::Ended | State::Broken => Err(CoderFault),
        }
    }

    /// Ends the body.
    pub fn finish(&mut self) -> Result<Step, Fault> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Collecting(body) => {
                let Some(body) = self.find(body) else { return Ok(Step::Done) };
                if self.dictionary.is_some() {
                    let coder = self.make_coder(Length::Exact(body.len() as u64), body.memory());
                    return self.push_owned(coder, body, Flush::Finish);
                }
                self.enters(body.len());
                let ns = self.engine.body_ns(self.plan.level, &body);
                if self.is_short(ns) && !self.is_for_engine(body.len()) {
                    self.state = State::Whole(body);
                    return Ok(Step::Here(ns));
                }
                let name = self.memory.as_ref().and_then(|memory| memory.whole_name());
                let kind = name.map(|name| Kind { name, coding: self.plan.coding, level: self.plan.level });
                let work = Work::whole(self.engine, self.plan.level, self.place.pool.clone(), body.into_piece().into());
                self.send(work.by(self.preferred).of_kind(kind), ns, true)
            }
            State::Streaming(coder) => self.push(coder, &[], Flush::Finish),
            State::Whole(_) | State::Here { .. } | State::Away { .. } | State::Ended | State::Broken => Err(CoderFault),
        }
    }

    /// Does the next piece of the work that is to be done here.
    pub fn work(&mut self) -> Result<Step, Fault> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Whole(body) => {
                let before = self.output.len();
                let code = || (self.engine.whole)(&body, self.plan.level, &self.place.pool, &mut self.output);
                let (coded, spent) = spent::timed(self.plan.coding, Site::Worker, code);
                coded?;
                self.spent_ns += spent;
                self.bytes_out += (self.output.len() - before) as u64;
                if let Some(memory) = &mut self.memory {
                    memory.keep(self.plan, self.spent_ns, &self.output[before..]);
                }
                self.ended();
                Ok(Step::Done)
            }
            State::Here { mut work, ns, last } => match work.step(None, Site::Worker)? {
                Progress::Done => {
                    work.share();
                    self.take_back(work, last).map(|()| Step::Done)
                }
                Progress::Turn | Progress::Slice => {
                    self.state = State::Here { work, ns, last };
                    Ok(Step::Here(ns))
                }
            },
            other => {
                self.state = other;
                Err(CoderFault)
            }
        }
    }

    /// Takes back a finished job.
    pub fn resume(&mut self, finished: Finished) -> Result<(), Fault> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Away { last } => self.take_back(finished.0?, last),
            other => {
                self.state = other;
                Err(CoderFault)
            }
        }
    }

    /// Does all that is to be done here, or awaits the step's job and resumes.
    pub async fn settle(&mut self, mut step: Step) -> Result<(), Fault> {
        loop {
            match step {
                Step::Done => return Ok(()),
                Step::Here(_) => step = self.work()?,
                Step::Away(job) => return self.resume(job.await),
            }
        }
    }

    /// The output so far. It counts as held until [`Compressor::delivered`], because a slow receiver may hold it for long;
    /// and it leaves no buffer in the compressor, which is right for a body whose server pauses.
    pub fn take_output(&mut self) -> Output {
        let output = match self.found.take() {
            Some(found) => Output::Kept(found),
            None => {
                let mut output = std::mem::take(&mut self.output);
                // Room for the worst case was made. A piece of a stream may wait for its receiver for long, and took far longer than a copy of it.
                let (length, surplus) = (output.len(), output.capacity() - output.len());
                if surplus > length || (surplus > SURPLUS_BYTES && matches!(self.state, State::Streaming(_))) {
                    output.shrink_to_fit();
                }
                Output::Own(output)
            }
        };
        let needed = self.own_bytes()
            + match &output {
                Output::Own(output) => output.capacity(),
                // The memory counts it too, but may let go of it before the receiver has it.
                Output::Kept(output) => output.len(),
            };
        // Output must wait for its receiver whatever the budget allows.
        let _ = self.hold(needed);
        self.release_to(needed);
        output
    }

    /// Records that the receiver has the taken output.
    pub fn delivered(&mut self) {
        self.release_to(self.own_bytes());
    }

    /// Makes the coder of a stream small for a receiver that takes nothing for long: the bytes that it has in hand come out,
    /// to be taken with the next output. Only coders that do so at once; others keep their state.
    pub fn rest(&mut self) -> Result<(), Fault> {
        let State::Streaming(coder) = &mut self.state else { return Ok(()) };
        if !coder.is_prompt() {
            return Ok(());
        }
        let before = coder.memory() + self.output.capacity();
        if std::mem::take(&mut self.pending) {
            let length = self.output.len();
            let flush = || coder.push(&[], &mut self.output, Flush::Sync);
            let (pushed, spent) = spent::timed(self.plan.coding, Site::Worker, flush);
            pushed?;
            self.spent_ns += spent;
            self.bytes_out += (self.output.len() - length) as u64;
            self.output.shrink_to_fit();
        }
        coder.lighten(Keep::History);
        let after = coder.memory() + self.output.capacity();
        self.release_to(self.held.saturating_sub(before.saturating_sub(after)));
        Ok(())
    }

    /// Whether bytes were fed that have not been taken: whether a pause has work to do.
    pub fn has_pending(&self) -> bool {
        self.pending || !self.output.is_empty()
    }

    /// Whether the body is collected: no byte of it was coded yet.
    pub fn is_collecting(&self) -> bool {
        matches!(self.state, State::Collecting(_))
    }

    /// Bytes that were fed.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// Bytes that came out.
    pub fn bytes_out(&self) -> u64 {
        self.bytes_out
    }

    /// The level: of a form that was found, that of its making; of a body that an engine has failed at, that of the software
    /// instead.
    pub fn level(&self) -> Level {
        self.plan.level
    }

    /// Result of the lookup in the memory; `None` when there is no memory for this body.
    pub fn recall(&self) -> Option<Recall> {
        self.memory.as_ref().map(|memory| memory.recall())
    }

    /// Ends the body with the form that the memory has of it; gives it back when there is none.
    fn find(&mut self, body: Collected) -> Option<Collected> {
        let Some(found) = self.memory.as_mut().and_then(|memory| memory.find(&body, self.plan.coding)) else { return Some(body) };
        self.plan.level = found.form.level;
        self.bytes_out += found.form.bytes.len() as u64;
        self.found = Some(found.form.bytes);
        if let Some(popular) = found.popular {
            if self.place.budget.is_tight() {
                popular.decline();
            } else {
                let held = body.memory().min(self.held);
                self.held -= held;
                popular.give(body.into_own(), (self.place.budget.clone(), held));
            }
        }
        self.ended();
        None
    }

    /// Counts bytes that enter a coder.
    fn enters(&self, bytes: usize) {
        if let Some(meter) = &self.place.meter {
            meter(bytes as u64);
        }
    }

    /// Whether work of that length is done in place, and in a single step.
    fn is_short(&self, ns: u64) -> bool {
        ns <= self.place.in_place_ns
    }

    /// Whether an engine will have a whole body of that length. A configuration with an engine wants it to have all bodies
    /// that it can take, so it does not matter that software is quick with the body.
    fn is_for_engine(&self, bytes: usize) -> bool {
        let (Some(queue), Some(EngineId(id))) = (&self.place.queue, self.preferred) else { return false };
        let lane = queue.engines().get(usize::from(id));
        !self.is_short(self.engine.whole_ns(self.plan.level, bytes)) && lane.is_some_and(|lane| !lane.declines(self.plan, bytes))
    }

    fn collected(&mut self, body: Collected) {
        if let Some(memory) = &mut self.memory {
            memory.see(&body);
        }
        self.pending = true;
        self.state = State::Collecting(body);
    }

    /// Makes room for that many bytes to be collected; false when they are too many, for the limit or for the budget.
    fn make_room(&mut self, body: &mut Collected, more: usize) -> bool {
        let needed = body.len() + more;
        if needed > self.collect_bytes {
            return false;
        }
        if needed > body.capacity() && !self.borrow(body, needed) {
            // Twice as much each time, and never more than the limit, which is the body's length where that is known.
            let capacity = needed.max(body.capacity() * 2).max(MIN_COLLECT_BYTES).min(self.collect_bytes);
            if !self.hold(capacity) {
                return false;
            }
            if let Collected::Own(own) = body {
                own.reserve_exact(capacity - own.len());
            } else {
                body.move_to(Collected::Own(Vec::with_capacity(capacity)));
            }
        }
        self.hold(body.memory_with(needed))
    }

    /// Moves the collected bytes to memory of the engine's, if it will have this body and has memory to lend.
    fn borrow(&mut self, body: &mut Collected, needed: usize) -> bool {
        let expected = self.known_bytes.unwrap_or(needed);
        let (Collected::Own(_), Some(queue), Some(EngineId(id))) = (&*body, &self.place.queue, self.preferred) else {
            return false;
        };
        if self.is_short(self.engine.whole_ns(self.plan.level, expected)) {
            return false;
        }
        let Some(lane) = queue.engines().get(usize::from(id)) else { return false };
        let Some(mut lent) = lane.lend(self.plan.coding, expected).map(Collected::Lent) else { return false };
        let fits = needed <= lent.capacity() && self.hold(lent.memory_with(needed));
        if fits {
            body.move_to(lent);
        }
        fits
    }

    /// Pushes borrowed bytes, copying them only if they have to go away.
    fn push(&mut self, mut coder: Box<dyn Coder>, input: &[u8], flush: Flush) -> Result<Step, Fault> {
        let flush = self.brake(&mut *coder, flush);
        let (flush, lighten) = self.economy(&*coder, 0, flush);
        // Without a queue a turn's bytes are coded in a single step all the same.
        let stays = self.place.queue.is_none() && input.len() <= TURN_BYTES;
        if !stays && !self.is_short(self.push_ns(&*coder, input.len(), flush)) {
            return self.push_braked(coder, Collected::Own(input.to_vec()), flush);
        }
        self.enters(input.len());
        let before = self.output.len();
        let (pushed, spent) = spent::timed(self.plan.coding, Site::Worker, || coder.push(input, &mut self.output, flush));
        pushed?;
        self.spent_ns += spent;
        self.bytes_out += (self.output.len() - before) as u64;
        if let Some(keep) = lighten {
            coder.lighten(keep);
        }
        self.pushed(coder, flush);
        Ok(Step::Done)
    }

    fn push_owned(&mut self, mut coder: Box<dyn Coder>, input: Collected, flush: Flush) -> Result<Step, Fault> {
        let flush = self.brake(&mut *coder, flush);
        self.push_braked(coder, input, flush)
    }

    fn push_braked(&mut self, coder: Box<dyn Coder>, input: Collected, flush: Flush) -> Result<Step, Fault> {
        self.enters(input.len());
        let (flush, lighten) = self.economy(&*coder, input.memory(), flush);
        let ns = self.push_ns(&*coder, input.len(), flush);
        self.pending = flush == Flush::None;
        let work = Work::stream(coder, self.plan.coding, input.into_piece(), flush, lighten);
        let last = flush == Flush::Finish;
        if self.is_short(ns) { self.here(work, ns, last) } else { self.send(work, ns, last) }
    }

    fn here(&mut self, work: Work, ns: u64, last: bool) -> Result<Step, Fault> {
        self.state = State::Here { work, ns, last };
        Ok(Step::Here(ns))
    }

    /// Eases a stream while a brake is on, and takes it back after that. A level can change where the coder has nothing in
    /// hand, so pieces are flushed meanwhile.
    fn brake(&self, coder: &mut dyn Coder, flush: Flush) -> Flush {
        let Some(brake) = &self.place.brake else { return flush };
        let less = coder.can_ease() && brake();
        if !less && !coder.is_eased() {
            return flush;
        }
        if !self.pending {
            coder.ease(less);
        }
        if flush == Flush::None { Flush::Sync } else { flush }
    }

    /// Whether so many jobs wait that a stream had better do without a state while it waits, too.
    fn is_crowded(&self) -> bool {
        self.place.queue.as_ref().is_some_and(|queue| queue.numbers().waiting.load(Relaxed) >= CROWD)
    }

    /// Consequences of scarce memory for a push: flush, and make the coder small after it.
    fn economy(&mut self, coder: &dyn Coder, input: usize, flush: Flush) -> (Flush, Option<Keep>) {
        let has_slot = self.slots.is_none() || self.slot.is_some();
        let refused = !self.hold(coder.full_memory() + input) || !has_slot;
        let crowded = coder.is_prompt() && self.is_crowded();
        let flush = if (refused || crowded) && flush == Flush::None { Flush::Sync } else { flush };
        let small = refused || crowded || (flush == Flush::Sync && self.place.budget.is_tight());
        let keep = if !refused || has_slot && self.hold(coder.history_memory()) { Keep::History } else { Keep::Nothing };
        (flush, (small && flush == Flush::Sync).then_some(keep))
    }

    /// Gives work to the queue; it is to be done here when there is no room for it.
    fn send(&mut self, work: Work, ns: u64, last: bool) -> Result<Step, Fault> {
        // The work's memory goes along with it: the task that has it still has it when this body's client has gone.
        let work = work.holding(std::mem::take(&mut self.held), &self.place.budget);
        let given = match &self.place.queue {
            Some(queue) => queue.submit(work),
            None => Err(work.into_software(None)),
        };
        match given {
            Ok(job) => {
                self.state = State::Away { last };
                Ok(Step::Away(job))
            }
            Err(work) => self.here(work, ns, last),
        }
    }

    fn take_back(&mut self, mut work: Work, last: bool) -> Result<(), Fault> {
        self.held += work.release();
        self.plan.level = work.level().unwrap_or(self.plan.level);
        self.spent_ns += work.spent_ns();
        let (coder, mut out) = work.into_parts();
        self.bytes_out += out.len() as u64;
        // A body that an engine has failed at may have become a stream on its way: it is the form of the whole all the same.
        let is_kept = last && !self.is_not_worth();
        if let Some(memory) = self.memory.as_mut().filter(|_| is_kept) {
            memory.keep(self.plan, self.spent_ns, &out);
        }
        if self.output.is_empty() {
            self.output = out;
        } else {
            self.output.append(&mut out);
        }
        match coder {
            Some(coder) if !last => self.state = State::Streaming(coder),
            _ => self.ended(),
        }
        Ok(())
    }

    fn pushed(&mut self, coder: Box<dyn Coder>, flush: Flush) {
        if flush == Flush::Finish {
            self.ended();
        } else {
            self.pending = flush == Flush::None;
            self.state = State::Streaming(coder);
        }
    }

    fn ended(&mut self) {
        self.state = State::Ended;
        self.slot = None;
        self.pending = false;
    }

    /// Bytes of the coder or of the collected body.
    fn own_bytes(&self) -> usize {
        match &self.state {
            State::Collecting(body) | State::Whole(body) => body.memory(),
            State::Streaming(coder) => coder.memory(),
            State::Here { .. } | State::Away { .. } | State::Ended | State::Broken => 0,
        }
    }

    /// Counts so many bytes as held, if they are more than before; false when the budget refuses.
    fn hold(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.held);
        let taken = more == 0 || self.place.budget.take(more);
        if taken {
            self.held += more;
        }
        taken
    }

    /// Counts no more than so many bytes as held.
    fn release_to(&mut self, bytes: usize) {
        let less = self.held.saturating_sub(bytes);
        if less > 0 {
            self.place.budget.give(less);
            self.held -= less;
        }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        self.release_to(0);
    }
}

/// Jobs that are a crowd: with 32 KB of window for each instead of [`Keep::History`] their bodies would be some hundredths smaller, and their states
/// 9 MB together.
const CROWD: u64 = 32;

/// Room that a piece of a stream may have for nothing.
const SURPLUS_BYTES: usize = 2048;

/// The room that collecting begins with.
const MIN_COLLECT_BYTES: usize = 4096;

/// Bytes that are received at a time: a worker's other clients wait meanwhile, some 30 µs.
const RECEIVE_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod holds;
#[cfg(test)]
mod tests;
