//! Casts between types: which of them exist, and their results. HAProxy's matrix.

use crate::octets::{Buffer, Octets};
use crate::value::{Type, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a value of type `from` may become one of type `to`; for [`Type::Any`] only the value itself can tell.
pub const fn exists(from: Type, to: Type) -> bool {
    use Type::*;
    matches!(
        (from, to),
        (Any | Str, _)
            | (_, Any)
            | (Bool, Bool | Int | Str | Bin)
            | (Int, Bool | Int | Addr | Ipv4 | Ipv6 | Str | Bin)
            | (Addr, Addr | Ipv4 | Ipv6 | Str | Bin | Int)
            | (Ipv4, Int | Addr | Ipv4 | Ipv6 | Str | Bin)
            | (Ipv6, Addr | Ipv4 | Ipv6 | Str | Bin)
            | (Bin, Str | Bin | Method)
            | (Method, Str | Bin | Method)
    )
}

/// Casts a value; `None` when there is no such cast or the value does not fit.
///
/// A boolean asked for may come as a number and the reverse, as HAProxy has it: both are read by [`Value::into_int`].
#[inline]
pub fn cast(value: Value<'_>, to: Type) -> Option<Value<'_>> {
    match (&value, to) {
        (_, Type::Any) | (Value::Str(_), Type::Str) | (Value::Int(_), Type::Int) => Some(value),
        _ => convert(value, to),
    }
}

fn convert(value: Value<'_>, to: Type) -> Option<Value<'_>> {
    Some(match (value, to) {
        (Value::Bool(b), Type::Bool | Type::Int) => Value::Int(i64::from(b)).normal(to),
        (Value::Int(n), Type::Bool) => Value::Bool(n != 0),
        (Value::Bool(b), Type::Str) => Value::str(if b { b"1" } else { b"0" }),
        (Value::Bool(b), Type::Bin) => Value::Bin(Octets::copy(&i64::from(b).to_be_bytes())),
        (Value::Int(n), Type::Str) => Value::Str(decimal(n)),
        (Value::Int(n), Type::Bin) => Value::Bin(Octets::copy(&n.to_be_bytes())),
        (Value::Int(n), Type::Addr | Type::Ipv4) => Value::Addr(Ipv4Addr::from(n as u32).into()),
        (Value::Int(n), Type::Ipv6) => Value::Addr(Ipv4Addr::from(n as u32).to_ipv6_mapped().into()),
        (Value::Addr(a), Type::Addr) => Value::Addr(a),
        (Value::Addr(IpAddr::V4(a)), Type::Ipv4) => Value::Addr(a.into()),
        (Value::Addr(IpAddr::V6(a)), Type::Ipv6) => Value::Addr(a.into()),
        (Value::Addr(IpAddr::V4(a)), Type::Ipv6) => Value::Addr(a.to_ipv6_mapped().into()),
        (Value::Addr(IpAddr::V6(a)), Type::Ipv4) => Value::Addr(embedded_ipv4(a)?.into()),
        (Value::Addr(IpAddr::V4(a)), Type::Int) => Value::Int(i64::from(u32::from(a))),
        (Value::Addr(a), Type::Str) => Value::Str(address_text(a)),
        (Value::Addr(IpAddr::V4(a)), Type::Bin) => Value::Bin(Octets::copy(&a.octets())),
        (Value::Addr(IpAddr::V6(a)), Type::Bin) => Value::Bin(Octets::copy(&a.octets())),
        (Value::Str(s), Type::Bool) => Value::Bool(leading_int(&s)? != 0),
        (Value::Str(s), Type::Int) => Value::Int(leading_int(&s)?),
        (Value::Str(s), Type::Addr) => Value::Addr(parse_addr(&s)?),
        (Value::Str(s), Type::Ipv4) => return Value::Addr(parse_addr(&s)?).cast(Type::Ipv4),
        (Value::Str(s), Type::Ipv6) => return Value::Addr(parse_addr(&s)?).cast(Type::Ipv6),
        (Value::Str(s), Type::Bin) => Value::Bin(s),
        (Value::Bin(s), Type::Bin) => Value::Bin(s),
        (Value::Bin(s), Type::Str) => {
            let end = memchr::memchr(0, &s).unwrap_or(s.len());
            Value::Str(s.slice(0..end))
        }
        (Value::Str(s) | Value::Bin(s) | Value::Method(s), Type::Method) => Value::Method(s),
        (Value::Method(s), Type::Str) => Value::Str(s),
        (Value::Method(s), Type::Bin) => Value::Bin(s),
        (value @ Value::Str(_), Type::Str) | (value @ Value::Int(_), Type::Int) | (value, Type::Any) => value,
        _ => return None,
    })
}

impl Value<'_> {
    fn normal(self, to: Type) -> Self {
        match (self, to) {
            (Value::Int(n), Type::Bool) => Value::Bool(n != 0),
            (value, _) => value,
        }
    }
}

/// A number in decimal digits, without allocation.
pub fn decimal(n: i64) -> Octets<'static> {
    Octets::copy(digits(n, &mut [0; DIGITS]))
}

/// Appends a number in decimal digits.
pub fn write_decimal(n: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(digits(n, &mut [0; DIGITS]));
}

/// Digits of the least number, with its sign.
const DIGITS: usize = 20;

fn digits(n: i64, room: &mut [u8; DIGITS]) -> &[u8] {
    let (mut at, mut left) = (room.len(), n.unsigned_abs());
    loop {
        at -= 1;
        room[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if n < 0 {
        at -= 1;
        room[at] = b'-';
    }
    &room[at..]
}

/// The number at the start of a text, held at the ends of 64 bits. It is 0 when the text does not begin with a number;
/// `None` for an empty text.
pub fn leading_int(text: &[u8]) -> Option<i64> {
    let (&first, _) = text.split_first()?;
    let (negative, digits) = match first {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let mut n = 0i64;
    for digit in digits.iter().take_while(|b| b.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        n = n.saturating_mul(10);
        n = if negative { n.saturating_sub(digit) } else { n.saturating_add(digit) };
    }
    Some(n)
}

/// The address in a text of traffic. It is read leniently: fields that proxies write name ports beside addresses.
///
/// An IPv4 address stands at the front, with any text after it: `192.0.2.1:51008`. An IPv6 address stands alone, or in
/// brackets with or without a port: `[2001:db8::1]:51008`.
pub fn parse_addr(text: &[u8]) -> Option<IpAddr> {
    let dotted = text.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    if let Some(address) = text.get(..dotted).and_then(|front| std::str::from_utf8(front).ok()?.parse::<Ipv4Addr>().ok()) {
        return Some(address.into());
    }
    match text.strip_prefix(b"[") {
        None => exact_addr(text),
        Some(rest) => {
            let (address, after) = rest.split_at(memchr::memchr(b']', rest)?);
            let is_end = after == b"]" || after.strip_prefix(b"]:").is_some_and(is_port);
            exact_addr(address).filter(|address| is_end && address.is_ipv6())
        }
    }
}

/// The address in an operator's text, in a file or on the stats socket: with a port or without, and no other text.
pub fn whole_addr(text: &[u8]) -> Option<IpAddr> {
    let address = parse_addr(text)?;
    let is_whole = match memchr::memchr(b':', text) {
        _ if address.is_ipv6() => true,
        Some(at) => is_port(&text[at + 1..]) && exact_addr(&text[..at]).is_some(),
        None => exact_addr(text).is_some(),
    };
    is_whole.then_some(address)
}

/// An address without any other text.
pub fn exact_addr(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a text is the number of a port.
pub fn is_port(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| !text.starts_with('+') && text.parse::<u16>().is_ok())
}

/// The address as text, of IPv4 without allocation.
pub fn address_text(address: IpAddr) -> Octets<'static> {
    let IpAddr::V4(address) = address else { return Octets::from(address.to_string().into_bytes()) };
    let mut text = Buffer::new();
    dotted(address, |part| text.extend_from_slice(part));
    Octets::from(text)
}

/// Appends an IPv4 address as text.
pub fn write_ipv4(address: Ipv4Addr, out: &mut Vec<u8>) {
    dotted(address, |part| out.extend_from_slice(part));
}

fn dotted(address: Ipv4Addr, write: impl FnOnce(&[u8])) {
    let (mut text, mut end) = ([b'.'; 16], 0);
    for octet in address.octets() {
        for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
            if octet >= least {
                text[end] = b'0' + octet / unit % 10;
                end += 1;
            }
        }
        end += 1;
    }
    write(&text[..end - 1]);
}

/// The IPv4 address inside an IPv6 one: mapped (`::ffff:1.2.3.4`), compatible (`::1.2.3.4`), 6to4 (`2002::/16`).
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let o = address.octets();
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, _, _] => Some(Ipv4Addr::new(o[12], o[13], o[14], o[15])),
        [0x2002, ..] => Some(Ipv4Addr::new(o[2], o[3], o[4], o[5])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_values() {
        for (value, text) in [
            (Value::Bool(true), "1"),
            (Value::Bool(false), "0"),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::Int(0), "0"),
            (Value::Addr("10.0.0.255".parse().unwrap()), "10.0.0.255"),
            (Value::Addr("255.200.199.101".parse().unwrap()), "255.200.199.101"),
            (Value::Addr("1.9.99.100".parse().unwrap()), "1.9.99.100"),
            (Value::Addr("::1".parse().unwrap()), "::1"),
            (Value::Bin(Octets::from("ab\0c")), "ab"),
            (Value::Method(Octets::from("GET")), "GET"),
        ] {
            assert_eq!(value.clone().into_octets().as_deref(), Some(text.as_bytes()), "{value:?}");
        }
    }

    #[test]
    fn numbers_of_texts() {
        for (text, number) in
            [("", None), ("12", Some(12)), ("-5x", Some(-5)), ("abc", Some(0)), ("99999999999999999999", Some(i64::MAX))]
        {
            assert_eq!(Value::str(text.as_bytes()).into_int(), number, "{text}");
        }
        assert_eq!(Value::Addr("1.2.3.4".parse().unwrap()).into_int(), Some(0x0102_0304));
        assert_eq!(Value::Bool(true).into_int(), Some(1));
    }

    #[test]
    fn addresses() {
        let v6 = Value::str(b"::ffff:1.2.3.4").cast(Type::Ipv4);
        assert_eq!(v6, Some(Value::Addr("1.2.3.4".parse().unwrap())));
        assert_eq!(Value::str(b"2001:db8::1").cast(Type::Ipv4), None);
        assert_eq!(Value::Int(0x0a000001).into_addr(), Some("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn addresses_beside_ports() {
        for (text, address) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1:51008", Some("192.0.2.1")),
            ("192.0.2.1:", Some("192.0.2.1")),
            ("192.0.2.1 ", Some("192.0.2.1")),
            ("192.0.2.1, 192.0.2.2", Some("192.0.2.1")),
            ("192.0.2.1/24", Some("192.0.2.1")),
            ("192.0.2.1x", Some("192.0.2.1")),
            ("192.0.2.1.", None),
            ("192.0.2.1.5", None),
            ("192.0.2.256", None),
            ("192.0.2.01", None),
            ("192.0.2", None),
            (" 192.0.2.1", None),
            ("x192.0.2.1", None),
            ("[192.0.2.1]", None),
            ("2001:db8::1", Some("2001:db8::1")),
            ("::ffff:192.0.2.1", Some("::ffff:192.0.2.1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[2001:db8::1]:51008", Some("2001:db8::1")),
            ("[2001:db8::1]:", None),
            ("[2001:db8::1]:65536", None),
            ("[2001:db8::1]:+1", None),
            ("[2001:db8::1]x", None),
            ("[2001:db8::1", None),
            ("2001:db8::1]", None),
            ("2001:db8::1 ", None),
            ("fe80::1%1", None),
            ("1::", Some("1::")),
            ("", None),
            ("[]", None),
            (":80", None),
        ] {
            assert_eq!(parse_addr(text.as_bytes()), address.map(|address| address.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_operators_address_is_whole() {
        for (text, is_whole) in [
            ("10.0.0.1", true),
            ("10.0.0.1:80", true),
            ("::1", true),
            ("::ffff:10.0.0.1", true),
            ("[::1]", true),
            ("[::1]:80", true),
            ("10.0.0.0/8", false),
            ("10.0.0.1x", false),
            ("10.0.0.1 ", false),
            ("10.0.0.1, 10.0.0.2", false),
            ("10.0.0.1.", false),
            ("10.0.0.1:", false),
            ("10.0.0.1:x", false),
            ("10.0.0.1/8:80", false),
            ("10.0.0.1:80:80", false),
            ("10.0.0.1:65536", false),
            ("::/0", false),
            ("[::1]:x", false),
            ("", false),
        ] {
            let address = is_whole.then(|| parse_addr(text.as_bytes()).unwrap());
            assert_eq!(whole_addr(text.as_bytes()), address, "{text}");
        }
    }

    #[test]
    fn the_matrix_agrees_with_the_casts() {
        use Type::*;
        let values = [
            Value::Bool(true),
            Value::Int(1),
            Value::Addr("1.2.3.4".parse().unwrap()),
            Value::Addr("::ffff:1.2.3.4".parse().unwrap()),
            Value::str(b"1"),
            Value::Bin(Octets::from("1")),
            Value::Method(Octets::from("GET")),
        ];
        for value in values {
            for to in [Any, Bool, Int, Addr, Ipv4, Ipv6, Str, Bin, Method] {
                let from = value.kind();
                if value.clone().cast(to).is_some() {
                    assert!(exists(from, to), "{from:?} to {to:?}");
                } else {
                    assert!(!exists(from, to) || from == Str, "{from:?} to {to:?}");
                }
            }
        }
    }
}
