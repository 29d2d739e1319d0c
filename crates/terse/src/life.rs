//! The order in which a process lives.

use crate::args::{Action, Arguments, flags};
use crate::environment::environment;
use crate::report::{Report, print};
use crate::{files, keywords, version};
use std::ffi::OsString;
use std::process::ExitCode;
use terse_config::{Config, Diagnostics, Loader, Settings, Severity, condition};

/// Runs the program and returns what it ends with.
pub fn live(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::parse(words) {
        Ok(arguments) => arguments,
        Err(misuse) => {
            let report = Report::default();
            report.alert(&misuse);
            report.error_text(format_args!("Usage: terse -f <file|folder> [option]...   (terse -h lists the options)\n"));
            return ExitCode::FAILURE;
        }
    };
    let report = Report { quiet: arguments.quiet && !arguments.verbose, talks: arguments.talks() };
    match &arguments.action {
        Action::Version { long } => answer(version::text(&arguments.program, *long)),
        Action::BareVersion(part) => answer(format!("{}\n", version::bare(*part))),
        Action::Help => answer(format!("Usage: terse -f <file|folder> [option]...\n\n{}", flags::help())),
        Action::Condition(text) => evaluate(text, &arguments, &report),
        Action::Check | Action::Run => load(&arguments, &report).map_or_else(|exit| exit, |_| ExitCode::SUCCESS),
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

fn load(arguments: &Arguments, report: &Report) -> Result<Config, ExitCode> {
    if let Some(folder) = &arguments.folder
        && let Err(error) = std::env::set_current_dir(folder)
    {
        report.alert(format_args!("Could not change to directory {} : {error}", folder.display()));
        return Err(ExitCode::FAILURE);
    }
    let sources = files::read(&arguments.files).map_err(|missing| {
        missing.iter().for_each(|missing| report.alert(format_args!("config : {missing}")));
        ExitCode::FAILURE
    })?;
    let loader = Loader { tables: keywords::tables(), environment: environment(arguments, &sources) };
    let (config, diagnostics) = loader.load(&sources, Settings::default());
    report.diagnostics(&diagnostics);
    match usable(&diagnostics, arguments.zero_warning) {
        true => Ok(config),
        false => {
            report.alert("config : Fatal errors found in configuration.");
            Err(ExitCode::FAILURE)
        }
    }
}

fn usable(diagnostics: &Diagnostics, zero_warning: bool) -> bool {
    match diagnostics.worst() {
        Some(Severity::Alert) => false,
        Some(Severity::Warning) => !zero_warning,
        _ => true,
    }
}
