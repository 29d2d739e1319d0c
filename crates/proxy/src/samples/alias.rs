//! Aliases of log formats: proxies, server, bytes, counts, how the stream ended.

use super::proxy::{be_name, count};
use super::server::server_address;
use super::{facts, socket, stream};
use crate::facts::Facts;
use crate::session::Session;
use std::net::SocketAddr;
use terse_sample::{Alias, Env, Octets, Value};

/// The table.
pub(super) const ALIASES: &[Alias] = &[
    Alias::text("ci", "The client's address; 'unix' where it came by a unix socket.", |env| ip(env.client, env)),
    Alias::number("cp", "The client's port; the number of the 'bind' line where it came by a unix socket.", |env| {
        port(env.client, env)
    })
    .digits(4),
    Alias::text("fi", "The address that the client connected to; 'unix' where it is a unix socket.", |env| ip(env.local, env)),
    Alias::number("fp", "The port that the client connected to; the number of the 'bind' line where it is a unix socket.", |env| {
        port(env.local, env)
    })
    .digits(4),
    Alias::text("f", "The frontend's name.", |env| Some(Value::str(facts(env)?.frontend().name.as_bytes()))),
    Alias::text("ft", "The frontend's name; '~' behind it for TLS.", |env| {
        let facts = facts(env)?;
        let name = facts.frontend().name.as_bytes();
        Some(match facts.session.tls() {
            Some(_) => Value::Str(Octets::from([name, b"~"].concat())),
            None => Value::str(name),
        })
    }),
    Alias::text("b", "The backend's name.", be_name),
    Alias::text("s", "The server's name.", |env| {
        let facts = facts(env)?;
        if let Some(name) = facts.stage.get().and_then(|stage| stage.service_name()) {
            return Some(Value::Str(Octets::from(name.into_bytes())));
        }
        let none = match &facts.caching {
            Some(caching) if caching.answered.is_some() => "<CACHE>",
            _ if facts.by_service => "<STATS>",
            _ => "<NOSRV>",
        };
        Some(Value::str(facts.server.as_ref().map_or(none, |server| &**server.name()).as_bytes()))
    }),
    Alias::text("si", "The server's address; 'unix' for a unix socket.", |env| {
        let over_unix = || is_over_unix(env)?.then(|| Value::str(b"unix"));
        server_address(env).map(|address| Value::Addr(address.ip())).or_else(over_unix)
    }),
    Alias::number("sp", "The server's port; 0 for a unix socket.", |env| {
        let over_unix = || is_over_unix(env)?.then_some(Value::Int(0));
        server_address(env).map(|address| Value::Int(address.port().into())).or_else(over_unix)
    })
    .digits(4),
    Alias::text("bi", "The address from which the server was connected to; 'unix' for a unix socket.", |env| {
        let over_unix = || is_over_unix(env)?.then(|| Value::str(b"unix"));
        facts(env)?.server_local.map(|address| Value::Addr(address.ip())).or_else(over_unix)
    }),
    Alias::number("bp", "The port from which the server was connected to; 0 for a unix socket.", |env| {
        let over_unix = || is_over_unix(env)?.then_some(Value::Int(0));
        facts(env)?.server_local.map(|address| Value::Int(address.port().into())).or_else(over_unix)
    })
    .digits(4),
    Alias::number("ST", "The status that the client was sent; -1 when it was sent none, 0 in mode tcp.", stream::status),
    Alias::number("B", "Bytes that the client was sent; '+' before them when more may follow ('option logasap').", |env| {
        let facts = facts(env)?;
        Some(still(facts, count(facts.figures.bytes_out.get())))
    }),
    Alias::number("U", "Bytes that the client sent.", |env| Some(count(facts(env)?.figures.bytes_in.get()))),
    Alias::plain("ts", "Who ended the stream, and when: two letters.", stream::state),
    Alias::plain("tsc", "The same, and two letters for the persistence cookie.", |env| {
        let facts = facts(env)?;
        let ([who, when], [found, sent]) = (stream::letters(env)?, facts.cookie_letters());
        Some(Value::Str(Octets::copy(&[who, when, found, sent])))
    }),
    Alias::number("ac", "Clients' connections in the process.", |env| Some(count(facts(env)?.session.worker.connections()))),
    Alias::number("fc", "Connections of the frontend.", |env| Some(count(facts(env)?.frontend().tally.current()))),
    Alias::number("bc", "Streams of the backend.", |env| {
        Some(facts(env)?.backend().map_or(Value::Int(0), |backend| count(backend.tally.current())))
    }),
    Alias::number("sc", "Streams of the server.", |env| {
        Some(Value::Int(facts(env)?.server.as_ref().map_or(0, |server| server.served().into())))
    }),
    Alias::number("rc", "How often the request was tried again; '+' before it when it went to another server.", |env| {
        let facts = facts(env)?;
        let sign = if facts.redispatched { "+" } else { "" };
        Some(Value::Str(Octets::copy(format!("{sign}{}", facts.retries).as_bytes())))
    }),
    Alias::number("sq", "Requests that were before this one in the server's queue.", |env| {
        Some(Value::Int(facts(env)?.queue_positions.0.into()))
    }),
    Alias::number("bq", "Requests that were before this one in the backend's queue.", |env| {
        Some(Value::Int(facts(env)?.queue_positions.1.into()))
    }),
    Alias::number("rt", "A number of 32 bits that tells streams apart.", |env| Some(Value::Int((facts(env)?.id as u32).into())))
        .digits(4),
    Alias::text("ID", "The stream's identifier: 'unique-id-format'.", stream::unique_id),
    Alias::text("H", "The machine's name.", |_| Some(Value::Str(Octets::copy(rustix::system::uname().nodename().to_bytes())))),
    Alias::number("pid", "The process's id.", |_| Some(Value::Int(std::process::id().into()))).digits(4),
    Alias::text("sslc", "The cipher of the client's TLS connection.", |env| {
        let tls = facts(env)?.session.tls()?;
        Some(Value::str(tls.handshake().cipher().unwrap_or("(NONE)").as_bytes()))
    }),
    Alias::text("sslv", "The version of the client's TLS connection.", |env| {
        facts(env)?.session.tls().map(|tls| Value::str(tls.handshake().version().as_bytes()))
    }),
    Alias::number("lc", "How many lines the frontend has logged before this one.", |env| {
        Some(count(facts(env)?.frontend().tally.totals().logged))
    })
    .digits(4),
    Alias::text("OG", "Why the line is logged: at which step, or by which rules.", |env| {
        Some(Value::str(facts(env)?.origin.get().name().as_bytes()))
    }),
];

/// Whether the server was connected to by a unix socket.
fn is_over_unix(env: &Env<'_>) -> Option<bool> {
    let facts = facts(env)?;
    Some(facts.server_socket.is_some() && facts.server.as_ref()?.address().destination().is_none())
}

fn ip(address: Option<&SocketAddr>, env: &Env<'_>) -> Option<Value<'static>> {
    let over_unix = || socket::over_unix(env).map(|_| Value::str(b"unix"));
    address.map(|address| Value::Addr(address.ip())).or_else(over_unix)
}

fn port(address: Option<&SocketAddr>, env: &Env<'_>) -> Option<Value<'static>> {
    let number = |session: &Session| Some(session.worker.plan.binds.get(session.bind)?.id);
    let over_unix = || socket::over_unix(env).and_then(number).map(|id| Value::Int(id.into()));
    address.map(|address| Value::Int(address.port().into())).or_else(over_unix)
}

/// A number that a line shows which was written before it was final: `option logasap` puts a '+' before it.
pub(super) fn still<'a>(facts: &Facts, number: Value<'a>) -> Value<'a> {
    match number {
        Value::Int(number) if facts.frontend().log.settings.as_soon_as_possible => {
            Value::Str(Octets::copy(format!("+{number}").as_bytes()))
        }
        number => number,
    }
}
