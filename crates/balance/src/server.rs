//! One server: what is fixed, and the atomics of what is not.

use crate::counters::Counters;
use crate::settings::ServerSettings;
use crate::state::{Admin, Operation};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

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
            Address::Abstract(name) => write!(f, "abns@{}", String::from_utf8_lossy(name)),
        }
    }
}

/// A server of a farm. Readers on the request path see its atomics one by one; writers go through the [`crate::Farm`].
#[derive(Debug)]
pub struct Server {
    index: usize,
    id: u32,
    settings: ServerSettings,
    /// What is counted for it.
    pub counters: Counters,
    pub(crate) use_: Use,
    pub(crate) changing: Changing,
}

/// What each request touches: on a line of its own, away from what readers of other servers look at.
#[derive(Default, Debug)]
#[repr(align(128))]
pub(crate) struct Use {
    /// Requests that hold a slot.
    pub(crate) served: AtomicU32,
    pub(crate) served_max: AtomicU32,
    /// Requests that wait for this very server.
    pub(crate) queued: AtomicU32,
    pub(crate) queued_max: AtomicU32,
}

/// What changes rarely.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Changing {
    pub(crate) operation: AtomicU8,
    pub(crate) admin: AtomicU8,
    pub(crate) health: AtomicU32,
    pub(crate) weight: AtomicU32,
    pub(crate) maxconn: AtomicU32,
    /// Milliseconds from the farm's start to the last change of the operational state.
    pub(crate) changed_ms: AtomicU64,
    /// Milliseconds that it was down before the last change.
    pub(crate) down_ms: AtomicU64,
}

impl Server {
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

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.settings.address
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

    /// Whether a request may be sent there at all, if persistence wants it.
    pub fn is_up(&self) -> bool {
        self.operation() != Operation::Stopped && !self.admin().is_maint()
    }

    /// Whether the algorithms may choose it: up, neither draining nor stopping, with a weight.
    pub fn is_eligible(&self) -> bool {
        self.effective_weight() > 0
    }

    /// The weight that was set, 0 to 256.
    pub fn weight(&self) -> u32 {
        self.changing.weight.load(Relaxed)
    }

    /// The weight that counts now: 0 when the algorithms must leave it alone.
    pub fn effective_weight(&self) -> u32 {
        let works = matches!(self.operation(), Operation::Running | Operation::Starting);
        if works && self.admin() == Admin::READY { self.weight() } else { 0 }
    }

    /// The limit of requests at a time; 0: none.
    pub fn maxconn(&self) -> u32 {
        self.changing.maxconn.load(Relaxed)
    }

    /// Requests that hold one of its slots (`scur`).
    pub fn served(&self) -> u32 {
        self.use_.served.load(Relaxed)
    }

    /// The most there were (`smax`).
    pub fn served_max(&self) -> u32 {
        self.use_.served_max.load(Relaxed)
    }

    /// Requests that wait for this very server (`qcur`).
    pub fn queued(&self) -> u32 {
        self.use_.queued.load(Relaxed)
    }

    /// The most there were (`qmax`).
    pub fn queued_max(&self) -> u32 {
        self.use_.queued_max.load(Relaxed)
    }
}
