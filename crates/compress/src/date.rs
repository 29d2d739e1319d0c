//! HTTP dates, as numbers to compare (RFC 9110 section 5.6.7).

/// Seconds since 1970 of a date in the preferred form, `Sun, 06 Nov 1994 08:49:37 GMT`. The obsolete forms are not read.
pub(crate) fn seconds(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: i64 = number(words.next()?, 2)?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|&name| name == month)? as i64 + 1;
    let year: i64 = number(words.next()?, 4)?;
    let mut clock = words.next()?.split(':');
    let (hour, minute, second) = (number(clock.next()?, 2)?, number(clock.next()?, 2)?, number(clock.next()?, 2)?);
    let sound = words.next() == Some("GMT") && words.next().is_none() && clock.next().is_none();
    let in_range = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    (sound && in_range).then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn number(digits: &str, length: usize) -> Option<i64> {
    (digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

/// Days since 1970 of a date of the Gregorian calendar. Years begin in March here, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("0", None),
            ("-1", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", None),
            ("", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
    }
}
