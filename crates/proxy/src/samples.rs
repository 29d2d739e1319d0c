//! Fetches and aliases of log formats that need to know the stream, its proxies, its server or the plan: what lies in [`Facts`].
//!
//! A fetch is an entry of a table, a family of fetches a file. Where HAProxy's "current backend" is asked for before one is chosen,
//! there is no value.

mod alias;
mod announcement;
mod body;
mod capture;
mod date;
mod hello;
mod later;
mod payload;
mod proxy;
mod server;
mod stream;
mod timer;
mod tls;

use crate::facts::Facts;
use terse_sample::{Alias, Env, Fetch};

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
    tls::WHETHER,
    tls::ERRORS,
    tls::WHAT,
    later::RATES,
    later::OUR_END,
    later::SOCKETS,
    announcement::FETCHES,
    later::CONNECTIONS,
    later::PROCESS,
    later::CACHES,
    later::TABLES,
];

/// The tables of aliases.
pub const ALIASES: &[&[Alias]] = &[alias::ALIASES, date::ALIASES, timer::ALIASES, capture::ALIASES];

/// The facts of the stream, where there is one.
fn facts<'a>(env: &Env<'a>) -> Option<&'a Facts> {
    env.facts()
}

#[cfg(test)]
mod tests;
