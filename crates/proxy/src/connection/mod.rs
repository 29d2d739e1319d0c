//! Connections of clients, whatever version of HTTP they speak: which one that is, and what HTTP/2 needs beside its codec.
//!
//! ```text
//! accepted -> PROXY head -> TLS -> detect -> HTTP/1: phase::converse, one exchange after the other
//!                                        \-> HTTP/2: http2::serve, each exchange in a task of its own
//! ```

pub mod counters;
pub mod detect;
pub mod http2;
pub mod settings;
pub mod tasks;
pub mod upstream;
pub mod websocket;
