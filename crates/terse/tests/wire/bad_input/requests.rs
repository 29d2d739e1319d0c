//! Malformed and smuggling requests: each gets one answer and a closed connection, and no server sees any of it.

use super::status_of;
use super::support::Terse;
use super::support::client::{Client, Response};
use super::support::proxy::{DEFAULTS, listen};
use super::support::random::Random;
use super::support::server::{Server, ok};
use super::support::until;
use std::net::SocketAddr;

/// Sends bytes, and reads what comes until the connection is closed: exactly one response.
fn refused(address: SocketAddr, bytes: &[u8], piece: usize) -> Response {
    let mut client = Client::connect(address);
    for piece in bytes.chunks(piece) {
        // A request that is refused halfway may be closed before the rest is sent.
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
    let connect = |version: &[u8], framing: &[u8]| {
        let inner = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        [&b"CONNECT a:80 HTTP/"[..], version, b"\r\nHost: a:80\r\n", framing, b"\r\n\r\n", inner].concat()
    };
    vec![
        ("CONNECT with a length", connect(b"1.1", b"Content-Length: 37")),
        ("CONNECT with a length in HTTP/1.0", connect(b"1.0", b"Content-Length: 37\r\nConnection: keep-alive")),
        ("CONNECT with chunks", connect(b"1.1", b"Transfer-Encoding: chunked\r\n\r\n0")),
        ("CONNECT with chunks in HTTP/1.0", connect(b"1.0", b"Transfer-Encoding: chunked\r\n\r\n0")),
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
        ("half of HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nS-\r\n\r\n".to_vec()),
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
            let status = match what {
                "a target of 20 KB" => 414,
                "a field of 20 KB" | "small fields of 20 KB" | "200 fields" => 431,
                _ => 400,
            };
            assert_eq!(response.status, status, "{what}: {}", response.line);
            assert_eq!(response.field("connection"), Some("close"), "{what}");
        }
    }
    assert_eq!(server.requests().len(), 0, "{:?}", server.requests());
    terse.end();
}

/// Requests that `http-conformance haproxy` takes: each is one request, and its server finds it as the RFC has it.
#[test]
fn as_haproxy_reads_them() {
    let server = Server::body("taken");
    let text = format!(
        "global\n nbthread 1\n http-conformance haproxy\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n server one {}\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").start();
    const TAKEN: [&str; 11] = [
        "CONNECT with a length",
        "CONNECT with a length in HTTP/1.0",
        "CONNECT with chunks",
        "CONNECT with chunks in HTTP/1.0",
        "length and chunks",
        "chunks and length",
        "chunks in HTTP/1.0",
        "the same length twice",
        "a list of lengths",
        "two spaces",
        "no Host",
    ];
    for (what, bytes) in malformed().iter().filter(|(what, _)| !TAKEN.contains(what)) {
        let status = if *what == "half of HTTP/2's preface" { 405 } else { 400 };
        assert_eq!(refused(terse.address("web"), bytes, bytes.len()).status, status, "{what}");
    }
    assert_eq!(server.requests().len(), 0, "{:?}", server.requests());
    let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (head, behind, closes) in [
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n", smuggled, true),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", smuggled, true),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n", smuggled, true),
        ("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", "abc", false),
        ("POST / HTTP/1.1\r\nContent-Length: 3 ,3\r\n\r\n", "abc", false),
        ("GET  /  HTTP/1.1\r\nHost: a\r\n\r\n", "", false),
        ("GET / HTTP/1.1\r\n\r\n", "", false),
    ] {
        let before = server.requests().len();
        let mut client = terse.client();
        client.send([head, behind].concat());
        assert_eq!(client.response("GET").text(), "taken", "{head}");
        if closes {
            assert_eq!(client.rest(), b"", "{head}");
        } else {
            client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.response("GET").text(), "taken", "{head}");
        }
        let seen = &server.requests()[before..];
        assert_eq!(seen.len(), if closes { 1 } else { 2 }, "{head}: {seen:?}");
        let request = &seen[0];
        assert_eq!((request.target.as_str(), request.every("host").count()), ("/", 1), "{head}");
        let lengths = request.every("content-length").chain(request.every("transfer-encoding")).count();
        assert_eq!(lengths, usize::from(!behind.is_empty()), "{head}: {request:?}");
    }
    let coded = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(refused(terse.address("web"), coded, coded.len()).status, 422);
    terse.end();
}

/// Requests that look odd and are valid: were they refused, good clients would suffer.
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

/// A good request is answered though a bad one follows it in the same segment; bytes after the bad one are never looked at.
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
        connection.send(ok("whole"));
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

/// Good requests with a few bytes changed: whatever comes out, the process lives, and each answer is one.
#[test]
fn mutations() {
    let server = Server::answering(|request| ok(&request.target));
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
    let mut random = Random::new(seed);
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
