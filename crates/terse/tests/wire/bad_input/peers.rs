//! Peers that are slow, silent or dead.

use super::status_of;
use super::support::proxy::listen;
use super::support::server::Server;
use super::support::{self, until};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A client that does not finish its head, or its body, in time.
#[test]
fn slow_clients() {
    let server = Server::body("never");
    let limit = Duration::from_millis(300);
    let text = format!("timeout http-request 300ms\n timeout client 300ms\n server one {}", server.address());
    let terse = listen(&text);
    for sent in [
        "",
        "G",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
        let begun = Instant::now();
        let mut client = terse.client();
        client.send(sent);
        let response = client.response("POST");
        assert_eq!(response.status, 408, "{sent:?}: {}", response.line);
        assert_eq!(client.rest(), b"");
        assert!(begun.elapsed() >= limit && begun.elapsed() < limit * 10, "{sent:?}: {:?}", begun.elapsed());
    }
    // A byte now and then does not help: the head as a whole has so much time.
    let begun = Instant::now();
    let mut client = terse.client();
    for byte in b"GET / HTTP/1.1\r\nHost: abcdefghijklmnopqrstuvwxyz".chunks(1) {
        if std::io::Write::write_all(client.stream(), byte).is_err() || support::readable(client.stream(), limit / 6) {
            break;
        }
    }
    assert_eq!(client.response("GET").status, 408);
    assert!(begun.elapsed() < limit * 10);
    // A served client is closed silently when it is idle.
    let terse_idle = listen("timeout http-keep-alive 100ms\n http-request return status 200");
    let mut client = terse_idle.client();
    assert_eq!(client.get("/", &[]).status, 200);
    assert_eq!(client.rest(), b"");
    terse_idle.end();
    terse.end();
}

/// Servers that cannot be reached, or that send nothing.
#[test]
fn dead_and_silent_servers() {
    let mut dead = Server::body("never");
    dead.kill();
    let terse = listen(&format!("retries 1\n timeout connect 100ms\n server one {}", dead.address()));
    assert_eq!(status_of(&terse, "/"), 503, "nobody listens");
    dead.revive();
    assert_eq!(status_of(&terse, "/"), 200, "and now somebody does");
    terse.end();

    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        waiting.push(stream);
    }
    let terse = listen(&format!("retries 1\n timeout connect 100ms\n server one {address}"));
    assert_eq!(status_of(&terse, "/"), 503, "nobody accepts");
    terse.end();

    let silent = Server::start(|connection| {
        let request = connection.request().unwrap();
        connection.send(match request.target.as_str() {
            "/half" => "HTTP/1.1 200 OK\r\nContent-",
            "/body" => "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
            _ => "",
        });
        assert!(connection.is_closed());
    });
    let terse = listen(&format!("timeout server 200ms\n server one {}", silent.address()));
    assert_eq!(status_of(&terse, "/"), 504);
    assert_eq!(status_of(&terse, "/half"), 504);
    let mut client = terse.client();
    client.send("GET /body HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.rest(), b"abc", "what has come is passed on, and the connection closed");
    until("the connections to close", || (silent.open() == 0).then_some(()));
    terse.end();

    let resets = Server::start(|connection| {
        connection.head();
        connection.reset();
    });
    let terse = listen(&format!("server one {}", resets.address()));
    assert_eq!(status_of(&terse, "/"), 502, "a reset is no answer");
    assert_eq!(resets.requests().len(), 1);
    terse.end();
}
