//! A limit of bandwidth: pure, with the time as an argument.
//!
//! Each byte costs its part of the period. Bytes may go while no cost is open; they then go in pieces worth [`SLICE`], so
//! that a body flows rather than jumps. A timer that comes late costs nothing: the time missed within a slice is made up for.

use super::Quota;
use std::time::{Duration, Instant};

/// Rate limiter of a stream: a number of bytes in a period.
#[derive(Clone, Debug)]
pub struct Limiter {
    bytes: u64,
    period: Duration,
    least_bytes: usize,
    /// Time at which the bytes sent so far are paid for.
    paid: Option<Instant>,
}

impl Limiter {
    /// Creates a limiter of `bytes` in a `period`, both more than 0.
    pub fn new(bytes: u64, period: Duration, least_bytes: usize) -> Limiter {
        Limiter { bytes: bytes.max(1), period: period.max(Duration::from_millis(1)), least_bytes, paid: None }
    }

    /// The number of these bytes that may go on now.
    pub fn quota(&self, bytes: usize, now: Instant) -> Quota {
        match self.paid.and_then(|paid| paid.checked_duration_since(now)).filter(|open| !open.is_zero()) {
            Some(open) => Quota::Wait(open),
            None => Quota::Bytes(bytes.min(self.slice())),
        }
    }

    /// Records that so many bytes have gone.
    pub fn take(&mut self, bytes: usize, now: Instant) {
        let earliest = now.checked_sub(SLICE).unwrap_or(now);
        let from = self.paid.unwrap_or(now).max(earliest);
        self.paid = Some(from + self.cost(bytes));
    }

    /// Bytes at a time.
    fn slice(&self) -> usize {
        let bytes = u128::from(self.bytes) * SLICE.as_nanos() / self.period.as_nanos();
        usize::try_from(bytes).unwrap_or(usize::MAX).max(self.least_bytes).max(1)
    }

    fn cost(&self, bytes: usize) -> Duration {
        let nanos = self.period.as_nanos() * bytes as u128 / u128::from(self.bytes);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(LONGEST)
    }
}

/// The wheel of timers counts milliseconds: twenty of them keep their error small, and a body smooth.
pub(super) const SLICE: Duration = Duration::from_millis(20);
/// A day: the longest wait for a byte.
const LONGEST: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes when, the limit holds, and a body that is always at hand is as fast as the limit.
        #[test]
        fn the_limit_holds_and_is_used(
            bytes in 1u64..1_000_000,
            period_ms in 1u64..5000,
            at_hand in 1usize..100_000,
            late_us in proptest::collection::vec(0u64..5000, 1..200),
        ) {
            let period = Duration::from_millis(period_ms);
            let mut limiter = Limiter::new(bytes, period, 0);
            let start = Instant::now();
            let (mut now, mut sent, mut last) = (start, 0u128, 0usize);
            for late in &late_us {
                match limiter.quota(at_hand, now) {
                    Quota::Wait(wait) => now += wait + Duration::from_micros(*late),
                    Quota::Bytes(n) => {
                        prop_assert!((1..=at_hand).contains(&n));
                        limiter.take(n, now);
                        sent += n as u128;
                        last = n;
                    }
                }
                // The allowed excess: a slice, and the piece that went last.
                let due = u128::from(bytes) * (now - start + SLICE).as_nanos() / period.as_nanos();
                prop_assert!(sent <= due + last as u128 + late_us.len() as u128, "{sent} of {due}");
            }
            if limiter.slice() <= at_hand && limiter.slice() > 1 && sent > last as u128 {
                let due = u128::from(bytes) * (now - start).as_nanos() / period.as_nanos();
                prop_assert!(sent + 2 * limiter.slice() as u128 >= due * 9 / 10, "{sent} of {due}");
            }
        }
    }

    #[test]
    fn little_goes_at_once_and_no_more_than_a_slice() {
        let now = Instant::now();
        let mut limiter = Limiter::new(1000, Duration::from_secs(1), 0);
        assert_eq!(limiter.quota(5, now), Quota::Bytes(5));
        assert_eq!(limiter.quota(500, now), Quota::Bytes(20));
        limiter.take(20, now);
        assert_eq!(limiter.quota(500, now), Quota::Wait(SLICE));
        assert_eq!(limiter.quota(500, now + SLICE), Quota::Bytes(20));
        assert_eq!(Limiter::new(1000, Duration::from_secs(1), 100).quota(500, now), Quota::Bytes(100));
        assert_eq!(Limiter::new(1, Duration::from_secs(60), 0).quota(500, now), Quota::Bytes(1));
    }
}
