//! Waiting for a server or its connection, with an eye on the client: its timer, and whether it closes meanwhile.

use crate::io::Pools;
use crate::phase::Client;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// What came of waiting.
pub enum Waited<T> {
    /// What was waited for.
    Done(T),
    /// The client's timer ran out.
    Late,
    /// The client has closed.
    Closed,
}

/// A look at whether the client closes meanwhile.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Where room for what it sends in advance comes from.
    pub pools: &'a Pools,
    /// `option abortonclose`: whatever it has sent before. Otherwise only who has sent nothing has closed.
    pub at_any_close: bool,
}

/// Waits for a future, until the client's timer runs out, and if it `watches`, until the client closes.
pub async fn wait<F: Future>(client: &mut Client, watches: Option<Watch<'_>>, mut future: Pin<&mut F>) -> Waited<F::Output> {
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            Poll::Ready(Waited::Done(output))
        } else if watches.is_some_and(|watch| has_closed(client, watch, cx)) {
            Poll::Ready(Waited::Closed)
        } else if client.timer.is_due(cx) {
            Poll::Ready(Waited::Late)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Whether the client has closed; what it sends in advance is kept.
fn has_closed(client: &mut Client, watch: Watch<'_>, cx: &mut Context<'_>) -> bool {
    // Without room for what it sends in advance, its close cannot be seen.
    let Client { io, buffer, .. } = client;
    if let Some(stream) = io.stream() {
        return stream.poll_left(cx).is_ready();
    }
    if !buffer.is_released() && buffer.is_full() || io.poll_readable(cx).is_pending() {
        return false;
    }
    if buffer.is_released() {
        match watch.pools.small.take() {
            Some(taken) => *buffer = taken,
            None => return false,
        }
    }
    loop {
        match io.split().0.poll_read(cx, buffer) {
            Poll::Pending => return false,
            Poll::Ready(Ok(n)) if n > 0 && !buffer.is_full() => {}
            Poll::Ready(Ok(n)) => return n == 0 && (watch.at_any_close || buffer.is_empty()),
            Poll::Ready(Err(_)) => return true,
        }
    }
}
