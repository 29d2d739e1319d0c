//! Flags of items, `%{+Q,-X}`, and their effect on values.
//!
//! | | text, addresses | numbers | dates, states | expressions in fields and URLs | other expressions |
//! |---|---|---|---|---|---|
//! | `Q` | in quotes | | | | in quotes |
//! | `E` | escaped | | | escaped | escaped |
//! | `M` | `-` for nothing | `-` for nothing | | | `-` for nothing |
//! | `X` | of addresses | of ports, identifiers and times since 1970 | | | |
//!
//! Parts of the request's first line and captures are text whose odd bytes are `#XX` besides.

use super::encode;
use super::encoding::{Encoding, ItemType};
use crate::cast;
use crate::env::Env;
use crate::octets::Octets;
use crate::registry::{AliasEach, AliasKind};
use crate::value::Value;
use std::net::IpAddr;
use terse_message::text::control_at;

/// The flags of an item, and its surroundings.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Options {
    /// `Q`: strings in double quotes.
    pub(super) quote: bool,
    /// `X`: numbers and addresses in hexadecimal digits.
    pub(super) hex: bool,
    /// `E`: `"`, `\` and `]` after a backslash (RFC 5424 section 6.3.3).
    pub(super) escape: bool,
    /// `M`: `-` for undefined values.
    pub(super) mandatory: bool,
    /// The format is a field's value or a part of a URL.
    pub(super) http: bool,
    /// `json`, `cbor`: as a single value of these.
    pub(super) encoding: Option<Encoding>,
    /// `bin`: binary values as they are, and CBOR too.
    pub(super) binary: bool,
    /// Type that the value is taken for in an encoding.
    pub(super) kind: ItemType,
}

impl Options {
    /// Applies the changes `{+Q,-X}`; flags that are not known are given to the caller.
    pub(super) fn change<'t>(mut self, text: &'t str, mut unknown: impl FnMut(&'t str)) -> Options {
        for word in text.split(',') {
            let sign = word.rfind(['+', '-']);
            let on = sign.is_some_and(|at| word[at..].starts_with('+'));
            match &word[sign.map_or(0, |at| at + 1)..] {
                _ if sign.is_none() => unknown(word),
                "Q" => self.quote = on,
                "X" => self.hex = on,
                "E" => self.escape = on,
                "M" => self.mandatory = on,
                "bin" => self.binary = on,
                "json" => self.encode_as(Encoding::Json, on),
                "cbor" => self.encode_as(Encoding::Cbor, on),
                _ => unknown(word),
            }
        }
        self
    }

    /// The first encoding counts, until it is taken back.
    fn encode_as(&mut self, encoding: Encoding, on: bool) {
        self.encoding = match on {
            true => self.encoding.or(Some(encoding)),
            false => self.encoding.filter(|own| *own != encoding),
        };
    }

    /// Appends the value of an expression.
    pub(super) fn write_expression(self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        match value {
            Some(Value::Bin(bytes)) if self.binary && self.kind != ItemType::Text => self.encode(&bytes, out),
            value if self.http => Options { quote: false, mandatory: false, ..self }.write_text(value, out),
            value => self.write_text(value, out),
        }
    }

    /// Appends the value of an alias.
    pub(super) fn write_alias(self, kind: AliasKind, env: &Env<'_>, out: &mut Vec<u8>) {
        match kind {
            AliasKind::Text(run) => match run(env) {
                Some(Value::Addr(address)) if self.hex => out.extend_from_slice(hexadecimal(address).as_bytes()),
                value => self.write_text(value, out),
            },
            AliasKind::Number(run, digits) => match (run(env), self.digits(digits)) {
                (Some(value), Some(digits)) => out.extend_from_slice(padded(value, digits).as_bytes()),
                (Some(Value::Int(n)), None) => cast::write_decimal(n, out),
                (Some(value), None) => Options { quote: false, ..self }.write_text(Some(value), out),
                (None, _) => self.write_text(None, out),
            },
            AliasKind::Plain(run) => Options { quote: false, escape: false, ..self }.write_text(run(env), out),
            AliasKind::Line(run) => self.quoted(out, |out| self.write_line(run(env), out)),
            AliasKind::Block(run) => {
                if let Some(value) = run(env) {
                    self.write_text(Some(value), out);
                }
            }
            AliasKind::List(each) => self.write_list(each, env, out),
            // Formats that name it do not load.
            AliasKind::Refused(_) => {}
        }
    }

    /// Least number of hexadecimal digits of a number, if it is written in them.
    fn digits(self, digits: u8) -> Option<u8> {
        (self.hex && digits > 0).then_some(digits)
    }

    fn write_list(self, each: AliasEach, env: &Env<'_>, out: &mut Vec<u8>) {
        let mut first = true;
        each(env, &mut |value| {
            if !std::mem::take(&mut first) {
                out.push(b' ');
            }
            // An element that is not there takes a place of the list all the same.
            Options { mandatory: value.is_none(), ..self }.write_text(value, out);
        });
    }

    fn write_line(self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        let Some(text) = value.and_then(Value::into_octets) else { return out.extend_from_slice(b"<BADREQ>") };
        match self.escape && text.iter().any(|b| ESCAPED.contains(b)) {
            false => encode(&text, b"", out),
            true => {
                let mut line = Vec::with_capacity(text.len());
                encode(&text, b"", &mut line);
                self.encode_each(&line, out);
            }
        }
    }

    fn write_text(self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        self.quoted(out, |out| match value {
            // Digits and dots need no escape.
            Some(Value::Int(n)) => cast::write_decimal(n, out),
            Some(Value::Addr(IpAddr::V4(address))) => cast::write_ipv4(address, out),
            value => match value.and_then(Value::into_octets).filter(|text| !(text.is_empty() && self.mandatory)) {
                Some(text) => self.encode(&text, out),
                None if self.mandatory && !self.quote => out.push(b'-'),
                None => {}
            },
        });
    }

    fn quoted(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.quote {
            out.push(b'"');
        }
        write(out);
        if self.quote {
            out.push(b'"');
        }
    }

    fn encode(self, text: &[u8], out: &mut Vec<u8>) {
        // Most text needs no change.
        match self.http && control_at(text).is_some() || self.escape && text.iter().any(|b| ESCAPED.contains(b)) {
            false => out.extend_from_slice(text),
            true => self.encode_each(text, out),
        }
    }

    #[cold]
    fn encode_each(self, text: &[u8], out: &mut Vec<u8>) {
        for &b in text {
            if self.http && (b < b' ' && b != b'\t' || b == 0x7f) {
                out.extend_from_slice(format!("%{b:02X}").as_bytes());
            } else {
                if self.escape && ESCAPED.contains(&b) {
                    out.push(b'\\');
                }
                out.push(b);
            }
        }
    }

    /// Appends the value of an alias, in an encoding.
    pub(super) fn encode_alias(self, kind: AliasKind, encoding: Encoding, env: &Env<'_>, out: &mut Vec<u8>) {
        let text = |text: String| Some(Value::Str(Octets::from(text.into_bytes())));
        match kind {
            AliasKind::Text(run) => match run(env) {
                Some(Value::Addr(address)) if self.hex => encoding.value(text(hexadecimal(address)), ItemType::Own, out),
                value => encoding.value(value, ItemType::Own, out),
            },
            AliasKind::Number(run, digits) => match (run(env), self.digits(digits)) {
                (Some(value), Some(digits)) => encoding.value(text(padded(value, digits)), ItemType::Own, out),
                // A number that may grow has a '+' in a text, not here.
                (value, _) => encoding.value(ItemType::Number.of(value), self.kind, out),
            },
            AliasKind::Plain(run) => encoding.value(run(env), ItemType::Own, out),
            AliasKind::Line(run) => {
                let mut line = Vec::new();
                self.write_line(run(env), &mut line);
                encoding.value(Some(Value::str(&line)), ItemType::Own, out);
            }
            AliasKind::Block(run) => match run(env) {
                None => encoding.null(out),
                value => encoding.value(value, ItemType::Own, out),
            },
            AliasKind::List(each) => {
                let none = if self.quote { Value::str(b"") } else { Value::str(b"-") };
                let mut values = Vec::new();
                each(env, &mut |value| values.push(value.or(Some(none.clone()))));
                if values.is_empty() { encoding.null(out) } else { encoding.list(&values, out) }
            }
            AliasKind::Refused(_) => {}
        }
    }
}

/// Bytes that follow a backslash in structured data (RFC 5424 section 6.3.3).
const ESCAPED: [u8; 3] = *b"\"\\]";

/// An address in hexadecimal digits, the most significant first.
fn hexadecimal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{:08X}", u32::from(address)),
        IpAddr::V6(address) => format!("{:032X}", u128::from(address)),
    }
}

/// A number in at least so many hexadecimal digits.
fn padded(value: Value<'_>, digits: u8) -> String {
    format!("{:0width$X}", value.into_int().unwrap_or_default(), width = usize::from(digits))
}
