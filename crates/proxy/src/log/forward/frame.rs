//! Messages in a stream (RFC 6587): with their length before them, or as lines.

/// Kind of the first frame in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// A message at these places; it and its frame end at `end`.
    Message {
        /// Offset of its first byte.
        from: usize,
        /// Offset of the end of its text.
        to: usize,
        /// Offset of the next frame.
        end: usize,
    },
    /// Not yet a whole message.
    Partial,
    /// No message, or a message that is too long.
    Malformed,
}

/// Reads the first frame. A message may have `most` bytes.
pub(crate) fn first(bytes: &[u8], lines_only: bool, most: usize) -> Frame {
    match bytes.first() {
        None => Frame::Partial,
        Some(b'<') => line(bytes, most),
        Some(_) if lines_only => line(bytes, most),
        Some(b'1'..=b'9') => counted(bytes, most),
        Some(_) => Frame::Malformed,
    }
}

/// Non-transparent framing: a line feed at the end, or the carriage return and line feed of some devices.
fn line(bytes: &[u8], most: usize) -> Frame {
    match memchr::memchr(b'\n', bytes.get(..bytes.len().min(most + 2)).unwrap_or_default()) {
        Some(at) => {
            let to = if at > 0 && bytes.get(at - 1) == Some(&b'\r') { at - 1 } else { at };
            if to > most { Frame::Malformed } else { Frame::Message { from: 0, to, end: at + 1 } }
        }
        None if bytes.len() >= most + 2 => Frame::Malformed,
        None => Frame::Partial,
    }
}

/// Octet counting: `12 <134>message`.
fn counted(bytes: &[u8], most: usize) -> Frame {
    let digits = bytes.iter().take(MOST_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let length = bytes.iter().take(digits).fold(0usize, |length, digit| length * 10 + usize::from(digit - b'0'));
    if digits > MOST_DIGITS || length > most {
        return Frame::Malformed;
    }
    match bytes.get(digits) {
        None => Frame::Partial,
        Some(b' ') if bytes.len() > digits + length => {
            let (from, to) = (digits + 1, digits + 1 + length);
            Frame::Message { from, to, end: to }
        }
        Some(b' ') => Frame::Partial,
        Some(_) => Frame::Malformed,
    }
}

/// No message is a gigabyte long; a longer count is no count.
const MOST_DIGITS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_framings() {
        let message = |from, to, end| Frame::Message { from, to, end };
        for (bytes, lines_only, expected) in [
            ("<1>a\n<1>b", false, message(0, 4, 5)),
            ("<1>a\r\n", false, message(0, 4, 6)),
            ("<1>a", false, Frame::Partial),
            ("4 <1>a5 <1>bc", false, message(2, 6, 6)),
            ("4 <1>", false, Frame::Partial),
            ("4", false, Frame::Partial),
            ("0 a", false, Frame::Malformed),
            ("4x", false, Frame::Malformed),
            ("21 ", false, Frame::Malformed),
            ("1111111111", false, Frame::Malformed),
            ("text\n", false, Frame::Malformed),
            ("text\n", true, message(0, 4, 5)),
            ("4 ab\n", true, message(0, 4, 5)),
            ("\n", true, message(0, 0, 1)),
            ("", true, Frame::Partial),
            ("<aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, Frame::Malformed),
            ("<aaaaaaaaaaaaaaaaaaaa\n", false, Frame::Malformed),
            ("<aaaaaaaaaaaaaaaaaaa\n", false, message(0, 20, 21)),
        ] {
            assert_eq!(first(bytes.as_bytes(), lines_only, 20), expected, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn a_stream_is_read_to_its_end_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), lines_only: bool) {
            let mut rest = &bytes[..];
            loop {
                match first(rest, lines_only, 50) {
                    Frame::Message { from, to, end } => {
                        prop_assert!(from <= to && to <= end && end > 0 && to - from <= 50);
                        rest = &rest[end..];
                    }
                    Frame::Partial => {
                        prop_assert!(rest.len() <= 50 + MOST_DIGITS + 2);
                        break;
                    }
                    Frame::Malformed => break,
                }
            }
        }
    }
}
