//! Input that must never be guessed at: malformed and smuggling requests, broken responses, peers that are slow, silent or dead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod peers;
mod requests;
mod responses;

use crate::support;
use support::Terse;

/// The status of a GET on a connection of its own.
fn status_of(terse: &Terse, path: &str) -> u16 {
    terse.client().get(path, &[]).status
}
