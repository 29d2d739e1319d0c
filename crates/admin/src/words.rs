//! A line's commands and their words: pure.
//!
//! `;` ends a command, blanks part words, and a backslash takes the special meaning from the byte behind it.

use terse_tls::Secret;

/// A line's commands as they are written, in order.
pub(crate) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(line, |byte| byte == b';')
}

/// What stands between bytes that part, where no backslash stands before them.
fn parts(text: &[u8], part: fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    let mut escaped = false;
    text.split(move |byte| {
        let ends = part(*byte) && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

/// A command of more than [`MOST_WORDS`] words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyWords;

/// The words of one command. It may have none: it is answered with an empty line.
pub(crate) fn words(command: &[u8]) -> Result<Vec<String>, TooManyWords> {
    let written = parts(command, |byte| matches!(byte, b' ' | b'\t')).filter(|part| !part.is_empty());
    let words: Vec<String> = written.take(MOST_WORDS + 1).map(word).collect();
    if words.len() <= MOST_WORDS {
        return Ok(words);
    }
    forget(words);
    Err(TooManyWords)
}

/// Overwrites words that were used: there may be keys among them.
pub(crate) fn forget(words: Vec<String>) {
    words.into_iter().for_each(|word| drop(Secret::from(word)));
}

/// A word without its backslashes.
fn word(written: &[u8]) -> String {
    // It may be a key: there is room from the beginning, so that it leaves nothing where it was.
    let mut word = Vec::with_capacity(written.len());
    let mut bytes = written.iter();
    while let Some(byte) = bytes.next() {
        word.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    text(word)
}

/// Names in the configuration are text; what is none names nothing.
fn text(word: Vec<u8>) -> String {
    String::from_utf8(word).unwrap_or_else(|error| String::from_utf8_lossy(&Secret::from(error.into_bytes())).into_owned())
}

/// HAProxy's limit.
pub(crate) const MOST_WORDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commands(line: &[u8]) -> impl Iterator<Item = Result<Vec<String>, TooManyWords>> {
        split(line).map(words)
    }

    fn all(line: &str) -> Vec<Vec<String>> {
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
        assert_eq!(commands(two.as_bytes()).collect::<Vec<_>>(), [Err(TooManyWords), Ok(vec!["y".into()])]);
    }

    #[test]
    fn words_take_no_more_than_they_need() {
        let line = "x ".repeat(64) + r"\a\b";
        assert_eq!(commands(line.as_bytes()).collect::<Vec<_>>(), [Err(TooManyWords)]);
        let words = words(&line.as_bytes()[2..]).unwrap();
        assert_eq!(words[62..], ["x", "ab"]);
        assert!(words.iter().all(|word| word.capacity() <= 8), "{words:?}");
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
            prop_assert_eq!(commands(escaped.as_bytes()).collect::<Vec<_>>(), [Ok(words)]);
        }
    }
}
