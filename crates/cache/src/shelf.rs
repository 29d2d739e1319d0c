//! A shard of a cache: its entries, in the order of their last use.

use super::{Entry, Key, Selecting};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A shelf. Its owner locks it; nothing here copies bytes.
#[derive(Default)]
pub(super) struct Shelf {
    /// The responses of each resource, the newest last.
    resources: HashMap<Key, Vec<Kept>>,
    /// The resources by when a response of theirs was last used.
    order: BTreeMap<u64, Key>,
    next: u64,
    /// The resources that are being recorded: the recorder's ticket, and the start.
    recorded: HashMap<Key, (Ticket, i64)>,
    changes: Changes,
}

/// Counts of the changes of resources: a counter for all keys that share a place, so that it takes no memory for each.
struct Changes([u64; PLACES]);

/// A power of two. Of resources that share a place, a change of one resource keeps responses of the others from being stored
/// that wait for their head just then.
const PLACES: usize = 256;

struct Kept {
    /// Its place in the order.
    used: u64,
    entry: Arc<Entry>,
}

/// Number of a recorder of a resource.
pub(super) type Ticket = u64;

/// A stored response, as listed for people.
pub struct Listed {
    /// Key of its resource.
    pub key: Key,
    /// The response.
    pub entry: Arc<Entry>,
}

/// Time for which one recorder excludes others, in milliseconds; a slower recorder is overtaken.
const PATIENCE_MS: i64 = 2000;

impl Shelf {
    /// The newest response that is fresh and selected.
    pub(super) fn look(&mut self, key: &Key, selecting: &Selecting, now_ms: i64) -> Option<Arc<Entry>> {
        let kept = self.resources.get_mut(key)?;
        let found = kept.iter_mut().rev().find(|kept| kept.entry.is_fresh(now_ms) && kept.entry.selector.admits(selecting))?;
        self.order.remove(&found.used);
        found.used = self.next;
        self.order.insert(self.next, *key);
        self.next += 1;
        Some(found.entry.clone())
    }

    /// The hints of the newest response, fresh or not.
    pub(super) fn hints(&self, key: &Key) -> Option<super::Hints> {
        self.resources.get(key)?.last()?.entry.hints.clone()
    }

    /// Number of fresh responses of a resource.
    pub(super) fn count(&self, key: &Key, now_ms: i64) -> usize {
        self.resources.get(key).map_or(0, |kept| kept.iter().filter(|kept| kept.entry.is_fresh(now_ms)).count())
    }

    /// Number of changes of a resource, at most.
    pub(super) fn changes(&self, key: &Key) -> u64 {
        self.changes.0[Changes::place(key)]
    }

    /// Begins to record a response; `None` when another request records it, or when the resource was changed since its
    /// `changes` were these: the response may be of before.
    pub(super) fn begin(&mut self, key: &Key, changes: u64, now_ms: i64) -> Option<Ticket> {
        if changes != self.changes(key) || self.recorded.get(key).is_some_and(|(_, since)| now_ms - since < PATIENCE_MS) {
            return None;
        }
        let ticket = self.next;
        self.next += 1;
        self.recorded.insert(*key, (ticket, now_ms));
        Some(ticket)
    }

    /// Ends a recording; false when it was overtaken.
    pub(super) fn end(&mut self, key: &Key, ticket: Ticket) -> bool {
        let is_own = self.recorded.get(key).is_some_and(|(own, _)| *own == ticket);
        if is_own {
            self.recorded.remove(key);
        }
        is_own
    }

    /// Puts a response in, in the place of those that are selected as it is, or no longer fresh; gives those, for their owner to drop when
    /// the shelf is no longer locked.
    pub(super) fn put(&mut self, key: &Key, entry: Arc<Entry>, now_ms: i64) -> Vec<Arc<Entry>> {
        let mut gone = Vec::new();
        let kept = self.resources.entry(*key).or_default();
        let goes = |kept: &mut Kept| kept.entry.selector == entry.selector || !kept.entry.is_fresh(now_ms);
        for old in kept.extract_if(.., goes) {
            self.order.remove(&old.used);
            gone.push(old.entry);
        }
        kept.push(Kept { used: self.next, entry });
        self.order.insert(self.next, *key);
        self.next += 1;
        gone
    }

    /// Takes out the least recently used entry that is not being sent just now.
    pub(super) fn pop_oldest(&mut self) -> Option<Arc<Entry>> {
        let is_idle = |kept: &Kept| Arc::strong_count(&kept.entry) == 1;
        let place = |used: &u64, key: &Key| {
            let kept = self.resources.get(key)?;
            kept.iter().position(|kept| kept.used == *used && is_idle(kept))
        };
        let (used, key, at) = self.order.iter().find_map(|(used, key)| Some((*used, *key, place(used, key)?)))?;
        self.order.remove(&used);
        let kept = self.resources.get_mut(&key)?;
        let entry = kept.remove(at).entry;
        if kept.is_empty() {
            self.resources.remove(&key);
        }
        Some(entry)
    }

    /// Takes out all responses of a resource; a response that was asked for before, or is being recorded, comes too late.
    pub(super) fn forget(&mut self, key: &Key) -> Vec<Arc<Entry>> {
        self.changes.0[Changes::place(key)] += 1;
        self.recorded.remove(key);
        let kept = self.resources.remove(key).unwrap_or_default();
        kept.iter().for_each(|kept| _ = self.order.remove(&kept.used));
        kept.into_iter().map(|kept| kept.entry).collect()
    }

    /// Lists all entries, the least recently used first.
    pub(super) fn list(&self) -> Vec<Listed> {
        let find = |(used, key): (&u64, &Key)| {
            let kept = self.resources.get(key)?.iter().find(|kept| kept.used == *used)?;
            Some(Listed { key: *key, entry: kept.entry.clone() })
        };
        self.order.iter().filter_map(find).collect()
    }
}

impl Changes {
    /// Index by the third word of a key: the second word chooses the shelf.
    fn place(key: &Key) -> usize {
        key.0[2] as usize & (PLACES - 1)
    }
}

impl Default for Changes {
    fn default() -> Changes {
        Changes([0; PLACES])
    }
}
