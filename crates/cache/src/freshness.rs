//! Freshness lifetime of a response (RFC 9111 section 4.2), and whether it may be stored at all (section 3).
//!
//! The server that is asked is the origin or its neighbour, so its Age is believed and its Date is not compared with our clock
//! (section 4.2.3).

use super::control::{ResponseControl, Seconds, seconds};
use terse_message::{Fields, Known, Response, date};

/// The time by which a response is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Term {
    /// Age of the response when it came, in seconds.
    pub(super) age: u64,
    /// For how many seconds it is fresh from then on; more than 0.
    pub(super) fresh: u64,
}

/// Returns for how long a response may be kept, or `None`. `authorized`: its request had an Authorization field; `most`: the
/// cache's `max-age`; `now`: seconds since 1970; `delay`: the seconds between the request and the response.
pub(super) fn term(response: &Response, authorized: bool, most: u64, now: i64, delay: u64) -> Option<Term> {
    let fields = &response.fields;
    if response.status != 200 || fields.has(Known::ContentRange) {
        return None;
    }
    let control = ResponseControl::of(fields);
    let shareable = control.public || control.must_revalidate || control.shared_max_age != Seconds::Unsaid;
    // Section 3.5. A cookie for one client is not for others, unless the server allows that.
    if control.forbidden || authorized && !shareable || fields.has(Known::SetCookie) && !control.public {
        return None;
    }
    let age = age(fields)?.saturating_add(delay);
    let fresh = lifetime(fields, &control, most, now)?.checked_sub(age)?.min(most);
    (fresh > 0).then_some(Term { age, fresh })
}

/// Returns the value of Age; `None` when it cannot be parsed.
fn age(fields: &Fields) -> Option<u64> {
    match fields.get(b"Age") {
        None => Some(0),
        Some(value) => seconds(value),
    }
}

/// The freshness lifetime: set by the server, or heuristic where the response has a validator to ask by whether it still
/// holds.
fn lifetime(fields: &Fields, control: &ResponseControl, most: u64, now: i64) -> Option<u64> {
    for said in [control.shared_max_age, control.max_age] {
        match said {
            Seconds::Unsaid => {}
            Seconds::Invalid => return None,
            Seconds::Said(seconds) => return Some(seconds),
        }
    }
    let dated = moment(fields, b"Date", now).unwrap_or(now);
    if let Some(expires) = fields.get(b"Expires") {
        // An invalid date counts as expired (section 5.3).
        return u64::try_from(date::parse(expires, now)? - dated).ok();
    }
    match moment(fields, b"Last-Modified", now) {
        // Section 4.2.2: a tenth of how long it has not changed.
        Some(modified) => u64::try_from(dated - modified).ok().map(|unchanged| unchanged / 10),
        None => fields.has(Known::Etag).then_some(most),
    }
}

/// The date in a field; `now`, in seconds since 1970, tells the century of a year of two digits.
pub(super) fn moment(fields: &Fields, name: &[u8], now: i64) -> Option<i64> {
    fields.get(name).and_then(|value| date::parse(value, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 784_111_777;
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:50:37 GMT";
    const EARLIER: &str = "Sun, 06 Nov 1994 08:32:57 GMT";

    fn of(lines: &[(&str, &str)]) -> Option<(u64, u64)> {
        let mut response = Response::default();
        response.status = 200;
        lines.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
        term(&response, false, 600, NOW, 0).map(|term| (term.age, term.fresh))
    }

    #[test]
    fn what_is_said_comes_before_what_is_guessed() {
        for (lines, expected) in [
            (&[][..], None),
            (&[("Cache-Control", "public")], None),
            (&[("Cache-Control", "max-age=5")], Some((0, 5))),
            (&[("Cache-Control", "max-age=5000")], Some((0, 600))),
            (&[("Cache-Control", "max-age=0")], None),
            (&[("Cache-Control", "max-age=0, s-maxage=7")], Some((0, 7))),
            (&[("Cache-Control", "max-age=9, s-maxage=0")], None),
            (&[("Cache-Control", "max-age=x"), ("ETag", "\"x\"")], None),
            (&[("Cache-Control", "max-age=5"), ("Expires", EARLIER)], Some((0, 5))),
            (&[("Expires", LATER)], Some((0, 60))),
            (&[("Expires", LATER), ("Date", EARLIER)], Some((0, 600))),
            (&[("Expires", EARLIER)], None),
            (&[("Expires", "0"), ("ETag", "\"x\"")], None),
            (&[("ETag", "\"x\"")], Some((0, 600))),
            (&[("Last-Modified", EARLIER)], Some((0, 100))),
            (&[("Last-Modified", EARLIER), ("Date", DATE)], Some((0, 100))),
            (&[("Last-Modified", LATER)], None),
            (&[("Cache-Control", "max-age=5"), ("Age", "3")], Some((3, 2))),
            (&[("Cache-Control", "max-age=5"), ("Age", "5")], None),
            (&[("Cache-Control", "max-age=5"), ("Age", "abc")], None),
            (&[("Cache-Control", "max-age=5"), ("Set-Cookie", "a=b")], None),
            (&[("Cache-Control", "max-age=5, public"), ("Set-Cookie", "a=b")], Some((0, 5))),
            (&[("Cache-Control", "max-age=5, no-cache")], None),
            (&[("Cache-Control", "max-age=5"), ("Content-Range", "bytes 0-1/2")], None),
        ] {
            assert_eq!(of(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn status_authorization_and_delay() {
        let mut response = Response::default();
        response.status = 200;
        response.fields.push(b"Cache-Control", b"max-age=5");
        assert_eq!(term(&response, false, 60, NOW, 3), Some(Term { age: 3, fresh: 2 }));
        assert_eq!(term(&response, true, 60, NOW, 0), None);
        response.fields.push(b"Cache-Control", b"proxy-revalidate");
        assert_eq!(term(&response, true, 60, NOW, 0), None);
        response.fields.push(b"Cache-Control", b"must-revalidate");
        assert!(term(&response, true, 60, NOW, 0).is_some());
        response.status = 404;
        assert_eq!(term(&response, false, 60, NOW, 0), None);
    }
}
