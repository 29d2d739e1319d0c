//! A program's verdict on a configuration file.

use super::collection::File;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A program's verdict, with its reasons.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// True if it accepts the file.
    pub(super) accepted: bool,
    /// Its alerts that name a line.
    pub(super) alerts: Vec<Problem>,
    /// Its warnings that name a line.
    pub(super) warnings: Vec<Problem>,
}

/// Problem of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    /// The line.
    pub(super) line: u32,
    /// The reason.
    pub(super) reason: String,
}

/// Path of a program, if it runs. (Its name is looked up here, because checks see another PATH.)
pub(super) fn find(program: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = match program.components().count() {
        1 => std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())?,
        _ => program.to_owned(),
    };
    let status = Command::new(&here).arg("-v").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then_some(here)
}

impl Reading {
    /// Lets a program check a file.
    pub(super) fn of(program: &Path, file: &File) -> Result<Reading> {
        let mut command = Command::new(program);
        command.arg("-c").arg("-f").arg(&file.path).current_dir(&file.folder);
        command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("HOSTNAME", "localhost"), ("LC_ALL", "C")]);
        command.envs(file.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| program.display().to_string())?;
        let (accepted, said) = outcome(child)?;
        let of = |level: &str| said.lines().filter(|line| line.starts_with(level)).filter_map(Problem::read).collect();
        Ok(Reading { accepted, alerts: of("[ALERT]"), warnings: of("[WARNING]") })
    }

    /// True if one of its alerts names one of those lines.
    pub(super) fn names(&self, lines: impl Iterator<Item = u32>) -> bool {
        let lines: Vec<u32> = lines.collect();
        self.alerts.iter().any(|problem| lines.contains(&problem.line))
    }
}

/// Waits for a check to end; returns whether it accepts, and its output.
fn outcome(child: Child) -> Result<(bool, String)> {
    let pid = child.id();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = receive.recv_timeout(PATIENCE) else {
        crate::program::signal(pid, rustix::process::Signal::KILL);
        bail!("a check took longer than {} s", PATIENCE.as_secs());
    };
    let output = output?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

impl Problem {
    /// Reads `... [file:line] : reason`.
    pub(super) fn read(text: &str) -> Option<Problem> {
        text.match_indices('[').find_map(|(at, _)| {
            let (place, reason) = text[at + 1..].split_once(']')?;
            let line = place.rsplit_once(':')?.1.parse().ok()?;
            Some(Problem { line, reason: reason.trim_start_matches([' ', ':']).to_owned() })
        })
    }

    /// The missing feature, without what differs from line to line: the reason up to its second quoted word.
    pub(super) fn what(&self) -> String {
        let quotes: Vec<usize> = self.reason.match_indices('\'').map(|(at, _)| at + 1).collect();
        let end = match (quotes.get(1), quotes.get(3)) {
            (_, Some(end)) => *end,
            (Some(end), None) if self.reason.starts_with('\'') && !self.reason[*end..].starts_with(" is") => self.reason.len(),
            (Some(end), None) => *end,
            _ => self.reason.len(),
        };
        self.reason[..end].to_owned()
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_name_lines() {
        let text = "[ALERT]    (12) : config : parsing [../prepared/105.cfg:32] : 'server' : 'agent-check' is not supported: no";
        let problem = Problem::read(text).unwrap();
        assert_eq!((problem.line, problem.what().as_str()), (32, "'server' : 'agent-check'"));
        let renamed = Problem::read("config : Parsing [a.cfg:25]: backend 'x' has the same name as frontend 'x'").unwrap();
        assert_eq!((renamed.line, renamed.reason.starts_with("backend 'x'")), (25, true));
        assert_eq!(Problem::read("[ALERT]    (1) : config : Fatal errors found in configuration."), None);
        let what = |reason: &str| Problem { line: 1, reason: reason.into() }.what();
        assert_eq!(what("section 'cache' is not supported: no"), "section 'cache'");
        assert_eq!(what("'lua-load' is not supported: no"), "'lua-load'");
        assert_eq!(what("'bind' : expects more"), "'bind' : expects more");
    }
}
