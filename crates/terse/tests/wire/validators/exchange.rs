//! A request and its response, also when the client breaks off.

use super::origin::{content, takes};
use super::support::client::{Client, Response};
use flate2::read::{GzDecoder, ZlibDecoder};
use std::io::Read;
use std::net::SocketAddr;

/// A client's connection: opened anew when it was broken off.
pub(crate) struct Connection {
    address: SocketAddr,
    /// Accept-Encoding of the client, if it sends it.
    pub(crate) accepted: &'static str,
    open: Option<Client>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr, accepted: &'static str) -> Connection {
        Connection { address, accepted, open: None }
    }

    fn send(&mut self, method: &str, resource: usize, fields: &[(&str, String)]) -> &mut Client {
        let client = self.open.get_or_insert_with(|| Client::connect(self.address));
        let mut request = format!("{method} /{resource} HTTP/1.1\r\nHost: test\r\n");
        if !self.accepted.is_empty() {
            request += &format!("Accept-Encoding: {}\r\n", self.accepted);
        }
        fields.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        client.send(request + "\r\n");
        client
    }

    /// A whole exchange.
    pub(crate) fn ask(&mut self, method: &str, resource: usize, fields: &[(&str, String)]) -> Response {
        let response = self.send(method, resource, fields).response(method);
        if response.status == 0 || response.field("connection") == Some("close") {
            self.open = None;
        }
        response
    }

    /// A GET that is broken off in the middle of its body: the bytes received until then.
    pub(crate) fn begin(&mut self, resource: usize, most: usize) -> Response {
        let client = self.send("GET", resource, &[]);
        let mut response = client.head();
        if response.field("transfer-encoding").is_some() {
            while response.body.len() < most {
                let Some(chunk) = client.chunk() else { break };
                response.body.extend(chunk);
            }
        } else {
            let length: usize = response.field("content-length").unwrap().parse().unwrap();
            response.body = vec![0; length.min(most)];
            client.read(&mut response.body);
        }
        response.body.truncate(most);
        self.open = None;
        response
    }
}

/// The coding that a response is in.
pub(crate) fn coding(response: &Response) -> Option<String> {
    response.field("content-encoding").map(str::to_owned)
}

/// True if a client can use a body in that coding.
pub(crate) fn is_usable(accepted: &str, coding: Option<&str>) -> bool {
    coding.is_none_or(|coding| takes(accepted, coding))
}

/// The decoded body; `None` when it cannot be decoded.
pub(crate) fn decode(coding: Option<&str>, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    match coding {
        None => plain.extend(bytes),
        Some("gzip") => drop(GzDecoder::new(bytes).read_to_end(&mut plain).ok()?),
        Some("deflate") => drop(ZlibDecoder::new(bytes).read_to_end(&mut plain).ok()?),
        Some(_) => return None,
    }
    Some(plain)
}

/// True if a whole body is that resource in that version.
pub(crate) fn is_version(resource: usize, version: usize, coding: Option<&str>, bytes: &[u8]) -> bool {
    decode(coding, bytes).is_some_and(|plain| plain == content(resource, version))
}
