//! From files to a [`Config`].
//!
//! Steps of a line: bytes -> words -> `.if` blocks -> messages (`.warning`) -> a section's opening or a keyword -> its
//! parser. Faults of a line are reported, and the next line is read.

use crate::args::{Args, Fault};
use crate::blocks::Blocks;
use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::environment::Environment;
use crate::index::{Found, Index};
use crate::keyword::{Keyword, Kind, Parser, Scope};
use crate::lines::{self, Line};
use crate::near;
use crate::opened::{Opened, Target};
use crate::opening::{IDLE_SECTIONS, REFUSED_SECTIONS};
use crate::section::{Config, SectionKind};
use crate::settings::Settings;
use crate::words::{self, Word, Words};
use std::ops::Range;
use std::sync::Arc;

/// A file, read by the caller.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, for diagnostics.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Reads configurations by tables of keywords.
pub struct Loader {
    /// The tables, joined by the program. (The frame's own keywords are always there.)
    pub tables: Vec<&'static [Keyword]>,
    /// Facts that files may ask for.
    pub environment: Environment,
}

impl Loader {
    /// Reads the files as one configuration, in order. `shared` holds the settings that parsers find in
    /// [`crate::Scope::shared`].
    ///
    /// Any bytes may be given. The configuration is meant to be used only if no diagnostic is an alert.
    pub fn load(&self, sources: &[Source], shared: Settings) -> (Config, Diagnostics) {
        let mut reading = Reading {
            index: Index::new(&self.tables),
            environment: self.environment.clone(),
            opened: Opened::new(),
            shared,
            accepted: Vec::new(),
            diagnostics: Diagnostics::default(),
        };
        for source in sources {
            reading.file(source);
        }
        let Reading { environment, opened, shared, accepted, diagnostics, .. } = reading;
        let (global, sections, bases) = opened.into_parts();
        (Config { global, sections, bases, shared, accepted, environment }, diagnostics)
    }
}

/// The state of reading a configuration.
struct Reading {
    index: Index,
    environment: Environment,
    opened: Opened,
    shared: Settings,
    accepted: Vec<(Place, &'static str)>,
    diagnostics: Diagnostics,
}

/// A line while it is read.
struct Statement<'l> {
    words: &'l [Word],
    place: &'l Place,
}

impl Reading {
    fn file(&mut self, source: &Source) {
        let name: Arc<str> = source.name.as_str().into();
        let mut blocks = Blocks::default();
        self.opened.begin_file();
        for line in lines::lines(&source.bytes) {
            self.line(&line, &name, &mut blocks);
            if self.diagnostics.are_enough() {
                return;
            }
        }
        for place in blocks.unclosed() {
            self.diagnostics.alert(place, "non-terminated '.if' block");
        }
    }

    fn line(&mut self, line: &Line<'_>, file: &Arc<str>, blocks: &mut Blocks) {
        if line.bytes.len() > lines::MAX_LINE_BYTES {
            let place = Line { bytes: &[], ..*line }.place(file);
            return self.diagnostics.alert(&place, format!("line too long: at most {} bytes", lines::MAX_LINE_BYTES));
        }
        let place = line.place(file);
        match self.words(line, &place) {
            Ok(words) => self.statement(&words, &place, blocks),
            Err(error) => {
                let diagnostic = Diagnostic::new(Severity::Alert, &place.at(error.span), error.reason);
                self.push(diagnostic.hint(error.hint));
            }
        }
        if !line.terminated {
            let end = place.at(line.bytes.len()..line.bytes.len());
            let reason = "missing line feed at the end of the last line: the file might have been truncated";
            self.diagnostics.alert(&end, reason);
        }
    }

    fn words(&self, line: &Line<'_>, place: &Place) -> Result<Words, words::WordsError> {
        if let Some(at) = line.bytes.iter().position(|byte| *byte == 0) {
            return Err(words::WordsError { reason: "stray NUL byte".into(), hint: None, span: at..at + 1 });
        }
        words::split(line.bytes, &|name| match name {
            ".FILE" => Some(place.file.to_string()),
            ".LINE" => Some(line.number.to_string()),
            ".SECTION" => Some(self.opened.label()),
            _ => self.environment.variables.get(name).cloned(),
        })
    }

    fn statement(&mut self, words: &Words, place: &Place, blocks: &mut Blocks) {
        let statement = Statement { words: &words.words, place };
        let Some(first) = words.words.first().map(Word::as_str) else { return };
        match blocks.read(statement.words, place, &self.environment) {
            Some(Ok(())) => return,
            Some(Err(fault)) => return self.say(Severity::Alert, &statement, fault),
            None if blocks.skipping() => return,
            None => {}
        }
        if first.starts_with('.') {
            return self.message(&statement);
        }
        if let Some(fault) = self.empty_word(words) {
            return self.say(Severity::Alert, &statement, fault);
        }
        if first.starts_with('[') {
            let fault = Fault::new(0, "scopes belong to files of SPOE, which is not supported");
            return self.say(Severity::Alert, &statement, fault);
        }
        if let Some(kind) = SectionKind::from_name(first) {
            return self.section(kind, &statement);
        }
        if let Some((name, reason)) = REFUSED_SECTIONS.iter().find(|(name, _)| *name == first) {
            self.opened.refuse();
            let fault = Fault::new(0, format!("section '{name}' is not supported: {reason}"));
            return self.say(Severity::Alert, &statement, fault);
        }
        if let Some((name, reason)) = IDLE_SECTIONS.iter().find(|(name, _)| *name == first) {
            self.opened.refuse();
            return self.say(Severity::Warning, &statement, Fault::new(0, format!("section '{name}' is left out: {reason}")));
        }
        self.keyword(&statement);
    }

    /// Reports the message of the file's author in `.notice`, `.warning`, `.alert` or `.diag`.
    fn message(&mut self, statement: &Statement<'_>) {
        let directive = statement.words.first().map_or("", Word::as_str);
        let severity = match directive {
            ".notice" => Severity::Notice,
            ".warning" | ".diag" => Severity::Warning,
            ".alert" => Severity::Alert,
            _ => {
                let fault = Fault::new(0, format!("unknown directive '{directive}'"));
                let fault = near::hinted(fault, directive, DIRECTIVES.iter().copied());
                return self.say(Severity::Alert, statement, fault);
            }
        };
        match statement.words {
            [_, _, extra, ..] => {
                let fault = Fault::new(2, format!("unexpected argument '{}' for '{directive}'", extra.display()));
                self.say(Severity::Alert, statement, fault.hint("put the message in quotes"));
            }
            _ if directive == ".diag" && !self.environment.diagnostic => {}
            [_, message] => self.say(severity, statement, Fault::new(1, format!("'{}'", message.display()))),
            _ => self.say(severity, statement, Fault::new(0, "''")),
        }
    }

    /// An empty word would end the arguments silently, as HAProxy's parsers see it.
    fn empty_word(&self, words: &Words) -> Option<Fault> {
        let empty = words.words.iter().position(|word| word.bytes.is_empty())?;
        let unset = words.unset.iter().find(|(word, _)| *word == empty);
        Some(match unset {
            Some((_, name)) => {
                let fault = Fault::new(empty, format!("argument number {empty} is empty: the variable '{name}' is not set"));
                let hint = format!("write \"${{{name}[*]}}\" if the word may be missing, \"${{{name}-value}}\" for a default");
                let near = near::nearest(name, self.environment.variables.keys().map(String::as_str));
                fault.hint(near::question(&near).unwrap_or(hint))
            }
            None => Fault::new(empty, format!("argument number {empty} is empty")),
        })
    }

    fn section(&mut self, kind: SectionKind, statement: &Statement<'_>) {
        let (opening, said) = self.opened.open(kind, statement.words, statement.place);
        for (severity, fault) in said {
            self.say_of(kind.name(), severity, statement, fault);
        }
        let Some(address) = opening.address else { return };
        let bind = [Word { bytes: b"bind".to_vec(), span: 0..0 }];
        if let Found::Here { keyword, .. } = self.index.find(&bind, kind)
            && let Kind::Done(parser) | Kind::Switch(parser) = keyword.kind
        {
            let fault = Fault::new(address, "addresses behind a section's name are an old form");
            self.say_of(kind.name(), Severity::Warning, statement, fault.hint("write a line 'bind ADDRESS'"));
            self.parse(&Call { keyword, parser, words: 0..address, negated: false }, statement);
        } else {
            let fault = Fault::new(address, "cannot take a listening address").hint("use the 'bind' keyword");
            self.say_of(kind.name(), Severity::Alert, statement, fault);
        }
    }

    fn keyword(&mut self, statement: &Statement<'_>) {
        let section = match self.opened.target() {
            Target::Section(section) => section.kind,
            Target::Refused => return,
            Target::Outside => {
                let word = statement.words.first().map(Word::display).unwrap_or_default();
                if word.starts_with('\u{feff}') {
                    let fault = Fault::new(0, "the file begins with a byte order mark, which is no part of a word");
                    return self.say(Severity::Alert, statement, fault.hint("save it as UTF-8 without one"));
                }
                let fault = Fault::new(0, format!("unknown keyword '{word}' out of section"));
                let fault = near::hinted(fault, &word, SectionKind::ALL.iter().map(|kind| kind.name()));
                return self.say(Severity::Alert, statement, fault);
            }
        };
        let prefix = statement.words.first().map(Word::as_str).filter(|word| matches!(*word, "no" | "default"));
        let start = usize::from(prefix.is_some() && statement.words.len() > 1);
        let line = statement.words.get(start..).unwrap_or_default();
        match self.index.find(line, section) {
            Found::Here { keyword, name, length } => {
                if name != keyword.name {
                    let fault = Fault::new(start, format!("'{name}' is an old name")).hint(format!("write '{}'", keyword.name));
                    self.say(Severity::Warning, statement, fault);
                }
                self.found(keyword, statement, start..start + length, prefix);
            }
            Found::Elsewhere { sections, name, length } => {
                let kinds: Vec<_> = sections.kinds().map(|kind| format!("'{}'", kind.name())).collect();
                let reason = format!("keyword '{name}' is not allowed in '{}' section", section.name());
                let fault = Fault::new(start, reason).hint(format!("it may stand in {}", kinds.join(", ")));
                self.say_words(Severity::Alert, statement, start..start + length, fault);
            }
            Found::Nothing => {
                let unknown = self.index.unknown(line, section);
                let mut fault = Fault::new(start, format!("unknown keyword '{}' in '{}' section", unknown.name, section.name()));
                fault.hint = unknown.hint;
                if fault.hint.is_none() {
                    // The line may have been meant to begin a section.
                    fault = near::hinted(fault, &unknown.name, SectionKind::ALL.iter().map(|kind| kind.name()));
                }
                self.say_words(Severity::Alert, statement, start..start + unknown.length, fault);
            }
        }
    }

    /// A keyword of this section, and the words of the line that are its name.
    fn found(&mut self, keyword: &'static Keyword, statement: &Statement<'_>, words: Range<usize>, prefix: Option<&str>) {
        let name = keyword.name;
        let negatable = prefix.is_none() || is_negatable(name);
        match (keyword.kind, prefix) {
            (Kind::Switch(parser), _) => self.parse(&Call { keyword, parser, words, negated: prefix.is_some() }, statement),
            (Kind::Done(parser), None) => self.parse(&Call { keyword, parser, words, negated: false }, statement),
            (Kind::Accepted(why), _) if negatable => self.accept(statement, words, why),
            (Kind::Refused(_), Some(_)) if negatable => self.accept(statement, words, "what is not built is off"),
            (Kind::Refused(reason), None) => {
                let fault = Fault::new(words.start, format!("'{name}' is not supported: {reason}"));
                self.say_words(Severity::Alert, statement, words, fault);
            }
            (_, prefix) => {
                let fault = Fault::new(0, format!("'{}' is not supported for '{name}'", prefix.unwrap_or_default()));
                self.say(Severity::Alert, statement, fault);
            }
        }
    }

    fn parse(&mut self, call: &Call, statement: &Statement<'_>) {
        let Some((section, earlier)) = self.opened.here() else { return };
        let name = call.keyword.name;
        let place = statement.place.at(span_of(statement.words, call.words.clone()));
        let mut args = Args::within(statement.words, call.words.end, name, &self.environment);
        let mut scope = Scope::new(section, &mut self.shared, call.keyword, place.clone());
        (scope.negated, scope.earlier) = (call.negated, earlier);
        let outcome = (call.parser)(&mut args, &mut scope).and_then(|()| args.end());
        let (changes, mut warnings, remarks) = (scope.changes, scope.warnings, args.into_remarks());
        if outcome.is_ok() && !call.negated && section.kind.is_proxy() {
            section.lines.push((call.keyword, place));
        }
        changes.into_iter().for_each(|change| change.apply(&mut self.environment.variables));
        warnings.extend(remarks.warnings);
        for (word, why) in remarks.accepted {
            self.accept(statement, word..word + 1, why);
        }
        for warning in warnings {
            self.say_of(name, Severity::Warning, statement, warning);
        }
        if let Err(fault) = outcome {
            self.say_of(name, Severity::Alert, statement, fault);
        }
    }

    /// Records words that have no effect here.
    fn accept(&mut self, statement: &Statement<'_>, words: Range<usize>, why: &'static str) {
        self.accepted.push((statement.place.at(span_of(statement.words, words)), why));
    }

    /// Reports a fault of a word in a keyword's line.
    fn say_of(&mut self, name: &str, severity: Severity, statement: &Statement<'_>, fault: Fault) {
        let first = fault.reason.split(' ').next().unwrap_or_default();
        let colon = if VERBS.contains(&first) { "" } else { ": " };
        let reason = format!("'{name}' {colon}{}", fault.reason);
        self.say(severity, statement, Fault { reason, ..fault });
    }

    /// Reports a fault of a word.
    fn say(&mut self, severity: Severity, statement: &Statement<'_>, fault: Fault) {
        self.say_words(severity, statement, fault.word..fault.word.saturating_add(1), fault);
    }

    /// Reports a fault of some words.
    fn say_words(&mut self, severity: Severity, statement: &Statement<'_>, words: Range<usize>, fault: Fault) {
        let place = statement.place.at(span_of(statement.words, words));
        self.push(Diagnostic::new(severity, &place, fault.reason).hint(fault.hint));
    }

    /// Reports a problem of the section that is read, or of its opening.
    fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Alert
            && let Target::Section(section) = self.opened.target()
        {
            section.doubtful = true;
        }
        self.diagnostics.push(diagnostic);
    }
}

/// A keyword with a parser, found in a line.
struct Call {
    keyword: &'static Keyword,
    parser: Parser,
    /// The words of the line that are its name; arguments follow.
    words: Range<usize>,
    negated: bool,
}

/// The bytes of some words of a line; of its last one where there are no such words.
fn span_of(words: &[Word], meant: Range<usize>) -> Range<usize> {
    let last = words.len().saturating_sub(1);
    let span = |index: usize| words.get(index.min(last)).map_or(0..0, |word| word.span.clone());
    let first = span(meant.start);
    first.start..span(meant.end.saturating_sub(1)).end.max(first.end)
}

/// Whether HAProxy allows `no` and `default` before a keyword that has no effect here.
fn is_negatable(name: &str) -> bool {
    let switches = ["log", "busy-polling", "set-dumpable", "strict-limits", "insecure-fork-wanted", "numa-cpu-mapping"];
    name.starts_with("option ") || switches.contains(&name)
}

/// A reason that begins with one of these continues the sentence that the keyword's name begins.
const VERBS: &[&str] = &["can", "cannot", "does", "expects", "has", "is", "may", "must", "needs", "takes"];

/// Words that act on the reading of lines.
const DIRECTIVES: &[&str] = &[".if", ".elif", ".else", ".endif", ".notice", ".warning", ".alert", ".diag"];
