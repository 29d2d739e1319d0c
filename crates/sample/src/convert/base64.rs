//! Base 64 (RFC 4648 sections 4 and 5).

use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};
use base64::alphabet;
use base64::engine::{Config, DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new("base64", Type::Bin, Type::Str, "The bytes in base 64.", |value, _, _| {
        Some(Value::Str(encode(&value.into_bytes()?, &STANDARD)))
    }),
    Converter::new("b64dec", Type::Str, Type::Bin, "The bytes behind a text in base 64.", |value, _, _| {
        decode(&value.into_bytes()?, &STANDARD).map(Value::Bin)
    }),
    Converter::new("ub64enc", Type::Bin, Type::Str, "The bytes in base 64 for URLs, without padding.", |value, _, _| {
        Some(Value::Str(encode(&value.into_bytes()?, &URL)))
    }),
    Converter::new("ub64dec", Type::Str, Type::Bin, "The bytes behind a text in base 64 for URLs.", |value, _, _| {
        decode(&value.into_bytes()?, &URL).map(Value::Bin)
    }),
];

/// `+`, `/` and padding, which must be there. Bits that are left over in the last digit are ignored, as HAProxy does.
pub const STANDARD: Coder = Coder::new(&alphabet::STANDARD, lenient(true, DecodePaddingMode::RequireCanonical));
/// `-` and `_`, written without padding and read with or without.
pub const URL: Coder = Coder::new(&alphabet::URL_SAFE, lenient(false, DecodePaddingMode::Indifferent));

/// An alphabet, and its rules of padding.
pub type Coder = GeneralPurpose;

const fn lenient(padded: bool, read: DecodePaddingMode) -> GeneralPurposeConfig {
    GeneralPurposeConfig::new().with_encode_padding(padded).with_decode_padding_mode(read).with_decode_allow_trailing_bits(true)
}

/// The text of bytes.
pub fn encode(bytes: &[u8], coder: &Coder) -> Octets<'static> {
    let mut out = Buffer::from_elem(0, base64::encoded_len(bytes.len(), coder.config().encode_padding()).unwrap_or(0));
    let written = coder.encode_slice(bytes, &mut out).unwrap_or(0);
    out.truncate(written);
    Octets::from(out)
}

/// Decodes a text; `None` when a byte is no digit, or when the padding is wrong.
pub fn decode(text: &[u8], coder: &Coder) -> Option<Octets<'static>> {
    // Padding that is there completes its group.
    if text.ends_with(b"=") && !text.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Buffer::from_elem(0, base64::decoded_len_estimate(text.len()));
    let written = coder.decode_slice(text, &mut out).ok()?;
    out.truncate(written);
    Some(Octets::from(out))
}

/// Decodes a part of a JSON Web Token, which has a single form (RFC 7515 section 2). It is without padding, and without
/// bits that are left over (RFC 4648 section 3.5). Otherwise a signature would have several texts.
pub fn decode_exact(text: &[u8]) -> Option<Octets<'static>> {
    decode(text, &URL).filter(|bytes| *encode(bytes, &URL) == *text)
}
