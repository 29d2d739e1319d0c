//! Small requests beside downloads that are coded: how much later they are answered.
//!
//! ```text
//!   8 connections, a request on each every 4 ms ──> two workers, on two cores ──> origin
//!   8 clients, one download after the other ──────>
//! ```
//!
//! Unlike wrk these clients are not as quick as they can be: who sends its next request when it has the answer, and nothing else, keeps its
//! core busy, and waits for that. They are threads of this process, before all others on their core if the system lets them, as wrk is.

use super::measure::Numbers;
use super::rival::Running;
use super::sample::Metric;
use super::wrk::go_first;
use crate::cores;
use crate::program::wait_until;
use anyhow::{Context, Result, bail};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A measurement of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bystanders<'a> {
    /// The path of the small requests.
    pub(super) path: &'a str,
    /// The path of the downloads.
    pub(super) beside: &'a str,
    /// A line of the downloads' heads.
    pub(super) accept: &'a str,
    /// The core of all clients.
    pub(super) core: usize,
    /// For so long alone, and beside.
    pub(super) time: Duration,
    /// Whether the small requests' clients go before all others.
    pub(super) may_go_first: bool,
}

/// Connections with small requests: enough for each worker to have some of them.
const CONNECTIONS: usize = 8;
/// Interval of a connection's requests.
const EVERY: Duration = Duration::from_millis(4);
/// Clients that download.
const DOWNLOADERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

impl Bystanders<'_> {
    /// Measures once.
    pub(super) fn measure(&self, proxy: &Running) -> Result<Numbers> {
        let alone = self.ask(proxy)?;
        let (enough, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let (beside, downloads) = std::thread::scope(|scope| {
            let download = || self.download(proxy, &enough, &done);
            let downloaders: Vec<_> = (0..DOWNLOADERS).map(|_| scope.spawn(download)).collect();
            wait_until(PATIENCE, || done.load(Relaxed) > 0 || downloaders.iter().any(|d| d.is_finished()));
            let before = done.load(Relaxed);
            let beside = self.ask(proxy);
            let downloads = done.load(Relaxed) - before;
            enough.store(true, Relaxed);
            for downloader in downloaders {
                downloader.join().unwrap_or_else(|_| bail!("a client died")).context("a download")?;
            }
            Ok::<_, anyhow::Error>((beside?, downloads))
        })?;
        Ok(vec![
            (Metric::P50Alone, at(&alone, 50)),
            (Metric::P99Alone, at(&alone, 99)),
            (Metric::P50, at(&beside, 50)),
            (Metric::P99, at(&beside, 99)),
            (Metric::Downloads, downloads as f64 / self.time.as_secs_f64()),
        ])
    }

    /// The times of small requests, in order.
    fn ask(&self, proxy: &Running) -> Result<Vec<Duration>> {
        let times = std::thread::scope(|scope| {
            let asks: Vec<_> = (0..CONNECTIONS).map(|i| scope.spawn(move || self.ask_on_one(proxy, i))).collect();
            asks.into_iter().map(|asks| asks.join().unwrap_or_else(|_| bail!("a client died"))).collect::<Result<Vec<_>>>()
        })?;
        let mut times = times.concat();
        times.sort_unstable();
        Ok(times)
    }

    fn ask_on_one(&self, proxy: &Running, number: usize) -> Result<Vec<Duration>> {
        cores::pin_this_thread(self.core)?;
        let mut client = proxy.connect(PATIENCE)?;
        client.get(self.path, &[])?;
        if self.may_go_first {
            go_first()?;
        }
        let mut next = Instant::now() + EVERY * number as u32 / CONNECTIONS as u32;
        let (end, mut times) = (next + self.time, Vec::new());
        while next < end {
            while let Some(left) = next.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                std::thread::park_timeout(left);
            }
            let begun = Instant::now();
            let reply = client.get(self.path, &[])?;
            times.push(begun.elapsed());
            if reply.status != 200 {
                bail!("a small request had the status {}", reply.status);
            }
            // Requests that were due meanwhile are left out: that a client waits is in the time of this one.
            next = Instant::now().max(next) + EVERY;
        }
        Ok(times)
    }

    fn download(&self, proxy: &Running, enough: &AtomicBool, done: &AtomicU64) -> Result<()> {
        cores::pin_this_thread(self.core)?;
        let mut client = proxy.connect(PATIENCE)?;
        while !enough.load(Relaxed) {
            client.get(self.beside, &[self.accept])?;
            done.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}

/// So many percent came within so many milliseconds.
fn at(times: &[Duration], percent: usize) -> f64 {
    let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_is_later() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!([at(&times, 50), at(&times, 99), at(&times[..1], 99), at(&[], 99)], [100.0, 198.0, 1.0, 0.0]);
    }
}
