//! The master's command line (HAProxy's `-S`): its processes, reloads, and the way to each worker's own commands.
//!
//! ```text
//! client -> input -> route (whose command?) -+-> commands (the master's own) -> answer
//!                                            \-> relay -> a worker, which answers as on a stats socket
//! ```
//!
//! A worker gets a connection of its own for each command, made for it by [`Overseer::connect`], with the client's
//! rights ([`Manner`]). So the master holds no state of a worker's conversation, and looks at no answer of a worker's.
//!
//! Invariants:
//! * A silent worker ends its command, not the master: every wait for a worker has a deadline.
//! * A client of the master has no more rights in a worker than its level.

mod commands;
mod conversation;
mod relay;
mod route;

use crate::answer::Message;
use crate::client::Client;
use crate::manner::Manner;
use crate::serve::{Accepted, Accepting, accept, linger};
use crate::settings::StatsSocket;
use conversation::Conversation;
use route::Target;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_proxy::access::Listener;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

/// State of the master for its commands.
pub struct Office {
    /// HAProxy's version, in the form that programs compare.
    pub version: String,
    /// Version of HAProxy with that of this program, as lists of processes show it.
    pub listed: String,
    /// Process ID of the master.
    pub pid: u32,
    /// Time of its start.
    pub started: Instant,
    /// Sockets that it listens on.
    pub sockets: Vec<StatsSocket>,
    /// Limit of a client's idle time.
    pub timeout: Duration,
    /// Limit of concurrent clients; more wait in the kernel.
    pub maxconn: usize,
    /// Reference that each conversation holds as a clone.
    pub conversations: Arc<()>,
    /// Actions of the master.
    pub overseer: Arc<dyn Overseer>,
}

/// Actions of the master for its command line.
pub trait Overseer: Send + Sync {
    /// Workers: the serving one first, then those that leave, the latest first.
    fn workers(&self) -> Vec<Worker>;

    /// Counts of reloads.
    fn reloads(&self) -> Reloads;

    /// Messages of the last started worker, from its start.
    fn startup_log(&self) -> String;

    /// Opens a connection to the worker of that process ID, which answers a client there. Never blocks.
    ///
    /// # Errors
    /// There is no such worker, or it cannot be reached.
    fn connect(&self, pid: u32, manner: Manner) -> io::Result<UnixStream>;

    /// Starts another worker; the receiver gets the outcome. `hard`: the previous workers are stopped, not drained.
    fn reload(&self, hard: bool) -> oneshot::Receiver<Reloaded>;
}

/// A worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worker {
    /// Process ID.
    pub pid: u32,
    /// Stage of its life.
    pub stage: Stage,
    /// Number of reloads since its start.
    pub reloads: u32,
    /// Time of its start.
    pub started: Instant,
    /// Its version, once it has reported it.
    pub version: Option<String>,
    /// Number of the master's descriptor for it.
    pub descriptor: i32,
}

/// Stage of a worker's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It reads its configuration, and takes no commands.
    Starting,
    /// It serves.
    Serving,
    /// It is to leave.
    Leaving,
}

/// Counts of a master's reloads.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reloads {
    /// All reloads.
    pub all: u32,
    /// Failed reloads since the last success.
    pub failed: u32,
}

/// Outcome of a reload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reloaded {
    /// Whether another worker serves.
    pub success: bool,
    /// Messages, line by line.
    pub log: String,
}

/// Answers commands for as long as it is awaited, on listeners each of which has the index of its entry in
/// [`Office::sockets`]. Dropping it ends all conversations.
///
/// # Errors
/// A listener cannot be used.
pub async fn serve(listeners: Vec<(usize, Listener)>, office: Office) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(office.maxconn.min(Semaphore::MAX_PERMITS)));
    let office = Arc::new(office);
    let mut tasks = JoinSet::new();
    for (index, listener) in listeners {
        let office = office.clone();
        tasks.spawn(accept(Accepting::new(listener)?, room.clone(), None, move |stream| {
            let office = office.clone();
            async move {
                match stream {
                    Accepted::Tcp(stream) => talk(stream, index, &office).await,
                    Accepted::Unix(stream) => talk(stream, index, &office).await,
                }
            }
        }));
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, socket: usize, office: &Office) {
    let Some(socket) = office.sockets.get(socket) else { return };
    let _held = office.conversations.clone();
    let client = Client::of_office(socket, office.timeout);
    if Conversation::new(&mut stream, client, office).hold().await.is_ok() {
        linger(&mut stream).await;
    }
}

impl Office {
    /// Process that a prefix names: a worker's ID, or `None` for the master.
    fn find(&self, designation: &[u8]) -> Result<Option<u32>, Message> {
        let workers = || self.overseer.workers().into_iter().filter(|worker| worker.stage != Stage::Starting);
        let found = match Target::of(designation) {
            Some(Target::Master) => return Ok(None),
            Some(Target::Serving) => workers().find(|worker| worker.stage == Stage::Serving),
            Some(Target::Process(pid)) => workers().find(|worker| worker.pid == pid),
            None => None,
        };
        let text = || format!("Can't find the target PID matching the prefix '@{}'", String::from_utf8_lossy(designation));
        found.map(|worker| Some(worker.pid)).ok_or_else(|| Message::error(text()))
    }
}

#[cfg(test)]
mod tests;
