//! Ten minutes of the process in seconds: data of the page's chart and its API.
//!
//! The control thread adds a second at each sample of the counters ([`crate::rates`]); a second counts the bytes sent
//! within it. Bodies of frontends that serve nothing but statistics are left out, as everywhere in [`crate::savings`].

use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Recorded seconds.
#[derive(Default, Debug)]
pub(crate) struct History(Mutex<Ring>);

#[derive(Default, Debug)]
struct Ring {
    last: Option<Totals>,
    seconds: VecDeque<Second>,
    /// Time at which the last second was added, in milliseconds since 1970.
    end_ms: u64,
}

/// Counters at a moment, since the start.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    pub(crate) sent: u64,
    /// Bytes without compression.
    pub(crate) before: u64,
    pub(crate) requests: u64,
}

/// Figures of a second.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Second {
    sent: u64,
    before: u64,
    requests: u64,
    busy_permille: u16,
}

/// Seconds as columns, the oldest first.
#[derive(Serialize, PartialEq, Eq, Debug)]
pub(crate) struct Series {
    pub(crate) step_s: u64,
    /// The end of the first second, in milliseconds since 1970.
    pub(crate) start_ms: u64,
    /// Bytes without compression.
    pub(crate) before: Vec<u64>,
    /// Bytes sent.
    pub(crate) after: Vec<u64>,
    pub(crate) requests: Vec<u64>,
    /// Thousandths of the workers' time.
    pub(crate) busy_permille: Vec<u16>,
}

impl History {
    /// Adds the growth since the last call, so many milliseconds ago. The first call has nothing to compare with.
    pub(crate) fn note(&self, totals: Totals, busy_permille: u64, elapsed_ms: u64) {
        let mut ring = self.lock();
        ring.end_ms = unix_ms();
        let Some(last) = ring.last.replace(totals) else { return };
        let a_second = |now: u64, before: u64| {
            let grown = u128::from(now.saturating_sub(before));
            (grown * 1000 / u128::from(elapsed_ms.max(1))).min(u128::from(u64::MAX)) as u64
        };
        if ring.seconds.len() == SECONDS {
            ring.seconds.pop_front();
        }
        ring.seconds.push_back(Second {
            sent: a_second(totals.sent, last.sent),
            before: a_second(totals.before, last.before),
            requests: a_second(totals.requests, last.requests),
            busy_permille: busy_permille.min(1000) as u16,
        });
    }

    /// All recorded seconds.
    pub(crate) fn series(&self) -> Series {
        let ring = self.lock();
        let each = |number: fn(&Second) -> u64| ring.seconds.iter().map(number).collect();
        Series {
            step_s: 1,
            start_ms: ring.end_ms.saturating_sub(1000 * (ring.seconds.len() as u64).saturating_sub(1)),
            before: each(|second| second.before),
            after: each(|second| second.sent),
            requests: each(|second| second.requests),
            busy_permille: ring.seconds.iter().map(|second| second.busy_permille).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Number of seconds that are kept.
const SECONDS: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(sent: u64) -> Totals {
        Totals { sent, before: 3 * sent, requests: sent / 10 }
    }

    #[test]
    fn seconds_are_what_counters_grew_by() {
        let history = History::default();
        history.note(totals(1_000_000), 5, 1000);
        assert_eq!(history.series().after, [0; 0], "what came before the first look has no second");
        history.note(totals(1_000_500), 250, 1000);
        history.note(totals(1_001_500), 2000, 2000);
        history.note(totals(7), 0, 1000);
        let series = history.series();
        assert_eq!((series.after, series.before, series.requests), (vec![500, 500, 0], vec![1500, 1500, 0], vec![50, 50, 0]));
        assert_eq!(series.busy_permille, [250, 1000, 0]);
        assert!(unix_ms() - series.start_ms < 60_000);
    }

    #[test]
    fn ten_minutes_are_kept() {
        let history = History::default();
        for second in 0..=700 {
            history.note(totals(second * second), 0, 1000);
        }
        let series = history.series();
        assert_eq!((series.after.len(), series.after[0], series.after[599]), (600, 2 * 100 + 1, 2 * 699 + 1));
    }
}
