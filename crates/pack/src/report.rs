//! Messages for the user, in gzip's manner, and the exit code of the program.

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
    /// The reader of the output has gone.
    Unread,
}

impl Report {
    pub(crate) fn new(options: &Options) -> Report {
        Report { program: options.program, quiet: options.quiet, outcome: Outcome::Good }
    }

    /// Reports an error.
    pub(crate) fn error(&mut self, text: impl Display) {
        write_error(&format!("{}: {text}\n", self.program));
        self.outcome = self.outcome.max(Outcome::Failed);
    }

    /// Reports an omission.
    pub(crate) fn warning(&mut self, text: impl Display) {
        if !self.quiet {
            write_error(&format!("{}: {text}\n", self.program));
        }
        self.outcome = self.outcome.max(Outcome::Warned);
    }

    /// Reports a fact without consequences.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            write_error(&format!("{}: {text}\n", self.program));
        }
    }

    /// Records an omission that was reported already.
    pub(crate) fn warned(&mut self) {
        self.outcome = self.outcome.max(Outcome::Warned);
    }

    /// Prints a message of `-v`.
    pub(crate) fn remark(&self, text: impl Display) {
        write_error(&format!("{text}\n"));
    }

    /// Records that the reader of the output has gone; no message would be read.
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
            // The exit code by which a shell shows a program that SIGPIPE ended.
            Outcome::Unread => ExitCode::from(128 + 13),
        }
    }
}

/// Prints a requested text.
pub(crate) fn answer(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Reports a wrong command line.
pub(crate) fn misuse(command: Command, text: &str) -> ExitCode {
    let name = command.name();
    write_error(&format!("{name}: {text}\nTry `terse {name} --help' for more information.\n"));
    ExitCode::FAILURE
}

/// Writes to standard error, which may be closed: then the message is lost.
pub(crate) fn write_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Saved part of `whole` bytes in percent, as gzip prints it.
pub(crate) fn percent(saved: i128, whole: u64) -> String {
    format!("{:5.1}%", if whole == 0 { 0.0 } else { 100.0 * saved as f64 / whole as f64 })
}
