//! Counters of all TLS connections of the process.

use crate::secured::Side;
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
    all_clients: AtomicU64::new(0),
    all_servers: AtomicU64::new(0),
    client_early: AtomicU64::new(0),
    server_early: AtomicU64::new(0),
    cache_hits: AtomicU64::new(0),
    cache_misses: AtomicU64::new(0),
    records_clients: AtomicU64::new(0),
    records_servers: AtomicU64::new(0),
    records_offered: AtomicU64::new(0),
    records_no_room: AtomicU64::new(0),
    records_plain: AtomicU64::new(0),
    records_packed: AtomicU64::new(0),
    reads_held: AtomicU64::new(0),
    renegotiations: AtomicU64::new(0),
    overfull: AtomicU64::new(0),
};

/// Handshakes that were made, and connections.
#[derive(Debug)]
pub struct Counters {
    /// Complete handshakes with clients.
    pub client_handshakes: AtomicU64,
    /// Handshakes with clients that resumed a session of before.
    pub client_resumed: AtomicU64,
    /// Failed handshakes with clients.
    pub client_failures: AtomicU64,
    /// Complete handshakes with servers.
    pub server_handshakes: AtomicU64,
    /// Handshakes with servers that resumed a session of before.
    pub server_resumed: AtomicU64,
    /// Failed handshakes with servers.
    pub server_failures: AtomicU64,
    /// Connections of clients now.
    pub clients: AtomicU64,
    /// Connections to servers now.
    pub servers: AtomicU64,
    /// Connections of clients since the start.
    pub all_clients: AtomicU64,
    /// Connections to servers since the start.
    pub all_servers: AtomicU64,
    /// Connections whose clients have sent early data that was taken.
    pub client_early: AtomicU64,
    /// Connections to servers that have taken early data.
    pub server_early: AtomicU64,
    /// Sessions that were remembered here and gone on with; those of tickets are not among them.
    pub cache_hits: AtomicU64,
    /// Sessions that a client wanted to resume and that are not remembered here.
    pub cache_misses: AtomicU64,
    /// Connections of clients whose records were compressed.
    pub records_clients: AtomicU64,
    /// Connections to servers whose records were.
    pub records_servers: AtomicU64,
    /// Handshakes in which a client offered it and a line has `detect` or `allow`.
    pub records_offered: AtomicU64,
    /// Connections that went without it because there was no room for their state.
    pub records_no_room: AtomicU64,
    /// Bytes that went into records that are compressed.
    pub records_plain: AtomicU64,
    /// Bytes that came out.
    pub records_packed: AtomicU64,
    /// Times that a client asked for another handshake, and was refused.
    pub renegotiations: AtomicU64,
    /// Times that reading was held because the other end did not take TLS's own answers.
    pub reads_held: AtomicU64,
    /// Connections that were closed because more had to wait to be sent than may.
    pub overfull: AtomicU64,
}

/// Counts of the handshakes of one `bind` line or one server.
#[derive(Default, Debug)]
pub struct HandshakeCounts {
    /// Complete.
    pub made: AtomicU64,
    /// Handshakes among them that resumed a session of before.
    pub resumed: AtomicU64,
    /// Failed, or too slow.
    pub failed: AtomicU64,
    /// Answers about a certificate's state that were sent to clients.
    pub stapled: AtomicU64,
    /// Times that there was an answer whose time was over, so that it was not sent.
    pub staple_failed: AtomicU64,
}

impl HandshakeCounts {
    /// Adds those of another.
    pub fn add(&self, other: &HandshakeCounts) {
        let HandshakeCounts { made, resumed, failed, stapled, staple_failed } = self;
        let others = [&other.made, &other.resumed, &other.failed, &other.stapled, &other.staple_failed];
        for (sum, count) in [made, resumed, failed, stapled, staple_failed].into_iter().zip(others) {
            sum.fetch_add(count.load(Relaxed), Relaxed);
        }
    }

    /// Sets all to 0 (`clear counters`).
    pub fn clear(&self) {
        let HandshakeCounts { made, resumed, failed, stapled, staple_failed } = self;
        [made, resumed, failed, stapled, staple_failed].into_iter().for_each(|counter| counter.store(0, Relaxed));
    }
}

impl Counters {
    /// Handshakes with clients that made a new key.
    pub fn client_keys(&self) -> u64 {
        self.client_handshakes.load(Relaxed).saturating_sub(self.client_resumed.load(Relaxed))
    }

    /// Handshakes with servers that made a new key.
    pub fn server_keys(&self) -> u64 {
        self.server_handshakes.load(Relaxed).saturating_sub(self.server_resumed.load(Relaxed))
    }
}

/// Counts a connection that begins.
pub(crate) fn begin(side: Side) {
    let (now, all) = match side {
        Side::Client => (&COUNTERS.clients, &COUNTERS.all_clients),
        Side::Server => (&COUNTERS.servers, &COUNTERS.all_servers),
    };
    bump(all);
    bump(now);
}

/// Adds 1.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Subtracts 1.
pub(crate) fn drop_one(counter: &AtomicU64) {
    counter.fetch_sub(1, Relaxed);
}
