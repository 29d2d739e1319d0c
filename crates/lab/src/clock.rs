//! The processor's time of a thread: what other programs on the machine take is not in it.

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time of this thread so far.
///
/// # Errors
/// The system has no such clock.
pub fn thread_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}
