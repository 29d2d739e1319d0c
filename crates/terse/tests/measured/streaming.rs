//! Bytes that the server has sent before a pause reach the client at once, decodable. That holds for any number of clients, within
//! the limit of buffering.
//!
//! `TERSE_FULL=1` asks for as many slow bodies as descriptors allow, 10,000 at the most.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::{Resource, getrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use support::client::Client;
use support::gzip::{Decoder, gunzip};
use support::proxy::{DEFAULTS, listen};
use support::random::Random;
use support::server::{Connection, Server};
use support::{Terse, column_of, until};

/// Promised bound: the time from the server's send of a part until the client has it, decoded.
const PROMISE: Duration = Duration::from_millis(5);

/// Text that compresses about as pages do.
fn text(random: &mut Random, bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = ["stream", "pause", "<p class=\"x\">", "buffer", "</p>\n", "client", "0123", "of the"];
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.extend(random.pick(&WORDS).bytes().chain(*b" "));
    }
    text.truncate(bytes);
    text
}

/// Framing of the body's end.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Framing {
    Chunked,
    Close,
}

/// A server that sends a part whenever it is told to, and confirms it.
struct Parts {
    server: Server,
    send: Sender<Vec<u8>>,
    sent: Receiver<Instant>,
}

impl Parts {
    fn new(framing: Framing, kind: &'static str) -> Parts {
        let ((send, parts), (tell, sent)) = (channel::<Vec<u8>>(), channel());
        let ends = Mutex::new((parts, tell));
        let server = Server::start(move |connection: &mut Connection| {
            connection.head().unwrap();
            let coding = if framing == Framing::Chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
            connection.send(format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{coding}\r\n"));
            let (parts, tell) = &*ends.lock().unwrap();
            for part in parts {
                let framed = match framing {
                    Framing::Chunked => [format!("{:x}\r\n", part.len()).as_bytes(), &part, b"\r\n"].concat(),
                    Framing::Close => part,
                };
                connection.send(framed);
                tell.send(Instant::now()).unwrap();
            }
            if framing == Framing::Chunked {
                connection.send("0\r\n\r\n");
            }
        });
        Parts { server, send, sent }
    }
}

/// Reads chunks until so many bytes of the text are known; when that was.
fn decoded(client: &mut Client, decoder: &mut Option<Decoder>, expected: &[u8]) -> Instant {
    let mut plain = Vec::new();
    while plain.len() < expected.len() {
        let chunk = client.chunk().unwrap();
        plain.extend(match decoder {
            Some(decoder) => decoder.push(&chunk),
            None => chunk,
        });
    }
    let now = Instant::now();
    assert!(plain == expected, "the part, whole and no more");
    now
}

#[test]
fn each_part_before_a_pause() {
    const ATTEMPTS: usize = 15;
    let mut random = Random::new(5);
    for (framing, kind, coded) in [
        (Framing::Chunked, "text/html", true),
        (Framing::Chunked, "text/event-stream", true),
        (Framing::Close, "text/html", true),
        (Framing::Chunked, "text/html", false),
    ] {
        let Parts { server, send, sent } = Parts::new(framing, kind);
        let lines = "compression algo gzip\n compression type text/html text/event-stream\n compression http-version 1.0";
        let terse = listen(&format!("{lines}\n server one {}", server.address()));
        let mut client = terse.client();
        let accepts = if coded { "gzip" } else { "identity" };
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepts}\r\n\r\n"));
        let head = client.head();
        assert_eq!((head.status, head.field("content-encoding").is_some()), (200, coded), "{framing:?} {kind}");
        let mut decoder = coded.then(Decoder::default);
        // A debug build compresses a tenth as fast.
        let sizes: &[usize] = if cfg!(debug_assertions) { &[1, 30, 700, 4_000] } else { &[1, 30, 700, 4_000, 16_000, 40_000] };
        for &size in sizes {
            let mut delays: Vec<Duration> = (0..ATTEMPTS)
                .map(|_| {
                    let part = text(&mut random, size);
                    send.send(part.clone()).unwrap();
                    let seen = decoded(&mut client, &mut decoder, &part);
                    seen.saturating_duration_since(sent.recv().unwrap())
                })
                .collect();
            delays.sort();
            let (best, median) = (delays[0], delays[ATTEMPTS / 2]);
            println!("{framing:?} {kind} {accepts}: a part of {size} bytes: best {best:?}, median {median:?}");
            assert!(best <= PROMISE, "{framing:?} {kind} {accepts}: {size} bytes: {best:?}");
        }
        drop(send);
        while let Some(chunk) = client.chunk() {
            assert!(decoder.as_mut().map(|decoder| decoder.push(&chunk)).unwrap_or_default().is_empty());
        }
        assert!(decoder.is_none_or(|decoder| decoder.is_done()));
        terse.end();
    }
}

/// The wait for a sender of which much came at once ends. A sender that goes on byte by byte, never silent for long, does not keep
/// the client from the bytes that are there.
#[test]
fn what_trickles_in_behind_much_goes_on() {
    const TRICKLES: usize = 500;
    for framing in [Framing::Chunked, Framing::Close] {
        let Parts { server, send, sent } = Parts::new(framing, "text/html");
        let lines = "compression algo gzip\n compression type text/html\n compression http-version 1.0";
        let terse = listen(&format!("{lines}\n server one {}", server.address()));
        let mut body = text(&mut Random::new(12), 20_000);
        let seen = AtomicBool::new(false);
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut client = terse.client();
                client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
                assert_eq!(client.head().field("content-encoding"), Some("gzip"));
                let (mut decoder, mut plain) = (Decoder::default(), Vec::new());
                while let Some(chunk) = client.chunk() {
                    plain.extend(decoder.push(&chunk));
                    seen.store(!plain.is_empty(), Relaxed);
                }
                plain
            });
            send.send(body.clone()).unwrap();
            let mut last = sent.recv().unwrap();
            let mut trickles = 0..TRICKLES;
            while !seen.load(Relaxed) && trickles.next().is_some() {
                while last.elapsed() < Duration::from_millis(1) {
                    std::thread::yield_now();
                }
                body.push(b'x');
                send.send(vec![b'x']).unwrap();
                last = sent.recv().unwrap();
            }
            drop(send);
            assert!(!trickles.is_empty(), "{framing:?}: it is held for as long as it trickles");
            reader.join().unwrap()
        });
        assert!(read == body, "{framing:?}");
        terse.end();
    }
}

/// Workers that leave no processor free code bodies themselves that are too large to be collected.
#[test]
fn streams_of_workers_that_have_all_processors() {
    let _machine = crate::alone();
    const CLIENTS: usize = 4;
    let body = text(&mut Random::new(9), 700_000);
    let server = Server::start({
        let body = body.clone();
        move |connection: &mut Connection| {
            connection.head().unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
            connection.send([head.as_bytes(), &body].concat());
        }
    });
    // More workers than processors, however many there are.
    let workers = 1 + std::thread::available_parallelism().unwrap().get();
    for (global, helped) in [(format!("nbthread {workers}"), true), ("tune.comp.threads 0".into(), false)] {
        let text = format!(
            "global\n {global}\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n \
             compression algo gzip\n compression level gzip 9\n server one {}\n",
            server.address()
        );
        let terse = Terse::with(&text).listen("web").listen("cli").start();
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let reply = terse.client().get("/", &[("Accept-Encoding", "gzip")]);
                    assert_eq!(reply.field("content-encoding"), Some("gzip"));
                    assert!(gunzip(&reply.body) == body, "{global}");
                });
            }
        });
        let said = terse.command("show compression");
        // Without threads there is no queue.
        let helps = said.contains("# queue ") && column_of(&said, "queue", "queue", "helped") != "0";
        assert_eq!(helps, helped, "{global}: {said}");
        terse.end();
    }
}

/// The head goes when it is there, not with the first byte of the body.
#[test]
fn a_head_alone() {
    let Parts { server, send, .. } = Parts::new(Framing::Chunked, "text/html");
    let terse = listen(&format!("compression algo gzip\n compression type text/html\n server one {}", server.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_eq!(client.head().status, 200);
    drop(send);
    let mut decoder = Decoder::default();
    while let Some(chunk) = client.chunk() {
        assert_eq!(decoder.push(&chunk), b"");
    }
    terse.end();
}

/// A number that `show info` tells.
fn figure(terse: &Terse, name: &str) -> u64 {
    let mut stats = until("the stats socket", || UnixStream::connect(terse.path("stats")).ok());
    stats.write_all(b"show info\n").unwrap();
    let mut said = String::new();
    stats.read_to_string(&mut said).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in {said}")).parse().unwrap()
}

/// Memory that the process holds, in bytes.
fn resident(terse: &Terse) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", terse.pid().as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// A process with a limit of buffering, with these lines.
fn limited(limit: &str, lines: &str) -> Terse {
    let text = format!(
        "global\n nbthread 2\n tune.memory.buffers {limit}\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS} timeout client 2m\n timeout server 2m\nlisten web\n bind fd@${{web}}\n{lines}\n"
    );
    Terse::with(&text).listen("web").start()
}

/// Many bodies at once whose servers pause in the middle: each waits with a coder of its own, as far as the limit allows.
#[test]
fn slow_servers() {
    let _machine = crate::alone();
    let wanted = if std::env::var_os("TERSE_FULL").is_some() { 10_000 } else { 2_000 };
    // Each takes one descriptor for the client and one for the server, on both sides of the wire.
    let possible = (getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(500) / 2) as usize;
    let count = wanted.min(possible);
    println!("{count} slow bodies at once (TERSE_FULL=1: 10000; descriptors allow {possible})");
    let (first, second) = (text(&mut Random::new(1), 3_000), text(&mut Random::new(2), 3_000));
    let chunk = |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    let begin = [head.as_bytes(), &chunk(&first)].concat();
    let end = [&chunk(&second)[..], b"0\r\n\r\n"].concat();

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 4096).unwrap();
    let address = listener.local_addr().unwrap();
    let terse =
        limited(LIMIT, &format!("compression algo gzip\n compression type text/html\n maxconn {count}\n server one {address}"));
    let limit = figure(&terse, "BufferLimit_bytes");
    let at_rest = resident(&terse);

    let (mut clients, mut servers): (Vec<Client>, Vec<TcpStream>) = (Vec::new(), Vec::new());
    let mut coded = 0;
    while clients.len() < count {
        // No more at a time than the kernel lets wait.
        for _ in 0..500.min(count - clients.len()) {
            let mut client = terse.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
            clients.push(client);
        }
        while servers.len() < clients.len() {
            let (mut server, _) = listener.accept().unwrap();
            read_head(&mut server);
            server.write_all(&begin).unwrap();
            servers.push(server);
        }
        assert!(figure(&terse, "PoolUsed_bytes") <= limit);
    }
    let decoders: Vec<Option<Decoder>> = clients
        .iter_mut()
        .map(|client| {
            let head = client.head();
            assert_eq!(head.status, 200);
            let mut decoder = head.field("content-encoding").map(|_| Decoder::default());
            coded += usize::from(decoder.is_some());
            decoded(client, &mut decoder, &first);
            decoder
        })
        .collect();
    let (used, held) = (figure(&terse, "PoolUsed_bytes"), resident(&terse));
    println!("{coded} of {count} compressed; {used} bytes of buffers of {limit}; resident {held}, {at_rest} at rest");
    assert!(coded > 0 && used <= limit);
    let overhead = count as u64 * OVERHEAD_BYTES;
    assert!(
        held <= at_rest + limit + overhead,
        "{held} resident bytes, {at_rest} at rest, {limit} of buffers, {overhead} for connections"
    );
    for server in &mut servers {
        server.write_all(&end).unwrap();
    }
    for (mut client, mut decoder) in clients.into_iter().zip(decoders) {
        decoded(&mut client, &mut decoder, &second);
        while let Some(chunk) = client.chunk() {
            decoder.as_mut().map(|decoder| decoder.push(&chunk));
        }
        assert!(decoder.is_none_or(|decoder| decoder.is_done()));
    }
    drop(servers);
    until("buffers to be given back", || (figure(&terse, "PoolUsed_bytes") < limit / 4).then_some(()));
    terse.end();
}

/// Many clients that do not read, in front of servers that send as fast as they can: the servers wait.
#[test]
fn slow_clients() {
    let _machine = crate::alone();
    const CLIENTS: usize = 150;
    const BODY_BYTES: usize = 4 << 20;
    let body = Random::new(3).bytes(BODY_BYTES);
    let sent = body.clone();
    let server = Server::start(move |connection| {
        connection.head().unwrap();
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n"));
        connection.send(&sent);
        connection.rest();
    });
    let terse = limited("16m", &format!("server one {}", server.address()));
    let limit = figure(&terse, "BufferLimit_bytes");
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|_| {
            let mut client = terse.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            client
        })
        .collect();
    let mut most = 0;
    for client in &mut clients {
        assert_eq!(client.head().status, 200);
        most = most.max(figure(&terse, "PoolUsed_bytes"));
    }
    println!("at most {most} bytes of buffers of {limit}");
    assert!(most <= limit);
    std::thread::scope(|scope| {
        for clients in clients.chunks_mut(CLIENTS / 4) {
            let body = &body;
            scope.spawn(move || clients.iter_mut().for_each(|client| assert!(client.rest() == *body, "whole and unchanged")));
        }
    });
    terse.end();
}

/// Clients that do not read their compressed responses hold little: neither the server's bytes, nor room for more, nor a state of a
/// coder.
#[test]
fn slow_clients_of_a_coder_cost_little() {
    const CLIENTS: u64 = 100;
    let body: Vec<u8> = Random::new(4).bytes(1 << 20).iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let sent = body.clone();
    let server = Server::start(move |connection| {
        connection.head().unwrap();
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", sent.len()));
        connection.send(&sent);
        connection.rest();
    });
    // The kernel keeps little for the client of a unix socket.
    let lines = " bind unix@${dir}/slow\n compression algo gzip\n compression type text/html\n server one";
    let terse = limited("256m", &format!("{lines} {}", server.address()));
    let ask = || {
        let mut stream = UnixStream::connect(terse.path("slow")).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n").unwrap();
        stream
    };
    until("the stats socket", || UnixStream::connect(terse.path("stats")).ok());
    let at_rest = resident(&terse);
    let mut clients: Vec<UnixStream> = (0..CLIENTS).map(|_| ask()).collect();
    clients.iter_mut().for_each(|client| client.read_exact(&mut [0; 1]).unwrap());
    let mut most = 0;
    until("the clients' memory to be given back", || {
        let held = resident(&terse).saturating_sub(at_rest);
        most = most.max(held);
        (held <= CLIENTS * SLOW_CLIENT_BYTES).then(|| println!("{} bytes a client, {} at most", held / CLIENTS, most / CLIENTS))
    });
    let mut answer = vec![b'H'];
    clients[0].read_to_end(&mut answer).unwrap();
    let start = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    assert!(gunzip(&unchunked(&answer[start..])) == body, "whole and unchanged");
    drop(clients);
    terse.end();
}

/// The data of a chunked body.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let end = body.windows(2).position(|end| end == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return data;
        }
        data.extend_from_slice(&body[end + 2..][..length]);
        body = &body[end + 2 + length + 2..];
    }
}

fn read_head(stream: &mut TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

/// Far less than states of coders for all of them would take.
const LIMIT: &str = "16m";

/// Limit of the cost of a client that reads nothing of a compressed body. It consists of its connection and its server's, a piece
/// that has come out, and the body's last bytes.
const SLOW_CLIENT_BYTES: u64 = 100 * 1024;

/// Limit of the cost of a connection with a request in the middle, beside buffers.
const OVERHEAD_BYTES: u64 = 24 * 1024;
