//! Other protocols over HTTP/2, such as WebSocket (RFC 8441), as requests that change the protocol of HTTP/1.1 (RFC 9110 section 7.8).

use sha1::{Digest, Sha1};
use terse_message::hop::{WEBSOCKET_ACCEPT, WEBSOCKET_KEY, unframe};
use terse_message::{BodyLength, Known, Request, Response, list};

/// Makes a request of HTTP/1.1 of an extended CONNECT: rules, logs and servers see a GET with `Upgrade`. Returns the value
/// that a server must accept it with, where the protocol is WebSocket.
pub fn to_http1(request: &mut Request, protocol: &[u8], mut random: impl FnMut() -> u64) -> Option<Box<str>> {
    request.set_method(b"GET");
    request.fields.push(Known::Connection.name().as_bytes(), b"Upgrade");
    request.fields.push(Known::Upgrade.name().as_bytes(), protocol);
    request.body = BodyLength::None;
    if !protocol.eq_ignore_ascii_case(b"websocket") {
        return None;
    }
    let bytes = [random().to_ne_bytes(), random().to_ne_bytes()].concat();
    // HTTP/2 has no key (RFC 8441 section 5.1): the proxy makes the key that the server answers.
    let key = terse_tls::base64(&bytes);
    request.fields.set(WEBSOCKET_KEY, key.as_bytes());
    Some(accept(&key).into())
}

/// Whether a request asks for WebSocket as RFC 6455 section 4.1 has it.
pub fn is_asked_for(request: &Request) -> bool {
    let mut protocols = request.fields.every(Known::Upgrade).flat_map(list::elements);
    request.method() == b"GET" && protocols.next().is_some_and(|name| name.eq_ignore_ascii_case(b"websocket"))
}

/// Makes an extended CONNECT of a request for another protocol. Returns the request, the protocol, and the value that its
/// client must be answered with, where that is WebSocket.
pub fn to_http2(request: &Request) -> (Request, Vec<u8>, Option<Box<str>>) {
    let mut connect = request.clone();
    let protocol = request.fields.first(Known::Upgrade).and_then(|value| list::elements(value).next()).unwrap_or_default().to_vec();
    let key = request.fields.get(WEBSOCKET_KEY).and_then(|key| std::str::from_utf8(key).ok());
    let accept = key.filter(|_| protocol.eq_ignore_ascii_case(b"websocket")).map(|key| accept(key).into());
    connect.set_method(b"CONNECT");
    connect.fields.remove(WEBSOCKET_KEY);
    (connect, protocol.to_ascii_lowercase(), accept)
}

/// Makes an answer of HTTP/1.1 of the answer to an extended CONNECT: 101 of a 2xx.
pub fn answer_in_http1(response: &mut Response, protocol: &[u8], accept: Option<&str>) {
    if !matches!(response.status, 200..300) {
        return;
    }
    response.status = 101;
    response.set_reason(b"");
    response.body = BodyLength::None;
    unframe(&mut response.fields);
    response.fields.push(Known::Connection.name().as_bytes(), b"Upgrade");
    response.fields.push(Known::Upgrade.name().as_bytes(), protocol);
    if let Some(accept) = accept {
        response.fields.set(WEBSOCKET_ACCEPT, accept.as_bytes());
    }
}

/// The value of `Sec-WebSocket-Accept` that answers a key (RFC 6455 section 4.2.2).
fn accept(key: &str) -> String {
    terse_tls::base64(&Sha1::new().chain_update(key).chain_update(SALT).finalize())
}

const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_rfc_is_accepted_as_it_says() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn an_extended_connect_is_a_get_that_asks_for_a_protocol() {
        for (protocol, has_key) in [("websocket", true), ("connect-udp", false)] {
            let mut request = Request::default();
            request.set_method(b"CONNECT");
            request.set_target(b"/chat");
            let accept = to_http1(&mut request, protocol.as_bytes(), || 7);
            assert_eq!((request.method(), request.target()), (&b"GET"[..], &b"/chat"[..]));
            assert_eq!(request.fields.get(b"upgrade"), Some(protocol.as_bytes()));
            assert_eq!((request.fields.get(WEBSOCKET_KEY).is_some(), accept.is_some()), (has_key, has_key));
        }
    }
}
