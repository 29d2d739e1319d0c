//! The PROXY protocol: a head in front of a connection's first byte that names the client of the connection, by HAProxy's
//! `doc/proxy-protocol.txt`. Version 1 is a line of text, version 2 binary with fields (TLVs).
//!
//! Invariant: a written head is read back, any prefix of it is incomplete or wrong, and whatever bytes come, nothing is
//! read beyond the head.

mod v1;
mod v2;

pub use v2::Writer;

use std::net::{IpAddr, SocketAddr};

/// The addresses of a client and of its destination, where they are known.
pub type Ends = Option<(SocketAddr, SocketAddr)>;

/// Content of a head.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Announced {
    /// The addresses of the client and of its destination; `None`: those of the connection itself hold (`UNKNOWN`, `LOCAL`,
    /// families other than IP, and packets).
    pub addresses: Ends,
    /// Version 2's fields: for each its type, its length (two bytes, big end first) and its value. Checked: [`Announced::fields`].
    fields: Box<[u8]>,
}

/// Reason why bytes are no head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// Their beginning is that of no head.
    NoHead,
    /// The protocol is not one of TCP4, TCP6 and UNKNOWN.
    Protocol,
    /// An address, a family, a port, a length or a line's end is wrong.
    Malformed,
    /// The checksum is wrong, or there are several.
    Checksum,
    /// A line has more than 107 bytes, or a field more than are kept (1024; of a host name 255, of an identifier 128).
    TooLong,
}

/// Reads a head from the first bytes of a connection: returns its length and its content. `None`: more bytes are needed.
///
/// # Errors
/// The bytes are no head, however they go on.
pub fn parse(bytes: &[u8]) -> Result<Option<(usize, Announced)>, Wrong> {
    if begins_alike(bytes, v1::START) { v1::parse(bytes) } else { v2::parse(bytes) }
}

/// A head of version 1, from the client to its destination. Without two addresses it is `UNKNOWN`.
pub fn line(addresses: Ends) -> Vec<u8> {
    v1::write(addresses)
}

impl Announced {
    /// Version 2's fields in order: their types and values.
    pub fn fields(&self) -> impl Iterator<Item = (u8, &[u8])> {
        v2::Fields(&self.fields).filter_map(Result::ok)
    }

    /// The value of the first field of a type.
    pub fn field(&self, kind: u8) -> Option<&[u8]> {
        self.fields().find(|(is, _)| *is == kind).map(|(_, value)| value)
    }
}

/// The value of [`kind::SSL`] where there is no TLS: no flags, and no verification.
pub const NO_TLS: [u8; 5] = [0; 5];

/// The types of fields that have a name here.
pub mod kind {
    /// Protocol that the client wants to speak.
    pub const ALPN: u8 = 0x01;
    /// The host name that the client asked for.
    pub const AUTHORITY: u8 = 0x02;
    /// A checksum of the whole head.
    pub const CRC32C: u8 = 0x03;
    /// The identifier of the connection or of the request.
    pub const UNIQUE_ID: u8 = 0x05;
    /// Padding, without meaning.
    pub const NOOP: u8 = 0x04;
    /// Facts of TLS: flags, and fields within the field, whose types follow.
    pub const SSL: u8 = 0x20;
    /// TLS's version.
    pub const SSL_VERSION: u8 = 0x21;
    /// The common name of the client's certificate.
    pub const SSL_CN: u8 = 0x22;
    /// The cipher.
    pub const SSL_CIPHER: u8 = 0x23;
    /// Algorithm of the certificate's signature.
    pub const SSL_SIG_ALG: u8 = 0x24;
    /// Kind of the certificate's key.
    pub const SSL_KEY_ALG: u8 = 0x25;
    /// The name of a network.
    pub const NETNS: u8 = 0x30;
}

/// Whether the bytes are the start, or the start of it.
fn begins_alike(bytes: &[u8], start: &[u8]) -> bool {
    let common = bytes.len().min(start.len());
    bytes[..common] == start[..common]
}

/// Converts both addresses to one family: IPv4 where both are, otherwise IPv4 as a part of IPv6.
fn in_one_family((from, to): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    match (from, to) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) | (SocketAddr::V6(_), SocketAddr::V6(_)) => (from, to),
        _ => (widened(from), widened(to)),
    }
}

fn widened(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests;
