//! Run of a test: its folder, its processes, its end.

use super::Options;
use super::list::{Manner, SETTINGS};
use super::selection::Selection;
use super::verdict::{Evidence, Verdict, judge};
use crate::program::{signal, wait_until};
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// State that all runs share.
#[derive(Debug)]
pub(super) struct Bed {
    pub(super) root: PathBuf,
    vtest: PathBuf,
    /// The program under the name `haproxy`.
    program: PathBuf,
    /// The file that asks for HAProxy's ways.
    settings: PathBuf,
    time_limit: Duration,
    logs: Option<PathBuf>,
    /// Holds everything; its name is short.
    pub(super) folder: tempfile::TempDir,
    runs: AtomicUsize,
}

impl Bed {
    pub(super) fn new(options: &Options, root: PathBuf) -> Result<Bed> {
        let folder = tempfile::Builder::new().prefix("ct").rand_bytes(4).tempdir_in("/tmp")?;
        let real = options.program.canonicalize().with_context(|| options.program.display().to_string())?;
        let names = folder.path().join("bin");
        fs::create_dir(&names)?;
        let program = names.join("haproxy");
        std::os::unix::fs::symlink(real, &program)?;
        if let Some(logs) = &options.logs {
            fs::create_dir_all(logs).with_context(|| logs.display().to_string())?;
        }
        // Programs that crash on purpose shall not fill the disk.
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        let vtest = options.vtest.canonicalize().with_context(|| options.vtest.display().to_string())?;
        // Programs are started in other folders; a path with a blank cannot be written in their arguments.
        let settings = folder.path().join(SETTINGS);
        std::os::unix::fs::symlink(std::path::absolute(options.list.with_file_name(SETTINGS))?, &settings)?;
        Ok(Bed {
            root,
            settings,
            vtest,
            program,
            time_limit: options.time_limit,
            logs: options.logs.clone(),
            folder,
            runs: AtomicUsize::new(0),
        })
    }

    /// Runs a test.
    pub(super) fn run(&self, name: &str, selection: &Selection, trusted: bool, manner: Manner) -> Verdict {
        let text = selection.text(name);
        if let Some(why) = selection.skips(&text) {
            return Verdict::skip(why);
        }
        let folder = self.folder.path().join(self.runs.fetch_add(1, Ordering::Relaxed).to_string());
        let begun = Instant::now();
        let verdict = self.run_in(&folder, name, trusted, manner).unwrap_or_else(|error| Verdict::fail(format!("{error:#}")));
        end_all(&folder);
        let _ = fs::remove_dir_all(&folder);
        Verdict { seconds: begun.elapsed().as_secs_f64(), manner, ..verdict }
    }

    fn run_in(&self, folder: &Path, name: &str, trusted: bool, manner: Manner) -> Result<Verdict> {
        fs::create_dir(folder)?;
        let output_file = folder.join("output");
        let output = File::create(&output_file)?;
        let mut command = Command::new(&self.vtest);
        command.args(["-b", "4M", "-k", "-L", "-v", "-t", &self.time_limit.as_secs().to_string(), &format!("reg-tests/{name}")]);
        command.current_dir(self.root.parent().unwrap_or(Path::new("/")));
        let arguments = match manner {
            Manner::Plain => "-dM -dI -dW".to_owned(),
            Manner::AsHAProxy => format!("-dM -dI -dW -f {}", self.settings.display()),
        };
        command.env(MARK, folder).env("TMPDIR", folder).env("HAPROXY_PROGRAM", &self.program).env("HAPROXY_ARGS", arguments);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let mut child = command.spawn().with_context(|| self.vtest.display().to_string())?;
        let ended = wait_until(self.time_limit + OUTER_PATIENCE, || !matches!(child.try_wait(), Ok(None)));
        end_all(folder);
        child.wait()?;
        let output = read(&output_file);
        let log = read_log(folder);
        if let Some(logs) = &self.logs {
            let file = logs.join(name.replace('/', "__") + ".log");
            fs::write(&file, format!("{log}\n{output}")).with_context(|| file.display().to_string())?;
        }
        Ok(judge(&Evidence { output: &output, log: &log, ended_by_force: !ended, trusted }))
    }

    /// Runs the program itself; returns its exit status and its output.
    pub(super) fn ask(&self, words: &[&str]) -> Result<(Option<i32>, String)> {
        let folder = self.folder.path().join("probe");
        let _ = fs::create_dir(&folder);
        let file = folder.join("output");
        let output = File::create(&file)?;
        let mut command = Command::new(&self.program);
        command.args(words).env(MARK, &folder).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let mut child = command.spawn()?;
        wait_until(PROBE_PATIENCE, || !matches!(child.try_wait(), Ok(None)));
        end_all(&folder);
        Ok((child.wait()?.code(), read(&file)))
    }

    /// The features that the program's version text lists.
    pub(super) fn features(&self) -> HashSet<String> {
        let text = self.ask(&["-vv"]).map(|(_, text)| text).unwrap_or_default();
        let lists =
            text.lines().filter_map(|line| line.strip_prefix("Feature list : ").or(line.strip_prefix("Available services : ")));
        lists
            .flat_map(str::split_whitespace)
            .filter(|word| !word.starts_with('-'))
            .map(|word| word.trim_start_matches('+').to_owned())
            .collect()
    }
}

/// VTest's own log: in the only folder that it made.
fn read_log(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| read(&entry.path().join("LOG"))).collect()
}

/// A file as text, whatever is in it; empty if it cannot be read.
fn read(file: &Path) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Ends everything that a run has started, wherever it went: daemons leave their group, but keep their environment.
fn end_all(folder: &Path) {
    let mark = format!("{MARK}={}", folder.display());
    let own = std::process::id();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if pid != own && environment.split(|b| *b == 0).any(|variable| variable == mark.as_bytes()) {
            signal(pid, Signal::KILL);
        }
    }
}

/// The variable by which a run's processes are known.
const MARK: &str = "TERSE_CONFORMANCE_RUN";

/// VTest ends a test by itself; this is for a VTest that does not.
const OUTER_PATIENCE: Duration = Duration::from_secs(10);
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
