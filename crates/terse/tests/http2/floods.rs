//! Clients that cost more than they send: each is stopped at a limit, which is counted and logged by its name.

use super::client::Client;
use super::support::proxy::DEFAULTS;
use super::support::{Terse, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use terse_http::h2::{Code, Glitch, PREFACE};

/// A frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HEADERS of `GET http://a/`; `flags` beside END_HEADERS.
fn get(stream: u32, flags: u8) -> Vec<u8> {
    frame(1, 4 | flags, stream, b"\x82\x86\x84\x41\x01a")
}

fn ids() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

const END: u8 = 1;

fn floods() -> Vec<(&'static str, Glitch, Vec<u8>)> {
    let each = |make: &dyn Fn(u32) -> Vec<u8>| ids().take(400).flat_map(make).collect::<Vec<u8>>();
    let many = |one: Vec<u8>, n: usize| one.repeat(n);
    let opened = |rest: Vec<u8>| [get(1, 0), rest].concat();
    let big: Vec<u8> = [&b"\x82\x86\x84\x41\x01a\x40\x01x\x7f\xa1\x1e"[..], &[b'y'; 4000]].concat();
    let bomb = [&big[..], &[0xbe; 40]].concat();
    vec![
        ("reset by reset", Glitch::Unfinished, each(&|id| [get(id, END), frame(3, 0, id, &8u32.to_be_bytes())].concat())),
        (
            "windows that overflow",
            Glitch::Unfinished,
            each(&|id| [get(id, END), frame(8, 0, id, &0x7fff_ffffu32.to_be_bytes())].concat()),
        ),
        ("windows by nothing", Glitch::Unfinished, each(&|id| [get(id, END), frame(8, 0, id, &[0; 4])].concat())),
        (
            "streams on themselves",
            Glitch::Unfinished,
            each(&|id| frame(1, 4 | END | 0x20, id, &[&id.to_be_bytes()[..], b"\x10\x82\x86\x84\x41\x01a"].concat())),
        ),
        ("data behind the end", Glitch::Unfinished, each(&|id| [get(id, END), frame(0, 0, id, b"x")].concat())),
        (
            "more data than was said",
            Glitch::Unfinished,
            each(&|id| [frame(1, 4, id, b"\x83\x86\x84\x41\x01a\x5c\x011"), frame(0, 0, id, b"xx")].concat()),
        ),
        ("continuations", Glitch::Continuations, [frame(1, 0, 1, b"\x82"), many(frame(9, 0, 1, b""), 100)].concat()),
        ("a long block", Glitch::HeaderBlock, [frame(1, 0, 1, &[0x82; 16_000]), frame(9, 0, 1, &[0x82; 16_000])].concat()),
        ("a head that grows", Glitch::Head, frame(1, 5, 1, &bomb)),
        ("pings", Glitch::Ping, many(frame(6, 0, 0, b"12345678"), 1000)),
        ("settings", Glitch::Settings, many(frame(4, 0, 0, b""), 1000)),
        ("empty data", Glitch::EmptyData, opened(many(frame(0, 0, 1, b""), 1000))),
        ("tiny data", Glitch::TinyData, opened(many(frame(0, 0, 1, b"x"), 30_000))),
        ("priorities", Glitch::Priority, many(frame(2, 0, 1, &[0, 0, 0, 3, 0]), 3000)),
        ("window updates", Glitch::WindowUpdate, many(frame(8, 0, 0, &1u32.to_be_bytes()), 3000)),
        ("unknown frames", Glitch::Unknown, many(frame(0x99, 0, 0, b""), 3000)),
    ]
}

/// Sends a preface and frames, and reads to the end: the code of GOAWAY.
fn last_word(address: SocketAddr, frames: &[u8]) -> Option<Code> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(super::support::PATIENCE)).unwrap();
    // What is left of a flood when its connection ends cannot be sent.
    let _ = stream.write_all(&[PREFACE, &frame(4, 0, 0, b""), frames].concat());
    let (mut all, mut room) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = stream.read(&mut room) {
        all.extend_from_slice(&room[..n]);
    }
    let (mut rest, mut code) = (&all[..], None);
    while let Some((&[a, b, c, kind, _, _, _, _, _], behind)) = rest.split_first_chunk() {
        let (payload, behind) = behind.split_at_checked(u32::from_be_bytes([0, a, b, c]) as usize)?;
        if kind == 7 {
            code = payload.get(4..8).map(|code| Code(u32::from_be_bytes(code.try_into().unwrap())));
        }
        rest = behind;
    }
    code
}

#[test]
fn each_ends_at_its_limit() {
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stderr format raw local0\nlisten web\n bind fd@${{web}} proto h2\n \
         http-request return status 200 if METH_GET\n server none 127.0.0.1:1 disabled\n"
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    for (what, glitch, bytes) in floods() {
        let name =
            format!("Http2Limit{}", glitch.name().split(' ').map(|word| word[..1].to_uppercase() + &word[1..]).collect::<String>());
        let before = terse.info(&name);
        assert_eq!(last_word(terse.address("web"), &bytes), Some(Code::ENHANCE_YOUR_CALM), "{what}");
        assert_eq!(terse.info(&name), before + 1, "{what}: {name}");
        let line = format!("HTTP/2 connection closed: {}", glitch.name());
        until(what, || terse.stderr().contains(&line).then_some(()));
    }
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200, "all others are served");
    assert_eq!(terse.info("Http2CurrConnections"), 1);
    terse.end();
}

#[test]
fn many_cookies_are_a_head_that_is_too_large() {
    let terse = super::support::proxy::listen("http-request return status 200");
    let mut client = Client::connect(terse.address("web"));
    let mut asked = super::client::request("GET", "/", &[]);
    (0..1000).for_each(|n| asked.fields.push(b"Cookie", format!("a{n}").as_bytes()));
    assert_eq!(client.ask(&asked).status(), 431);
    assert_eq!(client.get("/").status(), 200);
    terse.end();
}

#[test]
fn all_oddities_together_have_a_limit_where_a_line_sets_one() {
    let text = format!(
        "global\n nbthread 1\n tune.h2.fe.glitches-threshold 50\n{DEFAULTS} log stderr format raw local0\nlisten web\n bind fd@${{web}}\n \
         http-request return status 200 content-type text/plain lf-string %[fc_glitches]\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    client.raw(&frame(2, 0, 1, &[0, 0, 0, 3, 0]).repeat(7));
    // The client's own WINDOW_UPDATE came before there was any data, too.
    assert_eq!(client.get("/").text(), "8");
    client.raw(&frame(2, 0, 1, &[0, 0, 0, 3, 0]).repeat(50));
    assert!(client.ends());
    assert_eq!(client.goaway.map(|(_, code)| code), Some(Code::ENHANCE_YOUR_CALM));
    until("the line", || terse.stderr().contains("HTTP/2 connection closed: glitches").then_some(()));
    terse.end();
}

#[test]
fn what_is_no_preface_ends_the_connection() {
    let terse = Terse::with(&format!("{DEFAULTS}\nlisten web\n bind fd@${{web}} proto h2\n http-request return status 200\n"))
        .listen("web")
        .start();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &PREFACE[..10], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n"] {
        let mut client = super::support::client::Client::connect(terse.address("web"));
        client.send(bytes);
        client.stream().shutdown(std::net::Shutdown::Write).unwrap();
        assert!(super::support::is_closed(client.stream(), super::support::PATIENCE));
    }
    assert_eq!(Client::connect(terse.address("web")).get("/").status(), 200);
    terse.end();
}
