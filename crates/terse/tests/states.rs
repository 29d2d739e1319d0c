//! What is known of streams while they last (bytes each way, their tasks' calls), and their ends where neither peer ends them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use rustix::process::Signal;
use std::io::Read;
use support::client::Client;
use support::proxy::{DEFAULTS, listen, sections};
use support::server::{Request, Server};
use support::{Terse, until};

#[test]
fn bytes_are_counted_on_both_sides() {
    let server = Server::body("four");
    let terse = listen(&format!(
        "http-request set-header X-More yes\n http-response set-header Sent %[req.bytes_out]\n \
         http-response set-header Came %[req.bytes_in]\n server s {}",
        server.address()
    ));
    let mut client = terse.client();
    for _ in 0..2 {
        let head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.send(head);
        let response = client.response("GET");
        let sent = head.len() + "X-More: yes\r\n".len();
        assert_eq!(["came", "sent"].map(|name| response.field(name).unwrap().parse()), [Ok(head.len()), Ok(sent)]);
    }
    terse.end();
}

#[test]
fn tasks_are_measured() {
    let terse = sections(
        "http-request return status 200 hdr calls %[cpu_calls] hdr busy %[cpu_ns_tot] hdr each %[cpu_ns_avg] hdr waited %[lat_ns_tot]",
        "",
    );
    let mut client = terse.client();
    for _ in 0..3 {
        let response = client.get("/", &[]);
        let number = |name: &str| response.field(name).unwrap().parse::<u64>().unwrap();
        assert!((1..10).contains(&number("calls")), "{response:?}");
        assert!(number("busy") > 0 && number("each") > 0, "{response:?}");
        // Reading waits for nothing but the kernel: a moment passes between its word and the call.
        assert!(number("waited") > 0 || number("calls") == 1, "{response:?}");
    }
    terse.end();
}

/// A server whose answers stop where their paths say. It sees to the end of each connection.
fn stopping() -> Server {
    Server::start(|connection| {
        if let Some(request) = connection.head()
            && connection.send(answer(&request))
        {
            connection.rest();
        }
    })
}

fn answer(request: &Request) -> String {
    match request.target.as_str() {
        "/length" => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf".to_owned(),
        "/chunks" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_owned(),
        "/switch" => "HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\nhalf".to_owned(),
        "/coded" => {
            let words = "all of these words are like words ".repeat(100);
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{words}\r\n",
                words.len()
            )
        }
        "/bytes" => "half".to_owned(),
        _ => String::new(),
    }
}

/// Requests that stop on their way: what comes back until then, and what their lines in the log say when they are cut: who and where, the
/// status, bytes from the client and to it, bytes into the compressor.
const STOPS: &[(&str, &str, &str)] = &[
    ("GET /silent", "", "KH 502 33 N 0"),
    ("GET /length", "half", "KD 200 33 45 0"),
    ("GET /chunks", "half\r\n", "KD 200 33 56 0"),
    ("GET /switch", "half", "K- 101 70 63 0"),
    ("GET /coded", "\r\n", "KD 200 55 N 3400"),
    ("POST /upload", "", "KH 502 58 N 0"),
    ("GET /script", "", "KH 502 33 N 0"),
    ("GET /tarpit", "", "KT -1 33 0 0"),
    ("POST /waits", "", "KR -1 53 0 0"),
    ("GET /secure", "", "KC 503 33 N 0"),
    ("GET /queue", "", "KQ 503 32 N 0"),
    ("GET /bytes", "half", "K- 0 32 4 0"),
];

/// Wherever a stream is when it is cut, it is logged, with the figures that it has then.
#[test]
fn what_a_hard_stop_cuts_is_logged() {
    let (server, silent) = (stopping(), Server::start(|connection| drop(connection.rest())));
    let (at, secure) = (server.address(), silent.address());
    let line = "log-format \"%HP %ts %ST %U %B %[res.comp_in]\"";
    let terse = Terse::with(&format!(
        "global\n nbthread 2\n hard-stop-after 1ms\n stats socket fd@${{cli}} level admin\n \
         tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/script.lua\"\n\
         {DEFAULTS} log stdout format raw local0\n\
         frontend web\n bind fd@${{web}}\n {line}\n compression algo gzip\n compression type text/plain\n timeout tarpit 1h\n \
         http-request tarpit if {{ path /tarpit }}\n http-request wait-for-body time 1h if {{ path /waits }}\n \
         http-request use-service lua.sleep if {{ path /script }}\n \
         use_backend secure if {{ path /secure }}\n use_backend queue if {{ path /queue }}\n default_backend b\n\
         backend b\n server s {at}\nbackend secure\n server s {secure} ssl verify none\nbackend queue\n server s {at} maxconn 1\n\
         listen bytes\n mode tcp\n bind fd@${{bytes}}\n log-format \"/bytes %ts 0 %U %B 0\"\n server s {at}\n",
    ))
    .file("script.lua", "core.register_service('sleep', 'http', function(applet) core.msleep(1000000) end)");
    let terse = terse.listen("web").listen("bytes").listen("cli").start();
    let mut clients = vec![begin(&terse, "GET /queue", "")];
    until("the slot to be taken", || (server.requests().len() == 1).then_some(()));
    clients.extend(STOPS.iter().map(|(request, comes, _)| begin(&terse, request, comes)));
    until("all of them", || {
        (server.requests().len() == 8 && silent.accepted() == 1 && terse.info("CurrConns") == 13).then_some(())
    });
    until("the queue", || terse.command("show stat queue 2 -1").contains("\nqueue,BACKEND,1,1,").then_some(()));
    terse.signal(Signal::USR1);
    let ended = terse.wait().expect(0);
    assert_eq!((server.open(), silent.open()), (0, 0));
    for (request, _, says) in STOPS {
        let path = request.split(' ').nth(1).unwrap();
        let lines = ended.stdout.lines().filter_map(|line| line.strip_prefix(path)).map(str::trim);
        let found = lines.clone().filter(|line| is_like(line, says)).count();
        assert_eq!(found, 1, "{request}: {says}, not {:?}", lines.collect::<Vec<_>>());
    }
}

/// Sends a request on a connection of its own, and reads until what comes back ends so.
fn begin(terse: &Terse, request: &str, comes: &str) -> Client {
    let path = request.split(' ').nth(1).unwrap();
    let mut client = Client::connect(terse.address(if path == "/bytes" { "bytes" } else { "web" }));
    let more = match path {
        "/upload" | "/waits" => "Content-Length: 10\r\n\r\nhalf",
        "/switch" => "Connection: upgrade\r\nUpgrade: other\r\n\r\n",
        "/coded" => "Accept-Encoding: gzip\r\n\r\n",
        _ => "\r\n",
    };
    client.send(format!("{request} HTTP/1.1\r\nHost: a\r\n{more}"));
    let mut came = Vec::new();
    while !came.ends_with(comes.as_bytes()) || came.len() < comes.len() || came.ends_with(b"\r\n\r\n") {
        let mut room = [0; 4096];
        let n = client.stream().read(&mut room).unwrap();
        assert!(n > 0, "{request}: {came:?}");
        came.extend_from_slice(&room[..n]);
    }
    client
}

/// Whether a line says this; `N` is any number but 0.
fn is_like(line: &str, says: &str) -> bool {
    let fits = |(word, said): (&str, &str)| word == said || said == "N" && word.parse::<u64>().is_ok_and(|n| n > 0);
    line.split(' ').count() == says.split(' ').count() && line.split(' ').zip(says.split(' ')).all(fits)
}

/// A server that is marked down has its slot, its counters and the lines of its streams back at once, whatever their clients do.
#[test]
fn a_server_that_is_marked_down_is_free_at_once() {
    let server = stopping();
    let terse = Terse::with(&format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stdout format raw local0\n\
         log-format \"%HP %ts %s\"\n default-server maxconn 1\n\
         listen web\n bind fd@${{web}}\n server a {0} on-marked-down shutdown-sessions\n\
         listen bytes\n mode tcp\n bind fd@${{bytes}}\n log-format \"/bytes %ts %s\"\n server a {0} on-marked-down shutdown-sessions\n\
         listen backup\n bind fd@${{backup}}\n server a {0} disabled on-marked-up shutdown-backup-sessions\n server b {0} backup\n",
        server.address()
    ));
    let terse = terse.listen("web").listen("bytes").listen("backup").listen("cli").start();
    let streams = [
        ("GET /silent", "", "DH a"),
        ("GET /length", "half", "DD a"),
        ("GET /switch", "half", "D- a"),
        ("GET /bytes", "half", "D- a"),
    ];
    for (request, comes, says) in streams {
        let proxy = if request == "GET /bytes" { "bytes" } else { "web" };
        let _client = begin(&terse, request, comes);
        let counts = |n: u32| {
            let row = format!("{proxy},a,0,0,{n},");
            until("the server's count", || terse.command("show stat").lines().any(|line| line.starts_with(&row)).then_some(()));
        };
        counts(1);
        terse.command(&format!("set server {proxy}/a state maint"));
        counts(0);
        until("its line", || terse.stdout().lines().any(|line| line.ends_with(says)).then_some(()));
        terse.command(&format!("set server {proxy}/a state ready"));
    }
    terse.end();
}
