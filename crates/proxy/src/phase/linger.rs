//! The rest of a request that was answered before it was whole: it is read and dropped, and then the connection ends.
//!
//! A close while bytes are unread, or on their way, makes a reset that may overtake the answer (RFC 9112 section 9.6). A client that sends
//! its whole body before it reads would never see its answer: so the rest is read to its end, however long it is, if it keeps coming.

use crate::io::{Broken, Incoming, Part, Source, clock};
use crate::phase::Client;
use crate::session::Session;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// How long a client is listened to when its request has ended, or held back, or cannot be read: and how many bytes.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;

/// A body that is dropped comes at this rate after the first minute, or its connection ends.
const LEAST_RATE: u64 = 16 * 1024;
const FIRST: Duration = Duration::from_secs(60);

/// Reads the `rest` of a request and drops it. `held_back`: the client may never send it.
pub async fn linger(client: &mut Client, session: &Session, mut rest: Incoming, held_back: bool) {
    client.timer.set(Some(LINGER));
    if shut_down(client).await.is_err() {
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
        let mut dropping = pin!(drop_steadily(&mut source));
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

/// Tells the client that nothing more comes, if it takes what TLS holds in time.
async fn shut_down(client: &mut Client) -> io::Result<()> {
    let Client { io, timer, .. } = client;
    let mut closing = pin!(io.shutdown());
    poll_fn(|cx| match closing.as_mut().poll(cx) {
        Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        poll => poll,
    })
    .await
}

/// Reads what is left of a body and drops it, unless it comes too slowly.
async fn drop_steadily(source: &mut Source<'_>) -> Result<(), Broken> {
    let began = clock::now();
    let mut bytes = 0;
    loop {
        match source.part()? {
            Some(Part::Data(n)) => {
                bytes += n as u64;
                source.consume(n);
            }
            Some(Part::End) => return Ok(()),
            None => {
                source.more().await?;
                let took = clock::now().saturating_duration_since(began);
                if took > FIRST && bytes / took.as_secs() < LEAST_RATE {
                    return Err(Broken::Timeout);
                }
            }
        }
    }
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
