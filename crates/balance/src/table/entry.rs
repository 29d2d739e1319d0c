//! An entry of a table: a key, the time of its last touch, its trackers, and cells of numbers.

use smallvec::SmallVec;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// An entry. Any worker may change its numbers at any time; the set of entries changes under their shard's lock only.
#[derive(Debug)]
pub struct Entry {
    key: Key,
    touched_ms: AtomicU64,
    trackers: AtomicU32,
    /// Whether its change waits to be sent to peers.
    marked: AtomicBool,
    pub(super) cells: Box<[AtomicU64]>,
}

/// Bytes of a key: as many as its kind has, text without a NUL.
pub(super) type Key = SmallVec<[u8; 16]>;

impl Entry {
    pub(super) fn new(key: &[u8], cells: usize, touched_ms: u64) -> Entry {
        Entry {
            key: Key::from_slice(key),
            touched_ms: AtomicU64::new(touched_ms),
            trackers: AtomicU32::new(0),
            marked: AtomicBool::new(false),
            cells: (0..cells).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Key of the entry.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Number of streams and sessions that track it.
    pub fn trackers(&self) -> u32 {
        self.trackers.load(Acquire)
    }

    /// Time of the last touch.
    pub fn touched_ms(&self) -> u64 {
        self.touched_ms.load(Relaxed)
    }

    /// Marks it; false when it is marked already.
    pub(super) fn mark(&self) -> bool {
        !self.marked.swap(true, AcqRel)
    }

    /// Removes the mark, before the data is read.
    pub(super) fn unmark(&self) {
        self.marked.swap(false, AcqRel);
    }

    /// Sets the time of the last touch.
    pub(super) fn touch(&self, now_ms: u64) {
        self.touched_ms.store(now_ms, Relaxed);
    }

    /// Sets the time of the last touch to that moment, unless a later touch is recorded.
    pub(super) fn touch_no_earlier(&self, touched_ms: u64) {
        self.touched_ms.fetch_max(touched_ms, Relaxed);
    }

    /// Whether it has expired.
    pub(super) fn is_expired(&self, now_ms: u64, lifetime_ms: u64) -> bool {
        self.touched_ms().saturating_add(lifetime_ms) <= now_ms
    }

    /// Extends the life of a tracked entry by whole lifetimes: as if it had been touched at the end of the last.
    pub(super) fn outlive(&self, now_ms: u64, lifetime_ms: u64) {
        let touched = self.touched_ms();
        let lives = now_ms.saturating_sub(touched) / lifetime_ms.max(1);
        if lives > 0 {
            self.touch(touched + lives * lifetime_ms.max(1));
        }
    }

    /// Adds a tracker. The caller holds the shard's lock, or tracks it already.
    pub(super) fn hold(&self) {
        self.trackers.fetch_add(1, Relaxed);
    }

    pub(super) fn release(&self) {
        self.trackers.fetch_sub(1, AcqRel);
    }
}
