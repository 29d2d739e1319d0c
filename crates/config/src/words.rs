//! Words of a line: blanks, comments, escapes, quotes and variables, as HAProxy's manual describes them ("Quoting and escaping",
//! "Environment variables").
//!
//! | | outside quotes | `"weak"` | `'strong'` |
//! |---|---|---|---|
//! | blank | ends the word | itself | itself |
//! | `#` | begins a comment | itself | itself |
//! | `$NAME`, `${NAME}`, `${NAME-default}`, `${NAME[*]}` | itself | the variable's value | itself |
//! | `\ ` `\\` `\#` `\'` `\"` `\n` `\r` `\t` `\xHH` | the character | the character | itself |
//! | `\$` | itself | `$` | itself |
//!
//! Any other backslash stands for itself, also at the end of a line: lines are not continued.
//!
//! Invariants: spans lie inside the line and grow from word to word (words made by `[*]` share one); no word holds a NUL byte.

use std::borrow::Cow;
use std::ops::Range;

pub use crate::units::{parse_size, parse_time};

/// A word of a line, unquoted and expanded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// Its bytes, any but NUL.
    pub bytes: Vec<u8>,
    /// The bytes of the line that it was made from, quotes included.
    pub span: Range<usize>,
}

impl Word {
    /// The word as text; empty when it is not UTF-8, which no keyword is.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// The word for people to read.
    pub fn display(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// A line, cut into words.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Words {
    /// The words in order; a word may be empty (`""`).
    pub words: Vec<Word>,
    /// Variables that were not set, had no default, and became empty: the index of the word, and the name.
    pub unset: Vec<(usize, String)>,
}

/// Reason why a line cannot be cut into words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct WordsError {
    /// The reason.
    pub reason: String,
    /// Text to write instead.
    pub hint: Option<&'static str>,
    /// The bytes of the line that it concerns.
    pub span: Range<usize>,
}

/// The value of a variable of the environment; names that begin with a dot are HAProxy's pseudo-variables (`.FILE`, `.LINE`).
pub type Variables<'v> = dyn Fn(&str) -> Option<String> + 'v;

/// Cuts a line into words; a `#` outside quotes ends it.
pub fn split(line: &[u8], variables: &Variables<'_>) -> Result<Words, WordsError> {
    Splitter::new(line, variables).run(true)
}

/// Cuts a line that knows no comments, as the argument of `-cc`, into words.
pub fn split_argument(line: &[u8], variables: &Variables<'_>) -> Result<Words, WordsError> {
    Splitter::new(line, variables).run(false)
}

/// A word as it has to be written to be read as these bytes again. (NUL cannot be written.)
pub fn quote(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\#$".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return word.iter().map(|byte| char::from(*byte)).collect();
    }
    let mut quoted = String::from("\"");
    for byte in word {
        match byte {
            b'"' | b'\\' | b'$' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// State of the reading of a line.
struct Splitter<'l, 'v> {
    line: &'l [u8],
    at: usize,
    variables: &'l Variables<'v>,
    quote: Option<Quote>,
    /// The word being read.
    word: Option<Word>,
    out: Words,
}

/// An open quote.
#[derive(Clone, Copy)]
struct Quote {
    mark: u8,
    opened_at: usize,
    /// Whether the pair makes a word even if it is empty.
    makes_word: bool,
}

impl<'l, 'v> Splitter<'l, 'v> {
    fn new(line: &'l [u8], variables: &'l Variables<'v>) -> Self {
        Splitter { line, at: 0, variables, quote: None, word: None, out: Words::default() }
    }

    fn run(mut self, comments: bool) -> Result<Words, WordsError> {
        while let Some(byte) = self.byte(0) {
            let mark = self.quote.map(|quote| quote.mark);
            match byte {
                0 => return Err(self.error(self.at..self.at + 1, "stray NUL byte", None)),
                b'\n' | b'\r' => {
                    return Err(self.error(self.at..self.at + 1, "line break inside the line", Some("write '\\n' or '\\r'")));
                }
                b'#' if comments && mark.is_none() => break,
                b'"' | b'\'' if mark == Some(byte) => self.close_quote(),
                b'"' | b'\'' if mark.is_none() => {
                    self.quote = Some(Quote { mark: byte, opened_at: self.at, makes_word: true });
                    self.at += 1;
                }
                b'\\' if mark != Some(b'\'') => self.escape(comments)?,
                b'$' if mark == Some(b'"') => self.variable()?,
                _ if is_blank(byte) && mark.is_none() => {
                    self.end_word();
                    self.at += 1;
                }
                _ => {
                    self.at += 1;
                    self.push(byte, self.at - 1);
                }
            }
        }
        if let Some(quote) = self.quote {
            return Err(self.error(quote.opened_at..self.line.len(), "unmatched quote", None));
        }
        self.end_word();
        if self.out.words.len() > MAX_WORDS {
            let first = self.out.words.get(MAX_WORDS).map_or(0..0, |word| word.span.clone());
            return Err(self.error(first, &format!("too many words: a line may have {MAX_WORDS}"), None));
        }
        Ok(self.out)
    }

    fn close_quote(&mut self) {
        let quote = self.quote.take();
        self.at += 1;
        if let Some(quote) = quote.filter(|quote| quote.makes_word || self.word.is_some()) {
            self.open_word(quote.opened_at).span.end = self.at;
        }
    }

    /// Reads an escape. The backslash is the current byte.
    fn escape(&mut self, comments: bool) -> Result<(), WordsError> {
        let start = self.at;
        let weak = self.quote.is_some();
        let (byte, length) = match self.byte(1) {
            Some(next @ (b' ' | b'\\' | b'\'' | b'"')) => (next, 2),
            Some(b'#') if comments => (b'#', 2),
            Some(b'$') if weak => (b'$', 2),
            Some(b't') => (b'\t', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'x') => match self.hex_digit(2).zip(self.hex_digit(3)) {
                Some((0, 0)) => return Err(self.error(start..start + 4, "a word cannot hold a NUL byte", None)),
                Some((high, low)) => (high << 4 | low, 4),
                None => {
                    let hint = "write '\\x' and two hexadecimal digits, or '\\\\x'";
                    return Err(self.error(start..start + 2, "truncated or invalid hexadecimal sequence", Some(hint)));
                }
            },
            _ => (b'\\', 1),
        };
        self.at += length;
        self.push(byte, start);
        Ok(())
    }

    /// Reads a variable inside weak quotes. The dollar is the current byte.
    fn variable(&mut self) -> Result<(), WordsError> {
        let start = self.at;
        let braced = self.byte(1) == Some(b'{');
        self.at += 1 + usize::from(braced);
        let name = self.variable_name(start)?;
        let mut value = (self.variables)(&name);
        if value.is_none() && name.starts_with('.') {
            return Err(self.error(
                start..self.at,
                &format!("'{name}' is no pseudo-variable"),
                Some(".FILE, .LINE and .SECTION are"),
            ));
        }
        let spread = braced && self.byte(0) == Some(b'[');
        if spread {
            if !self.line[self.at..].starts_with(b"[*]") {
                let span = self.at..self.at + 1;
                return Err(self.error(span, "truncated or invalid word expansion sequence", Some("write '[*]'")));
            }
            self.at += 3;
        }
        if braced {
            let default = self.default_value(start)?;
            value = value.or(default);
        }
        match (spread, value) {
            (true, value) => self.spread(value.unwrap_or_default().as_bytes(), start),
            (false, Some(value)) => value.bytes().for_each(|byte| self.push(byte, start)),
            (false, None) => {
                self.open_word(start).span.end = self.at;
                self.out.unset.push((self.out.words.len(), name));
            }
        }
        Ok(())
    }

    fn variable_name(&mut self, start: usize) -> Result<String, WordsError> {
        if !self.byte(0).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'.') {
            let hint = "write '\\$' for a dollar, or use single quotes";
            return Err(self.error(start..self.at, "forbidden first character in the name of a variable", Some(hint)));
        }
        let name = &self.line[self.at..];
        let length = 1 + name.iter().skip(1).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        self.at += length;
        Ok(String::from_utf8_lossy(&name[..length]).into_owned())
    }

    /// Reads `-default` if there is one, and the closing brace.
    fn default_value(&mut self, start: usize) -> Result<Option<String>, WordsError> {
        let rest = &self.line[self.at..];
        let close = match rest.first() {
            Some(b'}') => Some(0),
            Some(b'-') => rest.iter().position(|byte| *byte == b'}'),
            _ => None,
        };
        let Some(close) = close else {
            return Err(self.error(start..self.at, "unmatched brace in the name of a variable", None));
        };
        self.at += close + 1;
        Ok((close > 0).then(|| String::from_utf8_lossy(&rest[1..close]).into_owned()))
    }

    /// Adds a value whose blanks end words. Alone between quotes and empty, it makes no word.
    fn spread(&mut self, value: &[u8], start: usize) {
        if let Some(quote) = &mut self.quote {
            quote.makes_word = false;
        }
        for byte in value {
            match is_blank(*byte) {
                true => self.end_word(),
                false => self.push(*byte, start),
            }
        }
    }

    /// Adds a byte that was made from the bytes between `start` and here.
    fn push(&mut self, byte: u8, start: usize) {
        let from = self.quote.map_or(start, |quote| quote.opened_at);
        let at = self.at;
        let word = self.open_word(from);
        word.bytes.push(byte);
        word.span.end = at;
    }

    fn open_word(&mut self, start: usize) -> &mut Word {
        self.word.get_or_insert_with(|| Word { bytes: Vec::new(), span: start..start })
    }

    fn end_word(&mut self) {
        self.out.words.extend(self.word.take());
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.line.get(self.at + ahead).copied()
    }

    fn hex_digit(&self, ahead: usize) -> Option<u8> {
        let digit = char::from(self.byte(ahead)?).to_digit(16)?;
        u8::try_from(digit).ok()
    }

    fn error(&self, span: Range<usize>, reason: &str, hint: Option<&'static str>) -> WordsError {
        WordsError { reason: reason.into(), hint, span: span.start.min(self.line.len())..span.end.min(self.line.len()) }
    }
}

/// Whether the C library's `isspace` holds, without the line feed.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0b' | b'\x0c' | b'\r')
}

/// HAProxy stops at 64 unless it is built for more; lists of addresses written out in one line are longer.
pub const MAX_WORDS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "A" => Some("alpha".into()),
            "LIST" => Some(" one  two three ".into()),
            "EMPTY" => Some(String::new()),
            ".LINE" => Some("7".into()),
            _ => None,
        }
    }

    fn texts(line: &str) -> Vec<String> {
        split(line.as_bytes(), &environment).unwrap().words.iter().map(|word| word.display().into_owned()).collect()
    }

    fn problem(line: &str) -> (String, Range<usize>) {
        let error = split(line.as_bytes(), &environment).unwrap_err();
        (error.reason, error.span)
    }

    #[test]
    fn blanks_comments_and_escapes() {
        for (line, expected) in [
            ("", vec![]),
            (" \t ", vec![]),
            ("# all comment", vec![]),
            ("  bind\t:80 # why", vec!["bind", ":80"]),
            ("a#b", vec!["a"]),
            (r"a\#b a\ b a\\b", vec!["a#b", "a b", r"a\b"]),
            (r#"\"a\' \x41\x7e \n\r\t"#, vec!["\"a'", "A~", "\n\r\t"]),
            (r"\1 a\$b \", vec![r"\1", r"a\$b", r"\"]),
            ("$A ${A}", vec!["$A", "${A}"]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
    }

    #[test]
    fn quotes() {
        for (line, expected) in [
            (r#""a b" 'c d' e"f g"h'i'"#, vec!["a b", "c d", "ef ghi"]),
            (r#""" '' a"" """#, vec!["", "", "a", ""]),
            (r#""it's # fine" '"$A" \n \'"#, vec!["it's # fine", r#""$A" \n \"#]),
            (r#""\"\$A\x21\'\#\d""#, vec![r##""$A!'#\d"##]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
    }

    #[test]
    fn variables_inside_weak_quotes() {
        for (line, expected) in [
            (r#""$A" "<${A}>" "$A$A""#, vec!["alpha", "<alpha>", "alphaalpha"]),
            (r#""${NONE-a b}" "${A-b}" "${EMPTY-b}" "${NONE-}""#, vec!["a b", "alpha", "", ""]),
            (r#""$NONE" "x${NONE}y""#, vec!["", "xy"]),
            (r#""${LIST[*]}""#, vec!["one", "two", "three"]),
            (r#""a${LIST[*]}b" c"#, vec!["a", "one", "two", "three", "b", "c"]),
            (r#"x "${EMPTY[*]}" "${NONE[*]}" y"#, vec!["x", "y"]),
            (r#"x"${EMPTY[*]}" "${NONE[*]-p q}""#, vec!["x", "p", "q"]),
            (r#""l$.LINE""#, vec!["l7"]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
        let unset = split(br#"a "$NONE" "${NONE-x}" "x$NO""#, &environment).unwrap().unset;
        assert_eq!(unset, [(1, "NONE".to_owned()), (3, "NO".to_owned())]);
    }

    #[test]
    fn problems_know_their_bytes() {
        for (line, reason, span) in [
            ("bind \":80", "unmatched quote", 5..9),
            ("'", "unmatched quote", 0..1),
            ("a \\xG0", "truncated or invalid hexadecimal sequence", 2..4),
            ("a \\x4", "truncated or invalid hexadecimal sequence", 2..4),
            ("a \\x00", "a word cannot hold a NUL byte", 2..6),
            ("a \0", "stray NUL byte", 2..3),
            ("a \r b", "line break inside the line", 2..3),
            ("\"$1\"", "forbidden first character in the name of a variable", 1..2),
            ("\"a$", "forbidden first character in the name of a variable", 2..3),
            ("\"${A\"", "unmatched brace in the name of a variable", 1..4),
            ("\"${A-x\"", "unmatched brace in the name of a variable", 1..4),
            ("\"${A[b}\"", "truncated or invalid word expansion sequence", 4..5),
            ("\"$.NONE\"", "'.NONE' is no pseudo-variable", 1..7),
        ] {
            assert_eq!(problem(line), (reason.to_owned(), span), "{line}");
        }
        assert_eq!(problem(&"a ".repeat(MAX_WORDS + 1)).1, 2048..2049);
        assert!(split("a ".repeat(MAX_WORDS).as_bytes(), &environment).is_ok());
    }

    #[test]
    fn spans_cover_quotes_and_escapes() {
        let spans: Vec<_> =
            split(br#" ab "c d"e \x41 "${LIST[*]}""#, &environment).unwrap().words.into_iter().map(|w| w.span).collect();
        assert_eq!(spans, [1..3, 4..10, 11..15, 16..27, 16..27, 16..27]);
    }

    proptest! {
        #[test]
        fn any_line_is_cut_or_refused(line in prop::collection::vec(any::<u8>(), 0..200)) {
            check(&line)?;
        }

        #[test]
        fn any_line_of_marks_is_cut_or_refused(line in r#"[ab \\"'$#{}\[*\]\-x0.]{0,60}"#) {
            check(line.as_bytes())?;
        }

        #[test]
        fn quoted_words_come_back(words in prop::collection::vec(prop::collection::vec(1u8.., 0..20), 0..20)) {
            let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
            let back: Vec<_> = split(line.as_bytes(), &environment).unwrap().words.into_iter().map(|word| word.bytes).collect();
            prop_assert_eq!(back, words);
        }
    }

    fn check(line: &[u8]) -> Result<(), TestCaseError> {
        match split(line, &environment) {
            Ok(Words { words, unset }) => {
                for word in &words {
                    prop_assert!(word.span.start < word.span.end && word.span.end <= line.len());
                    prop_assert!(!word.bytes.contains(&0));
                }
                prop_assert!(words.windows(2).all(|pair| pair[0].span.start <= pair[1].span.start));
                prop_assert!(unset.iter().all(|(word, _)| *word < words.len()));
            }
            Err(error) => prop_assert!(error.span.start <= error.span.end && error.span.end <= line.len()),
        }
        Ok(())
    }
}
