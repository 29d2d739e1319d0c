//! Frontends, backends and listening addresses: names, numbers, how many connections they have.

use super::lookup::{Named, backend, frontend};
use super::{checked, facts};
use terse_balance::{Farm, Server};
use terse_sample::argument::{Param, ParamKind, may};
use terse_sample::{Env, Fetch, Type, Value};

/// The name of a proxy; without it the stream's own.
const PROXY: &[Param] = &[may(ParamKind::Str)];

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("fe_name", Type::Str, "The frontend's name.", |_, env| Some(Value::str(facts(env)?.frontend().name.as_bytes()))),
    Fetch::one("fe_id", Type::Int, "The frontend's number.", |_, env| Some(Value::Int(facts(env)?.frontend().id.into()))),
    Fetch::one("fe_defbe", Type::Str, "The name of the frontend's default backend.", |_, env| {
        let facts = facts(env)?;
        let backend = facts.session.worker.backend(facts.frontend().default_backend?)?;
        Some(Value::Str(backend.name.as_bytes().to_vec().into()))
    }),
    Fetch::one("be_name", Type::Str, "The backend's name; the frontend's, until a backend is chosen.", |_, env| be_name(env)),
    Fetch::one("be_id", Type::Int, "The backend's number; the frontend's, until a backend is chosen.", |_, env| {
        let facts = facts(env)?;
        Some(Value::Int(facts.backend().map_or(facts.frontend().id, |backend| backend.id).into()))
    }),
    Fetch::one("so_id", Type::Int, "The number of the address that the client connected to.", |_, env| {
        let facts = facts(env)?;
        let bind = facts.plan().binds.get(facts.session.bind)?;
        Some(Value::Int(bind.id.into()))
    }),
    Fetch::one("so_name", Type::Str, "The name of the 'bind' line that the client connected to.", |_, env| {
        let facts = facts(env)?;
        let bind = facts.plan().binds.get(facts.session.bind)?;
        Some(Value::str(bind.settings.name.as_deref()?.as_bytes()))
    }),
    Fetch::one("fc_src", Type::Addr, "The client's address, whatever rules made of it.", |_, env| {
        Some(Value::Addr(facts(env)?.session.client.get()?.ip()))
    }),
    Fetch::one("fc_src_port", Type::Int, "The client's port, whatever rules made of it.", |_, env| {
        Some(Value::Int(facts(env)?.session.client.get()?.port().into()))
    }),
    Fetch::one("fc_dst", Type::Addr, "The address that the client connected to, whatever rules made of it.", |_, env| {
        Some(Value::Addr(facts(env)?.session.local.get()?.ip()))
    }),
    Fetch::one("fc_dst_port", Type::Int, "The port that the client connected to, whatever rules made of it.", |_, env| {
        Some(Value::Int(facts(env)?.session.local.get()?.port().into()))
    }),
    Fetch::one("act_conn", Type::Int, "Clients' connections in the process.", |_, env| {
        Some(count(facts(env)?.session.worker.connections()))
    }),
    Fetch::one("fe_conn", Type::Int, "Connections of a frontend.", |args, env| Some(count(frontend(args, env)?.tally.current())))
        .params(PROXY)
        .check(Named::frontend),
    Fetch::one("dst_conn", Type::Int, "Connections of the stream's frontend.", |_, env| {
        Some(count(facts(env)?.frontend().tally.current()))
    }),
    Fetch::one("be_conn", Type::Int, "Streams of a backend.", |args, env| Some(count(backend(args, env)?.tally.current())))
        .params(PROXY)
        .check(Named::backend),
    Fetch::one("be_conn_free", Type::Int, "Slots of a backend's servers that are free; -1 when one has no limit.", |args, env| {
        Some(Value::Int(free_slots(&backend(args, env)?.farm)))
    })
    .params(PROXY)
    .check(Named::backend),
    Fetch::one(
        "connslots",
        Type::Int,
        "Free slots and free places in queues of a backend; -1 when there is no limit.",
        |args, env| Some(Value::Int(slots_and_places(&backend(args, env)?.farm))),
    )
    .params(PROXY)
    .check(Named::backend),
    Fetch::one("nbsrv", Type::Int, "How many servers of a backend can be used.", |args, env| {
        Some(count(usable(&backend(args, env)?.farm)))
    })
    .params(PROXY)
    .check(Named::backend),
    Fetch::one("queue", Type::Int, "Requests that wait in a backend.", |args, env| Some(count(backend(args, env)?.farm.waiting())))
        .params(PROXY)
        .check(Named::backend),
    Fetch::one("avg_queue", Type::Int, "Requests that wait in a backend, by server.", |args, env| {
        let backend = backend(args, env)?;
        let farm = &backend.farm;
        Some(Value::Int(average_queue(farm.waiting().into(), usable(farm).into())))
    })
    .params(PROXY)
    .check(Named::backend),
    Fetch::one("be_tunnel_timeout", Type::Int, "The backend's 'timeout tunnel' in milliseconds.", |_, env| {
        Some(count(facts(env)?.backend()?.timeouts.tunnel?.as_millis()))
    }),
    Fetch::one("be_server_timeout", Type::Int, "The backend's 'timeout server' in milliseconds.", |_, env| {
        Some(count(facts(env)?.backend()?.timeouts.server?.as_millis()))
    }),
    Fetch::one("be_connect_timeout", Type::Int, "The backend's 'timeout connect' in milliseconds.", |_, env| {
        Some(count(facts(env)?.backend()?.timeouts.connect?.as_millis()))
    }),
    Fetch::one("be_queue_timeout", Type::Int, "The backend's 'timeout queue' in milliseconds.", |_, env| {
        Some(count(facts(env)?.backend()?.timeouts.queue?.as_millis()))
    }),
    Fetch::one("be_tarpit_timeout", Type::Int, "The backend's 'timeout tarpit' in milliseconds.", |_, env| {
        Some(count(facts(env)?.backend()?.timeouts.tarpit?.as_millis()))
    }),
    Fetch::one("be_max_retries", Type::Int, "The backend's 'retries'.", |_, env| {
        Some(Value::Int(facts(env)?.backend()?.retries.into()))
    }),
    Fetch::one("cur_max_retries", Type::Int, "How often the request may be tried again, with what rules say.", |_, env| {
        let facts = facts(env)?;
        facts.backend()?;
        Some(Value::Int(facts.retries_allowed().into()))
    }),
    Fetch::one("fe_client_timeout", Type::Int, "The frontend's 'timeout client' in milliseconds.", |_, env| {
        Some(count(facts(env)?.frontend().timeouts.client?.as_millis()))
    }),
    Fetch::one("fe_tarpit_timeout", Type::Int, "The frontend's 'timeout tarpit' in milliseconds.", |_, env| {
        Some(count(facts(env)?.frontend().timeouts.tarpit?.as_millis()))
    }),
    Fetch::one("cur_client_timeout", Type::Int, "The stream's 'timeout client' in milliseconds.", |_, env| {
        Some(count(facts(env)?.timeouts().client?.as_millis()))
    }),
    Fetch::one("cur_connect_timeout", Type::Int, "The stream's 'timeout connect' in milliseconds.", |_, env| {
        Some(count(facts(env)?.timeouts().connect?.as_millis()))
    }),
    Fetch::one("cur_queue_timeout", Type::Int, "The stream's 'timeout queue' in milliseconds.", |_, env| {
        Some(count(facts(env)?.timeouts().queue?.as_millis()))
    }),
    Fetch::one("cur_server_timeout", Type::Int, "The stream's 'timeout server' in milliseconds.", |_, env| {
        Some(count(facts(env)?.timeouts().server?.as_millis()))
    }),
    Fetch::one("cur_tarpit_timeout", Type::Int, "The stream's 'timeout tarpit' in milliseconds.", |_, env| {
        Some(count(facts(env)?.timeouts().tarpit?.as_millis()))
    }),
    Fetch::one("cur_tunnel_timeout", Type::Int, "The stream's 'timeout tunnel' in milliseconds.", |_, env| {
        Some(count(facts(env)?.timeouts().tunnel?.as_millis()))
    }),
];

/// The backend's name; the frontend's, until a backend is chosen.
pub(super) fn be_name<'a>(env: &Env<'a>) -> Option<Value<'a>> {
    let name = match facts(env) {
        Some(facts) => facts.backend().map_or(&facts.frontend().name, |backend| &backend.name),
        None => &checked(env)?.backend().name,
    };
    Some(Value::str(name.as_bytes()))
}

/// A number that is never so large that it does not fit.
pub(super) fn count(n: impl TryInto<i64>) -> Value<'static> {
    Value::Int(n.try_into().unwrap_or(i64::MAX))
}

/// Number of servers that new clients can be sent to: active servers, or else all backups, or else the first backup.
pub(super) fn usable(farm: &Farm) -> u32 {
    match farm.up() {
        (0, backups) if !farm.settings().all_backups => backups.min(1),
        (0, backups) => backups,
        (active, _) => active,
    }
}

/// The waiting streams per server; twice their number when there is no server, since a server will come back soon.
fn average_queue(waiting: i64, servers: i64) -> i64 {
    if servers > 0 { (waiting + servers - 1) / servers } else { waiting * 2 }
}

/// Free slots of the servers that are used now.
fn free_slots(farm: &Farm) -> i64 {
    let backups_only = farm.up().0 == 0;
    let servers = farm.servers();
    let used = servers.iter().filter(|server| server.is_eligible() && (backups_only || !server.settings().backup));
    sum(used, free)
}

/// Free slots, and free places in queues, of all servers that are up.
fn slots_and_places(farm: &Farm) -> i64 {
    sum(farm.servers().iter().filter(|server| server.is_up()), |server| {
        let places = server.settings().maxqueue;
        Some(free(server)? + i64::from(places) - i64::from(server.queued())).filter(|_| places > 0)
    })
}

/// Free slots of a server; `None` when it has no limit.
pub(super) fn free(server: &Server) -> Option<i64> {
    let limit = server.maxconn();
    (limit > 0).then(|| i64::from(limit.saturating_sub(server.served())))
}

fn sum<'a>(servers: impl Iterator<Item = &'a std::sync::Arc<Server>>, each: impl Fn(&Server) -> Option<i64>) -> i64 {
    servers.map(|server| each(server)).sum::<Option<i64>>().unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_on_average() {
        for (waiting, servers, expected) in [(0, 0, 0), (5, 0, 10), (5, 2, 3), (4, 2, 2), (0, 3, 0)] {
            assert_eq!(average_queue(waiting, servers), expected);
        }
    }
}
