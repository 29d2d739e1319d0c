//! An entry that a stream or a session tracks, or only holds.

use super::Table;
use super::data::Data;
use super::entry::Entry;
use std::sync::Arc;

/// The right to count in an entry, which stays in its table for as long.
#[derive(Debug)]
pub struct Tracked {
    pub(super) table: Arc<Table>,
    pub(super) entry: Arc<Entry>,
}

impl Tracked {
    /// Table of the entry.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The tracked entry.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Counts `n` events of both kinds, where they are stored: the total, and the number in a period.
    pub fn count(&self, (count, rate): (Data, Data), n: u64, now_ms: u64) {
        let Tracked { table, entry } = self;
        let counted = table.add(entry, count, 0, n, now_ms).is_some();
        if table.add(entry, rate, 0, n, now_ms).is_some() || counted {
            table.touch(entry, now_ms);
        }
    }

    /// Ends the tracking.
    pub fn release(self, now_ms: u64) {
        if self.table.has(Data::ConnCur) {
            self.table.touch(&self.entry, now_ms);
        } else if let Some(lifetime) = self.table.lifetime_ms().filter(|lifetime| self.entry.is_expired(now_ms, *lifetime)) {
            self.entry.outlive(now_ms, lifetime);
        }
    }
}

/// An entry that stays in its table for as long as this value exists.
#[derive(Debug)]
pub struct Held(pub(super) Arc<Entry>);

impl std::ops::Deref for Held {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.table.leave(&self.entry);
        self.entry.release();
    }
}
