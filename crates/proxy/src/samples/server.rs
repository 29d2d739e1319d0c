//! The stream's server, and servers by name.

use super::lookup::{Named, server};
use super::proxy::{count, free};
use super::{facts, its_server};
use std::net::SocketAddr;
use terse_sample::argument::{Param, ParamKind, need};
use terse_sample::{Env, Fetch, Needs, Type, Value};

/// `[<backend>/]<server>`
const SERVER: &[Param] = &[need(ParamKind::Str)];

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("srv_name", Type::Str, "The server's name.", |_, env| Some(Value::str(its_server(env)?.name().as_bytes())))
        .needs(Needs::SERVER),
    Fetch::one("srv_id", Type::Int, "The server's number.", |_, env| Some(Value::Int(its_server(env)?.id().into())))
        .needs(Needs::SERVER),
    Fetch::one("bc_dst", Type::Addr, "The server's address.", |_, env| server_address(env).map(|a| Value::Addr(a.ip())))
        .needs(Needs::SERVER),
    Fetch::one("bc_dst_port", Type::Int, "The server's port.", |_, env| server_address(env).map(|a| Value::Int(a.port().into())))
        .needs(Needs::SERVER),
    Fetch::one("bc_src", Type::Addr, "The address from which the server was connected to.", |_, env| {
        facts(env)?.server_local.map(|address| Value::Addr(address.ip()))
    })
    .needs(Needs::SERVER),
    Fetch::one("bc_src_port", Type::Int, "The port from which the server was connected to.", |_, env| {
        facts(env)?.server_local.map(|address| Value::Int(address.port().into()))
    })
    .needs(Needs::SERVER),
    Fetch::one("bc_reused", Type::Bool, "Whether the connection to the server had carried another request.", |_, env| {
        Some(Value::Bool(facts(env)?.server_reused))
    })
    .needs(Needs::SERVER),
    Fetch::one("bc_http_major", Type::Int, "The major version of HTTP that the server is spoken to with.", |_, env| {
        let facts = facts(env)?;
        facts.server.as_ref().map(|_| Value::Int(if facts.server_http2.is_some() { 2 } else { 1 }))
    })
    .needs(Needs::SERVER),
    Fetch::one("bc_srv_queue", Type::Int, "Requests that were before this one in the server's queue.", |_, env| {
        Some(Value::Int(facts(env)?.queue_positions.0.into()))
    }),
    Fetch::one("bc_be_queue", Type::Int, "Requests that were before this one in the backend's queue.", |_, env| {
        Some(Value::Int(facts(env)?.queue_positions.1.into()))
    }),
    Fetch::one("srv_is_up", Type::Bool, "Whether a server is up.", |args, env| Some(Value::Bool(server(args, env)?.is_up())))
        .params(SERVER)
        .check(Named::server),
    Fetch::one("srv_conn", Type::Int, "Requests that a server has now.", |args, env| {
        Some(Value::Int(server(args, env)?.served().into()))
    })
    .params(SERVER)
    .check(Named::server),
    Fetch::one("srv_conn_free", Type::Int, "Slots of a server that are free; -1 when it has no limit.", |args, env| {
        Some(Value::Int(free(&*server(args, env)?).unwrap_or(-1)))
    })
    .params(SERVER)
    .check(Named::server),
    Fetch::one("srv_queue", Type::Int, "Requests that wait for a server.", |args, env| {
        Some(Value::Int(server(args, env)?.queued().into()))
    })
    .params(SERVER)
    .check(Named::server),
    Fetch::one("srv_weight", Type::Int, "The weight of a server that counts now.", |args, env| {
        Some(Value::Int(server(args, env)?.effective_weight().into()))
    })
    .params(SERVER)
    .check(Named::server),
    Fetch::one("srv_uweight", Type::Int, "The weight of a server that was set.", |args, env| {
        Some(Value::Int(server(args, env)?.weight().into()))
    })
    .params(SERVER)
    .check(Named::server),
    Fetch::one("srv_iweight", Type::Int, "The weight of a server that its line says.", |args, env| {
        Some(count(server(args, env)?.settings().weight))
    })
    .params(SERVER)
    .check(Named::server),
];

/// The address of the stream's server, when it is an IP address.
pub(super) fn server_address(env: &Env<'_>) -> Option<SocketAddr> {
    let facts = facts(env)?;
    facts.server.as_ref()?.address().destination()?.of(facts.local)
}
