//! Lines of scripts, and about them: to the logs of the proxies that they concern, and to standard error.

use crate::lent::{self, Seen};
use crate::tuning::Tuning;
use std::io::Write;
use terse_proxy::log::{Journal, Level};
use terse_proxy::worker::Worker;

/// Writes a line in the name of a script.
pub(crate) fn say(tuning: &Tuning, level: Level, line: &[u8]) {
    // A line is one line, and has no control sequences for a terminal.
    let line: Vec<u8> = line.iter().map(|&byte| if byte.is_ascii_control() && byte != b'\t' { b' ' } else { byte }).collect();
    let heard = lent::see(|seen| match seen {
        Seen::Stream(stream) => to_stream(tuning, level, &line, &stream.facts),
        Seen::Env(env) => env.facts().is_some_and(|facts| to_stream(tuning, level, &line, facts)),
        Seen::Worker(worker) => to(tuning, worker, &worker.plan.journal, level, &line),
        Seen::Nothing => false,
    });
    if tuning.to_stderr.unwrap_or(!heard) {
        // A closed standard error gets no line.
        let _ = writeln!(std::io::stderr(), "[{}] ({}) : {}", level.name(), std::process::id(), String::from_utf8_lossy(&line));
    }
}

fn to_stream(tuning: &Tuning, level: Level, line: &[u8], facts: &terse_proxy::facts::Facts) -> bool {
    to(tuning, &facts.session.worker, &facts.frontend().log.journal, level, line)
}

/// Whether there is a logger that might have taken it.
fn to(tuning: &Tuning, worker: &Worker, journal: &Journal, level: Level, line: &[u8]) -> bool {
    if !tuning.to_loggers || journal.is_empty() {
        return false;
    }
    // A fetch may be evaluated by a line that is being written just now: then this one goes elsewhere.
    let Ok(mut logger) = worker.logger.try_borrow_mut() else { return false };
    if journal.wants(level) {
        logger.send(journal, level, line);
    }
    true
}
