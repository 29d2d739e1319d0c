//! Lines of a file.

use crate::diagnostic::Place;
use std::ops::Range;
use std::sync::Arc;

/// A line, without its end.
pub(crate) struct Line<'s> {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Its bytes, without the line feed and without carriage returns before it.
    pub(crate) bytes: &'s [u8],
    /// Whether a line feed ends it.
    pub(crate) terminated: bool,
}

/// The lines of a file.
pub(crate) fn lines(source: &[u8]) -> impl Iterator<Item = Line<'_>> {
    source.split_inclusive(|byte| *byte == b'\n').zip(1..).map(|(line, number)| {
        let terminated = line.ends_with(b"\n");
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let length = content.len() - content.iter().rev().take_while(|byte| **byte == b'\r').count();
        Line { number, bytes: &content[..length], terminated }
    })
}

impl Line<'_> {
    /// The line as a place, all of it but the blanks around.
    pub(crate) fn place(&self, file: &Arc<str>) -> Place {
        let place = Place { file: file.clone(), line: self.number, text: readable(self.bytes).into(), span: 0..0 };
        place.at(self.content())
    }

    /// The bytes between the first and the last that is no blank.
    fn content(&self) -> Range<usize> {
        let start = self.bytes.len() - self.bytes.trim_ascii_start().len();
        start..self.bytes.trim_ascii_end().len().max(start)
    }
}

/// The bytes as text of the same length: bytes that are not UTF-8 become `?`, so that spans hold in both.
fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// Real lines are shorter, and a diagnostic keeps the line that it concerns.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(source: &str) -> Vec<(u32, &str, bool)> {
        lines(source.as_bytes()).map(|line| (line.number, std::str::from_utf8(line.bytes).unwrap(), line.terminated)).collect()
    }

    #[test]
    fn line_ends() {
        assert_eq!(cut(""), []);
        assert_eq!(cut("\n"), [(1, "", true)]);
        assert_eq!(cut("a\n\nb\r\nc\rd"), [(1, "a", true), (2, "", true), (3, "b", true), (4, "c\rd", false)]);
    }

    #[test]
    fn spans_hold_in_what_is_shown() {
        let line = Line { number: 3, bytes: b"  \xff\xc3\xa9 x\xe2\x82 ", terminated: true };
        let place = line.place(&"f".into());
        assert_eq!((&*place.text, place.span), ("  ?\u{e9} x?? ", 2..9));
        assert_eq!(Line { bytes: b"   ", ..line }.place(&"f".into()).span, 3..3);
    }
}
