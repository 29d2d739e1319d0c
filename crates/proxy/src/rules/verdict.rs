//! End of the evaluation, and the stream's log: `allow`, `accept`, `reject`, `close`, `switch-mode`, `silent-drop`,
//! `strict-mode`, `set-log-level`.

use super::{ANY, Action, ActionWord, BOTH, CONTENT, Flow, REQUEST, RuleSet, SERVER_CONTENT, TCP, done};
use crate::changes::Farewell;
use crate::facts::LogLevel;
use crate::log::Level;
use crate::settings::Mode;
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope, SectionKind};
use terse_message::Protocol;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("allow", ANY, "", "Runs no further rule of this set.", |_, _, _| Ok(Box::new(Allow))),
    done("accept", TCP, "", "Runs no further rule of this set.", |_, _, _| Ok(Box::new(Allow))),
    done("reject", REQUEST | TCP, "", "Closes the connection without an answer.", |_, _, _| Ok(Box::new(Drop))),
    done("close", SERVER_CONTENT, "", "Closes the server's connection; in mode http once the response is complete.", |_, _, _| {
        Ok(Box::new(Close))
    }),
    done(
        "switch-mode",
        CONTENT,
        "http [proto { h1 | h2 }]",
        "Reads what comes on this connection as HTTP from here on.",
        switch_mode,
    ),
    done(
        "silent-drop",
        BOTH | TCP,
        "[rst-ttl <ttl>]",
        "Ends the connection so that the client does not notice: its reset dies at the first router, or at that one.",
        silent_drop,
    ),
    done("strict-mode", ANY, "{on | off}", "Whether an edit that cannot be done ends in an error.", strict_mode),
    done(
        "set-log-level",
        ANY | CONTENT | SERVER_CONTENT,
        "<level>",
        "Logs the stream at this level, or not at all with 'silent'.",
        set_log_level,
    ),
    done("set-nice", BOTH | CONTENT | SERVER_CONTENT, "<nice>", "Does nothing: streams have no priority.", set_nice),
];

struct Allow;

impl Action for Allow {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Stop
    }

    fn is_final(&self) -> bool {
        true
    }
}

struct Drop;

impl Action for Drop {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Drop
    }

    fn is_final(&self) -> bool {
        true
    }
}

struct SilentDrop {
    farewell: Farewell,
}

impl Action for SilentDrop {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.facts.changes().client_packets.farewell = Some(self.farewell);
        if let Some(tls) = stream.facts.session.tls() {
            // An alert of TLS would reveal the end.
            tls.break_off();
        }
        Flow::Drop
    }

    fn is_final(&self) -> bool {
        true
    }
}

struct Close;

impl Action for Close {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Close
    }

    fn is_final(&self) -> bool {
        true
    }
}

/// The connection carries HTTP, which no further rule on its content judges.
struct SwitchMode {
    /// The version of HTTP that the client must speak.
    protocol: Option<Protocol>,
}

impl Action for SwitchMode {
    fn run(&self, stream: &mut Stream) -> Flow {
        match stream.facts.frontend().mode {
            Mode::Tcp if stream.facts.version.is_none() && stream.facts.backend.is_none() => {
                stream.facts.session.protocol.set(self.protocol);
                Flow::Http
            }
            _ => Flow::Stop,
        }
    }

    fn switches_mode(&self) -> bool {
        true
    }
}

struct StrictMode {
    on: bool,
}

impl Action for StrictMode {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.facts.soft_rewrites = !self.on;
        Flow::Next
    }
}

struct SetLogLevel {
    level: LogLevel,
}

impl Action for SetLogLevel {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.facts.log_level = self.level;
        Flow::Next
    }
}

struct Nothing;

impl Action for Nothing {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Next
    }
}

fn silent_drop(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let farewell = match args.accept("rst-ttl") {
        true => Farewell::Reset { hops: args.integer("<ttl>", 1..=255)? as u8 },
        false => Farewell::Silent,
    };
    Ok(Box::new(SilentDrop { farewell }))
}

fn switch_mode(args: &mut Args<'_>, scope: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    if scope.section.kind == SectionKind::Backend {
        return Err(args.fault("a backend cannot change what its frontend has read"));
    }
    match args.need("'http'")? {
        "http" => {}
        other => return Err(args.fault(format!("expects 'http', not '{other}'"))),
    }
    let protocol = match args.accept("proto") {
        true => {
            let name = args.need("<protocol>")?;
            let unknown = || args.fault(format!("protocol '{name}' is not spoken with clients")).hint("one of h1, h2");
            Some(Protocol::of(name).ok_or_else(unknown)?)
        }
        false => None,
    };
    Ok(Box::new(SwitchMode { protocol }))
}

fn strict_mode(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    match args.need("'on' or 'off'")? {
        "on" => Ok(Box::new(StrictMode { on: true })),
        "off" => Ok(Box::new(StrictMode { on: false })),
        other => Err(args.fault(format!("expects 'on' or 'off', not '{other}'"))),
    }
}

fn set_log_level(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let word = args.need("<level>")?;
    let level = match Level::parse(word) {
        Some(level) => LogLevel::At(level),
        None if word == "silent" => LogLevel::Silent,
        None => {
            let hint = format!("one of {}, silent", Level::NAMES.join(", "));
            return Err(args.fault(format!("'{word}' is no level of logs")).hint(hint));
        }
    };
    Ok(Box::new(SetLogLevel { level }))
}

fn set_nice(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    args.integer("<nice>", -1024..=1024)?;
    args.changes_nothing("streams take turns, none has a priority");
    Ok(Box::new(Nothing))
}
