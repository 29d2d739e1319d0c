//! Backends that the stats socket removes from a plan ([`super::roll`]).

use super::{Backend, Plan};
use crate::settings::Mode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Why a backend is not removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRemoved {
    /// It is there no more.
    Gone,
    /// It is a half of a `listen`.
    Listen,
    /// It has a stick table.
    HasTable,
    /// The configuration refers to it.
    Referenced,
    /// It takes lines of logs.
    TakesLogs,
    /// Rules may choose it.
    Published,
    /// It has servers.
    HasServers,
    /// Streams are on it: they end.
    Busy,
}

impl Plan {
    /// Whether a backend can be removed now.
    ///
    /// # Errors
    /// It cannot; where it is only [`NotRemoved::Busy`], waiting helps.
    pub fn removable(&self, backend: &Backend) -> Result<(), NotRemoved> {
        let why = if backend.twin.is_some() {
            NotRemoved::Listen
        } else if backend.has_table {
            NotRemoved::HasTable
        } else if backend.is_referenced.load(Relaxed) {
            NotRemoved::Referenced
        } else if backend.mode == Mode::Log {
            NotRemoved::TakesLogs
        } else if backend.is_published.load(Relaxed) {
            NotRemoved::Published
        } else if !backend.farm.servers().is_empty() {
            NotRemoved::HasServers
        } else if backend.tally.current() != 0 {
            NotRemoved::Busy
        } else {
            return Ok(());
        };
        Err(why)
    }

    /// Removes a backend.
    ///
    /// # Errors
    /// It cannot be removed, or not yet.
    pub fn remove_backend(&self, backend: &Arc<Backend>) -> Result<(), NotRemoved> {
        let change = self.backends.change();
        // Another client may have removed it during the wait of this client.
        let there = self.backends.now().of_number(backend.number).is_some();
        if !there {
            return Err(NotRemoved::Gone);
        }
        self.removable(backend)?;
        change.remove(backend);
        Ok(())
    }
}
