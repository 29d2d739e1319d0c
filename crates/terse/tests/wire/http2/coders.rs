//! Coders of a client's connection: how many there are at a time, and what becomes of bodies beyond them.

use super::client::{Client, request};
use super::support::proxy::DEFAULTS;
use super::support::server::{Server, ok};
use super::support::{Terse, until};
use std::io::Read;
use std::sync::{Arc, Mutex};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";

/// A server whose bodies pause in the middle until the gate opens. Those below `/known` have a length.
fn pausing(gate: &Arc<Mutex<()>>) -> Server {
    let gate = gate.clone();
    Server::start(move |connection| {
        while let Some(request) = connection.request() {
            match request.target.as_str() {
                "/small" => {
                    connection.send(ok(&"small ".repeat(300)).replacen("\r\n", "\r\nContent-Type: text/plain\r\n", 1));
                }
                "/known" => {
                    connection.send(format!("{ANSWER}Content-Length: 4000\r\n\r\n{}", "half".repeat(500)));
                    drop(gate.lock());
                    connection.send("rest".repeat(500));
                }
                target => {
                    let answer = if target == "/chunked" { ANSWER.into() } else { ANSWER.replace("plain", "event-stream") };
                    connection.send(format!("{answer}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"));
                    drop(gate.lock());
                    connection.send("3\r\nend\r\n0\r\n\r\n");
                }
            }
        }
    })
}

fn terse(server: &Server, coders: usize) -> Terse {
    let text = format!(
        "global\n nbthread 1\n tune.comp.coders {coders}\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stderr format raw local0\nlisten web\n \
         bind fd@${{web}}\n compression algo gzip\n compression type text/plain text/event-stream\n log-format \"%HU <%[res.comp_reason]>\"\n server one {}\n",
        server.address()
    );
    Terse::with(&text).listen("web").listen("cli").start()
}

/// As much as can be decoded of what has come.
fn decoded(body: &[u8]) -> String {
    let mut text = Vec::new();
    let _ = flate2::read::GzDecoder::new(body).read_to_end(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn streams_beyond_the_limit_pass_as_they_are() {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let server = pausing(&gate);
    let terse = terse(&server, 3);
    let mut client = Client::connect(terse.address("web"));
    let events = request("GET", "/events", &[("Accept-Encoding", "gzip")]);
    let mut streams = Vec::new();
    for number in 0..5 {
        let id = client.open(&events, true);
        client.wait("the first of a stream", |client| !client.streams[&id].body.is_empty());
        let answer = &client.streams[&id];
        let is_coded = answer.field("content-encoding").is_some();
        assert_eq!(is_coded, number < 3, "stream {number}");
        assert_eq!(answer.field("vary").as_deref(), Some("Accept-Encoding"), "stream {number}");
        client.wait("all before the pause", |client| {
            let body = &client.streams[&id].body;
            if is_coded { decoded(body) == "hello" } else { body == b"hello" }
        });
        streams.push(id);
    }
    let small = client.ask(&request("GET", "/small", &[("Accept-Encoding", "gzip")]));
    assert_eq!(small.field("content-encoding").as_deref(), Some("gzip"), "a whole body needs no coder that lasts");
    assert_eq!(decoded(&small.body), "small ".repeat(300));
    let mut other = Client::connect(terse.address("web"));
    let id = other.open(&events, true);
    other.wait("the first of a stream", |client| !client.streams[&id].body.is_empty());
    assert!(other.streams[&id].field("content-encoding").is_some(), "each connection has its own");

    drop(closed);
    for (number, id) in streams.into_iter().enumerate() {
        let answer = client.answer(id);
        assert!(answer.has_ended);
        assert_eq!(if number < 3 { decoded(&answer.body) } else { answer.text() }, "helloend", "stream {number}");
    }
    let again = client.ask(&events);
    assert_eq!(again.field("content-encoding").as_deref(), Some("gzip"), "a slot is given back");
    until("the lines", || (terse.stderr().matches("/events <coder-limit>").count() == 2).then_some(()));
    let shown = terse.command("show compression web");
    assert!(shown.contains("coder-limit:"), "{shown}");
    terse.end();
}

/// The head of a body whose length is known says how it is coded before it pauses.
#[test]
fn a_short_body_that_pauses_beyond_the_limit_is_coded() {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let server = pausing(&gate);
    let terse = terse(&server, 1);
    let mut client = Client::connect(terse.address("web"));
    let accepting = [("Accept-Encoding", "gzip")];
    let events = client.open(&request("GET", "/events", &accepting), true);
    client.wait("the first of a stream", |client| !client.streams[&events].body.is_empty());
    let known = client.open(&request("GET", "/known", &accepting), true);
    client.wait("all before the pause", |client| decoded(&client.streams[&known].body) == "half".repeat(500));
    assert_eq!(client.streams[&known].field("content-encoding").as_deref(), Some("gzip"));
    let chunked = client.open(&request("GET", "/chunked", &accepting), true);
    client.wait("all before the pause", |client| decoded(&client.streams[&chunked].body) == "hello");
    assert_eq!(client.streams[&chunked].field("content-encoding").as_deref(), Some("gzip"), "most such bodies are whole soon");
    drop(closed);
    assert_eq!(decoded(&client.answer(chunked).body), "helloend");
    let answer = client.answer(known);
    assert_eq!(decoded(&answer.body), ["half".repeat(500), "rest".repeat(500)].concat());
    assert_eq!(decoded(&client.answer(events).body), "helloend");
    terse.end();
}
