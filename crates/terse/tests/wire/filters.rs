//! Filters: limits of bandwidth, and traces that forward what they like.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::net::Shutdown;
use std::time::{Duration, Instant};
use support::gzip::gunzip;
use support::proxy::{DEFAULTS, listen};
use support::random::Random;
use support::server::Server;
use support::{Terse, until};

const SIZE: usize = 48 * 1024;

/// Text that compresses, but not to nothing.
fn body() -> Vec<u8> {
    let mut random = Random::new(3);
    (0..SIZE).map(|_| b"abcdefgh"[random.below(8)]).collect()
}

/// Runs something that may go at 96 KB/s and takes half a second, in a machine that is busy too.
fn limited<T>(what: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = what();
    let took = start.elapsed();
    assert!(took > Duration::from_millis(400), "it took {took:?}");
    result
}

fn answering() -> Server {
    Server::answering(|request| {
        let body = match request.method.as_str() {
            "POST" if request.body == body() => b"got it".to_vec(),
            "POST" => b"something else".to_vec(),
            _ => body(),
        };
        [format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes(), body]
            .concat()
    })
}

#[test]
fn responses_flow_as_slowly_as_they_shall() {
    let server = answering();
    for rule in [
        "filter bwlim-out slow default-limit 96k default-period 1s\n http-request set-bandwidth-limit slow",
        "filter bwlim-out slow default-limit 1g default-period 1s\n http-response set-bandwidth-limit slow limit 96k",
        "filter bwlim-out slow default-limit 96k default-period 1h\n http-request set-bandwidth-limit slow period int(1000)",
        "filter bwlim-out slow default-limit 1g default-period 1s\n filter bwlim-out other default-limit 1m default-period 1s\n \
         http-request set-bandwidth-limit slow limit int(96),mul(1024) if TRUE\n http-response set-bandwidth-limit other",
    ] {
        let terse = listen(&format!("{rule}\n server s {}", server.address()));
        let mut client = terse.client();
        for _ in 0..2 {
            let response = limited(|| client.get("/", &[]));
            assert!(response.body == body(), "{rule}");
        }
        terse.end();
    }
}

/// Two clients with one key have one limit; a third with another has its own.
#[test]
fn streams_share_a_limit() {
    let server = answering();
    let rule = "stick-table type string len 16 size 100 expire 1m store bytes_out_rate(1s)\n \
                filter bwlim-out shared limit 96k key req.hdr(user)\n http-request set-bandwidth-limit shared";
    let terse = listen(&format!("{rule}\n server s {}", server.address()));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let fetch = |user: &'static str| {
            let mut client = terse.client();
            scope.spawn(move || (0..2).for_each(|_| assert!(client.get("/", &[("user", user)]).body == body())))
        };
        let clients = [fetch("a"), fetch("a"), fetch("b")];
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    // Four bodies of 48 KB at 96 KB/s; the allowance of the first second goes at once.
    assert!(start.elapsed() > Duration::from_millis(900), "{:?}", start.elapsed());
    terse.end();
}

/// A limit before the coder counts the bytes that come, a limit after it those that leave.
#[test]
fn the_coder_has_two_sides() {
    let server = answering();
    let start = |filters: &str| {
        let rule = "compression algo gzip\n compression direction response\n http-request set-bandwidth-limit slow";
        listen(&format!("{filters}\n {rule}\n server s {}", server.address()))
    };
    let limit = "filter bwlim-out slow default-limit 96k default-period 1s";
    let terse = start(&format!("{limit}\n filter compression"));
    let response = limited(|| terse.client().get("/", &[("Accept-Encoding", "gzip")]));
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert!(gunzip(&response.body) == body());
    let plain = response.body.len();
    terse.end();
    assert!(plain < SIZE / 2, "{plain}");
    let behind = "filter compression\n filter bwlim-out slow default-limit 32k default-period 1s";
    let terse = start(behind);
    let start = Instant::now();
    let response = terse.client().get("/", &[("Accept-Encoding", "gzip")]);
    assert!(gunzip(&response.body) == body());
    // It is less than half of the body that has to pass.
    let least = Duration::from_millis((response.body.len() as u64 * 1000 / 32 / 1024).saturating_sub(150));
    assert!(start.elapsed() > least, "{:?} is less than {least:?}", start.elapsed());
    terse.end();
}

#[test]
fn requests_and_tunnels_too() {
    let server = answering();
    let rule = "filter bwlim-in slow default-limit 96k default-period 1s\n http-request set-bandwidth-limit slow";
    let terse = listen(&format!("{rule}\n server s {}", server.address()));
    let mut client = terse.client();
    let upload = [format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n").into_bytes(), body()].concat();
    let response = limited(|| {
        client.send(&upload);
        client.response("POST")
    });
    assert_eq!(response.text(), "got it");
    terse.end();

    let echo = Server::start(|connection| {
        let all = connection.rest();
        connection.send(all);
        connection.finish();
    });
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n mode tcp\n bind fd@${{web}}\n \
         filter bwlim-out slow default-limit 96k default-period 1s\n tcp-request content set-bandwidth-limit slow\n server s {}\n",
        echo.address()
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = terse.client();
    client.send(body());
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert!(limited(|| client.rest()) == body());
    terse.end();
}

/// Whatever a trace forwards at a time, bodies arrive as they are.
#[test]
fn traces_forward_in_pieces() {
    let server = answering();
    let filters = "filter trace name BEFORE random-forwarding quiet\n filter compression\n filter trace name AFTER random-forwarding\n \
                   compression algo gzip";
    let terse = listen(&format!("{filters}\n server s {}", server.address()));
    let mut client = terse.client();
    let response = client.get("/", &[("Accept-Encoding", "gzip")]);
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert!(gunzip(&response.body) == body());
    assert!(client.get("/", &[]).body == body());
    client.send([format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n").into_bytes(), body()].concat());
    assert_eq!(client.response("POST").text(), "got it");
    until("lines of the trace", || {
        let said = terse.stderr();
        let lines = ["[AFTER] stream=", " response offset=0 forward=", " request offset=0 forward="];
        lines.iter().all(|line| said.contains(line)).then_some(())
    });
    assert!(!terse.stderr().contains("BEFORE"));
    terse.end();
}

#[test]
fn wrong_lines_are_told() {
    for (lines, said) in [
        ("filter bwlim-ou x default-limit 1 default-period 1s", "unknown filter 'bwlim-ou'"),
        ("filter lua x", "filters in Lua are not built"),
        ("filter spoe x", "SPOE is not built"),
        ("filter bwlim-in x default-limit 1k", "'default-period'"),
        ("filter bwlim-in x limit 1k key src table none", "none"),
        ("filter bwlim-out x limit 1k key src\n stick-table type ip size 10 store gpc0", "bytes_out_rate"),
        ("filter bwlim-out x limit 1k default-period 1s", "either"),
        ("filter bwlim-in x default-limit 0 default-period 1s", "more than 0"),
        ("filter bwlim-in x default-limt 1 default-period 1s", "did you mean 'default-limit'?"),
        ("filter trace nane x", "did you mean 'name'?"),
        ("http-request set-bandwidth-limit none", "declares the filter 'none'"),
        (
            "filter bwlim-in x default-limit 1 default-period 1s\n filter bwlim-out x default-limit 1 default-period 1s",
            "has the name 'x'",
        ),
    ] {
        let text = format!("{DEFAULTS}\nlisten web\n bind 127.0.0.1:0\n {lines}\n");
        let ended = Terse::with(&text).arg(&["-c"]).run();
        assert_eq!(ended.code(), Some(1), "{lines}");
        assert!(ended.stderr.contains(said), "{lines}: {}", ended.stderr);
    }
}
