//! Logs beside the workers: rings and their servers, syslog that is passed on, backends of logs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::client::get;
use support::proxy::DEFAULTS;
use support::{Terse, free_address, until};

/// A process whose proxy `web` answers itself and logs as `log` sets, with these sections and a stats socket.
fn process(log: &str, sections: &str) -> Terse {
    let text = format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n{log}\n \
         http-request return status 200 content-type text/plain string hello\n{sections}\n"
    );
    Terse::with(&text).listen("web").listen("cli").listen("syslog").start()
}

fn syslog_server() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn received(socket: &UdpSocket) -> String {
    let mut buffer = vec![0; 65536];
    let len = socket.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..len]).into_owned()
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_flood_of_syslog_slows_no_request() {
    let (target, intake) = (syslog_server(), free_address());
    let to = target.local_addr().unwrap();
    let terse = process("", &format!("log-forward f\n dgram-bind {intake}\n log {to} local0"));
    get(terse.address("web"), "/");
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !stop.load(Relaxed) {
                let message = [b"<13>Feb  6 12:14:14 host tag: ".as_slice(), &[b'x'; 900]].concat();
                sent.fetch_add(u64::from(socket.send_to(&message, intake).is_ok()), Relaxed);
            }
        });
        until("the flood", || (sent.load(Relaxed) > 10_000).then_some(()));
        let mut slowest = Duration::ZERO;
        for _ in 0..200 {
            let begun = Instant::now();
            assert_eq!(get(terse.address("web"), "/").text(), "hello");
            slowest = slowest.max(begun.elapsed());
        }
        stop.store(true, Relaxed);
        // Far more than any request needs, far less than it would take to wait for the flood's end.
        assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    });
    assert!(terse.info("CumRecvLogs") > 100);
    assert!(received(&target).starts_with("<13>Feb  6 12:14:14 host tag: xxx"));
    terse.end();
}

#[test]
fn values_that_expressions_leave_in_rings() {
    let lines = " http-request set-var(txn.x) path,debug(path),length,debug\n http-request set-var(txn.y) src,debug(from,r)";
    let terse = process(lines, "ring r\n format raw\n size 4096");
    get(terse.address("web"), "/a%20b");
    assert_eq!(terse.command("show events buf0").trim_end(), "[debug] path: type=str </a%20b>\n[debug] : type=sint <6>");
    assert_eq!(terse.command("show events r").trim_end(), "[debug] from: type=ipv4 <127.0.0.1>");
    terse.end();
}

#[test]
fn a_server_that_was_away_gets_what_its_ring_holds() {
    let address = free_address();
    let ring = format!("ring r\n format raw\n size 4096\n timeout connect 1s\n server s tcp@{address}");
    let terse = process(" log ring@r local0\n log-format \"%HU\"", &ring);
    for n in 0..400 {
        get(terse.address("web"), &format!("/{n:0>40}"));
    }
    let held = terse.command("show events r");
    assert!(held.starts_with(&format!("/{:0>40}\n", 0)) && held.len() < 4096, "{}", held.len());
    assert!(terse.command("show events").contains(" dropped, r"));
    assert!(terse.info("DroppedLogs") > 300);
    // The port was free a moment ago; another program's connection may have it now.
    let listener = until("the ring's server can come back", || TcpListener::bind(address).ok());
    let mut server = BufReader::new(accepted(&listener));
    let mut line = String::new();
    for held in held.trim_end().lines() {
        line.clear();
        server.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), held);
    }
    get(terse.address("web"), "/and-on");
    line.clear();
    server.read_line(&mut line).unwrap();
    assert_eq!(line, "/and-on\n");
    terse.end();
}

fn accepted(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn the_last_lines_reach_a_server_over_a_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let terse = process(&format!(" log tcp@{to} format priority local0\n log-format \"%HU\""), "");
    (0..50).for_each(|n| drop(get(terse.address("web"), &format!("/{n}"))));
    let mut server = accepted(&listener);
    terse.end();
    let mut text = String::new();
    server.read_to_string(&mut text).unwrap();
    let expected: String = (0..50).map(|n| format!("<134>/{n}\n")).collect();
    assert_eq!(text, expected);
}

#[test]
fn what_is_no_syslog_is_dropped_and_counted() {
    let target = syslog_server();
    let to = target.local_addr().unwrap();
    let terse =
        process("", &format!("log-forward f\n bind fd@${{syslog}}\n maxconn 2\n timeout client 10s\n log {to} format raw local0"));
    let send = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(terse.address("syslog")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A request that is refused early may not be taken to its end.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    };
    let huge = vec![b'<'; 1 << 20];
    let hostile: [&[u8]; 9] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
        b"0 <13>",
        b"99999999999999999999 <13>",
        b"1111111111111111111111111111111111",
        b"999999 <13>x",
        b"20 <13>cut",
        b"<13>no end of line",
        &huge,
    ];
    for (n, bytes) in hostile.iter().enumerate() {
        let before = terse.info("DroppedLogs");
        send(bytes);
        until("it to be counted", || (terse.info("DroppedLogs") > before).then_some(()));
        send(format!("<13>Feb  6 12:14:14 h t: good {n}\n").as_bytes());
        assert_eq!(received(&target), format!("good {n}\n"));
    }
    send(b"9 <13>a\0b\nc<13>next\r\n");
    assert_eq!(received(&target), "a b c\n");
    assert_eq!(received(&target), "next\n");
    terse.end();
}

#[test]
fn lines_are_balanced_over_a_backend() {
    let servers = [syslog_server(), syslog_server(), syslog_server()];
    let [a, b, z] = servers.each_ref().map(|server| server.local_addr().unwrap());
    let backend = format!("backend logs\n mode log\n server a udp@{a}\n server b udp@{b}\n server z udp@{z} backup");
    let terse = process(" log backend@logs format raw local0\n log-format \"%HU\"", &backend);
    let web = terse.address("web");
    (0..4).for_each(|n| drop(get(web, &format!("/{n}"))));
    let mut lines: Vec<String> = (0..2).flat_map(|_| [received(&servers[0]), received(&servers[1])]).collect();
    lines.sort();
    assert_eq!(lines, ["/0\n", "/1\n", "/2\n", "/3\n"]);
    for server in ["a", "b"] {
        assert_eq!(terse.command(&format!("disable server logs/{server}")), "\n");
    }
    get(web, "/backup");
    assert_eq!(received(&servers[2]), "/backup\n");
    terse.end();
}

#[test]
fn bytes_are_counted_while_they_pass() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap();
    let text = format!(
        "global\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n mode tcp\n option contstats\n \
         option socket-stats\n server s {backend}\n"
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let figure = |row: &str, column: usize| {
        let text = terse.command("show stat");
        let line = text.lines().find(|line| line.starts_with(row)).unwrap().to_owned();
        line.split(',').nth(column).unwrap().parse::<u64>().unwrap()
    };
    let mut client = TcpStream::connect(terse.address("web")).unwrap();
    client.write_all(b"12345").unwrap();
    let mut server = accepted(&listener);
    server.write_all(b"1234567").unwrap();
    let shown = |row: &str| (figure(row, 8), figure(row, 9)) == (5, 7);
    for row in ["web,FRONTEND", "web,sock-1", "web,s,", "web,BACKEND"] {
        until("bytes of a connection that lives", || shown(row).then_some(()));
    }
    drop((client, server));
    until("the end", || (figure("web,FRONTEND", 4) == 0).then_some(()));
    assert!(["web,FRONTEND", "web,sock-1", "web,s,", "web,BACKEND"].into_iter().all(shown));
    terse.end();
}

#[test]
fn messages_keep_their_form_or_take_another() {
    let (kept, changed, replaced) = (syslog_server(), syslog_server(), syslog_server());
    let [k, c, r] = [&kept, &changed, &replaced].map(|socket| socket.local_addr().unwrap());
    let (first, second) = (free_address(), free_address());
    let sections = format!(
        "log-forward f\n dgram-bind {first}\n log {k} local0\n log {c} format rfc5424 local0 notice\n\
         log-forward g\n dgram-bind {second}\n option host replace\n log {r} format rfc3164 local0"
    );
    let terse = process("", &sections);
    get(terse.address("web"), "/");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let message = "<11>1 2024-06-12T10:09:11.823400+02:00 www app 7 ID1 [a@1 b=\"c\"] text";
    socket.send_to(message.as_bytes(), first).unwrap();
    assert_eq!(received(&kept), format!("{message}\n"));
    assert_eq!(received(&changed), format!("{message}\n"));
    socket.send_to(b"<14>Feb  6 12:14:14 www app[7]: text", first).unwrap();
    assert_eq!(received(&kept), "<14>Feb  6 12:14:14 www app[7]: text\n");
    socket.send_to(b"bare", first).unwrap();
    let line = received(&kept);
    assert!(line.starts_with("<133>") && line.ends_with(" 127.0.0.1 bare\n"), "{line}");
    // Milder than its target takes: the line before is not there.
    let line = received(&changed);
    assert!(line.starts_with("<133>1 ") && line.ends_with(" 127.0.0.1 - - - - bare\n"), "{line}");
    socket.send_to(message.as_bytes(), second).unwrap();
    assert_eq!(received(&replaced), "<11>Jun 12 10:09:11 127.0.0.1 app[7]: text\n");
    terse.end();
}

/// A proxy of bytes before a server that refuses, and what it logs.
fn refusing(lines: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n mode tcp\n log stdout format raw local0\n \
         log-format \"%Tw %Tt %ts\"\n timeout connect 50ms\n server dead 127.0.0.1:1\n{lines}\n"
    );
    Terse::with(&text).listen("web").arg(&["-db"]).start()
}

/// The numbers and the letters of the only line.
fn only_line(terse: Terse) -> (i64, i64, String) {
    terse.signal(rustix::process::Signal::USR1);
    let output = terse.wait().stdout;
    let line = output.lines().find(|line| !line.starts_with("Proxy ")).unwrap_or_else(|| panic!("{output}"));
    let words: Vec<_> = line.split(' ').collect();
    (words[0].parse().unwrap(), words[1].parse().unwrap(), words[2].to_owned())
}

#[test]
fn retries_are_no_time_in_a_queue_and_end_by_a_close() {
    let terse = refusing(" retries 4");
    let mut client = TcpStream::connect(terse.address("web")).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"hello").unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0, "a close, no reset");
    let (queued, total, state) = only_line(terse);
    assert!(queued < 100 && total >= 200, "{queued} of {total} ms");
    assert_eq!(state, "SC");
}

#[test]
fn retries_end_when_the_client_has_closed() {
    for (lines, said) in [("", ""), (" option abortonclose", "hello")] {
        let terse = refusing(&format!(" retries 10000\n{lines}"));
        let mut client = TcpStream::connect(terse.address("web")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(said.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(only_line(terse).2, "CC");
    }
}

/// A request without a sound `traceparent` gets one, a sound one passes as it is, and the log tells the trace of both.
#[test]
fn traces_are_passed_on_or_made() {
    let sound = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    let server = support::server::Server::answering(|request: &support::server::Request| {
        let body = ["traceparent", "tracestate"].map(|name| request.every(name).collect::<Vec<_>>().join("+")).join(" ");
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let log = syslog_server();
    let text = |option: &str| {
        format!(
            "global\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n log {} local0\n {option}\n log-format \"<%[trace_id]>\"\n server s {}\n",
            log.local_addr().unwrap(),
            server.address()
        )
    };
    // `<134>... <trace>`: lines about starts and ends have no trace.
    let logged = || {
        let trace =
            |line: String| Some(line.rsplit_once('<').filter(|(start, _)| !start.is_empty())?.1.split_once('>')?.0.to_owned());
        std::iter::repeat_with(|| received(&log)).find_map(trace).unwrap()
    };
    let terse = Terse::with(&text("option traceparent")).listen("web").start();
    let ask = |fields: &[(&str, &str)]| support::client::Client::connect(terse.address("web")).get("/", fields).text();
    assert_eq!(ask(&[("Traceparent", sound), ("tracestate", "a=b")]), format!("{sound} a=b"));
    assert_eq!(logged(), &sound[3..35]);
    let unsound = sound.replace("4bf9", "4BF9");
    for fields in [
        vec![],
        vec![("traceparent", unsound.as_str()), ("tracestate", "a=b")],
        vec![("traceparent", sound), ("traceparent", sound), ("tracestate", "a=b")],
    ] {
        let seen = ask(&fields);
        let made = seen.strip_suffix(' ').unwrap_or_else(|| panic!("'{seen}' has a state"));
        assert!(made.len() == 55 && made.starts_with("00-") && made.ends_with("-01") && made != sound, "{made}");
        assert_eq!(logged(), &made[3..35]);
    }
    assert_ne!(ask(&[]), ask(&[]), "each request has a trace of its own");
    terse.end();
    // Without the option no identifier is made, and the received one is logged.
    let terse = Terse::with(&text("")).listen("web").start();
    let ask = |fields: &[(&str, &str)]| support::client::Client::connect(terse.address("web")).get("/", fields).text();
    drop((logged(), logged()));
    assert_eq!((ask(&[]), logged()), (" ".into(), "-".into()));
    assert_eq!((ask(&[("traceparent", sound)]), logged()), (format!("{sound} "), sound[3..35].into()));
    terse.end();
}
