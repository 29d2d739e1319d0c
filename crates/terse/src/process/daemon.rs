//! Going to the background.
//!
//! The process forks before any thread runs. The parent waits until the child serves, or has failed, and ends with the child's
//! status. So the exit status tells the starter of a daemon whether it runs.

use super::sys::{self, Forked};
use rustix::process::WaitOptions;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// The child's side of the way back to the parent.
#[derive(Debug)]
pub struct Launch {
    parent: UnixStream,
}

/// Goes to the background: returns in the child alone, which leads a session of its own. The parent never returns: it ends with 0
/// once [`Launch::complete`] is called, and otherwise with the child's exit status.
///
/// # Errors
/// The kernel's error at the fork.
pub fn detach() -> io::Result<Launch> {
    let (mine, theirs) = UnixStream::pair()?;
    match sys::fork()? {
        Forked::Parent(child) => {
            drop(theirs);
            std::process::exit(wait_for(child, mine));
        }
        Forked::Child => {
            drop(mine);
            rustix::process::setsid()?;
            Ok(Launch { parent: theirs })
        }
    }
}

impl Launch {
    /// Lets the parent end, and leaves the terminal.
    ///
    /// # Errors
    /// The kernel's error about descriptors.
    pub fn complete(mut self, null: &Null) -> io::Result<()> {
        null.silence()?;
        // A parent that was killed does not wait for the answer.
        let _ = self.parent.write_all(&[READY]);
        Ok(())
    }
}

/// The null device, opened while it can be found: the process may be about to leave for a folder that has none.
#[derive(Debug)]
pub struct Null(File);

impl Null {
    /// Opens it.
    ///
    /// # Errors
    /// `/dev/null` cannot be opened.
    pub fn open() -> io::Result<Null> {
        OpenOptions::new().read(true).write(true).open("/dev/null").map(Null)
    }

    /// Points the standard streams at it.
    ///
    /// # Errors
    /// The kernel's error about descriptors.
    pub fn silence(&self) -> io::Result<()> {
        rustix::stdio::dup2_stdin(&self.0)?;
        rustix::stdio::dup2_stdout(&self.0)?;
        rustix::stdio::dup2_stderr(&self.0)?;
        Ok(())
    }
}

/// Opens the standard streams that the starter has closed, so that no socket gets their numbers.
///
/// # Errors
/// `/dev/null` cannot be opened.
pub fn hold_standard_streams() -> io::Result<()> {
    loop {
        let Null(null) = Null::open()?;
        if std::os::fd::AsRawFd::as_raw_fd(&null) > 2 {
            return Ok(());
        }
        // A low number was free: it stays with the null device for good.
        let _ = std::os::fd::IntoRawFd::into_raw_fd(null);
    }
}

fn wait_for(child: rustix::process::Pid, mut answer: UnixStream) -> i32 {
    let mut byte = [0];
    if matches!(answer.read(&mut byte), Ok(1)) && byte[0] == READY {
        return 0;
    }
    match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
        Ok(Some((_, status))) => status.exit_status().unwrap_or(1),
        _ => 1,
    }
}

const READY: u8 = b'R';
