//! A worker's hand in the queue: it does slices of streams between two looks at its clients.
//!
//! ```text
//!            something waits           nothing waits any more
//!   Resting ────────────────> Working ────────────────────────> Resting
//!                             │     ^
//!                             └─────┘ a slice, a look at the clients
//! ```
//!
//! All hands work at the same line, so a worker without clients helps a worker that has many. A put into it calls the hand of
//! the own thread, which needs no look of another processor, and another hand when more jobs wait than hands are at work.

use super::{Entry, Line, LineState};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A worker's hand. Dropped, it leaves its work to the others, or to threads.
pub struct Hand {
    line: Arc<Line>,
    number: u64,
    /// End of its last slice; `None` if it has rested since.
    last: Option<Instant>,
}

/// The hands of all workers.
#[derive(Default)]
pub(super) struct Hands {
    next_number: u64,
    count: usize,
    resting: Vec<Resting>,
}

struct Resting {
    number: u64,
    thread: ThreadId,
    waker: Waker,
}

impl Hand {
    pub(super) fn new(line: Arc<Line>) -> Hand {
        let number = {
            let hands = &mut line.lock().hands;
            hands.count += 1;
            hands.next_number += 1;
            hands.next_number
        };
        Hand { line, number, last: None }
    }

    /// Rests until a job waits.
    pub async fn rest(&mut self) {
        self.last = None;
        poll_fn(|context| {
            let mut state = self.line.lock();
            state.hands.resting.retain(|resting| resting.number != self.number);
            if !state.sliced.is_empty() {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            state.hands.resting.push(Resting { number: self.number, thread: std::thread::current().id(), waker });
            Poll::Pending
        })
        .await;
    }

    /// Does a slice of a waiting job, and returns the time that it took; `None` if no job waits. Then its worker must look
    /// after its clients.
    pub fn slice(&mut self) -> Option<Duration> {
        let entry = self.next()?;
        let begun = Instant::now();
        if self.line.turn(entry, Some(slice(self.last.map(|last| begun - last)))) {
            self.line.numbers.helped.fetch_add(1, Relaxed);
        }
        let now = Instant::now();
        self.last = Some(now);
        Some(now - begun)
    }

    fn next(&self) -> Option<Entry> {
        let mut state = self.line.lock();
        let entry = state.sliced.pop_front()?;
        self.line.count(&state);
        Some(entry)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let called = {
            let mut state = self.line.lock();
            let state: &mut LineState = &mut state;
            state.hands.resting.retain(|resting| resting.number != self.number);
            state.hands.count -= 1;
            if state.hands.are_none() {
                state.waiting.append(&mut state.sliced);
                self.line.filled.notify_all();
            }
            // It may be the hand that was called.
            if state.sliced.is_empty() { None } else { state.hands.call(state.sliced.len()) }
        };
        if let Some(called) = called {
            called.wake();
        }
    }
}

impl Hands {
    /// Whether threads are alone.
    pub(super) fn are_none(&self) -> bool {
        self.count == 0
    }

    /// The hand to wake where so many jobs wait: this thread's hand, or a hand of another thread if too few are awake.
    pub(super) fn call(&mut self, waiting: usize) -> Option<Waker> {
        let here = std::thread::current().id();
        let own = self.resting.iter().position(|resting| resting.thread == here);
        let at_work = self.count - self.resting.len();
        let place = own.or_else(|| if waiting > at_work { self.resting.len().checked_sub(1) } else { None })?;
        Some(self.resting.swap_remove(place).waker)
    }
}

/// Time limit of a slice after so long a look at all else; `None`: no look is known, and the slice is the least.
fn slice(look: Option<Duration>) -> Duration {
    match look {
        Some(look) if look < EMPTY_LOOK => ALONE_SLICE,
        look => (look.unwrap_or_default() / SHARE).clamp(LEAST_SLICE, LONGEST_SLICE),
    }
}

/// Of the time that a worker has spent on all else since its last slice, the next slice takes a sixth: however many clients
/// it has, they wait longer by as much and no more, and coding has its share. Measured with small requests that keep a core
/// busy and eight downloads of a bitmap beside them; with slices of at least 10, 15 and 25 µs, in turns:
///
/// ```text
///   share      99th percentile of small requests    small requests/s    downloads/s
///   a sixth    141 µs                               53,000              52
///   a quarter  168 µs                               44,000              60
///   a half     188 µs                               36,000              63
/// ```
const SHARE: u32 = 6;

/// Least slice: a look costs one to two microseconds.
const LEAST_SLICE: Duration = Duration::from_micros(10);

/// A look that takes less has found nothing.
const EMPTY_LOOK: Duration = Duration::from_micros(5);

/// Slice of an idle worker: a tenth more gets done than with the least, by two workers that do nothing else.
const ALONE_SLICE: Duration = Duration::from_micros(40);

/// Longest slice, whatever a worker has done meanwhile: a body that is coded in place takes as long. With a tenth of a
/// millisecond at most, beside sixteen clients whose bodies are, a stream waited for its first slice for 28 ms in the mean.
const LONGEST_SLICE: Duration = Duration::from_micros(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_go_with_what_else_there_is_to_do() {
        let after = |us| slice(Some(Duration::from_micros(us))).as_micros();
        assert_eq!([1, 4, 5, 60, 90, 300, 600, 5000].map(after), [40, 40, 10, 10, 15, 50, 100, 300]);
        assert_eq!(slice(None), LEAST_SLICE);
    }
}
