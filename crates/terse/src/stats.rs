//! The stats sockets: the facts about the process for commands, and the actions of commands on it.

use crate::configuration::Configuration;
use crate::environment::host_name;
use crate::listening::listener;
use crate::process::variables::Outside;
use crate::report::Report;
use crate::sockets::Listening;
use crate::takeover::send::Exported;
use crate::version;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Instant, SystemTime};
use terse_admin::{AdminSettings, StatsSocket};
use terse_admin::{Context, Host, Process};
use terse_compress::Queue;
use terse_proxy::access::Listener;
use terse_proxy::plan::Plan;
use terse_proxy::worker::Control;
use terse_sample::World;
use tokio::sync::watch;

/// Facts about the process that are known before it serves.
pub struct Stats {
    settings: AdminSettings,
    process: Process,
    environment: Vec<(String, String)>,
    sockets: Vec<(StatsSocket, Listener)>,
    listeners: usize,
}

/// State that the workers share and commands look at.
pub struct Running {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Clients' connections.
    pub connections: Arc<AtomicUsize>,
    /// Queue of compression.
    pub queue: Option<Arc<Queue>>,
    /// The listening sockets.
    pub exported: Arc<Exported>,
    /// Orders to the workers.
    pub control: watch::Receiver<Control>,
    /// Messages so far.
    pub report: Report,
}

impl Stats {
    /// The name of this node.
    pub fn node(&self) -> &str {
        &self.process.node
    }

    /// Collects the facts for commands, and takes their sockets out of those that were opened.
    pub fn new(configuration: &Configuration, name: &str, started: Instant, sockets: &mut Vec<Listening>) -> Stats {
        let listeners = sockets.len();
        let lines = configuration.plan.binds().len();
        let own = sockets.extract_if(.., |listening| listening.line >= lines);
        let mine = own.filter_map(|listening| {
            let line = configuration.admin.sockets.get(listening.line - lines)?.clone();
            Some((line, listener(listening)))
        });
        let process = &configuration.process;
        Stats {
            sockets: mine.collect(),
            listeners,
            settings: configuration.admin.clone(),
            environment: configuration.environment.clone(),
            process: Process {
                name: name.to_owned(),
                version: version::LANGUAGE.to_owned(),
                own_version: version::VERSION.to_owned(),
                release_date: version::RELEASE_DATE.to_owned(),
                pid: std::process::id(),
                started,
                started_at: SystemTime::now() - started.elapsed(),
                boot_ms: 0,
                node: process.node.clone().unwrap_or_else(host_name),
                descriptors: configuration.limits.descriptors,
                sockets: configuration.limits.needed,
                memory_mib: configuration.limits.memory_mib.unwrap_or(0),
                description: process.description.clone(),
            },
        }
    }

    /// Returns the view that commands and statistics pages have of the serving process, and the sockets of commands.
    pub fn open(mut self, running: Running) -> (Arc<Context>, Vec<(StatsSocket, Listener)>) {
        self.process.boot_ms = u64::try_from(self.process.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Running { plan, connections, queue, exported, control, report } = running;
        let desk = Desk { exported, control, listeners: self.listeners, environment: self.environment, startup: report.said() };
        (Context::new(plan, self.process, connections, queue, self.settings, Box::new(desk)), self.sockets)
    }
}

/// Actions of the program for commands.
struct Desk {
    exported: Arc<Exported>,
    control: watch::Receiver<Control>,
    listeners: usize,
    environment: Vec<(String, String)>,
    startup: String,
}

impl Host for Desk {
    fn hand_over(&self, to: &UnixStream) -> io::Result<()> {
        self.exported.send(to)
    }

    fn is_stopping(&self) -> bool {
        *self.control.borrow() != Control::Running
    }

    fn listeners(&self) -> usize {
        self.listeners
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }

    fn startup_log(&self) -> String {
        self.startup.clone()
    }

    fn world(&self) -> &dyn World {
        &Outside
    }
}
