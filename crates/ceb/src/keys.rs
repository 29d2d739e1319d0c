//! What a tree must know of a kind of keys.
//!
//! A key is a row of bits, its places counted from the front. What a bit is, is up to the kind: keys that can begin with one
//! another need places that say "here it goes on", so that the shorter one comes first and no key is a part of another.

pub(crate) mod blocks;
pub(crate) mod integers;
pub(crate) mod prefixes;
pub(crate) mod text;

use crate::tree::Full;
pub(crate) use integers::Integer;
use std::fmt::Debug;

/// A kind of keys, and what the keys of one tree share.
///
/// What is held of a key lies beside its node, on the way of every descent: the key itself if it is small and of one size, or
/// where it is.
///
/// Two keys are equal, or there is a first place at which [`Keys::side`] tells them apart; the one with `false` is the lesser.
/// Places are less than 2^32 - 2. The trees of this crate are right for any kind that keeps this promise, and for one that does
/// not they find the wrong entries, or none.
pub trait Keys {
    /// A key on its way in or out: what callers pass.
    type Key<'a>: Copy
    where
        Self: 'a;

    /// What is held of a key beside its node.
    type Held: Copy + Debug + 'static;

    /// Whether keys are compared on the way down, not only at its end: worth it where the whole key is held.
    const COMPARED_EARLY: bool = false;

    /// The key of an entry.
    fn key<'a>(&'a self, slot: u32, held: &'a Self::Held) -> Self::Key<'a>;

    /// Keeps a key for an entry: a slot that was used and released, or the next one.
    fn hold(&mut self, slot: u32, key: Self::Key<'_>) -> Result<Self::Held, Full>;

    /// The key of an entry is not needed any more. Whether [`Keys::tidy`] is worth its time now.
    fn release(&mut self, _: &Self::Held) -> bool {
        false
    }

    /// Gives back what released keys have left; gets all that is held.
    fn tidy<'a>(&mut self, _: impl Iterator<Item = &'a mut Self::Held>) {}

    /// Forgets all keys, and gives the memory back.
    fn clear(&mut self) {}

    /// Whether a key can be held at all, asked before a look-up goes down: it begins as all keys do. Always, where that is not known.
    #[inline]
    fn can_hold(&self, _: Self::Key<'_>) -> bool {
        true
    }

    /// What stands at a place of a key.
    fn side(key: Self::Key<'_>, at: u32) -> bool;

    /// The first place at which two keys differ, if they do.
    fn differ(a: Self::Key<'_>, b: Self::Key<'_>) -> Option<u32>;

    /// Whether two keys are equal.
    #[inline]
    fn same(a: Self::Key<'_>, b: Self::Key<'_>) -> bool {
        Self::differ(a, b).is_none()
    }
}

/// Keys that can begin with one another.
pub trait Prefixed: Keys {
    /// Whether `false` at this place means that the key has ended there.
    fn is_end(at: u32) -> bool;
}

/// How many bytes at the front are the same.
fn common(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count() * 8;
    let rest = a.iter().zip(b).skip(words).take_while(|(a, b)| a == b).count();
    words + rest
}
