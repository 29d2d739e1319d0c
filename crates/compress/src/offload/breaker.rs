//! Whether an engine is given bodies: pure, the time is an argument.
//!
//! ```text
//!             failures: fall of them in a row, or more than one in five
//!        Up ───────────────────────────────────────────────────────> Down, for a pause
//!         ^                                                           │   ^
//!         │ rise probes passed                         pause over     v   │ a probe failed: the pause doubles
//!         └───────────────────────────────────────────────────────── Probing
//! ```
//!
//! An engine begins in `Down` with no pause: no client's body is the first that it sees. A probe is a body that terse has
//! made up, so that a client never waits for an engine that is known to be broken.
//!
//! Failures weigh [`FAILURE_WEIGHT`] and successes take one off: an engine that fails now and then goes, an engine that
//! failed once long ago stays.

use std::time::{Duration, Instant};

/// State of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It has not passed its first probe.
    Starting,
    /// It is given bodies.
    Up,
    /// It failed, and is left alone.
    Down,
    /// It failed, and is being probed.
    Probing,
}

impl Standing {
    /// Its name in statistics.
    pub const fn word(self) -> &'static str {
        match self {
            Standing::Starting => "STARTING",
            Standing::Up => "UP",
            Standing::Down => "DOWN",
            Standing::Probing => "PROBING",
        }
    }
}

/// The breaker of an engine.
#[derive(Clone, Debug)]
pub(super) struct Breaker {
    fall: u32,
    rise: u32,
    inter: Duration,
    state: State,
    /// Number of doublings of the pause.
    doublings: u32,
    /// Whether it was ever up.
    has_served: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Up { weight: u32, in_a_row: u32 },
    Down { until: Instant, passed: u32 },
    Probing { passed: u32 },
}

impl Breaker {
    /// Of an engine that starts now.
    pub(super) fn new(fall: u32, rise: u32, inter: Duration, now: Instant) -> Breaker {
        let state = State::Down { until: now, passed: 0 };
        Breaker { fall: fall.max(1), rise: rise.max(1), inter, state, doublings: 0, has_served: false }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    pub(super) fn standing(&self) -> Standing {
        match self.state {
            State::Up { .. } => Standing::Up,
            _ if !self.has_served => Standing::Starting,
            State::Down { .. } => Standing::Down,
            State::Probing { .. } => Standing::Probing,
        }
    }

    /// A body was done. After so many in a row the pauses begin short again.
    pub(super) fn succeeded(&mut self) {
        if let State::Up { weight, in_a_row } = &mut self.state {
            *weight = weight.saturating_sub(1);
            *in_a_row = in_a_row.saturating_add(1);
            if *in_a_row >= STEADY {
                self.doublings = 0;
            }
        }
    }

    /// Counts a body that was not done; returns whether that takes the engine out.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        let State::Up { weight, in_a_row } = &mut self.state else { return false };
        *weight = weight.saturating_add(FAILURE_WEIGHT);
        *in_a_row = 0;
        let falls = *weight > FAILURE_WEIGHT.saturating_mul(self.fall - 1);
        if falls {
            self.pause(now);
        }
        falls
    }

    /// Time of the next probe; `None` while it is up or being probed.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        match self.state {
            State::Down { until, .. } => Some(until),
            State::Up { .. } | State::Probing { .. } => None,
        }
    }

    /// A probe is on its way.
    pub(super) fn begin_probe(&mut self) {
        if let State::Down { passed, .. } = self.state {
            self.state = State::Probing { passed };
        }
    }

    /// A probe has come back.
    pub(super) fn probed(&mut self, passed_this: bool, now: Instant) {
        let State::Probing { passed } = self.state else { return };
        match passed + 1 {
            _ if !passed_this => self.pause(now),
            enough if enough >= self.rise => {
                self.state = State::Up { weight: 0, in_a_row: 0 };
                self.has_served = true;
            }
            passed => self.state = State::Down { until: now, passed },
        }
    }

    fn pause(&mut self, now: Instant) {
        let pause = self.inter.saturating_mul(1 << self.doublings);
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        self.state = State::Down { until: now.checked_add(pause).unwrap_or(now), passed: 0 };
    }
}

/// Weight of a failure; a success weighs minus one. So more than one failure in five takes an engine out.
const FAILURE_WEIGHT: u32 = 4;

/// Successes in a row after which earlier pauses are forgotten.
const STEADY: u32 = 64;

/// A pause is at most 64 times `inter`.
const MAX_DOUBLINGS: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn up(fall: u32, now: Instant) -> Breaker {
        let mut breaker = Breaker::new(fall, 1, SECOND, now);
        assert_eq!((breaker.standing(), breaker.next_probe()), (Standing::Starting, Some(now)));
        breaker.begin_probe();
        assert_eq!((breaker.standing(), breaker.next_probe()), (Standing::Starting, None));
        breaker.probed(true, now);
        assert!(breaker.is_up());
        breaker
    }

    #[test]
    fn so_many_in_a_row_take_it_out_and_a_probe_brings_it_back() {
        let now = Instant::now();
        let mut breaker = up(3, now);
        assert!(!breaker.failed(now) && !breaker.failed(now) && breaker.failed(now));
        assert_eq!((breaker.standing(), breaker.next_probe()), (Standing::Down, Some(now + SECOND)));
        assert!(!breaker.failed(now), "what comes back late changes nothing");
        breaker.begin_probe();
        assert_eq!(breaker.standing(), Standing::Probing);
        breaker.probed(true, now);
        assert_eq!(breaker.standing(), Standing::Up);
    }

    #[test]
    fn pauses_double_until_it_is_steady() {
        let now = Instant::now();
        let mut breaker = up(1, now);
        let mut pauses = Vec::new();
        assert!(breaker.failed(now));
        for _ in 0..9 {
            pauses.push((breaker.next_probe().unwrap() - now).as_secs());
            breaker.begin_probe();
            breaker.probed(false, now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        breaker.begin_probe();
        breaker.probed(true, now);
        (0..STEADY).for_each(|_| breaker.succeeded());
        assert!(breaker.failed(now));
        assert_eq!(breaker.next_probe(), Some(now + SECOND));
    }

    #[test]
    fn one_in_three_is_too_many_and_one_in_six_is_not() {
        let now = Instant::now();
        for (good, falls) in [(2, true), (5, false)] {
            let mut breaker = up(3, now);
            let fell = (0..100).any(|_| {
                (0..good).for_each(|_| breaker.succeeded());
                breaker.failed(now)
            });
            assert_eq!(fell, falls, "{good}");
        }
    }

    #[test]
    fn as_many_probes_as_it_takes() {
        let now = Instant::now();
        let mut breaker = Breaker::new(1, 3, SECOND, now);
        for _ in 0..3 {
            assert!(!breaker.is_up());
            assert_eq!(breaker.next_probe(), Some(now));
            breaker.begin_probe();
            breaker.probed(true, now);
        }
        assert!(breaker.is_up());
    }
}
