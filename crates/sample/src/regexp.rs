//! Regular expressions, written as PCRE has them, matched in linear time.

use regex::bytes::{Captures, Regex, RegexBuilder};

/// Compiles an expression over bytes. What needs backtracking (look-around, references back, possessive and atomic groups) is an
/// error that says so.
pub fn compile(pattern: &[u8], ignore_case: bool) -> Result<Regex, String> {
    let text = portable(pattern);
    let mut builder = RegexBuilder::new(&text);
    builder.unicode(false).case_insensitive(ignore_case).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_CACHE_BYTES);
    builder.build().map_err(|error| {
        let shown = pattern.escape_ascii();
        match unsupported(&text) {
            Some(what) => format!("regular expression '{shown}': {what} not supported: expressions here run in linear time"),
            None => {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("regular expression '{shown}': {reason}")
            }
        }
    })
}

/// The most memory that a compiled expression takes; a longer one is an error.
pub const REGEX_BYTES: usize = 10 << 20;
/// The most memory that the matching of an expression keeps, for each worker; more makes it slower, not wrong.
pub const REGEX_CACHE_BYTES: usize = 2 << 20;

/// Appends a template in which `\0` to `\9` stand for what the groups matched, and `\xHH` for a byte; a group that matched nothing is empty.
pub fn expand(template: &[u8], captures: &Captures<'_>, out: &mut impl Extend<u8>) {
    let mut rest = template;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, after.first()) {
            (b'\\', Some(&digit)) if digit.is_ascii_digit() => {
                if let Some(group) = captures.get(usize::from(digit - b'0')) {
                    out.extend(group.as_bytes().iter().copied());
                }
                rest = &after[1..];
            }
            (b'\\', Some(b'x')) => match after.get(1..3).and_then(crate::pattern::hex).as_deref() {
                Some(&[byte]) => {
                    out.extend([byte]);
                    rest = &after[3..];
                }
                _ => {
                    out.extend([b'x']);
                    rest = &after[1..];
                }
            },
            (b'\\', Some(&other)) => {
                out.extend([other]);
                rest = &after[1..];
            }
            (b'\\', None) => {}
            (byte, _) => out.extend([byte]),
        }
    }
}

/// The same expression for an engine with nested classes: in a class, `[`, `&`, `~` and `-` twice are themselves; bytes beyond ASCII
/// are written as escapes; `(?i)` and the like stay.
fn portable(pattern: &[u8]) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let (mut class, mut at) = (None, 0);
    while let Some(&b) = pattern.get(at) {
        let next = pattern.get(at + 1).copied();
        match (b, class) {
            (b'\\', _) => {
                out.push('\\');
                if let Some(escaped) = next {
                    push(escaped, &mut out);
                    at += 1;
                }
            }
            (b'[', None) => {
                // A bracket that closes right at the start is itself.
                let negated = next == Some(b'^');
                let body = at + 1 + usize::from(negated);
                out.push_str(if negated { "[^" } else { "[" });
                class = Some(());
                at = body - 1;
                if pattern.get(body) == Some(&b']') {
                    out.push_str("\\]");
                    at = body;
                }
            }
            (b'[', Some(())) if next == Some(b':') => out.push('['),
            (b']', Some(())) if pattern.get(at.wrapping_sub(1)) == Some(&b':') && out_class_open(&out) => out.push(']'),
            (b']', Some(())) => {
                class = None;
                out.push(']');
            }
            (b'[' | b'&' | b'~', Some(())) => {
                out.push('\\');
                out.push(char::from(b));
            }
            (b'-', Some(())) if next == Some(b'-') => out.push_str("\\-"),
            (b, _) => push(b, &mut out),
        }
        at += 1;
    }
    out
}

/// Whether the last bracket that was written opens a named class, `[:alpha:`.
fn out_class_open(out: &str) -> bool {
    out.rfind("[:").is_some_and(|at| !out[at..].contains(']'))
}

fn push(b: u8, out: &mut String) {
    if b.is_ascii() {
        out.push(char::from(b));
    } else {
        out.push_str(&format!("\\x{b:02x}"));
    }
}

fn unsupported(text: &str) -> Option<&'static str> {
    let has = |needles: &[&str]| needles.iter().any(|n| text.contains(n));
    if has(&["(?=", "(?!", "(?<=", "(?<!"]) {
        Some("look-around is")
    } else if has(&["(?>", "*+", "++", "?+"]) {
        Some("atomic groups and possessive quantifiers are")
    } else if has(&["\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9", "\\k", "(?P="]) {
        Some("references back to a group are")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcre_classes() {
        for (pattern, text, expected) in [
            ("^[]a]+$", "]a", true),
            ("^[^]]+$", "ab]", false),
            ("^[[:alpha:]_-]+$", "ab_-", true),
            ("^[^[:space:]]+$", "a b", false),
            ("^[a[b]+$", "[ab", true),
            ("^[a&&b]+$", "a&b", true),
            ("^\\/x\\-y$", "/x-y", true),
            ("^[^/:]*://", "http://", true),
            ("[\\]x]", "]", true),
        ] {
            assert_eq!(compile(pattern.as_bytes(), false).unwrap().is_match(text.as_bytes()), expected, "{pattern}");
        }
        assert!(compile(b"^\xe0.$", false).unwrap().is_match(b"\xe0\xff"));
    }

    #[test]
    fn what_backtracks_is_named() {
        for (pattern, said) in [
            ("(?=a)", "look-around"),
            ("(a)\\1", "references back"),
            ("(?>a)", "atomic"),
            ("(", "unclosed"),
            ("(a{1000}){1000}", "size limit"),
        ] {
            let error = compile(pattern.as_bytes(), false).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn templates() {
        let regex = compile(b"(a)(b)?(c)", false).unwrap();
        let captures = regex.captures(b"xac").unwrap();
        for (template, expected) in [("\\1-\\3", "a-c"), ("<\\2>", "<>"), ("\\0\\9", "ac"), ("\\x41\\\\", "A\\"), ("\\", "")] {
            let mut out = Vec::new();
            expand(template.as_bytes(), &captures, &mut out);
            assert_eq!(out, expected.as_bytes(), "{template}");
        }
    }
}
