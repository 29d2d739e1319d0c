//! Numbers and texts for people.

use std::fmt::Write;

/// Bytes in decimal units, with three digits: `11.5 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A count with thin spaces between thousands: `4 112`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// A time in one or two units: `4 min`, `3 d 4 h`.
pub fn age(seconds: u64) -> String {
    let units = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let Some(first) = units.iter().position(|(size, _)| seconds >= *size) else { return "0 s".into() };
    let (size, name) = units[first];
    let second = units.get(first + 1).map(|(smaller, name)| (seconds % size / smaller, *name));
    match second {
        // Minutes need no seconds, and days no hours where there are many.
        Some((n, unit)) if n > 0 && size != 60 && seconds / size < 10 => format!("{} {name} {n} {unit}", seconds / size),
        _ => format!("{} {name}", seconds / size),
    }
}

/// A time: `420 ms`, `0.42 s`.
pub fn micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..1_000_000 => format!("{} ms", us / 1000),
        1_000_000..100_000_000 => format!("{}.{:02} s", us / 1_000_000, us / 10_000 % 100),
        _ => age(us / 1_000_000),
    }
}

/// Thousandths as percent: `81 %`, with a decimal where the next whole number would be 0 or 100.
pub fn percent(permille: u64) -> String {
    match permille {
        0 => "0 %".into(),
        1..100 | 991..1000 => format!("{}.{} %", permille / 10, permille % 10),
        _ => format!("{} %", (permille + 5) / 10),
    }
}

fn scaled(n: u64, units: &[&str]) -> String {
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.decimals$} {}", units[unit])
}

/// Writes a text escaped for HTML, inside and outside of quotes.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// A number in short, with the exact one as title.
pub(crate) fn exact(short: &str, n: u64, unit: &str, out: &mut String) {
    let _ = write!(out, "<span title=\"{}{unit}\">{short}</span>", count(n));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 999, 1000, 9_994, 9_996, 999_499, 999_500, 11_460_000].map(bytes),
            ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "999 kB", "1.00 MB", "11.5 MB"]
        );
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]);
        assert_eq!(
            [0, 59, 60, 3599, 3600, 3661, 90_000, 900_000].map(age),
            ["0 s", "59 s", "1 min", "59 min", "1 h", "1 h 1 min", "1 d 1 h", "10 d"]
        );
        assert_eq!([5, 1500, 1_420_000, 200_000_000].map(micros), ["5 µs", "1 ms", "1.42 s", "3 min"]);
        assert_eq!([0, 4, 99, 100, 815, 1000].map(percent), ["0 %", "0.4 %", "9.9 %", "10 %", "82 %", "100 %"]);
    }

    #[test]
    fn texts_mean_themselves() {
        let mut out = String::new();
        escape("<a href='x'>\"&", &mut out);
        assert_eq!(out, "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }
}
