//! Names of servers that entries hold: each is kept once, and an entry's cell holds its number.

use std::sync::{Arc, PoisonError, RwLock};

/// The names of one table. There are as many as its backends have servers, and one more for each address that an operator gives.
#[derive(Default, Debug)]
pub(super) struct Names(RwLock<Vec<Arc<str>>>);

impl Names {
    /// The number of a name, from 1; 0 when there are too many to keep another.
    pub(super) fn number(&self, name: &str) -> u64 {
        let find = |names: &[Arc<str>]| names.iter().position(|known| **known == *name).map(|index| index as u64 + 1);
        if let Some(number) = find(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return number;
        }
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match find(&names) {
            Some(number) => number,
            None if names.len() >= MOST_NAMES => 0,
            None => {
                names.push(name.into());
                names.len() as u64
            }
        }
    }

    /// The name of a number.
    pub(super) fn name(&self, number: u64) -> Option<Arc<str>> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(index).cloned()
    }
}

/// Far more than there are servers.
const MOST_NAMES: usize = 1 << 20;
