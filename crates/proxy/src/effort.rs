//! Calls of a client's task, its computing time, and its waiting time: `cpu_calls`, `cpu_ns_tot`, `lat_ns_tot`.
//!
//! ```text
//!   an event wakes the task      it is called      it has nothing more to do
//!            |---- waits its turn ----|---- computes ----|
//! ```
//!
//! Tasks are measured only where an expression of the configuration asks ([`Asked`]): otherwise none of this exists. Work of
//! the offload queue's threads for a stream is not counted: its task waits meanwhile.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

/// Entry in the registry by an expression that needs measured tasks.
#[derive(Debug)]
pub struct Asked;

/// Cost of a task since its stream began.
#[derive(Debug)]
pub struct Effort {
    calls: Cell<u64>,
    /// Of the calls that have ended.
    busy_ns: Cell<u64>,
    waited_ns: Cell<u64>,
    /// Since when the call computes that is under way, for this stream.
    since: Cell<Option<Instant>>,
    /// Time for which that call waited for its turn; the stream that begins in it takes it over.
    waited_now_ns: Cell<u64>,
}

/// The same, as expressions see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Calls of the task, with the one that is under way.
    pub calls: u64,
    /// Nanoseconds in them.
    pub busy_ns: u64,
    /// Nanoseconds between the events that woke the task and its calls.
    pub waited_ns: u64,
}

impl Effort {
    /// Of a task that was not called yet.
    pub fn new() -> Rc<Effort> {
        Rc::new(Effort {
            calls: Cell::new(0),
            busy_ns: Cell::new(0),
            waited_ns: Cell::new(0),
            since: Cell::new(None),
            waited_now_ns: Cell::new(0),
        })
    }

    /// Begins a stream: the cost so far is another's.
    pub fn restart(&self) {
        let is_running = self.since.get().is_some();
        self.calls.set(is_running.into());
        self.busy_ns.set(0);
        self.waited_ns.set(self.waited_now_ns.take());
        self.since.set(is_running.then(Instant::now));
    }

    /// The cost of the stream so far.
    pub fn cost(&self) -> Cost {
        let now = self.since.get().map_or(0, |since| ns(since, Instant::now()));
        Cost { calls: self.calls.get(), busy_ns: self.busy_ns.get() + now, waited_ns: self.waited_ns.get() }
    }

    fn begin(&self, now: Instant, waited_ns: u64) {
        self.calls.set(self.calls.get() + 1);
        self.waited_ns.set(self.waited_ns.get() + waited_ns);
        self.waited_now_ns.set(waited_ns);
        self.since.set(Some(now));
    }

    fn end(&self) {
        if let Some(since) = self.since.take() {
            self.busy_ns.set(self.busy_ns.get() + ns(since, Instant::now()));
        }
    }
}

fn ns(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

/// A task that is measured.
pub struct Measured<F> {
    task: Pin<Box<F>>,
    effort: Rc<Effort>,
    alarm: Option<(Arc<Alarm>, Waker)>,
}

impl<F: Future> Measured<F> {
    /// Measures a task that was just spawned.
    pub fn new(task: F, effort: Rc<Effort>) -> Measured<F> {
        Measured { task: Box::pin(task), effort, alarm: None }
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Measured { task, effort, alarm } = &mut *self;
        if alarm.as_ref().is_none_or(|(alarm, _)| !alarm.task.will_wake(cx.waker())) {
            let new = Arc::new(Alarm { task: cx.waker().clone(), epoch: Instant::now(), woken_ns: AtomicU64::new(NEVER) });
            *alarm = Some((new.clone(), new.into()));
        }
        let Some((alarm, waker)) = alarm else { return Poll::Pending };
        let now = Instant::now();
        let waited_ns = match alarm.woken_ns.swap(NEVER, Relaxed) {
            NEVER => 0,
            woken_ns => ns(alarm.epoch, now).saturating_sub(woken_ns),
        };
        effort.begin(now, waited_ns);
        let polled = task.as_mut().poll(&mut Context::from_waker(waker));
        effort.end();
        polled
    }
}

/// No event has woken the task since it was called.
const NEVER: u64 = u64::MAX;

/// Notes when the task was woken first since its last call. Other threads wake it too.
struct Alarm {
    task: Waker,
    epoch: Instant,
    woken_ns: AtomicU64,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A second wake-up has the later time.
        let _ = self.woken_ns.compare_exchange(NEVER, ns(self.epoch, Instant::now()), Relaxed, Relaxed);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn calls_and_times_are_those_of_the_stream() {
        let effort = Effort::new();
        let (inner, waker) = (effort.clone(), Rc::new(Cell::new(None)));
        let kept = waker.clone();
        let work = async move {
            let mut calls = 0;
            poll_fn(move |cx| {
                calls += 1;
                if calls == 2 {
                    inner.restart();
                    assert_eq!(inner.cost().calls, 1, "the call in which it begins is the stream's");
                }
                kept.set(Some(cx.waker().clone()));
                if calls == 4 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        };
        let mut task = Box::pin(Measured::new(work, effort.clone()));
        // The task is called by hand: to be woken only notes the time.
        let runtime = Waker::noop().clone();
        let mut poll = || task.as_mut().poll(&mut Context::from_waker(&runtime));
        assert!(poll().is_pending());
        assert_eq!((effort.cost().calls, effort.cost().waited_ns), (1, 0), "nobody woke it");
        for calls in 1..=3 {
            let woken = Instant::now();
            waker.take().unwrap().wake();
            // The monotonic clock goes on while we look at it.
            while woken.elapsed().is_zero() {}
            let before = effort.cost();
            assert_eq!(poll().is_ready(), calls == 3);
            let cost = effort.cost();
            assert_eq!(cost.calls, calls);
            assert!(
                cost.waited_ns > 0 && (calls == 1 || cost.waited_ns > before.waited_ns && cost.busy_ns > before.busy_ns),
                "{cost:?}"
            );
        }
        let at_the_end = effort.cost();
        assert_eq!(effort.cost(), at_the_end, "nothing runs");
    }
}
