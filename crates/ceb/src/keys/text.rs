//! Byte strings of any length: sixteen places a byte, of which nine are used.
//!
//! The first place of a byte is 1 if the string goes on there; the next eight are the byte's bits, the highest first.
//! So an end is less than any byte, zero bytes are ordinary bytes, and no string is a prefix of another.
//!
//! The strings of a tree are stored one after the other in one buffer, each after its length. Released strings stay
//! there until they exceed the used ones; then the buffer is rewritten.

use crate::keys::{Keys, Prefixed, common};
use crate::tree::Full;

/// The keys of a tree of byte strings.
#[derive(Clone, Default, Debug)]
pub struct Text {
    bytes: Vec<u8>,
    /// Number of the buffer's bytes that belong to no entry.
    released: usize,
    opening: Opening,
}

/// Common prefix of all keys of a tree, up to eight bytes. Names made after one pattern differ late, and a key that
/// does not fit the pattern is rejected without a descent. Removal leaves it as it is, which may be shorter than
/// possible.
#[derive(Clone, Copy, Default, Debug)]
struct Opening {
    bytes: u64,
    /// Mask with ones where a key must agree.
    mask: u64,
    /// Whether there was a key.
    known: bool,
}

impl Opening {
    /// Narrows the prefix to the part that a further key shares.
    fn meet(&mut self, key: &[u8]) {
        let (bytes, mask) = opening(key);
        if self.known {
            // Whole bytes, the first lowest: those below the first that differs.
            let differ = (self.bytes ^ bytes) | !(self.mask & mask);
            self.mask = 1u64.checked_shl(differ.trailing_zeros() & !7).map_or(u64::MAX, |bit| bit - 1);
        } else {
            (self.bytes, self.mask, self.known) = (bytes, mask, true);
        }
    }

    #[inline]
    fn fits(self, key: &[u8]) -> bool {
        // A key that is shorter than the opening differs in length from all held keys.
        let (bytes, mask) = opening(key);
        (self.bytes ^ bytes) & self.mask == 0 && mask & self.mask == self.mask
    }
}

/// First eight bytes, and a mask with ones where there are any.
#[inline]
fn opening(key: &[u8]) -> (u64, u64) {
    if let Some(bytes) = key.first_chunk() {
        return (u64::from_le_bytes(*bytes), u64::MAX);
    }
    let bytes = key.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte));
    (bytes, (1 << (8 * key.len())) - 1)
}

/// Keys of a tree in which the case of ASCII letters is ignored; they are kept as they came.
#[derive(Clone, Default, Debug)]
pub struct Caseless(Text);

/// Limit of a key's length, in bytes.
const MAX_LENGTH: usize = 1 << 24;
/// A length that does not fit in a byte follows in four.
const LONG: u8 = 255;
/// Released bytes below which a new buffer is not worth its time.
const TOLERATED: usize = 4096;

impl Keys for Text {
    type Key<'a> = &'a [u8];

    /// Offset of its length in the buffer.
    type Held = u32;

    #[inline]
    fn key(&self, _: u32, held: &u32) -> &[u8] {
        read(&self.bytes, *held)
    }

    fn hold(&mut self, _: u32, key: &[u8]) -> Result<u32, Full> {
        let start = u32::try_from(self.bytes.len()).map_err(|_| Full)?;
        if key.len() > MAX_LENGTH {
            return Err(Full);
        }
        write(&mut self.bytes, key);
        self.opening.meet(key);
        Ok(start)
    }

    fn release(&mut self, held: &u32) -> bool {
        self.released += stored(read(&self.bytes, *held).len());
        self.released > TOLERATED && self.released > self.bytes.len() / 2
    }

    fn tidy<'a>(&mut self, held: impl Iterator<Item = &'a mut u32>) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.released);
        for start in held {
            let key = read(&self.bytes, *start);
            *start = bytes.len() as u32;
            write(&mut bytes, key);
        }
        (self.bytes, self.released) = (bytes, 0);
    }

    fn clear(&mut self) {
        *self = Text::default();
    }

    #[inline]
    fn can_hold(&self, key: &[u8]) -> bool {
        self.opening.fits(key)
    }

    #[inline]
    fn side(key: &[u8], at: u32) -> bool {
        side(key.get(at as usize >> 4).copied(), at)
    }

    fn differ(a: &[u8], b: &[u8]) -> Option<u32> {
        let index = common(a, b);
        differ(a.get(index).copied(), b.get(index).copied(), index)
    }

    #[inline]
    fn same(a: &[u8], b: &[u8]) -> bool {
        a == b
    }
}

impl Prefixed for Text {
    #[inline]
    fn is_end(at: u32) -> bool {
        at & 15 == 0
    }
}

impl Keys for Caseless {
    type Key<'a> = &'a [u8];

    type Held = u32;

    #[inline]
    fn key<'a>(&'a self, slot: u32, held: &'a u32) -> &'a [u8] {
        self.0.key(slot, held)
    }

    fn hold(&mut self, slot: u32, key: &[u8]) -> Result<u32, Full> {
        self.0.hold(slot, key)
    }

    fn release(&mut self, held: &u32) -> bool {
        self.0.release(held)
    }

    fn tidy<'a>(&mut self, held: impl Iterator<Item = &'a mut u32>) {
        self.0.tidy(held);
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    fn side(key: &[u8], at: u32) -> bool {
        side(key.get(at as usize >> 4).map(u8::to_ascii_lowercase), at)
    }

    fn differ(a: &[u8], b: &[u8]) -> Option<u32> {
        let index = a.iter().zip(b).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
        let lower = |key: &[u8]| key.get(index).map(u8::to_ascii_lowercase);
        differ(lower(a), lower(b), index)
    }

    #[inline]
    fn same(a: &[u8], b: &[u8]) -> bool {
        a.eq_ignore_ascii_case(b)
    }
}

impl Prefixed for Caseless {
    #[inline]
    fn is_end(at: u32) -> bool {
        Text::is_end(at)
    }
}

#[inline]
fn side(byte: Option<u8>, at: u32) -> bool {
    byte.is_some_and(|byte| (0x100 | u32::from(byte)) >> (8 - (at & 15)) & 1 != 0)
}

fn differ(a: Option<u8>, b: Option<u8>, index: usize) -> Option<u32> {
    let first = (index as u32) << 4;
    match (a, b) {
        (None, None) => None,
        (Some(a), Some(b)) => Some(first + 1 + (a ^ b).leading_zeros()),
        _ => Some(first),
    }
}

fn write(bytes: &mut Vec<u8>, key: &[u8]) {
    match u8::try_from(key.len()) {
        Ok(length) if length != LONG => bytes.push(length),
        _ => {
            bytes.push(LONG);
            bytes.extend_from_slice(&(key.len() as u32).to_ne_bytes());
        }
    }
    bytes.extend_from_slice(key);
}

#[inline]
fn read(bytes: &[u8], start: u32) -> &[u8] {
    match bytes.get(start as usize..) {
        Some([LONG, a, b, c, d, rest @ ..]) => rest.get(..u32::from_ne_bytes([*a, *b, *c, *d]) as usize).unwrap_or_default(),
        Some([length, rest @ ..]) => rest.get(..usize::from(*length)).unwrap_or_default(),
        _ => &[],
    }
}

/// Number of bytes of a string in the buffer.
fn stored(length: usize) -> usize {
    length + if length < usize::from(LONG) { 1 } else { 5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_what_all_keys_share() {
        let mut opening = Opening::default();
        assert!(opening.fits(b"") && opening.fits(b"anything"));
        for (key, shared) in
            [(&b"variable0001"[..], &b"variable"[..]), (b"varnish!", b"var"), (b"var", b"var"), (b"va\0r", b"va"), (b"", b"")]
        {
            opening.meet(key);
            assert_eq!(opening.mask.count_ones() as usize, 8 * shared.len(), "{}", key.escape_ascii());
            assert!(opening.fits(key) && opening.fits(&[shared, b"zzzzzzzzz"].concat()) && opening.fits(shared));
            for at in 0..shared.len() {
                let mut other = shared.to_vec();
                other[at] ^= 1;
                assert!(!opening.fits(&other) && !opening.fits(&shared[..at]));
            }
        }
    }
}
