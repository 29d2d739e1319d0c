//! The Forwarded field (RFC 7239): `rfc7239_field` and its like.

use crate::argument::{Arg, ArgList, ParamKind, need};
use crate::cast;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};
use std::net::IpAddr;
use terse_message::name::is_token;

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "rfc7239_is_valid",
        Type::Str,
        Type::Bool,
        "Whether the text is an element of a Forwarded field.",
        |value, _, _| Some(Value::Bool(parse(&value.into_octets()?).is_some())),
    ),
    Converter::new(
        "rfc7239_field",
        Type::Str,
        Type::Str,
        "A parameter of an element of a Forwarded field: for, by, host or proto.",
        field,
    )
    .params(&[need(ParamKind::Str)])
    .check(|args, _| match args.first() {
        Some(Arg::Str(word)) if NAMES.contains(&&**word) => Ok(()),
        Some(Arg::Str(word)) => Err(format!("expects for, by, host or proto, not '{}'", word.escape_ascii())),
        _ => Err("expects for, by, host or proto".into()),
    }),
    Converter::new(
        "rfc7239_n2nn",
        Type::Str,
        Type::Any,
        "The name of a node: an address, 'unknown' or a name that hides it.",
        |value, _, _| {
            let text = value.into_octets()?;
            Some(match Node::parse(&text)?.name {
                Name::Address(address) => Value::Addr(address),
                Name::Hidden(name) => Value::Str(Octets::copy(name)),
            })
        },
    ),
    Converter::new(
        "rfc7239_n2np",
        Type::Str,
        Type::Any,
        "The port of a node: a number, or a name that hides it.",
        |value, _, _| {
            let text = value.into_octets()?;
            let port = Node::parse(&text)?.port?;
            Some(match std::str::from_utf8(port).ok()?.parse() {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Str(Octets::copy(port)),
            })
        },
    ),
    Converter::new(
        "rfc7239_nn",
        Type::Any,
        Type::Str,
        "The name of a node from an address, or from a name that hides it.",
        node_name,
    ),
    Converter::new(
        "rfc7239_np",
        Type::Any,
        Type::Str,
        "The port of a node from a number, or from a name that hides it.",
        node_port,
    ),
];

const NAMES: [&[u8]; 4] = [b"for", b"by", b"host", b"proto"];

/// The values of for, by, host and proto in one element; `None` when a rule is broken.
fn parse(element: &[u8]) -> Option<[Option<Vec<u8>>; NAMES.len()]> {
    let mut found: [Option<Vec<u8>>; NAMES.len()] = [const { None }; NAMES.len()];
    let mut rest = element;
    loop {
        let (name, after) = rest.split_at(memchr::memchr(b'=', rest)?);
        let i = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        let (value, after) = parameter(&after[1..])?;
        let valid = match NAMES[i] {
            b"proto" => matches!(&*value, b"http" | b"https"),
            b"host" => is_host(&value),
            _ => Node::parse(&value).is_some(),
        };
        if !valid || found[i].replace(value).is_some() {
            return None;
        }
        match after.split_first() {
            None => return Some(found),
            Some((b';', after)) => rest = after,
            Some(_) => return None,
        }
    }
}

/// A token or a quoted string, and the rest of the text.
fn parameter(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let (token, after) = text.split_at(text.iter().take_while(|&&b| is_token(b)).count());
        return (!token.is_empty()).then(|| (token.to_vec(), after));
    };
    let mut value = Vec::new();
    loop {
        let (&b, after) = rest.split_first()?;
        rest = after;
        match b {
            b'"' => return Some((value, rest)),
            b'\\' => {
                value.push(*rest.first()?);
                rest = &rest[1..];
            }
            b => value.push(b),
        }
    }
}

/// The name of a node as it is written: of an address, of a text that is a name already, or of an obfuscated one. `None`
/// when the value can be no name.
pub fn written_name(value: Value<'_>) -> Option<Octets<'static>> {
    match value {
        Value::Addr(IpAddr::V6(address)) => Some(Octets::copy(format!("[{address}]").as_bytes())),
        other => {
            let text = other.into_octets().filter(|text| !text.is_empty())?;
            match cast::exact_addr(&text) {
                Some(IpAddr::V6(address)) => Some(Octets::copy(format!("[{address}]").as_bytes())),
                _ if Node::parse(&text).is_some_and(|node| node.port.is_none()) => Some(text.store()),
                _ => hidden(&text),
            }
        }
    }
}

/// The port of a node as it is written: a number, or a text that hides it.
pub fn written_port(value: Value<'_>) -> Option<Octets<'static>> {
    let text = value.into_octets()?;
    if is_number(&text) || is_hidden(&text) { Some(text.store()) } else { hidden(&text) }
}

/// Whether a text can be the host of an element.
pub fn is_host(host: &[u8]) -> bool {
    let (name, port) = split_port(host);
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'%');
    let named = address_in_brackets(name).is_some() || !name.is_empty() && name.iter().all(is_name);
    named && port.is_none_or(is_number)
}

/// A node: `192.0.2.1:80`, `[2001:db8::1]`, `unknown`, `_hidden:_port`.
struct Node<'a> {
    name: Name<'a>,
    port: Option<&'a [u8]>,
}

enum Name<'a> {
    Address(IpAddr),
    Hidden(&'a [u8]),
}

impl<'a> Node<'a> {
    fn parse(text: &'a [u8]) -> Option<Node<'a>> {
        let (name, port) = split_port(text);
        let name = if let Some(address) = address_in_brackets(name) {
            Name::Address(address)
        } else if let Some(address) = cast::exact_addr(name).filter(IpAddr::is_ipv4) {
            Name::Address(address)
        } else if name == b"unknown" || is_hidden(name) {
            Name::Hidden(name)
        } else {
            return None;
        };
        port.is_none_or(|port| is_number(port) || is_hidden(port)).then_some(Node { name, port })
    }
}

/// Splits at the colon after a name, or after the bracket that ends an address.
fn split_port(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let from = memchr::memrchr(b']', text).map_or(0, |at| at + 1);
    match memchr::memchr(b':', &text[from..]) {
        Some(at) => (&text[..from + at], Some(&text[from + at + 1..])),
        None => (text, None),
    }
}

fn address_in_brackets(text: &[u8]) -> Option<IpAddr> {
    cast::exact_addr(text.strip_prefix(b"[")?.strip_suffix(b"]")?).filter(IpAddr::is_ipv6)
}

fn is_number(port: &[u8]) -> bool {
    cast::is_port(port)
}

/// `_` and letters, digits, dots, underscores and dashes (RFC 7239 section 6.3).
fn is_hidden(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"_").unwrap_or_default();
    !inside.is_empty() && inside.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn field<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let i = NAMES.iter().position(|name| Some(*name) == args.str(0))?;
    let found = parse(&value.into_octets()?)?[i].take()?;
    Some(Value::Str(Octets::from(found)))
}

fn node_name<'a>(value: Value<'a>, _: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let name = match value {
        Value::Addr(IpAddr::V6(_)) => {
            let mut out = Buffer::from_slice(b"[");
            out.extend_from_slice(&value.into_octets()?);
            out.push(b']');
            Octets::from(out)
        }
        Value::Addr(_) => value.into_octets()?,
        other => match other.into_octets()? {
            text if text.is_empty() => Octets::from("unknown"),
            text => hidden(&text)?,
        },
    };
    Some(Value::Str(name))
}

fn node_port<'a>(value: Value<'a>, _: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let port = match value {
        Value::Int(n) => cast::decimal(u16::try_from(n).ok()?.into()),
        other => hidden(&other.into_octets()?)?,
    };
    Some(Value::Str(port))
}

fn hidden(text: &[u8]) -> Option<Octets<'static>> {
    let mut out = Buffer::from_slice(b"_");
    out.extend_from_slice(text);
    is_hidden(&out).then(|| Octets::from(out))
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn elements() {
        let mut bench = Bench::new();
        for (element, valid) in [
            (r#"for="unknown:132";host="[::1]:65535";by="_obfs:_port";proto=https"#, true),
            (r#"for="127.0.0.1";host=v.test"#, true),
            (r#"For=192.0.2.60;Proto=http"#, true),
            (r#"fore="unknown:132""#, false),
            ("proto=http;proto=http", false),
            ("proto=custom", false),
            ("\"", false),
            ("by=[::1]", false),
            (r#"by="[::1]""#, true),
            (r#"by="[::1]:""#, false),
            (r#"by="[::1]:3""#, true),
            (r#"by="[::1]:65536""#, false),
            ("for=", false),
            ("for=127.0.0.1;", false),
            ("", false),
        ] {
            bench.set("txn.f", crate::Value::str(element.as_bytes()));
            let expected = if valid { "1" } else { "0" };
            assert_eq!(bench.eval("var(txn.f),rfc7239_is_valid").as_deref(), Some(expected), "{element}");
        }
    }

    #[test]
    fn nodes_are_written_so_that_they_are_read() {
        let name = |text: &'static str| super::written_name(crate::Value::str(text.as_bytes()));
        let port = |text: &'static str| super::written_port(crate::Value::str(text.as_bytes()));
        for (text, written) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::1", Some("[2001:db8::1]")),
            ("unknown", Some("unknown")),
            ("_a", Some("_a")),
            ("a.b-c", Some("_a.b-c")),
            ("192.0.2.1:80", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(name(text).as_deref(), written.map(str::as_bytes), "{text}");
        }
        for (text, written) in
            [("80", Some("80")), ("65536", Some("_65536")), ("id", Some("_id")), ("_id", Some("_id")), ("a b", None)]
        {
            assert_eq!(port(text).as_deref(), written.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn nodes() {
        let mut bench = Bench::new();
        bench.set("txn.f", crate::Value::str(br#"proto=http;for="[::1]:_id";host="a:80""#));
        for (text, expected) in [
            ("var(txn.f),rfc7239_field(for)", Some("[::1]:_id")),
            ("var(txn.f),rfc7239_field(host)", Some("a:80")),
            ("var(txn.f),rfc7239_field(by)", None),
            ("var(txn.f),rfc7239_field(for),rfc7239_n2nn", Some("::1")),
            ("var(txn.f),rfc7239_field(for),rfc7239_n2np", Some("_id")),
            ("str('127.0.0.1:9999'),rfc7239_n2np,add(1)", Some("10000")),
            ("str(unknown),rfc7239_n2nn", Some("unknown")),
            ("ipv6(::1),rfc7239_nn", Some("[::1]")),
            ("ipv4(1.2.3.4),rfc7239_nn", Some("1.2.3.4")),
            ("str(test),rfc7239_nn", Some("_test")),
            ("str(),rfc7239_nn", Some("unknown")),
            ("str(a b),rfc7239_nn", None),
            ("int(80),rfc7239_np", Some("80")),
            ("int(65536),rfc7239_np", None),
            ("str(id),rfc7239_np", Some("_id")),
        ] {
            assert_eq!(bench.eval(text).as_deref(), expected, "{text}");
        }
        assert!(bench.expr("str(x),rfc7239_field(port)").is_err());
    }
}
