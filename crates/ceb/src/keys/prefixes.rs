//! Networks: two places a bit, of which the first is 1 if the prefix goes on there.
//!
//! So a network comes before those inside it, and an address, which is a prefix of full length, passes on its path all
//! the networks that contain it.

use crate::keys::{Integer, Keys, Prefixed};
use crate::tree::Full;
use std::marker::PhantomData;

/// First bits of an address: a network, or an address when it has all bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Prefix<A> {
    bits: A,
    length: u8,
}

/// The keys of a tree of networks.
#[derive(Clone, Default, Debug)]
pub struct Prefixes<A>(PhantomData<A>);

impl<A: Integer> Prefix<A> {
    /// Network of an address; the bits after `length` are dropped.
    pub fn new(address: A, length: u8) -> Prefix<A> {
        let length = length.min(A::BITS);
        Prefix { bits: address.truncate(length), length }
    }

    /// Network of a single address.
    pub fn host(address: A) -> Prefix<A> {
        Prefix { bits: address, length: A::BITS }
    }

    /// First address of the network.
    pub fn address(self) -> A {
        self.bits
    }

    /// Number of its bits.
    pub fn length(self) -> u8 {
        self.length
    }
}

impl<A: Integer> Keys for Prefixes<A> {
    type Key<'a>
        = Prefix<A>
    where
        A: 'a;

    type Held = (A::Held, u8);

    #[inline]
    fn key(&self, _: u32, held: &(A::Held, u8)) -> Prefix<A> {
        Prefix { bits: A::read(held.0), length: held.1 }
    }

    fn hold(&mut self, _: u32, key: Prefix<A>) -> Result<(A::Held, u8), Full> {
        Ok((key.bits.write(), key.length))
    }

    #[inline]
    fn side(key: Prefix<A>, at: u32) -> bool {
        let bit = at >> 1;
        // Bits after a prefix's end are zero, as the places there.
        bit < u32::from(key.length) && (Prefixes::<A>::is_end(at) || key.bits.bit(bit))
    }

    #[inline]
    fn differ(a: Prefix<A>, b: Prefix<A>) -> Option<u32> {
        let (common, shorter) = (a.bits.common(b.bits), u32::from(a.length.min(b.length)));
        if common < shorter {
            return Some(common << 1 | 1);
        }
        (a.length != b.length).then_some(shorter << 1)
    }
}

impl<A: Integer> Prefixed for Prefixes<A> {
    #[inline]
    fn is_end(at: u32) -> bool {
        at & 1 == 0
    }
}
