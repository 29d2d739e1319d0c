//! Bytes both ways: after a change of protocol, after CONNECT, and in `mode tcp`.

use super::support::Terse;
use super::support::client::Client;
use super::support::proxy::{DEFAULTS, listen};
use super::support::random::Random;
use super::support::server::{Connection, Server};
use super::support::until;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";

/// Sends back in capitals the bytes that come; says goodbye when nothing more comes.
fn echo(connection: &mut Connection) {
    while let Some(bytes) = connection.bytes(5) {
        connection.send(bytes.to_ascii_uppercase());
    }
    connection.send("bye");
}

fn talk(client: &mut Client) {
    for word in ["hello", "there"] {
        client.send(word);
        let mut back = [0; 5];
        client.read(&mut back);
        assert_eq!(back, word.to_uppercase().as_bytes());
    }
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"bye", "one half is closed, the other is not");
}

#[test]
fn a_change_of_protocol() {
    let server = Server::start(|connection| {
        let request = connection.head().unwrap();
        assert_eq!(request.field("connection").map(str::to_ascii_lowercase).as_deref(), Some("upgrade"));
        assert_eq!(request.field("upgrade"), Some("websocket"));
        // The first bytes of the new protocol come in the same segment as the response.
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nfirst",
        );
        echo(connection);
    });
    for lines in ["", "option http-server-close", "compression algo gzip"] {
        let terse = listen(&format!("{lines}\n server one {}", server.address()));
        let mut client = terse.client();
        client.send(UPGRADE);
        let response = client.response("GET");
        assert_eq!((response.status, response.field("upgrade")), (101, Some("websocket")), "{lines}");
        assert_eq!(response.field("connection").map(str::to_ascii_lowercase).as_deref(), Some("upgrade"));
        let mut first = [0; 5];
        client.read(&mut first);
        assert_eq!(&first, b"first");
        talk(&mut client);
        until("the server's connection to close", || (server.open() == 0).then_some(()));
        terse.end();
    }
}

/// The server closes first: the client reads all of it, and can still send.
#[test]
fn closed_by_the_server_first() {
    let (ends, ended) = std::sync::mpsc::channel();
    let ends = std::sync::Mutex::new(ends);
    let server = Server::start(move |connection| {
        connection.head().unwrap();
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nall",
        );
        connection.finish();
        ends.lock().unwrap().send(connection.rest()).unwrap();
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send(UPGRADE);
    client.response("GET");
    assert_eq!(client.rest(), b"all");
    client.send("still here");
    drop(client);
    assert_eq!(ended.recv().unwrap(), b"still here");
    terse.end();
}

/// A server that does not change the protocol: the connection goes on as it was.
#[test]
fn a_refused_change() {
    let server = Server::body("as it was");
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send(UPGRADE);
    assert_eq!(client.response("GET").text(), "as it was");
    assert_eq!(client.get("/", &[]).text(), "as it was");
    assert_eq!(server.requests()[1].field("upgrade"), None);
    terse.end();
}

/// HTTP on a connection that has changed its protocol would pass by all rules: no server is asked for that.
#[test]
fn no_change_to_http() {
    let server = Server::body("plain");
    let terse = listen(&format!("http-request set-header Upgrade h2c if {{ path /rule }}\n server one {}", server.address()));
    for (path, upgrade, asked) in [
        ("/", "h2c", None),
        ("/", "H2C, h2", None),
        ("/", "HTTP/2.0", None),
        ("/rule", "websocket", None),
        ("/", "h2c, websocket", Some("websocket")),
    ] {
        let fields = [
            ("Connection", "Upgrade, HTTP2-Settings"),
            ("Upgrade", upgrade),
            ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
            ("Sec-WebSocket-Key", "x"),
        ];
        assert_eq!(terse.client().get(path, &fields).text(), "plain");
        assert_eq!(terse.client().get(path, &fields[1..]).text(), "plain");
        let (with, without) = (server.requests().pop().unwrap(), server.requests().pop().unwrap());
        for request in [&with, &without] {
            assert_eq!(request.field("http2-settings"), None, "{upgrade}");
        }
        let seen = server.requests();
        let request = &seen[seen.len() - 2];
        assert_eq!((request.field("upgrade"), request.field("connection")), (asked, asked.map(|_| "upgrade")), "{upgrade}");
        assert_eq!((with.field("upgrade"), with.field("connection")), (None, None), "{upgrade}");
    }
    terse.end();
}

/// No server can accept WebSocket without a key: its client is told at once (RFC 6455 section 4.2.1).
#[test]
fn websocket_without_a_key() {
    let server = Server::body("plain");
    let terse = listen(&format!("server one {}", server.address()));
    for protocols in ["websocket", "tcp, WebSocket"] {
        assert_eq!(terse.client().get("/", &[("Connection", "Upgrade"), ("Upgrade", protocols)]).status, 400, "{protocols}");
    }
    // Nothing is asked for without both fields.
    assert_eq!(terse.client().get("/", &[("Upgrade", "websocket")]).status, 200);
    assert_eq!(server.requests().len(), 1);
    terse.end();
}

/// A 101 changes the protocol only to one that the client has asked for, in a version that knows it. Both fields are in both
/// directions.
#[test]
fn changes_that_were_not_asked_for() {
    const ASKS: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
    const CHANGES: &str = "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n";
    for (line, asks, answer, is_right) in [
        (
            "GET / HTTP/1.1",
            ASKS,
            "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: y\r\n",
            true,
        ),
        ("GET / HTTP/1.1", ASKS, "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: tcp\r\n", false),
        ("GET / HTTP/1.1", ASKS, "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: h2c\r\n", false),
        ("GET / HTTP/1.1", ASKS, "HTTP/1.1 101 S\r\nConnection: upgrade\r\n", false),
        ("GET / HTTP/1.1", ASKS, "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", false),
        ("GET / HTTP/1.1", ASKS, "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n", false),
        (
            "GET / HTTP/1.1",
            ASKS,
            "HTTP/1.0 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n",
            false,
        ),
        ("GET / HTTP/1.1", "", CHANGES, false),
        ("GET / HTTP/1.1", "Upgrade: websocket\r\n", CHANGES, false),
        ("GET / HTTP/1.0", ASKS, CHANGES, false),
        ("GET /rule HTTP/1.1", ASKS, CHANGES, false),
        ("CONNECT a:1 HTTP/1.1", "", CHANGES, false),
    ] {
        let what = format!("{line}, {asks:?}, {answer:?}");
        let server = Server::start(move |connection| {
            let request = connection.head().unwrap();
            let both = (request.field("upgrade").is_some(), request.field("connection") == Some("upgrade"));
            assert_eq!(both.0, both.1, "{request:?}");
            connection.send(format!("{answer}\r\n"));
            if is_right {
                echo(connection);
            }
        });
        let terse = listen(&format!("http-request del-header Upgrade if {{ path /rule }}\n server one {}", server.address()));
        let mut client = terse.client();
        client.send(format!("{line}\r\nHost: a:1\r\n{asks}\r\n"));
        let response = client.head();
        assert_eq!(response.status, if is_right { 101 } else { 502 }, "{what}");
        if is_right {
            assert_eq!(response.field("connection"), Some("upgrade"));
            talk(&mut client);
        }
        terse.end();
    }
}

/// Another protocol that is offered, by a server or by a rule, has its option beside it; clients of HTTP/1.0 are offered none.
#[test]
fn offered_protocols() {
    let server = Server::answering(|request| match request.target.as_str() {
        "/426" => "HTTP/1.1 426 U\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
        "/http" => "HTTP/1.1 200 O\r\nConnection: Upgrade\r\nUpgrade: h2,h2c\r\nContent-Length: 0\r\n\r\n",
        "/alone" => "HTTP/1.1 200 O\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
        _ => "HTTP/1.1 103 E\r\nConnection: upgrade\r\nUpgrade: tcp\r\nLink: a\r\n\r\nHTTP/1.1 200 O\r\nContent-Length: 0\r\n\r\n",
    });
    let rule = "http-request return status 426 hdr Upgrade websocket if { path /own }";
    let terse = listen(&format!("{rule}\n server one {}", server.address()));
    for (path, version, offered, connection) in [
        ("/426", "1.1", Some("websocket"), Some("upgrade")),
        ("/426", "1.1\r\nConnection: close", Some("websocket"), Some("close, upgrade")),
        ("/426", "1.0", None, Some("close")),
        ("/http", "1.1", None, None),
        ("/alone", "1.1", None, None),
        ("/own", "1.1", Some("websocket"), Some("upgrade")),
        ("/103", "1.1", None, None),
    ] {
        let mut client = terse.client();
        client.send(format!("GET {path} HTTP/{version}\r\nHost: a\r\n\r\n"));
        let response = client.head();
        assert_eq!((response.field("upgrade"), response.field("connection")), (offered, connection), "{path} {version}");
    }
    terse.end();
}

/// A request with a body may ask for another protocol, as `docker exec` does: the tunnel follows the body, also where the answer does not.
#[test]
fn the_tunnel_follows_the_body() {
    for answers_first in [false, true] {
        let server = Server::start(move |connection| {
            let mut request = connection.head().unwrap();
            assert_eq!((request.field("connection"), request.field("upgrade")), (Some("upgrade"), Some("tcp")));
            let change = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nfirst";
            if answers_first {
                connection.send(change);
            }
            connection.body(&mut request).unwrap();
            assert_eq!(request.body, b"{\"Tty\":true}");
            if !answers_first {
                connection.send(change);
            }
            echo(connection);
        });
        for lines in [
            "",
            "option http-buffer-request",
            "option http-server-close",
            "compression direction request\n compression algo-req gzip",
        ] {
            let terse = listen(&format!("{lines}\n server one {}", server.address()));
            for (head, rest) in [
                ("Content-Length: 12\r\n\r\n{\"Tty\"", ":true}"),
                ("Transfer-Encoding: chunked\r\n\r\n6\r\n{\"Tty\"\r\n", "6\r\n:true}\r\n0\r\n\r\n"),
            ] {
                let what = format!("{answers_first} {lines} {head}");
                let mut client = terse.client();
                client.send(format!("POST /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n{head}"));
                if answers_first && !lines.contains("buffer") {
                    assert_eq!(client.head().status, 101, "{what}");
                    client.send(rest);
                } else {
                    client.send(rest);
                    assert_eq!(client.head().status, 101, "{what}");
                }
                let mut first = [0; 5];
                client.read(&mut first);
                assert_eq!(&first, b"first", "{what}");
                talk(&mut client);
            }
            terse.end();
        }
    }
}

#[test]
fn connect() {
    let server = Server::start(|connection| {
        let request = connection.head().unwrap();
        if request.target.starts_with("no") {
            connection.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
            return;
        }
        connection.send("HTTP/1.1 200 OK\r\n\r\n");
        echo(connection);
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("CONNECT yes:443 HTTP/1.1\r\nHost: yes:443\r\n\r\n");
    assert_eq!(client.head().status, 200);
    talk(&mut client);
    let mut client = terse.client();
    client.send("CONNECT no:443 HTTP/1.1\r\nHost: no:443\r\n\r\n");
    assert_eq!(client.response("CONNECT").status, 403);
    terse.end();
}

/// A CONNECT has no content: the bytes after its head are a request, which rules judge, until a server has answered 2xx.
#[test]
fn connect_has_no_content() {
    let server = Server::answering(|_| "HTTP/1.1 405 No\r\nContent-Length: 2\r\n\r\nno");
    let rules = "http-request set-method CONNECT if { path_beg /made }\n http-request set-uri a:80 if { path_beg /made }
 http-request deny if { path_beg /admin }\n http-request deny if { hdr(x-deny) -m found }\n option http-buffer-request";
    let inner = "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    let chunks = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
    let length = format!("Content-Length: {}\r\n", inner.len());
    // The requests, and the response to each: 400 ends the connection.
    for (global, head, framing, body, statuses) in [
        ("", "CONNECT a:80 HTTP/1.1", "", inner, &[405, 403][..]),
        ("", "CONNECT a:80 HTTP/1.1", "Content-Length: 0\r\n", inner, &[405, 403]),
        ("", "CONNECT a:80 HTTP/1.1", &length, inner, &[400]),
        ("", "CONNECT a:80 HTTP/1.1", "X-Deny: 1\r\n", inner, &[403, 403]),
        ("http-conformance haproxy", "CONNECT a:80 HTTP/1.1", &length, inner, &[405]),
        ("http-conformance haproxy", "CONNECT a:80 HTTP/1.0", "Transfer-Encoding: chunked\r\n", &chunks, &[405]),
        ("http-conformance haproxy", "CONNECT a:80 HTTP/1.1", "X-Deny: 1\r\nTransfer-Encoding: chunked\r\n", &chunks, &[403]),
        ("", "POST /made HTTP/1.1", &length, inner, &[405]),
        ("", "POST /made HTTP/1.1", "Transfer-Encoding: chunked\r\n", &chunks, &[405]),
    ] {
        let what = format!("{global}, {head}, {framing}");
        let before = server.requests().len();
        let text = format!(
            "global\n nbthread 1\n {global}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n {rules}\n server one {}\n",
            server.address()
        );
        let terse = Terse::with(&text).listen("web").start();
        let mut client = terse.client();
        client.send(format!("{head}\r\nHost: a:80\r\nConnection: keep-alive\r\n{framing}\r\n{body}"));
        for status in statuses {
            assert_eq!(client.response("GET").status, *status, "{what}");
        }
        client.stream().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), b"", "{what}");
        let seen = &server.requests()[before..];
        assert_eq!(seen.len(), usize::from(statuses[0] == 405), "{what}: {seen:?}");
        for request in seen {
            assert_eq!((request.method.as_str(), request.field("upgrade")), ("CONNECT", None), "{what}");
            assert_ne!(request.field("connection"), Some("upgrade"), "{what}");
            let framing = request.every("content-length").chain(request.every("transfer-encoding")).count();
            assert_eq!((framing, request.body.as_slice()), (0, &b""[..]), "{what}");
        }
        terse.end();
    }
}

#[test]
fn mode_tcp() {
    let server = Server::start(echo);
    let terse = listen(&format!("mode tcp\n server one {}", server.address()));
    let mut clients = [terse.client(), terse.client()];
    clients.iter_mut().for_each(talk);
    until("the server's connections to close", || (server.open() == 0).then_some(()));
    terse.end();
}

/// Protocols in which the server sends first, and one in which it alone sends.
#[test]
fn mode_tcp_server_first() {
    let server = Server::start(|connection| {
        connection.send("220 ready\r\n");
    });
    let terse = listen(&format!("mode tcp\n server one {}", server.address()));
    assert_eq!(terse.client().rest(), b"220 ready\r\n");
    terse.end();
}

#[test]
fn mode_tcp_in_bulk() {
    let server = Server::start(|connection| {
        let all = connection.rest();
        connection.send(all);
    });
    let terse = listen(&format!("mode tcp\n server one {}", server.address()));
    let bytes = Random::new(3).bytes(8 << 20);
    let mut client = terse.client();
    client.stream().write_all(&bytes).unwrap();
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert!(client.rest() == bytes);
    terse.end();
}

#[test]
fn mode_tcp_without_a_server() {
    let mut server = Server::start(echo);
    server.kill();
    let terse = listen(&format!("mode tcp\n retries 0\n timeout connect 100ms\n server one {}", server.address()));
    let mut client = terse.client();
    assert!(client.is_closed());
    terse.end();
}

/// A tunnel in which neither side sends anything ends; one that is used does not.
#[test]
fn silence_ends_it() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n",
        );
        while let Some(bytes) = connection.bytes(1) {
            connection.send(bytes);
        }
    });
    let terse = listen(&format!("timeout tunnel 200ms\n server one {}", server.address()));
    let mut client = terse.client();
    client.send(UPGRADE);
    client.response("GET");
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 500 {
        client.send("x");
        client.read(&mut [0]);
        super::support::readable(client.stream(), std::time::Duration::from_millis(20));
    }
    assert!(client.is_closed());
    until("the server's connection to close", || (server.open() == 0).then_some(()));
    terse.end();
}

/// With `option independent-streams` a silent server is not kept by a client that sends.
#[test]
fn each_side_speaks_for_itself() {
    let server = Server::start(|connection| while connection.bytes(1).is_some() {});
    let terse = listen(&format!("mode tcp\n option independent-streams\n timeout server 300ms\n server one {}", server.address()));
    let mut client = terse.client();
    until("the silent server to be given up", || {
        // Bytes sent after the end are an error, and then it has ended.
        let sent = client.stream().write_all(b"x").is_ok();
        (!sent || super::support::readable(client.stream(), std::time::Duration::from_millis(20))).then_some(())
    });
    // And so it is where something was on its way to it.
    let end =
        client.stream().read(&mut [0]).or_else(|error| if error.kind() == ErrorKind::ConnectionReset { Ok(0) } else { Err(error) });
    assert!(matches!(end, Ok(0)), "{end:?}");
    until("the server's connection to close", || (server.open() == 0).then_some(()));
    terse.end();
}
