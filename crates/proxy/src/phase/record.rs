//! A stream's lines in the log: at its end, at the steps that the configuration asks for, and when a rule demands it.
//!
//! ```text
//!   accept -> request -> connect -> response -> close        log-steps: any of them
//!                           |           |         |
//!               option logasap:  tcp    |  http   |
//!               otherwise:              |         +-- once
//! ```

use crate::facts::{Facts, LogLevel};
use crate::log::{Level, Line, Origin, Profile};
use crate::plan::LogPlan;
use crate::session::Session;
use crate::settings::Mode;
use crate::stream::Stream;
use std::rc::Rc;
use terse_message::{Abort, Cause, Phase, Who};

/// Logs a connection that was accepted, and each further request on it, where the configuration has targets and no format.
pub fn accepted(session: &Rc<Session>) {
    let plan = &session.frontend().log;
    let Some(format) = plan.connect_format.as_ref().filter(|_| plan.journal.wants(plan.level)) else { return };
    let mut line = session.worker.take_scratch();
    format.write(&Stream::new(session, session.accepted).env(), &mut line);
    session.worker.logger.borrow_mut().send(&plan.journal, plan.level, &line);
    session.worker.give_scratch(line);
}

/// Logs a connection that failed before there could be a stream on it.
pub fn unborn(session: &Rc<Session>, why: &str) {
    let plan = &session.frontend().log;
    let level = if plan.settings.separate_errors { Level::Error } else { Level::Info };
    let mut stream = Stream::new(session, session.accepted);
    stream.facts.is_unborn = true;
    stream.facts.abort = Some(Abort::new(Who::Proxy, Phase::Request, Cause::Malformed));
    if plan.error_format.is_some() {
        return write(&stream, plan, level, Origin::Error, None);
    }
    let Some(format) = plan.failure_format.as_ref().filter(|_| plan.journal.wants(level)) else { return };
    let mut line = session.worker.take_scratch();
    format.write(&stream.env(), &mut line);
    let bind = &session.worker.plan.binds[session.bind];
    match &bind.settings.name {
        Some(name) => line.extend_from_slice(name.as_bytes()),
        None => line.extend_from_slice(bind.id.to_string().as_bytes()),
    }
    line.extend_from_slice(b": ");
    line.extend_from_slice(why.as_bytes());
    session.worker.logger.borrow_mut().send(&plan.journal, level, &line);
    session.worker.give_scratch(line);
}

/// Logs a stream that has come to a step before its end, where `log-steps` asks for that.
pub fn step(stream: &Stream, origin: Origin) {
    if stream.facts.frontend().log.settings.steps.is_some_and(|steps| steps.has(origin)) {
        let trouble = is_trouble(&stream.facts);
        log(stream, origin, trouble);
    }
}

/// The same for a step at which `option logasap` logs a stream of a mode, and not again at its end.
pub fn step_or_soon(stream: &mut Stream, origin: Origin, mode: Mode) {
    let frontend = stream.facts.frontend();
    let settings = &frontend.log.settings;
    match settings.steps {
        Some(_) => step(stream, origin),
        None if settings.as_soon_as_possible && frontend.mode == mode => {
            log(stream, origin, is_trouble(&stream.facts));
            stream.facts.log_level = LogLevel::Silent;
        }
        None => {}
    }
}

/// Logs a stream that has ended.
pub fn end(stream: &Stream) {
    let frontend = stream.facts.frontend();
    let settings = &frontend.log.settings;
    // A client's connection that never made a request is no transaction; over bytes every connection is one.
    let unread = frontend.mode == Mode::Http && stream.facts.version.is_none();
    let is_null = stream.facts.figures.bytes_in.get() == 0 && !stream.facts.has_spoken;
    if is_null && settings.dont_log_null && (unread || frontend.mode != Mode::Http) {
        return;
    }
    let origin = if unread { Origin::Error } else { Origin::Close };
    if unread || settings.steps.is_none_or(|steps| steps.has(Origin::Close)) {
        log(stream, origin, is_trouble(&stream.facts));
    }
}

/// Logs a stream by a rule (`do-log`). `profile` precedes those of the targets.
pub fn now(stream: &Stream, origin: Origin, profile: Option<&Profile>) {
    let plan = &stream.facts.frontend().log;
    let level = match stream.facts.log_level {
        LogLevel::Silent => return,
        LogLevel::At(level) => level,
        LogLevel::Usual => Level::Info,
    };
    write(stream, plan, level, origin, profile);
}

fn log(stream: &Stream, origin: Origin, trouble: bool) {
    let plan = &stream.facts.frontend().log;
    let Some(level) = plan.settings.level(trouble) else { return };
    let level = match stream.facts.log_level {
        LogLevel::Silent => return,
        LogLevel::At(level) => level,
        LogLevel::Usual => level,
    };
    write(stream, plan, level, origin, None);
    stream.facts.frontend().tally.of(stream.facts.session.worker.index).logged.add(1);
}

fn write(stream: &Stream, plan: &LogPlan, level: Level, origin: Origin, profile: Option<&Profile>) {
    if !plan.journal.wants(level) {
        return;
    }
    let by_profiles = profile.is_some() || plan.journal.has_profiles();
    if plan.format.is_none() && !by_profiles {
        return;
    }
    stream.facts.origin.set(origin);
    let env = stream.env();
    let worker = &stream.facts.session.worker;
    let (mut line, mut data) = (worker.take_scratch(), worker.take_scratch());
    let format = plan.error_format.as_ref().filter(|_| origin == Origin::Error).or(plan.format.as_ref());
    if let Some(format) = format {
        format.write(&env, &mut line);
    }
    if let Some(format) = plan.structured_data.as_ref().filter(|_| plan.journal.shows_structured_data()) {
        format.write(&env, &mut data);
    }
    let mut logger = worker.logger.borrow_mut();
    match by_profiles {
        false => logger.send_structured(&plan.journal, level, &data, &line),
        true => {
            let own = Line { level, structured_data: &data, body: &line };
            logger.send_by_profiles(&plan.journal, own, origin, profile, &mut |format, out| format.write(&env, out));
        }
    }
    drop(logger);
    worker.give_scratch(data);
    worker.give_scratch(line);
}

/// Whether the stream counts as an error for logs (`option dontlog-normal`, `option log-separate-errors`).
pub fn is_trouble(facts: &Facts) -> bool {
    let failed = facts.abort.is_some_and(|abort| abort.who != Who::Local);
    failed || facts.status >= 500 || facts.retries > 0 || facts.redispatched
}
