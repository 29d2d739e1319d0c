//! A proxy's log: targets opened, formats compiled.

use super::Host;
use super::drafts::Draft;
use crate::log::{
    CONNECT_HTTP_FORMAT, CONNECT_TCP_FORMAT, Directory, FAILURE_FORMAT, FormatText, Journal, Level, LogSettings, Logger, Sinks,
};
use crate::plan::LogPlan;
use std::sync::{Arc, Mutex, PoisonError};
use terse_config::{Diagnostic, Diagnostics, Severity};
use terse_sample::{AclSet, Compiler, LogFormat, Needs, Registry, Usage};

/// Means that all logs are made with.
pub(super) struct Logs<'a> {
    pub(super) global: &'a LogSettings,
    pub(super) host: &'a Host,
    pub(super) registry: &'a mut Registry,
    /// The objects that targets name.
    pub(super) directory: Directory,
}

impl Logs<'_> {
    /// Opens the targets of a section; those that cannot be opened are reported.
    pub(super) fn journal(&mut self, settings: &LogSettings, diagnostics: &mut Diagnostics) -> Journal {
        let tag = settings.tag.as_ref().or(self.global.tag.as_ref()).unwrap_or(&self.host.tag);
        let host = self.global.host_name.as_ref();
        let opened = Journal::open(&settings.targets(self.global), tag, host, &mut self.directory).or_else(|errors| {
            for error in errors {
                diagnostics.push(Diagnostic::new(Severity::Alert, &error.place, error.reason).hint(error.hint));
            }
            Journal::open(&[], tag, host, &mut self.directory)
        });
        opened.unwrap_or_else(|_| unreachable!("nothing can fail to be opened where there is nothing"))
    }

    /// The log of a front half.
    pub(super) fn plan(&mut self, draft: &Draft, diagnostics: &mut Diagnostics) -> LogPlan {
        let settings = &draft.log;
        let journal = self.journal(settings, diagnostics);
        let (format, warning) = settings.traffic_format(draft.is_http());
        if let (Some(format), Some(warning)) = (&format, warning) {
            diagnostics.warn(&format.place, format!("{}: {warning}", draft.label()));
        }
        let text = if draft.is_http() { CONNECT_HTTP_FORMAT } else { CONNECT_TCP_FORMAT };
        let connect = FormatText { text: text.as_bytes().to_vec(), place: draft.place.clone() };
        let connect = (format.is_none() && settings.steps.is_none() && !journal.is_empty()).then_some(&connect);
        let failure = FormatText { text: FAILURE_FORMAT.into(), place: draft.place.clone() };
        let (line, own) = ((Needs::ALL, Usage::Log), (&draft.name, &draft.acls));
        LogPlan {
            format: self.compile(format.as_ref(), line, own, diagnostics),
            connect_format: self.compile(connect, (Needs::NONE, Usage::Log), own, diagnostics),
            error_format: self.compile(settings.error_format.as_ref(), line, own, diagnostics),
            failure_format: self.compile((!journal.is_empty()).then_some(&failure), (Needs::NONE, Usage::Log), own, diagnostics),
            structured_data: self.compile(settings.structured_data.as_ref(), line, own, diagnostics),
            unique_id: self.compile(settings.unique_id_format.as_ref(), (Needs::REQUEST, Usage::Id), own, diagnostics),
            unique_id_header: settings.unique_id_header.as_ref().map(|name| Arc::from(name.as_bytes())),
            level: Level::Info,
            settings: settings.clone(),
            journal,
        }
    }

    /// Compiles a format; faults are reported.
    pub(super) fn compile(
        &mut self,
        text: Option<&FormatText>,
        (have, usage): (Needs, Usage),
        (section, acls): (&Arc<str>, &AclSet),
        diagnostics: &mut Diagnostics,
    ) -> Option<LogFormat> {
        let text = text?;
        let mut warnings = Vec::new();
        let mut compiler = Compiler {
            registry: &mut *self.registry,
            acls,
            have,
            warnings: &mut warnings,
            word: 0,
            section: section.clone(),
            place: text.place.clone(),
        };
        let outcome = compiler.log_format(&text.text, usage);
        let outcome = outcome.and_then(|format| compiler.check_needs(format.needs(), "the format").map(|()| format));
        for warning in warnings {
            diagnostics.push(Diagnostic::new(Severity::Warning, &text.place, warning.reason).hint(warning.hint));
        }
        outcome
            .map_err(|fault| {
                let reason = format!("failed to parse log format: {}", fault.reason);
                diagnostics.push(Diagnostic::new(Severity::Alert, &text.place, reason).hint(fault.hint));
            })
            .ok()
    }
}

/// Takes the lines of a farm: its backend's log, and where else the host wants them.
pub(super) fn farm_journal(journal: Arc<Journal>, logger: Arc<Speaker>, host: &Host) -> terse_balance::Journal {
    let notices = host.notices.clone();
    Arc::new(move |level, line| {
        if let Some(notices) = &notices {
            notices(level, line);
        }
        logger.say(&journal, level_of(level), line);
    })
}

fn level_of(level: terse_balance::Level) -> Level {
    match level {
        terse_balance::Level::Emergency => Level::Emergency,
        terse_balance::Level::Alert => Level::Alert,
        terse_balance::Level::Notice => Level::Notice,
    }
}

/// The logger of lines that no worker sends. It is made by the first line, which the process sends once it has forked.
pub(super) struct Speaker {
    sinks: Arc<Sinks>,
    logger: Mutex<Option<Logger>>,
}

impl Speaker {
    pub(super) fn new(sinks: &Arc<Sinks>) -> Arc<Speaker> {
        Arc::new(Speaker { sinks: sinks.clone(), logger: Mutex::new(None) })
    }

    fn say(&self, journal: &Journal, level: Level, line: &str) {
        if journal.wants(level) {
            let mut logger = self.logger.lock().unwrap_or_else(PoisonError::into_inner);
            logger.get_or_insert_with(|| Logger::new(&self.sinks)).send(journal, level, line.as_bytes());
        }
    }
}
