//! Requests to a proxy, and the responses.
//!
//! A request is one line of text: `GET /path | Name: value | Name: value || body`. `1.0` in front makes it one of HTTP/1.0, `~`
//! begins a new connection, and `RAW ` is before bytes that are sent as they are.

use super::support::client::{Client, Response};
use super::support::gzip::gunzip;
use super::support::readable;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

/// Response to one request.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Exchange {
    /// The request, for people.
    pub(crate) request: String,
    /// Interim responses: their status lines.
    pub(crate) interim: Vec<String>,
    /// The status; 0: the connection was closed instead.
    pub(crate) status: u16,
    /// The fields, names in small letters, in an order that does not depend on theirs.
    pub(crate) fields: Vec<(String, String)>,
    /// The body, its coding undone.
    pub(crate) body: String,
    /// Fields after a chunked body.
    pub(crate) trailers: Vec<(String, String)>,
}

/// Sends all of it, one after the other; `None` when no process answers.
pub(crate) fn talk(address: SocketAddr, requests: &[&str], mut is_running: impl FnMut() -> bool) -> Option<Vec<Exchange>> {
    let mut open: Option<Client> = None;
    let mut exchanges = Vec::new();
    for text in requests {
        let text = text.strip_prefix('~').inspect(|_| open.take().into_iter().for_each(end)).unwrap_or(text);
        let client = open.get_or_insert_with(|| Client::connect(address));
        let (method, bytes) = written(text);
        client.send(bytes);
        while !readable(client.stream(), Duration::from_millis(50)) {
            if !is_running() {
                return None;
            }
        }
        let mut interim = Vec::new();
        let response = loop {
            let head = client.head();
            if matches!(head.status, 100 | 102..200) {
                interim.push(head.line);
            } else {
                break client.with_body(head, &method);
            }
        };
        let closes = response.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if response.status == 0 || closes || !is_kept(text, &response) {
            assert!(client.is_closed(), "{text}: the connection stays open behind {response:?}");
            open = None;
        }
        exchanges.push(exchange(text, interim, response));
    }
    Some(exchanges)
}

/// Ends a connection, and waits until the proxy has: its counter of open connections is final then.
fn end(mut client: Client) {
    // The proxy may be the first.
    if let Err(error) = client.stream().shutdown(Shutdown::Write) {
        assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
    }
    let rest = client.rest();
    assert!(rest.is_empty(), "behind the last response: {:?}", String::from_utf8_lossy(&rest));
}

/// True if the connection can go on.
fn is_kept(text: &str, response: &Response) -> bool {
    let old = text.starts_with("1.0 ") || response.line.starts_with("HTTP/1.0");
    !old || response.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("keep-alive"))
}

fn exchange(text: &str, interim: Vec<String>, response: Response) -> Exchange {
    // The answer to HEAD has the fields alone.
    let coded = response.field("content-encoding") == Some("gzip") && !response.body.is_empty();
    let body = if coded { gunzip(&response.body) } else { response.body.clone() };
    Exchange {
        request: text.to_owned(),
        interim,
        status: response.status,
        fields: normal(&response.fields),
        body: String::from_utf8_lossy(&body).into_owned(),
        trailers: normal(&response.trailers),
    }
}

/// Fields in small letters, sorted by name; those of one name stay in their order.
pub(crate) fn normal(fields: &[(String, String)]) -> Vec<(String, String)> {
    let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

/// The method, and the bytes of a request.
fn written(text: &str) -> (String, Vec<u8>) {
    if let Some(raw) = text.strip_prefix("RAW ") {
        return (raw.split(' ').next().unwrap().to_owned(), raw.as_bytes().to_vec());
    }
    let (version, text) = text.strip_prefix("1.0 ").map_or(("1.1", text), |rest| ("1.0", rest));
    let (head, body) = text.split_once(" || ").map_or((text, None), |(head, body)| (head, Some(body)));
    let mut parts = head.split(" | ");
    let first = parts.next().unwrap();
    let mut bytes = format!("{first} HTTP/{version}\r\n");
    let fields: Vec<&str> = parts.collect();
    let has = |name: &str| fields.iter().any(|field| field.to_ascii_lowercase().starts_with(name));
    if !has("host:") {
        bytes += "Host: example.org\r\n";
    }
    fields.iter().for_each(|field| bytes += &format!("{field}\r\n"));
    if let Some(body) = body.filter(|_| !has("transfer-encoding:")) {
        bytes += &format!("Content-Length: {}\r\n", body.len());
    }
    bytes += "\r\n";
    bytes += body.unwrap_or_default();
    (first.split(' ').next().unwrap().to_owned(), bytes.into_bytes())
}
