//! An engine's own line: the way of a body to a [`Device`], and its way back whatever the device does.
//!
//! ```text
//!  worker                     the lane's thread              the device's threads         the queue's threads
//!
//!  offer ── not up, no room ──────────────────────────────────────────────────────────────> software
//!    │  └── small, room ────> flights ── submit
//!    v            so many jobs in flight
//!  waiting ─────────────────> flights ── submit ──────> done ── small: checked ──> finished
//!    │                           │                        ├── otherwise ──────────────────> checked ──> finished
//!    │                           │                        │                                    │ it lies
//!    └── deadline ───────────────┴── deadline ────────────┴── failed ──────────────────────────┴──> software
//!                                        └── overdue: the device ends what hangs
//!
//! Each thread that is woken costs 10 to 30 µs of processor time, which is as much as all else that a small job costs. So a small job is
//! handed over by its worker and checked where it comes back, and the lane's thread sleeps through it.
//! ```
//!
//! Invariants:
//! * A body is with its lane until its coded form is: in `waiting` in its [`Slot`], in `flights` beside its [`Order`], in a
//!   check. From each of them it goes to software when the engine fails, so no client sees a failure of the engine.
//! * A job is the engine's until its deadline, which runs from the moment that the body was whole, and then it is software's;
//!   a later result of the engine is thrown away. This does not depend on the device keeping to anything.
//! * No lock is held while a device, a waker or the queue is called.
//! * First come, first served, as in the queue: a connection has a single job in here for each of its bodies, and all wait
//!   alike. At most `jobs` are with the engine, at most `maxqueue` wait.
//! * A dropped job is not served: in `waiting` it is taken out at once; a job that is with the engine already is thrown away
//!   at its end.

mod numbers;

pub use numbers::{Cause, LaneNumbers};

use super::breaker::{Breaker, Standing};
use super::job::{Home, Job, Slot};
use super::twins::Kind;
use super::work::{Whole, Work, cut};
use super::{Entry, Line, Place, verify};
use crate::coder::CoderFault;
use crate::coding::{Coding, Level};
use crate::device::{Coded, Device, Ending, Failure, Lent, Order, Pieces, Status, Wrapper};
use crate::engine::{EngineSettings, Verify};
use crate::policy::Plan;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The line of an engine.
pub struct Lane {
    settings: EngineSettings,
    device: Arc<dyn Device>,
    software: Arc<Line>,
    numbers: LaneNumbers,
    state: Mutex<State>,
    /// A job came, came back, or the lane ends.
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Waiting>,
    flights: HashMap<u64, Flight>,
    probe: Option<Probe>,
    breaker: Breaker,
    next_ticket: u64,
    /// Time when the device may rest, unless a job comes; `None` while it rests.
    rests_at: Option<Instant>,
    sleep: Sleep,
    stopped: bool,
}

/// The lane's thread, as others see it.
enum Sleep {
    /// It looks at everything again before it sleeps.
    Awake,
    Until(Instant),
    /// Until it is called.
    Called,
}

/// A job that is not handed over.
struct Waiting {
    slot: Arc<Slot>,
    since: Instant,
    deadline: Instant,
}

/// A job that the device has.
struct Flight {
    slot: Arc<Slot>,
    work: Work,
    since: Instant,
    deadline: Instant,
}

/// A body of our own that the device has.
struct Probe {
    ticket: u64,
    body: Pieces,
    deadline: Instant,
}

/// The actions of the lane's thread in a turn, without the lock.
#[derive(Default)]
struct Turn {
    orders: Vec<Order>,
    overdue: Vec<u64>,
    /// With the job's deadline.
    fallen: Vec<(Arc<Slot>, Option<Work>, Cause, Instant)>,
    /// The device may rest.
    rest: bool,
}

/// Why a body is not taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The job is unfit for this engine.
    Unfit,
    Fallen(Cause),
}

impl Lane {
    pub(super) fn new(settings: EngineSettings, device: Arc<dyn Device>, software: Arc<Line>) -> Lane {
        let breaker = Breaker::new(settings.fall, settings.rise, settings.inter, Instant::now());
        let state = State {
            waiting: VecDeque::new(),
            flights: HashMap::new(),
            probe: None,
            breaker,
            next_ticket: 0,
            rests_at: None,
            sleep: Sleep::Awake,
            stopped: false,
        };
        let (numbers, changed) = (LaneNumbers::default(), Condvar::new());
        Lane { settings, device, software, numbers, state: Mutex::new(state), changed }
    }

    /// Its section's settings.
    pub fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Its counters.
    pub fn numbers(&self) -> &LaneNumbers {
        &self.numbers
    }

    /// Whether it is given bodies.
    pub fn standing(&self) -> Standing {
        self.lock().breaker.standing()
    }

    /// Jobs that wait, and jobs that the engine has.
    pub fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.waiting.len(), state.flights.len())
    }

    /// State of the device.
    pub fn status(&self) -> Status {
        self.device.status()
    }

    /// Memory of the device's for a body that is on its way, of so many bytes as far as is known; `None` if software will
    /// have it.
    pub(crate) fn lend(&self, coding: Coding, bytes: usize) -> Option<Box<dyn Lent>> {
        if !self.suits(Some(coding), bytes) {
            return None;
        }
        {
            let mut state = self.lock();
            if state.stopped || !state.breaker.is_up() {
                return None;
            }
            if state.rests_at.replace(Instant::now() + REST).is_none() {
                self.changed.notify_one();
            }
        }
        self.device.lend()
    }

    /// Why a body of that coding and length would not be taken now.
    fn refusal(&self, state: &State, coding: Option<Coding>, bytes: usize) -> Option<Refusal> {
        // A job that can be handed over at once does not wait.
        let room = self.settings.jobs().saturating_sub(state.flights.len()).max(self.settings.max_queue);
        match () {
            () if !self.suits(coding, bytes) => Some(Refusal::Unfit),
            () if state.stopped || !state.breaker.is_up() => Some(Refusal::Fallen(Cause::Down)),
            () if state.waiting.len() >= room => Some(Refusal::Fallen(Cause::Full)),
            () => None,
        }
    }

    fn refused(&self, refusal: Refusal) {
        match refusal {
            Refusal::Unfit => _ = self.numbers.unfit.fetch_add(1, Relaxed),
            Refusal::Fallen(cause) => self.numbers.fell(cause),
        }
    }

    /// Whether the engine does bodies of that coding and length.
    fn suits(&self, coding: Option<Coding>, bytes: usize) -> bool {
        (self.settings.smallest()..=self.settings.largest).contains(&bytes) && coding.and_then(Wrapper::of).is_some()
    }

    /// Whether a body of so many bytes stays with software, and at the level that is planned. The refusal is counted then.
    pub(crate) fn declines(&self, plan: Plan, bytes: usize) -> bool {
        let refusal = self.refusal(&self.lock(), Some(plan.coding), bytes);
        let is_as_planned = self.settings.fallback.is_none_or(|level| Level(level) == plan.level);
        let declines = refusal.filter(|refusal| *refusal == Refusal::Unfit || is_as_planned);
        declines.inspect(|refusal| self.refused(*refusal)).is_some()
    }

    /// Takes a whole body for the engine, or gives it back for software.
    pub(super) fn offer(self: &Arc<Lane>, work: Work) -> Result<Job, Work> {
        let now = Instant::now();
        let deadline = now.checked_add(self.settings.deadline).unwrap_or(now);
        let mut state = self.lock();
        if let Some(refusal) = self.refusal(&state, work.as_whole().map(Whole::coding), work.bytes()) {
            drop(state);
            self.refused(refusal);
            let level = if refusal == Refusal::Unfit { None } else { self.settings.fallback };
            return Err(work.into_software(level));
        }
        state.rests_at = Some(now + REST);
        let is_next = state.waiting.is_empty() && state.flights.len() < self.settings.jobs();
        let goes_at_once = is_next && work.bytes() <= AT_ONCE_BYTES;
        let job = Job::new(work, Arc::downgrade(self) as Weak<dyn Home>);
        let waiting = Waiting { slot: job.slot(), since: now, deadline };
        let work = if goes_at_once { waiting.slot.take() } else { None };
        let (order, calls) = match work {
            Some(work) => (self.hand_over(&mut state, waiting, work), state.sleep.is_past(deadline)),
            None => {
                state.waiting.push_back(waiting);
                (None, true)
            }
        };
        drop(state);
        if calls {
            self.changed.notify_one();
        }
        if let Some(order) = order {
            let ticket = order.ticket;
            self.device.submit(vec![order]);
            // A deadline that was over before the device had the job is reported again: nothing else would end it if it
            // hangs.
            if !self.lock().flights.contains_key(&ticket) {
                self.device.overdue(ticket);
            }
        }
        Ok(job)
    }

    /// The life of the lane's thread.
    pub(super) fn serve(self: &Arc<Lane>) {
        while let Some(turn) = self.next_turn() {
            for (slot, work, cause, deadline) in turn.fallen {
                self.fall_back(slot, work, || {
                    self.numbers.fell(cause);
                    if cause == Cause::Late {
                        self.numbers.was_late(micros(deadline));
                    }
                });
            }
            // The device takes its time to end a hanging job: no client waits for that.
            for ticket in turn.overdue {
                self.device.overdue(ticket);
            }
            if turn.rest {
                self.device.rest();
            }
            if !turn.orders.is_empty() {
                self.device.submit(turn.orders);
            }
        }
    }

    /// Ends the lane: jobs that wait or are with the engine get a fault, as with the queue's other jobs.
    pub(super) fn stop(&self) {
        let (slots, overdue): (Vec<_>, Vec<_>) = {
            let mut state = self.lock();
            state.stopped = true;
            let tickets = state.flights.keys().copied().chain(state.probe.as_ref().map(|probe| probe.ticket)).collect();
            let flights: Vec<_> = state.flights.drain().map(|(_, flight)| flight.slot).collect();
            (state.waiting.drain(..).map(|waiting| waiting.slot).chain(flights).collect(), tickets)
        };
        self.changed.notify_all();
        slots.iter().for_each(|slot| slot.finish(Err(CoderFault)));
        overdue.into_iter().for_each(|ticket| self.device.overdue(ticket));
    }

    /// Waits for the next turn; `None` at the end.
    fn next_turn(self: &Arc<Lane>) -> Option<Turn> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let now = Instant::now();
            let turn = self.turn(&mut state, now);
            if turn.rest || !(turn.orders.is_empty() && turn.overdue.is_empty() && turn.fallen.is_empty()) {
                return Some(turn);
            }
            state = match state.next_time() {
                None => {
                    state.sleep = Sleep::Called;
                    self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Some(then) => {
                    state.sleep = Sleep::Until(then);
                    let pause = then.saturating_duration_since(now);
                    self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.sleep = Sleep::Awake;
        }
    }

    fn turn(self: &Arc<Lane>, state: &mut State, now: Instant) -> Turn {
        let mut turn = Turn::default();
        let late: Vec<u64> = state.flights.iter().filter(|(_, flight)| flight.deadline <= now).map(|(ticket, _)| *ticket).collect();
        for ticket in late {
            let Some(flight) = state.flights.remove(&ticket) else { continue };
            self.blame(state, now);
            turn.overdue.push(ticket);
            turn.fallen.push((flight.slot, Some(flight.work), Cause::Late, flight.deadline));
        }
        if let Some(probe) = state.probe.take_if(|probe| probe.deadline <= now) {
            self.probed(state, false, now);
            turn.overdue.push(probe.ticket);
        }
        while state.waiting.front().is_some_and(|waiting| waiting.deadline <= now || !state.breaker.is_up()) {
            let Some(waiting) = state.waiting.pop_front() else { break };
            let cause = if waiting.deadline <= now { Cause::Late } else { Cause::Down };
            turn.fallen.push((waiting.slot, None, cause, waiting.deadline));
        }
        if state.breaker.next_probe().is_some_and(|due| due <= now) {
            turn.orders.push(self.probe(state, now));
        }
        while state.flights.len() < self.settings.jobs() {
            let Some(waiting) = state.waiting.pop_front() else { break };
            // A job that was dropped in this moment has left nothing.
            if let Some(work) = waiting.slot.take() {
                turn.orders.extend(self.hand_over(state, waiting, work));
            }
        }
        turn.rest = state.rests_at.take_if(|at| *at <= now).is_some();
        turn
    }

    /// Moves a job from those that wait to those that fly.
    fn hand_over(self: &Arc<Lane>, state: &mut State, waiting: Waiting, work: Work) -> Option<Order> {
        let whole = work.as_whole()?;
        let (wrapper, level, input) = (Wrapper::of(whole.coding())?, whole.level(), whole.input().clone());
        let ticket = state.ticket();
        let order = Order::new(ticket, input, wrapper, level, self.ending(ticket));
        self.numbers.max_wait_us.fetch_max(micros(waiting.since), Relaxed);
        let Waiting { slot, since, deadline } = waiting;
        state.flights.insert(ticket, Flight { slot, work, since, deadline });
        Some(order)
    }

    /// A body made up, to see whether the engine does its work.
    fn probe(self: &Arc<Lane>, state: &mut State, now: Instant) -> Order {
        state.breaker.begin_probe();
        self.numbers.probes.fetch_add(1, Relaxed);
        let (ticket, body) = (state.ticket(), probe_body());
        let deadline = now.checked_add(self.settings.deadline).unwrap_or(now);
        state.probe = Some(Probe { ticket, body: body.clone(), deadline });
        Order::new(ticket, body, Wrapper::Gzip, Level(6), self.ending(ticket))
    }

    /// The device's callback. It holds only a weak reference: an engine that never ends its orders does not keep its lane.
    fn ending(self: &Arc<Lane>, ticket: u64) -> Ending {
        let lane = Arc::downgrade(self);
        Box::new(move |result| {
            if let Some(lane) = lane.upgrade() {
                lane.ended(ticket, result);
            }
        })
    }

    /// A device has ended an order.
    fn ended(self: &Arc<Lane>, ticket: u64, result: Result<Coded, Failure>) {
        let now = Instant::now();
        let mut state = self.lock();
        if let Some(probe) = state.probe.take_if(|probe| probe.ticket == ticket) {
            drop(state);
            let passed = result.is_ok_and(|coded| verify::judge(&coded.bytes, &probe.body, Coding::Gzip, Verify::Full).is_some());
            self.probed(&mut self.lock(), passed, now);
            self.changed.notify_one();
            return;
        }
        let Some(flight) = state.flights.remove(&ticket) else {
            self.numbers.in_vain.fetch_add(1, Relaxed);
            return;
        };
        let has_failed = matches!(result, Err(Failure::Error(_) | Failure::Died));
        if has_failed {
            self.blame(&mut state, now);
        }
        let calls = has_failed || !state.waiting.is_empty();
        drop(state);
        if calls {
            self.changed.notify_one();
        }
        match result {
            Ok(coded) => self.landed(flight, coded),
            Err(failure) => self.fall_back(flight.slot, Some(flight.work), || self.numbers.fell(failure.into())),
        }
    }

    /// Passes on the engine's result for a body: at once, or to be checked.
    fn landed(self: &Arc<Lane>, flight: Flight, coded: Coded) {
        let Flight { slot, mut work, since, .. } = flight;
        self.numbers.took(micros(since), coded.took);
        let how = self.settings.verify;
        let is_checked_here = match how {
            Verify::None => true,
            Verify::Checksum => work.bytes() <= AT_ONCE_BYTES,
            Verify::Full => false,
        };
        if !is_checked_here {
            let work = work.into_check(coded.bytes, self.clone());
            return self.to_queue(slot, work, || {});
        }
        let found = work.as_whole().and_then(|whole| verify::judge(&coded.bytes, whole.input(), whole.coding(), how));
        self.judged(found.is_some(), work.bytes(), coded.bytes.len());
        match found {
            Some(range) => {
                work.out = cut(coded.bytes, range);
                slot.finish(Ok(work));
            }
            None => self.to_queue(slot, work.into_software(self.settings.fallback), || {}),
        }
    }

    /// Counts whether a result was sound.
    pub(super) fn judged(&self, sound: bool, bytes_in: usize, bytes_out: usize) {
        if sound {
            self.numbers.done(bytes_in, bytes_out);
            self.lock().breaker.succeeded();
            return;
        }
        self.numbers.fell(Cause::Lied);
        self.blame(&mut self.lock(), Instant::now());
        self.changed.notify_one();
    }

    /// Gives a job to software; `work` is with its slot where it was not handed over.
    fn fall_back(&self, slot: Arc<Slot>, work: Option<Work>, count: impl FnOnce()) {
        if let Some(work) = work.or_else(|| slot.take()) {
            self.to_queue(slot, work.into_software(self.settings.fallback), count);
        }
    }

    /// Gives work to the queue's threads, if anybody still waits for it, and counts that. It was let in before.
    fn to_queue(&self, slot: Arc<Slot>, work: Work, count: impl FnOnce()) {
        slot.move_to(self.software.home());
        if slot.put_back(work) {
            count();
            self.software.rejoin(Entry::new(slot, None), Place::Last);
        }
    }

    fn blame(&self, state: &mut State, now: Instant) {
        if state.breaker.failed(now) {
            self.numbers.falls.fetch_add(1, Relaxed);
        }
    }

    fn probed(&self, state: &mut State, passed: bool, now: Instant) {
        if !passed {
            self.numbers.failed_probes.fetch_add(1, Relaxed);
        }
        state.breaker.probed(passed, now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home for Lane {
    fn left(&self, slot: &Slot, _: Option<Kind>) {
        self.numbers.cancelled.fetch_add(1, Relaxed);
        self.lock().waiting.retain(|waiting| !std::ptr::eq(&*waiting.slot, slot));
    }
}

impl State {
    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Time of the next look. All deadlines are equally far from their beginnings, so the first waiting job is the next.
    fn next_time(&self) -> Option<Instant> {
        let flights = self.flights.values().map(|flight| flight.deadline).min();
        let waiting = self.waiting.front().map(|waiting| waiting.deadline);
        let probe = self.probe.as_ref().map(|probe| probe.deadline);
        [flights, waiting, probe, self.breaker.next_probe(), self.rests_at].into_iter().flatten().min()
    }
}

impl Sleep {
    /// Whether the thread would sleep longer than that.
    fn is_past(&self, time: Instant) -> bool {
        match self {
            Sleep::Awake => false,
            Sleep::Until(then) => *then > time,
            Sleep::Called => true,
        }
    }
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Cause {
        match failure {
            Failure::Error(_) => Cause::Error,
            Failure::Died => Cause::Died,
            Failure::Swept => Cause::Swept,
            Failure::Refused => Cause::Refused,
        }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Numbers as text: neither noise nor all the same.
fn probe_body() -> Pieces {
    (0..PROBE_WORDS).flat_map(|n: u32| format!("{} ", n.wrapping_mul(2_654_435_761) >> 12).into_bytes()).collect::<Vec<u8>>().into()
}

const PROBE_WORDS: u32 = 4096;

/// Bodies that a worker hands over itself, which may include a copy, and whose checksum is compared where they come back: 50 µs or so.
const AT_ONCE_BYTES: usize = 512 << 10;

/// A device to which nothing comes for so long may give its memory back.
const REST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
