//! A thread for each worker's process: it starts it, serves its lifeline, and waits for its end.

use super::lifeline::{self, Asked, Words};
use super::renewal;
use crate::takeover::receive;
use crate::takeover::send::Exported;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Listening sockets that wait for the next worker.
pub type Held = Exported;

/// Event of a worker.
#[derive(Debug)]
pub enum Event {
    /// Reports its state.
    Says(Pid, Words),
    /// Serves, on these sockets.
    Ready(Pid, Held),
    /// Has ended.
    Ended(Pid, ExitStatus),
}

/// Settings to start workers with.
#[derive(Debug)]
pub struct Spawner {
    /// The program: its path, so that a newer one takes its place at the next reload.
    pub program: PathBuf,
    /// Arguments of the command line, the program's name first.
    pub words: Vec<OsString>,
    /// Working folder at the master's start.
    pub folder: PathBuf,
    /// Receiver of the workers' events.
    pub tell: Option<UnboundedSender<Event>>,
}

impl Spawner {
    /// Starts a worker, which may ask for these sockets. Returns its process number and the lifeline.
    ///
    /// # Errors
    /// The system's error.
    pub fn spawn(&self, generation: u32, sockets: &Arc<Held>) -> io::Result<(Pid, Arc<UnixStream>)> {
        let (mine, theirs) = UnixStream::pair()?;
        let mine = Arc::new(mine);
        let mut command = Command::new(&self.program);
        if let [name, words @ ..] = &self.words[..] {
            command.arg0(name).args(words);
        }
        command.current_dir(&self.folder).env(lifeline::VARIABLE, generation.to_string()).stdin(OwnedFd::from(theirs));
        command.env_remove("NOTIFY_SOCKET").env_remove(renewal::VARIABLE);
        let child = command.spawn()?;
        // Else the parent's copy of the worker's end would keep the lifeline open.
        drop(command);
        let pid = Pid::from_child(&child);
        self.attend(pid, generation, &mine, sockets)?;
        Ok((pid, mine))
    }

    /// Serves the lifeline of a worker that runs, and waits for its end.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn attend(&self, pid: Pid, generation: u32, lifeline: &Arc<UnixStream>, sockets: &Arc<Held>) -> io::Result<()> {
        let (tell, lifeline, sockets) = (self.tell.clone(), Arc::clone(lifeline), Arc::clone(sockets));
        let attend = move || attend(pid, &lifeline, &sockets, |event| drop(tell.as_ref().map(|tell| tell.send(event))));
        std::thread::Builder::new().name(format!("attendant/{generation}")).spawn(attend).map(drop)
    }
}

fn attend(pid: Pid, stream: &UnixStream, sockets: &Held, tell: impl Fn(Event)) {
    loop {
        let served = match lifeline::asked(stream) {
            Ok(Some(Asked::Sockets)) => sockets.send(stream),
            Ok(Some(Asked::Ready)) => receive::held(stream).map(|sockets| tell(Event::Ready(pid, sockets))),
            Ok(Some(Asked::Says(words))) => {
                tell(Event::Says(pid, words));
                Ok(())
            }
            Ok(None) => break,
            Err(error) => Err(error),
        };
        // A peer that does not keep to the protocol is not a worker any more: without a lifeline it stops.
        if served.is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
    let ended = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
    // A worker whose end was noted just before the master started anew has no status any more.
    let status = ended.ok().flatten().map_or(0, |(_, status)| status.as_raw());
    tell(Event::Ended(pid, ExitStatus::from_raw(status)));
}
