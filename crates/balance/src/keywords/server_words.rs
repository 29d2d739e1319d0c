//! Keywords of a `server` line, except those of TLS.

use super::{announcement, course_words, name_words};
use crate::guid::Guid;
use crate::settings::{Resolver, ServerSettings, WebSocket};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use terse_config::params::{self, Param, ParamKind, ParamParser};
use terse_config::{Args, Fault, Place};
use terse_message::Protocol;

/// A server under construction.
pub(super) struct Draft {
    pub(super) server: ServerSettings,
    pub(super) origin: Origin,
    /// Place of the line.
    pub(super) line: Place,
    /// Resolver of names.
    pub(super) resolver: Option<Resolver>,
}

/// Origin of the keywords.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// They are those of `default-server`, for all servers that follow.
    pub(super) default: bool,
    /// They come from the stats socket.
    pub(super) added: bool,
}

/// Keywords for configurations only: their subjects are settled before the process serves.
pub(super) const NOT_ADDED: &[&str] =
    &["healthcheck", "init-addr", "log-bufsize", "log-proto", "resolve-net", "resolve-opts", "resolve-prefer", "resolvers"];

/// Other destination of checks: an address, and maybe a port.
pub(super) fn other_address(args: &mut Args<'_>, resolver: Option<&Resolver>) -> Result<(IpAddr, Option<u16>), Fault> {
    let address = args.need("<address>")?;
    let with_port = |address: SocketAddr| (address.ip(), Some(address.port()).filter(|&port| port != 0));
    let literal = address.parse().map(with_port).or_else(|_| address.parse().map(|ip| (ip, None)));
    let named = || match address.rsplit_once(':') {
        Some((host, port)) => Some((resolver?.first(host)?, Some(port.parse().ok().filter(|port| *port != 0)?))),
        None => Some((resolver?.first(address)?, None)),
    };
    let found = literal.ok().or_else(named);
    found.ok_or_else(|| args.fault(format!("'{address}' is not an IPv4 or IPv6 address, nor a name that has one")))
}

/// Parses the keywords of a line.
pub(super) fn apply(args: &mut Args<'_>, draft: &mut Draft) -> Result<(), Fault> {
    while let Some(word) = args.peek() {
        if draft.origin.added && NOT_ADDED.contains(&word) {
            return Err(args.fault(format!("'{word}' option is not accepted for dynamic server")));
        }
        if terse_tls::keywords::server(args, &draft.line, &mut draft.server.tls)? {
            continue;
        }
        let has = |table: &&[Param<Draft>]| table.iter().any(|param| param.is(word));
        let tables = [announcement::KEYWORDS, course_words::KEYWORDS, name_words::KEYWORDS];
        let table = tables.into_iter().find(has).unwrap_or(KEYWORDS);
        params::apply_one_of(args, "parameter", table, draft, super::standings)?;
    }
    Ok(())
}

/// Table of keywords.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    done("id", "<number>", "Sets its number in statistics.", |args, draft| {
        if draft.origin.default {
            return Err(args.fault("'id' belongs to one server"));
        }
        draft.server.id = Some(args.integer("<number>", 1..=i64::from(i32::MAX))? as u32);
        Ok(())
    }),
    done("guid", "<name>", "Names it for files of statistics.", |args, draft| {
        if draft.origin.default {
            return Err(args.fault("'guid' belongs to one server"));
        }
        draft.server.guid = Some(Guid::parse(args, &draft.line)?);
        Ok(())
    }),
    done("weight", "<weight>", "Sets its share of the work, 0 to 256.", |args, draft| {
        let word = args.need("<weight>")?;
        // Some files write a percentage, of which HAProxy sees the number.
        let number = match word.strip_suffix('%') {
            Some(number) => {
                args.warn(format!("'{word}' is read as the weight {number}, not as a share of anything"));
                number
            }
            None => word,
        };
        match number.parse::<u32>() {
            Ok(weight) if weight <= 256 => draft.server.weight = weight,
            Ok(weight) => return Err(args.fault(format!("<weight>: {weight} is not between 0 and 256"))),
            Err(_) => return Err(args.fault(format!("<weight>: '{word}' is not a whole number"))),
        }
        Ok(())
    }),
    done("maxconn", "<requests>", "Sends it at most so many requests at a time; the others wait.", |args, draft| {
        draft.server.maxconn = count(args)?;
        Ok(())
    }),
    done("maxqueue", "<requests>", "Lets at most so many requests wait for this very server.", |args, draft| {
        draft.server.maxqueue = count(args)?;
        Ok(())
    }),
    done("cookie", "<value>", "Names it in the persistence cookie.", |args, draft| {
        let value = args.need("<value>")?;
        if value.bytes().any(|byte| matches!(byte, b';' | b',' | b'"' | b'~' | b'|') || byte <= b' ' || byte >= 127) {
            return Err(args.fault(format!("'{value}' cannot be a cookie's value")));
        }
        draft.server.cookie = Some(value.into());
        Ok(())
    }),
    done("backup", "", "Uses it only when no other server is up.", |_, draft| set(&mut draft.server.backup, true)),
    done("no-backup", "", "Takes 'backup' back.", |_, draft| set(&mut draft.server.backup, false)),
    done("disabled", "", "Starts it in maintenance.", |_, draft| set(&mut draft.server.disabled, true)),
    done("enabled", "", "Takes 'disabled' back.", |_, draft| set(&mut draft.server.disabled, false)),
    done("check", "", "Checks its health.", |_, draft| set(&mut draft.server.check.enabled, true)),
    done("no-check", "", "Takes 'check' back.", |_, draft| set(&mut draft.server.check.enabled, false)),
    done("inter", "<time>", "Sets the time between two checks, 2s by default.", |args, draft| {
        draft.server.check.inter = interval(args)?;
        Ok(())
    }),
    done("fastinter", "<time>", "Sets the time between two checks while its state is changing.", |args, draft| {
        draft.server.check.fastinter = Some(interval(args)?);
        Ok(())
    }),
    done("downinter", "<time>", "Sets the time between two checks while it is down.", |args, draft| {
        draft.server.check.downinter = Some(interval(args)?);
        Ok(())
    }),
    done("rise", "<count>", "Sets how many checks must pass to bring it up, 2 by default.", |args, draft| {
        draft.server.check.rise = args.integer("<count>", 1..=MOST_CHECKS)? as u32;
        Ok(())
    }),
    done("fall", "<count>", "Sets how many checks must fail to bring it down, 3 by default.", |args, draft| {
        draft.server.check.fall = args.integer("<count>", 1..=MOST_CHECKS)? as u32;
        Ok(())
    }),
    done("port", "<port>", "Checks another port.", |args, draft| {
        draft.server.check.port = Some(args.integer("<port>", 1..=65535)? as u16);
        Ok(())
    }),
    done("addr", "<address>[:<port>]", "Checks another address; 'port' takes the place of its port.", |args, draft| {
        let (ip, port) = other_address(args, draft.resolver.as_ref())?;
        (draft.server.check.address, draft.server.check.address_port) = (Some(ip), port);
        Ok(())
    }),
    done("pool-max-conn", "<connections>", "Keeps at most so many idle connections; -1: any number.", |args, draft| {
        draft.server.pool.max_idle = u32::try_from(args.integer("<connections>", -1..=i64::from(u32::MAX))?).ok();
        Ok(())
    }),
    done("pool-low-conn", "<connections>", "Keeps so many idle connections beyond those that are needed.", |args, draft| {
        draft.server.pool.low = args.integer("<connections>", 0..=i64::from(u32::MAX))? as u32;
        Ok(())
    }),
    done(
        "pool-conn-name",
        "<expression>",
        "Names connections: only requests that name them so share them. Without it the name is that of 'sni'.",
        |args, draft| {
            let place = args.place(&draft.line);
            draft.server.pool.name = Some((args.need("<expression>")?.into(), place));
            Ok(())
        },
    ),
    done(
        "pool-purge-delay",
        "<time>",
        "Closes connections that were idle for so long, 5s by default; 0: keeps none.",
        |args, draft| {
            draft.server.pool.purge_delay = args.time("<time>")?;
            Ok(())
        },
    ),
    done("max-reuse", "<requests>", "Closes a connection after so many requests; -1: never.", |args, draft| {
        draft.server.pool.max_reuse = u32::try_from(args.integer("<requests>", -1..=i64::from(u32::MAX))?).ok();
        Ok(())
    }),
    done(
        "log-proto",
        "{ legacy | octet-count }",
        "Says how lines are told apart on a stream to a server of logs.",
        |args, draft| {
            draft.server.log.octet_count = match args.need("<name>")? {
                "legacy" => false,
                "octet-count" => true,
                other => return Err(args.fault(format!("'{other}' is neither 'legacy' nor 'octet-count'"))),
            };
            Ok(())
        },
    ),
    done("log-bufsize", "<size>", "Sizes what may wait for a server of logs over a stream.", |args, draft| {
        draft.server.log.buffer_bytes = usize::try_from(args.size("<size>")?).ok();
        Ok(())
    }),
    done("proto", "h1|h2", "The version of HTTP that is spoken from the first byte on, whatever ALPN says.", |args, draft| {
        draft.server.protocol = Some(protocol(args)?);
        Ok(())
    }),
    done("check-proto", "h1|h2", "The version of HTTP that checks speak; that of 'proto' by default.", |args, draft| {
        draft.server.check.protocol = Some(protocol(args)?);
        Ok(())
    }),
    done(
        "ws",
        "auto|h1|h2",
        "The version of HTTP that WebSocket goes over; by default HTTP/2 after 'proto h2' or 'alpn h2', else HTTP/1.",
        |args, draft| {
            draft.server.websocket = match args.need("<version>")? {
                "auto" => WebSocket::Auto,
                "h1" => WebSocket::Http1,
                "h2" => WebSocket::Http2,
                other => return Err(args.fault(format!("unknown version '{other}'")).hint("one of auto, h1, h2")),
            };
            Ok(())
        },
    ),
    done(
        "idle-ping",
        "<time>",
        "Pings a connection of HTTP/2 on which nothing comes, so often; never by default.",
        |args, draft| {
            draft.server.idle_ping = args.time("<time>")?;
            Ok(())
        },
    ),
    done("non-stick", "", "Stick tables do not learn it.", |_, draft| {
        draft.server.non_stick = true;
        Ok(())
    }),
    done("stick", "", "Takes 'non-stick' back.", |_, draft| {
        draft.server.non_stick = false;
        Ok(())
    }),
    accepted("tfo", "", "Sends data with the first packet.", "it can only save a round trip"),
    accepted("no-tfo", "", "Takes 'tfo' back.", "it is never used"),
    accepted("no-check-reuse-pool", "", "Takes 'check-reuse-pool' back.", "checks make their own connections"),
    done("check-via-socks4", "", "Checks through the proxy of 'socks4'.", |_, draft| set(&mut draft.server.check.via_socks4, true)),
    done("socks4", "<address>:<port>", "Connects through a SOCKS4 proxy, to IPv4 addresses.", |args, draft| {
        draft.server.socks4 = match other_address(args, draft.resolver.as_ref())? {
            (ip, Some(port)) => Some(SocketAddr::new(ip, port)),
            _ => return Err(args.fault("expects the address of a proxy, and its port")),
        };
        Ok(())
    }),
    done("healthcheck", "<name>", "Checks it as that 'healthcheck' section says.", |args, draft| {
        let place = args.place(&draft.line);
        draft.server.check.section = Some((args.need("<name>")?.into(), place));
        Ok(())
    }),
    refused("check-reuse-pool", "", "Lets checks use connections of requests.", LATER),
    refused("check-pool-conn-name", "<name>", "Names the connections that checks use.", LATER),
    refused("namespace", "<name>", "Connects from another network namespace.", "network namespaces are not built"),
    refused("strict-maxconn", "", "Counts idle connections against 'maxconn', too.", LATER),
    done("shard", "<number>", "Sends a peer that part of the tables alone, of as many as 'shards' says.", |args, draft| {
        draft.server.shard = args.integer("<number>", 0..=i64::from(u32::MAX))? as u32;
        Ok(())
    }),
    refused("quic-cc-algo", "<algorithm>", "Says how QUIC avoids congestion.", "there is no QUIC"),
];

pub(super) fn set(what: &mut bool, on: bool) -> Result<(), Fault> {
    *what = on;
    Ok(())
}

pub(super) fn count(args: &mut Args<'_>) -> Result<u32, Fault> {
    Ok(args.integer("<requests>", 0..=i64::from(u32::MAX / 2))? as u32)
}

pub(super) fn interval(args: &mut Args<'_>) -> Result<Duration, Fault> {
    match args.time("<time>")? {
        Duration::ZERO => Err(args.fault("checks cannot follow each other without a pause")),
        time => Ok(time),
    }
}

pub(super) fn protocol(args: &mut Args<'_>) -> Result<Protocol, Fault> {
    let name = args.need("<name>")?;
    Protocol::of(name).ok_or_else(|| args.fault(format!("protocol '{name}' is not spoken to servers")).hint("one of h1, h2"))
}

pub(super) const fn done(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    parser: ParamParser<Draft>,
) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

const fn accepted(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Accepted(why) }
}

const fn refused(name: &'static str, arguments: &'static str, summary: &'static str, reason: &'static str) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Refused(reason) }
}

/// Bound by which health, which counts both, stays small.
const MOST_CHECKS: i64 = 1 << 24;
const LATER: &str = "it is not built";
