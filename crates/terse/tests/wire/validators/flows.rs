//! Flows of clients that keep their responses, with a server that compares tags byte by byte.

use super::support::client::{Client, Response};
use super::support::gzip::gunzip;
use super::support::proxy::listen;
use super::support::server::{Request, Server};
use super::support::until;
use std::sync::{Arc, Mutex};

const DATE: &str = "Wed, 01 Jan 2025 00:00:00 GMT";

fn text() -> Vec<u8> {
    (0..300).flat_map(|line| format!("line {line} of a text that is long enough\n").into_bytes()).collect()
}

/// `/strong`, `/weak` and `/dated` are texts, `/film` and `/still` are none that is compressed, `/short` is too short. Methods that change
/// something give another tag.
fn server() -> Server {
    let version = Arc::new(Mutex::new(1));
    Server::answering(move |request| {
        let mut version = version.lock().unwrap();
        let tag = match request.target.as_str() {
            "/weak" | "/still" => format!("W/\"{version}\""),
            _ => format!("\"{version}\""),
        };
        let bracketed = request.field("if").and_then(|list| list.strip_prefix("([")?.strip_suffix("])"));
        if request.field("if-match").or(bracketed).is_some_and(|held| held != tag) {
            return format!("HTTP/1.1 412 Precondition Failed\r\nETag: {tag}\r\nContent-Length: 0\r\n\r\n").into_bytes();
        }
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            *version += 1;
            let tag = tag.replace(&(*version - 1).to_string(), &version.to_string());
            let said = "{\"ok\": true}".repeat(60);
            let head = format!("ETag: {tag}\r\nContent-Type: application/json\r\nContent-Length: {}", said.len());
            return format!("HTTP/1.1 201 Created\r\n{head}\r\n\r\n{said}").into_bytes();
        }
        if request.field("if-none-match").is_some_and(|held| held.split(", ").any(|held| held == tag)) {
            return format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n").into_bytes();
        }
        answer(request, &tag)
    })
}

fn answer(request: &Request, tag: &str) -> Vec<u8> {
    if request.target == "/untyped" {
        let from = request.field("range").is_some().then_some(700);
        let (status, body) = from.map_or(("200 OK", text()), |from| ("206 Partial Content", text()[from..].to_vec()));
        let range =
            from.map(|from| format!("Content-Range: bytes {from}-{}/{}\r\n", text().len() - 1, text().len())).unwrap_or_default();
        let head = format!("HTTP/1.1 {status}\r\nETag: {tag}\r\nLast-Modified: {DATE}\r\nAccept-Ranges: bytes\r\n{range}");
        return [head.as_bytes(), format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
    }
    let kind = if matches!(request.target.as_str(), "/film" | "/still") { "video/mp4" } else { "text/plain" };
    let whole = if request.target == "/short" { text()[..800].to_vec() } else { text() };
    let names =
        if request.target == "/dated" { format!("Last-Modified: {DATE}") } else { format!("ETag: {tag}\r\nLast-Modified: {DATE}") };
    let mut head = format!("{names}\r\nContent-Type: {kind}\r\nAccept-Ranges: bytes\r\n");
    let from = request.field("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let body = &whole[from.unwrap_or(0).min(whole.len())..];
    let status = if let Some(from) = from {
        head += &format!("Content-Range: bytes {from}-{}/{}\r\n", whole.len() - 1, whole.len());
        "206 Partial Content"
    } else {
        "200 OK"
    };
    let head = format!("HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), if request.method == "HEAD" { b"" } else { body }].concat()
}

const LINES: &str = "compression type text/ application/json\n compression minsize-res 500";

fn ask(client: &mut Client, method: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{lines}\r\n"));
    client.response(method)
}

/// Every client revalidates the response that it has, whatever the operator's list, the server's tags, and the codings that it
/// takes.
#[test]
fn everybody_is_told_304() {
    let server = server();
    for algo in ["gzip", "br gzip", "zstd br deflate gzip"] {
        let terse = listen(&format!("compression algo {algo}\n {LINES}\n server one {}", server.address()));
        let mut client = terse.client();
        for path in ["/strong", "/weak", "/film", "/still"] {
            for accepted in [None, Some("gzip"), Some("gzip, deflate"), Some("gzip, br"), Some("identity")] {
                let fields: Vec<_> = accepted.map(|value| ("Accept-Encoding", value)).into_iter().collect();
                let first = client.get(path, &fields);
                let tag = first.field("etag").unwrap().to_owned();
                for method in ["GET", "HEAD"] {
                    let again = ask(&mut client, method, path, &[&fields[..], &[("If-None-Match", &tag)]].concat());
                    assert_eq!((again.status, again.field("etag")), (304, Some(&*tag)), "{algo} | {path} | {accepted:?}");
                    if matches!(path, "/strong" | "/weak") {
                        assert_eq!(again.field("vary"), first.field("vary"), "{algo} | {path} | {accepted:?}");
                    }
                    assert_eq!(again.field("content-length"), None);
                }
                // The same by a client that changes its mind, for a response that it cannot use.
                if first.field("content-encoding").is_some() {
                    let other = client.get(path, &[("Accept-Encoding", "identity"), ("If-None-Match", &tag)]);
                    assert_eq!((other.status, other.field("content-encoding")), (200, None), "{algo} | {path}");
                }
            }
        }
        drop(client);
        terse.end();
    }
}

/// The tag of an answer to a method that changes something, and any that was given out, guard the next change.
#[test]
fn no_update_is_lost_and_none_is_refused() {
    let server = server();
    let gzip = ("Accept-Encoding", "gzip");
    for algo in ["gzip", "br gzip"] {
        let terse = listen(&format!("compression algo {algo}\n {LINES}\n server one {}", server.address()));
        let mut client = terse.client();
        for path in ["/strong", "/weak"] {
            for method in ["PUT", "POST", "PATCH", "DELETE"] {
                let held = client.get(path, &[gzip]).field("etag").unwrap().to_owned();
                assert!(held.contains(";terse="), "{held}");
                let made = ask(&mut client, method, path, &[gzip, ("If-Match", &held)]);
                assert_eq!((made.status, made.field("content-encoding")), (201, Some("gzip")), "{path} {method} {held}");
                let tag = made.field("etag").unwrap().to_owned();
                assert!(!tag.contains("terse") && tag.starts_with("W/") == (path == "/weak"), "{tag}");
                assert_eq!(ask(&mut client, method, path, &[gzip, ("If-Match", &tag)]).status, 201);
                let held = client.get(path, &[gzip]).field("etag").unwrap().to_owned();
                assert_eq!(ask(&mut client, method, path, &[gzip, ("If", &format!("([{held}])"))]).status, 201, "WebDAV's form");
                assert_eq!(ask(&mut client, method, path, &[gzip, ("If-Match", &held)]).status, 412, "it has changed");
            }
        }
        drop(client);
        terse.end();
    }
}

/// Parts go to every client that asks for a part of a resource that is compressed for no client. If it is compressed for some, the
/// whole goes instead.
#[test]
fn ranges_of_what_is_never_compressed_stay() {
    let server = server();
    let lines = format!("compression algo gzip\n {LINES}\n compression minsize-res 1000\n compression unless {{ path /strong }}");
    let terse = listen(&format!("{lines}\n server one {}", server.address()));
    let mut client = terse.client();
    let gzip = ("Accept-Encoding", "gzip, deflate");
    for (path, status) in [("/film", 206), ("/still", 206), ("/short", 206), ("/strong", 206), ("/weak", 200), ("/dated", 200)] {
        for fields in [&[gzip][..], &[("If-Range", DATE)], &[gzip, ("If-Range", DATE)], &[("If-Unmodified-Since", DATE)]] {
            let response = client.get(path, &[fields, &[("Range", "bytes=700-")]].concat());
            assert_eq!(response.status, status, "{path} {fields:?}");
            if status == 206 {
                assert_eq!((response.field("accept-ranges"), response.field("last-modified")), (Some("bytes"), Some(DATE)));
            } else {
                let coded = response.field("content-encoding").is_some();
                let body = if coded { gunzip(&response.body) } else { response.body.clone() };
                assert!(body == text(), "{path} {fields:?}: {} bytes", body.len());
            }
        }
    }
    // A type that is not there is not listed.
    assert_eq!(client.get("/untyped", &[gzip, ("Range", "bytes=700-")]).status, 206);
    // By the tag of a compressed one no part is to be had, by a strong one always.
    let tag = client.get("/weak", &[gzip]).field("etag").unwrap().to_owned();
    assert_eq!(client.get("/weak", &[("Range", "bytes=700-"), ("If-Range", &tag)]).status, 200);
    let before = server.requests().len();
    assert_eq!(client.get("/film", &[gzip, ("Range", "bytes=700-"), ("If-Range", "\"1\"")]).status, 206);
    assert_eq!(server.requests().len(), before + 1);
    drop(client);
    terse.end();
}

#[test]
fn head_has_the_head_of_get() {
    let server = server();
    let terse = listen(&format!("compression algo br gzip\n {LINES}\n server one {}", server.address()));
    let mut client = terse.client();
    for path in ["/strong", "/weak", "/dated", "/film"] {
        for fields in [&[][..], &[("Accept-Encoding", "gzip")], &[("Accept-Encoding", "gzip, br")]] {
            let (get, head) = (client.get(path, fields), ask(&mut client, "HEAD", path, fields));
            for name in ["etag", "vary", "content-encoding", "content-length", "content-type", "accept-ranges", "last-modified"] {
                assert_eq!(head.field(name), get.field(name), "{path} {fields:?} {name}");
            }
        }
    }
    // A rule's HEAD in the place of GET has no body of any coding.
    let rule = listen(&format!(
        "compression algo gzip\n {LINES}\n http-request set-method HEAD if {{ path /strong }}\n server one {}",
        server.address()
    ));
    let response = rule.client().get("/strong", &[("Accept-Encoding", "gzip")]);
    assert_eq!((response.field("content-length"), response.field("content-encoding")), (Some("0"), None));
    drop(client);
    terse.end();
    rule.end();
}

/// A condition on the response is about the 200 of a resource; the head of its part is another.
#[test]
fn conditions_on_responses_do_not_judge_parts() {
    let server = server();
    for (condition, on_weak) in [
        ("if { status 200 }", 200),
        ("unless { status 206 }", 200),
        ("unless { res.hdr(Content-Range) -m found }", 200),
        ("if { path /weak } { status 200 }", 200),
        ("if { path /dated } { status 200 }", 206),
        ("unless { path /weak } or { status 206 }", 206),
    ] {
        let lines = format!("compression algo gzip\n {LINES}\n compression {condition}");
        let terse = listen(&format!("{lines}\n server one {}", server.address()));
        let mut client = terse.client();
        for (path, status) in [("/weak", on_weak), ("/film", 206)] {
            let response = client.get(path, &[("Accept-Encoding", "gzip"), ("Range", "bytes=700-")]);
            assert_eq!(response.status, status, "{condition}: {path}");
        }
        drop(client);
        terse.end();
    }
}

/// `minsize-res` and `minsize-req` hold for bodies in chunks, whatever packets those come in.
#[test]
fn bodies_in_chunks_are_measured() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            let coded = request.field("content-encoding").map_or("plain", |_| "coded").to_owned();
            let mut numbers = request.target[1..].split('/').filter_map(|number| number.parse::<usize>().ok());
            let (Some(size), Some(chunk)) = (numbers.next(), numbers.next()) else { return };
            let head =
                format!("HTTP/1.1 200 OK\r\nX-Upload: {coded}\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
            let mut packets = vec![head];
            packets.extend((0..size).step_by(chunk).map(|at| {
                let length = chunk.min(size - at);
                format!("{length:x}\r\n{}\r\n", "x".repeat(length))
            }));
            packets.push("0\r\n\r\n".into());
            if request.target.ends_with("/one") {
                packets = vec![packets.concat()];
            }
            for packet in packets {
                connection.send(packet);
            }
        }
    });
    for sniff in ["on", "off"] {
        let terse = listen(&format!(
            "compression algo gzip\n compression minsize-res 1000\n compression sniff {sniff}\n compression direction both\n \
             compression algo-req gzip\n compression minsize-req 1000\n server one {}",
            server.address()
        ));
        let mut client = terse.client();
        for (path, coded) in [
            ("/5000/300/some", true),
            ("/1/1/one", false),
            ("/999/999/one", false),
            ("/999/200/one", false),
            ("/1000/1000/one", true),
            ("/5000/300/one", true),
        ] {
            let response = client.get(path, &[("Accept-Encoding", "gzip")]);
            assert_eq!(response.field("content-encoding").is_some(), coded, "{path}, sniff {sniff}");
        }
        // A server that is held up between two packets pauses.
        until("a short body in packets that is left alone", || {
            let response = client.get("/999/200/some", &[("Accept-Encoding", "gzip")]);
            response.field("content-encoding").is_none().then_some(())
        });
        for (size, coded) in [(1, "plain"), (999, "plain"), (1000, "coded")] {
            let body = "y".repeat(size);
            client.send(format!(
                "POST /1/1/one HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n"
            ));
            assert_eq!(client.response("POST").field("x-upload"), Some(coded), "{size}, sniff {sniff}");
        }
        drop(client);
        terse.end();
    }
}
