//! The sections of a configuration while it is read: names, references to defaults, and the section that lines belong to.

use crate::args::Fault;
use crate::diagnostic::{Place, Severity};
use crate::near;
use crate::opening::{self, Opening};
use crate::section::{Base, Section, SectionKind};
use crate::settings::Settings;
use crate::words::Word;
use std::collections::HashMap;
use std::sync::Arc;

/// All sections seen so far.
pub(crate) struct Opened {
    pub(crate) global: Section,
    /// All but `global` and `defaults`, in order.
    pub(crate) named: Vec<Section>,
    defaults: Vec<Defaults>,
    current: Current,
    /// The first section of each name on each side.
    names: HashMap<(Side, Arc<str>), usize>,
}

/// A `defaults` section and its uses.
struct Defaults {
    base: Base,
    /// Whether a `from` names it.
    explicit: bool,
    /// Whether a section without `from` uses it.
    implicit: bool,
    /// Place of an earlier one of the same name.
    twin: Option<Place>,
}

/// The section that lines go to.
#[derive(Clone, Copy)]
enum Current {
    /// No section was opened in this file.
    Outside,
    /// A section that is not read.
    Refused,
    Global,
    Defaults(usize),
    Named(usize),
}

/// Names are unique on a side.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Front,
    Back,
    HttpErrors,
    Ring,
    LogProfile,
    UserList,
    Engine,
    Dictionary,
    FcgiApp,
    Resolvers,
    Cache,
    CrtStore,
    HealthCheck,
    Peers,
}

/// The section that the next lines belong to.
pub(crate) enum Target<'o> {
    /// No section.
    Outside,
    /// A section whose lines are skipped.
    Refused,
    /// This section.
    Section(&'o mut Section),
}

impl Opened {
    pub(crate) fn new() -> Opened {
        Opened {
            global: Section::new(SectionKind::Global, "".into(), Place::nowhere(), Settings::default()),
            named: Vec::new(),
            defaults: Vec::new(),
            current: Current::Outside,
            names: HashMap::new(),
        }
    }

    /// Every file begins outside of any section.
    pub(crate) fn begin_file(&mut self) {
        self.current = Current::Outside;
    }

    /// Skips lines up to the next section.
    pub(crate) fn refuse(&mut self) {
        self.current = Current::Refused;
    }

    /// The section that lines go to now.
    pub(crate) fn target(&mut self) -> Target<'_> {
        if let Current::Refused = self.current {
            return Target::Refused;
        }
        self.here().map_or(Target::Outside, |(section, _)| Target::Section(section))
    }

    /// The section that lines go to, if there is one, and the named sections before it.
    pub(crate) fn here(&mut self) -> Option<(&mut Section, &[Section])> {
        match self.current {
            Current::Outside | Current::Refused => None,
            Current::Global => Some((&mut self.global, &[])),
            Current::Defaults(index) => self.defaults.get_mut(index).map(|defaults| (&mut defaults.base.section, &[][..])),
            Current::Named(index) => {
                let (earlier, rest) = self.named.split_at_mut_checked(index)?;
                rest.first_mut().map(|section| (section, &*earlier))
            }
        }
    }

    /// The name of the section that lines go to, its kind when it has none: HAProxy's `.SECTION`.
    pub(crate) fn label(&self) -> String {
        let section = match self.current {
            Current::Outside | Current::Refused => None,
            Current::Global => Some(&self.global),
            Current::Defaults(index) => self.defaults.get(index).map(|defaults| &defaults.base.section),
            Current::Named(index) => self.named.get(index),
        };
        section.map_or_else(String::new, |section| match section.name.is_empty() {
            true => section.kind.name().to_owned(),
            false => section.name.to_string(),
        })
    }

    /// Opens a section. It is opened even if the line has a fault, so that its lines are read.
    pub(crate) fn open(&mut self, kind: SectionKind, words: &[Word], place: &Place) -> (Opening, Vec<(Severity, Fault)>) {
        let mut faults = Vec::new();
        let opening = opening::read(kind, words, &mut faults);
        let mut said: Vec<_> = faults.into_iter().map(|fault| (Severity::Alert, fault)).collect();
        let name = text(words, opening.name);
        match kind {
            SectionKind::Global => {
                if self.global.place.line == 0 {
                    self.global.place = place.clone();
                }
                self.current = Current::Global;
            }
            SectionKind::Defaults => self.open_defaults(name, opening.from, words, place, &mut said),
            _ => self.open_named(kind, name, &opening, words, place, &mut said),
        }
        (opening, said)
    }

    fn open_defaults(
        &mut self,
        name: Arc<str>,
        from: Option<usize>,
        words: &[Word],
        place: &Place,
        said: &mut Vec<(Severity, Fault)>,
    ) {
        let base = from.and_then(|from| self.refer(words, from, said));
        let settings = base.map_or_else(Settings::default, |base| self.inherit(base, SectionKind::Defaults, said));
        let twin = self.defaults.iter().rev().find(|other| !name.is_empty() && other.base.section.name == name);
        if let Some(twin) = twin.filter(|twin| twin.explicit) {
            let reason = format!(
                "'{name}' is the name of the defaults section declared at {} too, which 'from' refers to",
                at(&twin.base.section.place)
            );
            said.push((Severity::Alert, Fault::new(1, reason)));
        }
        let twin = twin.map(|twin| twin.base.section.place.clone());
        let mut section = Section::new(SectionKind::Defaults, name, place.clone(), settings);
        section.doubtful = self.is_doubtful(base);
        self.current = Current::Defaults(self.defaults.len());
        self.defaults.push(Defaults { base: Base { section, heir: None }, explicit: false, implicit: false, twin });
    }

    fn open_named(
        &mut self,
        kind: SectionKind,
        name: Arc<str>,
        opening: &Opening,
        words: &[Word],
        place: &Place,
        said: &mut Vec<(Severity, Fault)>,
    ) {
        let index = self.named.len();
        let earlier = sides(kind).iter().filter_map(|side| self.names.get(&(*side, name.clone()))).min();
        if let Some(earlier) = earlier.and_then(|earlier| self.named.get(*earlier)).filter(|_| opening.name.is_some()) {
            let reason =
                format!("'{name}' has the same name as {} '{name}' declared at {}", earlier.kind.name(), at(&earlier.place));
            said.push((Severity::Alert, Fault::new(1, reason)));
        }
        for side in sides(kind) {
            self.names.entry((*side, name.clone())).or_insert(index);
        }
        let base = match opening.from {
            _ if !kind.is_proxy() => None,
            Some(from) => self.refer(words, from, said),
            None => self.imply(said),
        };
        let settings = base.map_or_else(Settings::default, |base| self.inherit(base, kind, said));
        self.current = Current::Named(index);
        let mut section = Section::new(kind, name, place.clone(), settings);
        section.doubtful = self.is_doubtful(base);
        self.named.push(section);
    }

    /// Whether a line of a defaults section was refused.
    fn is_doubtful(&self, defaults: Option<usize>) -> bool {
        defaults.and_then(|index| self.defaults.get(index)).is_some_and(|defaults| defaults.base.section.doubtful)
    }

    /// The defaults section that a `from` names.
    fn refer(&mut self, words: &[Word], from: usize, said: &mut Vec<(Severity, Fault)>) -> Option<usize> {
        let name = text(words, Some(from));
        let Some(index) = self.defaults.iter().rposition(|defaults| defaults.base.section.name == name) else {
            let names = self.defaults.iter().map(|defaults| &*defaults.base.section.name).filter(|name| !name.is_empty());
            let fault = Fault::new(from, format!("defaults section '{name}' not found"));
            said.push((Severity::Alert, near::hinted(fault, &name, names)));
            return None;
        };
        let defaults = &mut self.defaults[index];
        defaults.explicit = true;
        if let Some(twin) = &defaults.twin {
            let (first, second) = (at(twin), at(&defaults.base.section.place));
            let reason = format!("ambiguous defaults section name '{name}': it is declared at {first} and at {second}");
            said.push((Severity::Alert, Fault::new(from, reason)));
        }
        self.warn_of_both_uses(index, from, said);
        Some(index)
    }

    /// The defaults section that a section without `from` uses: the latest.
    fn imply(&mut self, said: &mut Vec<(Severity, Fault)>) -> Option<usize> {
        let index = self.defaults.len().checked_sub(1)?;
        self.defaults[index].implicit = true;
        self.warn_of_both_uses(index, 0, said);
        Some(index)
    }

    fn warn_of_both_uses(&self, index: usize, word: usize, said: &mut Vec<(Severity, Fault)>) {
        let defaults = &self.defaults[index];
        if defaults.explicit && defaults.implicit {
            let (name, place) = (&defaults.base.section.name, at(&defaults.base.section.place));
            let reason = format!("defaults section '{name}' (declared at {place}) is used both by name and without");
            let hint = "always write 'from', or add a last defaults section that nobody names";
            said.push((Severity::Warning, Fault::new(word, reason).hint(hint)));
        }
    }

    /// Settings that a section of that kind begins with.
    fn inherit(&mut self, defaults: usize, kind: SectionKind, said: &mut Vec<(Severity, Fault)>) -> Settings {
        let Some(defaults) = self.defaults.get_mut(defaults) else { return Settings::default() };
        let base = &mut defaults.base;
        base.heir.get_or_insert(kind);
        said.extend(base.objections(kind).map(|reason| (Severity::Alert, Fault::new(0, reason))));
        base.section.settings.inherit()
    }

    /// Content of the files: all `global` sections in one, the sections with lines of their own, and the `defaults` that
    /// have names.
    pub(crate) fn into_parts(self) -> (Section, Vec<Section>, Vec<Base>) {
        let bases = self.defaults.into_iter().map(|defaults| defaults.base).filter(|base| !base.section.name.is_empty());
        (self.global, self.named, bases.collect())
    }
}

fn sides(kind: SectionKind) -> &'static [Side] {
    match kind {
        SectionKind::Frontend => &[Side::Front],
        SectionKind::Backend => &[Side::Back],
        SectionKind::Listen | SectionKind::LogForward => &[Side::Front, Side::Back],
        SectionKind::HttpErrors => &[Side::HttpErrors],
        SectionKind::Ring => &[Side::Ring],
        SectionKind::LogProfile => &[Side::LogProfile],
        SectionKind::UserList => &[Side::UserList],
        SectionKind::Engine => &[Side::Engine],
        SectionKind::Dictionary => &[Side::Dictionary],
        SectionKind::FcgiApp => &[Side::FcgiApp],
        SectionKind::Resolvers => &[Side::Resolvers],
        SectionKind::Cache => &[Side::Cache],
        SectionKind::CrtStore => &[Side::CrtStore],
        SectionKind::HealthCheck => &[Side::HealthCheck],
        SectionKind::Peers => &[Side::Peers],
        SectionKind::Global | SectionKind::Defaults => &[],
    }
}

fn text(words: &[Word], index: Option<usize>) -> Arc<str> {
    index.and_then(|index| words.get(index)).map_or_else(|| "".into(), |word| word.display().into())
}

fn at(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}
