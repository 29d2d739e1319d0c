//! Base 64 (RFC 4648 sections 4 and 5).

use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new("base64", Type::Bin, Type::Str, "The bytes in base 64.", |value, _, _| {
        Some(Value::Str(encode(&value.into_bytes()?, STANDARD)))
    }),
    Converter::new("b64dec", Type::Str, Type::Bin, "The bytes behind a text in base 64.", |value, _, _| {
        decode(&value.into_bytes()?, STANDARD).map(Value::Bin)
    }),
    Converter::new("ub64enc", Type::Bin, Type::Str, "The bytes in base 64 for URLs, without padding.", |value, _, _| {
        Some(Value::Str(encode(&value.into_bytes()?, URL)))
    }),
    Converter::new("ub64dec", Type::Str, Type::Bin, "The bytes behind a text in base 64 for URLs.", |value, _, _| {
        decode(&value.into_bytes()?, URL).map(Value::Bin)
    }),
];

/// An alphabet, by its last two digits, and whether it is padded.
#[derive(Clone, Copy)]
pub struct Alphabet {
    last: [u8; 2],
    padded: bool,
}

/// `+`, `/` and padding.
pub const STANDARD: Alphabet = Alphabet { last: *b"+/", padded: true };
/// `-` and `_`.
pub const URL: Alphabet = Alphabet { last: *b"-_", padded: false };

/// The text of bytes.
pub fn encode(bytes: &[u8], alphabet: Alphabet) -> Octets<'static> {
    let mut out = Buffer::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - group.len()));
        for i in 0..=group.len() {
            out.push(alphabet.digit((bits >> (18 - 6 * i) & 0x3f) as u8));
        }
        if alphabet.padded {
            out.extend(std::iter::repeat_n(b'=', 3 - group.len()));
        }
    }
    Octets::from(out)
}

/// Decodes a text; `None` when a byte is no digit, or when the padding is wrong.
pub fn decode(text: &[u8], alphabet: Alphabet) -> Option<Octets<'static>> {
    let pad = text.iter().rev().take_while(|&&b| b == b'=').count();
    let digits = &text[..text.len() - pad];
    if pad > 2 || digits.len() % 4 == 1 || (alphabet.padded || pad > 0) && !text.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Buffer::new();
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for &digit in group {
            bits = bits << 6 | u32::from(alphabet.value(digit)?);
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(Octets::from(out))
}

/// Decodes a part of a JSON Web Token, which has a single form (RFC 7515 section 2). It is without padding, and without
/// bits that are left over (RFC 4648 section 3.5). Otherwise a signature would have several texts.
pub fn decode_exact(text: &[u8]) -> Option<Octets<'static>> {
    decode(text, URL).filter(|bytes| *encode(bytes, URL) == *text)
}

impl Alphabet {
    fn digit(self, value: u8) -> u8 {
        match value {
            0..=25 => b'A' + value,
            26..=51 => b'a' + value - 26,
            52..=61 => b'0' + value - 52,
            62 => self.last[0],
            _ => self.last[1],
        }
    }

    fn value(self, digit: u8) -> Option<u8> {
        Some(match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            _ if digit == self.last[0] => 62,
            _ if digit == self.last[1] => 63,
            _ => return None,
        })
    }
}
