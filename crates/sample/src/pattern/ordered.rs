//! Patterns that are tried one after the other: `sub`, `reg`, ranges. A change copies a pointer for each, as a look-up
//! walks over each.

use super::entry::Posting;
use std::sync::Arc;

/// Patterns in the order of their numbers.
#[derive(Clone, Debug)]
pub(super) struct Ordered<T>(Vec<Arc<(T, Posting)>>);

impl<T> Ordered<T> {
    /// Adds a pattern; it replaces one of the same number.
    pub(super) fn insert(&mut self, pattern: T, posting: Posting) {
        let at = self.0.partition_point(|item| item.1.id() < posting.id());
        let item = Arc::new((pattern, posting));
        match self.0.get_mut(at) {
            Some(same) if same.1.id() == item.1.id() => *same = item,
            _ => self.0.insert(at, item),
        }
    }

    /// Removes the patterns of some numbers, in ascending order.
    pub(super) fn remove(&mut self, ids: &[u64]) {
        self.0.retain(|item| ids.binary_search(&item.1.id()).is_err());
    }

    /// The entry of the first pattern that matches.
    #[inline]
    pub(super) fn find(&self, mut matches: impl FnMut(&T) -> bool) -> Option<&Posting> {
        self.0.iter().find(|item| matches(&item.0)).map(|item| &item.1)
    }

    /// The entry of the first pattern that matches, with the result of the match.
    #[inline]
    pub(super) fn find_map<R>(&self, mut matched: impl FnMut(&T) -> Option<R>) -> Option<(R, &Posting)> {
        self.0.iter().find_map(|item| Some((matched(&item.0)?, &item.1)))
    }
}

impl<T> Default for Ordered<T> {
    fn default() -> Ordered<T> {
        Ordered(Vec::new())
    }
}
