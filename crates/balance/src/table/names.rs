//! Names of servers that entries hold: each is kept once, and an entry's cell holds its number.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Names of a table. Own names are those of servers, and addresses that an operator gives. Those from peers have a
/// limit of their own. None is forgotten.
#[derive(Default, Debug)]
pub(super) struct Names {
    known: RwLock<Known>,
    refused: AtomicU64,
}

/// Names by number, and their numbers.
#[derive(Default, Debug)]
struct Known {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u64>,
    /// Number of names from peers.
    learnt: usize,
}

impl Names {
    /// The number of a name, from 1; 0 when there are too many to keep another.
    pub(super) fn number(&self, name: &str) -> u64 {
        if let Some(number) = self.known().numbers.get(name) {
            return *number;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Names from peers take no room from own ones.
        let has_room = known.names.len() - known.learnt < MOST_NAMES;
        if has_room { known.number(name).0 } else { 0 }
    }

    /// Number of a name from a peer; `None` when it is too long, or there are too many.
    pub(super) fn learn(&self, name: &str) -> Option<u64> {
        if let Some(number) = self.known().numbers.get(name) {
            return Some(*number);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if name.len() > MOST_LEARNT_BYTES || known.learnt >= MOST_LEARNT_NAMES {
            drop(known);
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        let (number, is_new) = known.number(name);
        known.learnt += usize::from(is_new);
        Some(number)
    }

    /// Number of names from peers that were not kept.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// The name of a number.
    pub(super) fn name(&self, number: u64) -> Option<Arc<str>> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.known().names.get(index).cloned()
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The number of a name, and whether it is new.
    fn number(&mut self, name: &str) -> (u64, bool) {
        if let Some(number) = self.numbers.get(name) {
            return (*number, false);
        }
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        let number = self.names.len() as u64;
        self.numbers.insert(name, number);
        (number, true)
    }
}

/// Far more than there are servers.
const MOST_NAMES: usize = 1 << 20;
/// Limit of names from peers: as many as peers have servers, and room for those that come and go.
const MOST_LEARNT_NAMES: usize = 4096;
/// Names of servers are shorter.
const MOST_LEARNT_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_peers_are_limited_and_leave_room() {
        let names = Names::default();
        let own = names.number("own");
        assert_eq!((names.learn("own"), names.learn(&"x".repeat(257)), names.refused()), (Some(own), None, 1));
        let longest = "x".repeat(256);
        let learnt = names.learn(&longest).unwrap();
        assert!((1..MOST_LEARNT_NAMES).all(|n| names.learn(&format!("peer{n}")).is_some()));
        assert_eq!((names.learn("one more"), names.refused()), (None, 2));
        assert_eq!((names.learn(&longest), names.name(learnt).as_deref()), (Some(learnt), Some(&*longest)));
        let later = names.number("one more");
        assert_eq!((names.name(later).as_deref(), names.learn("one more")), (Some("one more"), Some(later)));
    }
}
