//! Fetches and aliases of log formats that need the stream, its proxies, its server or the plan: the data of [`Facts`].
//!
//! A fetch is an entry of a table, with a file for each family of fetches. Where HAProxy's "current backend" is asked for
//! before a backend is chosen, there is no value.

mod alias;
mod announcement;
mod body;
mod cache;
mod capture;
mod course;
mod date;
mod hello;
mod inside;
mod later;
pub(crate) mod lookup;
mod payload;
mod proxy;
mod rate;
mod server;
mod socket;
mod stream;
mod table;
mod task;
mod timer;
mod tls;
pub(crate) mod trail;

use crate::checked::Checked;
use crate::facts::Facts;
use crate::plan::Plan;
use std::sync::Arc;
use terse_balance::Server;
use terse_sample::{Alias, Converter, Env, Fetch};

/// The tables of fetches.
pub const FETCHES: &[&[Fetch]] = &[
    proxy::FETCHES,
    payload::FETCHES,
    hello::FETCHES,
    body::FETCHES,
    server::FETCHES,
    stream::FETCHES,
    timer::FETCHES,
    date::FETCHES,
    capture::FETCHES,
    tls::OF_CLIENT,
    tls::OF_SERVER,
    tls::COMPRESSION,
    tls::VERIFIED,
    tls::CLIENTS,
    tls::OURS,
    tls::SERVERS,
    tls::OTHERS,
    tls::ERRORS,
    tls::EARLY,
    tls::SECRETS,
    tls::FORMER,
    tls::HELLO,
    rate::FETCHES,
    socket::FETCHES,
    announcement::FETCHES,
    later::INSIDE,
    inside::FETCHES,
    task::OF_STREAMS,
    task::OF_WORKERS,
    later::GATEWAYS,
    later::AGENTS,
    later::DEVICES,
    cache::FETCHES,
    table::TABLES,
    table::ANY_SLOT,
    table::SLOT_0,
    table::SLOT_1,
    table::SLOT_2,
    table::OF_CLIENT,
];

/// The tables of converters.
pub const CONVERTERS: &[&[Converter]] = &[
    tls::CONVERTERS,
    lookup::CONVERTERS,
    course::CONVERTERS,
    capture::CONVERTERS,
    trail::CONVERTERS,
    table::CONVERTERS,
    table::AGES,
];

/// The tables of aliases.
pub const ALIASES: &[&[Alias]] = &[alias::ALIASES, date::ALIASES, timer::ALIASES, capture::ALIASES];

/// The facts of the stream, where there is one.
fn facts<'a>(env: &Env<'a>) -> Option<&'a Facts> {
    env.facts()
}

/// The data of a check, if the expression belongs to a check.
fn checked<'a>(env: &Env<'a>) -> Option<&'a Checked> {
    env.facts()
}

/// The process's plan.
fn plan<'a>(env: &Env<'a>) -> Option<&'a Plan> {
    facts(env).map(Facts::plan).or_else(|| Some(checked(env)?.plan()))
}

/// The stream's server, or the checked server.
fn its_server<'a>(env: &Env<'a>) -> Option<&'a Arc<Server>> {
    match facts(env) {
        Some(facts) => facts.server.as_ref(),
        None => checked(env).map(|checked| &checked.server),
    }
}

#[cfg(test)]
mod tests;
