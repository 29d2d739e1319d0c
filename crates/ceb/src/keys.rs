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

/// A kind of keys, and where the keys of one tree are kept.
///
/// Two keys are equal, or there is a first place at which [`Keys::side`] tells them apart; the one with `false` is the lesser.
/// Places are less than 2^32 - 3. The trees of this crate are right for any kind that keeps this promise, and for one that does
/// not they find the wrong entries, or none.
pub trait Keys {
    /// A key on its way in or out: what callers pass.
    type Key<'a>: Copy
    where
        Self: 'a;

    /// The key of an entry.
    fn key(&self, slot: u32) -> Self::Key<'_>;

    /// Keeps a key for an entry: a slot that was used and released, or the next one.
    fn hold(&mut self, slot: u32, key: Self::Key<'_>) -> Result<(), Full>;

    /// The key of an entry is not needed any more.
    fn release(&mut self, slot: u32);

    /// Forgets all keys, and gives the memory back.
    fn clear(&mut self);

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
