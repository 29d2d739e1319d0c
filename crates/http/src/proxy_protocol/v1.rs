//! Version 1: `PROXY TCP4 <from> <to> <port> <port>` and the end of a line.

use super::{Announced, Ends, Wrong, in_one_family};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Start of the head.
pub(super) const START: &[u8] = b"PROXY ";
/// The longest line, with its end.
const MOST_BYTES: usize = 107;

pub(super) fn parse(bytes: &[u8]) -> Result<Option<(usize, Announced)>, Wrong> {
    let line = &bytes[..bytes.len().min(MOST_BYTES)];
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() >= MOST_BYTES { Err(Wrong::TooLong) } else { Ok(None) };
    };
    let line = line[..end].strip_suffix(b"\r").ok_or(Wrong::Malformed)?;
    // Bytes that are not UTF-8 are no address, and the text after UNKNOWN does not matter.
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ').skip(1);
    let addresses = match words.next() {
        Some("TCP4") => Some(pair(words, |ip| ip.parse::<Ipv4Addr>().ok().map(IpAddr::V4))?),
        Some("TCP6") => Some(pair(words, |ip| ip.parse::<Ipv6Addr>().ok().map(IpAddr::V6))?),
        // The text that follows is not read: the protocol's document asks for that.
        Some("UNKNOWN") => None,
        _ => return Err(Wrong::Protocol),
    };
    Ok(Some((end + 1, Announced { addresses, ..Announced::default() })))
}

fn pair<'a>(mut words: impl Iterator<Item = &'a str>, ip: fn(&str) -> Option<IpAddr>) -> Result<(SocketAddr, SocketAddr), Wrong> {
    let mut next = || words.next().ok_or(Wrong::Malformed);
    let (from, to) = (next()?, next()?);
    let (from_port, to_port) = (port(next()?), port(next()?));
    let read = |text, port: Option<u16>| Some(SocketAddr::new(ip(text)?, port?));
    match (read(from, from_port), read(to, to_port), words.next()) {
        (Some(from), Some(to), None) => Ok((from, to)),
        _ => Err(Wrong::Malformed),
    }
}

fn port(text: &str) -> Option<u16> {
    // `parse` would take a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

pub(super) fn write(addresses: Ends) -> Vec<u8> {
    let Some((from, to)) = addresses.map(in_one_family) else { return b"PROXY UNKNOWN\r\n".to_vec() };
    let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
    format!("PROXY {family} {} {} {} {}\r\n", from.ip(), to.ip(), from.port(), to.port()).into_bytes()
}
