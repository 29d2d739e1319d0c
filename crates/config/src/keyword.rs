//! Keywords: entries of tables.

use crate::args::{Args, Fault};
use crate::diagnostic::Place;
use crate::environment::{self, Change};
use crate::section::{Section, Sections};
use crate::settings::Settings;

/// One keyword. The manual, the dump (`-dK`) and the support matrix are made from these tables.
#[derive(Debug)]
pub struct Keyword {
    /// Its words, separated by single blanks: `timeout connect`.
    pub name: &'static str,
    /// Names that HAProxy has dropped and people's files still hold; they work with a warning.
    pub old_names: &'static [&'static str],
    /// Where it may stand.
    pub sections: Sections,
    /// Its arguments as the manual writes them: `<name> [if | unless <condition>]`.
    pub arguments: &'static str,
    /// What it does, one sentence.
    pub summary: &'static str,
    /// Done, accepted or refused.
    pub kind: Kind,
}

/// The three kinds of keyword; there is no fourth.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// It does what it says.
    Done(Parser),
    /// The same, and `no` before it takes it back ([`Scope::negated`]).
    Switch(Parser),
    /// A tuning knob of HAProxy's internals that cannot change behaviour here, and why it cannot.
    Accepted(&'static str),
    /// Understood and not built: an error, with this reason or the name of what to write instead.
    Refused(&'static str),
}

/// Reads the arguments and fills a setting of the section. It takes all words, or says what is wrong with one.
pub type Parser = fn(&mut Args<'_>, &mut Scope<'_>) -> Result<(), Fault>;

/// What a parser may see and change.
pub struct Scope<'a> {
    /// The section that the line stands in.
    pub section: &'a mut Section,
    /// What belongs to no section.
    pub shared: &'a mut Settings,
    /// Warnings of this line: word and text.
    pub warnings: Vec<Fault>,
    /// Whether `no` stands before the keyword.
    pub negated: bool,
    /// The keyword's name as it stands in the table.
    pub keyword: &'static Keyword,
    /// Where the line stands.
    pub place: Place,
    /// Changes of the environment that this line asks for.
    pub(crate) changes: Vec<Change>,
}

impl<'a> Scope<'a> {
    /// What the parser of a keyword sees at a place.
    pub fn new(section: &'a mut Section, shared: &'a mut Settings, keyword: &'static Keyword, place: Place) -> Scope<'a> {
        Scope { section, shared, warnings: Vec::new(), negated: false, keyword, place, changes: Vec::new() }
    }

    /// Says something about a word without refusing the line.
    pub fn warn(&mut self, word: usize, reason: impl Into<String>) {
        self.warnings.push(Fault::new(word, reason));
    }
}

/// All keywords of the tables, and before them the frame's own (`setenv` and its like).
pub fn all<'t>(tables: &'t [&'static [Keyword]]) -> impl Iterator<Item = &'static Keyword> + 't {
    environment::KEYWORDS.iter().chain(tables.iter().flat_map(|table| table.iter()))
}
