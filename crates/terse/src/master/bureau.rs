//! Between the master and its command line: the state that the master shows, and the requests that the command line passes.

use super::lifeline;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_admin::Manner;
use terse_admin::master::{Overseer, Reloaded, Reloads, Stage, Worker};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// The state that the master shows, and the channel for requests to it.
#[derive(Debug)]
pub struct Bureau {
    view: Mutex<View>,
    ask: UnboundedSender<Request>,
}

/// State that the master shows.
#[derive(Default, Debug)]
pub struct View {
    /// Its workers, each with its lifeline.
    pub workers: Vec<(Worker, Arc<UnixStream>)>,
    /// Number of reloads.
    pub reloads: Reloads,
    /// Messages of a worker's last start.
    pub log: String,
}

/// A request for a reload.
#[derive(Debug)]
pub struct Request {
    /// True if open connections are cut.
    pub hard: bool,
    /// Receiver of the outcome.
    pub reply: oneshot::Sender<Reloaded>,
}

impl Bureau {
    /// Returns a bureau with nothing to show yet.
    pub fn new(ask: UnboundedSender<Request>) -> Bureau {
        Bureau { view: Mutex::default(), ask }
    }

    /// Stores the state to show: the serving worker first, then the others, the last to leave before the rest.
    pub fn show(&self, mut view: View) {
        view.workers.sort_by_key(|(worker, _)| (rank(worker.stage), worker.reloads));
        *self.view() = view;
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Overseer for Bureau {
    fn workers(&self) -> Vec<Worker> {
        self.view().workers.iter().map(|(worker, _)| worker.clone()).collect()
    }

    fn reloads(&self) -> Reloads {
        self.view().reloads
    }

    fn startup_log(&self) -> String {
        self.view().log.clone()
    }

    fn connect(&self, pid: u32, manner: Manner) -> io::Result<UnixStream> {
        // The lifeline of a starting worker is busy with sockets.
        let reachable = |worker: &Worker| worker.pid == pid && worker.stage != Stage::Starting;
        let lifeline = self.view().workers.iter().find(|(worker, _)| reachable(worker)).map(|(_, lifeline)| Arc::clone(lifeline));
        let lifeline = lifeline.ok_or_else(|| io::Error::other("it has ended"))?;
        let (mine, theirs) = UnixStream::pair()?;
        lifeline::send_client(&lifeline, &theirs, manner)?;
        Ok(mine)
    }

    fn reload(&self, hard: bool) -> oneshot::Receiver<Reloaded> {
        let (reply, told) = oneshot::channel();
        // A master that does not listen any more drops the reply, which its receiver learns.
        let _ = self.ask.send(Request { hard, reply });
        told
    }
}

fn rank(stage: Stage) -> u8 {
    match stage {
        Stage::Serving => 0,
        Stage::Starting => 1,
        Stage::Leaving => 2,
    }
}
