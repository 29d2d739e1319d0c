//! A pattern's text, read for one way of matching.

use super::Matching;
use super::network::Network;
use super::numbers::Range;
use crate::argument::mask4;
use crate::regexp::{self, Regexp};
use data_encoding::HEXLOWER_PERMISSIVE;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A pattern, compiled.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// A pattern without meaning: `found`, `bool`.
    Nothing,
    /// A text; in small letters when case is ignored and the index does not look at the original.
    Text(Box<[u8]>),
    /// A range of numbers.
    Range(Range),
    /// A network.
    Network(Network),
    /// A regular expression.
    Regex(Box<Regexp>),
}

/// Looks up the address of a host.
pub(super) type Resolve<'a> = &'a dyn Fn(&str) -> Option<Ipv4Addr>;

impl Pattern {
    /// Parses a pattern. The error is the reason, in HAProxy's words.
    pub(super) fn parse(text: &[u8], matching: Matching, ignore_case: bool, resolve: Resolve<'_>) -> Result<Pattern, String> {
        Ok(match matching {
            Matching::Found | Matching::Bool => Pattern::Nothing,
            Matching::Int | Matching::Len => Pattern::Range(range(text)?),
            Matching::Ip => Pattern::Network(network(text, resolve)?),
            Matching::Reg | Matching::Regm => Pattern::Regex(Box::new(regexp::compile(text, ignore_case)?)),
            Matching::Bin => {
                let bytes = hex(text).ok_or_else(|| wrong(text, "an even number of hexadecimal digits"))?;
                Pattern::Text(bytes.into())
            }
            Matching::Sub if ignore_case => Pattern::Text(text.to_ascii_lowercase().into()),
            _ => Pattern::Text(text.into()),
        })
    }
}

/// `5`, `1:5`, `1:`, `:5`, and the same with `-`, so that `-5` is the range up to 5.
fn range(text: &[u8]) -> Result<Range, String> {
    let invalid = || wrong(text, "a valid number range");
    let Some(at) = text.iter().position(|byte| matches!(byte, b':' | b'-')) else {
        return match number(text) {
            Some(n) => Ok(Range { low: n, high: n }),
            None if text.is_empty() => Err(invalid()),
            None => Err(wrong(text, "a number")),
        };
    };
    let (low, high) = (&text[..at], &text[at + 1..]);
    let low = if low.is_empty() { None } else { Some(number(low).ok_or_else(invalid)?) };
    let high = if high.is_empty() { None } else { Some(number(high).ok_or_else(invalid)?) };
    match (low, high) {
        (None, None) => Err(invalid()),
        (Some(low), Some(high)) if low > high => Err(invalid()),
        (low, high) => Ok(Range { low: low.unwrap_or(i64::MIN), high: high.unwrap_or(i64::MAX) }),
    }
}

/// Decimal digits, or a minus sign before them.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

/// `10.0.0.1`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `2001:db8::/32`, and the name of a host where names are looked up.
fn network(text: &[u8], resolve: Resolve<'_>) -> Result<Network, String> {
    let invalid = || wrong(text, "a valid IPv4 or IPv6 address");
    let text = std::str::from_utf8(text).map_err(|_| invalid())?;
    let (address, mask) = text.rsplit_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
    if let Ok(address) = address.parse::<Ipv6Addr>() {
        let len = mask.map_or(Ok(128), str::parse).ok().filter(|len| *len <= 128).ok_or_else(invalid)?;
        return Ok(Network::V6 { address: address.into(), len });
    }
    let mask = mask.map_or(Some(Ipv4Addr::BROADCAST), mask4).ok_or_else(invalid)?;
    let address = address.parse().ok().or_else(|| resolve(address)).ok_or_else(invalid)?;
    Ok(Network::V4 { address: address.into(), mask: mask.into() })
}

fn wrong(text: &[u8], expected: &str) -> String {
    format!("'{}' is not {expected}", text.escape_ascii())
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(text: &[u8]) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text).ok()
}
