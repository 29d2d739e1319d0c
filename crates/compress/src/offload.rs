//! The offload queue: threads that compress while the workers go on.
//!
//! They run below the workers' priority ([`DEFAULT_NICE`]), so that a small request on the same processor does not wait for a large
//! body, but with a share of it, so that they never starve. The line is first come, first served, and a stream goes to its end after
//! each turn of 64 KB: as a connection has at most one job in the line for each of its bodies, everybody gets a turn. The line is
//! bounded; what does not fit is done by the worker itself, which slows down whoever brings it.
//!
//! Where a worker and a thread share a processor that is never idle, the kernel would give the thread its share in pieces of half a
//! millisecond and more, for which small requests wait: a worker that has had more than its own is not let on when it wakes. So streams
//! are done in slices of a tenth of a millisecond. A worker that is about to sleep does one if nothing has moved for that long
//! ([`Queue::help`]), and as long as that happens threads give their processor to whoever waits for it after each slice.
//!
//! A whole body for which an `engine` section is named goes to that engine's [`Lane`] first, and comes here if the engine does not do
//! it: the same line, the same job, so the compressor that waits for it does not know the difference.

mod breaker;
mod job;
mod lane;
mod twins;
mod verify;
mod work;

pub use breaker::Standing;
pub use job::{Finished, Job};
pub use lane::{Cause, Lane, LaneNumbers};

pub(crate) use twins::Kind;
pub(crate) use work::Work;

use crate::coder::CoderFault;
use crate::device::Device;
use crate::engine::EngineSettings;
use job::Slot;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use twins::{Lead, Twins};
use work::TURN_BYTES;

/// How far below the workers the queue's threads run, unless `tune.comp.nice` says otherwise: two fifths of a worker's weight. Measured with
/// small requests that keep one core busy and eight downloads of a bitmap beside them: at 10 the downloads got a quarter of what they
/// get at 0, at 4 two thirds, and the small requests' 99th percentile was the same to a tenth of a millisecond from 10 to 3.
pub const DEFAULT_NICE: u8 = 4;
/// Jobs that may wait, unless `tune.comp.queue` says otherwise.
pub const DEFAULT_DEPTH: usize = 1024;

/// The offload queue. Dropped, it ends its threads after their slices; jobs that wait then come back as faults.
pub struct Queue {
    line: Arc<Line>,
    lanes: Vec<Arc<Lane>>,
    threads: Vec<JoinHandle<()>>,
}

/// What the queue has done.
#[derive(Default, Debug)]
pub struct Numbers {
    /// Jobs that wait now.
    pub waiting: AtomicU64,
    /// Jobs done.
    pub jobs: AtomicU64,
    /// Bytes of input of those jobs.
    pub bytes: AtomicU64,
    /// Jobs that did not fit and were done in place.
    pub full: AtomicU64,
    /// Jobs that got what another's work had made of the same body.
    pub shared: AtomicU64,
    /// Jobs dropped before they were done.
    pub cancelled: AtomicU64,
    /// Slices that a worker did, because threads did not get to them.
    pub helped: AtomicU64,
    /// Jobs that had their first slice.
    pub begun: AtomicU64,
    /// How long those waited for it together, in microseconds.
    pub waited_us: AtomicU64,
    /// The longest of these times.
    pub max_wait_us: AtomicU64,
}

impl Numbers {
    fn waited(&self, since: Instant) {
        let us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.begun.fetch_add(1, Relaxed);
        self.waited_us.fetch_add(us, Relaxed);
        self.max_wait_us.fetch_max(us, Relaxed);
    }

    /// How long a job waited for its first slice in the mean, in microseconds.
    pub fn mean_wait_us(&self) -> u64 {
        self.waited_us.load(Relaxed).checked_div(self.begun.load(Relaxed)).unwrap_or(0)
    }
}

impl Queue {
    /// Starts the threads: `threads` of them (at least one), `nice` below the caller, for at most `depth` waiting jobs. To be called
    /// after the process has become a daemon: threads do not survive that.
    pub fn start(threads: usize, nice: u8, depth: usize) -> std::io::Result<Queue> {
        Queue::with_engines(threads, nice, depth, Vec::new())
    }

    /// The same with engines, by [`crate::EngineId`]: a thread more for each, which hands bodies over and watches the time.
    pub fn with_engines(
        threads: usize,
        nice: u8,
        depth: usize,
        engines: Vec<(EngineSettings, Arc<dyn Device>)>,
    ) -> std::io::Result<Queue> {
        let line = Arc::new(Line::new(depth));
        let lanes = engines.into_iter().map(|(settings, device)| Arc::new(Lane::new(settings, device, line.clone()))).collect();
        let mut queue = Queue { line, lanes, threads: Vec::new() };
        for (i, lane) in queue.lanes.iter().enumerate() {
            let lane = lane.clone();
            let thread = std::thread::Builder::new().name(format!("terse-lane-{i}")).spawn(move || {
                stand_back(nice);
                lane.serve();
            })?;
            queue.threads.push(thread);
        }
        for i in 0..threads.max(1) {
            let line = queue.line.clone();
            let name = format!("terse-comp-{i}");
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                stand_back(nice);
                line.serve();
            })?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }

    /// What it has done.
    pub fn numbers(&self) -> &Numbers {
        &self.line.numbers
    }

    /// The engines, by [`crate::EngineId`].
    pub fn engines(&self) -> &[Arc<Lane>] {
        &self.lanes
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Does a slice of a stream that waits, if threads do not get to it. For a worker that is about to sleep; those who wait for what comes
    /// out may become ready.
    pub fn help(&self) {
        self.line.help();
    }

    /// Gives work to the engine that it names, or to the threads; gives it back when the line is full.
    ///
    /// While other work of its kind goes on it waits for what that makes.
    pub(crate) fn submit(&self, work: Work) -> Result<Job, Work> {
        let work = match work.kind() {
            None => work,
            Some(kind) => match self.line.twins.wait(kind, work) {
                Ok(job) => return Ok(job),
                Err(work) => work.leading(Lead::new(kind, self.line.clone())),
            },
        };
        let work = match work.engine().and_then(|id| self.lanes.get(usize::from(id.0))) {
            Some(lane) => match lane.offer(work) {
                Ok(job) => return Ok(job),
                Err(work) => work,
            },
            None => work.into_software(None),
        };
        let job = Job::new(work);
        if self.line.join(Entry { slot: job.slot(), since: Some(Instant::now()) }) {
            return Ok(job);
        }
        self.line.numbers.full.fetch_add(1, Relaxed);
        match job.into_work() {
            Some(work) => Err(work),
            None => unreachable!("nobody else has seen the job"),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.line.stop();
        self.lanes.iter().for_each(|lane| lane.stop());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        // Not under the lock: others may wait for what these would have made.
        let waiting = std::mem::take(&mut self.line.lock().waiting);
        waiting.into_iter().for_each(|entry| entry.slot.finish(Err(CoderFault)));
    }
}

/// Those who wait.
struct Line {
    state: Mutex<LineState>,
    filled: Condvar,
    depth: usize,
    numbers: Numbers,
    /// Those who wait for what others make.
    twins: Twins,
    begun: Instant,
    /// When a slice was last done, in microseconds since the beginning.
    moved_us: AtomicU64,
    /// The same by a worker.
    helped_us: AtomicU64,
}

#[derive(Default)]
struct LineState {
    waiting: VecDeque<Entry>,
    stopped: bool,
}

struct Entry {
    slot: Arc<Slot>,
    /// When it came; none once it had its first slice.
    since: Option<Instant>,
}

impl Line {
    fn new(depth: usize) -> Line {
        Line {
            state: Mutex::default(),
            filled: Condvar::new(),
            depth,
            numbers: Numbers::default(),
            twins: Twins::default(),
            begun: Instant::now(),
            moved_us: AtomicU64::new(0),
            helped_us: AtomicU64::new(0),
        }
    }

    /// A newcomer; false when it does not fit.
    fn join(&self, entry: Entry) -> bool {
        let mut state = self.lock();
        if state.stopped || state.waiting.len() >= self.depth {
            return false;
        }
        self.append(&mut state, entry);
        true
    }

    /// Who was let in before: a stream with slices left, for one. At the end it is told that nothing comes of it.
    fn rejoin(&self, entry: Entry) {
        let mut state = self.lock();
        match state.stopped {
            false => self.append(&mut state, entry),
            true => {
                drop(state);
                entry.slot.finish(Err(CoderFault));
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    fn append(&self, state: &mut LineState, entry: Entry) {
        if state.waiting.is_empty() {
            self.moved();
        }
        state.waiting.push_back(entry);
        self.numbers.waiting.store(state.waiting.len() as u64, Relaxed);
        self.filled.notify_one();
    }

    /// Puts back who has not had all of its turn.
    fn put_first(&self, entry: Entry) {
        let mut state = self.lock();
        state.waiting.push_front(entry);
        self.numbers.waiting.store(state.waiting.len() as u64, Relaxed);
        self.filled.notify_one();
    }

    /// The next; waits for one, none at the end.
    fn next(&self) -> Option<Entry> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(entry) = state.waiting.pop_front() {
                self.numbers.waiting.store(state.waiting.len() as u64, Relaxed);
                return Some(entry);
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A thread's life.
    fn serve(&self) {
        while let Some(entry) = self.next() {
            self.turn(entry, || self.is_helped());
            if self.is_helped() {
                // Whoever waits for this core goes on before the next slice.
                std::thread::yield_now();
            }
        }
    }

    /// Whether workers do some of the work themselves, because threads do not get to it.
    fn is_helped(&self) -> bool {
        let helped_us = self.helped_us.load(Relaxed);
        helped_us > 0 && self.now_us().saturating_sub(helped_us) < HELPED_US
    }

    /// Does a slice of what waits, if threads do not get to it.
    fn help(&self) {
        if self.numbers.waiting.load(Relaxed) == 0 || self.now_us().saturating_sub(self.moved_us.load(Relaxed)) < PATIENCE_US {
            return;
        }
        let entry = {
            let mut state = self.lock();
            let entry = match state.waiting.iter().take(LOOKED_AT).position(|entry| entry.slot.has_slices()) {
                Some(place) if !state.stopped => state.waiting.remove(place),
                _ => None,
            };
            self.numbers.waiting.store(state.waiting.len() as u64, Relaxed);
            entry
        };
        if let Some(entry) = entry {
            self.numbers.helped.fetch_add(1, Relaxed);
            self.turn(entry, || true);
            self.helped_us.store(self.now_us(), Relaxed);
        }
    }

    fn moved(&self) {
        self.moved_us.store(self.now_us(), Relaxed);
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// An entry's turn, or as many slices of it as there are before `leave` says so.
    fn turn(&self, entry: Entry, leave: impl Fn() -> bool) {
        let Some(mut work) = entry.slot.take() else {
            self.numbers.cancelled.fetch_add(1, Relaxed);
            return;
        };
        if let Some(since) = entry.since {
            self.numbers.waited(since);
        }
        let end = work.taken() + TURN_BYTES;
        self.moved();
        loop {
            // A panic is an engine's fault: it ends the stream, not the thread.
            let step = catch_unwind(AssertUnwindSafe(|| work.step())).unwrap_or(Err(CoderFault));
            self.moved();
            match step {
                Err(fault) => entry.slot.finish(Err(fault)),
                Ok(true) => {
                    self.numbers.jobs.fetch_add(1, Relaxed);
                    self.numbers.bytes.fetch_add(work.bytes() as u64, Relaxed);
                    entry.slot.finish(Ok(work));
                }
                Ok(false) => {
                    let is_over = work.taken() >= end;
                    if !is_over && !leave() {
                        continue;
                    }
                    if !entry.slot.put_back(work) {
                        self.numbers.cancelled.fetch_add(1, Relaxed);
                    } else if is_over {
                        self.rejoin(Entry { since: None, ..entry });
                    } else {
                        self.put_first(Entry { since: None, ..entry });
                    }
                }
            }
            return;
        }
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.filled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where nothing moves for so long, in microseconds, threads do not get to it: a worker that goes to sleep does a slice itself. So of a
/// worker that is never idle, coding gets half.
const PATIENCE_US: u64 = 100;

/// Workers that did a slice so many microseconds ago will do more.
const HELPED_US: u64 = 1000;

/// Entries that a worker looks at for one with slices.
const LOOKED_AT: usize = 8;

/// Lowers the calling thread's priority. On Linux a process of that call is a thread. It cannot fail, but if it does, compression runs
/// beside the workers as an equal, which is still right.
pub(crate) fn stand_back(nice: u8) {
    let thread = Some(rustix::thread::gettid());
    if let Ok(before) = rustix::process::getpriority_process(thread) {
        let _ = rustix::process::setpriority_process(thread, before.saturating_add(i32::from(nice)).min(19));
    }
}

#[cfg(test)]
pub(crate) mod tests;
