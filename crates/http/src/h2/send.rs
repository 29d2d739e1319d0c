//! Sending side: heads, data, trailers.

use super::connection::Connection;
use super::error::Code;
use super::frame::{self, END_HEADERS, END_STREAM, HEADER_BYTES, Kind};
use super::hpack::Encoder;
use super::stream::{Asked, Stream};
use crate::h1::target::without_userinfo;
use terse_message::{Fields, Known, KnownSet, Request, Response};

/// Reason why a request cannot be sent on this connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// As many streams are open as the server allows.
    Full,
    /// The connection goes away, has failed, or has no ids left.
    Ended,
}

impl Connection {
    /// Most streams that a client may have open: the least of the server's SETTINGS and its own limits.
    pub fn most_streams(&self) -> u32 {
        self.peer.concurrent_streams.min(self.limits.concurrent_streams)
    }

    /// Number of further streams that a client may open.
    pub fn free_streams(&self) -> usize {
        let most = usize::try_from(self.most_streams()).unwrap_or(usize::MAX);
        if self.is_going() || self.is_server { 0 } else { most.saturating_sub(self.streams.len()) }
    }

    /// Opens a stream with a request; `end` where no body follows. `scheme` is that of the connection that the request came
    /// on, whatever its target has. `protocol` makes a CONNECT an extended one (RFC 8441), which
    /// [`super::Settings::extended_connect`] must allow.
    pub fn send_request(
        &mut self,
        request: &Request,
        scheme: &[u8],
        protocol: Option<&[u8]>,
        end: bool,
    ) -> Result<u32, Unavailable> {
        if self.free_streams() == 0 {
            return Err(if self.is_going() { Unavailable::Ended } else { Unavailable::Full });
        }
        let id = self.next_id;
        self.next_id += 2;
        let mut stream = self.new_stream(id);
        stream.we_ended = end;
        stream.asked = Asked::of(request.method());
        self.streams.add(stream);
        let is_tunnel = request.method() == b"CONNECT" && protocol.is_none();
        self.append_head(id, end, |encoder, out| {
            encoder.field(b":method", request.method(), out);
            if !is_tunnel {
                encoder.field(b":scheme", scheme, out);
            }
            if let Some(authority) = if is_tunnel { Some(request.target()) } else { authority(request) } {
                encoder.field(b":authority", authority, out);
            }
            if !is_tunnel {
                match path(request) {
                    // `http://a?b` asks for `/?b`.
                    query @ [b'?', ..] => encoder.field(b":path", &[b"/", query].concat(), out),
                    path => encoder.field(b":path", path, out),
                }
            }
            if let Some(protocol) = protocol {
                encoder.field(b":protocol", protocol, out);
            }
            fields(encoder, &request.fields, out);
        });
        Ok(id)
    }

    /// Appends a response's head, `end` where no body follows; interim ones (1xx) before it. False where the stream takes
    /// none, and for 101.
    pub fn send_response(&mut self, id: u32, response: &Response, end: bool) -> bool {
        let is_interim = response.status < 200;
        // There is no other protocol to change to (RFC 9113 section 8.6).
        if response.status == 101 {
            return false;
        }
        let Some(stream) = self.streams.get(id).filter(|stream| stream.can_send() && !stream.is_answered) else { return false };
        stream.is_answered = !is_interim;
        stream.we_ended = end && !is_interim;
        let end = stream.we_ended;
        self.append_head(id, end, |encoder, out| {
            let status = response.status.clamp(100, 999);
            let digits = [b'0' + (status / 100) as u8, b'0' + (status / 10 % 10) as u8, b'0' + (status % 10) as u8];
            encoder.field(b":status", &digits, out);
            fields(encoder, &response.fields, out);
        });
        true
    }

    /// Bytes of data that a stream can send now. Where that is 0 for want of window, [`super::Event::WindowOpened`] follows
    /// when it opens.
    pub fn capacity_of(&mut self, id: u32) -> usize {
        let free = self.limits.output_bytes.saturating_sub(self.out.len() - self.written);
        let shared = self.send_window;
        let Some(stream) = self.sending(id) else { return 0 };
        if stream.send_window <= 0 {
            stream.is_blocked = true;
            return 0;
        }
        if shared <= 0 {
            self.is_blocked = true;
            return 0;
        }
        usize::try_from(stream.send_window.min(shared)).unwrap_or(0).min(free)
    }

    /// Bytes of data that all streams together can send now: the output's room within the connection's window. Where that
    /// is closed, [`super::Event::WindowOpened`] of stream 0 follows when it opens.
    pub fn room(&mut self) -> usize {
        if self.send_window <= 0 {
            self.is_blocked = true;
        }
        let free = self.limits.output_bytes.saturating_sub(self.out.len() - self.written);
        free.min(usize::try_from(self.send_window).unwrap_or(0))
    }

    /// Bytes of data that the peer takes of a stream, whatever room there is; of stream 0, of all together.
    pub fn window(&self, id: u32) -> usize {
        let window = if id == 0 { self.send_window } else { self.streams.find(id).map_or(0, |stream| stream.send_window) };
        usize::try_from(window).unwrap_or(0)
    }

    /// Whether a stream takes data at all: its head was sent, it has neither ended nor been reset, and the
    /// connection has not failed.
    pub fn can_send(&self, id: u32) -> bool {
        self.failure.is_none() && self.streams.find(id).is_some_and(|stream| stream.can_send_data(self.is_server))
    }

    fn sending(&mut self, id: u32) -> Option<&mut Stream> {
        let is_server = self.is_server;
        let has_failed = self.failure.is_some();
        self.streams.get(id).filter(|stream| !has_failed && stream.can_send_data(is_server))
    }

    /// Appends data of a stream, as much as its windows and the output have room for; returns the number of bytes. `end`
    /// ends the stream after all of it, which needs no room.
    pub fn send_data(&mut self, id: u32, data: &[u8], end: bool) -> usize {
        let most = self.peer.frame_bytes as usize;
        let taken = self.capacity_of(id).min(data.len());
        let end = end && taken == data.len();
        let Some(stream) = self.sending(id) else { return 0 };
        stream.send_window -= taken as i64;
        stream.we_ended = end;
        self.send_window -= taken as i64;
        let mut pieces = data[..taken].chunks(most.min(FRAME_MOST)).peekable();
        if pieces.peek().is_none() && end {
            self.out.extend_from_slice(&frame::header(0, Kind::Data, END_STREAM, id));
        }
        while let Some(piece) = pieces.next() {
            let flags = if end && pieces.peek().is_none() { END_STREAM } else { 0 };
            self.out.extend_from_slice(&frame::header(piece.len(), Kind::Data, flags, id));
            self.out.extend_from_slice(piece);
            self.data_frames += 1;
        }
        taken
    }

    /// Ends a stream with trailers after its body, without those that give a length. False where it takes none.
    pub fn send_trailers(&mut self, id: u32, trailers: &Fields) -> bool {
        let Some(stream) = self.sending(id) else { return false };
        stream.we_ended = true;
        let mut kept = None;
        if trailers.has(Known::ContentLength) {
            kept.insert(trailers.clone()).remove_known(Known::ContentLength);
        }
        let trailers = kept.as_ref().unwrap_or(trailers);
        self.append_head(id, true, |encoder, out| fields(encoder, trailers, out));
        true
    }

    /// Encodes a block into the output, cut into frames that the peer takes.
    fn append_head(&mut self, id: u32, end: bool, fields: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let Connection { encoder, out, peer, .. } = self;
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        encoder.begin(out);
        fields(encoder, out);
        let most = peer.frame_bytes as usize;
        let length = out.len() - start - HEADER_BYTES;
        let end = if end { END_STREAM } else { 0 };
        if length <= most {
            return out[start..start + HEADER_BYTES].copy_from_slice(&frame::header(length, Kind::Headers, end | END_HEADERS, id));
        }
        let block = out.split_off(start + HEADER_BYTES);
        out.truncate(start);
        let mut kind = Kind::Headers;
        let mut pieces = block.chunks(most).peekable();
        while let Some(piece) = pieces.next() {
            let last = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            let flags = if kind == Kind::Headers { end | last } else { last };
            out.extend_from_slice(&frame::header(piece.len(), kind, flags, id));
            out.extend_from_slice(piece);
            kind = Kind::Continuation;
        }
    }

    /// Ends the connection, for a cause of the driver's: a time-out, a fault.
    pub fn abort(&mut self, code: Code, cause: &'static str) {
        self.fail(super::Failure::new(code, cause));
    }
}

/// A larger frame would keep others waiting.
const FRAME_MOST: usize = 16_384;

/// The authority, without credentials (RFC 9113 section 8.3.1), where a host is named.
fn authority(request: &Request) -> Option<&[u8]> {
    request.authority().map(without_userinfo).filter(|authority| !authority.is_empty())
}

/// The path and the query; of OPTIONS for a whole server, `*` (RFC 9112 section 3.2.4).
fn path(request: &Request) -> &[u8] {
    let rest = request.scheme().and_then(|scheme| request.target().get(scheme.len() + 3..));
    match rest {
        Some(rest) if request.method() == b"OPTIONS" && memchr::memchr2(b'/', b'?', rest).is_none() => b"*",
        // A target that a rule has made no path of stays none: its server refuses it.
        None if !matches!(request.target(), [] | [b'/' | b'?', ..]) => request.target(),
        _ => match request.path_and_query() {
            b"" => b"/",
            path => path,
        },
    }
}

/// Appends fields, names in small letters. Fields that belong to a connection of HTTP/1.1 are left out (RFC 9113 section
/// 8.2.2), and so is Host, which is `:authority`.
fn fields(encoder: &mut Encoder, fields: &Fields, out: &mut Vec<u8>) {
    let has_hop = fields.may_have(HOP);
    let mut small = [0; SMALL_BYTES];
    for (i, (name, value)) in fields.iter().enumerate() {
        if has_hop && is_hop(name, value) {
            continue;
        }
        let long;
        let name = match small.get_mut(..name.len()) {
            // Without a way out of the loop, the bytes are looked up side by side.
            _ if !name.iter().fold(false, |found, byte| found | byte.is_ascii_uppercase()) => name,
            Some(small) => {
                small.copy_from_slice(name);
                small.make_ascii_lowercase();
                small
            }
            None => {
                long = name.to_ascii_lowercase();
                &long
            }
        };
        let value = value.trim_ascii();
        if fields.is_secret(i) { encoder.never_indexed(name, value, out) } else { encoder.field(name, value, out) }
    }
}

/// Longer names are rare.
const SMALL_BYTES: usize = 64;

const HOP: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::Host,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Te,
    Known::TransferEncoding,
    Known::Upgrade,
]);

fn is_hop(name: &[u8], value: &[u8]) -> bool {
    match Known::of(name) {
        Known::Te => !value.trim_ascii().eq_ignore_ascii_case(b"trailers"),
        Known::Connection | Known::Host | Known::KeepAlive | Known::ProxyConnection | Known::TransferEncoding | Known::Upgrade => {
            true
        }
        _ => false,
    }
}
