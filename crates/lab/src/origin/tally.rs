//! Counters of an origin, for tests: connections and requests of each server, and the number of requests with a key.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts.
#[derive(Debug)]
pub struct Tally {
    servers: Vec<ServerTally>,
    keys: Mutex<HashMap<String, u64>>,
}

#[derive(Default, Debug)]
struct ServerTally {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl Tally {
    pub(super) fn new(servers: usize) -> Tally {
        Tally { servers: (0..servers).map(|_| ServerTally::default()).collect(), keys: Mutex::default() }
    }

    /// The connections that a server has accepted; servers count from 0.
    pub fn connections(&self, server: usize) -> u64 {
        self.servers.get(server).map_or(0, |s| s.connections.load(Ordering::Relaxed))
    }

    /// The requests whose head a server has read.
    pub fn requests(&self, server: usize) -> u64 {
        self.servers.get(server).map_or(0, |s| s.requests.load(Ordering::Relaxed))
    }

    /// Number of requests to `/tally?key=...` with each key, over all servers.
    pub fn keys(&self) -> HashMap<String, u64> {
        self.keys.lock().map(|keys| keys.clone()).unwrap_or_default()
    }

    pub(super) fn connection(&self, server: usize) {
        if let Some(server) = self.servers.get(server) {
            server.connections.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a request; the return value numbers the server's requests from 1.
    pub(super) fn request(&self, server: usize) -> u64 {
        self.servers.get(server).map_or(0, |s| s.requests.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Counts a key, and returns how often it came.
    pub(super) fn key(&self, key: &str) -> u64 {
        let Ok(mut keys) = self.keys.lock() else { return 0 };
        let count = keys.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// All of it as JSON; of the keys, those that came more than once.
    pub(super) fn json(&self) -> String {
        let servers: Vec<_> = (0..self.servers.len())
            .map(|i| format!("{{\"connections\":{},\"requests\":{}}}", self.connections(i), self.requests(i)))
            .collect();
        let keys = self.keys();
        let mut repeated: Vec<_> =
            keys.iter().filter(|(_, count)| **count > 1).map(|(key, count)| format!("\"{key}\":{count}")).collect();
        repeated.sort();
        format!("{{\"servers\":[{}],\"keys\":{},\"repeated\":{{{}}}}}\n", servers.join(","), keys.len(), repeated.join(","))
    }
}
