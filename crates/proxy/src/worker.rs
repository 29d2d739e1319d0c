//! A worker: a thread with a runtime, its own listeners, connections, timers and buffers.

use crate::access::Access;
use crate::connection::accept;
use crate::connection::http2;
use crate::connection::tasks::Tasks;
use crate::deferral::Deferral;
use crate::descriptors::Room;
use crate::io::{BULK_BYTES, Buffer, Pipes, Pool, Pools, TINY_BYTES, Wheel, clock, turn};
use crate::log::{Level, Logger};
use crate::plan::Plan;
use crate::plan::roll::{Held, View};
use crate::registry::{self, Registry, Streams};
use crate::server::IdleConnections;
use crate::spares::{Bounds, Spares};
use crate::stream::{self, Remains};
use crate::track::Tracks;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use terse_balance::Server;
use terse_balance::exhaustion::EXHAUSTION;
use terse_compress::coder::Tuning;
use terse_compress::counters::Rate;
use terse_compress::memory::Raiser;
use terse_compress::{Hand, Load, Pace, Queue, Workplace};
use terse_message::{Request, Who};
use terse_sample::{Now, Work, World};
use tokio::sync::{Notify, watch};

/// Commands of the control thread to the workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Serve.
    Running,
    /// Accept no more, let go of idle clients, end when the last stream has ended.
    Draining,
    /// End now, as soon as the streams that are open have been logged.
    Stopping,
}

/// State that all workers share.
#[derive(Clone)]
pub struct Shared {
    /// The control thread's command.
    pub control: watch::Receiver<Control>,
    /// Clients' connections in the process, against `maxconn`.
    pub connections: Arc<AtomicUsize>,
    /// Queue for compression that would hold a worker up.
    pub queue: Option<Arc<Queue>>,
    /// Whether workers do slices of streams themselves, since there is no processor for threads.
    pub lends_hands: bool,
    /// Recompressor of bodies that are asked for often.
    pub raiser: Option<Arc<Raiser>>,
    /// Bytes that enter coders, against `maxcomprate`.
    pub compression_rate: Arc<Rate>,
}

impl Shared {
    /// The state of a sole worker, without threads beside it.
    pub fn alone(control: watch::Receiver<Control>) -> Shared {
        Shared {
            control,
            connections: Arc::default(),
            queue: None,
            lends_hands: false,
            raiser: None,
            compression_rate: Arc::default(),
        }
    }
}

/// A worker's state, shared by its tasks.
pub struct Worker {
    /// The configuration.
    pub plan: Arc<Plan>,
    /// Which of the workers it is.
    pub index: usize,
    /// Its timers.
    pub wheel: Rc<Wheel>,
    /// Its buffers.
    pub pools: Pools,
    /// Memory that ended streams have left.
    pub remains: Spares<Remains>,
    /// The emptied slots of streams that have tracked.
    pub slots: RefCell<Vec<Box<Tracks>>>,
    /// Memory of output buffers.
    scratch: Spares<Vec<u8>>,
    /// Its view of the backends.
    pub view: View,
    /// Tasks for streams of HTTP/2.
    pub tasks: Rc<Tasks>,
    /// Heads for their requests.
    pub requests: Spares<Box<Request>>,
    /// Room for bytes that connections of HTTP/2 receive.
    room: Cell<Vec<u8>>,
    /// Connections to servers that wait for a request.
    pub idle: IdleConnections,
    /// Its way to the logs.
    pub logger: RefCell<Logger>,
    /// The time of day.
    pub clock: Clock,
    /// Context of compressors.
    pub workplace: Arc<Workplace>,
    /// Context of decoders.
    pub decoding: Rc<terse_compress::decode::Place>,
    /// Clients' connections of this worker.
    pub sessions: Cell<usize>,
    /// Numbers for sessions.
    pub next_session: Cell<u64>,
    /// Streams so far.
    pub streams: Cell<u64>,
    /// Notifies the accepting tasks, and a draining worker, that a connection has ended.
    pub released: Notify,
    /// Whether new work is taken: this worker's own copy, since it is asked for with every request.
    running: Cell<bool>,
    /// The time that there is for a body: for `compression level auto`.
    pace: Cell<Pace>,
    /// Time for which its hand has coded since the last look.
    coding: Cell<Duration>,
    /// Work that expressions put off.
    pub deferral: Deferral,
    /// Its open streams.
    pub registry: Registry,
    shared: Shared,
    random: Cell<u64>,
}

/// Turns moments of the monotonic clock into times of day.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    instant: Instant,
    unix_us: i64,
}

/// Time for streams that are cut at a hard stop to write their lines in the log.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Bytes that are received at a time on a connection of HTTP/2.
const ROOM_BYTES: usize = 16 * 1024;

/// The place where an idle connection was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cleared {
    /// In this worker: its descriptor is free.
    Here,
    /// In another worker, soon.
    Elsewhere,
    /// Nowhere: there is none.
    Nowhere,
}

/// Buffers and states of coders that were not needed for so many looks go: sooner than the allocator gives back free memory.
const TRIM_LOOKS: u32 = 2;

/// Interval at which connections to servers are looked through.
const PURGE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a worker on this thread until it has drained or must stop.
pub fn run(plan: Arc<Plan>, index: usize, listeners: Vec<(usize, Access)>, shared: Shared) -> io::Result<()> {
    clock::announce();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().on_thread_unpark(|| {
        clock::turn();
        turn::begin();
    });
    let runtime = builder.build_local(Default::default())?;
    runtime.block_on(async {
        let worker = Worker::new(plan, index, shared);
        tokio::task::spawn_local(worker.wheel.clone().drive());
        if let Some(scripts) = &worker.plan.scripts {
            scripts.clone().begin(&worker);
        }
        let fronts = worker.plan.frontends.iter().map(|frontend| &frontend.log.journal);
        fronts.chain([&worker.plan.journal]).for_each(|journal| worker.logger.borrow_mut().open(journal));
        for (bind, access) in listeners {
            accept::spawn(&worker, bind, access)?;
        }
        tokio::task::spawn_local(registry::serve(worker.clone()));
        tokio::task::spawn_local(purge(worker.clone()));
        tokio::task::spawn_local(close_for_others(worker.clone()));
        if let Some(queue) = worker.shared.queue.as_ref().filter(|_| worker.shared.lends_hands) {
            tokio::task::spawn_local(lend(worker.clone(), queue.hand()));
        }
        worker.wait_for_the_end().await;
        Ok(())
    })
}

/// Codes waiting work, a slice between two looks at clients' events.
async fn lend(worker: Rc<Worker>, mut hand: Hand) {
    loop {
        hand.rest().await;
        while let Some(spent) = hand.slice() {
            worker.coding.set(worker.coding.get() + spent);
            clock::turn();
            tokio::task::yield_now().await;
        }
    }
}

/// Closes idle connections for workers that need their descriptors.
async fn close_for_others(worker: Rc<Worker>) {
    loop {
        let wanted = worker.plan.descriptors.asked(worker.index).await;
        if !(0..wanted).all(|_| worker.idle.close_shared(None)) {
            worker.offers_idle(false);
        }
    }
}

async fn purge(worker: Rc<Worker>) {
    let mut tick = tokio::time::interval(PURGE_INTERVAL);
    // Late ticks are not made up for: shares of short times mean nothing.
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick comes at once: there is nothing to measure yet.
    tick.tick().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    let mut told_until = None;
    let mut looks = 0u32;
    let (mut busy_so_far, mut at) = (metrics.worker_total_busy_duration(0), Instant::now());
    loop {
        tick.tick().await;
        let (busy_now, now) = (metrics.worker_total_busy_duration(0), Instant::now());
        let percent = |time: Duration| (time.as_secs_f64() / (now - at).as_secs_f64().max(1e-3) * 100.0).clamp(0.0, 100.0) as u8;
        let (busy, coding) = (percent(busy_now - busy_so_far), percent(worker.coding.take()));
        worker.plan.busy_percents[worker.index].store(busy, Relaxed);
        // Slices take time that is otherwise unused; slices for which it is short wait in the queue.
        worker.pace.set(worker.pace.get().next(100 - busy.saturating_sub(coding), worker.jobs_waiting()));
        (busy_so_far, at) = (busy_now, now);
        worker.idle.purge(now);
        worker.tasks.trim();
        worker.requests.trim();
        worker.scratch.trim();
        worker.remains.trim();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(TRIM_LOOKS) {
            worker.pools.trim();
            worker.workplace.pool.trim();
            worker.decoding.trim();
        }
        worker.view.refresh(&worker.plan.backends);
        // A single worker does it for all.
        if worker.index == 0 {
            worker.make_room_outside();
            tell_of_exhaustion(&worker, &mut told_until, now);
            let now_ms = worker.plan.table_ms(now);
            for table in &worker.plan.tables {
                while !table.sweep(now_ms) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// Logs that descriptors have run out, at once and then at most once in [`TOLD_ANEW`].
fn tell_of_exhaustion(worker: &Worker, until: &mut Option<Instant>, now: Instant) {
    if until.is_some_and(|until| now < until) {
        return;
    }
    let Some(line) = EXHAUSTION.take() else { return };
    *until = Some(now + TOLD_ANEW);
    worker.log(Level::Emergency, &line);
}

/// The empty vectors that a worker keeps.
const SCRATCH: Bounds = Bounds { usual: 64, most_bytes: 64 * 1024, small: 1024, small_bytes: 1024 };

/// Idle connections that are closed at once for descriptors outside the workers.
const MOST_CLEARED: usize = 64;

/// Interval of the log's lines about exhausted descriptors.
const TOLD_ANEW: Duration = Duration::from_secs(30);

impl Worker {
    /// A worker in its initial state; a task must drive its [wheel](Worker::wheel).
    pub fn new(plan: Arc<Plan>, index: usize, shared: Shared) -> Rc<Worker> {
        let pools = Pools {
            small: Pool::new(plan.process.buffer_bytes, plan.memory.clone()),
            tiny: Pool::new(TINY_BYTES.min(plan.process.buffer_bytes), plan.memory.clone()),
            bulk: Pool::new(BULK_BYTES.max(plan.process.buffer_bytes), plan.memory.clone()),
            pipes: Pipes::new(plan.pipes.clone(), plan.process.workers),
        };
        let clock = Clock::new();
        let workplace = Arc::new(Workplace {
            pool: Arc::new(terse_compress::coder::Pool::new(Tuning::of(&plan.process.compression))),
            queue: shared.queue.clone(),
            budget: plan.coders_memory.clone(),
            in_place_ns: terse_compress::body::IN_PLACE_NS,
            meter: Some(meter(&plan, &shared.compression_rate, clock)),
            brake: Some(brake(&plan, index, &shared.compression_rate, clock)),
        });
        let decoding = Rc::new(terse_compress::decode::Place::new(plan.memory.clone()));
        Rc::new(Worker {
            index,
            wheel: Wheel::new(),
            pools,
            remains: Spares::new(stream::REMAINS),
            slots: RefCell::default(),
            scratch: Spares::new(SCRATCH),
            view: View::new(&plan.backends),
            tasks: Rc::default(),
            requests: Spares::new(http2::HEADS),
            room: Cell::default(),
            idle: IdleConnections::new(plan.server_count()),
            logger: RefCell::new(Logger::new(&plan.sinks)),
            clock,
            workplace,
            decoding,
            sessions: Cell::new(0),
            next_session: Cell::new(0),
            streams: Cell::new(0),
            released: Notify::new(),
            running: Cell::new(true),
            pace: Cell::default(),
            coding: Cell::default(),
            deferral: Deferral::default(),
            registry: Registry::default(),
            shared,
            random: Cell::new((clock.unix_us as u64 ^ (index as u64) << 56) | 1),
            plan,
        })
    }

    /// Logs a line that is no client's, in the log of `global`, or else of the first frontend that logs.
    pub(crate) fn log(&self, level: Level, line: &str) {
        if let Some(journal) = self.plan.own_journal() {
            self.logger.borrow_mut().send(journal, level, line.as_bytes());
        }
    }

    /// A buffer for a request; waits while there is no memory for it, or for the request's further needs.
    pub(crate) async fn room_for_request(&self) -> Buffer {
        self.plan.limits.memory.opens().await;
        self.pools.small.get().await
    }

    /// Descriptors in use beside those of connections to servers: clients' and pipes'.
    fn other_descriptors(&self) -> usize {
        self.connections() + 2 * (self.plan.pipes.used() + self.plan.pipes.kept())
    }

    /// Room for further descriptors.
    pub(crate) fn room(&self) -> Room {
        self.plan.descriptors.room(self.other_descriptors())
    }

    /// Records whether it may have idle connections to close for others.
    pub(crate) fn offers_idle(&self, has_idle: bool) {
        self.plan.descriptors.offer(self.index, has_idle);
    }

    /// Has an idle connection closed, this server's if it has one, where descriptors are few.
    pub(crate) fn spare_descriptors(&self, server: Option<&Server>) {
        if self.room() == Room::None {
            self.make_room(server);
        }
    }

    /// Has an idle connection closed, here or by another worker.
    pub(crate) fn make_room(&self, server: Option<&Server>) -> Cleared {
        let descriptors = &self.plan.descriptors;
        if descriptors.offers(self.index) && self.idle.close_shared(server) {
            return Cleared::Here;
        }
        self.offers_idle(false);
        if descriptors.ask_others(self.index) {
            return Cleared::Elsewhere;
        }
        match descriptors.are_scarce(self.other_descriptors()) && self.idle.close_own() {
            true => Cleared::Here,
            false => Cleared::Nowhere,
        }
    }

    /// Has idle connections closed for checks, name servers, logs and others of the process that were refused descriptors: they try again.
    fn make_room_outside(&self) {
        let wanted = EXHAUSTION.take_wanted().min(MOST_CLEARED);
        let _ = (0..wanted).all(|_| self.make_room(None) != Cleared::Nowhere);
    }

    /// Has an idle connection closed, here or by another worker; false where there is none.
    pub fn clear_descriptor(&self) -> bool {
        self.make_room(None) != Cleared::Nowhere
    }

    /// Whether new work is taken.
    pub fn is_running(&self) -> bool {
        self.running.get()
    }

    /// The control thread's command, to be awaited.
    pub fn watch_control(&self) -> watch::Receiver<Control> {
        self.shared.control.clone()
    }

    /// Clients' connections of all workers.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Relaxed)
    }

    /// The backend of that number, as long as it is there.
    pub fn backend(&self, number: usize) -> Option<Held> {
        self.view.of_number(&self.plan.backends, number)
    }

    /// The backend of that name.
    pub fn backend_named(&self, name: &[u8]) -> Option<Held> {
        self.view.named(&self.plan.backends, name)
    }

    /// A number that no other stream of the process has.
    pub fn number_stream(&self) -> u64 {
        let number = self.streams.get();
        self.streams.set(number + 1);
        number * self.plan.process.workers.max(1) as u64 + self.index as u64
    }

    /// Counts a connection against the process's limit; false when it is reached and counts.
    pub fn admit(&self, beyond_limits: bool) -> bool {
        let limit = if beyond_limits { 0 } else { self.plan.limits.connections.load(Relaxed) };
        if self.shared.connections.fetch_add(1, Relaxed) >= limit && limit > 0 {
            self.shared.connections.fetch_sub(1, Relaxed);
            return false;
        }
        self.sessions.set(self.sessions.get() + 1);
        true
    }

    /// Counts the end of an admitted connection.
    pub fn release(&self) {
        self.give_back_place();
        self.released.notify_one();
    }

    /// The same for a connection that was never served: no task waits for its end.
    pub fn give_back_place(&self) {
        self.shared.connections.fetch_sub(1, Relaxed);
        self.sessions.set(self.sessions.get() - 1);
    }

    /// Load of the process, for decisions about compression.
    pub fn load(&self, limits: &terse_compress::settings::Process) -> Load {
        // The rate is not needed where it is not limited, and the clock is not free.
        let rate = if limits.most_rate.kbytes() == 0 { 0 } else { self.shared.compression_rate.per_second(self.now_ms()) };
        let memory_full = terse_compress::Budget::is_full(&*self.workplace.budget);
        Load { bytes_per_second: rate, idle_percent: self.idle_percent(), memory_full, pace: self.pace() }
    }

    /// The time that there is for a body.
    pub fn pace(&self) -> Pace {
        self.pace.get().now(self.jobs_waiting())
    }

    /// Computing time of this worker, in percent of the last second.
    pub fn busy_percent(&self) -> u8 {
        self.plan.busy_percents[self.index].load(Relaxed)
    }

    /// The rest of it: for `maxcompcpuusage`.
    fn idle_percent(&self) -> u8 {
        100 - self.busy_percent()
    }

    /// The recompressor of bodies, if there is time for it: while this worker is idle for at least half of its time.
    pub fn raiser(&self) -> Option<&Arc<Raiser>> {
        self.shared.raiser.as_ref().filter(|_| self.idle_percent() >= 50)
    }

    /// Jobs that wait for each thread of the offload queue.
    fn jobs_waiting(&self) -> usize {
        self.shared.queue.as_ref().map_or(0, |queue| {
            usize::try_from(queue.numbers().waiting.load(Relaxed)).unwrap_or(usize::MAX).div_ceil(queue.threads().max(1))
        })
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.clock.unix_ms(clock::now())
    }

    /// Seconds since 1970.
    pub fn unix_s(&self) -> i64 {
        self.clock.unix_us(clock::now()).div_euclid(1_000_000)
    }

    /// An empty vector with memory, for output.
    pub fn take_scratch(&self) -> Vec<u8> {
        self.scratch.take().unwrap_or_default()
    }

    /// Takes it back.
    pub fn give_scratch(&self, mut scratch: Vec<u8>) {
        self.scratch.give(scratch.capacity(), || {
            scratch.clear();
            scratch
        });
    }

    /// Room to receive in, for as long as the caller does not wait.
    pub fn take_room(&self) -> Vec<u8> {
        let mut room = self.room.take();
        room.resize(ROOM_BYTES, 0);
        room
    }

    /// Takes it back.
    pub fn give_room(&self, room: Vec<u8>) {
        self.room.set(room);
    }

    async fn wait_for_the_end(self: &Rc<Worker>) {
        let mut control = self.watch_control();
        // A closed channel means that the control thread has gone: the same as being stopped.
        let told = control.wait_for(|c| *c != Control::Running).await.map(|c| *c);
        self.running.set(false);
        if matches!(told, Ok(Control::Draining)) {
            self.wheel.wake_all();
            while self.sessions.get() > 0 {
                tokio::select! {
                    () = self.released.notified() => {}
                    _ = control.wait_for(|c| *c == Control::Stopping) => break,
                }
            }
        }
        // Remaining streams are cut, and logged.
        self.registry.end(Streams::All, Who::Killed);
        let _ = tokio::time::timeout(LAST_WORDS, self.registry.emptied()).await;
    }
}

/// Counts bytes that enter coders, while there is a limit for them.
fn meter(plan: &Plan, rate: &Arc<Rate>, time: Clock) -> terse_compress::body::Meter {
    let (most, rate) = (plan.process.compression.most_rate.clone(), rate.clone());
    Box::new(move |bytes| {
        if most.kbytes() > 0 {
            rate.add(time.unix_ms(clock::now()), bytes);
        }
    })
}

/// Asks for the brakes.
fn brake(plan: &Arc<Plan>, index: usize, rate: &Arc<Rate>, time: Clock) -> terse_compress::body::Brake {
    let (plan, rate) = (plan.clone(), rate.clone());
    Box::new(move || {
        let limits = &plan.process.compression;
        let entering = if limits.most_rate.kbytes() == 0 { 0 } else { rate.per_second(time.unix_ms(clock::now())) };
        limits.brake(entering, 100 - plan.busy_percents[index].load(Relaxed)).is_some()
    })
}

impl World for Worker {
    fn defer(&self, work: Work) -> Option<Work> {
        self.deferral.put_off(work)
    }

    fn now(&self) -> Now {
        let us = self.clock.unix_us(clock::now());
        Now { seconds: us.div_euclid(1_000_000), micros: us.rem_euclid(1_000_000) as u32 }
    }

    fn random(&self) -> u64 {
        // splitmix64: fast, and good enough for numbers that are no secret.
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mut z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

impl Clock {
    fn new() -> Clock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { instant: Instant::now(), unix_us: unix.as_micros() as i64 }
    }

    /// Its running time.
    pub fn age(&self) -> Duration {
        self.instant.elapsed()
    }

    /// Milliseconds since 1970 at that moment.
    fn unix_ms(&self, at: Instant) -> u64 {
        (self.unix_us(at) / 1000).max(0) as u64
    }

    /// Microseconds since 1970 at that moment.
    pub fn unix_us(&self, at: Instant) -> i64 {
        match at.checked_duration_since(self.instant) {
            Some(later) => self.unix_us + later.as_micros() as i64,
            None => self.unix_us - self.instant.saturating_duration_since(at).as_micros() as i64,
        }
    }
}
