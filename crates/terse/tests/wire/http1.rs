//! HTTP/1 as clients and servers see it: connections, bodies, uploads, changes of protocol, rules.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod body;
mod connection;
mod interim;
mod lost;
mod rules;
mod splice;
mod tunnel;
mod upload;

use crate::support;
