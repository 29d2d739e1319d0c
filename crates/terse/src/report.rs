//! Messages of the program about itself on the terminal, in HAProxy's form: `[ALERT]    (pid) : text`.
//!
//! Problems of a configuration come from `terse_config` and are printed here too. So one place knows what `-q` silences, and keeps
//! the messages until the process serves (`show startup-logs`). A failed write never fails the program: an output that was closed
//! is not wanted.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use terse_config::Diagnostics;

/// Verbosity, and the messages so far. Clones share the memory.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// `-q` without `-V`.
    pub quiet: bool,
    /// `-V` or `-d`.
    pub talks: bool,
    said: Arc<Mutex<String>>,
}

impl Report {
    /// Returns a report of that verbosity.
    pub fn new(quiet: bool, talks: bool) -> Report {
        Report { quiet, talks, said: Arc::default() }
    }

    /// Returns a report that prints nothing.
    pub fn silent() -> Report {
        Report::new(true, false)
    }

    /// Reports a problem that keeps the program from its task.
    pub fn alert(&self, text: impl Display) {
        self.line("[ALERT]   ", text);
    }

    /// Something that the operator should look at.
    pub fn warn(&self, text: impl Display) {
        self.line("[WARNING] ", text);
    }

    /// Something that happened as asked.
    pub fn notice(&self, text: impl Display) {
        self.line("[NOTICE]  ", text);
    }

    /// Prints a notice for verbose output.
    pub fn detail(&self, text: impl Display) {
        if self.talks {
            self.notice(text);
        }
    }

    /// Prints the problems of a configuration: with the line and the argument underlined on a terminal, a line each elsewhere.
    pub fn diagnostics(&self, diagnostics: &Diagnostics) {
        let pid = std::process::id();
        let terminal = std::io::stderr().is_terminal();
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        for diagnostic in diagnostics.iter() {
            let line = format!("{}\n", diagnostic.one_line(pid));
            match terminal {
                true => self.error_text(diagnostic.on_terminal(pid, colours)),
                false => self.error_text(&line),
            }
            self.remember(&line);
        }
        if diagnostics.omitted() > 0 {
            self.notice(format_args!("config : {} more problems", diagnostics.omitted()));
        }
    }

    /// Prints text without a prefix to standard error.
    pub fn error_text(&self, text: impl Display) {
        if !self.quiet {
            let _ = write!(std::io::stderr().lock(), "{text}");
        }
    }

    /// An answer, to standard output, with its line's end.
    pub fn answer(&self, text: impl Display) {
        if !self.quiet {
            print(format_args!("{text}\n"));
        }
    }

    /// Keeps the messages of another process.
    pub fn quote(&self, text: &str) {
        self.remember(text);
    }

    /// Returns the messages so far, line by line, up to a limit.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn line(&self, severity: &str, text: impl Display) {
        let line = format!("{severity} ({}) : {text}\n", std::process::id());
        self.error_text(&line);
        self.remember(&line);
    }

    fn remember(&self, line: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() + line.len() <= REMEMBERED_BYTES {
            said.push_str(line);
        }
    }
}

/// Prints the output that the command line asked for, which `-q` does not silence.
pub fn print(text: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Bytes of messages that are kept, as HAProxy keeps of its start.
const REMEMBERED_BYTES: usize = 65536;
