//! Work that rules put off: an expression has a slow computation that would hold the worker up, such as the hash of a
//! password.
//!
//! ```text
//!   a phase that can wait opens the deferral -> a condition puts work off -> the rule stops: Flow::Work
//!        -> the phase has it done elsewhere, and waits -> the same rule again, which finds the result
//! ```
//!
//! Conditions alone may put work off, since to evaluate a condition twice has no effect. Where the phase cannot wait, work is
//! done at once.

use std::cell::{Cell, RefCell};
use terse_sample::Work;
use tokio::sync::Semaphore;

/// Whether work may be put off now, and the deferred work.
#[derive(Default)]
pub struct Deferral {
    is_open: Cell<bool>,
    work: RefCell<Option<Work>>,
}

impl Deferral {
    /// Lets expressions put work off, or no longer.
    pub fn open(&self, is_open: bool) {
        self.is_open.set(is_open);
    }

    /// Whether work may be put off.
    pub fn is_open(&self) -> bool {
        self.is_open.get()
    }

    /// Puts work off, if that is allowed; otherwise gives it back. Of several pieces of an evaluation the first is done
    /// first: the others come again.
    pub fn put_off(&self, work: Work) -> Option<Work> {
        if !self.is_open() {
            return Some(work);
        }
        self.work.borrow_mut().get_or_insert(work);
        None
    }

    /// The deferred work.
    pub fn take(&self) -> Option<Work> {
        self.work.borrow_mut().take()
    }
}

/// Pieces that are done at a time in the process; more wait their turn. A client that sends wrong passwords gets no more of
/// the machine.
const AT_ONCE: usize = 2;

static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Has work done by another thread, and waits for it.
pub async fn elsewhere(work: Work) {
    // The semaphore is never closed.
    let _turn = TURNS.acquire().await;
    // Work that panics has no result: the expression finds none again, and reports it.
    let _ = tokio::task::spawn_blocking(work).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn work_is_put_off_where_somebody_waits_for_it() {
        let (deferral, done) = (Deferral::default(), Arc::new(AtomicUsize::new(0)));
        let work = |n: usize| -> Work {
            let done = done.clone();
            Box::new(move || {
                done.fetch_add(n, SeqCst);
            })
        };
        assert!(deferral.put_off(work(1)).is_some() && deferral.take().is_none());
        deferral.open(true);
        assert!(deferral.put_off(work(10)).is_none() && deferral.put_off(work(100)).is_none());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(elsewhere(deferral.take().unwrap()));
        assert_eq!(done.load(SeqCst), 10);
        assert!(deferral.take().is_none());
    }
}
