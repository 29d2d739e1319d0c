//! Commands of a line and their words: pure.
//!
//! `;` ends a command, blanks separate words, and a backslash takes the special meaning from the byte after it.

use std::fmt;
use std::ops::Deref;
use terse_tls::Secret;

/// Commands of a line as they are written, in order.
pub(crate) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(line, |byte| byte == b';')
}

/// Parts between separators that have no backslash before them.
fn parts(text: &[u8], part: fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    let mut escaped = false;
    text.split(move |byte| {
        let ends = part(*byte) && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

/// Error of a command with more than [`MOST_WORDS`] words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyWords;

/// A word of a command: its bytes, which may be a key. As text where it is a name: no name has bytes that are not
/// UTF-8.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Word(Secret);

impl Word {
    /// Reads a word without its backslashes.
    fn read(written: &[u8]) -> Word {
        // The capacity is there from the beginning, so that no copy is left in freed memory.
        let mut word = Vec::with_capacity(written.len());
        let mut bytes = written.iter();
        while let Some(byte) = bytes.next() {
            word.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
        }
        Word(Secret::from(word))
    }

    /// A word of these bytes, as they are.
    pub(crate) fn of(bytes: &[u8]) -> Word {
        Word(Secret::from(bytes.to_vec()))
    }

    /// Bytes as the client sent them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The word as a name; no name has the replacement character for bytes that are not UTF-8.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("\u{fffd}")
    }
}

impl Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, other: &str) -> bool {
        self.bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Word {
        Word(Secret::from(text.as_bytes().to_vec()))
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Word({} bytes)", self.0.len())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Words of a command. It may have none: it is answered with an empty line.
pub(crate) fn words(command: &[u8]) -> Result<Vec<Word>, TooManyWords> {
    let written = parts(command, |byte| matches!(byte, b' ' | b'\t')).filter(|part| !part.is_empty());
    let words: Vec<Word> = written.take(MOST_WORDS + 1).map(Word::read).collect();
    if words.len() <= MOST_WORDS { Ok(words) } else { Err(TooManyWords) }
}

/// Words as one text, with a blank between two.
pub(crate) fn joined(words: &[Word]) -> Vec<u8> {
    words.iter().map(Word::bytes).collect::<Vec<_>>().join(&b' ')
}

/// HAProxy's limit.
pub(crate) const MOST_WORDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commands(line: &[u8]) -> impl Iterator<Item = Result<Vec<Word>, TooManyWords>> {
        split(line).map(words)
    }

    fn all(line: &str) -> Vec<Vec<Word>> {
        commands(line.as_bytes()).map(Result::unwrap).collect()
    }

    #[test]
    fn semicolons_and_blanks() {
        assert_eq!(all("show info;\tshow  stat x "), [vec!["show", "info"], vec!["show", "stat", "x"]]);
        assert_eq!(all(""), [[""; 0]]);
        assert_eq!(all(";a;"), [vec![], vec!["a"], vec![]] as [Vec<&str>; 3]);
    }

    #[test]
    fn backslashes_take_meanings_away() {
        assert_eq!(all(r"add a\ b\;c \\ d\n \"), [["add", "a b;c", r"\", "dn", ""]]);
    }

    #[test]
    fn commands_are_split_as_they_are_written() {
        let split = |line: &'static str| split(line.as_bytes()).map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>();
        assert_eq!(split(r"@1 add acl f a\ b\;;@1 show acl f"), [r"@1 add acl f a\ b\;", "@1 show acl f"]);
        assert_eq!(split(r"a\\;b;"), [r"a\\", "b", ""]);
    }

    #[test]
    fn words_are_limited() {
        assert!(commands("x ".repeat(64).as_bytes()).all(|words| words.is_ok()));
        let two = "x ".repeat(65) + ";y";
        assert_eq!(commands(two.as_bytes()).collect::<Vec<_>>(), [Err(TooManyWords), Ok(vec![Word::from("y")])]);
    }

    #[test]
    fn words_are_read_behind_a_limit() {
        let line = "x ".repeat(64) + r"\a\b";
        assert_eq!(commands(line.as_bytes()).collect::<Vec<_>>(), [Err(TooManyWords)]);
        let words = words(&line.as_bytes()[2..]).unwrap();
        assert_eq!(words[62..], ["x", "ab"]);
    }

    #[test]
    fn words_are_bytes() {
        let words = words(b"set map \xff\\ \x80 caf\xc3\xa9").unwrap();
        assert_eq!(words[2].bytes(), b"\xff \x80");
        assert_eq!((words[2].as_str(), words[3].as_str()), ("\u{fffd}", "caf\u{e9}"));
        assert_eq!(joined(&words[2..]), b"\xff \x80 caf\xc3\xa9");
    }

    proptest! {
        #[test]
        fn any_bytes_have_words(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let all: Vec<_> = commands(&line).collect();
            prop_assert!(!all.is_empty() && all.len() <= 1 + line.iter().filter(|byte| **byte == b';').count());
        }

        #[test]
        fn escaped_words_come_back(words in proptest::collection::vec("[ -~]{1,9}", 1..9)) {
            let escaped: String = words.join("\n").chars().flat_map(|c| match c {
                '\n' => vec![' '],
                c if " ;\\\t".contains(c) => vec!['\\', c],
                c => vec![c],
            }).collect();
            let read: Vec<Word> = words.iter().map(|word| Word::from(&**word)).collect();
            prop_assert_eq!(commands(escaped.as_bytes()).collect::<Vec<_>>(), [Ok(read)]);
        }
    }
}
