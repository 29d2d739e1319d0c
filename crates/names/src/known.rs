//! Known answers of names, for `do-resolve`.

use crate::client::Families;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Answers that are kept, by name and the addresses that were wanted. At most [`MOST_KNOWN`].
#[derive(Default, Debug)]
pub(crate) struct Known(Mutex<HashMap<(String, Families), Found>>);

/// An answer that is kept.
#[derive(Clone, Debug)]
struct Found {
    until: Instant,
    /// Addresses in the order of [`crate::records`]; each request gets the next one. Empty: the name was not found.
    addresses: Vec<IpAddr>,
    next: usize,
}

impl Known {
    /// The known answer of a name; `None`: it is to be asked for. `Some(None)`: the name was not found.
    pub(crate) fn recall(&self, key: &(String, Families)) -> Option<Option<IpAddr>> {
        let now = Instant::now();
        let mut names = self.names();
        let found = names.get_mut(key).filter(|found| found.until > now)?;
        let at = found.next.checked_rem(found.addresses.len()).unwrap_or(0);
        found.next = at + 1;
        Some(found.addresses.get(at).copied())
    }

    /// Keeps an answer for so long.
    pub(crate) fn remember(&self, key: (String, Families), addresses: Vec<IpAddr>, keep: Duration) {
        let now = Instant::now();
        let mut names = self.names();
        if names.len() >= MOST_KNOWN {
            names.retain(|_, found| found.until > now);
        }
        let next = names.get(&key).map_or(0, |found| found.next);
        if names.len() < MOST_KNOWN || names.contains_key(&key) {
            names.insert(key, Found { until: now + keep, addresses, next });
        }
    }

    /// Expires all answers.
    #[cfg(test)]
    pub(crate) fn expire(&self) {
        self.names().values_mut().for_each(|found| found.until = Instant::now());
    }

    fn names(&self) -> MutexGuard<'_, HashMap<(String, Families), Found>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names that `do-resolve` remembers.
const MOST_KNOWN: usize = 65_536;
