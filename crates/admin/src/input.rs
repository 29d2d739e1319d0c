//! Splitting of a client's input into lines: pure, fed with bytes as they come.
//!
//! A line ends with a line feed; a carriage return before it is dropped. An unfinished line at the end of input is
//! dropped, as a name or a number may be cut in it. A line whose last word begins with `<<` has a payload after it,
//! verbatim: lines up to one that equals the text after the `<<`, which is the empty line when there is none. A
//! carriage return makes a line of a payload non-empty, unless the client ends its own lines with one: a file may have
//! such lines inside.
//!
//! Both may hold keys: nothing of them stays in memory that was given back.

use terse_tls::Secret;

/// Bytes of a client that are not consumed yet.
#[derive(Default, Debug)]
pub(crate) struct Input {
    bytes: Secret,
    /// Number of bytes known to hold no line end.
    searched: usize,
    payload: Option<Payload>,
    /// Line that ended the last payload.
    mark: Vec<u8>,
}

/// A payload that is being received.
#[derive(Default, Debug)]
struct Payload {
    /// The line that it belongs to.
    line: Secret,
    /// The line that ends it.
    end: Vec<u8>,
    /// Whether its client's own line has ended with a carriage return.
    returns: bool,
    bytes: Secret,
}

/// Next item of the input.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// A line, without its end and without the mark of its payload, and the payload.
    Line(Secret, Option<Secret>),
    /// Nothing until more bytes come.
    More,
    /// No more of the payload until more bytes come.
    MorePayload,
    /// A line that is longer than [`LINE_BYTES`].
    LineTooLong,
    /// A payload that is longer than [`PAYLOAD_BYTES`].
    PayloadTooLong,
}

impl Input {
    /// Appends bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Whether all bytes are consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the next item.
    pub(crate) fn next(&mut self) -> Next {
        loop {
            let Some((line, returns)) = self.take_line() else {
                return match &self.payload {
                    Some(payload) if payload.bytes.len() + self.bytes.len() > PAYLOAD_BYTES => Next::PayloadTooLong,
                    Some(_) => Next::MorePayload,
                    None if self.bytes.len() > LINE_BYTES => Next::LineTooLong,
                    None => Next::More,
                };
            };
            match &mut self.payload {
                Some(payload) if *line == *payload.end && (!returns || payload.returns || !line.is_empty()) => {
                    let Payload { line, end, bytes, .. } = std::mem::take(payload);
                    (self.payload, self.mark) = (None, end);
                    return Next::Line(line, Some(bytes));
                }
                Some(payload) => {
                    payload.bytes.extend(&line);
                    payload.bytes.extend(if returns { b"\r\n" } else { b"\n" });
                    if payload.bytes.len() > PAYLOAD_BYTES {
                        return Next::PayloadTooLong;
                    }
                }
                None if line.len() > LINE_BYTES => return Next::LineTooLong,
                None => match payload_mark(&line) {
                    Some((keep, end)) => {
                        let (line, end) = (Secret::from(line[..keep].to_vec()), end.to_vec());
                        self.payload = Some(Payload { line, end, returns, bytes: Secret::default() });
                    }
                    None => return Next::Line(line, None),
                },
            }
        }
    }

    /// The line that ended the last payload.
    pub(crate) fn mark(&self) -> &[u8] {
        &self.mark
    }

    /// Takes the bytes that are not consumed yet, for another reader.
    pub(crate) fn take_rest(&mut self) -> Secret {
        self.searched = 0;
        std::mem::take(&mut self.bytes)
    }

    /// A line, and whether it has ended with a carriage return.
    fn take_line(&mut self) -> Option<(Secret, bool)> {
        let fresh = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(end) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let mut line = self.bytes.take_front(self.searched + end + 1);
        self.searched = 0;
        let returns = line.ends_with(b"\r\n");
        line.cut(line.len() - if returns { 2 } else { 1 });
        Some((line, returns))
    }
}

/// Offset of the end of a line's own words, and the mark of its payload, if it has one.
fn payload_mark(line: &[u8]) -> Option<(usize, &[u8])> {
    let blank = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    let end = line.get(blank + 1..)?.strip_prefix(b"<<")?;
    (end.len() <= MARK_BYTES).then_some((blank, end))
}

/// The longest line: HAProxy's, whose limit is `tune.bufsize`.
pub(crate) const LINE_BYTES: usize = 16 * 1024;
/// The longest payload: HAProxy's.
pub(crate) const PAYLOAD_BYTES: usize = 128 * 1024;
/// The longest mark of a payload's end: HAProxy's.
const MARK_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Items of bytes that are fed in pieces of that size.
    fn read(bytes: &[u8], piece: usize) -> Vec<Next> {
        let (mut input, mut all) = (Input::default(), Vec::new());
        for piece in bytes.chunks(piece.max(1)) {
            input.feed(piece);
            loop {
                match input.next() {
                    Next::More | Next::MorePayload => break,
                    long @ (Next::LineTooLong | Next::PayloadTooLong) => {
                        all.push(long);
                        return all;
                    }
                    line => all.push(line),
                }
            }
        }
        all
    }

    fn lines(text: &str) -> Vec<String> {
        let line = |next: Next| match next {
            Next::Line(line, payload) => [&*line, &*payload.unwrap_or_default()].concat(),
            other => panic!("{other:?}"),
        };
        read(text.as_bytes(), 1).into_iter().map(line).map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn lines_end_with_a_line_feed_only() {
        assert_eq!(lines("show info\r\n\nhelp\n"), ["show info", "", "help"]);
        assert_eq!(lines("help\nset weight a/b 10"), ["help"], "of 100, maybe");
        assert_eq!(lines(""), [""; 0]);
    }

    #[test]
    fn payloads_are_read_to_their_end() {
        assert_eq!(lines("set x <<\na\nb\n\nhelp\n"), ["set xa\nb\n", "help"]);
        assert_eq!(lines("set x <<EOF\na\n\nEOF\nhelp\n"), ["set xa\n\n", "help"]);
        assert_eq!(lines("set x <<\na\n"), [""; 0], "without its end");
        assert_eq!(lines("set x<<\nhelp\n"), ["set x<<", "help"]);
        let long = format!("set x <<{}", "x".repeat(65));
        assert_eq!(lines(&format!("{long}\n")), [long]);
        assert_eq!(lines("set x <<\na\r\n\r\nb\r\n\nhelp\n"), ["set xa\r\n\r\nb\r\n", "help"], "a blank line of a file");
        assert_eq!(lines("set x <<\r\na\r\n\r\nhelp\r\n"), ["set xa\r\n", "help"], "all lines of a client");
        assert_eq!(lines("set x <<\r\na\n\nhelp\n"), ["set xa\n", "help"]);
        for end in ["\n", "\r\n"] {
            assert_eq!(lines(&format!("set x <<E{end}a\r\n\r\n\nE{end}help\n")), ["set xa\r\n\r\n\n", "help"]);
        }
        let mut input = Input::default();
        input.feed(b"set x <<\na");
        assert_eq!(input.next(), Next::MorePayload);
    }

    #[test]
    fn everything_has_a_limit() {
        let line = |n| format!("{}\n", "x".repeat(n));
        assert_eq!(read(line(LINE_BYTES).as_bytes(), 1000).len(), 1);
        assert_eq!(read(line(LINE_BYTES + 1).as_bytes(), 1000), [Next::LineTooLong]);
        assert_eq!(read(&vec![b'x'; LINE_BYTES + 1], 1000), [Next::LineTooLong]);
        let payload = format!("a <<\n{}", line(100).repeat(PAYLOAD_BYTES / 100));
        assert_eq!(read(payload.as_bytes(), 1000), [Next::PayloadTooLong]);
        let payload = format!("a <<\n{}", "x".repeat(PAYLOAD_BYTES + 1));
        assert_eq!(read(payload.as_bytes(), 1000), [Next::PayloadTooLong]);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'<'), Just(b' '), any::<u8>()], 0..200),
            piece in 1usize..50,
        ) {
            prop_assert_eq!(read(&bytes, piece), read(&bytes, 1));
        }
    }
}
