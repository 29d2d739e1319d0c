//! Counters of decoding, for the statistics, written by many threads.

use super::{Fault, Reason};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a proxy, both directions.
#[derive(Default, Debug)]
pub struct Counters {
    /// Requests' bodies.
    pub request: Side,
    /// Responses.
    pub response: Side,
}

/// Counters of a direction.
#[derive(Debug)]
pub struct Side {
    /// Bytes that went into decoders.
    pub bytes_in: AtomicU64,
    /// Bytes that came out of them.
    pub bytes_out: AtomicU64,
    /// Messages that were decoded, up to their end or not.
    pub decoded: AtomicU64,
    /// Of these those that came out larger than they may.
    pub bombs: AtomicU64,
    /// Of these, bodies that broke off for their flaws, or for want of memory.
    pub broken: AtomicU64,
    passed: [AtomicU64; Reason::ALL.len()],
}

/// Outcome of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was left as it was.
    Passed(Reason),
    /// It was decoded, as far as it went.
    Decoded {
        /// Bytes that went in.
        bytes_in: u64,
        /// Bytes that came out.
        bytes_out: u64,
        /// Why it broke off, if it did.
        fault: Option<Fault>,
    },
}

impl Outcome {
    /// Why it was not decoded, or not to its end; empty when it was.
    pub const fn name(&self) -> &'static str {
        match self {
            Outcome::Passed(reason) => reason.name(),
            Outcome::Decoded { fault: Some(fault), .. } => fault.name(),
            Outcome::Decoded { fault: None, .. } => "",
        }
    }

    /// Bytes that went into decoders, and that came out.
    pub const fn bytes(&self) -> (u64, u64) {
        match *self {
            Outcome::Passed(_) => (0, 0),
            Outcome::Decoded { bytes_in, bytes_out, .. } => (bytes_in, bytes_out),
        }
    }
}

impl Default for Side {
    fn default() -> Side {
        Side {
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
            bombs: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            passed: [const { AtomicU64::new(0) }; Reason::ALL.len()],
        }
    }
}

impl Counters {
    /// Adds the counts of another, so that workers can count apart.
    pub fn add(&self, other: &Counters) {
        for (sum, part) in self.all().zip(other.all()) {
            sum.fetch_add(part.load(Relaxed), Relaxed);
        }
    }

    /// Sets all to 0.
    pub fn clear(&self) {
        self.all().for_each(|number| number.store(0, Relaxed));
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.request.all().chain(self.response.all())
    }
}

impl Side {
    /// Counts a message.
    pub fn count(&self, outcome: &Outcome) {
        match *outcome {
            Outcome::Passed(reason) => {
                self.passed[reason as usize].fetch_add(1, Relaxed);
            }
            Outcome::Decoded { bytes_in, bytes_out, fault } => {
                self.decoded.fetch_add(1, Relaxed);
                self.bytes_in.fetch_add(bytes_in, Relaxed);
                self.bytes_out.fetch_add(bytes_out, Relaxed);
                match fault {
                    Some(fault) if fault.is_bomb() => self.bombs.fetch_add(1, Relaxed),
                    Some(_) => self.broken.fetch_add(1, Relaxed),
                    None => 0,
                };
            }
        }
    }

    /// Number of messages that were left as they are for that reason.
    pub fn passed(&self, reason: Reason) -> u64 {
        self.passed[reason as usize].load(Relaxed)
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.bytes_in, &self.bytes_out, &self.decoded, &self.bombs, &self.broken].into_iter().chain(&self.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Flaw;

    #[test]
    fn outcomes_are_counted_once_and_sum_up() {
        let (sum, part) = (Counters::default(), Counters::default());
        let outcomes = [None, Some(Fault::Ratio), Some(Fault::Flaw(Flaw::Truncated))].map(|fault| Outcome::Decoded {
            bytes_in: 10,
            bytes_out: 30,
            fault,
        });
        outcomes.iter().for_each(|outcome| part.response.count(outcome));
        part.request.count(&Outcome::Passed(Reason::NotCoded));
        sum.add(&part);
        sum.add(&part);
        let numbers =
            |side: &Side| [&side.decoded, &side.bytes_in, &side.bytes_out, &side.bombs, &side.broken].map(|n| n.load(Relaxed));
        assert_eq!(numbers(&sum.response), [6, 60, 180, 2, 2]);
        assert_eq!((sum.request.passed(Reason::NotCoded), sum.response.passed(Reason::NotCoded)), (2, 0));
        sum.clear();
        assert_eq!((numbers(&sum.response), sum.request.passed(Reason::NotCoded)), ([0; 5], 0));
        assert_eq!(outcomes.map(|outcome| outcome.name()), ["", "ratio", "truncated"]);
    }
}
