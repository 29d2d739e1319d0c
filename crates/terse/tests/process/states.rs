//! Facts about streams while they last (bytes each way, their tasks' calls), and their ends where neither peer ends them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use support::client::{Client, get};
use support::proxy::{DEFAULTS, listen, sections};
use support::server::{Request, Server};
use support::{Terse, free_address, until};

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
        // Reading waits for nothing but the kernel: a moment passes between its notice and the call.
        assert!(number("waited") > 0 || number("calls") == 1, "{response:?}");
    }
    terse.end();
}

/// A server whose responses stop where their paths tell. It sees to the end of each connection.
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

/// Requests that stop on their way: the bytes that come back until then, and the log's line when they are cut. The line has the
/// termination state, the status, bytes from the client and to it, bytes into the compressor.
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

/// A client whose upload is ended is told, and nothing more is read from it, however much of the upload is still on its way.
#[test]
fn an_ended_upload_is_not_received() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.rest();
    });
    let terse = Terse::with(&format!(
        "global\n stats socket fd@${{cli}} level admin\n{DEFAULTS} listen web\n bind fd@${{web}}\n server s {}\n",
        server.address()
    ));
    let terse = terse.listen("web").listen("cli").start();
    let mut client = Client::connect(terse.address("web"));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let mut stream = client.stream().try_clone().unwrap();
    let sending = std::thread::spawn(move || (0..100_000).any(|_| stream.write_all(&[b'x'; 1000]).is_err()));
    let id = until("the stream", || listed(&terse, "").first().map(|(id, _)| id.clone()));
    assert_eq!(terse.told(&format!("shutdown session {id}")), "");
    assert_eq!(client.response("POST").status, 502);
    assert!(sending.join().unwrap(), "all of it was received");
    terse.end();
}

/// A stream is logged when it is cut, in whatever state, with the figures that it has then.
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

/// Sends a request on a connection of its own, and reads until the bytes received end with `comes`.
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

/// True if a line matches; `N` is any number but 0.
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
        let seen = server.requests().len();
        let _client = begin(&terse, request, comes);
        until("the request at the server", || (server.requests().len() > seen).then_some(()));
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

/// The addresses of clients, and the numbers of streams, of `show sess`.
fn listed(terse: &Terse, words: &str) -> Vec<(String, String)> {
    let text = terse.command(&format!("show sess {words}"));
    let fields =
        |line: &str| Some((line.split_once(": proto=")?.0.to_owned(), line.split(" src=").nth(1)?.split(' ').next()?.to_owned()));
    text.lines().filter_map(fields).collect()
}

/// Streams are listed where they are, and an operator ends one, or those of a server.
#[test]
fn streams_are_listed_and_ended() {
    let server = stopping();
    let terse = Terse::with(&format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stdout format raw local0\n log-format \"%HP %ts\"\n\
         frontend web\n bind fd@${{web}}\n default_backend b\nbackend b\n server s {0}\n server t {0} weight 0\n\
         listen bytes\n mode tcp\n bind fd@${{bytes}}\n log-format \"/bytes %ts\"\n server s {0}\n",
        server.address()
    ));
    let terse = terse.listen("web").listen("bytes").listen("cli").start();
    let mut clients: Vec<Client> = [("GET /silent", ""), ("GET /length", "half"), ("GET /bytes", "half")]
        .map(|(request, comes)| begin(&terse, request, comes))
        .into();
    until("the streams", || (server.requests().len() == 3 && listed(&terse, "server b/s").len() == 2).then_some(()));
    assert_eq!((listed(&terse, "").len(), listed(&terse, "frontend bytes").len(), listed(&terse, "backend b").len()), (3, 1, 2));
    assert_eq!((listed(&terse, "older 1h").len(), listed(&terse, "server b/t").len()), (0, 0));
    let line = terse.command("show sess frontend web");
    assert!(line.contains(" fe=web be=b srv=s ts=") && line.contains(" age=") && line.contains(" scb=[8,"), "{line}");
    let address = clients[1].stream().local_addr().unwrap().to_string();
    let (id, _) = listed(&terse, "").into_iter().find(|(_, client)| *client == address).unwrap();
    let long = terse.command(&format!("show sess {id}"));
    for part in
        [&format!("{id}: ["), "proto=tcpv4 source=127.0.0.1:", "  frontend=web (id=", "  backend=b (id=", "  server=s (id=1) addr="]
    {
        assert!(long.contains(part), "{part}: {long}");
    }
    assert!(long.contains("state=D req=(in=33 out=33) res=(in=45 out=45)"), "{long}");
    assert_eq!(terse.command("show sess all").matches("  server=s ").count(), 3);

    assert_eq!(terse.told(&format!("shutdown session {id}")), "");
    assert_eq!(clients.remove(1).rest(), b"");
    until("its end", || (listed(&terse, "").len() == 2).then_some(()));
    assert_eq!(terse.told(&format!("shutdown session {id}")), "No such session (use 'show sess').");
    assert_eq!(terse.told(&format!("show sess {id}")), "Session not found.");
    assert_eq!(terse.told("shutdown sessions server b/s"), "");
    assert_eq!(clients.remove(0).response("GET").status, 502);
    assert_eq!(listed(&terse, "").len(), 1, "the other server's goes on");
    assert_eq!(terse.told("shutdown sessions server bytes/s"), "");
    assert_eq!(clients.remove(0).rest(), b"");
    for line in ["/length KD", "/silent KH", "/bytes K-"] {
        until(line, || terse.stdout().lines().any(|logged| logged == line).then_some(()));
    }
    assert!(listed(&terse, "").is_empty());
    terse.end();
}

/// A frontend that is disabled refuses connections until it is enabled; one that is shut down refuses them for good.
#[test]
fn frontends_close_and_open() {
    let (own, last, answer) = (free_address(), free_address(), "http-request return status 200");
    let terse = Terse::with(&format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\n\
         frontend own\n bind {own}\n {answer}\nfrontend inherited\n bind fd@${{web}}\n {answer}\nfrontend last\n bind {last}\n {answer}\n",
    ));
    let terse = terse.listen("web").listen("cli").start();
    let status = |name: &str| {
        let row = terse.command(&format!("show stat {name} 1 -1"));
        row.lines().find(|line| line.starts_with(name)).unwrap().split(',').nth(17).unwrap().to_owned()
    };
    let is_refused = |address| TcpStream::connect(address).is_err();
    until("it to listen", || (!is_refused(own)).then_some(()));
    let mut kept = Client::connect(own);
    assert_eq!(kept.get("/", &[]).status, 200);
    for _ in 0..2 {
        assert_eq!(terse.told("disable frontend own"), "");
        assert_eq!(status("own"), "PAUSED");
        until("both workers to refuse", || is_refused(own).then_some(()));
        assert_eq!(kept.get("/", &[]).status, 200, "what is there goes on");
        assert_eq!(terse.told("enable frontend own"), "");
        assert_eq!(status("own"), "OPEN");
        until("it to listen again", || (!is_refused(own)).then_some(()));
        assert_eq!(get(own, "/").status, 200);
    }
    // Others hold this socket, too: connections wait.
    assert_eq!(terse.told("disable frontend inherited"), "");
    let mut waits = terse.client();
    waits.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(terse.told("enable frontend inherited"), "");
    assert_eq!(waits.response("GET").status, 200);
    assert_eq!(terse.told("shutdown frontend last"), "");
    assert_eq!(status("last"), "STOP");
    until("it to refuse", || is_refused(last).then_some(()));
    assert_eq!(terse.told("enable frontend last"), "Frontend was previously shut down, cannot enable.");
    assert_eq!(kept.get("/", &[]).status, 200);
    terse.end();
}
