//! A part of a table's entries under one lock: found by key, and queued by age.
//!
//! A touch changes an entry's time and nothing else. So an entry may be queued under an earlier time than its own: the
//! next visitor puts it where it belongs, and goes on. It is queued under a later time than its own when a search for
//! room passed it over because it was tracked. Its memory may be freed later, but a look-up of its key goes by its own
//! time. The time under which the first entry is queued can be read without the lock.

use super::entry::Entry;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_ceb::{Id, U64Tree};

/// A part of a table, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard {
    entries: Mutex<Entries>,
    /// Lower bound of the times in the queue.
    oldest_ms: AtomicU64,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { entries: Mutex::default(), oldest_ms: AtomicU64::new(u64::MAX) }
    }
}

/// Entries, while the lock is held: by key, with their places in the queue; and the queue. A hash table serves better
/// where only whole keys are looked up, and a tree where the first of all is.
#[derive(Default, Debug)]
pub(super) struct Entries {
    by_key: HashMap<ByKey, Id>,
    by_age: U64Tree<Arc<Entry>>,
}

/// The lock, which records the oldest time when it is released.
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

    /// Looks an entry up in place: nothing but its trackers changes.
    pub(super) fn look<T>(&self, key: &[u8], see: impl FnOnce(&Arc<Entry>) -> T) -> Option<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.by_key.get_key_value(key).map(|(found, _)| see(&found.0))
    }

    /// Time before which no entry was touched; `u64::MAX` when there is no entry.
    pub(super) fn oldest_ms(&self) -> u64 {
        self.oldest_ms.load(Relaxed)
    }
}

impl Locked<'_> {
    pub(super) fn get(&self, key: &[u8]) -> Option<&Arc<Entry>> {
        self.entries.by_key.get_key_value(key).map(|(found, _)| &found.0)
    }

    /// Adds an entry under the time of its creation; false when the queue has no number left for it.
    pub(super) fn insert(&mut self, entry: Arc<Entry>) -> bool {
        let Ok(place) = self.entries.by_age.insert(entry.touched_ms(), entry.clone()) else { return false };
        self.entries.by_key.insert(ByKey(entry), place);
        true
    }

    /// Removes an entry, if it is there: not another of the same key, which has come since.
    pub(super) fn remove(&mut self, entry: &Entry) -> bool {
        if !self.get(entry.key()).is_some_and(|found| std::ptr::eq(Arc::as_ptr(found), entry)) {
            return false;
        }
        let place = self.entries.by_key.remove(entry.key());
        place.and_then(|place| self.entries.by_age.remove(place)).is_some()
    }

    /// First entry of the queue, and its time there.
    pub(super) fn first(&self) -> Option<(u64, Arc<Entry>)> {
        let place = self.entries.by_age.first()?;
        Some((self.entries.by_age.key(place)?, self.entries.by_age.value(place)?.clone()))
    }

    /// Queues an entry under another time.
    pub(super) fn requeue(&mut self, entry: &Arc<Entry>, at_ms: u64) {
        let Entries { by_key, by_age } = &mut *self.entries;
        if let Some(place) = by_key.get_mut(entry.key()) {
            by_age.remove(*place);
            // There is room: an entry has just gone.
            if let Ok(new) = by_age.insert(at_ms, entry.clone()) {
                *place = new;
            }
        }
    }

    /// All entries, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.by_key.keys().map(|found| found.0.clone()).collect()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let by_age = &self.entries.by_age;
        let first = by_age.first().and_then(|place| by_age.key(place)).unwrap_or(u64::MAX);
        self.oldest_ms.store(first, Relaxed);
    }
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
