//! Changes of a table, in order: each has a number, and each entry appears once, under its latest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use terse_balance::table::Entry;

/// Changes that a peer may not have acknowledged yet.
#[derive(Default, Debug)]
pub(crate) struct Recent {
    head: u64,
    by_number: BTreeMap<u64, Arc<Entry>>,
    /// Number of each entry, by its address: the entry is kept for as long.
    numbers: HashMap<usize, u64>,
}

impl Recent {
    /// Number of the latest change; 0 before the first.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Records a change. The oldest is dropped where there would be more than `most`.
    pub(crate) fn note(&mut self, entry: Arc<Entry>, most: usize) {
        self.head += 1;
        if let Some(before) = self.numbers.insert(address(&entry), self.head) {
            self.by_number.remove(&before);
        }
        self.by_number.insert(self.head, entry);
        while self.by_number.len() > most.max(1) {
            self.forget_first();
        }
    }

    /// First change after a number.
    pub(crate) fn after(&self, number: u64) -> Option<(u64, Arc<Entry>)> {
        self.by_number.range(number + 1..).next().map(|(number, entry)| (*number, entry.clone()))
    }

    /// Drops the changes up to a number, which all peers have acknowledged.
    pub(crate) fn forget(&mut self, heard: u64) {
        while self.by_number.first_key_value().is_some_and(|(first, _)| *first <= heard) {
            self.forget_first();
        }
    }

    /// Drops the oldest changes while their entries have expired, but examines at most `most`.
    pub(crate) fn forget_gone(&mut self, most: usize, is_there: impl Fn(&Arc<Entry>) -> bool) {
        for _ in 0..most {
            if self.by_number.first_key_value().is_none_or(|(_, entry)| is_there(entry)) {
                return;
            }
            self.forget_first();
        }
    }

    /// Number of waiting changes.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Full number of a change that a message gives by its lowest 32 bits.
    pub(crate) fn whole(&self, low: u32) -> u64 {
        let guess = self.head & !u64::from(u32::MAX) | u64::from(low);
        if guess > self.head { guess.saturating_sub(1 << 32) } else { guess }
    }

    fn forget_first(&mut self) {
        if let Some((_, entry)) = self.by_number.pop_first() {
            self.numbers.remove(&address(&entry));
        }
    }
}

fn address(entry: &Arc<Entry>) -> usize {
    Arc::as_ptr(entry).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::table;

    #[test]
    fn an_entry_stands_once() {
        let table = table("t", "type string size 9");
        let [a, b, c] = ["a", "b", "c"].map(|key| table.obtain(key.as_bytes(), 0).unwrap());
        let mut recent = Recent::default();
        for entry in [&a, &b, &a] {
            recent.note(entry.clone(), 2);
        }
        let keys = |recent: &Recent, from| recent.after(from).map(|(number, entry)| (number, entry.key().to_vec()));
        assert_eq!((keys(&recent, 0), keys(&recent, 2)), (Some((2, b"b".to_vec())), Some((3, b"a".to_vec()))));
        recent.note(c, 2);
        assert_eq!((recent.len(), keys(&recent, 0)), (2, Some((3, b"a".to_vec()))), "the oldest is forgotten");
        recent.forget(3);
        assert_eq!((recent.len(), recent.head(), recent.whole(4), recent.whole(5)), (1, 4, 4, 0));
    }
}
