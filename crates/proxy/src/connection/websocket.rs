//! Other protocols over HTTP/2, such as WebSocket (RFC 8441), as requests that change the protocol of HTTP/1.1 (RFC 9110 section 7.8).

use terse_message::{BodyLength, Known, Request};

/// Makes a request of HTTP/1.1 of an extended CONNECT: rules, logs and servers see a GET with `Upgrade`.
pub(super) fn to_http1(request: &mut Request, protocol: &[u8], mut random: impl FnMut() -> u64) {
    request.set_method(b"GET");
    request.fields.push(Known::Connection.name().as_bytes(), b"Upgrade");
    request.fields.push(Known::Upgrade.name().as_bytes(), protocol);
    if protocol.eq_ignore_ascii_case(b"websocket") {
        let bytes = [random().to_ne_bytes(), random().to_ne_bytes()].concat();
        // HTTP/2 has no key (RFC 8441 section 5.1); the server's answer to this one is not passed on.
        request.fields.set(KEY, terse_tls::base64(&bytes).as_bytes());
    }
    request.body = BodyLength::None;
}

const KEY: &[u8] = b"Sec-WebSocket-Key";
