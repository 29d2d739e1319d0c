//! TLS with clients and servers, beside Debian's haproxy, curl and nginx. Keys and certificates are made by the tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod browsers;
mod certificates;
mod clients;
mod dictionaries;
mod early;
mod endings;
mod exchange;
mod figures;
mod files;
mod floods;
mod generated;
mod gone;
mod handshakes;
mod hello;
mod learned;
mod logs;
mod recipes;
mod records;
mod resumed;
mod scan;
mod secrets;
mod servers;
mod states;
mod stores;
mod subjects;
#[path = "../support/mod.rs"]
mod support;
mod talk;
mod tickets;
mod updates;
