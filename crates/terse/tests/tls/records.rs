//! Compression of TLS records between two processes, and one compressor on each hop.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::{certificates, support};

use certificates::{Kind, authority, signed};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::Terse;
use support::client::{Client, Response};
use support::gzip::gunzip;
use support::origin::{Origin, Request};
use support::proxy::DEFAULTS;

/// Text that compresses to a fraction.
fn text() -> String {
    (0..2000).map(|n| format!("line {} of a text that says what the line before it has said\n", n % 50)).collect()
}

/// A relay that counts the bytes to a server and back.
struct Relay {
    address: SocketAddr,
    bytes: Arc<[AtomicU64; 2]>,
}

impl Relay {
    fn to(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bytes = Arc::new([const { AtomicU64::new(0) }; 2]);
        let counted = bytes.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(server).unwrap();
                for (way, mut from, mut to) in [(0, client.try_clone().unwrap(), server.try_clone().unwrap()), (1, server, client)]
                {
                    let counted = counted.clone();
                    std::thread::spawn(move || {
                        let mut room = [0; 16_384];
                        while let Ok(n @ 1..) = from.read(&mut room) {
                            counted[way].fetch_add(n as u64, Ordering::SeqCst);
                            if to.write_all(&room[..n]).is_err() {
                                break;
                            }
                        }
                        let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
                    });
                }
            }
        });
        Relay { address, bytes }
    }

    /// Bytes that came from the server since the last call.
    fn came(&self) -> u64 {
        self.bytes[1].swap(0, Ordering::SeqCst)
    }
}

/// A process that ends TLS, in front of a server.
fn inner(words: &str, lines: &str, origin: &Origin) -> Terse {
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let text = format!(
        "global\n nbthread 1\n stats socket ${{dir}}/stats level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem {words}\n{lines}\n \
         http-after-response set-header Inner %[ssl_fc_compression],%[fc_compressor],%[bc_compressor],%[res.comp_reason]\n \
         server s {}\n",
        origin.address()
    );
    Terse::with(&text).file("a.pem", pem).listen("web").start()
}

/// A process in front of that, which speaks TLS to it.
fn outer(words: &str, lines: &str, server: SocketAddr) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{lines}\n \
         http-after-response set-header Outer %[ssl_bc_compression],%[ssl_bc_protocol],%[fc_compressor],%[bc_compressor]\n \
         server s {server} ssl verify none {words}\n"
    );
    Terse::with(&text).listen("web").start()
}

/// An origin that sends the text, coded where it is asked to.
fn origin() -> Origin {
    let plain = text();
    let coded = deflated(plain.as_bytes());
    Origin::start(move |request: &Request, stream| {
        if request.line.contains("/small") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall");
            return;
        }
        let asks = request.field("accept-encoding").is_some_and(|codings| codings.contains("gzip"));
        let (coding, body) = if asks || request.line.contains("/coded") {
            ("Content-Encoding: gzip\r\n", &coded[..])
        } else {
            ("", plain.as_bytes())
        };
        let head = format!("HTTP/1.1 200 OK\r\n{coding}Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
    })
}

fn deflated(plain: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    coder.write_all(plain).unwrap();
    coder.finish().unwrap()
}

fn get(client: &mut Client, path: &str, accept: &str) -> Response {
    client.get(path, &[("Accept-Encoding", accept)])
}

fn is_text(response: &Response) -> bool {
    match response.field("content-encoding") {
        Some("gzip") => gunzip(&response.body) == text().as_bytes(),
        Some(_) => false,
        None => response.body == text().as_bytes(),
    }
}

const ALLOW: &str = "tls-compression allow";
const ASK: &str = "tls-compression allow ssl-max-ver TLSv1.2";

#[test]
fn records_are_compressed_where_both_ends_allow_it() {
    let origin = origin();
    for (inner_words, outer_words, expected) in [
        (ALLOW, ASK, "deflate,TLSv1.2"),
        ("", ASK, "none,TLSv1.2"),
        ("tls-compression forbid", ASK, "none,TLSv1.2"),
        ("tls-compression detect", ASK, "none,TLSv1.2"),
        (ALLOW, "", "none,TLSv1.3"),
        (ALLOW, ALLOW, "none,TLSv1.3"),
        (ALLOW, "ssl-max-ver TLSv1.2", "none,TLSv1.2"),
    ] {
        let inner = inner(inner_words, "", &origin);
        let relay = Relay::to(inner.address("web"));
        let outer = outer(outer_words, "", relay.address);
        let mut client = outer.client();
        for _ in 0..3 {
            relay.came();
            let response = get(&mut client, "/", "svndiff1");
            assert!(is_text(&response));
            assert!(response.field("outer").unwrap().starts_with(expected), "{inner_words} {outer_words}: {response:?}");
            let compresses = expected.starts_with("deflate");
            let came = relay.came();
            assert_eq!(came < text().len() as u64 / 8, compresses, "{inner_words} {outer_words}: {came}");
            let offered = inner_words.ends_with("detect");
            let word = if compresses {
                "deflate,"
            } else if offered {
                "offered,"
            } else {
                "none,"
            };
            assert!(response.field("inner").unwrap().starts_with(word), "{inner_words} {outer_words}: {response:?}");
        }
        drop(client);
        outer.end();
        inner.end();
    }
}

#[test]
fn the_codings_that_are_ours_are_not_asked_for_where_records_are_compressed() {
    let origin = origin();
    let inner = inner(ALLOW, "", &origin);
    let outer = outer(ASK, "", inner.address("web"));
    let mut client = outer.client();
    for (asked, sent) in [("gzip, br", "identity"), ("gzip,svndiff1;q=0.9", "svndiff1;q=0.9"), ("*", "identity")] {
        let response = get(&mut client, "/", asked);
        assert!(is_text(&response) && response.field("content-encoding").is_none(), "{response:?}");
        assert_eq!(response.field("outer"), Some("deflate,TLSv1.2,none,records"));
        assert_eq!(response.field("inner"), Some("deflate,records,none,"));
        assert_eq!(origin.requests().last().unwrap().field("accept-encoding"), Some(sent));
    }
    let refused = "gzip, identity;q=0";
    let response = get(&mut client, "/", refused);
    assert!(is_text(&response) && response.field("content-encoding") == Some("gzip"));
    assert_eq!(origin.requests().last().unwrap().field("accept-encoding"), Some(refused));
    drop(client);
    outer.end();
    inner.end();
}

#[test]
fn bodies_are_not_coded_for_a_link_that_compresses_and_coded_ones_are_stored() {
    let origin = origin();
    let lines = " compression algo gzip\n";
    for (mode, path, facts, came_above) in [
        // The records' compressor is the only one.
        ("auto", "/", "deflate,records,none,link-compresses", None),
        // A body that came coded passes the coder by: a little more than its own length.
        ("auto", "/coded", "deflate,stored,content,already-coded", Some(0)),
        ("force", "/coded", "deflate,both,content,already-coded", None),
        ("off", "/", "offered,off,off,switched-off", Some(text().len() - 1)),
    ] {
        let inner = inner(ALLOW, &format!("{lines} http-compression {mode}"), &origin);
        let relay = Relay::to(inner.address("web"));
        let outer = outer(ASK, " http-compression auto", relay.address);
        let mut client = outer.client();
        get(&mut client, path, "identity");
        relay.came();
        let response = get(&mut client, path, "identity");
        assert!(is_text(&response), "{mode} {path}");
        assert_eq!(response.field("inner"), Some(facts), "{mode} {path}");
        let (came, body) = (relay.came() as usize, response.body.len());
        match came_above {
            Some(more) => assert!(came > body.max(more) && came < body.max(more) + 900, "{mode} {path}: {came} of {body}"),
            None => assert!(came < body.max(3000), "{mode} {path}: {came} of {body}"),
        }
        drop(client);
        outer.end();
        inner.end();
    }
}

#[test]
fn bodies_of_requests_too() {
    let origin = origin();
    let inner = inner(ALLOW, "", &origin);
    let relay = Relay::to(inner.address("web"));
    let outer = outer(ASK, " compression algo-req gzip\n compression direction request", relay.address);
    let mut client = outer.client();
    for (coding, body) in [("", text().into_bytes()), ("Content-Encoding: gzip\r\n", deflated(text().as_bytes()))] {
        relay.bytes[0].store(0, Ordering::SeqCst);
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{coding}Content-Length: {}\r\n\r\n", body.len());
        client.send([head.as_bytes(), &body].concat());
        assert_eq!(client.response("POST").status, 200);
        let seen = origin.requests().pop().unwrap();
        assert_eq!((&seen.body, seen.field("content-encoding")), (&body, Some("gzip").filter(|_| !coding.is_empty())));
        assert!(relay.bytes[0].load(Ordering::SeqCst) < text().len() as u64 / 8);
    }
    drop(client);
    outer.end();
    inner.end();
}

#[test]
fn long_streams_in_both_manners_arrive_whole() {
    let origin = origin();
    let inner = inner(ALLOW, "", &origin);
    let outer = outer(ASK, "", inner.address("web"));
    let mut clients: Vec<Client> = (0..4).map(|_| outer.client()).collect();
    for round in 0..60 {
        let path = if round % 3 == 0 { "/coded" } else { "/" };
        let client = &mut clients[round % 4];
        let response = client.get(path, &[("Accept-Encoding", if round % 5 == 0 { "gzip, identity;q=0" } else { "gzip" })]);
        assert!(is_text(&response), "{round}: {response:?}");
    }
    drop(clients);
    outer.end();
    inner.end();
}

#[test]
fn sessions_are_gone_on_with_and_connections_counted() {
    let origin = origin();
    let mut inner = inner(ALLOW, "", &origin);
    let outer = outer(
        &format!("{ASK} check inter 50"),
        " http-reuse never\n http-after-response set-header Resumed %[ssl_bc_is_resumed]",
        inner.address("web"),
    );
    let resumed: Vec<_> = (0..4)
        .map(|_| {
            let response = outer.client().get("/", &[]);
            assert!(is_text(&response) && response.field("outer").unwrap().starts_with("deflate"), "{response:?}");
            response.field("resumed").unwrap().to_owned()
        })
        .collect();
    assert_eq!(resumed, ["0", "1", "1", "1"]);
    assert!(inner.is_running());
    // A stream is counted when it ends, which its client may see before.
    let said = support::until("the last stream to be counted", || {
        let mut stats = std::os::unix::net::UnixStream::connect(inner.path("stats")).unwrap();
        stats.write_all(b"show info;show compression\n").unwrap();
        let mut said = String::new();
        stats.read_to_string(&mut said).unwrap();
        said.contains(" records:4\n").then_some(said)
    });
    assert!(said.contains("\nTlsCompressedConns: 4\n"), "{said}");
    outer.end();
    inner.end();
}

#[test]
fn without_room_for_its_state_a_connection_goes_without() {
    let origin = origin();
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let config = format!(
        "global\n nbthread 1\n tune.memory.buffers 3600k\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem {ALLOW}\n \
         http-response set-header Inner %[ssl_fc_compression]\n server s {}\n",
        origin.address()
    );
    let inner = Terse::with(&config).file("a.pem", pem).listen("web").start();
    let outer = outer(ASK, " http-reuse never", inner.address("web"));
    // A silent client holds nothing.
    let _idle: Vec<_> = (0..4).map(|_| TcpStream::connect(inner.address("web")).unwrap()).collect();
    // Each keeps its own connection to the server. There is room for two states in the quarter of the memory that they may have.
    let mut clients: Vec<Client> = (0..4).map(|_| outer.client()).collect();
    let found: Vec<_> =
        clients.iter_mut().map(|client| get(client, "/small", "identity").field("inner").unwrap().to_owned()).collect();
    assert_eq!(found, ["deflate", "deflate", "offered", "offered"]);
    for client in &mut clients {
        assert_eq!(get(client, "/small", "identity").body, b"small");
    }
    drop(clients);
    outer.end();
    inner.end();
}

#[test]
fn the_configuration_is_warned_of_what_it_allows() {
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let said = |bind: &str, server: &str| {
        let config = format!(
            "{DEFAULTS}\nlisten web\n bind 127.0.0.1:1 ssl crt a.pem {bind}\n server s 127.0.0.1:1 ssl verify none {server}\n"
        );
        Terse::with(&config).file("a.pem", &pem).arg(&["-c"]).run()
    };
    let quiet = said("tls-compression detect", "tls-compression forbid").expect(0);
    assert!(!quiet.stderr.contains("CRIME"), "{}", quiet.stderr);
    let warned = said(ALLOW, "").expect(0);
    assert_eq!(warned.stderr.matches("CRIME").count(), 1, "{}", warned.stderr);
    let warned = said("", ALLOW).expect(0);
    assert!(warned.stderr.contains("CRIME") && warned.stderr.contains("ssl-max-ver TLSv1.2"), "{}", warned.stderr);
    assert!(!said("", ASK).expect(0).stderr.contains("TLS 1.3 has none"));
    assert!(said("tls-compression maybe", "").expect(1).stderr.contains("neither 'forbid' nor 'detect' nor 'allow'"));
    assert!(said("", "tls-compression detect").expect(1).stderr.contains("'detect' is for 'bind'"));
}
