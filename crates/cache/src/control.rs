//! Cache-Control of requests and responses (RFC 9111 section 5.2): the directives that concern this cache.

use terse_message::{Fields, Known, list};

/// Directives of a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct RequestControl {
    /// `no-cache`, here or in Pragma: the server must be asked.
    pub(super) no_cache: bool,
    /// `no-store`: the response must not be kept.
    pub(super) no_store: bool,
    /// `max-age`: the most seconds that a stored response may be old.
    pub(super) max_age: Option<u64>,
    /// `min-fresh`: the least seconds for which it must still be fresh.
    pub(super) min_fresh: Option<u64>,
}

/// Directives of a response.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ResponseControl {
    /// `no-store`, `no-cache` or `private`, also with names of fields: it must not be kept here, where nothing is asked about again
    /// before it is used.
    pub(super) forbidden: bool,
    /// `public`
    pub(super) public: bool,
    /// `must-revalidate`; `proxy-revalidate` permits nothing (section 3.5).
    pub(super) must_revalidate: bool,
    /// `max-age`
    pub(super) max_age: Seconds,
    /// `s-maxage`
    pub(super) shared_max_age: Seconds,
}

/// A number of seconds that a directive gives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Seconds {
    /// There is no such directive.
    #[default]
    Unsaid,
    /// A value that is no number, or two lines with different values: such a response counts as stale (section 4.2.1).
    Invalid,
    /// This number of seconds.
    Said(u64),
}

impl RequestControl {
    /// Reads a request's fields.
    pub(super) fn of(fields: &Fields) -> RequestControl {
        let mut control = RequestControl::default();
        let mut said = false;
        for (name, value) in directives(fields) {
            said = true;
            let least = |one: Option<u64>, other| Some(one.map_or(other, |one| one.min(other)));
            // A value that is no number counts as the strictest request.
            match () {
                () if name.eq_ignore_ascii_case(b"no-cache") => control.no_cache = true,
                () if name.eq_ignore_ascii_case(b"no-store") => control.no_store = true,
                () if name.eq_ignore_ascii_case(b"max-age") => {
                    control.max_age = least(control.max_age, value.and_then(seconds).unwrap_or(0));
                }
                () if name.eq_ignore_ascii_case(b"min-fresh") => {
                    let seconds = value.and_then(seconds).unwrap_or(u64::MAX);
                    control.min_fresh = Some(control.min_fresh.map_or(seconds, |least| least.max(seconds)));
                }
                () => {}
            }
        }
        // Section 5.4: it counts where there is no Cache-Control.
        control.no_cache |= !said && says_pragma(fields);
        control
    }
}

impl ResponseControl {
    /// Reads a response's fields.
    pub(super) fn of(fields: &Fields) -> ResponseControl {
        let mut control = ResponseControl { forbidden: says_pragma(fields), ..ResponseControl::default() };
        for (name, value) in directives(fields) {
            let is = |names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
            if is(&["no-store", "no-cache", "private"]) {
                control.forbidden = true;
            } else if is(&["public"]) {
                control.public = true;
            } else if is(&["must-revalidate"]) {
                control.must_revalidate = true;
            } else if is(&["max-age"]) {
                control.max_age.say(value);
            } else if is(&["s-maxage"]) {
                control.shared_max_age.say(value);
            }
        }
        control
    }
}

impl Seconds {
    fn say(&mut self, value: Option<&[u8]>) {
        let said = value.and_then(seconds).map_or(Seconds::Invalid, Seconds::Said);
        *self = match *self {
            Seconds::Unsaid => said,
            before if before == said => said,
            _ => Seconds::Invalid,
        };
    }
}

/// Parses a number of seconds (section 1.2.2); a number too large to be counted is taken as [`MOST_SECONDS`].
pub(super) fn seconds(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    digits.then(|| {
        value.iter().fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))).min(MOST_SECONDS)
    })
}

/// The largest number of seconds: a recipient that cannot represent a greater value takes 2^31 (section 1.2.2).
pub(super) const MOST_SECONDS: u64 = 1 << 31;

/// The directives, with their arguments, which may be quoted.
fn directives(fields: &Fields) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    fields.every(Known::CacheControl).flat_map(list::elements).map(|element| match memchr::memchr(b'=', element) {
        None => (element, None),
        Some(at) => {
            let value = element[at + 1..].trim_ascii();
            let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            (element[..at].trim_ascii(), Some(quoted.unwrap_or(value)))
        }
    })
}

fn says_pragma(fields: &Fields) -> bool {
    fields.values(b"Pragma").any(|value| list::has_token(value, b"no-cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
        fields
    }

    #[test]
    fn requests() {
        let of = |value: &str| RequestControl::of(&fields(&[("Cache-Control", value)]));
        let none = RequestControl::default();
        for (value, expected) in [
            ("", none),
            ("max-stale=5, x", none),
            ("No-Cache", RequestControl { no_cache: true, ..none }),
            ("no-store", RequestControl { no_store: true, ..none }),
            ("max-age=5, max-age=\"3\"", RequestControl { max_age: Some(3), ..none }),
            ("max-age=x", RequestControl { max_age: Some(0), ..none }),
            ("min-fresh=7 , min-fresh=2", RequestControl { min_fresh: Some(7), ..none }),
            ("min-fresh", RequestControl { min_fresh: Some(u64::MAX), ..none }),
        ] {
            assert_eq!(of(value), expected, "{value}");
        }
        assert!(RequestControl::of(&fields(&[("Pragma", "no-cache")])).no_cache);
        assert!(!RequestControl::of(&fields(&[("Pragma", "no-cache"), ("Cache-Control", "x")])).no_cache);
    }

    #[test]
    fn responses() {
        let of = |value: &str| ResponseControl::of(&fields(&[("Cache-Control", value)]));
        let none = ResponseControl::default();
        for (value, expected) in [
            ("immutable", none),
            ("public, max-age=5", ResponseControl { public: true, max_age: Seconds::Said(5), ..none }),
            ("max-age=5, max-age=5", ResponseControl { max_age: Seconds::Said(5), ..none }),
            ("max-age=5, max-age=6", ResponseControl { max_age: Seconds::Invalid, ..none }),
            ("s-maxage=-1", ResponseControl { shared_max_age: Seconds::Invalid, ..none }),
            ("s-maxage=99999999999999999999", ResponseControl { shared_max_age: Seconds::Said(MOST_SECONDS), ..none }),
            ("proxy-revalidate", none),
            ("must-revalidate", ResponseControl { must_revalidate: true, ..none }),
            ("no-cache=\"set-cookie\"", ResponseControl { forbidden: true, ..none }),
            ("PRIVATE", ResponseControl { forbidden: true, ..none }),
            ("no-store", ResponseControl { forbidden: true, ..none }),
        ] {
            assert_eq!(of(value), expected, "{value}");
        }
        assert!(ResponseControl::of(&fields(&[("Pragma", "no-cache")])).forbidden);
    }
}
