//! HTTP/2 by the sections of RFC 9113: both sides of [`Connection`] with frames that are written by hand, and against each other.

use proptest::prelude::*;
use std::time::{Duration, Instant};
use terse_http::h2::hpack::Encoder;
use terse_http::h2::{Code, Connection, Event, Glitch, Limits, Malformed, PREFACE};
use terse_message::{BodyLength, Fields, Known, Request, Response};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

/// Frames of an output: kind, flags, stream, payload.
fn frames(mut output: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((&[a, b, c, kind, flags, d, e, f, g], rest)) = output.split_first_chunk() {
        let (payload, more) = rest.split_at(u32::from_be_bytes([0, a, b, c]) as usize);
        all.push((kind, flags, u32::from_be_bytes([d, e, f, g]), payload.to_vec()));
        output = more;
    }
    assert!(output.is_empty());
    all
}

/// A peer by hand.
struct Peer {
    connection: Connection,
    encoder: Encoder,
    now: Instant,
    events: Vec<Event>,
    requests: Vec<(u32, Request)>,
}

impl Peer {
    /// A client's, of a server with such limits.
    fn of_server(limits: Limits) -> Peer {
        let mut peer = Peer {
            connection: Connection::server(limits),
            encoder: Encoder::default(),
            now: Instant::now(),
            events: Vec::new(),
            requests: Vec::new(),
        };
        assert!(
            peer.send(&[PREFACE, &frame(SETTINGS, 0, 0, b""), &frame(SETTINGS, ACK, 0, b"")].concat()).contains(&Event::Settings)
        );
        peer.output();
        peer
    }

    /// The events of these bytes.
    fn send(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        let start = self.events.len();
        loop {
            let (used, event) = self.connection.receive(bytes, self.now);
            bytes = &bytes[used..];
            let Some(event) = event else { break };
            if let Event::Request { id, .. } = event {
                let mut request = Request::default();
                self.connection.take_request(&mut request);
                self.requests.push((id, request));
            }
            self.events.push(event);
        }
        assert!(bytes.is_empty());
        self.events[start..].to_vec()
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        fields.iter().for_each(|(name, value)| self.encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
        block
    }

    fn head(&mut self, id: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<Event> {
        let block = self.block(fields);
        self.send(&frame(HEADERS, flags | END_HEADERS, id, &block))
    }

    fn output(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let output = self.connection.output().to_vec();
        self.connection.wrote(output.len());
        frames(&output)
    }

    /// The code of the GOAWAY that ends the connection.
    fn failure(&self) -> Option<Code> {
        self.connection.failure().map(|failure| failure.code)
    }
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/a?b"), (":authority", "example.org")];
const POST: [(&str, &str); 4] = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "example.org")];

fn with<'a>(head: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [head, more].concat()
}

#[test]
fn section_8_3_1_a_head_is_what_http1_gives() {
    let mut peer = Peer::of_server(Limits::default());
    let head = with(&GET, &[("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2"), ("te", "trailers"), ("host", "EXAMPLE.org")]);
    assert_eq!(peer.head(1, END_STREAM, &head), [Event::Request { id: 1, end: true }]);
    let (_, request) = &peer.requests[0];
    assert_eq!((request.method(), request.target(), request.body), (&b"GET"[..], &b"/a?b"[..], BodyLength::None));
    assert_eq!((peer.connection.scheme(), peer.connection.protocol()), (&b"http"[..], &b""[..]));
    let mut lines = Vec::new();
    request.fields.write_to(&mut lines);
    assert_eq!(
        lines.escape_ascii().to_string(),
        "host: example.org\\r\\naccept: */*\\r\\nte: trailers\\r\\ncookie: a=1; b=2\\r\\n"
    );
    for (id, more, body) in [
        (3, &[("content-length", "7")][..], BodyLength::Exact(7)),
        (5, &[], BodyLength::Unknown),
        (7, &[("cookie", "x=y")], BodyLength::Unknown),
    ] {
        assert_eq!(peer.head(id, 0, &with(&POST, more)), [Event::Request { id, end: false }]);
        assert_eq!(peer.requests.last().unwrap().1.body, body);
    }
    assert_eq!(peer.requests[3].1.fields.first(Known::Cookie), Some(&b"x=y"[..]));
}

#[test]
fn section_8_1_1_malformed_heads_end_their_stream() {
    let get = |skip: &str, more: &[(&'static str, &'static str)]| -> Vec<(&str, &str)> {
        GET.iter().filter(|(name, _)| *name != skip).chain(more).copied().collect()
    };
    let cases = [
        (get("", &[(":path", "/")]), Malformed::PseudoHeader),
        (get(":method", &[]), Malformed::PseudoHeader),
        (get(":scheme", &[]), Malformed::PseudoHeader),
        (get(":path", &[]), Malformed::PseudoHeader),
        (get(":path", &[("a", "b"), (":path", "/")]), Malformed::PseudoHeader),
        (get(":path", &[("cookie", "b"), (":path", "/")]), Malformed::PseudoHeader),
        (get("", &[(":status", "200")]), Malformed::PseudoHeader),
        (get("", &[(":unknown", "x")]), Malformed::PseudoHeader),
        (get("", &[(":protocol", "websocket")]), Malformed::PseudoHeader),
        (get(":method", &[(":method", "")]), Malformed::Method),
        (get(":method", &[(":method", "G T")]), Malformed::Method),
        (get(":path", &[(":path", "")]), Malformed::Target),
        (get(":path", &[(":path", "a")]), Malformed::Target),
        (get(":path", &[(":path", "*")]), Malformed::Target),
        (get(":path", &[(":path", "http://a/")]), Malformed::Target),
        (get(":path", &[(":path", "/a b")]), Malformed::Target),
        (get(":path", &[(":path", "/a\u{e9}")]), Malformed::Target),
        (get(":path", &[(":path", "/a\r\nx:")]), Malformed::FieldValue),
        (get(":authority", &[]), Malformed::Host),
        (get(":authority", &[(":authority", "")]), Malformed::Host),
        (get(":authority", &[(":authority", "u@h")]), Malformed::Host),
        (get("", &[("host", "other")]), Malformed::Host),
        (get(":authority", &[("host", "a"), ("host", "a")]), Malformed::Host),
        (get("", &[("", "x")]), Malformed::FieldName),
        (get("", &[("a b", "x")]), Malformed::FieldName),
        (get("", &[("a", "x\ny")]), Malformed::FieldValue),
        (get("", &[("a", "x\0")]), Malformed::FieldValue),
        (get("", &[("a", " x")]), Malformed::FieldValue),
        (get("", &[("a", "x\t")]), Malformed::FieldValue),
        (get("", &[("connection", "close")]), Malformed::ConnectionField),
        (get("", &[("keep-alive", "x")]), Malformed::ConnectionField),
        (get("", &[("proxy-connection", "x")]), Malformed::ConnectionField),
        (get("", &[("transfer-encoding", "chunked")]), Malformed::ConnectionField),
        (get("", &[("upgrade", "h3")]), Malformed::ConnectionField),
        (get("", &[("te", "gzip")]), Malformed::ConnectionField),
        (get("", &[("content-length", "1")]), Malformed::ContentLength),
        (get("", &[("content-length", "+0")]), Malformed::ContentLength),
        (get("", &[("content-length", "0"), ("content-length", "0")]), Malformed::ContentLength),
    ];
    let mut peer = Peer::of_server(Limits::default());
    for (id, (head, malformed)) in (1..).step_by(2).zip(cases) {
        assert_eq!(peer.head(id, END_STREAM, &head), [Event::Malformed { id, malformed }], "{head:?}");
        assert_eq!(peer.output(), [(RST_STREAM, 0, id, Code::PROTOCOL_ERROR.0.to_be_bytes().to_vec())]);
    }
    // A large letter, by hand: the encoder takes none.
    let mut block = peer.block(&GET);
    block.extend_from_slice(b"\x00\x01A\x01b");
    assert_eq!(
        peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 201, &block)),
        [Event::Malformed { id: 201, malformed: Malformed::FieldName }]
    );
    assert_eq!(peer.connection.open_streams(), 0);
}

#[test]
fn section_8_1_1_data_is_as_long_as_the_head_says() {
    for (pieces, end, is_right) in
        [(&[3, 2][..], true, true), (&[5], true, true), (&[4], true, false), (&[4, 2], false, false), (&[5, 0], true, true)]
    {
        let mut peer = Peer::of_server(Limits::default());
        peer.head(1, 0, &with(&POST, &[("content-length", "5")]));
        for (i, length) in pieces.iter().enumerate() {
            let flags = u8::from(end && i + 1 == pieces.len());
            peer.send(&frame(DATA, flags, 1, &vec![b'x'; *length]));
        }
        let reset = Event::Reset { id: 1, code: Code::PROTOCOL_ERROR, by_peer: false };
        assert_eq!(peer.events.contains(&reset), !is_right, "{pieces:?}");
        assert_eq!(peer.events.last() == Some(&Event::Data { id: 1, end: true }), is_right);
    }
}

#[test]
fn section_5_2_windows_bound_what_a_stream_holds() {
    let limits = Limits { stream_window: 100_000, connection_window: 200_000, receive_budget: 300_000, ..Limits::default() };
    let mut peer = Peer::of_server(limits);
    for id in [1, 3, 5, 7] {
        peer.head(id, 0, &POST);
    }
    let fill = |peer: &mut Peer, id: u32| {
        for _ in 0..10 {
            peer.send(&frame(DATA, 0, id, &[0; 10_000]));
        }
        let windows = peer.output().into_iter().filter(|(kind, _, of, _)| *kind == WINDOW_UPDATE && *of == 0);
        windows.map(|(_, _, _, by)| i64::from(u32::from_be_bytes(by.try_into().unwrap()))).sum::<i64>()
    };
    // A stream that nobody reads stops no other while the budget lasts.
    assert!(fill(&mut peer, 1) > 0);
    fill(&mut peer, 3);
    assert_eq!(peer.failure(), None);
    assert_eq!((peer.connection.data(1).len(), peer.connection.data(3).len()), (100_000, 100_000));
    // Now 100,000 are left: as much may come, and no more.
    fill(&mut peer, 5);
    assert_eq!(peer.failure(), None);
    peer.connection.consume(5, 100_000);
    let windows: Vec<_> =
        peer.output().into_iter().map(|(kind, _, id, by)| (kind, id, u32::from_be_bytes(by.try_into().unwrap()))).collect();
    assert_eq!(windows, [(WINDOW_UPDATE, 5, 100_000), (WINDOW_UPDATE, 0, 100_000)]);
    peer.send(&frame(DATA, 0, 1, b"x"));
    assert!(peer.events.contains(&Event::Reset { id: 1, code: Code::FLOW_CONTROL_ERROR, by_peer: false }));
    // What the stream held is free again, and its reader may be late.
    assert!(peer.output().iter().any(|(kind, _, id, _)| *kind == WINDOW_UPDATE && *id == 0));
    peer.connection.consume(1, 1_000_000);
    peer.connection.release(1, Code::CANCEL);
    for _ in 0..21 {
        peer.send(&frame(DATA, 0, 7, &[0; 10_000]));
    }
    assert!(peer.events.iter().any(|event| matches!(event, Event::Reset { id: 7, .. })));
}

#[test]
fn padding_gives_its_window_back() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, 0, &POST);
    let padded = frame(DATA, PADDED, 1, &[&[255][..], &[0; 255]].concat());
    for _ in 0..2000 {
        peer.send(&padded);
        peer.now += Duration::from_millis(200);
    }
    assert_eq!((peer.failure(), peer.connection.data(1).len()), (None, 0));
    assert!(peer.connection.can_send(1));
}

#[test]
fn more_window_is_given_on_demand() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, 0, &POST);
    for _ in 0..6 {
        peer.send(&frame(DATA, 0, 1, &[0; 10_000]));
    }
    peer.connection.want(1, 50_000);
    let windows: Vec<_> = peer.output().into_iter().filter(|(kind, _, id, _)| *kind == WINDOW_UPDATE && *id == 1).collect();
    assert_eq!(windows, [(WINDOW_UPDATE, 0, 1, (50_000u32 - 5_535).to_be_bytes().to_vec())]);
    peer.connection.want(1, 50_000);
    // What is consumed then is granted already.
    peer.connection.consume(1, 20_000);
    assert_eq!(peer.output(), []);
}

#[test]
fn unfinished_streams_are_counted_whoever_resets_them() {
    // Rapid Reset (CVE-2023-44487), and MadeYouReset (CVE-2025-8671) by a window of 0.
    for reset in [frame(RST_STREAM, 0, 0, &8u32.to_be_bytes()), frame(WINDOW_UPDATE, 0, 0, &[0; 4])] {
        let mut peer = Peer::of_server(Limits::default());
        let mut resets = 0;
        for id in (1..).step_by(2) {
            peer.head(id, END_STREAM, &GET);
            let mut reset = reset.clone();
            reset[5..9].copy_from_slice(&id.to_be_bytes());
            peer.send(&reset);
            peer.connection.release(id, Code::CANCEL);
            peer.connection.wrote(usize::MAX / 2);
            if peer.failure().is_some() {
                break;
            }
            resets += 1;
        }
        // 100 and a tenth of all.
        assert_eq!(resets, 111);
        assert_eq!(peer.failure(), Some(Code::ENHANCE_YOUR_CALM));
        assert!(peer.events.contains(&Event::Glitch(Glitch::Unfinished)));
        assert!(peer.connection.is_finished());
    }
}

#[test]
fn resets_of_answered_streams_are_free() {
    let mut peer = Peer::of_server(Limits::default());
    for id in (1..2000).step_by(2) {
        peer.head(id, 0, &POST);
        assert!(peer.connection.send_response(id, &response(200, &[]), true));
        peer.send(&frame(RST_STREAM, 0, id, &8u32.to_be_bytes()));
        peer.connection.release(id, Code::NO_ERROR);
    }
    assert_eq!(peer.failure(), None);
}

#[test]
fn floods_end_the_connection() {
    let limits = Limits::default();
    for (bytes, glitch) in [
        (frame(PING, 0, 0, &[0; 8]), Glitch::Ping),
        (frame(SETTINGS, 0, 0, b""), Glitch::Settings),
        (frame(DATA, 0, 1, b""), Glitch::EmptyData),
        (frame(DATA, 0, 1, b"x"), Glitch::TinyData),
        (frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), Glitch::WindowUpdate),
        (frame(PRIORITY, 0, 9, &[0; 5]), Glitch::Priority),
        (frame(77, 0, 0, &[0; 3]), Glitch::Unknown),
    ] {
        let mut peer = Peer::of_server(limits);
        peer.head(1, 0, &POST);
        let mut sent = 0;
        while peer.failure().is_none() && sent < 50_000 {
            peer.send(&bytes);
            peer.connection.consume(1, 1);
            peer.output();
            sent += 1;
        }
        assert_eq!(peer.failure(), Some(Code::ENHANCE_YOUR_CALM), "{glitch:?}");
        assert!(peer.events.contains(&Event::Glitch(glitch)));
        assert!(sent > 20, "{glitch:?}");
        // The same is nothing over a longer time.
        let mut peer = Peer::of_server(limits);
        peer.head(1, 0, &POST);
        for _ in 0..sent * 2 {
            peer.send(&bytes);
            peer.connection.consume(1, 1);
            peer.output();
            peer.now += Duration::from_secs(1);
        }
        assert_eq!(peer.failure(), None, "{glitch:?}");
    }
}

#[test]
fn header_blocks_are_limited_in_each_way() {
    // CONTINUATION frames (CVE-2024-27316 and its kin).
    let mut peer = Peer::of_server(Limits::default());
    let block = peer.block(&GET);
    peer.send(&frame(HEADERS, END_STREAM, 1, &block));
    assert!(peer.connection.is_amid_frame());
    for _ in 0..8 {
        peer.send(&frame(CONTINUATION, 0, 1, b""));
    }
    assert_eq!(peer.failure(), None);
    peer.send(&frame(CONTINUATION, 0, 1, b""));
    assert!(peer.events.contains(&Event::Glitch(Glitch::Continuations)));

    let mut peer = Peer::of_server(Limits::default());
    peer.send(&frame(HEADERS, END_STREAM, 1, &[0; 16_000]));
    peer.send(&frame(CONTINUATION, 0, 1, &[0; 1000]));
    assert!(peer.events.contains(&Event::Glitch(Glitch::HeaderBlock)));

    // An entry of the table, many times.
    let value = "x".repeat(1000);
    for (times, failure) in [(10, None), (20, None), (60, None), (70, Some(Code::ENHANCE_YOUR_CALM))] {
        let mut peer = Peer::of_server(Limits::default());
        let events = peer.head(1, END_STREAM, &with(&GET, &vec![("x-a", &value[..]); times]));
        assert_eq!(peer.failure(), failure, "{times}");
        let expected = if times > 16 { Event::TooLarge { id: 1 } } else { Event::Request { id: 1, end: true } };
        assert!(failure.is_some() || events == [expected]);
        if failure.is_none() {
            // The table was kept.
            assert_eq!(peer.head(3, END_STREAM, &with(&GET, &[("x-a", &value)])), [Event::Request { id: 3, end: true }]);
            assert_eq!(peer.requests.last().unwrap().1.fields.get(b"x-a"), Some(value.as_bytes()));
            assert!(peer.connection.send_response(1, &response(431, &[]), true));
        }
    }
    // Many fields.
    let mut peer = Peer::of_server(Limits::default());
    assert_eq!(peer.head(1, END_STREAM, &with(&GET, &vec![("a", ""); 200])), [Event::TooLarge { id: 1 }]);
}

#[test]
fn answers_that_nobody_takes_stop_the_reading() {
    let mut peer = Peer::of_server(Limits::default());
    for _ in 0..200 {
        for id in 0..10 {
            peer.send(&frame(PING, 0, 0, &[id; 8]));
        }
        peer.now += Duration::from_secs(1);
    }
    assert!(!peer.connection.wants_input());
    assert_eq!(peer.failure(), None);
    peer.output();
    assert!(peer.connection.wants_input());
}

#[test]
fn section_5_1_2_streams_count_until_they_are_released() {
    let mut peer = Peer::of_server(Limits { concurrent_streams: 2, ..Limits::default() });
    for id in [1, 3, 5] {
        peer.head(id, END_STREAM, &GET);
    }
    assert_eq!(peer.requests.len(), 2);
    assert_eq!(peer.output(), [(RST_STREAM, 0, 5, Code::REFUSED_STREAM.0.to_be_bytes().to_vec())]);
    peer.send(&frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()));
    assert!(peer.head(7, END_STREAM, &GET).is_empty());
    peer.connection.release(1, Code::NO_ERROR);
    assert_eq!(peer.head(9, END_STREAM, &GET), [Event::Request { id: 9, end: true }]);
    // What was on its way is ignored.
    peer.connection.release(3, Code::CANCEL);
    assert!(peer.head(3, END_STREAM, &[("x", "y")]).is_empty());
    assert_eq!(peer.failure(), None);
}

#[test]
fn section_6_8_a_drain_takes_what_is_on_its_way() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, END_STREAM, &GET);
    peer.connection.drain();
    peer.connection.ping(*b"draining");
    assert_eq!(peer.output().iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(), [GOAWAY, PING]);
    assert_eq!(peer.head(3, END_STREAM, &GET), [Event::Request { id: 3, end: true }]);
    assert_eq!(peer.send(&frame(PING, ACK, 0, b"draining")), [Event::Pong]);
    peer.connection.goaway(Code::NO_ERROR);
    assert_eq!(peer.output(), [(GOAWAY, 0, 0, [3u32.to_be_bytes(), [0; 4]].concat())]);
    // One that comes late is not taken, but is read: the table goes on.
    assert!(peer.head(5, 0, &with(&GET, &[("x-a", "1")])).is_empty());
    assert!(peer.send(&frame(DATA, END_STREAM, 5, b"late")).is_empty());
    assert!(!peer.connection.is_finished());
    for id in [1, 3] {
        assert!(peer.connection.send_response(id, &response(204, &[]), true));
        peer.connection.release(id, Code::NO_ERROR);
    }
    assert!(peer.connection.is_finished() && peer.failure().is_none());
}

#[test]
fn section_6_5_2_windows_follow_settings() {
    let window = |bytes: u32| frame(SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat());
    let mut peer = Peer::of_server(Limits::default());
    peer.send(&window(10));
    peer.head(1, END_STREAM, &GET);
    peer.connection.send_response(1, &response(200, &[]), false);
    assert_eq!(peer.connection.send_data(1, b"0123456789abcdef", true), 10);
    assert_eq!(peer.connection.capacity_of(1), 0);
    // Less than was used: below 0.
    assert_eq!(peer.send(&window(4)), [Event::Settings]);
    assert_eq!(peer.send(&frame(WINDOW_UPDATE, 0, 1, &6u32.to_be_bytes())), []);
    assert_eq!(peer.send(&frame(WINDOW_UPDATE, 0, 1, &2u32.to_be_bytes())), [Event::WindowOpened { id: 1 }]);
    assert_eq!(peer.connection.send_data(1, b"abcdef", true), 2);
    assert_eq!(peer.send(&window(100)), [Event::Settings, Event::WindowOpened { id: 0 }]);
    assert_eq!(peer.connection.send_data(1, b"cdef", true), 4);
    assert!(!peer.connection.can_send(1));
    let output = peer.output();
    let data: Vec<_> = output.iter().filter(|(kind, ..)| *kind == DATA).map(|(_, flags, _, data)| (*flags, &data[..])).collect();
    assert_eq!(data, [(0, &b"0123456789"[..]), (0, b"ab"), (END_STREAM, b"cdef")]);
}

/// Two connections of ours, and what they say.
struct Pair {
    client: Connection,
    server: Connection,
    now: Instant,
}

impl Pair {
    fn new() -> Pair {
        let mut pair = Pair {
            client: Connection::client(Limits::default()),
            server: Connection::server(Limits::default()),
            now: Instant::now(),
        };
        assert_eq!(pair.ask(), [Event::Settings]);
        assert_eq!(pair.answer(), [Event::Settings]);
        pair.ask();
        pair
    }

    fn carry(from: &mut Connection, to: &mut Connection, now: Instant) -> Vec<Event> {
        let (bytes, mut events) = (from.output().to_vec(), Vec::new());
        from.wrote(bytes.len());
        let mut rest = &bytes[..];
        loop {
            let (used, event) = to.receive(rest, now);
            rest = &rest[used..];
            match event {
                Some(event) => events.push(event),
                None => return events,
            }
        }
    }

    fn ask(&mut self) -> Vec<Event> {
        Pair::carry(&mut self.client, &mut self.server, self.now)
    }

    fn answer(&mut self) -> Vec<Event> {
        Pair::carry(&mut self.server, &mut self.client, self.now)
    }
}

fn request(method: &[u8], target: &[u8], fields: &[(&str, &str)]) -> Request {
    let mut request = Request::default();
    fields.iter().for_each(|(name, value)| request.fields.push(name.as_bytes(), value.as_bytes()));
    request.set_method(method);
    request.set_target(target);
    request
}

fn response(status: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::default();
    response.status = status;
    fields.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
    response
}

#[test]
fn section_8_1_messages_with_all_their_parts() {
    let mut pair = Pair::new();
    let asked =
        request(b"POST", b"http://h:81/x?y", &[("Host", "h:81"), ("X-Big", "1"), ("Connection", "close"), ("TE", "trailers")]);
    let id = pair.client.send_request(&asked, b"https", None, false).unwrap();
    assert_eq!(pair.ask(), [Event::Request { id, end: false }]);
    let mut got = Request::default();
    pair.server.take_request(&mut got);
    assert_eq!((got.method(), got.target(), pair.server.scheme()), (&b"POST"[..], &b"/x?y"[..], &b"http"[..]));
    let mut trailers = Fields::default();
    trailers.push(b"X-Sum", b"7");
    assert_eq!(pair.client.send_data(id, b"body", false), 4);
    assert!(pair.client.send_trailers(id, &trailers));
    assert!(!pair.client.send_trailers(id, &trailers));
    assert_eq!(pair.ask(), [Event::Data { id, end: false }, Event::Trailers { id }]);
    let fields: Vec<_> = got.fields.iter().map(|(n, v)| format!("{}: {}", n.escape_ascii(), v.escape_ascii())).collect();
    assert_eq!(fields, ["host: h:81", "x-big: 1", "te: trailers"]);
    assert_eq!(pair.server.data(id), b"body");
    assert_eq!(pair.server.take_trailers(id).unwrap().get(b"x-sum"), Some(&b"7"[..]));

    for status in [100, 103] {
        assert!(pair.server.send_response(id, &response(status, &[("Link", "</a>")]), false));
    }
    assert!(pair.server.send_response(id, &response(200, &[("Content-Length", "3")]), false));
    assert!(!pair.server.send_response(id, &response(200, &[]), false));
    assert_eq!(pair.server.send_data(id, b"abc", false), 3);
    assert!(pair.server.send_trailers(id, &trailers));
    assert_eq!(
        pair.answer(),
        [
            Event::Interim { id },
            Event::Interim { id },
            Event::Response { id, end: false },
            Event::Data { id, end: false },
            Event::Trailers { id }
        ]
    );
    let mut got = Response::default();
    pair.client.take_response(&mut got);
    assert_eq!((got.status, got.body), (200, BodyLength::Exact(3)));
    pair.client.release(id, Code::CANCEL);
    pair.server.release(id, Code::CANCEL);
    assert!(pair.client.output().is_empty() && pair.server.output().is_empty());
}

#[test]
fn answers_without_a_body() {
    for (method, status, fields, body) in [
        (&b"HEAD"[..], 200, &[("content-length", "5")][..], BodyLength::None),
        (b"GET", 304, &[("content-length", "5")], BodyLength::None),
        (b"GET", 204, &[], BodyLength::None),
        (b"GET", 200, &[], BodyLength::Exact(0)),
    ] {
        let mut pair = Pair::new();
        let id = pair.client.send_request(&request(method, b"/", &[("host", "h")]), b"http", None, true).unwrap();
        pair.ask();
        pair.server.send_response(id, &response(status, fields), true);
        assert_eq!(pair.answer(), [Event::Response { id, end: true }]);
        let mut got = Response::default();
        pair.client.take_response(&mut got);
        assert_eq!(got.body, body, "{status}");
    }
    // One that says five bytes and has none.
    let mut pair = Pair::new();
    let id = pair.client.send_request(&request(b"GET", b"/", &[("host", "h")]), b"http", None, true).unwrap();
    pair.ask();
    pair.server.send_response(id, &response(200, &[("content-length", "5")]), true);
    assert_eq!(pair.answer(), [Event::Reset { id, code: Code::PROTOCOL_ERROR, by_peer: false }]);
}

#[test]
fn rfc_8441_extended_connect() {
    let mut pair = Pair::new();
    assert!(pair.client.peer().extended_connect);
    let asked = request(b"CONNECT", b"/chat", &[("host", "h"), ("sec-websocket-version", "13")]);
    let id = pair.client.send_request(&asked, b"https", Some(b"websocket"), false).unwrap();
    pair.client.send_data(id, b"ping", false);
    assert_eq!(pair.ask(), [Event::Request { id, end: false }, Event::Data { id, end: false }]);
    assert_eq!(pair.server.protocol(), b"websocket");
    let mut got = Request::default();
    pair.server.take_request(&mut got);
    assert_eq!((got.method(), got.target(), got.body), (&b"CONNECT"[..], &b"/chat"[..], BodyLength::None));
    pair.server.send_response(id, &response(200, &[]), false);
    pair.server.send_data(id, b"pong", true);
    assert_eq!(pair.answer(), [Event::Response { id, end: false }, Event::Data { id, end: true }]);

    // A CONNECT of old: no scheme, no path.
    let id = pair.client.send_request(&request(b"CONNECT", b"h:443", &[("host", "h:443")]), b"https", None, false).unwrap();
    assert_eq!(pair.ask(), [Event::Request { id, end: false }]);
    pair.server.take_request(&mut got);
    assert_eq!((got.target(), pair.server.protocol()), (&b"h:443"[..], &b""[..]));
}

#[test]
fn a_goaway_refuses_what_it_did_not_take() {
    let mut pair = Pair::new();
    let ask = |pair: &mut Pair| pair.client.send_request(&request(b"GET", b"/", &[("host", "h")]), b"http", None, true);
    let first = ask(&mut pair).unwrap();
    pair.ask();
    pair.server.goaway(Code::NO_ERROR);
    let second = ask(&mut pair).unwrap();
    assert_eq!(
        pair.answer(),
        [
            Event::GoAway { last: first, code: Code::NO_ERROR },
            Event::Reset { id: second, code: Code::REFUSED_STREAM, by_peer: true }
        ]
    );
    assert!(pair.ask().is_empty());
    assert!(ask(&mut pair).is_err());
    assert_eq!(pair.client.free_streams(), 0);
    pair.server.send_response(first, &response(200, &[]), true);
    assert_eq!(pair.answer(), [Event::Response { id: first, end: true }]);
}

#[test]
fn an_early_answer_and_no_error() {
    let mut pair = Pair::new();
    let id = pair.client.send_request(&request(b"POST", b"/", &[("host", "h")]), b"http", None, false).unwrap();
    pair.ask();
    pair.server.send_response(id, &response(200, &[]), false);
    pair.server.send_data(id, b"enough", true);
    pair.server.release(id, Code::NO_ERROR);
    assert_eq!(
        pair.answer(),
        [
            Event::Response { id, end: false },
            Event::Data { id, end: true },
            Event::Reset { id, code: Code::NO_ERROR, by_peer: true }
        ]
    );
    assert_eq!((pair.client.data(id), pair.client.can_send(id)), (&b"enough"[..], false));
}

#[test]
fn large_heads_are_cut_into_frames() {
    let limits = Limits { head_bytes: 100_000, block_bytes: 100_000, ..Limits::default() };
    let (mut client, mut server) = (Connection::client(limits), Connection::server(limits));
    let now = Instant::now();
    Pair::carry(&mut client, &mut server, now);
    Pair::carry(&mut server, &mut client, now);
    let value = "^x~".repeat(13_000);
    let asked = request(b"GET", b"/", &[("host", "h"), ("x-large", &value)]);
    let id = client.send_request(&asked, b"http", None, true).unwrap();
    let output = frames(client.output());
    assert!(output.iter().filter(|(kind, ..)| *kind == CONTINUATION).count() >= 2);
    assert_eq!(Pair::carry(&mut client, &mut server, now), [Event::Request { id, end: true }]);
    let mut got = Request::default();
    server.take_request(&mut got);
    assert_eq!(got.fields.get(b"x-large"), Some(value.as_bytes()));
}

/// Data by stream, in the order it came.
type Received = Vec<(u32, Vec<u8>)>;

/// The events, the data, and the output.
fn record(pieces: impl Iterator<Item = Vec<u8>>) -> (Vec<Event>, Received, Vec<u8>) {
    let mut connection = Connection::server(Limits::default());
    let (mut events, mut data, now) = (Vec::new(), Vec::<(u32, Vec<u8>)>::new(), Instant::now());
    for piece in pieces {
        let mut rest = &piece[..];
        loop {
            let (used, event) = connection.receive(rest, now);
            rest = &rest[used..];
            let Some(event) = event else { break };
            if let Event::Data { id, .. } = event {
                let mut taken = Vec::new();
                connection.take_data(id, &mut taken);
                match data.last_mut() {
                    Some((last, all)) if *last == id => all.extend_from_slice(&taken),
                    _ => data.push((id, taken)),
                }
            }
            // A frame may be told in parts.
            if !matches!(event, Event::Data { end: false, .. }) {
                events.push(event);
            }
        }
    }
    data.retain(|(_, bytes)| !bytes.is_empty());
    (events, data, connection.output().to_vec())
}

/// Frames that make some sense.
fn session() -> impl Strategy<Value = Vec<u8>> {
    let mut encoder = Encoder::default();
    let mut heads = Vec::new();
    for head in [&GET, &POST] {
        let mut block = Vec::new();
        head.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
        heads.push(block);
    }
    let kind = prop_oneof![4 => Just(DATA), 4 => Just(HEADERS), 1 => 2..11u8];
    let payload = prop_oneof![
        proptest::sample::select(heads),
        proptest::collection::vec(any::<u8>(), 0..40),
        Just(vec![0; 4]),
        Just(vec![0; 8]),
    ];
    let one = (kind, prop_oneof![Just(END_HEADERS), Just(END_HEADERS | END_STREAM), any::<u8>()], 0..12u32, payload);
    proptest::collection::vec(one, 0..12).prop_map(|all| {
        let start = [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat();
        all.into_iter().fold(start, |bytes, (kind, flags, id, payload)| [bytes, frame(kind, flags, id, &payload)].concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_split_of_the_input_changes_what_is_said(session in session(), cuts in proptest::collection::vec(1..30usize, 1..50)) {
        let whole = record(std::iter::once(session.clone()));
        let mut rest = &session[..];
        let mut cuts = cuts.into_iter().cycle();
        let pieces = std::iter::from_fn(|| {
            let (piece, more) = rest.split_at(cuts.next()?.min(rest.len()));
            rest = more;
            (!piece.is_empty()).then(|| piece.to_vec())
        });
        prop_assert_eq!(record(pieces), whole);
    }
}
