//! The end of a stream that neither of its peers has caused: a server that is marked down, an operator's command, a hard
//! stop.
//!
//! ```text
//! another thread -> the worker's registry -> Cancel::set wakes the task
//!                -> `until` drops the task's serving future -> the stream is counted and logged
//! ```
//!
//! Invariant: all that a stream holds (a slot of a server, a place in a queue, a connection, a job, a recording) is given
//! back by Drop, and its figures are in cells ([`crate::figures`]). So the future that serves it can be dropped at any of its
//! awaits.

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

/// Serves until that is done, or until it is cancelled: then the serving future is dropped where it stands.
///
/// A macro, so that the future is made where it stays: as an argument it was copied, with all of the room that it may need.
macro_rules! until {
    ($cancel:expr, $serve:expr) => {{
        let cancel: &$crate::exchange::Cancel = $cancel;
        let mut serve = std::pin::pin!($serve);
        std::future::poll_fn(|cx| match cancel.poll(cx) {
            std::task::Poll::Ready(why) => std::task::Poll::Ready(Err(why)),
            std::task::Poll::Pending => serve.as_mut().poll(cx).map(Ok),
        })
        .await
    }};
}
pub(crate) use until;

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, pending};
    use std::pin::pin;
    use std::rc::Rc;

    struct Held(Rc<Cell<bool>>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }

    #[test]
    fn what_serves_is_dropped_before_the_end_is_told() {
        let (cancel, dropped) = (Cancel::default(), Rc::new(Cell::new(false)));
        let held = Held(dropped.clone());
        let serve = async {
            let _held = held;
            pending::<()>().await;
        };
        let mut cx = Context::from_waker(Waker::noop());
        let mut task = pin!(async {
            let ended = until!(&cancel, serve);
            (ended, dropped.get())
        });
        assert!(task.as_mut().poll(&mut cx).is_pending());
        cancel.set(Who::Down);
        cancel.set(Who::Killed);
        assert_eq!(task.as_mut().poll(&mut cx), Poll::Ready((Err(Who::Down), true)));
        cancel.clear();
        assert!(cancel.poll(&cx).is_pending());
    }
}
