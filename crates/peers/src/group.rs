//! A `peers` section at work: the other processes, the shared tables, and the updates that each peer has acknowledged.

use crate::herald::Herald;
use crate::lesson::Lesson;
use crate::link::Door;
use crate::recent::Recent;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use terse_balance::Journal;
use terse_balance::table::{KeyKind, Table};
use terse_tls::Acceptor;
use tokio::sync::{Notify, watch};
use xxhash_rust::xxh64::xxh64;

/// A section.
pub struct Group {
    /// Name.
    pub name: Arc<str>,
    /// Name of this process among the peers.
    pub own: Arc<str>,
    /// TLS destination of the process that replaces this one, beside the address; `None` where that is over plain
    /// sockets.
    pub own_door: Option<Door>,
    /// Other processes.
    pub peers: Vec<Peer>,
    /// Shared tables.
    pub tables: Vec<SharedTable>,
    /// `shards`
    pub shards: u32,
    /// TLS acceptor of each `bind` line.
    pub acceptors: Vec<Option<Arc<Acceptor>>>,
    /// Base of the time of tables.
    pub started: Instant,
    /// Notified when a table has changed.
    pub wake: Arc<Notify>,
    /// Journal of peers that come and go.
    pub journal: Option<Journal>,
    /// Signal that there is something to send.
    pub(crate) more: watch::Sender<u64>,
    pub(crate) lesson: Mutex<Lesson>,
    /// Whether a connection is open that presents itself as the predecessor.
    pub(crate) has_predecessor: AtomicBool,
    pub(crate) herald: Mutex<Herald>,
}

/// A shared table.
#[derive(Debug)]
pub struct SharedTable {
    /// Name among the peers.
    pub name: String,
    /// The table.
    pub table: Arc<Table>,
    /// Table that receives what peers send, too.
    pub aside: Option<Arc<Table>>,
    recent: Mutex<Recent>,
    /// Seed of the hash that assigns its keys to shards.
    shard_seed: u64,
}

/// Another process.
pub struct Peer {
    /// Name.
    pub name: Arc<str>,
    /// Address and TLS.
    pub door: Door,
    /// `shard`: the part of tables that it is sent; 0: all.
    pub shard: u32,
    /// Number of the connection that serves it; 0: none.
    pub(crate) turn: watch::Sender<u64>,
    /// Whether this process has sent a hello there, and waits for the answer.
    pub(crate) asks: AtomicBool,
    /// Number of the last acknowledged update of each table.
    heard: Mutex<Vec<u64>>,
}

impl Group {
    /// Creates a section with these peers and tables.
    pub fn new(name: Arc<str>, own: Arc<str>, peers: Vec<Peer>, tables: Vec<SharedTable>, started: Instant) -> Group {
        peers.iter().for_each(|peer| peer.heard().resize(tables.len(), 0));
        Group {
            name,
            own,
            own_door: None,
            peers,
            tables,
            shards: 0,
            acceptors: Vec::new(),
            started,
            wake: Arc::default(),
            journal: None,
            more: watch::Sender::default(),
            lesson: Mutex::default(),
            has_predecessor: AtomicBool::new(false),
            herald: Mutex::default(),
        }
    }

    /// Time of tables, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes the changes of the tables. Without peers, nothing is kept.
    pub(crate) fn collect(&self) {
        let now_ms = self.now_ms();
        let mut any = false;
        for shared in &self.tables {
            let changed = shared.table.changed(now_ms);
            if changed.is_empty() || self.peers.is_empty() {
                continue;
            }
            any = true;
            let mut recent = shared.recent();
            // More go than come: peers that never acknowledge keep no entry that has expired.
            let most = changed.len() + LOOKED_AT_ONCE;
            recent.forget_gone(most, |entry| shared.table.has_entry(entry, now_ms));
            changed.into_iter().for_each(|entry| recent.note(entry, shared.table.size()));
        }
        if any {
            self.wake_sessions();
        }
    }

    /// Records that a peer has acknowledged a table's updates up to this number.
    pub(crate) fn acknowledge(&self, peer: usize, table: usize, low: u32) {
        let (Some(peer), Some(shared)) = (self.peers.get(peer), self.tables.get(table)) else { return };
        let mut recent = shared.recent();
        let number = recent.whole(low);
        if let Some(heard) = peer.heard().get_mut(table) {
            *heard = number.max(*heard);
        }
        let all = self.peers.iter().filter_map(|peer| peer.heard().get(table).copied()).min();
        recent.forget(all.unwrap_or(u64::MAX));
    }

    /// Ends a stage that takes too long, and writes held lines of log.
    pub(crate) fn tick(&self, now: Instant) {
        self.say_held(now);
        self.end_late(now);
    }

    pub(crate) fn wake_sessions(&self) {
        self.more.send_modify(|n| *n = n.wrapping_add(1));
    }
}

impl SharedTable {
    /// Creates a shared table, under its name among the peers, with the table that receives what they send as well.
    pub fn new(name: String, table: Arc<Table>, aside: Option<Arc<Table>>) -> SharedTable {
        let shard_seed = xxh64(table.name().as_bytes(), 0);
        SharedTable { name, table, aside, recent: Mutex::default(), shard_seed }
    }

    /// Shard of a key, from 1: the same as HAProxy's.
    fn shard_of(&self, key: &[u8], shards: u32) -> u32 {
        let hash = match (self.table.settings().key, <[u8; 4]>::try_from(key)) {
            // In the machine's byte order.
            (KeyKind::Integer, Ok(bytes)) => xxh64(&u32::from_be_bytes(bytes).to_ne_bytes(), self.shard_seed),
            _ => xxh64(key, self.shard_seed),
        };
        u32::try_from(hash % u64::from(shards.max(1))).unwrap_or_default() + 1
    }

    /// Number of changes that wait for an acknowledgement, and the number of the last.
    pub fn waiting(&self) -> (usize, u64) {
        let recent = self.recent();
        (recent.len(), recent.head())
    }

    pub(crate) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    /// Creates a peer without any acknowledgement.
    pub fn new(name: Arc<str>, door: Door, shard: u32) -> Peer {
        Peer { name, door, shard, turn: watch::Sender::default(), asks: AtomicBool::new(false), heard: Mutex::default() }
    }

    /// Whether there is a connection to it.
    pub fn is_connected(&self) -> bool {
        *self.turn.borrow() != 0
    }

    /// Number of the last acknowledged update of a table.
    pub fn heard_of(&self, table: usize) -> u64 {
        self.heard().get(table).copied().unwrap_or_default()
    }

    /// Whether an entry of that key is in the peer's shard of a table.
    pub(crate) fn has_share(&self, shared: &SharedTable, key: &[u8], shards: u32) -> bool {
        self.shard == 0 || shards == 0 || shared.shard_of(key, shards) == self.shard
    }

    /// Registers a new connection under its number: the one before ends.
    pub(crate) fn take_over(&self, number: u64) {
        self.asks.store(false, Relaxed);
        self.turn.send_replace(number);
    }

    /// Whether that connection serves the peer.
    pub(crate) fn is_served_by(&self, number: u64) -> bool {
        *self.turn.borrow() == number
    }

    /// Unregisters a connection that has ended.
    pub(crate) fn release(&self, number: u64) {
        self.turn.send_if_modified(|turn| {
            let own = *turn == number;
            if own {
                *turn = 0;
            }
            own
        });
    }

    fn heard(&self) -> MutexGuard<'_, Vec<u64>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("name", &self.name).field("own", &self.own).finish_non_exhaustive()
    }
}

/// Number of changes, beside those that come, that are examined for forgetting.
const LOOKED_AT_ONCE: usize = 1000;
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use terse_balance::table::TableLine;
    use terse_config::{Environment, Loader, Settings, Source};

    /// A table of such a line.
    pub(crate) fn table(name: &str, line: &str) -> Arc<Table> {
        Arc::new(unshared(name, line))
    }

    fn unshared(name: &str, line: &str) -> Table {
        let loader = Loader { tables: vec![terse_balance::KEYWORDS], environment: Environment::default() };
        let source = Source { name: "test".into(), bytes: format!("backend {name}\n stick-table {line}\n").into() };
        let (mut config, diagnostics) = loader.load(&[source], Settings::default());
        assert_eq!(diagnostics.iter().count(), 0, "{line}");
        let line: TableLine = config.sections[0].settings.take().unwrap();
        Table::new(name.into(), line.0.unwrap(), &[])
    }

    /// A section of the process `own`, with one table `t` and these others.
    pub(crate) fn group(own: &str, others: &[&str], line: &str) -> Arc<Group> {
        let wake = Arc::new(Notify::new());
        let table = Arc::new(unshared("t", line).shared(wake.clone()));
        let peer = |name: &&str| Peer::new((*name).into(), Door::default(), 0);
        let tables = vec![SharedTable::new("t".into(), table, None)];
        let mut group = Group::new("p".into(), own.into(), others.iter().map(peer).collect(), tables, Instant::now());
        group.wake = wake;
        Arc::new(group)
    }

    #[test]
    fn what_all_have_heard_is_forgotten() {
        let group = group("a", &["b", "c"], "type string size 9 store gpc0");
        let shared = &group.tables[0];
        for key in [b"1", b"2"] {
            let entry = shared.table.obtain(key, 0).unwrap();
            shared.table.touch(&entry, 0);
        }
        group.collect();
        group.collect();
        assert_eq!(shared.waiting(), (2, 2));
        group.acknowledge(0, 0, 2);
        assert_eq!((shared.waiting(), group.peers[0].heard_of(0)), ((2, 2), 2));
        group.acknowledge(1, 0, 1);
        assert_eq!(shared.waiting(), (1, 2));
        group.acknowledge(1, 0, 0);
        assert_eq!(group.peers[1].heard_of(0), 1, "nobody unhears");
    }

    /// XXH64 by HAProxy's seed, the hash of the table's name.
    #[test]
    fn shards_are_dealt_out() {
        let peer = |shard| Peer::new("b".into(), Door::default(), shard);
        let peers = [peer(1), peer(2), peer(3)];
        let shared = |name: &str, line: &str| SharedTable::new("t".into(), table(name, line), None);
        let texts = shared("texts", "type string size 9");
        for n in 0..100u32 {
            let shares = peers.iter().filter(|peer| peer.has_share(&texts, &n.to_be_bytes(), 3)).count();
            assert_eq!(shares, 1);
            assert!(peer(0).has_share(&texts, &n.to_be_bytes(), 3) && peers[1].has_share(&texts, &n.to_be_bytes(), 0));
        }
        let expected = |name: &str, key: &[u8]| (xxh64(key, xxh64(name.as_bytes(), 0)) % 1000) as u32 + 1;
        assert_eq!(texts.shard_of(b"key", 1000), expected("texts", b"key"));
        assert_ne!(texts.shard_of(b"key", 1000), expected("other", b"key"));
        let numbers = shared("numbers", "type integer size 9");
        assert_eq!(numbers.shard_of(&7u32.to_be_bytes(), 1000), expected("numbers", &7u32.to_ne_bytes()));
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
        let group = group("a", &[], "type string size 9");
        let shared = &group.tables[0];
        let entry = shared.table.obtain(b"k", 0).unwrap();
        for _ in 0..2 {
            shared.table.touch(&entry, 0);
            group.collect();
            assert_eq!(shared.waiting(), (0, 0));
        }
    }

    #[test]
    fn what_is_over_is_forgotten_without_an_acknowledgement() {
        let group = group("a", &["b"], "type string size 9");
        let shared = &group.tables[0];
        let count = |key: &[u8]| {
            let entry = shared.table.obtain(key, group.now_ms()).unwrap();
            shared.table.touch(&entry, group.now_ms());
            group.collect();
            entry
        };
        let gone = [count(b"1"), count(b"2")];
        let kept = count(b"3");
        assert_eq!(shared.waiting(), (3, 3));
        gone.iter().for_each(|entry| assert!(shared.table.remove(entry)));
        count(b"4");
        assert_eq!((shared.waiting(), Arc::strong_count(&gone[0])), ((2, 4), 1));
        (0..20u8).for_each(|n| drop(count(&[n])));
        assert!(shared.waiting().0 <= shared.table.size() && Arc::strong_count(&kept) == 1);
    }
}
