//! News of servers for whoever listens, such as scripts: servers that come and go, changes of their state, checks.
//!
//! Nothing is made where nothing listens. The listener is called under the lock of a farm's changes: it must not call back, and
//! takes the news away in the order of their events.

use crate::check::LastCheck;
use crate::farm::Farm;
use crate::server::Server;
use crate::state::{Event, State};
use std::fmt;
use std::sync::{Arc, OnceLock};

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
    /// The outcome.
    pub check: LastCheck,
    /// Health, from 0 to `rise + fall - 1`.
    pub health: u32,
    /// Number of good checks that bring the server up.
    pub rise: u32,
    /// Number of bad checks that take it down.
    pub fall: u32,
}

/// Takes news of servers.
pub type Listen = Arc<dyn Fn(&Farm, &Server, &News) + Send + Sync>;

/// The listener of all farms of a process, once there is one.
#[derive(Default)]
pub(crate) struct Listener(OnceLock<Listen>);

impl Listener {
    /// Sets the listener, once.
    pub(crate) fn set(&self, listen: Listen) {
        let _ = self.0.set(listen);
    }

    /// Passes on news, which are made for a listener alone.
    pub(crate) fn hear(&self, farm: &Farm, server: &Server, news: impl FnOnce() -> News) {
        if let Some(listen) = self.0.get() {
            listen(farm, server, &news());
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.get().is_some()).finish()
    }
}

impl Checked {
    /// The outcome of a server's check, with the health that it leads to.
    pub(crate) fn of(server: &Server, check: LastCheck, health: u32) -> Checked {
        let settings = &server.settings().check;
        Checked { agent: false, check, health, rise: settings.rise, fall: settings.fall }
    }

    /// An agent's answer: one is enough.
    pub(crate) fn of_agent(check: LastCheck, up: bool) -> Checked {
        Checked { agent: true, check, health: u32::from(up), rise: 1, fall: 1 }
    }
}

impl Change {
    /// A change by an event; `cause`: that of the log line.
    pub(crate) fn of(server: &Server, event: Event, (old, new): (State, State), cause: &str, moved: usize) -> Change {
        let check = match event {
            Event::Passed | Event::PassedStopping | Event::Failed => Some(Checked::of(server, server.last_check(), new.health)),
            Event::Agent(up) if !cause.contains("CLI") => Some(Checked::of_agent(server.last_agent(), up)),
            _ => None,
        };
        // The words of a check are those of its result; a tracked server's news come with its own.
        let cause = if check.is_some() || matches!(event, Event::Tracked(_)) { "" } else { cause };
        let cause = cause.trim_start_matches([',', ' ', '(']).trim_end_matches(')').to_owned();
        let by_admin = old.admin != new.admin || matches!(event, Event::Admin(_) | Event::Resolved(_));
        Change { old, new, by_admin, cause, moved, check }
    }
}
