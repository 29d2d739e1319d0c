//! JSON as an interface gives it: a list of records, the same keys over and over.

use super::rng::Rng;
use super::words::{NOUNS, PROSE, VERBS};
use super::{STAMP_BYTES, Template};
use std::fmt::Write;

/// So many records, each with a stamp as its key.
pub fn records(seed: u64, count: usize) -> Template {
    let mut rng = Rng::new(seed);
    let mut out = String::from("{\"records\":[\n");
    let mut stamps = Vec::new();
    for i in 0..count {
        out.push_str(if i == 0 { "{\"key\":\"" } else { ",\n{\"key\":\"" });
        stamps.push(out.len());
        let _ = write!(
            out,
            "{}\",\"id\":{i},\"kind\":\"{}\",\"title\":\"{} {} {}\",\"price\":{}.{:02},\"stock\":{},\"tags\":[\"{}\",\"{}\"],\"active\":{}}}",
            "0".repeat(STAMP_BYTES),
            rng.common(NOUNS),
            rng.pick(VERBS),
            rng.pick(PROSE),
            rng.pick(NOUNS),
            rng.below(1000),
            rng.below(100),
            rng.below(5000),
            rng.common(NOUNS),
            rng.common(NOUNS),
            rng.percent(80),
        );
    }
    let _ = writeln!(out, "\n],\"total\":{count}}}");
    Template { bytes: out.into_bytes(), stamps }
}
