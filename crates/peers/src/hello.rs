//! Beginning of a connection: its sender, its target, and their check.

use std::fmt::Write as _;

/// The three lines of a connecting process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// Whether it speaks version 2.1, whose updates hold the expiry of entries.
    pub(crate) timed: bool,
    /// Name of the target.
    pub(crate) to: String,
    /// Name of the sender.
    pub(crate) from: String,
}

/// Answer, or outcome of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Accepted.
    Welcome = 200,
    /// Try again later.
    Later = 300,
    /// No hello.
    Protocol = 501,
    /// Another version.
    Version = 502,
    /// Another target is meant.
    WrongTarget = 503,
    /// The sender is not a peer of the section.
    Stranger = 504,
}

/// Result of parsing the bytes so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Read<T> {
    /// A complete item, and its length in bytes.
    Whole(T, usize),
    /// More is needed.
    Partial,
    /// Malformed.
    Wrong(Status),
}

/// Hello of this process when it connects.
pub(crate) fn write(to: &str, from: &str, process: u32) -> Vec<u8> {
    let mut text = String::new();
    let _ = write!(text, "{PROTOCOL} 2.1\n{to}\n{from} {process} 1\n");
    text.into_bytes()
}

/// Parses the hello of a connecting process.
pub(crate) fn read(bytes: &[u8]) -> Read<Hello> {
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let (Some(first), Some(second), Some(third)) = (ends.next(), ends.next(), ends.next()) else {
        let begins = PROTOCOL.as_bytes().iter().zip(bytes).all(|(wanted, byte)| wanted == byte);
        return if !begins || bytes.len() > MOST_BYTES { Read::Wrong(Status::Protocol) } else { Read::Partial };
    };
    let line = |range: std::ops::Range<usize>| bytes.get(range).and_then(|line| std::str::from_utf8(line).ok());
    let lines = (line(0..first), line(first + 1..second), line(second + 1..third));
    let (Some(head), Some(to), Some(from)) = lines else { return Read::Wrong(Status::Protocol) };
    let Some(version) = head.trim_end().strip_prefix(PROTOCOL) else { return Read::Wrong(Status::Protocol) };
    let timed = match version.trim_start().split_once('.') {
        Some(("2", minor)) => minor.parse::<u32>().is_ok_and(|minor| minor >= 1),
        _ => return Read::Wrong(Status::Version),
    };
    let mut words = from.split_whitespace();
    match (to.trim_end(), words.next()) {
        (to, Some(from)) if !to.is_empty() => Read::Whole(Hello { timed, to: to.to_owned(), from: from.to_owned() }, third + 1),
        _ => Read::Wrong(Status::Protocol),
    }
}

/// Parses the answer: 200 or the reason of a refusal, as a number.
pub(crate) fn read_status(bytes: &[u8]) -> Read<u32> {
    match bytes.iter().position(|byte| *byte == b'\n') {
        None if bytes.len() > MOST_BYTES => Read::Wrong(Status::Protocol),
        None => Read::Partial,
        Some(end) => {
            let text = bytes.get(..end).and_then(|line| std::str::from_utf8(line).ok());
            match text.and_then(|text| text.trim_end().parse().ok()) {
                Some(status) => Read::Whole(status, end + 1),
                None => Read::Wrong(Status::Protocol),
            }
        }
    }
}

impl Status {
    /// Line of the answer.
    pub(crate) fn line(self) -> Vec<u8> {
        format!("{}\n", self as u32).into_bytes()
    }
}

const PROTOCOL: &str = "HAProxyS";
/// Names of hosts are shorter.
const MOST_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_is_written() {
        let bytes = write("b", "a", 77);
        assert_eq!(bytes, b"HAProxyS 2.1\nb\na 77 1\n");
        let hello = Hello { timed: true, to: "b".into(), from: "a".into() };
        assert_eq!(read(&bytes), Read::Whole(hello, bytes.len()));
        (0..bytes.len()).for_each(|end| assert_eq!(read(&bytes[..end]), Read::Partial, "{end}"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, status) in [
            ("GET / HTTP/1.1", Status::Protocol),
            ("HAProxyS 3.0\na\nb 1 1\n", Status::Version),
            ("HAProxyS\na\nb 1 1\n", Status::Version),
            ("HAProxyS 2.1\n\nb 1 1\n", Status::Protocol),
            ("HAProxyS 2.1\na\n\n", Status::Protocol),
        ] {
            assert_eq!(read(text.as_bytes()), Read::Wrong(status), "{text:?}");
        }
        assert!(matches!(read(b"HAProxyS 2.0\na\nb 1\n"), Read::Whole(Hello { timed: false, .. }, _)));
    }

    #[test]
    fn an_answer_is_a_number() {
        assert_eq!(read_status(b"200\n\0\0"), Read::Whole(200, 4));
        assert_eq!(read_status(b"20"), Read::Partial);
        assert_eq!(read_status(b"x\n"), Read::Wrong(Status::Protocol));
        assert_eq!(Status::Later.line(), b"300\n");
    }
}
