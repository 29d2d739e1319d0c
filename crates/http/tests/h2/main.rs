//! HTTP/2 by the sections of RFC 9113.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod answers;
mod limits;
mod pair;
mod peer;
mod server;
mod splits;
