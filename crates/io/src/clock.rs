//! The time of a worker: read once for each turn of its event loop.
//!
//! A request asks for the time some eight times, and most of its events fall into a single turn. So a worker keeps the time
//! that it has read until its thread has slept, or until it was asked for [`USES`] times: it is late by the work of a few
//! requests at most, far below the millisecond in which timeouts and logs count.
//!
//! **Invariant:** it never goes back, and waits for a deadline (`Wheel::drive`) read the clock itself.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    static SEEN: Cell<Option<Instant>> = const { Cell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static TURNS: Cell<bool> = const { Cell::new(false) };
}

/// Uses of a reading of the clock: those of some four requests.
const USES: u32 = 32;

/// The time. On a thread that does not announce its turns it is read every time.
#[inline]
pub fn now() -> Instant {
    if let (Some(seen), left @ 1..) = (SEEN.get(), LEFT.get()) {
        LEFT.set(left - 1);
        return seen;
    }
    let now = Instant::now();
    if TURNS.get() {
        SEEN.set(Some(now));
        LEFT.set(USES);
    }
    now
}

/// Marks this thread as a worker's: from now on it calls [`turn`] whenever it has slept.
pub fn announce() {
    TURNS.set(true);
}

/// The thread has slept: its reading of the clock is old.
pub fn turn() {
    LEFT.set(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_serves_a_turn() {
        announce();
        let first = now();
        assert!((1..USES).all(|_| now() == first));
        turn();
        let second = now();
        assert!(second >= first);
        assert!((0..USES).all(|_| now() == second));
        // Used up: read again, and never earlier.
        let third = now();
        assert!(third >= second);
    }

    #[test]
    fn a_thread_without_turns_reads_each_time() {
        let times = std::thread::spawn(|| (now(), now())).join().unwrap();
        assert!(times.0 <= times.1);
    }
}
