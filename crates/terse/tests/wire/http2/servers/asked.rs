//! Requests, over HTTP/1.1 and HTTP/2, through terse to a scripted server.

use super::super::client::{Answer, Client, request};
use super::super::support::Terse;
use super::super::support::client::{self, Response};
use super::super::support::proxy::listen;
use super::super::support::server::Server;
use std::sync::{Arc, Mutex};

/// Requests that servers got.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

pub(super) fn log() -> (Log, Log) {
    let log = Log::default();
    (log.clone(), log)
}

pub(super) fn proxy(server: &Server, lines: &str) -> Terse {
    listen(&format!("http-reuse always\n server one {} proto h2\n{lines}", server.address()))
}

/// A request of HTTP/1.1 on a connection of its own, whose answer is to be read.
pub(super) fn send(terse: &Terse, method: &str, path: &str, body: &str) -> client::Client {
    let mut client = terse.client();
    let length = if method == "POST" || !body.is_empty() { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n{length}\r\n{body}"));
    client
}

pub(super) fn ask(terse: &Terse, method: &str, path: &str, body: &str) -> Response {
    send(terse, method, path, body).response(method)
}

/// The same over HTTP/2.
pub(super) fn ask2(terse: &Terse, method: &str, path: &str, body: &str) -> Answer {
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request(method, path, &[]), body.is_empty());
    if !body.is_empty() {
        client.send(id, body.as_bytes(), true);
    }
    client.answer(id)
}
