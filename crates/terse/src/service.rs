//! Serving: the workers on threads of their own, the control thread on this one.
//!
//! The control thread takes signals, checks servers' health, answers on stats sockets, shares tables with peers, and carries no traffic.

use crate::course::{self, Leave, Outcome, Turn};
use crate::crew::{Crew, Job};
use crate::engines::{self, Prepared};
use crate::listening::Listeners;
use crate::master::lifeline::Lifeline;
use crate::process::variables::Outside;
use crate::process::{ProcessSettings, memory, trim, workers};
use crate::report::Report;
use crate::signals::{Order, Signals};
use crate::states;
use crate::stats::{Running, Stats};
use crate::takeover::send::Exported;
use crate::version;
use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use terse_admin::Context;
use terse_balance::check::{Entrance, Surroundings};
use terse_balance::{Farm, Server};
use terse_compress::Queue;
use terse_compress::memory::Raiser;
use terse_proxy::checked::Checked;
use terse_proxy::log::{Courier, Intake, Journal, Level, Logger};
use terse_proxy::plan::{Bind, Plan};
use terse_proxy::settings::Mode;
use terse_proxy::worker::{self, Control, Shared};
use terse_sample::{ProcessStore, World};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// A service, and the means to report its state.
pub struct Service {
    /// Configuration of the workers.
    pub plan: Arc<Plan>,
    /// Engines of compression, to be opened.
    pub engines: Vec<Prepared>,
    /// The listeners of each worker.
    pub listeners: Vec<Listeners>,
    /// Sockets that messages of syslog come in by.
    pub intakes: Vec<Intake>,
    /// Sockets that other processes of `peers` sections come in by.
    pub peers: Vec<terse_peers::Listening>,
    /// True if this process replaces another.
    pub replaces: bool,
    /// The listeners, to hand over to the process that replaces this one.
    pub exported: Arc<Exported>,
    /// Settings of the process from `global`.
    pub process: ProcessSettings,
    /// Its memory, where `-m` limits it.
    pub gauge: Option<memory::Gauge>,
    /// The stats sockets.
    pub stats: Stats,
    /// The master, which is told when it is ready.
    pub lifeline: Option<Lifeline>,
    /// Messages on the terminal.
    pub report: Report,
}

impl Service {
    /// Serves until it is told to end and has ended. `ready` is called as soon as it serves.
    ///
    /// # Errors
    /// It could not begin to.
    pub fn run(self, ready: impl FnOnce() -> io::Result<()>) -> io::Result<Outcome> {
        let sinks = self.plan.sinks.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(self.serve(ready));
        sinks.flush(LAST_WORDS);
        // A name that is being looked up for an answer about a certificate's state is not waited for.
        runtime.shutdown_background();
        outcome
    }

    async fn serve(self, ready: impl FnOnce() -> io::Result<()>) -> io::Result<Outcome> {
        let Service { plan, engines, listeners, intakes, peers, replaces, exported, process, gauge, stats, lifeline, report } =
            self;
        let (give, mut orders) = unbounded_channel();
        tokio::spawn(forward(Signals::new()?, give.clone()));
        let (control, state) = watch::channel(Control::Running);
        let queue = queue(&plan, engines)?;
        let raiser = raiser(&plan, queue.as_ref())?;
        let learner = plan.dictionaries.learner();
        if learner.is_wanted() {
            let report = report.clone();
            learner.start(move |text| report.warn(text))?;
        }
        let shared = Shared {
            control: state,
            connections: Arc::default(),
            queue,
            lends_hands: !workers::leave_some(&process),
            raiser,
            compression_rate: Arc::default(),
        };
        let courier = Courier::start(&plan.syslog, &plan.sinks, intakes, plan.process.buffer_bytes)?;
        let surroundings = CheckSurroundings { plan: plan.clone(), node: stats.node().to_owned() };
        let running = Running {
            plan: plan.clone(),
            connections: shared.connections.clone(),
            queue: shared.queue.clone(),
            exported: exported.clone(),
            control: shared.control.clone(),
            report: report.clone(),
        };
        // Statistics pages look at the context, from the first stream until the last one has ended.
        let (context, sockets) = stats.open(running);
        if let Some(scripts) = &plan.scripts {
            scripts.clone().hear(plan.templates.wardens());
        }
        let mut crew = Crew::start(jobs(listeners, &plan, &process, &shared))?;
        ready()?;
        if let Some(lifeline) = &lifeline {
            lifeline.say(&version::in_lists(), &report.said())?;
            lifeline.ready(&exported)?;
        }
        let farms: Vec<_> = plan.backends.now().iter().map(|backend| backend.farm.clone()).collect();
        tokio::spawn(terse_names::run(plan.templates.wardens().clone(), plan.resolvers.clone(), farms.clone()));
        tokio::spawn(terse_balance::check::run(plan.templates.wardens().clone(), farms, Arc::new(surroundings)));
        tokio::spawn(terse_proxy::ocsp::run(plan.clone()));
        tokio::spawn(trim::watch(plan.clone()));
        if let Some(gauge) = gauge {
            tokio::spawn(memory::watch(gauge, plan.clone()));
        }
        let groups: Vec<_> = plan.peers.iter().map(|circle| circle.group.clone()).collect();
        let (part, parting) = watch::channel(false);
        let sharing = tokio::spawn(terse_peers::run(groups, peers, replaces, parting));
        if let Some(queue) = shared.queue.filter(|queue| !queue.engines().is_empty()) {
            let voice = Voice { logger: Logger::new(&plan.sinks), report: report.clone() };
            tokio::spawn(engines::watch(queue, plan.clone(), voice));
        }
        if let Some(lifeline) = lifeline {
            tokio::spawn(follow_the_master(lifeline, context.clone(), give));
        }
        let (say, leave_word) = terse_admin::Leave::new();
        let (doubts, commands) = (report.clone(), terse_admin::serve(sockets, context.clone(), leave_word));
        let stats = tokio::spawn(async move {
            if let Err(error) = commands.await {
                doubts.alert(format_args!("Cannot answer on stats sockets: {error}"));
            }
        });
        let (cut, hurry) = (stats.abort_handle(), sharing.abort_handle());
        let mut voice = Voice { logger: Logger::new(&plan.sinks), report };
        let leave = Leave { grace: process.grace, most: process.hard_stop_after };
        let turn = |turn| match turn {
            Turn::Drain | Turn::Stop => {
                // Listeners that the next process has as well must not be answered here any more.
                exported.close();
                say.send_replace(true);
                part.send_replace(true);
                if turn == Turn::Stop {
                    cut.abort();
                    hurry.abort();
                }
                courier.iter().for_each(Courier::stop_listening);
                let drain = turn == Turn::Drain;
                control.send_replace(if drain { Control::Draining } else { Control::Stopping });
                if drain {
                    states::stopped(&plan, &mut voice);
                }
            }
            Turn::Report => states::servers(&plan, &mut voice),
        };
        let outcome = course::run(&mut crew, &mut orders, leave, turn).await;
        // The next process learns the tables of this one; that has its own limit. Workers that have failed were not told to go.
        if outcome.failures.is_empty() {
            let _ = sharing.await;
        }
        // Commands that have come are answered.
        let _ = tokio::time::timeout(LAST_WORDS, stats).await;
        drop(context);
        if let Some(courier) = courier {
            courier.finish(LAST_WORDS);
        }
        Ok(outcome)
    }
}

/// Starts the queue of compression, if it is wanted: engines need it, because the work that they leave is done there.
fn queue(plan: &Plan, prepared: Vec<Prepared>) -> io::Result<Option<Arc<Queue>>> {
    let compression = &plan.process.compression;
    let engines = engines::open(prepared, &compression.engines, &plan.memory)?;
    match compression.threads.unwrap_or_else(workers::default_count) {
        0 if engines.is_empty() => Ok(None),
        threads => Ok(Some(Arc::new(Queue::with_engines(threads, compression.nice, compression.queue_depth, engines)?))),
    }
}

/// Starts the task that compresses cached bodies better, if bodies are compressed at all.
fn raiser(plan: &Plan, queue: Option<&Arc<Queue>>) -> io::Result<Option<Arc<Raiser>>> {
    if !plan.compresses() || plan.process.compression.threads == Some(0) {
        return Ok(None);
    }
    Ok(Some(Arc::new(Raiser::start(queue.cloned())?)))
}

fn jobs(listeners: Vec<Listeners>, plan: &Arc<Plan>, process: &ProcessSettings, shared: &Shared) -> Vec<Job> {
    let chosen = workers::processors(process).into_iter().map(|processors| processors.and_then(workers::present));
    let workers = listeners.into_iter().zip(chosen).enumerate();
    let job = |(index, (listeners, processors))| {
        let (plan, shared) = (plan.clone(), shared.clone());
        Job { processors, work: Box::new(move || worker::run(plan, index, listeners, shared)) }
    };
    workers.map(job).collect()
}

/// Writes the same text on the terminal and in a log.
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

/// Answers the master's clients, also while the process leaves, and ends with the master.
async fn follow_the_master(lifeline: Lifeline, context: Arc<Context>, give: UnboundedSender<Order>) {
    lifeline.attend(|client, manner| drop(tokio::spawn(terse_admin::attend(client, manner, context.clone())))).await;
    let _ = give.send(Order::Stop(libc::SIGTERM));
}

/// Time limit of the end for lines, and responses to commands, that are not written yet.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Facts about the process for checks.
struct CheckSurroundings {
    plan: Arc<Plan>,
    node: String,
}

impl Surroundings for CheckSurroundings {
    fn variables(&self) -> &ProcessStore {
        &self.plan.process_variables
    }

    fn world(&self) -> &dyn World {
        &Outside
    }

    fn subject(&self, farm: &Farm, server: &Arc<Server>) -> Box<dyn Any + Send + Sync> {
        match Checked::new(self.plan.clone(), farm, server.clone()) {
            Some(checked) => Box::new(checked),
            None => Box::new(()),
        }
    }

    fn entrance(&self, farm: &Farm) -> Entrance {
        let backends = self.plan.backends.now();
        let is_http = backends.iter().any(|backend| std::ptr::eq(&*backend.farm, farm) && backend.mode == Mode::Http);
        let is_its_own = |bind: &&Bind| *self.plan.frontends[bind.frontend].name == *farm.name();
        let addresses = self.plan.binds().iter().filter(is_its_own).map(|bind| &*bind.settings.address);
        // Of sockets that were handed over nothing is known but their number.
        let address = addresses.filter(|_| farm.kind() == "proxy").find(|address| !address.starts_with("fd@"));
        let Some(address) = address else { return Entrance { is_http, ..Entrance::default() } };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => (host.trim_matches(['[', ']']), Some(port.to_owned())),
            _ => (address.strip_prefix("unix@").unwrap_or(address), None),
        };
        let host = if matches!(host, "" | "*") { "0.0.0.0" } else { host };
        Entrance { is_http, address: Some(host.to_owned()), port }
    }

    fn node(&self) -> String {
        self.node.clone()
    }
}
