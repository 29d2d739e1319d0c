//! The cost of a browser's request head by protocol: `cargo bench -p terse-http` prints nanoseconds. A slice of heads is
//! repeated, and the best slice counts: noise only adds.
//!
//! `cargo bench -p terse-http -- CASE TIMES` handles so many heads and prints nothing; `scripts/head-instructions` counts
//! those by callgrind.

#![allow(clippy::expect_used, reason = "a measurement that cannot go on fails")]

use std::hint::black_box;
use std::time::Instant;
use terse_http::h1::parse_request;
use terse_http::h2::hpack::{Decoder, Encoder};
use terse_http::h2::{Code, Connection, Event, Limits, PREFACE};
use terse_message::{Request, Response};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [case, times] = &arguments[..] {
        let times = times.parse().expect("a number");
        let mut case = cases().into_iter().find(|known| known.name == case).expect("a case");
        return (0..times).for_each(|_| (case.run)());
    }
    println!("case\tbytes\tns");
    for mut case in cases() {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            (0..SLICE).for_each(|_| (case.run)());
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(SLICE));
        }
        println!("{}\t{}\t{best:.0}", case.name, case.bytes);
    }
}

/// A benchmark that handles heads one after the other.
struct Case {
    name: &'static str,
    /// Bytes of the head on the wire.
    bytes: usize,
    run: Box<dyn FnMut()>,
}

fn cases() -> Vec<Case> {
    let mut encoder = Encoder::default();
    let (first, later) = (block(&mut encoder), block(&mut encoder));
    let mut encoder = Encoder::default();
    encoder.resize(0);
    block(&mut encoder);
    let plain = block(&mut encoder);
    vec![
        http1(),
        // The first head of a connection, and the cost of a connection without one.
        Case {
            name: "h2-first",
            bytes: first.len(),
            run: {
                let first = first.clone();
                Box::new(move || exchange(&mut server(), &first, &[1], &mut Request::default()))
            },
        },
        Case { name: "h2-none", bytes: 0, run: Box::new(|| exchange(&mut server(), &[], &[], &mut Request::default())) },
        later_heads("h2-table", &first, later.clone()),
        later_heads("h2-literal", &first, plain.clone()),
        // HPACK alone: neither stream nor `Fields`.
        decode("hpack-table", &first, later),
        decode("hpack-literal", &first, plain),
        encode(),
    ]
}

fn http1() -> Case {
    let mut lines = b"GET /search/articles?page=3 HTTP/1.1\r\nhost: www.example.org\r\n".to_vec();
    for (name, value) in FIELDS {
        lines.extend([name.as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines.extend_from_slice(b"\r\n");
    let mut request = Request::default();
    let bytes = lines.len();
    let run = move || {
        parse_request(black_box(&lines), &mut request).expect("a head");
    };
    Case { name: "h1", bytes, run: Box::new(run) }
}

/// The same head on one connection; a stream is opened and released for each.
fn later_heads(name: &'static str, first: &[u8], block: Vec<u8>) -> Case {
    let (mut connection, mut request, mut id) = (server(), Request::default(), 1);
    exchange(&mut connection, first, &[id], &mut request);
    let bytes = block.len();
    let run = move || {
        id += 2;
        exchange(&mut connection, &block, &[id], &mut request);
    };
    Case { name, bytes, run: Box::new(run) }
}

fn decode(name: &'static str, first: &[u8], block: Vec<u8>) -> Case {
    let (mut decoder, mut lines) = (Decoder::default(), Vec::new());
    decoder.decode(first, &mut lines, |_, _| true).expect("a block");
    let bytes = block.len();
    let run = move || {
        lines.clear();
        decoder.decode(black_box(&block), &mut lines, |_, _| true).expect("a block");
    };
    Case { name, bytes, run: Box::new(run) }
}

/// A server's response with the fields that most responses have.
fn encode() -> Case {
    let mut response = Response::default();
    response.status = 200;
    for (name, value) in ANSWER {
        response.fields.push(name.as_bytes(), value.as_bytes());
    }
    let (mut connection, mut request, mut id) = (server(), Request::default(), 1);
    let block = b"\x82\x86\x84\x01\x01h";
    let mut bytes = 0;
    let mut run = move || {
        id += 2;
        receive(&mut connection, block, id, &mut request);
        assert!(connection.send_response(id, &response, true));
        let bytes = connection.output().len();
        connection.release(id, Code::NO_ERROR);
        connection.wrote(connection.output().len());
        bytes
    };
    for _ in 0..2 {
        bytes = run();
    }
    Case {
        name: "h2-answer",
        bytes,
        run: Box::new(move || {
            run();
        }),
    }
}

fn server() -> Connection {
    let mut connection = Connection::server(Limits::default());
    let start = [PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat();
    let (_, event) = connection.receive(&start, Instant::now());
    assert_eq!(event, Some(Event::Settings));
    connection.wrote(connection.output().len());
    connection
}

/// Takes heads that open and end streams.
fn exchange(connection: &mut Connection, block: &[u8], ids: &[u32], request: &mut Request) {
    for &id in ids {
        receive(connection, block, id, request);
        connection.release(id, Code::NO_ERROR);
        connection.wrote(connection.output().len());
    }
}

fn receive(connection: &mut Connection, block: &[u8], id: u32, request: &mut Request) {
    let length = (block.len() as u32).to_be_bytes();
    let frame = [&length[1..], &[1, 5], &id.to_be_bytes(), block].concat();
    let (used, event) = connection.receive(&frame, Instant::now());
    assert_eq!((used, event), (frame.len(), Some(Event::Request { id, end: true })));
    connection.take_request(request);
    black_box(&request);
}

fn block(encoder: &mut Encoder) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    let start = [(":method", "GET"), (":scheme", "https"), (":authority", "www.example.org"), (":path", "/search/articles?page=3")];
    for (name, value) in start.iter().chain(FIELDS) {
        encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    block
}

const ROUNDS: usize = 200;
const SLICE: u32 = 1000;

/// The fields that Chromium sends, and two cookies.
const FIELDS: &[(&str, &str)] = &[
    ("sec-ch-ua", "\"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"),
    ("referer", "https://www.example.org/search"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
    ("cookie", "session=0b1c2d3e4f5061728394a5b6c7d8e9f0"),
    ("cookie", "preferences=theme%3Ddark%26lang%3Den"),
];

const ANSWER: &[(&str, &str)] = &[
    ("Server", "nginx"),
    ("Date", "Thu, 26 Nov 2026 02:00:00 GMT"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Length", "10240"),
    ("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT"),
    ("ETag", "\"6913-2800\""),
    ("Cache-Control", "max-age=3600"),
    ("Vary", "Accept-Encoding"),
    ("Strict-Transport-Security", "max-age=31536000"),
];
