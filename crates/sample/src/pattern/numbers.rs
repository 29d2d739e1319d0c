//! Ranges of numbers: `int`, `len`. Single numbers have a table of their own, so that maps of thousands of them are quick.

use super::entry::Posting;
use super::ordered::Ordered;
use super::table::Table;

/// Ranges.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    singles: Table,
    ranges: Ordered<Range>,
}

/// A range; both ends belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Numbers {
    /// An empty set.
    pub(super) fn new() -> Numbers {
        Numbers { singles: Table::new(), ranges: Ordered::default() }
    }

    /// Adds a range; it replaces one of the same number.
    pub(super) fn insert(&mut self, range: Range, posting: Posting) {
        if range.low == range.high {
            self.singles.insert(&range.low.to_le_bytes(), posting);
        } else {
            self.ranges.insert(range, posting);
        }
    }

    /// Removes the ranges of some numbers, in ascending order.
    pub(super) fn remove(&mut self, range: Range, ids: &[u64]) {
        if range.low == range.high {
            self.singles.remove(&range.low.to_le_bytes(), ids);
        } else {
            self.ranges.remove(ids);
        }
    }

    /// The entry of the first range that a number lies in.
    pub(super) fn find(&self, n: i64) -> Option<&Posting> {
        let single = self.singles.find(&n.to_le_bytes());
        let range = self.ranges.find(|range| range.low <= n && n <= range.high);
        match (single, range) {
            (Some(single), Some(range)) if range.id() < single.id() => Some(range),
            (None, range) => range,
            (single, _) => single,
        }
    }
}
