//! Algorithms that map equal keys to equal servers: `balance source` and `balance uri`.
//!
//! The functions are those of HAProxy (its manual's `hash-type`), so that a cluster of both sends the same key to the same server.

use super::settings::{Hash, HashFunction, RingKey, UriKey};
use crate::server::Server;
use std::net::IpAddr;
use terse_message::Request;
use terse_sample::convert::hash::wt6;
use xxhash_rust::xxh32::xxh32;

/// Hash of a client's address.
pub(super) fn of_source(source: IpAddr, hash: Hash) -> u32 {
    let number = match source {
        IpAddr::V4(v4) => v4.to_bits(),
        IpAddr::V6(v6) => v6.octets().as_chunks::<4>().0.iter().fold(0, |number, word| number ^ u32::from_be_bytes(*word)),
    };
    if hash.avalanche { avalanche(number) } else { number }
}

/// Hash of a request's target.
pub(super) fn of_target(request: &Request, key: UriKey, hash: Hash) -> u32 {
    let target = if key.path_only { request.path_and_query() } else { request.target() };
    of_bytes(looked_at(target, key), hash)
}

/// Hashed part of the target.
fn looked_at(target: &[u8], key: UriKey) -> &[u8] {
    let target = if key.len == 0 { target } else { &target[..target.len().min(key.len)] };
    let mut slashes = 0;
    let end = target.iter().position(|byte| match byte {
        b'/' => {
            slashes += 1;
            // The first slash begins the first directory.
            key.depth != 0 && slashes == key.depth + 1
        }
        b'?' => !key.whole,
        _ => false,
    });
    &target[..end.unwrap_or(target.len())]
}

/// Label before the last of a host's name: `example` of `www.example.org`. Without two dots, the part before the last
/// dot; without any, or where that part is empty, all. As in HAProxy, a label without letters is its dot.
pub(super) fn domain(host: &[u8]) -> &[u8] {
    let Some(end) = host.iter().rposition(|byte| *byte == b'.').filter(|end| *end > 0) else { return host };
    let start = host[..end - 1].iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot + 1);
    &host[start..end]
}

/// Hash of a key.
pub(super) fn of_bytes(bytes: &[u8], hash: Hash) -> u32 {
    let number = match hash.function {
        HashFunction::Sdbm => bytes.iter().fold(0u32, |number, byte| number.wrapping_mul(65599).wrapping_add(u32::from(*byte))),
        HashFunction::Djb2 => bytes.iter().fold(5381u32, |number, byte| number.wrapping_mul(33).wrapping_add(u32::from(*byte))),
        HashFunction::Wt6 => wt6(bytes),
        HashFunction::Crc32 => crc32(bytes),
        HashFunction::None => number_of(bytes),
    };
    if hash.avalanche { avalanche(number) } else { number }
}

/// The CRC of Ethernet and gzip, bit by bit: keys are short.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    })
}

/// Number at the start of the key, its lower 32 bits.
fn number_of(bytes: &[u8]) -> u32 {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0u32, |number, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
    if negative { number.wrapping_neg() } else { number }
}

/// Mixes every bit into every other: Bob Jenkins' integer hash with six shifts, then a prime near three quarters of the range.
pub(super) fn avalanche(number: u32) -> u32 {
    let a = number.wrapping_add(0x7ED5_5D16).wrapping_add(number << 12);
    let a = (a ^ 0xC761_C23C) ^ (a >> 19);
    let a = a.wrapping_add(0x1656_67B1).wrapping_add(a << 5);
    let a = a.wrapping_add(0xD3A2_646C) ^ (a << 9);
    let a = a.wrapping_add(0xFD70_46C5).wrapping_add(a << 3);
    let a = (a ^ 0xB55A_4F09) ^ (a >> 16);
    a.wrapping_mul(3_221_225_473)
}

/// Places of servers on a circle of 32-bit numbers, for `hash-type consistent`.
#[derive(Debug)]
pub(super) struct Ring(Vec<(u32, u32)>);

impl Ring {
    /// A ring of (server, seed of its places, share). A server has a place for each sixteenth of its weight.
    pub(super) fn new(shares: impl Iterator<Item = (u32, u32, u32)>) -> Ring {
        let mut places: Vec<(u32, u32)> =
            shares.flat_map(|(server, seed, share)| (0..share).map(move |n| (avalanche(seed.wrapping_add(n)), server))).collect();
        places.sort_unstable();
        Ring(places)
    }

    /// The servers from the place nearest to that number on, all round.
    pub(super) fn from(&self, number: u32) -> impl Iterator<Item = u32> {
        let after = self.0.partition_point(|(place, _)| *place < number);
        let (after, before) = match self.0.len() {
            0 => (0, 0),
            len => (after % len, (after + len - 1) % len),
        };
        let distance = |at: usize| self.0.get(at).map_or(0, |(place, _)| *place);
        let nearer = number.wrapping_sub(distance(before)) <= distance(after).wrapping_sub(number);
        let start = if nearer { before } else { after };
        self.0[start..].iter().chain(&self.0[..start]).map(|(_, server)| *server)
    }
}

/// Seed of a server's places on the ring, as HAProxy has it (`hash-key`).
pub(super) fn seed(server: &Server) -> u32 {
    let settings = server.settings();
    let of_address = |with_port: bool| {
        let address = server.address().destination().filter(|destination| !destination.ip.is_unspecified())?;
        let port = avalanche(u32::from(address.port.number()));
        let start = if with_port { port } else { 0 };
        Some(match address.ip {
            IpAddr::V4(ip) => avalanche(start.wrapping_add(u32::from_ne_bytes(ip.octets()))),
            IpAddr::V6(ip) => xxh32(&ip.octets(), start),
        })
    };
    let seed = match settings.ring_key {
        RingKey::Id => None,
        RingKey::Id32 => Some(avalanche(server.id().to_be())),
        RingKey::Address => of_address(false),
        RingKey::AddressAndPort => of_address(true),
        RingKey::Guid => settings.guid.as_ref().map(|guid| xxh32(guid.name.as_bytes(), 0)),
    };
    seed.unwrap_or_else(|| server.id().wrapping_mul(PLACES_OF_A_SERVER))
}

/// The largest weight, 256, times 16: no two servers share a number before it is mixed.
const PLACES_OF_A_SERVER: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(function: HashFunction) -> Hash {
        Hash { function, ..Hash::default() }
    }

    #[test]
    fn functions_are_the_known_ones() {
        assert_eq!(of_bytes(b"123456789", hash(HashFunction::Crc32)), 0xCBF4_3926);
        assert_eq!(of_bytes(b"a", hash(HashFunction::Djb2)), 177_670);
        assert_eq!(of_bytes(b"ab", hash(HashFunction::Sdbm)), 97 * 65599 + 98);
        assert_eq!(of_bytes(b"-12x", hash(HashFunction::None)), 12u32.wrapping_neg());
    }

    #[test]
    fn targets_are_cut_as_told() {
        let cut = |target: &str, key: UriKey| String::from_utf8(looked_at(target.as_bytes(), key).to_vec()).unwrap();
        let key = UriKey::default();
        assert_eq!(cut("/a/b?c", key), "/a/b");
        assert_eq!(cut("/a/b?c", UriKey { whole: true, ..key }), "/a/b?c");
        assert_eq!(cut("/a/b/c", UriKey { depth: 1, ..key }), "/a");
        assert_eq!(cut("/a/b/c", UriKey { depth: 2, ..key }), "/a/b");
        assert_eq!(cut("/a/b/c", UriKey { len: 3, ..key }), "/a/");
        assert_eq!(cut("/a", UriKey { len: 30, ..key }), "/a");
    }

    #[test]
    fn domains() {
        for (host, label) in [
            ("haproxy.1wt.eu", "1wt"),
            ("1wt.eu", "1wt"),
            ("localhost", "localhost"),
            ("a.b.c.d", "c"),
            ("", ""),
            ("a.", "a"),
            ("a.b.", "b"),
            (".", "."),
            ("..", "."),
            (".a", ".a"),
            ("a..b", "a."),
        ] {
            assert_eq!(domain(host.as_bytes()), label.as_bytes());
        }
    }

    #[test]
    fn sources_of_both_families() {
        assert_eq!(of_source([10, 0, 0, 1].into(), Hash::default()), 0x0A00_0001);
        assert_eq!(of_source("1:0::1:3".parse::<IpAddr>().unwrap(), Hash::default()), 0x0001_0000 ^ 0x0001_0003);
    }

    #[test]
    fn a_ring_moves_only_the_keys_of_a_server_that_goes() {
        let all = Ring::new([(0, 4096, 16), (1, 8192, 16), (2, 12_288, 32)].into_iter());
        let two = Ring::new([(0, 4096, 16), (2, 12_288, 32)].into_iter());
        let mut moved = 0;
        for key in (0..10_000).map(avalanche) {
            let (before, after) = (all.from(key).next().unwrap(), two.from(key).next().unwrap());
            moved += u32::from(before != after);
            assert!(before == after || before == 1);
        }
        assert!((1000..4000).contains(&moved), "{moved}");
        assert_eq!(Ring::new(std::iter::empty()).from(3).next(), None);
        assert_eq!(all.from(3).count(), 64);
    }
}
