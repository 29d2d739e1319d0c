//! Interim responses: 100 for clients that wait for it, 103 and others on their way through.

use super::support::program::curl;
use super::support::proxy::listen;
use super::support::readable;
use super::support::server::{Server, ok};
use std::time::Duration;

/// The client's body waits for the server's 100; no other party sends it.
#[test]
fn continue_comes_from_the_server() {
    let server = Server::start(|connection| {
        let mut request = connection.head().unwrap();
        connection.send("HTTP/1.1 100 Continue\r\n\r\n");
        connection.body(&mut request).unwrap();
        connection.send(ok(&String::from_utf8_lossy(&request.body)));
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().line, "HTTP/1.1 100 Continue");
    client.send("hello");
    assert_eq!(client.response("POST").text(), "hello");
    assert_eq!(server.requests()[0].field("expect"), Some("100-continue"));
    terse.end();
}

/// A server that refuses before the body: the client hears it without having sent a byte of it.
#[test]
fn a_refusal_instead_of_continue() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
        connection.rest();
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().status, 417);
    assert!(client.is_closed(), "the body may or may not follow: nothing else can");
    terse.end();
}

/// A rule that answers by itself needs no body, and asks for none.
#[test]
fn a_rule_instead_of_continue() {
    let terse = listen("http-request deny status 403");
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().status, 403);
    terse.end();
}

/// HTTP/1.0 knows no interim response, from any sender: the expectation is ignored.
#[test]
fn none_for_old_clients() {
    let server = Server::start(|connection| {
        let mut request = connection.head().unwrap();
        connection.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        connection.body(&mut request).unwrap();
        connection.send(ok(&String::from_utf8_lossy(&request.body)));
    });
    for rule in [
        "",
        "option http-buffer-request",
        "http-request wait-for-body time 10s",
        "http-request wait-for-body time 10s at-least 3",
        "http-request early-hint Link </b>",
    ] {
        let terse = listen(&format!("{rule}\n server one {}", server.address()));
        let mut client = terse.client();
        client.send("POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        assert!(!readable(client.stream(), Duration::from_millis(100)), "{rule}");
        client.send("hello");
        let response = client.response("POST");
        assert_eq!((response.status, response.text().as_str()), (200, "hello"), "{rule}: {}", response.line);
        terse.end();
    }
}

#[test]
fn curl_waits_for_continue() {
    let Some(curl) = curl() else { return };
    let server = Server::answering(|request| ok(&request.body.len().to_string()));
    let terse = listen(&format!("server one {}", server.address()));
    let file = terse.path("upload");
    std::fs::write(&file, vec![b'x'; 2_000_000]).unwrap();
    let url = format!("http://{}/", terse.address("web"));
    for framing in [&[][..], &["-H", "Transfer-Encoding: chunked"]] {
        let mut words =
            vec!["-sv", "--http1.1", "--expect100-timeout", "20", "-H", "Expect: 100-continue", "-T", file.to_str().unwrap(), &url];
        words.extend(framing);
        let said = curl(&words);
        assert_eq!(said.stdout, "2000000", "{}", said.stderr);
        assert!(said.stderr.contains("< HTTP/1.1 100 Continue"), "{}", said.stderr);
    }
    terse.end();
}

#[test]
fn early_hints() {
    let server = Server::answering(|_| {
        concat!(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
            "HTTP/1.1 102 Processing\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </b.css>; rel=preload\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        )
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let first = client.head();
        assert_eq!((first.status, first.field("link")), (103, Some("</a.css>; rel=preload")));
        assert_eq!(client.head().status, 102);
        assert_eq!(client.head().field("link"), Some("</b.css>; rel=preload"));
        assert_eq!(client.response("GET").text(), "ok");
    }
    // HTTP/1.0 knows no interim responses (RFC 9110 section 15.2).
    let mut old = terse.client();
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.head().status, 200);
    terse.end();
}

/// Hints are of use only while the answer is not there yet.
#[test]
fn hints_do_not_wait() {
    let (go, wait) = std::sync::mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let server = Server::start(move |connection| {
        connection.head().unwrap();
        connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        wait.lock().unwrap().recv().unwrap();
        connection.send(ok("late"));
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 103);
    assert!(!readable(client.stream(), Duration::from_millis(20)));
    go.send(()).unwrap();
    assert_eq!(client.response("GET").text(), "late");
    terse.end();
}
