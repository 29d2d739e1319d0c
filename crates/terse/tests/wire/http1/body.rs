//! Bodies of responses: by length, in chunks, by the end of the connection, and none at all.

use super::support::Terse;
use super::support::gzip::gunzip;
use super::support::proxy::listen;
use super::support::random::Random;
use super::support::server::{Server, ok};

#[test]
fn in_chunks_with_trailers() {
    let server = Server::answering(|_| {
        concat!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n",
            "3;name=value\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\nX-More: 1\r\n\r\n"
        )
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    for _ in 0..2 {
        let response = client.get("/", &[("TE", "trailers")]);
        assert_eq!((response.text().as_str(), response.field("content-length")), ("abcde", None));
        assert_eq!(response.field("transfer-encoding"), Some("chunked"));
        let trailers: Vec<_> = response.trailers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(trailers, [("X-Sum", "5"), ("X-More", "1")]);
    }
    terse.end();
}

#[test]
fn trailers_are_dropped_where_that_is_wanted() {
    for (line, up, down) in [
        ("", r#"[("X-Sum", "5")]"#, 1),
        ("option http-drop-request-trailers", "[]", 1),
        ("option http-drop-response-trailers", r#"[("X-Sum", "5")]"#, 0),
    ] {
        let server = Server::answering(|request| {
            let seen = format!("{:?}", request.trailers);
            let length = seen.len();
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{seen}\r\n0\r\nX-Sum: 5\r\n\r\n")
        });
        let terse = listen(&format!("{line}\n server one {}", server.address()));
        let mut client = terse.client();
        for _ in 0..2 {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 5\r\n\r\n");
            let response = client.response("POST");
            assert_eq!((response.text().as_str(), response.trailers.len()), (up, down), "{line}");
        }
        terse.end();
    }
}

/// Chunks are unknown to HTTP/1.0: such a client gets the bytes and the end of the connection.
#[test]
fn for_old_clients() {
    let server =
        Server::answering(|_| "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX: 1\r\n\r\n");
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let head = client.head();
    assert_eq!((head.field("transfer-encoding"), head.field("content-length")), (None, None));
    assert_eq!(head.field("connection").unwrap_or("close"), "close");
    assert_eq!(client.rest(), b"abcde");
    terse.end();
}

/// A body that ends with the server's connection comes in chunks, where the client understands them.
#[test]
fn until_the_server_closes() {
    let server = Server::start(|connection| {
        connection.request().unwrap();
        connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
    });
    for lines in ["", "compression algo identity\n compression http-version 1.0\n"] {
        let terse = listen(&format!("{lines} server one {}", server.address()));
        let mut client = terse.client();
        for _ in 0..2 {
            let response = client.get("/", &[]);
            let fields = ["transfer-encoding", "content-length", "connection"].map(|name| response.field(name));
            assert_eq!((response.text().as_str(), fields), ("abc", [Some("chunked"), None, None]));
        }
        client.send("GET / HTTP/1.0\r\n\r\n");
        let head = client.head();
        assert_eq!((head.field("transfer-encoding"), client.rest()), (None, b"abc".to_vec()));
        terse.end();
    }
}

/// Responses of most development servers: HTTP/1.0, or a body that ends with the connection, and errors as long as pages.
#[test]
fn of_old_servers_and_errors_are_compressed() {
    const PAGE: &str = "one page and another, one line and another, ";
    let page = PAGE.repeat(100);
    let sent = page.clone();
    let server = Server::start(move |connection| {
        let request = connection.request().unwrap();
        let (version, status, length) = match request.target.as_str() {
            "/closed" => ("1.0", "200 OK", String::new()),
            "/length" => ("1.0", "200 OK", format!("Content-Length: {}\r\n", sent.len())),
            "/modern" => ("1.1", "200 OK", "Connection: close\r\n".to_owned()),
            status => ("1.1", &status[1..], format!("Connection: close\r\nContent-Length: {}\r\n", sent.len())),
        };
        connection.send(format!("HTTP/{version} {status}\r\nContent-Type: text/html\r\n{length}\r\n{sent}"));
    });
    let compressed = |terse: &Terse, path: &str| {
        let response = terse.client().get(path, &[("Accept-Encoding", "gzip")]);
        assert_eq!(response.line.split(' ').next(), Some("HTTP/1.1"), "{path}");
        let is_coded = response.field("content-encoding") == Some("gzip");
        assert_eq!(if is_coded { gunzip(&response.body) } else { response.body }, page.as_bytes(), "{path}");
        is_coded
    };
    let terse = listen(&format!("compression on\n server one {}", server.address()));
    for path in ["/closed", "/length", "/modern", "/404", "/500", "/207", "/301"] {
        assert!(compressed(&terse, path), "{path}");
    }
    assert!(!compressed(&terse, "/226"));
    terse.end();
}

/// Responses without bodies, whatever their heads announce: the next response is found where it begins.
#[test]
fn none() {
    let server = Server::answering(|request| match request.target.as_str() {
        "/length" => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_owned(),
        "/chunks" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        "/204" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n".to_owned(),
        "/zero" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok("next"),
    });
    let terse = listen(&format!("http-reuse always\n server one {}", server.address()));
    let mut client = terse.client();
    for (method, path, status, length) in [
        ("HEAD", "/length", 200, Some("1000")),
        ("HEAD", "/chunks", 200, None),
        ("GET", "/204", 204, None),
        ("GET", "/304", 304, Some("1000")),
        ("HEAD", "/304", 304, Some("1000")),
        ("GET", "/zero", 200, Some("0")),
    ] {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let response = client.response(method);
        assert_eq!((response.status, response.field("content-length")), (status, length), "{method} {path}");
        assert_eq!(response.body, b"", "{method} {path}");
        assert_eq!(client.get("/", &[]).text(), "next", "behind {method} {path}");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}

/// Large bodies arrive whole, however they are framed and however slowly they are read.
#[test]
fn large() {
    let body = Random::new(7).bytes(6_000_000);
    let sent = body.clone();
    let server = Server::start(move |connection| {
        while let Some(request) = connection.request() {
            let mut random = Random::new(11);
            let chunked = request.target == "/chunks";
            let framing = if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {}", sent.len()) };
            connection.send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n"));
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(300_000)));
                rest = behind;
                if chunked {
                    connection.send(format!("{:X}\r\n", piece.len()));
                }
                connection.send(piece);
                if chunked {
                    connection.send("\r\n");
                }
            }
            if chunked {
                connection.send("0\r\n\r\n");
            }
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    for path in ["/length", "/chunks", "/length"] {
        assert!(client.get(path, &[]).body == body, "{path}");
    }
    terse.end();
}
