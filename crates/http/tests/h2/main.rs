//! HTTP/2 by the sections of RFC 9113.

mod limits;
mod pair;
mod peer;
mod server;
mod splits;
