//! Waiting: for a time, or until something can be done.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::commands::{backend, membership};
use crate::context::Context;
use crate::settings::Level;
use std::time::{Duration, Instant};
use terse_config::TimeUnit;
use terse_config::units::parse_time_in;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "wait",
    usage: "wait { -h | <delay> } [srv-removable <bk>/<srv> | be-removable <bk>]",
    summary: "wait for so many milliseconds, or until a server or a backend can be removed",
    level: Level::Admin,
    run: wait,
}];

/// Condition that a client waits for.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Latest end of the wait.
    pub(crate) until: Instant,
    /// Subject that is to be removable.
    removable: Option<Named>,
}

/// Subject that is to be removable, by its name.
#[derive(Clone, Debug)]
enum Named {
    Server(String),
    Backend(String),
}

impl Waiting {
    /// Outcome of the wait, if it is over. `None`: not yet.
    pub(crate) fn outcome(&self, context: &Context, now: Instant) -> Option<Outcome> {
        let removable = self.removable.as_ref().map(|named| match named {
            Named::Server(server) => membership::removable(context, server),
            Named::Backend(named) => backend::removable(context, named),
        });
        let missing = match removable {
            Some(Ok(())) => return Some(done()),
            Some(Err((false, why))) => return Some(Err(Message::error(format!("Failed. {why}")))),
            Some(Err((true, why))) => Some(why),
            None => None,
        };
        (now >= self.until).then(|| match missing {
            Some(why) => Err(Message::error(format!("Wait delay expired. {why}"))),
            None => done(),
        })
    }

    /// Time to the next look.
    pub(crate) fn pause(&self, now: Instant) -> Duration {
        let left = self.until.saturating_duration_since(now);
        if self.removable.is_some() { left.min(LOOK) } else { left }
    }
}

/// Interval of looks whether the condition holds.
const LOOK: Duration = Duration::from_millis(10);

/// Message for a client that has closed its side with no command left.
pub(crate) fn interrupted() -> Outcome {
    Err(Message::error("Interrupted."))
}

fn done() -> Outcome {
    Ok(Answer::Said(Message::info("Done.")))
}

fn wait(call: &mut Call<'_>) -> Outcome {
    let delay = match call.arg(0) {
        "" => return Err(Message::error("Expects a duration in milliseconds.")),
        "-h" => return Ok(Answer::Text(USAGE.into())),
        word => parse_time_in(word, TimeUnit::Milliseconds).ok().filter(|delay| *delay >= Duration::from_millis(1)),
    };
    let delay = delay.ok_or_else(|| Message::error("Invalid duration."))?;
    let removable = match (call.arg(1), call.arg(2)) {
        ("", _) => None,
        ("srv-removable", "") => return Err(Message::error("Missing server name (<backend>/<server>).")),
        ("srv-removable", server) => Some(Named::Server(server.to_owned())),
        ("be-removable", "") => return Err(Message::error("Missing backend name.")),
        ("be-removable", backend) => Some(Named::Backend(backend.to_owned())),
        ("-h", _) => return Ok(Answer::Text(USAGE.into())),
        _ => return Err(Message::error(USAGE.trim_end())),
    };
    let until = Instant::now().checked_add(delay).ok_or_else(|| Message::error("Invalid duration."))?;
    call.client.waiting = Some(Waiting { until, removable });
    Ok(Answer::Done)
}

const USAGE: &str = "Usage: wait {-h|<duration>} [srv-removable <bk>/<srv> | be-removable <bk>]\n  \
    -h: shows this.\n  \
    <duration>: how long at most; in milliseconds, or in the unit behind it: us, ms, s, m, h, d.\n  \
    srv-removable <bk>/<srv>: until 'del server' would remove this server;\n  \
    be-removable <bk>: until 'del backend' would remove this backend; without either, for all of the time.\n";
