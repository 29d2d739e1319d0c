//! Variables of the process whose names come at run time, from the stats socket. They are found by name in a compact
//! elastic binary tree, once for each expression that holds them, and by index from then on.

use crate::value::Value;
use std::sync::{PoisonError, RwLock};
use terse_ceb::TextTree;

/// Names and values after those of the configuration. A name stays once it has come: expressions may hold its index.
#[derive(Default, Debug)]
pub(super) struct Late {
    /// The index of the first.
    first: u32,
    inner: RwLock<Inner>,
}

#[derive(Default, Debug)]
struct Inner {
    names: TextTree<u32>,
    values: Vec<Option<Value<'static>>>,
}

impl Late {
    /// An empty table, after as many names of the configuration's.
    pub(super) fn behind(first: u32) -> Late {
        Late { first, inner: RwLock::default() }
    }

    /// The index of a name that has come.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        inner.names.get(name.as_bytes()).map(|place| self.first + place)
    }

    /// The index of a name; a new one gets its place.
    pub(super) fn slot(&self, name: &str) -> Result<u32, String> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = inner.names.get(name.as_bytes()) {
            return Ok(self.first + place);
        }
        let place = inner.values.len() as u32;
        let fits = inner.values.len() < MOST_NAMES && name.len() <= LONGEST_NAME;
        if !fits || inner.names.insert(name.as_bytes(), place).is_err() {
            return Err(format!(
                "variable 'proc.{name}' cannot be made: there are at most {MOST_NAMES} that no line of the configuration names, and \
                 their names have at most {LONGEST_NAME} characters"
            ));
        }
        inner.values.push(None);
        Ok(self.first + place)
    }

    pub(super) fn get(&self, index: u32) -> Option<Value<'static>> {
        let place = index.checked_sub(self.first)? as usize;
        self.inner.read().unwrap_or_else(PoisonError::into_inner).values.get(place)?.clone()
    }

    /// Calls `change` with a value, if there is such a variable.
    pub(super) fn with<T>(&self, index: u32, change: impl FnOnce(&mut Option<Value<'static>>) -> T) -> Option<T> {
        let place = index.checked_sub(self.first)? as usize;
        self.inner.write().unwrap_or_else(PoisonError::into_inner).values.get_mut(place).map(change)
    }
}

/// Most names: many times more than an operator would ever write; each name costs about as much as a short value.
const MOST_NAMES: usize = 4096;
const LONGEST_NAME: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vars::{Limits, ProcessStore, VarNames, VarScope, VarSlot, Vars};

    #[test]
    fn new_names_of_the_process_follow_those_of_the_configuration() {
        let mut names = VarNames::default();
        let known = names.slot("proc.known").unwrap();
        let process = ProcessStore::new(names, Limits::default());
        let mut later = process.later_names();
        assert_eq!(later.slot("proc.known"), Ok(known));
        assert_eq!(later.find("proc.late"), None);
        let late = later.slot("proc.late").unwrap();
        assert_eq!(late, VarSlot { scope: VarScope::Process, index: 1 });
        assert_eq!(process.later_names().slot("proc.late"), Ok(late));
        assert_eq!(process.later_names().find("proc.late"), Some(late));
        let vars = Vars { process: Some(&process), ..Vars::default() };
        assert!(vars.set(late, Value::Int(3)) && vars.set(known, Value::Int(4)));
        assert_eq!((vars.get(late), vars.get(known)), (Some(Value::Int(3)), Some(Value::Int(4))));
        assert!(!vars.set(VarSlot { index: 2, ..late }, Value::Int(5)));
        assert!(later.slot("txn.late").is_err());
    }

    #[test]
    fn there_is_an_end_to_names() {
        let late = Late::behind(0);
        assert!(late.slot(&"x".repeat(LONGEST_NAME + 1)).is_err());
        for n in 0..MOST_NAMES {
            late.slot(&n.to_string()).unwrap();
        }
        assert!(late.slot("more").is_err());
        assert_eq!(late.slot("17"), Ok(17));
    }
}
