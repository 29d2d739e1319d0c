//! The dates in a persistence cookie (`maxidle`, `maxlife`): `<server>|<last seen>|<first seen>`.
//!
//! Each is a number of four seconds since 1970, rounded up, as five digits to the base of 64, the highest first: HAProxy's form.

use super::{CookieFound, DATE_DELIMITER};

/// Dates of a client's visits, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dates {
    /// The last time.
    pub last: Option<i64>,
    /// The first time.
    pub first: Option<i64>,
}

/// Validity of a cookie, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Terms {
    /// `maxidle`: since the last time.
    pub idle_s: Option<i64>,
    /// `maxlife`: since the first time.
    pub life_s: Option<i64>,
}

impl Dates {
    /// Dates after the server's value in a cookie.
    pub(super) fn of(value: &[u8]) -> Dates {
        let mut parts = value.split(|byte| *byte == DATE_DELIMITER).skip(1).map(read);
        Dates { last: parts.next().flatten(), first: parts.next().flatten() }
    }
}

impl Terms {
    /// Reason why a cookie with these dates is no longer valid, if so. A cookie without a date is valid. A cookie from
    /// the future is not, except for a day in which zones and clocks may differ.
    pub(super) fn judge(&self, dates: &Dates, now_s: i64) -> Option<CookieFound> {
        let is_over = |term: Option<i64>, date: Option<i64>| match (term, date) {
            (Some(term), Some(date)) => now_s - date > term || date - now_s > DAY_S,
            _ => false,
        };
        match () {
            () if is_over(self.life_s, dates.first) => Some(CookieFound::Old),
            () if is_over(self.idle_s, dates.last) => Some(CookieFound::Expired),
            () => None,
        }
    }

    /// Whether a valid cookie must be sent anew, with other dates.
    pub(super) fn renews(&self, dates: &Dates, now_s: i64) -> bool {
        let idles = self.idle_s.is_some() || dates.last.is_some();
        idles && dates.last.is_none_or(|last| last < now_s) || self.life_s.is_some() != dates.first.is_some()
    }

    /// Text after the server's value.
    pub(super) fn write(&self, dates: &Dates, now_s: i64) -> String {
        let mut text = String::new();
        if self.idle_s.is_some() || self.life_s.is_some() {
            put(now_s + 3, &mut text);
        }
        if self.life_s.is_some() {
            put(dates.first.unwrap_or(now_s + 3), &mut text);
        }
        text
    }
}

fn put(date: i64, text: &mut String) {
    text.push(char::from(DATE_DELIMITER));
    let number = date >> 2;
    text.extend((0..DIGITS as i64).rev().map(|place| char::from(ALPHABET[(number >> (6 * place)) as usize & 63])));
}

/// The date that a part begins with.
fn read(part: &[u8]) -> Option<i64> {
    let mut digits = part.get(..DIGITS)?.iter().map(|digit| ALPHABET.iter().position(|one| one == digit));
    let number = digits.try_fold(0, |number, digit| Some(number << 6 | digit? as i64))?;
    (number > 0).then_some(number << 2)
}

const DIGITS: usize = 5;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DAY_S: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_600_000_001;

    #[test]
    fn dates_come_back_rounded_up() {
        let terms = Terms { idle_s: Some(10), life_s: Some(100) };
        let text = terms.write(&Dates::default(), NOW);
        assert_eq!(text.len(), 12);
        let rounded = Some(1_600_000_004);
        assert_eq!(Dates::of(format!("s1{text}").as_bytes()), Dates { last: rounded, first: rounded });
        let kept = terms.write(&Dates { last: None, first: Some(1_500_000_000) }, NOW);
        assert_eq!(Dates::of(kept.as_bytes()), Dates { last: rounded, first: Some(1_500_000_000) });
        assert_eq!(Terms { idle_s: Some(10), life_s: None }.write(&Dates::default(), NOW).len(), 6);
        for odd in ["s1", "s1|", "s1|AAAA", "s1|AAAAA", "s1|A-AAA", "s1||", "s1|____B"] {
            assert_eq!(Dates::of(odd.as_bytes()), Dates::default(), "{odd}");
        }
    }

    #[test]
    fn terms_end() {
        let terms = Terms { idle_s: Some(10), life_s: Some(100) };
        let judge = |last, first| terms.judge(&Dates { last, first }, NOW);
        for (last, first, judged) in [
            (None, None, None),
            (Some(NOW - 10), Some(NOW - 100), None),
            (Some(NOW - 11), Some(NOW - 100), Some(CookieFound::Expired)),
            (Some(NOW), Some(NOW - 101), Some(CookieFound::Old)),
            (Some(NOW + DAY_S), None, None),
            (Some(NOW + DAY_S + 1), None, Some(CookieFound::Expired)),
        ] {
            assert_eq!(judge(last, first), judged, "{last:?} {first:?}");
        }
        assert_eq!(Terms::default().judge(&Dates { last: Some(1), first: Some(1) }, NOW), None);
    }

    #[test]
    fn cookies_are_renewed_when_their_dates_say_less_than_they_should() {
        let (idle, life) = (Terms { idle_s: Some(10), life_s: None }, Terms { idle_s: None, life_s: Some(10) });
        let dates = |last, first| Dates { last, first };
        for (terms, dates, renewed) in [
            (idle, dates(None, None), true),
            (idle, dates(Some(NOW), None), false),
            (idle, dates(Some(NOW - 1), None), true),
            (idle, dates(Some(NOW), Some(NOW)), true),
            (life, dates(None, None), true),
            (life, dates(Some(NOW), Some(1)), false),
            (life, dates(Some(NOW - 1), Some(1)), true),
            (Terms::default(), dates(None, None), false),
            (Terms::default(), dates(Some(NOW - 1), None), true),
        ] {
            assert_eq!(terms.renews(&dates, NOW), renewed, "{terms:?} {dates:?}");
        }
    }
}
