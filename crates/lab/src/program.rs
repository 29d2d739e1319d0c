//! Another program at work, that ends when we do.

use crate::{cores, tree};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A program that was started. Dropping it stops it.
#[derive(Debug)]
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts it; on these cores only, if some are named.
    pub fn start(mut command: Command, cores: Option<&[usize]>) -> Result<Program> {
        let spawned = match cores {
            Some(cores) => cores::on_cores(cores, || command.spawn()),
            None => command.spawn(),
        };
        let child = spawned.with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Program { child })
    }

    /// The process that was started.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to stop, and makes it if it does not. Where it runs under strace, the inner program is asked: strace ends with it.
    pub fn stop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let tree = tree::pids(self.pid());
        let inner = tree.iter().find(|pid| tree::name(**pid) != "strace").copied();
        signal(inner.unwrap_or(self.pid()), Signal::TERM);
        if !wait_until(STOP_PATIENCE, || self.ended().is_some()) {
            tree.into_iter().for_each(|pid| signal(pid, Signal::KILL));
            let _ = self.wait();
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The first of these files, named from the folder of this program, that is there.
pub fn beside_this_one(names: &[&str]) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("this program's folder")?;
    let found = names.iter().map(|name| folder.join(name)).find(|file| file.exists());
    found.with_context(|| format!("{} is not beside {}", names[0], program.display()))
}

/// Waits for a condition; false if it did not come true in time.
pub fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if begun.elapsed() > patience {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Sends a signal; a process that is gone needs none.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

const STOP_PATIENCE: Duration = Duration::from_secs(10);
