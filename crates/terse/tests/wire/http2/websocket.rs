//! WebSocket over HTTP/2 (RFC 8441), and CONNECT.

use super::client::{Client, request};
use super::support::proxy::listen;
use super::support::server::{Server, ok};
use super::support::until;
use terse_http::h2::Code;

/// RFC 6455 section 4.2.2.
fn accept(key: &str) -> String {
    openssl::base64::encode_block(&openssl::sha::sha1(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes()))
}

/// A server that changes the protocol, and then sends back all that comes.
fn echo() -> Server {
    Server::start(|connection| {
        let Some(request) = connection.head() else { return };
        if request.field("upgrade") != Some("websocket") {
            connection.send(ok("plain"));
            return;
        }
        assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/chat"));
        let key = request.field("sec-websocket-key").unwrap();
        assert_eq!(key.len(), 24, "{request:?}");
        let accept = accept(key);
        assert!(request.field("connection").is_some_and(|words| words.to_lowercase().contains("upgrade")), "{request:?}");
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        ));
        while let Some(byte) = connection.bytes(1) {
            connection.send(byte);
        }
    })
}

#[test]
fn bytes_go_both_ways() {
    let server = echo();
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    client.wait("SETTINGS", |client| client.codec.peer().extended_connect);
    let asked = request("CONNECT", "/chat", &[("Sec-WebSocket-Version", "13")]);
    let id = client.open_as(&asked, Some(b"websocket"), false);
    client.wait("the answer", |client| client.streams[&id].status() != 0);
    let answer = &client.streams[&id];
    assert_eq!((answer.status(), answer.field("upgrade"), answer.field("sec-websocket-accept")), (200, None, None));
    for word in ["one", "two"] {
        client.streams.get_mut(&id).unwrap().body.clear();
        client.send(id, word.as_bytes(), false);
        client.wait("the echo", |client| client.streams[&id].body == word.as_bytes());
    }
    assert_eq!(client.get("/").text(), "plain", "other streams go on beside it");
    client.send(id, b"", true);
    client.wait("the end", |client| client.streams[&id].has_ended);
    until("the server is left", || (server.open() == 0).then_some(()));
    terse.end();
}

#[test]
fn a_tunnel_whose_client_resets_ends() {
    let server = echo();
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    client.wait("SETTINGS", |client| client.codec.peer().extended_connect);
    let id = client.open_as(&request("CONNECT", "/chat", &[]), Some(b"websocket"), false);
    client.wait("the answer", |client| client.streams[&id].status() == 200);
    client.reset(id);
    until("the server is left", || (server.open() == 0).then_some(()));
    terse.end();
}

#[test]
fn what_a_server_declines_is_told() {
    let wrong = "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n";
    let server = Server::answering(move |_| wrong);
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    client.wait("SETTINGS", |client| client.codec.peer().extended_connect);
    let id = client.open_as(&request("CONNECT", "/chat", &[]), Some(b"websocket"), false);
    assert_eq!(client.answer(id).status(), 502, "it accepts another key");
    terse.end();
    for (answer, status) in
        [("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", 403), ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 502)]
    {
        let server = Server::answering(move |_| answer);
        let terse = listen(&format!("server one {}", server.address()));
        let mut client = Client::connect(terse.address("web"));
        client.wait("SETTINGS", |client| client.codec.peer().extended_connect);
        let id = client.open_as(&request("CONNECT", "/chat", &[]), Some(b"websocket"), false);
        let answer = client.answer(id);
        assert_eq!((answer.status(), answer.text().as_str()), (status, "no"));
        terse.end();
    }
}

#[test]
fn it_is_offered_unless_a_line_says_no() {
    let text = |global: &str| {
        format!(
            "global\n nbthread 1\n{global}\n{}\nlisten web\n bind fd@${{web}}\n http-request return status 200\n",
            super::support::proxy::DEFAULTS
        )
    };
    let terse = super::support::Terse::with(&text("h2-workaround-bogus-websocket-clients")).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    assert!(!client.codec.peer().extended_connect);
    let id = client.open_as(&request("CONNECT", "/chat", &[]), Some(b"websocket"), false);
    assert_eq!(client.answer(id).reset, Some(Code::PROTOCOL_ERROR));
    terse.end();
}

#[test]
fn connect_opens_a_tunnel() {
    let server = Server::start(|connection| {
        let Some(request) = connection.head() else { return };
        assert_eq!((request.method.as_str(), request.target.as_str()), ("CONNECT", "a.test:80"));
        connection.send("HTTP/1.1 200 OK\r\n\r\n");
        while let Some(byte) = connection.bytes(1) {
            connection.send(byte);
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let mut asked = request("CONNECT", "a.test:80", &[]);
    asked.fields.clear();
    asked.set_method(b"CONNECT");
    asked.set_target(b"a.test:80");
    let id = client.open(&asked, false);
    client.wait("the answer", |client| client.streams[&id].status() == 200);
    client.send(id, b"abc", false);
    client.wait("the echo", |client| client.streams[&id].body == b"abc");
    terse.end();
}
