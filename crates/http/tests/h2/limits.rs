//! Limits of a peer's behaviour, and the end of a connection beyond them.

use crate::peer::*;
use std::time::Duration;
use terse_http::h2::{Code, Event, Glitch, Limits};

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
        // The same is allowed over a longer time.
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
    // CONTINUATION frames (CVE-2024-27316 and its like).
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
        let expected = if times > 16 { Event::TooLarge { id: 1, is_target: false } } else { Event::Request { id: 1, end: true } };
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
    assert_eq!(peer.head(1, END_STREAM, &with(&GET, &vec![("a", ""); 200])), [Event::TooLarge { id: 1, is_target: false }]);
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
fn errors_that_make_a_server_reset_are_counted() {
    // MadeYouReset (CVE-2025-8671): each makes the server reset a stream that it has begun to work on.
    let window = |by: u32| frame(WINDOW_UPDATE, 0, 0, &by.to_be_bytes());
    let head = |peer: &mut Peer, fields: &[(&str, &str)], flags| frame(HEADERS, END_HEADERS | flags, 0, &peer.block(fields));
    type Errors<'a> = [(&'a str, u8, &'a [(&'a str, &'a str)], Box<dyn Fn(&mut Peer) -> Vec<u8> + 'a>); 11];
    let errors: Errors = [
        ("a window by 0", END_STREAM, &[], Box::new(|_| window(0))),
        ("a window too large", END_STREAM, &[], Box::new(|_| window(0x7fff_ffff))),
        ("PRIORITY too long", END_STREAM, &[], Box::new(|_| frame(PRIORITY, 0, 0, &[0; 6]))),
        ("PRIORITY on itself", END_STREAM, &[], Box::new(|_| frame(PRIORITY, 0, 0, &[0, 0, 0, 0, 1]))),
        ("DATA behind the end", END_STREAM, &[], Box::new(|_| frame(DATA, 0, 0, &[b'x'; 20]))),
        ("a head behind the end", END_STREAM, &[], Box::new(move |peer| head(peer, &GET, END_STREAM))),
        ("more than was said", 0, &[("content-length", "1")], Box::new(|_| frame(DATA, END_STREAM, 0, b"xx"))),
        ("less than was said", 0, &[("content-length", "9")], Box::new(|_| frame(DATA, END_STREAM, 0, b"x"))),
        ("trailers that do not end", 0, &[], Box::new(move |peer| head(peer, &[("x", "y")], 0))),
        ("trailers with a pseudo-header", 0, &[], Box::new(move |peer| head(peer, &GET, END_STREAM))),
        ("a tunnel's trailers", 0, &[(":connect", "")], Box::new(move |peer| head(peer, &[("x", "y")], END_STREAM))),
    ];
    for (what, flags, more, error) in errors {
        let mut peer = Peer::of_server(Limits::default());
        let mut resets = 0;
        for id in (1u32..2000).step_by(2) {
            match more {
                [(":connect", _)] => peer.head(id, flags, &[(":method", "CONNECT"), (":authority", "h:1")]),
                more => peer.head(id, flags, &with(&POST, more)),
            };
            let mut bytes = error(&mut peer);
            bytes[5..9].copy_from_slice(&id.to_be_bytes());
            if what == "PRIORITY on itself" {
                bytes[9..13].copy_from_slice(&id.to_be_bytes());
            }
            let events = peer.send(&bytes);
            if peer.failure().is_some() {
                break;
            }
            assert!(matches!(events[..], [Event::Reset { by_peer: false, .. }]), "{what}: {events:?}");
            peer.connection.release(id, Code::CANCEL);
            peer.output();
            resets += 1;
        }
        assert_eq!((resets, peer.failure()), (111, Some(Code::ENHANCE_YOUR_CALM)), "{what}");
        assert!(peer.events.contains(&Event::Glitch(Glitch::Unfinished)), "{what}");
        assert!(peer.connection.glitches() >= 112, "{what}");
    }
}

/// Sends the same bytes until the connection fails; returns how often, and the glitch.
fn flood(peer: &mut Peer, mut bytes: impl FnMut(u32) -> Vec<u8>) -> (u32, Option<Glitch>) {
    for times in 1..30_000 {
        let events = peer.send(&bytes(times));
        peer.output();
        let glitch = events.iter().find_map(|event| if let Event::Glitch(glitch) = event { Some(*glitch) } else { None });
        if peer.failure().is_some() {
            assert_eq!(peer.failure(), Some(Code::ENHANCE_YOUR_CALM));
            return (times, glitch);
        }
    }
    (0, None)
}

#[test]
fn frames_of_streams_that_were_reset_are_counted() {
    for (frame, times, glitch) in [
        (frame(DATA, 0, 1, b""), 101, Glitch::EmptyData),
        (frame(DATA, 0, 1, b"x"), 20_001, Glitch::TinyData),
        (frame(RST_STREAM, 0, 1, &[0; 4]), 1001, Glitch::ClosedStream),
        (frame(HEADERS, END_HEADERS, 1, &[0x82]), 1001, Glitch::ClosedStream),
    ] {
        for release in [false, true] {
            let mut peer = Peer::of_server(Limits::default());
            peer.head(1, 0, &POST);
            peer.connection.reset(1, Code::CANCEL);
            if release {
                peer.connection.release(1, Code::CANCEL);
            }
            assert_eq!(flood(&mut peer, |_| frame.clone()), (times, Some(glitch)), "{release}");
        }
    }
    // Heads that come after GOAWAY open no stream.
    let mut peer = Peer::of_server(Limits::default());
    peer.connection.goaway(Code::NO_ERROR);
    let late = |times: u32| frame(HEADERS, END_HEADERS | END_STREAM, times * 2 + 1, b"\x82\x86");
    assert_eq!(flood(&mut peer, late), (1001, Some(Glitch::ClosedStream)));
}

#[test]
fn a_block_that_is_not_wanted_costs_no_more_than_another() {
    // An entry of 1,000 bytes, and 15,000 times its index: 15 MB to be copied.
    let value = "x".repeat(1000);
    let bomb = |peer: &mut Peer, id| {
        let mut block = peer.block(&[("x-a", &value)]);
        block.resize(16_000, 0xbe);
        peer.send(&frame(HEADERS, END_HEADERS, id, &block));
        peer.events.contains(&Event::Glitch(Glitch::Head))
    };
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, 0, &POST);
    peer.connection.reset(1, Code::CANCEL);
    assert!(bomb(&mut peer, 1));
    let mut peer = Peer::of_server(Limits::default());
    peer.connection.goaway(Code::NO_ERROR);
    assert!(bomb(&mut peer, 1));
    let mut peer = Peer::of_server(Limits { concurrent_streams: 0, ..Limits::default() });
    assert!(bomb(&mut peer, 1));
    let mut peer = Peer::of_server(Limits::default());
    assert!(bomb(&mut peer, 1));
}

#[test]
fn answers_to_nothing_are_counted() {
    for (bytes, times, glitch) in [
        (frame(PING, ACK, 0, &[0; 8]), 101, Glitch::Ping),
        (frame(SETTINGS, ACK, 0, b""), 31, Glitch::Settings),
        (frame(GOAWAY, 0, 0, &[0; 8]), 11, Glitch::GoAway),
    ] {
        let mut peer = Peer::of_server(Limits::default());
        assert_eq!(flood(&mut peer, |_| bytes.clone()), (times, Some(glitch)));
    }
    let mut peer = Peer::of_server(Limits::default());
    peer.connection.ping(*b"12345678");
    assert_eq!(peer.send(&frame(PING, ACK, 0, b"other...")), []);
    assert_eq!(peer.send(&frame(PING, ACK, 0, b"12345678")), [Event::Pong]);
    assert_eq!(peer.send(&frame(PING, ACK, 0, b"12345678")), []);
    assert_eq!(peer.connection.glitches(), 2);
}

#[test]
fn round_trips_may_be_measured_with_each_data_frame() {
    let mut peer = Peer::of_server(Limits::default());
    peer.head(1, END_STREAM, &GET);
    peer.connection.send_response(1, &response(200, &[]), false);
    for _ in 0..5000 {
        assert_eq!(peer.connection.send_data(1, b"data", false), 4);
        peer.send(&[frame(PING, 0, 0, &[0; 8]), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 4])].concat());
        peer.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 4]));
        peer.output();
    }
    assert_eq!((peer.failure(), peer.connection.glitches()), (None, 0));
}

#[test]
fn a_window_that_opens_by_a_byte_ends_the_connection() {
    // Of the stream, and of the connection.
    for id in [1, 0] {
        let mut peer = Peer::of_server(Limits::default());
        let window = if id == 1 { 1u32 } else { 1 << 20 };
        peer.send(&frame(SETTINGS, 0, 0, &[&[0, 4][..], &window.to_be_bytes()].concat()));
        peer.head(1, END_STREAM, &GET);
        peer.connection.send_response(1, &response(200, &[]), false);
        let body = [0; 70_000];
        while peer.connection.send_data(1, &body, false) > 0 {
            peer.output();
        }
        let mut times = 0;
        while peer.failure().is_none() && times < 2000 {
            times += 1;
            peer.send(&frame(WINDOW_UPDATE, 0, id, &[0, 0, 0, 1]));
            assert_eq!(peer.connection.send_data(1, &body, false), usize::from(peer.failure().is_none()));
            peer.connection.send_data(1, &body, false);
            peer.output();
        }
        assert_eq!((times, peer.failure()), (1001, Some(Code::ENHANCE_YOUR_CALM)));
        assert!(peer.events.contains(&Event::Glitch(Glitch::TinyWindow)));
    }
}

#[test]
fn cookies_in_many_crumbs() {
    for (crumbs, is_right) in [(200, true), (256, true), (257, false), (1600, false)] {
        let mut peer = Peer::of_server(Limits { head_bytes: 64 * 1024, ..Limits::default() });
        let events = peer.head(1, END_STREAM, &with(&GET, &vec![("cookie", "a=12"); crumbs]));
        let expected = if is_right { Event::Request { id: 1, end: true } } else { Event::TooLarge { id: 1, is_target: false } };
        assert_eq!(events, [expected], "{crumbs}");
        if is_right {
            let (_, request) = &peer.requests[0];
            assert_eq!(request.fields.len(), 2);
            assert_eq!(request.fields.get(b"cookie"), Some(&*["a=12"].repeat(crumbs).join("; ").into_bytes()));
        }
    }
}

#[test]
fn a_block_of_one_frame_is_limited_too() {
    let mut peer = Peer::of_server(Limits { block_bytes: 100, ..Limits::default() });
    peer.head(1, END_STREAM, &GET);
    assert_eq!(peer.requests.len(), 1);
    peer.head(3, END_STREAM, &with(&GET, &[("x-a", &"^".repeat(200))]));
    assert!(peer.events.contains(&Event::Glitch(Glitch::HeaderBlock)));
}

#[test]
fn an_idle_connection_gives_its_memory_back() {
    let mut peer = Peer::of_server(Limits::default());
    for id in (1..200).step_by(2) {
        peer.head(id, 0, &POST);
    }
    assert!(peer.connection.capacity() > 5000);
    (1..200).step_by(2).for_each(|id| peer.connection.release(id, Code::CANCEL));
    peer.output();
    peer.connection.shrink();
    assert_eq!(peer.connection.capacity(), 0);
}
