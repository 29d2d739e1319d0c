//! Variables of the process, and facts about the variables of all scopes.

use super::late::Late;
use super::limits::counted_bytes;
use super::{Limits, VarNames, VarScope};
use crate::value::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

/// The process's values; the names of all scopes, and their limits.
#[derive(Default, Debug)]
pub struct ProcessStore {
    values: Vec<RwLock<Option<Value<'static>>>>,
    /// Variables after them, whose names came later.
    late: Arc<Late>,
    names: VarNames,
    limits: Limits,
    /// Bytes that the variables of all scopes count for; 0 without limits.
    bytes: AtomicUsize,
}

impl ProcessStore {
    /// A store with room for all names of the process's scope in the configuration.
    pub fn new(names: VarNames, limits: Limits) -> ProcessStore {
        let values: Vec<_> = (0..names.count(VarScope::Process)).map(|_| RwLock::new(None)).collect();
        let late = Arc::new(Late::behind(values.len() as u32));
        ProcessStore { values, late, names, limits, bytes: AtomicUsize::new(0) }
    }

    /// The value, if the variable is set.
    pub fn get(&self, index: u32) -> Option<Value<'static>> {
        match self.values.get(index as usize) {
            Some(slot) => slot.read().unwrap_or_else(PoisonError::into_inner).clone(),
            None => self.late.get(index),
        }
    }

    /// Sets the variable, or unsets it. Returns false beyond a limit of memory, which leaves it unset.
    pub fn set(&self, index: u32, value: Option<Value<'static>>) -> bool {
        match self.values.get(index as usize) {
            Some(slot) => self.replace(&mut slot.write().unwrap_or_else(PoisonError::into_inner), value),
            None => self.late.with(index, |slot| self.replace(slot, value)).unwrap_or(false),
        }
    }

    fn replace(&self, slot: &mut Option<Value<'static>>, value: Option<Value<'static>>) -> bool {
        let fits = !self.is_limited() || {
            let before = counted_bytes(slot.as_ref());
            self.recount(before, counted_bytes(value.as_ref())) || !self.recount(before, 0)
        };
        *slot = value.filter(|_| fits);
        fits
    }

    /// The names of all scopes.
    pub fn names(&self) -> &VarNames {
        &self.names
    }

    /// The same, for expressions that are compiled from now on. New names of the process's scope are added here, new names
    /// of other scopes are not.
    pub fn later_names(&self) -> VarNames {
        self.names.clone().followed_by(self.late.clone())
    }

    /// Whether memory is counted.
    #[inline]
    pub fn is_limited(&self) -> bool {
        !self.limits.is_none()
    }

    /// Bytes that the variables of all scopes count for now; 0 without limits.
    pub fn counted(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts `after` bytes in the place of `before`; returns whether they fit: otherwise nothing has changed.
    pub(super) fn recount(&self, before: usize, after: usize) -> bool {
        let most = self.limits.widest();
        let change = |bytes: usize| {
            let bytes = bytes.saturating_sub(before).saturating_add(after);
            (after <= before || bytes <= most).then_some(bytes)
        };
        self.bytes.fetch_update(Relaxed, Relaxed, change).is_ok()
    }
}
