//! Files of patterns, line by line.
//!
//! A line whose first byte is `#` is a comment; blanks before a pattern are not part of it. With one column the pattern is
//! the rest of the line. With two it is the first word. The value is the text between the blanks after that word and the
//! blanks at the line's end.

use super::reference::Columns;

/// The longest line: HAProxy's, whose limit is `tune.bufsize`.
pub const PATTERN_BYTES: usize = 16 * 1024;

/// A line that holds an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'f> {
    /// Its number, from 1.
    pub(super) number: usize,
    /// The pattern.
    pub(super) key: &'f [u8],
    /// The value, where there are two columns.
    pub(super) value: Option<&'f [u8]>,
}

/// The entries of a file; an error is the number of a line that is too long.
pub(super) fn lines(file: &[u8], columns: Columns) -> impl Iterator<Item = Result<Line<'_>, usize>> {
    file.split(|&byte| byte == b'\n').enumerate().filter_map(move |(at, line)| {
        let number = at + 1;
        if line.len() > PATTERN_BYTES {
            return Some(Err(number));
        }
        // As in HAProxy, a carriage return ends a line too.
        let line = line.split(|&byte| byte == b'\r').next().unwrap_or_default();
        if line.starts_with(b"#") {
            return None;
        }
        let line = &line[blanks(line)..];
        if line.is_empty() {
            return None;
        }
        Some(Ok(match columns {
            Columns::One => Line { number, key: line, value: None },
            Columns::Two => {
                let (key, value) = pair(line);
                Line { number, key, value: Some(value) }
            }
        }))
    })
}

/// The first word, and the text after the blanks that follow it, without blanks at the end.
pub(super) fn pair(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let value = &rest[blanks(rest)..];
    let trailing = value.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    (key, &value[..value.len() - trailing])
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, columns: Columns) -> Vec<(usize, String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = lines(file.as_bytes(), columns).map(Result::unwrap);
        lines.map(|line| (line.number, text(line.key), line.value.map(text))).collect()
    }

    #[test]
    fn one_column() {
        let file = "# no\n\ta b \r\n\n  \n #c\n.d";
        let expected = [(2, "a b "), (5, "#c"), (6, ".d")].map(|(n, key)| (n, key.to_owned(), None));
        assert_eq!(read(file, Columns::One), expected);
    }

    #[test]
    fn two_columns() {
        let file = "# no\n 10.0.0.0/8 \t the ten net \t\nalone\n";
        let expected = [(2, "10.0.0.0/8", "the ten net"), (3, "alone", "")];
        assert_eq!(read(file, Columns::Two), expected.map(|(n, key, value)| (n, key.to_owned(), Some(value.to_owned()))));
    }

    #[test]
    fn lines_have_a_limit() {
        let file = format!("a\n{}\nb", "x".repeat(PATTERN_BYTES + 1));
        assert_eq!(lines(file.as_bytes(), Columns::One).find_map(Result::err), Some(2));
    }
}
