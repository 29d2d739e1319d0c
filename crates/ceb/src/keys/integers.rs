//! Integers: a place is a bit, the highest one first.

use crate::keys::Keys;
use crate::tree::Full;

/// The keys of a tree of integers.
#[derive(Clone, Default, Debug)]
pub struct Integers<T>(Vec<T>);

/// An unsigned integer that can be a key.
pub trait Integer: Copy + Eq {
    /// The bit at a place, counted from the highest.
    fn bit(self, at: u32) -> bool;
    /// How many bits at the front are the same.
    fn common(self, other: Self) -> u32;
    /// Without what comes after the first so many bits.
    fn truncate(self, bits: u8) -> Self;
    /// The number of its bits.
    const BITS: u8;
}

impl<T: Integer> Keys for Integers<T> {
    type Key<'a>
        = T
    where
        T: 'a;

    #[inline]
    fn key(&self, slot: u32) -> T {
        self.0[slot as usize]
    }

    fn hold(&mut self, slot: u32, key: T) -> Result<(), Full> {
        match self.0.get_mut(slot as usize) {
            Some(held) => *held = key,
            None => self.0.push(key),
        }
        Ok(())
    }

    fn release(&mut self, _: u32) {}

    fn clear(&mut self) {
        self.0 = Vec::new();
    }

    #[inline]
    fn side(key: T, at: u32) -> bool {
        key.bit(at)
    }

    #[inline]
    fn differ(a: T, b: T) -> Option<u32> {
        (a != b).then(|| a.common(b))
    }
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Integer for $type {
            #[inline]
            fn bit(self, at: u32) -> bool {
                // Modulo the width, !at is BITS - 1 - at.
                self.wrapping_shr(!at) & 1 != 0
            }

            #[inline]
            fn common(self, other: $type) -> u32 {
                (self ^ other).leading_zeros()
            }

            fn truncate(self, bits: u8) -> $type {
                self & !<$type>::MAX.checked_shr(u32::from(bits)).unwrap_or(0)
            }

            const BITS: u8 = <$type>::BITS as u8;
        }
    )*};
}

integer! { u32 u64 u128 }
