//! Samples of a stream's cache.

use super::facts;
use terse_sample::{Env, Fetch, Needs, Type, Value};

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("res.cache_hit", Type::Bool, "Whether the response came from a cache.", |_, env| {
        Some(Value::Bool(name(env).is_some()))
    })
    .needs(Needs::RESPONSE),
    Fetch::one("res.cache_name", Type::Str, "The name of the cache that the response came from.", |_, env| {
        name(env).map(|name| Value::str(name.as_bytes()))
    })
    .needs(Needs::RESPONSE),
];

fn name<'a>(env: &Env<'a>) -> Option<&'a str> {
    facts(env)?.caching.as_ref()?.answered.as_ref().map(|cache| &*cache.name)
}
