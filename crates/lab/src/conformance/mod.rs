//! HAProxy's regression tests, run through VTest with another program in HAProxy's place.
//!
//! Each test runs on its own, in a short-named folder (the paths of unix sockets must be), under the name `haproxy` (it is the tag in
//! logs), with a time limit and with everything it leaves behind ended. A skip is never a pass, and neither is a pass that
//! proves nothing.

mod probe;
mod selection;
mod table;
mod test_run;
mod verdict;

use anyhow::{Context, Result, bail};
use selection::Selection;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use test_run::Bed;
use verdict::{Outcome, Verdict};

/// What is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// HAProxy's folder `reg-tests`.
    pub tests: PathBuf,
    /// VTest.
    pub vtest: PathBuf,
    /// The program in HAProxy's place.
    pub program: PathBuf,
    /// Names of tests, or beginnings of them (`compression/`); empty: all.
    pub only: Vec<String>,
    /// Tests at a time.
    pub jobs: usize,
    /// VTest's limit for a test.
    pub time_limit: Duration,
    /// The list of tests that pass.
    pub list: PathBuf,
    /// Rewrites the list instead of comparing with it.
    pub update: bool,
    /// Where each test's log is kept; none: nowhere.
    pub logs: Option<PathBuf>,
}

/// Runs them; true if every test of the list that was run passes.
pub fn run(options: &Options) -> Result<bool> {
    let root = options.tests.canonicalize().with_context(|| options.tests.display().to_string())?;
    if root.file_name().is_none_or(|name| name != "reg-tests") {
        bail!("{}: the folder must be called reg-tests: tests refer to it by that name", root.display());
    }
    let listed = read_list(&options.list)?;
    let bed = Bed::new(options, root)?;
    let trusted = bed.probe()?;
    let names: Vec<String> = selection::tests(&bed.root)?.into_iter().filter(|name| options.wants(name)).collect();
    if names.is_empty() {
        bail!("no test matches");
    }
    println!("{} tests, {} at a time, {} s each at most\n", names.len(), options.jobs, options.time_limit.as_secs());
    let selection = Selection::new(&bed.root, bed.features());
    let mut verdicts = run_all(options, &bed, &selection, &names, trusted);
    // A machine that is busy makes tests fail: what is listed gets a second chance, alone.
    for (name, verdict) in &mut verdicts {
        if listed.contains(name) && verdict.outcome != Outcome::Pass {
            *verdict = bed.run(name, &selection, trusted);
            println!("{} (again)", verdict.line(name));
        }
    }
    print!("{}", table::table(&verdicts));
    conclude(options, &listed, &verdicts)
}

fn run_all(options: &Options, bed: &Bed, selection: &Selection, names: &[String], trusted: bool) -> BTreeMap<String, Verdict> {
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = bed.run(name, selection, trusted);
                    println!("{}", verdict.line(name));
                    if let Ok(mut verdicts) = verdicts.lock() {
                        verdicts.insert(name.clone(), verdict);
                    }
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_default()
}

/// Compares with the list, or rewrites it.
fn conclude(options: &Options, listed: &BTreeSet<String>, verdicts: &BTreeMap<String, Verdict>) -> Result<bool> {
    let passing: BTreeSet<&String> = verdicts.iter().filter(|(_, v)| v.outcome == Outcome::Pass).map(|(name, _)| name).collect();
    let lost: Vec<_> = listed.iter().filter(|name| verdicts.contains_key(*name) && !passing.contains(name)).collect();
    let won: Vec<_> = passing.iter().filter(|name| !listed.contains(**name)).collect();
    if options.update {
        // Tests that were not run keep their place.
        let kept = listed.iter().filter(|name| !verdicts.contains_key(*name));
        let names: BTreeSet<_> = passing.iter().copied().chain(kept).collect();
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&options.list, LIST_HEAD.to_owned() + &lines).with_context(|| options.list.display().to_string())?;
        println!("\n{}: {} tests, {} new, {} gone", options.list.display(), names.len(), won.len(), lost.len());
        return Ok(true);
    }
    for name in &won {
        println!("passes and is not listed: {name}");
    }
    for name in &lost {
        println!("is listed and does not pass: {name}: {}", verdicts[*name].why);
    }
    Ok(lost.is_empty())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| name.starts_with(wanted.as_str()))
    }
}

/// The names of a list, one a line; a list that is not there is empty.
fn read_list(file: &Path) -> Result<BTreeSet<String>> {
    match fs::read_to_string(file) {
        Ok(text) => {
            Ok(text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(String::from).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

const LIST_HEAD: &str = "# HAProxy's regression tests that pass. `make conformance` fails when one of them does not; with ARGS=--update it rewrites this.\n";
