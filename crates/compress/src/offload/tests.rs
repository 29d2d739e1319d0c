use super::*;
use crate::coder::conformance::decode_whole;
use crate::coder::{Coder, Engine, Flush, Keep, Pool, Tuning};
use crate::coding::{Coding, Level};
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A coder that reports when it begins a turn, and goes on when the test allows it.
struct Gate {
    name: u8,
    pushed: usize,
    began: Sender<u8>,
    go: Receiver<()>,
    panics: bool,
    prompt: bool,
}

impl Coder for Gate {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, _: Flush) -> Result<(), CoderFault> {
        if self.pushed.is_multiple_of(work::TURN_BYTES) {
            self.began.send(self.name).map_err(|_| CoderFault)?;
            self.go.recv().map_err(|_| CoderFault)?;
        }
        self.pushed += input.len();
        assert!(!self.panics, "the engine is broken on purpose");
        out.extend_from_slice(input);
        Ok(())
    }

    fn is_prompt(&self) -> bool {
        self.prompt
    }

    fn reset(&mut self) {}
    fn lighten(&mut self, _: Keep) {}
    fn memory(&self) -> usize {
        0
    }
    fn full_memory(&self) -> usize {
        0
    }
    fn history_memory(&self) -> usize {
        0
    }
}

pub(crate) struct Bench {
    pub(crate) began: Receiver<u8>,
    announce: Sender<u8>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let (announce, began) = channel();
        Bench { began, announce }
    }

    /// Work of so many slices, and a channel that lets a slice go on.
    pub(crate) fn work(&self, name: u8, slices: usize) -> (Work, Sender<()>) {
        self.work_of(name, slices, true)
    }

    /// The same, by a coder that is prompt or not.
    fn work_of(&self, name: u8, slices: usize, prompt: bool) -> (Work, Sender<()>) {
        let (go, gate) = channel();
        let coder = Gate { name, pushed: 0, began: self.announce.clone(), go: gate, panics: false, prompt };
        (Work::stream(Box::new(coder), Coding::Gzip, Arc::new(vec![name; slices * work::TURN_BYTES]), Flush::None, None), go)
    }

    /// Work that breaks, once it is let go on.
    pub(crate) fn broken(&self, name: u8) -> (Work, Sender<()>) {
        let (go, gate) = channel();
        let coder = Gate { name, pushed: 0, began: self.announce.clone(), go: gate, panics: true, prompt: false };
        (Work::stream(Box::new(coder), Coding::Gzip, Arc::new(vec![name]), Flush::None, None), go)
    }
}

#[test]
fn slices_of_streams_take_turns() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 1, 8).unwrap());
    let (first, go_first) = bench.work(1, 3);
    let (second, go_second) = bench.work(2, 2);
    let first = queue.submit(first).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let second = queue.submit(second).ok().unwrap();
    for _ in 0..3 {
        go_first.send(()).unwrap();
        go_second.send(()).unwrap();
    }
    let order: Vec<_> = (0..4).map(|_| bench.began.recv().unwrap()).collect();
    assert_eq!(order, [2, 1, 2, 1]);
    let (_, out) = block_on(first).0.unwrap_or_else(|_| panic!()).into_parts();
    assert_eq!(out.len(), 3 * work::TURN_BYTES);
    assert!(block_on(second).0.is_ok());
    assert_eq!(queue.numbers().jobs.load(Relaxed), 2);
    assert_eq!(queue.numbers().bytes.load(Relaxed), 5 * work::TURN_BYTES as u64);
    assert_eq!(queue.numbers().begun.load(Relaxed), 2);
    assert!(queue.numbers().mean_wait_us() <= queue.numbers().max_wait_us.load(Relaxed));
}

/// Records the order in which waiting tasks are woken.
struct Told(u8, Arc<Mutex<Vec<u8>>>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn a_small_body_does_not_wait_for_the_end_of_a_large_one() {
    let text: Vec<u8> = (0u32..).flat_map(|i| format!("row {} of {}; ", i % 977, i * 7 % 61).into_bytes()).take(700_000).collect();
    let records: Vec<u8> = (0u32..175_000).flat_map(|i| (i % 999 * (i % 777) % 4096).to_le_bytes()).collect();
    let codings = [(Coding::Gzip, 6, &text), (Coding::Gzip, 6, &records), (Coding::Zstd, 6, &text), (Coding::Brotli, 6, &text)];
    // A short body that takes long at its level is large too.
    let slow = [(Coding::Zstd, 19, &text[..200_000].to_vec()), (Coding::Brotli, 10, &text[..200_000].to_vec())];
    for (coding, level, large) in codings.into_iter().chain(slow) {
        let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
        let (held, go) = bench.work(1, 1);
        let held = queue.submit(held).ok().unwrap();
        assert_eq!(bench.began.recv(), Ok(1));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut jobs: Vec<_> = [large.clone(), text[..20_000].to_vec()]
            .into_iter()
            .zip(0..)
            .map(|(body, name)| {
                let pool = Arc::new(Pool::new(Tuning::default()));
                let mut job = queue.submit(Work::whole(Engine::of(coding), Level(level), pool, body.into())).ok().unwrap();
                let waker = Waker::from(Arc::new(Told(name, order.clone())));
                assert!(Pin::new(&mut job).poll(&mut Context::from_waker(&waker)).is_pending(), "the thread is held");
                job
            })
            .collect();
        go.send(()).unwrap();
        assert!(block_on(held).0.is_ok());
        let mut outs = Vec::new();
        while order.lock().unwrap().len() < jobs.len() {
            std::thread::yield_now();
        }
        for job in jobs.drain(..) {
            outs.push(block_on(job).0.unwrap_or_else(|_| panic!("{coding:?}")).into_parts().1);
        }
        assert_eq!(*order.lock().unwrap(), [1, 0], "{coding:?}: the small one first");
        assert!(decode_whole(coding, &outs[0]) == *large && decode_whole(coding, &outs[1]) == text[..20_000], "{coding:?}");
    }
}

#[test]
fn a_full_line_gives_the_work_back() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 1).unwrap());
    let (first, go_first) = bench.work(1, 1);
    let (second, go_second) = bench.work(2, 1);
    let (third, _go_third) = bench.work(3, 1);
    let first = queue.submit(first).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let second = queue.submit(second).ok().unwrap();
    assert!(queue.submit(third).is_err_and(|work| work.bytes() == work::TURN_BYTES));
    go_first.send(()).unwrap();
    go_second.send(()).unwrap();
    assert!(block_on(first).0.is_ok() && block_on(second).0.is_ok());
    assert_eq!(queue.numbers().full.load(Relaxed), 1);
}

#[test]
fn a_dropped_job_is_not_begun_or_not_gone_on_with() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (first, go_first) = bench.work(1, 2);
    let (second, _go_second) = bench.work(2, 1);
    let (third, go_third) = bench.work(3, 1);
    let first = queue.submit(first).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let second = queue.submit(second).ok().unwrap();
    let third = queue.submit(third).ok().unwrap();
    drop(first);
    drop(second);
    // Counted, and out of the line, while the thread is still busy.
    assert_eq!((queue.numbers().cancelled.load(Relaxed), queue.numbers().waiting.load(Relaxed)), (2, 1));
    go_first.send(()).unwrap();
    go_third.send(()).unwrap();
    assert!(block_on(third).0.is_ok());
    assert_eq!(bench.began.try_iter().collect::<Vec<_>>(), [3]);
    assert_eq!(queue.numbers().cancelled.load(Relaxed), 2);
}

#[test]
fn a_broken_engine_ends_its_stream_only() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (broken, go) = bench.broken(9);
    let broken = queue.submit(broken).ok().unwrap();
    go.send(()).unwrap();
    assert!(block_on(broken).0.is_err());
    let (sound, go) = bench.work(1, 1);
    let sound = queue.submit(sound).ok().unwrap();
    go.send(()).unwrap();
    assert!(block_on(sound).0.is_ok());
}

#[test]
fn an_ending_queue_leaves_nobody_waiting() {
    let (bench, queue) = (Bench::new(), Queue::start(2, 0, 8).unwrap());
    let works: Vec<_> = (0..4).map(|name| bench.work(name, 1)).collect();
    let mut gates = Vec::new();
    let mut jobs = Vec::new();
    for (work, go) in works {
        jobs.push(queue.submit(work).ok().unwrap());
        gates.push(go);
    }
    let begun: Vec<_> = (0..2).map(|_| bench.began.recv().unwrap()).collect();
    queue.line.stop();
    for name in begun {
        gates[usize::from(name)].send(()).unwrap();
    }
    drop(queue);
    let done = jobs.into_iter().map(|job| block_on(job).0.is_ok()).filter(|&ok| ok).count();
    assert_eq!(done, 2);
}

/// Polls once; whether it is ready.
fn poll_once(future: Pin<&mut impl Future>, waker: &Waker) -> bool {
    future.poll(&mut Context::from_waker(waker)).is_ready()
}

/// Records whether it was woken.
#[derive(Default)]
struct Called(AtomicBool);

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl Called {
    fn new() -> (Arc<Called>, Waker) {
        let called = Arc::new(Called::default());
        (called.clone(), called.into())
    }

    fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}

#[test]
fn hands_do_streams_in_turns_and_leave_nothing_to_threads() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let mut hand = queue.hand();
    let works = [bench.work(1, 3), bench.work(2, 2)].map(|(work, go)| {
        (0..3).for_each(|_| go.send(()).unwrap());
        (queue.submit(work).ok().unwrap(), go)
    });
    let mut slices = 0;
    while hand.slice().is_some() {
        slices += 1;
    }
    assert_eq!(bench.began.try_iter().collect::<Vec<_>>(), [1, 2, 1, 2, 1]);
    assert_eq!(queue.numbers().helped.load(Relaxed), slices);
    assert_eq!((queue.numbers().jobs.load(Relaxed), queue.numbers().waiting.load(Relaxed)), (2, 0));
    for ((job, _go), turns) in works.into_iter().zip([3, 2]) {
        let (_, out) = block_on(job).0.unwrap_or_else(|_| panic!()).into_parts();
        assert_eq!(out.len(), turns * work::TURN_BYTES);
    }
}

#[test]
fn hands_do_not_do_whole_blocks() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let mut hand = queue.hand();
    let (slow, go_slow) = bench.work_of(2, 1, false);
    let slow = queue.submit(slow).ok().unwrap();
    assert!(hand.slice().is_none());
    go_slow.send(()).unwrap();
    assert!(block_on(slow).0.is_ok());
    assert_eq!(queue.numbers().helped.load(Relaxed), 0);
}

#[test]
fn what_the_last_hand_leaves_is_done_by_threads() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (first, second) = (queue.hand(), queue.hand());
    let (work, go) = bench.work(1, 2);
    (0..2).for_each(|_| go.send(()).unwrap());
    let job = queue.submit(work).ok().unwrap();
    drop(first);
    assert_eq!(queue.numbers().waiting.load(Relaxed), 1, "it waits for the second");
    drop(second);
    assert!(block_on(job).0.is_ok());
    assert_eq!(queue.numbers().helped.load(Relaxed), 0);
}

#[test]
fn a_hand_of_the_same_thread_is_called_first_and_another_when_more_waits() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (mut here, mut there) = (queue.hand(), queue.hand());
    let ((called_here, waker_here), (called_there, waker_there)) = (Called::new(), Called::new());
    let mut resting_there = Box::pin(there.rest());
    std::thread::scope(|scope| scope.spawn(|| assert!(!poll_once(resting_there.as_mut(), &waker_there))).join()).unwrap();
    let mut resting_here = Box::pin(here.rest());
    assert!(!poll_once(resting_here.as_mut(), &waker_here));

    let mut jobs = Vec::new();
    for (called, expected) in [(1, (true, false)), (2, (false, true)), (3, (false, false))] {
        let (work, go) = bench.work(called, 1);
        jobs.push((queue.submit(work).ok().unwrap(), go));
        assert_eq!((called_here.take(), called_there.take()), expected, "work {called}");
    }
    assert!(poll_once(resting_here.as_mut(), &waker_here) && poll_once(resting_there.as_mut(), &waker_there));
}

#[test]
fn a_call_is_not_lost_with_the_hand_that_was_called() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (mut first, mut second) = (queue.hand(), queue.hand());
    let ((called, waker), (called_second, waker_second)) = (Called::new(), Called::new());
    let mut resting = Box::pin(first.rest());
    let mut resting_second = Box::pin(second.rest());
    assert!(!poll_once(resting.as_mut(), &waker) && !poll_once(resting_second.as_mut(), &waker_second));
    let (work, _go) = bench.work(1, 1);
    let _job = queue.submit(work).ok().unwrap();
    assert_eq!((called.take(), called_second.take()), (true, false));
    drop(resting);
    drop(first);
    assert!(called_second.take());
}

#[test]
fn a_slice_ends_when_its_time_is_over_and_nothing_is_lost() {
    let (bench, expected) = (Bench::new(), vec![7; 2 * work::TURN_BYTES]);
    let (mut work, go) = bench.work(7, 2);
    (0..2).for_each(|_| go.send(()).unwrap());
    let mut steps = Vec::new();
    loop {
        match work.step(Some(Duration::ZERO), Site::Worker).unwrap() {
            Progress::Done => break,
            progress => steps.push(progress),
        }
    }
    let turns = steps.iter().filter(|step| **step == Progress::Turn).count();
    assert!(turns == 1 && steps.len() > 100, "{} slices, {turns} turns", steps.len());
    assert!(work.into_parts().1 == expected);
}

#[test]
fn threads_stand_back() {
    let before = rustix::process::getpriority_process(None).unwrap();
    let nice = std::thread::spawn(|| {
        stand_back(3);
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    });
    assert_eq!(nice.join().unwrap(), (before + 3).min(19));
    assert_eq!(rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap(), before);
}
