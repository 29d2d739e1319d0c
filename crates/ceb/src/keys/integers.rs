//! Integers: a place is a bit, the highest one first.

use crate::keys::Keys;
use crate::tree::Full;
use std::fmt::Debug;
use std::marker::PhantomData;

/// The keys of a tree of integers.
#[derive(Clone, Default, Debug)]
pub struct Integers<T>(PhantomData<T>);

/// An unsigned integer that can be a key.
pub trait Integer: Copy + Eq {
    /// The bit at a place, counted from the highest.
    fn bit(self, at: u32) -> bool;
    /// Number of equal bits at the front.
    fn common(self, other: Self) -> u32;
    /// Clears all but the first `bits` bits.
    fn truncate(self, bits: u8) -> Self;
    /// Number of its bits.
    const BITS: u8;
    /// Held form: 32-bit integers, so that a node and 64 bits take 20 bytes, not 24.
    type Held: Copy + Debug + 'static;
    /// Converts to the held form.
    fn write(self) -> Self::Held;
    /// Converts from the held form.
    fn read(held: Self::Held) -> Self;
}

impl<T: Integer> Keys for Integers<T> {
    type Key<'a>
        = T
    where
        T: 'a;

    type Held = T::Held;

    const COMPARED_EARLY: bool = true;

    #[inline]
    fn key(&self, _: u32, held: &T::Held) -> T {
        T::read(*held)
    }

    fn hold(&mut self, _: u32, key: T) -> Result<T::Held, Full> {
        Ok(key.write())
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
    ($($type:ty: $words:literal,)*) => {$(
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

            type Held = [u32; $words];

            #[inline]
            fn write(self) -> [u32; $words] {
                std::array::from_fn(|i| self.wrapping_shr(32 * i as u32) as u32)
            }

            #[inline]
            fn read(held: [u32; $words]) -> $type {
                held.iter().rev().fold(0, |all, word| all.wrapping_shl(31).wrapping_shl(1) | <$type>::from(*word))
            }
        }
    )*};
}

integer! { u32: 1, u64: 2, u128: 4, }
