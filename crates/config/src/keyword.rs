//! Keywords: entries of tables.

use crate::args::{Args, Fault};
use crate::diagnostic::Place;
use crate::environment::{self, Change};
use crate::section::{Section, SectionKind, Sections};
use crate::settings::Settings;
use std::collections::HashMap;

/// A keyword. The manual, the dump (`-dK`) and the support matrix are made from these tables.
#[derive(Debug)]
pub struct Keyword {
    /// Its words, separated by single blanks: `timeout connect`.
    pub name: &'static str,
    /// Names that HAProxy has dropped and that existing files still hold; they work with a warning.
    pub old_names: &'static [&'static str],
    /// Sections in which it is allowed.
    pub sections: Sections,
    /// Its arguments as the manual writes them: `<name> [if | unless <condition>]`.
    pub arguments: &'static str,
    /// Its effect, one sentence.
    pub summary: &'static str,
    /// Done, accepted or refused.
    pub kind: Kind,
}

/// The three kinds of keyword; there is no fourth.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Implemented, by this parser.
    Done(Parser),
    /// The same, and `no` or `default` before it takes it back ([`Scope::negated`]).
    Switch(Parser),
    /// A tuning setting of HAProxy's internals that cannot change behaviour here, and the reason. Its arguments are not
    /// read.
    Accepted(&'static str),
    /// Understood and not built: an error, with this reason or the name of a replacement. (`no option` of such a kind is
    /// accepted: an option that is not built is off.)
    Refused(&'static str),
}

/// Function that reads the arguments and fills a setting of the section. It takes all words, or returns the fault of one.
pub type Parser = fn(&mut Args<'_>, &mut Scope<'_>) -> Result<(), Fault>;

/// State that a parser may see and change.
pub struct Scope<'a> {
    /// The section of the line.
    pub section: &'a mut Section,
    /// The named sections before it, without `defaults`.
    pub earlier: &'a [Section],
    /// Settings that belong to no section.
    pub shared: &'a mut Settings,
    /// Warnings of this line: word and text.
    pub warnings: Vec<Fault>,
    /// Whether the keyword follows `no` or `default`.
    pub negated: bool,
    /// The keyword's entry in the table.
    pub keyword: &'static Keyword,
    /// Place of the line.
    pub place: Place,
    /// Changes of the environment that this line asks for.
    pub(crate) changes: Vec<Change>,
}

impl<'a> Scope<'a> {
    /// The scope of a keyword's parser at a place.
    pub fn new(section: &'a mut Section, shared: &'a mut Settings, keyword: &'static Keyword, place: Place) -> Scope<'a> {
        Scope { section, earlier: &[], shared, warnings: Vec::new(), negated: false, keyword, place, changes: Vec::new() }
    }

    /// Warns about a word without refusing the line.
    pub fn warn(&mut self, word: usize, reason: impl Into<String>) {
        self.warnings.push(Fault::new(word, reason));
    }
}

/// All keywords of the tables, and before them the frame's own (`setenv` and its like).
pub fn all<'t>(tables: &'t [&'static [Keyword]]) -> impl Iterator<Item = &'static Keyword> + 't {
    environment::KEYWORDS.iter().chain(tables.iter().flat_map(|table| table.iter()))
}

impl Kind {
    /// Its name in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Done(_) | Kind::Switch(_) => "done",
            Kind::Accepted(_) => "accepted",
            Kind::Refused(_) => "refused",
        }
    }

    /// The reason why it is accepted or refused.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Kind::Done(_) | Kind::Switch(_) => None,
            Kind::Accepted(reason) | Kind::Refused(reason) => Some(reason),
        }
    }
}

/// All keywords by name, one a line (`-dK`): kind, sections, name, arguments.
pub fn dump(tables: &[&'static [Keyword]]) -> String {
    let mut lines: Vec<String> = all(tables)
        .map(|keyword| {
            let no = if matches!(keyword.kind, Kind::Switch(_)) { "[no] " } else { "" };
            let line = format!("{no}{} {}", keyword.name, keyword.arguments);
            format!("{}\0{:<9} {:<35} {}\n", keyword.name, keyword.kind.name(), keyword.sections.to_string(), line.trim_end())
        })
        .collect();
    lines.sort_unstable();
    lines.iter().filter_map(|line| line.split_once('\0')).map(|(_, line)| line).collect()
}

/// The faults of tables: names twice in a section, names that no line can begin with, texts left empty.
pub fn tables_are_sound(tables: &[&'static [Keyword]]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen: HashMap<&str, Sections> = HashMap::new();
    for keyword in all(tables) {
        let name = keyword.name;
        for name in std::iter::once(name).chain(keyword.old_names.iter().copied()) {
            let before = seen.entry(name).or_insert(Sections(0));
            let twice: Vec<_> = keyword.sections.kinds().filter(|kind| before.has(*kind)).map(SectionKind::name).collect();
            if !twice.is_empty() {
                problems.push(format!("'{name}' stands twice for {}", twice.join(", ")));
            }
            *before = before.or(keyword.sections);
            let first = name.split(' ').next().unwrap_or_default();
            let taken =
                ["no", "default"].contains(&first) || SectionKind::from_name(first).is_some() || first.starts_with(['.', '[']);
            if taken || name.split(' ').any(str::is_empty) {
                problems.push(format!("no line can begin with '{name}'"));
            }
        }
        if keyword.sections.kinds().next().is_none() {
            problems.push(format!("'{name}' stands in no section"));
        }
        if !keyword.summary.ends_with('.') {
            problems.push(format!("the summary of '{name}' is no sentence"));
        }
        if keyword.kind.reason().is_some_and(str::is_empty) {
            problems.push(format!("'{name}' is {} without a reason", keyword.kind.name()));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn keyword(name: &'static str, sections: Sections, summary: &'static str, kind: Kind) -> Keyword {
        Keyword { name, old_names: &[], sections, arguments: "<x>", summary, kind }
    }

    static GOOD: &[Keyword] = &[
        keyword("option a", Sections::PROXY, "Does.", Kind::Switch(|_, _| Ok(()))),
        keyword("log", Sections::GLOBAL, "Does.", Kind::Done(|_, _| Ok(()))),
        keyword("log", Sections::PROXY, "Does.", Kind::Refused("why not")),
    ];

    static BAD: &[Keyword] = &[
        keyword("log", Sections::FRONT, "Does.", Kind::Accepted("so")),
        keyword("listen x", Sections::FRONT, "Does.", Kind::Accepted("")),
        keyword("a  b", Sections(0), "does", Kind::Accepted("so")),
    ];

    #[test]
    fn unsound_tables_are_told() {
        assert_eq!(tables_are_sound(&[GOOD]), [""; 0]);
        assert_eq!(
            tables_are_sound(&[GOOD, BAD]),
            [
                "'log' stands twice for defaults, frontend, listen",
                "no line can begin with 'listen x'",
                "'listen x' is accepted without a reason",
                "no line can begin with 'a  b'",
                "'a  b' stands in no section",
                "the summary of 'a  b' is no sentence",
            ]
        );
    }

    #[test]
    fn the_dump_is_sorted() {
        let dump = dump(&[GOOD]);
        let lines: Vec<_> = dump.lines().collect();
        assert_eq!(lines[0], "done      global                              log <x>");
        assert_eq!(lines[1], "refused   defaults,frontend,listen,backend    log <x>");
        assert_eq!(lines[2], "done      defaults,frontend,listen,backend    [no] option a <x>");
        assert!(lines.contains(&"done      global                              setenv <name> <value>"));
    }
}
