//! The bytes of a cache: taken before anything is kept, given back when the last user of an entry has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A bound.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    taken: AtomicUsize,
}

/// A part of it.
#[derive(Debug)]
pub(super) struct Space {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Room {
        Room { bytes, taken: AtomicUsize::new(0) }
    }

    pub(super) fn free(&self) -> usize {
        self.bytes.saturating_sub(self.taken.load(Relaxed))
    }
}

impl Space {
    /// Nothing yet.
    pub(super) fn of(room: &Arc<Room>) -> Space {
        Space { room: room.clone(), bytes: 0 }
    }

    /// Takes more; false when there is no more.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.room.bytes);
        let grown = self.room.taken.fetch_update(Relaxed, Relaxed, more).is_ok();
        self.bytes += if grown { bytes } else { 0 };
        grown
    }

    /// Gives back the bytes above this number.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let given = self.bytes.saturating_sub(bytes);
        self.room.taken.fetch_sub(given, Relaxed);
        self.bytes -= given;
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_never_exceeds_the_bound_and_comes_back() {
        let room = Arc::new(Room::new(10));
        let (mut one, mut other) = (Space::of(&room), Space::of(&room));
        assert!(one.grow(6) && !other.grow(5) && other.grow(4) && !one.grow(1) && !one.grow(usize::MAX));
        one.shrink_to(2);
        assert_eq!((room.free(), one.bytes()), (4, 2));
        drop(other);
        assert_eq!(room.free(), 8);
    }
}
