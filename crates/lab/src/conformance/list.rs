//! The lists of tests that pass.

use super::verdict::{Outcome, Verdict};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Configuration that the program is started with.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Manner {
    /// With the test's configuration alone.
    #[default]
    Plain,
    /// With the lines of [`SETTINGS`] in front of it.
    AsHAProxy,
}

/// The two lists.
pub(super) struct Lists {
    plain: List,
    as_haproxy: List,
}

struct List {
    file: PathBuf,
    head: &'static str,
    names: BTreeSet<String>,
}

impl Lists {
    /// Reads a list, and the list beside it.
    pub(super) fn read(file: &Path) -> Result<Lists> {
        Ok(Lists {
            plain: List::read(file, PLAIN_HEAD)?,
            as_haproxy: List::read(&file.with_file_name("passing-as-haproxy.txt"), AS_HAPROXY_HEAD)?,
        })
    }

    /// Manner in which a test of the lists passes.
    pub(super) fn manner(&self, name: &str) -> Option<Manner> {
        match name {
            _ if self.plain.names.contains(name) => Some(Manner::Plain),
            _ if self.as_haproxy.names.contains(name) => Some(Manner::AsHAProxy),
            _ => None,
        }
    }

    /// Manner in which a test is tried, and those in which it is tried again while it fails.
    pub(super) fn tries(&self, name: &str, update: bool) -> (Manner, &'static [Manner]) {
        match self.manner(name) {
            listed if !update => (listed.unwrap_or_default(), &[]),
            // It has passed without HAProxy's ways: one failure is no sign that it needs them.
            Some(Manner::Plain) => (Manner::Plain, &[Manner::Plain, Manner::AsHAProxy]),
            _ => (Manner::Plain, &[Manner::AsHAProxy]),
        }
    }

    /// Compares; true if all that is listed and was run passes.
    pub(super) fn agree(&self, verdicts: &BTreeMap<String, Verdict>) -> bool {
        let mut agrees = true;
        for (name, verdict) in verdicts {
            match (self.manner(name), verdict.outcome) {
                (None, Outcome::Pass) => println!("passes and is not listed: {name}"),
                (None, _) | (Some(_), Outcome::Pass) => {}
                (Some(_), _) => {
                    println!("is listed and does not pass: {name}: {}", verdict.why);
                    agrees = false;
                }
            }
        }
        agrees
    }

    /// Writes them again. Tests that were not run keep their places.
    pub(super) fn update(self, verdicts: &BTreeMap<String, Verdict>) -> Result<()> {
        for (mut list, manner) in [(self.plain, Manner::Plain), (self.as_haproxy, Manner::AsHAProxy)] {
            let before = list.names.clone();
            list.names.retain(|name| !verdicts.contains_key(name));
            let passing = verdicts.iter().filter(|(_, verdict)| verdict.outcome == Outcome::Pass && verdict.manner == manner);
            list.names.extend(passing.map(|(name, _)| name.clone()));
            list.write()?;
            let (new, gone) = (list.names.difference(&before).count(), before.difference(&list.names).count());
            println!("\n{}: {} tests, {new} new, {gone} gone", list.file.display(), list.names.len());
        }
        Ok(())
    }
}

impl List {
    /// The names of a list, one a line; a list that is not there is empty.
    fn read(file: &Path, head: &'static str) -> Result<List> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.with_context(|| file.display().to_string())?,
        };
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(String::from);
        Ok(List { file: file.into(), head, names: names.collect() })
    }

    fn write(&self) -> Result<()> {
        let lines: String = self.names.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&self.file, self.head.to_owned() + &lines).with_context(|| self.file.display().to_string())
    }
}

/// File beside the lists with the lines for HAProxy's ways.
pub(super) const SETTINGS: &str = "as-haproxy.cfg";

const PLAIN_HEAD: &str = "# HAProxy's regression tests that pass. `make conformance` fails when one of them does not; with ARGS=--update it rewrites this.\n";
const AS_HAPROXY_HEAD: &str =
    "# Those that pass with the lines of as-haproxy.cfg, and not without. `make conformance ARGS=--update` rewrites this.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: Outcome, manner: Manner) -> Verdict {
        Verdict { outcome, manner, why: String::new(), seconds: 0.0 }
    }

    #[test]
    fn a_test_is_in_the_list_of_the_manner_in_which_it_passes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passing.txt");
        fs::write(&file, "# head\na\nb\n").unwrap();
        let read = || Lists::read(&file).unwrap();
        assert_eq!((read().manner("a"), read().manner("c")), (Some(Manner::Plain), None));
        let verdicts = BTreeMap::from([
            ("b".to_owned(), verdict(Outcome::Pass, Manner::AsHAProxy)),
            ("c".to_owned(), verdict(Outcome::Fail, Manner::Plain)),
        ]);
        read().update(&verdicts).unwrap();
        assert_eq!(["a", "b", "c"].map(|name| read().manner(name)), [Some(Manner::Plain), Some(Manner::AsHAProxy), None]);
        assert_eq!(read().tries("b", false), (Manner::AsHAProxy, &[][..]));
        let tries = ["a", "b", "c"].map(|name| read().tries(name, true).1.len());
        assert_eq!(tries, [2, 1, 1], "what passed plainly is tried so twice");
        assert!(read().agree(&verdicts));
        assert!(!read().agree(&BTreeMap::from([("b".to_owned(), verdict(Outcome::Fail, Manner::AsHAProxy))])));
    }
}
