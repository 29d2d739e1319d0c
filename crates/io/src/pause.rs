//! Pauses: whether a sender is silent for a moment that is shorter than the milliseconds in which the runtime's timers count.
//!
//! ```text
//!   bytes .. bytes .. silence ------------------> the bytes sent so far go on
//!                     | half a millisecond       |
//! ```
//!
//! All moments are equally long, so they end in the order in which they began: a queue, and one timer of the kernel's that is armed for
//! its head. It costs a system call when the first of them begins, and nothing while others are under way.
//!
//! **Invariant:** the timer is armed while the queue holds anything.

use super::timer::Timer;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{Interest, unix::AsyncFd};

/// Limit of a sender's silence before the bytes that it has sent so far go on, where no longer wait is allowed.
pub const PAUSE: Duration = Duration::from_micros(500);

/// All pauses that a worker waits for.
#[derive(Default)]
pub(super) struct Pauses {
    queue: RefCell<VecDeque<Waiting>>,
    /// The number of the first in the queue.
    first: Cell<u64>,
    /// The kernel's timer; empty when there was no descriptor left for it, and then every pause is over at once.
    alarm: OnceCell<AsyncFd<OwnedFd>>,
}

struct Waiting {
    until: Instant,
    /// The waiting task; `None` when bytes have come meanwhile.
    waker: Option<Waker>,
}

/// A place in the queue.
struct Place<'a> {
    pauses: &'a Pauses,
    number: u64,
}

impl Timer {
    /// The output of a future, unless it is pending for [`PAUSE`].
    pub async fn briefly<F: Future>(&self, future: F) -> Option<F::Output> {
        let (mut future, pauses) = (pin!(future), self.pauses());
        let mut place = None;
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            place.get_or_insert_with(|| pauses.begin()).poll(cx).map(|()| None)
        })
        .await
    }
}

impl Pauses {
    /// Takes a timer of the kernel's; needs the worker's runtime.
    #[expect(deprecated, reason = "unsound for descriptors that could be closed from outside; what owns this one is inside")]
    pub(super) fn start(&self) {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(io::Error::from)
            .and_then(|timer| AsyncFd::with_interest(timer, Interest::READABLE));
        let _ = alarm.map(|alarm| self.alarm.set(alarm));
    }

    /// Ends the pauses that are over, whenever the alarm rings.
    pub(super) fn poll_ring(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(alarm) = self.alarm.get() else { return Poll::Pending };
        loop {
            match ready!(alarm.poll_read_ready(cx)) {
                Ok(mut ringing) => ringing.clear_ready(),
                Err(_) => return Poll::Pending,
            }
            self.end(Instant::now());
        }
    }

    fn begin(&self) -> Place<'_> {
        let mut queue = self.queue.borrow_mut();
        let number = self.first.get() + queue.len() as u64;
        if !queue.is_empty() || self.arm(PAUSE) {
            queue.push_back(Waiting { until: Instant::now() + PAUSE, waker: None });
        }
        Place { pauses: self, number }
    }

    /// Looks at the pause of that number, if it is not over.
    fn with<T>(&self, number: u64, look: impl FnOnce(&mut Waiting) -> T) -> Option<T> {
        let at = number.checked_sub(self.first.get())?;
        self.queue.borrow_mut().get_mut(at as usize).map(look)
    }

    /// Ends the pauses that are over at `now`.
    fn end(&self, now: Instant) {
        let mut queue = self.queue.borrow_mut();
        while let Some(waiting) = queue.front_mut() {
            let left = waiting.until.saturating_duration_since(now);
            if !left.is_zero() && self.arm(left) {
                return;
            }
            waiting.waker.take().into_iter().for_each(Waker::wake);
            queue.pop_front();
            self.first.set(self.first.get() + 1);
        }
    }

    fn arm(&self, after: Duration) -> bool {
        let value = Timespec { tv_sec: 0, tv_nsec: after.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        self.alarm.get().is_some_and(|alarm| timerfd_settime(alarm, TimerfdTimerFlags::empty(), &once).is_ok())
    }
}

impl Place<'_> {
    /// Whether the pause is over.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let wait = |waiting: &mut Waiting| match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        };
        self.pauses.with(self.number, wait).map_or(Poll::Ready(()), |()| Poll::Pending)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pauses.with(self.number, |waiting| waiting.waker = None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::timer::Wheel;
    use super::*;
    use std::future::{pending, ready};

    fn run(future: impl Future<Output = ()> + 'static) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, future);
    }

    #[test]
    fn silence_is_told_from_bytes() {
        run(async {
            let wheel = Wheel::new();
            tokio::task::spawn_local(wheel.clone().drive());
            tokio::task::yield_now().await;
            let timer = wheel.timer();
            assert_eq!(timer.briefly(ready(1)).await, Some(1));
            for _ in 0..3 {
                let begin = Instant::now();
                assert_eq!(timer.briefly(pending::<()>()).await, None);
                assert!(begin.elapsed() >= PAUSE);
            }
        });
    }

    #[test]
    fn pauses_end_in_their_order_and_without_those_that_gave_up() {
        run(async {
            let wheel = Wheel::new();
            tokio::task::spawn_local(wheel.clone().drive());
            tokio::task::yield_now().await;
            let timers: Vec<_> = (0..100).map(|_| wheel.timer()).collect();
            let mut all = Vec::new();
            for (i, timer) in timers.iter().enumerate() {
                // The bytes of every third pause come when it has begun to wait.
                let bytes = poll_fn(move |cx| {
                    cx.waker().wake_by_ref();
                    Poll::Pending::<()>
                });
                match i % 3 {
                    0 => {
                        let mut given_up = Box::pin(timer.briefly(pending::<()>()));
                        assert!(poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx).is_pending())).await);
                    }
                    1 => all.push(Box::pin(timer.briefly(bytes)) as std::pin::Pin<Box<dyn Future<Output = Option<()>>>>),
                    _ => all.push(Box::pin(timer.briefly(pending()))),
                }
            }
            for pause in all {
                assert_eq!(pause.await, None);
            }
            assert!(timers.iter().all(|timer| timer.pauses().queue.borrow().is_empty()));
        });
    }

    #[test]
    fn without_a_timer_there_is_no_wait() {
        run(async {
            assert_eq!(Wheel::new().timer().briefly(pending::<()>()).await, None);
        });
    }
}
