//! What is counted of all connections of the process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The process's counts.
pub static COUNTERS: Counters = Counters {
    client_handshakes: AtomicU64::new(0),
    client_resumed: AtomicU64::new(0),
    client_failures: AtomicU64::new(0),
    server_handshakes: AtomicU64::new(0),
    server_resumed: AtomicU64::new(0),
    server_failures: AtomicU64::new(0),
    clients: AtomicU64::new(0),
    servers: AtomicU64::new(0),
};

/// Handshakes that were made, and connections.
#[derive(Debug)]
pub struct Counters {
    /// With clients, complete.
    pub client_handshakes: AtomicU64,
    /// Of these, with a session of before.
    pub client_resumed: AtomicU64,
    /// With clients, failed.
    pub client_failures: AtomicU64,
    /// With servers, complete.
    pub server_handshakes: AtomicU64,
    /// Of these, with a session of before.
    pub server_resumed: AtomicU64,
    /// With servers, failed.
    pub server_failures: AtomicU64,
    /// Connections of clients now.
    pub clients: AtomicU64,
    /// Connections to servers now.
    pub servers: AtomicU64,
}

/// Adds one.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Takes one away.
pub(crate) fn drop_one(counter: &AtomicU64) {
    counter.fetch_sub(1, Relaxed);
}
