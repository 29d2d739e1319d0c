//! Serving: the workers on threads of their own, the control thread on this one.
//!
//! The control thread takes signals, checks servers' health, answers on stats sockets, and carries no traffic.

use crate::course::{self, Leave, Outcome, Turn};
use crate::crew::{Crew, Job};
use crate::listening::Listeners;
use crate::master::lifeline::Lifeline;
use crate::process::{ProcessSettings, workers};
use crate::report::Report;
use crate::signals::{Order, Signals};
use crate::states;
use crate::takeover::send::Exported;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use terse_compress::Queue;
use terse_proxy::log::{Journal, Level, Logger};
use terse_proxy::plan::Plan;
use terse_proxy::worker::{self, Control, Shared};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// What is served, and how it is told.
pub struct Service {
    /// What the workers need to know.
    pub plan: Arc<Plan>,
    /// The listeners of each worker.
    pub listeners: Vec<Listeners>,
    /// The same once more, for the process that replaces this one.
    pub exported: Arc<Exported>,
    /// What `global` says about the process.
    pub process: ProcessSettings,
    /// Its master, who is told when it is ready.
    pub lifeline: Option<Lifeline>,
    /// What is said on the terminal.
    pub report: Report,
}

impl Service {
    /// Serves until it is told to end and has ended. `ready` is called as soon as it serves.
    ///
    /// # Errors
    /// It could not begin to.
    pub fn run(mut self, ready: impl FnOnce() -> io::Result<()>) -> io::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(async {
            let (give, mut orders) = unbounded_channel();
            tokio::spawn(forward(Signals::new()?, give.clone()));
            let (control, state) = watch::channel(Control::Running);
            let mut crew = self.start(state)?;
            ready()?;
            if let Some(lifeline) = self.lifeline.take() {
                lifeline.ready(&self.exported)?;
                tokio::spawn(end_with_the_master(lifeline, give));
            }
            let farms = self.plan.backends.iter().map(|backend| backend.farm.clone()).collect();
            tokio::spawn(terse_balance::check::run(farms));
            let leave = Leave { grace: self.process.grace, most: self.process.hard_stop_after };
            let mut voice = Voice { logger: Logger::new(&self.plan.sinks), report: self.report };
            Ok(course::run(&mut crew, &mut orders, leave, |turn| self.turn(turn, &control, &mut voice)).await)
        });
        self.plan.sinks.flush(LAST_WORDS);
        outcome
    }

    fn start(&mut self, control: watch::Receiver<Control>) -> io::Result<Crew> {
        let compression = &self.plan.process.compression;
        let queue = match compression.threads.unwrap_or_else(workers::default_count) {
            0 => None,
            threads => Some(Arc::new(Queue::start(threads, compression.nice, compression.queue_depth)?)),
        };
        let shared = Shared { control, connections: Arc::new(AtomicUsize::new(0)), queue, compression_rate: Arc::default() };
        let processors = workers::processors(&self.process);
        let jobs = self.listeners.drain(..).enumerate().map(|(index, listeners)| {
            let (plan, shared) = (self.plan.clone(), shared.clone());
            let work = move || worker::run(plan, index, listeners, shared);
            Job { processors: processors.get(index).cloned().flatten(), work: Box::new(work) }
        });
        Crew::start(jobs.collect())
    }

    fn turn(&self, turn: Turn, control: &watch::Sender<Control>, voice: &mut Voice) {
        match turn {
            Turn::Drain => {
                self.exported.close();
                control.send_replace(Control::Draining);
                states::stopped(&self.plan, voice);
            }
            Turn::Stop => {
                self.exported.close();
                control.send_replace(Control::Stopping);
            }
            Turn::Report => states::servers(&self.plan, voice),
        }
    }
}

/// Says the same on the terminal and in a log.
pub struct Voice {
    logger: Logger,
    report: Report,
}

impl Voice {
    /// Warns on the terminal; the log has its own level.
    pub fn say(&mut self, journal: &Journal, level: Level, text: &str) {
        self.report.warn(text);
        self.logger.send(journal, level, text.as_bytes());
    }
}

async fn forward(mut signals: Signals, give: UnboundedSender<Order>) {
    while give.send(signals.next().await).is_ok() {}
}

async fn end_with_the_master(lifeline: Lifeline, give: UnboundedSender<Order>) {
    lifeline.end().await;
    let _ = give.send(Order::Stop(libc::SIGTERM));
}

/// How long the end waits for lines that are not written yet.
const LAST_WORDS: Duration = Duration::from_secs(1);
