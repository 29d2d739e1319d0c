//! Frames of HTTP/2 (RFC 9113), put together without any rule: a client of good faith is [`terse_http::h2`].

use terse_http::h2::PREFACE;

/// Kinds of frames.
pub mod kind {
    #![allow(missing_docs, reason = "the RFC's names")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    #![allow(missing_docs, reason = "the RFC's names")]
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
}

/// The setting of a stream's first window.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// A frame of any kind.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The preface, and these settings.
pub fn preface(values: &[(u16, u32)], out: &mut Vec<u8>) {
    out.extend_from_slice(PREFACE);
    settings(values, out);
}

/// SETTINGS.
pub fn settings(values: &[(u16, u32)], out: &mut Vec<u8>) {
    let payload: Vec<u8> =
        values.iter().flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes())).collect();
    frame(kind::SETTINGS, 0, 0, &payload, out);
}

/// HEADERS with a whole block, and no body where `end`.
pub fn headers(stream: u32, block: &[u8], end: bool, out: &mut Vec<u8>) {
    let end = if end { flag::END_STREAM } else { 0 };
    frame(kind::HEADERS, flag::END_HEADERS | end, stream, block, out);
}

/// HEADERS with the beginning of a block.
pub fn headers_begun(stream: u32, block: &[u8], out: &mut Vec<u8>) {
    frame(kind::HEADERS, flag::END_STREAM, stream, block, out);
}

/// CONTINUATION, the last one where `end`.
pub fn continuation(stream: u32, block: &[u8], end: bool, out: &mut Vec<u8>) {
    frame(kind::CONTINUATION, if end { flag::END_HEADERS } else { 0 }, stream, block, out);
}

/// DATA.
pub fn data(stream: u32, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
    frame(kind::DATA, if end { flag::END_STREAM } else { 0 }, stream, bytes, out);
}

/// RST_STREAM.
pub fn rst(stream: u32, code: u32, out: &mut Vec<u8>) {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes(), out);
}

/// PING.
pub fn ping(payload: [u8; 8], out: &mut Vec<u8>) {
    frame(kind::PING, 0, 0, &payload, out);
}

/// WINDOW_UPDATE; stream 0 is the connection.
pub fn window_update(stream: u32, by: u32, out: &mut Vec<u8>) {
    frame(kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes(), out);
}

/// GOAWAY.
pub fn goaway(last: u32, code: u32, out: &mut Vec<u8>) {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat(), out);
}

/// PRIORITY.
pub fn priority(stream: u32, depends_on: u32, out: &mut Vec<u8>) {
    let [a, b, c, d] = depends_on.to_be_bytes();
    frame(kind::PRIORITY, 0, stream, &[a, b, c, d, 15], out);
}

/// A request's block in literals without a table (RFC 7541 section 6.2.2).
pub fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)] {
        literal(name, value, &mut block);
    }
    fields.iter().for_each(|(name, value)| literal(name, value, &mut block));
    block
}

/// The head of an answer, in literals without a table.
pub fn answer(status: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    literal(":status", status, &mut block);
    fields.iter().for_each(|(name, value)| literal(name, value, &mut block));
    block
}

/// A field that goes into no table.
pub fn literal(name: &str, value: &str, block: &mut Vec<u8>) {
    block.push(0);
    text(name, block);
    text(value, block);
}

/// A field that goes into the table, where [`FIRST_OF_TABLE`] names it (RFC 7541 section 6.2.1).
pub fn indexed_literal(name: &str, value: &str, block: &mut Vec<u8>) {
    block.push(0x40);
    text(name, block);
    text(value, block);
}

/// The latest entry of the dynamic table, as one byte of a block.
pub const FIRST_OF_TABLE: u8 = 0x80 | 62;

/// A text without Huffman's code, its length in seven bits and what follows them.
fn text(text: &str, block: &mut Vec<u8>) {
    let mut length = text.len();
    if length < 127 {
        block.push(length as u8);
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push((length % 128) as u8 | 128);
            length /= 128;
        }
        block.push(length as u8);
    }
    block.extend_from_slice(text.as_bytes());
}

/// A frame that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// Its stream.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Takes a whole frame from the front, if one is there.
    pub fn take(input: &mut Vec<u8>) -> Option<Frame> {
        let head: [u8; 9] = *input.first_chunk()?;
        let [a, b, c, kind, flags, d, e, f, g] = head;
        let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = input.get(9..end)?.to_vec();
        input.drain(..end);
        Some(Frame { kind, flags, stream: u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff, payload })
    }

    /// The number that GOAWAY (behind its stream) and RST_STREAM carry.
    pub fn code(&self) -> Option<u32> {
        let at = if self.kind == kind::GOAWAY { 4 } else { 0 };
        self.payload.get(at..)?.first_chunk().map(|code| u32::from_be_bytes(*code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use terse_http::h2::{Connection, Event, Limits};
    use terse_message::Request;

    #[test]
    fn a_server_understands_them() {
        let mut bytes = Vec::new();
        preface(&[(INITIAL_WINDOW_SIZE, 0)], &mut bytes);
        let long = "v".repeat(400);
        let block = request("POST", "/a", &[("x-long", &long)]);
        headers_begun(1, &block[..10], &mut bytes);
        continuation(1, &block[10..], true, &mut bytes);
        let mut block = request("POST", "/b", &[]);
        indexed_literal("x-more", &long, &mut block);
        block.push(FIRST_OF_TABLE);
        headers(3, &block, false, &mut bytes);
        data(3, b"body", true, &mut bytes);
        let mut server = Connection::server(Limits::default());
        let (mut input, mut targets, mut fields, mut ends) = (&bytes[..], Vec::new(), Vec::new(), Vec::new());
        loop {
            let (used, event) = server.receive(input, Instant::now());
            input = &input[used..];
            match event {
                None => break,
                Some(Event::Request { .. }) => {
                    let mut request = Request::default();
                    server.take_request(&mut request);
                    targets.push(String::from_utf8(request.target().to_vec()).unwrap());
                    fields.push(request.fields.iter().filter(|(_, value)| value.len() == 400).count());
                }
                Some(Event::Data { id, end }) => ends.push((id, server.data(id).to_vec(), end)),
                Some(Event::Settings) => {}
                Some(event) => panic!("{event:?}"),
            }
        }
        assert_eq!((targets, fields, ends), (vec!["/a".into(), "/b".into()], vec![1, 2], vec![(3, b"body".to_vec(), true)]));
    }

    #[test]
    fn frames_are_taken_whole() {
        let mut bytes = Vec::new();
        rst(5, 8, &mut bytes);
        ping([1; 8], &mut bytes);
        let last = bytes.pop().unwrap();
        let reset = Frame::take(&mut bytes).unwrap();
        assert_eq!((reset.kind, reset.stream, reset.code()), (kind::RST_STREAM, 5, Some(8)));
        assert_eq!(Frame::take(&mut bytes), None);
        bytes.push(last);
        assert_eq!(Frame::take(&mut bytes).map(|frame| frame.payload), Some(vec![1; 8]));
        assert!(bytes.is_empty());
    }
}
