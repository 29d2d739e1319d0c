//! `normalize-uri`: a single spelling for equivalent targets (RFC 3986 section 6.2.2), a step at a time.
//!
//! A step works on the path, or on path and query; scheme and authority stay. Each step is safe alone; whether several are in this
//! order is the operator's judgement.

use super::target::{self, Part};
use super::{Action, ActionWord, Flow, REQUEST, RuleSet, done, rewrite};
use crate::reply;
use crate::stream::Stream;
use std::borrow::Cow;
use terse_config::{Args, Fault, Scope};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "normalize-uri",
    REQUEST,
    "fragment-encode | fragment-strip | path-merge-slashes | path-strip-dot | path-strip-dotdot [full] | \
     percent-decode-unreserved [strict] | percent-to-uppercase [strict] | query-sort-by-name",
    "Brings the target into a normal form, by one step.",
    parse,
)];

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// `#` becomes `%23`.
    FragmentEncode,
    /// The part from `#` on goes.
    FragmentStrip,
    /// Several slashes become one.
    MergeSlashes,
    /// Segments `.` go.
    StripDot,
    /// Segments `..` go, each with the one before it.
    StripDotDot {
        /// Segments at the start, which have none before them, go too.
        full: bool,
    },
    /// Letters, digits, `-`, `.`, `_` and `~` are written as themselves.
    DecodeUnreserved {
        /// A percent sign without two digits after it is an error.
        strict: bool,
    },
    /// The digits after percent signs are written as capitals.
    Uppercase {
        /// A percent sign without two digits after it is an error.
        strict: bool,
    },
    /// Parameters of the query are sorted by name.
    SortQuery,
}

impl Action for Step {
    fn run(&self, stream: &mut Stream) -> Flow {
        let part = self.part();
        let before = part.of(&stream.request);
        let Some(after) = self.apply(before) else {
            return Flow::Deny(Box::new(reply::page(stream, 400)));
        };
        if *after == *before {
            return Flow::Next;
        }
        let after = after.into_owned();
        rewrite::outcome(target::put(stream, part, &after), stream)
    }
}

impl Step {
    fn part(self) -> Part {
        match self {
            Step::MergeSlashes | Step::StripDot | Step::StripDotDot { .. } => Part::Path,
            Step::SortQuery => Part::Query,
            _ => Part::PathAndQuery,
        }
    }

    /// The new text; `None` when the old text is an error.
    fn apply(self, text: &[u8]) -> Option<Cow<'_, [u8]>> {
        Some(match self {
            Step::FragmentEncode => text.split(|b| *b == b'#').collect::<Vec<_>>().join(&b"%23"[..]).into(),
            Step::FragmentStrip => text.split(|b| *b == b'#').next().unwrap_or_default().into(),
            Step::MergeSlashes => {
                let mut out: Vec<u8> = Vec::with_capacity(text.len());
                out.extend(
                    text.iter().enumerate().filter(|(i, b)| **b != b'/' || *i == 0 || text[*i - 1] != b'/').map(|(_, b)| *b),
                );
                out.into()
            }
            Step::StripDot => segments(text, |kept, segment| {
                if segment != b"." {
                    kept.push(segment);
                }
                segment == b"."
            }),
            Step::StripDotDot { full } => segments(text, |kept, segment| {
                let before = kept.last().is_some_and(|last| *last != b"..");
                match (segment == b"..", before, full) {
                    (true, true, _) => {
                        kept.pop();
                        true
                    }
                    (true, false, true) => true,
                    _ => {
                        kept.push(segment);
                        false
                    }
                }
            }),
            Step::DecodeUnreserved { strict } => percents(text, strict, |byte, _| {
                (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)).then_some([byte].into())
            })?,
            Step::Uppercase { strict } => percents(text, strict, |_, digits| Some(digits.to_ascii_uppercase()))?,
            Step::SortQuery => {
                let mut parameters: Vec<_> = text.split(|b| *b == b'&').collect();
                parameters.sort_by_key(|parameter| parameter.split(|b| *b == b'=').next());
                parameters.join(&b'&').into()
            }
        })
    }
}

/// The segments after the first slash that `keep(kept, segment)` has kept. It returns whether it took a segment out: when
/// that was the last one, the slash before it stays.
fn segments<'a>(path: &'a [u8], keep: impl Fn(&mut Vec<&'a [u8]>, &'a [u8]) -> bool) -> Cow<'a, [u8]> {
    let Some(rest) = path.strip_prefix(b"/") else { return path.into() };
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_open = false;
    for segment in rest.split(|b| *b == b'/') {
        ends_open = keep(&mut kept, segment);
    }
    if ends_open {
        kept.push(b"");
    }
    [b"/", &*kept.join(&b'/')].concat().into()
}

/// Replaces each `%XX` by `write(byte, %XX)`, or keeps it when that returns `None`; `None` for an error.
fn percents<'a>(text: &'a [u8], strict: bool, write: impl Fn(u8, &[u8]) -> Option<Vec<u8>>) -> Option<Cow<'a, [u8]>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        let byte = after.get(1..3).and_then(|digits| Some(hex(digits[0])? << 4 | hex(digits[1])?));
        let taken = match byte {
            Some(byte) => {
                let digits = &after[..3];
                out.extend_from_slice(write(byte, digits).as_deref().unwrap_or(digits));
                3
            }
            None if strict => return None,
            None => {
                out.push(b'%');
                1
            }
        };
        rest = &after[taken..];
    }
    out.extend_from_slice(rest);
    Some(out.into())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|n| u8::try_from(n).ok())
}

fn parse(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let step = match args.need("<normalizer>")? {
        "fragment-encode" => Step::FragmentEncode,
        "fragment-strip" => Step::FragmentStrip,
        "path-merge-slashes" => Step::MergeSlashes,
        "path-strip-dot" => Step::StripDot,
        "path-strip-dotdot" => Step::StripDotDot { full: args.accept("full") },
        "percent-decode-unreserved" => Step::DecodeUnreserved { strict: args.accept("strict") },
        "percent-to-uppercase" => Step::Uppercase { strict: args.accept("strict") },
        "query-sort-by-name" => Step::SortQuery,
        other => {
            let hint = "one of fragment-encode, fragment-strip, path-merge-slashes, path-strip-dot, path-strip-dotdot, \
                        percent-decode-unreserved, percent-to-uppercase, query-sort-by-name";
            return Err(args.fault(format!("unknown normalizer '{other}'")).hint(hint));
        }
    };
    Ok(Box::new(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let (soft, full) = (Step::StripDotDot { full: false }, Step::StripDotDot { full: true });
        let (decode, upper) = (Step::DecodeUnreserved { strict: false }, Step::Uppercase { strict: false });
        for (step, before, after) in [
            (Step::FragmentEncode, "/a#b#c", "/a%23b%23c"),
            (Step::FragmentStrip, "/a#b#c", "/a"),
            (Step::MergeSlashes, "///foo///bar///", "/foo/bar/"),
            (Step::MergeSlashes, "*", "*"),
            (Step::StripDot, "/.", "/"),
            (Step::StripDot, "/./bar/", "/bar/"),
            (Step::StripDot, "/a/./a", "/a/a"),
            (Step::StripDot, "/a/.", "/a/"),
            (Step::StripDot, "/.well-known/", "/.well-known/"),
            (soft, "/foo/..", "/"),
            (soft, "/foo/../bar/", "/bar/"),
            (soft, "/foo/bar/../", "/foo/"),
            (soft, "/../bar/", "/../bar/"),
            (soft, "/bar/../../", "/../"),
            (soft, "/foo//../", "/foo/"),
            (soft, "/foo//../../bar/", "/bar/"),
            (soft, "/foo/%2E%2E/", "/foo/%2E%2E/"),
            (full, "/../bar/", "/bar/"),
            (full, "/bar/../../", "/"),
            (full, "/..", "/"),
            (decode, "/%61dmin%3F%7e", "/admin%3F~"),
            (decode, "/%%36%36", "/%66"),
            (decode, "/%ZZ%4", "/%ZZ%4"),
            (upper, "/%6f?%aa", "/%6F?%AA"),
            (upper, "/%zz%", "/%zz%"),
            (Step::SortQuery, "c=3&a=1&b=2", "a=1&b=2&c=3"),
            (Step::SortQuery, "aaa=3&a=1&aa=2", "a=1&aa=2&aaa=3"),
            (Step::SortQuery, "a=3&b=4&a=1&b=5&a=2", "a=3&a=1&a=2&b=4&b=5"),
            (Step::SortQuery, "c&b&a", "a&b&c"),
        ] {
            let said = step.apply(before.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(&said), after, "{step:?} {before}");
        }
        for step in [Step::DecodeUnreserved { strict: true }, Step::Uppercase { strict: true }] {
            assert!(step.apply(b"/%zz").is_none() && step.apply(b"/%4").is_none() && step.apply(b"/%41").is_some());
        }
    }
}
