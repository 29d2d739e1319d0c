//! A version of a reference's entries: the one that is matched now, or one that is being prepared to replace it.

use super::Entry;
use super::index::Index;
use super::parse::{Pattern, Resolve};
use super::way::Way;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Entries, and an index of them for each way of matching, in the order of the ways.
#[derive(Default, Debug)]
pub(super) struct Version {
    entries: BTreeMap<u64, Arc<Entry>>,
    by_key: HashMap<Box<[u8]>, SmallVec<[u64; 2]>>,
    indexes: Vec<Arc<Index>>,
}

/// A key's pattern for each way of matching. They are made before the lock is taken that look-ups and other changes may
/// wait for: compiling an expression takes time.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Pattern>);

impl Patterns {
    /// The patterns of a key; the error is the reason why it is invalid.
    pub(super) fn new(key: &[u8], ways: &[Arc<Way>], resolve: Resolve<'_>) -> Result<Patterns, String> {
        ways.iter().map(|way| way.pattern(key, resolve)).collect::<Result<_, _>>().map(Patterns)
    }

    /// Whether there is a pattern for each way. Ways are added while the configuration is read, and never afterwards.
    pub(super) fn are_for(&self, ways: &[Arc<Way>]) -> bool {
        self.0.len() == ways.len()
    }
}

impl Version {
    /// A version without entries.
    pub(super) fn new(ways: &[Arc<Way>]) -> Version {
        Version { indexes: ways.iter().map(|way| way.empty()).collect(), ..Version::default() }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries after a number, in order.
    pub(super) fn behind(&self, id: Option<u64>) -> impl Iterator<Item = &Arc<Entry>> {
        let from = id.map_or(0, |id| id.saturating_add(1));
        self.entries.range(from..).map(|(_, entry)| entry)
    }

    /// The numbers of the entries of a key, in ascending order.
    pub(super) fn ids(&self, key: &[u8]) -> SmallVec<[u64; 2]> {
        self.by_key.get(key).cloned().unwrap_or_default()
    }

    /// Whether there is an entry of a key.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.by_key.contains_key(key)
    }

    /// The entry of a number.
    pub(super) fn entry(&self, id: u64) -> Option<&Arc<Entry>> {
        self.entries.get(&id)
    }

    /// Puts an entry in, in the place of one of the same number, with its key's patterns. All ways must accept it;
    /// otherwise there is no change.
    pub(super) fn put(&mut self, entry: Entry, ways: &[Arc<Way>], patterns: &Patterns) -> Result<(), String> {
        let entry = Arc::new(entry);
        let postings: Result<Vec<_>, _> = ways.iter().map(|way| way.posting(&entry)).collect();
        for ((index, pattern), posting) in self.indexes.iter_mut().zip(&patterns.0).zip(postings?) {
            Arc::make_mut(index).insert(pattern.clone(), posting);
        }
        if self.entries.insert(entry.id, entry.clone()).is_none() {
            self.by_key.entry((*entry.key).into()).or_default().push(entry.id);
        }
        Ok(())
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, id: u64, ways: &[Arc<Way>]) -> bool {
        let Some(entry) = self.entries.remove(&id) else { return false };
        self.forget(&entry, &[id], ways);
        if let Some(ids) = self.by_key.get_mut(&*entry.key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_key.remove(&*entry.key);
            }
        }
        true
    }

    /// Removes all entries of a key in one pass, however many there are; returns whether there were any.
    pub(super) fn remove_key(&mut self, key: &[u8], ways: &[Arc<Way>]) -> bool {
        let ids = self.by_key.remove(key).unwrap_or_default();
        let removed = ids.iter().fold(None, |last, id| self.entries.remove(id).or(last));
        if let Some(entry) = &removed {
            self.forget(entry, &ids, ways);
        }
        removed.is_some()
    }

    /// Removes the pattern of an entry, and of those of the same key, from the indexes.
    fn forget(&mut self, entry: &Entry, ids: &[u64], ways: &[Arc<Way>]) {
        for (index, way) in self.indexes.iter_mut().zip(ways) {
            Arc::make_mut(index).remove(way.pattern_of(entry), ids);
        }
    }

    /// Makes an index for one more way; the error is the entry that it does not accept, and the reason.
    pub(super) fn add_way(&mut self, way: &Way, resolve: Resolve<'_>) -> Result<(), (u64, String)> {
        let mut index = way.empty();
        let mutable = Arc::make_mut(&mut index);
        for entry in self.entries.values() {
            let compiled = way.pattern(&entry.key, resolve).and_then(|pattern| Ok((pattern, way.posting(entry)?)));
            let (pattern, posting) = compiled.map_err(|reason| (entry.id, reason))?;
            mutable.insert(pattern, posting);
        }
        self.indexes.push(index);
        Ok(())
    }

    /// Publishes its indexes for look-ups.
    pub(super) fn publish(&self, ways: &[Arc<Way>]) {
        ways.iter().zip(&self.indexes).for_each(|(way, index)| way.publish(index));
    }
}
