//! The offload queue: threads that compress while the workers go on.

mod job;

pub use job::{Finished, Job};

use std::sync::atomic::AtomicU64;

/// How far below the workers the queue's threads run, unless `tune.comp.nice` says otherwise.
pub const DEFAULT_NICE: u8 = 10;
/// Jobs that may wait, unless `tune.comp.queue` says otherwise.
pub const DEFAULT_DEPTH: usize = 1024;

/// The offload queue.
pub struct Queue {
    numbers: Numbers,
}

/// What the queue has done.
#[derive(Default, Debug)]
pub struct Numbers {
    /// Jobs that wait now.
    pub waiting: AtomicU64,
    /// Jobs done.
    pub jobs: AtomicU64,
    /// Bytes of input of those jobs.
    pub bytes: AtomicU64,
    /// Jobs that did not fit and were done in place.
    pub full: AtomicU64,
    /// Jobs dropped before they began.
    pub cancelled: AtomicU64,
    /// The longest time that a job waited, in microseconds.
    pub max_wait_us: AtomicU64,
}

impl Queue {
    /// Starts the threads: `threads` of them, `nice` below the caller, for at most `depth` waiting jobs.
    pub fn start(_threads: usize, _nice: u8, _depth: usize) -> std::io::Result<Queue> {
        unreachable!("not built yet")
    }

    /// What it has done.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }
}
