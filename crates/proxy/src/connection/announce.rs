//! The PROXY protocol: what a connection says of itself before its first byte, and what a server is told.

use crate::connection::downstream::ClientConnection;
use crate::session::Session;
use crate::stream::Stream;
use std::borrow::Cow;
use std::future::poll_fn;
use std::task::Poll;
use terse_balance::{AnnouncementVersion, Announcer, TlsFields};
use terse_http::proxy_protocol::{self, Writer, kind};
use terse_tls::{Handshake, Secured, Whose};

/// Reads the head in front of a client's first byte. False when there is none, or none in time: that counts as an error of a request,
/// and the connection is to be closed.
pub async fn receive(client: &mut ClientConnection, session: &Session) -> bool {
    client.timer.set(session.frontend().timeouts.client);
    let announced = loop {
        match proxy_protocol::parse(client.buffer.filled()) {
            Ok(Some((length, announced))) => {
                client.buffer.consume(length);
                break Some(announced);
            }
            // A head never has to be larger than a buffer.
            Ok(None) if client.buffer.is_released() || !client.buffer.is_full() => {}
            Ok(None) | Err(_) => break None,
        }
        if !more(client, session).await {
            break None;
        }
    };
    client.timer.clear();
    client.buffer.release_if_empty();
    match announced {
        Some(announced) => session.announce(announced),
        None => {
            let counted = [Some(session.frontend().tally.of(session.worker.index)), session.address_counters()];
            counted.into_iter().flatten().for_each(|counters| counters.request_errors.add(1));
        }
    }
    session.announced().is_some()
}

/// Reads more; while it waits for the first byte, it holds no buffer.
async fn more(client: &mut ClientConnection, session: &Session) -> bool {
    if client.buffer.is_released() {
        let ClientConnection { io, timer, .. } = client;
        let readable = poll_fn(|cx| match io.poll_readable(cx) {
            Poll::Pending if timer.is_due(cx) => Poll::Ready(false),
            poll => poll.map(|ready| ready.is_ok()),
        });
        if !readable.await {
            return false;
        }
        client.buffer = session.worker.pools.small.get().await;
    }
    client.more().await.is_ok()
}

/// What a server is told in front of a stream's first byte.
pub fn head(announcer: &Announcer, stream: &Stream) -> Vec<u8> {
    let ends = stream.facts.client.zip(stream.facts.local);
    let told = &announcer.told;
    if told.version == Some(AnnouncementVersion::V1) {
        return proxy_protocol::line(ends);
    }
    let env = stream.env();
    let mut writer = Writer::new(ends);
    let mut value = Vec::new();
    for (kind, format) in &announcer.fields {
        value.clear();
        format.write(&env, &mut value);
        writer.field(*kind, &value);
    }
    if told.checksum {
        writer.checksum();
    }
    let session = &stream.facts.session;
    let secured = session.tls().map(Secured::handshake);
    if let Some(protocol) = secured.as_ref().and_then(Handshake::protocol) {
        writer.field(kind::ALPN, &protocol);
    }
    if told.authority {
        // What a proxy before this one has told is nearer to the client.
        let authority = session.announced().and_then(|announced| announced.field(kind::AUTHORITY)).map(Cow::Borrowed);
        let authority = authority.or_else(|| secured.as_ref()?.server_name().map(Cow::Owned));
        if let Some(authority) = authority {
            writer.field(kind::AUTHORITY, &authority);
        }
    }
    if told.unique_id {
        writer.field(kind::UNIQUE_ID, stream.facts.unique_id(&env).unwrap_or_default());
    }
    if told.tls.told {
        writer.field(kind::SSL, &tls(secured.as_ref(), told.tls));
    }
    writer.finish()
}

/// What is known of the client's TLS: flags, what verifying its certificate came to, and fields.
fn tls(tls: Option<&Handshake<'_>>, told: TlsFields) -> Vec<u8> {
    let Some(tls) = tls else { return proxy_protocol::NO_TLS.to_vec() };
    let (mut flags, mut verified) = (SPEAKS_TLS, 0);
    let shown = tls.peer_certificate();
    if shown.is_some() {
        verified = tls.verify_result();
        flags |= SHOWN_IN_SESSION | if tls.is_resumed() { 0 } else { SHOWN_NOW };
    }
    let mut value = [&[flags][..], &verified.to_be_bytes()].concat();
    let mut field = |kind: u8, text: &[u8]| {
        if let Ok(length) = u16::try_from(text.len()) {
            value.extend_from_slice(&[&[kind][..], &length.to_be_bytes(), text].concat());
        }
    };
    field(kind::SSL_VERSION, tls.version().as_bytes());
    if let Some(name) = shown.filter(|_| told.name).and_then(|shown| shown.dn(Whose::Subject).entry("CN", 1)) {
        field(kind::SSL_CN, &name);
    }
    let own = tls.own_certificate();
    if let Some(key) = own.as_ref().filter(|_| told.key).and_then(|own| own.key_size()) {
        field(kind::SSL_KEY_ALG, key.as_bytes());
    }
    if let Some(signature) = own.as_ref().filter(|_| told.signature).and_then(|own| own.signature_algorithm()) {
        field(kind::SSL_SIG_ALG, signature.as_bytes());
    }
    if let Some(cipher) = tls.cipher().filter(|_| told.cipher) {
        field(kind::SSL_CIPHER, cipher.as_bytes());
    }
    value
}

/// The flags of the field.
const SPEAKS_TLS: u8 = 1;
const SHOWN_NOW: u8 = 2;
const SHOWN_IN_SESSION: u8 = 4;
