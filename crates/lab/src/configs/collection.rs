//! A folder of configuration files, copied and prepared.

use super::reading::Problem;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files, for as long as it lives.
#[derive(Debug)]
pub(super) struct Collection {
    /// In the order of their names.
    pub(super) files: Vec<File>,
    _folder: tempfile::TempDir,
}

/// A configuration file.
#[derive(Debug)]
pub(super) struct File {
    /// Its name, without the ending.
    pub(super) name: String,
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Working folder of programs that read it.
    pub(super) folder: PathBuf,
    /// The environment that they see.
    pub(super) environment: Vec<(String, String)>,
    /// HAProxy's recorded verdict.
    pub(super) recorded: Option<Recorded>,
}

/// A line of `verdicts.tsv`.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// True if one of HAProxy's versions accepts the file.
    pub(super) accepted: bool,
    /// The first problem that each version names.
    pub(super) problems: Vec<Problem>,
    /// A remark.
    pub(super) note: String,
}

impl Collection {
    /// Copies the folder, and prepares the copy.
    pub(super) fn prepare(folder: &Path) -> Result<Collection> {
        let copy = tempfile::Builder::new().prefix("cfgs").tempdir()?;
        let root = copy.path().canonicalize()?;
        copy_all(folder, &root).with_context(|| folder.display().to_string())?;
        if root.join(PREPARE).exists() {
            let mut command = Command::new("sh");
            command.arg(PREPARE).current_dir(&root).stdin(Stdio::null()).stdout(Stdio::null());
            if !command.status().context(PREPARE)?.success() {
                bail!("{PREPARE} failed");
            }
        }
        let recorded = verdicts(&fs::read_to_string(root.join("verdicts.tsv")).unwrap_or_default());
        let place = ["prepared", "cfg", "."].map(|name| root.join(name)).into_iter().find(|place| place.is_dir());
        let place = place.unwrap_or_else(|| root.clone());
        let stubs = Some(root.join("stubs")).filter(|stubs| stubs.is_dir()).unwrap_or_else(|| place.clone());
        let mut paths: Vec<PathBuf> = fs::read_dir(&place)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "cfg"));
        paths.sort();
        if paths.is_empty() {
            bail!("{}: no file ends in .cfg", folder.display());
        }
        let file = |path: PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let environment = fs::read_to_string(path.with_extension("env")).unwrap_or_default();
            let environment = environment.lines().filter_map(|line| line.split_once('='));
            let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            File { recorded: recorded.get(&name).cloned(), name, path, folder: stubs.clone(), environment }
        };
        Ok(Collection { files: paths.into_iter().map(file).collect(), _folder: copy })
    }
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_all(&entry.path(), &target)?;
        } else {
            // Not the file's rights: the original may be read-only.
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// number, verdict, two exit codes, two alerts, a note: with tabs between them, and a line of titles.
fn verdicts(table: &str) -> BTreeMap<String, Recorded> {
    let line = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, verdict, _, _, ..] = columns[..] else { return None };
        let problems = columns.iter().skip(4).take(2).filter_map(|text| Problem::read(text)).collect();
        let note = columns.get(6).map_or(String::new(), |note| (*note).to_owned());
        Some((name.to_owned(), Recorded { accepted: verdict == "valid", problems, note }))
    };
    table.lines().skip(1).filter_map(line).collect()
}

const PREPARE: &str = "prepare-stubs.sh";
