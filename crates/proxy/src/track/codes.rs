//! Sets of statuses: `http-err-codes`, `http-fail-codes`.

use std::fmt;

/// A set of statuses, 100 to 599.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Codes([u64; 8]);

impl Codes {
    /// The empty set.
    const NONE: Codes = Codes([0; 8]);
    /// Errors of clients: 400 to 499.
    pub const ERRORS: Codes = Codes::NONE.with(400, 499);
    /// Failures of servers: 500 to 599, without 501 and 505, which clients cause.
    pub const FAILURES: Codes = Codes::NONE.with(500, 500).with(502, 504).with(506, 599);

    /// Whether a status is in the set.
    pub fn has(&self, status: u16) -> bool {
        let Some(at) = usize::from(status).checked_sub(FIRST) else { return false };
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    const fn with(mut self, first: usize, last: usize) -> Codes {
        let mut status = first;
        while status <= last {
            self.0[(status - FIRST) / 64] |= 1 << ((status - FIRST) % 64);
            status += 1;
        }
        self
    }

    const fn without(mut self, first: usize, last: usize) -> Codes {
        let mut status = first;
        while status <= last {
            self.0[(status - FIRST) / 64] &= !(1 << ((status - FIRST) % 64));
            status += 1;
        }
        self
    }

    /// Changes the set as an argument of the configuration tells: `400-499,404` sets it, `+500` adds, `-404` removes.
    pub fn change(&mut self, word: &str) -> Result<(), String> {
        let (mut changed, ranges, removes) = match word.split_at_checked(1) {
            Some(("+", ranges)) => (*self, ranges, false),
            Some(("-", ranges)) => (*self, ranges, true),
            _ => (Codes::NONE, word, false),
        };
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let status = |text: &str| text.parse().ok().filter(|status| (FIRST..=LAST).contains(status));
            let ends = status(first).zip(status(last)).filter(|(first, last)| first <= last);
            let (first, last) = ends.ok_or_else(|| format!("'{range}' is no range of statuses between {FIRST} and {LAST}"))?;
            changed = if removes { changed.without(first, last) } else { changed.with(first, last) };
        }
        *self = changed;
        Ok(())
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((FIRST as u16..=LAST as u16).filter(|status| self.has(*status))).finish()
    }
}

const FIRST: usize = 100;
const LAST: usize = 599;

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(mut codes: Codes, words: &str) -> Vec<u16> {
        words.split(' ').for_each(|word| codes.change(word).unwrap());
        (0..1000).filter(|status| codes.has(*status)).collect()
    }

    #[test]
    fn sets_are_replaced_extended_and_reduced() {
        assert_eq!(listed(Codes::ERRORS, "400,402-404"), [400, 402, 403, 404]);
        assert_eq!(listed(Codes::ERRORS, "400 +100,599"), [100, 400, 599]);
        assert_eq!(listed(Codes::ERRORS, "-402-499"), [400, 401]);
        assert!(!Codes::FAILURES.has(501) && Codes::FAILURES.has(503) && !Codes::FAILURES.has(505) && !Codes::FAILURES.has(0));
    }

    #[test]
    fn what_is_no_range_changes_nothing() {
        for wrong in ["", "+", "99", "600", "404-400", "400-", "4x", "400,,401", "\u{e9}"] {
            let mut codes = Codes::ERRORS;
            assert!(codes.change(wrong).is_err(), "{wrong}");
            assert_eq!(codes, Codes::ERRORS);
        }
    }
}
