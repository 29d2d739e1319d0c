//! Servers whose port, or whole address, is the one that the client asked for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use support::client::{Client, get};
use support::proxy::DEFAULTS;
use support::{Terse, free_address, until};

/// A server at 127.0.0.2 that answers with its port and the number of the connection, from 0. It ends with the test.
fn echo(listener: TcpListener) {
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, number) = (stream.unwrap(), accepted.fetch_add(1, SeqCst));
            std::thread::spawn(move || {
                let (mut head, mut bytes) = (Vec::new(), [0; 1024]);
                while let Ok(n @ 1..) = stream.read(&mut bytes) {
                    head.extend_from_slice(&bytes[..n]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        let body = format!("{port} {number}");
                        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                    }
                }
            });
        }
    });
}

/// A listener for terse, and beside it a server whose port is so far from its.
fn pair(offset: i32) -> (TcpListener, u16) {
    until("two free ports", || {
        let front = free_address();
        let port = u16::try_from(i32::from(front.port()) + offset).ok()?;
        let server = TcpListener::bind(SocketAddr::from(([127, 0, 0, 2], port))).ok()?;
        let front = TcpListener::bind(front).ok()?;
        echo(server);
        Some((front, port))
    })
}

/// A process with a proxy at two addresses, whose servers' ports are so far from its; these ports, too.
fn two_addresses(offset: i32, lines: &str) -> (Terse, [u16; 2]) {
    let ((one, port_one), (two, port_two)) = (pair(offset), pair(offset));
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nlisten web\n bind fd@${{one}}\n bind fd@${{two}}\n{lines}\n"
    );
    (Terse::with(&text).listener("one", one).listener("two", two).listen("cli").start(), [port_one, port_two])
}

/// The port of the server that answers at an address.
fn port_behind(terse: &Terse, name: &str) -> String {
    let text = get(terse.address(name), "/").text();
    text.split(' ').next().unwrap().to_owned()
}

/// Each address has its own server, also where idle connections serve any client.
#[test]
fn a_server_without_a_port_has_that_of_each_address() {
    for (offset, lines) in [
        (0, "http-reuse always\n server s 127.0.0.2"),
        (0, "http-reuse always\n server s 127.0.0.2:0"),
        (0, "http-reuse never\n server s 127.0.0.2 source 127.0.0.3"),
        (1, "http-reuse always\n server s 127.0.0.2:+1"),
        (-1, "http-reuse aggressive\n server s 127.0.0.2:-1"),
    ] {
        let (terse, [one, two]) = two_addresses(offset, lines);
        for _ in 0..3 {
            assert_eq!(port_behind(&terse, "one"), one.to_string(), "{lines}");
            assert_eq!(port_behind(&terse, "two"), two.to_string(), "{lines}");
        }
        terse.end();
    }
}

/// The connection to the server is kept, and serves the next request for the same port.
#[test]
fn connections_are_kept_for_the_same_port() {
    let (terse, [one, _]) = two_addresses(0, "http-reuse always\n server s 127.0.0.2");
    let mut client = Client::connect(terse.address("one"));
    for _ in 0..3 {
        assert_eq!(client.get("/", &[]).text(), format!("{one} 0"));
    }
    terse.end();
}

/// The client's destination as rules have changed it counts, request by request on one connection.
#[test]
fn a_server_at_any_address_is_where_rules_say() {
    let (terse, [one, two]) = two_addresses(
        0,
        " http-request set-dst str(127.0.0.2)\n http-request set-dst-port req.hdr(port) if { req.hdr(port) -m found }\n \
         http-response set-header to %[bc_dst]:%[bc_dst_port]\n server s :",
    );
    let mut client = Client::connect(terse.address("one"));
    for (fields, port) in [(vec![], one), (vec![("port", two.to_string())], two), (vec![("port", one.to_string())], one)] {
        let fields: Vec<_> = fields.iter().map(|(name, value): &(&str, String)| (*name, value.as_str())).collect();
        let response = client.get("/", &fields);
        assert_eq!(response.text().split(' ').next(), Some(&*port.to_string()));
        assert_eq!(response.field("to"), Some(&*format!("127.0.0.2:{port}")));
    }
    terse.end();
}

#[test]
fn bytes_follow_their_client_too() {
    let (terse, [one, two]) = two_addresses(0, " mode tcp\n server s 127.0.0.2");
    assert_eq!((port_behind(&terse, "one"), port_behind(&terse, "two")), (one.to_string(), two.to_string()));
    terse.end();
}

/// There is no port 0, and none above 65535: such a server is not there.
#[test]
fn a_port_that_cannot_be_is_a_server_that_is_not_there() {
    let (terse, _) = two_addresses(0, " retries 0\n server s 127.0.0.2:-65535");
    assert_eq!(get(terse.address("one"), "/").status, 503);
    terse.end();
}

#[test]
fn operators_see_and_set_what_follows_the_client() {
    let (terse, [one, two]) = two_addresses(0, " http-reuse always\n server s 127.0.0.2");
    let state = |terse: &Terse| terse.command("show servers state").lines().nth(2).unwrap().to_owned();
    assert_eq!(port_behind(&terse, "two"), two.to_string());
    assert_eq!(state(&terse).split(' ').nth(18), Some("0"));
    let set = |port: &str| terse.command(&format!("set server web/s addr 127.0.0.2 port {port}"));
    assert!(set(&one.to_string()).contains(&format!("port changed from '+0' to '{one}'")));
    assert_eq!((port_behind(&terse, "one"), port_behind(&terse, "two")), (one.to_string(), one.to_string()));
    let between = i32::from(two) - i32::from(one);
    assert!(set(&format!("{between:+}")).contains(&format!("port changed from '{one}' to '{between:+}'")));
    assert_eq!(port_behind(&terse, "one"), two.to_string());
    assert_eq!(state(&terse).split(' ').nth(18), Some(&*(between as u16).to_string()));
    terse.end();
}
