//! Waiting for a server or its connection, with an eye on the client: its timer, and whether it closes meanwhile.

use crate::exchange::Client;
use crate::io::Pools;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Outcome of a wait.
pub enum Waited<T> {
    /// The output of the future.
    Done(T),
    /// The client's timer ran out.
    Late,
    /// The client has closed.
    Closed,
}

/// A look at whether the client closes meanwhile.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Pools of the buffers for bytes that it sends in advance.
    pub pools: &'a Pools,
    /// `option abortonclose`: whatever it has sent before. Otherwise only a client that has sent nothing counts as closed.
    pub at_any_close: bool,
}

/// Waits for a future, until the client's timer runs out, and if it `watches`, until the client closes.
pub async fn wait<F: Future>(client: &mut Client<'_>, watches: Option<Watch<'_>>, mut future: Pin<&mut F>) -> Waited<F::Output> {
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            Poll::Ready(Waited::Done(output))
        } else if watches.is_some_and(|watch| client.poll_left(cx, watch.pools, watch.at_any_close)) {
            Poll::Ready(Waited::Closed)
        } else if client.timer().is_due(cx) {
            Poll::Ready(Waited::Late)
        } else {
            Poll::Pending
        }
    })
    .await
}
