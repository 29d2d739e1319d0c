//! Version 2.
//!
//! ```text
//!   0  signature (12)    12 version and command   13 family and transport   14 length of the rest (2)
//!  16  addresses and ports (12 for IPv4, 36 for IPv6, 216 for unix sockets)
//!      fields: type (1), length (2), value
//! ```
//!
//! Parts that a receiver need not know are passed over by their length: all of `LOCAL`, whatever its family, and families
//! without an address of TCP. Fields are looked for after addresses of such a family; bytes that are no fields there are
//! passed over, too.

use super::{Announced, Ends, Wrong, begins_alike, in_one_family, kind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes before the addresses.
const FIXED: usize = 16;
const VERSION: u8 = 0x20;
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const UNSPECIFIED: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
const IPV4_BYTES: usize = 12;
const IPV6_BYTES: usize = 36;
const UNIX_BYTES: usize = 216;
/// A field's type and length.
const FIELD_HEAD: usize = 3;
/// HAProxy's limits of the kept bytes of a field.
const MOST_VALUE_BYTES: usize = 1024;
const MOST_AUTHORITY_BYTES: usize = 255;
const MOST_ID_BYTES: usize = 128;

pub(super) fn parse(bytes: &[u8]) -> Result<Option<(usize, Announced)>, Wrong> {
    if !begins_alike(bytes, SIGNATURE) {
        return Err(Wrong::NoHead);
    }
    if bytes.get(12).is_some_and(|byte| byte & 0xf0 != VERSION) {
        return Err(Wrong::NoHead);
    }
    let Some(fixed) = bytes.first_chunk::<FIXED>() else { return Ok(None) };
    let length = FIXED + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    let Some(head) = bytes.get(..length) else { return Ok(None) };
    let (addresses, rest) = match (fixed[12], fixed[13]) {
        (PROXY, TCP4) => {
            let address = |at: usize| head.get(at..at + 4)?.first_chunk::<4>().map(|ip| Ipv4Addr::from(*ip).into());
            (Some(pair(head, IPV4_BYTES, address(16), address(20))?), head.get(FIXED + IPV4_BYTES..))
        }
        (PROXY, TCP6) => {
            let address = |at: usize| head.get(at..at + 16)?.first_chunk::<16>().map(|ip| Ipv6Addr::from(*ip).into());
            (Some(pair(head, IPV6_BYTES, address(16), address(32))?), head.get(FIXED + IPV6_BYTES..))
        }
        (LOCAL, family) => return passed_over(head, address_bytes(family).unwrap_or(0)),
        (PROXY, family) => return passed_over(head, address_bytes(family).ok_or(Wrong::Malformed)?),
        _ => return Err(Wrong::Malformed),
    };
    let fields = rest.unwrap_or_default();
    check_fields(head, fields)?;
    Ok(Some((length, Announced { addresses, fields: fields.into() })))
}

/// Bytes of the addresses of a family and a transport; `None` for one that the protocol does not know.
fn address_bytes(family: u8) -> Option<usize> {
    match (family >> 4, family & 0xf) {
        (_, 3..) => None,
        (0, _) => Some(0),
        (1, _) => Some(IPV4_BYTES),
        (2, _) => Some(IPV6_BYTES),
        (3, _) => Some(UNIX_BYTES),
        _ => None,
    }
}

/// A head without addresses. A checksum that is wrong is an error here, too.
fn passed_over(head: &[u8], addresses: usize) -> Result<Option<(usize, Announced)>, Wrong> {
    let fields = head.get(FIXED + addresses..).filter(|fields| Fields(fields).all(|field| field.is_ok())).unwrap_or_default();
    let fields = match check_fields(head, fields) {
        Ok(()) => fields,
        Err(Wrong::Checksum) => return Err(Wrong::Checksum),
        Err(_) => &[],
    };
    Ok(Some((head.len(), Announced { addresses: None, fields: fields.into() })))
}

/// Checks the fields that end a head.
fn check_fields(head: &[u8], fields: &[u8]) -> Result<(), Wrong> {
    let (mut at, mut checked) = (head.len() - fields.len(), false);
    for field in Fields(fields) {
        let (field_kind, value) = field?;
        at += FIELD_HEAD;
        let (least, most) = match field_kind {
            kind::CRC32C => (4, 4),
            kind::AUTHORITY => (0, MOST_AUTHORITY_BYTES),
            kind::UNIQUE_ID => (0, MOST_ID_BYTES),
            _ => (0, MOST_VALUE_BYTES),
        };
        match value.len() {
            length if length > most && field_kind != kind::CRC32C => return Err(Wrong::TooLong),
            length if !(least..=most).contains(&length) => return Err(Wrong::Malformed),
            _ => {}
        }
        if field_kind == kind::CRC32C {
            // Each would be a pass over the whole head; a single one is enough.
            if std::mem::replace(&mut checked, true) {
                return Err(Wrong::Checksum);
            }
            check(head, at)?;
        }
        at += value.len();
    }
    Ok(())
}

fn pair(head: &[u8], bytes: usize, from: Option<IpAddr>, to: Option<IpAddr>) -> Result<(SocketAddr, SocketAddr), Wrong> {
    let ports = head.get(FIXED + bytes - 4..FIXED + bytes).and_then(|ports| ports.first_chunk::<4>());
    let (Some(from), Some(to), Some(ports)) = (from, to, ports) else { return Err(Wrong::Malformed) };
    let port = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    Ok((SocketAddr::new(from, port(ports[0], ports[1])), SocketAddr::new(to, port(ports[2], ports[3]))))
}

/// The checksum covers the head with zeros in its own place.
fn check(head: &[u8], at: usize) -> Result<(), Wrong> {
    let (before, rest) = head.split_at(at);
    let (sum, behind) = rest.split_at(4.min(rest.len()));
    let state = crc32c(crc32c(crc32c(!0, before), &[0; 4]), behind);
    if (!state).to_be_bytes() == *sum { Ok(()) } else { Err(Wrong::Checksum) }
}

/// Fields, one after the other; an error ends them.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u8, &'a [u8]), Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        let value = |[kind, high, low]: [u8; FIELD_HEAD]| {
            let end = FIELD_HEAD + usize::from(u16::from_be_bytes([high, low]));
            Some((kind, bytes.get(FIELD_HEAD..end)?, &bytes[end..]))
        };
        let Some((kind, value, rest)) = bytes.first_chunk().and_then(|head| value(*head)) else {
            return Some(Err(Wrong::Malformed));
        };
        self.0 = rest;
        Some(Ok((kind, value)))
    }
}

/// Writes a head: the addresses, then fields in the order in which they come.
#[derive(Debug)]
pub struct Writer {
    head: Vec<u8>,
    checksum_at: Option<usize>,
}

impl Writer {
    /// A connection on behalf of a client; without two addresses, on the proxy's own.
    pub fn new(addresses: Ends) -> Writer {
        let mut head = SIGNATURE.to_vec();
        match addresses.map(in_one_family) {
            None => head.extend_from_slice(&[LOCAL, UNSPECIFIED, 0, 0]),
            Some((from, to)) => {
                head.extend_from_slice(&[PROXY, if from.is_ipv4() { TCP4 } else { TCP6 }, 0, 0]);
                for address in [from, to] {
                    match address.ip() {
                        IpAddr::V4(ip) => head.extend_from_slice(&ip.octets()),
                        IpAddr::V6(ip) => head.extend_from_slice(&ip.octets()),
                    }
                }
                for address in [from, to] {
                    head.extend_from_slice(&address.port().to_be_bytes());
                }
            }
        }
        Writer { head, checksum_at: None }
    }

    /// Adds a field; a field that would make the head longer than its length can tell is left out.
    pub fn field(&mut self, kind: u8, value: &[u8]) {
        let room = usize::from(u16::MAX) + FIXED;
        if let Ok(length) = u16::try_from(value.len())
            && self.head.len() + FIELD_HEAD + value.len() <= room
        {
            self.head.push(kind);
            self.head.extend_from_slice(&length.to_be_bytes());
            self.head.extend_from_slice(value);
        }
    }

    /// Adds the checksum of the whole head.
    pub fn checksum(&mut self) {
        let before = self.head.len();
        self.field(kind::CRC32C, &[0; 4]);
        self.checksum_at = (self.head.len() > before).then_some(before + FIELD_HEAD);
    }

    /// The head, ready to be sent.
    pub fn finish(mut self) -> Vec<u8> {
        let length = (self.head.len() - FIXED) as u16;
        self.head[14..FIXED].copy_from_slice(&length.to_be_bytes());
        if let Some(at) = self.checksum_at {
            let sum = !crc32c(!0, &self.head);
            self.head[at..at + 4].copy_from_slice(&sum.to_be_bytes());
        }
        self.head
    }
}

/// The Castagnoli polynomial, low bit first: bit by bit, because heads are short and few.
fn crc32c(mut state: u32, bytes: &[u8]) -> u32 {
    for byte in bytes {
        state ^= u32::from(*byte);
        for _ in 0..8 {
            state = state >> 1 ^ (0x82f6_3b78 & (state & 1).wrapping_neg());
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_rfc_3720() {
        assert_eq!(!crc32c(!0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(!crc32c(!0, &[0xff; 32]), 0x62a8_ab43);
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_head_has_one_checksum() {
        let head = |count: usize| {
            let fields = [kind::CRC32C, 0, 4, 0, 0, 0, 0].repeat(count);
            let mut head = [SIGNATURE, &[LOCAL, UNSPECIFIED][..], &(fields.len() as u16).to_be_bytes(), &fields].concat();
            if count > 0 {
                let sum = !crc32c(!0, &head);
                head[FIXED + FIELD_HEAD..FIXED + FIELD_HEAD + 4].copy_from_slice(&sum.to_be_bytes());
            }
            head
        };
        assert!(parse(&head(0)).is_ok() && parse(&head(1)).is_ok());
        assert!(matches!(parse(&head(2)), Err(Wrong::Checksum)));
    }
}
