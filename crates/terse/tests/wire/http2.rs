//! HTTP/2 as clients see it: exchanges, bodies and their windows, the life of connections, WebSocket, hostile clients, real programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod browser;
mod client;
mod coders;
mod exchange;
mod floods;
mod life;
mod programs;
mod reloads;
mod servers;
mod targets;
mod versions;
mod websocket;
mod windows;

use crate::{certificates, support};
