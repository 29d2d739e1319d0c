//! Time in coders, process-wide: by coding, and by the place of the work.
//!
//! A worker reads the monotonic clock, which costs nothing; a thread beside the workers, which others may interrupt, its own
//! processor time. An engine's work in another process is not counted here: `show engines` has it.

use crate::coding::{CODINGS, Coding};
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The threads that code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site {
    /// A worker, between two looks at its clients.
    Worker,
    /// A thread of the offload queue.
    Queue,
    /// The thread that makes better forms when there is nothing else to do.
    Idle,
}

impl Site {
    /// All of them.
    pub const ALL: [Site; 3] = [Site::Worker, Site::Queue, Site::Idle];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Site::Worker => "worker",
            Site::Queue => "queue",
            Site::Idle => "idle",
        }
    }
}

/// Nanoseconds in coders since the start, by [`Coding`] and [`Site`].
static SPENT: [[AtomicU64; Site::ALL.len()]; CODINGS.len()] =
    [const { [const { AtomicU64::new(0) }; Site::ALL.len()] }; CODINGS.len()];

/// Nanoseconds that coders of that coding have taken there since the start of the process.
pub fn ns(coding: Coding, site: Site) -> u64 {
    SPENT[coding as usize][site as usize].load(Relaxed)
}

/// Does a piece of work and counts its time; returns that, too, in nanoseconds.
pub(crate) fn timed<T>(coding: Coding, site: Site, work: impl FnOnce() -> T) -> (T, u64) {
    let watch = Watch::start(site);
    let done = work();
    let spent = watch.ns();
    SPENT[coding as usize][site as usize].fetch_add(spent, Relaxed);
    (done, spent)
}

enum Watch {
    Monotonic(Instant),
    Processor(Duration),
}

impl Watch {
    fn start(site: Site) -> Watch {
        match site {
            Site::Worker => Watch::Monotonic(Instant::now()),
            Site::Queue | Site::Idle => Watch::Processor(processor_time()),
        }
    }

    fn ns(&self) -> u64 {
        let spent = match self {
            Watch::Monotonic(since) => since.elapsed(),
            Watch::Processor(since) => processor_time().saturating_sub(*since),
        };
        u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn work_is_counted_where_it_is_done() {
        // Other tests code meanwhile: a coding that they leave alone.
        for site in Site::ALL {
            let before = ns(Coding::Identity, site);
            let (sum, spent) = timed(Coding::Identity, site, || (0..1_000_000u64).fold(0, |sum, n| black_box(sum ^ n)));
            assert!(black_box(sum) < 1 << 20 && spent > 1000, "{spent} ns");
            assert!(ns(Coding::Identity, site) >= before + spent);
        }
    }
}
