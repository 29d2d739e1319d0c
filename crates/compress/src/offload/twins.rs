//! The same body for several clients at the same time: a single job's work is done, and all get its output.
//!
//! ```text
//!   first of a kind ── leads ──> the line, or an engine ── done ──> each that waits gets a copy
//!   others ── wait beside the line ──^                     └ gone or broken ──> the next of them leads
//! ```
//!
//! The memory of compressed bodies knows those that were compressed; this file those that are being compressed. Only jobs
//! that leave their worker come here: work that is done in place is short.
//!
//! Invariant: as long as jobs wait for a [`Lead`], there is one: it is handed on wherever it is dropped before it was shared.
//! So no job waits for work that is not done.

use super::job::{Home, Job, Slot};
use super::{Line, Place, Work};
use crate::coder::CoderFault;
use crate::coding::{Coding, Level};
use crate::memory::Name;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// Properties that two jobs must have in common for the result of either to be the other's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Kind {
    /// The body.
    pub(crate) name: Name,
    /// Its coding.
    pub(crate) coding: Coding,
    /// The level.
    pub(crate) level: Level,
}

/// The waiting jobs by kind: those after each that leads.
#[derive(Default)]
pub(super) struct Twins {
    behind: Mutex<HashMap<Kind, Vec<Arc<Slot>>>>,
}

/// The mark of a job that others wait for.
pub(super) struct Lead {
    kind: Kind,
    line: Arc<Line>,
    /// No job waits any more.
    is_over: bool,
}

impl Twins {
    /// Takes work in after that of its kind; gives it back where there is none, and then this is to lead: a [`Lead`] must be
    /// made.
    pub(super) fn wait(&self, kind: Kind, work: Work, home: Weak<dyn Home>) -> Result<Job, Work> {
        match self.lock().entry(kind) {
            Entry::Occupied(mut others) => {
                let job = Job::new(work, home);
                others.get_mut().push(job.slot());
                Ok(job)
            }
            Entry::Vacant(place) => {
                place.insert(Vec::new());
                Err(work)
            }
        }
    }

    /// Takes out a job that was dropped.
    pub(super) fn forget(&self, kind: Kind, slot: &Slot) {
        if let Some(others) = self.lock().get_mut(&kind) {
            others.retain(|other| !std::ptr::eq(&**other, slot));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Vec<Arc<Slot>>>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lead {
    /// Of the first of a kind.
    pub(super) fn new(kind: Kind, line: Arc<Line>) -> Lead {
        Lead { kind, line, is_over: false }
    }

    /// Gives the output, and the level if it is not the kind's, to all that wait.
    pub(super) fn share(mut self, out: &[u8], level: Option<Level>) {
        self.is_over = true;
        let waiting = self.line.twins.lock().remove(&self.kind).unwrap_or_default();
        for slot in waiting {
            // A dropped job has left nothing.
            if let Some(work) = slot.take() {
                self.line.numbers.shared.fetch_add(1, Relaxed);
                slot.finish(Ok(work.copied(out, level)));
            }
        }
    }

    /// The next job that still waits, with its work. Without one the kind has no jobs any more.
    fn next(&self) -> Option<(Arc<Slot>, Work)> {
        let mut behind = self.line.twins.lock();
        let others = behind.get_mut(&self.kind)?;
        while !others.is_empty() {
            let slot = others.remove(0);
            if let Some(work) = slot.take() {
                return Some((slot, work));
            }
        }
        behind.remove(&self.kind);
        None
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        while let Some((slot, work)) = self.next() {
            if self.line.is_stopped() {
                slot.finish(Err(CoderFault));
                continue;
            }
            let work = work.into_software(None).leading(Lead::new(self.kind, self.line.clone()));
            // A job that was dropped in this moment drops its work, and with it the lead goes on.
            if slot.put_back(work) {
                self.line.rejoin(super::Entry::new(slot, Some(Instant::now())), Place::Last);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests;
