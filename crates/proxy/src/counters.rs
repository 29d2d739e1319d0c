//! Counters of proxies.
//!
//! Every request bumps several counters. So each worker has its own copy, on its own cache lines, which it alone writes; readers
//! add them up.

use crate::evidence::Exhibit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A worker's counters of a proxy.
        #[derive(Default, Debug)]
        #[repr(align(128))]
        pub struct Counters {
            $($(#[$doc])* pub $name: Counter,)*
            /// Counters of compression.
            pub compression: terse_compress::Counters,
            /// Counters of decompression.
            pub decompression: terse_compress::decode::Counters,
        }

        /// The sums over all workers.
        #[derive(Clone, Copy, Default, Debug)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Tally {
            /// The sums over all workers.
            pub fn totals(&self) -> Totals {
                let mut totals = Totals::default();
                for counters in &self.workers {
                    $(totals.$name += counters.$name.get();)*
                }
                totals
            }

            /// Sets all to 0 (`clear counters`), except the numbers that are in use now.
            pub fn clear(&self) {
                for counters in &self.workers {
                    $(if stringify!($name) != "current" { counters.$name.0.store(0, Relaxed); })*
                    counters.compression.clear();
                    counters.decompression.clear();
                }
            }
        }
    };
}

counters! {
    /// Connections or requests in this proxy now.
    current,
    /// The most there were, by worker; the sum is an upper bound.
    current_max,
    /// Connections accepted.
    connections,
    /// Sessions: for a backend, requests that were assigned to it.
    sessions,
    /// Requests.
    requests,
    /// Bytes from clients.
    bytes_in,
    /// Bytes to clients.
    bytes_out,
    /// Bytes of requests sent to servers.
    bytes_to_server,
    /// Bytes of responses received from servers.
    bytes_from_server,
    /// Bytes that came from this side's connections straight into pipes.
    spliced_in,
    /// Bytes that went from pipes straight into this side's connections.
    spliced_out,
    /// Connections refused by `tcp-request connection` rules.
    denied_connections,
    /// Connections refused by `tcp-request session` rules.
    denied_sessions,
    /// Requests denied by rules.
    denied_requests,
    /// Responses denied by rules.
    denied_responses,
    /// Edits of heads that rules could not make.
    rewrite_failures,
    /// Requests that were malformed, too large, too slow, or broke off.
    request_errors,
    /// Connections to servers that failed.
    connect_errors,
    /// Responses that were malformed or broke off.
    response_errors,
    /// Attempts after the first.
    retries,
    /// Requests sent to another server than the first chosen.
    redispatches,
    /// Transfers that the client broke off.
    client_aborts,
    /// Transfers that the server broke off.
    server_aborts,
    /// Requests that were answered here, without a backend.
    intercepted,
    /// Requests that were looked for in a cache.
    cache_lookups,
    /// Requests that were answered from a cache.
    cache_hits,
    /// Requests that got hints from a cache.
    cache_hints,
    /// Streams that a fault of this program ended.
    internal_errors,
    /// Lines logged.
    logged,
    /// Responses 1xx.
    status_1xx,
    /// Responses 2xx.
    status_2xx,
    /// Responses 3xx.
    status_3xx,
    /// Responses 4xx.
    status_4xx,
    /// Responses 5xx.
    status_5xx,
    /// Responses with another status.
    status_other,
}

/// A number that one thread writes and any thread may read.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning worker may.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Takes away; only the owning worker may.
    pub fn sub(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(n), Relaxed);
    }

    /// Raises it to `n`.
    pub fn raise(&self, n: u64) {
        if n > self.0.load(Relaxed) {
            self.0.store(n, Relaxed);
        }
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// All workers' counters of a proxy.
#[derive(Debug)]
pub struct Tally {
    workers: Box<[Counters]>,
    /// Connections now, of all workers, against a limit that they share.
    admitted: AtomicUsize,
    limit: AtomicUsize,
    /// The last malformed message.
    pub exhibit: Exhibit,
}

impl Tally {
    /// Counters for so many workers.
    pub fn new(workers: usize) -> Tally {
        let workers = (0..workers.max(1)).map(|_| Counters::default()).collect();
        Tally { workers, admitted: AtomicUsize::new(0), limit: AtomicUsize::new(0), exhibit: Exhibit::default() }
    }

    /// The same, for a proxy that takes no more than so many connections at a time; 0: any number.
    pub fn limited(workers: usize, limit: usize) -> Tally {
        Tally { limit: AtomicUsize::new(limit), ..Tally::new(workers) }
    }

    /// Limit of its connections at a time; 0: any number.
    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Changes the limit (`set maxconn frontend`). Tasks that wait see it when they look the next time.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    /// Counts a connection against a limit of all workers (0: none); false when it is reached.
    pub fn admit(&self, limit: usize) -> bool {
        if self.admitted.fetch_add(1, Relaxed) >= limit && limit > 0 {
            self.admitted.fetch_sub(1, Relaxed);
            return false;
        }
        true
    }

    /// Counts the end of an admitted connection.
    pub fn leave(&self) {
        self.admitted.fetch_sub(1, Relaxed);
    }

    /// Forgets how many there were at most.
    pub fn clear_peaks(&self) {
        for counters in &self.workers {
            counters.current_max.0.store(counters.current.get(), Relaxed);
        }
    }

    /// Counters of compression, over all workers.
    pub fn compression(&self) -> terse_compress::Counters {
        let sum = terse_compress::Counters::default();
        self.workers.iter().for_each(|counters| sum.add(&counters.compression));
        sum
    }

    /// Counters of decompression, over all workers.
    pub fn decompression(&self) -> terse_compress::decode::Counters {
        let sum = terse_compress::decode::Counters::default();
        self.workers.iter().for_each(|counters| sum.add(&counters.decompression));
        sum
    }

    /// Number of connections or requests now, over all workers.
    pub fn current(&self) -> u64 {
        self.workers.iter().map(|counters| counters.current.get()).sum()
    }

    /// The sum of a counter, over all workers.
    pub fn sum(&self, of: fn(&Counters) -> &Counter) -> u64 {
        self.workers.iter().map(|counters| of(counters).get()).fold(0, u64::wrapping_add)
    }

    /// The counters of a worker.
    pub fn of(&self, worker: usize) -> &Counters {
        // Every worker has its own; a division would find no other.
        self.workers.get(worker).unwrap_or(&self.workers[0])
    }
}

impl Counters {
    /// Counts a connection or request into this proxy.
    pub fn enter(&self) {
        self.current.add(1);
        self.current_max.raise(self.current.get());
    }

    /// Counts a response by its class.
    pub fn response(&self, status: u16) {
        match status / 100 {
            1 => &self.status_1xx,
            2 => &self.status_2xx,
            3 => &self.status_3xx,
            4 => &self.status_4xx,
            5 => &self.status_5xx,
            _ => &self.status_other,
        }
        .add(1);
    }
}
