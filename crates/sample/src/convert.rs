//! The converters that need only their value, their arguments and variables.

#![allow(clippy::ptr_arg, reason = "checks of arguments share one signature, and some of them add arguments")]

use crate::registry::Converter;

mod address;
mod arithmetic;
pub mod base64;
mod digest;
mod encoding;
mod fix;
pub mod forwarded;
pub mod hash;
mod http;
mod json;
pub mod json_query;
mod jwt;
mod map;
mod mqtt;
mod packet;
mod part;
mod protobuf;
mod refused;
mod text;
pub mod time;
mod url;
mod variable;

/// All tables of this folder.
pub(crate) const TABLES: &[&[Converter]] = &[
    address::CONVERTERS,
    arithmetic::CONVERTERS,
    base64::CONVERTERS,
    digest::CONVERTERS,
    encoding::CONVERTERS,
    fix::CONVERTERS,
    forwarded::CONVERTERS,
    hash::CONVERTERS,
    http::CONVERTERS,
    json::CONVERTERS,
    json_query::CONVERTERS,
    jwt::CONVERTERS,
    map::CONVERTERS,
    mqtt::CONVERTERS,
    packet::CONVERTERS,
    part::CONVERTERS,
    protobuf::CONVERTERS,
    refused::CONVERTERS,
    text::CONVERTERS,
    time::CONVERTERS,
    url::CONVERTERS,
    variable::CONVERTERS,
];

#[cfg(test)]
mod tests;
