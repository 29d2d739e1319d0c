//! The tests that there are, and those that exclude themselves by comments.

use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of all tests, relative to the folder, in order.
pub(super) fn tests(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "vtc") {
                names.extend(path.strip_prefix(root).ok().and_then(Path::to_str).map(String::from));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Judges a test by its comments.
#[derive(Debug)]
pub(super) struct Selection {
    root: PathBuf,
    features: HashSet<String>,
}

impl Selection {
    /// `features` are those that the program's version text lists.
    pub(super) fn new(root: &Path, features: HashSet<String>) -> Selection {
        Selection { root: root.into(), features }
    }

    /// The test's text.
    pub(super) fn text(&self, name: &str) -> String {
        fs::read(self.root.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Reason why the test is not run; `None`: it is run.
    pub(super) fn skips(&self, text: &str) -> Option<String> {
        let values = |key: &'static str| text.lines().filter_map(move |line| line.strip_prefix(key)).map(str::trim);
        let kind = values("#REGTEST_TYPE=").next_back().unwrap_or("default");
        if !TYPES.contains(&kind) {
            return Some(format!("type {kind}"));
        }
        if values("#EXCLUDE_TARGETS=").flat_map(|list| list.split(',')).any(|target| target.trim() == "linux-glibc") {
            return Some("excluded target".into());
        }
        // Older suites name their requirements in comments; alternatives are separated by bars.
        let required = REQUIRE_KEYS.iter().flat_map(|key| values(key)).flat_map(|list| list.split(','));
        let missing =
            required.map(str::trim).filter(|need| !need.is_empty()).find(|need| !need.split('|').any(|one| self.has(one)));
        missing.map(|need| format!("needs {need}"))
    }

    /// True if the program has a feature, or the machine a program.
    fn has(&self, name: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        self.features.contains(name) || std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    }
}

/// Types of tests that HAProxy's own script runs.
const TYPES: &[&str] = &["default", "bug", "devel", "slow"];

const REQUIRE_KEYS: &[&str] =
    &["#REQUIRE_OPTION=", "#REQUIRE_OPTIONS=", "#REQUIRE_SERVICE=", "#REQUIRE_SERVICES=", "#REQUIRE_BINARIES="];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_tests_say_of_themselves() {
        let selection = Selection::new(Path::new("/"), HashSet::from(["ZLIB".to_owned()]));
        assert_eq!(selection.skips("#REGTEST_TYPE=slow\n"), None);
        assert_eq!(selection.skips("#REGTEST_TYPE=broken\n"), Some("type broken".into()));
        assert_eq!(selection.skips("#REQUIRE_OPTIONS=ZLIB|SLZ,sh\n"), None);
        assert_eq!(selection.skips("#REQUIRE_OPTIONS=ZLIB,LUA\n"), Some("needs LUA".into()));
        assert_eq!(selection.skips("#EXCLUDE_TARGETS=osx,linux-glibc\n"), Some("excluded target".into()));
    }
}
