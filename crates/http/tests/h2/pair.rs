//! Both sides of ours against each other.

use crate::peer::*;
use std::time::Instant;
use terse_http::h2::hpack::Decoder;
use terse_http::h2::{Code, Connection, Event, Limits, Malformed};
use terse_message::{BodyLength, Fields, Request, Response};

#[test]
fn section_8_1_messages_with_all_their_parts() {
    let mut pair = Pair::new();
    let asked =
        request(b"POST", b"http://h:81/x?y", &[("Host", "h:81"), ("X-Big", "1"), ("Connection", "close"), ("TE", "trailers")]);
    let id = pair.client.send_request(&asked, b"https", None, false).unwrap();
    assert_eq!(pair.ask(), [Event::Request { id, end: false }]);
    let mut got = Request::default();
    pair.server.take_request(&mut got);
    assert_eq!((got.method(), got.target(), pair.server.scheme()), (&b"POST"[..], &b"/x?y"[..], &b"https"[..]));
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
    // A request that announces five bytes and has none.
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

/// RFC 8441 section 4: one protocol, in the form that Upgrade has for it (RFC 9110 section 7.8).
#[test]
fn an_extended_connect_names_one_protocol() {
    let asked = request(b"CONNECT", b"/", &[("host", "h")]);
    for protocol in ["", "h2 c", "websocket, h2c", "h2c;q=1", "\"h2c\"", "tcp/"] {
        let mut pair = Pair::new();
        let id = pair.client.send_request(&asked, b"https", Some(protocol.as_bytes()), false).unwrap();
        assert_eq!(pair.ask(), [Event::Malformed { id, malformed: Malformed::PseudoHeader }], "{protocol}");
        assert_eq!(pair.answer(), [Event::Reset { id, code: Code::PROTOCOL_ERROR, by_peer: true }], "{protocol}");
    }
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

/// Whatever the code: a response that has its end is whole.
#[test]
fn an_early_answer_and_a_reset() {
    for code in [Code::NO_ERROR, Code::CANCEL, Code::INTERNAL_ERROR] {
        let mut pair = Pair::new();
        let id = pair.client.send_request(&request(b"POST", b"/", &[("host", "h")]), b"http", None, false).unwrap();
        pair.ask();
        pair.server.send_response(id, &response(200, &[]), false);
        pair.server.send_data(id, b"enough", true);
        pair.server.release(id, code);
        assert_eq!(
            pair.answer(),
            [Event::Response { id, end: false }, Event::Data { id, end: true }, Event::Reset { id, code, by_peer: true }]
        );
        assert_eq!((pair.client.data(id), pair.client.can_send(id), pair.client.is_complete(id)), (&b"enough"[..], false, true));
    }
}

#[test]
fn an_answer_without_its_end_and_a_reset() {
    for code in [Code::NO_ERROR, Code::CANCEL] {
        let mut pair = Pair::new();
        let id = pair.client.send_request(&request(b"POST", b"/", &[("host", "h")]), b"http", None, false).unwrap();
        pair.ask();
        pair.server.send_response(id, &response(200, &[]), false);
        pair.server.send_data(id, b"a part", false);
        pair.server.release(id, code);
        pair.answer();
        assert!(!pair.client.is_complete(id) && pair.client.is_reset(id));
    }
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

#[test]
fn hpack_section_6_2_3_what_may_not_be_indexed_stays_so() {
    // `GET / http`, an authority, then fields by hand: one for no table, one without, cookies with one that is for none.
    let block = b"\x82\x84\x86\x41\x01h\x10\x05x-key\x06secret\x00\x01b\x01c\x0f\x11\x0ca=1234567890\x1f\x11\x0cb=1234567890";
    let mut peer = Peer::of_server(Limits::default());
    assert_eq!(peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, block)), [Event::Request { id: 1, end: true }]);
    let (_, mut request) = peer.requests.remove(0);
    request.fields.push(b"X-Ours", b"1");
    // Another value of it, by a rule.
    let at = request.fields.positions(b"x-key").next().unwrap();
    request.fields.replace(at, b"other");
    for times in 0..2 {
        let mut client = Connection::client(Limits::default());
        for _ in 0..times {
            client.send_request(&request, b"http", None, true).unwrap();
        }
        client.wrote(client.output().len());
        client.send_request(&request, b"http", None, true).unwrap();
        let (_, _, _, block) = frames(client.output()).remove(0);
        let mut never = Vec::new();
        let mut decoder = Decoder::default();
        // Of a later block, names may be indices of a table that this decoder has not seen: it is given the first one.
        if times > 0 {
            let mut first = Connection::client(Limits::default());
            first.wrote(first.output().len());
            first.send_request(&request, b"http", None, true).unwrap();
            decoder.decode(&frames(first.output())[0].3, &mut Vec::new(), |_, _| true).unwrap();
        }
        let read = decoder.decode(&block, &mut Vec::new(), |lines, line| {
            if line.never_indexed {
                never.push(String::from_utf8(lines[line.name.start..line.value.end].to_vec()).unwrap());
            }
            true
        });
        assert_eq!((read, never), (Ok(()), vec!["x-key: other".to_owned(), "cookie: a=1234567890; b=1234567890".to_owned()]));
    }
}
