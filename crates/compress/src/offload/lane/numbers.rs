//! Counters of an engine: its successes and failures.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Why software did a body that an engine was named for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The engine reported an error.
    Error,
    /// It died over it.
    Died,
    /// It died over another job, or was killed for one.
    Swept,
    /// It was being started again, or had no room.
    Refused,
    /// It was not done in time.
    Late,
    /// The result was not the body's coded form.
    Lied,
    /// Too many waited already.
    Full,
    /// It was taken out.
    Down,
}

impl Cause {
    /// All of them, in order.
    pub const ALL: [Cause; 8] =
        [Cause::Error, Cause::Died, Cause::Swept, Cause::Refused, Cause::Late, Cause::Lied, Cause::Full, Cause::Down];

    /// Its name in statistics.
    pub const fn word(self) -> &'static str {
        match self {
            Cause::Error => "error",
            Cause::Died => "died",
            Cause::Swept => "swept",
            Cause::Refused => "refused",
            Cause::Late => "late",
            Cause::Lied => "lied",
            Cause::Full => "full",
            Cause::Down => "down",
        }
    }
}

/// Counters of an engine.
#[derive(Default, Debug)]
pub struct LaneNumbers {
    /// Bodies that it did.
    pub jobs: AtomicU64,
    /// Bytes of them.
    pub bytes_in: AtomicU64,
    /// Bytes that came out.
    pub bytes_out: AtomicU64,
    /// Bodies that were too small or too large for it, or of a coding that it does not do.
    pub unfit: AtomicU64,
    /// Jobs dropped before they were done.
    pub cancelled: AtomicU64,
    /// Results that came when they were not wanted any more.
    pub in_vain: AtomicU64,
    /// Number of times that it was taken out.
    pub falls: AtomicU64,
    /// Probes.
    pub probes: AtomicU64,
    /// Probes that it did not pass.
    pub failed_probes: AtomicU64,
    /// The longest time that a job waited to be handed over, in microseconds.
    pub max_wait_us: AtomicU64,
    /// The longest time from a whole body to its result, in microseconds.
    pub max_latency_us: AtomicU64,
    /// These times added up: divided by the results, the mean.
    pub latency_us: AtomicU64,
    /// The time that the engine itself took for them, in microseconds.
    pub engine_us: AtomicU64,
    /// Results.
    pub results: AtomicU64,
    /// The longest time from a job's deadline to the moment that software had it, in microseconds.
    pub max_late_us: AtomicU64,
    /// These times added up.
    late_us: AtomicU64,
    fallen: [AtomicU64; Cause::ALL.len()],
}

impl LaneNumbers {
    /// Bodies that software did for that cause.
    pub fn fallen(&self, cause: Cause) -> u64 {
        self.fallen[cause as usize].load(Relaxed)
    }

    /// The mean time from a whole body to its result, in microseconds.
    pub fn mean_latency_us(&self) -> u64 {
        self.latency_us.load(Relaxed).checked_div(self.results.load(Relaxed)).unwrap_or(0)
    }

    /// The mean time from a job's deadline to the moment that software had it, in microseconds.
    pub fn mean_late_us(&self) -> u64 {
        self.late_us.load(Relaxed).checked_div(self.fallen(Cause::Late)).unwrap_or(0)
    }

    /// Counts a job that software has got so long after its deadline.
    pub(super) fn was_late(&self, us: u64) {
        self.late_us.fetch_add(us, Relaxed);
        self.max_late_us.fetch_max(us, Relaxed);
    }

    pub(super) fn fell(&self, cause: Cause) {
        self.fallen[cause as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn took(&self, latency_us: u64, engine: Duration) {
        self.results.fetch_add(1, Relaxed);
        self.latency_us.fetch_add(latency_us, Relaxed);
        self.max_latency_us.fetch_max(latency_us, Relaxed);
        self.engine_us.fetch_add(u64::try_from(engine.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(super) fn done(&self, bytes_in: usize, bytes_out: usize) {
        self.jobs.fetch_add(1, Relaxed);
        self.bytes_in.fetch_add(bytes_in as u64, Relaxed);
        self.bytes_out.fetch_add(bytes_out as u64, Relaxed);
    }
}
