//! A backend's lines on the server of a request, around the cookie: `force-persist`, `ignore-persist`, `use-server` and
//! `persist rdp-cookie` before it, `stick` after it.

use crate::exchange::Client;
use crate::inspection::lend_if;
use crate::phase::prepare::Exchange;
use crate::stick::{self, Persistence};
use crate::stream::Stream;

/// Result of the lines before the cookie.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bound {
    /// The effect of persistence.
    pub persistence: Persistence,
    /// The server that a `use-server` line or an RDP client's token names, by index.
    pub server: Option<usize>,
}

/// Asks the lines that come before the cookie.
pub fn before(client: &mut Client<'_>, stream: &mut Stream) -> Bound {
    let Some(backend) = stream.facts.backend.clone() else { return Bound::default() };
    let Some(sticking) = &backend.sticking else { return Bound::default() };
    lend_if(client, stream, backend.looks, |stream| {
        let persistence = stick::persistence(stream, sticking);
        let server = stick::named(stream, &backend, sticking, persistence)
            .or_else(|| stick::by_token(stream, &backend, sticking, persistence));
        Bound { persistence, server }
    })
}

/// Evaluates the lines that come after it.
pub fn behind(client: &mut Client<'_>, stream: &mut Stream, exchange: &mut Exchange) {
    let Some(backend) = stream.facts.backend.clone() else { return };
    let Some(sticking) = &backend.sticking else { return };
    lend_if(client, stream, backend.looks, |stream| {
        stick::choose(stream, &backend, sticking, &mut exchange.affinity, exchange.persistence);
        exchange.hash_key = stick::hash_key(stream, sticking);
    });
}
