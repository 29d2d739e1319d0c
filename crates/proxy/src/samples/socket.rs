//! Facts known to the kernel: whether addresses are this machine's, and the state of a TCP connection (`TCP_INFO`).
//!
//! Each value costs a system call, when it is asked for.

use super::facts;
use crate::io::tcp_info::{TcpInfo, saved_syn, tcp_info};
use crate::session::Session;
use socket2::{Domain, Socket, Type as SocketType};
use std::net::{IpAddr, SocketAddr};
use terse_sample::argument::{Arg, Param, ParamKind, may};
use terse_sample::{ArgList, Compiler, Env, Fetch, Needs, Octets, Type, Value};

/// `us` or `ms`
const UNIT: &[Param] = &[may(ParamKind::Str)];

macro_rules! local {
    ($name:literal, $summary:literal, $address:expr) => {
        Fetch::one($name, Type::Bool, $summary, |_, env| {
            let address: fn(&Env<'_>) -> Option<SocketAddr> = $address;
            match address(env) {
                Some(address) => Some(Value::Bool(is_local(address.ip()))),
                None => over_unix(env).map(|_| Value::Bool(true)),
            }
        })
    };
}

macro_rules! client {
    ($name:literal, $summary:literal, $read:expr) => {
        Fetch::one($name, Type::Int, $summary, |args, env| {
            let read: fn(&TcpInfo, &ArgList) -> i64 = $read;
            Some(Value::Int(read(&client(env)?, args)))
        })
    };
}

macro_rules! server {
    ($name:literal, $summary:literal, $read:expr) => {
        Fetch::one($name, Type::Int, $summary, |args, env| {
            let read: fn(&TcpInfo, &ArgList) -> i64 = $read;
            Some(Value::Int(read(&server(env)?, args)))
        })
        .needs(Needs::SERVER)
    };
}

/// The session, where its client came by a unix socket, and no PROXY header has set an address.
pub(super) fn over_unix<'a>(env: &Env<'a>) -> Option<&'a Session> {
    let session: &Session = &facts(env)?.session;
    (session.socket.get().is_some() && session.client.get().is_none()).then_some(session)
}

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    local!("src_is_local", "Whether the client's address is one of this machine.", |env| env.client.copied()),
    local!("dst_is_local", "Whether the address that the client connected to is one of this machine.", |env| env.local.copied()),
    local!("fc_src_is_local", "`src_is_local`, whatever rules made of the address.", |env| facts(env)?.session.client.get()),
    local!("fc_dst_is_local", "`dst_is_local`, whatever rules made of the address.", |env| facts(env)?.session.local.get()),
    client!("fc_rtt", "The round trip to the client, in milliseconds or with 'us' in microseconds.", |info, args| {
        unit(info.rtt_us, args)
    })
    .params(UNIT)
    .check(check_unit),
    client!("fc_rttvar", "How much the round trip to the client varies.", |info, args| unit(info.rttvar_us, args))
        .params(UNIT)
        .check(check_unit),
    client!("fc_unacked", "Segments to the client that are not acknowledged.", |info, _| info.unacked.into()),
    client!("fc_sacked", "Segments to the client that are acknowledged by themselves.", |info, _| info.sacked.into()),
    client!("fc_lost", "Segments to the client that are taken for lost.", |info, _| info.lost.into()),
    client!("fc_retrans", "Segments to the client that were sent again.", |info, _| info.retransmitted.into()),
    client!("fc_fackets", "Segments to the client up to the last that is acknowledged by itself.", |info, _| info.fackets.into()),
    client!("fc_reordering", "How far segments to the client may come out of order.", |info, _| info.reordering.into()),
    Fetch::one(
        "fc_saved_syn",
        Type::Bin,
        "The packet that opened the client's connection, where 'tcp-ss' on its 'bind' line keeps it; it is given once.",
        |_, env| Some(Value::Bin(Octets::from(saved_syn(facts(env)?.session.socket.get()?)?))),
    ),
    server!("bc_rtt", "The round trip to the server, in milliseconds or with 'us' in microseconds.", |info, args| {
        unit(info.rtt_us, args)
    })
    .params(UNIT)
    .check(check_unit),
    server!("bc_rttvar", "How much the round trip to the server varies.", |info, args| unit(info.rttvar_us, args))
        .params(UNIT)
        .check(check_unit),
];

/// An address that a socket can be bound to is this machine's.
fn is_local(address: IpAddr) -> bool {
    let address = SocketAddr::new(address, 0);
    Socket::new(Domain::for_address(address), SocketType::STREAM, None).and_then(|socket| socket.bind(&address.into())).is_ok()
}

fn client(env: &Env<'_>) -> Option<TcpInfo> {
    tcp_info(facts(env)?.session.socket.get()?)
}

fn server(env: &Env<'_>) -> Option<TcpInfo> {
    tcp_info(facts(env)?.server_socket?)
}

fn unit(us: u32, args: &ArgList) -> i64 {
    i64::from(us) / args.int(0).unwrap_or(1000)
}

fn check_unit(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let per_unit = match args.first() {
        None | Some(Arg::None) => 1000,
        Some(Arg::Str(word)) => match &**word {
            b"" | b"ms" => 1000,
            b"us" => 1,
            other => return Err(format!("expects 'us' or 'ms', not '{}'", other.escape_ascii())),
        },
        _ => return Err("expects 'us' or 'ms'".into()),
    };
    *args = vec![Arg::Int(per_unit)];
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine() {
        assert!(is_local("127.0.0.1".parse().unwrap()));
        // Kept for documentation (RFC 5737).
        assert!(!is_local("203.0.113.9".parse().unwrap()));
    }
}
