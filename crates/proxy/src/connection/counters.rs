//! Counters of HTTP/2 with clients and servers, for `show info` and the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use terse_http::h2::Glitch;

/// Counters of clients' connections.
pub static COUNTERS: Counters = Counters::new();

/// Counters of servers' connections.
pub static SERVERS: Counters = Counters::new();

/// Counters of HTTP/2.
pub struct Counters {
    /// Connections.
    pub connections: Gauge,
    /// Streams that were opened.
    pub streams: Count,
    /// Streams whose heads were malformed.
    pub malformed: Count,
    /// RST_STREAM frames that peers have sent.
    pub resets_received: Count,
    /// RST_STREAM frames that answered errors of peers.
    pub resets_sent: Count,
    /// Connections that were ended for an error of the peer's.
    pub failures: Count,
    limits: [AtomicU64; LIMITS.len()],
}

/// The limit of all oddities together (`tune.h2.fe.glitches-threshold`).
pub const ALL_GLITCHES: &str = "glitches";

/// Peers that did not answer a PING of `idle-ping`.
pub const NO_PONG: &str = "unanswered pings";

/// The names of limits, as logs have them.
pub const LIMITS: [&str; 16] = [
    Glitch::Unfinished.name(),
    Glitch::Continuations.name(),
    Glitch::HeaderBlock.name(),
    Glitch::Head.name(),
    Glitch::Ping.name(),
    Glitch::Settings.name(),
    Glitch::EmptyData.name(),
    Glitch::TinyData.name(),
    Glitch::WindowUpdate.name(),
    Glitch::TinyWindow.name(),
    Glitch::Priority.name(),
    Glitch::ClosedStream.name(),
    Glitch::GoAway.name(),
    Glitch::Unknown.name(),
    ALL_GLITCHES,
    NO_PONG,
];

/// A number that grows.
pub struct Count(AtomicU64);

/// A number of present objects, and of all so far.
pub struct Gauge {
    now: AtomicU64,
    all: AtomicU64,
}

impl Count {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Gauge {
    /// Counts an object in.
    pub fn enter(&self) {
        self.now.fetch_add(1, Relaxed);
        self.all.fetch_add(1, Relaxed);
    }

    /// Counts an object out.
    pub fn leave(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    /// Number of present objects.
    pub fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// Number of all objects so far, the present ones included.
    pub fn all(&self) -> u64 {
        self.all.load(Relaxed)
    }
}

impl Counters {
    const fn new() -> Counters {
        Counters {
            connections: Gauge { now: AtomicU64::new(0), all: AtomicU64::new(0) },
            streams: Count(AtomicU64::new(0)),
            malformed: Count(AtomicU64::new(0)),
            resets_received: Count(AtomicU64::new(0)),
            resets_sent: Count(AtomicU64::new(0)),
            failures: Count(AtomicU64::new(0)),
            limits: [const { AtomicU64::new(0) }; LIMITS.len()],
        }
    }

    /// Counts a connection that was ended at a limit.
    pub fn limit(&self, name: &str) {
        if let Some(count) = self.of(name) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Number of connections that were ended at a limit.
    pub fn ended_at(&self, name: &str) -> u64 {
        self.of(name).map_or(0, |count| count.load(Relaxed))
    }

    /// Number of connections that were ended at any limit.
    pub fn at_limits(&self) -> u64 {
        self.limits.iter().map(|count| count.load(Relaxed)).sum()
    }

    fn of(&self, name: &str) -> Option<&AtomicU64> {
        self.limits.get(LIMITS.iter().position(|limit| *limit == name)?)
    }
}
