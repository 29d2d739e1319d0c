//! Memory under `-m`: while little of it is left, no connection is accepted and no request begins.
//!
//! A program that the kernel refuses memory ends, with all of its clients. So the limit has to be seen from afar: requests that are on
//! their way go on, new ones wait until some have ended. `RLIMIT_DATA` is well above it (`limits::limit_memory`).

use super::sys;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;
use terse_proxy::log::{Level, Logger};
use terse_proxy::plan::Plan;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The process's memory, and its limit.
#[derive(Debug)]
pub struct Gauge {
    /// The kernel's figures.
    file: File,
    limit_mib: u64,
    page_bytes: u64,
    /// The bytes in use at first.
    first: Option<u64>,
}

impl Gauge {
    /// Begins to look at this process. To be called before its root is another folder.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn open(limit_mib: u64) -> io::Result<Gauge> {
        let file = File::open("/proc/self/statm")?;
        Ok(Gauge { file, limit_mib, page_bytes: rustix::param::page_size() as u64, first: None })
    }

    /// Memory in use, in percent of what the limit left at the first call.
    fn percent(&mut self) -> Option<u64> {
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let bytes = pages(std::str::from_utf8(text.get(..length)?).ok()?)?.saturating_mul(self.page_bytes);
        let first = *self.first.get_or_insert(bytes);
        let left = self.limit_mib.saturating_mul(1 << 20).saturating_sub(first);
        Some(bytes.saturating_sub(first).saturating_mul(100) / left.max(1))
    }
}

/// Pages in memory that are the process's own.
fn pages(statm: &str) -> Option<u64> {
    let mut words = statm.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (resident, shared) = (words.nth(1)??, words.next()??);
    Some(resident.saturating_sub(shared))
}

/// Closes and opens the gate for new connections and requests, for as long as the process serves.
pub async fn watch(mut gauge: Gauge, plan: Arc<Plan>) {
    let mut logger = Logger::new(&plan.sinks);
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut told_until, mut cleared) = (None, None);
    loop {
        tick.tick().await;
        let (Some(mut percent), now) = (gauge.percent(), Instant::now()) else { break };
        let gate = &plan.limits.memory;
        let full = if gate.is_closed() { ROOM_PERCENT } else { FULL_PERCENT };
        // The allocator keeps what requests have freed, and nothing that waits makes it look.
        if percent >= full && cleared.is_none_or(|at| now - at >= CLEARED_ANEW) {
            cleared = Some(now);
            sys::give_memory_back();
            percent = gauge.percent().unwrap_or(percent);
        }
        let is_full = percent >= full;
        gate.close(is_full);
        if is_full && told_until.is_none_or(|until| until <= now) {
            told_until = Some(now + TOLD_ANEW);
            if let Some(journal) = plan.own_journal() {
                logger.send(journal, Level::Emergency, line(percent, gauge.limit_mib).as_bytes());
            }
        }
    }
    plan.limits.memory.close(false);
}

fn line(percent: u64, limit_mib: u64) -> String {
    format!(
        "Out of memory: {percent} % of what -m {limit_mib} leaves for connections is in use. Connections and requests wait until some is \
         free. Raise -m, or lower 'maxconn'."
    )
}

/// Interval between looks: what is accepted and read meanwhile has to fit into what is left.
const LOOK: Duration = Duration::from_millis(10);
/// From here on new connections wait.
const FULL_PERCENT: u64 = 85;
/// Until less than this is in use.
const ROOM_PERCENT: u64 = 80;
/// Interval at which the allocator is asked to give memory back, while there is not enough.
const CLEARED_ANEW: Duration = Duration::from_millis(250);
/// Interval between messages in the log.
const TOLD_ANEW: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_figures_are_read() {
        assert_eq!(pages("9000 800 300 20 0 4000 0\n"), Some(500));
        for text in ["", "1 2", "1 2 x 4 5 6 7"] {
            assert_eq!(pages(text), None, "{text}");
        }
    }

    #[test]
    fn memory_that_is_used_shows() {
        let mut gauge = Gauge::open(64).unwrap();
        assert_eq!(gauge.percent(), Some(0));
        let held = vec![1u8; 32 << 20];
        let with = gauge.percent().unwrap();
        assert!(with >= 45, "{with} {}", held.len());
    }
}
