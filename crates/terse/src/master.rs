//! A master and its workers' processes: `-W`, `-Ws`, `master-worker`.
//!
//! The master carries no traffic. It starts a process that does (this program again, with the same arguments) and holds that
//! process's listening sockets. When it is told to reload, it starts another one. So a reload reads files and binds addresses with
//! the rights that the master was started with. The service manager sees one process that never changes.
//!
//! ```text
//!   start, SIGUSR2, SIGHUP --> Starting --ready--> Serving --another is ready: SIGUSR1--> Leaving --> ended
//!                                 |                   |
//!                                 | ends: the         | ends: all others are stopped,
//!                                 | reload failed     | the master ends like it
//! ```
//!
//! SIGTERM and SIGINT stop all processes and end the master with 128 plus the signal's number; SIGUSR1 drains them. Master and
//! worker talk over a [`lifeline`]: a worker asks for sockets, and hands its own over when it is ready. When one side is gone, the
//! other one notices.
//!
//! A reload that finds another program at the master's path ends with the master starting [anew](renewal) as that one.
//!
//! With `-S` it takes commands: a [`bureau`] has the state that it shows, and passes requests for reloads to it.

pub mod attendant;
pub mod bureau;
pub mod command_line;
pub mod lifeline;
pub mod renewal;

use crate::process::notify::Supervisor;
use crate::report::Report;
use crate::signals::{Order, Signals};
use attendant::{Event, Held, Spawner};
use bureau::{Bureau, Request, View};
use command_line::{CommandLine, Legacy};
use lifeline::Words;
use renewal::{Descriptors, State};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_admin::master::{self, Reloaded, Reloads, Stage};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

/// A master.
pub struct Master<'a> {
    spawner: Spawner,
    supervisor: Supervisor,
    report: &'a Report,
    /// `mworker-max-reloads`: number of reloads after which a worker that still runs is stopped.
    most_reloads: Option<u32>,
    workers: Vec<Worker>,
    /// The listening sockets of the worker that serves.
    sockets: Arc<Held>,
    generation: u32,
    /// Failed reloads since the last successful one.
    failed: u32,
    /// Messages of a worker's start.
    loading: Report,
    /// The worker that starts takes the place of others at once, without a drain.
    hard: bool,
    /// Client that waits for the outcome of the reload.
    asked: Option<oneshot::Sender<Reloaded>>,
    /// A reload was asked for while a worker was starting.
    again: bool,
    /// A reload has succeeded with another program than this one.
    renews: bool,
    ending: Option<Ending>,
}

/// A worker's process.
#[derive(Debug)]
struct Worker {
    pid: Pid,
    generation: u32,
    stage: Stage,
    /// Number of later workers that have begun to serve.
    outlived: u32,
    started: Instant,
    version: Option<String>,
    lifeline: Arc<UnixStream>,
}

/// Ending of the master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Every worker has drained.
    Drained,
    /// Ended by this signal.
    Told(i32),
    /// Failed, with the worker's exit code.
    Failed(u8),
}

impl<'a> Master<'a> {
    /// Returns a master that starts workers with these settings.
    pub fn new(spawner: Spawner, supervisor: Supervisor, most_reloads: Option<u32>, report: &'a Report) -> Master<'a> {
        Master {
            spawner,
            supervisor,
            report,
            most_reloads,
            workers: Vec::new(),
            sockets: Arc::default(),
            generation: 0,
            failed: 0,
            loading: Report::new(report.quiet, report.talks),
            hard: false,
            asked: None,
            again: false,
            renews: false,
            ending: None,
        }
    }

    /// Returns the master whose program this one replaces.
    ///
    /// # Errors
    /// A descriptor is not open any more.
    pub fn resume(spawner: Spawner, supervisor: Supervisor, state: State, report: &'a Report) -> io::Result<Master<'a>> {
        let mut master = Master::new(spawner, supervisor, state.most_reloads, report);
        let sockets = Held::default();
        for (number, interface) in &state.sockets {
            sockets.add(&renewal::adopt(*number)?, Some(interface))?;
        }
        master.sockets = Arc::new(sockets);
        master.generation = state.generation;
        master.loading.quote(&state.log);
        for kept in state.workers {
            let pid = Pid::from_raw(kept.pid).ok_or(io::ErrorKind::InvalidData)?;
            let age = Duration::from_millis(kept.age_ms);
            master.workers.push(Worker {
                pid,
                generation: kept.generation,
                stage: if kept.leaves { Stage::Leaving } else { Stage::Serving },
                outlived: kept.outlived,
                started: Instant::now().checked_sub(age).unwrap_or_else(Instant::now),
                version: kept.version,
                lifeline: Arc::new(UnixStream::from(renewal::adopt(kept.lifeline)?)),
            });
        }
        Ok(master)
    }

    /// Runs until the last worker has ended, and takes commands until then. `ready` is called when the first worker serves.
    ///
    /// # Errors
    /// The first worker cannot be started, or `ready` fails.
    pub fn run(mut self, command_line: CommandLine, ready: impl FnOnce() -> io::Result<()>) -> io::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut signals = Signals::new()?;
            let (tell, mut events) = unbounded_channel();
            self.spawner.tell = Some(tell);
            for worker in &self.workers {
                self.spawner.attend(worker.pid, worker.generation, &worker.lifeline, &self.sockets)?;
            }
            renewal::take_signals()?;
            if self.workers.is_empty() {
                self.start()?;
            }
            let (ask, mut requests) = unbounded_channel();
            let bureau = Arc::new(Bureau::new(ask));
            let (listeners, office, legacy) = command_line.into_parts(bureau.clone())?;
            let (doubts, commands) = (self.report.clone(), master::serve(listeners, office));
            tokio::spawn(async move {
                if let Err(error) = commands.await {
                    doubts.alert(format_args!("Cannot answer on the master's sockets: {error}"));
                }
            });
            self.attend(&mut signals, &mut events, (&bureau, &mut requests), (&legacy, ready)).await
        })
    }

    async fn attend(
        &mut self,
        signals: &mut Signals,
        events: &mut UnboundedReceiver<Event>,
        (bureau, requests): (&Bureau, &mut UnboundedReceiver<Request>),
        (legacy, ready): (&Legacy, impl FnOnce() -> io::Result<()>),
    ) -> io::Result<ExitCode> {
        let mut ready = Some(ready);
        while !self.workers.is_empty() {
            bureau.show(self.view());
            if self.renews && legacy.is_quiet() {
                self.renew(legacy);
            }
            tokio::select! {
                order = signals.next() => self.obey(order),
                Some(request) = requests.recv() => self.grant(request),
                event = events.recv() => match event {
                    Some(Event::Ready(pid, sockets)) => {
                        self.promote(pid, sockets);
                        ready.take().map_or(Ok(()), |ready| ready())?;
                        self.supervisor.ready();
                    }
                    Some(Event::Says(pid, words)) => self.listen(pid, words),
                    Some(Event::Ended(pid, status)) => self.bury(pid, status),
                    None => break,
                },
                // Clients of the command line hear how the reload went before the master starts anew.
                () = tokio::time::sleep(BREATH), if self.renews => {}
            }
            let settled = self.workers.iter().all(|worker| worker.stage != Stage::Starting);
            if settled && std::mem::take(&mut self.again) {
                self.reload(false);
            }
            self.renews &= self.ending.is_none() && self.workers.iter().all(|worker| worker.stage != Stage::Starting);
        }
        Ok(match self.ending {
            Some(Ending::Told(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
            Some(Ending::Failed(code)) => ExitCode::from(code),
            Some(Ending::Drained) | None => ExitCode::SUCCESS,
        })
    }

    fn start(&mut self) -> io::Result<()> {
        let (pid, lifeline) = self.spawner.spawn(self.generation, &self.sockets)?;
        self.workers.push(Worker {
            pid,
            generation: self.generation,
            stage: Stage::Starting,
            outlived: 0,
            started: Instant::now(),
            version: None,
            lifeline,
        });
        Ok(())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Stop(signal) => {
                self.ending = Some(Ending::Told(signal));
                self.sockets.close();
                self.supervisor.stopping();
                self.tell_all(Signal::TERM);
            }
            Order::Drain => {
                self.ending.get_or_insert(Ending::Drained);
                self.sockets.close();
                self.supervisor.stopping();
                self.tell_all(Signal::USR1);
            }
            Order::Report | Order::Reload => self.reload(false),
        }
    }

    /// Grants the request of a client of the command line, unless another reload or an end is on its way.
    fn grant(&mut self, request: Request) {
        if self.ending.is_some() || self.workers.iter().any(|worker| worker.stage == Stage::Starting) {
            let log = match self.ending {
                Some(_) => "The master is about to end.\n",
                None => "Another reload is still in progress.\n",
            };
            let _ = request.reply.send(Reloaded { success: false, log: log.into() });
            return;
        }
        self.asked = Some(request.reply);
        self.reload(request.hard);
    }

    fn reload(&mut self, hard: bool) {
        if self.workers.iter().any(|worker| worker.stage == Stage::Starting) {
            // It may have read the files before they were changed.
            self.again = true;
        }
        if self.again || self.ending.is_some() {
            return;
        }
        self.hard = hard;
        self.loading = Report::new(self.report.quiet, self.report.talks);
        self.loading.notice("Reloading.");
        self.supervisor.reloading();
        if let Some((pid, errno)) = self.out_of_reach() {
            self.loading.alert(format_args!(
                "Cannot signal worker ({}): {errno}; a master whose workers have another user needs CAP_KILL. The reload failed, the one \
                 that runs goes on.",
                pid.as_raw_nonzero()
            ));
            self.supervisor.reload_failed();
            self.settle(false);
            return;
        }
        self.generation += 1;
        if let Err(error) = self.start() {
            self.loading.alert(format_args!("Cannot start a worker: {error}. The one that runs goes on."));
            self.supervisor.ready();
            self.settle(false);
        }
    }

    /// A worker that serves and could not be told to leave: beside it another one would serve with another file.
    fn out_of_reach(&self) -> Option<(Pid, Errno)> {
        let mut serving = self.workers.iter().filter(|worker| worker.stage == Stage::Serving);
        serving.find_map(|worker| match test_kill_process(worker.pid) {
            Err(errno @ Errno::PERM) => Some((worker.pid, errno)),
            _ => None,
        })
    }

    /// Takes a worker's report. What it reports after its start is no news: it is in its logs.
    fn listen(&mut self, pid: Pid, words: Words) {
        let starts = |worker: &&mut Worker| worker.pid == pid && worker.stage == Stage::Starting;
        if let Some(worker) = self.workers.iter_mut().find(starts) {
            worker.version = Some(words.version);
            self.loading.quote(&words.log);
        }
    }

    /// Tells the outcome of a reload to the client that asked for it.
    fn settle(&mut self, success: bool) {
        self.failed = if success { 0 } else { self.failed + 1 };
        if let Some(reply) = self.asked.take() {
            // A client that does not wait any more need not know.
            let _ = reply.send(Reloaded { success, log: self.loading.said() });
        }
    }

    /// Returns the state for the command line.
    fn view(&self) -> View {
        let row = |worker: &Worker| master::Worker {
            pid: worker.pid.as_raw_nonzero().get().unsigned_abs(),
            stage: worker.stage,
            reloads: worker.outlived,
            started: worker.started,
            version: worker.version.clone(),
            descriptor: worker.lifeline.as_raw_fd(),
        };
        View {
            workers: self.workers.iter().map(|worker| (row(worker), Arc::clone(&worker.lifeline))).collect(),
            reloads: Reloads { all: self.generation, failed: self.failed },
            log: self.loading.said(),
        }
    }

    /// A worker serves: those before it leave, and its sockets are for the next one.
    fn promote(&mut self, pid: Pid, sockets: Held) {
        // Sockets that the new configuration does not name any more are open in no other process now.
        std::mem::replace(&mut self.sockets, Arc::new(sockets)).close();
        for worker in &mut self.workers {
            if worker.pid == pid {
                worker.stage = Stage::Serving;
                continue;
            }
            worker.outlived += 1;
            let leaves = std::mem::replace(&mut worker.stage, Stage::Leaving) == Stage::Serving;
            if self.hard {
                tell(worker, Signal::TERM, self.report);
            } else if leaves {
                tell(worker, Signal::USR1, self.report);
            }
        }
        if self.generation > 0 {
            self.loading.notice("Loading success.");
            self.renews = renewal::is_replaced(&self.spawner.program);
        }
        self.settle(true);
        let oldest = self.most_reloads.map_or(0, |most| self.generation.saturating_sub(most));
        for worker in self.workers.iter().filter(|worker| worker.stage == Stage::Leaving && worker.generation < oldest) {
            tell(worker, Signal::TERM, self.report);
        }
        // A signal may have come while it was starting.
        let signal = match self.ending {
            Some(Ending::Drained) => Signal::USR1,
            Some(_) => Signal::TERM,
            None => return,
        };
        self.workers.iter().filter(|worker| worker.pid == pid).for_each(|worker| tell(worker, signal, self.report));
    }

    /// Executes the program at the master's path in its place. A failure is reported, and changes nothing.
    fn renew(&mut self, legacy: &Legacy) {
        self.renews = false;
        let mut descriptors = Descriptors::default();
        let state = self.state(legacy, &mut descriptors);
        let Err(error) = state.and_then(|state| state.hand_to(&self.spawner.program, &self.spawner.words, descriptors));
        self.report.warn(format_args!("The master goes on with the program before: {error}"));
    }

    fn state(&self, legacy: &Legacy, descriptors: &mut Descriptors) -> io::Result<State> {
        let sockets = self.sockets.duplicates()?.into_iter();
        let mut workers = Vec::new();
        for worker in &self.workers {
            workers.push(renewal::Kept {
                pid: worker.pid.as_raw_nonzero().get(),
                generation: worker.generation,
                leaves: worker.stage == Stage::Leaving,
                outlived: worker.outlived,
                age_ms: worker.started.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
                version: worker.version.clone(),
                lifeline: descriptors.keep(worker.lifeline.as_ref().try_clone()?.into())?,
            });
        }
        Ok(State {
            format: renewal::FORMAT,
            quiet: self.report.quiet,
            folder: self.spawner.folder.clone(),
            most_reloads: self.most_reloads,
            generation: self.generation,
            log: self.loading.said(),
            workers,
            sockets: sockets.map(|(socket, interface)| Ok((descriptors.keep(socket)?, interface))).collect::<io::Result<_>>()?,
            commands: legacy.kept(descriptors)?,
        })
    }

    fn bury(&mut self, pid: Pid, status: ExitStatus) {
        let Some(at) = self.workers.iter().position(|worker| worker.pid == pid) else { return };
        let worker = self.workers.swap_remove(at);
        let (number, how) = (worker.pid.as_raw_nonzero(), describe(status));
        match worker.stage {
            _ if self.ending.is_some() => {}
            Stage::Leaving => self.report.notice(format_args!("Former worker ({number}) exited with {how}.")),
            Stage::Starting if !self.workers.is_empty() => {
                self.loading
                    .alert(format_args!("New worker ({number}) exited with {how}: the reload failed, the one that runs goes on."));
                self.supervisor.reload_failed();
                self.settle(false);
            }
            Stage::Starting | Stage::Serving => {
                self.report.alert(format_args!("Current worker ({number}) exited with {how}."));
                self.ending = Some(Ending::Failed(code(status)));
                self.supervisor.stopping();
                self.tell_all(Signal::TERM);
            }
        }
    }

    fn tell_all(&self, signal: Signal) {
        self.workers.iter().for_each(|worker| tell(worker, signal, self.report));
    }
}

/// Interval between looks at the clients of the command line, while the master waits to start anew.
const BREATH: Duration = Duration::from_millis(50);

/// Sends a signal to a worker. A worker that has just ended cannot get it; its end will be reported. One that may not be signalled
/// loses its lifeline, and stops.
fn tell(worker: &Worker, signal: Signal, report: &Report) {
    if kill_process(worker.pid, signal) == Err(Errno::PERM) {
        let pid = worker.pid.as_raw_nonzero();
        report.alert(format_args!("Cannot signal worker ({pid}): {}; it is stopped at once.", Errno::PERM));
        let _ = worker.lifeline.shutdown(Shutdown::Both);
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, signal) => format!("code {} (signal {})", code(status), signal.unwrap_or_default()),
    }
}

/// Returns the exit code as a shell forms it; a worker that ends well without being told to has failed too.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX).max(1)
}
