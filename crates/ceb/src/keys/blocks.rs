//! Byte strings of one length: a place is a bit, the highest one of the first byte first.

use crate::keys::Keys;
use crate::tree::Full;

/// Keys of a tree of blocks whose length is known at compile time.
#[derive(Clone, Default, Debug)]
pub struct Blocks<const N: usize>;

/// Keys of a tree of blocks whose length is known at run time.
#[derive(Clone, Debug)]
pub struct Slices {
    length: usize,
    bytes: Vec<u8>,
}

impl<const N: usize> Keys for Blocks<N> {
    type Key<'a> = &'a [u8; N];

    type Held = [u8; N];

    #[inline]
    fn key<'a>(&'a self, _: u32, held: &'a [u8; N]) -> &'a [u8; N] {
        held
    }

    fn hold(&mut self, _: u32, key: &[u8; N]) -> Result<[u8; N], Full> {
        Ok(*key)
    }

    #[inline]
    fn side(key: &[u8; N], at: u32) -> bool {
        bit(key, at)
    }

    fn differ(a: &[u8; N], b: &[u8; N]) -> Option<u32> {
        differ(a, b)
    }

    #[inline]
    fn same(a: &[u8; N], b: &[u8; N]) -> bool {
        a == b
    }
}

impl Slices {
    /// Creates the keys of so many bytes, at most [`Slices::MAX_LENGTH`]; other keys are never found, and not inserted.
    pub fn new(length: usize) -> Slices {
        Slices { length: length.min(Slices::MAX_LENGTH), bytes: Vec::new() }
    }

    /// Limit of a key's length: 16 MiB.
    pub const MAX_LENGTH: usize = 1 << 24;
}

impl Keys for Slices {
    type Key<'a> = &'a [u8];

    /// A key's address follows from its entry's slot.
    type Held = ();

    #[inline]
    fn key<'a>(&'a self, slot: u32, _: &'a ()) -> &'a [u8] {
        let start = slot as usize * self.length;
        &self.bytes[start..start + self.length]
    }

    fn hold(&mut self, slot: u32, key: &[u8]) -> Result<(), Full> {
        if key.len() != self.length {
            return Err(Full);
        }
        let start = slot as usize * self.length;
        match self.bytes.get_mut(start..start + self.length) {
            Some(held) => held.copy_from_slice(key),
            None => self.bytes.extend_from_slice(key),
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.bytes = Vec::new();
    }

    #[inline]
    fn side(key: &[u8], at: u32) -> bool {
        bit(key, at)
    }

    /// A key of another length differs at the front, or where the shorter ends.
    fn differ(a: &[u8], b: &[u8]) -> Option<u32> {
        differ(a, b)
    }

    #[inline]
    fn same(a: &[u8], b: &[u8]) -> bool {
        a == b
    }
}

#[inline]
fn bit(key: &[u8], at: u32) -> bool {
    key.get(at as usize >> 3).is_some_and(|byte| byte >> (!at & 7) & 1 != 0)
}

fn differ(a: &[u8], b: &[u8]) -> Option<u32> {
    let index = crate::keys::common(a, b);
    match (a.get(index), b.get(index)) {
        (Some(a), Some(b)) => Some((index as u32) << 3 | (a ^ b).leading_zeros()),
        (None, None) => None,
        _ => Some((index as u32) << 3),
    }
}
