//! TLS with clients: between the PROXY protocol's head and the first read.

use crate::connection::downstream::ClientConnection;
use crate::io::Transport;
use crate::phase::record;
use crate::session::Session;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use terse_compress::budget;
use terse_tls::{Ask, Cause, Failure, RECORDS_MEMORY_BYTES};

/// Performs the handshake. A handshake that failed is logged: `None`.
pub async fn accept(client: ClientConnection, session: &Rc<Session>) -> Option<ClientConnection> {
    let acceptor = session.worker.plan.binds[session.bind].tls.as_ref()?;
    let ClientConnection { io, mut buffer, timer } = client;
    let socket = io.into_plain()?;
    // The bytes after the PROXY protocol's header are the beginning of the handshake.
    let early = buffer.filled().len();
    let memory = session.worker.plan.records_memory.clone();
    let ask = acceptor.compresses_records().then(|| Box::new(move || budget::hold(&memory, RECORDS_MEMORY_BYTES)) as Ask);
    let secured = Rc::new(acceptor.accept(socket, buffer.filled(), ask).ok()?);
    buffer.consume(early);
    buffer.release_if_empty();
    session.secure(&secured);
    let timeouts = &session.frontend().timeouts;
    timer.set(timeouts.client_handshake.or(timeouts.client));
    let made = poll_fn(|cx| match secured.poll_handshake(cx) {
        Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(secured.give_up())),
        poll => poll,
    });
    match made.await {
        Ok(()) => {
            timer.clear();
            Some(ClientConnection { io: Transport::Tls(secured), buffer, timer })
        }
        Err(failure) => {
            refuse(session, failure);
            None
        }
    }
}

/// Waits for the handshake of a client whose request came as early data, `limit` at most.
pub async fn settled(client: &mut ClientConnection, limit: Option<Duration>) -> Result<(), Failure> {
    let ClientConnection { io: Transport::Tls(io), timer, .. } = client else { return Ok(()) };
    timer.set(limit);
    let made = poll_fn(|cx| match io.poll_settled(cx) {
        Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(io.give_up())),
        poll => poll,
    });
    let made = made.await;
    timer.clear();
    made
}

fn refuse(session: &Rc<Session>, failure: Failure) {
    // A client that went away without a word, or said nothing, may have been a check of a port.
    let is_null = matches!(failure.cause, Cause::Empty | Cause::Abort | Cause::Timeout);
    if !(is_null && session.frontend().log.settings.dont_log_null) {
        match failure.words().filter(|_| failure.cause == Cause::Handshake) {
            Some(words) => record::unborn(session, &format!("{} ({words})", failure.cause.text())),
            None => record::unborn(session, failure.cause.text()),
        }
    }
}
