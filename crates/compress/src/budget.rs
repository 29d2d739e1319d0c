//! Memory that many share: bytes are taken before they are held, and given back.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A limit of bytes. The process has one for all buffering; a test may bring its own.
pub trait Budget: Send + Sync {
    /// Counts bytes as held; false, and nothing counted, when they do not fit.
    fn take(&self, bytes: usize) -> bool;
    /// Returns bytes that are no longer held.
    fn give(&self, bytes: usize);
    /// Whether so little is left that holders should make themselves small where that costs little.
    fn is_tight(&self) -> bool;

    /// Whether there is no room for a further body of any size.
    fn is_full(&self) -> bool {
        let room = self.take(ONE_BODY_BYTES);
        if room {
            self.give(ONE_BODY_BYTES);
        }
        !room
    }
}

/// The least that a body is expected to need.
const ONE_BODY_BYTES: usize = 16 * 1024;

/// A [`Budget`] on a single atomic number.
#[derive(Debug)]
pub struct Limit {
    used: AtomicUsize,
    refused: AtomicU64,
    bytes: usize,
}

impl Limit {
    /// A limit of so many bytes.
    pub const fn new(bytes: usize) -> Limit {
        Limit { used: AtomicUsize::new(0), refused: AtomicU64::new(0), bytes }
    }

    /// Bytes held now.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Number of times that bytes did not fit.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// The limit.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Budget for Limit {
    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= self.bytes);
        let taken = self.used.fetch_update(Relaxed, Relaxed, fits).is_ok();
        if !taken {
            self.refused.fetch_add(1, Relaxed);
        }
        taken
    }

    fn give(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "more was given back than taken");
    }

    fn is_tight(&self) -> bool {
        self.used() > self.bytes / 2
    }
}

/// Takes bytes for as long as the returned value lives; `None` where they do not fit.
pub fn hold<B: Budget + 'static>(limit: &Arc<B>, bytes: usize) -> Option<Box<dyn Any + Send>> {
    limit.take(bytes).then(|| Box::new(Held::of(limit.clone(), bytes)) as Box<dyn Any + Send>)
}

/// Bytes that were taken; given back when it is dropped.
pub(crate) struct Held<B: Budget + ?Sized> {
    limit: Arc<B>,
    bytes: usize,
}

impl<B: Budget + ?Sized> Held<B> {
    /// Answers for so many bytes that were taken of it.
    pub(crate) fn of(limit: Arc<B>, bytes: usize) -> Held<B> {
        Held { limit, bytes }
    }

    /// Takes more; false, and nothing taken, when they do not fit.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let taken = bytes == 0 || self.limit.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Releases the bytes without giving them back, for another holder; returns their number.
    pub(crate) fn into_bytes(mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }
}

impl<B: Budget + ?Sized> Drop for Held<B> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.limit.give(self.bytes);
        }
    }
}

/// A limit within another: `maxzlibmem` within the process's.
pub struct Within {
    outer: Arc<dyn Budget>,
    inner: Limit,
}

impl Within {
    /// A part of `bytes` of those that `outer` has.
    pub fn new(outer: Arc<dyn Budget>, bytes: usize) -> Within {
        Within { outer, inner: Limit::new(bytes) }
    }

    /// The limit of its own.
    pub fn limit(&self) -> &Limit {
        &self.inner
    }
}

impl Budget for Within {
    fn take(&self, bytes: usize) -> bool {
        if !self.inner.take(bytes) {
            return false;
        }
        let taken = self.outer.take(bytes);
        if !taken {
            self.inner.give(bytes);
        }
        taken
    }

    fn give(&self, bytes: usize) {
        self.inner.give(bytes);
        self.outer.give(bytes);
    }

    fn is_tight(&self) -> bool {
        self.inner.is_tight() || self.outer.is_tight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_within_another_asks_both() {
        let outer = Arc::new(Limit::new(40_000));
        let (small, large) = (Within::new(outer.clone(), 20_000), Within::new(outer.clone(), 90_000));
        assert!(!small.take(20_001) && small.take(20_000) && !large.take(20_001));
        assert_eq!((outer.used(), large.limit().used()), (20_000, 0));
        assert!(small.is_full() && small.is_tight() && !large.is_full());
        small.give(20_000);
        assert_eq!((outer.used(), small.limit().used()), (0, 0));
    }

    #[test]
    fn what_is_held_is_given_back_with_the_hold() {
        let limit = Arc::new(Limit::new(10));
        let held = hold(&limit, 7).unwrap();
        assert!(hold(&limit, 4).is_none() && limit.used() == 7);
        drop(held);
        assert_eq!(limit.used(), 0);
    }

    #[test]
    fn takes_what_fits_and_no_more() {
        let limit = Limit::new(10);
        assert!(limit.take(6) && !limit.take(5) && !limit.take(usize::MAX));
        assert!(limit.is_tight());
        limit.give(6);
        assert_eq!((limit.used(), limit.refused(), limit.is_tight()), (0, 2, false));
    }
}
