//! Prometheus's text format, version 0.0.4.

use std::fmt::Write;

/// A metric's name, what it is, and whether it only grows.
pub(super) fn head(name: &str, help: &str, out: &mut String) {
    let kind = if is_counter(name) { "counter" } else { "gauge" };
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A sample: name, labels and value.
pub(super) fn sample(name: &str, labels: &[(&str, &str)], value: Number, out: &mut String) {
    out.push_str(name);
    for (place, (label, value)) in labels.iter().enumerate() {
        out.push(if place == 0 { '{' } else { ',' });
        let _ = write!(out, "{label}=\"");
        escape(value, out);
        out.push('"');
    }
    out.push_str(if labels.is_empty() { " " } else { "} " });
    let _ = match value {
        Number::None => writeln!(out, "NaN"),
        Number::Whole(n) => writeln!(out, "{n}"),
        Number::Millis(n) => writeln!(out, "{}.{:03}", n / 1000, n % 1000),
    };
}

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Number {
    /// Not known.
    None,
    Whole(u64),
    /// Milliseconds, shown as seconds.
    Millis(u64),
}

/// HAProxy's names say what only grows, but for one.
fn is_counter(name: &str) -> bool {
    name.ends_with("_total") || name == "haproxy_process_failed_resolutions"
}

/// A label's value: backslashes, quotes and ends of lines are escaped.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_scrapers_read_it() {
        let mut out = String::new();
        head("a_total", "What it is", &mut out);
        sample("a_total", &[("proxy", "w\"e\\b\n")], Number::Whole(3), &mut out);
        head("b_seconds", "How long", &mut out);
        sample("b_seconds", &[], Number::Millis(1020), &mut out);
        sample("b_seconds", &[("proxy", "a"), ("server", "s")], Number::None, &mut out);
        let expected = "# HELP a_total What it is\n# TYPE a_total counter\na_total{proxy=\"w\\\"e\\\\b\\n\"} 3\n\
                        # HELP b_seconds How long\n# TYPE b_seconds gauge\nb_seconds 1.020\nb_seconds{proxy=\"a\",server=\"s\"} NaN\n";
        assert_eq!(out, expected);
    }
}
