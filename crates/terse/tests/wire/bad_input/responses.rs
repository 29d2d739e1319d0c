//! Servers' answers that are none, or break off.

use super::support::proxy::listen;
use super::support::server::Server;
use super::support::until;

/// A server's answers that are none.
#[test]
fn broken_responses() {
    let oversize = format!("HTTP/1.1 200 OK\r\nX-Any: {}\r\n\r\n", "x".repeat(20_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(200));
    let broken = [
        "",
        "\r\n",
        "nonsense",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Len",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Any: 1\r\n 2\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Any: \0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Any\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        &oversize,
        &many,
    ];
    let answers: Vec<String> = broken.iter().map(|answer| (*answer).to_owned()).collect();
    let server = Server::start(move |connection| {
        let request = connection.request().unwrap();
        connection.send(&answers[request.target[1..].parse::<usize>().unwrap()]);
        connection.finish();
        connection.rest();
    });
    let terse = listen(&format!("server one {}", server.address()));
    for (number, answer) in broken.iter().enumerate() {
        let response = terse.client().get(&format!("/{number}"), &[]);
        assert_eq!(response.status, 502, "{answer:?}: {}", response.line);
    }
    assert_eq!(server.requests().len(), broken.len(), "none is asked for twice");
    until("the connections to close", || (server.open() == 0).then_some(()));
    terse.end();
}

/// Responses that break off after the head: the client must see that it has not got all of it.
#[test]
fn responses_that_break_off() {
    let broken = [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
    ];
    let server = Server::start(move |connection| {
        let request = connection.request().unwrap();
        connection.send(broken[request.target[1..].parse::<usize>().unwrap()]);
    });
    for compression in ["", "compression algo gzip\n compression type text/html"] {
        let terse = listen(&format!("{compression}\n server one {}", server.address()));
        for (number, answer) in broken.iter().enumerate() {
            let mut client = terse.client();
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"));
            let head = client.head();
            let rest = client.rest();
            let is_whole = match head.field("content-length") {
                Some(length) => rest.len() == length.parse::<usize>().unwrap(),
                None => rest.ends_with(b"0\r\n\r\n"),
            };
            // Where nothing had been passed on yet, the client can still be told.
            assert!(head.status == 502 || head.status == 200 && !is_whole, "{answer:?}: {head:?} {}", rest.escape_ascii());
        }
        terse.end();
    }
}
