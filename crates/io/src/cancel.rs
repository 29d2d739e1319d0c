//! The end of a stream that neither of its peers has caused: a server that is marked down, an operator's command, a hard
//! stop.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};
use terse_message::Who;

/// The signal to a task that its stream is to end.
#[derive(Default, Debug)]
pub struct Cancel {
    why: Cell<Option<Who>>,
    waker: RefCell<Option<Waker>>,
}

impl Cancel {
    /// Ends the stream that the task serves. The first reason counts.
    pub fn set(&self, why: Who) {
        if self.why.get().is_none() {
            self.why.set(Some(why));
        }
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Clears the signal for the stream before this one.
    pub fn clear(&self) {
        self.why.set(None);
    }

    /// Ready once the stream is to end. A task keeps its waker from one stream to the next, so it is stored once.
    pub fn poll(&self, cx: &Context<'_>) -> Poll<Who> {
        if let Some(why) = self.why.get() {
            return Poll::Ready(why);
        }
        let mut waker = self.waker.borrow_mut();
        match &*waker {
            Some(stored) if stored.will_wake(cx.waker()) => {}
            _ => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
