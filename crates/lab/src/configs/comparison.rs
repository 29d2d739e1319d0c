//! Two readings of one file.

use super::collection::{File, Recorded};
use super::reading::{Problem, Reading};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Outcome of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Both accept the file.
    BothAccept,
    /// Both refuse it, and name a line in common.
    BothRefuse,
    /// Both refuse it, for different lines.
    OtherLine,
    /// Only HAProxy accepts it.
    Refused,
    /// Only terse accepts it.
    Accepted,
}

/// A file as both read it.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The file's name.
    pub(super) name: String,
    /// Outcome of the comparison.
    pub(super) kind: Kind,
    /// Reading by terse.
    pub(super) ours: Reading,
    /// Reading by this machine's HAProxy.
    theirs: Option<Reading>,
    /// Recorded verdict of HAProxy.
    recorded: Option<Recorded>,
}

impl Comparison {
    pub(super) fn new(file: &File, ours: Reading, theirs: Option<Reading>) -> Comparison {
        let recorded = file.recorded.clone();
        let live = theirs.as_ref();
        let accepted = match &recorded {
            Some(recorded) => recorded.accepted,
            None => live.is_none_or(|reading| reading.accepted),
        };
        let before = recorded.iter().flat_map(|recorded| &recorded.problems);
        let lines = before.chain(live.into_iter().flat_map(|reading| &reading.alerts)).map(|problem| problem.line);
        let kind = match (accepted, ours.accepted) {
            (true, true) => Kind::BothAccept,
            (true, false) => Kind::Refused,
            (false, true) => Kind::Accepted,
            (false, false) if ours.names(lines) => Kind::BothRefuse,
            (false, false) => Kind::OtherLine,
        };
        Comparison { name: file.name.clone(), kind, ours, theirs, recorded }
    }

    /// True if nothing is left to explain.
    pub(super) fn agrees(&self) -> bool {
        matches!(self.kind, Kind::BothAccept | Kind::BothRefuse)
    }

    /// A row of the table: the file, theirs, ours, whether they agree; and below it the lines that differ.
    pub(super) fn row(&self) -> String {
        let theirs_accept = matches!(self.kind, Kind::BothAccept | Kind::Refused);
        let agree = if self.agrees() { "agree" } else { "differ" };
        let mut row = format!("{:<20} {:<8} {:<8} {agree}\n", self.name, word(theirs_accept), word(self.ours.accepted));
        match self.kind {
            Kind::BothAccept | Kind::BothRefuse => {}
            Kind::Refused => tell(&mut row, "terse", &self.ours.alerts),
            Kind::Accepted => self.tell_theirs(&mut row),
            Kind::OtherLine => {
                tell(&mut row, "terse", &self.ours.alerts);
                self.tell_theirs(&mut row);
            }
        }
        if let (Some(theirs), Kind::BothAccept) = (&self.theirs, self.kind) {
            // The meaning of a line is doubted by one of the two alone.
            let lines = |reading: &Reading| reading.warnings.iter().map(|problem| problem.line).collect::<BTreeSet<u32>>();
            let (known, new) = (lines(theirs), lines(&self.ours));
            let only = |reading: &Reading, other: &BTreeSet<u32>| {
                reading.warnings.iter().filter(|problem| !other.contains(&problem.line)).cloned().collect::<Vec<_>>()
            };
            tell(&mut row, "only terse warns", &only(&self.ours, &known));
            tell(&mut row, "only haproxy warns", &only(theirs, &new));
        }
        row
    }

    fn tell_theirs(&self, row: &mut String) {
        if let Some(recorded) = &self.recorded {
            tell(row, "haproxy", &recorded.problems);
            if !recorded.note.is_empty() {
                let _ = writeln!(row, "    note: {}", recorded.note);
            }
        }
        if let Some(theirs) = &self.theirs {
            tell(row, "haproxy here", &theirs.alerts);
        }
    }
}

fn tell(row: &mut String, who: &str, problems: &[Problem]) {
    for (at, Problem { line, reason }) in problems.iter().enumerate() {
        if at == MOST_LINES {
            let _ = writeln!(row, "    {who}: and {} more", problems.len() - at);
            break;
        }
        let _ = writeln!(row, "    {who}: line {line}: {reason}");
    }
}

const fn word(accepted: bool) -> &'static str {
    if accepted { "accepts" } else { "refuses" }
}

/// Lines of a file that are printed: the first tells most.
const MOST_LINES: usize = 8;
