//! Numbers with units: durations and sizes, as HAProxy's manual describes them ("Time format", "Size format").

use std::time::Duration;

/// Unit of a duration that is written without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Thousandths of a second: nearly all keywords.
    Milliseconds,
    /// Seconds: `stats refresh`, `maxidle` and a few others.
    Seconds,
}

/// A duration: `us`, `ms`, `s`, `m`, `h` or `d` after a whole number; milliseconds without.
pub fn parse_time(word: &str) -> Result<Duration, String> {
    parse_time_in(word, TimeUnit::Milliseconds)
}

/// A duration whose number counts in that unit when none is written.
pub fn parse_time_in(word: &str, unit: TimeUnit) -> Result<Duration, String> {
    let (number, suffix) = split(word)?;
    let micros_each: u64 = match (suffix, unit) {
        ("us", _) => 1,
        ("ms", _) | ("", TimeUnit::Milliseconds) => 1_000,
        ("s", _) | ("", TimeUnit::Seconds) => 1_000_000,
        ("m", _) => 60_000_000,
        ("h", _) => 3_600_000_000,
        ("d", _) => 86_400_000_000,
        _ => return Err(format!("'{word}' has the unknown unit '{suffix}' (us, ms, s, m, h and d are known)")),
    };
    let micros = number.checked_mul(micros_each).filter(|micros| *micros <= MAX_TIME_MS * 1_000);
    micros.map(Duration::from_micros).ok_or_else(|| format!("'{word}' is too long: at most {MAX_TIME_MS} ms, which is 24.8 days"))
}

/// A number of bytes: `k`, `m` or `g` in either case after a whole number, powers of 1024.
pub fn parse_size(word: &str) -> Result<u64, String> {
    let (number, suffix) = split(word)?;
    let shift = match suffix {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return Err(format!("'{word}' has the unknown unit '{suffix}' (k, m and g are known)")),
    };
    number.checked_mul(1 << shift).ok_or_else(|| format!("'{word}' is too large"))
}

/// The number that a word begins with, and the text after it.
fn split(word: &str) -> Result<(u64, &str), String> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = word.split_at(digits);
    match (number.parse(), suffix.as_bytes().first()) {
        _ if number.is_empty() => Err(format!("'{word}' is not a whole number")),
        (_, Some(b'.' | b',')) => Err(format!("'{word}' is not a whole number; write it in a smaller unit")),
        (Ok(number), _) => Ok((number, suffix)),
        (Err(_), _) => Err(format!("'{word}' is too large")),
    }
}

/// HAProxy keeps timers in 31 bits of milliseconds; a longer time is a mistake in a file.
const MAX_TIME_MS: u64 = i32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_time() {
        for (word, micros) in [
            ("0", 0),
            ("5", 5_000),
            ("7us", 7),
            ("7ms", 7_000),
            ("7s", 7_000_000),
            ("7m", 420_000_000),
            ("7h", 25_200_000_000),
            ("7d", 604_800_000_000),
            ("2147483647", 2_147_483_647_000),
            ("2147483647000us", 2_147_483_647_000),
        ] {
            assert_eq!(parse_time(word), Ok(Duration::from_micros(micros)), "{word}");
        }
        assert_eq!(parse_time_in("5", TimeUnit::Seconds), Ok(Duration::from_secs(5)));
        assert_eq!(parse_time_in("5ms", TimeUnit::Seconds), Ok(Duration::from_millis(5)));
    }

    #[test]
    fn what_is_no_time() {
        for word in
            ["", "s", "-1s", "1x", "1ss", "1S", "1.5s", " 1", "2147483648", "25d", "18446744073709551616", "1844674407370955161m"]
        {
            assert!(parse_time(word).is_err(), "{word}");
        }
        assert_eq!(parse_time("25d").unwrap_err(), "'25d' is too long: at most 2147483647 ms, which is 24.8 days");
    }

    #[test]
    fn every_unit_of_size() {
        for (word, bytes) in [
            ("0", 0),
            ("9", 9),
            ("9k", 9 << 10),
            ("9K", 9 << 10),
            ("9m", 9 << 20),
            ("9M", 9 << 20),
            ("9g", 9 << 30),
            ("9G", 9 << 30),
        ] {
            assert_eq!(parse_size(word), Ok(bytes), "{word}");
        }
        for word in ["", "k", "9t", "9kb", "-9", "1.5g", "18446744073709551616", "17179869184g"] {
            assert!(parse_size(word).is_err(), "{word}");
        }
    }
}
