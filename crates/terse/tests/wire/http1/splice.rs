//! `option splice-...`: bytes that go through pipes arrive as if they had been copied, and break off as if they had been.

use super::support::client::Client;
use super::support::proxy::DEFAULTS;
use super::support::random::Random;
use super::support::server::{Connection, Server, ok};
use super::support::{PATIENCE, Terse, until};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};

const BOTH: &str = "option splice-request\n option splice-response";
const LARGE: usize = 3 << 20;

/// A running process whose only proxy, `web`, has these lines.
fn start(global: &str, lines: &str, server: SocketAddr) -> Terse {
    let global = format!("global\n nbthread 1\n stats socket \"${{dir}}/s.sock\"\n {global}\n");
    Terse::with(&format!("{global}{DEFAULTS}\nlisten web\n bind fd@${{web}}\n {lines}\n server one {server}\n"))
        .listen("web")
        .start()
}

fn ask(terse: &Terse, command: &str) -> String {
    // The process may only just have started.
    let mut socket = until("the stats socket", || UnixStream::connect(terse.path("s.sock")).ok());
    socket.write_all(format!("{command}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// A figure of `show stat typed`; `half` is `F` or `B`.
fn figure(terse: &Terse, half: &str, name: &str) -> u64 {
    let answer = ask(terse, "show stat typed");
    let line = answer.lines().find(|line| line.starts_with(&format!("{half}.")) && line.contains(&format!(".{name}.1:")));
    line.unwrap_or_else(|| panic!("no {name}: {answer}")).rsplit(':').next().unwrap().parse().unwrap()
}

/// The bytes that went through pipes: front in, front out, back in, back out.
fn spliced(terse: &Terse) -> [u64; 4] {
    let of = |half, name| figure(terse, half, name);
    [("F", "h1_spliced_bytes_in"), ("F", "h1_spliced_bytes_out"), ("B", "h1_spliced_bytes_in"), ("B", "h1_spliced_bytes_out")]
        .map(|(half, name)| of(half, name))
}

/// Waits until no pipe is in use; returns the number of pipes that are kept.
fn kept_pipes(terse: &Terse) -> u64 {
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(": ").parse().unwrap()
    };
    until("pipes to be given back", || {
        let info = ask(terse, "show info");
        (number(&info, "PipesUsed") == 0).then(|| number(&info, "PipesFree"))
    })
}

/// A body in chunks of many sizes.
fn chunks(body: &[u8]) -> Vec<u8> {
    let (mut random, mut out, mut rest) = (Random::new(7), Vec::new(), body);
    while !rest.is_empty() {
        let size = [1, 500, 20_000, 70_000, 900_000][random.below(5)].min(rest.len());
        out.extend(format!("{size:x};ext=1\r\n").into_bytes());
        out.extend_from_slice(&rest[..size]);
        out.extend_from_slice(b"\r\n");
        rest = &rest[size..];
    }
    out.extend_from_slice(b"0\r\nX-Sum: 1\r\n\r\n");
    out
}

/// Echoes bodies: `/length`, `/chunks` and `/close` set the framing of the response.
fn echo() -> Server {
    Server::start(|connection| {
        while let Some(request) = connection.request() {
            let (head, body) = match request.target.as_str() {
                "/length" => (format!("Content-Length: {}", request.body.len()), request.body),
                "/chunks" => ("Transfer-Encoding: chunked".into(), chunks(&request.body)),
                _ => ("Connection: close".into(), request.body),
            };
            let sent = connection.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")) && connection.send(body);
            if !sent || request.target == "/close" {
                return;
            }
        }
    })
}

/// Sends a request while its answer is read, which may come meanwhile.
fn exchange(client: &mut Client, head: &str, body: &[u8]) -> Vec<u8> {
    client.send(head);
    client.send(body);
    let response = client.response("POST");
    assert_eq!(response.status, 200);
    response.body
}

#[test]
fn bodies_of_any_size_arrive_whole_and_connections_go_on() {
    let server = echo();
    let all = Random::new(3).bytes(LARGE);
    for lines in ["", BOTH, "option splice-auto", "option splice-response\n option contstats"] {
        let terse = start("", lines, server.address());
        let mut bytes = (0, 0);
        for end in ["length", "chunks"] {
            let mut client = terse.client();
            for size in [0, 1, 16_383, 16_384, 40_000, 65_536, 300_001, LARGE] {
                let body = &all[..size];
                let post = format!("POST /{end} HTTP/1.1\r\nHost: a\r\n");
                let plain = exchange(&mut client, &format!("{post}Content-Length: {size}\r\n\r\n"), body);
                assert!(plain == body, "{lines}: {size} bytes by length, back in {end}");
                let chunked = exchange(&mut client, &format!("{post}Transfer-Encoding: chunked\r\n\r\n"), &chunks(body));
                assert!(chunked == body, "{lines}: {size} bytes in chunks, back in {end}");
                let closed = exchange(
                    &mut terse.client(),
                    &format!("POST /close HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"),
                    body,
                );
                assert!(closed == body, "{lines}: {size} bytes, back until the close");
                bytes = (bytes.0 + 3 * size as u64, bytes.1 + 3 * size as u64);
            }
        }
        let kept = kept_pipes(&terse);
        let [front_in, front_out, back_in, back_out] = spliced(&terse);
        assert_eq!((front_in, back_in), (back_out, front_out), "{lines}: what went in came out");
        match lines {
            "" => assert_eq!((front_in, front_out, kept), (0, 0, 0)),
            BOTH => assert!(front_in > LARGE as u64 && front_out > LARGE as u64 && kept == 1, "{front_in} {front_out} {kept}"),
            "option splice-auto" => {}
            _ => assert!(front_in == 0 && front_out > LARGE as u64),
        }
        // Streams are counted when they have ended, which may be after their answer.
        until("all bytes counted", || {
            (figure(&terse, "F", "bin") > bytes.0 && figure(&terse, "F", "bout") > bytes.1).then_some(())
        });
        terse.end();
    }
}

/// A piece goes on when it comes: the next one is only sent when the one before has arrived.
#[test]
fn pieces_and_pauses() {
    const PIECES: usize = 20;
    const PIECE: usize = 30_000;
    let (goes, go) = mpsc::channel::<()>();
    let go = Mutex::new(go);
    let body = Arc::new(Random::new(5).bytes(PIECES * PIECE));
    let pieces = body.clone();
    let server = Server::start(move |connection| {
        while let Some(request) = connection.head() {
            let chunked = request.target == "/chunked";
            let head = if chunked { "Transfer-Encoding: chunked".into() } else { format!("Content-Length: {}", pieces.len()) };
            connection.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n"));
            if chunked {
                connection.send(format!("{:x}\r\n", pieces.len()));
            }
            for piece in pieces.chunks(PIECE) {
                connection.send(piece);
                go.lock().unwrap().recv().unwrap();
            }
            if chunked {
                connection.send("\r\n0\r\n\r\n");
            }
        }
    });
    let terse = start("", BOTH, server.address());
    let mut client = terse.client();
    for target in ["/plain", "/chunked"] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.head().status, 200);
        let mut got = Vec::new();
        for _ in 0..PIECES {
            let end = got.len() + PIECE;
            while got.len() < end {
                if target == "/chunked" {
                    got.extend(client.chunk().unwrap());
                } else {
                    let mut room = vec![0; PIECE];
                    client.read(&mut room);
                    got.extend(room);
                }
            }
            goes.send(()).unwrap();
        }
        assert!(got == *body, "{target}");
        if target == "/chunked" {
            assert!(client.chunk().is_none());
        }
    }
    assert!(spliced(&terse)[1] > 0);
    assert_eq!(server.accepted(), 1, "the connection is kept");
    terse.end();
}

/// The beginning of a body of an unlisted type is sampled for the console, and the rest of it goes through pipes.
#[test]
fn what_follows_a_sample() {
    let body = Random::new(6).bytes(LARGE);
    let answer = body.clone();
    let server = Server::start(move |connection| {
        while connection.head().is_some() {
            connection.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            ));
            connection.send(&*answer);
        }
    });
    let lines = format!("{BOTH}\n compression algo gzip\n compression type text/plain\n stats enable\n stats uri /stats");
    let terse = start("", &lines, server.address());
    let mut client = terse.client();
    for _ in 0..3 {
        let response = client.get("/", &[("Accept-Encoding", "gzip")]);
        assert!(response.body == body);
    }
    until("a sample", || client.get("/stats;api=types", &[]).text().contains("sample_permille").then_some(()));
    let through = spliced(&terse)[1];
    assert!(through > (LARGE * 3 - LARGE / 4) as u64, "{through} of {}", LARGE * 3);
    terse.end();
}

/// Reads little by little, long after the sender has filled every buffer on the way.
#[test]
fn slow_readers() {
    let body = Random::new(9).bytes(4 * LARGE);
    let answer = Arc::new(body.clone());
    let server = Server::start(move |connection| {
        while connection.head().is_some() {
            connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len()));
            connection.send(&*answer);
        }
    });
    let terse = start("", BOTH, server.address());
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // The pipe fills when the client's socket is full, and is held then.
    until("bytes to wait in a pipe", || ask(&terse, "show info").contains("PipesUsed: 1").then_some(()));
    assert_eq!(client.head().status, 200);
    let mut got = Vec::new();
    let mut random = Random::new(10);
    while got.len() < body.len() {
        let mut room = vec![0; (1 + random.below(9_000)).min(body.len() - got.len())];
        client.read(&mut room);
        got.extend(room);
    }
    assert!(got == body);
    assert_eq!(kept_pipes(&terse), 1);
    terse.end();
}

/// A sender that breaks off in the middle. Bytes that have come go on, the receiver sees that it is not all, and no connection is
/// used again.
#[test]
fn senders_that_break_off() {
    for (head, resets) in
        [("Content-Length: 1000000", false), ("Content-Length: 1000000", true), ("Transfer-Encoding: chunked", false)]
    {
        let (begins, begun) = mpsc::channel();
        let begun = Mutex::new(begun);
        let server = Server::start(move |connection| {
            connection.head().unwrap();
            connection.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n"));
            begun.lock().unwrap().recv().unwrap();
            if head.starts_with('T') {
                connection.send("f4240\r\n");
            }
            connection.send(vec![b'x'; 400_000]);
            if resets {
                connection.reset();
            }
        });
        let terse = start("", BOTH, server.address());
        let mut client = terse.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head().status, 200);
        begins.send(()).unwrap();
        // With a reset, bytes on their way may be lost.
        let mut got = Vec::new();
        let _ = client.stream().read_to_end(&mut got);
        assert!(got.len() < 410_000 && !got.ends_with(b"0\r\n\r\n"), "{head}: {}", got.len());
        assert!(resets || got.iter().filter(|byte| **byte == b'x').count() > 300_000, "{head}: {}", got.len());
        until("the abort counted", || (figure(&terse, "B", "srv_abrt") == 1).then_some(()));
        kept_pipes(&terse);
        terse.end();
    }
}

/// A client that goes while bytes wait for it in a pipe: the server's connection ends too, and the pipe is not kept.
#[test]
fn receivers_that_break_off() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while connection.send([b'x'; 100_000]) {}
    });
    let terse = start("", BOTH, server.address());
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until("bytes to wait in a pipe", || ask(&terse, "show info").contains("PipesUsed: 1").then_some(()));
    drop(client);
    until("the server's connection to close", || (server.open() == 0).then_some(()));
    assert_eq!(kept_pipes(&terse), 0, "a pipe with bytes in it is closed");
    until("the abort counted", || (figure(&terse, "B", "cli_abrt") == 1).then_some(()));
    terse.end();
}

#[test]
fn uploads_that_break_off() {
    // The client goes, once the server has most of it: bytes on their way then may be lost with the connection.
    let (ends, ended) = mpsc::channel();
    let ends = Mutex::new(ends);
    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    let server = Server::start(move |connection| {
        connection.head().unwrap();
        let mut room = vec![0; 65536];
        while let n @ 1.. = connection.some(&mut room) {
            counted.fetch_add(n, Relaxed);
        }
        ends.lock().unwrap().send(()).unwrap();
    });
    let terse = start("", BOTH, server.address());
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    client.send(vec![b'x'; 500_000]);
    until("most of it to pass", || (spliced(&terse)[3] > 400_000 && read.load(Relaxed) > 400_000).then_some(()));
    drop(client);
    ended.recv_timeout(PATIENCE).unwrap();
    let got = read.load(Relaxed);
    assert!((400_000..=500_000).contains(&got), "{got}");
    kept_pipes(&terse);
    terse.end();

    // The server answers and reads no more.
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.bytes(100_000);
        connection.send(ok("too much"));
        connection.finish();
        connection.rest();
    });
    let terse = start("", BOTH, server.address());
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    client.send(vec![b'x'; 300_000]);
    assert_eq!(client.response("POST").text(), "too much");
    kept_pipes(&terse);
    terse.end();
}

/// A server that is silent in the middle, and a client that takes nothing, are timed as ever.
#[test]
fn timeouts_hold() {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        connection.send(vec![b'x'; 400_000]);
        connection.is_closed();
    });
    let terse = start("", &format!("{BOTH}\n timeout server 500ms"), server.address());
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let got = client.rest();
    assert!(got.len() <= 400_000, "{}", got.len());
    until("the abort counted", || (figure(&terse, "B", "srv_abrt") == 1).then_some(()));
    kept_pipes(&terse);
    terse.end();

    // The pipe has bytes then, and is not kept, unless the client's buffer was full just when it was empty.
    assert!((0..ATTEMPTS).any(|_| pipes_kept_behind_a_client_that_takes_nothing() == 0));
}

const ATTEMPTS: usize = 4;

fn pipes_kept_behind_a_client_that_takes_nothing() -> u64 {
    let server = Server::start(|connection| {
        connection.head().unwrap();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while connection.send([b'x'; 100_000]) {}
    });
    let terse = start("", &format!("{BOTH}\n timeout client 1s"), server.address());
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the server's connection to close", || (server.accepted() == 1 && server.open() == 0).then_some(()));
    let kept = kept_pipes(&terse);
    drop(client);
    terse.end();
    kept
}

/// Sends back what comes, until the sender has ended.
fn mirror(connection: &mut Connection) {
    let all = connection.rest();
    connection.send(all);
}

#[test]
fn tunnels() {
    const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    let body = Random::new(11).bytes(LARGE);
    for upgrades in [false, true] {
        let server = Server::start(move |connection| {
            if upgrades {
                connection.head().unwrap();
                connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
            }
            mirror(connection);
        });
        let mode = if upgrades { "" } else { "mode tcp\n " };
        for options in [BOTH, "option splice-auto"] {
            let terse = start("", &format!("{mode}{options}"), server.address());
            let mut client = terse.client();
            if upgrades {
                client.send(UPGRADE);
                assert_eq!(client.head().status, 101);
            }
            client.send(&body);
            client.stream().shutdown(Shutdown::Write).unwrap();
            assert!(client.rest() == body, "{mode}{options}");
            kept_pipes(&terse);
            let [front_in, front_out, back_in, back_out] = spliced(&terse);
            assert_eq!((front_in, back_in), (back_out, front_out));
            let most = LARGE as u64;
            assert!(front_in <= most && front_out <= most);
            until("all bytes counted", || (figure(&terse, "F", "bout") >= most).then_some(()));
            terse.end();
        }
    }
}

/// Urgent data stops pipes, but not bodies: it is left out, as it is without pipes, and the bytes after it go on.
#[test]
fn urgent_data_holds_nothing_up() {
    let server = Server::answering(|request| ok(&format!("{}", request.body.iter().filter(|byte| **byte == b'x').count())));
    let terse = start("", BOTH, server.address());
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n");
    client.send(vec![b'x'; 100_000]);
    until("what came first to pass", || (spliced(&terse)[3] > 0).then_some(()));
    assert_eq!(SockRef::from(&*client.stream()).send_out_of_band(b"!").unwrap(), 1);
    client.send(vec![b'x'; 300_000]);
    assert_eq!(client.response("POST").text(), "400000");
    terse.end();
}

/// If nothing may go through pipes, or there are too few, bytes are copied.
#[test]
fn without_pipes_bytes_are_copied() {
    let server = echo();
    let body = Random::new(12).bytes(LARGE);
    for (global, arguments, lines) in [
        ("nosplice", &[][..], BOTH),
        ("maxpipes 0", &[], BOTH),
        ("", &["-dS"], BOTH),
        ("", &["-dZ"], BOTH),
        ("tune.disable-fast-forward", &[], BOTH),
        ("", &[], "option splice-request\n no option splice-request"),
        (
            "",
            &[],
            "option splice-response\n compression algo gzip\n compression type text/plain\n filter bwlim-out slow limit 1g key src table web\n stick-table type ip size 10 store bytes_out_rate(1s)\n http-response set-bandwidth-limit slow",
        ),
    ] {
        let global = format!("global\n nbthread 1\n stats socket \"${{dir}}/s.sock\"\n {global}\n");
        let web = format!("listen web\n bind fd@${{web}}\n {lines}\n server one {}\n", server.address());
        let terse = Terse::with(&format!("{global}{DEFAULTS}\n{web}")).listen("web").arg(arguments).start();
        let mut client = terse.client();
        let head = format!("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        assert!(exchange(&mut client, &head, &body) == body);
        assert_eq!(spliced(&terse), [0; 4], "{global} {lines}");
        terse.end();
    }

    // One pipe for two connections that both have bytes waiting.
    let endless = Server::start(|connection| {
        connection.head().unwrap();
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 4 * LARGE));
        connection.send(vec![b'x'; 4 * LARGE]);
    });
    let terse = start("maxpipes 1", BOTH, endless.address());
    let mut first = terse.client();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the pipe to be in use", || ask(&terse, "show info").contains("PipesUsed: 1").then_some(()));
    let second = terse.client().get("/", &[]);
    assert!(second.body.len() == 4 * LARGE && second.body.iter().all(|byte| *byte == b'x'));
    assert_eq!(first.response("GET").body.len(), 4 * LARGE);
    assert_eq!(kept_pipes(&terse), 1);
    terse.end();
}

/// Bodies of many sizes at once, some of which their clients give up: each gets its own bytes, and pipes are never more than allowed.
#[test]
fn many_clients_share_few_pipes() {
    const CLIENTS: u64 = 8;
    const REQUESTS: usize = 12;
    let body = |size: usize| Random::new(size as u64 + 1).bytes(size);
    let server = Server::start(move |connection| {
        while let Some(request) = connection.request() {
            let echo = body(request.body.len());
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", echo.len());
            if echo != request.body || !connection.send(head) || !connection.send(echo) {
                return;
            }
        }
    });
    let global = format!("global\n nbthread 2\n maxpipes 3\n stats socket \"${{dir}}/s.sock\"\n{DEFAULTS}\n");
    let web = format!("listen web\n bind fd@${{web}}\n {BOTH}\n server one {}\n", server.address());
    let terse = Terse::with(&format!("{global}{web}")).listen("web").start();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let terse = &terse;
            scope.spawn(move || {
                let mut random = Random::new(number);
                let mut client = terse.client();
                for _ in 0..REQUESTS {
                    let body = body(1 + random.below(600_000));
                    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
                    if random.one_in(4) {
                        client.send(head);
                        client.send(&body[..random.below(body.len())]);
                        client = terse.client();
                    } else {
                        assert!(exchange(&mut client, &head, &body) == body, "{} bytes", body.len());
                    }
                }
            });
        }
    });
    assert!(kept_pipes(&terse) <= 3);
    assert!(spliced(&terse).iter().all(|bytes| *bytes > 0));
    terse.end();
}
