//! Nanoseconds a head of a browser's request, by protocol: `cargo bench -p terse-http`.
//!
//! A slice of heads is repeated, and the best slice counts: noise only adds.

use std::hint::black_box;
use std::time::Instant;
use terse_http::h1::parse_request;
use terse_http::h2::hpack::Encoder;
use terse_http::h2::{Code, Connection, Event, Limits, PREFACE};
use terse_message::Request;

fn main() {
    println!("head\tbytes\tns");
    let mut lines = b"GET /search/articles?page=3 HTTP/1.1\r\nhost: www.example.org\r\n".to_vec();
    for (name, value) in FIELDS {
        lines.extend([name.as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines.extend_from_slice(b"\r\n");
    let mut request = Request::default();
    report("HTTP/1", lines.len(), || {
        parse_request(black_box(&lines), &mut request).expect("a head");
    });
    let mut encoder = Encoder::default();
    let (first, later) = (block(&mut encoder), block(&mut encoder));
    report("HTTP/2, the first of a connection", first.len(), || exchange(&mut server(), &first, &[1], &mut Request::default()));
    report("HTTP/2, a connection without one", 0, || exchange(&mut server(), &[], &[], &mut Request::default()));
    let (mut connection, mut id) = (server(), 1);
    exchange(&mut connection, &first, &[id], &mut request);
    report("HTTP/2, from the table", later.len(), || {
        id += 2;
        exchange(&mut connection, &later, &[id], &mut request);
    });
    let mut encoder = Encoder::default();
    encoder.resize(0);
    block(&mut encoder);
    let plain = block(&mut encoder);
    report("HTTP/2, without a table", plain.len(), || {
        id += 2;
        exchange(&mut connection, &plain, &[id], &mut request);
    });
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
    let now = Instant::now();
    for &id in ids {
        let length = (block.len() as u32).to_be_bytes();
        let frame = [&length[1..], &[1, 5], &id.to_be_bytes(), block].concat();
        let (used, event) = connection.receive(&frame, now);
        assert_eq!((used, event), (frame.len(), Some(Event::Request { id, end: true })));
        connection.take_request(request);
        black_box(&request);
        connection.release(id, Code::NO_ERROR);
        connection.wrote(connection.output().len());
    }
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

fn report(what: &str, bytes: usize, mut run: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..SLICE).for_each(|_| run());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(SLICE));
    }
    println!("{what}\t{bytes}\t{best:.0}");
}

const ROUNDS: usize = 200;
const SLICE: u32 = 1000;

/// What Chromium sends, and two cookies.
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
