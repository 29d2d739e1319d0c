//! The master's command line (HAProxy's `-S`): its processes, reloads, and the way to each worker's own commands.
//!
//! ```text
//! client -> input -> route (whose command?) -+-> commands (the master's own) -> answer
//!                                            \-> relay -> a worker, which answers as on a stats socket
//! ```
//!
//! A worker gets a connection of its own for each command, made for it by [`Overseer::connect`], with what the client may do
//! ([`Manner`]). So the master holds no state of a worker's conversation, and looks at no answer of a worker's.
//!
//! Invariants:
//! * A worker that is silent ends its command, not the master: every wait for one has a deadline.
//! * A client of the master may do no more in a worker than its level says.

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

/// What the master's commands see.
pub struct Office {
    /// The version, in the form that programs compare.
    pub version: String,
    /// The same with that of this program, as lists of processes show it.
    pub listed: String,
    /// The master's number.
    pub pid: u32,
    /// When it started.
    pub started: Instant,
    /// Where it is listened to.
    pub sockets: Vec<StatsSocket>,
    /// How long a client may be silent.
    pub timeout: Duration,
    /// How many clients there are at a time; more wait in the kernel.
    pub maxconn: usize,
    /// A clone is held by each conversation.
    pub conversations: Arc<()>,
    /// The master itself.
    pub overseer: Arc<dyn Overseer>,
}

/// What the master does for its command line.
pub trait Overseer: Send + Sync {
    /// Its workers: the one that serves first, the one that left last next.
    fn workers(&self) -> Vec<Worker>;

    /// How often it was told to reload.
    fn reloads(&self) -> Reloads;

    /// What was said by the last worker that was started, while it was.
    fn startup_log(&self) -> String;

    /// A connection to the worker of that number, which answers a client there.
    ///
    /// # Errors
    /// There is none of that number, or it cannot be reached. Never blocks.
    fn connect(&self, pid: u32, manner: Manner) -> io::Result<UnixStream>;

    /// Starts another worker, and tells how that went. `hard`: the ones before are stopped, not drained.
    fn reload(&self, hard: bool) -> oneshot::Receiver<Reloaded>;
}

/// A worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worker {
    /// Its number.
    pub pid: u32,
    /// Where it is in its life.
    pub stage: Stage,
    /// How many reloads it has outlived.
    pub reloads: u32,
    /// When it was started.
    pub started: Instant,
    /// Its version, once it has said so.
    pub version: Option<String>,
    /// The number of the master's descriptor that leads to it.
    pub descriptor: i32,
}

/// Where a worker is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It reads its configuration, and is not spoken to.
    Starting,
    /// It serves.
    Serving,
    /// It has been told to go.
    Leaving,
}

/// How often a master was told to reload.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reloads {
    /// All times.
    pub all: u32,
    /// Those that failed since the last one that did not.
    pub failed: u32,
}

/// How a reload went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reloaded {
    /// Whether another worker serves.
    pub success: bool,
    /// What was said, line by line.
    pub log: String,
}

/// Answers commands for as long as it is awaited, on listeners each of which has the index of its entry in [`Office::sockets`]. Dropping
/// it ends all conversations.
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
    /// The process that a prefix leads to: a worker's number, or `None` for the master.
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
