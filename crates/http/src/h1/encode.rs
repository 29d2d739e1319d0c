//! Values to bytes: heads and chunks.

use terse_message::status::reason;
use terse_message::{BodyLength, Fields, Known, Request, Response, Version};

/// State of the message's connection, as the next hop sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connection {
    /// The version implies it: no field is sent.
    Implied,
    /// `Connection: close`.
    Close,
    /// `Connection: keep-alive`, for HTTP/1.0.
    KeepAlive,
    /// `Connection: upgrade`.
    Upgrade,
    /// `Connection: close, upgrade`: another protocol is offered, for another connection.
    CloseUpgrade,
}

impl Connection {
    /// The same with the option that an `Upgrade` field needs in `Connection` (RFC 9110 section 7.8), where there is one.
    #[must_use]
    pub fn beside(self, fields: &Fields) -> Connection {
        match self {
            other if !fields.has(Known::Upgrade) => other,
            Connection::Close | Connection::CloseUpgrade => Connection::CloseUpgrade,
            _ => Connection::Upgrade,
        }
    }
}

/// The version in which a request is forwarded: 1.1, an intermediary's own (RFC 9112 section 2.3).
///
/// A request of HTTP/1.0 without Host stays one, because servers refuse the empty Host that it would need in HTTP/1.1. With
/// `keeps` (`http-conformance haproxy`) every request of HTTP/1.0 stays one, unless its body is sent in chunks.
pub fn request_version(request: &Request, keeps: bool) -> Version {
    let stays = keeps || !request.fields.has(Known::Host);
    match request.version {
        Version::Http10 if stays && request.body != BodyLength::Framed => Version::Http10,
        _ => Version::Http11,
    }
}

/// Writes a request's head in a version of HTTP/1. HTTP/1.1 needs a Host: where there is none, it is empty (RFC 9112 section 3.2).
pub fn request_head(request: &Request, version: Version, connection: Connection, out: &mut Vec<u8>) {
    out.extend_from_slice(request.method());
    out.push(b' ');
    target(request, out);
    if version == Version::Http10 {
        out.extend_from_slice(b" HTTP/1.0\r\n");
    } else {
        out.extend_from_slice(b" HTTP/1.1\r\n");
        if !request.fields.has(Known::Host) {
            out.extend_from_slice(b"Host:\r\n");
        }
    }
    request.fields.write_to(out);
    end_head(connection, out);
}

/// A target that names an empty host, which no URI may (RFC 9110 section 4.2.1), goes without it.
fn target(request: &Request, out: &mut Vec<u8>) {
    let target = request.target();
    let names_nobody = !target.starts_with(b"/")
        && memchr::memmem::find(target, b"://").is_some_and(|at| matches!(target.get(at + 3), None | Some(b'/' | b'?' | b'#')));
    if !names_nobody {
        return out.extend_from_slice(target);
    }
    let path = request.path_and_query();
    if !path.starts_with(b"/") {
        out.push(b'/');
    }
    out.extend_from_slice(path);
}

/// Writes a response's head in a version of HTTP/1.
pub fn response_head(response: &Response, version: Version, connection: Connection, out: &mut Vec<u8>) {
    out.extend_from_slice(if version == Version::Http10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    let status = response.status.clamp(100, 999);
    out.extend_from_slice(&[b'0' + (status / 100) as u8, b'0' + (status / 10 % 10) as u8, b'0' + (status % 10) as u8, b' ']);
    match response.reason() {
        b"" => out.extend_from_slice(reason(status).as_bytes()),
        given => out.extend_from_slice(given),
    }
    out.extend_from_slice(b"\r\n");
    response.fields.write_to(out);
    end_head(connection, out);
}

fn end_head(connection: Connection, out: &mut Vec<u8>) {
    out.extend_from_slice(match connection {
        Connection::Implied => b"\r\n",
        Connection::Close => b"Connection: close\r\n\r\n",
        Connection::KeepAlive => b"Connection: keep-alive\r\n\r\n",
        Connection::Upgrade => b"Connection: upgrade\r\n\r\n",
        Connection::CloseUpgrade => b"Connection: close, upgrade\r\n\r\n",
    });
}

/// The connection state of a message to or from a client of this version.
pub fn connection(keep_alive: bool, version: Version) -> Connection {
    match (keep_alive, version) {
        (false, _) => Connection::Close,
        (true, Version::Http10) => Connection::KeepAlive,
        (true, _) => Connection::Implied,
    }
}

/// Writes the line before a chunk's data. `size` is not 0.
pub fn chunk_start(size: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    debug_assert!(size > 0);
    let nibbles = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for i in (0..nibbles).rev() {
        out.push(DIGITS[size >> (i * 4) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Line end after a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// Ends a chunked body.
pub fn last_chunk(trailers: &Fields, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    trailers.write_to(out);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_hexadecimal() {
        for size in [1usize, 9, 10, 15, 16, 255, 256, 65_535, 1 << 20, usize::MAX] {
            let mut out = Vec::new();
            chunk_start(size, &mut out);
            assert_eq!(out, format!("{size:x}\r\n").into_bytes());
        }
    }

    #[test]
    #[allow(clippy::field_reassign_with_default)]
    fn heads_read_as_they_were_written() {
        let mut response = Response::default();
        response.status = 404;
        response.fields.push(b"A", b"b");
        let mut out = Vec::new();
        response_head(&response, Version::Http11, Connection::Close, &mut out);
        assert_eq!(out, b"HTTP/1.1 404 Not Found\r\nA: b\r\nConnection: close\r\n\r\n");
    }
}
