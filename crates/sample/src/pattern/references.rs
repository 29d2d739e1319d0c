//! All references of a configuration.

use super::Matching;
use super::parse::Resolve;
use super::reference::{Columns, Reference};
use super::way::{Output, Way};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_config::Place;

/// All references of a configuration, by name and by number. Clones are the same.
#[derive(Clone, Default)]
pub struct References(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    all: Vec<Arc<Reference>>,
    /// Changes that rules make.
    changes: Vec<(Arc<Reference>, Change, Place)>,
    /// The configuration has been read: no more references come.
    is_complete: bool,
}

/// Effect of a rule on entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Puts a pattern and a value in.
    Put,
    /// Adds a pattern.
    Add,
    /// Removes a pattern.
    Remove,
}

/// A use of a file, of a name, or of the patterns of a line.
pub(crate) struct Use<'a> {
    /// Method of comparing values with patterns.
    pub(crate) matching: Matching,
    /// Whether case is ignored.
    pub(crate) ignore_case: bool,
    /// Type that the values are converted to.
    pub(crate) output: Output,
    /// Number of columns of the file.
    pub(crate) columns: Columns,
    /// Whether a map uses it, and not an ACL.
    pub(crate) as_map: bool,
    /// The user and its place, as lists show it: `by map at file 'x' line 3`.
    pub(crate) user: String,
    /// Looks up names of hosts.
    pub(crate) resolve: Resolve<'a>,
}

impl References {
    /// All of them, in the order of their numbers.
    pub fn all(&self) -> Vec<Arc<Reference>> {
        self.list().all.clone()
    }

    /// The reference of a name, or of a number written `#<number>`.
    pub fn find(&self, text: &str) -> Option<Arc<Reference>> {
        let list = self.list();
        let found = match text.strip_prefix('#') {
            Some(id) => {
                let id = id.parse().ok()?;
                list.all.iter().find(|reference| reference.id() == Some(id))
            }
            None => {
                let name = Source::of(text).name;
                list.all.iter().find(|reference| !name.is_empty() && reference.name() == name)
            }
        };
        found.cloned()
    }

    /// The reference of a name that a rule changes; its readers may be anywhere in the configuration.
    pub fn changed(&self, text: &str, change: Change, place: &Place) -> Arc<Reference> {
        let reference = self.named(text);
        self.list().changes.push((reference.clone(), change, place.clone()));
        reference
    }

    /// The reference of a name, which need not be used yet.
    pub(super) fn named(&self, text: &str) -> Arc<Reference> {
        if let Some(known) = self.find(Source::of(text).name) {
            return known;
        }
        let reference = Arc::new(Reference::new(Source::of(text).name, None));
        self.list().all.push(reference.clone());
        reference
    }

    /// Gives numbers to all that have none, from 0 on, and sorts them; no more come. Returns the rules that change
    /// references without readers.
    pub fn finish(&self) -> Vec<(Place, String)> {
        let mut list = self.list();
        let taken: HashSet<u32> = list.all.iter().filter_map(|reference| reference.id()).collect();
        let mut free = (0..).filter(|id| !taken.contains(id));
        for reference in &list.all {
            if reference.id().is_none()
                && let Some(id) = free.next()
            {
                reference.set_id(id);
            }
            reference.settle();
        }
        list.all.sort_by_key(|reference| reference.id());
        list.is_complete = true;
        let changes = std::mem::take(&mut list.changes);
        drop(list);
        let complaint = |(reference, change, place): (Arc<Reference>, Change, Place)| Some((place, change.complaint(&reference)?));
        changes.into_iter().filter_map(complaint).collect()
    }

    /// The way of matching the entries of a file or of a name; the first use reads the file.
    pub(crate) fn of_file(
        &self,
        text: &str,
        usage: &Use<'_>,
        read: impl FnOnce(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Arc<Way>, String> {
        if self.list().is_complete {
            return Err("files of patterns are only read with the configuration".into());
        }
        let source = Source::of(text);
        if source.name.is_empty() {
            return Err("expects the name of a file".into());
        }
        let reference = self.named(text);
        reference.attach(usage.columns, (usage.as_map, &usage.user), || match source.kind {
            SourceKind::Virtual => Ok(Vec::new()),
            SourceKind::Optional => read(source.name).or(Ok(Vec::new())),
            SourceKind::File => read(source.name).map_err(|reason| format!("file '{}': {reason}", source.name)),
        })?;
        reference.way(usage.matching, usage.ignore_case, usage.output, usage.resolve)
    }

    /// The way of matching the entries of a map that the configuration reads, once it has been read.
    pub(crate) fn known_map(&self, text: &str, usage: &Use<'_>) -> Option<Result<Arc<Way>, String>> {
        if !self.list().is_complete {
            return None;
        }
        let reference = self.find(Source::of(text).name).filter(|reference| reference.is_map())?;
        Some(reference.way(usage.matching, usage.ignore_case, usage.output, usage.resolve))
    }

    /// The reference of a line's own patterns, and the way of matching them.
    pub(crate) fn of_line(&self, id: Option<u32>, usage: &Use<'_>) -> Result<(Arc<Reference>, Arc<Way>), String> {
        let reference = Arc::new(Reference::new("", id));
        reference.attach(usage.columns, (usage.as_map, &usage.user), || Ok(Vec::new()))?;
        let way = reference.way(usage.matching, usage.ignore_case, usage.output, usage.resolve)?;
        let mut list = self.list();
        if !list.is_complete {
            list.all.push(reference.clone());
        }
        Ok((reference, way))
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Change {
    /// The fault of such a change.
    fn complaint(self, reference: &Reference) -> Option<String> {
        let name = reference.name();
        match self {
            Change::Add | Change::Remove if !reference.is_used() => Some(format!("no ACL and no map reads '{name}'")),
            Change::Put if !reference.has_values() => Some(format!("no map reads '{name}'")),
            Change::Add if reference.has_values() => Some(format!("each pattern of '{name}' has a value, because a map reads it")),
            _ => None,
        }
    }
}

/// Source of entries: `file@`, `opt@` and `virt@` before a name. The first two are no part of it.
struct Source<'n> {
    name: &'n str,
    kind: SourceKind,
}

enum SourceKind {
    /// A file.
    File,
    /// A file, if there is one.
    Optional,
    /// No file: entries come at run time.
    Virtual,
}

impl<'n> Source<'n> {
    fn of(text: &'n str) -> Source<'n> {
        let longer = |prefix| text.strip_prefix(prefix).filter(|name: &&str| !name.is_empty());
        if let Some(name) = longer("file@") {
            Source { name, kind: SourceKind::File }
        } else if let Some(name) = longer("opt@") {
            Source { name, kind: SourceKind::Optional }
        } else if longer("virt@").is_some() {
            Source { name: text, kind: SourceKind::Virtual }
        } else {
            Source { name: text, kind: SourceKind::File }
        }
    }
}
