//! Messages of syslog that come in: the fields of their headers, if they have any (RFC 3164 section 4.1, RFC 5424 section 6).
//!
//! ```text
//!   <134>1 2009-02-06T12:14:14.655123+01:00 host haproxy 14389 - [id@1 a="b"] text
//!   <134>Feb  6 12:14:14 host haproxy[14389]: text
//!   <134>text
//!   text
//! ```
//!
//! Invariant: any bytes are a message. Bytes that are no header belong to the text, and nothing is read twice.

use super::header::{Form, Heading};
use super::time;
use std::borrow::Cow;

/// A message.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Message<'a> {
    /// Facility and level.
    pub(super) priority: Option<(u8, u8)>,
    /// The other fields of its header.
    pub(super) heading: Heading<'a>,
    /// The text after the header.
    pub(super) text: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message without a header.
    pub(super) fn raw(text: &'a [u8]) -> Message<'a> {
        Message { text, ..Message::default() }
    }

    /// Reads a message.
    pub(super) fn parse(bytes: &'a [u8]) -> Message<'a> {
        let Some((priority, rest)) = priority(bytes) else { return Message::raw(bytes) };
        let prioritized = Message { priority: Some(priority), ..Message::raw(rest) };
        let parsed = match rest.strip_prefix(b"1 ") {
            Some(rest) => rfc5424(rest),
            None => rfc3164(rest),
        };
        parsed.map_or(prioritized, |(heading, text)| Message { heading, text, ..prioritized })
    }

    /// The form that its header has, and that it is passed on in where no other is asked for.
    pub(super) fn form(&self) -> Form {
        let heading = &self.heading;
        let is_iso = || matches!(time::read(heading.time), Some(time::Written::Nil | time::Written::Iso(_)));
        match self.priority {
            _ if !heading.host.is_empty() && is_iso() => Form::Rfc5424,
            _ if !heading.host.is_empty() => Form::Rfc3164,
            _ if !heading.tag.is_empty() => Form::Local,
            Some(_) => Form::Priority,
            None => Form::Raw,
        }
    }
}

/// `<0>` to `<191>`.
fn priority(bytes: &[u8]) -> Option<((u8, u8), &[u8])> {
    let rest = bytes.strip_prefix(b"<")?;
    let end = rest.iter().take(4).position(|byte| *byte == b'>')?;
    let digits = std::str::from_utf8(rest.get(..end)?).ok()?;
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u8>().ok())??;
    (number <= MOST_PRIORITY).then_some(((number >> 3, number & 7), rest.get(end + 1..)?))
}

/// Parses the rest of a message after `<134>1 `.
fn rfc5424(rest: &[u8]) -> Option<(Heading<'_>, &[u8])> {
    let (time, rest) = match rest.strip_prefix(b"- ") {
        Some(_) => rest.split_at_checked(1)?,
        None => time::iso(rest)?,
    };
    let mut rest = rest.strip_prefix(b" ")?;
    let mut words = [&b""[..]; 4];
    for word in &mut words {
        let end = rest.iter().position(|byte| *byte == b' ').filter(|end| *end > 0)?;
        let (found, behind) = rest.split_at_checked(end)?;
        *word = if found == b"-" { b"" } else { found };
        rest = behind.get(1..)?;
    }
    let [host, tag, pid, message_id] = words;
    let (structured_data, text) = structured_data(rest)?;
    Some((Heading { time, host, tag, pid, message_id, structured_data }, text))
}

/// Splits off structured data: `- text`, `[id a="]"][id2] text`; a bracket within quotes ends nothing.
fn structured_data(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(text) = rest.strip_prefix(b"- ").or_else(|| (rest == b"-").then_some(b"")) {
        return Some((b"", text));
    }
    let (mut inside, mut escaped) = (false, false);
    for (at, byte) in rest.iter().enumerate() {
        match (inside, byte) {
            (true, b']') if !escaped => inside = false,
            (true, _) => escaped = *byte == b'\\' && !escaped,
            (false, b'[') => inside = true,
            (false, b' ') if at > 0 => return Some((rest.get(..at)?, rest.get(at + 1..)?)),
            (false, _) => return None,
        }
    }
    (!inside && !rest.is_empty()).then_some((rest, b""))
}

/// Parses the rest of a message after `<134>`: a time, a host, perhaps a tag. The host is whatever comes first: of a line
/// without a host, its tag.
fn rfc3164(rest: &[u8]) -> Option<(Heading<'_>, &[u8])> {
    let (time, rest) = time::legacy(rest)?;
    let rest = rest.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ').filter(|end| *end > 0)?;
    let (host, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
    let heading = Heading { time, host, ..Heading::default() };
    // A tag ends with a colon and a blank, and may hold the process's number.
    let tagged = rest.iter().position(|byte| matches!(byte, b' ' | b':')).and_then(|end| {
        let text = rest.get(end..)?.strip_prefix(b": ")?;
        let word = rest.get(..end)?;
        match word.strip_suffix(b"]").and_then(|word| Some((word, word.iter().position(|byte| *byte == b'[')?))) {
            Some((word, at)) => Some((word.get(..at)?, word.get(at + 1..)?, text)),
            None => Some((word, &b""[..], text)),
        }
    });
    Some(match tagged {
        Some((tag, pid, text)) => (Heading { tag, pid, ..heading }, text),
        None => (heading, rest),
    })
}

/// The bytes of a message as a line: line ends and NULs at its end go, others become blanks, in its header as in its text, so
/// that no message looks like two.
pub(super) fn one_line(text: &[u8]) -> Cow<'_, [u8]> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r' | 0);
    let len = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    let text = text.get(..len).unwrap_or_default();
    match text.iter().any(is_end) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect()),
    }
}

/// 23 facilities, 8 levels.
const MOST_PRIORITY: u8 = 23 * 8 + 7;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        let Message { priority, heading: h, text } = Message::parse(text.as_bytes());
        let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = [h.time, h.host, h.tag, h.pid, h.message_id, h.structured_data, text].map(part);
        format!("{priority:?} {}", words.join("|"))
    }

    #[test]
    fn headers() {
        for (text, expected) in [
            ("plain text", "None ||||||plain text"),
            ("<134>text", "Some((16, 6)) ||||||text"),
            ("<0>", "Some((0, 0)) ||||||"),
            ("<192>text", "None ||||||<192>text"),
            ("<1a>text", "None ||||||<1a>text"),
            ("<>text", "None ||||||<>text"),
            ("<1234567890>text", "None ||||||<1234567890>text"),
            ("<134>Feb  6 12:14:14 www haproxy[14389]: text", "Some((16, 6)) Feb  6 12:14:14|www|haproxy|14389|||text"),
            ("<134>Feb  6 12:14:14 www haproxy: text", "Some((16, 6)) Feb  6 12:14:14|www|haproxy||||text"),
            ("<134>Feb  6 12:14:14 www some text: here", "Some((16, 6)) Feb  6 12:14:14|www|||||some text: here"),
            ("<134>Feb  6 12:14:14 haproxy[7]: GET /", "Some((16, 6)) Feb  6 12:14:14|haproxy[7]:|||||GET /"),
            ("<134>Feb  6 12:14:14", "Some((16, 6)) ||||||Feb  6 12:14:14"),
            ("<134>1 - - - - - - text", "Some((16, 6)) -||||||text"),
            ("<134>1 - h t p m -", "Some((16, 6)) -|h|t|p|m||"),
            (
                "<134>1 2009-02-06T12:14:14.655123+01:00 www haproxy 14389 ID7 [a@1 b=\"\\]]\"][c] text",
                "Some((16, 6)) ||||||1 2009-02-06T12:14:14.655123+01:00 www haproxy 14389 ID7 [a@1 b=\"\\]]\"][c] text",
            ),
            (
                "<134>1 2009-02-06T12:14:14.655123+01:00 www haproxy 14389 ID7 [a@1 b=\"\\] \"][c] text",
                "Some((16, 6)) 2009-02-06T12:14:14.655123+01:00|www|haproxy|14389|ID7|[a@1 b=\"\\] \"][c]|text",
            ),
            ("<134>1 2009 www haproxy 1 - - text", "Some((16, 6)) ||||||1 2009 www haproxy 1 - - text"),
            ("<134>1 - www  haproxy 1 - - text", "Some((16, 6)) ||||||1 - www  haproxy 1 - - text"),
            ("<134>1 - a b c d [x", "Some((16, 6)) ||||||1 - a b c d [x"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_has_the_form_of_its_header() {
        for (text, form) in [
            ("text", Form::Raw),
            ("<134>text", Form::Priority),
            ("<134>Feb  6 12:14:14 www text", Form::Rfc3164),
            ("<134>1 - www - - - - text", Form::Rfc5424),
        ] {
            assert_eq!(Message::parse(text.as_bytes()).form(), form, "{text}");
        }
    }

    #[test]
    fn no_header_holds_a_line_end() {
        for hostile in
            ["<13>Feb  6 12:14:14 h\n<0>forged t[1\r\0]: text\r\n", "<13>1 - h\nx t\r p\0 m [a b=\"\n<0>forged\"] text\n"]
        {
            let line = one_line(hostile.as_bytes());
            assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)));
            assert!(line.ends_with(b"text"), "{}", line.escape_ascii());
        }
        assert!(matches!(one_line(b"<13>text\r\n"), Cow::Borrowed(b"<13>text")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..200), head in 0usize..4) {
            let head = ["", "<13>", "<13>1 ", "<13>Feb  6 12:14:14 "][head];
            let all = [head.as_bytes(), &bytes].concat();
            let message = Message::parse(&all);
            prop_assert!(all.ends_with(message.text));
        }
    }
}
