//! Connections of HTTP/2 servers: refused streams, GOAWAY, limits, windows, silence, ends.

use super::super::client::{Client, request};
use super::super::support::client;
use super::super::support::proxy::listen;
use super::super::support::server::Server;
use super::super::support::until;
use super::asked::{Log, ask, ask2, log, proxy, send};
use super::peer::{Peer, answering, scripted, silent};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use terse_http::h2::{Code, Limits};

/// A server that refuses the first two attempts of each request.
fn refusing(log: Log) -> Server {
    answering(move |peer, id| {
        if !peer.whole(id) {
            return;
        }
        let line = peer.streams[&id].line();
        let mut log = log.lock().unwrap();
        let times = log.iter().filter(|told| **told == line).count();
        log.push(line);
        drop(log);
        if times < 2 {
            peer.reset(id, Code::REFUSED_STREAM);
        } else {
            let body = [b"got ", &*peer.streams[&id].body].concat();
            peer.answer(id, 200, &body);
        }
    })
}

fn refused(requests: &[(&str, &str)]) {
    let (log, told) = log();
    let server = refusing(log);
    let terse = proxy(&server, "");
    for (method, body) in requests {
        let answer = ask(&terse, method, "/1", body);
        assert_eq!((answer.status, answer.text()), (200, format!("got {body}")), "{method}");
        let answer = ask2(&terse, method, "/2", body);
        assert_eq!((answer.status(), answer.text()), (200, format!("got {body}")), "{method}");
    }
    assert_eq!(told.lock().unwrap().len(), requests.len() * 6);
    assert_eq!(server.accepted(), 1);
    terse.end();
}

#[test]
fn refused_streams_are_sent_again() {
    refused(&[("GET", ""), ("POST", ""), ("DELETE", "")]);
}

/// RFC 9113 section 8.7: nothing of them was processed, whatever their method.
#[test]
fn refused_bodies_are_sent_again() {
    refused(&[("POST", "hello"), ("PUT", "hello")]);
}

/// A server that refuses everything is not asked for ever.
#[test]
fn a_server_that_always_refuses_is_left() {
    let (log, told) = log();
    let server = answering(move |peer, id| {
        if peer.whole(id) {
            log.lock().unwrap().push(peer.streams[&id].line());
            peer.reset(id, Code::REFUSED_STREAM);
        }
    });
    let terse = proxy(&server, "retries 1\n");
    for method in ["GET", "POST"] {
        let status = ask(&terse, method, "/", "hello").status;
        assert!(matches!(status, 502 | 503), "{method} {status}");
    }
    let told = told.lock().unwrap().len();
    assert!(told <= 12, "{told} attempts of two requests");
    terse.end();
}

/// Three requests, of which the first connection's GOAWAY lets some be processed.
fn above_goaway(requests: [(&str, &str); 3], body: &str) {
    for last in [1, 0, 3] {
        let (log, told) = log();
        let server = scripted(Limits::default(), move |peer| {
            if peer.number() == 0 {
                let Some(ids) = peer.several(3) else { return };
                assert_eq!(ids, [1, 3, 5]);
                peer.goaway(last, Code::NO_ERROR);
                for id in ids.into_iter().filter(|id| *id <= last) {
                    log.lock().unwrap().push(peer.streams[&id].line());
                    peer.answer(id, 200, b"first");
                }
                assert!(peer.ends());
            } else {
                while let Some(id) = peer.next() {
                    assert!(peer.whole(id));
                    log.lock().unwrap().push(peer.streams[&id].line());
                    peer.answer(id, 200, b"other");
                }
            }
        });
        let terse = proxy(&server, "");
        let mut clients: Vec<_> = requests.iter().map(|(method, path)| (send(&terse, method, path, body), *method)).collect();
        let mut texts: Vec<_> = clients.iter_mut().map(|(client, method)| client.response(method).text()).collect();
        texts.sort();
        let first = last.div_ceil(2) as usize;
        assert_eq!(texts, [vec!["first"; first], vec!["other"; 3 - first]].concat(), "{last}");
        let mut told = told.lock().unwrap().clone();
        told.sort();
        assert_eq!(told, requests.map(|(method, path)| format!("{method} {path}")), "each once");
        assert_eq!(server.accepted(), 2);
        assert_eq!(ask(&terse, "GET", "/4", "").text(), "other");
        terse.end();
    }
}

#[test]
fn requests_above_goaway_go_over_another_connection() {
    above_goaway([("GET", "/1"), ("GET", "/3"), ("POST", "/2")], "");
}

#[test]
fn bodies_above_goaway_go_over_another_connection() {
    above_goaway([("GET", "/1"), ("POST", "/2"), ("POST", "/3")], "hello");
}

#[test]
fn a_graceful_goaway_moves_requests_without_an_error() {
    // The first GOAWAY takes all that is on its way; the second names the last stream that was.
    let server = scripted(Limits::default(), |peer| {
        let Some(id) = peer.next() else { return };
        peer.goaway((1 << 31) - 1, Code::NO_ERROR);
        peer.answer(id, 200, b"first");
        peer.goaway(id, Code::NO_ERROR);
        peer.ends();
    });
    let terse = proxy(&server, "");
    let mut client = terse.client();
    for number in 1..20 {
        assert_eq!(client.get("/", &[]).text(), "first");
        assert_eq!(server.accepted(), number);
    }
    until("the old connections' ends", || (server.open() <= 1).then_some(()));
    terse.end();
}

/// A server that takes one stream at once gets as many connections as there are requests.
#[test]
fn one_stream_at_once_makes_more_connections() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let server = scripted(Limits { concurrent_streams: 1, ..Limits::default() }, {
        let arrived = arrived.clone();
        move |peer| {
            while let Some(id) = peer.next() {
                if peer.streams[&id].path() == "/held" {
                    arrived.fetch_add(1, SeqCst);
                    until("all to be there", || (arrived.load(SeqCst) >= 5).then_some(()));
                }
                peer.answer(id, 200, b"hello");
            }
        }
    });
    let terse = proxy(&server, "");
    for method in ["GET", "POST"] {
        arrived.store(0, SeqCst);
        let mut clients: Vec<_> = (0..5).map(|_| send(&terse, method, "/held", "hello")).collect();
        for client in &mut clients {
            assert_eq!(client.response(method).text(), "hello");
        }
    }
    let accepted = server.accepted();
    assert!((5..=10).contains(&accepted), "{accepted}");
    for _ in 0..20 {
        assert_eq!(ask(&terse, "GET", "/", "").text(), "hello");
    }
    assert_eq!(server.accepted(), accepted, "those that are there serve");
    terse.end();
}

/// A server that takes no streams at all is waited for no longer than anything else.
#[test]
fn a_server_that_takes_no_streams_is_given_up() {
    let server = scripted(Limits { concurrent_streams: 0, ..Limits::default() }, |peer| {
        peer.ends();
    });
    let terse = proxy(&server, "timeout connect 2s\n timeout queue 2s\n retries 1\n");
    let status = ask(&terse, "GET", "/", "").status;
    assert!(matches!(status, 502..=504), "{status}");
    assert!(server.accepted() <= 10, "{}", server.accepted());
    terse.end();
}

#[test]
fn a_server_that_closes_with_streams_open() {
    let (log, told) = log();
    let server = scripted(Limits::default(), move |peer| {
        if peer.number() > 0 {
            while let Some(id) = peer.next() {
                log.lock().unwrap().push(peer.streams[&id].line());
                peer.answer(id, 200, b"again");
            }
            return;
        }
        let Some(ids) = peer.several(4) else { return };
        for id in ids {
            let line = peer.streams[&id].line();
            if line == "GET /part" {
                peer.head(id, 200, &[("content-length", "10")], false);
                peer.data(id, b"abc", false);
            }
            log.lock().unwrap().push(line);
        }
    });
    let terse = proxy(&server, "");
    let mut part = send(&terse, "GET", "/part", "");
    let mut others: Vec<_> = [("GET", "/1"), ("POST", "/2"), ("GET", "/3")]
        .iter()
        .map(|(method, path)| (send(&terse, method, path, "hello"), *method))
        .collect();
    assert_eq!(part.head().status, 200);
    assert_eq!(part.rest(), b"abc", "cut");
    let statuses: Vec<_> = others.iter_mut().map(|(client, method)| client.response(method).status).collect();
    assert_eq!(statuses, [200, 502, 200]);
    let told = told.lock().unwrap().clone();
    assert_eq!(told.iter().filter(|line| *line == "POST /2").count(), 1, "{told:?}");
    terse.end();
}

#[test]
fn pings_are_answered() {
    let server = answering(|peer, id| {
        peer.codec.ping(*b"12345678");
        peer.flush();
        // Before the answer, while the stream is open.
        assert!(peer.wait(|peer| peer.pongs == 1));
        peer.head(id, 200, &[], false);
        peer.data(id, b"abc", true);
        // And while none is.
        peer.codec.ping(*b"abcdefgh");
        peer.flush();
        assert!(peer.wait(|peer| peer.pongs == 2));
        peer.pongs = 0;
    });
    let terse = proxy(&server, "");
    for _ in 0..3 {
        assert_eq!(ask(&terse, "GET", "/", "").text(), "abc");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}

/// Windows that servers change, and frames that mean nothing.
#[test]
fn odd_frames_harm_nothing() {
    let body = "x".repeat(200_000);
    let server = scripted(Limits { stream_window: 1000, ..Limits::default() }, |peer| {
        while let Some(id) = peer.next() {
            // PRIORITY, an unknown kind, SETTINGS without and with a smaller window, WINDOW_UPDATE.
            peer.frame(2, 0, id, &[0, 0, 0, 0, 16]);
            peer.frame(0x2a, 0xff, id, b"anything");
            peer.frame(4, 0, 0, b"");
            if !peer.whole(id) {
                return;
            }
            let length = peer.streams[&id].body.len().to_string();
            peer.head(id, 200, &[], false);
            // Data with padding.
            peer.frame(0, 8, id, &[&[4], length.as_bytes(), &[0; 4]].concat());
            peer.data(id, b"", true);
        }
    });
    let terse = proxy(&server, "");
    for _ in 0..3 {
        assert_eq!(ask(&terse, "POST", "/", &body).text(), "200000");
        assert_eq!(ask2(&terse, "POST", "/", &body).text(), "200000");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}

/// A push was not allowed (RFC 9113 section 8.4), and a server's own stream neither: the connection ends, the process goes on.
#[test]
fn a_connection_that_breaks_the_rules_ends() {
    for (kind, flags, id, payload) in [
        (5, 4, 1, &[0, 0, 0, 2, 0x82, 0x84, 0x86][..]), // PUSH_PROMISE
        (1, 5, 2, &[0x88]),                             // HEADERS of stream 2
        (0, 0, 0, b"abc"),                              // DATA of stream 0
        (4, 1, 0, &[1]),                                // SETTINGS with ACK and content
        (8, 0, 0, &[0; 4]),                             // WINDOW_UPDATE of nothing
        (1, 5, 1, &[0xff; 20]),                         // a header block that is none
    ] {
        let server = scripted(Limits::default(), move |peer| {
            let number = peer.number();
            while let Some(id_asked) = peer.next() {
                if number == 0 {
                    peer.frame(kind, flags, id, payload);
                    assert!(peer.ends(), "{kind}");
                    assert!(peer.goaway.is_some_and(|code| code != Code::NO_ERROR), "{kind}: {:?}", peer.goaway);
                    return;
                }
                peer.answer(id_asked, 200, b"other");
            }
        });
        let terse = proxy(&server, "");
        let answer = ask(&terse, "POST", "/", "hello");
        assert_eq!(answer.status, 502, "{kind}");
        assert_eq!(ask(&terse, "GET", "/", "").text(), "other", "{kind}");
        until("the connection's end", || (server.open() == 1).then_some(()));
        terse.end();
    }
}

/// A client that leaves has its stream reset, and no other's.
#[test]
fn a_client_that_leaves_takes_its_stream_along() {
    let server = scripted(Limits::default(), |peer| {
        let Some(ids) = peer.several(4) else { return };
        for id in &ids {
            if peer.streams[id].path() == "/part" {
                peer.head(*id, 200, &[], false);
                peer.data(*id, b"abc", false);
            }
        }
        let leaves = |peer: &Peer<'_>, id: &u32| peer.streams[id].field("x-leaves").is_some();
        assert!(peer.wait(|peer| ids.iter().filter(|id| leaves(peer, id)).all(|id| peer.streams[id].reset == Some(Code::CANCEL))));
        for id in &ids {
            if !leaves(peer, id) {
                assert_eq!(peer.streams[id].reset, None);
                peer.answer(*id, 200, b"stayed");
            }
        }
        while let Some(id) = peer.next() {
            peer.answer(id, 200, b"later");
        }
    });
    let terse = proxy(&server, "");
    let mut stays = send(&terse, "GET", "/", "");
    let mut leaves = terse.client();
    leaves.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Leaves: 1\r\n\r\n");
    let mut amid = terse.client();
    amid.send("GET /part HTTP/1.1\r\nHost: a.test\r\nX-Leaves: 1\r\n\r\n");
    let mut client = Client::connect(terse.address("web"));
    let resets = client.open(&request("GET", "/", &[("X-Leaves", "1")]), true);
    assert_eq!(amid.head().status, 200);
    assert_eq!(amid.chunk().as_deref(), Some(&b"abc"[..]));
    drop((leaves, amid));
    client.reset(resets);
    assert_eq!(stays.response("GET").text(), "stayed");
    assert_eq!(client.get("/").text(), "later");
    assert_eq!(server.accepted(), 1);
    terse.end();
}

/// A stream that its client does not read stalls no other on the connection to the server.
#[test]
fn a_client_that_does_not_read_stalls_no_other() {
    let body = vec![b'x'; 2 << 20];
    let server = scripted(Limits::default(), move |peer| {
        // Bytes of the large responses that the windows have let through so far.
        let mut large: Vec<(u32, usize)> = Vec::new();
        while let Some(id) = peer.next() {
            if peer.streams[&id].path() == "/large" {
                peer.head(id, 200, &[("content-length", &body.len().to_string())], false);
                large.push((id, 0));
            } else {
                peer.answer(id, 200, b"small");
            }
            for (id, at) in &mut large {
                *at += peer.codec.send_data(*id, &body[*at..], true);
            }
            peer.flush();
        }
    });
    let terse = proxy(&server, "");
    // More of them than the connection's budget has windows for.
    let mut slow = Client::connect(terse.address("web"));
    let ids: Vec<_> = (0..40).map(|_| slow.open(&request("GET", "/large", &[]), true)).collect();
    slow.wait("the heads", |client| ids.iter().all(|id| client.streams[id].status() == 200));
    for _ in 0..50 {
        assert_eq!(ask(&terse, "GET", "/small", "").text(), "small");
    }
    assert!(server.accepted() <= 6, "{} connections", server.accepted());
    drop(slow);
    terse.end();
}

/// Many clients that leave have their connection retired, since servers count resets; other requests on it go on.
#[test]
fn many_that_leave_harm_no_other() {
    let (log, told) = log();
    let server = answering(move |peer, id| match peer.streams[&id].path().as_str() {
        "/stays" => log.lock().unwrap().push("stays".to_owned()),
        "/leaves" => {
            peer.head(id, 200, &[], false);
            peer.data(id, b"abc", false);
        }
        "/end" => {
            let waiting: Vec<u32> = peer.streams.iter().filter(|(_, asked)| asked.path() == "/stays").map(|(id, _)| *id).collect();
            waiting.into_iter().for_each(|id| peer.answer(id, 200, b"stayed"));
            peer.answer(id, 200, b"end");
        }
        _ => peer.answer(id, 200, b"hello"),
    });
    let terse = proxy(&server, "");
    let mut stays = send(&terse, "GET", "/stays", "");
    until("it to be there", || (!told.lock().unwrap().is_empty()).then_some(()));
    let mut end = Client::connect(terse.address("web"));
    for number in 0..60 {
        if number == 10 {
            assert_eq!(end.get("/end").text(), "end");
            assert_eq!(stays.response("GET").text(), "stayed");
        }
        let mut leaves = Client::connect(terse.address("web"));
        let id = leaves.open(&request("GET", "/leaves", &[]), true);
        leaves.wait("a part", |client| client.streams[&id].body.len() == 3);
        leaves.reset(id);
        assert_eq!(leaves.get("/").text(), "hello");
    }
    assert!(server.accepted() <= 4, "{} connections", server.accepted());
    until("the end of those that are retired", || (server.open() <= 1).then_some(()));
    terse.end();
}

/// A server may close the windows of streams that are open, below nothing (RFC 9113 section 6.9.2), and open them again.
#[test]
fn windows_that_close_and_open() {
    let window = |bytes: u32| [&[0, 4][..], &bytes.to_be_bytes()].concat();
    let server = scripted(Limits::default(), move |peer| {
        let Some(id) = peer.next() else { return };
        peer.frame(4, 0, 0, &window(0));
        peer.codec.ping(*b"settings");
        peer.flush();
        assert!(peer.wait(|peer| peer.pongs == 1));
        // The next request comes after this response, and so after the settings.
        peer.answer(id, 200, b"first");
        while let Some(id) = peer.next() {
            assert_eq!(peer.streams[&id].body.len(), 0);
            // By the stream's own window first, then by all streams'.
            peer.frame(8, 0, id, &3u32.to_be_bytes());
            assert!(peer.wait(|peer| peer.streams[&id].body.len() == 3));
            peer.frame(4, 0, 0, &window(10));
            assert!(peer.wait(|peer| peer.streams[&id].body.len() == 13));
            peer.frame(4, 0, 0, &window(0));
            peer.frame(4, 0, 0, &window(100_000));
            assert!(peer.whole(id));
            let length = peer.streams[&id].body.len().to_string();
            peer.frame(4, 0, 0, &window(0));
            peer.answer(id, 200, length.as_bytes());
            // The credit that the codec has given meanwhile stays: the next stream's window is that of SETTINGS alone.
        }
    });
    let terse = proxy(&server, "");
    assert_eq!(ask(&terse, "GET", "/", "").text(), "first");
    let body = "x".repeat(50_000);
    for _ in 0..2 {
        assert_eq!(ask(&terse, "POST", "/", &body).text(), "50000");
        assert_eq!(ask2(&terse, "POST", "/", &body).text(), "50000");
    }
    assert_eq!(server.accepted(), 1);
    terse.end();
}

/// A server whose SETTINGS come late, and open larger windows than those that were counted on: Go's is a megabyte.
#[test]
fn late_settings_open_windows() {
    let server = silent(Limits { stream_window: 1 << 20, connection_window: 1 << 20, ..Limits::default() }, |peer| {
        while let Some(id) = peer.next() {
            if peer.is_silent {
                assert!(peer.wait(|peer| peer.streams[&id].body.len() == 65_535));
                peer.is_silent = false;
                peer.flush();
            }
            assert!(peer.whole(id));
            let length = peer.streams[&id].body.len().to_string();
            peer.answer(id, 200, length.as_bytes());
        }
    });
    let body = "x".repeat(300_000);
    let terse = proxy(&server, "");
    assert_eq!(ask(&terse, "POST", "/", &body).text(), "300000");
    terse.end();
    let terse = proxy(&server, "");
    assert_eq!(ask2(&terse, "POST", "/", &body).text(), "300000");
    terse.end();
}

/// The end of the process: open requests are answered, and servers' connections end by GOAWAY.
#[test]
fn a_drain_answers_what_is_open() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = answering(move |peer, id| {
        count.fetch_add(1, SeqCst);
        if peer.streams[&id].path() == "/held" {
            receiver.lock().unwrap().recv().unwrap();
        }
        peer.answer(id, 200, b"hello");
    });
    let terse = proxy(&server, "");
    assert_eq!(ask(&terse, "GET", "/", "").text(), "hello");
    let mut held = send(&terse, "GET", "/held", "");
    until("it to be open", || (asked.load(SeqCst) == 2).then_some(()));
    terse.signal(rustix::process::Signal::USR1);
    until("the drain", || terse.stderr().contains("Proxy web stopped").then_some(()));
    sender.send(()).unwrap();
    assert_eq!(held.response("GET").text(), "hello");
    assert_eq!(terse.wait().code(), Some(0));
    until("the connection's end", || (server.open() == 0).then_some(()));
}

/// Connections that are not kept serve one request each, whether few may be idle or none, and however short they may be.
#[test]
fn connections_that_are_not_kept_serve_their_requests() {
    for words in ["pool-purge-delay 0", "pool-max-conn 0", "max-reuse 0", "pool-max-conn 1"] {
        let server = answering(|peer, id| peer.answer(id, 200, b"good"));
        let terse = listen(&format!("http-reuse always\n server one {} proto h2 {words}", server.address()));
        for number in 0..5 {
            assert_eq!(ask(&terse, "GET", "/", "").text(), "good", "{words} {number}");
            assert_eq!(ask(&terse, "POST", "/", "hello").text(), "good", "{words} {number}");
        }
        if words != "pool-max-conn 1" {
            until(words, || (server.open() == 0).then_some(()));
        }
        terse.end();
    }
}

/// A server that is silent while a stream waits too long may be gone: its connection gets no more requests.
#[test]
fn a_connection_that_has_gone_silent_is_left() {
    let server = scripted(Limits::default(), |peer| {
        if peer.number() == 0 {
            let Some(id) = peer.next() else { return };
            peer.answer(id, 200, b"good");
            peer.ends();
        } else {
            while let Some(id) = peer.next() {
                peer.answer(id, 200, b"other");
            }
        }
    });
    let terse = proxy(&server, "timeout server 1200ms\n retries 0\n");
    assert_eq!(ask(&terse, "GET", "/", "").text(), "good");
    assert_eq!(ask(&terse, "GET", "/", "").status, 504);
    assert_eq!(ask(&terse, "GET", "/", "").text(), "other");
    terse.end();
}

/// A connection by which a server knows a user (NTLM) serves that user's client alone from then on, and ends with it.
#[test]
fn a_connection_that_knows_a_user_is_that_users() {
    let server = answering(|peer, id| {
        let connection = peer.number().to_string();
        match &*peer.streams[&id].path() {
            "/login" => {
                peer.head(id, 401, &[("www-authenticate", "NTLM"), ("content-length", "1")], false);
                peer.data(id, connection.as_bytes(), true);
            }
            _ => peer.answer(id, 200, connection.as_bytes()),
        }
    });
    let terse = proxy(&server, "");
    let mut user = terse.client();
    let mut stranger = terse.client();
    let connection = |client: &mut client::Client, path: &str| {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        client.response("GET").text()
    };
    assert_eq!(connection(&mut stranger, "/"), "0");
    assert_eq!(connection(&mut user, "/login"), "0");
    for _ in 0..3 {
        assert_eq!(connection(&mut stranger, "/"), "1");
        assert_eq!(connection(&mut user, "/"), "0");
    }
    drop(user);
    until("the end of the user's connection", || (server.open() == 1).then_some(()));
    assert_eq!(connection(&mut stranger, "/"), "1");
    terse.end();
}
