//! Input that must never be guessed at: malformed and smuggling requests, broken responses, peers that are slow, silent or dead.
//!
//! A refused request gets one answer and a closed connection, and no server sees any of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::client::{Client, Response};
use support::proxy::listen;
use support::server::Server;
use support::{Terse, until};

/// Sends bytes, and reads what comes until the connection is closed: exactly one response.
fn refused(address: SocketAddr, bytes: &[u8], piece: usize) -> Response {
    let mut client = Client::connect(address);
    for piece in bytes.chunks(piece) {
        // What is refused halfway may be closed before the rest is sent.
        if std::io::Write::write_all(client.stream(), piece).is_err() {
            break;
        }
    }
    let response = client.response("GET");
    assert_eq!(client.rest(), b"", "nothing follows, and the connection is closed");
    response
}

fn request(lines: &[&[u8]]) -> Vec<u8> {
    let mut bytes = lines.join(&b"\r\n"[..]);
    bytes.extend(b"\r\n\r\n");
    bytes
}

/// Heads that no server may see.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let get = |field: &[u8]| request(&[b"GET / HTTP/1.1", b"Host: a", field]);
    let line = |line: &[u8]| request(&[line, b"Host: a"]);
    let post = |fields: &[&[u8]]| {
        let mut lines = vec![&b"POST / HTTP/1.1"[..], b"Host: a"];
        lines.extend(fields);
        let mut bytes = request(&lines);
        bytes.extend(b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        bytes
    };
    vec![
        ("length and chunks", post(&[b"Content-Length: 5", b"Transfer-Encoding: chunked"])),
        ("chunks and length", post(&[b"Transfer-Encoding: chunked", b"Content-Length: 5"])),
        ("chunks in HTTP/1.0", request(&[b"POST / HTTP/1.0", b"Transfer-Encoding: chunked", b"Connection: keep-alive"])),
        ("two lengths", post(&[b"Content-Length: 5", b"Content-Length: 6"])),
        ("the same length twice", post(&[b"Content-Length: 5", b"Content-Length: 5"])),
        ("a list of lengths", post(&[b"Content-Length: 5, 5"])),
        ("a negative length", post(&[b"Content-Length: -5"])),
        ("a signed length", post(&[b"Content-Length: +5"])),
        ("a length in hexadecimal", post(&[b"Content-Length: 0x5"])),
        ("a length of two words", post(&[b"Content-Length: 5 5"])),
        ("an empty length", post(&[b"Content-Length:"])),
        ("a length beyond 64 bits", post(&[b"Content-Length: 18446744073709551621"])),
        ("chunked twice", post(&[b"Transfer-Encoding: chunked, chunked"])),
        ("chunked in two fields", post(&[b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"])),
        ("chunked not last", post(&[b"Transfer-Encoding: chunked, identity"])),
        ("identity", post(&[b"Transfer-Encoding: identity"])),
        ("another coding alone", post(&[b"Transfer-Encoding: gzip"])),
        ("an empty coding", post(&[b"Transfer-Encoding:"])),
        ("a coding with a vertical tab", post(&[b"Transfer-Encoding: \x0bchunked"])),
        ("a coding in quotes", post(&[b"Transfer-Encoding: \"chunked\""])),
        ("a space before the colon", post(&[b"Content-Length : 5"])),
        ("a tab before the colon", post(&[b"Transfer-Encoding\t: chunked"])),
        ("a space before any colon", get(b"X-Any : 1")),
        ("a folded field", get(b"X-Any: 1\r\n 2")),
        ("a field folded by a tab", get(b"X-Any: 1\r\n\t2")),
        ("a first field that is folded", request(&[b"GET / HTTP/1.1", b" Host: a"])),
        ("no colon", get(b"X-Any")),
        ("no name", get(b": 1")),
        ("a name with a space", get(b"X Any: 1")),
        ("a name with a bracket", get(b"X(Any): 1")),
        ("a name beyond ASCII", get(b"X-\xc3\xa9: 1")),
        ("NUL in a value", get(b"X-Any: a\0b")),
        ("NUL in a name", get(b"X-A\0ny: ab")),
        ("NUL in the target", line(b"GET /a\0b HTTP/1.1")),
        ("NUL in the method", line(b"GE\0T / HTTP/1.1")),
        ("a control character in a value", get(b"X-Any: a\x01b")),
        ("DEL in a value", get(b"X-Any: a\x7fb")),
        ("CR in a value", get(b"X-Any: a\rb")),
        ("CR before CR LF", get(b"X-Any: a\r")),
        ("CR in the first line", line(b"GET /a\rb HTTP/1.1")),
        ("LF alone, everywhere", b"GET / HTTP/1.1\nHost: a\n\n".to_vec()),
        ("LF alone behind the first line", b"GET / HTTP/1.1\nHost: a\r\n\r\n".to_vec()),
        ("LF alone behind a field", b"GET / HTTP/1.1\r\nHost: a\nX-Any: 1\r\n\r\n".to_vec()),
        ("LF alone at the end", b"GET / HTTP/1.1\r\nHost: a\r\n\n".to_vec()),
        ("LF alone in front", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        ("many empty lines in front", [&b"\r\n".repeat(50)[..], &get(b"X-Any: 1")].concat()),
        ("no version", line(b"GET /")),
        ("no target", line(b"GET HTTP/1.1")),
        ("two spaces", line(b"GET  / HTTP/1.1")),
        ("a tab", line(b"GET\t/ HTTP/1.1")),
        ("a space in front", line(b" GET / HTTP/1.1")),
        ("a space behind", line(b"GET / HTTP/1.1 ")),
        ("HTTP/2.0", line(b"GET / HTTP/2.0")),
        ("HTTP/0.9", line(b"GET / HTTP/0.9")),
        ("HTTP/1.10", line(b"GET / HTTP/1.10")),
        ("a version in small letters", line(b"GET / http/1.1")),
        ("another protocol", line(b"GET / ICY/1.1")),
        ("a method with a bracket", line(b"GE(T / HTTP/1.1")),
        ("a relative target", line(b"GET a HTTP/1.1")),
        ("a star for GET", line(b"GET * HTTP/1.1")),
        ("a path for CONNECT", line(b"CONNECT / HTTP/1.1")),
        ("a fragment", line(b"GET /a#b HTTP/1.1")),
        ("a target beyond ASCII", line(b"GET /\xff HTTP/1.1")),
        ("no host in the target", line(b"GET http:///a HTTP/1.1")),
        ("a host that contradicts the target", line(b"GET http://b/ HTTP/1.1")),
        ("no Host", request(&[b"GET / HTTP/1.1"])),
        ("two hosts", get(b"Host: b")),
        ("a host with a slash", request(&[b"GET / HTTP/1.1", b"Host: a/b"])),
        ("a host with a space", request(&[b"GET / HTTP/1.1", b"Host: a b"])),
        ("a host with a bad port", request(&[b"GET / HTTP/1.1", b"Host: a:80a"])),
        ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefghijklmnopqrstuvwxyz\r\n\r\n".to_vec()),
        ("noise", (0..=255).rev().collect()),
        ("a field of 20 KB", get(&[&b"X-Any: "[..], &[b'x'; 20_000]].concat())),
        ("a target of 20 KB", line(&[&b"GET /"[..], &[b'x'; 20_000], b" HTTP/1.1"].concat())),
        ("a method of 20 KB", line(&[&[b'X'; 20_000], &b" / HTTP/1.1"[..]].concat())),
        ("small fields of 20 KB", get("X-Any: 12345678\r\n".repeat(1_200).trim_end().as_bytes())),
        ("200 fields", get("X: 1\r\n".repeat(200).trim_end().as_bytes())),
    ]
}

#[test]
fn malformed_requests() {
    let server = Server::body("never");
    let terse = listen(&format!("server one {}", server.address()));
    for (what, bytes) in malformed() {
        for piece in [bytes.len(), 1 + bytes.len() / 100] {
            let response = refused(terse.address("web"), &bytes, piece);
            assert_eq!(response.status, 400, "{what}: {}", response.line);
            assert_eq!(response.field("connection"), Some("close"), "{what}");
        }
    }
    assert_eq!(server.requests().len(), 0, "{:?}", server.requests());
    terse.end();
}

/// What looks odd and is valid: were it refused, good clients would suffer.
#[test]
fn odd_requests_that_are_valid() {
    let server = Server::body("fine");
    let terse = listen(&format!("server one {}", server.address()));
    for (number, head) in [
        &b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nhOST:a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \t a \t\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a:80?q HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /%00%0d%0a?a=b[]{}|^ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Any: \xc3\xa9\xff\r\nX!#$%&'*+-.^_`|~: 1\r\nX-Empty:\r\n\r\n",
        b"M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00003\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n003 ; x=\"y\"\r\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: , chunked ,\r\n\r\n0\r\n\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = terse.client();
        for _ in 0..2 {
            client.send(head);
            let response = client.response("GET");
            assert_eq!((response.status, response.text().as_str()), (200, "fine"), "{}", String::from_utf8_lossy(head));
        }
        assert_eq!(server.requests().len(), 2 * number + 2, "each is one request");
    }
    let large = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Any: {}\r\n\r\n", "x".repeat(15_000));
    let mut client = terse.client();
    client.send(&large);
    assert_eq!(client.response("GET").status, 200, "15 KB are not too many");
    terse.end();
}

/// A good request is answered though a bad one follows it in the same segment; what follows the bad one is never looked at.
#[test]
fn pipelined_behind_a_good_one() {
    let server = Server::body("good");
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost : a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("GET").text(), "good");
    assert_eq!(client.response("GET").status, 400);
    assert_eq!(client.rest(), b"");
    let targets: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/1"]);
    terse.end();
}

#[test]
fn an_unknown_transfer_coding() {
    let server = Server::body("never");
    let terse = listen(&format!("server one {}", server.address()));
    let bytes = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    // RFC 9112 section 6.1 wants this status for a coding that is not understood.
    assert_eq!(refused(terse.address("web"), bytes, bytes.len()).status, 501);
    assert_eq!(server.requests().len(), 0);
    terse.end();
}

/// Bodies whose chunks cannot be told apart: the server has seen the head, and must never see an end.
#[test]
fn broken_chunks() {
    let (whole, ends) = std::sync::mpsc::channel();
    let whole = std::sync::Mutex::new(whole);
    let server = Server::start(move |connection| {
        let mut request = connection.head().unwrap();
        let is_whole = connection.body(&mut request).is_some();
        whole.lock().unwrap().send(is_whole).unwrap();
        connection.send(support::server::ok("whole"));
    });
    let terse = listen(&format!("server one {}", server.address()));
    let long_line = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5_000));
    let long_trailers = format!("1\r\na\r\n0\r\n{}\r\n", "X-Any: 12345678\r\n".repeat(1_000));
    for body in [
        "g\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "+1\r\na\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        "\r\na\r\n0\r\n\r\n",
        " 1\r\na\r\n0\r\n\r\n",
        "1_\r\na\r\n0\r\n\r\n",
        "10000000000000001\r\na\r\n0\r\n\r\n",
        "1\na\r\n0\r\n\r\n",
        "1\r\ra\r\n0\r\n\r\n",
        "1;x=\ny\r\na\r\n0\r\n\r\n",
        "1;x=\0\r\na\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "1\r\na0\r\n\r\n",
        "1\r\na\r\n0\r\n\n",
        "1\r\na\r\n0\r\nX-Any: 1\n\r\n",
        "1\r\na\r\n0\r\nX-Any : 1\r\n\r\n",
        "1\r\na\r\n0\r\nX-Any\r\n\r\n",
        "1\r\na\r\n0\r\nX-Any: \0\r\n\r\n",
        "1\r\na\r\n0\r\nX-Any: 1\r\n 2\r\n\r\n",
        &long_line,
        &long_trailers,
    ] {
        let mut client = terse.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        until("the head", || {
            ends.try_recv().map_or(Some(()), |_| panic!("the body has not come yet")).filter(|_| server.open() == 1)
        });
        client.send(body);
        let response = client.response("POST");
        assert_eq!(response.status, 400, "{body:?}: {}", response.line);
        assert_eq!(client.rest(), b"", "{body:?}");
        assert!(!ends.recv().unwrap(), "{body:?}: the server has seen an end");
        until("the server's connection to close", || (server.open() == 0).then_some(()));
    }
    terse.end();
}

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

/// What breaks off behind the head: the client must see that it has not got all of it.
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
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"));
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
    // One that has been served is closed without a word when it is idle.
    let terse_idle = listen("timeout http-keep-alive 100ms\n http-request return status 200");
    let mut client = terse_idle.client();
    assert_eq!(client.get("/", &[]).status, 200);
    assert_eq!(client.rest(), b"");
    terse_idle.end();
    terse.end();
}

fn status_of(terse: &Terse, path: &str) -> u16 {
    terse.client().get(path, &[]).status
}

/// Servers that cannot be reached, or that say nothing.
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

/// Good requests with a few bytes changed: whatever comes out, the process lives, and each answer is one.
#[test]
fn mutations() {
    let server = Server::answering(|request| support::server::ok(&request.target));
    let terse =
        listen(&format!("timeout http-request 50ms\n timeout client 50ms\n timeout server 1s\n server one {}", server.address()));
    let seeds: [&[u8]; 4] = [
        b"GET /a?b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nCookie: a=b; c=d\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nTE: trailers\r\n\r\n",
    ];
    let alphabet = b"\0\r\n\t :;,/0159af\"Gx\x7f\xff";
    let seed = std::env::var("TERSE_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("TERSE_SEED={seed}");
    let mut random = support::random::Random::new(seed);
    for _ in 0..1_000 {
        let mut bytes = random.pick(&seeds).to_vec();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            let byte = *random.pick(alphabet);
            match random.below(3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let mut client = terse.client();
        client.send(&bytes);
        let _ = client.stream().shutdown(std::net::Shutdown::Write);
        let answer = client.rest();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "), "{}: {}", bytes.escape_ascii(), answer.escape_ascii());
    }
    assert_eq!(status_of(&terse, "/still"), 200);
    terse.end();
}
