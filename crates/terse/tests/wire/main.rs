//! Traffic as clients, servers and other processes see it. Each module tells one subject; the tests of TLS have a program of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod backends;
mod bad_input;
mod balance;
mod breach;
mod bytes;
mod cache;
#[allow(dead_code, reason = "the tests of TLS use the rest")]
#[path = "../tls/certificates.rs"]
mod certificates;
mod decompression;
mod differential;
mod figures;
mod filters;
mod founding;
mod http1;
mod http2;
mod logs;
mod lua;
mod lua_api;
mod lua_channels;
mod lua_commands;
mod lua_events;
mod lua_scripts;
mod members;
mod names;
mod peers;
mod ports;
mod proxy_protocol;
mod quick;
mod servers;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "the tests of TLS use the rest")]
#[path = "../tls/talk.rs"]
mod talk;
mod validators;
