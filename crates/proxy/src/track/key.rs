//! From values to keys of tables, and back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use terse_balance::table::KeyKind;
use terse_sample::{Octets, Type, Value, cast};

/// The type of value that keys of a kind are made of.
pub fn value_type(kind: KeyKind) -> Type {
    match kind {
        KeyKind::Ip => Type::Ipv4,
        KeyKind::Ipv6 => Type::Ipv6,
        KeyKind::Integer => Type::Int,
        KeyKind::Text(_) => Type::Str,
        KeyKind::Binary(_) => Type::Bin,
    }
}

/// Calls `f` with a value's key, when the value can be made one. Addresses, numbers and text that is not cut or filled up are not
/// copied.
pub fn with_key<T>(kind: KeyKind, value: Value<'_>, f: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let value = match (kind, value) {
        // Text is an address of the table's own family, or no key.
        (KeyKind::Ip, Value::Str(text)) => Value::Addr(cast::parse_addr(&text).filter(IpAddr::is_ipv4)?),
        (KeyKind::Ipv6, Value::Str(text)) => Value::Addr(cast::parse_addr(&text).filter(IpAddr::is_ipv6)?),
        (_, value) => value.cast(value_type(kind))?,
    };
    Some(match (kind, value) {
        (KeyKind::Ip | KeyKind::Ipv6, Value::Addr(IpAddr::V4(ip))) => f(&ip.octets()),
        (KeyKind::Ip | KeyKind::Ipv6, Value::Addr(IpAddr::V6(ip))) => f(&ip.octets()),
        (KeyKind::Integer, Value::Int(n)) => f(&(n as u32).to_be_bytes()),
        (KeyKind::Integer, Value::Bool(b)) => f(&u32::from(b).to_be_bytes()),
        (KeyKind::Text(longest), Value::Str(text)) => {
            let text = text.get(..longest).unwrap_or(&text);
            f(text.split(|byte| *byte == 0).next().unwrap_or_default())
        }
        (KeyKind::Binary(length), Value::Bin(bytes)) => match bytes.get(..length) {
            Some(bytes) => f(bytes),
            None => {
                let mut filled = bytes.to_vec();
                filled.resize(length, 0);
                f(&filled)
            }
        },
        _ => return None,
    })
}

/// The value that a key stands for.
pub fn value(kind: KeyKind, key: &[u8]) -> Option<Value<'static>> {
    Some(match kind {
        KeyKind::Ip => Value::Addr(Ipv4Addr::from(<[u8; 4]>::try_from(key).ok()?).into()),
        KeyKind::Ipv6 => Value::Addr(Ipv6Addr::from(<[u8; 16]>::try_from(key).ok()?).into()),
        KeyKind::Integer => Value::Int(u32::from_be_bytes(key.try_into().ok()?).into()),
        KeyKind::Text(_) => Value::Str(Octets::copy(key)),
        KeyKind::Binary(_) => Value::Bin(Octets::copy(key)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: KeyKind, value: Value<'_>) -> Option<Vec<u8>> {
        with_key(kind, value, <[u8]>::to_vec)
    }

    fn text(text: &str) -> Value<'_> {
        Value::str(text.as_bytes())
    }

    #[test]
    fn values_become_keys() {
        let ip = Value::Addr("10.1.2.3".parse().unwrap());
        assert_eq!(key(KeyKind::Ip, ip.clone()), Some(vec![10, 1, 2, 3]));
        assert_eq!(key(KeyKind::Ipv6, ip), Some([&[0; 10][..], &[255, 255, 10, 1, 2, 3]].concat()));
        for form in ["10.1.2.3", "10.1.2.3:51008", "10.1.2.3, 10.1.2.4"] {
            assert_eq!(key(KeyKind::Ip, text(form)), Some(vec![10, 1, 2, 3]), "{form}");
        }
        for form in ["::1", "[::1]", "[::1]:51008"] {
            assert_eq!(key(KeyKind::Ipv6, text(form)), Some([&[0; 15][..], &[1]].concat()), "{form}");
        }
        assert_eq!(
            (key(KeyKind::Ip, text("x")), key(KeyKind::Ip, text("::ffff:1.2.3.4")), key(KeyKind::Ipv6, text("1.2.3.4"))),
            (None, None, None)
        );
        assert_eq!(key(KeyKind::Integer, Value::Int(-1)), Some(vec![255; 4]));
        assert_eq!(key(KeyKind::Integer, text("258")), Some(vec![0, 0, 1, 2]));
        assert_eq!(key(KeyKind::Text(3), text("abcd")), Some(b"abc".to_vec()));
        assert_eq!(key(KeyKind::Text(9), text("ab\0c")), Some(b"ab".to_vec()));
        assert_eq!(key(KeyKind::Binary(3), text("ab")), Some(b"ab\0".to_vec()));
        assert_eq!(key(KeyKind::Binary(3), text("abcd")), Some(b"abc".to_vec()));
    }

    #[test]
    fn keys_become_values() {
        for (kind, was) in [
            (KeyKind::Ip, Value::Addr("10.1.2.3".parse().unwrap())),
            (KeyKind::Ipv6, Value::Addr("2001:db8::1".parse().unwrap())),
            (KeyKind::Integer, Value::Int(77)),
            (KeyKind::Text(9), text("abc")),
        ] {
            let key = key(kind, was.clone()).unwrap();
            assert_eq!(value(kind, &key), Some(was));
        }
        assert_eq!(value(KeyKind::Ip, b"abc"), None);
    }
}
