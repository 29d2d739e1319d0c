//! News of servers for listeners such as scripts: servers that come and go, changes of their state, checks.
//!
//! Nothing is made where nothing listens. The listener is called under the lock of a farm's changes: it must not call back, and
//! takes the news away in the order of their events.

use crate::state::State;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The server that news are about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The backend's name.
    pub backend: &'a str,
    /// The backend's number in statistics.
    pub backend_id: u32,
    /// The server's name.
    pub name: &'a str,
    /// The server's number in statistics.
    pub id: u32,
    /// The server's number in its backend, which is given once.
    pub index: usize,
}

/// A server's news.
#[derive(Clone, Debug)]
pub enum News {
    /// It was added at run time.
    Added,
    /// It was removed.
    Removed,
    /// Its state has changed.
    Changed(Change),
    /// A check, or an agent's answer, has brought another result.
    Checked(Checked),
}

/// A change of a server's state.
#[derive(Clone, Debug)]
pub struct Change {
    /// The state before.
    pub old: State,
    /// The state after.
    pub new: State,
    /// Whether an operator, a name or a tracked server's maintenance is the reason.
    pub by_admin: bool,
    /// The reason in words; may be empty.
    pub cause: String,
    /// Number of requests that were moved to other queues.
    pub moved: usize,
    /// The check that has changed it.
    pub check: Option<Checked>,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Whether an agent has answered.
    pub agent: bool,
    /// Number of the result, as in `show servers state`.
    pub result: u8,
    /// The status in short, such as `L7OK`.
    pub short: &'static str,
    /// The status in words.
    pub text: &'static str,
    /// Code of the answer, where the protocol has one.
    pub code: Option<u16>,
    /// Duration of the check.
    pub duration: Duration,
    /// Health, from 0 to `rise + fall - 1`.
    pub health: u32,
    /// Number of good checks that bring the server up.
    pub rise: u32,
    /// Number of bad checks that take it down.
    pub fall: u32,
}

/// Takes news of servers.
pub type Listen = Arc<dyn Fn(&Subject<'_>, &News) + Send + Sync>;

/// The listener of all farms of a process, once there is one.
#[derive(Default)]
pub(crate) struct Listener(OnceLock<Listen>);

impl Listener {
    /// Sets the listener, once.
    pub(crate) fn set(&self, listen: Listen) {
        let _ = self.0.set(listen);
    }

    /// The listener, if there is one.
    pub(crate) fn get(&self) -> Option<&Listen> {
        self.0.get()
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.get().is_some()).finish()
    }
}
