//! Raw data of an entry, for processes that share a table.

use super::Table;
use super::data::{Data, Shape};
use super::entry::Entry;
use super::rate::Rate;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// An element of an entry's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A number.
    Number(u64),
    /// Events in a period.
    Rate {
        /// Milliseconds since the start of the current period.
        elapsed_ms: u32,
        /// Events of the current period.
        current: u32,
        /// Events of the period before.
        previous: u32,
    },
    /// A name, if there is one.
    Name(Option<Arc<str>>),
}

impl Table {
    /// An element of an entry's data; `None` when it is not stored.
    pub fn part(&self, entry: &Entry, data: Data, element: u32, now_ms: u64) -> Option<Part> {
        let (at, _) = self.layout.find(data, element)?;
        let cell = entry.cells.get(at)?;
        Some(match data.shape() {
            Shape::Name => Part::Name(self.names.name(cell.load(Relaxed))),
            Shape::Rate => {
                let (elapsed_ms, current, previous) = Rate { current: cell, previous: entry.cells.get(at + 1)? }.take(now_ms);
                Part::Rate { elapsed_ms, current, previous }
            }
            Shape::Bytes => Part::Number(cell.load(Relaxed)),
            Shape::Signed | Shape::Count => Part::Number(u64::from(cell.load(Relaxed) as u32)),
        })
    }

    /// Stores such an element in an entry, where its kind is stored and of that shape. Without a name, or with one that
    /// is not kept, the entry's name stays.
    pub fn put(&self, entry: &Entry, data: Data, element: u32, part: &Part, now_ms: u64) {
        let Some((at, _)) = self.layout.find(data, element) else { return };
        let Some(cell) = entry.cells.get(at) else { return };
        match (data.shape(), part) {
            (Shape::Rate, Part::Rate { elapsed_ms, current, previous }) => {
                if let Some(past) = entry.cells.get(at + 1) {
                    Rate { current: cell, previous: past }.put(now_ms, *elapsed_ms, *current, *previous);
                }
            }
            (Shape::Name, Part::Name(name)) => {
                if let Some(number) = name.as_deref().and_then(|name| self.names.learn(name)) {
                    cell.store(number, Relaxed);
                }
            }
            (Shape::Bytes, Part::Number(n)) => cell.store(*n, Relaxed),
            (Shape::Signed | Shape::Count, Part::Number(n)) => cell.store(u64::from(*n as u32), Relaxed),
            _ => {}
        }
    }

    /// Number of names from other processes that were not kept.
    pub fn refused_names(&self) -> u64 {
        self.names.refused()
    }

    /// The entry of a key from another process, made if there is none; `None` when there is no room. Its time ends in
    /// `remaining_ms`, or begins anew without that; an entry that was touched here since keeps its time. Peers do not
    /// learn it from here.
    pub fn learn(&self, key: &[u8], remaining_ms: Option<u64>, now_ms: u64) -> Option<Arc<Entry>> {
        let touched_ms = match (self.lifetime_ms(), remaining_ms) {
            (Some(lifetime), Some(remaining)) => (now_ms + remaining.min(lifetime)).saturating_sub(lifetime),
            _ => now_ms,
        };
        let entry = self.enter(key, (now_ms, touched_ms), |_| ())?;
        entry.touch_no_earlier(touched_ms);
        Some(entry)
    }
}
