//! The PROXY protocol: heads from clients, heads to servers, and bytes that are no head at all.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use support::client::Client;
use support::proxy::{DEFAULTS, sections};
use support::random::Random;
use support::server::Server;
use support::{PATIENCE, Terse, is_closed, until};

const TELLS: &str = "
 http-request return status 200 hdr from \"%[src]:%[src_port]\" hdr to \"%[dst]:%[dst_port]\" hdr told \"%[fc_rcvd_proxy]\" \
   hdr tlv \"%[fc_pp_tlv(0xE1)]\" hdr authority \"%[fc_pp_authority]\" hdr id \"%[fc_pp_unique_id]\"";

fn proxy(more: &str) -> Terse {
    let text = format!("global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} accept-proxy\n{TELLS}\n{more}");
    Terse::with(&text).listen("web").start()
}

/// A head of version 2 from 192.0.2.7:4000 to 203.0.113.9:80, with these fields.
fn binary(fields: &[u8]) -> Vec<u8> {
    let addresses = [192, 0, 2, 7, 203, 0, 113, 9, 0x0f, 0xa0, 0, 80];
    let length = (addresses.len() + fields.len()) as u16;
    [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..], &length.to_be_bytes(), &addresses, fields].concat()
}

#[test]
fn clients_are_who_the_head_says() {
    let terse = proxy("");
    let fields = b"\xe1\0\x03one\x02\0\x06a.test\x05\0\x02id";
    for (head, fields) in
        [(b"PROXY TCP4 192.0.2.7 203.0.113.9 4000 80\r\n".to_vec(), ["", "", ""]), (binary(fields), ["one", "a.test", "id"])]
    {
        let mut client = terse.client();
        client.send([&head[..], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
        for _ in 0..2 {
            let response = client.response("GET");
            assert_eq!((response.field("from"), response.field("to")), (Some("192.0.2.7:4000"), Some("203.0.113.9:80")));
            assert_eq!(["tlv", "authority", "id"].map(|name| response.field(name).unwrap_or_default()), fields);
            assert_eq!(response.field("told"), Some("1"));
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        }
    }
    // A proxy's facts about itself are passed over, whatever they are.
    for (start, block) in
        [(b"\x20\x11", &b"\xc0\0\x02\x07\xcb\0\x71\x09\x0f\xa0\0\x50"[..]), (b"\x20\0", b"abcdef"), (b"\x21\x31", &[0; 216])]
    {
        let mut client = terse.client();
        let own = client.stream().local_addr().unwrap();
        let head = [b"\r\n\r\n\0\r\nQUIT\n", &start[..], &(block.len() as u16).to_be_bytes(), block].concat();
        client.send([&head[..], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
        assert_eq!(client.response("GET").field("from"), Some(&*own.to_string()));
    }
    let mut client = terse.client();
    let own = client.stream().local_addr().unwrap();
    client.send("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("GET").field("from"), Some(&*own.to_string()));
    terse.end();
}

/// In pieces of any size, a head is the same head.
#[test]
fn heads_come_in_pieces() {
    let terse = proxy("");
    let mut random = Random::new(7);
    for _ in 0..20 {
        let all = [binary(b"\xe1\0\x03one"), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()].concat();
        let mut client = terse.client();
        let mut rest = &all[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((1 + random.below(9)).min(rest.len()));
            client.send(piece);
            rest = behind;
        }
        assert_eq!(client.response("GET").field("tlv"), Some("one"));
    }
    terse.end();
}

#[test]
fn what_is_no_head_closes_the_connection_and_is_logged() {
    let stats = "listen figures\n bind fd@${figures}\n stats enable\n stats uri /stats\n";
    let logs = " log stderr format raw local0";
    let text = format!("global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} accept-proxy\n{logs}\n{TELLS}\n{stats}");
    let terse = Terse::with(&text).listen("web").listen("figures").start();
    let whole = binary(b"\xe1\0\x03one");
    let wrong: [Vec<u8>; 8] = [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 203.0.113.9 4000 80\n".to_vec(),
        b"PROXY TCP9 192.0.2.7 203.0.113.9 4000 80\r\n".to_vec(),
        [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat(),
        binary(b"\xe1\0\x04one"),
        binary(b"\xe1\0\x02one"),
        binary(b"\x03\0\x04\0\0\0\0"),
        // A head that is longer than any buffer.
        [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff".to_vec(), vec![0; 40_000]].concat(),
    ];
    let mut count = wrong.len();
    for (which, bytes) in wrong.iter().enumerate() {
        let mut client = terse.client();
        // The connection may be closed before all of it is written.
        let _ = std::io::Write::write_all(client.stream(), bytes);
        assert!(is_closed(client.stream(), PATIENCE), "number {which}");
    }
    for end in 0..whole.len() {
        let mut client = terse.client();
        client.send(&whole[..end]);
        client.stream().shutdown(std::net::Shutdown::Write).unwrap();
        assert!(is_closed(client.stream(), PATIENCE), "{end}");
        count += 1;
    }
    until("all of them to be logged", || (terse.stderr().matches("web/1: ").count() == count).then_some(()));
    for (part, times) in [("look like", 1), ("unhandled protocol", 1), ("Connection closed", 1)] {
        assert_eq!(terse.stderr().matches(part).count(), times, "{part}: {}", terse.stderr());
    }
    let figures = Client::connect(terse.address("figures")).get("/stats;csv", &[]).text();
    let web = figures.lines().find(|line| line.starts_with("web,FRONTEND")).unwrap().split(',').nth(12);
    assert_eq!(web, Some("0"), "they are no requests");
    terse.end();
}

#[test]
fn servers_are_told_who_the_client_is() {
    let receiver = proxy("");
    for (words, fields) in [
        ("send-proxy", ["", "", ""]),
        ("send-proxy-v2", ["", "", ""]),
        ("send-proxy-v2 proxy-v2-options crc32c,unique-id set-proxy-v2-tlv-fmt(0xE1) %[path]", ["/one", "", "id-/one"]),
    ] {
        let server = format!("server s {} {words}", receiver.address("web"));
        let terse = sections("unique-id-format id-%[path]\n default_backend be", &format!("backend be\n {server}\n"));
        let mut client = terse.client();
        let own = client.stream().local_addr().unwrap().to_string();
        let to = terse.address("web").to_string();
        for path in ["/one", "/one"] {
            let response = client.get(path, &[]);
            assert_eq!((response.field("from"), response.field("to")), (Some(&*own), Some(&*to)), "{words}");
            assert_eq!(["tlv", "authority", "id"].map(|name| response.field(name).unwrap_or_default()), fields, "{words}");
        }
        // Another client's requests go on another connection.
        let mut other = terse.client();
        let its = other.stream().local_addr().unwrap().to_string();
        assert_eq!(other.get("/one", &[]).field("from"), Some(&*its));
        terse.end();
    }
    receiver.end();
}

#[test]
fn connections_are_kept_for_the_client_that_was_announced() {
    static GONE: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|connection| {
        let line = String::from_utf8(connection.bytes(b"PROXY TCP4 ".len()).unwrap()).unwrap();
        assert_eq!(line, "PROXY TCP4 ");
        while connection.bytes(1).is_some_and(|byte| byte != b"\n") {}
        while connection.head().is_some() {
            connection.send(support::server::ok("x"));
        }
        GONE.fetch_add(1, Relaxed);
    });
    let words = format!("backend be\n http-reuse always\n server s {} send-proxy pool-purge-delay 1h\n", server.address());
    let terse = sections("default_backend be", &words);
    let mut first = terse.client();
    for _ in 0..3 {
        assert_eq!(first.get("/", &[]).text(), "x");
    }
    assert_eq!(server.accepted(), 1);
    assert_eq!(terse.client().get("/", &[]).text(), "x");
    assert_eq!(server.accepted(), 2);
    drop(first);
    // No other client could use them.
    until("both of them to go with their clients", || (GONE.load(Relaxed) == 2).then_some(()));
    terse.end();
}

#[test]
fn bytes_and_checks_are_announced() {
    let server = Server::start(|connection| {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            match connection.bytes(1) {
                Some(byte) => line.extend(byte),
                None => return,
            }
        }
        connection.send([b"you said ", &line[..]].concat());
        connection.finish();
    });
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n mode tcp\n bind fd@${{web}}\n option tcp-check\n tcp-check expect rstring ^you.said.PROXY\n \
         server s {} check inter 10ms rise 1 fall 1 send-proxy\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = terse.client();
    let (own, to) = (client.stream().local_addr().unwrap(), terse.address("web"));
    let line = format!("you said PROXY TCP4 {} {} {} {}\r\n", own.ip(), to.ip(), own.port(), to.port());
    assert_eq!(String::from_utf8(client.rest()).unwrap(), line);
    until("checks", || (server.accepted() > 3).then_some(()));
    assert!(!terse.stderr().contains("DOWN"), "{}", terse.stderr());
    terse.end();
}

#[test]
fn a_rule_may_expect_the_head() {
    let rule = "tcp-request connection expect-proxy layer4 if { src 127.0.0.0/8 }\n tcp-request session set-var(sess.from) src";
    let answer = "http-request return status 200 hdr from %[var(sess.from)]";
    let terse = sections(&format!("{rule}\n{answer}"), "");
    let mut client = terse.client();
    client.send("PROXY TCP6 2001:db8::7 ::1 4000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("GET").field("from"), Some("2001:db8::7"));
    terse.end();
}
