//! Aliases of log formats: proxies, server, bytes, counts, how the stream ended.

use super::proxy::{be_name, count};
use super::server::server_address;
use super::{facts, stream};
use crate::facts::Facts;
use terse_sample::{Alias, Octets, Value};

/// The table.
pub(super) const ALIASES: &[Alias] = &[
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
    Alias::text("si", "The server's address.", |env| server_address(env).map(|address| Value::Addr(address.ip()))),
    Alias::number("sp", "The server's port.", |env| server_address(env).map(|address| Value::Int(address.port().into()))).digits(4),
    Alias::text("bi", "The address from which the server was connected to.", |env| {
        facts(env)?.server_local.map(|address| Value::Addr(address.ip()))
    }),
    Alias::number("bp", "The port from which the server was connected to.", |env| {
        facts(env)?.server_local.map(|address| Value::Int(address.port().into()))
    })
    .digits(4),
    Alias::number("ST", "The status that the client was sent; -1 when it was sent none.", stream::status),
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

/// A number that a line shows which was written before it was final: `option logasap` puts a '+' before it.
pub(super) fn still<'a>(facts: &Facts, number: Value<'a>) -> Value<'a> {
    match number {
        Value::Int(number) if facts.frontend().log.settings.as_soon_as_possible => {
            Value::Str(Octets::copy(format!("+{number}").as_bytes()))
        }
        number => number,
    }
}
