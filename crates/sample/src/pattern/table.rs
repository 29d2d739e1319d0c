//! Postings by key: a hash table that is cheap to copy but for one entry.
//!
//! It is made of shards of up to some hundred keys, held by counted pointers. A copy of the table copies the pointers; a
//! change of the copy copies the shard that it is in. So a change of a table of 100,000 keys that has another reader moves
//! about 400 pointers and 250 keys. A table that is not shared is changed in place.
//!
//! Keys are hashed once, with a seed of the process. The hash chooses the shard and is the key of the map in it. The
//! buckets of that map hold the few keys that agree in all 64 bits. The postings of a key are in the order of their
//! numbers.

use super::entry::Posting;
use crate::octets::Octets;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Postings by key.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The shards; their number is a power of two.
    shards: Vec<Arc<Shard>>,
    len: usize,
}

type Shard = HashMap<u64, Bucket, BuildHasherDefault<Hashed>>;
type Bucket = SmallVec<[Item; 1]>;

#[derive(Clone, Debug)]
struct Item {
    key: Octets<'static>,
    posting: Posting,
}

/// Average keys of a shard above which the number of shards doubles: at 100,000 keys, as many pointers are copied for a
/// change as keys.
const SHARD_KEYS: usize = 256;

impl Table {
    /// A table without keys.
    pub(super) fn new() -> Table {
        Table { shards: vec![Arc::default()], len: 0 }
    }

    /// The first posting of a key.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<&Posting> {
        let hash = hash(key);
        let bucket = self.shards.get(self.shard_of(hash))?.get(&hash)?;
        bucket.iter().find(|item| *item.key == *key).map(|item| &item.posting)
    }

    /// Adds a posting of a key; it replaces one of the same number, and then the result is false.
    pub(super) fn insert(&mut self, key: &[u8], posting: Posting) -> bool {
        if self.len >= self.shards.len() * SHARD_KEYS {
            self.grow();
        }
        let item = Item { key: Octets::from(key).store(), posting };
        let bucket = self.bucket(hash(key));
        let at = bucket.partition_point(|other| other.posting.id() < item.posting.id());
        match bucket.get_mut(at) {
            Some(same) if same.posting.id() == item.posting.id() => {
                *same = item;
                false
            }
            _ => {
                bucket.insert(at, item);
                self.len += 1;
                true
            }
        }
    }

    /// Removes the postings of some numbers, in ascending order; returns how many there were.
    pub(super) fn remove(&mut self, key: &[u8], ids: &[u64]) -> usize {
        if self.find(key).is_none() {
            return 0;
        }
        let hash = hash(key);
        let bucket = self.bucket(hash);
        let before = bucket.len();
        bucket.retain(|item| ids.binary_search(&item.posting.id()).is_err());
        let removed = before - bucket.len();
        if bucket.is_empty() {
            let at = self.shard_of(hash);
            if let Some(shard) = self.shards.get_mut(at) {
                Arc::make_mut(shard).remove(&hash);
            }
        }
        self.len -= removed;
        removed
    }

    fn bucket(&mut self, hash: u64) -> &mut Bucket {
        let at = self.shard_of(hash);
        Arc::make_mut(&mut self.shards[at]).entry(hash).or_default()
    }

    /// Index of a hash's shard: its high bits, because maps use the low ones.
    #[inline]
    fn shard_of(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.shards.len() - 1)
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.shards);
        let mut shards: Vec<Shard> = Vec::new();
        shards.resize_with(old.len() * 2, Shard::default);
        for shard in old {
            let shard = Arc::try_unwrap(shard).unwrap_or_else(|shared| (*shared).clone());
            for (hash, bucket) in shard {
                let at = (hash >> 32) as usize & (shards.len() - 1);
                shards[at].insert(hash, bucket);
            }
        }
        self.shards = shards.into_iter().map(Arc::new).collect();
    }
}

/// The hash of a key; other processes have others.
#[inline]
fn hash(key: &[u8]) -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    xxh3_64_with_seed(key, *SEED.get_or_init(|| RandomState::new().hash_one(0)))
}

/// Takes a number that is a hash already as its hash.
#[derive(Clone, Copy, Default, Debug)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Entry, Made};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn posting(id: u64) -> Posting {
        Posting { entry: Arc::new(Entry { id, key: Octets::EMPTY, value: None }), made: Made::Int(id as i64) }
    }

    #[test]
    fn a_change_copies_one_shard() {
        let mut table = Table::new();
        for id in 0..100_000u64 {
            table.insert(&id.to_le_bytes(), posting(id));
        }
        let before = table.clone();
        table.insert(b"new", posting(100_000));
        let copied = before.shards.iter().zip(&table.shards).filter(|(old, new)| !Arc::ptr_eq(old, new)).count();
        assert_eq!((before.shards.len(), copied), (512, 1));
        assert!(before.find(b"new").is_none() && table.find(b"new").is_some());
        assert!((0..100_000u64).all(|id| table.find(&id.to_le_bytes()).is_some_and(|posting| posting.id() == id)));
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_of_lists_does(steps in proptest::collection::vec((0u8..3, 0u8..20, 0u64..200), 0..300)) {
            let (mut table, mut model) = (Table::new(), BTreeMap::<u8, BTreeMap<u64, ()>>::new());
            for (what, key, id) in steps {
                let kept = table.clone();
                let postings = model.entry(key).or_default();
                if what == 0 {
                    prop_assert_eq!(table.remove(&[key], &[id]), usize::from(postings.remove(&id).is_some()));
                } else {
                    let first = kept.find(&[key]).map(Posting::id);
                    prop_assert_eq!(table.insert(&[key], posting(id)), postings.insert(id, ()).is_none());
                    prop_assert_eq!(kept.find(&[key]).map(Posting::id), first);
                }
                prop_assert_eq!(table.find(&[key]).map(Posting::id), postings.keys().next().copied());
            }
            prop_assert_eq!(table.len, model.values().map(BTreeMap::len).sum::<usize>());
        }
    }
}
