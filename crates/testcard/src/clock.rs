//! The card's time: a single engine, which does one byte after the other, whichever process brings them.
#![allow(unsafe_code)]

use rustix::fs::{Mode, OFlags, ftruncate, open};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// State that all users share.
#[repr(C)]
pub(crate) struct Clock {
    /// Time when the card has done all its jobs: nanoseconds of the monotonic clock, which all processes see alike.
    free_at: AtomicU64,
    /// Jobs so far.
    jobs: AtomicU64,
}

/// The card's clock.
pub(crate) fn clock() -> &'static Clock {
    static OWN: Clock = Clock { free_at: AtomicU64::new(0), jobs: AtomicU64::new(0) };
    static SHARED: OnceLock<Option<&'static Clock>> = OnceLock::new();
    SHARED.get_or_init(shared).unwrap_or(&OWN)
}

fn shared() -> Option<&'static Clock> {
    let path = std::env::var_os("TERSE_TESTCARD_CLOCK")?;
    let file = open(path, OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR).ok()?;
    ftruncate(&file, size_of::<Clock>() as u64).ok()?;
    let (length, access) = (size_of::<Clock>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping of a file that is as long as the data that is read from it; it is never taken away.
    let place = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0) }.ok()?;
    // SAFETY: the mapping begins at a page, holds two numbers, and all its users access them as atomics.
    Some(unsafe { &*place.cast::<Clock>() })
}

impl Clock {
    /// Counts a job; its number.
    pub(crate) fn number_job(&self) -> u64 {
        self.jobs.fetch_add(1, SeqCst)
    }

    /// Waits for as long as the card would take, after all earlier jobs.
    pub(crate) fn pass(&self, bytes: usize) {
        let takes = bytes as u64 * NS_PER_10_BYTES / 10;
        let queued = self.free_at.fetch_update(SeqCst, SeqCst, |free_at| Some(free_at.max(now()) + takes));
        let done_at = queued.unwrap_or_else(|free_at| free_at).max(now().saturating_sub(takes)) + takes;
        let until = libc::timespec { tv_sec: (done_at / 1_000_000_000) as i64, tv_nsec: (done_at % 1_000_000_000) as i64 };
        // SAFETY: the time is valid, and nothing is written. A card takes its time: this is no wait for a condition.
        while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const until, std::ptr::null_mut()) }
            == libc::EINTR
        {}
    }
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// 2.5 Gbit/s.
const NS_PER_10_BYTES: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn two_users_share_the_rate() {
        let since = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..4).for_each(|_| clock().pass(2_500_000)));
            }
        });
        // 20 MB at 312.5 MB/s.
        assert!(since.elapsed() >= Duration::from_millis(63), "{:?}", since.elapsed());
    }
}
