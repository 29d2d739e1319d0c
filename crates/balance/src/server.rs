//! One server: what is fixed, and the atomics of what is not.

use crate::check::LastCheck;
use crate::counters::Counters;
use crate::durations::Durations;
use crate::queue::Backlog;
use crate::settings::ServerSettings;
use crate::state::{Admin, Operation, State};
use arc_swap::ArcSwap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Ip(SocketAddr),
    /// A unix socket's path.
    Unix(PathBuf),
    /// A unix socket's name in the abstract namespace of Linux, without the leading NUL.
    Abstract(Vec<u8>),
}

impl Default for Address {
    fn default() -> Address {
        Address::Ip(SocketAddr::from(([0, 0, 0, 0], 0)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(ip) => write!(f, "{ip}"),
            Address::Unix(path) => write!(f, "unix@{}", path.display()),
            Address::Abstract(name) => {
                // Padded or not; the padding is not shown.
                let kind = if name.ends_with(b"\0") { "abns" } else { "abnsz" };
                write!(f, "{kind}@{}", String::from_utf8_lossy(name).trim_end_matches('\0'))
            }
        }
    }
}

/// A server of a farm. Readers on the request path see its atomics one by one; writers go through the [`crate::Farm`].
#[derive(Debug)]
pub struct Server {
    index: usize,
    id: u32,
    settings: ServerSettings,
    address: ArcSwap<Address>,
    /// What is counted for it.
    pub counters: Counters,
    /// How long its streams took.
    pub durations: Durations,
    pub(crate) load: Load,
    changing: Changing,
    pub(crate) backlog: Arc<Backlog>,
    last_check: Mutex<LastCheck>,
}

/// What each request touches: on lines of its own, away from what is only read.
#[derive(Default, Debug)]
#[repr(align(128))]
pub(crate) struct Load {
    /// Requests that hold a slot.
    served: AtomicU32,
    served_max: AtomicU32,
    /// Requests that wait for this very server.
    pub(crate) queued: AtomicU32,
    pub(crate) queued_max: AtomicU32,
}

/// What changes rarely.
#[derive(Debug)]
#[repr(align(128))]
struct Changing {
    operation: AtomicU8,
    admin: AtomicU8,
    /// Whether it may take requests that wait for any server.
    serves_any: AtomicBool,
    health: AtomicU32,
    weight: AtomicU32,
    maxconn: AtomicU32,
    moves: AtomicU32,
    /// Milliseconds from the farm's start to the last change of the operation.
    changed_ms: AtomicU64,
    /// Milliseconds that it was down before that.
    down_ms: AtomicU64,
}

impl Server {
    pub(crate) fn new(index: usize, id: u32, settings: ServerSettings, backlog: Arc<Backlog>) -> Server {
        let state = State::initial(settings.rules(), settings.disabled);
        let changing = Changing {
            operation: AtomicU8::new(state.operation as u8),
            admin: AtomicU8::new(state.admin.0),
            serves_any: AtomicBool::new(false),
            health: AtomicU32::new(state.health),
            weight: AtomicU32::new(settings.weight),
            maxconn: AtomicU32::new(settings.maxconn),
            moves: AtomicU32::new(0),
            changed_ms: AtomicU64::new(0),
            down_ms: AtomicU64::new(0),
        };
        Server {
            index,
            id,
            address: ArcSwap::from_pointee(settings.address.clone()),
            settings,
            counters: Counters::default(),
            durations: Durations::default(),
            load: Load::default(),
            changing,
            backlog,
            last_check: Mutex::default(),
        }
    }

    /// Its place in [`crate::Farm::servers`].
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its number in statistics.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.settings.name
    }

    /// Where it listens: what its line says, or an operator since.
    pub fn address(&self) -> Arc<Address> {
        self.address.load_full()
    }

    /// How often its address has changed. Connections that were made before the last time lead elsewhere: who keeps one asks for
    /// this before it connects.
    pub fn moves(&self) -> u32 {
        self.changing.moves.load(Acquire)
    }

    pub(crate) fn set_address(&self, address: Address) {
        self.address.store(Arc::new(address));
        self.changing.moves.fetch_add(1, Release);
    }

    /// What its line says.
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Whether it answers, as far as is known.
    pub fn operation(&self) -> Operation {
        match self.changing.operation.load(Relaxed) {
            0 => Operation::Stopped,
            1 => Operation::Starting,
            2 => Operation::Running,
            _ => Operation::Stopping,
        }
    }

    /// What operators said.
    pub fn admin(&self) -> Admin {
        Admin(self.changing.admin.load(Relaxed))
    }

    /// All of its state. The parts are read one by one: only the holder of the farm's lock sees them fit together.
    pub fn state(&self) -> State {
        State { operation: self.operation(), admin: self.admin(), health: self.changing.health.load(Relaxed) }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.changing.operation.store(state.operation as u8, Relaxed);
        self.changing.admin.store(state.admin.0, Relaxed);
        self.changing.health.store(state.health, Relaxed);
    }

    /// Whether a request may be sent there at all, if persistence wants it.
    pub fn is_up(&self) -> bool {
        self.operation() != Operation::Stopped
    }

    /// Whether the algorithms may choose it: up, neither draining nor stopping, with a weight.
    pub fn is_eligible(&self) -> bool {
        self.effective_weight() > 0
    }

    /// The weight that was set, 0 to 256.
    pub fn weight(&self) -> u32 {
        self.changing.weight.load(Relaxed)
    }

    pub(crate) fn set_weight(&self, weight: u32) {
        self.changing.weight.store(weight, Relaxed);
    }

    /// The weight that counts now: 0 when the algorithms must leave it alone.
    pub fn effective_weight(&self) -> u32 {
        let works = matches!(self.operation(), Operation::Running | Operation::Starting);
        if works && !self.admin().is_drain() { self.weight() } else { 0 }
    }

    /// The limit of requests at a time; 0: none.
    pub fn maxconn(&self) -> u32 {
        self.changing.maxconn.load(Relaxed)
    }

    pub(crate) fn set_maxconn(&self, maxconn: u32) {
        self.changing.maxconn.store(maxconn, Relaxed);
    }

    /// Whether a request may come at once.
    pub fn has_room(&self) -> bool {
        match self.maxconn() {
            0 => true,
            limit => self.served() < limit && self.queued() == 0,
        }
    }

    /// Takes a slot, if one is free.
    pub(crate) fn try_enter(&self) -> bool {
        let served = match self.maxconn() {
            0 => Ok(self.load.served.fetch_add(1, SeqCst)),
            limit => self.load.served.fetch_update(SeqCst, SeqCst, |served| (served < limit).then_some(served + 1)),
        };
        if let Ok(served) = served
            && served >= self.load.served_max.load(Relaxed)
        {
            self.load.served_max.fetch_max(served + 1, Relaxed);
        }
        served.is_ok()
    }

    /// Gives a slot back.
    pub(crate) fn leave(&self) {
        self.load.served.fetch_sub(1, SeqCst);
    }

    pub(crate) fn serves_any(&self) -> bool {
        self.changing.serves_any.load(Relaxed)
    }

    pub(crate) fn set_serves_any(&self, serves: bool) {
        self.changing.serves_any.store(serves, Relaxed);
    }

    /// Requests that hold one of its slots (`scur`).
    pub fn served(&self) -> u32 {
        self.load.served.load(SeqCst)
    }

    /// The most there were (`smax`).
    pub fn served_max(&self) -> u32 {
        self.load.served_max.load(Relaxed)
    }

    /// Requests that wait for this very server (`qcur`).
    pub fn queued(&self) -> u32 {
        self.load.queued.load(Relaxed)
    }

    /// The most there were (`qmax`).
    pub fn queued_max(&self) -> u32 {
        self.load.queued_max.load(Relaxed)
    }

    /// Forgets how many there were at most (`clear counters`).
    pub fn clear_peaks(&self) {
        self.load.served_max.store(self.served(), Relaxed);
        self.load.queued_max.store(self.queued(), Relaxed);
    }

    /// When its operation changed last, and how long it was down before that; both in milliseconds, the first from the farm's start.
    pub(crate) fn changed_ms(&self) -> (u64, u64) {
        (self.changing.changed_ms.load(Relaxed), self.changing.down_ms.load(Relaxed))
    }

    pub(crate) fn set_changed_ms(&self, changed: u64, down: u64) {
        self.changing.changed_ms.store(changed, Relaxed);
        self.changing.down_ms.store(down, Relaxed);
    }

    /// What its last check found.
    pub fn last_check(&self) -> LastCheck {
        self.last_check.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_last_check(&self, last: LastCheck) {
        *self.last_check.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}
