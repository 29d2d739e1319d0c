//! The folder of learned dictionaries: `dictionary-store`. It survives a restart, and several nodes may share it.
//!
//! ```text
//!   keep    a dictionary that was just learned     -> a file, written beside and renamed
//!   look    at start, and every 10 s               -> files that are new here, latest first; the oldest go where they are too many
//!   touch   every minute                           -> files of dictionaries that were offered are as new ones
//! ```
//!
//! Invariants:
//! * It is the learner's thread that opens files, never a request: the hash is the client's choice.
//! * A file that is not what its name says is left where it is, counted, and not looked at again.
//! * Files with other names are not this program's: they are not read and not removed.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use terse_dictionary::MOST_BYTES;
use terse_dictionary::stored::{self, Kept, MOST_HEAD};
use terse_dictionary::versions::Listed;

/// Bytes of all files, unless `size` says otherwise.
pub(super) const DEFAULT_BYTES: u64 = 256 << 20;

/// Files: those beyond are not looked at.
const MOST_FILES: usize = 65_536;

/// Time between two looks.
pub(super) const LOOK: Duration = Duration::from_secs(10);

/// Looks between two touches.
const TOUCH: u32 = 6;

/// The least time between two messages.
const TELL: Duration = Duration::from_secs(60);

/// A file that is being written has this behind its name.
const UNFINISHED: &str = ".part";

/// Time after which one belongs to a writer that has gone.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Where dictionaries are kept, as the configuration has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// Bytes of all files.
    pub most_bytes: u64,
}

/// Figures of the folder.
#[derive(Default, Debug)]
pub struct Figures {
    /// Files, at the last look.
    pub files: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Files that could not be written, read or removed, and those that are not what their names say.
    pub failures: AtomicU64,
    last: Mutex<String>,
}

impl Figures {
    /// The last failure; empty before one.
    pub fn last_failure(&self) -> String {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, at: &Path, why: impl std::fmt::Display) {
        self.failures.fetch_add(1, Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = format!("{}: {why}", at.display());
    }
}

/// The folder, as its only reader and writer in this process has it.
pub(super) struct Store<'l> {
    place: &'l Place,
    figures: &'l Figures,
    /// Names of files that were looked at or written.
    seen: HashSet<String>,
    /// How often a dictionary had been offered when its file was touched, by name.
    offered: HashMap<String, u64>,
    looks: u32,
    /// Failures that were told, and when.
    told: (u64, Option<Instant>),
}

/// A file of the folder.
struct Entry {
    name: String,
    bytes: u64,
    changed: SystemTime,
}

impl<'l> Store<'l> {
    pub(super) fn new(place: &'l Place, figures: &'l Figures) -> Store<'l> {
        Store { place, figures, seen: HashSet::new(), offered: HashMap::new(), looks: 0, told: (0, None) }
    }

    /// Tells the last failure, if there were some since the last time.
    pub(super) fn tell(&mut self, say: &dyn Fn(&str)) {
        let (failures, now) = (self.figures.failures.load(Relaxed), Instant::now());
        if failures > self.told.0 && self.told.1.is_none_or(|before| now.duration_since(before) >= TELL) {
            say(&format!("dictionary-store: {} ({failures} failures so far)", self.figures.last_failure()));
            self.told = (failures, Some(now));
        }
    }

    /// Keeps a dictionary that was just learned.
    pub(super) fn keep(&mut self, kept: &Kept) {
        let name = stored::name(&kept.origin, &kept.hash);
        let path = self.place.folder.join(&name);
        if path.exists() {
            self.seen.insert(name);
            return;
        }
        let part = self.place.folder.join(format!("{name}.{}{UNFINISHED}", std::process::id()));
        let content = [stored::head(&kept.origin, &kept.pattern).as_bytes(), &kept.bytes].concat();
        let written = File::options().write(true).create_new(true).open(&part).and_then(|mut file| file.write_all(&content));
        match written.and_then(|()| fs::rename(&part, &path)) {
            Ok(()) => _ = self.seen.insert(name),
            Err(error) => {
                self.figures.fail(&path, error);
                let _ = fs::remove_file(&part);
            }
        }
    }

    /// Looks at the folder: removes what is too much, and hands out what is new until `take` says that there is no room for it.
    pub(super) fn look(&mut self, mut take: impl FnMut(Kept)) {
        let mut entries = match self.entries() {
            Ok(entries) => entries,
            Err(error) => return self.figures.fail(&self.place.folder, error),
        };
        // Latest first.
        entries.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.name.cmp(&b.name)));
        let mut bytes = 0u64;
        entries.retain(|entry| {
            let is_kept = bytes.saturating_add(entry.bytes) <= self.place.most_bytes;
            match is_kept {
                true => bytes += entry.bytes,
                false => self.remove(&entry.name),
            }
            is_kept
        });
        self.figures.files.store(entries.len() as u64, Relaxed);
        self.figures.bytes.store(bytes, Relaxed);
        // Names of files that others have removed are forgotten.
        let names: HashSet<&str> = entries.iter().map(|entry| &*entry.name).collect();
        self.seen.retain(|name| names.contains(&**name));
        self.offered.retain(|name, _| names.contains(&**name));
        for entry in entries {
            if self.seen.contains(&entry.name) {
                continue;
            }
            match self.read(&entry.name) {
                Ok(kept) => take(kept),
                Err(why) => self.figures.fail(&self.place.folder.join(&entry.name), why),
            }
            self.seen.insert(entry.name);
        }
    }

    /// Makes files of dictionaries that were offered since the last time as new ones, at each sixth call.
    pub(super) fn touch(&mut self, list: impl FnOnce() -> Vec<Listed>) {
        self.looks += 1;
        if !self.looks.is_multiple_of(TOUCH) {
            return;
        }
        for Listed { origin, dictionary, .. } in list() {
            let offered = dictionary.counters.offered.load(Relaxed);
            let name = stored::name(&origin, dictionary.hash());
            if !self.seen.contains(&name) || self.offered.get(&name).copied().unwrap_or(0) == offered {
                continue;
            }
            let path = self.place.folder.join(&name);
            let touched = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
            match touched {
                Err(error) if error.kind() != io::ErrorKind::NotFound => self.figures.fail(&path, error),
                _ => _ = self.offered.insert(name, offered),
            }
        }
    }

    /// Removes all files of learned dictionaries.
    pub(super) fn clear(&mut self) {
        match self.entries() {
            Ok(entries) => entries.iter().for_each(|entry| self.remove(&entry.name)),
            Err(error) => self.figures.fail(&self.place.folder, error),
        }
        self.seen.clear();
        self.offered.clear();
        self.figures.files.store(0, Relaxed);
        self.figures.bytes.store(0, Relaxed);
    }

    /// Files with names of learned dictionaries. Those whose writers have gone are removed.
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.place.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_part = name.split_once('.').is_some_and(|(first, _)| stored::is_name(first)) && name.ends_with(UNFINISHED);
            if !is_part && !stored::is_name(&name) {
                continue;
            }
            // A file that has gone meanwhile is another node's matter.
            let Ok(facts) = entry.metadata() else { continue };
            let changed = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if is_part {
                if changed.elapsed().is_ok_and(|age| age > ABANDONED) {
                    self.remove(&name);
                }
            } else if facts.is_file() && entries.len() < MOST_FILES {
                entries.push(Entry { name, bytes: facts.len(), changed });
            }
        }
        Ok(entries)
    }

    fn read(&self, name: &str) -> Result<Kept, String> {
        let most = MOST_BYTES + MOST_HEAD as u64;
        let mut content = Vec::new();
        let file = File::open(self.place.folder.join(name)).map_err(|error| error.to_string())?;
        file.take(most + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
        let (head, hash, bytes) = stored::read(name, &content).map_err(|damage| damage.to_string())?;
        if bytes.is_empty() || bytes.len() as u64 > MOST_BYTES {
            return Err(format!("a dictionary has 1 to {} bytes", MOST_BYTES));
        }
        Ok(Kept { origin: head.origin, pattern: head.pattern, hash, bytes: bytes.into() })
    }

    fn remove(&self, name: impl AsRef<OsStr>) {
        let path = self.place.folder.join(name.as_ref());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => self.figures.fail(&path, error),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
