//! Requirements of a tree for a kind of keys.
//!
//! A key is a sequence of bits, its places counted from the front. The kind defines the meaning of a bit. Keys that can
//! begin with one another need places for "the key goes on". So the shorter comes first and no key is a prefix of
//! another.

pub(crate) mod blocks;
pub(crate) mod integers;
pub(crate) mod prefixes;
pub(crate) mod text;

use crate::tree::Full;
pub(crate) use integers::Integer;
use std::fmt::Debug;

/// A kind of keys, and the state that the keys of a tree share.
///
/// The held part of a key is kept beside its node, on the path of every descent. It is the key itself if that is small
/// and of one size, or the key's place in memory.
///
/// Two keys are equal, or there is a first place at which [`Keys::side`] differs; the key with `false` is the lesser.
/// Places are less than 2^32 - 2. The trees of this crate are right for any kind that keeps this contract; for others
/// they find the wrong entries, or none.
pub trait Keys {
    /// A key as callers pass it.
    type Key<'a>: Copy
    where
        Self: 'a;

    /// Held part of a key, beside its node.
    type Held: Copy + Debug + 'static;

    /// Whether keys are compared on the way down, not only at its end: worth it where the whole key is held.
    const COMPARED_EARLY: bool = false;

    /// The key of an entry.
    fn key<'a>(&'a self, slot: u32, held: &'a Self::Held) -> Self::Key<'a>;

    /// Stores a key for an entry: a slot that was used and released, or the next.
    fn hold(&mut self, slot: u32, key: Self::Key<'_>) -> Result<Self::Held, Full>;

    /// Releases the key of an entry. Returns whether [`Keys::tidy`] is worth its time now.
    fn release(&mut self, _: &Self::Held) -> bool {
        false
    }

    /// Frees the memory of released keys; gets the held parts of all keys.
    fn tidy<'a>(&mut self, _: impl Iterator<Item = &'a mut Self::Held>) {}

    /// Drops all keys, and frees the memory.
    fn clear(&mut self) {}

    /// Whether a key can be held at all, asked before a look-up descends: whether it begins as all keys do. Always
    /// true, where that is not known.
    #[inline]
    fn can_hold(&self, _: Self::Key<'_>) -> bool {
        true
    }

    /// Bit at a place of a key.
    fn side(key: Self::Key<'_>, at: u32) -> bool;

    /// First place at which two keys differ, if they do.
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

/// Number of equal bytes at the front.
fn common(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count() * 8;
    let rest = a.iter().zip(b).skip(words).take_while(|(a, b)| a == b).count();
    words + rest
}
