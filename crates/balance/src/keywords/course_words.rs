//! Keywords of a `server` line for its start, end and load: agents, errors, growing weights, moving limits, and the
//! source of connections to it.

use super::server_words::{Draft, count, done, interval, other_address, set};
use crate::algorithm::settings::RingKey;
use crate::settings::{Guise, ObservedLayer, OnError, SourceSettings};
use crate::signature::Signature;
use crate::state::InitialState;
use std::net::{IpAddr, SocketAddr};
use terse_config::params::Param;
use terse_config::{Args, Fault};
use terse_message::FieldName;

/// Table of keywords.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    done("minconn", "<requests>", "Sets its limit while the backend has little to do; it grows to 'maxconn'.", |args, draft| {
        draft.server.minconn = count(args)?;
        Ok(())
    }),
    done("slowstart", "<time>", "Lets its weight and its 'maxconn' grow for so long when it comes up.", |args, draft| {
        draft.server.slowstart = args.time("<time>")?;
        Ok(())
    }),
    done("track", "[<backend>/]<server>", "Takes another server's state for its own.", |args, draft| {
        let place = args.place(&draft.line);
        draft.server.track = Some((args.need("<server>")?.into(), place));
        Ok(())
    }),
    done("init-state", "{ fully-up | up | down | fully-down | none }", "Says in which state it starts.", |args, draft| {
        draft.server.initial = match args.need("<state>")? {
            "fully-up" => InitialState::FullyUp,
            "up" | "none" => InitialState::Up,
            "down" => InitialState::Down,
            "fully-down" => InitialState::FullyDown,
            other => {
                return Err(args
                    .fault(format!("unknown state '{other}'"))
                    .hint("known are fully-up, up, down, fully-down and none"));
            }
        };
        Ok(())
    }),
    done("observe", "{ layer4 | layer7 }", "Learns its health from requests, too.", |args, draft| {
        draft.server.observe.layer = Some(match args.need("<layer>")? {
            "layer4" => ObservedLayer::Connections,
            "layer7" => ObservedLayer::Responses,
            other => return Err(args.fault(format!("'{other}' is neither 'layer4' nor 'layer7'"))),
        });
        Ok(())
    }),
    done(
        "error-limit",
        "<count>",
        "Says after how many errors one behind the other 'on-error' acts; 10 by default.",
        |args, draft| {
            draft.server.observe.error_limit = args.integer("<count>", 1..=i64::from(i32::MAX))? as u32;
            Ok(())
        },
    ),
    done("on-error", "{ fastinter | fail-check | sudden-death | mark-down }", "Says what happens then.", |args, draft| {
        draft.server.observe.on_error = match args.need("<action>")? {
            "fastinter" => OnError::FastInter,
            "fail-check" => OnError::FailCheck,
            "sudden-death" => OnError::SuddenDeath,
            "mark-down" => OnError::MarkDown,
            other => {
                return Err(args
                    .fault(format!("unknown action '{other}'"))
                    .hint("known are fastinter, fail-check, sudden-death and mark-down"));
            }
        };
        Ok(())
    }),
    done("on-marked-down", "shutdown-sessions", "Ends its connections when it goes down.", |args, draft| {
        only(args, "shutdown-sessions")?;
        set(&mut draft.server.ends_sessions, true)
    }),
    done("on-marked-up", "shutdown-backup-sessions", "Ends the connections of backup servers when it comes up.", |args, draft| {
        only(args, "shutdown-backup-sessions")?;
        set(&mut draft.server.ends_backup_sessions, true)
    }),
    done("agent-check", "", "Asks an agent how it is.", |_, draft| set(&mut draft.server.agent.enabled, true)),
    done("no-agent-check", "", "Takes 'agent-check' back.", |_, draft| set(&mut draft.server.agent.enabled, false)),
    done("agent-port", "<port>", "Says where the agent listens.", |args, draft| {
        draft.server.agent.port = Some(args.integer("<port>", 1..=65535)? as u16);
        Ok(())
    }),
    done("agent-addr", "<address>", "Asks the agent at another address.", |args, draft| {
        let (ip, port) = other_address(args, draft.resolver.as_ref())?;
        if port.is_some() {
            return Err(args.fault("an address without a port is wanted").hint("'agent-port' says where it listens"));
        }
        draft.server.agent.address = Some(ip);
        Ok(())
    }),
    done("agent-inter", "<time>", "Sets the time between two questions, 2s by default.", |args, draft| {
        draft.server.agent.inter = interval(args)?;
        Ok(())
    }),
    done("agent-send", "<string>", "Says something to the agent first; '\\n' is a line feed.", |args, draft| {
        let text = args.need_bytes("<string>")?;
        draft.server.agent.send = text.to_vec().into();
        Ok(())
    }),
    done(
        "source",
        "<address>[:<port>[-<port>]] [usesrc <whose>] [interface <name>]",
        "Makes connections from this address.",
        |args, draft| {
            draft.server.source = source(args)?;
            Ok(())
        },
    ),
    done("usesrc", "<whose>", "Shows servers another's address; behind 'source <address>'.", |args, _| {
        Err(args.fault("'usesrc' is only allowed after a 'source' statement"))
    }),
    done("interface", "<name>", "Makes connections from this network device.", |args, draft| {
        draft.server.source.interface = Some(args.need("<name>")?.into());
        Ok(())
    }),
    done(
        "hash-key",
        "{ id | id32 | addr | addr-port | guid }",
        "What its places on the ring of a consistent hash come from, so that several balancers agree whatever the order of their lines.",
        |args, draft| {
            draft.server.ring_key = match args.need("<key>")? {
                "id" => RingKey::Id,
                "id32" => RingKey::Id32,
                "addr" => RingKey::Address,
                "addr-port" => RingKey::AddressAndPort,
                "guid" => RingKey::Guid,
                other => return Err(args.fault(format!("'{other}' is not 'id', 'id32', 'addr', 'addr-port' or 'guid'"))),
            };
            Ok(())
        },
    ),
    done("redir", "<prefix>", "Sends clients there by 302 where they ask with GET or HEAD; '/' adds nothing.", |args, draft| {
        let prefix = args.need_bytes("<prefix>")?;
        draft.server.redirect = Some(if prefix == b"/" { b"".as_slice() } else { prefix }.into());
        Ok(())
    }),
    done("cc", "<algorithm>", "How TCP avoids congestion: 'bbr', 'cubic' and what else the system has.", |args, draft| {
        draft.server.congestion = Some(args.need("<algorithm>")?.into());
        Ok(())
    }),
    done("tcp-ut", "<time>", "Limits the time that data may wait for its acknowledgement.", |args, draft| {
        draft.server.user_timeout = Some(args.time("<time>")?);
        Ok(())
    }),
    done("tcp-md5sig", "<password>", "Signs the segments of its connections, checks' too (RFC 2385).", |args, draft| {
        draft.server.signature = Some(Signature::parse(args)?);
        Ok(())
    }),
];

/// Parses the arguments of `source`.
pub(super) fn source(args: &mut Args<'_>) -> Result<SourceSettings, Fault> {
    let text = args.need_address("<address>")?;
    let fault = |args: &Args<'_>| args.fault(format!("'{text}' is not an address"));
    let bare = text.split_once('@').filter(|(kind, _)| matches!(*kind, "ipv4" | "ipv6")).map_or(&*text, |(_, rest)| rest);
    let (host, ports) = match bare.rfind(':') {
        Some(at) if !bare.ends_with(']') && (bare.starts_with('[') || bare.matches(':').count() == 1) => {
            (&bare[..at], &bare[at + 1..])
        }
        _ => (bare, ""),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = match host {
        "" | "*" => IpAddr::from([0, 0, 0, 0]),
        host => host.parse().map_err(|_| fault(args))?,
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let port = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u16>().ok() };
    let (Some(first), Some(last)) = (port(first), port(last)) else { return Err(fault(args)) };
    if last < first {
        return Err(fault(args));
    }
    // The unspecified address without a port is what the system would choose by itself.
    let address = Some(SocketAddr::new(ip, first)).filter(|address| !address.ip().is_unspecified() || first != 0);
    let mut source = SourceSettings { address, last_port: last, interface: None, guise: None };
    if args.accept("usesrc") {
        source.guise = Some(guise(args)?);
    }
    if args.accept("interface") {
        source.interface = Some(args.need("<name>")?.into());
    }
    Ok(source)
}

/// Parses the arguments of `usesrc`.
fn guise(args: &mut Args<'_>) -> Result<Guise, Fault> {
    let text = args.need_address("<address>")?;
    let text = &*text;
    match text {
        "client" => return Ok(Guise::Client),
        "clientip" => return Ok(Guise::ClientIp),
        _ => {}
    }
    if let Some(inside) = text.strip_prefix("hdr_ip(").and_then(|rest| rest.strip_suffix(')')) {
        let (name, occurrence) = inside.split_once(',').unwrap_or((inside, "-1"));
        let name = FieldName::new(name.trim().as_bytes());
        let occurrence = occurrence.trim().parse().ok().filter(|occurrence| *occurrence != 0);
        return match name.zip(occurrence) {
            Some((name, occurrence)) => Ok(Guise::Field(name, occurrence)),
            None => Err(args.fault(format!("'{text}' names no field and occurrence")).hint("hdr_ip(x-forwarded-for,-1)")),
        };
    }
    let address = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0)));
    let expects = "expects an address, 'client', 'clientip' or 'hdr_ip(<name>[,<occurrence>])'";
    address.map(Guise::Address).map_err(|_| args.fault(format!("'{text}' is not whose address servers could see")).hint(expects))
}

fn only(args: &mut Args<'_>, word: &str) -> Result<(), Fault> {
    match args.need("<action>")? {
        action if action == word => Ok(()),
        other => Err(args.fault(format!("unknown action '{other}'")).hint(format!("'{word}' is known"))),
    }
}
