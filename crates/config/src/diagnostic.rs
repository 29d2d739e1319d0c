//! Diagnostics of a configuration.

use std::ops::Range;
use std::sync::Arc;

/// Place of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file's name as it was given.
    pub file: Arc<str>,
    /// The line's number, from 1; 0 when the place is no line.
    pub line: u32,
    /// The line as it is in the file; bytes that are not UTF-8 are `?`.
    pub text: Arc<str>,
    /// The bytes of `text` at this place.
    pub span: Range<usize>,
}

impl Place {
    /// No place: that of an object outside of any file.
    pub fn nowhere() -> Place {
        Place { file: "".into(), line: 0, text: "".into(), span: 0..0 }
    }

    /// Another part of the same line, widened to whole characters.
    pub fn at(&self, span: Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.ceil_char_boundary(span.end.max(start));
        Place { span: start..end, ..self.clone() }
    }
}

/// Severity of a problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Reported, without effect.
    Notice,
    /// The configuration loads; with `-dW` it does not.
    Warning,
    /// The configuration does not load.
    Alert,
}

/// A problem of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// Its place, when it has one.
    pub place: Option<Place>,
    /// The reason.
    pub reason: String,
    /// Text to write instead.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A problem at a place.
    pub fn new(severity: Severity, place: &Place, reason: impl Into<String>) -> Diagnostic {
        let place = (place.line > 0).then(|| place.clone());
        Diagnostic { severity, place, reason: reason.into(), hint: None }
    }

    /// The same, with a hint.
    pub fn hint(mut self, hint: Option<impl Into<String>>) -> Diagnostic {
        self.hint = hint.map(Into::into);
        self
    }
}

/// All problems of a configuration, in the order of its lines.
#[derive(Default, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    worst: Option<Severity>,
    omitted: usize,
}

impl Diagnostics {
    /// Adds a problem. Of more than [`MAX_DIAGNOSTICS`] only the number is kept.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.worst = self.worst.max(Some(diagnostic.severity));
        match self.list.len() < MAX_DIAGNOSTICS {
            true => self.list.push(diagnostic),
            false => self.omitted += 1,
        }
    }

    /// Adds an alert with a place.
    pub fn alert(&mut self, place: &Place, reason: impl Into<String>) {
        self.push(Diagnostic::new(Severity::Alert, place, reason));
    }

    /// Adds a warning with a place.
    pub fn warn(&mut self, place: &Place, reason: impl Into<String>) {
        self.push(Diagnostic::new(Severity::Warning, place, reason));
    }

    /// All of them that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The worst severity of all, those that are not kept too.
    pub fn worst(&self) -> Option<Severity> {
        self.worst
    }

    /// Whether the search may end: there is an alert, and more problems than can be kept.
    pub(crate) fn are_enough(&self) -> bool {
        self.omitted > 0 && self.worst == Some(Severity::Alert)
    }

    /// Number of problems beyond those that are kept, as far as the files were read: after an alert, reading ends there.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// Most problems that are kept: more are of no use to a reader, and a file of noise must not fill the memory. (HAProxy
/// stops at 50 errors a file.)
pub const MAX_DIAGNOSTICS: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_known_even_where_it_is_not_kept() {
        let mut all = Diagnostics::default();
        assert_eq!(all.worst(), None);
        (0..MAX_DIAGNOSTICS).for_each(|_| all.warn(&Place::nowhere(), "noise"));
        all.alert(&Place::nowhere(), "bad");
        assert_eq!((all.worst(), all.omitted(), all.iter().count()), (Some(Severity::Alert), 1, MAX_DIAGNOSTICS));
    }

    #[test]
    fn places_cover_whole_characters() {
        let line = Place { text: "a\u{e9}b".into(), line: 1, ..Place::nowhere() };
        assert_eq!(line.at(2..2).span, 1..3);
        assert_eq!(line.at(7..9).span, 4..4);
    }
}
