//! The order in which a process lives.
//!
//! ```text
//! arguments -> answers that need no configuration
//!           -> configuration -> -c ends here
//!           -> to the background -> as a master: starts processes that live like this one, until the last has ended
//!                                -> otherwise, and as a master's worker (see crate::start):
//!
//! limits -> sockets: taken over, opened -> pid file -> sockets' names -> root folder
//!        -> the process before is told to go -> user and group -> serve -> the end
//! ```

use crate::args::{Action, Arguments, Service, flags};
use crate::configuration::{self, Configuration, Remarks, Unusable};
use crate::environment::environment;
use crate::master::attendant::Spawner;
use crate::master::command_line::CommandLine;
use crate::master::lifeline::Lifeline;
use crate::master::{Master, renewal};
use crate::process::daemon::{self, Launch, Null};
use crate::process::notify::Supervisor;
use crate::report::{Report, print};
use crate::start::{Reasons, Standing, because, leave_terminal, pid_path, renice, start, write_pid};
use crate::{keywords, version};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use terse_config::{Source, condition};

/// Runs the program and returns its exit code.
pub fn live(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let since = Instant::now();
    let words: Vec<OsString> = words.into_iter().collect();
    let arguments = match Arguments::parse(words.iter().cloned()) {
        Ok(arguments) => arguments,
        Err(misuse) => {
            let report = Report::default();
            if words.len() > 1 {
                report.alert(&misuse);
            }
            report.error_text(flags::COMMANDS);
            return ExitCode::FAILURE;
        }
    };
    let report = Report::new(arguments.quiet && !arguments.verbose, arguments.talks());
    match &arguments.action {
        Action::Version { long } => answer(version::text(&arguments.program, *long)),
        Action::BareVersion(part) => answer(format!("{}\n", version::bare(*part))),
        Action::Help => answer(flags::help()),
        Action::Print => answer(arguments.quick.file()),
        Action::Condition(text) => evaluate(text, &arguments, &report),
        Action::Check | Action::Run => {
            match renewal::State::of_this_process() {
                Ok(None) => {}
                Ok(Some(state)) => return resume(words, &arguments, state).unwrap_or_else(|reasons| fail(&report, &reasons)),
                Err(error) => return fail(&report, &[format!("The master cannot be taken over: {error}")]),
            }
            let folder = std::env::current_dir().map_err(|error| error.to_string());
            let ended = with_configuration(&Origin { words, folder, arguments, since }, report.clone());
            // A worker that fails to start has not reported the reason to its master yet.
            if let Ok(Some(lifeline)) = Lifeline::of_this_process() {
                let _ = lifeline.say(&version::in_lists(), &report.said());
            }
            ended
        }
    }
}

/// Origin of the process.
struct Origin {
    /// Arguments of the command line.
    words: Vec<OsString>,
    /// Working folder at the start, before `-C`.
    folder: Result<PathBuf, String>,
    /// The arguments, parsed.
    arguments: Arguments,
    /// Time of the start.
    since: Instant,
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

fn with_configuration(origin: &Origin, mut report: Report) -> ExitCode {
    let arguments = &origin.arguments;
    for (option, why) in &arguments.accepted {
        report.detail(format_args!("{option} changes nothing here: {why}"));
    }
    let read = configuration::sources(arguments, &report)
        .and_then(|sources| configuration::understand(arguments, &sources, &report).map(|understood| (sources, understood)));
    let Ok((sources, (configuration, remarks))) = read else { return ExitCode::FAILURE };
    if let Some(classes) = &arguments.keyword_classes {
        print(keywords::dump(classes));
    }
    if arguments.action == Action::Check {
        return check(&configuration, remarks, &report);
    }
    report.quiet |= configuration.process.quiet && !arguments.verbose && !arguments.debug;
    run(origin, &sources, configuration, report)
}

/// `-c`: 0 valid, 2 valid and without a listener.
fn check(configuration: &Configuration, remarks: Remarks, report: &Report) -> ExitCode {
    if remarks.warnings {
        report.answer("Warnings were found.");
    }
    if !configuration.listens() {
        report.answer("Configuration file has no error but will not start (no listener) => exit(2).");
        return ExitCode::from(2);
    }
    if report.talks {
        report.answer("Configuration file is valid");
    }
    ExitCode::SUCCESS
}

fn run(origin: &Origin, sources: &[Source], configuration: Configuration, report: Report) -> ExitCode {
    if !configuration.listens() {
        report.alert("No enabled listener found (check for 'bind' directives) ! Exiting.");
        return ExitCode::FAILURE;
    }
    serve(origin, sources, configuration, report.clone()).unwrap_or_else(|reasons| fail(&report, &reasons))
}

fn fail(report: &Report, reasons: &[String]) -> ExitCode {
    reasons.iter().for_each(|reason| report.alert(reason));
    ExitCode::FAILURE
}

fn serve(origin: &Origin, sources: &[Source], configuration: Configuration, report: Report) -> Result<ExitCode, Reasons> {
    let arguments = &origin.arguments;
    let lifeline = Lifeline::of_this_process().map_err(because("There is no master"))?;
    renice(configuration.process.nice.start, &report);
    daemon::hold_standard_streams().map_err(because("Cannot open /dev/null"))?;
    let (configuration, launch) = match lifeline {
        Some(_) => (configuration, None),
        None => enter_background(arguments, sources, configuration)?,
    };
    if lifeline.is_none() && (arguments.service != Service::Plain || configuration.process.master) {
        return supervise(origin, configuration, launch, &report);
    }
    if lifeline.is_none() && !arguments.master_sockets.is_empty() {
        return Err(vec!["-S opens the command line of a master: it needs -W, -Ws or 'master-worker' in 'global'.".into()]);
    }
    let outcome = start(arguments, configuration, Standing { launch, lifeline, since: origin.since }, report.clone())?;
    for (worker, reason) in &outcome.failures {
        report.alert(format_args!("Worker {worker} failed: {reason}"));
    }
    Ok(if outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Goes to the background if that is wanted.
fn enter_background(
    arguments: &Arguments,
    sources: &[Source],
    configuration: Configuration,
) -> Result<(Configuration, Option<Launch>), Reasons> {
    if !arguments.daemon && (!configuration.process.daemon || arguments.stays_in_foreground()) {
        return Ok((configuration, None));
    }
    let launch = daemon::detach().map_err(because("Cannot fork"))?;
    // The process has another number now, which expressions hold that were compiled before.
    match configuration::understand(arguments, sources, &Report::silent()) {
        Ok((configuration, _)) => Ok((configuration, Some(launch))),
        Err(Unusable) => Err(vec!["The configuration cannot be read again.".into()]),
    }
}

/// Starts processes that serve, until the last one has ended.
fn supervise(origin: &Origin, configuration: Configuration, launch: Option<Launch>, report: &Report) -> Result<ExitCode, Reasons> {
    let command_line = CommandLine::open(&origin.arguments, &configuration, origin.since)?;
    let process = configuration.process;
    let program = renewal::program(&origin.words).map_err(because("Cannot find the program"))?;
    let folder = origin.folder.clone().map_err(because("Cannot find the folder"))?;
    let spawner = Spawner { program, words: origin.words.clone(), folder, tell: None };
    let supervisor = Supervisor::new(std::env::var("NOTIFY_SOCKET").ok().as_deref());
    let pid_path = pid_path(&origin.arguments, process.pidfile.as_deref(), true);
    let ready = || {
        if let Some(path) = pid_path {
            write_pid(&path).map_err(|reasons| io::Error::other(reasons.join("\n")))?;
        }
        leave_terminal(launch, &Null::open()?, report)
    };
    Master::new(spawner, supervisor, process.most_reloads, report).run(command_line, ready).map_err(because("Cannot start"))
}

/// Continues as the master whose program this one has replaced.
fn resume(words: Vec<OsString>, arguments: &Arguments, state: renewal::State) -> Result<ExitCode, Reasons> {
    let report = Report::new(state.quiet, arguments.talks());
    let command_line = CommandLine::restored(arguments, &state.commands)?;
    let program = renewal::program(&words).map_err(because("Cannot find the program"))?;
    let spawner = Spawner { program, words, folder: state.folder.clone(), tell: None };
    let supervisor = Supervisor::new(std::env::var("NOTIFY_SOCKET").ok().as_deref());
    report.notice(format_args!("The master is version {} from here on.", version::in_lists()));
    let master = Master::resume(spawner, supervisor, state, &report).map_err(because("The master cannot be taken over"))?;
    master.run(command_line, || Ok(())).map_err(because("Cannot go on"))
}
