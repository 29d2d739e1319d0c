//! Indices of servers under which workers keep per-server data.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Index that no other server of the process has while this one is held: the least that was free.
#[derive(Debug)]
pub(crate) struct Slot(usize);

/// Free slots, and the number of slots.
struct Slots {
    free: BTreeSet<usize>,
    count: usize,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { free: BTreeSet::new(), count: 0 });

impl Slot {
    pub(crate) fn new() -> Slot {
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        Slot(slots.free.pop_first().unwrap_or_else(|| {
            slots.count += 1;
            slots.count - 1
        }))
    }

    pub(crate) fn number(&self) -> usize {
        self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        SLOTS.lock().unwrap_or_else(PoisonError::into_inner).free.insert(self.0);
    }
}
