//! Secrets of connections, kept for fetches that show them (`tune.ssl.keylog`): with them, a recording of the connection
//! can be read.
//!
//! OpenSSL gives them one by one while a handshake is made, each as a line of an SSLKEYLOGFILE. A line has a label, the
//! random bytes of the client's hello, and the secret in hexadecimal digits. They are overwritten when the connection ends.

use crate::secret::Secret;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContextBuilder, SslRef};
use std::sync::{LazyLock, Mutex, PoisonError};

/// A secret of TLS 1.3 (RFC 8446 section 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyedBy {
    /// Secret of the client's early data.
    ClientEarly,
    /// Secret of the client's part of the handshake.
    ClientHandshake,
    /// Secret of the server's part of the handshake.
    ServerHandshake,
    /// Secret of the client's data after the handshake.
    Client,
    /// Secret of the server's data after the handshake.
    Server,
    /// Exporter secret, from which applications derive their own.
    Exporter,
    /// Early exporter secret.
    EarlyExporter,
}

/// The labels, in the order of [`KeyedBy`].
const LABELS: [&str; 7] = [
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
    "EXPORTER_SECRET",
    "EARLY_EXPORTER_SECRET",
];

/// The secrets of a connection, in that order.
type Kept = Mutex<[Option<Secret>; LABELS.len()]>;

static KEPT: LazyLock<Option<Index<Ssl, Kept>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// Makes a context report the secrets of its connections.
pub(crate) fn listen(context: &mut SslContextBuilder) {
    context.set_keylog_callback(take);
}

/// Makes room for those of a connection.
pub(crate) fn keep(ssl: &mut SslRef) {
    if let Some(index) = *KEPT {
        ssl.set_ex_data(index, Kept::default());
    }
}

fn take(ssl: &SslRef, line: &str) {
    let mut words = line.split_ascii_whitespace();
    let place = words.next().and_then(|label| LABELS.iter().position(|known| *known == label));
    if let (Some(place), Some(secret), Some(kept)) = (place, words.nth(1), of(ssl)) {
        kept.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(Secret::from(secret.to_owned()));
    }
}

/// A secret in hexadecimal digits, if there is one and it is kept.
pub(crate) fn kept(ssl: &SslRef, which: KeyedBy) -> Option<Vec<u8>> {
    of(ssl)?.lock().unwrap_or_else(PoisonError::into_inner)[which as usize].as_ref().map(|secret| secret.to_vec())
}

fn of(ssl: &SslRef) -> Option<&Kept> {
    ssl.ex_data((*KEPT)?)
}
