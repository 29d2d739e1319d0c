//! A line's commands and their words: pure.
//!
//! `;` ends a command, blanks part words, and a backslash takes the special meaning from the byte behind it.

use terse_tls::Secret;

/// The words of a line's commands, in order. A command may have none: it is answered with an empty line.
pub(crate) fn commands(line: &[u8]) -> impl Iterator<Item = Result<Vec<String>, TooManyWords>> {
    split(line).map(words)
}

/// A line's commands as they are written.
pub(crate) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut escaped = false;
    line.split(move |byte| {
        let ends = *byte == b';' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

/// A command of more than [`MOST_WORDS`] words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyWords;

/// The words of one command.
pub(crate) fn words(command: &[u8]) -> Result<Vec<String>, TooManyWords> {
    let (mut words, mut word): (Vec<String>, Option<Vec<u8>>) = (Vec::new(), None);
    let mut bytes = command.iter();
    while let Some(byte) = bytes.next() {
        if matches!(byte, b' ' | b'\t') {
            words.extend(word.take().map(text));
            continue;
        }
        let byte = if *byte == b'\\' { bytes.next() } else { Some(byte) };
        // It may be a key: a word has room from the beginning, so that it leaves nothing where it was.
        word.get_or_insert_with(|| Vec::with_capacity(bytes.len() + 1)).extend(byte);
    }
    words.extend(word.map(text));
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
