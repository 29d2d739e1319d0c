//! A part of a table's entries under one lock: found by key, and queued by age.
//!
//! A touch changes an entry's time and nothing else. So an entry may stand in the queue under an earlier time than its own: who
//! comes to it puts it where it belongs, and goes on. The time under which the first one stands can be read without the lock.

use super::entry::Entry;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One of a table's parts, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard {
    entries: Mutex<Entries>,
    /// No entry stands earlier in the queue.
    oldest_ms: AtomicU64,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { entries: Mutex::default(), oldest_ms: AtomicU64::new(u64::MAX) }
    }
}

/// The entries, while the lock is held.
#[derive(Default, Debug)]
pub(super) struct Entries {
    by_key: HashSet<ByKey>,
    by_age: BTreeMap<(u64, u64), Arc<Entry>>,
}

/// The lock, which notes who is the oldest when it goes.
pub(super) struct Locked<'a> {
    entries: MutexGuard<'a, Entries>,
    oldest_ms: &'a AtomicU64,
}

#[derive(Debug)]
struct ByKey(Arc<Entry>);

impl Shard {
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { entries: self.entries.lock().unwrap_or_else(PoisonError::into_inner), oldest_ms: &self.oldest_ms }
    }

    /// An entry, found in place: nothing but its trackers changes.
    pub(super) fn look<T>(&self, key: &[u8], see: impl FnOnce(&Arc<Entry>) -> T) -> Option<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.by_key.get(key).map(|found| see(&found.0))
    }

    /// The time before which no entry was touched; `u64::MAX` when there is none.
    pub(super) fn oldest_ms(&self) -> u64 {
        self.oldest_ms.load(Relaxed)
    }
}

impl Locked<'_> {
    pub(super) fn get(&self, key: &[u8]) -> Option<&Arc<Entry>> {
        self.entries.by_key.get(key).map(|found| &found.0)
    }

    pub(super) fn insert(&mut self, entry: Arc<Entry>) {
        self.entries.by_age.insert(queue_key(&entry), entry.clone());
        self.entries.by_key.insert(ByKey(entry));
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, entry: &Entry) -> bool {
        self.entries.by_age.remove(&queue_key(entry));
        self.entries.by_key.remove(entry.key())
    }

    /// The entry that stands first in the queue.
    pub(super) fn first(&self) -> Option<Arc<Entry>> {
        self.entries.by_age.first_key_value().map(|(_, entry)| entry.clone())
    }

    /// Queues an entry under another time.
    pub(super) fn requeue(&mut self, entry: &Arc<Entry>, at_ms: u64) {
        if self.entries.by_age.remove(&queue_key(entry)).is_some() {
            entry.queued_ms.store(at_ms, Relaxed);
            self.entries.by_age.insert(queue_key(entry), entry.clone());
        }
    }

    /// All entries, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.by_key.iter().map(|found| found.0.clone()).collect()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let first = self.entries.by_age.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
        self.oldest_ms.store(first, Relaxed);
    }
}

fn queue_key(entry: &Entry) -> (u64, u64) {
    (entry.queued_ms.load(Relaxed), entry.serial)
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &ByKey) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ByKey {}

impl Borrow<[u8]> for ByKey {
    fn borrow(&self) -> &[u8] {
        self.0.key()
    }
}
