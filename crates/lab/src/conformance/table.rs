//! The table by category: the folder that a test is in.

use super::verdict::{Outcome, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A line for each category, and one for all.
pub(super) fn table(verdicts: &BTreeMap<String, Verdict>) -> String {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut total = Row::default();
    for (name, verdict) in verdicts {
        let category = name.split('/').next().unwrap_or_default();
        rows.entry(category).or_default().add(verdict);
        total.add(verdict);
    }
    let mut out = String::from("\n");
    let _ = writeln!(
        out,
        "{:<20}{:>6}{:>7}{:>7}{:>9}{:>9}{:>7}{:>10}",
        "category", "tests", "pass", "fail", "timeout", "vacuous", "skip", "seconds"
    );
    for (name, row) in rows.into_iter().chain([("all", total)]) {
        let [pass, fail, timeout, vacuous, skip] = OUTCOMES.map(|outcome| row.count(outcome));
        let tests = row.outcomes.len();
        let _ = writeln!(out, "{name:<20}{tests:>6}{pass:>7}{fail:>7}{timeout:>9}{vacuous:>9}{skip:>7}{:>10.1}", row.seconds);
    }
    out
}

#[derive(Default)]
struct Row {
    outcomes: Vec<Outcome>,
    seconds: f64,
}

impl Row {
    fn add(&mut self, verdict: &Verdict) {
        self.outcomes.push(verdict.outcome);
        self.seconds += verdict.seconds;
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.iter().filter(|o| **o == outcome).count()
    }
}

const OUTCOMES: [Outcome; 5] = [Outcome::Pass, Outcome::Fail, Outcome::Timeout, Outcome::Vacuous, Outcome::Skip];
