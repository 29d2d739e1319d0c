//! What an entry holds, taken out and put in as it is: for processes that share a table.

use super::Table;
use super::data::{Data, Shape};
use super::entry::Entry;
use super::rate::Rate;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// One element of what an entry holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A number.
    Number(u64),
    /// Events in a period.
    Rate {
        /// When the current period began, milliseconds ago.
        elapsed_ms: u32,
        /// Its events.
        current: u32,
        /// Those of the period before.
        previous: u32,
    },
    /// A name, if there is one.
    Name(Option<Arc<str>>),
}

impl Table {
    /// An element of what an entry holds; nothing when it is not stored.
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

    /// Puts such an element into an entry, where it is stored and of that shape. No name, or one that is not kept, leaves that of the entry.
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

    /// How many times another process told a name that was not kept.
    pub fn refused_names(&self) -> u64 {
        self.names.refused()
    }

    /// The entry of a key that another process tells of, made if there is none; nothing when there is no room. Its time ends in `remaining_ms`,
    /// or begins anew where that is not told; what was touched here since then keeps its time. It is not told to others.
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
