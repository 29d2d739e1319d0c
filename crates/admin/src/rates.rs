//! Rates per second: counters are sampled once a second, by one task of the control thread.

use crate::context::Context;
use crate::history::{History, Totals};
use crate::savings::{Sent, serves_statistics_alone};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use terse_balance::{Count, Server};
use terse_proxy::plan::{Backend, Plan};
use terse_tls::COUNTERS;
use tokio::time::{Instant, MissedTickBehavior};

/// Rates of the process, its proxies and servers.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Rates of each frontend, in the plan's order.
    pub(crate) frontends: Vec<FrontendRates>,
    /// Rates of each backend, by its number: backends that came since the last sample have none yet.
    backends: Mutex<BTreeMap<usize, Arc<BackendRates>>>,
    /// Connections of the process.
    pub(crate) connections: Rate,
    /// Sessions of the process.
    pub(crate) sessions: Rate,
    /// Bytes sent to clients.
    pub(crate) bytes_out: Rate,
    /// Bytes into compressors.
    pub(crate) compress_in: Rate,
    /// Bytes out of compressors.
    pub(crate) compress_out: Rate,
    /// Bytes into decoders.
    pub(crate) decompress_in: Rate,
    /// Bytes out of decoders.
    pub(crate) decompress_out: Rate,
    /// Thousandths of the workers' time that the process was busy.
    pub(crate) busy: Rate,
    /// Handshakes of TLS.
    pub(crate) tls: TlsRates,
    /// Samples of the last ten minutes.
    pub(crate) history: History,
    last: Mutex<Option<Instant>>,
}

/// Rates of a frontend.
#[derive(Default, Debug)]
pub(crate) struct FrontendRates {
    pub(crate) connections: Rate,
    pub(crate) sessions: Rate,
    pub(crate) requests: Rate,
}

/// Rates of a backend.
#[derive(Default, Debug)]
pub(crate) struct BackendRates {
    /// New sessions.
    pub(crate) sessions: Rate,
    /// New sessions of its servers.
    pub(crate) servers: ServerRates,
}

/// Rates of a backend's servers, by their indices: servers that came since the last sample have none yet.
#[derive(Default, Debug)]
pub(crate) struct ServerRates(Mutex<BTreeMap<usize, Arc<Rate>>>);

impl ServerRates {
    /// Rate of a server.
    pub(crate) fn of(&self, server: &Server) -> Arc<Rate> {
        self.lock().get(&server.index()).cloned().unwrap_or_default()
    }

    fn note(&self, servers: &[Arc<Server>], elapsed_ms: u64) {
        let mut before = std::mem::take(&mut *self.lock());
        let noted = |server: &Arc<Server>| {
            let rate = before.remove(&server.index()).unwrap_or_default();
            rate.note(server.counters.total(Count::Sessions), elapsed_ms);
            (server.index(), rate)
        };
        *self.lock() = servers.iter().map(noted).collect();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Rate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rates of TLS.
#[derive(Default, Debug)]
pub(crate) struct TlsRates {
    /// Connections of clients.
    pub(crate) clients: Rate,
    /// Handshakes with clients.
    pub(crate) client_handshakes: Rate,
    /// Client handshakes with a new key.
    pub(crate) client_keys: Rate,
    /// Handshakes with servers, with a new key.
    pub(crate) server_keys: Rate,
}

/// Growth of a counter in the last second, and its peak.
#[derive(Default, Debug)]
pub(crate) struct Rate {
    /// Value of the counter at the last sample.
    total: AtomicU64,
    /// Value at the sample before.
    before: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
}

impl Rate {
    /// Growth in the last second.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// Growth of a counter, which is at `total` now, since the sample before the last.
    fn recent(&self, total: u64) -> u64 {
        total.saturating_sub(self.before.load(Relaxed))
    }

    /// Growth in the fullest second.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }

    /// Resets the fullest second.
    fn clear_peak(&self) {
        self.most.store(self.now(), Relaxed);
    }

    /// Samples a counter, so many milliseconds after the last sample. A counter that was cleared begins anew.
    fn note(&self, total: u64, elapsed_ms: u64) {
        let before = self.total.swap(total, Relaxed);
        self.before.store(before, Relaxed);
        let grown = total.saturating_sub(before);
        let rate = (u128::from(grown) * 1000 / u128::from(elapsed_ms.max(1))).min(u128::from(u64::MAX)) as u64;
        self.now.store(rate, Relaxed);
        self.most.fetch_max(rate, Relaxed);
    }
}

impl Rates {
    pub(crate) fn new(plan: &Plan) -> Rates {
        Rates {
            frontends: plan.frontends.iter().map(|_| FrontendRates::default()).collect(),
            backends: Mutex::new(plan.backends.now().iter().map(|back| (back.number, Arc::default())).collect()),
            connections: Rate::default(),
            sessions: Rate::default(),
            bytes_out: Rate::default(),
            compress_in: Rate::default(),
            compress_out: Rate::default(),
            decompress_in: Rate::default(),
            decompress_out: Rate::default(),
            busy: Rate::default(),
            tls: TlsRates::default(),
            history: History::default(),
            last: Mutex::default(),
        }
    }

    /// Resets the fullest seconds.
    pub(crate) fn clear_peaks(&self) {
        self.all().for_each(Rate::clear_peak);
        for rates in self.lock().values() {
            rates.sessions.clear_peak();
            rates.servers.lock().values().for_each(|rate| rate.clear_peak());
        }
    }

    /// Rates of a backend.
    pub(crate) fn of_backend(&self, back: &Backend) -> Option<Arc<BackendRates>> {
        self.lock().get(&back.number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<BackendRates>>> {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All rates but those of backends and servers.
    fn all(&self) -> impl Iterator<Item = &Rate> {
        let fronts = self.frontends.iter().flat_map(|front| [&front.connections, &front.sessions, &front.requests]);
        let coding = [&self.compress_in, &self.compress_out, &self.decompress_in, &self.decompress_out];
        let process = [&self.connections, &self.sessions, &self.bytes_out, &self.busy].into_iter().chain(coding);
        let tls = [&self.tls.clients, &self.tls.client_handshakes, &self.tls.client_keys, &self.tls.server_keys];
        let process = process.chain(tls);
        fronts.chain(process)
    }

    /// Percentage of handshakes with clients that resumed a session, of those since the sample before the last. So the
    /// handshakes of a second count alike, wherever samples fall among them.
    pub(crate) fn tls_reuse_percent(&self) -> u64 {
        let handshakes = self.tls.client_handshakes.recent(COUNTERS.client_handshakes.load(Relaxed));
        let keys = self.tls.client_keys.recent(COUNTERS.client_keys());
        (100 * handshakes.saturating_sub(keys)).checked_div(handshakes).unwrap_or_default()
    }

    /// Samples all counters. `busy_us` is the time that the process has computed.
    fn note(&self, plan: &Plan, busy_us: u64, now: Instant) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        // Counts before the first sample, by an earlier process too (`stats-file`), have no known rate.
        let elapsed_ms = last.map_or(u64::MAX, |last| now.saturating_duration_since(last).as_millis() as u64);
        let (mut connections, mut sessions, mut bytes_out, mut compress_in, mut compress_out) = (0, 0, 0, 0, 0);
        let (mut decompress_in, mut decompress_out) = (0, 0);
        let mut all = Totals::default();
        for (front, rates) in plan.frontends.iter().zip(&self.frontends) {
            let totals = front.tally.totals();
            rates.connections.note(totals.connections, elapsed_ms);
            rates.sessions.note(totals.sessions, elapsed_ms);
            rates.requests.note(totals.requests, elapsed_ms);
            let compression = front.tally.compression();
            connections += totals.connections;
            sessions += totals.sessions;
            bytes_out += totals.bytes_out;
            let [plain, coded] = [&compression.bytes_in, &compression.bytes_out].map(|number| number.load(Relaxed));
            compress_in += plain;
            compress_out += coded;
            if !serves_statistics_alone(plan, front) {
                let sent = Sent::new(totals.bytes_out, plain, coded);
                all.sent += sent.bytes;
                all.before += sent.before;
                all.requests += totals.requests;
            }
            let decoded = front.tally.decompression();
            for side in [&decoded.request, &decoded.response] {
                decompress_in += side.bytes_in.load(Relaxed);
                decompress_out += side.bytes_out.load(Relaxed);
            }
        }
        let mut backends = BTreeMap::new();
        for back in plan.backends.now().iter() {
            let rates = self.of_backend(back).unwrap_or_default();
            rates.sessions.note(back.tally.totals().sessions, elapsed_ms);
            rates.servers.note(&back.farm.servers(), elapsed_ms);
            backends.insert(back.number, rates);
        }
        *self.lock() = backends;
        self.connections.note(connections, elapsed_ms);
        self.sessions.note(sessions, elapsed_ms);
        self.bytes_out.note(bytes_out, elapsed_ms);
        self.compress_in.note(compress_in, elapsed_ms);
        self.compress_out.note(compress_out, elapsed_ms);
        self.decompress_in.note(decompress_in, elapsed_ms);
        self.decompress_out.note(decompress_out, elapsed_ms);
        self.tls.clients.note(COUNTERS.all_clients.load(Relaxed), elapsed_ms);
        self.tls.client_handshakes.note(COUNTERS.client_handshakes.load(Relaxed), elapsed_ms);
        self.tls.client_keys.note(COUNTERS.client_keys(), elapsed_ms);
        self.tls.server_keys.note(COUNTERS.server_keys(), elapsed_ms);
        self.busy.note(busy_us / plan.process.workers.max(1) as u64 / 1000, elapsed_ms);
        self.history.note(all, self.busy.now(), elapsed_ms);
    }
}

/// Samples all counters once a second, for ever.
pub(crate) async fn watch(context: Arc<Context>) {
    let mut tick = tokio::time::interval(EACH);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = tick.tick().await;
        context.rates.note(&context.plan, computed_us(), now);
    }
}

/// Microseconds that all threads of the process have computed.
fn computed_us() -> u64 {
    // Through the C library: profilers that emulate the processor cannot follow other ways to the kernel's clock.
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID);
    time.map_or(0, |time| u64::try_from(Duration::from(time).as_micros()).unwrap_or(u64::MAX))
}

const EACH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_a_counter_grew_by() {
        let rate = Rate::default();
        rate.note(100, 1000);
        assert_eq!(rate.recent(101), 101, "what came before the first look counts");
        rate.note(150, 500);
        assert_eq!(rate.recent(151), 51);
        assert_eq!((rate.now(), rate.most()), (100, 100));
        rate.note(160, 1000);
        assert_eq!((rate.now(), rate.most()), (10, 100));
        rate.clear_peak();
        assert_eq!(rate.most(), 10);
        rate.note(5, 1000);
        assert_eq!(rate.now(), 0, "the counter was cleared");
    }
}
