//! What is said to the user, in gzip's manner, and what the program ends with.

use crate::options::{Command, Options};
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Messages of a run, and its outcome so far.
pub(crate) struct Report {
    program: &'static str,
    quiet: bool,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Good,
    Warned,
    Failed,
    /// Whoever read the output has gone.
    Unread,
}

impl Report {
    pub(crate) fn new(options: &Options) -> Report {
        Report { program: options.program, quiet: options.quiet, outcome: Outcome::Good }
    }

    /// Something went wrong.
    pub(crate) fn error(&mut self, text: impl Display) {
        write_error(&format!("{}: {text}\n", self.program));
        self.outcome = self.outcome.max(Outcome::Failed);
    }

    /// Something was left out.
    pub(crate) fn warning(&mut self, text: impl Display) {
        if !self.quiet {
            write_error(&format!("{}: {text}\n", self.program));
        }
        self.outcome = self.outcome.max(Outcome::Warned);
    }

    /// Something needs nothing to be done.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            write_error(&format!("{}: {text}\n", self.program));
        }
    }

    /// Something was left out, and that was told already.
    pub(crate) fn warned(&mut self) {
        self.outcome = self.outcome.max(Outcome::Warned);
    }

    /// Something that was asked for with `-v`.
    pub(crate) fn remark(&self, text: impl Display) {
        write_error(&format!("{text}\n"));
    }

    /// Whoever reads the output has gone; there is nobody to tell.
    pub(crate) fn unread(&mut self) {
        self.outcome = Outcome::Unread;
    }

    /// Whether there is no use in going on.
    pub(crate) fn is_unread(&self) -> bool {
        self.outcome == Outcome::Unread
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.outcome {
            Outcome::Good => ExitCode::SUCCESS,
            Outcome::Warned => ExitCode::from(2),
            Outcome::Failed => ExitCode::FAILURE,
            // What a shell shows for a program that SIGPIPE ended.
            Outcome::Unread => ExitCode::from(128 + 13),
        }
    }
}

/// Prints what was asked for.
pub(crate) fn answer(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A command line that cannot be understood.
pub(crate) fn misuse(command: Command, text: &str) -> ExitCode {
    let name = command.name();
    write_error(&format!("{name}: {text}\nTry `terse {name} --help' for more information.\n"));
    ExitCode::FAILURE
}

/// Standard error may be closed, and then nobody wants to know.
pub(crate) fn write_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// How much smaller something got, as gzip prints it: of `whole` bytes, `saved` are gone.
pub(crate) fn percent(saved: i128, whole: u64) -> String {
    format!("{:5.1}%", if whole == 0 { 0.0 } else { 100.0 * saved as f64 / whole as f64 })
}
