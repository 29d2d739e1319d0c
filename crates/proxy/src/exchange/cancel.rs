//! The end of a stream from outside ([`terse_io::Cancel`]): the future that serves it is dropped.
//!
//! ```text
//! another thread -> the worker's registry -> Cancel::set wakes the task
//!                -> `until` drops the task's serving future -> the stream is counted and logged
//! ```
//!
//! Invariant: all that a stream holds (a slot of a server, a place in a queue, a connection, a job, a recording) is given
//! back by Drop, and its figures are in cells ([`crate::figures`]). So the future that serves it can be dropped at any of its
//! awaits.

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
    use std::cell::Cell;
    use std::future::{Future, pending};
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};
    use terse_io::Cancel;
    use terse_message::Who;

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
