//! The descriptors of the process: `maxconn` has promised most of them to clients and to their connections to servers.
//!
//! Idle connections to servers use the rest. Below `tune.pool-low-fd-ratio` of the limit they are kept as they may be needed;
//! from there on one for each server and worker; from `tune.pool-high-fd-ratio` on none, and each new connection closes an
//! idle one. A worker that has none asks another worker.
//!
//! **Invariant:** no connection to a server fails for want of a descriptor while an idle one could be closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
pub use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_config::{Args, Fault, Keyword, Kind, Scope, Sections, Setting};
use tokio::sync::Notify;

/// The keywords of `global`.
pub(crate) const KEYWORDS: &[Keyword] = &[
    ratio(
        "tune.pool-low-fd-ratio",
        "With more of the descriptors in use, a worker keeps one idle connection to a server at most; 20 by default.",
        |args, scope| {
            settings(scope).low_percent = Some(percent(args)?);
            Ok(())
        },
    ),
    ratio(
        "tune.pool-high-fd-ratio",
        "With more of the descriptors in use, no idle connection is kept, and a new one to a server closes one; 25 by default.",
        |args, scope| {
            settings(scope).high_percent = Some(percent(args)?);
            Ok(())
        },
    ),
];

const fn ratio(name: &'static str, summary: &'static str, parser: terse_config::Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments: "<percent>", summary, kind: Kind::Done(parser) }
}

fn percent(args: &mut Args<'_>) -> Result<u8, Fault> {
    let percent = args.integer("<percent>", 0..=100)?;
    u8::try_from(percent).map_err(|_| args.fault("is out of range"))
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut DescriptorSettings {
    scope.section.settings.entry()
}

/// The settings of `global`.
#[derive(Clone, Copy, Default, Debug)]
pub struct DescriptorSettings {
    /// `tune.pool-low-fd-ratio`
    low_percent: Option<u8>,
    /// `tune.pool-high-fd-ratio`
    high_percent: Option<u8>,
}

impl Setting for DescriptorSettings {
    fn inherit(&self) -> DescriptorSettings {
        *self
    }
}

/// The limit, and connections to servers against it.
#[derive(Debug)]
pub struct Descriptors {
    settings: DescriptorSettings,
    /// The descriptors that were computed for all possible connections.
    needed: usize,
    /// The limit of the process.
    limit: usize,
    /// Descriptors that belong to no connection.
    fixed: usize,
    low: usize,
    high: usize,
    /// Descriptors of connections to servers, in use or idle.
    servers: AtomicUsize,
    lenders: Box<[Lender]>,
}

/// A worker that may be asked to close idle connections.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Lender {
    /// Whether it may have idle connections.
    has_idle: AtomicBool,
    /// Number of connections that it has been asked to close.
    wanted: AtomicUsize,
    asked: Notify,
}

/// Room for further descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Enough for idle connections.
    Plenty,
    /// Enough for one idle connection to a server in each worker.
    Little,
    /// None for idle connections.
    None,
}

/// Descriptors of a connection to a server, for as long as this is there.
#[derive(Debug)]
pub struct Counted {
    descriptors: Arc<Descriptors>,
    number: usize,
}

impl Descriptors {
    /// No limit yet, for so many workers.
    pub(crate) fn new(settings: DescriptorSettings, workers: usize) -> Descriptors {
        Descriptors {
            settings,
            needed: usize::MAX,
            limit: usize::MAX,
            fixed: 0,
            low: usize::MAX,
            high: usize::MAX,
            servers: AtomicUsize::new(0),
            lenders: (0..workers).map(|_| Lender::default()).collect(),
        }
    }

    /// The same with the limit of the process, the computed number `needed` by its connections, and the number `fixed` of
    /// descriptors that belong to none. Ratios are of the smaller of the first two.
    #[must_use]
    pub fn limited(&self, needed: usize, limit: usize, fixed: usize) -> Descriptors {
        let DescriptorSettings { low_percent, high_percent } = self.settings;
        let part = |percent: u8| needed.min(limit).saturating_mul(percent.into()).div_ceil(100);
        Descriptors {
            needed,
            limit,
            fixed,
            low: part(low_percent.unwrap_or(LOW_PERCENT)),
            high: part(high_percent.unwrap_or(HIGH_PERCENT)),
            ..Descriptors::new(self.settings, self.lenders.len())
        }
    }

    /// The same with another limit of the process.
    #[must_use]
    pub fn lowered(&self, limit: usize) -> Descriptors {
        self.limited(self.needed, limit, self.fixed)
    }

    /// Counts descriptors of a connection to a server.
    pub fn count(self: &Arc<Self>, number: usize) -> Counted {
        self.servers.fetch_add(number, Relaxed);
        Counted { descriptors: self.clone(), number }
    }

    /// The room beside the descriptors of connections to servers and so many others.
    pub(crate) fn room(&self, others: usize) -> Room {
        match self.servers.load(Relaxed) + others {
            used if used >= self.high => Room::None,
            used if used >= self.low => Room::Little,
            _ => Room::Plenty,
        }
    }

    /// Whether hardly any is left for the connections that `maxconn` has promised.
    pub(crate) fn are_scarce(&self, others: usize) -> bool {
        self.servers.load(Relaxed) + others + self.fixed + SPARE >= self.limit
    }

    /// Records whether a worker may have idle connections.
    pub(crate) fn offer(&self, worker: usize, has_idle: bool) {
        if let Some(lender) = self.lenders.get(worker)
            && lender.has_idle.load(Relaxed) != has_idle
        {
            lender.has_idle.store(has_idle, Relaxed);
        }
    }

    /// Whether a worker may have idle connections.
    pub(crate) fn offers(&self, worker: usize) -> bool {
        self.lenders.get(worker).is_some_and(|lender| lender.has_idle.load(Relaxed))
    }

    /// Asks another worker to close an idle connection; false if no worker has any.
    pub(crate) fn ask_others(&self, worker: usize) -> bool {
        let others = self.lenders.iter().enumerate().filter(|(index, _)| *index != worker);
        let lender = others.map(|(_, lender)| lender).find(|lender| lender.has_idle.load(Relaxed));
        if let Some(lender) = lender {
            lender.wanted.fetch_add(1, Relaxed);
            lender.asked.notify_one();
        }
        lender.is_some()
    }

    /// Waits until a worker is asked for idle connections; returns the number that it is to close.
    pub(crate) async fn asked(&self, worker: usize) -> usize {
        let Some(lender) = self.lenders.get(worker) else { return std::future::pending().await };
        loop {
            lender.asked.notified().await;
            match lender.wanted.swap(0, Relaxed) {
                0 => {}
                wanted => return wanted,
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.descriptors.servers.fetch_sub(self.number, Relaxed);
    }
}

/// HAProxy's defaults: a quarter of the descriptors lets about half of the clients leave an idle connection behind.
const LOW_PERCENT: u8 = 20;
const HIGH_PERCENT: u8 = 25;

/// Descriptors that stay free while idle connections are there to be closed.
const SPARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_limit() {
        let all = Descriptors::new(DescriptorSettings::default(), 1);
        assert_eq!(all.room(1 << 40), Room::Plenty);
        assert!(!all.are_scarce(1 << 40));
        let limited = Arc::new(all.limited(1000, 1000, 100));
        let rooms = [199, 200, 249, 250].map(|used| limited.room(used));
        assert_eq!(rooms, [Room::Plenty, Room::Little, Room::Little, Room::None]);
        let held = limited.count(2);
        assert_eq!((limited.room(198), limited.room(248)), (Room::Little, Room::None));
        assert!(limited.are_scarce(890) && !limited.are_scarce(880));
        drop(held);
        assert_eq!(limited.room(198), Room::Plenty);
        let settings = DescriptorSettings { low_percent: Some(0), high_percent: Some(100) };
        let limited = Descriptors::new(settings, 1).limited(100, 100, 0);
        assert_eq!([0, 99, 100].map(|used| limited.room(used)), [Room::Little, Room::Little, Room::None]);
        for (needed, limit) in [(1000, 5000), (5000, 1000)] {
            let limited = all.limited(needed, 7, 0).lowered(limit);
            assert_eq!([199, 250].map(|used| limited.room(used)), [Room::Plenty, Room::None], "{needed} {limit}");
            assert_eq!([limit - 9, limit - 8].map(|used| limited.are_scarce(used)), [false, true]);
        }
    }

    #[tokio::test]
    async fn a_worker_that_has_idle_connections_is_asked() {
        let all = Descriptors::new(DescriptorSettings::default(), 3);
        assert!(!all.ask_others(0));
        all.offer(0, true);
        assert!(!all.ask_others(0), "its own are not another's");
        all.offer(2, true);
        assert!(all.ask_others(0) && all.ask_others(1) && all.ask_others(0));
        assert_eq!((all.asked(2).await, all.asked(0).await), (2, 1));
        all.offer(2, false);
        assert!(!all.ask_others(0));
    }
}
