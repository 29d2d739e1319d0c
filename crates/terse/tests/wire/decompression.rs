//! Decoding: responses for clients that cannot take them, requests for servers that cannot, bombs, and faults.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use flate2::Compression;
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use support::client::{Client, Response};
use support::gzip::gunzip;
use support::program;
use support::proxy::{DEFAULTS, listen};
use support::random::Random;
use support::server::{Request, Server};
use support::{Terse, until};
use terse_compress::coder::{Engine, Pool, Tuning};
use terse_compress::{Coding, Level};

/// Text that compresses about as pages do.
fn page(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = ["stream", "pause", "<p class=\"x\">", "buffer", "</p>\n", "client", "0123", "of the"];
    let mut random = Random::new(9);
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.extend(random.pick(&WORDS).bytes().chain(*b" "));
    }
    text.truncate(bytes);
    text
}

fn code(token: &str, body: &[u8]) -> Vec<u8> {
    let coding = match token {
        "gzip" => return gzip(body),
        "deflate" => {
            let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
            coder.write_all(body).unwrap();
            return coder.finish().unwrap();
        }
        "zstd" => Coding::Zstd,
        _ => Coding::Brotli,
    };
    let mut out = Vec::new();
    (Engine::of(coding).whole)(body, Level(3), &Pool::new(Tuning::default()), &mut out).unwrap();
    out
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut coder = flate2::GzBuilder::new().filename("x").write(Vec::new(), Compression::default());
    coder.write_all(body).unwrap();
    coder.finish().unwrap()
}

/// So many zeros, a thousandth as long.
fn bomb(bytes: usize) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..bytes >> 20).for_each(|_| coder.write_all(&zeros).unwrap());
    coder.finish().unwrap()
}

/// A response with a length.
fn with_length(fields: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// A response in chunks of so many bytes.
fn in_chunks(fields: &str, body: &[u8], size: usize) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for chunk in body.chunks(size) {
        out.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend(chunk);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\nContent-MD5: x\r\nX-Kept: y\r\n\r\n");
    out
}

/// `/coding/framing`: the page, coded and framed so.
fn origin(body: Vec<u8>) -> Server {
    Server::start(move |connection| {
        while let Some(request) = connection.request() {
            let words: Vec<&str> = request.target.split('/').collect();
            let (token, framing) = (words[1], words[2]);
            let coded = code(token, &body);
            let fields = format!(
                "Content-Type: text/html\r\nContent-Encoding: {token}\r\nETag: \"tag\"\r\nAccept-Ranges: bytes\r\nContent-MD5: x\r\n\
                 Digest: x\r\nRepr-Digest: x\r\n"
            );
            match framing {
                "length" => connection.send(with_length(&fields, &coded)),
                "chunks" => connection.send(in_chunks(&fields, &coded, 700)),
                _ => {
                    connection.send([format!("HTTP/1.0 200 OK\r\n{fields}\r\n").as_bytes(), &coded].concat());
                    return;
                }
            };
        }
    })
}

/// A body that was decoded, and a head that tells so.
#[track_caller]
fn check_decoded(response: &Response, expected: &[u8], what: &str) {
    assert_eq!(response.status, 200, "{what}: {:?}", response.fields);
    assert!(response.body == expected, "{what}: {} bytes of {}", response.body.len(), expected.len());
    for gone in ["content-encoding", "content-length", "accept-ranges", "content-md5", "digest", "repr-digest"] {
        assert_eq!(response.field(gone), None, "{what}: {gone}");
    }
    assert_eq!(
        (response.field("etag"), response.field("vary")),
        (Some("W/\"tag;terse=identity\""), Some("Accept-Encoding")),
        "{what}"
    );
}

#[test]
fn every_coding_and_framing_for_clients_that_take_none() {
    let body = page(300_000);
    let server = origin(body.clone());
    let terse = listen(&format!("decompression response on\n server one {}", server.address()));
    for coding in ["gzip", "deflate", "zstd", "br"] {
        let mut client = terse.client();
        for framing in ["length", "chunks", "close", "length"] {
            let target = format!("/{coding}/{framing}");
            for fields in [&[][..], &[("Accept-Encoding", "identity")], &[("Accept-Encoding", "*;q=0, identity")]] {
                let response = client.get(&target, fields);
                check_decoded(&response, &body, &target);
                assert_eq!(response.field("transfer-encoding"), Some("chunked"));
                let trailers: Vec<&str> = response.trailers.iter().map(|(name, _)| name.as_str()).collect();
                assert_eq!(trailers, if framing == "chunks" { &["X-Kept"][..] } else { &[] });
            }
            let response = client.get(&target, &[("Accept-Encoding", coding)]);
            assert_eq!((response.field("content-encoding"), response.field("etag")), (Some(coding), Some("\"tag\"")));
            assert_eq!(response.field("vary"), Some("Accept-Encoding"));
            assert!(response.body == code(coding, &body));
            if framing == "close" {
                client = terse.client();
            }
        }
        let mut old = terse.client();
        old.send(format!("GET /{coding}/length HTTP/1.0\r\n\r\n"));
        let response = old.response("GET");
        check_decoded(&response, &body, "HTTP/1.0");
        assert_eq!(response.field("transfer-encoding"), None);
    }
    terse.end();
}

#[test]
fn curl_gets_what_it_can_show() {
    let Some(curl) = program::curl() else { return };
    let body = page(20_000);
    let server = origin(body.clone());
    let terse = listen(&format!("decompression response on\n server one {}", server.address()));
    let url = format!("http://{}/gzip/length", terse.address("web"));
    assert!(curl(&["-s", &url]).stdout.into_bytes() == body);
    assert!(curl(&["-s", "--compressed", &url]).stdout.into_bytes() == body);
    // A download that was cut off cannot be resumed: the server has parts of other bytes. curl is sent the whole, and reports that.
    let said = curl(&["-s", "-C", "100", "-o", "/dev/null", "-w", "%{http_code}", &url]);
    assert_eq!((said.code, said.stdout.trim()), (Some(33), "200"), "{said:?}");
    terse.end();
}

#[test]
fn codings_within_codings() {
    let body = page(100_000);
    let inner = code("br", &body);
    let both = gzip(&inner);
    let coded = [(both.clone(), inner.clone())];
    let server = Server::answering(move |request| {
        let (both, _) = &coded[0];
        match request.target.as_str() {
            "/lines" => with_length("Content-Encoding: br\r\nContent-Encoding: identity, x-gzip\r\n", both),
            "/unknown" => with_length("Content-Encoding: br, compress\r\n", both),
            "/many" => with_length("Content-Encoding: br, br, br, gzip\r\n", both),
            _ => with_length("Content-Encoding: br, gzip\r\n", both),
        }
    });
    let terse = listen(&format!(
        "decompression response on\n http-after-response set-header Why <%[res.decomp_reason]>\n server one {}",
        server.address()
    ));
    let mut client = terse.client();
    for target in ["/", "/lines"] {
        let response = client.get(target, &[]);
        assert!(response.body == body && response.field("content-encoding").is_none(), "{target}");
        let response = client.get(target, &[("Accept-Encoding", "br")]);
        assert_eq!(response.field("content-encoding"), Some("br"), "{target}");
        assert!(response.body == inner);
        // A client that takes the outer coding alone gets nothing of the inner one.
        let response = client.get(target, &[("Accept-Encoding", "gzip")]);
        assert!(response.body == body && response.field("content-encoding").is_none(), "{target}");
    }
    for (target, why) in [("/unknown", "<unknown-coding>"), ("/many", "<too-many-codings>")] {
        let response = client.get(target, &[]);
        assert!(response.body == both);
        assert_eq!(response.field("why"), Some(why));
    }
    terse.end();
}

#[test]
fn what_is_left_alone_says_why() {
    let coded = gzip(&page(1000));
    let server = Server::answering(move |request| {
        match request.target.as_str() {
        "/plain" => with_length("", b"plain"),
        "/kept" => with_length("Cache-Control: no-transform\r\nContent-Encoding: gzip\r\n", &coded),
        "/grpc" => with_length("Content-Type: application/grpc+proto\r\nContent-Encoding: gzip\r\n", &coded),
        "/empty" => with_length("Content-Encoding: gzip\r\n", b""),
        "/part" if request.field("range").is_some() => [
            b"HTTP/1.1 206 P\r\nContent-Encoding: gzip\r\nLast-Modified: x\r\nContent-Range: bytes 1-5/9\r\nContent-Length: 5\r\n\r\n",
            &coded[1..6],
        ]
        .concat(),
        "/same" => b"HTTP/1.1 304 S\r\nETag: \"tag\"\r\n\r\n".to_vec(),
        _ => with_length("Content-Encoding: gzip\r\n", &coded),
    }
    });
    let terse = listen(&format!(
        "decompression response on\n http-after-response set-header Why <%[res.decomp_reason]>\n server one {}",
        server.address()
    ));
    let mut client = terse.client();
    for (target, fields, why) in [
        ("/plain", &[][..], "<not-coded>"),
        ("/", &[("Accept-Encoding", "gzip")], "<accepted>"),
        ("/", &[], "<>"),
        ("/", &[("Cache-Control", "no-transform")], "<request-no-transform>"),
        ("/kept", &[], "<no-transform>"),
        ("/grpc", &[], "<grpc>"),
        ("/empty", &[], "<no-body>"),
        ("/part", &[("Range", "bytes=1-5")], "<partial>"),
        ("/same", &[("If-None-Match", "W/\"tag;terse=identity\"")], "<no-body>"),
    ] {
        let response = client.get(target, fields);
        assert_eq!(response.field("why"), Some(why), "{target}");
        match target {
            "/part" => assert_eq!((response.status, response.field("last-modified")), (206, None)),
            "/same" => assert_eq!((response.status, response.field("etag")), (304, Some("W/\"tag;terse=identity\""))),
            _ => {}
        }
    }
    // The whole, instead of a part for a client that may join it with decoded bytes that it already has.
    for fields in [
        &[("Range", "bytes=1-")][..],
        &[("Range", "bytes=1-5"), ("If-Range", "W/\"tag;terse=identity\"")],
        &[("Range", "bytes=1-5"), ("If-Range", "Tue, 01 Jan 2019 00:00:00 GMT")],
    ] {
        let response = client.get("/part", fields);
        assert_eq!((response.status, response.body.len(), response.field("why")), (200, 1000, Some("<>")), "{fields:?}");
    }
    // The answer to HEAD tells what GET would bring.
    client = terse.client();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.response("HEAD");
    assert_eq!((head.status, head.field("content-encoding"), head.field("content-length")), (200, None, None));
    terse.end();
}

#[test]
fn each_part_before_a_pause() {
    for coding in ["gzip", "zstd", "br"] {
        let (send, parts) = channel::<Vec<u8>>();
        let parts = Mutex::new(parts);
        let server = Server::start(move |connection| {
            connection.head().unwrap();
            connection.send(format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n"));
            for part in &*parts.lock().unwrap() {
                connection.send([format!("{:x}\r\n", part.len()).as_bytes(), &part, b"\r\n"].concat());
            }
            connection.send("0\r\n\r\n");
        });
        let terse = counted("decompression response on", &server);
        let mut client = terse.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        // The head comes before the body.
        assert_eq!(client.head().status, 200);
        let engine = Engine::of(Coding::of_word(coding).unwrap());
        let mut coder = (engine.stream)(Level(3), None, &std::sync::Arc::new(Pool::new(Tuning::default())));
        for size in [1, 30, 700, 4000] {
            let (part, mut coded) = (page(size), Vec::new());
            coder.push(&part, &mut coded, terse_compress::coder::Flush::Sync).unwrap();
            send.send(coded).unwrap();
            let mut plain = Vec::new();
            while plain.len() < part.len() {
                plain.extend(client.chunk().unwrap());
            }
            assert!(plain == part, "{coding}: {size}");
        }
        let mut end = Vec::new();
        coder.push(&[], &mut end, terse_compress::coder::Flush::Finish).unwrap();
        send.send(end).unwrap();
        drop(send);
        assert_eq!(client.chunk(), None);
        terse.end();
    }
}

#[test]
fn decoded_and_coded_again() {
    let body = page(50_000);
    let server = origin(body.clone());
    let terse = listen(&format!(
        "decompression response on\n compression algo gzip\n http-after-response set-header Why <%[res.comp_reason]>\n server one {}",
        server.address()
    ));
    let mut client = terse.client();
    for framing in ["length", "chunks"] {
        let response = client.get(&format!("/br/{framing}"), &[("Accept-Encoding", "gzip")]);
        assert_eq!((response.field("content-encoding"), response.field("why")), (Some("gzip"), Some("<>")));
        assert!(gunzip(&response.body) == body);
        assert_eq!((response.field("etag"), response.field("vary")), (Some("W/\"tag;terse=gzip\""), Some("Accept-Encoding")));
    }
    terse.end();
    let terse = listen(&format!("decompression response recode\n compression algo br gzip\n server one {}", server.address()));
    let mut client = terse.client();
    for (accepts, coding) in [("gzip, br", "br"), ("gzip", "gzip"), ("gzip, br;q=0.5", "gzip")] {
        let response = client.get("/gzip/length", &[("Accept-Encoding", accepts)]);
        assert_eq!(response.field("content-encoding"), Some(coding), "{accepts}");
    }
    terse.end();
}

/// A client that goes on where it was cut off, or by a date, never joins a part of the server's coded body with what it was sent: not where
/// that was coded again, and not beyond the end of the coded body, where the server says 416.
#[test]
fn no_part_of_a_coded_body_is_joined() {
    let body = page(50_000);
    let coded = gzip(&body);
    let there = coded.clone();
    let server = Server::answering(move |request| {
        let fields =
            "Content-Type: text/html\r\nContent-Encoding: gzip\r\nETag: \"x\"\r\nLast-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n";
        let from = request.field("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
        match from {
            None => with_length(fields, &there),
            Some(from) if from >= there.len() => {
                let head = format!("Content-Range: bytes */{}\r\nContent-Length: 0", there.len());
                format!("HTTP/1.1 416 Range Not Satisfiable\r\n{head}\r\n\r\n").into_bytes()
            }
            Some(from) => {
                let range = format!("Content-Range: bytes {from}-{}/{}", there.len() - 1, there.len());
                let head = format!("HTTP/1.1 206 Partial Content\r\n{fields}{range}\r\nContent-Length: {}", there.len() - from);
                [head.as_bytes(), b"\r\n\r\n", &there[from..]].concat()
            }
        }
    });
    let date = ("If-Range", "Wed, 01 Jan 2025 00:00:00 GMT");
    for (lines, accepted, held) in [
        ("decompression response on", None, body.len()),
        ("decompression response on", Some("br"), body.len()),
        ("decompression response recode\n compression algo br", Some("gzip, br"), 5000),
        ("decompression response recode\n compression algo br gzip", Some("gzip;q=0.5, br"), 5000),
    ] {
        let terse = listen(&format!("{lines}\n server one {}", server.address()));
        let mut client = terse.client();
        let accepts: Vec<_> = accepted.map(|value| ("Accept-Encoding", value)).into_iter().collect();
        let first = client.get("/", &accepts);
        let coding = first.field("content-encoding").map(str::to_owned);
        assert_eq!(coding.as_deref(), (lines.contains("recode")).then_some("br"), "{lines}");
        for from in [1, coded.len() / 2, coded.len() + 1, held - 1] {
            let range = format!("bytes={from}-");
            for condition in [None, Some(date)] {
                let fields: Vec<_> = accepts.iter().copied().chain([("Range", range.as_str())]).chain(condition).collect();
                let whole = client.get("/", &fields);
                assert_eq!((whole.status, whole.field("content-encoding")), (200, coding.as_deref()), "{lines} {fields:?}");
                assert!(whole.body == first.body, "{lines} {fields:?}");
            }
        }
        // Who names the server's own tag holds the server's own bytes.
        let range = ("Range", "bytes=9-");
        let fields: Vec<_> = accepts.iter().copied().chain([range, ("If-Range", "\"x\"")]).collect();
        let part = client.get("/", &fields);
        assert_eq!((part.status, part.field("etag")), (206, Some("\"x\"")), "{lines}");
        drop(client);
        terse.end();
    }
}

#[test]
fn servers_are_asked_for_what_the_configuration_takes() {
    let body = page(5000);
    let server = origin(body.clone());
    let terse = listen(&format!("decompression response on\n decompression accept br gzip\n server one {}", server.address()));
    let mut client = terse.client();
    for (accepts, asked) in [
        (None, Some("br, gzip")),
        (Some("gzip;q=0, deflate"), Some("deflate, br, gzip")),
        (Some("gzip, br"), Some("gzip, br")),
        (Some("identity, *;q=0"), Some("identity, *;q=0, br, gzip")),
    ] {
        let fields: Vec<(&str, &str)> = accepts.map(|accepts| ("Accept-Encoding", accepts)).into_iter().collect();
        client.get("/br/length", &fields);
        assert_eq!(server.requests().last().unwrap().field("accept-encoding"), asked, "{accepts:?}");
    }
    for fields in [&[("Range", "bytes=0-9")], &[("Cache-Control", "no-transform")]] {
        client.get("/br/length", fields);
        assert_eq!(server.requests().last().unwrap().field("accept-encoding"), None);
    }
    terse.end();
}

/// A process whose log and counters tell what came of each message.
fn counted(lines: &str, server: &Server) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n log stdout format raw local0\n \
         log-format \"<%ST %ts %[req.decomp_reason] %[res.decomp_reason]>\"\n{lines}\n server one {}\n",
        server.address()
    );
    Terse::with(&text).listen("web").listen("cli").start()
}

/// The line of `show decompression` about the frontend's half, once it has been counted.
fn counters(terse: &Terse, direction: &str, begin: &str) {
    let line = format!("web frontend {direction} {begin}");
    until(&line, || terse.command("show decompression web").lines().any(|own| own.starts_with(&line)).then_some(()));
}

#[test]
fn requests_reach_servers_plain() {
    let body = page(200_000);
    let expected = body.clone();
    let server = Server::answering(move |request: &Request| {
        let coding = request.field("content-encoding").unwrap_or("none").to_owned();
        support::server::ok(&format!("{} {coding} {}", request.body == expected, request.field("content-md5").is_some()))
    });
    let terse = counted("decompression request gzip deflate zstd br", &server);
    let mut client = terse.client();
    for coding in ["gzip", "deflate", "zstd", "br"] {
        let coded = code(coding, &body);
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-MD5: x\r\nContent-Encoding: {coding}\r\n");
        client.send([format!("{head}Content-Length: {}\r\n\r\n", coded.len()).as_bytes(), &coded].concat());
        assert_eq!(client.response("POST").text(), "true none false", "{coding}");
        client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
        for piece in coded.chunks(3000) {
            client.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.response("POST").text(), "true none false", "{coding}");
    }
    // Members one after the other are one body, and a client may wait for 100.
    let coded = [gzip(&body[..1000]), gzip(&body[1000..])].concat();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        coded.len()
    ));
    assert_eq!(client.head().status, 100);
    client.send(&coded);
    assert_eq!(client.response("POST").text(), "true none false");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: compress\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.response("POST").text(), "false compress false");
    counters(&terse, "request", "9 ");
    until("the other one", || terse.command("show decompression web").contains(" accepted:1\n").then_some(()));
    terse.end();
}

#[test]
fn requests_go_compressed_over_one_hop() {
    let body = page(300_000);
    let expected = body.clone();
    let server = Server::answering(move |request: &Request| {
        let same = expected.starts_with(&request.body);
        support::server::ok(&format!("{same} {}", request.body.len()))
    });
    for coding in ["gzip", "zstd", "br"] {
        let near = counted(
            &format!(
                "decompression request {coding}\n http-after-response set-header X-Coding %[var(txn.coding)]\n http-request set-var(txn.coding) req.hdr(content-encoding)"
            ),
            &server,
        );
        let lines = format!(
            "compression direction request\n compression algo-req {coding}\n compression type-req text/\n server one {}",
            near.address("web")
        );
        let far = listen(&lines);
        let mut client = far.client();
        // As a whole, and as a stream.
        for bytes in [20_000, body.len()] {
            let pieces = body[..bytes].chunks(30_000);
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
            pieces.for_each(|piece| client.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()));
            client.send("0\r\n\r\n");
            let response = client.response("POST");
            assert_eq!(response.field("x-coding"), Some(coding));
            assert_eq!(response.text(), format!("true {bytes}"), "{coding}");
        }
        counters(&near, "request", "2 ");
        far.end();
        near.end();
    }
}

#[test]
fn other_codings_go_on_to_the_server() {
    let server = Server::answering(|request: &Request| support::server::ok(request.field("content-encoding").unwrap_or("none")));
    let terse = listen(&format!("decompression request gzip\n server one {}", server.address()));
    let mut client = terse.client();
    for (coding, body, seen) in [
        ("br", code("br", b"abc"), "br"),
        ("br, gzip", gzip(&code("br", b"abc")), "br"),
        ("gzip, br", code("br", &gzip(b"abc")), "none"),
        ("identity", b"abc".to_vec(), "identity"),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
        client.send([head.as_bytes(), &body].concat());
        assert_eq!(client.response("POST").text(), seen, "{coding}");
    }
    terse.end();
}

#[test]
fn requests_that_cannot_be_decoded_are_refused() {
    let server = Server::answering(|request: &Request| support::server::ok(&request.body.len().to_string()));
    let terse = counted("decompression request gzip br\n decompression max-size-req 20m", &server);
    let good = gzip(&page(3000));
    let mut wrong = good.clone();
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    let many = gzip(&page(21 << 20));
    for (coded, status, logged) in [
        (bomb(64 << 20), 413, "<413 PD ratio ->"),
        (many, 413, "<413 PD size ->"),
        (good[..good.len() - 1].to_vec(), 400, "<400 PD truncated ->"),
        (wrong, 400, "<400 PD bad-checksum ->"),
        (b"<html></html>".to_vec(), 400, "<400 PD bad-format ->"),
        ([&good[..], b"more"].concat(), 400, "<400 PD trailing-bytes ->"),
    ] {
        let mut client = terse.client();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", coded.len());
        client.send(head);
        // The answer may come before all is sent.
        let _ = client.stream().write_all(&coded);
        assert_eq!(client.response("POST").status, status, "{logged}");
        until(logged, || terse.stdout().contains(logged).then_some(()));
    }
    counters(&terse, "request", "6 ");
    let counted = terse.command("show decompression web");
    let line = counted.lines().find(|line| line.starts_with("web frontend request")).unwrap();
    assert!(line.ends_with(" 2 4 -"), "{line}");
    // The server has not taken half a body for a whole one.
    let mut client = terse.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", good.len()));
    client.send(&good);
    assert_eq!(client.response("POST").text(), "3000");
    terse.end();
}

#[test]
fn responses_that_cannot_be_decoded_are_errors() {
    let good = gzip(&page(3000));
    let mut wrong = good.clone();
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    let bodies = [
        ("/bomb", bomb(64 << 20)),
        ("/format", b"<html></html>".to_vec()),
        ("/wrong", wrong),
        ("/cut", good[..good.len() - 3].to_vec()),
        // As some servers' scripts do it, and browsers forgive it.
        ("/behind", [&good[..], b"\n<!-- made in 3 ms -->"].concat()),
        // Harm comes late.
        ("/late", [gzip(&page(400_000)), bomb(64 << 20)].concat()),
        ("/good", good),
    ];
    let server = Server::answering(move |request: &Request| {
        let body = &bodies.iter().find(|(target, _)| *target == request.target).unwrap().1;
        in_chunks("Content-Encoding: gzip\r\n", body, 10_000)
    });
    let terse = counted("decompression response on", &server);
    for (target, status, logged) in [
        ("/bomb", 502, "<502 PH - ratio>"),
        ("/format", 502, "<502 PH - bad-format>"),
        ("/wrong", 502, "<502 PH - bad-checksum>"),
        ("/cut", 502, "<502 PH - truncated>"),
        ("/behind", 200, "<200 -- - ->"),
        ("/good", 200, "<200 -- - ->"),
    ] {
        let response = terse.client().get(target, &[]);
        assert_eq!(response.status, status, "{target}");
        if status == 200 {
            assert!(response.body == page(3000), "{target}");
        }
        until(logged, || terse.stdout().contains(logged).then_some(()));
    }
    // The head has gone: the body breaks off, and cannot be taken for a whole one.
    let mut client = terse.client();
    client.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let rest = client.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n") && rest.len() > 300_000, "{}", rest.len());
    until("its line", || terse.stdout().contains("<200 PD - ratio>").then_some(()));
    counters(&terse, "response", "7 ");
    let counted = terse.command("show decompression web");
    let line = counted.lines().find(|line| line.starts_with("web frontend response")).unwrap();
    assert!(line.ends_with(" 2 3 -"), "{line}");
    terse.end();
}

/// A client that does not read holds the server up, not our memory.
#[test]
fn slow_clients_are_waited_for() {
    let coded = bomb(64 << 20);
    let server = Server::answering(move |_| with_length("Content-Encoding: gzip\r\n", &coded));
    let terse = counted("decompression response on\n decompression max-ratio 0", &server);
    let mut clients: Vec<Client> = (0..20).map(|_| terse.client()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head().status, 200);
        assert!(client.chunk().unwrap().iter().all(|byte| *byte == 0));
    }
    let used = terse.info("PoolUsed_bytes");
    assert!(used > 0 && used < 20 * 400_000, "{used}");
    drop(clients);
    counters(&terse, "response", "20 ");
    until("memory to come back", || (terse.info("PoolUsed_bytes") < 20 * 40 * 1024).then_some(()));
    terse.end();
}
