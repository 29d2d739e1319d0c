//! The courier: a thread for work that no worker waits for: rings to their servers, messages of syslog to their targets.
//!
//! ```text
//!   Relaying --the process drains--> Carrying --the last worker has ended--> Finishing --all is sent, or time is up--> the end
//!
//!   Relaying: messages come in                Carrying: only rings go out
//! ```
//!
//! It exists only where the configuration has work for it.

use super::carrier::Carrier;
use super::forward::Forwarder;
use super::forward::relay::Relay;
use super::ring::Ring;
use super::sender::Logger;
use super::sinks::Sinks;
use crate::access::Listener;
use std::cell::RefCell;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// All of syslog that a configuration has beside its proxies' own lines.
#[derive(Default, Debug)]
pub struct Syslog {
    /// Rings, of sections and those that targets over streams have made.
    pub rings: Vec<Arc<Ring>>,
    /// Senders of the rings' events to servers.
    pub carriers: Vec<Arc<Carrier>>,
    /// `log-forward` sections.
    pub forwarders: Vec<Arc<Forwarder>>,
}

/// A socket that messages come in by.
#[derive(Debug)]
pub struct Intake {
    /// The index of its forwarder.
    pub forwarder: usize,
    /// The socket; it does not block.
    pub socket: IntakeSocket,
}

/// The socket of an intake.
#[derive(Debug)]
pub enum IntakeSocket {
    /// Connections come in here, of the `bind` line of this index.
    Streams(Listener, usize),
    /// Datagrams come in here.
    Datagrams(UdpSocket),
}

/// The thread, as the control thread sees it.
#[derive(Debug)]
pub struct Courier {
    stage: watch::Sender<Stage>,
    thread: std::thread::JoinHandle<io::Result<()>>,
}

/// Stages of the courier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Relaying,
    Carrying,
    Finishing { within: Duration },
}

impl Courier {
    /// Starts the thread, if there is work for it. `most`: bytes of a message that comes in.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(syslog: &Syslog, sinks: &Arc<Sinks>, intakes: Vec<Intake>, most: usize) -> io::Result<Option<Courier>> {
        if syslog.carriers.is_empty() && intakes.is_empty() {
            return Ok(None);
        }
        let (stage, watched) = watch::channel(Stage::Relaying);
        let (carriers, forwarders, sinks) = (syslog.carriers.clone(), syslog.forwarders.clone(), sinks.clone());
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())?;
            let relays = (forwarders, intakes, most);
            runtime.block_on(run(carriers, relays, &sinks, watched));
            Ok(())
        };
        let thread = std::thread::Builder::new().name("courier".into()).spawn(work)?;
        Ok(Some(Courier { stage, thread }))
    }

    /// Takes no more messages: the next process does.
    pub fn stop_listening(&self) {
        self.stage.send_if_modified(|stage| {
            let was = std::mem::replace(stage, Stage::Carrying);
            was == Stage::Relaying
        });
    }

    /// Waits until all rings are with their servers, at most so long, and ends the thread.
    pub fn finish(self, within: Duration) {
        self.stage.send_replace(Stage::Finishing { within });
        // It has nothing to say that anybody could still hear.
        let _ = self.thread.join();
    }
}

type Relays = (Vec<Arc<Forwarder>>, Vec<Intake>, usize);

async fn run(carriers: Vec<Arc<Carrier>>, relays: Relays, sinks: &Arc<Sinks>, mut stage: watch::Receiver<Stage>) {
    let mut carrying = JoinSet::new();
    for carrier in &carriers {
        let carrier = carrier.clone();
        carrying.spawn_local(async move { carrier.run().await });
    }
    let relaying = listen(relays, sinks);
    // A closed channel means that the control thread waits for nothing.
    let _ = stage.wait_for(|stage| *stage != Stage::Relaying).await;
    drop(relaying);
    let told = stage.wait_for(|stage| matches!(stage, Stage::Finishing { .. })).await.map(|stage| *stage);
    let Ok(Stage::Finishing { within }) = told else { return };
    let deadline = Instant::now() + within;
    while !carriers.iter().all(|carrier| carrier.is_done()) {
        let rest = async { tokio::time::sleep(LOOK_AGAIN).await };
        if timeout_at(deadline, rest).await.is_err() {
            return;
        }
    }
}

/// Begins to relay; dropping the returned set ends that.
fn listen((forwarders, intakes, most): Relays, sinks: &Arc<Sinks>) -> JoinSet<()> {
    let logger = Rc::new(RefCell::new(Logger::new(sinks)));
    let relays: Vec<_> = forwarders.iter().map(|forwarder| Relay::new(forwarder, &logger, most)).collect();
    let mut relaying = JoinSet::new();
    for Intake { forwarder, socket } in intakes {
        let Some(relay) = relays.get(forwarder).cloned() else { continue };
        match socket {
            IntakeSocket::Streams(listener, bind) => {
                // A listener that the kernel refuses to wait for takes nothing; the others go on.
                relaying.spawn_local(async move { relay.streams(listener, bind).await.unwrap_or_default() });
            }
            IntakeSocket::Datagrams(socket) => {
                if let Ok(socket) = tokio::net::UdpSocket::from_std(socket) {
                    relaying.spawn_local(relay.datagrams(socket));
                }
            }
        }
    }
    relaying
}

/// Interval at which the courier checks whether the last lines are sent.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
