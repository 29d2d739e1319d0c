//! The rest of a request that was answered before it was whole: it is read and dropped, and then the connection ends.
//!
//! A close while bytes are unread, or on their way, makes a reset that may overtake the answer (RFC 9112 section 9.6). A client that sends
//! its whole body before it reads would never see its answer: so the rest is read to its end, however long it is, if it keeps coming.

use crate::connection::downstream::ClientConnection;
use crate::exchange::{Broken, Client, Ends, Framing, Part, Receiver};
use crate::figures::Figures;
use crate::io::clock;
use crate::session::Session;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Limits of time and bytes of the reading from a client whose request has ended, or was held back, or cannot be read.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;

/// A body that is dropped comes at this rate after the first minute, or its connection ends.
const LEAST_RATE: u64 = 16 * 1024;
const FIRST: Duration = Duration::from_secs(60);

/// Reads the `rest` of a request and drops it. `held_back`: the client may never send it.
pub async fn linger(client: &mut ClientConnection, session: &Session, rest: Framing, held_back: bool) {
    client.timer.set(Some(LINGER));
    if client.shut_down().await.is_err() {
        return;
    }
    if !matches!(rest, Framing::Done | Framing::UntilClose) {
        let patience = session.frontend().timeouts.client.filter(|_| session.worker.is_running() && !held_back);
        let silence = Some(patience.unwrap_or(LINGER));
        // The stream has been counted and logged.
        let dropped = Figures::default();
        let mut client = Client::with_rest(client, rest);
        let Ends { mut from, peer, .. } = client.ends(&session.worker.pools, &dropped, silence);
        peer.restart(silence);
        let mut dropping = pin!(drop_steadily(&mut from));
        let ended = poll_fn(|cx| match dropping.as_mut().poll(cx) {
            // A drain waits for no body that nothing takes.
            Poll::Pending if patience.is_some() && !session.worker.is_running() => Poll::Ready(Ok(())),
            poll => poll,
        });
        match ended.await {
            Ok(()) | Err(Broken::Malformed(_)) => {}
            Err(_) => return,
        }
    }
    briefly(client, session).await;
}

/// Reads the rest of a body and drops it, unless it comes too slowly.
async fn drop_steadily(receiver: &mut Receiver<'_>) -> Result<(), Broken> {
    let began = clock::now();
    let mut bytes = 0;
    loop {
        match receiver.part()? {
            Some(Part::Data(n)) => {
                bytes += n as u64;
                receiver.consume(n);
            }
            Some(Part::End) => return Ok(()),
            None => {
                receiver.more().await?;
                let took = clock::now().saturating_duration_since(began);
                if took > FIRST && bytes / took.as_secs() < LEAST_RATE {
                    return Err(Broken::Timeout);
                }
            }
        }
    }
}

/// Reads bytes whose end is not known, for a moment.
async fn briefly(client: &mut ClientConnection, session: &Session) {
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
