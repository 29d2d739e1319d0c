//! Many requests through servers that are killed and come back: requests that may be repeated are, and never fail; others are not.
//!
//! Requests have numbers, and servers count them. Of each request the test knows:
//! * one that can be repeated (GET, DELETE) fails only when part of a large answer had been received;
//! * one that cannot (POST) reaches a server once if it was answered with 200, and never more than once;
//! * one that no server could be reached for (503) does not exist: one of them is always up.
//!
//! `TERSE_FULL=1` asks for 100,000 requests over 1,000 connections, `TERSE_SEED` for other dice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use support::random::Random;
use support::server::{Request, Server, ok};
use support::{PATIENCE, Terse, until};

struct Load {
    requests: usize,
    connections: usize,
    seed: u64,
}

/// Record of the run so far.
struct Record {
    /// Number of times that each request has reached a server.
    arrived: Vec<AtomicU8>,
    /// Requests that have ended.
    ended: AtomicUsize,
    /// Number of requests by their end, for the output.
    ends: Mutex<BTreeMap<String, usize>>,
    /// Events that should not have happened.
    faults: Mutex<Vec<String>>,
}

#[test]
fn servers_that_come_and_go() {
    let _machine = crate::alone();
    let is_full = std::env::var_os("TERSE_FULL").is_some();
    let seed = std::env::var("TERSE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (requests, connections) = if is_full { (100_000, 1_000) } else { (20_000, 200) };
    println!("{requests} requests over {connections} connections, TERSE_SEED={seed}; TERSE_FULL=1 for 100000 over 1000");
    run(&Load { requests, connections, seed });
}

fn run(load: &Load) {
    let record = Arc::new(Record {
        arrived: (0..load.requests).map(|_| AtomicU8::new(0)).collect(),
        ended: AtomicUsize::new(0),
        ends: Mutex::default(),
        faults: Mutex::default(),
    });
    let servers: Vec<Server> = (0..3).map(|_| server(Arc::clone(&record))).collect();
    let lines: String =
        servers.iter().enumerate().map(|(number, server)| format!(" server s{number} {}\n", server.address())).collect();
    let text = format!(
        "global\n nbthread 2\n{}\nlisten web\n bind fd@${{web}}\n log stdout format raw local0\n option httplog\n option dontlog-normal\n http-reuse always\n retries 50\n option redispatch\n retry-on conn-failure empty-response\n{lines}",
        support::proxy::DEFAULTS
    );
    let terse = Terse::with(&text).listen("web").start();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_and_revive(servers, &record, &done, load));
        let clients: Vec<_> = (0..load.connections)
            .map(|number| {
                let (record, address) = (&*record, terse.address("web"));
                let work = move || client(number, address, record, load);
                std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).unwrap()
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        done.store(true, SeqCst);
        println!("{} kills; {:?}", killer.join().unwrap(), record.ends.lock().unwrap());
    });
    let faults = record.faults.lock().unwrap();
    assert!(faults.is_empty(), "{} faults, such as {:#?}", faults.len(), &faults[..faults.len().min(10)]);
    terse.end();
}

/// A server that answers with the request's number, and now and then at length.
fn server(record: Arc<Record>) -> Server {
    Server::start(move |connection| {
        while let Some(mut request) = connection.head() {
            let number = number_of(&request.target);
            let before = record.arrived[number].fetch_add(1, SeqCst);
            if request.method == "POST" && before > 0 {
                record.fault(format!("{} has come {} times", request.line, before + 1));
            }
            if connection.body(&mut request).is_none() || !connection.send(answer(&request, number)) {
                return;
            }
        }
    })
}

fn answer(request: &Request, number: usize) -> String {
    if is_large(number) && request.method == "GET" { ok(&large(number)) } else { ok(&format!("{number} {}", request.body.len())) }
}

fn number_of(target: &str) -> usize {
    target[1..].parse().unwrap()
}

fn is_large(number: usize) -> bool {
    number.is_multiple_of(20)
}

fn large(number: usize) -> String {
    format!("{number} ").repeat(20_000)
}

/// Kills one server after the other, and revives it; one is always up. The pace is that of the requests.
fn kill_and_revive(mut servers: Vec<Server>, record: &Record, done: &AtomicBool, load: &Load) -> usize {
    let mut random = Random::new(load.seed);
    let mut is_up = vec![true; servers.len()];
    let (mut kills, mut next) = (0, 0);
    while !done.load(SeqCst) {
        next += 1 + random.below(load.requests / 200);
        until("requests to end", || (done.load(SeqCst) || record.ended.load(SeqCst) >= next).then_some(()));
        let chosen = random.below(servers.len());
        if is_up[chosen] && is_up.iter().filter(|up| **up).count() > 1 {
            servers[chosen].kill();
            is_up[chosen] = false;
            kills += 1;
        } else if !is_up[chosen] {
            servers[chosen].revive();
            is_up[chosen] = true;
        }
    }
    kills
}

/// Sends a connection's requests, one after the other, on a new connection whenever one ends.
fn client(number: usize, address: SocketAddr, record: &Record, load: &Load) {
    let mut random = Random::new(load.seed ^ (number as u64 + 1) << 32);
    let mut connection = None;
    for number in (number..load.requests).step_by(load.connections) {
        let method = *random.pick(&["GET", "GET", "GET", "POST", "POST", "DELETE"]);
        let body = if method == "POST" { random.below(5_000) } else { 0 };
        let is_chunked = method == "POST" && random.one_in(3);
        let end = exchange(&mut connection, address, &request(method, number, body, is_chunked));
        if !matches!(end, End::Whole { keeps: true, .. }) {
            connection = None;
        }
        record.judge(method, number, body, &end);
        record.ended.fetch_add(1, SeqCst);
    }
}

fn request(method: &str, number: usize, body: usize, is_chunked: bool) -> Vec<u8> {
    let content = "x".repeat(body);
    match (method, is_chunked) {
        ("POST", true) => {
            let chunk = if body > 0 { format!("{body:x}\r\n{content}\r\n") } else { String::new() };
            format!("POST /{number} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n")
        }
        ("POST", false) => format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n{content}"),
        _ => format!("{method} /{number} HTTP/1.1\r\nHost: a\r\n\r\n"),
    }
    .into_bytes()
}

/// End of a request.
#[derive(Debug)]
enum End {
    /// With a whole answer.
    Whole { status: u16, body: Vec<u8>, keeps: bool },
    /// In the middle of an answer.
    Cut,
    /// Without a byte.
    Closed(io::ErrorKind),
}

fn exchange(connection: &mut Option<BufReader<TcpStream>>, address: SocketAddr, request: &[u8]) -> End {
    let reader = connection.get_or_insert_with(|| {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream)
    });
    if let Err(error) = reader.get_mut().write_all(request) {
        return End::Closed(error.kind());
    }
    match read(reader) {
        Ok(end) => end,
        Err(error) => End::Closed(error.kind()),
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<End> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let (mut length, mut keeps) = (0, true);
    loop {
        line.clear();
        if !matches!(reader.read_line(&mut line), Ok(1..)) {
            return Ok(End::Cut);
        }
        match line.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
            Some((name, value)) if name.eq_ignore_ascii_case("connection") => keeps = value != "close",
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    Ok(match reader.read_exact(&mut body) {
        Ok(()) => End::Whole { status, body, keeps },
        Err(_) => End::Cut,
    })
}

impl Record {
    fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    fn judge(&self, method: &str, number: usize, sent: usize, end: &End) {
        let arrived = self.arrived[number].load(SeqCst);
        let was_large = method == "GET" && is_large(number);
        let is_fine = match end {
            End::Whole { status: 200, body, .. } => {
                let expected = if was_large { large(number) } else { format!("{number} {sent}") };
                *body == expected.as_bytes() && (method != "POST" || arrived == 1)
            }
            // It had reached a server, or was on its way to one.
            End::Whole { status: 502, .. } => method == "POST" || was_large,
            End::Whole { .. } | End::Closed(_) => false,
            End::Cut => was_large,
        };
        let kind = match end {
            End::Whole { status: 502, .. } if arrived == 0 => format!("{method} 502, lost on its way"),
            End::Whole { status, .. } => format!("{method} {status}"),
            End::Cut => format!("{method} cut"),
            End::Closed(error) => format!("{method} {error:?}"),
        };
        *self.ends.lock().unwrap().entry(kind).or_default() += 1;
        if !is_fine {
            let body =
                if let End::Whole { body, .. } = end { String::from_utf8_lossy(&body[..body.len().min(80)]) } else { "".into() };
            self.fault(format!("{method} /{number}, arrived {arrived} times: {body:?} {end:.60?}"));
        }
    }
}

const STACK_BYTES: usize = 256 * 1024;
