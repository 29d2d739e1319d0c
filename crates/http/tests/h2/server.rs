//! A server by the sections of RFC 9113, against frames that are written by hand.

use crate::peer::*;
use std::time::Duration;
use terse_http::h1::Reading;
use terse_http::h2::{Code, Event, Limits, Malformed};
use terse_message::{BodyLength, Conformance, Known};

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
        (5, &[], BodyLength::Framed),
        (7, &[("cookie", "x=y")], BodyLength::Framed),
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
    // A stream that is not read stops no other while the budget lasts.
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
    // The stream's share is free again, and its reader may be late.
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
    assert!(!peer.connection.has_peer_ended(1));
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
    // Bytes consumed then are granted already.
    peer.connection.consume(1, 20_000);
    assert_eq!(peer.output(), []);
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
    // Frames that were on their way are ignored.
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
    // A head that comes late is not taken, but is read: the table needs it.
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

#[test]
fn section_5_2_a_small_budget_does_not_stop_a_body() {
    let limits = Limits { stream_window: 10_000, receive_budget: 20_000, ..Limits::default() };
    let mut peer = Peer::of_server(limits);
    peer.head(1, 0, &POST);
    let mut windows = [65_535i64, 65_535];
    for _ in 0..100 {
        windows.iter_mut().for_each(|window| *window -= 5000);
        assert!(windows.iter().all(|window| *window >= 0), "the peer waits for a window");
        assert_eq!(peer.send(&frame(DATA, 0, 1, &[0; 5000])), [Event::Data { id: 1, end: false }]);
        peer.connection.consume(1, 5000);
        for (kind, _, id, by) in peer.output() {
            assert_eq!(kind, WINDOW_UPDATE);
            windows[id as usize] += i64::from(u32::from_be_bytes(by.try_into().unwrap()));
        }
    }
    assert!(windows[0] <= 20_000, "{windows:?}");
}

#[test]
fn section_8_1_nothing_is_sent_before_a_head() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, END_STREAM, &GET);
    assert!(!peer.connection.can_send(1));
    peer.connection.send_response(1, &response(103, &[]), false);
    assert!(!peer.connection.can_send(1));
    assert_eq!((peer.connection.send_data(1, b"x", true), peer.connection.capacity_of(1)), (0, 0));
    assert!(!peer.connection.send_trailers(1, &response(200, &[("a", "b")]).fields));
    peer.connection.send_response(1, &response(200, &[]), false);
    assert_eq!(peer.connection.send_data(1, b"x", true), 1);
}

#[test]
fn section_8_5_a_tunnel_has_no_trailers() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, 0, &[(":method", "CONNECT"), (":authority", "h:443")]);
    peer.connection.send_response(1, &response(200, &[]), false);
    let reset = Event::Reset { id: 1, code: Code::PROTOCOL_ERROR, by_peer: false };
    assert_eq!(peer.head(1, END_STREAM, &[("x-a", "b")]), [reset]);
}

#[test]
fn hpack_section_4_2_the_least_size_of_a_table_is_told() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, END_STREAM, &GET);
    peer.connection.send_response(1, &response(200, &[("x-a", "b")]), false);
    peer.output();
    // 0, then 4096: the entry is gone.
    peer.send(&frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0]));
    peer.head(3, END_STREAM, &GET);
    peer.connection.send_response(3, &response(200, &[("x-a", "b")]), false);
    let (_, _, _, block) = peer.output().into_iter().find(|(kind, ..)| *kind == HEADERS).unwrap();
    assert_eq!(block, b"\x20\x3f\xe1\x1f\x88\x40\x03x-a\x01b");
}

#[test]
fn more_window_is_not_given_a_byte_at_a_time() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, 0, &POST);
    let mut updates = 0;
    for _ in 0..1000 {
        peer.send(&frame(DATA, 0, 1, &[0; 100]));
        peer.connection.want(1, 65_535);
        updates += peer.output().iter().filter(|(kind, _, id, _)| *kind == WINDOW_UPDATE && *id == 1).count();
    }
    assert!((1..=4).contains(&updates), "{updates}");
    assert_eq!(peer.connection.data(1).len(), 100_000);
}

/// The windows that were opened: each stream's, or the connection's of 0, and by how much.
fn opened(peer: &mut Peer) -> Vec<(u32, u32)> {
    let updates = peer.output().into_iter().filter(|(kind, ..)| *kind == WINDOW_UPDATE);
    updates.map(|(_, _, id, by)| (id, u32::from_be_bytes(by.try_into().expect("four bytes")))).collect()
}

fn opened_by(peer: &mut Peer, id: u32) -> u32 {
    opened(peer).into_iter().filter(|(of, _)| *of == id).map(|(_, by)| by).sum()
}

/// The limits of a server with small first windows that may become wide.
fn widening() -> Limits {
    Limits { stream_window: 16_384, widest_window: 512 * 1024, ..Limits::default() }
}

#[test]
fn a_window_opens_for_the_body_that_is_announced() {
    let mut peer = Peer::of_server(widening());
    for (id, length, by) in [(1, None, 65_535 - 16_384), (3, Some("16384"), 0), (5, Some("20000"), 20_000 - 16_384)] {
        let length = length.map(|length| ("content-length", length));
        peer.head(id, 0, &POST.into_iter().chain(length).collect::<Vec<_>>());
        assert_eq!(opened_by(&mut peer, id), by, "{id}");
    }
    peer.head(7, END_STREAM, &GET);
    assert_eq!(opened(&mut peer), []);
    // The SETTINGS may be on their way: the first window is the protocol's then, and shrinks to ours with their acknowledgement.
    let mut early = Peer::unconfirmed(widening());
    early.head(1, 0, &POST);
    assert_eq!(opened_by(&mut early, 1), 0);
    early.send(&frame(SETTINGS, ACK, 0, b""));
    assert_eq!(opened_by(&mut early, 1), 65_535 - 16_384);
}

#[test]
fn a_reader_that_keeps_up_gets_a_wider_window() {
    let mut peer = Peer::of_server(widening());
    peer.head(1, 0, &POST);
    let (mut window, mut connection) = (16_384 + opened_by(&mut peer, 1), 512 * 1024);
    let mut widest = window;
    for _ in 0..200 {
        let n = window.min(connection).min(16_384);
        assert!(n > 0, "the peer waits for a window");
        peer.send(&frame(DATA, 0, 1, &vec![0; n as usize]));
        peer.connection.consume(1, n as usize);
        (window, connection) = (window - n, connection - n);
        for (id, by) in opened(&mut peer) {
            *(if id == 0 { &mut connection } else { &mut window }) += by;
        }
        widest = widest.max(window);
    }
    assert_eq!(widest, 512 * 1024);
    // Half of the budget is shared: another stream has the rest of it, which is its first window.
    peer.head(3, 0, &POST);
    assert_eq!(opened_by(&mut peer, 3), 0);
}

#[test]
fn a_slow_upload_needs_no_wider_window() {
    let mut peer = Peer::of_server(widening());
    peer.head(1, 0, &POST);
    let mut window = 16_384 + opened_by(&mut peer, 1);
    for _ in 0..100 {
        peer.now += Duration::from_millis(250);
        peer.send(&frame(DATA, 0, 1, &[0; 10_000]));
        peer.connection.consume(1, 10_000);
        window = window - 10_000 + opened_by(&mut peer, 1);
        assert!(window <= 65_535, "{window}");
    }
}

/// So many uploads may wait for slow servers before they stop the others of their connection.
#[test]
fn streams_that_are_not_read_leave_room_for_others() {
    let mut peer = Peer::of_server(widening());
    let mut windows = Vec::new();
    let mut connection = 512 * 1024;
    for at in 0..32 {
        let id = 2 * at + 1;
        peer.head(id, 0, &POST);
        let mut window = 16_384;
        for (of, by) in opened(&mut peer) {
            *(if of == id { &mut window } else { &mut connection }) += by;
        }
        windows.push(window);
        while window > 0 {
            let n = window.min(16_384);
            assert!(n <= connection, "stream {at} waits for the connection's window");
            peer.send(&frame(DATA, 0, id, &vec![0; n as usize]));
            (window, connection) = (window - n, connection - n);
            connection += opened_by(&mut peer, 0);
        }
    }
    assert_eq!(windows[..7], [65_535; 7]);
    assert_eq!(windows[9..], [16_384; 23]);
}

/// Heads that HAProxy takes, or answers with 400, are reset by default (RFC 9113 section 8.1.1).
#[test]
fn haproxys_reading_is_looser() {
    const REQUEST: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h")];
    let with = |more: &[(&'static str, &'static str)]| [&REQUEST[..], more].concat();
    let odd =
        |name: &str, value: &'static str| REQUEST.map(|(known, usual)| (known, if known == name { value } else { usual })).to_vec();
    for (head, taken) in [
        (REQUEST[..3].to_vec(), Ok(None)),
        (with(&[("content-length", "000, 00")]), Ok(Some(("content-length", "0")))),
        (with(&[("a", " b ")]), Ok(Some(("a", "b")))),
        (with(&[("content-length", "1, 2")]), Err(false)),
        (odd(":scheme", "http://h/?"), Err(true)),
        (odd(":method", "GET?"), Err(true)),
        (odd(":path", "*"), Err(true)),
        (odd(":path", "a"), Err(false)),
    ] {
        let reading = Reading { conformance: Conformance::HAProxy, ..Reading::default() };
        let mut peer = Peer::of_server(Limits { reading, ..Limits::default() });
        let events = peer.head(1, END_STREAM, &head);
        match taken {
            Ok(field) => {
                assert_eq!(events, [Event::Request { id: 1, end: true }], "{head:?}");
                if let Some((name, value)) = field {
                    assert_eq!(peer.requests[0].1.fields.get(name.as_bytes()), Some(value.as_bytes()), "{head:?}");
                }
            }
            Err(true) => assert!(matches!(events[..], [Event::Unusable { id: 1, .. }]), "{head:?}: {events:?}"),
            Err(false) => assert!(matches!(events[..], [Event::Malformed { id: 1, .. }, ..]), "{head:?}: {events:?}"),
        }
        let mut strict = Peer::of_server(Limits::default());
        assert!(matches!(strict.head(1, END_STREAM, &head)[..], [Event::Malformed { id: 1, .. }, ..]), "{head:?}");
    }
    // Only blanks are cut off, and all of them.
    for (name, value, line) in [
        ("a", "\r\n\r\nGET /other HTTP/1.1", None),
        ("a", "b\r\n", None),
        ("a", "\r\nb: c", None),
        ("a", "\x0cb", None),
        ("a", " \t b c\t ", Some("a: b c\r\n")),
        ("a", "    ", Some("a: \r\n")),
        ("cookie", " a=b", Some("cookie: a=b\r\n")),
        ("cookie", "        a=b ", Some("cookie: a=b\r\n")),
    ] {
        let reading = Reading { conformance: Conformance::HAProxy, ..Reading::default() };
        let mut peer = Peer::of_server(Limits { reading, ..Limits::default() });
        let events = peer.head(1, END_STREAM, &with(&[(name, value)]));
        let Some(line) = line else {
            assert!(
                matches!(events[..], [Event::Malformed { id: 1, malformed: Malformed::FieldValue }, ..]),
                "{value:?}: {events:?}"
            );
            continue;
        };
        assert_eq!(events, [Event::Request { id: 1, end: true }], "{value:?}");
        let mut lines = Vec::new();
        peer.requests[0].1.fields.write_to(&mut lines);
        assert_eq!(String::from_utf8(lines).unwrap(), format!("host: h\r\n{line}"), "{value:?}");
    }
    // Of two hosts the pseudo-header's counts.
    let reading = Reading { conformance: Conformance::HAProxy, ..Reading::default() };
    let mut peer = Peer::of_server(Limits { reading, ..Limits::default() });
    peer.head(1, END_STREAM, &with(&[("host", "other")]));
    assert_eq!(peer.requests[0].1.fields.every(Known::Host).collect::<Vec<_>>(), [b"h"]);
}
