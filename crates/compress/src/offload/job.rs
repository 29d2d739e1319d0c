//! A piece of work away from its worker.
//!
//! ```text
//!              take               finish              poll
//!   Waiting ────────────> Running ─────────> Finished ─────> Gone
//!      │  ^                  │ │                 │             ^
//!      │  └── more slices ───┘ │                 │             │
//!      └───────────────────────┴── Job dropped ──┴─────────────┘
//! ```
//!
//! A job that is dropped before it is done is taken back: where it [waits](Home) it is taken out at once, and counted as
//! cancelled. Running work ends at the next slice, or with the engine that has it, and its output is dropped.

use super::twins::Kind;
use super::work::Work;
use crate::coder::CoderFault;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Output of a job: to be handed to [`crate::Compressor::resume`].
pub struct Finished(pub(crate) Result<Work, CoderFault>);

/// A piece of work in the offload queue. Ready when it is done; dropped before that, it is cancelled.
#[must_use]
pub struct Job {
    slot: Arc<Slot>,
}

/// State that the job and the queue share.
pub(super) struct Slot {
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    waker: Option<Waker>,
    home: Weak<dyn Home>,
}

/// The place where a job waits, or was last: notified when the job is dropped.
pub(super) trait Home: Send + Sync {
    /// Handles the drop of a job that was not done. `kind` is that of waiting work.
    fn left(&self, slot: &Slot, kind: Option<Kind>);
}

enum State {
    Waiting(Work),
    Running,
    Finished(Finished),
    Gone,
}

impl Job {
    pub(super) fn new(work: Work, home: Weak<dyn Home>) -> Job {
        Job { slot: Arc::new(Slot { inner: Mutex::new(Inner { state: State::Waiting(work), waker: None, home }) }) }
    }

    pub(super) fn slot(&self) -> Arc<Slot> {
        self.slot.clone()
    }

    /// The work of a job that was not taken.
    pub(super) fn into_work(self) -> Option<Work> {
        match std::mem::replace(&mut self.slot.lock().state, State::Gone) {
            State::Waiting(work) => Some(work),
            _ => None,
        }
    }
}

impl Future for Job {
    type Output = Finished;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Finished> {
        let mut inner = self.slot.lock();
        match std::mem::replace(&mut inner.state, State::Gone) {
            State::Finished(finished) => Poll::Ready(finished),
            State::Gone => Poll::Ready(Finished(Err(CoderFault))),
            going => {
                inner.state = going;
                match &mut inner.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let (left, home) = {
            let mut inner = self.slot.lock();
            (std::mem::replace(&mut inner.state, State::Gone), inner.home.clone())
        };
        let kind = match &left {
            State::Waiting(work) => work.kind(),
            State::Running => None,
            State::Finished(_) | State::Gone => return,
        };
        if let Some(home) = home.upgrade() {
            home.left(&self.slot, kind);
        }
    }
}

impl Slot {
    /// Takes the work to do some of it; `None` when it is not wanted any more.
    pub(super) fn take(&self) -> Option<Work> {
        let mut inner = self.lock();
        match std::mem::replace(&mut inner.state, State::Running) {
            State::Waiting(work) => Some(work),
            other => {
                inner.state = other;
                None
            }
        }
    }

    /// Whether its work waits, and is done in slices.
    pub(super) fn has_slices(&self) -> bool {
        matches!(&self.lock().state, State::Waiting(work) if work.has_slices())
    }

    /// Puts back work of which slices are left; returns whether it is still wanted.
    pub(super) fn put_back(&self, work: Work) -> bool {
        let mut inner = self.lock();
        let wanted = matches!(inner.state, State::Running);
        if wanted {
            inner.state = State::Waiting(work);
        }
        wanted
    }

    /// From now on it waits elsewhere.
    pub(super) fn move_to(&self, home: Weak<dyn Home>) {
        self.lock().home = home;
    }

    /// Hands the result to the waiting task.
    pub(super) fn finish(&self, mut result: Result<Work, CoderFault>) {
        if let Ok(work) = &mut result {
            work.share();
        }
        let mut inner = self.lock();
        if matches!(inner.state, State::Gone) {
            return;
        }
        inner.state = State::Finished(Finished(result));
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
