//! Keys of a shared table that have changed, until they are taken.

use super::entry::Key;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Keys, each once: an entry that waits here is marked.
#[derive(Debug)]
pub(super) struct Feed {
    keys: Mutex<Vec<Key>>,
    wake: Arc<Notify>,
    closed: AtomicBool,
}

impl Feed {
    pub(super) fn new(wake: Arc<Notify>) -> Feed {
        Feed { keys: Mutex::default(), wake, closed: AtomicBool::new(false) }
    }

    pub(super) fn push(&self, key: &[u8]) {
        if self.closed.load(Relaxed) {
            return;
        }
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push(Key::from_slice(key));
        let is_first = keys.len() == 1;
        drop(keys);
        if is_first {
            self.wake.notify_one();
        }
    }

    pub(super) fn take(&self) -> Vec<Key> {
        std::mem::take(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the feed: no more keys are kept.
    pub(super) fn close(&self) {
        self.closed.store(true, Relaxed);
        self.take();
    }
}
