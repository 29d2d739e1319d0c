//! Commands, a family per file.

pub(crate) mod absent;
mod authority;
mod backend;
mod cache;
mod certificate;
mod certificate_list;
mod certificate_state;
mod compression;
pub(crate) mod conversation;
mod cookie;
mod counters;
mod debug;
mod decompression;
mod dictionary;
mod engines;
mod errors;
mod events;
mod frontends;
pub(crate) mod info;
mod internals;
mod limits;
mod membership;
mod memory;
mod pattern;
mod peers;
mod process;
mod publication;
pub(crate) mod resolvers;
mod server;
mod servers;
mod sessions;
mod statistics;
mod table;
mod ticket_keys;
mod variable;
pub(crate) mod waiting;
mod weight;

use crate::command::Command;

/// All families.
pub(crate) const FAMILIES: &[&[Command]] = &[
    authority::COMMANDS,
    backend::COMMANDS,
    certificate::COMMANDS,
    certificate_state::COMMANDS,
    certificate_list::COMMANDS,
    cache::COMMANDS,
    compression::COMMANDS,
    decompression::COMMANDS,
    dictionary::COMMANDS,
    conversation::COMMANDS,
    cookie::COMMANDS,
    counters::COMMANDS,
    debug::COMMANDS,
    engines::COMMANDS,
    errors::COMMANDS,
    events::COMMANDS,
    frontends::COMMANDS,
    info::COMMANDS,
    internals::COMMANDS,
    limits::COMMANDS,
    membership::COMMANDS,
    memory::COMMANDS,
    publication::COMMANDS,
    pattern::COMMANDS,
    process::COMMANDS,
    peers::COMMANDS,
    resolvers::COMMANDS,
    server::COMMANDS,
    servers::COMMANDS,
    sessions::COMMANDS,
    statistics::COMMANDS,
    table::COMMANDS,
    ticket_keys::COMMANDS,
    variable::COMMANDS,
    waiting::COMMANDS,
    weight::COMMANDS,
];

#[cfg(test)]
pub(crate) mod fixture;
