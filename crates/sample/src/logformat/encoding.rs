//! Formats as objects: `%{+json}o` (RFC 8259) and `%{+cbor}o` (RFC 8949), whose members are the items that have names,
//! `%(name:type)[expression]`. With an encoding of its own, `%{+json}[expression]`, an item is a single value.
//!
//! JSON is text that every reader takes: control characters are escaped, which HAProxy leaves as they are. CBOR is written in
//! hexadecimal digits, or with `+bin` as it is.

use crate::cast;
use crate::value::{Type, Value};
use data_encoding::HEXUPPER;

/// Encoding of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    /// `+json`
    Json,
    /// `+cbor`
    Cbor,
}

/// Type that a value is taken for: `%(name:type)`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum ItemType {
    /// The type of the value itself.
    #[default]
    Own,
    /// `str`: text.
    Text,
    /// `sint`: a number.
    Number,
    /// `bool`: true or false.
    Bool,
    /// `raw`: its bytes, written as they are.
    Raw,
}

impl ItemType {
    /// The types by their keywords.
    pub(super) const WORDS: [(&'static str, ItemType); 4] =
        [("str", ItemType::Text), ("sint", ItemType::Number), ("bool", ItemType::Bool), ("raw", ItemType::Raw)];

    /// The value, taken for that type.
    pub(super) fn of(self, value: Option<Value<'_>>) -> Option<Value<'_>> {
        let value = value?;
        match self {
            ItemType::Own => Some(value),
            ItemType::Text => value.cast(Type::Str),
            ItemType::Number => value.into_int().map(Value::Int),
            ItemType::Bool => value.into_bool().map(Value::Bool),
            ItemType::Raw => value.cast(Type::Bin),
        }
    }
}

impl Encoding {
    /// Opens the object.
    pub(super) fn begin(self, out: &mut Vec<u8>) {
        out.push(if self == Encoding::Json { b'{' } else { CBOR_MAP });
    }

    /// Writes a member's name.
    pub(super) fn name(self, name: &str, is_first: bool, out: &mut Vec<u8>) {
        match self {
            Encoding::Json => {
                if !is_first {
                    out.extend_from_slice(b", ");
                }
                json_text(name.as_bytes(), out);
                out.extend_from_slice(b": ");
            }
            Encoding::Cbor => cbor_bytes(CBOR_TEXT, name.as_bytes(), out),
        }
    }

    /// Closes the object.
    pub(super) fn end(self, out: &mut Vec<u8>) {
        out.push(if self == Encoding::Json { b'}' } else { CBOR_BREAK });
    }

    /// Writes a value.
    pub(super) fn value(self, value: Option<Value<'_>>, kind: ItemType, out: &mut Vec<u8>) {
        let value = kind.of(value);
        match (self, value) {
            (_, Some(Value::Bin(bytes))) if kind == ItemType::Raw => out.extend_from_slice(&bytes),
            (Encoding::Json, Some(Value::Int(n))) => cast::write_decimal(n, out),
            (Encoding::Json, Some(Value::Bool(b))) => out.extend_from_slice(if b { b"true" } else { b"false" }),
            (Encoding::Json, value) => json_text(&value.and_then(Value::into_octets).unwrap_or(crate::Octets::EMPTY), out),
            (Encoding::Cbor, None) => out.push(CBOR_NULL),
            (Encoding::Cbor, Some(Value::Int(n))) if n < 0 => cbor_head(CBOR_NEGATIVE, !n as u64, out),
            (Encoding::Cbor, Some(Value::Int(n))) => cbor_head(CBOR_NUMBER, n as u64, out),
            (Encoding::Cbor, Some(Value::Bool(b))) => out.push(if b { CBOR_TRUE } else { CBOR_FALSE }),
            (Encoding::Cbor, Some(Value::Bin(bytes))) => cbor_bytes(CBOR_BYTES, &bytes, out),
            (Encoding::Cbor, Some(value)) => {
                cbor_bytes(CBOR_TEXT, &value.into_octets().unwrap_or(crate::Octets::EMPTY), out);
            }
        }
    }

    /// Writes the null value.
    pub(super) fn null(self, out: &mut Vec<u8>) {
        match self {
            Encoding::Json => out.extend_from_slice(b"null"),
            Encoding::Cbor => out.push(CBOR_NULL),
        }
    }

    /// Writes a list.
    pub(super) fn list(self, values: &[Option<Value<'_>>], out: &mut Vec<u8>) {
        match self {
            Encoding::Json => out.push(b'['),
            Encoding::Cbor => cbor_head(CBOR_LIST, values.len() as u64, out),
        }
        for (i, value) in values.iter().enumerate() {
            if i > 0 && self == Encoding::Json {
                out.extend_from_slice(b", ");
            }
            self.value(value.clone(), ItemType::Own, out);
        }
        if self == Encoding::Json {
            out.push(b']');
        }
    }
}

/// A string of JSON. Bytes beyond ASCII are unchanged.
fn json_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &b in text {
        match b {
            b'"' | b'\\' => out.extend([b'\\', b]),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            _ => out.push(b),
        }
    }
    out.push(b'"');
}

// Initial bytes (RFC 8949 section 3), without the additional information of those that have some.
const CBOR_NUMBER: u8 = 0;
const CBOR_NEGATIVE: u8 = 1 << 5;
const CBOR_BYTES: u8 = 2 << 5;
const CBOR_TEXT: u8 = 3 << 5;
const CBOR_LIST: u8 = 4 << 5;
const CBOR_MAP: u8 = 0xbf;
const CBOR_FALSE: u8 = 0xf4;
const CBOR_TRUE: u8 = 0xf5;
const CBOR_NULL: u8 = 0xf6;
const CBOR_BREAK: u8 = 0xff;

/// A kind and a number in as few bytes as it needs.
fn cbor_head(kind: u8, n: u64, out: &mut Vec<u8>) {
    match n {
        0..24 => out.push(kind | n as u8),
        24..0x100 => out.extend([kind | 24, n as u8]),
        0x100..0x1_0000 => {
            out.push(kind | 25);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(kind | 26);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        _ => {
            out.push(kind | 27);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

fn cbor_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    cbor_head(kind, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Bytes in hexadecimal digits.
pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + HEXUPPER.encode_len(bytes.len()), 0);
    HEXUPPER.encode_mut(bytes, &mut out[from..]);
}
