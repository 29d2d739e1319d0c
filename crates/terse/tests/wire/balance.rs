//! The server of a request: algorithms, weights, cookies, queues, checks, and the death of servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::client::{Client, Response};
use support::gzip::gunzip;
use support::proxy::listen;
use support::server::{Server, ok};
use support::{Terse, readable, until};

/// Servers that answer with their names: `a`, `b`, `c`...
fn servers(count: u8) -> Vec<Server> {
    (0..count).map(|number| Server::body(&char::from(b'a' + number).to_string())).collect()
}

/// Their lines, each with its arguments.
fn lines(servers: &[Server], words: &[&str]) -> String {
    let line = |(number, server): (usize, &Server)| {
        let name = char::from(b'a' + number as u8);
        format!(" server {name} {} cookie {name} {}\n", server.address(), words.get(number).or(words.last()).unwrap_or(&""))
    };
    servers.iter().enumerate().map(line).collect()
}

/// Names of the servers that answer `count` requests, in order.
fn answers(client: &mut Client, count: usize) -> String {
    (0..count).map(|_| client.get("/", &[]).text()).collect()
}

fn counts(answers: &str) -> BTreeMap<char, usize> {
    answers.chars().fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}

/// Sends a request whose answer is read later.
fn send(terse: &Terse, path: &str) -> Client {
    let mut client = terse.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

/// A server that answers `/held` when it is told to, and the largest number of such requests that it had at once.
fn holding(name: &'static str) -> (Server, Sender<()>, Arc<AtomicUsize>) {
    let (go, wait) = channel::<()>();
    let (wait, most) = (Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
    let (held, counter) = (AtomicUsize::new(0), Arc::clone(&most));
    let server = Server::answering(move |request| {
        if request.target.starts_with("/held") {
            counter.fetch_max(held.fetch_add(1, SeqCst) + 1, SeqCst);
            let _ = wait.lock().unwrap().recv();
            held.fetch_sub(1, SeqCst);
        }
        ok(name)
    });
    (server, go, most)
}

#[test]
fn in_turn() {
    let servers = servers(3);
    let terse = listen(&lines(&servers, &[""]));
    let order = answers(&mut terse.client(), 9);
    assert_eq!(order[..3], order[3..6]);
    assert_eq!(counts(&order), BTreeMap::from([('a', 3), ('b', 3), ('c', 3)]));
    terse.end();
}

#[test]
fn by_weight() {
    let servers = servers(4);
    for algorithm in ["roundrobin", "static-rr"] {
        let text = lines(&servers, &["weight 10", "weight 20", "weight 30", "weight 0"]);
        let terse = listen(&format!("balance {algorithm}\n{text}"));
        let order = answers(&mut terse.client(), 24);
        assert_eq!(counts(&order), BTreeMap::from([('a', 4), ('b', 8), ('c', 12)]), "{algorithm}: {order}");
        assert!(!order.contains("ccc"), "spread, not in blocks: {order}");
        terse.end();
    }
}

#[test]
fn by_load() {
    let (a, go, _) = holding("a");
    let b = Server::body("b");
    let terse = listen(&format!("balance leastconn\n server a {}\n server b {}", a.address(), b.address()));
    let mut held = send(&terse, "/held");
    until("the held request", || (!a.requests().is_empty()).then_some(()));
    assert_eq!(answers(&mut terse.client(), 6), "bbbbbb");
    go.send(()).unwrap();
    assert_eq!(held.response("GET").text(), "a");
    assert!(answers(&mut terse.client(), 6).contains('a'));
    terse.end();
}

#[test]
fn by_keys() {
    let servers = servers(3);
    for kind in ["map-based", "consistent"] {
        let terse = listen(&format!("balance uri\n hash-type {kind}\n{}", lines(&servers, &[""])));
        let mut client = terse.client();
        let mut round = || -> String { (0..30).map(|id| client.get(&format!("/{id}"), &[]).text()).collect() };
        let first = round();
        assert_eq!(first, round(), "{kind}: the same key, the same server");
        assert_eq!(counts(&first).len(), 3, "{kind}: {first}");
        terse.end();
    }
    for algorithm in ["source", "first"] {
        let terse = listen(&format!("balance {algorithm}\n{}", lines(&servers, &[""])));
        assert_eq!(counts(&answers(&mut terse.client(), 12)).len(), 1, "{algorithm}");
        terse.end();
    }
    let terse = listen(&format!("balance random\n{}", lines(&servers, &[""])));
    assert_eq!(counts(&answers(&mut terse.client(), 100)).len(), 3);
    terse.end();
}

/// The chain of the founding document: servers, then the backup, then nothing.
#[test]
fn backups() {
    let mut servers = servers(4);
    let text = lines(&servers, &["check", "check", "check backup", "check backup"]);
    let terse = listen(&format!("retries 0\n default-server inter 20ms rise 1 fall 1\n{text}"));
    let who =
        |count: usize| -> String { (0..count).map(|_| terse.client().get("/", &[]).text().chars().next().unwrap()).collect() };
    let settled = |expected: &str| until(expected, || (counts(&who(6)).into_keys().eq(expected.chars())).then_some(()));
    settled("ab");
    servers[0].kill();
    settled("b");
    servers[1].kill();
    settled("c");
    servers[2].kill();
    settled("d");
    servers[3].kill();
    until("503", || (terse.client().get("/", &[]).status == 503).then_some(()));
    servers[1].revive();
    settled("b");
    terse.end();
}

/// Checks over HTTP: the port is open all the time.
#[test]
fn checks_by_answer() {
    let is_well = Arc::new(AtomicUsize::new(1));
    let health = Arc::clone(&is_well);
    let a = Server::answering(move |request| match (request.target.as_str(), health.load(SeqCst)) {
        ("/health", 0) => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok("a"),
    });
    let b = Server::body("b");
    let terse = listen(&format!(
        "option httpchk GET /health\n server a {} check inter 20ms rise 2 fall 2\n server b {}",
        a.address(),
        b.address()
    ));
    let settled = |expected: &str| {
        until(expected, || counts(&answers(&mut terse.client(), 6)).into_keys().eq(expected.chars()).then_some(()));
    };
    settled("ab");
    is_well.store(0, SeqCst);
    settled("b");
    is_well.store(1, SeqCst);
    settled("ab");
    assert!(a.requests().iter().any(|request| request.line == "GET /health HTTP/1.0"), "{:?}", a.requests()[0].line);
    terse.end();
}

/// A dead server that no check has found yet costs an attempt, not a request: nothing had been sent.
#[test]
fn attempts_elsewhere() {
    let mut servers = servers(2);
    servers[0].kill();
    let terse = listen(&format!("option redispatch\n retries 2\n timeout connect 200ms\n{}", lines(&servers, &[""])));
    for method in ["GET", "POST"] {
        for _ in 0..4 {
            let mut client = terse.client();
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"));
            let response = client.response(method);
            assert_eq!((response.status, response.text().as_str()), (200, "b"), "{method}");
        }
    }
    terse.end();
}

const COOKIE: &str = "cookie SRV insert indirect nocache";

/// The founding document's cookie, through compressed answers.
#[test]
fn a_cookie_keeps_clients_where_they_are() {
    let page = "the same words again and again. ".repeat(200);
    let servers: Vec<Server> = ["a", "b"]
        .map(|name| {
            let body = format!("{name}: {page}");
            Server::answering(move |_| {
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"1\"\r\nSet-Cookie: APP=1\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            })
        })
        .into();
    let terse = listen(&format!("{COOKIE}\n compression algo gzip\n compression type text/html\n{}", lines(&servers, &[""])));
    let name = |response: &Response| -> String {
        assert_eq!((response.status, response.field("content-encoding")), (200, Some("gzip")));
        String::from_utf8(gunzip(&response.body)).unwrap().chars().take(1).collect()
    };
    let cookies = |response: &Response| -> Vec<String> {
        response.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")).map(|(_, value)| value.clone()).collect()
    };
    let gzip = ("Accept-Encoding", "gzip");
    for _ in 0..4 {
        let first = terse.client().get("/", &[gzip]);
        let who = name(&first);
        assert_eq!(cookies(&first), ["APP=1".to_owned(), format!("SRV={who}; path=/")]);
        assert_eq!(first.field("cache-control"), Some("private"), "no shared cache may hand the cookie to another client");
        for _ in 0..3 {
            let again = terse.client().get("/", &[gzip, ("Cookie", &format!("APP=1; SRV={who}"))]);
            assert_eq!((name(&again), cookies(&again)), (who.clone(), vec!["APP=1".to_owned()]));
            assert_eq!(again.field("cache-control"), None);
        }
    }
    let unknown = terse.client().get("/", &[gzip, ("Cookie", "SRV=z")]);
    assert_eq!(cookies(&unknown).len(), 2, "a server that is not there: another, and its cookie");
    let seen: Vec<_> =
        servers.iter().flat_map(Server::requests).filter_map(|request| request.field("cookie").map(str::to_owned)).collect();
    assert!(!seen.is_empty() && seen.iter().all(|cookie| cookie == "APP=1"), "servers do not see ours: {seen:?}");
    terse.end();
}

#[test]
fn cookies_of_the_application() {
    let servers: Vec<Server> = ["a", "b"]
        .map(|name| {
            Server::answering(move |_| {
                format!("HTTP/1.1 200 OK\r\nSet-Cookie: SRV=1234; path=/\r\nContent-Length: 1\r\n\r\n{name}")
            })
        })
        .into();
    for (word, ours, seen) in [("rewrite", "SRV={}; path=/", "SRV={}"), ("prefix", "SRV={}~1234; path=/", "SRV=1234")] {
        let terse = listen(&format!("cookie SRV {word}\n{}", lines(&servers, &[""])));
        for _ in 0..2 {
            let first = terse.client().get("/", &[]);
            let who = first.text();
            let cookie = first.field("set-cookie").unwrap();
            assert_eq!(cookie, ours.replace("{}", &who), "{word}");
            for _ in 0..3 {
                let back = cookie.split(';').next().unwrap();
                assert_eq!(terse.client().get("/", &[("Cookie", back)]).text(), who, "{word}");
            }
            let server = &servers[usize::from(who == "b")];
            assert_eq!(server.requests().last().unwrap().field("cookie"), Some(seen.replace("{}", &who).as_str()), "{word}");
        }
        terse.end();
    }
}

/// The server that a cookie names is dead: with `option redispatch` another takes over, without it none does.
#[test]
fn redispatched() {
    let mut servers = servers(2);
    servers[0].kill();
    let text = lines(&servers, &[""]);
    let terse = listen(&format!("{COOKIE}\n option redispatch\n retries 2\n timeout connect 100ms\n{text}"));
    let response = terse.client().get("/", &[("Cookie", "SRV=a")]);
    assert_eq!((response.text().as_str(), response.field("set-cookie")), ("b", Some("SRV=b; path=/")));
    terse.end();
    let terse = listen(&format!("{COOKIE}\n no option redispatch\n retries 1\n timeout connect 100ms\n{text}"));
    assert_eq!(terse.client().get("/", &[("Cookie", "SRV=a")]).status, 503);
    terse.end();
    // Once checks have found it dead, its cookie binds no client.
    let terse = listen(&format!("{COOKIE}\n no option redispatch\n default-server check inter 20ms fall 1\n retries 0\n{text}"));
    until("the server to be down", || (terse.client().get("/", &[("Cookie", "SRV=a")]).text() == "b").then_some(()));
    terse.end();
}

/// A server gets so many requests at a time; the others wait, in their order.
#[test]
fn queues() {
    let (server, go, most) = holding("a");
    let terse = listen(&format!("server a {} maxconn 2", server.address()));
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..6 {
        clients.push(send(&terse, &format!("/held/{number}")));
        // The next one comes when this one is with the server, or waits for it.
        until("the request to arrive", || (number >= 2 || server.requests().len() > number).then_some(()));
        readable(clients[number].stream(), Duration::from_millis(30));
    }
    assert_eq!(server.requests().len(), 2);
    for ended in 1..=6 {
        go.send(()).unwrap();
        until("the next one's turn", || (server.requests().len() == 6.min(2 + ended)).then_some(()));
    }
    for client in &mut clients {
        assert_eq!(client.response("GET").text(), "a");
    }
    let order: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(most.load(SeqCst), 2);
    assert_eq!(order, ["/held/0", "/held/1", "/held/2", "/held/3", "/held/4", "/held/5"]);
    terse.end();
}

#[test]
fn waiting_has_an_end() {
    let (server, go, _) = holding("a");
    let terse = listen(&format!("timeout queue 150ms\n server a {} maxconn 1", server.address()));
    let mut first = send(&terse, "/held");
    until("the request", || (server.requests().len() == 1).then_some(()));
    let begun = Instant::now();
    assert_eq!(send(&terse, "/late").response("GET").status, 503);
    assert!(begun.elapsed() >= Duration::from_millis(150) && begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    go.send(()).unwrap();
    assert_eq!(first.response("GET").text(), "a");
    assert_eq!(send(&terse, "/next").response("GET").text(), "a");
    terse.end();
}

#[test]
fn clients_that_leave_the_queue() {
    let (server, go, _) = holding("a");
    let terse = listen(&format!("option abortonclose\n server a {} maxconn 1", server.address()));
    let mut first = send(&terse, "/held");
    until("the request", || (server.requests().len() == 1).then_some(()));
    let mut gone = send(&terse, "/gone");
    gone.stream().shutdown(std::net::Shutdown::Write).unwrap();
    gone.rest();
    go.send(()).unwrap();
    assert_eq!(first.response("GET").text(), "a");
    assert_eq!(send(&terse, "/next").response("GET").text(), "a");
    let targets: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/held", "/next"], "who has gone is not asked for any more");
    terse.end();
}

/// A request that waits for any server takes the first that is free.
#[test]
fn the_first_free_server() {
    let ((a, _go_a, _), (b, go_b, _)) = (holding("a"), holding("b"));
    let terse = listen(&format!("server a {} maxconn 1\n server b {} maxconn 1", a.address(), b.address()));
    let _held: Vec<Client> = (0..2).map(|_| send(&terse, "/held")).collect();
    until("both to be busy", || (a.requests().len() + b.requests().len() == 2).then_some(()));
    let mut waiting = send(&terse, "/");
    assert!(!readable(waiting.stream(), Duration::from_millis(50)));
    go_b.send(()).unwrap();
    assert_eq!(waiting.response("GET").text(), "b");
    terse.end();
}

/// A server that dies while others wait for it: they go elsewhere.
#[test]
fn a_queue_whose_server_dies() {
    let (mut a, go, _) = holding("a");
    let b = Server::body("b");
    let terse = listen(&format!(
        "option redispatch\n server a {} maxconn 1 check inter 20ms fall 1\n server b {} backup",
        a.address(),
        b.address()
    ));
    let mut held = send(&terse, "/held");
    until("the held request", || a.requests().iter().any(|request| request.target == "/held").then_some(()));
    let mut waiting = send(&terse, "/");
    assert!(!readable(waiting.stream(), Duration::from_millis(50)));
    a.kill();
    drop(go);
    assert!(matches!(held.response("GET").status, 200 | 502), "it may have been on its way");
    assert_eq!(waiting.response("GET").text(), "b");
    terse.end();
}

/// `maxconn` of a frontend: those beyond wait in the kernel.
#[test]
fn clients_wait_too() {
    let (server, go, most) = holding("a");
    let terse = listen(&format!("maxconn 2\n server a {}", server.address()));
    let mut clients: Vec<Client> = (0..4).map(|_| send(&terse, "/held")).collect();
    until("two requests", || (server.requests().len() == 2).then_some(()));
    assert!(!readable(clients[3].stream(), Duration::from_millis(50)));
    for _ in 0..4 {
        go.send(()).unwrap();
    }
    for client in clients.drain(..) {
        let mut client = client;
        assert_eq!(client.response("GET").text(), "a");
    }
    assert_eq!(most.load(SeqCst), 2);
    terse.end();
}
