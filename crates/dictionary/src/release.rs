//! The pattern of a file's releases, from the path of one of them.
//!
//! ```text
//!   /assets/app.3f9a1c2b.js     ->  /assets/app.*.js
//!   /lib/3.14.2/vue.js          ->  /lib/*/vue.js
//!   /assets/index-BsXm-3_k.js   ->  /assets/index-*.js
//! ```
//!
//! A release has to name the pattern of the next one, so the path alone decides. What changes from release to release is a *mark*: 8 or more
//! hexadecimal digits; 8 or more letters and digits, some of each; or a number with points. Points and `~` separate marks from names, and `-`
//! and `_` do so where what is behind them is a mark by itself: else they may be letters of one, as in base64url.
//!
//! A pattern that is too wide costs bytes and never makes wrong ones: the hash decides.

use crate::Pattern;
use crate::pattern::MOST_BYTES;
use std::ops::Range;

/// The pattern of the releases of a file with that path, which has no query; none where it has not exactly one mark: in its last segment, or, if
/// there is none, in its directories.
pub fn pattern(path: &[u8]) -> Option<Pattern> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~/-".contains(byte);
    if path.len() > MOST_BYTES
        || !path.iter().all(is_plain)
        || path.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"." | b".."))
    {
        return None;
    }
    let name = path.iter().rposition(|byte| *byte == b'/')? + 1;
    let mark = match marks(&path[name..]) {
        Marks::One(mark) => name + mark.start..name + mark.end,
        Marks::More => return None,
        Marks::None => {
            let (mut begin, mut found) = (0, Marks::None);
            for segment in path[..name].split(|byte| *byte == b'/') {
                found = found.and(marks(segment), begin);
                begin += segment.len() + 1;
            }
            let Marks::One(mark) = found else { return None };
            mark
        }
    };
    let text = std::str::from_utf8(path).ok()?;
    Pattern::new(&format!("{}*{}", &text[..mark.start], &text[mark.end..])).ok()
}

/// The fewest characters of a mark that is no number with points.
const LEAST_MARK: usize = 8;

/// The marks of a text.
#[derive(Debug)]
enum Marks {
    None,
    One(Range<usize>),
    More,
}

impl Marks {
    /// These, and those of a further text, which begins there.
    fn and(self, other: Marks, begin: usize) -> Marks {
        match (self, other) {
            (one, Marks::None) => one,
            (Marks::None, Marks::One(mark)) => Marks::One(begin + mark.start..begin + mark.end),
            _ => Marks::More,
        }
    }
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b'.' | b'~' | b'-' | b'_')
}

/// The marks of a segment.
fn marks(segment: &[u8]) -> Marks {
    let (mut found, mut at) = (Marks::None, 0);
    while at < segment.len() {
        if let Some(number) = number(&segment[at..]) {
            found = found.and(Marks::One(number.clone()), at);
            at += number.end + 1;
            continue;
        }
        let length = segment[at..].iter().position(|byte| is_separator(*byte)).unwrap_or(segment.len() - at);
        if is_mark(&segment[at..at + length]) {
            found = found.and(Marks::One(0..length), at);
        }
        at += length + 1;
    }
    match found {
        Marks::None => in_base64(segment),
        found => found,
    }
}

/// A number with points at the beginning of a text, perhaps behind a `v`: as many of its parts as end there or at a separator.
fn number(text: &[u8]) -> Option<Range<usize>> {
    let begin = usize::from(matches!(text.first(), Some(b'v' | b'V')));
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = |at: usize| text.get(at).is_none_or(|byte| is_separator(*byte));
    let first = digits(begin);
    let (mut end, mut points) = (begin + first, 0);
    while first > 0 && text.get(end) == Some(&b'.') {
        let more = digits(end + 1);
        if more == 0 || !ends(end + 1 + more) {
            break;
        }
        (end, points) = (end + 1 + more, points + 1);
    }
    (points > 0).then_some(begin..end)
}

/// Whether a text without separators is a mark.
fn is_mark(text: &[u8]) -> bool {
    let is_hex = || text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.len() >= LEAST_MARK && (is_hex() || is_mixed(text))
}

/// Whether a text has a digit and a letter.
fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic)
}

/// The marks with `-` or `_` in them: of what stands between points, the shortest end that is long enough and has a digit and letters of both
/// sizes, as names hardly have.
fn in_base64(segment: &[u8]) -> Marks {
    let (mut found, mut begin) = (Marks::None, 0);
    for piece in segment.split(|byte| matches!(byte, b'.' | b'~')) {
        let (mut has_digit, mut has_lower, mut has_upper) = (false, false, false);
        let starts_mark = |(at, byte): &(usize, &u8)| {
            has_digit |= byte.is_ascii_digit();
            has_lower |= byte.is_ascii_lowercase();
            has_upper |= byte.is_ascii_uppercase();
            let is_start = *at == 0 || is_separator(piece[at - 1]);
            is_start && piece.len() - at >= LEAST_MARK && has_digit && has_lower && has_upper
        };
        if let Some((start, _)) = piece.iter().enumerate().rev().find(starts_mark) {
            found = found.and(Marks::One(start..piece.len()), begin);
        }
        begin += piece.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(path: &str) -> Option<String> {
        pattern(path.as_bytes()).map(|pattern| pattern.as_str().to_owned())
    }

    #[test]
    fn one_mark_is_what_changes() {
        for (path, pattern) in [
            ("/app.3f9a1c2b.js", "/app.*.js"),
            ("/app-3f9a1c2b.js", "/app-*.js"),
            ("/app_3f9a1c2b7d.chunk.js", "/app_*.chunk.js"),
            ("/3f9a1c2b.css", "/*.css"),
            ("/a/b/main-ABCDEFG2.js", "/a/b/main-*.js"),
            ("/assets/index-BsXm-3_k.js", "/assets/index-*.js"),
            ("/assets/my-long-part-BsXm-3_k.js", "/assets/my-long-part-*.js"),
            ("/lib/3.14.2/vue.js", "/lib/*/vue.js"),
            ("/lib/v3.14.2/vue.js", "/lib/v*/vue.js"),
            ("/lib/jquery-3.7.1.min.js", "/lib/jquery-*.min.js"),
            ("/lib/vue~3.5.js", "/lib/vue~*.js"),
            ("/lib/3.14.2.7z.js", "/lib/*.7z.js"),
            ("/static/20260101/sub/app.js", "/static/*/sub/app.js"),
            ("/_next/static/a8Kf-3xPq_Wz/manifest.js", "/_next/static/*/manifest.js"),
            ("/12345678/app.3f9a1c2b.js", "/12345678/app.*.js"),
        ] {
            assert_eq!(of(path).as_deref(), Some(pattern), "{path}");
        }
    }

    #[test]
    fn no_mark_or_several_is_no_pattern() {
        for path in [
            "",
            "/",
            "app.3f9a1c2b.js",
            "/app.js",
            "/app.3f9a1c2.js",
            "/application.min.js",
            "/app.1.js",
            "/my-app2-main.js",
            "/a.3f9a1c2b.b.3f9a1c2b.js",
            "/3f9a1c2b/3.14.2/app.js",
            "/vue@3.14.2/vue.js",
            "/app.3f9a1c2b.js?x",
            "/%20/app.3f9a1c2b.js",
            "/a/../app.3f9a1c2b.js",
            "//host/app.3f9a1c2b.js",
            "/\u{e9}/app.3f9a1c2b.js",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
        assert_eq!(of(&format!("/{}/app.3f9a1c2b.js", "a/".repeat(600))), None, "too long");
    }

    #[test]
    fn the_time_for_a_path_is_bounded() {
        let begun = std::time::Instant::now();
        let hostile =
            ["/".to_owned() + &"-".repeat(60_000), "/".to_owned() + &"-a".repeat(500), "/".to_owned() + &"1.-".repeat(300)];
        for path in &hostile {
            (0..100).for_each(|_| assert_eq!(of(path), None, "{path}"));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?} for 300 paths", begun.elapsed());
    }

    proptest! {
        #[test]
        fn a_pattern_takes_its_own_path_and_the_next(
            before in "/([a-z]{1,5}/){0,3}[a-z]{0,5}[.-]", mark in "[0-9a-f]{8,20}", next in "[0-9a-f]{8,20}", after in "\\.[a-z]{2,4}"
        ) {
            let path = format!("{before}{mark}{after}");
            let pattern = pattern(path.as_bytes()).unwrap();
            prop_assert_eq!(pattern.as_str(), format!("{before}*{after}"));
            let next = format!("{before}{next}{after}?q");
            prop_assert!(pattern.takes(path.as_bytes()) && pattern.takes(next.as_bytes()));
        }

        #[test]
        fn no_path_panics_and_every_pattern_takes_its_path(path in prop_oneof![
            any::<Vec<u8>>(),
            "(/[a-f0-9v._~-]{0,12}){0,4}".prop_map(String::into_bytes),
            "(/[A-Za-z0-9._~-]{0,12}){0,4}".prop_map(String::into_bytes),
        ]) {
            if let Some(pattern) = pattern(&path) {
                prop_assert!(pattern.takes(&path));
                prop_assert_eq!(pattern.as_str().matches('*').count(), 1);
            }
        }
    }
}
