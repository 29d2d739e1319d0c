//! Timeouts that cost nothing while nothing is late.
//!
//! A proxy sets a deadline several times a request and almost never reaches it. So a [`Timer`] keeps its deadline in a cell,
//! and moving it later, which happens nearly always, only writes that cell: the worker's queue still holds the earlier time,
//! and when that time comes the driver looks again and queues the timer anew. Only a deadline earlier than the queued one
//! enters the queue. A single tokio sleep drives all timers of a worker.
//!
//! Times are milliseconds since the wheel was made.

use super::clock;
use super::pause::Pauses;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// All timers of a worker.
pub struct Wheel {
    start: Instant,
    entries: RefCell<Slab<Entry>>,
    queue: RefCell<BinaryHeap<Reverse<(u64, usize)>>>,
    driver: Cell<Option<Waker>>,
    pauses: Pauses,
}

struct Entry {
    deadline: u64,
    /// The earliest time at which the queue holds this entry.
    queued: u64,
    waker: Option<Waker>,
}

const NEVER: u64 = u64::MAX;
/// Places of dropped timers that the queue may hold beyond as many as there are timers.
const SLACK: usize = 1024;

/// A deadline, which can be moved.
pub struct Timer {
    wheel: Rc<Wheel>,
    key: usize,
}

impl Wheel {
    /// A wheel without timers; a task must run [`Wheel::drive`].
    pub fn new() -> Rc<Wheel> {
        Rc::new(Wheel {
            start: Instant::now(),
            entries: RefCell::default(),
            queue: RefCell::default(),
            driver: Cell::new(None),
            pauses: Pauses::default(),
        })
    }

    /// A timer without a deadline.
    pub fn timer(self: &Rc<Wheel>) -> Timer {
        let key = self.entries.borrow_mut().insert(Entry { deadline: NEVER, queued: NEVER, waker: None });
        Timer { wheel: self.clone(), key }
    }

    /// Wakes the tasks of late timers, for as long as the worker runs.
    pub async fn drive(self: Rc<Wheel>) {
        let mut sleep = pin!(tokio::time::sleep(Duration::from_secs(3600)));
        self.pauses.start();
        poll_fn(|cx| {
            let _ = self.pauses.poll_ring(cx);
            self.driver.set(Some(cx.waker().clone()));
            loop {
                let next = self.fire(self.now());
                let wait = if next == NEVER { Duration::from_secs(3600) } else { Duration::from_millis(next) };
                let at = if next == NEVER { Instant::now() + wait } else { self.start + wait };
                sleep.as_mut().reset(at.into());
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::<()>::Pending;
                }
            }
        })
        .await;
    }

    /// Wakes every task that waits with a deadline, so that it can look whether it should still wait.
    pub fn wake_all(&self) {
        let mut entries = self.entries.borrow_mut();
        entries.iter_mut().filter_map(|(_, entry)| entry.waker.take()).for_each(Waker::wake);
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// Wakes the tasks of timers that are due at `now`; returns when to look again.
    fn fire(&self, now: u64) -> u64 {
        let mut queue = self.queue.borrow_mut();
        let mut entries = self.entries.borrow_mut();
        while let Some(&Reverse((at, key))) = queue.peek() {
            if at > now {
                return at;
            }
            queue.pop();
            let Some(entry) = entries.get_mut(key).filter(|e| e.queued == at) else { continue };
            if entry.deadline <= now {
                entry.queued = NEVER;
                if let Some(waker) = entry.waker.take() {
                    waker.wake();
                }
            } else {
                entry.queued = entry.deadline;
                if entry.deadline != NEVER {
                    queue.push(Reverse((entry.deadline, key)));
                }
            }
        }
        NEVER
    }

    fn set(&self, key: usize, deadline: u64) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(key) else { return };
        entry.deadline = deadline;
        if deadline < entry.queued {
            entry.queued = deadline;
            let mut queue = self.queue.borrow_mut();
            let first = queue.peek().is_none_or(|Reverse((at, _))| deadline < *at);
            queue.push(Reverse((deadline, key)));
            if queue.len() > 2 * entries.len() + SLACK {
                // Dropped timers have left their places in the queue.
                queue.retain(|Reverse((at, key))| entries.get(*key).is_some_and(|e| e.queued == *at));
            }
            if first && let Some(waker) = self.driver.take() {
                waker.wake();
            }
        }
    }

    fn is_due(&self, key: usize, cx: &Context<'_>) -> bool {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(key) else { return true };
        // Stored also where there is no deadline: a worker that drains wakes all.
        if !entry.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            entry.waker = Some(cx.waker().clone());
        }
        if entry.deadline == NEVER {
            return false;
        }
        // Only the driver's look at the queue takes a deadline out of it, and it does so when the deadline has passed.
        entry.queued == NEVER
    }
}

impl Timer {
    /// Sets the deadline to `after` from now; `None` takes it away.
    pub fn set(&self, after: Option<Duration>) {
        match after {
            Some(after) => self.set_from(clock::now(), after),
            None => self.clear(),
        }
    }

    /// The same, from a time that the caller has at hand.
    pub fn set_from(&self, now: Instant, after: Duration) {
        let at = now.saturating_duration_since(self.wheel.start) + after;
        self.wheel.set(self.key, (at.as_millis() as u64).saturating_add(1).min(NEVER - 1));
    }

    pub(super) fn pauses(&self) -> &Pauses {
        &self.wheel.pauses
    }

    /// Takes the deadline away.
    pub fn clear(&self) {
        self.wheel.set(self.key, NEVER);
    }

    /// Whether the deadline has passed; if not, the task is woken when it does.
    pub fn is_due(&self, cx: &Context<'_>) -> bool {
        self.wheel.is_due(self.key, cx)
    }

    /// Whether a peer that has nothing to give or take just now has exceeded its time: `limit`, from the first look of a wait
    /// on; `waits`: whether there was such a look.
    ///
    /// A wait without a limit neither sets nor obeys the timer: it may be the other direction's.
    #[inline]
    pub fn is_late(&self, cx: &Context<'_>, limit: Option<Duration>, waits: &mut bool) -> bool {
        let Some(limit) = limit else { return false };
        if !*waits {
            *waits = true;
            self.set(Some(limit));
        }
        self.is_due(cx)
    }

    /// Waits until the deadline.
    pub async fn expired(&self) {
        poll_fn(|cx| if self.is_due(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.wheel.entries.borrow_mut().try_remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(future: impl Future<Output = ()> + 'static) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, future);
    }

    #[test]
    fn a_deadline_that_is_moved_earlier_or_later() {
        run(async {
            let wheel = Wheel::new();
            tokio::task::spawn_local(wheel.clone().drive());
            let timer = wheel.timer();
            timer.set(Some(Duration::from_millis(5)));
            timer.set(Some(Duration::from_millis(30)));
            let begin = Instant::now();
            timer.expired().await;
            assert!(begin.elapsed() >= Duration::from_millis(30));
            timer.set(Some(Duration::from_secs(60)));
            timer.set(Some(Duration::from_millis(5)));
            timer.expired().await;
            assert!(begin.elapsed() < Duration::from_secs(30));
            timer.clear();
            assert!(poll_fn(|cx| Poll::Ready(!timer.is_due(cx))).await);
        });
    }

    #[test]
    fn moving_a_deadline_later_does_not_queue() {
        let wheel = Wheel::new();
        let timer = wheel.timer();
        for ms in 10..1000 {
            timer.set(Some(Duration::from_millis(ms)));
        }
        assert_eq!(wheel.queue.borrow().len(), 1);
        drop(timer);
        assert_eq!(wheel.fire(NEVER - 1), NEVER);
    }
}
