//! Bodies larger than windows: both ways, for slow readers, among siblings.

use super::client::{Client, request};
use super::support::proxy::listen;
use super::support::random::Random;
use super::support::server::{Server, ok};
use super::support::until;
use terse_http::h2::Limits;

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn large_bodies_both_ways() {
    let body = Random::new(3).bytes(5 << 20);
    let expected = format!("{} {:x}", body.len(), sum(&body));
    let sent = body.clone();
    let server = Server::start(move |connection| {
        while let Some(request) = connection.request() {
            if request.method == "POST" {
                connection.send(ok(&format!("{} {:x}", request.body.len(), sum(&request.body))));
            } else {
                connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len()));
                connection.send(&sent);
            }
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    for length in [Some(body.len().to_string()), None] {
        let fields: Vec<_> = length.iter().map(|length| ("Content-Length", length.as_str())).collect();
        let id = client.open(&request("POST", "/", &fields), false);
        client.send(id, &body, true);
        assert_eq!(client.answer(id).text(), expected);
    }
    assert_eq!(sum(&client.get("/").body), sum(&body));
    terse.end();
}

/// A stream's share of a turn may end with the last byte that its window takes.
#[test]
fn windows_of_every_size_open_again() {
    let body = "x".repeat(400_000);
    let server = Server::answering(move |_| ok(&body));
    let terse = listen(&format!("server one {}", server.address()));
    for window in [16_384, 32_768, 65_535, 65_536, 131_072] {
        let limits = Limits { stream_window: window, connection_window: 1 << 20, ..Limits::default() };
        let mut client = Client::with(terse.address("web"), limits);
        client.consumes = false;
        let id = client.open(&request("GET", "/", &[]), true);
        client.wait("a full window", |client| client.streams[&id].body.len() >= window as usize);
        let held = client.streams[&id].body.len();
        client.consumes = true;
        client.codec.consume(id, held);
        client.flush();
        assert_eq!(client.answer(id).body.len(), 400_000, "a window of {window}");
    }
    terse.end();
}

#[test]
fn a_stream_that_is_not_read_stalls_no_other() {
    let body = Random::new(4).bytes(1 << 20);
    let sent = body.clone();
    let server = Server::start(move |connection| {
        while let Some(request) = connection.request() {
            if request.target == "/large" {
                connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len()));
                connection.send(&sent);
            } else {
                connection.send(ok("small"));
            }
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    // The client consumes nothing: the stream's window closes, the connection's stays open.
    let mut client =
        Client::with(terse.address("web"), Limits { stream_window: 65_535, connection_window: 1 << 20, ..Limits::default() });
    client.consumes = false;
    let stalled = client.open(&request("GET", "/large", &[]), true);
    client.wait("a full window", |client| client.streams[&stalled].body.len() == 65_535);
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "small");
    }
    assert_eq!(client.streams[&stalled].body.len(), 65_535);
    client.consumes = true;
    client.codec.consume(stalled, 65_535);
    client.flush();
    assert_eq!(sum(&client.answer(stalled).body), sum(&body));
    terse.end();
}

#[test]
fn large_answers_take_turns() {
    // The whole answer lies in the cache, so that no server is slower than another.
    let server = Server::answering(|_| {
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{}", 1 << 20, "x".repeat(1 << 20))
    });
    let terse = listen(&format!(
        "http-request cache-use store\n http-response cache-store store\n server one {}\ncache store\n total-max-size 16\n max-object-size 2000000",
        server.address()
    ));
    let mut client = Client::with(
        terse.address("web"),
        Limits { stream_window: 4 << 20, connection_window: 64 << 20, receive_budget: 64 << 20, ..Limits::default() },
    );
    until("the answer is stored", || {
        client.get("/");
        (server.requests().len() == 1 && client.get("/").status() == 200 && server.requests().len() == 1).then_some(())
    });
    // All are asked for at one go, so that none is ahead.
    let ids = client.open_all(&request("GET", "/", &[]), 4);
    client.wait("the first to end", |client| ids.iter().any(|id| client.streams[id].has_ended));
    let least = ids.iter().map(|id| client.streams[id].body.len()).min().unwrap();
    assert!(least >= 1 << 19, "{least} bytes of a MB when another has all of it");
    terse.end();
}

#[test]
fn a_client_that_leaves_behind_closed_windows_is_let_go_of() {
    let server = Server::answering(|_| ok(&"x".repeat(20_000)));
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{}\nlisten web\n bind fd@${{web}}\n no option abortonclose\n server one {}\n",
        super::support::proxy::DEFAULTS,
        server.address()
    );
    let terse = super::support::Terse::with(&text).listen("web").listen("cli").start();
    for window in [65_535, 10, 0] {
        let stream = std::net::TcpStream::connect(terse.address("web")).unwrap();
        let end = stream.try_clone().unwrap();
        let mut client =
            Client::over(Box::new(stream), Limits { stream_window: window, connection_window: 65_535, ..Limits::default() });
        client.consumes = false;
        let ids = client.open_all(&request("GET", "/", &[]), 20);
        client.wait("the answers' heads", |client| ids.iter().all(|id| client.streams[id].status() == 200));
        end.shutdown(std::net::Shutdown::Write).unwrap();
        let before = std::time::Instant::now();
        assert!(client.ends());
        until("its end", || (terse.info("Http2CurrConnections") == 0).then_some(()));
        assert!(before.elapsed() < std::time::Duration::from_secs(10), "{window}: before 'timeout client'");
    }
    terse.end();
}

#[test]
fn waiting_for_a_body_beyond_the_window_ends() {
    let terse = super::support::Terse::with(&format!(
        "global\n nbthread 1\n tune.bufsize 200000\n tune.h2.fe.initial-window-size 16384\n{}\nlisten web\n bind fd@${{web}}\n \
         http-request wait-for-body time 10s at-least 150000\n \
         http-request return status 200 content-type text/plain lf-string %[req.body_len]\n",
        super::support::proxy::DEFAULTS
    ))
    .listen("web")
    .start();
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("POST", "/", &[("Content-Length", "160000")]), false);
    client.send(id, &vec![b'x'; 160_000], true);
    let answer = client.answer(id);
    assert_eq!(answer.status(), 200);
    assert!(answer.text().parse::<usize>().is_ok_and(|read| (150_000..=160_000).contains(&read)), "{}", answer.text());
    terse.end();
}

#[test]
fn many_slow_uploads_end() {
    let server = Server::answering(|request| ok(&request.body.len().to_string()));
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let ids: Vec<_> = (0..20).map(|_| client.open(&request("POST", "/", &[]), false)).collect();
    for round in 0..30 {
        for id in &ids {
            client.send(*id, &[b'x'; 4096], round == 29);
        }
    }
    for id in ids {
        assert_eq!(client.answer(id).text(), (30 * 4096).to_string());
    }
    terse.end();
}
