//! Servers that cost more than they send: each is stopped at a limit, which is counted and logged by its name, and others are served.

use super::super::support::proxy::DEFAULTS;
use super::super::support::{Terse, until};
use super::peer::answering;
use terse_http::h2::Code;
use terse_lab::hostile::{GOOD, Server, misdeeds};

#[test]
fn each_ends_at_its_limit() {
    let server = Server::start().unwrap();
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stderr format raw local0\n retries 0\nfrontend web\n bind fd@${{web}}\n \
         default_backend servers\nbackend servers\n http-reuse always\n timeout server 5s\n server one {} proto h2\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut bystander = terse.client();
    let mut count = 0;
    for misdeed in misdeeds() {
        let Some(cause) = misdeed.cause else { continue };
        let name = misdeed.name;
        let before = terse.info("Http2ServerFailures");
        let mut client = terse.client();
        client.send(format!("GET {} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", misdeed.path()));
        let head = client.head();
        if head.status == 200 {
            assert!(!client.rest().ends_with(b"0\r\n\r\n"), "{name}: an answer that looks whole");
        } else {
            assert_eq!(head.status, 502, "{name}");
        }
        until(name, || (terse.info("Http2ServerFailures") == before + 1).then_some(()));
        let line = format!("Server servers/one: HTTP/2 connection closed: {cause}.");
        until(name, || terse.stderr().contains(&line).then_some(()));
        assert_eq!(bystander.get("/good", &[]).text().as_bytes(), GOOD, "{name}");
        count += 1;
    }
    assert!(count >= 20 && terse.info("Http2ServerLimits") >= 12, "{count}");
    until("the end of the others", || (terse.info("Http2ServerCurrConnections") <= 1).then_some(()));
    terse.end();
}

/// An answer that fails by itself costs its own request, not the connection of all.
#[test]
fn each_answer_that_fails_is_its_own() {
    let server = Server::start().unwrap();
    let terse = super::super::support::proxy::listen(&format!(
        "http-reuse always\n retries 0\n timeout server 5s\n server one {} proto h2",
        server.address()
    ));
    let mut count = 0;
    for misdeed in misdeeds().into_iter().filter(|misdeed| misdeed.cause.is_none() && misdeed.hold().is_none()) {
        for _ in 0..30 {
            let mut client = terse.client();
            client.send(format!("GET {} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", misdeed.path()));
            let mut head = client.head();
            while head.status == 103 {
                head = client.head();
            }
            let is_cut = head.status == 200 && !client.rest().ends_with(b"0\r\n\r\n");
            assert!(is_cut || matches!(head.status, 502 | 503), "{}: {}", misdeed.name, head.status);
        }
        assert_eq!(terse.client().get("/good", &[]).text().as_bytes(), GOOD, "{}", misdeed.name);
        count += 1;
    }
    assert!(count >= 5, "{count}");
    terse.end();
}

/// A server that answers and does not end its answer is waited for as long as `timeout server` says.
#[test]
fn an_answer_without_an_end_has_the_servers_time() {
    let server = answering(|peer, id| match peer.streams[&id].path().as_str() {
        "/silent" => {}
        "/half" => {
            peer.head(id, 200, &[], false);
            peer.data(id, b"abc", false);
        }
        _ => peer.answer(id, 200, b"good"),
    });
    let terse = super::super::support::proxy::listen(&format!(
        "http-reuse always\n timeout server 300ms\n retries 0\n server one {} proto h2",
        server.address()
    ));
    assert_eq!(terse.client().get("/silent", &[]).status, 504);
    let mut client = terse.client();
    client.send("GET /half HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(!client.rest().ends_with(b"0\r\n\r\n"), "an answer that looks whole");
    assert_eq!(terse.client().get("/good", &[]).text(), "good");
    assert_eq!(server.accepted(), 1, "the streams were reset, not their connection");
    terse.end();
}

/// A server that refuses by SETTINGS to take any stream costs a few attempts, not a connection after the other.
#[test]
fn a_server_without_streams_is_left() {
    let limits = terse_http::h2::Limits { concurrent_streams: 0, ..terse_http::h2::Limits::default() };
    let server = super::peer::scripted(limits, |peer| {
        peer.ends();
    });
    let terse = super::super::support::proxy::listen(&format!(
        "http-reuse always\n timeout connect 1s\n retries 1\n server one {} proto h2",
        server.address()
    ));
    for _ in 0..3 {
        let status = terse.client().get("/", &[]).status;
        assert!(matches!(status, 502 | 503), "{status}");
    }
    assert!(server.accepted() <= 30, "{} connections", server.accepted());
    terse.end();
}

/// Resets of streams that are over, and of many of a client's: the connection goes on as long as it keeps within its limits.
#[test]
fn resets_of_what_is_over_are_no_fault() {
    let server = answering(|peer, id| {
        peer.answer(id, 200, b"good");
        peer.reset(id, Code::NO_ERROR);
    });
    let terse = super::super::support::proxy::listen(&format!("http-reuse always\n server one {} proto h2", server.address()));
    let mut client = terse.client();
    for _ in 0..50 {
        assert_eq!(client.get("/", &[]).text(), "good");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}
