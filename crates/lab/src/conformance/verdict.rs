//! Outcome of a run of VTest, and whether it may be believed.

use super::list::Manner;
use std::collections::BTreeSet;

/// Outcome of a test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Outcome {
    /// VTest reports that it passed, and the log bears it out.
    Pass,
    /// VTest reports that it failed.
    Fail,
    /// The time limit ended it.
    Timeout,
    /// VTest reports that it passed, but nothing was proved.
    Vacuous,
    /// It was not run, or ended itself because something is missing.
    Skip,
}

/// An outcome and its reason.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) manner: Manner,
    pub(super) why: String,
    pub(super) seconds: f64,
}

/// Output and log of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    /// Output of VTest.
    pub(super) output: &'a str,
    /// Its log.
    pub(super) log: &'a str,
    /// The outer time limit ended it.
    pub(super) ended_by_force: bool,
    /// The program tells a wrong configuration from a right one, so that its refusals may be believed.
    pub(super) trusted: bool,
}

impl Outcome {
    /// For lines and tables.
    pub(super) fn word(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Timeout => "timeout",
            Outcome::Vacuous => "vacuous",
            Outcome::Skip => "skip",
        }
    }
}

impl Verdict {
    fn new(outcome: Outcome, why: impl Into<String>) -> Verdict {
        Verdict { outcome, manner: Manner::Plain, why: why.into(), seconds: 0.0 }
    }

    /// A test that was not run.
    pub(super) fn skip(why: impl Into<String>) -> Verdict {
        Verdict::new(Outcome::Skip, why)
    }

    /// A test that could not be run.
    pub(super) fn fail(why: impl Into<String>) -> Verdict {
        Verdict::new(Outcome::Fail, why)
    }

    /// True if it was run and did not pass.
    pub(super) fn is_failure(&self) -> bool {
        !matches!(self.outcome, Outcome::Pass | Outcome::Skip)
    }

    /// The line that is printed for it.
    pub(super) fn line(&self, name: &str) -> String {
        let manner = if self.manner == Manner::AsHAProxy { "as HAProxy " } else { "" };
        let why: String = manner.chars().chain(self.why.chars()).take(110).collect();
        format!("{:<8}{:>6.1} s  {name:<58} {why}", self.outcome.word(), self.seconds).trim_end().to_owned()
    }
}

/// Judges a run.
pub(super) fn judge(evidence: &Evidence<'_>) -> Verdict {
    if evidence.output.contains("TIMED OUT (kill -9)") {
        return Verdict::new(Outcome::Timeout, "VTest's limit");
    }
    if evidence.ended_by_force {
        return Verdict::new(Outcome::Timeout, "outer limit");
    }
    match tally(evidence.output) {
        None => Verdict::fail(format!("VTest broke: {}", evidence.output.trim_end().lines().last().unwrap_or("no output"))),
        Some([0, 1, 0]) => judge_skip(evidence.log),
        Some([0, 0, 1]) => judge_pass(evidence),
        Some(_) => Verdict::fail(first_error(evidence.log)),
    }
}

/// VTest takes an exit status of 1 for a skip: the log must have it too.
fn judge_skip(log: &str) -> Verdict {
    if !log.contains("SKIPPING test, ") || has_error(log) {
        return Verdict::fail(format!("ended as if skipped: {}", first_error(log)));
    }
    let feature =
        log.lines().rev().find_map(|line| line.split_once("=== feature ").map(|(_, command)| command.trim_end_matches("...")));
    Verdict::skip(feature.unwrap_or_default())
}

fn judge_pass(evidence: &Evidence<'_>) -> Verdict {
    let log = evidence.log;
    if has_error(log) {
        return Verdict::fail(format!("passed with errors: {}", first_error(log)));
    }
    let entries = || log.lines().filter_map(entry);
    if !entries().any(|(who, text)| who == "top" && text.starts_with("TEST ") && text.ends_with("completed")) {
        return Verdict::fail("the log does not say that it was completed");
    }
    // `-conf-BAD` is content with any exit status of 1: there must be a diagnostic too.
    for refused in refused_instances(log) {
        if !entries().any(|(who, text)| who == refused && text.starts_with("debug|") && text.contains("[ALERT]")) {
            return Verdict::new(Outcome::Vacuous, format!("{refused} refuses its configuration without an [ALERT]"));
        }
    }
    let positive =
        |text: &str| POSITIVE.iter().any(|sign| text.contains(sign)) || text.contains("EXPECT") && text.ends_with("match");
    if !evidence.trusted && log.contains("-conf-BAD") && !entries().any(|(_, text)| positive(text)) {
        return Verdict::new(Outcome::Vacuous, "only refusals were checked, and the probe failed");
    }
    let instance = entries().any(|(who, text)| who.starts_with('h') && text.starts_with("PID: "));
    let by_shell = log.lines().any(|line| line.contains("shell_cmd") && line.contains("HAPROXY_PROGRAM"));
    if !instance && !by_shell {
        return Verdict::new(Outcome::Vacuous, "the program was never started");
    }
    Verdict::new(Outcome::Pass, "")
}

/// Failed, skipped and passed, as the last line of the output counts them.
fn tally(output: &str) -> Option<[u32; 3]> {
    let line = output.lines().rev().find(|line| line.contains(" tests failed, "))?;
    let mut numbers = line.split(", ").map(|part| part.split(' ').next()?.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Parses a line of the log: its program, and its text.
fn entry(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix('*')?.trim_start_matches('*').trim_start();
    let (who, text) = rest.split_once(char::is_whitespace)?;
    Some((who, text.trim()))
}

/// The instances whose configurations the test expects to be refused.
fn refused_instances(log: &str) -> BTreeSet<&str> {
    let commands = log.lines().filter_map(entry).filter(|(who, text)| *who == "top" && text.contains("-conf-BAD"));
    commands.filter_map(|(_, text)| text.strip_prefix("=== haproxy ")?.split_whitespace().next()).collect()
}

fn has_error(log: &str) -> bool {
    log.lines().any(|line| line.starts_with("---- "))
}

/// The most telling lines: VTest's first complaint, and the program's message.
fn first_error(log: &str) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let complaint = log.lines().find_map(|line| line.strip_prefix("---- ")).map(words);
    let said = log.lines().filter_map(|line| line.split_once("debug|")).map(|(_, text)| text);
    let said = said.filter(|text| SYMPTOMS.iter().any(|symptom| text.contains(symptom))).map(words).next();
    [complaint.or(Some("no complaint".into())), said].into_iter().flatten().collect::<Vec<_>>().join(" | ")
}

const POSITIVE: &[&str] = &["-conf-OK", "CLI expect match", "rxhdr"];

const SYMPTOMS: &[&str] = &["[ALERT]", "panicked", "Segmentation", "not found"];

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = "0 tests failed, 0 tests skipped, 1 tests passed\n";

    fn outcome(output: &str, log: &str) -> Outcome {
        judge(&Evidence { output, log, ended_by_force: false, trusted: true }).outcome
    }

    #[test]
    fn believes_a_pass_only_with_its_log() {
        let log = "**   h1    PID: 12\n*    top   TEST x.vtc completed\n";
        assert_eq!(outcome(PASSED, log), Outcome::Pass);
        assert_eq!(outcome(PASSED, "*    top   TEST x.vtc completed\n"), Outcome::Vacuous);
        assert_eq!(outcome(PASSED, "**   h1    PID: 12\n"), Outcome::Fail);
        assert_eq!(outcome(PASSED, &format!("{log}---- c1    HTTP rx failed\n")), Outcome::Fail);
    }

    #[test]
    fn wants_a_diagnostic_with_a_refusal() {
        let log = "**   top   === haproxy h2 -conf-BAD {} {\n**   h2    PID: 12\n*    top   TEST x.vtc completed\n";
        assert_eq!(outcome(PASSED, log), Outcome::Vacuous);
        assert_eq!(outcome(PASSED, &format!("***  h2    debug|[ALERT] (1) : config : no\\n\n{log}")), Outcome::Pass);
    }

    #[test]
    fn a_skip_is_one_only_if_the_log_says_so() {
        let skipped = "0 tests failed, 1 tests skipped, 0 tests passed\n";
        assert_eq!(
            outcome(skipped, "**   top   === feature cmd \"x\"\n*    top   SKIPPING test, lacking feature: cmd\n"),
            Outcome::Skip
        );
        assert_eq!(outcome(skipped, ""), Outcome::Fail);
        assert_eq!(outcome("*    top   TIMED OUT (kill -9)\n", ""), Outcome::Timeout);
        assert_eq!(outcome("Segmentation fault\n", ""), Outcome::Fail);
    }
}
