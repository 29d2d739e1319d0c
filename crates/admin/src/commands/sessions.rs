//! Open streams, which HAProxy calls sessions: listed, and ended.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use terse_balance::Server;
use terse_config::TimeUnit;
use terse_config::units::parse_time_in;
use terse_message::Who;
use terse_proxy::log::Zone;
use terse_proxy::plan::{Backend, Plan};
use terse_proxy::registry::{Listed, Streams};
use terse_proxy::settings::Mode;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "show sess",
        usage: "show sess [<id>|all|help] [older <age>] [frontend <fe>|backend <bk>|server <bk>/<srv>]",
        summary: "list the open streams, or show one or all at length",
        level: Level::Operator,
        run: show,
    },
    Command { name: "shutdown session", usage: "shutdown session <id>", summary: "end a stream", level: Level::Admin, run: end },
    Command {
        name: "shutdown sessions server",
        usage: "shutdown sessions server <bk>/<srv>",
        summary: "end the streams of a server",
        level: Level::Admin,
        run: end_of_server,
    },
];

/// Selection and form of streams.
#[derive(Default)]
struct Wanted {
    /// ID of the only stream.
    id: Option<u64>,
    at_length: bool,
    least_age: Duration,
    frontend: Option<usize>,
    backend: Option<usize>,
    server: Option<usize>,
}

fn show(call: &mut Call<'_>) -> Outcome {
    if call.arg(0) == "help" {
        return Ok(Answer::Text(HELP.into()));
    }
    let wanted = wanted(call)?;
    let plan = &call.context.plan;
    let shown = Shown { plan, backends: &plan.backends.now(), zone: plan.sinks.zone(), now: SystemTime::now() };
    let mut text = String::new();
    for listed in plan.registries.list().iter().filter(|listed| wanted.has(listed)) {
        match wanted.at_length {
            true => shown.at_length(listed, &mut text),
            false => shown.line(listed, &mut text),
        };
    }
    match text.is_empty() && wanted.id.is_some() {
        true => Err(Message::error("Session not found.")),
        false => Ok(Answer::Text(text)),
    }
}

fn wanted(call: &Call<'_>) -> Result<Wanted, Message> {
    let mut wanted = Wanted::default();
    let mut at = 0;
    match call.arg(0) {
        "all" => {
            wanted.at_length = true;
            at = 1;
        }
        word if let Some(id) = id(word) => {
            (wanted.id, wanted.at_length) = (Some(id), true);
            at = 1;
        }
        _ => {}
    }
    while at < call.args.len() {
        let value = call.arg(at + 1);
        match call.arg(at) {
            "older" if value.is_empty() => return Err(Message::error("Expects a minimum age (in seconds by default).")),
            "older" => wanted.least_age = parse_time_in(value, TimeUnit::Seconds).map_err(|_| Message::error("Invalid age."))?,
            "frontend" => {
                let frontend = call.frontend(value).ok_or_else(|| Message::error("No such frontend."))?;
                wanted.frontend = call.context.plan.frontends.iter().position(|other| std::ptr::eq(other, frontend));
            }
            "backend" => {
                wanted.backend = Some(call.backend(value).ok_or_else(|| Message::error("No such backend."))?.number);
            }
            "server" => wanted.server = Some(call.server(at + 1)?.1.slot()),
            other => return Err(Message::error(format!("Unsupported option '{other}', try 'help' for more info."))),
        }
        at += 2;
    }
    Ok(wanted)
}

impl Wanted {
    fn has(&self, listed: &Listed) -> bool {
        self.id.is_none_or(|id| listed.id == id)
            && listed.age >= self.least_age
            && self.frontend.is_none_or(|frontend| listed.frontend == frontend)
            && self.backend.is_none_or(|backend| listed.backend == Some(backend))
            && self.server.is_none_or(|server| listed.server == Some(server))
    }
}

fn end(call: &mut Call<'_>) -> Outcome {
    let id = id(call.arg(0)).ok_or_else(|| Message::error("Session pointer expected (use 'show sess')."))?;
    match call.context.plan.registries.end_one(id, Who::Killed) {
        true => Ok(Answer::Done),
        false => Err(Message::error("No such session (use 'show sess').")),
    }
}

fn end_of_server(call: &mut Call<'_>) -> Outcome {
    let (_, server) = call.server(0)?;
    call.context.plan.registries.end(Streams::OnServer(server.slot()), Who::Killed);
    Ok(Answer::Done)
}

/// The number of a stream, as it is shown: not 0, which no pointer is.
fn id(word: &str) -> Option<u64> {
    let shown = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    shown.ok()?.checked_sub(1)
}

/// Names and times for streams.
struct Shown<'a> {
    plan: &'a Plan,
    backends: &'a [Arc<Backend>],
    zone: &'a Zone,
    now: SystemTime,
}

impl Shown<'_> {
    /// Backend; before one is chosen, that of its frontend's `listen`.
    fn backend(&self, listed: &Listed) -> Option<&Backend> {
        let chosen = listed.backend.and_then(|number| self.backends.iter().find(|backend| backend.number == number));
        chosen.or_else(|| self.plan.frontends.get(listed.frontend)?.own_backend.as_ref()).map(|backend| &**backend)
    }

    fn server(&self, listed: &Listed) -> Option<Arc<Server>> {
        let servers = self.backend(listed)?.farm.servers();
        servers.iter().find(|server| Some(server.slot()) == listed.server).map(Arc::clone)
    }

    /// A line as in HAProxy; figures of HAProxy's own buffers and tasks are 0 or empty.
    fn line(&self, listed: &Listed, out: &mut String) {
        let frontend = self.plan.frontends.get(listed.frontend).map_or("", |frontend| &frontend.name);
        let backend = self.backend(listed).map_or("<NONE>", |backend| &backend.name);
        let server = self.server(listed);
        let server = server.as_ref().map_or("<none>".into(), |server| server.name().to_string());
        let fd = |socket: Option<i32>| socket.unwrap_or(-1);
        let _ = writeln!(
            out,
            "{:#x}: proto={} src={} fe={frontend} be={backend} srv={server} ts=00 epoch=0 age={} calls=0 rate=0 cpu=0 lat=0 \
             rq[f=000000h,i=0,an=00h,ax=] rp[f=000000h,i=0,an=00h,ax=] scf=[8,0h,fd=1/{},rex=,wex=] scb=[{},1h,fd=1/{},rex=,wex=] \
             exp= rc=0 c_exp=",
            listed.id + 1,
            protocol(listed),
            self.source(listed),
            age(listed.age),
            fd(listed.sockets.0),
            if listed.sockets.1.is_some() { 8 } else { 0 },
            fd(listed.sockets.1),
        );
    }

    /// Several lines, with the figures that exist here.
    fn at_length(&self, listed: &Listed, out: &mut String) {
        let since = self.now.checked_sub(listed.age).and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let time = self.zone.at(i64::try_from(since.as_secs()).unwrap_or_default());
        let _ = writeln!(
            out,
            "{:#x}: [{:02}/{}/{:04}:{:02}:{:02}:{:02}.{:06}] id={} proto={} source={}",
            listed.id + 1,
            time.day,
            time.month_name(),
            time.year,
            time.hour,
            time.minute,
            time.second,
            since.subsec_micros(),
            listed.id,
            protocol(listed),
            self.source(listed),
        );
        if let (Some(frontend), Some(bind)) = (self.plan.frontends.get(listed.frontend), self.plan.binds.get(listed.bind)) {
            let (name, id, mode) = (&frontend.name, frontend.id, mode(frontend.mode));
            let listener = bind.settings.name.as_deref().unwrap_or("?");
            let address = listed.local.map_or(format!("unix:{}", bind.id), |local| plain(&local));
            let _ = writeln!(out, "  frontend={name} (id={id} mode={mode}), listener={listener} (id={}) addr={address}", bind.id);
        }
        let _ = match self.backend(listed) {
            Some(backend) => writeln!(out, "  backend={} (id={} mode={})", backend.name, backend.id, mode(backend.mode)),
            None => writeln!(out, "  backend=<NONE> (id=-1 mode=-)"),
        };
        let _ = match self.server(listed) {
            Some(server) => writeln!(out, "  server={} (id={}) addr={}", server.name(), server.id(), server.address()),
            None => writeln!(out, "  server=<none> (id=-1)"),
        };
        let [from_client, to_server, from_server, to_client] = listed.bytes;
        let state = char::from(listed.phase.letter());
        let _ = writeln!(
            out,
            "  age={} state={state} req=(in={from_client} out={to_server}) res=(in={from_server} out={to_client})",
            age(listed.age)
        );
    }

    fn source(&self, listed: &Listed) -> String {
        let bind = || self.plan.binds.get(listed.bind).map_or(0, |bind| bind.id);
        listed.client.map_or_else(|| format!("unix:{}", bind()), |client| plain(&client))
    }
}

/// An address and its port, without brackets.
fn plain(address: &SocketAddr) -> String {
    format!("{}:{}", address.ip(), address.port())
}

fn protocol(listed: &Listed) -> &'static str {
    match listed.client {
        Some(SocketAddr::V4(_)) => "tcpv4",
        Some(SocketAddr::V6(_)) => "tcpv6",
        None => "unix_stream",
    }
}

fn mode(mode: Mode) -> &'static str {
    if mode == Mode::Http { "http" } else { "tcp" }
}

/// A time in its two largest units: `1m5s`.
fn age(age: Duration) -> String {
    let mut left = age.as_secs();
    let mut text = String::new();
    let mut units = 0;
    for (unit, seconds) in [('d', 86400), ('h', 3600), ('m', 60), ('s', 1)] {
        let count = left / seconds;
        left %= seconds;
        if count > 0 && units < 2 {
            units += 1;
            let _ = write!(text, "{count}{unit}");
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

const HELP: &str = "Usage: show sess [<id> | all | help] [<options>*]\n  \
    <id>: the stream of that number, at length\n  all: all streams, at length\n\
    Options:\n  older <age>: only streams that are older\n  server <b/s>, backend <b>, frontend <f>: only its streams\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn ages_have_two_units() {
        let shown = [0, 59, 60, 3605, 90061].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0s", "59s", "1m", "1h5s", "1d1h"]);
    }

    #[test]
    fn what_is_wrong_is_told_as_by_haproxy() {
        let mut talk = Talk::new(WEB);
        for (command, answer) in [
            ("shutdown session", "Session pointer expected (use 'show sess').\n\n"),
            ("shutdown session 0x0", "Session pointer expected (use 'show sess').\n\n"),
            ("shutdown sessions server", "Require 'backend/server'.\n\n"),
            ("shutdown sessions server be/x", "No such server.\n\n"),
            ("shutdown sessions server be/a", "\n"),
            ("show sess older", "Expects a minimum age (in seconds by default).\n\n"),
            ("show sess frontend x", "No such frontend.\n\n"),
            ("show sess x", "Unsupported option 'x', try 'help' for more info.\n\n"),
        ] {
            assert_eq!(talk.says(command), answer, "{command}");
        }
        assert!(talk.says("show sess help").starts_with("Usage: show sess "));
    }
}
