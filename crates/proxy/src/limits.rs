//! Limits of the whole process: `maxconn`, `maxconnrate`, `maxsessrate`, `maxsslrate`, `maxsslconn`.
//!
//! They are looked at when a connection is accepted: connections beyond them wait in the kernel. Rates are those of the last
//! second. Where nothing is limited, nothing is counted.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use terse_compress::counters::Rate;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, Setting};
use terse_tls::COUNTERS;
use tokio::sync::Notify;

/// The keywords of `global`; `maxconn` is the program's, since it is the process's largest possible number.
pub(crate) const KEYWORDS: &[Keyword] = &[
    done("maxconnrate", "The most connections that the process accepts in a second; more wait in the kernel.", |args, scope| {
        settings(scope).connection_rate = number(args)?;
        Ok(())
    }),
    done("maxsessrate", "The same of sessions: here each connection is one.", |args, scope| {
        settings(scope).session_rate = number(args)?;
        Ok(())
    }),
    done("maxsslrate", "The same of connections to addresses that speak TLS, handshakes that fail included.", |args, scope| {
        settings(scope).tls_rate = number(args)?;
        Ok(())
    }),
    done(
        "maxsslconn",
        "The most TLS connections of clients and servers together; at it, clients of addresses that speak TLS wait in the kernel.",
        |args, scope| {
            settings(scope).tls_connections = number(args)?;
            Ok(())
        },
    ),
];

const fn done(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments: "<number>", summary, kind: Kind::Done(parser) }
}

fn number<T: TryFrom<i64>>(args: &mut Args<'_>) -> Result<T, Fault> {
    let number = args.integer("<number>", 0..=i64::from(i32::MAX))?;
    T::try_from(number).map_err(|_| args.fault("is out of range"))
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut LimitSettings {
    scope.section.settings.entry()
}

/// Settings of `global`; 0: no limit.
#[derive(Clone, Copy, Default, Debug)]
pub struct LimitSettings {
    connection_rate: u64,
    session_rate: u64,
    tls_rate: u64,
    tls_connections: usize,
}

impl Setting for LimitSettings {
    fn inherit(&self) -> LimitSettings {
        *self
    }
}

/// The limits, and how far they are used.
#[derive(Default, Debug)]
pub struct Limits {
    /// `maxconn`: clients' connections at a time; 0: any.
    pub connections: AtomicUsize,
    /// `maxconnrate`
    pub connection_rate: RateLimit,
    /// `maxsessrate`
    pub session_rate: RateLimit,
    /// `maxsslrate`
    pub tls_rate: RateLimit,
    /// `maxsslconn`; 0: any.
    pub tls_connections: usize,
    /// `-m`
    pub memory: MemoryGate,
    /// Clients that count against it, from before their handshakes on.
    tls_clients: AtomicUsize,
}

impl Limits {
    /// The limits of `global`.
    pub fn new(settings: LimitSettings) -> Limits {
        Limits {
            connection_rate: RateLimit::new(settings.connection_rate),
            session_rate: RateLimit::new(settings.session_rate),
            tls_rate: RateLimit::new(settings.tls_rate),
            tls_connections: settings.tls_connections,
            ..Limits::default()
        }
    }

    /// The rates that count for a connection to an address.
    pub(crate) fn rates(&self, is_tls: bool) -> impl Iterator<Item = &RateLimit> {
        let tls = is_tls.then_some(&self.tls_rate);
        [&self.connection_rate, &self.session_rate].into_iter().chain(tls).filter(|rate| rate.limit() > 0)
    }

    /// Takes a client's place among TLS connections; false when there is none.
    pub(crate) fn admit_tls(&self, beyond_limits: bool) -> bool {
        if self.tls_connections == 0 {
            return true;
        }
        let now =
            self.tls_clients.fetch_add(1, Relaxed) + usize::try_from(COUNTERS.servers.load(Relaxed)).unwrap_or(usize::MAX / 2);
        let is_in = beyond_limits || now < self.tls_connections;
        if !is_in {
            self.leave_tls();
        }
        is_in
    }

    /// Gives it back.
    pub(crate) fn leave_tls(&self) {
        if self.tls_connections > 0 {
            self.tls_clients.fetch_sub(1, Relaxed);
        }
    }
}

/// Whether there is memory for another connection, and another request: closed while most of the limit of `-m` is in use.
#[derive(Default, Debug)]
pub struct MemoryGate {
    is_closed: AtomicBool,
    stops: AtomicU64,
    opened: Notify,
}

impl MemoryGate {
    /// Whether new connections and requests wait.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    /// Closes or opens the gate for new connections and requests.
    pub fn close(&self, is_closed: bool) {
        if is_closed && !self.is_closed.swap(true, Relaxed) {
            self.stops.fetch_add(1, Relaxed);
        } else if !is_closed && self.is_closed() {
            self.is_closed.store(false, Relaxed);
            self.opened.notify_waiters();
        }
    }

    /// Waits while it is closed.
    pub async fn opens(&self) {
        loop {
            let opened = self.opened.notified();
            if !self.is_closed() {
                return;
            }
            opened.await;
        }
    }

    /// Number of times that it was closed.
    pub fn stops(&self) -> u64 {
        self.stops.load(Relaxed)
    }
}

/// A limit of a rate.
#[derive(Default, Debug)]
pub struct RateLimit {
    limit: AtomicU64,
    rate: Rate,
}

impl RateLimit {
    fn new(limit: u64) -> RateLimit {
        RateLimit { limit: AtomicU64::new(limit), rate: Rate::default() }
    }

    /// Limit of events in a second; 0: any number.
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Changes it.
    pub fn set(&self, limit: u64) {
        self.limit.store(limit, Relaxed);
    }

    pub(crate) fn is_reached(&self, now_ms: u64) -> bool {
        self.rate.per_second(now_ms) >= self.limit()
    }

    pub(crate) fn count(&self, now_ms: u64) {
        self.rate.add(now_ms, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_limited_counts() {
        let settings = LimitSettings { connection_rate: 2, tls_rate: 1, ..LimitSettings::default() };
        let limits = Limits::new(settings);
        assert_eq!((limits.rates(false).count(), limits.rates(true).count()), (1, 2));
        limits.rates(true).for_each(|rate| rate.count(5_000));
        assert!(!limits.rates(false).any(|rate| rate.is_reached(5_000)));
        assert!(limits.rates(true).any(|rate| rate.is_reached(5_000)));
        limits.tls_rate.set(0);
        assert!(!limits.rates(true).any(|rate| rate.is_reached(5_000)));
        limits.connection_rate.set(1);
        assert!(limits.rates(false).any(|rate| rate.is_reached(5_000)));
    }

    #[test]
    fn each_time_that_memory_is_short_counts_once() {
        let gate = MemoryGate::default();
        let seen = [true, true, false, false, true].map(|is_closed| {
            gate.close(is_closed);
            (gate.is_closed(), gate.stops())
        });
        assert_eq!(seen, [(true, 1), (true, 1), (false, 1), (false, 1), (true, 2)]);
    }

    #[tokio::test]
    async fn what_waits_for_memory_goes_on_once_it_is_there() {
        let gate = MemoryGate::default();
        gate.opens().await;
        gate.close(true);
        let mut waiting = std::pin::pin!(gate.opens());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
        gate.close(false);
        waiting.await;
    }

    #[test]
    fn tls_connections_have_places() {
        let limits = Limits::new(LimitSettings { tls_connections: 1, ..LimitSettings::default() });
        assert!(limits.admit_tls(false) && !limits.admit_tls(false) && limits.admit_tls(true));
        limits.leave_tls();
        assert!(!limits.admit_tls(false));
        limits.leave_tls();
        assert!(limits.admit_tls(false));
        let limits = Limits::default();
        assert!(limits.admit_tls(false) && limits.admit_tls(false));
    }
}
