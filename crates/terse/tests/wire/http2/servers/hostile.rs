//! Servers that cost more than they send: each is stopped at a limit, which is counted and logged by its name, and others are served.

use super::super::support::proxy::DEFAULTS;
use super::super::support::{Terse, until};
use super::peer::{Peer, answering};
use terse_http::h2::Code;

/// Kinds of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 99;

/// A head of one field that grows by itself: `:status: 200`, then a reference to a long value, many times (RFC 7541 section 7.3).
fn bomb() -> Vec<u8> {
    let value = [b'x'; 4000];
    // 4000 as an integer of a prefix of seven bits: 127, then 3873 in groups of seven.
    let mut block = vec![0x88, 0x40, 1, b'a', 0x7f, 0xa1, 0x1e];
    block.extend_from_slice(&value);
    block.extend(std::iter::repeat_n(0xbe, 100));
    block
}

/// Behaviour of a server after a request, and the limit or cause that ends its connection.
type Pattern = (&'static str, fn(&mut Peer, u32), &'static str);

const PATTERNS: &[Pattern] = &[
    (
        "continuations",
        |peer, id| {
            peer.frame(HEADERS, 0, id, &[0x88]);
            (0..20).for_each(|_| peer.frame(CONTINUATION, 0, id, b""));
        },
        "continuations",
    ),
    (
        "a long block",
        |peer, id| {
            peer.frame(HEADERS, 0, id, &[0x88]);
            (0..5).for_each(|_| peer.frame(CONTINUATION, 0, id, &[0; 16_000]));
        },
        "header block",
    ),
    ("a bomb of a head", |peer, id| peer.frame(HEADERS, 4, id, &bomb()), "head"),
    ("settings", |peer, _| (0..200).for_each(|_| peer.frame(SETTINGS, 0, 0, b"")), "settings"),
    ("pings", |peer, _| (0..400).for_each(|_| peer.frame(PING, 0, 0, &[0; 8])), "pings"),
    (
        "empty data",
        |peer, id| {
            peer.head(id, 200, &[], false);
            (0..400).for_each(|_| peer.frame(DATA, 0, id, b""));
        },
        "empty data",
    ),
    ("priorities", |peer, id| (0..2000).for_each(|_| peer.frame(PRIORITY, 0, id, &[0, 0, 0, 99, 0])), "priorities"),
    ("unknown frames", |peer, _| (0..2000).for_each(|_| peer.frame(UNKNOWN, 0, 0, b"")), "unknown frames"),
    ("goaways", |peer, id| (0..20).for_each(|_| peer.frame(GOAWAY, 0, 0, &[&id.to_be_bytes()[..], &[0; 4]].concat())), "goaways"),
    (
        "a window that grows too far",
        |peer, _| (0..3).for_each(|_| peer.frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        "WINDOW_UPDATE",
    ),
    ("a window that opens by nothing", |peer, _| peer.frame(WINDOW_UPDATE, 0, 0, &[0; 4]), "WINDOW_UPDATE by 0"),
    ("a push", |peer, id| peer.frame(PUSH_PROMISE, 4, id, &[0, 0, 0, 2, 0x82]), "PUSH_PROMISE"),
    ("data of no stream", |peer, _| peer.frame(DATA, 0, 99, b"x"), "DATA of an idle stream"),
    ("a frame that is too large", |peer, id| peer.frame(DATA, 0, id, &[0; 20_000]), "a frame above MAX_FRAME_SIZE"),
    ("a block that cannot be read", |peer, id| peer.frame(HEADERS, 4, id, &[0xff; 12]), "a header block that cannot be read"),
];

#[test]
fn each_ends_at_its_limit() {
    let server = answering(|peer, id| {
        let path = peer.streams[&id].path();
        match path[1..].parse::<usize>() {
            Ok(number) => {
                PATTERNS[number].1(peer, id);
                peer.ends();
            }
            Err(_) => peer.answer(id, 200, b"good"),
        }
    });
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stderr format raw local0\n retries 0\nfrontend web\n bind fd@${{web}}\n \
         default_backend servers\nbackend servers\n http-reuse always\n timeout server 5s\n server one {} proto h2\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut bystander = terse.client();
    for (number, (name, _, cause)) in PATTERNS.iter().enumerate() {
        let before = terse.info("Http2ServerFailures");
        let mut client = terse.client();
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"));
        let head = client.head();
        if head.status == 200 {
            assert!(!client.rest().ends_with(b"0\r\n\r\n"), "{name}: an answer that looks whole");
        } else {
            assert_eq!(head.status, 502, "{name}");
        }
        until(name, || (terse.info("Http2ServerFailures") == before + 1).then_some(()));
        let line = format!("Server servers/one: HTTP/2 connection closed: {cause}.");
        until(name, || terse.stderr().contains(&line).then_some(()));
        assert_eq!(bystander.get("/good", &[]).text(), "good", "{name}");
    }
    assert!(terse.info("Http2ServerLimits") >= 9);
    until("the end of the others", || (terse.info("Http2ServerCurrConnections") <= 1).then_some(()));
    terse.end();
}

/// A server that answers and does not end its response is waited for as long as `timeout server` allows.
#[test]
fn an_answer_without_an_end_has_the_servers_time() {
    let server = answering(|peer, id| match peer.streams[&id].path().as_str() {
        "/silent" => {}
        "/half" => {
            peer.head(id, 200, &[], false);
            peer.data(id, b"abc", false);
        }
        _ => peer.answer(id, 200, b"good"),
    });
    let terse = super::super::support::proxy::listen(&format!(
        "http-reuse always\n timeout server 300ms\n retries 0\n server one {} proto h2",
        server.address()
    ));
    assert_eq!(terse.client().get("/silent", &[]).status, 504);
    let mut client = terse.client();
    client.send("GET /half HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(!client.rest().ends_with(b"0\r\n\r\n"), "an answer that looks whole");
    assert_eq!(terse.client().get("/good", &[]).text(), "good");
    assert_eq!(server.accepted(), 1, "the streams were reset, not their connection");
    terse.end();
}

/// A server that refuses by SETTINGS to take any stream costs a few attempts, not a connection after the other.
#[test]
fn a_server_without_streams_is_left() {
    let limits = terse_http::h2::Limits { concurrent_streams: 0, ..terse_http::h2::Limits::default() };
    let server = super::peer::scripted(limits, |peer| {
        peer.ends();
    });
    let terse = super::super::support::proxy::listen(&format!(
        "http-reuse always\n timeout connect 1s\n retries 1\n server one {} proto h2",
        server.address()
    ));
    for _ in 0..3 {
        let status = terse.client().get("/", &[]).status;
        assert!(matches!(status, 502 | 503), "{status}");
    }
    assert!(server.accepted() <= 30, "{} connections", server.accepted());
    terse.end();
}

/// Resets of streams that are over, and of many of a client's: the connection goes on as long as it keeps within its limits.
#[test]
fn resets_of_what_is_over_are_no_fault() {
    let server = answering(|peer, id| {
        peer.answer(id, 200, b"good");
        peer.reset(id, Code::NO_ERROR);
    });
    let terse = super::super::support::proxy::listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    let mut client = terse.client();
    for _ in 0..50 {
        assert_eq!(client.get("/", &[]).text(), "good");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}
