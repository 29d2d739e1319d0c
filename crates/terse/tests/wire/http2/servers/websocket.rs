//! WebSocket to servers of HTTP/2 (RFC 8441), from clients of either version, and CONNECT.

use super::super::client::{Client, request};
use super::super::support::proxy::listen;
use super::super::support::server::Server;
use super::super::support::{client, until};
use super::peer::{answering, scripted};
use terse_http::h2::{Code, Limits};

/// The key and its answer of RFC 6455 section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A server that opens each tunnel, and sends back all that comes.
fn echo() -> Server {
    answering(|peer, id| {
        let asked = &peer.streams[&id];
        if asked.head.method() != b"CONNECT" {
            return peer.answer(id, 200, b"plain");
        }
        assert_eq!((asked.field("sec-websocket-key"), asked.field("upgrade"), asked.field("connection")), (None, None, None));
        peer.head(id, 200, &[], false);
        let mut sent = 0;
        while peer.wait(|peer| peer.streams[&id].has_ended || peer.streams[&id].body.len() > sent) {
            let asked = &peer.streams[&id];
            let (bytes, has_ended) = (asked.body[sent..].to_vec(), asked.has_ended);
            sent += bytes.len();
            peer.data(id, &bytes, has_ended);
            if has_ended {
                return;
            }
        }
    })
}

fn three(client: &mut client::Client) -> Vec<u8> {
    let mut room = vec![0; 3];
    client.read(&mut room);
    room
}

const HANDSHAKE: &str =
    "Host: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ";

#[test]
fn bytes_go_both_ways_from_http1() {
    let server = echo();
    let terse = listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    let mut client = terse.client();
    client.send(format!("GET /chat HTTP/1.1\r\n{HANDSHAKE}{KEY}\r\n\r\n"));
    let head = client.head();
    assert_eq!((head.status, head.field("upgrade"), head.field("sec-websocket-accept")), (101, Some("websocket"), Some(ACCEPT)));
    assert!(head.field("content-length").is_none() && head.field("transfer-encoding").is_none());
    for word in ["one", "two"] {
        client.send(word);
        assert_eq!(three(&mut client), word.as_bytes());
    }
    client.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"");
    assert_eq!((terse.client().get("/", &[]).text().as_str(), server.accepted()), ("plain", 1));
    terse.end();
}

#[test]
fn bytes_go_both_ways_from_http2() {
    let server = echo();
    let terse = listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    let mut client = Client::connect(terse.address("web"));
    client.wait("SETTINGS", |client| client.codec.peer().extended_connect);
    let id = client.open_as(&request("CONNECT", "/chat", &[("Sec-WebSocket-Version", "13")]), Some(b"websocket"), false);
    client.wait("the answer", |client| client.streams[&id].status() != 0);
    let answer = &client.streams[&id];
    assert_eq!((answer.status(), answer.field("upgrade"), answer.field("sec-websocket-accept")), (200, None, None));
    client.send(id, b"abc", false);
    client.wait("the echo", |client| client.streams[&id].body == b"abc");
    client.send(id, b"", true);
    client.wait("the end", |client| client.streams[&id].has_ended);
    terse.end();
}

/// HAProxy ends a tunnel whose server has closed by END_STREAM and RST_STREAM: the server's last bytes are passed on, while the
/// client still sends.
#[test]
fn last_words_of_a_server_that_takes_no_more_arrive() {
    for code in [Code::CANCEL, Code::NO_ERROR] {
        let server = answering(move |peer, id| {
            peer.head(id, 200, &[], false);
            if peer.wait(|peer| !peer.streams[&id].body.is_empty()) {
                peer.end_and_reset(id, None, b"last words", code);
            }
        });
        let terse = listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
        let mut client = terse.client();
        client.send(format!("GET /chat HTTP/1.1\r\n{HANDSHAKE}{KEY}\r\n\r\n"));
        assert_eq!(client.head().status, 101);
        client.send(vec![b'x'; 10 << 20]);
        assert_eq!(client.rest(), b"last words", "{code:?}");
        terse.end();
    }
}

/// RFC 8441 section 3: without its SETTINGS, a server is not asked.
#[test]
fn a_server_that_does_not_offer_it_is_not_asked() {
    let server = scripted(Limits { extended_connect: false, ..Limits::default() }, |peer| {
        while let Some(id) = peer.next() {
            assert_ne!(peer.streams[&id].head.method(), b"CONNECT");
            peer.answer(id, 200, b"plain");
        }
    });
    let terse = listen(&format!("http-reuse always\n retries 0\n server one {} proto h2", server.address()));
    let mut client = terse.client();
    client.send(format!("GET /chat HTTP/1.1\r\n{HANDSHAKE}{KEY}\r\n\r\n"));
    assert_eq!(client.response("GET").status, 502);
    assert_eq!(terse.client().get("/", &[]).text(), "plain");
    terse.end();
}

#[test]
fn what_a_server_declines_is_told() {
    let server = answering(|peer, id| peer.answer(id, 403, b"no"));
    let terse = listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    let mut client = terse.client();
    client.send(format!("GET /chat HTTP/1.1\r\n{HANDSHAKE}{KEY}\r\n\r\n"));
    let answer = client.response("GET");
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
    terse.end();
}

#[test]
fn connect_opens_a_tunnel() {
    let server = echo();
    let terse = listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    let mut client = terse.client();
    client.send("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n");
    assert_eq!(client.head().status, 200);
    client.send("abc");
    assert_eq!(three(&mut client), b"abc");
    drop(client);
    until("the tunnel's end", || (terse.client().get("/", &[]).status == 200).then_some(()));
    terse.end();
}

/// HTTP/2 has no upgrade: a request for another protocol than WebSocket goes without it.
#[test]
fn other_upgrades_are_dropped() {
    let server = answering(|peer, id| {
        assert!(peer.whole(id));
        let asked = &peer.streams[&id];
        assert_eq!((asked.field("upgrade"), asked.field("connection")), (None, None));
        let body = [asked.head.method(), b" ", &asked.body].concat();
        peer.answer(id, 200, &body);
    });
    let terse = listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    for (method, protocol, body, answer) in
        [("GET", "tcp", "", "GET "), ("POST", "websocket", "hello", "POST hello"), ("GET", "websocket", "hello", "GET hello")]
    {
        let mut client = terse.client();
        client.send(format!(
            "{method} / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Key: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let response = client.response(method);
        assert_eq!((response.status, response.text().as_str()), (200, answer), "{method} {protocol}");
    }
    terse.end();
}
