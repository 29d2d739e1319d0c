//! One entry of a table: a key, when it was touched, who tracks it, and cells of numbers.

use smallvec::SmallVec;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// One entry. Its numbers change at any time, by any worker; which entries there are changes under their shard's lock only.
#[derive(Debug)]
pub struct Entry {
    key: Key,
    touched_ms: AtomicU64,
    trackers: AtomicU32,
    /// Whether it waits to be told to others.
    marked: AtomicBool,
    pub(super) cells: Box<[AtomicU64]>,
}

/// A key's bytes: as many as its kind has, text without a NUL.
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

    /// Its key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// How many streams and sessions track it.
    pub fn trackers(&self) -> u32 {
        self.trackers.load(Acquire)
    }

    /// When it was touched last.
    pub fn touched_ms(&self) -> u64 {
        self.touched_ms.load(Relaxed)
    }

    /// Marks it; false when it is marked already.
    pub(super) fn mark(&self) -> bool {
        !self.marked.swap(true, AcqRel)
    }

    /// Takes the mark away, before what it holds is read.
    pub(super) fn unmark(&self) {
        self.marked.swap(false, AcqRel);
    }

    /// Its time begins anew.
    pub(super) fn touch(&self, now_ms: u64) {
        self.touched_ms.store(now_ms, Relaxed);
    }

    /// Its time begins at that moment, unless it has begun anew since.
    pub(super) fn touch_no_earlier(&self, touched_ms: u64) {
        self.touched_ms.fetch_max(touched_ms, Relaxed);
    }

    /// Whether its time is over.
    pub(super) fn is_expired(&self, now_ms: u64, lifetime_ms: u64) -> bool {
        self.touched_ms().saturating_add(lifetime_ms) <= now_ms
    }

    /// An entry that somebody tracks outlives its time by further ones: it is as if it had been touched at the end of the last one.
    pub(super) fn outlive(&self, now_ms: u64, lifetime_ms: u64) {
        let touched = self.touched_ms();
        let lives = now_ms.saturating_sub(touched) / lifetime_ms.max(1);
        if lives > 0 {
            self.touch(touched + lives * lifetime_ms.max(1));
        }
    }

    /// The caller holds the shard's lock, or tracks it already.
    pub(super) fn hold(&self) {
        self.trackers.fetch_add(1, Relaxed);
    }

    pub(super) fn release(&self) {
        self.trackers.fetch_sub(1, AcqRel);
    }
}
