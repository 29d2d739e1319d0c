//! Networks: `ip`. An address matches the longest network that it lies in, by one look-up for each length of prefix in use.
//!
//! An IPv4 address is looked for among IPv4 networks, then as `::ffff:a.b.c.d` among IPv6 ones. An IPv6 address is looked
//! for among IPv6 networks, then, if it holds an IPv4 address, among IPv4 ones. IPv4 masks with holes have no length: they
//! are tried last, in their order.

use super::entry::Posting;
use super::lengths::Lengths;
use super::ordered::Ordered;
use super::table::Table;
use crate::value::{Type, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and which of its bits count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Network {
    /// An IPv4 network.
    V4 { address: u32, mask: u32 },
    /// An IPv6 network.
    V6 { address: u128, len: u8 },
}

/// Networks.
#[derive(Clone, Debug)]
pub(super) struct Networks {
    v4: Prefixes,
    v6: Prefixes,
    with_holes: Ordered<(u32, u32)>,
}

impl Networks {
    /// An empty set.
    pub(super) fn new() -> Networks {
        Networks { v4: Prefixes::new(4), v6: Prefixes::new(16), with_holes: Ordered::default() }
    }

    /// Adds a network; it replaces one of the same number.
    pub(super) fn insert(&mut self, network: Network, posting: Posting) {
        match network {
            Network::V4 { address, mask } => match prefix_len(mask) {
                Some(len) => self.v4.insert(widen(address), len, posting),
                None => self.with_holes.insert((address & mask, mask), posting),
            },
            Network::V6 { address, len } => self.v6.insert(address, usize::from(len), posting),
        }
    }

    /// Removes the networks of some numbers, in ascending order.
    pub(super) fn remove(&mut self, network: Network, ids: &[u64]) {
        match network {
            Network::V4 { address, mask } => match prefix_len(mask) {
                Some(len) => self.v4.remove(widen(address), len, ids),
                None => self.with_holes.remove(ids),
            },
            Network::V6 { address, len } => self.v6.remove(address, usize::from(len), ids),
        }
    }

    /// The entry of the network that an address lies in.
    pub(super) fn find(&self, address: IpAddr) -> Option<&Posting> {
        match address {
            IpAddr::V4(v4) => self.find_v4(v4).or_else(|| self.find_v6(v4.to_ipv6_mapped())).or_else(|| self.find_hole(v4)),
            IpAddr::V6(v6) => {
                self.find_v6(v6).or_else(|| match Value::Addr(address).cast(Type::Ipv4).and_then(Value::into_addr)? {
                    IpAddr::V4(v4) => self.find_v4(v4).or_else(|| self.find_hole(v4)),
                    IpAddr::V6(_) => None,
                })
            }
        }
    }

    fn find_v4(&self, address: Ipv4Addr) -> Option<&Posting> {
        self.v4.find(widen(address.into()))
    }

    fn find_v6(&self, address: Ipv6Addr) -> Option<&Posting> {
        self.v6.find(address.into())
    }

    fn find_hole(&self, address: Ipv4Addr) -> Option<&Posting> {
        let address = u32::from(address);
        self.with_holes.find(|(network, mask)| address & mask == *network)
    }
}

/// Networks by the first bits of a number.
#[derive(Clone, Debug)]
struct Prefixes {
    /// Bytes of an address.
    bytes: usize,
    table: Table,
    lengths: Lengths,
}

impl Prefixes {
    fn new(bytes: usize) -> Prefixes {
        Prefixes { bytes, table: Table::new(), lengths: Lengths::default() }
    }

    fn insert(&mut self, bits: u128, len: usize, posting: Posting) {
        if self.table.insert(&key(bits, len)[16 - self.bytes..], posting) {
            self.lengths.add(len);
        }
    }

    fn remove(&mut self, bits: u128, len: usize, ids: &[u64]) {
        self.lengths.remove(len, self.table.remove(&key(bits, len)[16 - self.bytes..], ids));
    }

    fn find(&self, bits: u128) -> Option<&Posting> {
        self.lengths.up_to(128).rev().find_map(|len| self.table.find(&key(bits, len)[16 - self.bytes..]))
    }
}

/// The bits of a prefix, last byte first, and its length: short addresses make short keys of their last bytes.
fn key(bits: u128, len: usize) -> [u8; 17] {
    let mask = u128::MAX.checked_shl(128 - len as u32).unwrap_or(0);
    let mut key = [len as u8; 17];
    key[..16].copy_from_slice(&(bits & mask).to_le_bytes());
    key
}

/// An IPv4 address as the first bits of a number.
fn widen(address: u32) -> u128 {
    u128::from(address) << 96
}

/// The length of a mask without holes.
fn prefix_len(mask: u32) -> Option<usize> {
    (mask.leading_ones() == mask.count_ones()).then_some(mask.leading_ones() as usize)
}
