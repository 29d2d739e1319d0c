//! Regular expressions, written as PCRE has them.
//!
//! Expressions are matched in linear time where that is possible. One that needs backtracking (look-around, references
//! back, atomic groups, possessive quantifiers) is matched by an engine that counts its steps back. It gives up at
//! [`BACKTRACKS`]: then nothing has matched, which [`given_up`] counts. So no text that a peer sends holds a worker up for
//! long.

mod portable;

use fancy_regex::{BytesMode, RegexBuilder as Backtracker};
use portable::portable;
use regex::bytes::{Captures, Regex, RegexBuilder};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A compiled expression over bytes. A copy shares it.
#[derive(Clone, Debug)]
pub enum Regexp {
    /// Matched in linear time.
    Linear(Regex),
    /// Matched with a limit of steps back.
    Backtracking(Box<fancy_regex::Regex>),
}

/// Match of an expression and its groups.
#[derive(Debug)]
pub enum Groups<'t> {
    /// Captures of the linear engine.
    Linear(Captures<'t>),
    /// Matches of the backtracking engine: the text, and the places in it.
    Backtracking(&'t [u8], SmallVec<[Option<Range<usize>>; 10]>),
}

/// Compiles an expression.
pub fn compile(pattern: &[u8], ignore_case: bool) -> Result<Regexp, String> {
    let text = portable(pattern);
    let mut builder = RegexBuilder::new(&text);
    builder.unicode(false).case_insensitive(ignore_case).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_CACHE_BYTES);
    let backtracking = || {
        let mut builder = Backtracker::new(&text);
        builder.bytes_mode(BytesMode::Ascii).case_insensitive(ignore_case).backtrack_limit(BACKTRACKS);
        builder.delegate_size_limit(REGEX_BYTES).delegate_dfa_size_limit(REGEX_CACHE_BYTES);
        builder.build().map(|regex| Regexp::Backtracking(Box::new(regex))).map_err(|error| error.to_string())
    };
    // The linear engine takes `a++` for a repetition of a repetition.
    let compiled = match builder.build() {
        Ok(regex) if is_possessive(&text) => backtracking().or(Ok(Regexp::Linear(regex))),
        Ok(regex) => Ok(Regexp::Linear(regex)),
        Err(_) if backtracks(&text) => backtracking(),
        Err(error) => Err(error.to_string()),
    };
    compiled.map_err(|error: String| {
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("regular expression '{}': {reason}", pattern.escape_ascii())
    })
}

/// Number of matches that were given up, in the process.
pub fn given_up() -> u64 {
    GIVEN_UP.load(Relaxed)
}

static GIVEN_UP: AtomicU64 = AtomicU64::new(0);

/// The most steps back of one match: a few milliseconds.
pub const BACKTRACKS: usize = 100_000;

/// Result of a search, if it came to its end.
fn within<T>(found: fancy_regex::Result<T>) -> Option<T> {
    found.inspect_err(|_| _ = GIVEN_UP.fetch_add(1, Relaxed)).ok()
}

impl Regexp {
    /// Whether it matches somewhere in a text.
    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Regexp::Linear(regex) => regex.is_match(text),
            Regexp::Backtracking(regex) => within(regex.is_match(text)).unwrap_or(false),
        }
    }

    /// Its first match in a text.
    pub fn captures<'t>(&self, text: &'t [u8]) -> Option<Groups<'t>> {
        match self {
            Regexp::Linear(regex) => regex.captures(text).map(Groups::Linear),
            Regexp::Backtracking(regex) => within(regex.captures(text))?.map(|captures| backtracked(text, &captures)),
        }
    }

    /// Visits all its matches in a text, one after the other, until the visitor returns `true`. As in Perl, an empty match
    /// may follow one that is not empty.
    pub fn each<'t>(&self, text: &'t [u8], mut visit: impl FnMut(Groups<'t>) -> bool) {
        let mut at = 0;
        while at <= text.len()
            && let Some(groups) = self.captures_from(text, at)
            && let Some(whole) = groups.place(0)
        {
            at = whole.end + usize::from(whole.is_empty());
            if visit(groups) {
                return;
            }
        }
    }

    /// Its first match from an offset on.
    fn captures_from<'t>(&self, text: &'t [u8], at: usize) -> Option<Groups<'t>> {
        match self {
            Regexp::Linear(regex) => regex.captures_at(text, at).map(Groups::Linear),
            Regexp::Backtracking(regex) => within(regex.captures_from_pos(text, at))?.map(|captures| backtracked(text, &captures)),
        }
    }
}

fn backtracked<'t>(text: &'t [u8], captures: &fancy_regex::Captures<'_, [u8]>) -> Groups<'t> {
    Groups::Backtracking(text, (0..captures.len()).map(|group| captures.get(group).map(|found| found.range())).collect())
}

impl<'t> Groups<'t> {
    /// Range of a group's match; group 0 is the whole.
    pub fn place(&self, group: usize) -> Option<Range<usize>> {
        match self {
            Groups::Linear(captures) => captures.get(group).map(|found| found.range()),
            Groups::Backtracking(_, places) => places.get(group)?.clone(),
        }
    }

    /// Text of a group's match.
    pub fn bytes(&self, group: usize) -> Option<&'t [u8]> {
        match self {
            Groups::Linear(captures) => captures.get(group).map(|found| found.as_bytes()),
            Groups::Backtracking(text, places) => text.get(places.get(group)?.clone()?),
        }
    }
}

/// The most memory that a compiled expression takes; a longer one is an error.
pub const REGEX_BYTES: usize = 10 << 20;
/// The most memory that the matching of an expression keeps, for each worker; more makes it slower, not wrong.
pub const REGEX_CACHE_BYTES: usize = 2 << 20;

/// Appends a template in which `\0` to `\9` stand for the matches of the groups, and `\xHH` for a byte. A group without a
/// match is empty.
pub fn expand(template: &[u8], groups: &Groups<'_>, out: &mut impl Extend<u8>) {
    let mut rest = template;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, after.first()) {
            (b'\\', Some(&digit)) if digit.is_ascii_digit() => {
                if let Some(group) = groups.bytes(usize::from(digit - b'0')) {
                    out.extend(group.iter().copied());
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

/// Whether an expression that the linear engine refuses seems to need steps back.
fn backtracks(text: &str) -> bool {
    let has = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    has(&["(?=", "(?!", "(?<=", "(?<!", "(?>", "\\k", "\\g", "(?P=", "\\K", "(?("])
        || text.as_bytes().windows(2).any(|two| two[0] == b'\\' && matches!(two[1], b'1'..=b'9'))
}

/// Whether a quantifier is followed by a plus: the text that it has taken it never gives back.
fn is_possessive(text: &str) -> bool {
    let (mut bytes, mut in_class, mut quantified) = (text.bytes(), false, false);
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'[' => in_class = true,
            b']' => in_class = false,
            _ if in_class => {}
            b'+' if quantified => return true,
            _ => {}
        }
        quantified = !in_class && matches!(byte, b'*' | b'+' | b'?' | b'}');
    }
    false
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

    /// First matches of PCRE2, in HAProxy.
    #[test]
    fn pcre_escapes() {
        for (pattern, text, expected) in [
            ("\\h+", "a \t b", Some(" \t ")),
            ("[\\h,]+", "a ,b", Some(" ,")),
            ("[\\H]+", " ab ", Some("ab")),
            ("\\v", "a\rb", Some("\r")),
            ("[^\\v]+", "\nab\n", Some("ab")),
            ("\\R", "a\r\nb", Some("\r\n")),
            ("\\N+", "\nab\n", Some("ab")),
            ("\\Qa.b\\E+", "axb a.bb", Some("a.bb")),
            ("\\Q[x", "a[x", Some("[x")),
            ("[\\Q^]\\E]", "a]", Some("]")),
            ("a{,2}", "a{,2}", Some("a{,2}")),
            ("^/{[^}]+}", "/{id}", Some("/{id}")),
            ("{", "a{", Some("{")),
            ("a{x}", "a{x}", Some("a{x}")),
            ("a{2}b{1,}c{0,1}", "aabbc", Some("aabbc")),
            ("\\e", "\x1b", Some("\x1b")),
            ("\\cA", "\x01", Some("\x01")),
            ("\\0", "a\0", Some("\0")),
            ("\\101", "xA", Some("A")),
            ("[\\1-\\3]", "x\x02", Some("\x02")),
            ("[\\b]", "a\x08", Some("\x08")),
            ("\\x41\\x{42}", "AB", Some("AB")),
            ("a(?#no)b", "ab", Some("ab")),
            ("\\<a\\>", "a <a>", Some("<a>")),
            ("(a)\\1{2}", "aaa", Some("aaa")),
            ("a\\Z", "aba", Some("a")),
        ] {
            let regex = compile(pattern.as_bytes(), false).unwrap();
            let found =
                regex.captures(text.as_bytes()).map(|groups| String::from_utf8_lossy(groups.bytes(0).unwrap()).into_owned());
            assert_eq!(found.as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn what_needs_steps_back_is_matched_too() {
        for (pattern, text, groups) in [
            ("^/(?!admin)(.*)$", "/shop", Some("shop")),
            ("^/(?!admin)(.*)$", "/admin/x", None),
            ("(?<=id=)([0-9]+)", "a?id=42", Some("42")),
            ("(?<!x)y(.)", "xy1y2", Some("2")),
            ("^(a+)-\\1$", "aa-aa", Some("aa")),
            ("^(a+)-\\1$", "aa-a", None),
            ("^(?>a+)(b)", "aab", Some("b")),
            ("^([a-z]++)1", "abc1", Some("abc")),
            ("^([a-z]++)c", "abc", None),
            ("^(a{1,2}+)b", "aab", Some("aa")),
        ] {
            let regex = compile(pattern.as_bytes(), false).unwrap();
            assert!(matches!(regex, Regexp::Backtracking(_)), "{pattern}");
            let found =
                regex.captures(text.as_bytes()).map(|groups| String::from_utf8_lossy(groups.bytes(1).unwrap()).into_owned());
            assert_eq!((regex.is_match(text.as_bytes()), found.as_deref()), (groups.is_some(), groups), "{pattern}");
        }
        for pattern in ["a+", "[*+]+", "\\++", "a*?b+", "[[:alpha:]+]x"] {
            assert!(matches!(compile(pattern.as_bytes(), false).unwrap(), Regexp::Linear(_)), "{pattern}");
        }
        assert!(compile(b"^(?=A)a", true).unwrap().is_match(b"a"));
        assert!(compile(b"(?!x)\xff", false).unwrap().is_match(b"\xfe\xff"), "bytes, not characters");
        assert_eq!(compile(b"(.)(?=b)", false).unwrap().captures(b"\xe4b").unwrap().place(1), Some(0..1));
        let (mut places, regex) = (Vec::new(), compile(b"a(?!b)", false).unwrap());
        regex.each(b"abaaca", |groups| {
            places.push(groups.place(0).unwrap().start);
            places.len() == 2
        });
        assert_eq!(places, [2, 3]);
    }

    #[test]
    fn nothing_runs_away() {
        let regex = compile(b"^(?=(a+)+$)(a|aa)+\\1$", false).unwrap();
        let before = given_up();
        assert!(!regex.is_match(&[&[b'a'; 5000][..], b"b"].concat()) || given_up() == before);
        let regex = compile(b"^(?:(a+)+\\1)+x$", false).unwrap();
        assert!(!regex.is_match(&[b'a'; 5000]), "it gives up");
        assert!(given_up() > before);
    }

    #[test]
    fn faults_are_named() {
        for (pattern, said) in
            [("(", "unclosed"), ("(a{1000}){1000}", "size limit"), ("(?=a", "regular expression"), ("\\1(", "expression")]
        {
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
