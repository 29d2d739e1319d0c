//! The version of HTTP that a client speaks: set by ALPN or the `bind` line, or else known from the first bytes.

use crate::connection::downstream::ClientConnection;
use crate::session::Session;
use terse_http::h2::PREFACE;
use terse_message::Protocol;

/// Whether a connection speaks HTTP/2 from its first byte on: `proto h2`, or ALPN.
pub fn begins_as_http2(session: &Session) -> bool {
    match told(session) {
        Some(protocol) => protocol == Protocol::Http2,
        None => session.tls().is_some_and(|tls| tls.handshake().protocol().as_deref() == Some(b"h2")),
    }
}

/// Whether the client's first bytes are the preface of HTTP/2 (RFC 9113 section 3.4), the rest of which is waited for.
pub async fn is_http2(client: &mut ClientConnection, session: &Session) -> bool {
    if client.buffer.filled().first() != PREFACE.first() || !may_change(session) {
        return false;
    }
    let timeouts = &session.frontend().timeouts;
    let mut waits = false;
    loop {
        let bytes = client.buffer.filled();
        let length = bytes.len().min(PREFACE.len());
        if bytes[..length] != PREFACE[..length] {
            return false;
        }
        if length == PREFACE.len() {
            return true;
        }
        if !std::mem::replace(&mut waits, true) {
            client.timer.set(timeouts.request.or(timeouts.client));
        }
        // The bytes of it that have come are answered as an incomplete request of HTTP/1 is.
        if Box::pin(client.more()).await.is_err() {
            return false;
        }
    }
}

/// The version that a rule has set (`switch-mode http proto`), or the `bind` line.
fn told(session: &Session) -> Option<Protocol> {
    session.protocol.get().or(session.bind().protocol)
}

fn may_change(session: &Session) -> bool {
    told(session).is_none() && !session.frontend().options.no_http2_preface
}
