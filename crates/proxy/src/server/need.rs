//! Number of connections to a server that a worker keeps: as many as were in use at a time lately.
//!
//! Connections in use are needed, so a connection that becomes idle is surplus only while more are there, idle or in use,
//! than were lately in use at a time. From one interval to the next the estimate comes down halfway to the most that were in
//! use meanwhile.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A worker's need of connections to a server.
#[derive(Default, Debug)]
pub(super) struct Need {
    /// Connections that are there, in use or idle.
    held: Rc<Cell<usize>>,
    /// The most that were in use at a time in this interval.
    most_used: usize,
    /// The most that were lately. It is never less than those in use.
    estimate: usize,
    /// When the interval ends.
    until: Option<Instant>,
}

/// A connection's place in the count.
#[derive(Debug)]
pub struct Held(Rc<Cell<usize>>);

impl Need {
    /// Counts a connection that was made; `idle`: number of idle ones beside it.
    pub(super) fn hold(&mut self, idle: usize) -> Held {
        let held = Held::count(&self.held);
        self.note(idle);
        held
    }

    /// Records the number in use: all but so many idle ones.
    pub(super) fn note(&mut self, idle: usize) {
        let used = self.used(idle);
        self.most_used = self.most_used.max(used);
        self.estimate = self.estimate.max(used);
    }

    /// Number of connections that are likely to be needed.
    pub(super) fn estimate(&self) -> usize {
        self.estimate
    }

    /// Whether no more are there than may be needed, plus `low` (`pool-low-conn`).
    pub(super) fn has_room(&self, low: u32) -> bool {
        self.held.get() <= self.estimate + low as usize
    }

    /// Ends an interval that is over.
    pub(super) fn look(&mut self, now: Instant, idle: usize, interval: Duration) {
        if self.until.is_some_and(|until| now < until) {
            return;
        }
        self.estimate = self.most_used.max((self.estimate + self.most_used) / 2);
        self.most_used = self.used(idle);
        self.until = Some(now + interval);
    }

    fn used(&self, idle: usize) -> usize {
        self.held.get().saturating_sub(idle)
    }
}

impl Held {
    /// Counts a connection.
    pub(super) fn count(count: &Rc<Cell<usize>>) -> Held {
        count.set(count.get() + 1);
        Held(count.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_kept_as_were_in_use_at_a_time() {
        let mut need = Need::default();
        let mut held: Vec<_> = (0..3).map(|_| need.hold(0)).collect();
        assert!(need.has_room(0));
        // All idle; one more is made, though no request waits: it is one too many.
        held.push(need.hold(3));
        assert!(!need.has_room(0) && need.has_room(1));
        held.pop();
        assert!(need.has_room(0));
    }

    #[test]
    fn the_estimate_comes_down_by_halves_and_never_below_what_is_used() {
        let (mut need, second) = (Need::default(), Duration::from_secs(1));
        let mut now = Instant::now();
        let mut looks = |need: &mut Need, idle, times| -> Vec<usize> {
            let mut look = |_| {
                now += second;
                need.look(now, idle, second);
                need.estimate
            };
            (0..times).map(&mut look).collect()
        };
        let held: Vec<_> = (0..9).map(|_| need.hold(0)).collect();
        // One is in use from now on; the others are idle.
        assert_eq!(looks(&mut need, 8, 6), [9, 5, 3, 2, 1, 1]);
        drop(held);
        assert_eq!(looks(&mut need, 0, 2), [1, 0]);
        let at = now + second;
        need.look(at, 0, second);
        let _held = need.hold(0);
        need.look(at + second / 2, 1, second);
        assert_eq!((need.most_used, need.estimate), (1, 1), "the interval is not over");
    }
}
