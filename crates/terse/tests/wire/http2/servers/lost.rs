//! Servers that are killed, go away and come back under load: no GET is lost, and no POST is executed twice.

use super::super::client::{Client, request};
use super::super::support::proxy::DEFAULTS;
use super::super::support::server::Server;
use super::super::support::{Terse, client, until};
use super::peer::{Peer, scripted};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use terse_http::h2::{Code, Limits};

/// TERSE_LOST_REQUESTS has another number in the place of 20,000.
fn requests() -> usize {
    std::env::var("TERSE_LOST_REQUESTS").ok().and_then(|number| number.parse().ok()).unwrap_or(20_000)
}

/// Half of them speak HTTP/1.1, half HTTP/2.
const CLIENTS: usize = 16;
/// A server is killed after so many answers of all, and comes back after so many of the others'.
const KILLED_EVERY: usize = 400;
const BACK_AFTER: usize = 100;

/// Actions of servers.
#[derive(Default)]
struct Done {
    answers: AtomicUsize,
    goaways: AtomicUsize,
    /// Number of executions of each POST.
    executed: Mutex<HashMap<String, usize>>,
}

fn serve(peer: &mut Peer<'_>, done: &Done) {
    let mut left = 80 + peer.number() % 7 * 10;
    while let Some(id) = peer.next() {
        if !peer.whole(id) {
            return;
        }
        let asked = &peer.streams[&id];
        let text = if asked.head.method() == b"POST" {
            let number = String::from_utf8(asked.body.clone()).unwrap().trim_end().to_owned();
            *done.executed.lock().unwrap().entry(number.clone()).or_default() += 1;
            number
        } else {
            asked.path()
        };
        peer.streams.remove(&id);
        peer.answer(id, 200, text.as_bytes());
        done.answers.fetch_add(1, SeqCst);
        left -= 1;
        if left == 0 {
            // Streams above it are not looked at.
            peer.goaway(id, Code::NO_ERROR);
            done.goaways.fetch_add(1, SeqCst);
            peer.ends();
            return;
        }
    }
}

/// Response to a client: the status, or 0, and the body.
type Told = (u16, String);

/// Requests of one client: even ones are GETs, odd ones POSTs of a kilobyte; returns those that were not answered as they must be.
fn run(first: usize, mut ask: impl FnMut(bool, &str) -> Told) -> Vec<(bool, usize, Told)> {
    let numbers = (first..requests()).step_by(CLIENTS);
    let wrong = numbers.enumerate().filter_map(|(turn, number)| {
        let is_get = turn % 2 == 0;
        let text = if is_get { format!("/{number}") } else { number.to_string() };
        let told = ask(is_get, &text);
        (told != (200, text)).then_some((is_get, number, told))
    });
    wrong.collect()
}

fn by_http1(address: SocketAddr, first: usize) -> Vec<(bool, usize, Told)> {
    let mut client = client::Client::connect(address);
    run(first, |is_get, text| {
        let method = if is_get { "GET" } else { "POST" };
        if is_get {
            client.send(format!("GET {text} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        } else {
            client.send(format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1024\r\n\r\n{text:1024}"));
        }
        let response = client.response(method);
        if response.status == 0 || response.field("connection") == Some("close") {
            client = client::Client::connect(address);
        }
        (response.status, response.text())
    })
}

fn by_http2(address: SocketAddr, first: usize) -> Vec<(bool, usize, Told)> {
    let mut client = Client::connect(address);
    run(first, |is_get, text| {
        let id = if is_get {
            client.open(&request("GET", text, &[]), true)
        } else {
            let id = client.open(&request("POST", "/", &[("Content-Length", "1024")]), false);
            client.send(id, format!("{text:1024}").as_bytes(), true);
            id
        };
        let answer = client.answer(id);
        (if answer.has_ended { answer.status() } else { 0 }, answer.text())
    })
}

#[test]
fn no_get_is_lost_and_no_post_is_executed_twice() {
    let done = Arc::new(Done::default());
    let mut servers: Vec<Server> = (0..3)
        .map(|_| {
            let done = done.clone();
            scripted(Limits::default(), move |peer| serve(peer, &done))
        })
        .collect();
    let lines: String =
        servers.iter().enumerate().map(|(i, server)| format!(" server s{i} {} proto h2\n", server.address())).collect();
    let text = format!(
        "global\n nbthread 2\n{DEFAULTS} retries 3\n option redispatch\n http-reuse always\nlisten web\n bind fd@${{web}}\n{lines}"
    );
    let terse = Terse::with(&text).listen("web").start();
    let address = terse.address("web");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            std::thread::spawn(move || if number % 2 == 0 { by_http1(address, number) } else { by_http2(address, number) })
        })
        .collect();
    let (mut kills, mut mark) = (0, 0);
    let reaches = |mark: usize| {
        until("more answers", || {
            let is_over = clients.iter().all(|client| client.is_finished());
            (is_over || done.answers.load(SeqCst) >= mark).then_some(!is_over)
        })
    };
    while reaches(mark + KILLED_EVERY) {
        let server = &mut servers[kills % 3];
        server.kill();
        kills += 1;
        mark = done.answers.load(SeqCst);
        reaches(mark + BACK_AFTER);
        server.revive();
    }
    let wrong: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let (gets, posts): (Vec<_>, Vec<_>) = wrong.into_iter().partition(|(is_get, ..)| *is_get);
    let executed = done.executed.lock().unwrap();
    let twice: Vec<_> = executed.iter().filter(|(_, times)| **times > 1).collect();
    let goaways = done.goaways.load(SeqCst);
    let unseen = posts.iter().filter(|(_, number, _)| !executed.contains_key(&number.to_string())).count();
    println!("{kills} kills, {goaways} GOAWAYs, {} POSTs lost, {unseen} of them not executed", posts.len());
    assert!(kills >= 20 && goaways >= 20, "{kills} kills, {goaways} GOAWAYs");
    assert!(twice.is_empty(), "executed twice: {twice:?}");
    assert!(gets.is_empty(), "{} GETs lost: {:?}", gets.len(), &gets[..gets.len().min(5)]);
    // Only those that were with a server as it was killed: it is not known whether they were executed.
    assert!(posts.len() <= kills * CLIENTS, "{} POSTs lost: {:?}", posts.len(), &posts[..posts.len().min(5)]);
    assert!(posts.iter().all(|(.., (status, _))| matches!(status, 502 | 503)), "{posts:?}");
    drop(executed);
    terse.end();
}
