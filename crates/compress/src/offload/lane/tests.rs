use super::super::tests::block_on;
use super::super::{Finished, Queue};
use super::*;
use crate::budget::{Budget, Limit};
use crate::coder::{Engine, Pool, Tuning};
use crate::engine::EngineId;
use crate::offload::Work;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A device that does as the test does.
struct Puppet {
    orders: Mutex<Sender<Order>>,
    overdue: Mutex<Sender<u64>>,
}

impl Device for Puppet {
    fn submit(&self, batch: Vec<Order>) {
        batch.into_iter().for_each(|order| drop(self.orders.lock().unwrap().send(order)));
    }

    fn overdue(&self, ticket: u64) {
        let _ = self.overdue.lock().unwrap().send(ticket);
    }

    fn status(&self) -> Status {
        Status { version: Some("puppet".into()), ..Status::default() }
    }
}

/// A device that takes an order in its own time.
struct Slow {
    puppet: Puppet,
    takes: Mutex<Receiver<()>>,
}

impl Device for Slow {
    fn submit(&self, batch: Vec<Order>) {
        let _ = self.takes.lock().unwrap().recv_timeout(PATIENCE);
        self.puppet.submit(batch);
    }

    fn overdue(&self, ticket: u64) {
        self.puppet.overdue(ticket);
    }

    fn status(&self) -> Status {
        self.puppet.status()
    }
}

struct Stage {
    queue: Queue,
    orders: Receiver<Order>,
    overdue: Receiver<u64>,
    pool: Arc<Pool>,
}

const PATIENCE: Duration = Duration::from_secs(20);

fn settings() -> EngineSettings {
    EngineSettings {
        deadline: PATIENCE,
        said_smallest: Some(100),
        largest: 1 << 20,
        verify: Verify::Full,
        said_jobs: Some(2),
        max_queue: 2,
        ..EngineSettings::default()
    }
}

impl Stage {
    fn new(settings: EngineSettings) -> Stage {
        let ((orders, orders_in), (overdue, overdue_in)) = (channel(), channel());
        let puppet = Arc::new(Puppet { orders: Mutex::new(orders), overdue: Mutex::new(overdue) });
        Stage::of(settings, puppet, orders_in, overdue_in)
    }

    fn of(settings: EngineSettings, device: Arc<dyn Device>, orders: Receiver<Order>, overdue: Receiver<u64>) -> Stage {
        let queue = Queue::with_engines(1, 0, 8, vec![(settings, device)]).unwrap();
        Stage { queue, orders, overdue, pool: Arc::new(Pool::new(Tuning::default())) }
    }

    /// The same, when the engine has passed its first probe.
    fn up(settings: EngineSettings) -> Stage {
        let stage = Stage::new(settings);
        let probe = stage.order();
        stage.do_it(probe);
        stage.wait(|lane| lane.standing() == Standing::Up);
        stage
    }

    fn lane(&self) -> &Lane {
        &self.queue.engines()[0]
    }

    fn order(&self) -> Order {
        self.orders.recv_timeout(PATIENCE).unwrap()
    }

    fn wait(&self, condition: impl Fn(&Lane) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(self.lane()) {
            assert!(Instant::now() < deadline, "waited too long: {:?} {:?}", self.lane().standing(), self.lane().numbers());
            std::thread::yield_now();
        }
    }

    fn submit(&self, coding: Coding, body: &[u8]) -> Job {
        self.submit_with(coding, body, |work| work)
    }

    fn submit_with(&self, coding: Coding, body: &[u8], with: impl FnOnce(Work) -> Work) -> Job {
        let work = Work::whole(Engine::of(coding), Level(6), self.pool.clone(), body.to_vec().into()).by(Some(EngineId(0)));
        self.queue.submit(with(work)).ok().unwrap()
    }

    fn code(&self, order: &Order) -> Vec<u8> {
        let coding = if order.wrapper == Wrapper::Gzip { Coding::Gzip } else { Coding::Deflate };
        let mut out = Vec::new();
        (Engine::of(coding).whole)(&order.input.joined(), order.level, &self.pool, &mut out).unwrap();
        out
    }

    fn do_it(&self, order: Order) {
        let bytes = self.code(&order);
        order.end(Ok(Coded { bytes, took: Duration::from_micros(5) }));
    }

    fn fallen(&self, cause: Cause) -> u64 {
        self.lane().numbers().fallen(cause)
    }
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i / 9 % 251) as u8).collect()
}

fn plain(coding: Coding, Finished(work): Finished) -> Vec<u8> {
    let (_, coded) = work.unwrap_or_else(|fault| panic!("{fault:?}")).into_parts();
    crate::coder::conformance::decode_whole(coding, &coded)
}

#[test]
fn what_the_engine_makes_is_sent() {
    for verify in [Verify::None, Verify::Checksum, Verify::Full] {
        let stage = Stage::up(EngineSettings { verify, ..settings() });
        for coding in [Coding::Gzip, Coding::Deflate, Coding::RawDeflate] {
            let job = stage.submit(coding, &body(5000));
            let order = stage.order();
            assert_eq!((order.level, order.input.bytes()), (Level(6), 5000));
            stage.do_it(order);
            assert_eq!(plain(coding, block_on(job)), body(5000), "{coding:?} {verify:?}");
        }
        let numbers = stage.lane().numbers();
        assert_eq!((numbers.jobs.load(Relaxed), numbers.bytes_in.load(Relaxed), numbers.results.load(Relaxed)), (3, 15_000, 3));
        assert_eq!(numbers.engine_us.load(Relaxed), 15);
        assert_eq!(stage.lane().status().version.as_deref(), Some("puppet"));
        assert_eq!(Cause::ALL.map(|cause| numbers.fallen(cause)), [0; Cause::ALL.len()]);
    }
}

#[test]
fn nobodys_body_is_the_first_that_an_engine_sees() {
    let stage = Stage::new(settings());
    assert_eq!(stage.lane().standing(), Standing::Starting);
    let job = stage.submit(Coding::Gzip, &body(5000));
    assert_eq!(plain(Coding::Gzip, block_on(job)), body(5000));
    assert_eq!(stage.fallen(Cause::Down), 1);
    drop(stage.order());
    stage.wait(|lane| lane.numbers().failed_probes.load(Relaxed) == 1);
    assert_eq!(stage.lane().standing(), Standing::Starting);
}

#[test]
fn whatever_fails_is_done_by_software() {
    let stage = Stage::up(EngineSettings { fall: 1000, ..settings() });
    // The last is larger than the bodies that software does in a single step.
    for bytes in [5000, 700_000] {
        for failure in [Failure::Error(-2), Failure::Died, Failure::Swept, Failure::Refused] {
            let before = stage.fallen(failure.into());
            let job = stage.submit(Coding::Gzip, &body(bytes));
            stage.order().end(Err(failure));
            assert_eq!(plain(Coding::Gzip, block_on(job)), body(bytes));
            assert_eq!(stage.fallen(failure.into()), before + 1);
        }
        let job = stage.submit(Coding::RawDeflate, &body(bytes));
        let order = stage.order();
        let mut lie = stage.code(&order);
        lie[20] ^= 1;
        order.end(Ok(Coded { bytes: lie, took: Duration::ZERO }));
        assert_eq!(plain(Coding::RawDeflate, block_on(job)), body(bytes));
    }
    assert_eq!(stage.fallen(Cause::Lied), 2);
    assert_eq!(stage.lane().numbers().jobs.load(Relaxed), 0);
}

#[test]
fn a_deadline_ends_the_engines_turn() {
    let stage = Stage::up(EngineSettings { deadline: Duration::from_millis(30), said_jobs: Some(1), fall: 1000, ..settings() });
    let (first, second) = (stage.submit(Coding::Gzip, &body(5000)), stage.submit(Coding::Gzip, &body(6000)));
    let hangs = stage.order();
    assert_eq!(plain(Coding::Gzip, block_on(first)), body(5000));
    assert_eq!(plain(Coding::Gzip, block_on(second)), body(6000));
    assert_eq!(stage.overdue.recv_timeout(PATIENCE), Ok(hangs.ticket));
    assert_eq!(stage.fallen(Cause::Late), 2);
    let numbers = stage.lane().numbers();
    assert!((1..=numbers.max_late_us.load(Relaxed)).contains(&numbers.mean_late_us()), "{numbers:?}");
    stage.do_it(hangs);
    stage.wait(|lane| lane.numbers().in_vain.load(Relaxed) >= 1);
}

/// The device is notified at the deadline, when it does not know the job, and once more when it does.
#[test]
fn a_deadline_that_comes_before_the_job_is_told_after_it() {
    let ((orders, orders_in), (overdue, overdue_in), (takes, takes_in)) = (channel(), channel(), channel());
    let puppet = Puppet { orders: Mutex::new(orders), overdue: Mutex::new(overdue) };
    let settings = EngineSettings { deadline: Duration::from_millis(50), fall: 1000, ..settings() };
    takes.send(()).unwrap();
    let stage = Stage::of(settings, Arc::new(Slow { puppet, takes: Mutex::new(takes_in) }), orders_in, overdue_in);
    let probe = stage.order();
    stage.do_it(probe);
    stage.wait(|lane| lane.standing() == Standing::Up);
    let work = Work::whole(Engine::of(Coding::Gzip), Level(6), stage.pool.clone(), body(5000).into()).by(Some(EngineId(0)));
    let queue = &stage.queue;
    let job = std::thread::scope(|scope| {
        let submitted = scope.spawn(move || queue.submit(work).ok().unwrap());
        stage.wait(|lane| lane.numbers().fallen(Cause::Late) == 1);
        let told = stage.overdue.recv_timeout(PATIENCE).unwrap();
        takes.send(()).unwrap();
        assert_eq!(stage.order().ticket, told);
        assert_eq!(stage.overdue.recv_timeout(PATIENCE), Ok(told));
        submitted.join().unwrap()
    });
    assert_eq!(plain(Coding::Gzip, block_on(job)), body(5000));
}

#[test]
fn an_engine_that_fails_again_and_again_is_left_alone() {
    let stage = Stage::up(EngineSettings { fall: 2, inter: Duration::from_millis(20), ..settings() });
    let jobs = [stage.submit(Coding::Gzip, &body(5000)), stage.submit(Coding::Gzip, &body(5001))];
    let waits = stage.submit(Coding::Gzip, &body(5002));
    stage.order().end(Err(Failure::Died));
    // The third is handed over when the first has come back, or has gone to software when the second came back first.
    stage.order().end(Err(Failure::Error(-5)));
    stage.wait(|lane| lane.numbers().falls.load(Relaxed) == 1);
    let mut probe = stage.order();
    while probe.input.bytes() == 5002 {
        drop(probe);
        probe = stage.order();
    }
    for (job, bytes) in jobs.into_iter().chain([waits]).zip([5000, 5001, 5002]) {
        assert_eq!(plain(Coding::Gzip, block_on(job)), body(bytes));
    }
    let job = stage.submit(Coding::Gzip, &body(5003));
    assert_eq!(plain(Coding::Gzip, block_on(job)), body(5003));
    assert!(stage.fallen(Cause::Down) >= 1);
    assert_eq!(stage.lane().standing(), Standing::Probing);
    stage.do_it(probe);
    stage.wait(|lane| lane.standing() == Standing::Up);
}

#[test]
fn so_many_fly_and_so_many_wait() {
    let stage = Stage::up(settings());
    let mut jobs: Vec<Job> = Vec::new();
    let mut orders = Vec::new();
    for n in 0..2 {
        jobs.push(stage.submit(Coding::Gzip, &body(1000 + n)));
        orders.push(stage.order());
    }
    for n in 2..4 {
        jobs.push(stage.submit(Coding::Gzip, &body(1000 + n)));
    }
    assert_eq!(stage.lane().depth(), (2, 2));
    let too_many = stage.submit(Coding::Gzip, &body(2000));
    assert_eq!(plain(Coding::Gzip, block_on(too_many)), body(2000));
    assert_eq!(stage.fallen(Cause::Full), 1);
    // A waiting job that is dropped leaves its place.
    drop(jobs.remove(2));
    assert_eq!((stage.lane().depth(), stage.lane().numbers().cancelled.load(Relaxed)), ((1, 2), 1));
    orders.into_iter().for_each(|order| stage.do_it(order));
    let last = stage.order();
    assert_eq!(last.input.bytes(), 1003, "first come, first served");
    stage.do_it(last);
    for (job, n) in jobs.into_iter().zip([0, 1, 3]) {
        assert_eq!(plain(Coding::Gzip, block_on(job)), body(1000 + n));
    }
    assert_eq!(stage.lane().numbers().cancelled.load(Relaxed), 1);
}

/// Also where the engine hangs: the body is there until its last holder drops it, and counts for as long.
#[test]
fn what_flies_for_nobody_still_counts_as_held() {
    let stage = Stage::up(settings());
    let limit = Arc::new(Limit::new(1 << 20));
    assert!(limit.take(3000));
    let budget: Arc<dyn Budget> = limit.clone();
    let job = stage.submit_with(Coding::Gzip, &body(3000), |work| work.holding(3000, &budget));
    let order = stage.order();
    drop(job);
    assert_eq!((stage.lane().numbers().cancelled.load(Relaxed), stage.lane().depth(), limit.used()), (1, (0, 1), 3000));
    stage.do_it(order);
    stage.wait(|_| limit.used() == 0);
    assert_eq!((stage.lane().depth(), stage.queue.numbers().cancelled.load(Relaxed)), ((0, 0), 0));
}

#[test]
fn what_does_not_fit_the_engine_is_not_its() {
    let stage = Stage::up(EngineSettings { largest: 4000, fallback: Some(0), ..settings() });
    for (coding, bytes) in [(Coding::Gzip, 99), (Coding::Gzip, 4001), (Coding::Zstd, 3000)] {
        let job = stage.submit(coding, &body(bytes));
        assert_eq!(plain(coding, block_on(job)), body(bytes));
    }
    assert_eq!(stage.lane().numbers().unfit.load(Relaxed), 3);
    let job = stage.submit(Coding::Gzip, &body(4000));
    stage.order().end(Err(Failure::Error(-4)));
    let (_, coded) = block_on(job).0.unwrap_or_else(|_| panic!()).into_parts();
    assert!(coded.len() > 4000, "software stores at level 0");
}

#[test]
fn an_ending_queue_ends_its_engines() {
    let stage = Stage::up(EngineSettings { said_jobs: Some(1), ..settings() });
    let (flies, waits) = (stage.submit(Coding::Gzip, &body(5000)), stage.submit(Coding::Gzip, &body(5000)));
    let order = stage.order();
    drop(stage.queue);
    assert!(block_on(flies).0.is_err() && block_on(waits).0.is_err());
    assert_eq!(stage.overdue.recv_timeout(PATIENCE), Ok(order.ticket));
    order.end(Err(Failure::Swept));
}
