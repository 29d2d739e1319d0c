//! Stick tables: data of clients, by address, cookie or any other key, and shared by all workers.
//!
//! ```text
//! Table ---- Shard (lock) ---- by key --> Entry (atomics) <-- Tracked: streams and sessions
//!        \-- Shard (lock) --\- by age --/
//! ```
//!
//! A look-up takes one shard's lock for as long as it takes to find the key; counting takes none. An entry that was not
//! touched for `expire` is gone for every look-up. Its memory is given back by the next [`Table::sweep`], or when room
//! is needed.
//!
//! Invariants:
//! * There are never more entries than `size`. A full table drops the oldest untracked entry, or (`nopurge`) takes no
//!   new one.
//! * An entry that is tracked is never dropped.
//! * A change of an entry that peers are to learn touches it by its table, after the change.
//! * No clock is read: times are arguments, in milliseconds of a clock that all callers share and that only goes on.

mod data;
mod entry;
mod exchange;
mod feed;
mod layout;
mod names;
mod rate;
mod settings;
mod shard;
mod tracked;

pub use data::{Data, Shape};
pub use entry::Entry;
pub use exchange::Part;
pub use layout::Layout;
pub use settings::{KeyKind, ServerKeyKind, Stored, TableLine, TableSettings};
pub use tracked::{Held, Tracked};

use feed::Feed;
use names::Names;
use rate::Rate;
use shard::{Locked, Shard};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::Notify;

/// A stick table.
#[derive(Debug)]
pub struct Table {
    name: Arc<str>,
    settings: TableSettings,
    layout: Layout,
    shards: Box<[Shard]>,
    used: AtomicUsize,
    names: Names,
    /// Changes for peers; `None` where the table is not shared.
    feed: Option<Feed>,
}

impl Table {
    /// Creates a table of that name, which stores `also` beside the data of its line: what rules need.
    pub fn new(name: Arc<str>, settings: TableSettings, also: &[Stored]) -> Table {
        let layout = Layout::new(&[&settings.store, also].concat());
        let shards = (settings.size / ENTRIES_OF_A_SHARD).next_power_of_two().clamp(1, MOST_SHARDS);
        let shards = (0..shards).map(|_| Shard::default()).collect();
        Table { name, settings, layout, shards, used: AtomicUsize::new(0), names: Names::default(), feed: None }
    }

    /// Makes the table shared: its changes are kept for [`Table::changed`], and `wake` is notified.
    #[must_use]
    pub fn shared(mut self, wake: Arc<Notify>) -> Table {
        self.feed = Some(Feed::new(wake));
        self
    }

    /// Name: that of its section.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Settings of its line.
    pub fn settings(&self) -> &TableSettings {
        &self.settings
    }

    /// Layout of its entries' data.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether entries hold that kind of data.
    pub fn has(&self, data: Data) -> bool {
        self.layout.has(data)
    }

    /// Limit of entries.
    pub fn size(&self) -> usize {
        self.settings.size
    }

    /// Number of entries. Where very many expire at once, some of those are still counted: see [`Table::sweep`].
    pub fn used(&self, now_ms: u64) -> usize {
        self.sweep(now_ms);
        self.used.load(Relaxed)
    }

    /// Milliseconds until the entry expires; 0 when it does not.
    pub fn remaining_ms(&self, entry: &Entry, now_ms: u64) -> u64 {
        self.lifetime_ms().map_or(0, |lifetime| entry.touched_ms().saturating_add(lifetime).saturating_sub(now_ms))
    }

    /// The entry of a key, if there is one.
    pub fn find(&self, key: &[u8], now_ms: u64) -> Option<Arc<Entry>> {
        let shard = self.shard(key);
        let entry = shard.look(key, Arc::clone)?;
        if self.is_over(&entry, now_ms) {
            return None;
        }
        Some(entry)
    }

    /// The entry of a key, made if there is none; `None` when there is no room.
    pub fn obtain(&self, key: &[u8], now_ms: u64) -> Option<Arc<Entry>> {
        self.enter(key, (now_ms, now_ms), |_| ())
    }

    /// Holds the entry of a key in its table, made if there is none, without counting; `None` when there is no room.
    pub fn hold(&self, key: &[u8], now_ms: u64) -> Option<Held> {
        let entry = self.enter(key, (now_ms, now_ms), |entry| entry.hold())?;
        self.touch(&entry, now_ms);
        Some(Held(entry))
    }

    /// Tracks the entry of a key, made if there is none, and counts a connection there; `None` when there is no room.
    pub fn track(self: &Arc<Table>, key: &[u8], now_ms: u64) -> Option<Tracked> {
        let entry = self.enter(key, (now_ms, now_ms), |entry| entry.hold())?;
        entry.touch(now_ms);
        self.add(&entry, Data::ConnCur, 0, 1, now_ms);
        self.add(&entry, Data::ConnCnt, 0, 1, now_ms);
        self.add(&entry, Data::ConnRate, 0, 1, now_ms);
        self.mark(&entry);
        Some(Tracked { table: self.clone(), entry })
    }

    /// Touches an entry: its time begins anew, and peers learn its data.
    pub fn touch(&self, entry: &Entry, now_ms: u64) {
        entry.touch(now_ms);
        self.mark(entry);
    }

    /// Whether an entry is still in the table, and has not expired.
    pub fn has_entry(&self, entry: &Arc<Entry>, now_ms: u64) -> bool {
        self.find(entry.key(), now_ms).is_some_and(|found| Arc::ptr_eq(&found, entry))
    }

    /// Entries that have changed since the last call, each once: those that are still there.
    pub fn changed(&self, now_ms: u64) -> Vec<Arc<Entry>> {
        let Some(feed) = &self.feed else { return Vec::new() };
        let found = feed.take().into_iter().filter_map(|key| self.find(&key, now_ms));
        found.inspect(|entry| entry.unmark()).collect()
    }

    /// Ends the recording of changes.
    pub fn stop_sharing(&self) {
        if let Some(feed) = &self.feed {
            feed.close();
        }
    }

    /// Notes that an entry has changed.
    fn mark(&self, entry: &Entry) {
        if let Some(feed) = &self.feed
            && entry.mark()
        {
            feed.push(entry.key());
        }
    }

    /// Value of an entry's data; `None` when it is not stored, or is a name.
    pub fn read(&self, entry: &Entry, data: Data, element: u32, now_ms: u64) -> Option<u64> {
        let (at, period_ms) = self.layout.find(data, element)?;
        let cell = entry.cells.get(at)?;
        Some(match data.shape() {
            Shape::Rate => {
                let told = u64::from(Rate { current: cell, previous: entry.cells.get(at + 1)? }.read(period_ms, now_ms));
                if data.is_byte_rate() { told * u64::from(self.settings.byte_rate_factor) } else { told }
            }
            Shape::Bytes => cell.load(Relaxed),
            Shape::Signed | Shape::Count => u64::from(cell.load(Relaxed) as u32),
            Shape::Name => return None,
        })
    }

    /// Adds, and returns the new number; of a rate, that of its current period. `None` when it is not stored.
    pub fn add(&self, entry: &Entry, data: Data, element: u32, n: u64, now_ms: u64) -> Option<u64> {
        let (at, period_ms) = self.layout.find(data, element)?;
        let cell = entry.cells.get(at)?;
        Some(match data.shape() {
            Shape::Rate => {
                let factor = u64::from(self.settings.byte_rate_factor);
                let n = if data.is_byte_rate() { n.div_ceil(factor) } else { n };
                let rate = Rate { current: cell, previous: entry.cells.get(at + 1)? };
                u64::from(rate.add(period_ms, now_ms, u32::try_from(n).unwrap_or(u32::MAX)))
            }
            Shape::Bytes => cell.fetch_add(n, Relaxed).wrapping_add(n),
            Shape::Signed | Shape::Count => u64::from(cell.fetch_add(n, Relaxed).wrapping_add(n) as u32),
            Shape::Name => return None,
        })
    }

    /// Sets a number, and returns the one before. `None` when it is not stored.
    pub fn set(&self, entry: &Entry, data: Data, element: u32, n: u64, now_ms: u64) -> Option<u64> {
        let before = self.read(entry, data, element, now_ms)?;
        let (at, _) = self.layout.find(data, element)?;
        let cell = entry.cells.get(at)?;
        match data.shape() {
            Shape::Rate => Rate { current: cell, previous: entry.cells.get(at + 1)? }.set(now_ms, n as u32),
            _ => cell.store(n, Relaxed),
        }
        Some(before)
    }

    /// The name that an entry holds.
    pub fn name_of(&self, entry: &Entry, data: Data) -> Option<Arc<str>> {
        let (at, _) = self.layout.find(data, 0).filter(|_| data.shape() == Shape::Name)?;
        self.names.name(entry.cells.get(at)?.load(Relaxed))
    }

    /// Gives an entry a name.
    pub fn set_name(&self, entry: &Entry, data: Data, name: &str) {
        if let Some((at, _)) = self.layout.find(data, 0).filter(|_| data.shape() == Shape::Name)
            && let Some(cell) = entry.cells.get(at)
        {
            cell.store(self.names.number(name), Relaxed);
        }
    }

    /// Removes an entry; false when it is tracked.
    pub fn remove(&self, entry: &Entry) -> bool {
        let mut entries = self.shard(entry.key()).lock();
        entry.trackers() == 0 && {
            self.drop_entry(&mut entries, entry);
            true
        }
    }

    /// The entries of one shard, of [`Table::shards`]: a dump goes from one to the next, and holds no more than one at a time.
    pub fn entries(&self, shard: usize, now_ms: u64) -> Vec<Arc<Entry>> {
        let Some(shard) = self.shards.get(shard) else { return Vec::new() };
        let mut entries = shard.lock().all();
        entries.retain(|entry| !self.is_over(entry, now_ms));
        entries.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        entries
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Frees the memory of expired entries, of some thousand at a time; false when there is more to do. Costs little
    /// when there are none.
    pub fn sweep(&self, now_ms: u64) -> bool {
        self.sweep_until(now_ms, || false)
    }

    /// As [`Table::sweep`], but stops when `is_enough` returns true.
    fn sweep_until(&self, now_ms: u64, is_enough: impl Fn() -> bool) -> bool {
        let Some(lifetime) = self.lifetime_ms() else { return true };
        let mut rounds = 0..MOST_ROUNDS;
        for shard in &self.shards {
            while shard.oldest_ms().saturating_add(lifetime) <= now_ms {
                if is_enough() || rounds.next().is_none() {
                    return false;
                }
                // The lock is released now and then: workers wait for it.
                self.sweep_some(&mut shard.lock(), lifetime, now_ms);
            }
        }
        true
    }

    pub(super) fn lifetime_ms(&self) -> Option<u64> {
        self.settings.expire_ms.map(u64::from)
    }

    /// Ends a tracking of the entry.
    fn leave(&self, entry: &Entry) {
        if let Some((at, _)) = self.layout.find(Data::ConnCur, 0)
            && let Some(cell) = entry.cells.get(at)
        {
            let _ = cell.fetch_update(Relaxed, Relaxed, |now| now.checked_sub(1));
            self.mark(entry);
        }
    }

    /// Finds or makes the entry of a key; `hold` is called with it while it cannot be removed. A new one was touched at
    /// `touched_ms`.
    fn enter(&self, key: &[u8], (now_ms, touched_ms): (u64, u64), hold: impl Fn(&Entry)) -> Option<Arc<Entry>> {
        let shard = self.shard(key);
        let alive = |entry: &Arc<Entry>| {
            let alive = !self.is_over(entry, now_ms);
            if alive {
                hold(entry);
            }
            alive.then(|| entry.clone())
        };
        if let Some(Some(entry)) = shard.look(key, alive) {
            return Some(entry);
        }
        // Room is made before the lock is taken: it may be in another shard.
        self.make_room(now_ms)?;
        let mut entries = shard.lock();
        if let Some(found) = entries.get(key).cloned() {
            if let Some(entry) = alive(&found) {
                // Another task was quicker.
                self.used.fetch_sub(1, Relaxed);
                return Some(entry);
            }
            self.drop_entry(&mut entries, &found);
        }
        let entry = Arc::new(Entry::new(key, self.layout.cells(), touched_ms));
        hold(&entry);
        if !entries.insert(entry.clone()) {
            self.used.fetch_sub(1, Relaxed);
            return None;
        }
        Some(entry)
    }

    /// Counts one more entry, in the place of an old one if the table is full.
    fn make_room(&self, now_ms: u64) -> Option<()> {
        if self.used.fetch_add(1, Relaxed) < self.settings.size {
            return Some(());
        }
        let has_room = || self.used.load(Relaxed) <= self.settings.size;
        self.sweep_until(now_ms, has_room);
        if has_room() || (!self.settings.no_purge && self.drop_oldest(now_ms)) {
            return Some(());
        }
        self.used.fetch_sub(1, Relaxed);
        None
    }

    /// Drops the oldest untracked entry, if it is found soon.
    fn drop_oldest(&self, now_ms: u64) -> bool {
        for _ in 0..MOST_TRIES {
            let Some(shard) = self.shards.iter().min_by_key(|shard| shard.oldest_ms()) else { return false };
            let mut entries = shard.lock();
            let Some((queued, first)) = entries.first() else { return false };
            let touched = first.touched_ms();
            if first.trackers() > 0 {
                entries.requeue(&first, now_ms.max(queued + 1));
            } else if touched > queued {
                entries.requeue(&first, touched);
            } else {
                self.drop_entry(&mut entries, &first);
                return true;
            }
        }
        false
    }

    fn sweep_some(&self, entries: &mut Locked<'_>, lifetime_ms: u64, now_ms: u64) {
        for _ in 0..SWEPT_AT_ONCE {
            let Some((queued, first)) = entries.first() else { return };
            if queued.saturating_add(lifetime_ms) > now_ms {
                return;
            }
            if self.is_over(&first, now_ms) {
                self.drop_entry(entries, &first);
            } else {
                entries.requeue(&first, first.touched_ms());
            }
        }
    }

    /// Whether the entry has expired and is not tracked.
    fn is_over(&self, entry: &Entry, now_ms: u64) -> bool {
        let Some(lifetime) = self.lifetime_ms().filter(|lifetime| entry.is_expired(now_ms, *lifetime)) else { return false };
        if entry.trackers() > 0 {
            entry.outlive(now_ms, lifetime);
            return false;
        }
        true
    }

    fn drop_entry(&self, entries: &mut Locked<'_>, entry: &Entry) {
        if entries.remove(entry) {
            self.used.fetch_sub(1, Relaxed);
        }
    }

    /// The shard of a key. A client that chooses keys which all fall into one shard makes workers wait for each other,
    /// no more. Within the shard, keys are found by an unpredictable hash.
    fn shard(&self, key: &[u8]) -> &Shard {
        let mixed = key.iter().fold(key.len() as u64, |hash, byte| (hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(MIX));
        &self.shards[(mixed >> 32) as usize & (self.shards.len() - 1)]
    }
}

/// An odd number without a pattern: 2^64 by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// A table of fewer entries has one shard, and so a strict order of age.
const ENTRIES_OF_A_SHARD: usize = 256;
/// More than any machine has workers that look up at the same moment.
const MOST_SHARDS: usize = 64;
/// Number of entries that are visited under one lock.
const SWEPT_AT_ONCE: usize = 256;
/// Limit of locks in one sweep: a request may wait for it.
const MOST_ROUNDS: usize = 16;
/// Limit of entries that turn out not to be the oldest, passed over for a new one.
const MOST_TRIES: usize = 64;

#[cfg(test)]
mod tests;
