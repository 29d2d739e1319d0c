//! The offload queue: threads that compress while the workers go on.
//!
//! They run below the workers' priority ([`DEFAULT_NICE`]), so that a small request on the same processor does not wait for a
//! large body, but with a share of it, so that they never starve. The line is first come, first served, and a stream goes to
//! its end after each turn of 64 KB: as a connection has at most one job in the line for each of its bodies, every client
//! gets a turn. The line is bounded; a job that does not fit is done by the worker itself, which slows down the client that
//! brings it.
//!
//! If workers leave no processor free, threads could only take a worker's, at moments that the kernel chooses: at its
//! ticks, or when a worker wakes that has had more than its share; it is let on half a millisecond later and more, and small
//! requests wait for it. So there each worker has a [`Hand`], and streams whose coders can stop anywhere (gzip, deflate) are
//! done by hands: a slice of a third of a millisecond at most between two looks at clients' events. Threads are left with
//! jobs that have no slices: whole bodies, and the blocks of zstd and br. Where processors are free there are no hands, and
//! threads do all.
//!
//! A whole body for which an `engine` section is named goes to that engine's [`Lane`] first, and comes here if the engine
//! does not do it: the same line, the same job, so the compressor that waits for it does not see the difference.

mod breaker;
mod hand;
mod job;
mod lane;
mod twins;
mod verify;
mod work;

pub use breaker::Standing;
pub use hand::Hand;
pub use job::{Finished, Job};
pub use lane::{Cause, Lane, LaneNumbers};

pub(crate) use twins::Kind;
pub use work::TURN_BYTES;
pub(crate) use work::{Progress, Work};

use crate::coder::CoderFault;
use crate::device::Device;
use crate::engine::EngineSettings;
use crate::spent::Site;
use hand::Hands;
use job::{Home, Slot};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use twins::{Lead, Twins};

/// Range of the bytes for a coding in an engine's output for a body; `None` if the output is false.
#[cfg(feature = "hostile")]
pub fn judge(
    coded: &[u8],
    input: &crate::device::Pieces,
    coding: crate::Coding,
    how: crate::engine::Verify,
) -> Option<std::ops::Range<usize>> {
    verify::judge(coded, input, coding, how)
}

/// Niceness of the queue's threads relative to the workers, unless `tune.comp.nice` is set: two fifths of a worker's weight.
/// Measured with small requests that keep one core busy and eight downloads of a bitmap beside them: at 10 the downloads got
/// a quarter of what they get at 0, at 4 two thirds, and the small requests' 99th percentile was the same to a tenth of a
/// millisecond from 10 to 3.
pub const DEFAULT_NICE: u8 = 4;
/// Jobs that may wait, unless `tune.comp.queue` is set.
pub const DEFAULT_DEPTH: usize = 1024;

/// The offload queue. Dropped, it ends its threads after their slices; jobs that wait then come back as faults.
pub struct Queue {
    line: Arc<Line>,
    lanes: Vec<Arc<Lane>>,
    threads: Vec<JoinHandle<()>>,
}

/// Counters of the queue.
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
    /// Jobs that got the output of another job for the same body.
    pub shared: AtomicU64,
    /// Jobs dropped before they were done: for clients that have gone, mostly.
    pub cancelled: AtomicU64,
    /// Slices that workers did.
    pub helped: AtomicU64,
    /// Jobs that had their first slice.
    pub begun: AtomicU64,
    /// Time for which these waited for it together, in microseconds.
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

    /// Mean time for which a job waited for its first slice, in microseconds.
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

    /// Its counters.
    pub fn numbers(&self) -> &Numbers {
        &self.line.numbers
    }

    /// The engines, by [`crate::EngineId`].
    pub fn engines(&self) -> &[Arc<Lane>] {
        &self.lanes
    }

    /// Number of its threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// A worker's hand: as long as there are hands, streams that can be done in slices are theirs.
    pub fn hand(&self) -> Hand {
        Hand::new(self.line.clone())
    }

    /// Gives work to the engine that it names, or to the threads; gives it back when the line is full.
    ///
    /// While other work of its kind goes on it waits for the output of that.
    pub(crate) fn submit(&self, work: Work) -> Result<Job, Work> {
        let work = match work.kind() {
            None => work,
            Some(kind) => match self.line.twins.wait(kind, work, self.line.home()) {
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
        let job = Job::new(work, self.line.home());
        if self.line.join(Entry::new(job.slot(), Some(Instant::now()))) {
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
        // Not under the lock: other jobs may wait for the output of these.
        let waiting = self.line.lock().take_all();
        waiting.into_iter().for_each(|entry| entry.slot.finish(Err(CoderFault)));
    }
}

/// Waiting jobs.
struct Line {
    state: Mutex<LineState>,
    filled: Condvar,
    depth: usize,
    numbers: Numbers,
    /// Jobs that wait for the output of others.
    twins: Twins,
}

#[derive(Default)]
struct LineState {
    /// For threads.
    waiting: VecDeque<Entry>,
    /// For hands.
    sliced: VecDeque<Entry>,
    hands: Hands,
    stopped: bool,
}

struct Entry {
    slot: Arc<Slot>,
    /// Time when it came; `None` once it had its first slice.
    since: Option<Instant>,
    /// Whether it is done in slices that are short.
    has_slices: bool,
}

impl Entry {
    fn new(slot: Arc<Slot>, since: Option<Instant>) -> Entry {
        let has_slices = slot.has_slices();
        Entry { slot, since, has_slices }
    }
}

/// The end of its line at which an entry goes in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Last,
}

impl Line {
    fn new(depth: usize) -> Line {
        Line { state: Mutex::default(), filled: Condvar::new(), depth, numbers: Numbers::default(), twins: Twins::default() }
    }

    /// A newcomer; false when it does not fit.
    fn join(&self, entry: Entry) -> bool {
        let state = self.lock();
        if state.stopped || state.length() >= self.depth {
            return false;
        }
        self.put(state, entry, Place::Last);
        true
    }

    /// Takes an entry that was let in before: a stream with slices left, for example. At the end it gets a fault.
    fn rejoin(&self, entry: Entry, place: Place) {
        let state = self.lock();
        match state.stopped {
            false => self.put(state, entry, place),
            true => {
                drop(state);
                entry.slot.finish(Err(CoderFault));
            }
        }
    }

    /// Itself, for the jobs that wait in it.
    fn home(self: &Arc<Line>) -> Weak<dyn Home> {
        Arc::downgrade(self) as Weak<dyn Home>
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Puts an entry into the line of the threads or the hands, and wakes one of them.
    fn put(&self, mut state: MutexGuard<'_, LineState>, entry: Entry, place: Place) {
        let for_hands = entry.has_slices && !state.hands.are_none();
        let line = if for_hands { &mut state.sliced } else { &mut state.waiting };
        match place {
            Place::First => line.push_front(entry),
            Place::Last => line.push_back(entry),
        }
        self.count(&state);
        if for_hands {
            let length = state.sliced.len();
            let called = state.hands.call(length);
            drop(state);
            if let Some(called) = called {
                called.wake();
            }
        } else {
            self.filled.notify_one();
        }
    }

    /// The next entry for a thread; waits for one; `None` at the end.
    fn next(&self) -> Option<Entry> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(entry) = state.waiting.pop_front() {
                self.count(&state);
                return Some(entry);
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn count(&self, state: &LineState) {
        self.numbers.waiting.store(state.length() as u64, Relaxed);
    }

    /// A thread's life.
    fn serve(&self) {
        while let Some(entry) = self.next() {
            self.turn(entry, None);
        }
    }

    /// An entry's turn by a thread, or by a worker's hand a slice of it that takes about so long; false when it is not wanted
    /// any more.
    fn turn(&self, entry: Entry, slice: Option<Duration>) -> bool {
        // A job that was dropped in this moment has left nothing.
        let Some(mut work) = entry.slot.take() else { return false };
        if let Some(since) = entry.since {
            self.numbers.waited(since);
        }
        let site = if slice.is_some() { Site::Worker } else { Site::Queue };
        // A panic is an engine's fault: it ends the stream, not the thread.
        match catch_unwind(AssertUnwindSafe(|| work.step(slice, site))).unwrap_or(Err(CoderFault)) {
            Err(fault) => entry.slot.finish(Err(fault)),
            Ok(Progress::Done) => {
                self.numbers.jobs.fetch_add(1, Relaxed);
                self.numbers.bytes.fetch_add(work.bytes() as u64, Relaxed);
                entry.slot.finish(Ok(work));
            }
            Ok(progress) => {
                let entry = Entry { since: None, has_slices: work.has_slices(), ..entry };
                let place = if progress == Progress::Turn { Place::Last } else { Place::First };
                if entry.slot.put_back(work) {
                    self.rejoin(entry, place);
                }
            }
        }
        true
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.filled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home for Line {
    fn left(&self, slot: &Slot, kind: Option<Kind>) {
        self.numbers.cancelled.fetch_add(1, Relaxed);
        if let Some(kind) = kind {
            self.twins.forget(kind, slot);
        }
        let mut state = self.lock();
        state.forget(slot);
        self.count(&state);
    }
}

impl LineState {
    /// Takes out a job that was dropped.
    fn forget(&mut self, slot: &Slot) {
        for line in [&mut self.waiting, &mut self.sliced] {
            if let Some(place) = line.iter().position(|entry| std::ptr::eq(&*entry.slot, slot)) {
                line.remove(place);
            }
        }
    }

    fn length(&self) -> usize {
        self.waiting.len() + self.sliced.len()
    }

    fn take_all(&mut self) -> Vec<Entry> {
        self.waiting.drain(..).chain(self.sliced.drain(..)).collect()
    }
}

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
