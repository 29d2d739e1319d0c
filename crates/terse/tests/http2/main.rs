//! HTTP/2 as clients see it: exchanges, bodies and their windows, the life of connections, WebSocket, hostile clients, real programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod browser;
#[allow(dead_code, unreachable_pub, reason = "tests of TLS use the rest of it")]
#[path = "../tls/certificates.rs"]
mod certificates;
mod client;
mod exchange;
mod floods;
mod life;
mod programs;
mod reloads;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod versions;
mod websocket;
mod windows;
