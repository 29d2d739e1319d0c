//! State of the process for commands.

use crate::rates::Rates;
use crate::settings::AdminSettings;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Instant, SystemTime};
use terse_compress::Queue;
use terse_proxy::plan::Plan;
use terse_sample::World;
use tokio::sync::Semaphore;

/// State of the process for commands.
pub struct Context {
    /// The configuration, and through it servers and counters.
    pub plan: Arc<Plan>,
    /// Constants of the process.
    pub process: Process,
    /// Current connections of clients in the process.
    pub connections: Arc<AtomicUsize>,
    /// The queue of compression, if there is one.
    pub queue: Option<Arc<Queue>>,
    /// Sockets, and the link from statistics pages to this context.
    pub settings: AdminSettings,
    /// Actions of the program for commands.
    pub host: Box<dyn Host>,
    pub(crate) rates: Rates,
    /// A permit for each client that may still come.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) tally: Tally,
}

/// Facts about the process that are known at its start.
#[derive(Clone, Debug)]
pub struct Process {
    /// Name of the program.
    pub name: String,
    /// Version of HAProxy whose language it reads, in the form that programs compare.
    pub version: String,
    /// Version of this program.
    pub own_version: String,
    /// Date of that version: `2026/11/21`.
    pub release_date: String,
    /// Process ID.
    pub pid: u32,
    /// Time of the start.
    pub started: Instant,
    /// Time of the start as a time of day.
    pub started_at: SystemTime,
    /// Milliseconds from the start until it served.
    pub boot_ms: u64,
    /// Name of the machine, or that of `node`.
    pub node: String,
    /// Limit of descriptors.
    pub descriptors: u64,
    /// Number of descriptors computed for the configured limits.
    pub sockets: u64,
    /// `-m`, in MiB; 0: no limit.
    pub memory_mib: u64,
    /// Text of `description` in `global`.
    pub description: Option<String>,
}

/// Actions of the program for commands.
pub trait Host: Send + Sync {
    /// Sends the listening sockets to a process that takes this one's place (`_getsocks`). May block for a short time.
    ///
    /// # Errors
    /// The other side went away.
    fn hand_over(&self, to: &UnixStream) -> io::Result<()>;

    /// Whether the process has stopped listening.
    fn is_stopping(&self) -> bool;

    /// Number of listening addresses and sockets.
    fn listeners(&self) -> usize;

    /// Environment variables.
    fn environment(&self) -> Vec<(String, String)>;

    /// Messages from its start, line by line.
    fn startup_log(&self) -> String;

    /// Time and randomness, for expressions.
    fn world(&self) -> &dyn World;
}

/// Counts of the stats sockets.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    /// Clients of stats sockets.
    pub(crate) clients: AtomicU64,
    /// Commands.
    pub(crate) commands: AtomicU64,
}

impl Context {
    /// Context of a process that begins to serve this plan.
    pub fn new(
        plan: Arc<Plan>,
        process: Process,
        connections: Arc<AtomicUsize>,
        queue: Option<Arc<Queue>>,
        settings: AdminSettings,
        host: Box<dyn Host>,
    ) -> Arc<Context> {
        let rates = Rates::new(&plan);
        let room = Arc::new(Semaphore::new(settings.maxconn().min(Semaphore::MAX_PERMITS)));
        let link = settings.link.clone();
        let context = Arc::new(Context { plan, process, connections, queue, settings, host, rates, room, tally: Tally::default() });
        link.lead(&context);
        context
    }
}
