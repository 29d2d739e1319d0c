//! `defaults` sections with names, of which backends are made while the process runs.
//!
//! ```text
//! configuration:  a section's settings, and its log, opened -> a template
//! run time:       a copy of its settings -> a draft, as of a section of a file -> a backend -> the roll
//! ```
//!
//! Faults in a template are reported to the client that wants a backend of it. It is not known before whether it is used at
//! all.

use super::backends::{self, Own, Workshop};
use super::drafts::Draft;
use super::logs::Logs;
use super::remarks;
use crate::log::LogSettings;
use crate::plan::Plan;
use crate::settings::{Mode, ProxySettings};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_balance::{FarmSettings, Wardens};
use terse_compress::Compression;
use terse_compress::dictionary::{self, Stock};
use terse_compress::engine::{self, EngineSettings};
use terse_config::{Base, Diagnostics, Section, SectionKind, Severity};

/// Templates of backends that are made while the process runs.
pub struct Templates {
    kept: Mutex<Vec<Template>>,
    workshop: Workshop,
    /// Whether any template lets bytes go through pipes.
    pub splices: bool,
    /// Whether any template sets compression.
    pub compresses: bool,
}

struct Template {
    base: Base,
    own: Own,
    /// Why no backend can be made of it.
    problems: Vec<String>,
}

/// A backend that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// The `defaults` section that it begins with.
    pub from: &'a str,
    /// Its mode, where the section does not set it or sets another.
    pub mode: Option<Mode>,
    /// Its name for files of statistics.
    pub guid: Option<&'a str>,
}

impl Templates {
    pub(super) fn new(
        bases: Vec<Base>,
        workshop: Workshop,
        purges_servers: bool,
        (engines, dictionaries): (&[EngineSettings], &Stock),
        logs: &mut Logs<'_>,
    ) -> Templates {
        let (mut splices, mut compresses) = (false, false);
        let template = |mut base: Base| {
            let mut said = Diagnostics::default();
            let settings = &mut base.section.settings;
            engine::find(settings, engines, &mut said);
            dictionary::find(settings, dictionaries, &mut said);
            if purges_servers && settings.get::<FarmSettings>().is_some() {
                settings.entry::<FarmSettings>().purge();
            }
            // A name that no section has, for expressions with their own section's name: others may have the template's.
            let draft = Draft::new(section(&base, Arc::default()), 0);
            splices |= draft.proxy.options.splice.any();
            compresses |= draft.compression.as_deref().is_some_and(Compression::is_on);
            let own = Own::of(&draft, logs, &mut said);
            let problems = base.objections(SectionKind::Backend).chain(alerts(&said)).collect();
            Template { base, own, problems }
        };
        let kept: Vec<Template> = bases.into_iter().map(template).collect();
        Templates { kept: Mutex::new(kept), workshop, splices, compresses }
    }

    /// Observers of servers of all backends.
    pub fn wardens(&self) -> &Arc<Wardens> {
        &self.workshop.wardens
    }

    /// Their names, in the order of the configuration.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.lock().iter().map(|template| template.base.section.name.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Template>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plan {
    /// Adds a backend, which is not published; returns the remarks about it.
    ///
    /// # Errors
    /// The reason why it cannot be added, in HAProxy's words where it has some.
    pub fn add_backend(&self, wanted: Wanted<'_>) -> Result<Vec<String>, String> {
        let Wanted { name, from, mode, guid } = wanted;
        let templates = self.templates.lock();
        let found = templates.iter().rev().find(|template| *template.base.section.name == *from);
        let Some(Template { base, own, problems }) = found else { return Err(format!("Cannot find default proxy '{from}'.")) };
        let (own_mode, says_mode) =
            base.section.settings.get::<ProxySettings>().map_or_else(Default::default, |proxy| (proxy.mode, proxy.says_mode));
        if mode.is_none() && !says_mode {
            return Err(format!("Mode is required as '{from}' default proxy does not explicitly defines it."));
        }
        if own_mode == Mode::Log {
            return Err(format!("Dynamic backends only support TCP or HTTP mode, whereas default proxy '{from}' uses 'mode log'."));
        }
        let failed = |reason: String| Err(format!("Error during backend creation : {reason}."));
        let mut change = self.backends.change();
        if change.added() >= MOST_ADDED {
            return failed(format!("{MOST_ADDED} backends were added already, which is the most that can be there at a time"));
        }
        if let Some(kind) = self.kind_named(name, &templates) {
            return failed(format!("name is already used by other proxy '{kind} {name}'"));
        }
        if let Some(guid) = guid.filter(|guid| self.has_guid(guid)) {
            return failed(format!("GUID insertion : '{guid}' names something else already"));
        }
        let mut draft = Draft::new(section(base, name.into()), usize::MAX);
        draft.back = Some(change.given.numbers);
        if draft.proxy.disabled {
            return failed(format!("default proxy '{from}' is disabled"));
        }
        draft.proxy.mode = mode.unwrap_or(own_mode);
        draft.proxy.unpublished = true;
        draft.id = self.free_id(change.given.id);
        let mut said = Diagnostics::default();
        remarks::of(&mut draft, false, &LogSettings::default(), &mut said);
        let mut backend = self.templates.workshop.backend(&mut draft, own.clone(), &self.error_sets, &mut said);
        backends::refuse_log_words(&draft, &backend.farm, &mut said);
        backend.guid = guid.map(Arc::from);
        let alerts: Vec<String> = problems.iter().cloned().chain(alerts(&said)).collect();
        if !alerts.is_empty() {
            return failed(alerts.join("\n"));
        }
        // No frontend is known to send there.
        backend.farm.set_full(1);
        let support = backend.takes_servers();
        (change.given.numbers, change.given.id) = (backend.number + 1, backend.id);
        change.add(Arc::new(backend));
        let registered = match support {
            Ok(()) => "New backend registered.".to_owned(),
            Err(reason) => format!("New backend registered (no support for dynamic servers: {reason})."),
        };
        Ok(said.iter().map(|diagnostic| diagnostic.reason.clone()).chain([registered]).collect())
    }

    /// The kind of the section that has that name already.
    fn kind_named(&self, name: &str, templates: &[Template]) -> Option<&'static str> {
        let backend = || self.backends.now().named(name.as_bytes()).map(|backend| backend.farm.kind());
        let disabled = || self.disabled_backends.iter().any(|disabled| **disabled == *name).then_some("backend");
        let frontend = || self.frontends.iter().any(|frontend| *frontend.name == *name).then_some("frontend");
        let defaults = || templates.iter().any(|template| *template.base.section.name == *name).then_some("defaults");
        backend().or_else(disabled).or_else(frontend).or_else(defaults)
    }

    /// The first free number after the last one that was given.
    fn free_id(&self, last: u32) -> u32 {
        let taken: HashSet<u32> =
            self.frontends.iter().map(|front| front.id).chain(self.backends.now().iter().map(|back| back.id)).collect();
        (last.max(1) + 1..).find(|id| !taken.contains(id)).unwrap_or(last)
    }
}

/// Each of them costs every worker a place in its list, and some kilobytes of counters.
const MOST_ADDED: usize = 10_000;

/// A backend section of that name that begins with it, and has no line.
fn section(base: &Base, name: Arc<str>) -> Section {
    let Section { place, settings, .. } = &base.section;
    let settings = settings.inherit();
    Section { kind: SectionKind::Backend, name, place: place.clone(), settings, lines: Vec::new(), doubtful: false }
}

fn alerts(said: &Diagnostics) -> impl Iterator<Item = String> {
    said.iter().filter(|diagnostic| diagnostic.severity == Severity::Alert).map(|diagnostic| diagnostic.reason.clone())
}
