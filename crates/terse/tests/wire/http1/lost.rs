//! Connections to servers that are lost while a request is on its way: requests that are repeated, and those that must not be.

use super::support::client::Client;
use super::support::proxy::listen;
use super::support::server::{Server, ok};
use super::support::until;
use rustix::process::Signal;
use std::io::Read;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// An idle connection that the server has closed meanwhile is no failure.
#[test]
fn closed_while_idle() {
    let server = Server::start(|connection| {
        connection.request().unwrap();
        connection.send(ok("one each"));
    });
    let terse = listen(&format!("http-reuse always\n server one {}", server.address()));
    let mut client = terse.client();
    for method in ["GET", "POST", "GET"] {
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
        let response = client.response(method);
        assert_eq!((response.status, response.text().as_str()), (200, "one each"), "{method}");
        until("the server to close", || (server.open() == 0).then_some(()));
    }
    assert_eq!(server.requests().len(), 3);
    terse.end();
}

/// A server that closes when the second request of a connection comes.
fn forgetful() -> Server {
    Server::start(|connection| {
        let first = connection.request().unwrap();
        connection.send(ok(&first.target));
        let _ = connection.request();
    })
}

/// The close may have crossed the request: a request that can be repeated is, over a fresh connection.
#[test]
fn closed_in_that_moment() {
    let server = forgetful();
    let terse = listen(&format!("http-reuse always\n retries 3\n server one {}", server.address()));
    let mut client = terse.client();
    for number in 0..3 {
        let response = client.get(&format!("/{number}"), &[]);
        assert_eq!((response.status, response.text()), (200, format!("/{number}")));
    }
    terse.end();
}

/// A request that may have had an effect is not repeated.
#[test]
fn a_post_reaches_a_server_once() {
    let server = forgetful();
    let terse = listen(&format!("http-reuse always\n retries 3\n server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.response("POST").status, 200);
    client.send("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.response("POST").status, 502);
    let seen = server.requests().iter().filter(|request| request.target == "/2").count();
    assert_eq!(seen, 1);
    terse.end();
}

/// On a fresh connection, the operator sets which requests are tried again.
#[test]
fn what_retry_on_says() {
    for (words, answer, status, attempts) in [
        ("", "", 502, 1),
        ("retry-on conn-failure", "", 502, 1),
        ("retry-on empty-response", "", 200, 2),
        ("retry-on junk-response", "junk\r\n\r\n", 200, 2),
        ("retry-on empty-response", "junk\r\n\r\n", 502, 1),
        ("retry-on response-timeout\n timeout server 1s", "wait", 200, 2),
        ("timeout server 1s", "wait", 504, 1),
        ("retry-on 503", "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", 200, 2),
        ("retry-on 500", "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", 503, 1),
        ("retry-on all-retryable-errors", "", 200, 2),
        ("retry-on none", "", 502, 1),
    ] {
        let server = Server::start(move |connection| {
            let request = connection.request().unwrap();
            match (connection.number, answer) {
                (0, "wait") => assert!(connection.is_closed()),
                (0, _) => drop(connection.send(answer)),
                _ => drop(connection.send(ok(&request.target))),
            }
        });
        let terse = listen(&format!("{words}\n retries 3\n server one {}", server.address()));
        assert_eq!(terse.client().get("/", &[]).status, status, "{words:?} {answer:?}");
        assert_eq!(server.requests().len(), attempts, "{words:?} {answer:?}");
        terse.end();
    }
}

/// When the attempts are used up, or the request may not be repeated, the client gets the server's response. Bodies go again as
/// they were.
#[test]
fn the_last_attempt_is_the_answer() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let server = Server::answering({
        let bodies = bodies.clone();
        move |request| {
            bodies.lock().unwrap().push(String::from_utf8_lossy(&request.body).into_owned());
            "HTTP/1.1 503 No\r\nX-Server: yes\r\nContent-Length: 4\r\n\r\nbusy"
        }
    });
    let once = "http-request disable-l7-retry if { path /once }";
    let terse = listen(&format!("{once}\n retry-on 503\n retries 2\n server one {}", server.address()));
    let response = terse.client().get("/", &[]);
    assert_eq!((response.status, response.text().as_str(), server.requests().len()), (503, "busy", 3));
    let large = "x".repeat(100_000);
    for (method, path, body, attempts) in
        [("POST", "/", "", 3), ("POST", "/", "x", 3), ("PUT", "/", "x", 3), ("POST", "/once", "x", 1), ("POST", "/", &large, 1)]
    {
        bodies.lock().unwrap().clear();
        let mut client = terse.client();
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        let response = client.response(method);
        assert_eq!((response.status, response.text().as_str()), (503, "busy"), "{method} {path} {}", body.len());
        assert_eq!(*bodies.lock().unwrap(), vec![body; attempts], "{method} {path}");
    }
    terse.end();
}

/// A body that a server has not answered is sent again from its beginning, in its own framing, also where only a part of it had come.
#[test]
fn a_body_goes_again_from_its_beginning() {
    let server = Server::start(|connection| {
        let request = connection.request().unwrap();
        match connection.number {
            0 => connection.reset(),
            _ => drop(connection.send(ok(&String::from_utf8_lossy(&request.body)))),
        }
    });
    let terse = listen(&format!("retry-on empty-response\n server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    let response = client.response("POST");
    assert_eq!((response.status, response.text().as_str(), server.requests().len()), (200, "abcde", 2));
    terse.end();
}

/// The bytes after a request that failed with its body are the next request: the body was taken, whether it is kept or not.
#[test]
fn requests_behind_one_that_failed_keep_their_beginning() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            if request.method == "POST" && request.target == "/fail" {
                return connection.reset();
            }
            connection.send(ok(&format!("{} {}", request.method, request.target)));
        }
    });
    for words in ["", "retry-on empty-response"] {
        let terse = listen(&format!("{words}\n retries 1\n server one {}", server.address()));
        let mut client = terse.client();
        assert_eq!(client.get("/first", &[]).text(), "GET /first", "a connection that is idle then");
        client.send("POST /fail HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /next-of-all HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.response("POST").status, 502, "{words:?}");
        // The connection may end; further bytes on it are the answer to the whole request.
        let rest = if client.is_closed() { String::new() } else { client.response("GET").text() };
        assert!(rest.is_empty() || rest == "GET /next-of-all", "{words:?} {rest:?}");
        terse.end();
    }
}

/// A body that is sent again on a connection that cannot keep it once more is not left out the next time.
#[test]
fn a_body_is_never_left_out() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let server = Server::start({
        let bodies = bodies.clone();
        move |connection| {
            while let Some(request) = connection.request() {
                if request.method == "GET" {
                    connection.send(ok("got"));
                    continue;
                }
                bodies.lock().unwrap().push(String::from_utf8_lossy(&request.body).into_owned());
                match bodies.lock().unwrap().len() {
                    4 => connection.send(ok("put")),
                    _ => return connection.reset(),
                };
            }
        }
    });
    let terse = listen(&format!("retries 5\n retry-on empty-response\n server one {}", server.address()));
    let mut client = terse.client();
    assert_eq!(client.get("/", &[]).text(), "got");
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    let response = client.response("PUT");
    assert_eq!((response.status, response.text().as_str()), (200, "put"));
    assert_eq!(*bodies.lock().unwrap(), ["hello"; 4]);
    terse.end();
}

/// Part of an answer has gone: the client sees that it is not whole, and nothing is tried again.
#[test]
fn lost_in_the_middle_of_an_answer() {
    let server = Server::start(|connection| {
        connection.request().unwrap();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        connection.reset();
    });
    let terse = listen(&format!("retry-on all-retryable-errors\n server one {}", server.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head();
    if head.status == 200 {
        assert!(client.rest().len() < 10);
    } else {
        assert_eq!(head.status, 502, "a reset may throw away what was sent before it");
    }
    terse.end();
    assert!(server.requests().len() <= 4);
}

/// Break of a server's body without a length.
#[derive(Clone, Copy, PartialEq)]
enum Break {
    Reset,
    Silence,
    HardStop,
}

/// A body that only the end of the server's connection ends, and that breaks off, does not look whole to the client, on whichever way it came.
#[test]
fn a_body_that_breaks_off_does_not_look_whole() {
    const WAYS: &[&str] = &[
        "",
        "option splice-response",
        "compression algo gzip",
        "compression algo gzip\n compression http-version 1.0",
        "compression algo identity\n compression http-version 1.0",
        "filter bwlim-out slow default-limit 1m default-period 1s",
        "decompression response on",
        "http-response cache-store kept\n http-request cache-use kept",
        "http-response del-header Connection",
        "option httpclose",
    ];
    for (way, line) in WAYS.iter().enumerate() {
        // Each way breaks once in each manner; all of them with both versions.
        let breaks = [Break::Reset, Break::Silence, Break::HardStop];
        for (version, how) in [("1.0", breaks[way % 3]), ("1.1", breaks[(way + 1) % 3])] {
            cut_in_a_body(line, version, how);
        }
    }
    for how in [Break::Reset, Break::Silence, Break::HardStop] {
        cut_in_a_body("", "1.0", how);
        cut_in_a_body("compression algo gzip\n compression http-version 1.0", "1.1", how);
    }
}

fn cut_in_a_body(line: &str, version: &str, how: Break) {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::start(move |connection| {
        connection.request().unwrap();
        let text = "a half of all that there is ".repeat(200);
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=60\r\n\r\n{text}"));
        match how {
            Break::Silence | Break::HardStop => drop(connection.rest()),
            Break::Reset => {
                let _ = wait.lock().unwrap().recv();
                connection.reset();
            }
        }
    });
    let patience = if how == Break::Silence { "300ms" } else { "15s" };
    let cache = if line.contains("cache-store") { "\ncache kept\n total-max-size 4" } else { "" };
    let terse = listen(&format!("{line}\n timeout server {patience}\n server one {}{cache}", server.address()));
    let mut client = terse.client();
    client.send(format!("GET / HTTP/{version}\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"));
    let mut came = first_bytes(&mut client);
    match how {
        Break::Reset => go.send(()).unwrap(),
        Break::Silence => {}
        Break::HardStop => terse.signal(Signal::TERM),
    }
    let reset = loop {
        let mut room = [0; 4096];
        match client.stream().read(&mut room) {
            Ok(0) => break false,
            Ok(n) => came.extend_from_slice(&room[..n]),
            Err(_) => break true,
        }
    };
    let at = came.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (head, body) = (String::from_utf8_lossy(&came[..at]).to_lowercase(), &came[at + 4..]);
    let is_chunked = head.contains("\r\ntransfer-encoding: chunked");
    let looks_whole = !reset && (!is_chunked || body.ends_with(b"0\r\n\r\n"));
    assert!(!looks_whole, "{line}, HTTP/{version}: {head}, {} bytes", body.len());
    if how == Break::HardStop {
        terse.wait().expect(0);
    } else {
        terse.end();
    }
}

/// The head, and a part of the body.
fn first_bytes(client: &mut Client) -> Vec<u8> {
    let mut came = Vec::new();
    while came.windows(4).position(|four| four == b"\r\n\r\n").is_none_or(|at| came.len() == at + 4) {
        let mut room = [0; 4096];
        let n = client.stream().read(&mut room).unwrap();
        assert!(n > 0, "{came:?}");
        came.extend_from_slice(&room[..n]);
    }
    came
}
