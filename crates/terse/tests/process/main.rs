//! The process and its files: command line, configuration, reloads, operators' commands, engines and `terse gzip`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod command_line;
mod devices;
mod gpu;
mod gzip;
mod gzip_engines;
mod life;
mod manual;
mod master;
mod master_commands;
mod monitors;
mod states;
#[path = "../support/mod.rs"]
mod support;
mod takeover;
mod variables;
mod wrong_expressions;
