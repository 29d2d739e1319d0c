//! What is said about a configuration.

use std::ops::Range;
use std::sync::Arc;

/// Where a word stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file's name as it was given.
    pub file: Arc<str>,
    /// The line's number, from 1.
    pub line: u32,
    /// The line as it stands in the file.
    pub text: Arc<str>,
    /// The bytes of `text` that are meant.
    pub span: Range<usize>,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Said, and nothing more.
    Notice,
    /// The configuration loads; with `-dW` it does not.
    Warning,
    /// The configuration does not load.
    Alert,
}

/// One problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where, when it has a place.
    pub place: Option<Place>,
    /// What is wrong.
    pub reason: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// All problems of a configuration, in the order of its lines.
#[derive(Default, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds an alert with a place.
    pub fn alert(&mut self, place: &Place, reason: impl Into<String>) {
        self.push(Diagnostic { severity: Severity::Alert, place: Some(place.clone()), reason: reason.into(), hint: None });
    }

    /// Adds a warning with a place.
    pub fn warn(&mut self, place: &Place, reason: impl Into<String>) {
        self.push(Diagnostic { severity: Severity::Warning, place: Some(place.clone()), reason: reason.into(), hint: None });
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The worst of them.
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|d| d.severity).max()
    }
}
