//! Percent encoding (RFC 3986 section 2.1).

use super::encoding::push_hex;
use crate::argument::{Arg, ArgList, ParamKind, may};
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "url_dec",
        Type::Str,
        Type::Str,
        "The text without percent encoding; with 1 and behind '?' a '+' is a blank.",
        decode,
    )
    .params(&[may(ParamKind::Int)]),
    Converter::new("url_enc", Type::Str, Type::Str, "The text in percent encoding, for a query.", |value, _, _| {
        let mut out = Buffer::new();
        for &b in value.into_octets()?.iter() {
            if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') {
                out.push(b);
            } else {
                out.push(b'%');
                push_hex(&[b], &mut out);
            }
        }
        Some(Value::Str(Octets::from(out)))
    })
    .params(&[may(ParamKind::Str)])
    .check(|args, _| match args.first() {
        Some(Arg::Str(word)) if !matches!(&**word, b"" | b"query") => {
            Err(format!("expects 'query', not '{}'", word.escape_ascii()))
        }
        _ => Ok(()),
    }),
];

/// Decodes a text; `None` when a percent sign is not followed by two digits. A NUL ends the text, as in HAProxy.
fn decode<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let text = value.into_octets()?;
    let mut in_form = args.int(0).unwrap_or(0) != 0;
    if memchr::memchr3(b'%', b'+', 0, &text).is_none() {
        return Some(Value::Str(text));
    }
    let (mut out, mut rest) = (Buffer::new(), &text[..]);
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            0 => break,
            b'+' if in_form => out.push(b' '),
            b'%' => {
                let &[high, low, ..] = after else { return None };
                out.push(digit(high)? << 4 | digit(low)?);
                rest = &after[2..];
            }
            other => {
                in_form |= other == b'?';
                out.push(other);
            }
        }
    }
    Some(Value::Str(Octets::from(out)))
}

/// The value of a hexadecimal digit.
fn digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|n| n as u8)
}
