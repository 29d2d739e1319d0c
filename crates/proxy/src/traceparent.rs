//! The `traceparent` of a request (W3C Trace Context): the client's, or a new one (`option traceparent`).
//!
//! terse reports no spans of its own, so that a sound field passes unchanged, with its `tracestate`.

use std::io::Write;
use terse_message::Fields;

/// A sound `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traceparent([u8; LENGTH]);

/// The name of the field.
pub const NAME: &[u8] = b"traceparent";
/// The field that goes with it.
pub const STATE: &[u8] = b"tracestate";
/// Bytes of version 00: `00-` 32 digits `-` 16 digits `-` 2 digits.
const LENGTH: usize = 55;

impl Traceparent {
    /// The request's own: `None` where it has none, two, or an invalid one (section 3.2.2).
    pub fn of(fields: &Fields) -> Option<Traceparent> {
        let mut values = fields.values(NAME);
        values.next().filter(|_| values.next().is_none()).and_then(Traceparent::parse)
    }

    fn parse(value: &[u8]) -> Option<Traceparent> {
        let (known, rest) = value.split_first_chunk::<LENGTH>()?;
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_sound = known.iter().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => *byte == b'-',
            _ => is_digit(byte),
        });
        let says_something = |digits: &[u8]| digits.iter().any(|digit| *digit != b'0');
        // A later version may say more, after another dash.
        let ends = match &known[..2] {
            b"ff" => false,
            b"00" => rest.is_empty(),
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        (is_sound && ends && says_something(&known[3..35]) && says_something(&known[36..52])).then_some(Traceparent(*known))
    }

    /// A new trace, which is to be recorded.
    pub fn made(mut random: impl FnMut() -> u64) -> Traceparent {
        let mut bits = || loop {
            // All zeros say nothing.
            let bits = random();
            if bits != 0 {
                return bits;
            }
        };
        let mut text = [0; LENGTH];
        let written = write!(&mut text[..], "00-{:016x}{:016x}-{:016x}-01", bits(), bits(), bits());
        debug_assert!(written.is_ok());
        Traceparent(text)
    }

    /// The whole value.
    pub fn value(&self) -> &[u8] {
        &self.0
    }

    /// The trace: 32 digits.
    pub fn trace_id(&self) -> &[u8] {
        &self.0[3..35]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_sound_ones_are_taken() {
        let sound = Traceparent::parse(SOUND.as_bytes()).unwrap();
        assert_eq!((sound.value(), sound.trace_id()), (SOUND.as_bytes(), &b"4bf92f3577b34da6a3ce929d0e0e4736"[..]));
        let of_version = |version: &str, rest: &str| format!("{version}{}{rest}", &SOUND[2..]);
        for (text, is_sound) in [
            (of_version("01", ""), true),
            (of_version("01", "-more"), true),
            (of_version("01", "more"), false),
            (of_version("00", "-more"), false),
            (of_version("ff", ""), false),
            (SOUND.to_uppercase(), false),
            (SOUND.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)), false),
            (SOUND.replace("00f067aa0ba902b7", &"0".repeat(16)), false),
            (SOUND.replace('-', "_"), false),
            (SOUND[..54].to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(Traceparent::parse(text.as_bytes()).is_some(), is_sound, "{text}");
        }
    }

    #[test]
    fn of_two_none_is_taken() {
        let mut fields = Fields::default();
        assert_eq!(Traceparent::of(&fields), None);
        fields.push(b"Traceparent", SOUND.as_bytes());
        assert!(Traceparent::of(&fields).is_some());
        fields.push(b"traceparent", SOUND.as_bytes());
        assert_eq!(Traceparent::of(&fields), None);
    }

    #[test]
    fn what_is_made_is_sound() {
        let mut numbers = [0, 1, 0x0123_4567_89ab_cdef, 0, 2].into_iter();
        let made = Traceparent::made(|| numbers.next().unwrap());
        assert_eq!(made.value(), b"00-00000000000000010123456789abcdef-0000000000000002-01");
        assert_eq!(Traceparent::parse(made.value()), Some(made));
    }
}
