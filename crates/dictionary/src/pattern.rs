//! `match`: which requests a dictionary is for.
//!
//! RFC 9842 section 2.1.1 takes URL patterns, without groups of regular expressions and of the same origin. Here a pattern is the part of
//! them that needs no parser of theirs: a path of plain characters, perhaps a query behind `?`, and `*` for anything, `/` too. So it
//! has one reading, and names no other origin.

use std::fmt;

/// The most bytes of a pattern.
pub const MOST_BYTES: usize = 1024;
/// The most `*` of a pattern: each costs a look over the rest of a path.
pub const MOST_STARS: usize = 8;

/// A pattern of paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(Box<str>);

/// Why a text is no pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It does not begin with `/`, or begins with two of them.
    NoPath,
    /// It has a character that URL patterns give a meaning of its own, such as `(`.
    Special(char),
    /// It has a character that no URL has.
    Character(char),
    /// A `*` is followed by a character that would make a modifier of it.
    Modifier,
    /// It has more than one `?`.
    Queries,
    /// It is longer than [`MOST_BYTES`].
    Long,
    /// It has more than [`MOST_STARS`] of `*`.
    Stars,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoPath => f.write_str("a pattern is a path of the same origin, and begins with one '/'"),
            Fault::Special(character) => write!(f, "'{character}' has a meaning of its own in URL patterns"),
            Fault::Character(character) => write!(f, "{character:?} cannot stand in a URL"),
            Fault::Modifier => f.write_str("'*' cannot be followed by '*', '+' or '?'"),
            Fault::Queries => f.write_str("there is more than one '?'"),
            Fault::Long => write!(f, "it has more than {MOST_BYTES} bytes"),
            Fault::Stars => write!(f, "it has more than {MOST_STARS} of '*'"),
        }
    }
}

impl Fault {
    /// What to write instead.
    pub const fn hint(self) -> &'static str {
        match self {
            Fault::NoPath => "such as /app/*.js",
            Fault::Special(_) => "letters, digits, '*' and any of -._~/!$&'=@,;% are plain",
            Fault::Character(_) => "write it as % and two digits",
            Fault::Modifier => "one '*' stands for anything, a query too",
            Fault::Queries => "write the second one as %3F",
            Fault::Long | Fault::Stars => "a wider pattern costs nothing: the client's hash decides",
        }
    }
}

impl Pattern {
    /// The pattern of a text.
    ///
    /// # Errors
    /// It is none.
    pub fn new(text: &str) -> Result<Pattern, Fault> {
        if text.len() > MOST_BYTES {
            return Err(Fault::Long);
        }
        if !text.starts_with('/') || text.starts_with("//") {
            return Err(Fault::NoPath);
        }
        let fault = |character: char| match character {
            '(' | ')' | '{' | '}' | ':' | '\\' | '#' | '+' | '[' | ']' | '|' | '^' | '`' => Some(Fault::Special(character)),
            ' ' | '"' | '<' | '>' => Some(Fault::Character(character)),
            _ if !character.is_ascii_graphic() => Some(Fault::Character(character)),
            _ => None,
        };
        if ["**", "*+", "*?"].iter().any(|pair| text.contains(pair)) {
            return Err(Fault::Modifier);
        }
        if let Some(fault) = text.chars().find_map(fault) {
            return Err(fault);
        }
        if text.matches('?').count() > 1 {
            return Err(Fault::Queries);
        }
        if text.matches('*').count() > MOST_STARS {
            return Err(Fault::Stars);
        }
        Ok(Pattern(text.into()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it takes a path with its query. A pattern without a query takes any.
    pub fn takes(&self, target: &[u8]) -> bool {
        let (path, query) = split(target);
        let (own_path, own_query) = split(self.0.as_bytes());
        is_like(own_path, path) && own_query.is_none_or(|own| is_like(own, query.unwrap_or_default()))
    }
}

/// Path and query of a target.
fn split(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}

/// Whether a text is one that the pattern means: each part between two `*` as early as it comes, the last one at the end.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts.filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|window| window == part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether a structured field's text can hold a byte.
pub(crate) const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_cross_slashes_and_a_path_takes_any_query() {
        let takes = |pattern: &str, target: &str| Pattern::new(pattern).unwrap().takes(target.as_bytes());
        for (pattern, target) in [
            ("/*", "/"),
            ("/*", "/a/b?c"),
            ("/a/*.js", "/a/b/c.js?v=1"),
            ("/a/*.js", "/a/.js"),
            ("/a*b*c", "/axbxbc"),
            ("/a?v=*", "/a?v=1?2"),
            ("/a?v=1", "/a?v=1"),
            ("/x", "/x?"),
        ] {
            assert!(takes(pattern, target), "{pattern} {target}");
        }
        for (pattern, target) in [
            ("/a/*.js", "/a/b.css"),
            ("/a/*.js", "/a.js"),
            ("/a", "/a/"),
            ("/aa*aa", "/aaa"),
            ("/a?v=1", "/a"),
            ("/a?v=1", "/a?v=12"),
            ("/x", "/X"),
            ("/*", ""),
        ] {
            assert!(!takes(pattern, target), "{pattern} {target}");
        }
    }

    #[test]
    fn what_would_mean_something_else_is_refused() {
        for (text, fault) in [
            ("", Fault::NoPath),
            ("app/*", Fault::NoPath),
            ("https://a.example/*", Fault::NoPath),
            ("//a.example/*", Fault::NoPath),
            ("/(a|b)", Fault::Special('(')),
            ("/:name", Fault::Special(':')),
            ("/{a}?", Fault::Special('{')),
            ("/a\\*", Fault::Special('\\')),
            ("/a#b", Fault::Special('#')),
            ("/a b", Fault::Character(' ')),
            ("/a\"b", Fault::Character('"')),
            ("/\u{e9}", Fault::Character('\u{e9}')),
            ("/a\n", Fault::Character('\n')),
            ("/a*?", Fault::Modifier),
            ("/a**", Fault::Modifier),
            ("/a?b?c", Fault::Queries),
            ("/*a*a*a*a*a*a*a*a*a", Fault::Stars),
        ] {
            assert_eq!(Pattern::new(text), Err(fault), "{text}");
            assert!(!fault.to_string().is_empty() && !fault.hint().is_empty());
        }
        assert_eq!(Pattern::new(&format!("/{}", "a".repeat(MOST_BYTES))), Err(Fault::Long));
    }

    /// The same by trying every split.
    fn is_like_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|at| is_like_slowly(rest, &text[at..])),
            Some((byte, rest)) => text.split_first().is_some_and(|(first, text)| first == byte && is_like_slowly(rest, text)),
        }
    }

    proptest! {
        #[test]
        fn the_earliest_part_is_as_good_as_any(pattern in "/[ab*]{0,10}", text in "/[ab]{0,12}") {
            prop_assert_eq!(is_like(pattern.as_bytes(), text.as_bytes()), is_like_slowly(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn no_text_panics_and_patterns_stand_in_fields(text in any::<String>(), target in any::<Vec<u8>>()) {
            if let Ok(pattern) = Pattern::new(&text) {
                let _ = pattern.takes(&target);
                prop_assert!(pattern.as_str().bytes().all(is_printable));
            }
        }
    }
}
