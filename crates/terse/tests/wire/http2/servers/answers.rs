//! Answers of HTTP/2 servers: heads, bodies, trailers and resets of every shape.

use super::super::client::{Client, request};
use super::super::support::gzip::gunzip;
use super::asked::{ask, ask2, log, proxy, send};
use super::peer::answering;
use terse_http::h2::Code;

#[test]
fn a_reset_before_the_head_is_a_502() {
    let (log, told) = log();
    let server = answering(move |peer, id| {
        if peer.whole(id) {
            log.lock().unwrap().push(peer.streams[&id].line());
            peer.reset(id, Code::INTERNAL_ERROR);
        }
    });
    let terse = proxy(&server, "");
    for (method, body) in [("GET", ""), ("POST", "hello")] {
        assert_eq!(ask(&terse, method, "/", body).status, 502, "{method}");
        assert_eq!(ask2(&terse, method, "/", body).status(), 502, "{method}");
    }
    let told = told.lock().unwrap();
    assert_eq!(told.iter().filter(|line| line.starts_with("POST")).count(), 2, "no POST is sent twice");
    terse.end();
}

/// Rules that wait for a body see it, whether it comes with its head or in pieces.
#[test]
fn bodies_that_rules_wait_for() {
    let server = answering(|peer, id| {
        peer.head(id, 200, &[], false);
        let pieces: &[&[u8]] = if peer.streams[&id].path() == "/pieces" { &[b"hello ", b"world"] } else { &[b"hello world"] };
        for (at, piece) in pieces.iter().enumerate() {
            peer.data(id, piece, at + 1 == pieces.len());
        }
    });
    let terse = proxy(&server, "http-response wait-for-body time 5s\n http-response set-header X-Bytes %[res.body_len]");
    for path in ["/whole", "/pieces"] {
        let response = ask(&terse, "GET", path, "");
        assert_eq!((response.field("x-bytes"), response.text().as_str()), (Some("11"), "hello world"), "{path}");
    }
    terse.end();
}

#[test]
fn a_reset_amid_the_body_cuts_the_answer() {
    let server = answering(|peer, id| {
        if peer.streams[&id].path() == "/good" {
            return peer.answer(id, 200, b"good");
        }
        peer.head(id, 200, &[], false);
        peer.data(id, b"abc", false);
        peer.reset(id, Code::INTERNAL_ERROR);
    });
    let terse = proxy(&server, "");
    let mut client = send(&terse, "GET", "/", "");
    let bytes = client.rest();
    assert!(!String::from_utf8_lossy(&bytes).ends_with("0\r\n\r\n"), "{}", bytes.escape_ascii());
    let answer = ask2(&terse, "GET", "/", "");
    assert!(!answer.has_ended && answer.reset.is_some_and(|code| code != Code::NO_ERROR), "{answer:?}");
    assert_eq!((ask(&terse, "GET", "/good", "").text(), server.accepted()), ("good".into(), 1), "the connection goes on");
    terse.end();
}

/// A server's error code amid its response reaches the client: in gRPC, CANCEL and ENHANCE_YOUR_CALM mean something. A code for a
/// request that was not begun cannot be sent any more.
#[test]
fn codes_of_resets_pass() {
    let server = answering(|peer, id| {
        let code = Code(peer.streams[&id].path()[1..].parse().unwrap());
        peer.head(id, 200, &[], false);
        peer.data(id, b"abc", false);
        peer.reset(id, code);
    });
    let terse = proxy(&server, "");
    for code in [Code::CANCEL, Code::ENHANCE_YOUR_CALM, Code::INTERNAL_ERROR, Code::REFUSED_STREAM] {
        let answer = ask2(&terse, "GET", &format!("/{}", code.0), "");
        assert!(!answer.has_ended, "{answer:?}");
        if code == Code::REFUSED_STREAM {
            assert!(answer.reset.is_some_and(|told| told != code && told != Code::NO_ERROR), "{answer:?}");
        } else {
            assert_eq!(answer.reset, Some(code));
        }
    }
    terse.end();
}

/// RFC 9113 section 8.1: a server that has answered may signal that it needs no more of the request. HAProxy does so with CANCEL.
#[test]
fn an_early_answer_is_whole() {
    for code in [Code::NO_ERROR, Code::CANCEL] {
        let server = answering(move |peer, id| {
            if peer.streams[&id].path() == "/good" {
                return peer.answer(id, 200, b"good");
            }
            assert!(peer.wait(|peer| !peer.streams[&id].body.is_empty()));
            peer.end_and_reset(id, Some(413), b"too large", code);
        });
        let terse = proxy(&server, "");
        let mut client = Client::connect(terse.address("web"));
        let id = client.open(&request("POST", "/", &[("Content-Length", "10000000")]), false);
        client.send(id, &[b'x'; 100_000], false);
        let answer = client.answer(id);
        assert_eq!((answer.status(), answer.text().as_str(), answer.has_ended), (413, "too large", true));
        let mut client = terse.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10000000\r\n\r\n");
        client.send([b'x'; 50_000]);
        let answer = client.response("POST");
        assert_eq!((answer.status, answer.text().as_str()), (413, "too large"));
        assert_eq!((ask(&terse, "GET", "/good", "").text(), server.accepted()), ("good".into(), 1), "the connection goes on");
        terse.end();
    }
}

#[test]
fn interim_answers_and_trailers_pass() {
    let server = answering(|peer, id| {
        peer.head(id, 103, &[("link", "</a>")], false);
        if !peer.whole(id) {
            return;
        }
        let asked = &peer.streams[&id];
        let text = format!("{} {:?} {:?}", asked.body.len(), asked.field("te"), asked.trailers);
        peer.head(id, 200, &[("trailer", "sum")], false);
        peer.data(id, text.as_bytes(), false);
        peer.trailers(id, &[("sum", "7")]);
    });
    let terse = proxy(&server, "");
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("POST", "/", &[("TE", "trailers"), ("Trailer", "x")]), false);
    client.wait("103", |client| !client.streams[&id].interim.is_empty());
    assert_eq!(client.streams[&id].interim[0].status, 103);
    client.send(id, b"abc", false);
    let mut trailers = terse_message::Fields::default();
    trailers.push(b"x", b"1");
    client.codec.send_trailers(id, &trailers);
    client.flush();
    let answer = client.answer(id);
    let expected = r#"3 Some("trailers") [("x", "1")]"#;
    assert_eq!((answer.status(), answer.text().as_str(), answer.interim.len()), (200, expected, 1));
    assert_eq!(answer.trailers, [("sum".to_owned(), "7".to_owned())]);

    let mut client = terse.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: TE\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n",
    );
    let early = client.head();
    assert_eq!((early.status, early.field("link")), (103, Some("</a>")));
    client.send("3\r\nabc\r\n0\r\nx: 1\r\n\r\n");
    let answer = client.response("POST");
    assert_eq!((answer.status, answer.text().as_str()), (200, expected));
    assert_eq!(answer.trailers, [("sum".to_owned(), "7".to_owned())]);
    terse.end();
}

#[test]
fn trailers_right_behind_the_head_pass() {
    let server = answering(|peer, id| {
        peer.head(id, 200, &[], false);
        peer.trailers(id, &[("grpc-status", "5")]);
    });
    let terse = proxy(&server, "");
    let answer = ask2(&terse, "POST", "/", "hello");
    assert_eq!((answer.status(), answer.text().as_str()), (200, ""));
    assert_eq!(answer.trailers, [("grpc-status".to_owned(), "5".to_owned())]);
    let answer = ask(&terse, "POST", "/", "hello");
    assert_eq!((answer.status, answer.text().as_str()), (200, ""));
    assert_eq!(answer.trailers, [("grpc-status".to_owned(), "5".to_owned())]);
    terse.end();
}

/// A body of no bytes, in every framing.
#[test]
fn empty_bodies_are_empty() {
    let server = answering(|peer, id| {
        let path = peer.streams[&id].path();
        let length = [("content-length", "0")];
        match path.as_str() {
            "/data" => {
                peer.head(id, 200, &[], false);
                peer.data(id, b"", true);
            }
            "/length" => {
                peer.head(id, 200, &length, false);
                peer.data(id, b"", true);
            }
            "/pieces" => {
                peer.head(id, 200, &[], false);
                peer.frame(0, 0, id, b"");
                peer.frame(0, 0, id, b"");
                peer.data(id, b"", true);
            }
            "/204" => {
                peer.head(id, 204, &[], false);
                peer.data(id, b"", true);
            }
            "/304" => {
                peer.head(id, 304, &[("content-length", "100")], false);
                peer.data(id, b"", true);
            }
            "/head" => {
                peer.head(id, 200, &[("content-length", "100")], false);
                peer.data(id, b"", true);
            }
            _ => peer.head(id, 200, &length, true),
        }
    });
    let terse = proxy(&server, "");
    let mut one = terse.client();
    let mut two = Client::connect(terse.address("web"));
    for (method, path, status) in [
        ("GET", "/data", 200),
        ("GET", "/length", 200),
        ("GET", "/pieces", 200),
        ("GET", "/204", 204),
        ("GET", "/304", 304),
        ("HEAD", "/head", 200),
        ("GET", "/end", 200),
        ("POST", "/data", 200),
        ("POST", "/end", 200),
    ] {
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        one.send(format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n{length}\r\n"));
        let answer = one.response(method);
        assert_eq!((answer.status, answer.text().as_str()), (status, ""), "{method} {path}: {answer:?}");
        let answer = two.ask(&request(method, path, &[]));
        assert_eq!((answer.status(), answer.text().as_str(), answer.has_ended), (status, "", true), "{method} {path}");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}

/// A body whose size differs from its length is malformed (RFC 9113 section 8.1.1).
#[test]
fn wrong_lengths_reach_nobody_as_right_ones() {
    let server = answering(|peer, id| {
        let path = peer.streams[&id].path();
        let (length, body): (&str, &[u8]) = match path.as_str() {
            "/short" => ("10", b"abc"),
            "/long" => ("3", b"abcdefghij"),
            "/none" => ("10", b""),
            "/some" => ("0", b"abc"),
            _ => return peer.answer(id, 200, b"good"),
        };
        peer.head(id, 200, &[("content-length", length)], false);
        peer.frame(0, 1, id, body);
    });
    let terse = proxy(&server, "");
    for path in ["/short", "/long", "/none", "/some"] {
        let mut client = terse.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"));
        let head = client.head();
        if head.status != 502 {
            assert_eq!(head.status, 200, "{path}");
            let body = client.rest();
            let length: usize = head.field("content-length").unwrap_or("1000").parse().unwrap();
            assert!(body.len() < length || matches!(path, "/long" | "/some"), "{path}: a whole body");
            assert!(body.len() <= length, "{path}: {} bytes of {length}", body.len());
        }
        let answer = ask2(&terse, "GET", path, "");
        // A response that has no bytes by its length is whole before any of them come.
        let is_empty = path == "/some" && answer.body.is_empty();
        assert!(answer.status() == 502 || !answer.has_ended || is_empty, "{path}: {answer:?}");
        assert_eq!(ask(&terse, "GET", "/good", "").text(), "good", "{path}");
        assert_eq!(server.accepted(), 1, "{path}: the connection goes on");
    }
    terse.end();
}

/// Heads that are none.
#[test]
fn malformed_heads_are_a_502() {
    // Blocks of literal fields without indexing.
    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
    }
    let cases: [&[(&str, &str)]; 7] = [
        &[("content-length", "0")],
        &[(":status", "20")],
        &[(":status", "200"), ("Upper", "x")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "200"), ("transfer-encoding", "chunked")],
        &[(":status", "200"), ("x", "a\r\nb: c")],
        &[("x", "y"), (":status", "200")],
    ];
    let server = answering(move |peer, id| {
        let path = peer.streams[&id].path();
        match path[1..].parse::<usize>() {
            Ok(number) => peer.frame(1, 5, id, &block(cases[number])),
            Err(_) => peer.answer(id, 200, b"good"),
        }
    });
    let terse = proxy(&server, "retries 0\n");
    for (number, case) in cases.iter().enumerate() {
        assert_eq!(ask(&terse, "GET", &format!("/{number}"), "").status, 502, "{case:?}");
        assert_eq!(ask2(&terse, "GET", &format!("/{number}"), "").status(), 502, "{case:?}");
        assert_eq!(ask(&terse, "GET", "/good", "").text(), "good");
    }
    terse.end();
}

/// Heads of many kilobytes in both ways.
#[test]
fn large_heads_pass() {
    let server = answering(|peer, id| {
        let got = peer.streams[&id].field("x-large").unwrap_or_default();
        peer.head(id, 200, &[("x-large", &got), ("content-length", "0")], true);
    });
    let terse = proxy(&server, "");
    for bytes in [100, 5000, 12_000] {
        let value = "v".repeat(bytes);
        let answer = terse.client().get("/", &[("X-Large", &value)]);
        assert_eq!((answer.status, answer.field("x-large")), (200, Some(value.as_str())), "{bytes}");
        let answer = Client::connect(terse.address("web")).ask(&request("GET", "/", &[("X-Large", &value)]));
        assert_eq!((answer.status(), answer.field("x-large")), (200, Some(value)), "{bytes}");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}

#[test]
fn answers_are_compressed() {
    let text = "a line of text\n".repeat(5000);
    let sent = text.clone();
    let server = answering(move |peer, id| {
        let trails = peer.streams[&id].path() == "/trailers";
        let length = sent.len().to_string();
        let fields = [("content-type", "text/plain"), ("content-length", length.as_str())];
        peer.head(id, 200, if trails { &fields[..1] } else { &fields }, false);
        peer.data(id, sent.as_bytes(), !trails);
        if trails {
            peer.trailers(id, &[("sum", "7")]);
        }
    });
    let terse = proxy(&server, "filter compression\n compression algo gzip\n compression type text/plain\n");
    for path in ["/", "/trailers"] {
        let answer = terse.client().get(path, &[("Accept-Encoding", "gzip")]);
        assert_eq!(answer.field("content-encoding"), Some("gzip"), "{path}");
        assert!(answer.body.len() < 2000 && gunzip(&answer.body) == text.as_bytes(), "{path}");
        let answer2 = Client::connect(terse.address("web")).ask(&request("GET", path, &[("Accept-Encoding", "gzip")]));
        assert_eq!(answer2.field("content-encoding").as_deref(), Some("gzip"), "{path}");
        assert!(gunzip(&answer2.body) == text.as_bytes(), "{path}");
        assert_eq!(answer.trailers, answer2.trailers, "{path}");
        assert_eq!(answer.trailers.len(), usize::from(path == "/trailers"));
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}
