//! Times in the headers of lines: the two forms of syslog, and the conversion between them.
//!
//! RFC 3164 section 4.1.2 has no year and no zone; RFC 5424 section 6.2.3 has both. A line that is passed on in another form keeps its
//! time as well as that allows.

use super::clock::{MONTHS, Stamp};

/// A time in a received header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written<'a> {
    /// `Feb  6 12:14:14`
    Legacy(&'a [u8; LEGACY_LEN]),
    /// `2009-02-06T12:14:14.655123+01:00`
    Iso(&'a [u8]),
    /// `-`: the writer did not know.
    Nil,
}

/// Splits off a time of RFC 3164 at the beginning of a text.
pub(super) fn legacy(text: &[u8]) -> Option<(&[u8; LEGACY_LEN], &[u8])> {
    let (time, rest) = text.split_first_chunk::<LEGACY_LEN>()?;
    let is_digit = |at: usize| time.get(at).is_some_and(u8::is_ascii_digit);
    let known = MONTHS.iter().any(|month| time.starts_with(month.as_bytes()));
    let blanks = time[3] == b' ' && time[6] == b' ' && time[9] == b':' && time[12] == b':';
    let digits = [5, 7, 8, 10, 11, 13, 14].into_iter().all(is_digit) && (time[4] == b' ' || is_digit(4));
    (known && blanks && digits).then_some((time, rest))
}

/// Splits off a time of RFC 5424 at the beginning of a text.
pub(super) fn iso(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let shape = |bytes: &[u8], shape: &[u8]| {
        bytes.len() >= shape.len() && shape.iter().zip(bytes).all(|(s, b)| if *s == b'0' { b.is_ascii_digit() } else { s == b })
    };
    if !shape(text, b"0000-00-00T00:00:00") {
        return None;
    }
    let mut at = SECONDS_END;
    if text.get(at) == Some(&b'.') {
        let digits = text.get(at + 1..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        at += 1 + digits;
    }
    at += match text.get(at)? {
        b'Z' => 1,
        b'+' | b'-' if shape(text.get(at + 1..)?, b"00:00") => 6,
        _ => return None,
    };
    text.split_at_checked(at)
}

/// Parses the time in either form.
pub(super) fn read(text: &[u8]) -> Option<Written<'_>> {
    if text == b"-" {
        return Some(Written::Nil);
    }
    match (legacy(text), iso(text)) {
        (Some((time, b"")), _) => Some(Written::Legacy(time)),
        (_, Some((time, b""))) => Some(Written::Iso(time)),
        _ => None,
    }
}

/// Appends a time of RFC 3164 and a blank: the given time, or now.
pub(super) fn write_legacy(out: &mut Vec<u8>, time: &[u8], stamp: &Stamp) {
    match read(time) {
        Some(Written::Legacy(time)) => out.extend_from_slice(time),
        Some(Written::Iso(time)) if month_name(time).is_some() => {
            out.extend_from_slice(month_name(time).unwrap_or_default().as_bytes());
            out.push(b' ');
            out.push(if time.get(8) == Some(&b'0') { b' ' } else { time.get(8).copied().unwrap_or(b' ') });
            out.extend_from_slice(time.get(9..10).unwrap_or_default());
            out.push(b' ');
            out.extend_from_slice(time.get(11..SECONDS_END).unwrap_or_default());
        }
        _ => return out.extend_from_slice(stamp.legacy()),
    }
    out.push(b' ');
}

/// Appends a time of RFC 5424 and a blank: the given time, or now. The nil time `-` is kept where `may_be_nil`.
pub(super) fn write_iso(out: &mut Vec<u8>, time: &[u8], stamp: &Stamp, may_be_nil: bool) {
    match read(time) {
        Some(Written::Iso(time)) => out.extend_from_slice(time),
        Some(Written::Nil) if may_be_nil => out.push(b'-'),
        Some(Written::Legacy(time)) => {
            let month = MONTHS.iter().position(|name| time.starts_with(name.as_bytes())).unwrap_or(0) + 1;
            let (year, month_now) = stamp.year_and_month();
            // A month that has not come yet was last year's.
            let year = if month > usize::from(month_now) { year - 1 } else { year };
            out.extend_from_slice(format!("{year:04}-{month:02}-").as_bytes());
            out.push(if time[4] == b' ' { b'0' } else { time[4] });
            out.extend_from_slice(&[time[5], b'T']);
            out.extend_from_slice(time.get(7..).unwrap_or_default());
            // The zone is not known (RFC 3339 section 4.3).
            out.extend_from_slice(b"-00:00");
        }
        _ => return out.extend_from_slice(stamp.iso()),
    }
    out.push(b' ');
}

fn month_name(time: &[u8]) -> Option<&'static str> {
    let digits = time.get(5..7).and_then(|month| std::str::from_utf8(month).ok());
    let month: usize = digits?.parse().ok()?;
    MONTHS.get(month.checked_sub(1)?).copied()
}

/// `Feb  6 12:14:14`
pub(super) const LEGACY_LEN: usize = 15;
/// `2009-02-06T12:14:14`
const SECONDS_END: usize = 19;

#[cfg(test)]
mod tests {
    use super::super::clock::Zone;
    use super::*;
    use std::time::Duration;

    fn stamp() -> Stamp {
        let mut stamp = Stamp::new(Zone::utc());
        stamp.turn_to(Duration::new(1_233_922_454, 655_123_000));
        stamp
    }

    fn both(time: &str) -> (String, String) {
        let (mut legacy, mut iso) = (Vec::new(), Vec::new());
        write_legacy(&mut legacy, time.as_bytes(), &stamp());
        write_iso(&mut iso, time.as_bytes(), &stamp(), true);
        (String::from_utf8(legacy).unwrap(), String::from_utf8(iso).unwrap())
    }

    #[test]
    fn one_form_is_made_of_the_other() {
        for (time, legacy, iso) in [
            ("", "Feb  6 12:14:14 ", "2009-02-06T12:14:14.655123+00:00 "),
            ("-", "Feb  6 12:14:14 ", "- "),
            ("Jan  2 03:04:05", "Jan  2 03:04:05 ", "2009-01-02T03:04:05-00:00 "),
            ("Dec 31 23:59:59", "Dec 31 23:59:59 ", "2008-12-31T23:59:59-00:00 "),
            ("2024-06-12T10:09:11.823400+02:00", "Jun 12 10:09:11 ", "2024-06-12T10:09:11.823400+02:00 "),
            ("1970-01-01T00:00:00Z", "Jan  1 00:00:00 ", "1970-01-01T00:00:00Z "),
            ("1970-13-01T00:00:00Z", "Feb  6 12:14:14 ", "1970-13-01T00:00:00Z "),
            ("yesterday", "Feb  6 12:14:14 ", "2009-02-06T12:14:14.655123+00:00 "),
        ] {
            assert_eq!(both(time), (legacy.to_owned(), iso.to_owned()), "{time}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in ["", "Feb", "Feb  6 12:14:1", "Fev  6 12:14:14", "Feb  6 12-14:14", "Feb  x 12:14:14", "Feb06  12:14:14"] {
            assert_eq!(legacy(text.as_bytes()), None, "{text}");
        }
        for text in
            ["2009-02-06", "2009-02-06T12:14:14", "2009-02-06T12:14:14.Z", "2009-02-06T12:14:14.1", "2009-02-06T12:14:14+1:00"]
        {
            assert_eq!(iso(text.as_bytes()), None, "{text}");
        }
        assert_eq!(iso(b"2009-02-06T12:14:14Z rest"), Some((&b"2009-02-06T12:14:14Z"[..], &b" rest"[..])));
    }
}
