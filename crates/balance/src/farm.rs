//! A backend's servers together.

use crate::algorithm::Key;
use crate::counters::Counters;
use crate::queue::{Grant, Want};

use crate::persistence::{Affinity, CookieSent};
use crate::server::Server;
use crate::settings::FarmSettings;
use crate::state::AdminOrder;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_message::{Request, Response};

/// What a farm needs to know of its backend.
pub struct FarmContext {
    /// The backend's number in statistics.
    pub id: u32,
    /// The backend's name.
    pub name: Arc<str>,
    /// `timeout connect`, which limits the connecting of checks too.
    pub connect_timeout: Option<Duration>,
    /// Where its lines go.
    pub journal: Journal,
    /// When the process started: times are counted from here.
    pub started: Instant,
}

/// Takes the lines that changes of servers write, without a line end: the backend's log, and standard error.
pub type Journal = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// How grave a line is, as syslog counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// A backend has no server left.
    Emergency = 0,
    /// A server went down.
    Alert = 1,
    /// Something changed.
    Notice = 5,
}

/// The servers of one backend: shared by all workers, for as long as the process lives.
pub struct Farm {
    servers: Box<[Arc<Server>]>,
    settings: FarmSettings,
    /// What is counted for the backend.
    pub counters: Counters,
}

impl Farm {
    /// Builds the servers of a backend, in the states that its configuration gives them.
    pub fn new(_context: FarmContext, _settings: FarmSettings) -> Arc<Farm> {
        unreachable!("not built yet")
    }

    /// The backend's name.
    pub fn name(&self) -> &str {
        unreachable!("not built yet")
    }

    /// The backend's number in statistics.
    pub fn id(&self) -> u32 {
        unreachable!("not built yet")
    }

    /// What the configuration says.
    pub fn settings(&self) -> &FarmSettings {
        &self.settings
    }

    /// The servers, by index.
    pub fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    /// The server of that name, or of that number when it is written `#<id>`.
    pub fn find_server(&self, _name: &str) -> Option<&Arc<Server>> {
        unreachable!("not built yet")
    }

    /// The server that the algorithm chooses now; moves its cursor on. `None` when no server that is not excluded may be used.
    pub fn choose(&self, _key: &Key<'_>, _excluded: &[usize]) -> Option<usize> {
        unreachable!("not built yet")
    }

    /// Chooses a server and takes one of its slots, or a place in a queue.
    pub fn claim(self: &Arc<Farm>, _want: Want<'_>) -> Grant {
        unreachable!("not built yet")
    }

    /// How many servers are up with a weight: active ones, and backups.
    pub fn up(&self) -> (u32, u32) {
        unreachable!("not built yet")
    }

    /// Whether any server can take a new client.
    pub fn is_up(&self) -> bool {
        self.up() != (0, 0)
    }

    /// Requests that wait for any server, and the most there were. Those that wait for one server are counted there.
    pub fn queued(&self) -> (u32, u32) {
        unreachable!("not built yet")
    }

    /// Looks for the persistence cookie, and for its server. Changes nothing.
    pub fn find(&self, _request: &Request) -> Affinity {
        unreachable!("not built yet")
    }

    /// Takes out of the request what the server must not see: the whole cookie (`indirect`), or its prefix (`prefix`).
    pub fn strip(&self, _request: &mut Request) {
        unreachable!("not built yet")
    }

    /// Puts the persistence cookie into the response of the server that answered, or takes the server's own out.
    /// `post` says whether the request's method was POST.
    pub fn mark(&self, _response: &mut Response, _server: &Server, _affinity: &Affinity, _post: bool) -> CookieSent {
        unreachable!("not built yet")
    }

    /// Carries out an operator's word.
    pub fn set_admin(&self, _server: &Server, _order: AdminOrder, _now: Instant) {
        unreachable!("not built yet")
    }

    /// Sets a server's weight, 0 to 256.
    pub fn set_weight(&self, _server: &Server, _weight: u32, _now: Instant) {
        unreachable!("not built yet")
    }

    /// Sets a server's limit of requests at a time; 0: none.
    pub fn set_maxconn(&self, _server: &Server, _maxconn: u32) {
        unreachable!("not built yet")
    }
}
