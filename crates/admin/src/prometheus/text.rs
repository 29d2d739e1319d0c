//! Prometheus's text format, version 0.0.4.

use std::fmt::Write;

/// Writes a metric's name, its help text, and its type.
pub(super) fn head(name: &str, help: &str, out: &mut String) {
    let kind = match name {
        // It only grows, and counters' names have another ending.
        "haproxy_process_failed_resolutions" => "untyped",
        name if name.ends_with("_total") => "counter",
        _ => "gauge",
    };
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Labels between the braces of a sample.
pub(super) fn labels(labels: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (label, value) in labels {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(label);
        out.push_str("=\"");
        escape(value, &mut out);
        out.push('"');
    }
    out
}

/// A sample: name, [`labels`], one more label whose value needs no escape, and value.
pub(super) fn sample(name: &str, labels: &str, more: Option<(&str, &str)>, value: Number, out: &mut String) {
    out.push_str(name);
    let ends = match (labels.is_empty(), more) {
        (true, None) => " ",
        (_, None) => {
            out.push('{');
            out.push_str(labels);
            "} "
        }
        (is_empty, Some((label, word))) => {
            out.push('{');
            out.push_str(labels);
            out.push_str(if is_empty { "" } else { "," });
            out.push_str(label);
            out.push_str("=\"");
            out.push_str(word);
            "\"} "
        }
    };
    out.push_str(ends);
    let mut digits = itoa::Buffer::new();
    match value {
        Number::None => out.push_str("NaN"),
        Number::Whole(n) => out.push_str(digits.format(n)),
        Number::Millis(n) => fraction(n, 1000, out),
        Number::Micros(n) => fraction(n, 1_000_000, out),
    }
    out.push('\n');
}

/// A number of parts, of which a power of ten make 1.
fn fraction(n: u64, parts: u64, out: &mut String) {
    let mut digits = itoa::Buffer::new();
    out.push_str(digits.format(n / parts));
    out.push('.');
    // A leading 1 keeps the zeros.
    out.push_str(digits.format(parts + n % parts).get(1..).unwrap_or_default());
}

/// Output of the samples of a metric.
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    pub(super) out: &'a mut String,
}

impl Sample<'_> {
    /// A sample of these labels.
    pub(super) fn add(&mut self, of: &[(&str, &str)], value: Number) {
        sample(self.name, &labels(of), None, value, self.out);
    }
}

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Number {
    /// Unknown: `NaN`.
    None,
    Whole(u64),
    /// Milliseconds, shown as seconds.
    Millis(u64),
    /// Microseconds, shown as seconds.
    Micros(u64),
}

/// Label value: backslashes, quotes and line ends are escaped.
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
        sample("a_total", &labels(&[("proxy", "w\"e\\b\n")]), None, Number::Whole(3), &mut out);
        head("b_seconds", "How long", &mut out);
        sample("b_seconds", "", None, Number::Millis(1020), &mut out);
        sample("b_seconds", "", Some(("state", "UP")), Number::Micros(1_000_020), &mut out);
        sample("b_seconds", &labels(&[("proxy", "a"), ("server", "s")]), None, Number::None, &mut out);
        sample("b_seconds", &labels(&[("proxy", "a")]), Some(("code", "2xx")), Number::Whole(0), &mut out);
        let expected = "# HELP a_total What it is\n# TYPE a_total counter\na_total{proxy=\"w\\\"e\\\\b\\n\"} 3\n\
                        # HELP b_seconds How long\n# TYPE b_seconds gauge\nb_seconds 1.020\nb_seconds{state=\"UP\"} 1.000020\nb_seconds{proxy=\"a\",server=\"s\"} NaN\n\
                        b_seconds{proxy=\"a\",code=\"2xx\"} 0\n";
        assert_eq!(out, expected);
    }
}
