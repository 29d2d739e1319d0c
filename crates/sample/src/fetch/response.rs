//! The response's first line.

use crate::registry::{Fetch, Needs};
use crate::value::{Type, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("status", Type::Int, "The response's status.", |_, env| env.response.map(|r| Value::Int(r.status.into())))
        .needs(Needs::RESPONSE),
    Fetch::one("res.ver", Type::Str, "The response's version, such as 1.1.", |_, env| {
        env.response.map(|r| Value::str(&r.version.name().as_bytes()[5..]))
    })
    .also(&["resp_ver"])
    .needs(Needs::RESPONSE),
];
