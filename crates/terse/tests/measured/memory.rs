//! The memory of compressed bodies, conditions and levels of compression, on real connections.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::client::{Client, Response};
use support::gzip::gunzip;
use support::origin::{Origin, Request};
use support::proxy::DEFAULTS;
use support::{Terse, column_of, until};

/// A server whose responses depend on the path. `/<letter>...` is a body of that letter's text. With `chunked` in the path it has
/// no length; `private`, `no-store` and `cookie` are one user's own; `other` begins with another word. `slow` pauses in the middle,
/// `soon` for a moment there, and `early` for a moment after the first bytes.
fn origin() -> Origin {
    Origin::start(answer)
}

fn answer(request: &Request, stream: &mut TcpStream) {
    let path = request.line.split(' ').nth(1).unwrap_or_default();
    let body = body(path);
    let mut head = String::from("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"tag\"\r\n");
    for (word, field) in
        [("private", "Cache-Control: max-age=5, private"), ("no-store", "Cache-Control: no-store"), ("cookie", "Set-Cookie: a=b")]
    {
        if path.contains(word) {
            head += &format!("{field}\r\n");
        }
    }
    let chunked = path.contains("chunked");
    head += &if chunked { "Transfer-Encoding: chunked\r\n\r\n".into() } else { format!("Content-Length: {}\r\n\r\n", body.len()) };
    if request.line.starts_with("HEAD") {
        let _ = stream.write_all(head.as_bytes());
        return;
    }
    let mut message = head.into_bytes();
    let (first, rest) = body.split_at(if path.contains("early") { 2_000 } else { 20_000 });
    for (i, piece) in std::iter::once(first).chain(rest.chunks(20_000)).enumerate() {
        match chunked {
            true => message.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()),
            false => message.extend(piece),
        }
        if path.contains("slow") {
            // Long enough for the proxy to see that nothing comes.
            let _ = stream.write_all(&std::mem::take(&mut message));
            std::thread::park_timeout(Duration::from_millis(50));
        }
        if i == 0 && (path.contains("early") || path.contains("soon")) {
            let _ = stream.write_all(&std::mem::take(&mut message));
            let sent = Instant::now();
            stream.set_nodelay(true).unwrap();
            while sent.elapsed() < Duration::from_micros(1200) {
                std::thread::yield_now();
            }
        }
    }
    if chunked {
        message.extend(b"0\r\nX-Trailer: yes\r\n\r\n");
    }
    // In one piece: a pause of half a millisecond would make a stream of it.
    let _ = stream.write_all(&message);
}

fn body(path: &str) -> Vec<u8> {
    let letter = path.as_bytes().get(1).copied().unwrap_or(b'-') as char;
    let line = |i: u32| format!("{letter}{i} and {} of {};\n", i.wrapping_mul(2_654_435_761) >> 22, i % 13).into_bytes();
    (0..).flat_map(line).take(50_000).collect()
}

/// A process with `web` in front of a backend, whose log has the actions of the memory on each response.
fn terse(lines: &str, backends: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stdout format raw local0\n\
         frontend web\n bind fd@${{web}}\n log-format \"%HU %[res.comp_memory] %[res.comp_level] <%[res.comp_reason]>\"\n \
         default_backend one\n{lines}\n{backends}\n"
    );
    Terse::with(&text).listen("web").listen("cli").start()
}

fn one(origin: &Origin, lines: &str) -> String {
    format!("backend one\n server s {}\n{lines}", origin.address())
}

/// Requests a path; returns the response, which must be the body, and the log's line.
fn ask(terse: &Terse, client: &mut Client, path: &str, fields: &[(&str, &str)]) -> (Response, String) {
    let before = logged(terse, path).len();
    let response = client.get(path, &[&[("Accept-Encoding", "gzip")], fields].concat());
    match response.field("content-encoding") {
        Some("gzip") => assert!(gunzip(&response.body) == body(path), "{path}: other bytes"),
        None => assert!(response.body == body(path), "{path}: other bytes"),
        other => panic!("{other:?}"),
    }
    let said = until("a log line", || logged(terse, path).get(before).cloned());
    (response, said)
}

/// Returns the log's lines for all requests for a path.
fn logged(terse: &Terse, path: &str) -> Vec<String> {
    terse.stdout().lines().filter_map(|line| line.strip_prefix(path)?.strip_prefix(' ').map(String::from)).collect()
}

fn recalls(terse: &Terse, path: &str, fields: &[(&str, &str)], times: usize) -> Vec<String> {
    let mut client = terse.client();
    let mut said = (0..times).map(|_| ask(terse, &mut client, path, fields).1);
    said.by_ref().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn what_comes_again_is_not_compressed_again() {
    let origin = origin();
    let terse = terse("compression algo gzip\n", &one(&origin, ""));
    let mut client = terse.client();
    let mut heads = Vec::new();
    for path in ["/a", "/a", "/a?once=more", "/b-chunked", "/b-chunked", "/b", "/b-chunked"] {
        let (mut response, said) = ask(&terse, &mut client, path, &[]);
        response.body.clear();
        assert_eq!(said.split(' ').nth(1), Some("6"), "{said}");
        heads.push((response, said.split(' ').next().unwrap().to_owned()));
    }
    let words: Vec<_> = heads.iter().map(|(_, word)| word.as_str()).collect();
    assert_eq!(words, ["new", "kept", "hit", "new", "kept", "hit", "hit"], "by bytes alone, whatever their path and framing");
    for (pair, what) in [((1, 2), "with a length"), ((4, 6), "without")] {
        assert_eq!(heads[pair.0].0.fields, heads[pair.1].0.fields, "{what}");
        assert_eq!(heads[pair.0].0.trailers, heads[pair.1].0.trailers);
    }
    assert_eq!(heads[6].0.trailers, [("X-Trailer".to_owned(), "yes".to_owned())]);
    assert_eq!(heads[2].0.field("etag"), Some("W/\"tag;terse=gzip\""));

    client.send("HEAD /a HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n");
    let head = client.response("HEAD");
    assert_eq!((head.field("content-length"), head.field("content-encoding")), (None, Some("gzip")));
    until("its line", || logged(&terse, "/a").into_iter().find(|line| line.contains("<head>")));
    let said = terse.command("show compression");
    for (column, count) in [("bodies", "2"), ("hits", "3"), ("misses", "4"), ("admitted", "2"), ("refused", "0"), ("evicted", "0")]
    {
        assert_eq!(column_of(&said, "memory", "common", column), count, "{column}: {said}");
    }
    assert!(said.contains(" hit:3,new:2,kept:2"), "{said}");
    assert!(terse.command("clear compression memory").contains("bytes cleared"));
    assert_eq!(recalls(&terse, "/a", &[], 2), ["kept", "hit"]);
    terse.end();
}

#[test]
fn what_is_one_users_own_goes_past_it() {
    let origin = origin();
    let cookies = " cookie SERVER insert\n";
    let process = terse("compression algo gzip\n", &format!("{} cookie c\n{cookies}", one(&origin, "").trim_end()));
    for path in ["/a-private", "/a-no-store", "/a-cookie"] {
        assert_eq!(recalls(&process, path, &[], 3), ["private"; 3], "{path}");
    }
    assert_eq!(recalls(&process, "/a", &[("Authorization", "Basic YTpi")], 3), ["private"; 3]);
    let mut client = process.client();
    let (response, said) = ask(&process, &mut client, "/a", &[]);
    assert!(response.field("set-cookie").unwrap().starts_with("SERVER="));
    assert!(said.starts_with("new "), "a cookie of the proxy's own says nothing about the body: {said}");
    process.end();

    let process = terse("compression algo gzip\n http-response del-header Set-Cookie\n", &one(&origin, ""));
    assert_eq!(recalls(&process, "/a-cookie", &[], 2), ["private"; 2], "the body is what it was");
    process.end();

    let process = terse("compression algo gzip\n", &one(&origin, "compression memory 1m shared\n"));
    assert_eq!(recalls(&process, "/a-private", &[("Authorization", "Basic YTpi")], 3), ["new", "kept", "hit"]);
    process.end();
}

#[test]
fn it_can_be_off_or_elsewhere() {
    let origin = origin();
    for (lines, own) in [
        ("compression algo gzip\ncompression memory off\n", ""),
        ("compression algo gzip\n", "compression memory off\n"),
        ("compression algo gzip\ncompression memory 1m\n", "compression memory off\n"),
    ] {
        let terse = terse(lines, &one(&origin, own));
        assert_eq!(recalls(&terse, "/a", &[], 3), ["off"; 3]);
        terse.end();
    }
    let text = format!("global\n tune.comp.memory 0\n{}", one(&origin, ""));
    let none = terse("compression algo gzip\n", &text);
    assert_eq!(recalls(&none, "/a", &[], 2), ["off"; 2]);
    none.end();
}

#[test]
fn backends_do_not_see_each_others() {
    let (origin, other) = (origin(), self::origin());
    let lines = "compression algo gzip\n use_backend two if { path_end /two }\n";
    let terse = terse(lines, &format!("{}backend two\n server s {}\n", one(&origin, ""), other.address()));
    assert_eq!(recalls(&terse, "/a", &[], 3), ["new", "kept", "hit"]);
    assert_eq!(recalls(&terse, "/a/two", &[], 3), ["new", "kept", "hit"]);
    terse.end();
}

#[test]
fn a_body_that_pauses_is_streamed() {
    let origin = origin();
    let terse = terse("compression algo gzip\n", &one(&origin, ""));
    assert_eq!(recalls(&terse, "/a-chunked-slow", &[], 2), ["stream"; 2]);
    assert_eq!(recalls(&terse, "/a-chunked", &[], 2), ["new", "kept"]);
    terse.end();
    let terse = self::terse("compression algo gzip\n", &one(&origin, "compression collect 49999\n"));
    assert_eq!(recalls(&terse, "/a", &[], 2), ["stream"; 2]);
    terse.end();
}

/// A server that has sent much of a body has more of it at hand. A server that has sent little may have an event, or a page to
/// compute.
#[test]
fn a_moment_after_much_of_a_body_is_waited_for() {
    const TIMES: usize = 21;
    let origin = origin();
    let terse = terse("compression algo gzip\n", &one(&origin, ""));
    for (path, streams) in [("/a-chunked-soon", false), ("/a-chunked-early", true)] {
        // Either side may be kept from its processor for longer than such a moment, and so may be most of a batch.
        let as_expected = |_| {
            let recalled = recalls(&terse, path, &[], TIMES);
            let streamed = recalled.iter().filter(|word| *word == "stream").count();
            println!("{path}: {streamed} of {TIMES} are streams");
            (streamed > TIMES / 2) == streams
        };
        assert!((0..5).any(as_expected), "{path}");
    }
    terse.end();
}

#[test]
fn other_bytes_are_another_body_and_codings_are_told_apart() {
    let origin = origin();
    let terse = terse("compression algo gzip deflate\n", &one(&origin, ""));
    let mut client = terse.client();
    assert_eq!(recalls(&terse, "/a", &[], 3), ["new", "kept", "hit"]);
    assert_eq!(recalls(&terse, "/b", &[], 2), ["new", "kept"]);
    let response = client.get("/a", &[("Accept-Encoding", "deflate")]);
    assert_eq!(response.field("content-encoding"), Some("deflate"));
    until("its line", || logged(&terse, "/a").get(3).filter(|line| line.starts_with("kept ")).cloned());
    assert_eq!(recalls(&terse, "/a", &[], 1), ["hit"]);
    terse.end();
}

#[test]
fn what_the_server_sends_now_counts() {
    let release = Arc::new(AtomicUsize::new(0));
    let current = release.clone();
    let origin = Origin::start(move |_, stream| {
        let body = body(["/old", "/new"][current.load(Relaxed) % 2]);
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(&[head.as_bytes(), &body].concat());
    });
    let terse = terse("compression algo gzip\n", &one(&origin, ""));
    let mut client = terse.client();
    let mut says = || gunzip(&client.get("/page", &[("Accept-Encoding", "gzip")]).body);
    for _ in 0..4 {
        assert!(says() == body("/old"));
    }
    release.store(1, Relaxed);
    for _ in 0..4 {
        assert!(says() == body("/new"), "nothing is stale");
    }
    release.store(2, Relaxed);
    assert!(says() == body("/old"));
    let words = ["new", "kept", "hit", "hit", "new", "kept", "hit", "hit", "hit"];
    let lines = until("the log", || Some(logged(&terse, "/page")).filter(|lines| lines.len() == words.len()));
    let said: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(said, words);
    terse.end();
}

#[test]
fn conditions_decide() {
    let origin = origin();
    let terse = terse(
        "compression algo gzip\n compression unless { path_beg /x }\n http-response set-header X-Raw 1 if { src 127.0.0.2 }\n",
        &one(
            &origin,
            "acl typed res.hdr(Content-Type) -m beg text/\n compression if typed !{ path_beg /y }\n compression unless { res.hdr(ETag) nix }\n",
        ),
    );
    let mut client = terse.client();
    for (path, condition) in [("/a", false), ("/x", true), ("/y", true), ("/z", false)] {
        let (response, said) = ask(&terse, &mut client, path, &[]);
        assert_eq!(response.field("content-encoding").is_none(), condition, "{path}: {said}");
        assert_eq!(said.contains("<condition>"), condition, "{path}: {said}");
        assert_eq!(response.field("vary").is_none(), condition, "it is plain for everybody");
        assert_eq!(response.field("etag"), Some(if condition { "\"tag\"" } else { "W/\"tag;terse=gzip\"" }));
    }
    let plain = client.get("/x", &[]);
    assert!(plain.field("vary").is_none() && plain.body == body("/x"));
    assert!(client.get("/a", &[]).field("vary").is_some());
    assert!(terse.command("show compression web").contains("condition:3"), "{}", terse.command("show compression web"));
    terse.end();
}

#[test]
fn conditions_of_requests() {
    let origin = Origin::start(|request, stream| {
        let coded = request.field("content-encoding").unwrap_or("none");
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{coded}", coded.len());
    });
    let lines = "compression direction request\n compression algo-req gzip\n compression unless-req { path_beg /raw }\n";
    let terse = terse(lines, &one(&origin, ""));
    for (path, expected) in [("/a", "gzip"), ("/raw", "none")] {
        let mut client = terse.client();
        client.send(format!("PUT {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 2000\r\n\r\n{}", "text ".repeat(400)));
        assert_eq!(client.response("PUT").text(), expected, "{path}");
    }
    terse.end();
}

#[test]
fn levels_are_those_of_the_configuration() {
    let origin = origin();
    for (global, lines, levels) in [
        ("tune.comp.maxlevel 3", "", 3..=3),
        ("tune.comp.maxlevel 3", "compression level gzip 9", 3..=3),
        ("tune.comp.maxlevel 3", "compression level auto", 1..=3),
        ("tune.comp.maxlevel 9", "", 9..=9),
        ("", "compression level auto", 4..=9),
    ] {
        let terse = terse(&format!("compression algo gzip\n{lines}\n"), &format!("global\n {global}\n{}", one(&origin, "")));
        let (_, said) = ask(&terse, &mut terse.client(), "/a", &[]);
        let level: u8 = said.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(levels.contains(&level), "{global} {lines}: {said}");
        terse.end();
    }
}

#[test]
fn zstd_and_brotli_have_levels_of_their_own() {
    let origin = origin();
    let mut lengths = Vec::new();
    for (global, lines, coding, level) in [
        ("", "", "zstd", "6"),
        ("", "", "br", "6"),
        ("tune.comp.maxlevel 9", "", "zstd", "6"),
        ("tune.comp.maxlevel 9", "", "br", "6"),
        ("tune.comp.maxlevel 1", "", "br", "1"),
        ("", "compression level zstd 15", "zstd", "15"),
        ("", "compression level br 0", "br", "0"),
        ("tune.comp.maxlevel 3", "compression level zstd 15", "zstd", "3"),
    ] {
        let terse = terse(&format!("compression algo zstd br\n{lines}\n"), &format!("global\n {global}\n{}", one(&origin, "")));
        let response = terse.client().get("/a", &[("Accept-Encoding", coding)]);
        assert_eq!(response.field("content-encoding"), Some(coding));
        let said = until("a log line", || logged(&terse, "/a").first().cloned());
        assert_eq!(said.split(' ').nth(1), Some(level), "{global} {lines} {coding}");
        lengths.push((coding, level, response.body.len()));
        terse.end();
    }
    let length = |coding, level| lengths.iter().find(|entry| (entry.0, entry.1) == (coding, level)).unwrap().2;
    assert!(length("zstd", "15") < length("zstd", "6") && length("zstd", "6") < length("zstd", "3"), "{lengths:?}");
    assert!(length("br", "6") < length("br", "1"), "{lengths:?}");
}

#[test]
fn what_is_asked_for_often_is_compressed_harder_while_there_is_time() {
    let _machine = crate::alone();
    let origin = origin();
    let terse = terse("compression algo gzip\n compression level gzip 1\n", &one(&origin, ""));
    let mut client = terse.client();
    let (first, said) = ask(&terse, &mut client, "/a", &[]);
    assert_eq!(said.split(' ').nth(1), Some("1"), "{said}");
    let mut asked = 0;
    let (better, said) = until("a better form", || {
        // The longer it takes, the longer the pauses: the worker must be idle for most of its time.
        asked += 1;
        std::thread::park_timeout(Duration::from_millis(asked.min(50)));
        let (response, said) = ask(&terse, &mut client, "/a", &[]);
        (response.body.len() < first.body.len()).then_some((response, said))
    });
    assert!(gunzip(&better.body) == body("/a"));
    assert!(said.starts_with("hit 10 "), "{said}");
    let shown = terse.command("show compression");
    assert_eq!(column_of(&shown, "memory", "common", "raised"), "1", "{shown}");
    terse.end();
}

#[test]
fn brakes_hold() {
    let origin = origin();
    let terse = terse("compression algo gzip\n", &format!("global\n maxcomprate 1\n{}", one(&origin, "")));
    let mut client = terse.client();
    // 50 KB have gone in, which is above the limit until a second later.
    let (first, _) = ask(&terse, &mut client, "/a", &[]);
    let (second, said) = ask(&terse, &mut client, "/a", &[]);
    assert_eq!((first.field("content-encoding"), second.field("content-encoding")), (Some("gzip"), None));
    assert!(said.contains("<rate-brake>") && second.field("vary").is_some(), "{said}");
    until("the end of the second", || ask(&terse, &mut client, "/a", &[]).0.field("content-encoding").map(String::from));
    assert!(terse.command("show compression web").contains("rate-brake:"));
    terse.end();
}

#[test]
fn a_busy_worker_sends_plain_bytes() {
    let _machine = crate::alone();
    let origin = origin();
    let terse = terse("compression algo gzip\n", &format!("global\n maxcompcpuusage 1\n{}", one(&origin, "")));
    let mut client = terse.client();
    let (first, _) = ask(&terse, &mut client, "/a", &[]);
    assert_eq!(first.field("content-encoding"), Some("gzip"), "it has been idle so far");
    let requests = || (0..20).map(|_| client.get("/a", &[("Accept-Encoding", "gzip")])).last().unwrap();
    let plain = until("a busy second", {
        let mut requests = requests;
        move || Some(requests()).filter(|last| last.field("content-encoding").is_none())
    });
    assert!(plain.body == body("/a") && plain.field("vary").is_some());
    assert!(terse.command("show compression web").contains("cpu-brake:"));
    terse.end();
}
