//! HAProxy's regression tests, run through VTest with another program in place of HAProxy.
//!
//! Each test runs on its own, in a short-named folder (the paths of unix sockets must be), under the name `haproxy` (it is the tag in
//! logs), with a time limit and with everything it leaves behind ended. A skip is never a pass, and neither is a pass that
//! proves nothing.
//!
//! Tests that pass without more are in one list. Tests that pass only with the lines of `as-haproxy.cfg` are in
//! `passing-as-haproxy.txt`. That file lies beside the list and sets HAProxy's ways where the program's own differ.

mod list;
mod probe;
mod selection;
mod table;
mod test_run;
mod verdict;

use anyhow::{Context, Result, bail};
use list::Lists;
use selection::Selection;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use test_run::Bed;
use verdict::{Outcome, Verdict};

/// Settings of a run.
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
    /// The list of tests that pass; those of HAProxy's ways lie beside it.
    pub list: PathBuf,
    /// Rewrites the lists instead of comparing with it.
    pub update: bool,
    /// Folder for the tests' logs; none: they are not kept.
    pub logs: Option<PathBuf>,
}

/// Runs them; true if every test of the lists that was run passes.
pub fn run(options: &Options) -> Result<bool> {
    let root = options.tests.canonicalize().with_context(|| options.tests.display().to_string())?;
    if root.file_name().is_none_or(|name| name != "reg-tests") {
        bail!("{}: the folder must be called reg-tests: tests refer to it by that name", root.display());
    }
    let lists = Lists::read(&options.list)?;
    let bed = Bed::new(options, root)?;
    let trusted = bed.probe()?;
    let names: Vec<String> = selection::tests(&bed.root)?.into_iter().filter(|name| options.wants(name)).collect();
    if names.is_empty() {
        bail!("no test matches");
    }
    println!("{} tests, {} at a time, {} s each at most\n", names.len(), options.jobs, options.time_limit.as_secs());
    let selection = Selection::new(&bed.root, bed.features());
    let run = |name: &str, manner| {
        let verdict = bed.run(name, &selection, trusted, manner);
        println!("{}", verdict.line(name));
        verdict
    };
    let mut verdicts = run_all(options, &names, |name| {
        let (first, others) = lists.tries(name, options.update);
        let verdict = run(name, first);
        if !verdict.is_failure() {
            return verdict;
        }
        others.iter().map(|manner| run(name, *manner)).find(|other| other.outcome == Outcome::Pass).unwrap_or(verdict)
    });
    // A machine that is busy makes tests fail: listed tests get a second chance, alone.
    for (name, verdict) in &mut verdicts {
        if let Some(manner) = lists.manner(name)
            && verdict.outcome != Outcome::Pass
        {
            println!("again:");
            *verdict = run(name, manner);
        }
    }
    print!("{}", table::table(&verdicts));
    if options.update { lists.update(&verdicts).map(|()| true) } else { Ok(lists.agree(&verdicts)) }
}

fn run_all(options: &Options, names: &[String], run: impl Fn(&str) -> Verdict + Sync) -> BTreeMap<String, Verdict> {
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = run(name);
                    if let Ok(mut verdicts) = verdicts.lock() {
                        verdicts.insert(name.clone(), verdict);
                    }
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_default()
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| name.starts_with(wanted.as_str()))
    }
}
