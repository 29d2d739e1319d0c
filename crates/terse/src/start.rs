//! From a configuration to the end of serving.
//!
//! Steps that need rights or paths come before these are given up. Steps that can fail come before the process before is told to
//! go.

use crate::args::{Arguments, OldEnd};
use crate::configuration::Configuration;
use crate::course::Outcome;
use crate::listening;
use crate::master::lifeline::Lifeline;
use crate::process::daemon::{Launch, Null};
use crate::process::limits::Refusal;
use crate::process::{identity, limits, memory, pidfile};
use crate::report::Report;
use crate::service::Service;
use crate::sockets::{self, Pool, Sockets, Taken, Wanted};
use crate::stats::Stats;
use crate::takeover::send::Exported;
use crate::takeover::{borrow, receive};
use crate::{circles, engines, intakes};
use rustix::process::{Signal, kill_process, setpriority_process};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Processes that this one reports to.
#[derive(Debug)]
pub struct Standing {
    /// The starter that waits until it serves, when it has gone to the background.
    pub launch: Option<Launch>,
    /// Its master.
    pub lifeline: Option<Lifeline>,
    /// Time of the start.
    pub since: Instant,
}

/// Reasons why a process does not begin to serve.
pub type Reasons = Vec<String>;

/// Serves, until the process has ended its work.
///
/// # Errors
/// Reasons why it did not begin to.
pub fn start(
    arguments: &Arguments,
    mut configuration: Configuration,
    standing: Standing,
    report: Report,
) -> Result<Outcome, Reasons> {
    let Standing { launch, lifeline, since } = standing;
    let gauge = set_limits(&mut configuration, &report)?;
    let Configuration { process, identity, limits, wanted, .. } = &configuration;
    let mut pool = sockets_of_before(arguments, lifeline.as_ref(), &report)?;
    if !arguments.quick.servers.is_empty() && arguments.old.is_empty() && arguments.takeover.is_none() && lifeline.is_none() {
        addresses_are_free(wanted)?;
    }
    let mut sockets = Sockets::open(wanted, &mut pool).map_err(|refusals| {
        let last = "Some protocols failed to start their listeners! Exiting.".to_owned();
        refusals.iter().map(ToString::to_string).chain([last]).collect::<Reasons>()
    })?;
    let exported = Arc::new(Exported::default());
    for listening in &sockets.list {
        exported.add(&listening.socket, listening.interface.as_deref()).map_err(because("Cannot duplicate a listener"))?;
    }
    let peers = circles::take(&configuration, &mut sockets.list);
    let intakes = intakes::take(&configuration, &mut sockets.list)?;
    if lifeline.is_none()
        && let Some(path) = pid_path(arguments, process.pidfile.as_deref(), launch.is_some())
    {
        write_pid(&path)?;
    }
    sockets.publish().map_err(|(path, error)| vec![format!("Cannot rename to {}: {error}", path.display())])?;
    let quiet = launch.is_some() || report.quiet;
    let engines = engines::prepare(&configuration.plan.process.compression.engines, identity, quiet)
        .map_err(because("Cannot begin to compress"))?;
    let null = Null::open().map_err(because("Cannot open /dev/null"))?;
    if let Some(root) = &process.chroot {
        identity::enter_root(root).map_err(|refusal| vec![refusal.to_string()])?;
    }
    if !lifeline.as_ref().is_some_and(Lifeline::is_reload) {
        dismiss(arguments, &report);
    }
    identity.assume(process.capabilities).map_err(|refusal| vec![refusal.to_string()])?;
    let guarded = configuration.plan.process.compression.engines.iter().any(|engine| !engine.in_process);
    identity::settle_rights(process, guarded).unwrap_or_else(|error| report.warn(format_args!("Cannot give up rights: {error}")));
    renice(process.nice.run, &report);
    // Sockets of the process before for which no line asked are closed here.
    drop(pool);
    report.detail(format_args!("{} connections, {} workers.", limits.connections, configuration.plan.process.workers));
    let told = match launch.is_some() || lifeline.as_ref().is_some_and(Lifeline::is_reload) {
        true => Vec::new(),
        false => listening::told(&sockets.list, &configuration.plan),
    };
    let stats = Stats::new(&configuration, &arguments.program, since, &mut sockets.list);
    let Configuration { plan, process, .. } = configuration;
    let plan = Arc::new(plan);
    let listeners = listening::deal(std::mem::take(&mut sockets.list), &plan);
    let quiet = report.clone();
    let replaces = !arguments.old.is_empty() || arguments.takeover.is_some() || lifeline.as_ref().is_some_and(Lifeline::is_reload);
    let service = Service { plan, engines, listeners, intakes, peers, replaces, exported, process, gauge, stats, lifeline, report };
    let ready = || {
        told.iter().for_each(|line| quiet.notice(line));
        leave_terminal(launch, &null, &quiet)
    };
    service.run(ready).map_err(because("Cannot start"))
}

/// Sets the limits of descriptors and memory; returns the gauge of the memory. If fewer descriptors are granted than are needed,
/// fewer connections are promised. The rest wait in the kernel; otherwise they would be answered 503.
fn set_limits(configuration: &mut Configuration, report: &Report) -> Result<Option<memory::Gauge>, Reasons> {
    let is_strict = configuration.process.strict_limits;
    let refused = |refusal: &Refusal| match is_strict {
        true => Err(vec![refusal.to_string()]),
        false => {
            report.warn(refusal);
            Ok(())
        }
    };
    if let Err(refusal) = configuration.limits.apply() {
        refused(&refusal)?;
        if let Refusal::Descriptors { granted, .. } = refusal
            && let Some(connections) = configuration.settle_for(granted)
        {
            report
                .warn(format_args!("The process takes {connections} connections at a time: {granted} descriptors do for no more."));
        }
    }
    let Some(mib) = configuration.limits.memory_mib else { return Ok(None) };
    if let Err(refusal) = limits::limit_memory(mib) {
        refused(&refusal)?;
    }
    match memory::Gauge::open(mib) {
        Ok(gauge) => Ok(Some(gauge)),
        Err(error) => {
            report.warn(format_args!("Memory cannot be watched: {error}"));
            Ok(None)
        }
    }
}

/// Refuses a start by `--to` on addresses of another program, and names ports that are free. By a file a second process may share
/// them on purpose.
fn addresses_are_free(wanted: &[Wanted]) -> Result<(), Reasons> {
    let reasons = sockets::taken(wanted).into_iter().map(|Taken { owner, address, is_double, free }| {
        let option = if owner.ends_with(" console") { "--console" } else { "--listen" };
        let hint = free.map(|free| format!("; this is free: {option} {free}")).unwrap_or_default();
        let holder = if is_double { "another line listens" } else { "another program listens" };
        format!("Binding {owner}: {holder} on {address}{hint}")
    });
    let reasons: Reasons = reasons.collect();
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Writes the process's number.
///
/// # Errors
/// The system's error.
pub fn write_pid(path: &Path) -> Result<(), Reasons> {
    pidfile::write(path).map_err(|error| vec![format!("Cannot create pidfile {}: {error}", path.display())])
}

/// Path of the file for the process's number. A file on the command line always counts. A file in the configuration counts only
/// where a supervisor looks for it, so that a run by hand does not replace the service's.
pub fn pid_path(arguments: &Arguments, configured: Option<&str>, looked_for: bool) -> Option<PathBuf> {
    arguments.pidfile.clone().or_else(|| configured.filter(|_| looked_for).map(PathBuf::from))
}

/// Lets the starter end, or points the standard streams at `/dev/null` when the report is quiet.
///
/// # Errors
/// The kernel's error about descriptors.
pub fn leave_terminal(launch: Option<Launch>, null: &Null, report: &Report) -> io::Result<()> {
    match launch {
        Some(launch) => launch.complete(null),
        None if report.quiet => null.silence(),
        None => Ok(()),
    }
}

/// Sets the process's priority, if one is wanted.
pub fn renice(nice: Option<i32>, report: &Report) {
    if let Some(nice) = nice
        && let Err(error) = setpriority_process(None, nice)
    {
        report.warn(format_args!("Cannot set the priority to {nice}: {error}"));
    }
}

/// Makes a reason of the action that failed and its error.
pub fn because<E: Display>(what: &str) -> impl FnOnce(E) -> Reasons {
    let what = what.to_owned();
    move |error| vec![format!("{what}: {error}")]
}

/// The listening sockets of the process that this one replaces.
fn sockets_of_before(arguments: &Arguments, lifeline: Option<&Lifeline>, report: &Report) -> Result<Pool, Reasons> {
    if let Some(lifeline) = lifeline.filter(|lifeline| lifeline.is_reload()) {
        return lifeline.sockets().map_err(because("Failed to get the sockets from the master"));
    }
    if let Some(path) = arguments.takeover.as_deref().filter(|path| *path != Path::new("/dev/null")) {
        let what = format!("Failed to get the sockets from the old process at {}", path.display());
        return receive::receive(path).map_err(because(&what));
    }
    let mut pool = Pool::default();
    for pid in &arguments.old {
        if let Err(error) = borrow::borrow(*pid, &mut pool) {
            let pid = pid.as_raw_nonzero();
            report.detail(format_args!(
                "The sockets of process {pid} cannot be taken over ({error}); new ones are opened beside them."
            ));
        }
    }
    Ok(pool)
}

/// Signals the processes that this one replaces to end.
fn dismiss(arguments: &Arguments, report: &Report) {
    let signal = match arguments.old_end {
        OldEnd::Finish => Signal::USR1,
        OldEnd::Terminate => Signal::TERM,
    };
    for pid in &arguments.old {
        if let Err(error) = kill_process(*pid, signal) {
            report.warn(format_args!("Cannot tell process {} to go: {error}", pid.as_raw_nonzero()));
        }
    }
}
