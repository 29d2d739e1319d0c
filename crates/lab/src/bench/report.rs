//! The results as a page and as a file of numbers.

use super::counts::Calls;
use super::goals::GOALS;
use super::sample::{Metric, Sample, summary};
use super::scenario::PLAIN;
use super::scenarios;
use std::fmt::Write;

/// All that a run found.
#[derive(Debug)]
pub(super) struct Results {
    /// Names and versions, in the order of the tables.
    pub(super) programs: Vec<(String, String)>,
    /// In the order in which they were taken.
    pub(super) samples: Vec<Sample>,
    /// System calls of `plain`, by entrant.
    pub(super) calls: Vec<(String, Calls)>,
    /// Messages about failures.
    pub(super) problems: Vec<String>,
    /// Messages about scenarios that this machine lacks something for.
    pub(super) left_out: Vec<String>,
    /// Conditions of the measurement: rounds, seconds, cores.
    pub(super) how: String,
}

impl Results {
    /// The page.
    pub(super) fn page(&self) -> String {
        let mut out = String::from("# Results\n\n");
        let _ = writeln!(out, "Machine: {}.\n\n{}\n", super::machine::description(), self.how);
        for (name, version) in &self.programs {
            let _ = writeln!(out, "* `{name}`: {version}");
        }
        out.push_str("\nEach cell: best of rounds (median of rounds).\n");
        if self.samples.is_empty() {
            out.push_str("\n**Nothing was measured.**\n");
        }
        list(&mut out, "What did not work", &self.problems);
        list(&mut out, "Left out", &self.left_out);
        self.goals(&mut out);
        for (name, about) in scenarios() {
            if self.samples.iter().any(|s| s.scenario == name && !is_count(s.metric)) {
                let _ = writeln!(out, "\n## {name}\n\n{}\n", sentence(about));
                self.table(&mut out, name);
            }
        }
        self.counts(&mut out);
        out
    }

    /// The numbers, one a line, separated by tabs.
    pub(super) fn numbers(&self) -> String {
        let mut out = String::from("scenario\tentrant\tround\tmetric\tvalue\n");
        for s in &self.samples {
            let _ = writeln!(out, "{}\t{}\t{}\t{}\t{:.3}", s.scenario, s.entrant, s.round, s.metric.word(), s.value);
        }
        out
    }

    fn goals(&self, out: &mut String) {
        let verdicts: Vec<_> = GOALS.iter().filter_map(|goal| goal.verdict(&self.samples)).collect();
        if !verdicts.is_empty() {
            out.push_str("\n## Goals\n\n| what | goal | measured | |\n|---|---|---:|---|\n");
            for verdict in verdicts {
                let _ = writeln!(out, "| {} | {} |", verdict.cells.join(" | "), if verdict.held { "held" } else { "**missed**" });
            }
        }
    }

    fn table(&self, out: &mut String, scenario: &str) {
        let here: Vec<_> = self.samples.iter().filter(|s| s.scenario == scenario && !is_count(s.metric)).collect();
        let mut metrics: Vec<Metric> = Vec::new();
        let mut entrants: Vec<&str> = Vec::new();
        for sample in &here {
            if !metrics.contains(&sample.metric) {
                metrics.push(sample.metric);
            }
            if !entrants.contains(&sample.entrant.as_str()) {
                entrants.push(&sample.entrant);
            }
        }
        let titles: Vec<_> = metrics.iter().map(|m| m.title()).collect();
        let _ = writeln!(out, "| | {} |\n|---|{}", titles.join(" | "), "---:|".repeat(metrics.len()));
        for entrant in entrants {
            let cells: Vec<_> = metrics.iter().map(|metric| self.cell(scenario, entrant, *metric)).collect();
            let _ = writeln!(out, "| {entrant} | {} |", cells.join(" | "));
        }
    }

    fn cell(&self, scenario: &str, entrant: &str, metric: Metric) -> String {
        match summary(&self.samples, scenario, entrant, metric) {
            None => "-".into(),
            Some(found) if found.rounds == 1 => format!("{:.*}", metric.decimals(), found.best),
            Some(found) => format!("{0:.2$} ({1:.2$})", found.best, found.median, metric.decimals()),
        }
    }

    fn counts(&self, out: &mut String) {
        if self.calls.is_empty() && !self.samples.iter().any(|s| is_count(s.metric)) {
            return;
        }
        out.push_str("\n## What a `plain` request costs whatever the machine\n\nOne connection, one request after the other: instructions in user space by callgrind, system calls by strace; the difference of two runs with few and many requests.\n\n| | instructions | system calls | which |\n|---|---:|---:|---|\n");
        let is_counted = |name: &str| self.samples.iter().any(|s| is_count(s.metric) && s.entrant == name);
        for (name, _) in self.programs.iter().filter(|(name, _)| is_counted(name)) {
            let calls =
                self.calls.iter().find(|(entrant, _)| entrant == name).map(|(_, calls)| calls.as_slice()).unwrap_or_default();
            let which: Vec<_> = calls.iter().map(|(call, count)| format!("{call} {count:.1}")).collect();
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} |",
                self.cell(PLAIN, name, Metric::Instructions),
                self.cell(PLAIN, name, Metric::SystemCalls),
                which.join(", ")
            );
        }
    }
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(out, "\n## {title}\n");
        for line in lines {
            let _ = writeln!(out, "* {}", line.replace('\n', " "));
        }
    }
}

fn is_count(metric: Metric) -> bool {
    matches!(metric, Metric::Instructions | Metric::SystemCalls)
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).chain(['.']).collect()).unwrap_or_default()
}
