//! Bodies of requests: on their way to the server, also while it answers, and when one side gives up.

use super::support::client::Client;
use super::support::proxy::listen;
use super::support::random::Random;
use super::support::server::{Server, ok};
use super::support::{readable, until};
use std::io::Write;
use std::time::Duration;

const UPLOAD_BYTES: usize = 10 << 20;

/// FNV-1a: enough to tell two bodies apart.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn large() {
    let server = Server::answering(|request| ok(&format!("{} {:x}", request.body.len(), sum(&request.body))));
    let terse = listen(&format!("server one {}", server.address()));
    let body = Random::new(1).bytes(UPLOAD_BYTES);
    let expected = format!("{} {:x}", body.len(), sum(&body));
    let mut client = terse.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert_eq!(client.response("POST").text(), expected);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut random = Random::new(2);
    let mut rest = &body[..];
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(100_000)));
        rest = behind;
        client.send(format!("{:x};ext=1\r\n", piece.len()));
        client.send(piece);
        client.send("\r\n");
    }
    client.send("0\r\nX-Sum: 1\r\n\r\n");
    assert_eq!(client.response("PUT").text(), expected);
    assert_eq!(server.accepted(), 1);
    terse.end();
}

#[test]
fn trailers() {
    let server = Server::answering(|request| ok(&format!("{:?}", request.trailers)));
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n");
    assert_eq!(client.response("POST").text(), r#"[("X-Sum", "7")]"#);
    terse.end();
}

/// Each piece goes on as it comes, and so do pieces of the response: a conversation inside one request.
#[test]
fn both_ways_at_once() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while let Some(chunk) = connection.chunk().unwrap() {
            connection.send(format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8(chunk).unwrap().to_uppercase()));
        }
        connection.send("0\r\n\r\n");
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.head().status, 200);
    for word in ["one", "two", "three"] {
        client.send(format!("{:x}\r\n{word}\r\n", word.len()));
        assert_eq!(client.chunk().unwrap(), word.to_uppercase().as_bytes());
    }
    client.send("0\r\n\r\n");
    assert!(client.chunk().is_none());
    terse.end();
}

/// Sends in the background, for as long as the other side takes it.
fn send_on(client: &mut Client, bytes: usize) -> std::thread::JoinHandle<bool> {
    let mut stream = client.stream().try_clone().unwrap();
    std::thread::spawn(move || stream.write_all(&vec![b'x'; bytes]).is_ok())
}

/// A server that has heard enough answers early: its answer arrives whole, though the upload does not.
#[test]
fn answered_early() {
    for keeps_reading in [true, false] {
        let server = Server::start(move |connection| {
            connection.head().unwrap();
            connection.bytes(1000).unwrap();
            connection.send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 6\r\n\r\nenough");
            if keeps_reading {
                connection.rest();
            }
        });
        let terse = listen(&format!("server one {}", server.address()));
        let mut client = terse.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n"));
        let sending = send_on(&mut client, UPLOAD_BYTES);
        let response = client.response("POST");
        assert_eq!((response.status, response.text().as_str()), (413, "enough"));
        drop(client);
        let _ = sending.join().unwrap();
        until("the server's connection to close", || (server.open() == 0).then_some(()));
        terse.end();
    }
}

/// A body that breaks the protocol has no end. The bytes after the fault are never the next request, though a second look might
/// find the end of a chunk in them.
#[test]
fn nothing_follows_a_body_that_cannot_be_read() {
    let server = Server::answering(|_| ok("served"));
    for body in ["3\r\nabc\r\n5Z123\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\nbad trailer line\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n"] {
        for lines in ["", "http-error status 400 content-type text/plain string no", "option http-buffer-request"] {
            let terse = listen(&format!("{lines}\n server one {}", server.address()));
            let mut client = terse.client();
            let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.send(format!("{head}{body}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(client.response("POST").status, 400, "{body:?} {lines:?}");
            assert_eq!(client.rest(), b"", "{body:?} {lines:?}");
            terse.end();
        }
    }
    assert!(server.requests().iter().all(|request| request.target != "/smuggled"), "{:?}", server.requests());
}

/// The same with a server that takes no more: the rest of the body is dropped, and nothing of it is a request.
#[test]
fn nothing_follows_a_body_that_cannot_be_read_and_is_dropped() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.reset();
    });
    let terse = listen(&format!("retries 0\n server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut sending = client.stream().try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
        let sent = (0..3000).try_for_each(|_| sending.write_all(chunk.as_bytes()));
        sent.and_then(|()| sending.write_all(b"5Z123\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
    });
    // The server's reset is seen first, or the fault.
    assert!(matches!(client.response("POST").status, 502 | 400));
    // The rest was sent, or the connection was closed before that.
    let _ = sender.join().unwrap();
    assert_eq!(client.rest(), b"");
    assert!(server.requests().iter().all(|request| request.target != "/smuggled"), "{:?}", server.requests());
    terse.end();
}

/// A server that answers before the upload ends and then takes the rest: the connections on both sides can go on.
#[test]
fn answered_early_and_read_to_its_end() {
    let server = Server::start(|connection| {
        while let Some(mut request) = connection.head() {
            connection.send(ok("soon"));
            if connection.body(&mut request).is_none() {
                return;
            }
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    let response = client.response("POST");
    assert_eq!((response.status, response.text().as_str()), (200, "soon"));
    let _ = client.stream().write_all(b"world");
    // This side may close the connection or not; the rest must not be taken for a request.
    let _ = client.stream().write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(client.response("GET").status, 0 | 200));
    assert!(server.requests().iter().all(|request| matches!(request.method.as_str(), "POST" | "GET")));
    terse.end();
}

/// An answer alone ends no upload: the server goes on receiving, and both connections go on when it has all of it.
#[test]
fn answered_first_and_received_whole() {
    let (tells, told) = std::sync::mpsc::channel();
    let tells = std::sync::Mutex::new(tells);
    let server = Server::start(move |connection| {
        while let Some(mut request) = connection.head() {
            connection.send("HTTP/1.1 202 Accepted\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok");
            if connection.body(&mut request).is_none() {
                return;
            }
            tells.lock().unwrap().send(request.body.len()).unwrap();
        }
    });
    for lines in ["", "option splice-auto", "compression algo gzip", "option http-buffer-request"] {
        let terse = listen(&format!("{lines}\n server one {}", server.address()));
        let mut client = terse.client();
        for chunked in [false, true] {
            let framing = if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {UPLOAD_BYTES}") };
            client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
            if chunked {
                client.send(format!("{UPLOAD_BYTES:x}\r\n"));
            }
            client.send(vec![b'x'; UPLOAD_BYTES]);
            if chunked {
                client.send("\r\n0\r\n\r\n");
            }
            let response = client.response("POST");
            assert_eq!((response.status, response.text().as_str(), response.field("connection")), (202, "ok", None), "{lines}");
            assert_eq!(told.recv().unwrap(), UPLOAD_BYTES, "{lines}");
        }
        terse.end();
    }
}

/// A client that sends all of its body before it reads gets the answer that came first: from a server that has closed, and from a rule.
#[test]
fn answered_first_and_not_received() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.bytes(1000).unwrap();
        connection.send("HTTP/1.1 411 Length Required\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlong");
    });
    let rule = "http-request deny status 413 if { path /rule }\n log stdout format raw local0\n log-format \"%ST %ts\"";
    let terse = listen(&format!("{rule}\n server one {}", server.address()));
    for (path, status, line) in [("/", 411, "411 SD"), ("/rule", 413, "413 PR")] {
        for chunked in [false, true] {
            let framing = if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {UPLOAD_BYTES}") };
            let mut client = terse.client();
            client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
            if chunked {
                client.send(format!("{UPLOAD_BYTES:x}\r\n"));
            }
            client.send(vec![b'x'; UPLOAD_BYTES]);
            if chunked {
                client.send("\r\n0\r\n\r\n");
            }
            assert_eq!(client.response("POST").status, status, "{path}");
            until("the log", || (terse.stdout().matches(line).count() == 1 + usize::from(chunked)).then_some(()));
        }
    }
    terse.end();
}

/// A client that goes away in the middle: the server does not take the bytes that it has for all.
#[test]
fn broken_off_by_the_client() {
    let (ends, ended) = std::sync::mpsc::channel();
    let ends = std::sync::Mutex::new(ends);
    let server = Server::start(move |connection| {
        let mut request = connection.head().unwrap();
        ends.lock().unwrap().send(connection.body(&mut request).is_some()).unwrap();
    });
    let terse = listen(&format!("server one {}", server.address()));
    for framing in ["Content-Length: 100\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
        let mut client = terse.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}"));
        until("the request", || (server.open() == 1).then_some(()));
        drop(client);
        assert!(!ended.recv().unwrap(), "{framing}");
        until("the server's connection to close", || (server.open() == 0).then_some(()));
    }
    terse.end();
}

/// Without `option abortonclose` a client that has sent all may close its half and still be answered; with it, its request is taken
/// back.
#[test]
fn closed_while_the_server_thinks() {
    for (option, status) in [("no option abortonclose", 200), ("option abortonclose", 0)] {
        let (go, wait) = std::sync::mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let server = Server::start(move |connection| {
            while let Some(request) = connection.request() {
                if request.target == "/slow" && wait.lock().unwrap().recv().is_err() {
                    assert!(connection.is_closed());
                    return;
                }
                connection.send(ok("late"));
            }
        });
        let terse = listen(&format!("{option}\n server one {}", server.address()));
        let mut client = terse.client();
        client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        until("the request", || (!server.requests().is_empty()).then_some(()));
        client.stream().shutdown(std::net::Shutdown::Write).unwrap();
        if status == 200 {
            assert!(!readable(client.stream(), Duration::from_millis(50)));
            go.send(()).unwrap();
            assert_eq!(client.response("GET").text(), "late");
        } else {
            drop(go);
            until("the server's connection to close", || (server.open() == 0).then_some(()));
        }
        terse.end();
    }
}

/// A body that waits because no server takes it is the client's; the client that takes nothing of a large response holds up no
/// other.
#[test]
fn a_client_that_does_not_read() {
    let body = vec![b'x'; 20 << 20];
    let server = Server::start(move |connection| {
        while let Some(request) = connection.request() {
            let body = if request.target == "/large" { &body[..] } else { b"small" };
            connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
            connection.send(body);
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut lazy = terse.client();
    lazy.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(lazy.head().status, 200);
    for _ in 0..20 {
        assert_eq!(terse.client().get("/", &[]).text(), "small");
    }
    let mut rest = vec![0; 20 << 20];
    lazy.read(&mut rest);
    assert!(rest.iter().all(|byte| *byte == b'x'));
    terse.end();
}
