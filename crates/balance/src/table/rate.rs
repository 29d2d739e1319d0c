//! Events in a period: HAProxy's frequency counters, without a lock.
//!
//! Two cells of 64 bits. `current` holds the start of the period and its number of events; `previous` holds the events
//! of the period before, and, as its mark, the start of the current one. The thread that finds the period over turns
//! it: one exchange of `current` decides which thread does, and only that one writes `previous`. A reader that sees two
//! different marks has met a turn half-way, and looks again.
//!
//! ```text
//! previous                        current
//! |<------- period -------->|<------- period -------->|
//!               |<-------- reported --------->|
//!                                            now
//! ```
//!
//! The reported number is the current period's events and a part of the previous one's. The part is that which a window
//! of one period still covers, as if the events had come evenly. Times are milliseconds of 32 bits, and wrap.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The two cells of a counter.
pub(super) struct Rate<'a> {
    pub(super) current: &'a AtomicU64,
    pub(super) previous: &'a AtomicU64,
}

impl Rate<'_> {
    /// Counts `n` events; returns the events of the current period. The number saturates at 32 bits.
    pub(super) fn add(&self, period_ms: u32, now_ms: u64, n: u32) -> u32 {
        let now = now_ms as u32;
        let mut seen = self.current.load(Relaxed);
        loop {
            let (began, count) = split(seen);
            let elapsed = now.wrapping_sub(began);
            // An empty cell has had no period yet.
            let is_over = seen == 0 || (elapsed >= period_ms && elapsed < AHEAD);
            let (next_began, next_count, past) = match is_over {
                false => (began, count.saturating_add(n), None),
                true if seen == 0 || elapsed - period_ms >= period_ms => (now, n, Some(0)),
                true => (began.wrapping_add(period_ms), n, Some(count)),
            };
            match self.current.compare_exchange_weak(seen, join(next_began, next_count), Release, Relaxed) {
                Ok(_) => {
                    if let Some(past) = past {
                        self.previous.store(join(next_began, past), Release);
                    }
                    return next_count;
                }
                Err(other) => seen = other,
            }
        }
    }

    /// The events of a period that ends now.
    pub(super) fn read(&self, period_ms: u32, now_ms: u64) -> u32 {
        let (mut current, mut previous) = (self.current.load(Acquire), self.previous.load(Acquire));
        for _ in 0..MOST_LOOKS {
            let again = self.current.load(Acquire);
            let is_turned = previous == 0 || split(previous).0 == split(current).0;
            if again == current && is_turned {
                break;
            }
            (current, previous) = (again, self.previous.load(Acquire));
        }
        let (began, count) = split(current);
        let (mark, past) = split(previous);
        told(period_ms, now_ms as u32, began, if mark == began { past } else { 0 }, count)
    }

    /// The current period for a transfer: milliseconds since its start, its events, and those of the one before.
    pub(super) fn take(&self, now_ms: u64) -> (u32, u32, u32) {
        let (current, previous) = (self.current.load(Acquire), self.previous.load(Acquire));
        if current == 0 {
            return (0, 0, 0);
        }
        let ((began, count), (mark, past)) = (split(current), split(previous));
        let elapsed = (now_ms as u32).wrapping_sub(began);
        (if elapsed >= AHEAD { 0 } else { elapsed }, count, if mark == began { past } else { 0 })
    }

    /// Stores such a period.
    pub(super) fn put(&self, now_ms: u64, elapsed_ms: u32, count: u32, past: u32) {
        let began = (now_ms as u32).wrapping_sub(elapsed_ms);
        self.current.store(if count == 0 && past == 0 { 0 } else { join(began, count) }, Release);
        self.previous.store(if count == 0 && past == 0 { 0 } else { join(began, past) }, Release);
    }

    /// Sets the reported number, from now on for a period; then it fades.
    pub(super) fn set(&self, now_ms: u64, count: u32) {
        self.current.store(join(now_ms as u32, count), Release);
        self.previous.store(join(now_ms as u32, 0), Release);
    }
}

/// Reported number of two periods, of which the second began then.
fn told(period_ms: u32, now: u32, began: u32, past: u32, count: u32) -> u32 {
    let elapsed = match now.wrapping_sub(began) {
        elapsed if elapsed >= AHEAD => 0,
        elapsed => elapsed,
    };
    let period = u64::from(period_ms.max(1));
    let (remain, past, count) = match u64::from(elapsed) {
        elapsed if elapsed <= period => (period - elapsed, past, count),
        elapsed if elapsed <= 2 * period => (2 * period - elapsed, count, 0),
        _ => return 0,
    };
    // A single event now and then is reported as 1 for the whole period, not as 1 and 0 in turn.
    if count == 0 && past <= 1 {
        return past;
    }
    // Counts have 32 bits and periods 31: both products have 63, and fit together.
    let total = (u64::from(past) * remain).saturating_add(u64::from(count) * period);
    u32::try_from(total / period).unwrap_or(u32::MAX)
}

fn split(cell: u64) -> (u32, u32) {
    ((cell >> 32) as u32, cell as u32)
}

fn join(began: u32, count: u32) -> u64 {
    u64::from(began) << 32 | u64::from(count)
}

/// Above this, an elapsed time means that the period began a moment ahead of now: another worker looked at the clock
/// later.
const AHEAD: u32 = u32::MAX - 60_000;
/// Limit of a reader's attempts: a turn takes two stores.
const MOST_LOOKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Cells(AtomicU64, AtomicU64);

    impl Cells {
        fn rate(&self) -> Rate<'_> {
            Rate { current: &self.0, previous: &self.1 }
        }
    }

    #[test]
    fn a_period_fades_into_the_next() {
        let cells = Cells::default();
        let rate = cells.rate();
        assert_eq!(rate.read(1000, 5), 0);
        for n in 1..=10 {
            assert_eq!(rate.add(1000, 5, 1), n);
        }
        assert_eq!(rate.read(1000, 5), 10);
        assert_eq!(rate.read(1000, 1005), 10);
        assert_eq!(rate.read(1000, 1505), 5);
        assert_eq!(rate.read(1000, 2004), 0);
        assert_eq!(rate.add(1000, 1505, 2), 2);
        assert_eq!(rate.read(1000, 1505), 7);
        assert_eq!(rate.read(1000, 1755), 4);
        assert_eq!(rate.add(1000, 9000, 1), 1);
        assert_eq!(rate.read(1000, 9000), 1);
        // A single event does not flicker.
        assert_eq!((rate.read(1000, 10_500), rate.read(1000, 11_001)), (1, 0));
    }

    #[test]
    fn a_number_that_was_set_holds_for_a_period() {
        let cells = Cells::default();
        cells.rate().set(100, 40);
        assert_eq!((cells.rate().read(1000, 1000), cells.rate().read(1000, 1600)), (40, 20));
    }

    #[test]
    fn counts_stop_at_their_end() {
        let cells = Cells::default();
        cells.rate().add(1000, 1, u32::MAX);
        assert_eq!(cells.rate().add(1000, 1, 9), u32::MAX);
        assert_eq!(cells.rate().read(1000, 1), u32::MAX);
    }

    #[test]
    fn threads_lose_no_event() {
        let cells = Cells::default();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let cells = &cells;
                // Each sees the clock a little differently.
                scope.spawn(move || {
                    (0..10_000).for_each(|n| {
                        cells.rate().add(1 << 20, 1_000_000 + n + thread, 1);
                    })
                });
            }
        });
        assert_eq!(cells.rate().read(1 << 20, 1_000_000), 40_000);
    }

    proptest! {
        /// The same sums, kept as a list of periods.
        #[test]
        fn it_agrees_with_its_model(
            period in 1u32..5000, start in any::<u32>(), steps in proptest::collection::vec((0u32..3000, 0u32..9), 1..80)
        ) {
            let cells = Cells::default();
            let (mut now, mut model) = (u64::from(start), None::<(u64, u64, u64)>);
            for (wait, n) in steps {
                now += u64::from(wait);
                cells.rate().add(period, now, n);
                let p = u64::from(period);
                model = Some(match model {
                    Some((began, past, count)) if now - began < p => (began, past, count + u64::from(n)),
                    Some((began, _, count)) if now - began < 2 * p => (began + p, count, u64::from(n)),
                    // Cells that are all zero have had no period.
                    _ => (now, 0, u64::from(n)),
                });
                if cells.0.load(Relaxed) == 0 {
                    model = None;
                }
                if let Some((began, past, count)) = model {
                    let remain = p - (now - began);
                    let told = if count == 0 && past <= 1 { past } else { (past * remain + count * p) / p };
                    prop_assert_eq!(u64::from(cells.rate().read(period, now)), told);
                }
            }
        }
    }
}
