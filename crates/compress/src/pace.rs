//! Levels that go with the load: `compression level auto`.
//!
//! A level is the highest rung of its coding's ladder that costs no more than the present allowance for a byte. The ladder
//! has the levels that win bytes for their time ([`RUNGS`]), the cost of each is measured ([`Engine::whole_cost_ns`]), and
//! the allowance depends on the body's size and on the worker's [`Pace`] ([`ALLOWED_NS`]).
//!
//! ```text
//!             idle < 10 % or jobs wait          idle < 10 % or jobs wait          idle < 10 % or jobs wait
//!   Leisurely ────────────────────────> Steady ────────────────────────> Pressed ────────────────────────> Rushed
//!      ^            idle >= 55 %       │    ^          idle >= 55 %     │    ^         idle >= 55 %       │   ^
//!      └───────────────────────────────┘    └───────────────────────────┘    └───────────────────────────┘   │
//!                                           many jobs wait: from anywhere ────────────────────────────────────┘
//! ```
//!
//! A step up allows at most 2.5 times as much. A worker that is busy for less than 45 % of its time, not all of it with
//! compression, does not leave the band by it: so the pace does not swing.

use crate::coder::Engine;
use crate::coding::{Coding, Level};

/// Time that there is for a body, seen from its worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[repr(u8)]
pub enum Pace {
    /// None: the fastest level.
    Rushed,
    /// Little.
    Pressed,
    /// Enough for the levels that are usual.
    #[default]
    Steady,
    /// More than enough.
    Leisurely,
}

impl Pace {
    /// The slowest first.
    const ALL: [Pace; 4] = [Pace::Rushed, Pace::Pressed, Pace::Steady, Pace::Leisurely];

    /// The pace after a second in which the worker was idle for so many percent of its time, while so many jobs wait for each thread
    /// of the offload queue.
    pub fn next(self, idle_percent: u8, waiting: usize) -> Pace {
        let step = match (idle_percent, waiting) {
            (_, waiting) if waiting >= RUSH_JOBS => return Pace::Rushed,
            (0..PRESSED_PERCENT, _) | (_, PRESSED_JOBS..) => -1,
            (AT_EASE_PERCENT.., 0) => 1,
            _ => 0,
        };
        Pace::ALL.get((self as usize).saturating_add_signed(step)).copied().unwrap_or(self)
    }

    /// The pace for a body that comes just now: jobs can gather within a second.
    pub fn now(self, waiting: usize) -> Pace {
        if waiting >= RUSH_JOBS { Pace::Rushed } else { self }
    }
}

/// A worker that is idle for less is pressed.
const PRESSED_PERCENT: u8 = 10;
/// A worker that is idle for as much has time for a step up.
const AT_EASE_PERCENT: u8 = 55;
/// Jobs that wait for each thread: some milliseconds each.
const PRESSED_JOBS: usize = 2;
const RUSH_JOBS: usize = 8;

/// The level for a body of that size, as far as it is known.
pub fn level(coding: Coding, bytes: Option<u64>, pace: Pace) -> Level {
    let class = SIZES.iter().position(|&most| bytes.unwrap_or(USUAL_BYTES) <= most).unwrap_or(SIZES.len());
    let allowed = ALLOWED_NS[class][pace as usize];
    let (rungs, most) = RUNGS[coding as usize];
    let cost = |level: &&u8| Engine::of(coding).whole_ns(Level(**level), 1);
    let level = rungs.iter().rfind(|level| cost(level) <= allowed).or(rungs.first()).copied().unwrap_or(0);
    Level(if class == 0 { level.min(most) } else { level })
}

/// Sizes of bodies up to which the rows of [`ALLOWED_NS`] hold; the last row is for larger bodies.
const SIZES: [u64; 2] = [8 * 1024, 256 * 1024];
/// Assumed size where it is not known.
const USUAL_BYTES: u64 = 64 * 1024;

/// Nanoseconds that a byte may take, by size and [`Pace`]. 8 KB at 100 ns are 0.8 ms; a megabyte at 40 ns holds a thread for 40.
const ALLOWED_NS: [[u64; 4]; 3] = [[15, 40, 60, 100], [10, 20, 40, 70], [10, 15, 24, 40]];

/// The levels of each coding that are worth their time, in the order of [`Coding`], and the most for bodies of the first row: above that,
/// a twentieth of the time and more wins them a few bytes of a thousand.
const RUNGS: [(&[u8], u8); 7] = [DEFLATE, DEFLATE, DEFLATE, ZSTD, (&[0, 2, 3, 4, 5, 9], 5), (&[0], 0), ZSTD];
const ZSTD: (&[u8], u8) = (&[1, 3, 4, 6, 9], 6);
const DEFLATE: (&[u8], u8) = (&[1, 3, 6, 9], 5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::CODINGS;

    #[test]
    fn rungs_are_levels_of_their_codings() {
        for entry in CODINGS {
            let (rungs, most) = RUNGS[entry.coding as usize];
            assert!(rungs.is_sorted() && rungs.iter().chain([&most]).all(|rung| entry.levels.contains(rung)), "{entry:?}");
        }
    }

    #[test]
    fn no_level_falls_with_time_or_rises_with_size() {
        for entry in CODINGS {
            let at = |bytes, pace| level(entry.coding, bytes, pace);
            for pair in Pace::ALL.windows(2) {
                for bytes in [Some(100), None, Some(1 << 20)] {
                    assert!(at(bytes, pair[0]) <= at(bytes, pair[1]), "{entry:?} {pair:?}");
                }
            }
            for pace in Pace::ALL {
                let most = Level(RUNGS[entry.coding as usize].1);
                assert!(
                    at(Some(100), pace) >= at(None, pace).min(most) && at(None, pace) >= at(Some(1 << 20), pace),
                    "{entry:?} {pace:?}"
                );
            }
        }
    }

    #[test]
    fn a_steady_pace_is_the_usual_levels() {
        let usual = |coding| level(coding, Some(132_000), Pace::Steady);
        assert!(usual(Coding::Gzip) >= Level(6) && usual(Coding::Zstd) >= Level(6) && usual(Coding::Brotli) >= Level(4));
        for coding in [Coding::Gzip, Coding::Brotli] {
            assert!(level(coding, Some(132_000), Pace::Rushed) <= Level(1));
        }
    }

    #[test]
    fn each_pace_is_a_rung() {
        let at = |coding, bytes| Pace::ALL.map(|pace| level(coding, Some(bytes), pace).0);
        assert_eq!([8000, 132_000, 1 << 20].map(|bytes| at(Coding::Gzip, bytes)), [[1, 5, 5, 5], [1, 3, 6, 9], [1, 1, 6, 6]]);
        assert_eq!([8000, 132_000, 1 << 20].map(|bytes| at(Coding::Zstd, bytes)), [[4, 6, 6, 6], [1, 4, 6, 9], [1, 4, 6, 6]]);
        assert_eq!([8000, 132_000, 1 << 20].map(|bytes| at(Coding::Brotli, bytes)), [[3, 5, 5, 5], [0, 4, 5, 9], [0, 3, 4, 5]]);
    }

    #[test]
    fn the_pace_follows_the_load_and_does_not_swing() {
        let steps = |loads: &[(u8, usize)]| loads.iter().fold(Pace::Steady, |pace, &(idle, waiting)| pace.next(idle, waiting));
        assert_eq!(steps(&[(5, 0)]), Pace::Pressed);
        assert_eq!(steps(&[(5, 0), (5, 0), (5, 0)]), Pace::Rushed);
        assert_eq!(steps(&[(5, 0), (30, 0), (54, 0)]), Pace::Pressed, "what is between the thresholds changes nothing");
        assert_eq!(steps(&[(5, 0), (60, 0)]), Pace::Steady);
        assert_eq!(steps(&[(100, 0), (100, 0)]), Pace::Leisurely);
        assert_eq!(steps(&[(100, 1)]), Pace::Steady, "while a job waits, there is no time to win");
        assert_eq!(steps(&[(100, 2)]), Pace::Pressed);
        assert_eq!(steps(&[(100, 8)]), Pace::Rushed);
        assert_eq!((Pace::Leisurely.now(7), Pace::Leisurely.now(8)), (Pace::Leisurely, Pace::Rushed));
        // A worker whose work grows by as much as a step allows.
        let mut pace = Pace::Pressed;
        let mut busy = 30.0;
        for _ in 0..20 {
            let next = pace.next(100 - busy as u8, 0);
            assert!(next >= pace, "up, and never down again");
            if next > pace && next < Pace::Leisurely {
                busy *= 1.7;
            }
            pace = next;
        }
    }
}
