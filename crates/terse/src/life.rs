//! The order in which a process lives.
//!
//! ```text
//! arguments -> answers that need no configuration
//!           -> configuration -> -c ends here
//! to the background -> limits -> sockets: taken over, opened, published -> pid file
//!           -> root folder -> the process before is told to go -> user and group
//!           -> serve -> the end
//! ```
//!
//! Whatever needs rights or paths comes before they are given up; whatever can fail comes before the process before is told to go.

use crate::args::{Action, Arguments, OldEnd, Service as Standing, flags};
use crate::configuration::{self, Configuration, Remarks, Unusable};
use crate::course::Outcome;
use crate::environment::environment;
use crate::process::daemon::{self, Launch};
use crate::process::notify::Supervisor;
use crate::process::{identity, limits, pidfile};
use crate::report::{Report, print};
use crate::service::Service;
use crate::sockets::{Pool, Sockets};
use crate::takeover::send::Exported;
use crate::takeover::{borrow, receive};
use crate::{keywords, listening, version};
use rustix::process::{Signal, kill_process, setpriority_process};
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use terse_config::{Source, condition};

/// Runs the program and returns what it ends with.
pub fn live(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::parse(words) {
        Ok(arguments) => arguments,
        Err(misuse) => {
            let report = Report::default();
            report.alert(&misuse);
            report.error_text("Usage: terse -f <file|folder> [option]...   (terse -h lists the options)\n");
            return ExitCode::FAILURE;
        }
    };
    let report = Report { quiet: arguments.quiet && !arguments.verbose, talks: arguments.talks() };
    match &arguments.action {
        Action::Version { long } => answer(version::text(&arguments.program, *long)),
        Action::BareVersion(part) => answer(format!("{}\n", version::bare(*part))),
        Action::Help => answer(format!("Usage: terse -f <file|folder> [option]...\n\n{}", flags::help())),
        Action::Condition(text) => evaluate(text, &arguments, &report),
        Action::Check | Action::Run => with_configuration(arguments, report),
    }
}

fn answer(text: String) -> ExitCode {
    print(text);
    ExitCode::SUCCESS
}

/// `-cc`: 0 true, 1 false, 2 no answer.
fn evaluate(text: &str, arguments: &Arguments, report: &Report) -> ExitCode {
    match condition::evaluate_argument(text, &environment(arguments, &[])) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report.alert(format_args!("config : Failed to evaluate condition: {error}"));
            ExitCode::from(2)
        }
    }
}

fn with_configuration(arguments: Arguments, mut report: Report) -> ExitCode {
    for (option, why) in &arguments.accepted {
        report.detail(format_args!("{option} changes nothing here: {why}"));
    }
    let read = configuration::sources(&arguments, &report)
        .and_then(|sources| configuration::understand(&arguments, &sources, &report).map(|understood| (sources, understood)));
    let Ok((sources, (configuration, remarks))) = read else { return ExitCode::FAILURE };
    if let Some(classes) = &arguments.keyword_classes {
        print(keywords::dump(classes));
    }
    if arguments.action == Action::Check {
        return check(&configuration, remarks, &report);
    }
    report.quiet |= configuration.process.quiet && !arguments.verbose && !arguments.debug;
    run(&arguments, &sources, configuration, report)
}

/// `-c`: 0 valid, 2 valid and without a listener.
fn check(configuration: &Configuration, remarks: Remarks, report: &Report) -> ExitCode {
    if remarks.warnings {
        report.answer("Warnings were found.");
    }
    if configuration.wanted.is_empty() {
        report.answer("Configuration file has no error but will not start (no listener) => exit(2).");
        return ExitCode::from(2);
    }
    if report.talks {
        report.answer("Configuration file is valid");
    }
    ExitCode::SUCCESS
}

fn run(arguments: &Arguments, sources: &[Source], configuration: Configuration, report: Report) -> ExitCode {
    if configuration.wanted.is_empty() {
        report.alert("No enabled listener found (check for 'bind' directives) ! Exiting.");
        return ExitCode::FAILURE;
    }
    match enter_background(arguments, sources, configuration, &report).and_then(|(on, launch)| start(arguments, on, launch, report))
    {
        Ok(outcome) => {
            for (worker, reason) in &outcome.failures {
                report.alert(format_args!("Worker {worker} failed: {reason}"));
            }
            exit_code(&outcome, arguments.service)
        }
        Err(reasons) => {
            reasons.iter().for_each(|reason| report.alert(reason));
            ExitCode::FAILURE
        }
    }
}

/// Goes to the background if that is wanted.
fn enter_background(
    arguments: &Arguments,
    sources: &[Source],
    configuration: Configuration,
    report: &Report,
) -> Result<(Configuration, Option<Launch>), Vec<String>> {
    renice(configuration.process.nice.start, report);
    daemon::hold_standard_streams().map_err(because("Cannot open /dev/null"))?;
    if !arguments.daemon && (!configuration.process.daemon || arguments.stays_in_foreground()) {
        return Ok((configuration, None));
    }
    let launch = daemon::detach().map_err(because("Cannot fork"))?;
    // The process has another number now, which expressions hold that were compiled before.
    let silent = Report { quiet: true, ..*report };
    match configuration::understand(arguments, sources, &silent) {
        Ok((configuration, _)) => Ok((configuration, Some(launch))),
        Err(Unusable) => Err(vec!["The configuration cannot be read again.".into()]),
    }
}

/// From the configuration to the end of serving. Errors are reasons why it did not begin to.
fn start(
    arguments: &Arguments,
    configuration: Configuration,
    launch: Option<Launch>,
    report: Report,
) -> Result<Outcome, Vec<String>> {
    let Configuration { plan, process, identity, limits, wanted } = configuration;
    for outcome in [limits.apply(), arguments.memory_limit_mib.map_or(Ok(()), limits::limit_memory)] {
        match outcome {
            Err(refusal) if process.lenient_limits => report.warn(refusal),
            Err(refusal) => return Err(vec![refusal.to_string()]),
            Ok(()) => {}
        }
    }
    let mut pool = sockets_of_before(arguments, &report)?;
    let mut sockets = Sockets::open(&wanted, &mut pool).map_err(|refusals| {
        let last = "Some protocols failed to start their listeners! Exiting.".to_owned();
        refusals.iter().map(ToString::to_string).chain([last]).collect::<Vec<_>>()
    })?;
    let exported = Arc::new(Exported::default());
    for listening in &sockets.list {
        exported.add(&listening.socket, listening.interface.as_deref()).map_err(because("Cannot duplicate a listener"))?;
    }
    let supervisor = Supervisor::new(std::env::var("NOTIFY_SOCKET").ok().as_deref());
    if let Some(path) = pid_path(arguments, &process.pidfile, launch.is_some()) {
        pidfile::write(&path).map_err(|error| vec![format!("Cannot create pidfile {}: {error}", path.display())])?;
    }
    sockets.publish().map_err(|(path, error)| vec![format!("Cannot rename to {}: {error}", path.display())])?;
    if let Some(root) = &process.chroot {
        identity::enter_root(root).map_err(|refusal| vec![refusal.to_string()])?;
    }
    dismiss(arguments, &report);
    identity.assume().map_err(|refusal| vec![refusal.to_string()])?;
    identity::settle_rights(&process).unwrap_or_else(|error| report.warn(format_args!("Cannot give up rights: {error}")));
    renice(process.nice.run, &report);
    // Sockets of the process before that nobody asked for are closed here.
    drop(pool);
    report.detail(format_args!("{} connections, {} workers.", limits.connections, plan.process.workers));
    let plan = Arc::new(plan);
    let listeners = listening::deal(std::mem::take(&mut sockets.list), &plan);
    let service = Service { plan, listeners, exported, process, supervisor, report };
    service.run(|| leave_terminal(launch, &report)).map_err(because("Cannot start"))
}

/// The listening sockets of the process that this one replaces.
fn sockets_of_before(arguments: &Arguments, report: &Report) -> Result<Pool, Vec<String>> {
    let nothing = Path::new("/dev/null");
    if let Some(path) = arguments.takeover.as_deref().filter(|path| *path != nothing) {
        return receive::receive(path)
            .map_err(because(&format!("Failed to get the sockets from the old process at {}", path.display())));
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

/// Tells the processes that this one replaces to go.
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

/// Where the process's number is written: a file on the command line always counts, one in the configuration only where somebody
/// looks for it, so that a run by hand does not replace the service's.
fn pid_path(arguments: &Arguments, configured: &Option<String>, in_background: bool) -> Option<PathBuf> {
    let looked_for = in_background || arguments.service == Standing::Notify;
    arguments.pidfile.clone().or_else(|| configured.as_ref().filter(|_| looked_for).map(PathBuf::from))
}

fn leave_terminal(launch: Option<Launch>, report: &Report) -> std::io::Result<()> {
    match launch {
        Some(launch) => launch.complete(),
        None if report.quiet => daemon::silence(),
        None => Ok(()),
    }
}

fn renice(nice: Option<i32>, report: &Report) {
    if let Some(nice) = nice
        && let Err(error) = setpriority_process(None, nice)
    {
        report.warn(format_args!("Cannot set the priority to {nice}: {error}"));
    }
}

/// A supervisor is told which signal ended the process, as a shell would tell it.
fn exit_code(outcome: &Outcome, standing: Standing) -> ExitCode {
    match (outcome.signal, standing) {
        _ if !outcome.failures.is_empty() => ExitCode::FAILURE,
        (Some(signal), Standing::Notify) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        _ => ExitCode::SUCCESS,
    }
}

fn because<E: Display>(what: &str) -> impl FnOnce(E) -> Vec<String> {
    let what = what.to_owned();
    move |error| vec![format!("{what}: {error}")]
}
