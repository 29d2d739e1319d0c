//! Connections of clients, in any version of HTTP, and connections of HTTP/2 to servers.
//!
//! ```text
//! accepted -> rules on connections -> PROXY head -> TLS -> rules on sessions -> mode tcp
//!                                                                            \-> detect -> HTTP/1: exchanges in sequence
//!                                                                                      \-> HTTP/2: each exchange in a task of its own
//! ```

pub mod accept;
pub mod announce;
pub mod counters;
pub mod detect;
pub mod downstream;
pub mod handshake;
pub mod http1;
pub mod http2;
pub mod linger;
pub mod settings;
pub mod tasks;
pub mod upstream;

use crate::exchange::Client;
use crate::facts::Times;
use crate::io::clock;
use crate::phase::{judge, record};
use crate::session::Session;
use crate::settings::Mode;
use crate::tunnel;
use downstream::ClientConnection;
use std::rc::Rc;

/// Serves a client's connection to its end, and gives its place back then.
///
/// This future is the cost of an idle connection: so it is a single block, and waits for anything but requests lie in boxes.
#[allow(clippy::manual_async_fn, reason = "an async fn would hold what it is called with twice")]
pub fn run(mut client: ClientConnection, session: Rc<Session>, place: impl Sized) -> impl Future<Output = ()> {
    async move {
        let _place = place;
        if !judge::connection(&session, &client.io.socket()) {
            return;
        }
        let announced = !session.expects_proxy.get() || Box::pin(announce::receive(&mut client, &session)).await;
        if !announced {
            return;
        }
        if session.worker.plan.binds[session.bind].tls.is_some() {
            match Box::pin(handshake::accept(client, &session)).await {
                Some(secured) => client = secured,
                None => return,
            }
        }
        session.handshake_ms.set(Times::between(Some(session.accepted), Some(clock::now())));
        if !judge::session(&session, &client.io.socket()) {
            return;
        }
        session.count_accepted();
        session.frontend().tally.of(session.worker.index).sessions.add(1);
        session.address_counters().inspect(|counters| counters.sessions.add(1));
        record::accepted(&session);
        // Rules, or the backend's mode, may say that bytes are HTTP after all.
        if session.frontend().mode == Mode::Tcp && !Box::pin(bytes(&mut client, &session)).await {
            return;
        }
        if http1::serve(&mut client, &session).await {
            Box::pin(http2::serve(client, &session)).await;
        }
    }
}

/// Serves a connection in `mode tcp`; returns whether it carries HTTP after all.
async fn bytes(connection: &mut ClientConnection, session: &Rc<Session>) -> bool {
    tunnel::serve(&mut Client::new(connection, Vec::new()), session).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_bytes<C, S, P, F: Future>(_: impl Fn(C, S, P) -> F) -> usize {
        size_of::<F>()
    }

    /// With the runtime's own 104 bytes, a task takes a multiple of 128: here 384.
    #[test]
    fn an_idle_connection_is_small() {
        let bytes = future_bytes(|client, session, place: [usize; 2]| run(client, session, place));
        assert!(bytes <= 280, "{bytes} bytes");
    }
}
