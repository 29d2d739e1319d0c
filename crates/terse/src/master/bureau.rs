//! Between the master and its command line: what the one shows, and what the other asks for.

use super::lifeline;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_admin::Manner;
use terse_admin::master::{Overseer, Reloaded, Reloads, Stage, Worker};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// What the master shows, and whom it is asked through.
#[derive(Debug)]
pub struct Bureau {
    view: Mutex<View>,
    ask: UnboundedSender<Request>,
}

/// What the master shows.
#[derive(Default, Debug)]
pub struct View {
    /// Its workers, each with its lifeline.
    pub workers: Vec<(Worker, Arc<UnixStream>)>,
    /// How often it was told to reload.
    pub reloads: Reloads,
    /// What was said at the last start of a worker.
    pub log: String,
}

/// The wish for a reload.
#[derive(Debug)]
pub struct Request {
    /// Whether what runs is cut.
    pub hard: bool,
    /// Who is told how it went.
    pub reply: oneshot::Sender<Reloaded>,
}

impl Bureau {
    /// Nothing to show yet.
    pub fn new(ask: UnboundedSender<Request>) -> Bureau {
        Bureau { view: Mutex::default(), ask }
    }

    /// Shows the state of things, the worker that serves first and the one that left last next.
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
        // The lifeline of one that starts is busy with sockets.
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
