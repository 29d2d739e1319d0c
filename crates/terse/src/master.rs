//! A master and its workers' processes: `-W`, `-Ws`, `master-worker`.
//!
//! The master carries no traffic. It starts a process that does (this program again, with the same words), holds that one's listening
//! sockets, and starts another one when it is told to reload: so a reload reads files and binds addresses with the rights that the
//! master was started with, and the service manager sees one process that never changes.
//!
//! ```text
//!   start, SIGUSR2, SIGHUP --> Starting --ready--> Serving --another is ready: SIGUSR1--> Leaving --> ended
//!                                 |                   |
//!                                 | ends: the         | ends: all others are stopped,
//!                                 | reload failed     | the master ends like it
//! ```
//!
//! SIGTERM and SIGINT stop all processes and end the master with 128 plus the signal's number; SIGUSR1 drains them.
//! The two talk over a [`lifeline`]: a worker asks for sockets, and hands its own over when it is ready; when one side is gone, the
//! other one notices.

pub mod attendant;
pub mod lifeline;

use crate::process::notify::Supervisor;
use crate::report::Report;
use crate::signals::{Order, Signals};
use attendant::{Event, Held, Spawner};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A master.
pub struct Master<'a> {
    spawner: Spawner,
    supervisor: Supervisor,
    report: &'a Report,
    /// `mworker-max-reloads`: after how many reloads a worker that still runs is stopped.
    most_reloads: Option<u32>,
    workers: Vec<Worker>,
    /// The listening sockets of the worker that serves.
    sockets: Arc<Held>,
    generation: u32,
    /// A reload was asked for while a worker was starting.
    again: bool,
    ending: Option<Ending>,
}

/// A worker's process.
#[derive(Debug)]
struct Worker {
    pid: Pid,
    generation: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Starting,
    Serving,
    Leaving,
}

/// What the master will end with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Every worker has drained.
    Drained,
    /// Told by this signal.
    Told(i32),
    /// As the worker did.
    Failed(u8),
}

impl<'a> Master<'a> {
    /// A master that starts workers like that.
    pub fn new(spawner: Spawner, supervisor: Supervisor, most_reloads: Option<u32>, report: &'a Report) -> Master<'a> {
        Master {
            spawner,
            supervisor,
            report,
            most_reloads,
            workers: Vec::new(),
            sockets: Arc::default(),
            generation: 0,
            again: false,
            ending: None,
        }
    }

    /// Runs until the last worker has ended. `ready` is called when the first one serves.
    ///
    /// # Errors
    /// The first worker cannot be started, or `ready` fails.
    pub fn run(mut self, ready: impl FnOnce() -> io::Result<()>) -> io::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut signals = Signals::new()?;
            let (tell, mut events) = unbounded_channel();
            self.spawner.tell = Some(tell);
            self.start()?;
            self.attend(&mut signals, &mut events, ready).await
        })
    }

    async fn attend(
        &mut self,
        signals: &mut Signals,
        events: &mut UnboundedReceiver<Event>,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<ExitCode> {
        let mut ready = Some(ready);
        while !self.workers.is_empty() {
            tokio::select! {
                order = signals.next() => self.obey(order),
                event = events.recv() => match event {
                    Some(Event::Ready(pid, sockets)) => {
                        self.promote(pid, sockets);
                        ready.take().map_or(Ok(()), |ready| ready())?;
                        self.supervisor.ready();
                    }
                    Some(Event::Ended(pid, status)) => self.bury(pid, status),
                    None => break,
                },
            }
            let settled = self.workers.iter().all(|worker| worker.stage != Stage::Starting);
            if settled && std::mem::take(&mut self.again) {
                self.reload();
            }
        }
        Ok(match self.ending {
            Some(Ending::Told(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
            Some(Ending::Failed(code)) => ExitCode::from(code),
            Some(Ending::Drained) | None => ExitCode::SUCCESS,
        })
    }

    fn start(&mut self) -> io::Result<()> {
        let pid = self.spawner.spawn(self.generation, &self.sockets)?;
        self.workers.push(Worker { pid, generation: self.generation, stage: Stage::Starting });
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
            Order::Report | Order::Reload => self.reload(),
        }
    }

    fn reload(&mut self) {
        if self.workers.iter().any(|worker| worker.stage == Stage::Starting) {
            // It may have read the files before they were changed.
            self.again = true;
        }
        if self.again || self.ending.is_some() {
            return;
        }
        self.report.notice("Reloading.");
        self.supervisor.reloading();
        self.generation += 1;
        if let Err(error) = self.start() {
            self.report.alert(format_args!("Cannot start a worker: {error}. The one that runs goes on."));
            self.supervisor.ready();
        }
    }

    /// A worker serves: the ones before leave, and its sockets are what the next one gets.
    fn promote(&mut self, pid: Pid, sockets: Held) {
        // What the new configuration does not name any more is open nowhere else now.
        std::mem::replace(&mut self.sockets, Arc::new(sockets)).close();
        for worker in &mut self.workers {
            if worker.pid == pid {
                worker.stage = Stage::Serving;
            } else if worker.stage == Stage::Serving {
                worker.stage = Stage::Leaving;
                tell(worker.pid, Signal::USR1);
            }
        }
        let oldest = self.most_reloads.map_or(0, |most| self.generation.saturating_sub(most));
        for worker in self.workers.iter().filter(|worker| worker.stage == Stage::Leaving && worker.generation < oldest) {
            tell(worker.pid, Signal::TERM);
        }
        // A signal may have come while it was starting.
        match self.ending {
            Some(Ending::Drained) => tell(pid, Signal::USR1),
            Some(_) => tell(pid, Signal::TERM),
            None => {}
        }
    }

    fn bury(&mut self, pid: Pid, status: ExitStatus) {
        let Some(at) = self.workers.iter().position(|worker| worker.pid == pid) else { return };
        let worker = self.workers.swap_remove(at);
        let (number, how) = (worker.pid.as_raw_nonzero(), describe(status));
        match worker.stage {
            _ if self.ending.is_some() => {}
            Stage::Leaving => self.report.notice(format_args!("Former worker ({number}) exited with {how}.")),
            Stage::Starting if !self.workers.is_empty() => {
                self.report
                    .alert(format_args!("New worker ({number}) exited with {how}: the reload failed, the one that runs goes on."));
                self.supervisor.reload_failed();
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
        self.workers.iter().for_each(|worker| tell(worker.pid, signal));
    }
}

/// A worker that has just ended cannot be told anything; its end is on its way here.
fn tell(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, signal) => format!("code {} (signal {})", code(status), signal.unwrap_or_default()),
    }
}

/// What a shell would make of it; a worker that ends well without being told to has failed too.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX).max(1)
}
