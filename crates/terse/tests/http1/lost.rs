//! Connections to servers that are lost while a request is on its way: who tries again, and who must not.

use super::support::proxy::listen;
use super::support::server::{Server, ok};
use super::support::until;

/// An idle connection that the server has closed meanwhile is nobody's failure.
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

/// The close may have crossed the request: one that can be repeated is, over a fresh connection.
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

/// One that may have had an effect is not repeated.
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

/// On a fresh connection, the operator says what is tried again.
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

/// When the attempts are used up, or the request cannot be repeated, the client gets what the server has said.
#[test]
fn the_last_attempt_is_the_answer() {
    let server = Server::answering(|_| "HTTP/1.1 503 No\r\nX-Server: yes\r\nContent-Length: 4\r\n\r\nbusy");
    let terse = listen(&format!("retry-on 503\n retries 2\n server one {}", server.address()));
    let response = terse.client().get("/", &[]);
    assert_eq!((response.status, response.text().as_str(), server.requests().len()), (503, "busy", 3));
    for (method, body) in [("POST", ""), ("POST", "x"), ("PUT", "x")] {
        let before = server.requests().len();
        let mut client = terse.client();
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        let response = client.response(method);
        assert_eq!((response.status, response.text().as_str()), (503, "busy"), "{method} {body}");
        if method == "POST" {
            assert_eq!(server.requests().len(), before + 1, "{method} {body}");
        }
    }
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
