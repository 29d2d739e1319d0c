//! References: the entries of a file, of a name without a file, or of one line of the configuration. HAProxy's "pattern reference".
//!
//! ```text
//!   prepare            add @3            commit @3
//!   next_ver = 3  -->  entries of 3  --> version 3 is the current one, older ones are forgotten
//! ```
//!
//! A mutex guards the state that commands and rules change. Look-ups never take it: they read the indexes that the current
//! version published. No pattern is compiled under it: a key's patterns are made before.

use super::file;
use super::parse::Resolve;
use super::version::{Patterns, Version};
use super::way::{Found, Output, Way};
use super::{Entry, Matching, References};
use crate::octets::Octets;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Entries that are matched in one or several ways.
pub struct Reference {
    name: Box<str>,
    id: OnceLock<u32>,
    book: Mutex<Book>,
}

/// Number of columns of a file's lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Columns {
    /// Patterns.
    One,
    /// Patterns and values: a map.
    Two,
}

/// Description of a reference in lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Its number.
    pub id: u32,
    /// Its name; empty for the reference of a line of the configuration.
    pub name: Box<str>,
    /// Its kind and its users.
    pub text: String,
    /// The version that is matched.
    pub current: u32,
    /// The newest prepared version.
    pub next: u32,
    /// Entries of all versions.
    pub entries: usize,
}

/// Reason why a change was not made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such entry.
    #[error("entry not found")]
    NotFound,
    /// A version that was not prepared yet.
    #[error("version number in the future")]
    Future,
    /// A version that is not newer than the current one, or was not prepared.
    #[error("version number out of range")]
    OutOfRange,
    /// A pattern or a value cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The reference has [`MOST_ENTRIES`] already.
    #[error("there are {MOST_ENTRIES} entries already")]
    Full,
}

/// State that commands and rules change.
#[derive(Default)]
struct Book {
    /// `None` while only rules have named it.
    columns: Option<Columns>,
    is_map: bool,
    is_acl: bool,
    text: String,
    current: u32,
    next: u32,
    /// Versions that have entries, and the current one once there is a way of matching.
    versions: BTreeMap<u32, Version>,
    ways: Vec<Arc<Way>>,
    /// Count of entries' numbers in use.
    numbers: u64,
    /// The line of each entry of the file, while the configuration is read.
    lines: Vec<usize>,
}

/// The most entries of a reference, in all its versions.
pub const MOST_ENTRIES: usize = 1 << 24;

/// Names of hosts are looked up when the configuration is read, and never afterwards.
const NEVER: Resolve<'static> = &|_| None;

/// Numbers of entries begin here: those that lists show look like addresses, as in HAProxy.
const FIRST: u64 = 0x1000;

impl Reference {
    pub(super) fn new(name: &str, id: Option<u32>) -> Reference {
        Reference { name: name.into(), id: id.map_or_else(OnceLock::new, OnceLock::from), book: Mutex::default() }
    }

    /// Its name; empty for the reference of a line of the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, once [`References::finish`] has given it one.
    pub fn id(&self) -> Option<u32> {
        self.id.get().copied()
    }

    pub(super) fn set_id(&self, id: u32) {
        // A number that was asked for by `-u` stays.
        let _ = self.id.set(id);
    }

    /// Whether a map uses it, or an ACL that reads it as a map.
    pub fn is_map(&self) -> bool {
        self.book().is_map
    }

    /// Whether an ACL uses it.
    pub fn is_acl(&self) -> bool {
        self.book().is_acl
    }

    /// Whether its entries have values.
    pub fn has_values(&self) -> bool {
        self.book().columns == Some(Columns::Two)
    }

    /// Whether an ACL or a map uses it, and not only rules that change it.
    pub fn is_used(&self) -> bool {
        self.book().columns.is_some()
    }

    /// Its description in lists.
    pub fn description(&self) -> Description {
        let book = self.book();
        Description {
            id: self.id().unwrap_or_default(),
            name: self.name.clone(),
            text: book.text.clone(),
            current: book.current,
            next: book.next,
            entries: book.len(),
        }
    }

    /// Up to so many entries of a version after a number, in order; none for a version that does not exist.
    pub fn entries(&self, version: Option<u32>, behind: Option<u64>, most: usize) -> Vec<Arc<Entry>> {
        let book = self.book();
        let version = book.versions.get(&version.unwrap_or(book.current));
        version.map_or_else(Vec::new, |version| version.behind(behind).take(most).cloned().collect())
    }

    /// The entry that a text matches, for each way of matching.
    pub fn look_up(&self, text: &[u8]) -> Vec<(Arc<Way>, Option<Found>)> {
        let ways = self.book().ways.clone();
        ways.into_iter().map(|way| (way.clone(), way.look_up(text))).collect()
    }

    /// Whether the current version has an entry of that key.
    pub fn has(&self, key: &[u8]) -> bool {
        self.book().has(key)
    }

    /// Adds entries to a version, by default the current one. Entries before one that is refused stay.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn add<'e>(
        &self,
        version: Option<u32>,
        entries: impl IntoIterator<Item = (&'e [u8], Option<&'e [u8]>)>,
    ) -> Result<(), Refusal> {
        let ways = self.ways();
        let (mut made, mut fault) = (Vec::new(), None);
        for (key, value) in entries {
            match Patterns::new(key, &ways, NEVER) {
                Ok(patterns) => made.push((key, value, patterns)),
                Err(reason) => {
                    fault = Some(Refusal::Unreadable(reason));
                    break;
                }
            }
        }
        let mut book = self.book();
        let number = version.unwrap_or(book.current);
        if (number.wrapping_sub(book.next) as i32) > 0 {
            return Err(Refusal::Future);
        }
        let outcome = made.into_iter().try_for_each(|(key, value, patterns)| book.add(number, key, value, patterns));
        book.publish(number);
        outcome.and(fault.map_or(Ok(()), Err))
    }

    /// Gives the entries of a key another value, in the current version.
    ///
    /// # Errors
    /// There is none, or the value cannot be read.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        match self.book().value_is(key, value) {
            None => return Err(Refusal::NotFound),
            Some(true) => return Ok(()),
            Some(false) => {}
        }
        let patterns = self.patterns(key)?;
        let mut book = self.book();
        let number = book.current;
        let outcome = book.set_key(key, value, &patterns);
        book.publish(number);
        outcome
    }

    /// Gives an entry, of whatever version, another value.
    ///
    /// # Errors
    /// There is none, or the value cannot be read.
    pub fn set_entry(&self, id: u64, value: &[u8]) -> Result<(), Refusal> {
        let key = self.book().entry(id).ok_or(Refusal::NotFound)?.key.clone();
        let patterns = self.patterns(&key)?;
        let mut book = self.book();
        let number = book.version_of(id).ok_or(Refusal::NotFound)?;
        let outcome = book.set(number, id, value, &patterns);
        book.publish(number);
        outcome
    }

    /// Gives the entries of a key a value, or makes one.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        if self.book().value_is(key, value) == Some(true) {
            return Ok(());
        }
        let patterns = self.patterns(key)?;
        // Under one lock: of two workers that find no entry, one makes it.
        let mut book = self.book();
        let number = book.current;
        let outcome = match book.set_key(key, value, &patterns) {
            Err(Refusal::NotFound) => book.add(number, key, Some(value), patterns),
            outcome => outcome,
        };
        book.publish(number);
        outcome
    }

    /// Adds an entry without a value to the current version, unless it has one of that key.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn add_unless_there(&self, key: &[u8]) -> Result<(), Refusal> {
        if self.has(key) {
            return Ok(());
        }
        let patterns = self.patterns(key)?;
        let mut book = self.book();
        let number = book.current;
        if book.has(key) {
            return Ok(());
        }
        let outcome = book.add(number, key, None, patterns);
        book.publish(number);
        outcome
    }

    /// Entries that were ever added, and how many of them are gone.
    pub fn counts(&self) -> (u64, u64) {
        let book = self.book();
        (book.numbers, book.numbers.saturating_sub(book.len() as u64))
    }

    /// Removes the entries of a key from the current version; returns whether there were any.
    pub fn remove(&self, key: &[u8]) -> bool {
        let mut book = self.book();
        let number = book.current;
        let Book { versions, ways, .. } = &mut *book;
        let removed = versions.get_mut(&number).is_some_and(|version| version.remove_key(key, ways));
        book.publish(number);
        removed
    }

    /// Removes an entry, of whatever version; returns whether there was one.
    pub fn remove_entry(&self, id: u64) -> bool {
        let mut book = self.book();
        let Some(number) = book.version_of(id) else { return false };
        let removed = book.remove(number, id);
        book.publish(number);
        removed
    }

    /// Removes all entries of a version, by default of the current one.
    pub fn clear(&self, version: Option<u32>) {
        let mut book = self.book();
        let number = version.unwrap_or(book.current);
        let forgotten = book.versions.remove(&number);
        book.publish(number);
        drop(book);
        // To drop many entries takes time; no other thread need wait for it.
        drop(forgotten);
    }

    /// Returns the number of a new version.
    pub fn prepare(&self) -> u32 {
        let mut book = self.book();
        book.next = book.next.wrapping_add(1);
        book.next
    }

    /// Makes a prepared version the current one, and drops those before it.
    ///
    /// # Errors
    /// It was not prepared, or is too old.
    pub fn commit(&self, number: u32) -> Result<(), Refusal> {
        let mut book = self.book();
        let ahead = number.wrapping_sub(book.current.wrapping_add(1));
        if ahead >= book.next.wrapping_sub(book.current) {
            return Err(Refusal::OutOfRange);
        }
        book.current = number;
        book.publish(number);
        // Numbers wrap: the half of them before this one is older.
        let versions = std::mem::take(&mut book.versions);
        let (newer, older) = versions.into_iter().partition(|(other, _)| (other.wrapping_sub(number) as i32) >= 0);
        book.versions = newer;
        drop(book);
        drop::<BTreeMap<u32, Version>>(older);
        Ok(())
    }

    /// Adds a user; for the first one the file is read.
    ///
    /// # Errors
    /// The file cannot be read, or is one of the other kind.
    pub(super) fn attach(
        &self,
        columns: Columns,
        (as_map, user): (bool, &str),
        read: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        let mut book = self.book();
        match book.columns {
            None => {
                let bytes = read()?;
                for line in file::lines(&bytes, columns) {
                    let line = line.map_err(|number| {
                        format!("file '{}' line {number}: longer than {} bytes", self.name, file::PATTERN_BYTES)
                    })?;
                    let current = book.current;
                    book.lines.push(line.number);
                    let patterns = Patterns::new(line.key, &book.ways, NEVER)?;
                    book.add(current, line.key, line.value, patterns).map_err(|refusal| refusal.to_string())?;
                }
                book.columns = Some(columns);
                book.text = match &*self.name {
                    "" => user.to_owned(),
                    name => format!("pattern loaded from file '{name}' used {user}"),
                };
            }
            Some(known) if known != columns => {
                let words = |columns| if columns == Columns::One { "one column" } else { "two columns" };
                let (name, known, columns) = (&self.name, words(known), words(columns));
                return Err(format!("file '{name}' is already used as one of {known}, and cannot be used as one of {columns}"));
            }
            Some(_) => {
                book.text.push_str(", ");
                book.text.push_str(user);
            }
        }
        book.is_map |= as_map || columns == Columns::Two;
        book.is_acl |= !as_map;
        Ok(())
    }

    /// The way of matching that users of one kind share.
    ///
    /// # Errors
    /// An entry cannot be matched so.
    pub(super) fn way(
        &self,
        matching: Matching,
        ignore_case: bool,
        output: Output,
        resolve: Resolve<'_>,
    ) -> Result<Arc<Way>, String> {
        let mut book = self.book();
        if let Some(way) = book.ways.iter().find(|way| way.is(matching, ignore_case, output)) {
            return Ok(way.clone());
        }
        let way = Arc::new(Way::new(matching, ignore_case, output));
        for version in book.versions.values_mut() {
            if let Err((id, reason)) = version.add_way(&way, resolve) {
                let line = usize::try_from(id - FIRST).ok().and_then(|at| book.lines.get(at));
                let line = line.map_or_else(String::new, |line| format!(" line {line}"));
                return Err(format!("file '{}'{line}: {reason}", self.name));
            }
        }
        book.ways.push(way.clone());
        let current = book.current;
        book.publish(current);
        Ok(way)
    }

    /// Adds an entry while the configuration is read.
    pub(crate) fn add_early(&self, key: &[u8], resolve: Resolve<'_>) -> Result<(), Refusal> {
        let mut book = self.book();
        let current = book.current;
        let patterns = Patterns::new(key, &book.ways, resolve).map_err(Refusal::Unreadable)?;
        book.add(current, key, None, patterns)?;
        book.publish(current);
        Ok(())
    }

    /// Drops the state that only the reading of a configuration needs.
    pub(super) fn settle(&self) {
        self.book().lines = Vec::new();
    }

    /// A key's patterns, made without the lock.
    fn patterns(&self, key: &[u8]) -> Result<Patterns, Refusal> {
        Patterns::new(key, &self.ways(), NEVER).map_err(Refusal::Unreadable)
    }

    fn ways(&self) -> Vec<Arc<Way>> {
        self.book().ways.clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn len(&self) -> usize {
        self.versions.values().map(Version::len).sum()
    }

    fn add(&mut self, number: u32, key: &[u8], value: Option<&[u8]>, patterns: Patterns) -> Result<(), Refusal> {
        if self.len() >= MOST_ENTRIES {
            return Err(Refusal::Full);
        }
        let id = FIRST + self.numbers;
        let stored = |text: &[u8]| Octets::from(text).store();
        // Values given to an ACL's entries are kept, but not used.
        let entry = Entry { id, key: Octets::from(key).store(), value: value.map(stored) };
        let patterns = self.fitting(key, patterns)?;
        let Book { versions, ways, .. } = self;
        let version = versions.entry(number).or_insert_with(|| Version::new(ways));
        version.put(entry, ways, &patterns).map_err(Refusal::Unreadable)?;
        self.numbers += 1;
        Ok(())
    }

    /// Patterns that were made before a way of matching was added are made again.
    fn fitting(&self, key: &[u8], patterns: Patterns) -> Result<Patterns, Refusal> {
        if patterns.are_for(&self.ways) {
            return Ok(patterns);
        }
        Patterns::new(key, &self.ways, NEVER).map_err(Refusal::Unreadable)
    }

    /// Whether all entries of a key of the current version have that value; `None` when there are no entries.
    fn value_is(&self, key: &[u8], value: &[u8]) -> Option<bool> {
        let version = self.versions.get(&self.current)?;
        let ids = version.ids(key);
        let is_so = |id: &u64| version.entry(*id).is_some_and(|entry| entry.value.as_deref() == Some(value));
        (!ids.is_empty()).then(|| ids.iter().all(is_so))
    }

    /// An entry, of whatever version.
    fn entry(&self, id: u64) -> Option<&Arc<Entry>> {
        self.versions.values().find_map(|version| version.entry(id))
    }

    fn has(&self, key: &[u8]) -> bool {
        self.versions.get(&self.current).is_some_and(|version| version.has(key))
    }

    /// Gives the entries of a key of the current version another value.
    fn set_key(&mut self, key: &[u8], value: &[u8], patterns: &Patterns) -> Result<(), Refusal> {
        let number = self.current;
        let ids = self.versions.get(&number).map(|version| version.ids(key)).unwrap_or_default();
        if ids.is_empty() {
            return Err(Refusal::NotFound);
        }
        ids.into_iter().try_for_each(|id| self.set(number, id, value, patterns))
    }

    fn set(&mut self, number: u32, id: u64, value: &[u8], patterns: &Patterns) -> Result<(), Refusal> {
        let Book { versions, ways, .. } = self;
        let version = versions.get_mut(&number).ok_or(Refusal::NotFound)?;
        let entry = version.entry(id).ok_or(Refusal::NotFound)?;
        if entry.value.as_deref() == Some(value) {
            return Ok(());
        }
        let entry = Entry { value: Some(Octets::from(value).store()), ..(**entry).clone() };
        version.put(entry, ways, patterns).map_err(Refusal::Unreadable)
    }

    fn remove(&mut self, number: u32, id: u64) -> bool {
        let Book { versions, ways, .. } = self;
        versions.get_mut(&number).is_some_and(|version| version.remove(id, ways))
    }

    fn version_of(&self, id: u64) -> Option<u32> {
        self.versions.iter().find(|(_, version)| version.entry(id).is_some()).map(|(number, _)| *number)
    }

    /// Publishes a version's entries for look-ups, if it is the one that is matched.
    fn publish(&mut self, number: u32) {
        if number == self.current {
            let Book { versions, ways, .. } = self;
            versions.entry(number).or_insert_with(|| Version::new(ways)).publish(ways);
        }
    }
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reference").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for References {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}
