//! A server changed: its state, health, weight.

use super::membership;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::words::Word;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::server::is_name;
use terse_balance::{AdminOrder, Operation, Port, Server};
use terse_proxy::plan::Backend;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "set server",
        usage: "set server <bk>/<srv> <what> <value>",
        summary: "change a server: addr, agent, agent-addr, agent-port, agent-send, check-addr, check-port, fqdn, health, name, ssl, state, \
            weight",
        level: Level::Admin,
        run: set,
    },
    Command {
        name: "disable server",
        usage: "disable server <bk>/<srv>",
        summary: "put a server into maintenance",
        level: Level::Admin,
        run: |call| order(call, AdminOrder::Maint),
    },
    Command {
        name: "enable server",
        usage: "enable server <bk>/<srv>",
        summary: "take a server out of maintenance",
        level: Level::Admin,
        run: |call| order(call, AdminOrder::Enable),
    },
    Command {
        name: "disable health",
        usage: "disable health <bk>/<srv>",
        summary: "stop a server's checks; its state stays what it is",
        level: Level::Admin,
        run: |call| {
            call.server(0)?.1.set_checked(false);
            Ok(Answer::Done)
        },
    },
    Command {
        name: "enable health",
        usage: "enable health <bk>/<srv>",
        summary: "let a server's checks go on, or begin",
        level: Level::Admin,
        run: |call| {
            let (_, server) = call.server(0)?;
            if !server.settings().check.enabled {
                return Err(Message::error("Health check was not configured on this server, cannot enable."));
            }
            server.set_checked(true);
            Ok(Answer::Done)
        },
    },
    Command {
        name: "disable agent",
        usage: "disable agent <bk>/<srv>",
        summary: "ask a server's agent no more",
        level: Level::Admin,
        run: |call| {
            call.server(0)?.1.set_asked(false);
            Ok(Answer::Done)
        },
    },
    Command {
        name: "enable agent",
        usage: "enable agent <bk>/<srv>",
        summary: "ask a server's agent again, or for the first time",
        level: Level::Admin,
        run: |call| {
            let (_, server) = call.server(0)?;
            if !server.settings().agent.enabled {
                return Err(Message::error("Agent was not configured on this server, cannot enable."));
            }
            server.set_asked(true);
            Ok(Answer::Done)
        },
    },
];

fn order(call: &mut Call<'_>, order: AdminOrder) -> Outcome {
    let (backend, server) = call.server(0)?;
    backend.farm.set_admin(&server, order, Instant::now());
    Ok(Answer::Done)
}

fn set(call: &mut Call<'_>) -> Outcome {
    let (backend, server) = &call.server(0)?;
    match call.arg(1) {
        "state" => set_state(backend, server, call.arg(2)),
        "health" => set_health(backend, server, call.arg(2)),
        "weight" => set_weight(backend, server, call.arg(2)),
        "addr" => set_address(backend, server, call.args.get(2..).unwrap_or_default(), call.client.called),
        "agent" => set_agent(backend, server, call.arg(2)),
        "agent-addr" => aim(call, server, Target::Agent, call.arg(2), call.arg(4)),
        "agent-port" => aim(call, server, Target::Agent, "", call.arg(2)),
        "agent-send" => set_agent_send(server, call.args.get(2).map_or(b"", Word::bytes)),
        "check-addr" => aim(call, server, Target::Checks, call.arg(2), call.arg(4)),
        "check-port" => aim(call, server, Target::Checks, "", call.arg(2)),
        "fqdn" => set_name_in_dns(backend, server, call.arg(2)),
        "name" => membership::rename(backend, server, call.arg(2)),
        "ssl" => set_security(server, call.arg(2)),
        _ => Err(Message::error(USAGE)),
    }
}

const USAGE: &str = "usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | agent-send | check-addr | check-port \
    | fqdn | health | name | ssl | state | weight";

/// Kind of check whose destination is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Checks,
    Agent,
}

/// Changes the destination of checks or agent checks: `<ip> [port <port>]`, or a port alone. Port 0 is the server's
/// own.
fn aim(call: &Call<'_>, server: &Server, target: Target, ip: &str, port: &str) -> Outcome {
    let (is_there, absent) = match target {
        Target::Checks => (server.settings().check.enabled && server.is_checked(), "health checks are not enabled on this server"),
        Target::Agent => (server.settings().agent.enabled && server.is_asked(), "agent checks are not enabled on this server"),
    };
    let (word, wants_address) = (call.arg(1), call.arg(1).ends_with("-addr"));
    if wants_address && ip.is_empty() {
        return Err(Message::error(format!("set server <b>/<s> {word} requires an address and optionally a port.")));
    }
    if !wants_address && port.is_empty() {
        return Err(Message::error(format!("set server <b>/<s> {word} requires a port.")));
    }
    if !is_there {
        return Err(Message::error(absent));
    }
    let ip: Option<IpAddr> = match ip {
        "" => None,
        ip => Some(literal(ip).ok_or_else(|| Message::error(format!("invalid addr '{ip}'")))?),
    };
    let port: Option<u16> = match (call.arg(3), port) {
        ("" | "port", "") => None,
        ("port", port) | (_, port) if !wants_address || call.arg(3) == "port" => {
            let number: u32 = port.parse().map_err(|_| Message::error("provided port is not an integer"))?;
            Some(u16::try_from(number).map_err(|_| Message::error("provided port is invalid"))?)
        }
        _ => return Err(Message::error(format!("set server <b>/<s> {word} requires an address and optionally a port."))),
    };
    let port = port.map(|port| Some(port).filter(|port| *port != 0));
    server.change_aim(|aim| {
        let (its_address, its_port) = match target {
            Target::Checks => (&mut aim.check_address, &mut aim.check_port),
            Target::Agent => (&mut aim.agent_address, &mut aim.agent_port),
        };
        *its_address = ip.or(*its_address);
        *its_port = port.unwrap_or(*its_port);
    });
    Ok(Answer::Done)
}

fn set_agent_send(server: &Server, text: &[u8]) -> Outcome {
    if !server.settings().agent.enabled || !server.is_asked() {
        return Err(Message::error(NO_AGENT));
    }
    server.change_aim(|aim| aim.agent_send = text.into());
    Ok(Answer::Done)
}

fn set_agent(backend: &Backend, server: &Arc<Server>, word: &str) -> Outcome {
    if !server.settings().agent.enabled || !server.is_asked() {
        return Err(Message::error(NO_AGENT));
    }
    let up = match word {
        "up" => true,
        "down" => false,
        _ => return Err(Message::error("'set server <srv> agent' expects 'up' or 'down'.")),
    };
    backend.farm.set_agent(server, up, ", changed from CLI".into(), Instant::now());
    Ok(Answer::Done)
}

fn set_security(server: &Server, word: &str) -> Outcome {
    if server.is_added() {
        return Err(Message::error("'set server <srv> ssl' not supported on dynamic servers"));
    }
    if !server.settings().tls.enabled && !server.may_switch_security() {
        let text = "'set server <srv> ssl' cannot be set: the line needs what TLS needs, as from a 'default-server ssl' before it.";
        return Err(Message::error(text));
    }
    let secure = match word {
        "on" => true,
        "off" => false,
        _ => return Err(Message::error("'set server <srv> ssl' expects 'on' or 'off'.")),
    };
    server.set_secure(secure);
    Ok(Answer::Said(Message::info("server ssl setting updated.")))
}

const NO_AGENT: &str = "agent checks are not enabled on this server.";

fn set_state(backend: &Backend, server: &Arc<Server>, word: &str) -> Outcome {
    let order = match word {
        "ready" => AdminOrder::Ready,
        "drain" => AdminOrder::Drain,
        "maint" => AdminOrder::Maint,
        _ => return Err(Message::error("'set server <srv> state' expects 'ready', 'drain' and 'maint'.")),
    };
    backend.farm.set_admin(server, order, Instant::now());
    Ok(Answer::Done)
}

fn set_health(backend: &Backend, server: &Arc<Server>, word: &str) -> Outcome {
    let operation = match word {
        "up" => Operation::Running,
        "stopping" => Operation::Stopping,
        "down" => Operation::Stopped,
        _ => return Err(Message::error("'set server <srv> health' expects 'up', 'stopping', or 'down'.")),
    };
    backend.farm.set_health(server, operation, Instant::now());
    Ok(Answer::Done)
}

/// An address; brackets around it, as in a file, are no part of it.
fn literal(text: &str) -> Option<IpAddr> {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text).parse().ok()
}

/// `<ip> [port [+|-]<port>]`
fn set_address(backend: &Backend, server: &Arc<Server>, args: &[Word], by: &str) -> Outcome {
    if server.address().destination().is_none() {
        return Err(Message::error("Update for the current server address family is only supported through configuration file."));
    }
    let (ip, port) = match args {
        [ip] => (ip, None),
        [ip, word, port] if word == "port" => (ip, Some(port)),
        _ => return Err(Message::error("set server <b>/<s> addr requires an address and optionally a port.")),
    };
    let ip = literal(ip).ok_or_else(|| Message::error(format!("Invalid addr '{ip}'")))?;
    let port = match port {
        None => None,
        Some(port) => match Port::parse(port) {
            Ok(Port::Fixed(0)) | Err(_) => return Err(Message::error("provided port is not valid")),
            Ok(port) => Some(port),
        },
    };
    let changed = backend.farm.set_address(server, ip, port, by);
    if server.admin().is_unresolved() {
        backend.farm.set_resolved(server, Ok(()), Instant::now());
    }
    Ok(Answer::Said(Message::info(changed.unwrap_or_else(|| "nothing changed".into()))))
}

/// Sets a DNS name, which the resolvers of its line resolve from now on.
fn set_name_in_dns(backend: &Backend, server: &Arc<Server>, name: &str) -> Outcome {
    if name.is_empty() {
        return Err(Message::error("set server <b>/<s> fqdn requires a FQDN."));
    }
    if server.settings().resolution.resolvers.is_none() {
        return Err(Message::error("set server <b>/<s> fqdn failed because no resolution is configured."));
    }
    if !server.takes_names() {
        return Err(Message::error("set server <b>/<s> fqdn failed because SRV resolution is configured."));
    }
    if server.address().destination().is_none() {
        return Err(Message::error("Update for the current server address family is only supported through configuration file."));
    }
    if !is_name(name) {
        return Err(Message::error(format!("invalid fqdn '{name}'")));
    }
    let changed = backend.farm.set_name_in_dns(server, name, "stats socket command");
    Ok(Answer::Said(Message::info(changed.unwrap_or_else(|| "no need to change the FQDN".into()))))
}

/// Sets a weight from an argument: `7`, or `50%` of the configured weight.
pub(super) fn set_weight(backend: &Backend, server: &Arc<Server>, word: &str) -> Outcome {
    let weight = weight(word, server.settings().weight).map_err(Message::error)?;
    backend.farm.set_weight(server, weight, Instant::now());
    Ok(Answer::Done)
}

fn weight(word: &str, initial: u32) -> Result<u32, &'static str> {
    if word.is_empty() {
        return Err("Require <weight> or <weight%>.");
    }
    let digits = word.strip_prefix('-').unwrap_or(word);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at(word.len() - digits.len() + count);
    // More digits than a number has mean more than any limit.
    let number: i64 = match number.parse() {
        Ok(number) => number,
        Err(_) if count == 0 => return Err("Empty weight string empty or preceded by garbage"),
        Err(_) => i64::MAX,
    };
    match unit {
        "" => u32::try_from(number).ok().filter(|weight| *weight <= MOST).ok_or(OUT_OF_RANGE),
        "%" if number < 0 => Err("Relative weight must be positive."),
        "%" => Ok(u32::try_from(i64::from(initial).saturating_mul(number) / 100).map_or(MOST, |weight| weight.min(MOST))),
        _ => Err("Trailing garbage in weight string"),
    }
}

const OUT_OF_RANGE: &str = "Absolute weight can only be between 0 and 256 inclusive.";
const MOST: u32 = 256;

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use proptest::prelude::*;
    use terse_balance::report;

    fn status(talk: &Talk, index: usize) -> String {
        report::status(&talk.context.plan.backends.now()[0].farm.servers()[index])
    }

    #[test]
    fn states() {
        let mut talk = Talk::new(WEB);
        for (command, expected) in [
            ("set server be/b state drain", "DRAIN"),
            ("disable server be/b", "MAINT"),
            ("enable server be/b", "no check"),
            ("set server be/b state maint", "MAINT"),
            ("set server be/b state ready", "no check"),
            ("set server be/b health down", "DOWN"),
            ("set server be/b health stopping", "NOLB"),
            ("set server be/b health up", "no check"),
            ("set server #3/#2 state maint", "MAINT"),
        ] {
            assert_eq!(talk.says(command), "\n", "{command}");
            assert_eq!(status(&talk, 1), expected, "{command}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_haproxys_words() {
        let mut talk = Talk::new(WEB);
        for (words, said) in [
            ("", "Require 'backend/server'."),
            ("be/", "Require 'backend/server'."),
            ("be/x state ready", "No such server."),
            ("x/a state ready", "No such backend."),
            ("be/a state", "'set server <srv> state' expects 'ready', 'drain' and 'maint'."),
            ("be/a health foo", "'set server <srv> health' expects 'up', 'stopping', or 'down'."),
            ("be/a fqdn foo", "set server <b>/<s> fqdn failed because no resolution is configured."),
            ("be/a nothing", super::USAGE),
            ("be/b check-port 9", "health checks are not enabled on this server"),
            ("be/b agent up", super::NO_AGENT),
            (
                "be/b ssl on",
                "'set server <srv> ssl' cannot be set: the line needs what TLS needs, as from a 'default-server ssl' before it.",
            ),
        ] {
            assert_eq!(talk.says(&format!("set server {words}")), format!("{said}\n\n"), "{words}");
        }
    }

    #[test]
    fn checks_and_agents_are_sent_elsewhere() {
        let mut talk = Talk::new(WEB);
        assert_eq!(talk.says("add server be/n 127.0.0.1:7 check agent-check agent-port 8"), "New server registered.\n\n");
        assert_eq!(talk.says("enable health be/n"), "\n");
        assert_eq!(talk.says("enable agent be/n"), "\n");
        for command in [
            "check-addr 127.0.0.2 port 9",
            "check-port 10",
            "agent-addr [::1] port 11",
            "agent-send hello",
            "agent-port 12",
            "agent down",
        ] {
            assert_eq!(talk.says(&format!("set server be/n {command}")), "\n", "{command}");
        }
        let server = talk.context.plan.backends.now()[0].farm.find_server("n").unwrap().clone();
        let aim = server.aim();
        assert_eq!((aim.check_address, aim.check_port), (Some([127, 0, 0, 2].into()), Some(10)));
        assert_eq!((aim.agent_port, &*aim.agent_send), (Some(12), &b"hello"[..]));
        let state = talk.says("show servers state be");
        assert!(state.contains(" n 127.0.0.1 0 1 1 1 0 1 0 0 14 22 0 0 - 7 - 0 10 127.0.0.2 ::1 12\n"), "{state}");
        for (words, said) in [
            ("check-addr x", "invalid addr 'x'"),
            ("check-port x", "provided port is not an integer"),
            ("check-port 70000", "provided port is invalid"),
            ("check-port", "set server <b>/<s> check-port requires a port."),
            ("agent-addr", "set server <b>/<s> agent-addr requires an address and optionally a port."),
            ("ssl on", "'set server <srv> ssl' not supported on dynamic servers"),
        ] {
            assert_eq!(talk.says(&format!("set server be/n {words}")), format!("{said}\n\n"), "{words}");
        }
        assert_eq!(talk.says("set server be/n check-port 0"), "\n");
        assert_eq!(server.aim().check_port, None);
    }

    #[test]
    fn addresses() {
        let mut talk = Talk::new(WEB);
        for (words, said) in [
            ("be/a addr 127.0.0.1", "nothing changed"),
            ("be/a addr 127.0.0.2", "IP changed from '127.0.0.1' to '127.0.0.2' by 'stats socket command'"),
            ("be/a addr 127.0.0.2 port 9", "port changed from '1' to '9' by 'stats socket command'"),
            (
                "be/a addr ::1 port 1",
                "IP changed from '127.0.0.2' to '::1', port changed from '9' to '1' by 'stats socket command'",
            ),
            ("be/a addr foo", "Invalid addr 'foo'"),
            ("be/a addr [::1", "Invalid addr '[::1'"),
            ("be/a addr [::1]:80", "Invalid addr '[::1]:80'"),
            ("be/a addr", "set server <b>/<s> addr requires an address and optionally a port."),
            ("be/a addr ::1 port", "set server <b>/<s> addr requires an address and optionally a port."),
            ("be/a addr ::1 port 0", "provided port is not valid"),
            ("be/a addr ::1 port 65536", "provided port is not valid"),
            ("be/a addr ::1 port +", "provided port is not valid"),
            (
                "be/a addr 127.0.0.1 port +1",
                "IP changed from '::1' to '127.0.0.1', can't change <port> to port map because it is incompatible with current \
                 health check port configuration (use 'port' statement from the 'server' directive). by 'stats socket command'",
            ),
            ("be/a addr 127.0.0.1 port +1", "nothing changed"),
            ("be/b addr 127.0.0.1 port +5", "port changed from '2' to '+5' by 'stats socket command'"),
            ("be/b addr 127.0.0.1 port -5", "port changed from '+5' to '-5' by 'stats socket command'"),
            ("be/b addr 0.0.0.0", "IP changed from '127.0.0.1' to '0.0.0.0' by 'stats socket command'"),
            (
                "be/b addr 127.0.0.3 port 5",
                "IP changed from '0.0.0.0' to '127.0.0.3', port changed from '-5' to '5' by 'stats socket command'",
            ),
            ("be/a addr [::1]", "IP changed from '127.0.0.1' to '::1' by 'stats socket command'"),
        ] {
            assert_eq!(talk.says(&format!("set server {words}")), format!("{said}\n\n"), "{words}");
        }
        let server = &talk.context.plan.backends.now()[0].farm.servers()[0];
        assert_eq!((server.address().to_string(), server.moves()), ("[::1]:1".into(), 5));
        assert!(talk.says("set server raw/r addr ::1").contains("only supported through configuration file"));
    }

    proptest! {
        #[test]
        fn any_word_is_a_weight_or_none(word in ".*", initial in 0u32..=256) {
            if let Ok(weight) = super::weight(&word, initial) {
                prop_assert!(weight <= 256);
            }
        }
    }
}
