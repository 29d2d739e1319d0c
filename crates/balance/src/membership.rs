//! Servers that come and go at run time.
//!
//! The list of a farm's servers is part of its roster, which is never edited: an addition or a removal stores another
//! roster. Readers, workers and commands, load a roster and see all of its servers or none.
//!
//! ```text
//! enlist:   made, in maintenance -> in the roster -> its checks are watched -> an operator lets it work
//! dismiss:  in maintenance, idle -> marked as gone -> out of the roster -> its checks end -> freed with its last
//! reference
//! ```
//!
//! Invariants:
//! * A server's number in its farm ([`Server::index`]) is given once. A remembered number finds that server or none.
//!   Such numbers are in a request whose cookie was read, a session that prefers its last server, a list of servers
//!   that failed.
//! * A server's slot ([`Server::slot`]), by which workers keep its idle connections, is free again with the last
//!   reference to the server. A connection holds its server: so no list ever mixes the connections of two servers.
//! * A holder of a server that has gone may finish with it, as a request that chose it a moment before. The server
//!   keeps no connection, no queue and no change of its state.
//! * A request pays for none of this: it loads the roster that it chooses from, as it would without.

use crate::algorithm::Roster;
use crate::algorithm::settings::{Balance, HashMethod};
use crate::check::Watchers;
use crate::counters::Count;
use crate::farm::Farm;
use crate::news::{Listen, Listener, News};
use crate::server::{Server, Standing};
use crate::settings::{ServerSettings, SourceSettings};
use arc_swap::Guard;
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, PoisonError};

/// Receivers of news of servers that come to a farm, or that get another DNS name. All farms of a process share one: so
/// a later farm knows them, too.
#[derive(Default, Debug)]
pub struct Wardens {
    /// Task of checks, once it runs.
    pub(crate) checks: OnceLock<Watchers>,
    /// Task that resolves servers' names, once it runs.
    pub(crate) names: OnceLock<Watchers>,
    /// The listener of servers' news.
    pub(crate) news: Listener,
}

impl Wardens {
    /// Sets the receiver of servers whose DNS names have changed.
    pub fn tell_of_names(&self, watchers: Watchers) {
        // There is a single task that resolves names.
        let _ = self.names.set(watchers);
    }

    /// Sets the receiver of servers' news.
    pub fn tell_news(&self, listen: Listen) {
        self.news.set(listen);
    }
}

/// The servers of a farm at a moment, in order.
pub struct Servers(pub(crate) Guard<Arc<Roster>>);

impl Deref for Servers {
    type Target = [Arc<Server>];

    fn deref(&self) -> &[Arc<Server>] {
        &self.0.servers
    }
}

impl Servers {
    /// The server of that index, as long as it is there.
    pub(crate) fn of_index(self, index: usize) -> Option<Picked> {
        let at = self.0.place_of(index)?;
        Some(Picked { servers: self, at })
    }

    /// The first server for which `is_it` is true.
    pub fn pick(self, is_it: impl FnMut(&Arc<Server>) -> bool) -> Option<Picked> {
        let at = self.iter().position(is_it)?;
        Some(Picked { servers: self, at })
    }
}

/// A server of a farm at a moment.
#[derive(Debug)]
pub struct Picked {
    servers: Servers,
    at: usize,
}

impl Deref for Picked {
    type Target = Arc<Server>;

    fn deref(&self) -> &Arc<Server> {
        &self.servers[self.at]
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Reason for not adding a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAdded {
    /// Another server has that name.
    NameTaken,
    /// The named server has that number.
    NumberTaken(Arc<str>),
}

/// Reason for not removing a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRemoved {
    /// The configuration refers to it, or another server tracks it.
    Referenced,
    /// It is not in maintenance.
    AtWork,
    /// Requests hold its slots, or wait for it: they will end.
    Busy,
}

/// Reason for not renaming a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRenamed {
    /// The configuration refers to it, or another server tracks it.
    Referenced,
    /// It is not in maintenance.
    AtWork,
    /// Another server has that name.
    NameTaken,
    /// It has had too many names.
    TooOften,
}

impl Farm {
    /// Whether servers can come and go: not where the order of servers is worked out once and for all.
    pub fn is_dynamic(&self) -> bool {
        let hashes = matches!(self.settings.balance, Balance::Source | Balance::Uri(_) | Balance::Key | Balance::LogHash);
        let is_fixed = self.settings.balance == Balance::StaticRoundRobin;
        !is_fixed && (!hashes || self.settings.hash.method == HashMethod::Consistent)
    }

    /// Adds a server, in maintenance and with its checks not yet begun.
    ///
    /// # Errors
    /// Its name or its number is that of another server.
    pub fn enlist(
        self: &Arc<Farm>,
        mut settings: ServerSettings,
        ready: impl FnOnce(&Arc<Server>),
    ) -> Result<Arc<Server>, NotAdded> {
        self.complete(&mut settings);
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = self.servers();
        if servers.iter().any(|other| **other.name() == *settings.name) {
            return Err(NotAdded::NameTaken);
        }
        if let Some(other) = servers.iter().find(|other| Some(other.id()) == settings.id) {
            return Err(NotAdded::NumberTaken(other.name().clone()));
        }
        let taken: HashSet<u32> = servers.iter().map(|server| server.id()).collect();
        let id = settings.id.or_else(|| (1..).find(|id| !taken.contains(id))).unwrap_or_default();
        let number = self.given.fetch_add(1, Relaxed);
        let server = Arc::new(Server::new(number, id, settings, self.backlog.clone(), Standing::Added));
        self.join(slice::from_ref(&server));
        ready(&server);
        let all: Arc<[Arc<Server>]> = servers.iter().chain([&server]).cloned().collect();
        self.rebuild_with(all);
        if let Some(watchers) = self.context.wardens.checks.get() {
            // There is no receiver where the process is about to end.
            let _ = watchers.send((self.clone(), server.clone()));
        }
        self.tell(&server, || News::Added);
        Ok(server)
    }

    /// Whether a server can be removed now.
    ///
    /// # Errors
    /// It cannot; where it is only [`NotRemoved::Busy`], waiting helps.
    pub fn removable(&self, server: &Server) -> Result<(), NotRemoved> {
        if server.is_referenced() {
            Err(NotRemoved::Referenced)
        } else if !server.admin().is_maint() {
            Err(NotRemoved::AtWork)
        } else if server.served() != 0 || server.queued() != 0 {
            Err(NotRemoved::Busy)
        } else {
            Ok(())
        }
    }

    /// Removes a server.
    ///
    /// # Errors
    /// It cannot be removed, or not yet.
    pub fn dismiss(&self, server: &Arc<Server>) -> Result<(), NotRemoved> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.removable(server)?;
        server.set_gone();
        self.backlog.close_line(server);
        for count in [Count::Balanced, Count::Connects, Count::Reuses] {
            self.counters.add(count, server.counters.total(count));
        }
        server.connector().into_iter().for_each(|connector| self.handshakes.add(connector.counts()));
        let all: Arc<[Arc<Server>]> = self.servers().iter().filter(|other| !Arc::ptr_eq(other, server)).cloned().collect();
        self.rebuild_with(all);
        self.tell(server, || News::Removed);
        Ok(())
    }

    /// Gives a server another name. A reader of the old name may still use it, as a request that is logged at that
    /// moment.
    ///
    /// # Errors
    /// It keeps its name.
    pub fn rename(&self, server: &Server, name: &str) -> Result<(), NotRenamed> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if !server.admin().is_maint() {
            Err(NotRenamed::AtWork)
        } else if server.is_referenced() {
            Err(NotRenamed::Referenced)
        } else if self.servers().iter().any(|other| other.index() != server.index() && **other.name() == *name) {
            Err(NotRenamed::NameTaken)
        } else if server.set_name(name) {
            Ok(())
        } else {
            Err(NotRenamed::TooOften)
        }
    }

    /// Completes a server's settings with those of its backend.
    pub(crate) fn complete(&self, settings: &mut ServerSettings) {
        if settings.source == SourceSettings::default() {
            settings.source = self.settings.source.clone();
        }
    }

    /// Links new servers with the farm where their limits or weights depend on the load of the others.
    pub(crate) fn join(self: &Arc<Farm>, newcomers: &[Arc<Server>]) {
        for server in newcomers {
            if server.settings().minconn != 0 || !server.settings().slowstart.is_zero() {
                server.set_farm(Arc::downgrade(self));
            }
        }
    }
}

/// Numbers in statistics of a configuration's servers: those that lines set, and for the others the first free number
/// after the ones given before. Each line moves the search on by one, as in HAProxy.
pub(crate) fn numbers(servers: &[ServerSettings]) -> Vec<u32> {
    let mut taken: HashSet<u32> = servers.iter().filter_map(|server| server.id).collect();
    let mut next = 1u32;
    let number = |server: &ServerSettings| {
        let id = server.id.unwrap_or_else(|| {
            next = (next..).find(|id| !taken.contains(id)).unwrap_or(next);
            taken.insert(next);
            next
        });
        next = next.saturating_add(1);
        id
    };
    servers.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::fixture::{Nowhere, farm, logged};
    use crate::keywords::base::Base;
    use crate::keywords::server::read_added;
    use crate::queue::{Grant, Want};
    use crate::server::MOST_NAMES;
    use crate::state::{AdminOrder, Operation};
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};
    use terse_config::{Environment, Place};
    use terse_tls::settings::Defaults;

    fn add(farm: &Arc<Farm>, line: &str) -> Arc<Server> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let bases = |_: Option<Base<'_>>| Ok(ServerSettings::default());
        let read = read_added(&words, &Place::nowhere(), &Defaults::default(), &Environment::default(), &bases);
        farm.enlist(read.unwrap().0, |_| {}).unwrap()
    }

    fn tell(farm: &Farm, server: &Arc<Server>, order: AdminOrder) {
        farm.set_admin(server, order, Instant::now());
    }

    const ANY: Want<'_> = Want::Any { key: crate::Key { source: None, request: None, bytes: None }, avoided: &[] };

    #[test]
    fn a_newcomer_waits_for_its_word() {
        let farm = farm("server a 10.0.0.1:80");
        let new = add(&farm, "b 10.0.0.2:80");
        assert_eq!((new.index(), new.id(), new.admin().is_maint()), (1, 2, true));
        let chosen = || (0..4).filter_map(|_| farm.choose(&crate::Key::default(), &[])).collect::<Vec<_>>();
        assert_eq!(chosen(), [0; 4]);
        tell(&farm, &new, AdminOrder::Enable);
        assert!(chosen().contains(&1));
        assert_eq!(farm.removable(&new), Err(NotRemoved::AtWork));
    }

    #[test]
    fn who_remembers_a_number_finds_that_server_or_none() {
        let farm = farm("server a 10.0.0.1:80\nserver b 10.0.0.2:80\nserver c 10.0.0.3:80");
        let b = farm.find_server("b").unwrap().clone();
        tell(&farm, &b, AdminOrder::Maint);
        farm.dismiss(&b).unwrap();
        let new = add(&farm, "b 10.0.0.9:80");
        assert!(farm.server(1).is_none() && matches!(farm.claim(Want::Server(1)), Grant::NoServer));
        let name = |index: usize| farm.server(index).map(|server| server.name().to_string());
        assert_eq!((name(0), name(2), name(3)), (Some("a".into()), Some("c".into()), Some("b".into())));
        assert_eq!((new.id(), new.index()), (2, 3), "its number in statistics may be one that was given before");
    }

    #[test]
    fn a_slot_is_free_when_nobody_holds_its_server() {
        let farm = farm("server a 10.0.0.1:80");
        let first = add(&farm, "b 10.0.0.2:80");
        farm.dismiss(&first).unwrap();
        let second = add(&farm, "b 10.0.0.2:80");
        assert_ne!(first.slot(), second.slot());
    }

    #[test]
    fn requests_keep_a_server_and_end_its_line() {
        let farm = farm("server a 10.0.0.1:80 maxconn 1");
        let a = farm.servers()[0].clone();
        let Grant::Now(claim) = farm.claim(ANY) else { panic!() };
        let Grant::Wait(waiter) = farm.claim(Want::Server(0)) else { panic!() };
        assert_eq!(farm.removable(&a), Err(NotRemoved::AtWork));
        tell(&farm, &a, AdminOrder::Maint);
        assert_eq!(farm.dismiss(&a), Err(NotRemoved::Busy));
        drop((claim, waiter));
        assert_eq!(farm.dismiss(&a), Ok(()));
        // A former reader of the list may finish; no request enters a queue.
        assert!(matches!(farm.backlog.wait_for(&a, crate::Precedence::default()), Grant::NoServer));
        tell(&farm, &a, AdminOrder::Ready);
        assert_eq!((a.operation(), farm.is_up()), (Operation::Stopped, false));
    }

    #[test]
    fn what_is_spoken_of_stays() {
        let farm = farm("server a 10.0.0.1:80 check\nserver b 10.0.0.2:80");
        let [a, b] = &farm.servers()[..] else { panic!() };
        let new = add(&farm, "c 10.0.0.3:80");
        farm.follow(&new, a, &farm, Instant::now());
        tell(&farm, a, AdminOrder::Maint);
        assert_eq!(farm.dismiss(a), Err(NotRemoved::Referenced));
        farm.dismiss(&new).unwrap();
        assert_eq!(farm.dismiss(a), Ok(()), "its follower has gone");
        b.refer();
        tell(&farm, b, AdminOrder::Maint);
        assert_eq!(farm.dismiss(b), Err(NotRemoved::Referenced));
    }

    #[test]
    fn what_a_server_counted_outlives_it() {
        let farm = farm("server a 10.0.0.1:80\nserver b 10.0.0.2:80 disabled");
        let b = farm.find_server("b").unwrap().clone();
        b.counters.add(Count::Balanced, 3);
        b.counters.bump(Count::Reuses);
        farm.dismiss(&b).unwrap();
        let counted = [Count::Balanced, Count::Connects, Count::Reuses].map(|count| farm.counters.total(count));
        assert_eq!(counted, [3, 0, 1]);
    }

    #[test]
    fn names_change_in_maintenance() {
        let farm = farm("server a 10.0.0.1:80\nserver b 10.0.0.2:80 check\nserver c 10.0.0.3:80 track b");
        let [a, b, c] = &farm.servers()[..] else { panic!() };
        farm.follow(c, b, &farm, Instant::now());
        assert_eq!(farm.rename(a, "x"), Err(NotRenamed::AtWork));
        tell(&farm, a, AdminOrder::Maint);
        tell(&farm, b, AdminOrder::Maint);
        assert_eq!((farm.rename(a, "b"), farm.rename(b, "x")), (Err(NotRenamed::NameTaken), Err(NotRenamed::Referenced)));
        let old = a.name();
        assert_eq!(farm.rename(a, "x"), Ok(()));
        assert_eq!((&**old, &**a.name(), farm.find_server("a").is_none()), ("a", "x", true));
        // Former names may come again any number of times.
        for round in 0..3 * MOST_NAMES {
            assert_eq!(farm.rename(a, ["x", "y", "a"][round % 3]), Ok(()));
        }
        let given = (0..).take_while(|round| farm.rename(a, &format!("n{round}")).is_ok()).count();
        assert_eq!((given, farm.rename(a, "z")), (MOST_NAMES - 2, Err(NotRenamed::TooOften)));
        assert_eq!((farm.rename(a, "a"), &**a.name()), (Ok(()), "a"));
    }

    #[test]
    fn orders_that_are_worked_out_for_good_take_nobody() {
        for (lines, takes) in [
            ("balance roundrobin", true),
            ("balance leastconn", true),
            ("balance static-rr", false),
            ("balance source", false),
            ("balance source\nhash-type consistent", true),
        ] {
            assert_eq!(farm(lines).is_dynamic(), takes, "{lines}");
        }
    }

    #[test]
    fn servers_come_and_go_under_way() {
        let farm = farm("server a 10.0.0.1:80 maxconn 2");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        // A claim's server is one of the farm, or was a moment ago.
                        if let Grant::Now(claim) = farm.claim(ANY) {
                            assert!(claim.server().index() < farm.given.load(Relaxed));
                        }
                    }
                });
            }
            for round in 0..200 {
                let new = add(&farm, &format!("n{round} 10.0.1.1:80 maxconn 3"));
                tell(&farm, &new, AdminOrder::Enable);
                tell(&farm, &new, AdminOrder::Maint);
                while farm.dismiss(&new).is_err() {
                    std::thread::yield_now();
                }
            }
            done.store(true, Relaxed);
        });
        assert_eq!((farm.servers().len(), farm.servers()[0].served(), farm.waiting()), (1, 0, 0));
    }

    #[tokio::test]
    async fn checks_begin_when_they_are_let_and_end_with_their_server() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (farm, log) = logged("option log-health-checks");
        let checks = tokio::spawn(check::run(farm.context.wardens.clone(), vec![farm.clone()], Arc::new(Nowhere)));
        while farm.context.wardens.checks.get().is_none() {
            tokio::task::yield_now().await;
        }
        let new = add(&farm, &format!("s {address} check inter 10ms rise 1"));
        tell(&farm, &new, AdminOrder::Enable);
        assert!(!new.is_checked());
        new.set_checked(true);
        let passed = log.written("Health check for server be/s succeeded");
        tokio::time::timeout(Duration::from_secs(20), passed).await.unwrap();
        tell(&farm, &new, AdminOrder::Maint);
        farm.dismiss(&new).unwrap();
        let gone = Arc::downgrade(&new);
        drop(new);
        let let_go = async {
            while gone.strong_count() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), let_go).await.unwrap();
        checks.abort();
    }
}
