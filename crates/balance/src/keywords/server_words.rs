//! The words of a `server` line, but those of TLS.

use super::tls_words;
use crate::settings::ServerSettings;
use std::time::Duration;
use terse_config::params::{self, Param, ParamKind, ParamParser};
use terse_config::{Args, Fault};

/// A server on its way.
pub(super) struct Draft {
    pub(super) server: ServerSettings,
    /// Whether it stands for all servers that follow (`default-server`).
    pub(super) default: bool,
}

/// Reads the words of a line.
pub(super) fn apply(args: &mut Args<'_>, draft: &mut Draft) -> Result<(), Fault> {
    while let Some(word) = args.peek() {
        let table = if tls_words::KEYWORDS.iter().any(|param| param.name == word) { tls_words::KEYWORDS } else { KEYWORDS };
        params::apply_one(args, "parameter", table, draft)?;
    }
    Ok(())
}

/// The table.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    done("id", "<number>", "Sets its number in statistics.", |args, draft| {
        if draft.default {
            return Err(args.fault("'id' belongs to one server"));
        }
        draft.server.id = Some(args.integer("<number>", 1..=i64::from(i32::MAX))? as u32);
        Ok(())
    }),
    done("weight", "<weight>", "Sets its share of the work, 0 to 256.", |args, draft| {
        draft.server.weight = args.integer("<weight>", 0..=256)? as u32;
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
    done("addr", "<address>", "Checks another address.", |args, draft| {
        let address = args.need("<address>")?;
        let parsed = address.parse().map_err(|_| args.fault(format!("'{address}' is not an IPv4 or IPv6 address")))?;
        draft.server.check.address = Some(parsed);
        Ok(())
    }),
    done("pool-max-conn", "<connections>", "Keeps at most so many idle connections; -1: any number.", |args, draft| {
        draft.server.pool.max_idle = u32::try_from(args.integer("<connections>", -1..=i64::from(u32::MAX))?).ok();
        Ok(())
    }),
    done("pool-purge-delay", "<time>", "Closes connections that were idle for so long, 5s by default.", |args, draft| {
        draft.server.pool.purge_delay = args.time("<time>")?;
        Ok(())
    }),
    done("max-reuse", "<requests>", "Closes a connection after so many requests; -1: never.", |args, draft| {
        draft.server.pool.max_reuse = u32::try_from(args.integer("<requests>", -1..=i64::from(u32::MAX))?).ok();
        Ok(())
    }),
    done("init-addr", "{ last | libc | <ip> },...", "Says where its address comes from at start.", |args, _| {
        let list = args.need("<methods>")?;
        match list.split(',').find(|method| !matches!(*method, "last" | "libc" | "none")) {
            None if list.split(',').any(|method| method == "libc") => Ok(()),
            None => Err(args.fault("without 'libc' a name has no address here")),
            Some(other) => Err(args.fault(format!("'{other}' is not supported: names are resolved by the system, at start"))),
        }
    }),
    done("proto", "<name>", "Says the protocol to speak: h1.", |args, _| only_h1(args)),
    done("check-proto", "<name>", "Says the protocol that checks speak: h1.", |args, _| only_h1(args)),
    accepted("ws", "{ auto | h1 | h2 }", "Says what carries WebSocket.", "HTTP/1 is the only protocol to servers"),
    accepted("pool-low-conn", "<connections>", "Keeps a few idle connections from other threads.", "each worker keeps its own"),
    accepted("non-stick", "", "Keeps it out of stick tables.", "no stick table learns servers"),
    accepted("stick", "", "Takes 'non-stick' back.", "no stick table learns servers"),
    accepted("log-bufsize", "<size>", "Sizes the buffer of a server of logs.", "such servers have none"),
    accepted("tfo", "", "Sends data with the first packet.", "it can only save a round trip"),
    accepted("no-tfo", "", "Takes 'tfo' back.", "it is never used"),
    accepted("no-agent-check", "", "Takes 'agent-check' back.", "there are no agents"),
    accepted("no-send-proxy", "", "Takes 'send-proxy' back.", "it is never sent"),
    accepted("no-send-proxy-v2", "", "Takes 'send-proxy-v2' back.", "it is never sent"),
    accepted("no-send-proxy-v2-ssl", "", "Takes 'send-proxy-v2-ssl' back.", "it is never sent"),
    accepted("no-send-proxy-v2-ssl-cn", "", "Takes 'send-proxy-v2-ssl-cn' back.", "it is never sent"),
    accepted("no-check-reuse-pool", "", "Takes 'check-reuse-pool' back.", "checks make their own connections"),
    refused("agent-check", "", AGENT),
    refused("agent-send", "<string>", AGENT),
    refused("agent-inter", "<time>", AGENT),
    refused("agent-addr", "<address>", AGENT),
    refused("agent-port", "<port>", AGENT),
    refused("minconn", "<requests>", "write 'maxconn'"),
    refused("send-proxy", "", PROXY_PROTOCOL),
    refused("send-proxy-v2", "", PROXY_PROTOCOL),
    refused("send-proxy-v2-ssl", "", PROXY_PROTOCOL),
    refused("send-proxy-v2-ssl-cn", "", PROXY_PROTOCOL),
    refused("proxy-v2-options", "<options>", PROXY_PROTOCOL),
    refused("set-proxy-v2-tlv-fmt(", "<format>", PROXY_PROTOCOL),
    refused("check-send-proxy", "", PROXY_PROTOCOL),
    refused("check-via-socks4", "", LATER),
    refused("socks4", "<address>", LATER),
    refused("check-reuse-pool", "", LATER),
    refused("check-pool-conn-name", "<name>", LATER),
    refused("pool-conn-name", "<expression>", LATER),
    refused("healthcheck", "<name>", "write its lines in the backend, as 'http-check' or 'tcp-check'"),
    refused("slowstart", "<time>", LATER),
    refused("track", "[<backend>/]<server>", LATER),
    refused("observe", "{ layer4 | layer7 }", LATER),
    refused("error-limit", "<count>", LATER),
    refused("on-error", "<action>", LATER),
    refused("on-marked-down", "<action>", LATER),
    refused("on-marked-up", "<action>", LATER),
    refused("redir", "<prefix>", "write 'http-request redirect prefix'"),
    refused("source", "<address>", LATER),
    refused("interface", "<name>", LATER),
    refused("namespace", "<name>", "network namespaces are not built"),
    refused("resolvers", "<name>", RUN_TIME_NAMES),
    refused("resolve-opts", "<options>", RUN_TIME_NAMES),
    refused("resolve-prefer", "{ ipv4 | ipv6 }", "write 'ipv4@' or 'ipv6@' before the name"),
    refused("resolve-net", "<networks>", RUN_TIME_NAMES),
    refused("init-state", "<state>", LATER),
    refused("strict-maxconn", "", LATER),
    refused("hash-key", "<key>", "a server's place on the ring comes from its id"),
    refused("guid", "<string>", LATER),
    refused("shard", "<number>", "there are no peers"),
    refused("log-proto", "<name>", "there are no servers of logs"),
    refused("idle-ping", "<time>", "it belongs to HTTP/2, which comes later"),
    refused("tcp-ut", "<time>", LATER),
    refused("tcp-md5sig", "<password>", LATER),
    refused("cc", "<algorithm>", LATER),
    refused("quic-cc-algo", "<algorithm>", "there is no QUIC"),
    refused("usesrc", "<address>", LATER),
];

fn set(what: &mut bool, on: bool) -> Result<(), Fault> {
    *what = on;
    Ok(())
}

fn count(args: &mut Args<'_>) -> Result<u32, Fault> {
    Ok(args.integer("<requests>", 0..=i64::from(u32::MAX / 2))? as u32)
}

fn interval(args: &mut Args<'_>) -> Result<Duration, Fault> {
    match args.time("<time>")? {
        Duration::ZERO => Err(args.fault("checks cannot follow each other without a pause")),
        time => Ok(time),
    }
}

fn only_h1(args: &mut Args<'_>) -> Result<(), Fault> {
    match args.need("<name>")? {
        "h1" => Ok(()),
        "h2" => Err(args.fault("'h2' is not supported: HTTP/2 comes later")),
        other => Err(args.fault(format!("unknown protocol '{other}'"))),
    }
}

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: ParamParser<Draft>) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

const fn accepted(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Accepted(why) }
}

pub(super) const fn refused(name: &'static str, arguments: &'static str, reason: &'static str) -> Param<Draft> {
    Param { name, arguments, summary: reason, kind: ParamKind::Refused(reason) }
}

/// So that health, which counts both, stays small.
const MOST_CHECKS: i64 = 1 << 24;
const AGENT: &str = "agents come later; 'check' is built";
const LATER: &str = "it comes later";
const PROXY_PROTOCOL: &str = "the PROXY protocol to servers comes later";
const RUN_TIME_NAMES: &str = "names are resolved by the system, at start";
