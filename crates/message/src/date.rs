//! Dates of HTTP's fields (RFC 9110 section 5.6.7), as seconds since 1970.
//!
//! The calendar is `jiff`'s. The day of the week must be a day's name, but a wrong one is no reason to drop a date. A leap
//! second counts as the second before it.

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// Instants are counted as times of the calendar: `jiff`'s own end a day before the year 9999, at whose end many answers expire.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A date in any of the three forms that recipients have to read. `now`, in seconds since 1970, tells the century of a year
/// of two digits.
pub fn parse(value: &[u8], now: i64) -> Option<i64> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    imf(text).or_else(|| rfc850(text, now)).or_else(|| asctime(text))
}

/// The preferred form: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn imf(text: &str) -> Option<i64> {
    let (day_name, rest) = text.split_once(", ")?;
    let rest = rest.strip_suffix(" GMT").filter(|rest| has_form(rest, "00 Aaa 0000 00:00:00") && is_short_day(day_name))?;
    seconds(civil("%d %b %Y %H:%M:%S", rest)?)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`: a year that seems more than 50 years ahead of `now` lies in the past.
pub fn rfc850(text: &str, now: i64) -> Option<i64> {
    let (day_name, rest) = text.split_once(", ")?;
    let rest = rest.strip_suffix(" GMT").filter(|rest| has_form(rest, "00-Aaa-00 00:00:00") && DAYS.contains(&day_name))?;
    let (day_and_month, rest) = rest.split_at_checked(7)?;
    let (year, time) = rest.split_at_checked(2)?;
    let this_year = i64::from(calendar(now)?.year());
    let year = this_year - this_year % 100 + year.parse::<i64>().ok()?;
    let year = if year > this_year + 50 { year - 100 } else { year };
    seconds(civil("%d-%b-%Y %H:%M:%S", &format!("{day_and_month}{year:04}{time}"))?)
}

/// `Sun Nov  6 08:49:37 1994`
pub fn asctime(text: &str) -> Option<i64> {
    let (day_name, rest) = text.split_once(' ')?;
    let is_sound = (has_form(rest, "Aaa 00 00:00:00 0000") || has_form(rest, "Aaa  0 00:00:00 0000")) && is_short_day(day_name);
    seconds(civil("%b %e %H:%M:%S %Y", rest).filter(|_| is_sound)?)
}

/// The preferred form of a date; `None` outside the years 0 to 9999.
pub fn write(seconds: i64) -> Option<String> {
    let time = calendar(seconds).filter(|time| time.year() >= 0)?;
    Some(time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn calendar(seconds: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn civil(form: &str, text: &str) -> Option<DateTime> {
    DateTime::strptime(form, text).ok()
}

fn seconds(date: DateTime) -> Option<i64> {
    Some(date.duration_since(EPOCH).as_secs())
}

/// Whether a text has digits where a form has 0, letters of the same sizes, and all else the same.
fn has_form(text: &str, form: &str) -> bool {
    let is_like = |(byte, like): (u8, u8)| match like {
        b'0' => byte.is_ascii_digit(),
        b'A' => byte.is_ascii_uppercase(),
        b'a' => byte.is_ascii_lowercase(),
        like => byte == like,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_like)
}

fn is_short_day(name: &str) -> bool {
    DAYS.iter().any(|day| name.len() == 3 && day.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: i64 = 784_111_777;
    /// 2026
    const NOW: i64 = 1_790_000_000;

    #[test]
    fn three_forms_are_read() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", THEN),
            (" Sun, 06 Nov 1994 08:49:37 GMT\t", THEN),
            ("Sunday, 06-Nov-94 08:49:37 GMT", THEN),
            ("Sun Nov  6 08:49:37 1994", THEN),
            ("Wed Nov 16 08:49:37 1994", THEN + 10 * 86_400),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
            ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
            ("Sat, 01 Jan 1876 00:00:00 GMT", -2_966_371_200),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            // Another day of the week.
            ("Mon, 06 Nov 1994 08:49:37 GMT", THEN),
            // A leap second.
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799),
        ] {
            assert_eq!(parse(text.as_bytes(), NOW), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_date() {
        for wrong in [
            "",
            "0",
            "-1",
            "now",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 06 Nov 1994  08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-+4 08:49:37 GMT",
            "Sun, 06 Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:\t9:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun Nov  6 08:49:3+ 1994",
            "Sun Nov  6 08:49:37 -994",
            "Sun Nov 6 08:49:37 1994",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
            "Sunday, \u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9} GMT",
        ] {
            assert_eq!(parse(wrong.as_bytes(), NOW), None, "{wrong}");
        }
        assert_eq!(parse(b"\xff, 06 Nov 1994 08:49:37 GMT", NOW), None);
    }

    /// RFC 9110 section 5.6.7: more than 50 years in the future is the most recent such year in the past.
    #[test]
    fn a_year_of_two_digits_is_at_most_fifty_years_ahead() {
        let year = |text: &str| rfc850(text, NOW).and_then(write).map(|date| date[12..16].to_owned());
        assert_eq!(year("Sunday, 06-Nov-76 08:49:37 GMT").as_deref(), Some("2076"));
        assert_eq!(year("Sunday, 06-Nov-77 08:49:37 GMT").as_deref(), Some("1977"));
        assert_eq!(year("Sunday, 06-Nov-26 08:49:37 GMT").as_deref(), Some("2026"));
        assert_eq!(year("Tuesday, 29-Feb-00 08:49:37 GMT").as_deref(), Some("2000"));
    }

    #[test]
    fn a_written_date_is_read_again() {
        assert_eq!(write(THEN).as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        for seconds in [0, 1, THEN, NOW, 253_402_300_799, -2_966_371_200, -62_167_219_200] {
            assert_eq!(write(seconds).and_then(|text| imf(&text)), Some(seconds), "{seconds}");
        }
        for seconds in [i64::MIN, -62_167_219_201, 253_402_300_800, i64::MAX] {
            assert_eq!(write(seconds), None, "{seconds}");
        }
    }
}
