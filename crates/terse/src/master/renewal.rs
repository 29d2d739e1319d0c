//! A master that starts itself anew, so that an upgrade reaches it too.
//!
//! ```text
//! reload --> a worker of the program that lies at the master's path --ready--> is it another program than the master's?
//!        --> State: descriptors and numbers, in a file in memory --exec--> a master of the same process number, with the same workers
//! ```
//!
//! Invariants:
//! * It happens between two workers' starts only: then no worker speaks on its lifeline, and no byte of one is lost.
//! * Signals wait from before the exec until the new program listens for them.
//! * A program that cannot be executed leaves the master as it was. One that cannot read the state ends, and its workers with it: so
//!   [`FORMAT`] is read by all versions that come after.

use super::command_line::Kept as Commands;
use crate::process::sys;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::FdFlags;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The variable of the environment that names the descriptor of the state.
pub const VARIABLE: &str = "TERSE_MASTER";

/// State that a program leaves to the next.
#[derive(Serialize, Deserialize, Debug)]
pub struct State {
    /// [`FORMAT`] of the program that has written it.
    pub format: u32,
    /// True if it writes nothing on the terminal.
    pub quiet: bool,
    /// The folder that workers start in.
    pub folder: PathBuf,
    /// `mworker-max-reloads`.
    pub most_reloads: Option<u32>,
    /// Reloads so far.
    pub generation: u32,
    /// Messages of the last worker's start.
    pub log: String,
    /// Processes that serve, or leave.
    pub workers: Vec<Kept>,
    /// The descriptors of the sockets that the next worker gets, each with its device.
    pub sockets: Vec<(RawFd, String)>,
    /// The command line.
    pub commands: Commands,
}

/// A worker.
#[derive(Serialize, Deserialize, Debug)]
pub struct Kept {
    /// Its process.
    pub pid: i32,
    /// The reload that has started it.
    pub generation: u32,
    /// True if it has been told to leave.
    pub leaves: bool,
    /// Workers that came after it.
    pub outlived: u32,
    /// Milliseconds since its start.
    pub age_ms: u64,
    /// Its version.
    pub version: Option<String>,
    /// The descriptor of its lifeline.
    pub lifeline: RawFd,
}

/// Format that this version writes.
pub const FORMAT: u32 = 1;

/// Descriptors that outlive the exec.
#[derive(Default, Debug)]
pub struct Descriptors(Vec<OwnedFd>);

impl Descriptors {
    /// Keeps a descriptor open, and returns its number.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn keep(&mut self, descriptor: OwnedFd) -> io::Result<RawFd> {
        rustix::io::fcntl_setfd(&descriptor, FdFlags::empty())?;
        let number = descriptor.as_raw_fd();
        self.0.push(descriptor);
        Ok(number)
    }
}

/// The descriptor of a number in a state, closed on exec from here on.
///
/// # Errors
/// Nothing is open under the number.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    let descriptor = sys::duplicate(number)?;
    sys::close_inherited(number);
    Ok(descriptor)
}

impl State {
    /// The state that this process was started with, if it takes a master's place.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn of_this_process() -> io::Result<Option<State>> {
        let Some(number) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) else { return Ok(None) };
        let mut text = Vec::new();
        File::from(adopt(number)?).read_to_end(&mut text)?;
        let state: State = serde_json::from_slice(&text)?;
        match state.format {
            FORMAT => Ok(Some(state)),
            other => Err(io::Error::other(format!("format {other} is not known"))),
        }
    }

    /// Executes a program in place of this process's.
    ///
    /// # Errors
    /// It cannot be executed, and this one goes on.
    pub fn hand_to(&self, program: &Path, words: &[OsString], mut descriptors: Descriptors) -> io::Result<Infallible> {
        let mut file = File::from(memfd_create("terse-master", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(self)?)?;
        seek(&file, SeekFrom::Start(0))?;
        let number = descriptors.keep(file.into())?.to_string();
        let program = CString::new(program.as_os_str().as_bytes())?;
        let words = words.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let inherited = std::env::vars_os().filter(|(name, _)| name != VARIABLE);
        let environment: Vec<CString> = inherited
            .chain([(VARIABLE.into(), number.into())])
            .map(|(name, value)| CString::new([name, OsString::from("="), value].map(OsString::into_vec).concat()))
            .collect::<Result<_, _>>()?;
        hold_signals(SigmaskHow::SIG_BLOCK)?;
        let failed = nix::unistd::execve(&program, &words, &environment).map_err(io::Error::from);
        hold_signals(SigmaskHow::SIG_UNBLOCK)?;
        failed
    }
}

/// Unblocks the signals that waited for the exec. They must have handlers by now.
///
/// # Errors
/// The kernel's error.
pub fn take_signals() -> io::Result<()> {
    hold_signals(SigmaskHow::SIG_UNBLOCK)
}

fn hold_signals(how: SigmaskHow) -> io::Result<()> {
    let signals: SigSet =
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGHUP, Signal::SIGTTIN, Signal::SIGTTOU]
            .into_iter()
            .collect();
    pthread_sigmask(how, Some(&signals), None).map_err(io::Error::from)
}

/// Returns the path at which the next program is looked for. It is the command line's, which may be a link that an upgrade changes,
/// if it leads to this program; otherwise this program's own.
///
/// # Errors
/// The kernel's error.
pub fn program(words: &[OsString]) -> io::Result<PathBuf> {
    let said = words.first().map(Path::new).filter(|path| path.is_absolute() && path.exists() && !is_replaced(path));
    said.map_or_else(std::env::current_exe, |path| Ok(path.to_owned()))
}

/// True if another program lies at this path than the one that runs.
pub fn is_replaced(program: &Path) -> bool {
    let identity = |path: &OsStr| std::fs::metadata(path).map(|of| (of.dev(), of.ino()));
    match (identity(program.as_os_str()), identity(OsStr::new("/proc/self/exe"))) {
        (Ok(there), Ok(running)) => there != running,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_another_one_by_its_file() {
        let running = std::env::current_exe().unwrap();
        assert!(!is_replaced(&running));
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        assert!(!is_replaced(&copy), "one that is missing takes nobody's place");
        std::fs::write(&copy, "#!/bin/sh\n").unwrap();
        assert!(is_replaced(&copy));
    }

    #[test]
    fn descriptors_are_adopted_once() {
        let mut descriptors = Descriptors::default();
        let number = descriptors.keep(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into()).unwrap();
        let mine = sys::duplicate(number).unwrap();
        assert!(rustix::io::fcntl_getfd(&mine).unwrap().contains(FdFlags::CLOEXEC));
        assert!(adopt(-1).is_err());
    }

    #[test]
    fn a_program_that_cannot_run_changes_nothing() {
        let commands = Commands { timeout_ms: 1, maxconn: 1, age_ms: 1, listeners: Vec::new() };
        let state = State {
            format: FORMAT,
            quiet: false,
            folder: "/".into(),
            most_reloads: None,
            generation: 1,
            log: String::new(),
            workers: Vec::new(),
            sockets: Vec::new(),
            commands,
        };
        let failed = state.hand_to(Path::new("/nonexistent/terse"), &["terse".into()], Descriptors::default());
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap().generation, 1);
    }
}
