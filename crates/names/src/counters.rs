//! Counters of each name server, under HAProxy's names.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Event that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Count {
    Sent,
    SendErrors,
    Valid,
    Updates,
    Aliases,
    AliasErrors,
    AnyErrors,
    Absent,
    Timeouts,
    Refused,
    Other,
    Invalid,
    TooLarge,
    Truncated,
    Outdated,
}

/// The counters of a name server.
#[derive(Default, Debug)]
pub(crate) struct Counters([AtomicU64; COUNTS]);

impl Counters {
    pub(crate) fn bump(&self, what: Count) {
        self.0[what as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn values(&self) -> [u64; COUNTS] {
        std::array::from_fn(|place| self.0[place].load(Relaxed))
    }

    /// A line for each.
    pub(crate) fn write(&self, out: &mut String) {
        for (name, counter) in COUNT_NAMES.iter().zip(&self.0) {
            let _ = writeln!(out, "  {:<12} {}", format!("{name}:"), counter.load(Relaxed));
        }
    }
}

/// Number of counters of a name server.
pub(crate) const COUNTS: usize = 15;

/// Names of the counters of a name server, as in `show resolvers`.
pub const COUNT_NAMES: [&str; COUNTS] = [
    "sent",
    "snd_error",
    "valid",
    "update",
    "cname",
    "cname_error",
    "any_err",
    "nx",
    "timeout",
    "refused",
    "other",
    "invalid",
    "too_big",
    "truncated",
    "outdated",
];
