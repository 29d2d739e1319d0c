//! The PROXY protocol: the header before a connection's first byte, received from a client and sent to a server.

use crate::connection::downstream::ClientConnection;
use crate::exchange::Broken;
use crate::phase::record;
use crate::session::Session;
use crate::stream::Stream;
use std::borrow::Cow;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::rc::Rc;
use std::task::Poll;
use terse_balance::{AnnouncementVersion, Announcer, TlsFields};
use terse_http::proxy_protocol::{self, Writer, Wrong, kind};
use terse_tls::{Handshake, Secured, Whose};

/// Why no head came that is one: HAProxy's numbers, names and sentences (`fc_err` and its like).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Unannounced {
    /// The client closed before it had said anything.
    Empty = 11,
    /// The connection broke before that.
    Abort = 12,
    /// Nothing came in time.
    Timeout = 13,
    /// A part of a head came, and no more of it.
    Truncated = 14,
    /// It begins like none.
    NoHead = 15,
    /// It begins like one, and is none.
    Malformed = 16,
    /// Its protocol is not known.
    Protocol = 17,
}

impl Unannounced {
    /// HAProxy's number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// HAProxy's name.
    pub const fn name(self) -> &'static str {
        match self {
            Unannounced::Empty => "PRX_EMPTY",
            Unannounced::Abort => "PRX_ABORT",
            Unannounced::Timeout => "PRX_TIMEOUT",
            Unannounced::Truncated => "PRX_TRUNCATED",
            Unannounced::NoHead => "PRX_NOT_HDR",
            Unannounced::Malformed => "PRX_BAD_HDR",
            Unannounced::Protocol => "PRX_BAD_PROTO",
        }
    }

    /// HAProxy's sentence, as logs have it.
    pub const fn text(self) -> &'static str {
        match self {
            Unannounced::Empty => "Connection closed while waiting for PROXY protocol header",
            Unannounced::Abort => "Connection error while waiting for PROXY protocol header",
            Unannounced::Timeout => "Timeout while waiting for PROXY protocol header",
            Unannounced::Truncated => "Truncated PROXY protocol header received",
            Unannounced::NoHead => "Received something which does not look like a PROXY protocol header",
            Unannounced::Malformed => "Received an invalid PROXY protocol header",
            Unannounced::Protocol => "Received an unhandled protocol in the PROXY protocol header",
        }
    }

    /// What bytes are that are no head.
    fn wrong(wrong: Wrong, bytes: usize) -> Unannounced {
        match wrong {
            // So HAProxy says it of what is shorter than any binary head.
            Wrong::NoHead if bytes < LEAST_BYTES => Unannounced::Truncated,
            Wrong::NoHead => Unannounced::NoHead,
            Wrong::Protocol => Unannounced::Protocol,
            Wrong::Malformed | Wrong::Checksum | Wrong::TooLong => Unannounced::Malformed,
        }
    }

    /// What became of a client that sends no more, of which nothing came so far, or something.
    fn broken(broken: Broken, is_empty: bool) -> Unannounced {
        match broken {
            _ if !is_empty => Unannounced::Truncated,
            Broken::Closed => Unannounced::Empty,
            Broken::Timeout => Unannounced::Timeout,
            Broken::Reset | Broken::Malformed(_) => Unannounced::Abort,
        }
    }
}

/// Bytes of the shortest binary head.
const LEAST_BYTES: usize = 16;

/// Reads the head in front of a client's first byte. False when there is none, or none in time: that is logged, and the connection is to be
/// closed.
pub async fn receive(client: &mut ClientConnection, session: &Rc<Session>) -> bool {
    client.timer.set(session.frontend().timeouts.client);
    let announced = loop {
        match proxy_protocol::parse(client.buffer.filled()) {
            Ok(Some((length, announced))) => {
                client.buffer.consume(length);
                break Ok(announced);
            }
            // A head never has to be larger than a buffer.
            Ok(None) if client.buffer.is_released() || !client.buffer.is_full() => {}
            Ok(None) => break Err(Unannounced::Truncated),
            Err(wrong) => break Err(Unannounced::wrong(wrong, client.buffer.filled().len())),
        }
        if let Err(broken) = more(client, session).await {
            break Err(Unannounced::broken(broken, client.buffer.is_empty()));
        }
    };
    client.timer.clear();
    client.buffer.release_if_empty();
    match announced {
        Ok(announced) => session.announce(announced),
        Err(why) => refuse(session, why),
    }
    session.announced().is_some()
}

fn refuse(session: &Rc<Session>, why: Unannounced) {
    session.unannounced.set(Some(why));
    // A check of a port says nothing.
    let is_null = matches!(why, Unannounced::Empty | Unannounced::Abort | Unannounced::Timeout);
    if !(is_null && session.frontend().log.settings.dont_log_null) {
        record::unborn(session, why.text());
    }
}

/// Reads more; while it waits for the first byte, it holds no buffer.
async fn more(client: &mut ClientConnection, session: &Session) -> Result<(), Broken> {
    if client.buffer.is_released() {
        let ClientConnection { io, timer, .. } = client;
        let readable = poll_fn(|cx| match io.poll_readable(cx) {
            Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            poll => poll,
        });
        readable.await.map_err(|error| Broken::of(&error))?;
        client.buffer = session.worker.pools.small.get().await;
    }
    client.more().await
}

/// The header that a server gets before a stream's first byte.
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
        // The name in a header that was received is nearer to the client.
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

/// The client's TLS: flags, result of its certificate's verification, and fields.
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
