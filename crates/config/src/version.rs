//! Versions, and their order.

use std::cmp::Ordering;

/// Compares two of HAProxy's versions; `None` when one of them is no version.
///
/// `2.5-dev0` is before `2.5-rc1`, that before `2.5`, that before `2.5.1`; missing parts count as zero. A number after the
/// last hyphen (`3.5-dev5-50872d-2`: commits) decides last. A version must begin with a digit: to be at least one that
/// cannot be read is true, as in HAProxy.
pub fn compare(ours: &str, theirs: &str) -> Option<Ordering> {
    Some(parse(ours)?.cmp(&parse(theirs)?))
}

/// Four numbers, the rank of the tag, the tag's number, the number of commits.
fn parse(version: &str) -> Option<[u64; 7]> {
    let mut value = [0; 7];
    value[4] = RELEASE;
    let mut rest = version;
    for (index, slot) in value[..4].iter_mut().enumerate() {
        let (number, after) = leading_number(rest);
        if index == 0 && after.len() == rest.len() {
            return None;
        }
        *slot = number;
        match after.chars().next() {
            None => return Some(value),
            Some('.') if index < 3 => rest = &after[1..],
            Some('-') => {
                rest = &after[1..];
                break;
            }
            Some(_) => return None,
        }
    }
    let tags = [("dev", DEVELOPMENT), ("rc", CANDIDATE), ("pre", CANDIDATE)];
    if let Some((tagged, rank)) = tags.into_iter().find_map(|(tag, rank)| Some((rest.strip_prefix(tag)?, rank))) {
        let (number, after) = leading_number(tagged);
        (value[4], value[5]) = (rank, number);
        match after.strip_prefix('-') {
            Some(commits) => rest = commits,
            None if after.is_empty() => return Some(value),
            None => return None,
        }
    }
    let commits = rest.rsplit('-').next().unwrap_or_default();
    value[6] = commits.parse().unwrap_or(0);
    Some(value)
}

/// The number that a text begins with, zero if none, and the text after it.
fn leading_number(text: &str) -> (u64, &str) {
    let (digits, after) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    (digits.parse().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX }), after)
}

const DEVELOPMENT: u64 = 1;
const CANDIDATE: u64 = 2;
const RELEASE: u64 = 3;

/// A version of OpenSSL: `1.1.1w`, `3.0.15`, `3.0.0-beta2`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct OpensslVersion {
    numbers: [u8; 3],
    /// The letter of a patch release, counted from 1 for `a`.
    patch: u64,
    /// 0 in development, then the betas, then the release.
    status: u64,
}

impl OpensslVersion {
    /// Reads a version, which has three numbers.
    pub(crate) fn parse(text: &str) -> Option<OpensslVersion> {
        let (major, rest) = text.split_once('.')?;
        let (minor, rest) = rest.split_once('.')?;
        let (fix, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
        let numbers = [major.parse().ok()?, minor.parse().ok()?, fix.parse().ok()?];
        let (patch, status) = match rest.strip_prefix('-') {
            Some(tag) => (0, tag.strip_prefix("beta").map_or(Some(0), |beta| beta.parse().ok().filter(|beta| *beta < RELEASED))?),
            None if rest.bytes().all(|letter| letter.is_ascii_alphabetic()) => {
                (rest.bytes().map(|letter| u64::from(letter.to_ascii_lowercase() - b'a' + 1)).sum(), RELEASED)
            }
            None => return None,
        };
        Some(OpensslVersion { numbers, patch, status })
    }
}

/// The status of a release; betas are below.
const RELEASED: u64 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_their_order() {
        let ascending = [
            "0",
            "1.8",
            "2.4",
            "2.5-dev0",
            "2.5-dev2",
            "2.5-dev2-1a2b3c-7",
            "2.5-dev10",
            "2.5-rc1",
            "2.5",
            "2.5-7",
            "2.5.0.1",
            "2.5.1",
            "2.10",
            "3.5-dev5-50872d-2",
            "3.5",
            "1024",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        assert_eq!(compare("2.5", "2.5.0.0"), Some(Ordering::Equal));
        assert_eq!(compare("2.6.12-1+deb12u4", "2.6.12"), Some(Ordering::Equal));
    }

    #[test]
    fn what_is_no_version_has_no_order() {
        for text in ["", "v9.9", "x", ".1", "1.2.3.4.5", "1_2", "2.5-dev1x"] {
            assert_eq!(compare("3.5", text), None, "{text}");
        }
    }

    #[test]
    fn versions_of_openssl() {
        let ascending = ["1.0.2", "1.1.1-dev", "1.1.1-beta2", "1.1.1", "1.1.1a", "1.1.1w", "3.0.0", "3.0.15", "3.5.0"];
        for pair in ascending.windows(2) {
            assert!(OpensslVersion::parse(pair[0]) < OpensslVersion::parse(pair[1]), "{pair:?}");
        }
        for text in ["", "x", "3", "3.0", "3.0.", "3.x.0", "3.0.0-betax", "999.0.0"] {
            assert_eq!(OpensslVersion::parse(text), None, "{text}");
        }
    }
}
