//! The rest of a request that was answered before it was whole: it is read and dropped, and then the connection ends.
//!
//! A close while bytes are unread, or on their way, makes a reset that may overtake the answer (RFC 9112 section 9.6). A client that sends
//! its whole body before it reads would never see its answer: so the rest is read to its end, however long it is.

use crate::io::{Broken, Incoming, Source};
use crate::phase::{Client, body};
use crate::session::Session;
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// How long a client is listened to when its request has ended, or held back, or cannot be read: and how many bytes.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;

/// Reads the `rest` of a request and drops it. `held_back`: the client may never send it.
pub async fn linger(client: &mut Client, session: &Session, mut rest: Incoming, held_back: bool) {
    client.timer.set(Some(LINGER));
    if client.io.shutdown().await.is_err() {
        return;
    }
    if !matches!(rest, Incoming::Done | Incoming::UntilClose) {
        let patience = session.frontend().timeouts.client.filter(|_| session.worker.is_running() && !held_back);
        let silence = Cell::new(Some(patience.unwrap_or(LINGER)));
        let (reader, _) = client.io.split();
        // The stream has been counted and logged.
        let dropped = Cell::new(0);
        let mut source =
            Source::new(reader, &mut client.buffer, &mut rest, &session.worker.pools, &client.timer, &silence, &dropped);
        client.timer.set(silence.get());
        match body::drop_rest(&mut source).await {
            Ok(()) | Err(Broken::Malformed(_)) => {}
            Err(_) => return,
        }
    }
    briefly(client, session).await;
}

/// Reads what nobody can say the end of, for a moment.
async fn briefly(client: &mut Client, session: &Session) {
    client.timer.set(Some(LINGER));
    let mut left = LINGER_BYTES;
    while left > 0 {
        let at = client.buffer.filled().len();
        client.buffer.consume(at);
        if client.buffer.is_released() {
            match session.worker.pools.small.take() {
                Some(buffer) => client.buffer = buffer,
                None => return,
            }
        }
        let read = poll_fn(|cx| match client.io.split().0.poll_read(cx, &mut client.buffer) {
            Poll::Pending if client.timer.is_due(cx) => Poll::Ready(Ok(0)),
            poll => poll,
        });
        match read.await {
            Ok(n) if n > 0 => left = left.saturating_sub(n),
            _ => return,
        }
    }
}
