//! The life of a connection: its begin, the causes of its end, and the ways in which it ends.

use super::client::{Client, request};
use super::support::proxy::{DEFAULTS, listen};
use super::support::server::{Server, ok};
use super::support::{Terse, until};
use rustix::process::Signal;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use terse_http::h2::{Code, PREFACE};

const ANSWER: &str = "http-request return status 200 content-type text/plain lf-string %[req.ver]";

fn http1(terse: &Terse) -> String {
    terse.client().get("/", &[]).text()
}

#[test]
fn the_first_bytes_say_which_version_it_is() {
    let terse = listen(ANSWER);
    assert_eq!((Client::connect(terse.address("web")).get("/").text(), http1(&terse)), ("2.0".into(), "1.1".into()));
    // However the preface is cut.
    let mut client = super::support::client::Client::connect(terse.address("web"));
    for byte in PREFACE {
        client.send([*byte]);
    }
    let mut room = [0; 9];
    client.read(&mut room);
    assert_eq!(room[3], 4, "SETTINGS");
    terse.end();
}

#[test]
fn lines_say_what_is_spoken() {
    let terse = Terse::with(&format!(
        "{DEFAULTS}\nlisten web\n bind fd@${{web}} proto h1\n{ANSWER}\nlisten other\n bind fd@${{other}} proto h2\n{ANSWER}\n\
         listen third\n bind fd@${{third}}\n option disable-h2-upgrade\n{ANSWER}\n"
    ))
    .listen("web")
    .listen("other")
    .listen("third")
    .start();
    for name in ["web", "third"] {
        let mut client = super::support::client::Client::connect(terse.address(name));
        client.send(PREFACE);
        assert_eq!(client.head().status, 400, "{name}");
    }
    assert_eq!(http1(&terse), "1.1");
    assert_eq!(Client::connect(terse.address("other")).get("/").text(), "2.0");
    let mut client = super::support::client::Client::connect(terse.address("other"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(super::support::is_closed(client.stream(), super::support::PATIENCE));
    terse.end();
}

#[test]
fn silence_ends_it_by_goaway() {
    let terse = listen(&format!("timeout http-request 300ms\n timeout http-keep-alive 300ms\n{ANSWER}"));
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    assert!(client.ends());
    assert_eq!(client.goaway, Some((1, Code::NO_ERROR)));
    let mut client = Client::connect(terse.address("web"));
    assert!(client.ends(), "no request at all");
    assert_eq!(client.goaway, Some((0, Code::NO_ERROR)));
    terse.end();
}

#[test]
fn half_a_head_is_not_waited_for() {
    let terse = listen(&format!("timeout http-request 300ms\n timeout http-keep-alive 10s\n{ANSWER}"));
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    // HEADERS of 100 bytes, of which none comes.
    client.raw(&[0, 0, 100, 1, 5, 0, 0, 0, 3]);
    assert!(client.ends());
    terse.end();
}

#[test]
fn a_drain_takes_what_is_on_its_way() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            if request.target == "/slow" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
                until("the word to go on", || {
                    std::fs::exists(format!("/tmp/{}", request.field("x-file").unwrap())).unwrap().then_some(())
                });
                connection.send("slow");
            } else {
                connection.send(ok("fast"));
            }
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let flag = format!("terse-drain-{}", std::process::id());
    let slow = client.open(&request("GET", "/slow", &[("X-File", &flag)]), true);
    client.wait("the head", |client| client.streams[&slow].status() == 200);
    terse.signal(Signal::USR1);
    client.wait("the first GOAWAY", |client| client.goaway.is_some());
    assert_eq!(client.goaway, Some(((1 << 31) - 1, Code::NO_ERROR)));
    // The PING was answered with it: the next frame has the last stream's number.
    client.wait("the second GOAWAY", |client| client.goaway == Some((slow, Code::NO_ERROR)));
    std::fs::write(format!("/tmp/{flag}"), "").unwrap();
    assert_eq!(client.answer(slow).text(), "slow");
    assert!(client.ends());
    std::fs::remove_file(format!("/tmp/{flag}")).unwrap();
    assert_eq!(terse.wait().code(), Some(0));
}

#[test]
fn an_idle_connection_drains_at_once() {
    let terse = listen(ANSWER);
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    terse.signal(Signal::USR1);
    assert!(client.ends());
    assert_eq!(client.goaway, Some((1, Code::NO_ERROR)));
    assert_eq!(terse.wait().code(), Some(0));
}

#[test]
fn a_drain_waits_for_no_client_that_does_not_answer() {
    let terse = listen(ANSWER);
    let mut client = super::support::client::Client::connect(terse.address("web"));
    // SETTINGS, a request, and silence afterwards.
    client.send([PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0], &[0, 0, 6, 1, 5, 0, 0, 0, 1], b"\x82\x86\x84\x01\x01a"].concat());
    let mut room = [0; 9];
    client.read(&mut room);
    let before = std::time::Instant::now();
    terse.signal(Signal::USR1);
    assert!(super::support::is_closed(client.stream(), super::support::PATIENCE));
    assert!(before.elapsed() < std::time::Duration::from_secs(10), "before 'timeout client'");
    assert_eq!(terse.wait().code(), Some(0));
}

#[test]
fn a_client_that_ends_its_side_gets_its_answers() {
    let server = Server::start(|connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
            connection.send("abc");
        }
    });
    let terse = listen(&format!("no option abortonclose\n server one {}", server.address()));
    let stream = TcpStream::connect(terse.address("web")).unwrap();
    let end = stream.try_clone().unwrap();
    let mut client = Client::over(Box::new(stream), terse_http::h2::Limits::default());
    let id = client.open(&request("GET", "/", &[]), true);
    end.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer(id).text(), "abc");
    assert!(client.ends());
    terse.end();
}

#[test]
fn a_connection_takes_as_many_streams_as_it_may() {
    let text = format!(
        "global\n nbthread 1\n tune.h2.fe.max-total-streams 3\n tune.h2.fe.max-concurrent-streams 7\n{DEFAULTS}\nlisten web\n \
         bind fd@${{web}}\n{ANSWER}\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    for _ in 0..3 {
        assert_eq!(client.get("/").status(), 200);
    }
    assert_eq!(client.codec.peer().concurrent_streams, 7);
    assert!(client.ends());
    assert_eq!(client.goaway, Some((5, Code::NO_ERROR)));
    terse.end();
}

#[test]
fn a_rule_that_rejects_ends_the_connection() {
    let terse = listen(&format!("http-request reject if {{ path /reject }}\n{ANSWER}"));
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    client.open(&request("GET", "/reject", &[]), true);
    assert!(client.ends());
    terse.end();
}

/// An idle client is pinged: as long as it answers it stays, beyond `timeout client`, and once it does not it is cut.
#[test]
fn idle_clients_are_pinged() {
    let text = format!(
        "global\n stats socket fd@${{cli}}\n{DEFAULTS}\nlisten web\n bind fd@${{web}} idle-ping 500ms\n timeout client 1200ms\n{ANSWER}\n"
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    let began = Instant::now();
    client.wait("more than timeout client", |_| began.elapsed() > Duration::from_millis(1600));
    assert_eq!(terse.info("Http2LimitUnansweredPings"), 0);
    assert_eq!(client.get("/").text(), "2.0");
    assert_eq!(client.unanswered(), [PING]);
    assert_eq!(terse.info("Http2LimitUnansweredPings"), 1);
    terse.end();
    // Another time limit runs on beside it.
    let text = text.replace("timeout client", "timeout http-keep-alive 1600ms\n timeout client");
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200);
    assert!(client.ends());
    assert_eq!(client.goaway, Some((1, Code::NO_ERROR)));
    terse.end();
}

/// The frame's kind (RFC 9113 section 6.7).
const PING: u8 = 6;
