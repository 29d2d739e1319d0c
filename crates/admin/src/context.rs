//! What commands see of the process.

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

/// What commands see of the process.
pub struct Context {
    /// The configuration, and through it servers and counters.
    pub plan: Arc<Plan>,
    /// What never changes.
    pub process: Process,
    /// Clients' connections in the process now.
    pub connections: Arc<AtomicUsize>,
    /// The queue of compression, if there is one.
    pub queue: Option<Arc<Queue>>,
    /// The sockets, and the way here from statistics pages.
    pub settings: AdminSettings,
    /// What the program does for commands.
    pub host: Box<dyn Host>,
    pub(crate) rates: Rates,
    /// One permit for each client that may still come.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) tally: Tally,
}

/// What is known of the process when it starts.
#[derive(Clone, Debug)]
pub struct Process {
    /// The name that it goes by.
    pub name: String,
    /// HAProxy's version whose language it speaks, in the form that programs compare.
    pub version: String,
    /// Its own version.
    pub own_version: String,
    /// The day of that version: `2026/11/21`.
    pub release_date: String,
    /// Its number.
    pub pid: u32,
    /// When it started.
    pub started: Instant,
    /// The same as a time of day.
    pub started_at: SystemTime,
    /// How long it took from there to serve.
    pub boot_ms: u64,
    /// The machine's name, or what `node` says.
    pub node: String,
    /// The limit of descriptors.
    pub descriptors: u64,
    /// The descriptors that were computed for what the process may do.
    pub sockets: u64,
    /// `-m`, in MiB; 0: no limit.
    pub memory_mib: u64,
    /// What `description` in `global` says.
    pub description: Option<String>,
}

/// What the program does for commands.
pub trait Host: Send + Sync {
    /// Sends the listening sockets to a process that takes this one's place (`_getsocks`). May block for a short time.
    ///
    /// # Errors
    /// The other side went away.
    fn hand_over(&self, to: &UnixStream) -> io::Result<()>;

    /// Whether the process has stopped to listen.
    fn is_stopping(&self) -> bool;

    /// How many addresses and sockets it listens on.
    fn listeners(&self) -> usize;

    /// The environment.
    fn environment(&self) -> Vec<(String, String)>;

    /// What was said while it started, line by line.
    fn startup_log(&self) -> String;

    /// Time and randomness, for expressions.
    fn world(&self) -> &dyn World;
}

/// What is counted here.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    /// Clients of stats sockets.
    pub(crate) clients: AtomicU64,
    /// Commands.
    pub(crate) commands: AtomicU64,
}

impl Context {
    /// What commands see of a process that begins to serve this plan.
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
