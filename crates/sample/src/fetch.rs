//! Fetches that need only an [`crate::Env`].

#![allow(clippy::ptr_arg, reason = "checks of arguments share one signature, and some of them add arguments")]

use crate::registry::Fetch;

mod auth;
mod connection;
mod constant;
mod cookie;
mod header;
mod process;
mod request;
mod response;
mod side;
mod url;
mod variable;

/// All tables of this folder.
pub(crate) const TABLES: &[&[Fetch]] = &[
    auth::FETCHES,
    connection::FETCHES,
    constant::FETCHES,
    cookie::FETCHES,
    header::FETCHES,
    process::FETCHES,
    request::FETCHES,
    response::FETCHES,
    url::FETCHES,
    variable::FETCHES,
];

#[cfg(test)]
mod tests;
