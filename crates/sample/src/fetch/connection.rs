//! The client's connection: addresses and ports.

use crate::registry::Fetch;
use crate::value::{Type, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("src", Type::Addr, "The client's address.", |_, env| env.client.map(|a| Value::Addr(a.ip()))),
    Fetch::one("src_port", Type::Int, "The client's port.", |_, env| env.client.map(|a| Value::Int(a.port().into()))),
    Fetch::one("dst", Type::Addr, "The address that the client connected to.", |_, env| env.local.map(|a| Value::Addr(a.ip()))),
    Fetch::one("dst_port", Type::Int, "The port that the client connected to.", |_, env| {
        env.local.map(|a| Value::Int(a.port().into()))
    }),
];
