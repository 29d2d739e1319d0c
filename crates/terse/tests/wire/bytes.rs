//! Rules on connections and on their first bytes: refusals before the client sends, routes chosen by the bytes, and waits for more
//! of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::Signal;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use support::client::Client;
use support::proxy::{DEFAULTS, listen, sections};
use support::server::Server;
use support::{PATIENCE, Terse, is_closed, until};

/// First bytes of OpenSSL 3.0, to `shop.example.com`, with `h2` and `http/1.1`.
const HELLO: &[u8] = include_bytes!("bytes/client_hello");

/// A server of bytes that sends its name and then sends everything back.
fn echo(name: &'static str) -> Server {
    Server::start(move |connection| {
        connection.send(name);
        while let Some(byte) = connection.bytes(1) {
            connection.send(byte);
        }
    })
}

/// A running process with a frontend in mode tcp and these backends.
fn tcp(frontend: &str, backends: &str) -> Terse {
    sections(&format!("mode tcp\n{frontend}"), &format!("defaults bytes\n mode tcp\n{}\n{backends}", timeouts()))
}

fn timeouts() -> String {
    DEFAULTS.lines().filter(|line| line.contains("timeout")).collect::<Vec<_>>().join("\n")
}

fn backend(name: &str, server: &Server) -> String {
    format!("backend {name}\n server s {}\n", server.address())
}

/// Reads so many bytes.
fn take(client: &mut Client, count: usize) -> String {
    let mut bytes = vec![0; count];
    client.read(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_connection_is_refused_before_a_word() {
    let server = echo("a");
    let connection = tcp("tcp-request connection reject if { src 127.0.0.1 }\ndefault_backend a", &backend("a", &server));
    assert!(connection.client().is_closed());
    assert_eq!(server.accepted(), 0);
    connection.end();
    let session =
        listen(" tcp-request session reject if { var(sess.no) -m bool }\n tcp-request connection set-var(sess.no) bool(1)\n");
    assert!(session.client().is_closed());
    session.end();
}

/// A silent drop tells the client nothing, wherever it is decided, where the process may forget connections; `rst-ttl` asks for a reset,
/// which is noticed on one machine.
#[test]
fn a_silent_drop_says_nothing() {
    let server = Server::body("answer");
    let at = server.address();
    let rules = [
        ("tcp-request connection silent-drop", true),
        ("tcp-request session silent-drop", true),
        ("tcp-request content silent-drop", true),
        ("http-request silent-drop", true),
        ("http-response silent-drop", true),
        ("http-request wait-for-body time 5s\n http-request silent-drop", true),
        ("mode tcp\n tcp-request content silent-drop", true),
        ("mode tcp\n tcp-response content silent-drop", true),
        ("http-request silent-drop rst-ttl 2", false),
        ("mode tcp\n tcp-request content silent-drop rst-ttl 2", false),
    ];
    let is_able = std::fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| {
        let effective = line.strip_prefix("CapEff:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        effective.is_some_and(|mask| mask >> CAP_NET_ADMIN & 1 == 1)
    });
    for (rule, is_silent) in rules {
        let terse = listen(&format!("{rule}\n server s {at}\n"));
        let mut client = terse.client();
        client.send("POST /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
        let stays = is_silent && is_able;
        let within = if stays { Duration::from_millis(200) } else { PATIENCE };
        assert_eq!(is_closed(client.stream(), within), !stays, "{rule}");
        terse.end();
    }
}

const CAP_NET_ADMIN: u32 = 12;

#[test]
fn the_order_of_sets_is_that_of_the_connection() {
    let terse = listen(
        " tcp-request connection set-var(sess.order) str(c)\n\
         tcp-request session set-var-fmt(sess.order) \"%[var(sess.order)]s\"\n\
         tcp-request content set-var-fmt(sess.order) \"%[var(sess.order)]t\"\n\
         http-request return status 200 content-type text/plain lf-string \"%[var(sess.order)]h\"\n",
    );
    let mut client = terse.client();
    assert_eq!(client.get("/", &[]).text(), "csth");
    // Rules on content run for each request, those on the connection once.
    assert_eq!(client.get("/", &[]).text(), "cstth");
    terse.end();
}

#[test]
fn addresses_change_for_all_that_follows() {
    let lines = |set: &str| {
        format!(
            " tcp-request {set} set-src ipv4(192.0.2.9)\n tcp-request {set} set-dst-port int(99)\n \
             http-request return status 200 content-type text/plain lf-string \"%[src] %[fc_src] %[dst_port]\"\n"
        )
    };
    for (set, expected) in
        [("connection", "192.0.2.9 192.0.2.9 99"), ("session", "192.0.2.9 127.0.0.1 99"), ("content", "192.0.2.9 127.0.0.1 99")]
    {
        let terse = listen(&lines(set));
        let mut client = terse.client();
        for _ in 0..2 {
            assert_eq!(client.get("/", &[]).text(), expected, "{set}");
        }
        terse.end();
    }
}

#[test]
fn a_hello_says_where_it_goes() {
    let (shop, other) = (echo("shop"), echo("other"));
    let terse = tcp(
        "tcp-request inspect-delay 15s\n\
         tcp-request content accept if { req.ssl_hello_type 1 }\n\
         use_backend shop if { req.ssl_sni -i SHOP.example.com } { req.ssl_alpn http/1.1 } { req.ssl_ver 3.3 }\n\
         default_backend other",
        &(backend("shop", &shop) + &backend("other", &other)),
    );
    let mut client = terse.client();
    client.send(HELLO);
    assert_eq!(take(&mut client, 4), "shop");
    // Inspected bytes go on as they came.
    let mut echoed = vec![0; HELLO.len()];
    client.read(&mut echoed);
    assert_eq!(echoed, HELLO);

    let mut slow = terse.client();
    slow.stream().set_nodelay(true).unwrap();
    for byte in HELLO {
        slow.send([*byte]);
    }
    assert_eq!(take(&mut slow, 4), "shop");
    slow.read(&mut echoed);
    assert_eq!(echoed, HELLO);

    // Bytes that are no TLS are judged as soon as they begin, long before the delay is over.
    let mut plain = terse.client();
    plain.send("SSH-2.0-x\r\n");
    assert_eq!(take(&mut plain, 16), "otherSSH-2.0-x\r\n");
    terse.end();
}

/// HAProxy finds no name in such a hello, nginx does.
#[test]
fn a_hello_in_several_records_says_where_it_goes() {
    let (shop, other) = (echo("shop"), echo("other"));
    let terse = tcp(
        "tcp-request inspect-delay 15s\n\
         tcp-request content accept if { req.ssl_hello_type 1 }\n\
         use_backend shop if { req.ssl_sni shop.example.com } { req.ssl_ver 3.3 }\n\
         default_backend other",
        &(backend("shop", &shop) + &backend("other", &other)),
    );
    let message = &HELLO[5..];
    for length in [1, 3, 50, 100, message.len() - 1] {
        let record = |part: &[u8]| [&HELLO[..3], &(part.len() as u16).to_be_bytes(), part].concat();
        let records: Vec<u8> = message.chunks(length).flat_map(record).collect();
        let mut client = terse.client();
        client.stream().set_nodelay(true).unwrap();
        records.chunks(99).for_each(|piece| client.send(piece));
        assert_eq!(take(&mut client, 4), "shop", "{length}");
        let mut echoed = vec![0; records.len()];
        client.read(&mut echoed);
        assert_eq!(echoed, records, "{length}");
    }
    terse.end();
}

#[test]
fn rules_before_the_hello_is_there_see_it_once_it_is() {
    let (shop, other) = (echo("shop"), echo("other"));
    for rules in [
        "tcp-request content set-var(sess.to) req.ssl_sni",
        "tcp-request content set-var-fmt(txn.to) %[req.ssl_sni]\ntcp-request content set-var(sess.to) var(txn.to)",
        "tcp-request content capture req.ssl_sni len 50\ntcp-request content set-var(sess.to) capture.req.hdr(0)",
        "tcp-request content reject if { req.ssl_hello_type 1 } { src 192.0.2.1 }\ntcp-request content set-var(sess.to) req.ssl_sni",
    ] {
        let terse = tcp(
            &format!(
                "tcp-request inspect-delay 15s\n{rules}\ntcp-request content accept if {{ req.ssl_hello_type 1 }}\n\
                 use_backend shop if {{ var(sess.to) -m str shop.example.com }}\ndefault_backend other"
            ),
            &(backend("shop", &shop) + &backend("other", &other)),
        );
        for pieces in [1, 2, 3] {
            let mut client = terse.client();
            client.stream().set_nodelay(true).unwrap();
            HELLO.chunks(HELLO.len().div_ceil(pieces)).for_each(|piece| client.send(piece));
            assert_eq!(take(&mut client, 4), "shop", "{rules}");
        }
        terse.end();
    }
}

#[test]
fn without_a_delay_rules_see_what_has_come_with_the_connection() {
    let (a, b) = (echo("a"), echo("b"));
    let terse = tcp(
        "tcp-request content set-var(sess.first) req.payload(0,1)\nuse_backend a if { var(sess.first) -m str x }\ndefault_backend b",
        &(backend("a", &a) + &backend("b", &b)),
    );
    // The bytes lie in the kernel before the connection is accepted.
    terse.signal(Signal::STOP);
    let mut client = terse.client();
    client.send("x");
    terse.signal(Signal::CONT);
    assert_eq!(take(&mut client, 2), "ax");
    terse.end();
}

/// Rules that count have counted once, whatever the condition behind them looks at.
#[test]
fn what_has_come_with_the_connection_is_judged_once() {
    let (once, often) = (echo("1"), echo("n"));
    for condition in ["HTTP", "{ path /x }", "{ method GET }", "{ hdr(host) a }", "{ req.len ge 28 }"] {
        let terse = tcp(
            &format!(
                "stick-table type ip size 9 store gpc0\ntcp-request inspect-delay 15s\ntcp-request content track-sc0 src\n\
                 tcp-request content sc-inc-gpc0(0)\ntcp-request content accept if {condition}\n\
                 use_backend once if {{ sc0_get_gpc0 eq 1 }}\ndefault_backend often"
            ),
            &(backend("once", &once) + &backend("often", &often)),
        );
        terse.signal(Signal::STOP);
        let mut client = terse.client();
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        terse.signal(Signal::CONT);
        assert_eq!(take(&mut client, 2), "1G", "{condition}");
        terse.end();
    }
}

#[test]
fn a_hello_that_breaks_off_is_all_there_is() {
    let (shop, other) = (echo("shop"), echo("other"));
    let terse = tcp(
        "tcp-request inspect-delay 15s\n\
         tcp-request content accept if { req.ssl_sni -m found }\n\
         use_backend shop if { req.ssl_sni -m found }\n\
         default_backend other",
        &(backend("shop", &shop) + &backend("other", &other)),
    );
    let mut clients: Vec<_> = (0..HELLO.len())
        .map(|length| {
            let mut client = terse.client();
            client.send(&HELLO[..length]);
            client.stream().shutdown(Shutdown::Write).unwrap();
            client
        })
        .collect();
    for (length, client) in clients.iter_mut().enumerate() {
        let said = client.rest();
        assert!(said.starts_with(b"other"), "{length}: {}", String::from_utf8_lossy(&said));
        assert_eq!(&said[5..], &HELLO[..length], "{length}");
    }
    assert_eq!(shop.accepted(), 0);
    terse.end();
}

#[test]
fn silence_ends_with_the_delay() {
    let server = echo("a");
    let terse = tcp(
        "tcp-request inspect-delay 60ms\n\
         tcp-request content reject if { req.len gt 0 }\n\
         tcp-request content accept if WAIT_END\n\
         default_backend a",
        &backend("a", &server),
    );
    let begun = Instant::now();
    let mut silent = terse.client();
    assert_eq!(take(&mut silent, 1), "a");
    assert!(begun.elapsed() >= Duration::from_millis(60));
    // A client that sends meanwhile is judged at once.
    let mut hasty = terse.client();
    hasty.send("x");
    assert!(hasty.is_closed());
    terse.end();
}

#[test]
fn without_a_delay_nothing_is_waited_for() {
    let server = echo("a");
    let terse = tcp("tcp-request content reject if { req.len gt 1000 }\ndefault_backend a", &backend("a", &server));
    assert_eq!(take(&mut terse.client(), 1), "a");
    terse.end();
}

#[test]
fn a_full_buffer_decides() {
    let server = echo("a");
    let terse = tcp(
        "tcp-request inspect-delay 15s\n\
         tcp-request content accept if { req.payload(0,0) -m end END }\n\
         tcp-request content reject\n\
         default_backend a",
        &backend("a", &server),
    );
    let mut client = terse.client();
    let _ = client.stream().write_all(&[b'x'; 64 * 1024]);
    assert!(is_closed(client.stream(), PATIENCE));
    let mut short = terse.client();
    short.send("this is the ");
    short.send("END");
    assert_eq!(take(&mut short, 16), "athis is the END");
    terse.end();
}

#[test]
fn what_a_server_says_is_judged_before_it_goes_on() {
    let (good, bad) = (echo("220 ready"), echo("554 no"));
    let rules = "tcp-response inspect-delay 15s\n tcp-response content reject unless { res.payload(0,3) -m str 220 }\n";
    let terse = tcp(
        "tcp-request content set-var(txn.to) req.payload(0,1)\n\
         tcp-request inspect-delay 15s\n\
         tcp-request content accept if { req.len gt 0 }\n\
         use_backend bad if { req.payload(0,1) -m str b }\n\
         default_backend good",
        &format!("{}{rules}{}{rules}", backend("good", &good), backend("bad", &bad)),
    );
    let mut client = terse.client();
    client.send("g");
    assert_eq!(take(&mut client, 10), "220 readyg");
    let mut refused = terse.client();
    refused.send("b");
    assert_eq!(refused.rest(), b"");
    assert_eq!(bad.accepted(), 1);
    terse.end();
}

#[test]
fn a_server_s_connection_is_closed_for_both_directions() {
    let server = echo("220 ready");
    let rules = "tcp-response inspect-delay 15s\n tcp-response content close if { res.payload(0,3) -m str 220 }\n";
    let terse = tcp("default_backend a", &format!("{}{rules}", backend("a", &server)));
    let mut client = terse.client();
    assert_eq!(client.rest(), b"220 ready");
    // The client is still there, and has not closed.
    until("the server's connection is closed", || (server.open() == 0).then_some(()));
    terse.end();
}

#[test]
fn rules_on_content_judge_each_request_of_what_becomes_http() {
    let web = Server::body("web");
    for switch in ["tcp-request content switch-mode http if HTTP\n tcp-request content reject", ""] {
        let terse = tcp(
            &format!(
                "tcp-request inspect-delay 15s\n\
                 tcp-request content track-sc0 src table t if HTTP\n\
                 tcp-request content sc-inc-gpc0(0) if HTTP\n\
                 {switch}\n\
                 default_backend web"
            ),
            &format!(
                "{} mode http\n http-response set-header N %[sc0_get_gpc0]\n http-response set-header R %[sc0_http_req_cnt]\n\
                 backend t\n stick-table type ip size 10 store gpc0,http_req_cnt\n",
                backend("web", &web)
            ),
        );
        let mut client = terse.client();
        for count in ["1", "2", "3"] {
            let response = client.get("/", &[]);
            assert_eq!((response.field("n"), response.field("r")), (Some(count), Some(count)), "{switch}");
        }
        terse.end();
    }
}

/// A frontend of mode tcp that switches has rules on requests, over HTTP/1 and HTTP/2.
#[test]
fn what_becomes_http_has_the_rules_of_its_frontend() {
    let web = Server::body("web");
    let words = |protocol: &str, more: &str| {
        tcp(
            &format!(
                "tcp-request inspect-delay 15s\n\
                 tcp-request content set-var(req.mode) internal.strm.is_htx,iif(http,tcp)\n\
                 tcp-request content switch-mode http {protocol} if HTTP\n\
                 tcp-request content reject\n{more}\
                 http-request set-header X-Mode %[var(req.mode)]-%[req.ver]\n default_backend web"
            ),
            &format!(
                "{} mode http\n http-response set-header Mode %[var(txn.mode)]\n http-request set-var(txn.mode) hdr(x-mode)\n",
                backend("web", &web)
            ),
        )
    };
    let terse = words("", "");
    let mut client = terse.client();
    assert_eq!(client.get("/", &[]).field("mode"), Some("tcp-1.1"));
    assert_eq!(client.get("/", &[]).field("mode"), Some("http-1.1"));
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut client = terse.client();
    client.send(preface);
    assert_eq!(take(&mut client, 9).as_bytes()[3], 4, "its SETTINGS");
    terse.end();
    let terse = words("proto h1", "");
    let mut client = terse.client();
    client.send(preface);
    assert_eq!(client.response("GET").status, 400);
    terse.end();
}

/// A connection that must stay bytes is closed where it would become HTTP.
#[test]
fn a_line_of_bytes_never_becomes_http() {
    let web = Server::body("web");
    for rules in ["tcp-request inspect-delay 15s\n tcp-request content switch-mode http if HTTP", ""] {
        let text = format!(
            "{DEFAULTS}\nfrontend web\n mode tcp\n bind fd@${{web}} proto none\n {rules}\n default_backend web\n{} mode http\n",
            backend("web", &web)
        );
        let terse = Terse::with(&text).listen("web").start();
        let mut client = TcpStream::connect(terse.address("web")).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(is_closed(&mut client, PATIENCE), "{rules}");
        terse.end();
    }
    assert_eq!(web.accepted(), 0);
}

#[test]
fn bytes_become_http() {
    let web = Server::body("web");
    let server = echo("bytes");
    let by_rule = tcp(
        "tcp-request inspect-delay 15s\n\
         tcp-request content switch-mode http if HTTP\n\
         use_backend web if HTTP\n\
         default_backend raw",
        &format!("{}{}mode http\n", backend("raw", &server), backend("web", &web)),
    );
    let mut client = by_rule.client();
    assert_eq!(client.get("/1", &[]).text(), "web");
    assert_eq!(client.get("/2", &[]).text(), "web");
    let mut raw = by_rule.client();
    raw.send("\x01\x02");
    assert_eq!(take(&mut raw, 7), "bytes\x01\x02");
    by_rule.end();

    let by_backend = tcp("default_backend web", &format!("{}mode http\n", backend("web", &web)));
    assert_eq!(by_backend.client().get("/3", &[]).text(), "web");
    assert_eq!(web.requests().iter().map(|request| &*request.target).collect::<Vec<_>>(), ["/1", "/2", "/3"]);
    by_backend.end();
}

#[test]
fn a_body_is_waited_for() {
    let terse = listen(
        " http-request wait-for-body time 15s if { path /all }\n \
         http-request wait-for-body time 15s at-least 3 if { path /some }\n \
         http-request wait-for-body time 50ms if { path /late }\n \
         http-request return status 200 content-type text/plain lf-string \"%[req.body] %[req.body_len] %[req.body_param(b)]\"\n",
    );
    let mut client = terse.client();
    client.send("POST /all HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n");
    for part in ["a=1", "&b=", "2"] {
        client.send(part);
    }
    assert_eq!(client.response("POST").text(), "a=1&b=2 7 2");

    let mut chunked = terse.client();
    chunked.send("POST /all HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na=1\r\n");
    chunked.send("4\r\n&b=");
    chunked.send("2\r\n0\r\n\r\n");
    assert_eq!(chunked.response("POST").text(), "a=1&b=2 7 2");

    let mut some = terse.client();
    some.send("POST /some HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\na=1");
    assert!(some.response("POST").text().starts_with("a=1 3"));

    let mut late = terse.client();
    late.send("POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\na=1");
    assert_eq!(late.response("POST").status, 408);
    terse.end();
}

#[test]
fn a_body_that_comes_behind_a_wait_for_bytes_is_waited_for() {
    let terse = listen(
        " tcp-request inspect-delay 50ms\n tcp-request content accept if WAIT_END\n \
         http-request wait-for-body time 15s\n http-request deny if { req.body -m sub evil }\n \
         http-request return status 200 content-type text/plain lf-string %[req.body]\n",
    );
    for (body, status) in [("evil", 403), ("good", 200)] {
        let mut client = terse.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        // Only now is the body asked for: all rules on content have run.
        assert_eq!(client.head().status, 100);
        client.send(body);
        assert_eq!(client.response("POST").status, status, "{body}");
    }
    terse.end();
}

#[test]
fn bodies_of_both_sides_are_told_apart() {
    let server = Server::start(|connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nreply\r\n0\r\n\r\n");
        }
    });
    let terse = sections(
        "option http-buffer-request\nhttp-request set-var(txn.asked) req.body\ndefault_backend b",
        &format!(
            "backend b\n http-response wait-for-body time 15s\n \
             http-response set-header X-Both \"%[var(txn.asked)] %[res.body]\"\n server s {}\n",
            server.address()
        ),
    );
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nask\r\n0\r\n\r\n");
    assert_eq!(client.response("POST").field("X-Both"), Some("ask reply"));
    terse.end();
}

#[test]
fn a_response_waits_for_its_body() {
    let server = Server::start(|connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
            connection.send("def");
        }
    });
    let late = Server::start(|connection| {
        connection.request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
        connection.rest();
    });
    let terse = sections(
        "use_backend late if { path /late }\ndefault_backend whole",
        &format!(
            "backend whole\n http-response wait-for-body time 15s\n http-response set-header X-Body %[res.body]\n server s {}\n\
             backend late\n http-response wait-for-body time 50ms\n server s {}\n",
            server.address(),
            late.address()
        ),
    );
    let mut client = terse.client();
    for _ in 0..2 {
        let response = client.get("/", &[]);
        assert_eq!((response.field("X-Body"), &*response.text()), (Some("abcdef"), "abcdef"));
    }
    assert_eq!(client.get("/late", &[]).status, 504);
    terse.end();
}

#[test]
fn a_binary_list_names_the_host() {
    // `Host: b`, alone.
    let terse = listen(
        " http-request add-headers-bin bin(04486f737401620000)\n \
         http-request return status 200 content-type text/plain lf-string \"%[req.hdr(host)] %[req.hdr_cnt(host)] %[url]\"\n",
    );
    let mut client = terse.client();
    client.send("GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("GET").text(), "b 1 http://b/x");
    terse.end();
}

#[test]
fn a_binary_list_that_does_not_fit_changes_nothing() {
    let terse = listen(
        " http-request strict-mode off\n http-request add-headers-bin req.hdrs_bin\n \
         http-request return status 200 content-type text/plain lf-string \"%[req.hdr_cnt(x-small)] %[req.hdr_cnt(x-large)]\"\n",
    );
    for (large, counts) in [(100, "2 2"), (9_000, "1 1")] {
        let mut client = terse.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Small: 1\r\nX-Large: {}\r\n\r\n", "x".repeat(large)));
        assert_eq!(client.response("GET").text(), counts, "{large}");
    }
    terse.end();
}

#[test]
fn a_reset_that_rules_have_seen_is_no_end() {
    let server = Server::start(|connection| {
        connection.request();
        connection.send("HTTP/1.1 200 OK\r\n\r\nabc");
        connection.reset();
    });
    let rules = "tcp-response inspect-delay 15s\n tcp-response content accept if { res.len gt 100 }\n";
    let terse = sections("default_backend b", &format!("backend b\n {rules} server s {}\n", server.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let all = client.rest();
    let all = String::from_utf8_lossy(&all);
    assert!(all.starts_with("HTTP/1.1 200") && !all.ends_with("0\r\n\r\n"), "{all}");
    terse.end();
}

#[test]
fn a_key_that_may_still_come_is_waited_for() {
    let server = echo("a");
    let terse = tcp(
        "tcp-request inspect-delay 15s\n tcp-request content track-sc0 req.payload(0,3) table t\n \
         tcp-request content reject unless { sc_tracked(0) }\ndefault_backend a",
        &format!("{}\nbackend t\n stick-table type string len 8 size 10 store gpc0\n", backend("a", &server)),
    );
    let mut stream = TcpStream::connect(terse.address("web")).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stream.write_all(b"ab").unwrap();
    // The server speaks first, once it is connected: not yet.
    assert!(std::io::Read::read(&mut stream, &mut [0; 1]).is_err());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"c").unwrap();
    let mut client = Client::over(stream);
    assert_eq!(take(&mut client, 4), "aabc");
    terse.end();
}

#[test]
fn pauses_and_hints() {
    let terse = listen(
        " http-request early-hint Content-Length 5 if { path / }\n http-request early-hint Link \"</a.css>; rel=preload\" if { path / }\n \
         http-request early-hint X-Path %[path] if { path / }\n \
         http-request pause 30ms\n http-request return status 204\n",
    );
    let mut client = terse.client();
    let begun = Instant::now();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let hints = client.head();
    assert_eq!((hints.status, hints.field("X-Path")), (103, Some("/")));
    assert_eq!(hints.field("Link"), Some("</a.css>; rel=preload"));
    assert_eq!(hints.field("Content-Length"), None);
    assert_eq!(client.response("GET").status, 204);
    assert!(begun.elapsed() >= Duration::from_millis(30));
    // HTTP/1.0 knows no interim responses.
    let mut old = terse.client();
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.response("GET").status, 204);
    terse.end();
}

#[test]
fn a_client_that_has_gone_ends_the_wait() {
    let server = echo("a");
    let terse = tcp(
        "tcp-request inspect-delay 15s\ntcp-request content reject if { req.len gt 5 }\ndefault_backend a",
        &backend("a", &server),
    );
    let mut stream = TcpStream::connect(terse.address("web")).unwrap();
    stream.write_all(b"abc").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut client = Client::over(stream);
    assert_eq!(client.rest(), b"aabc");
    terse.end();
}

/// It has closed, and reads no more: a write to it fails before its last bytes were read.
#[test]
fn last_words_of_a_server_arrive() {
    let server = Server::start(|connection| {
        connection.bytes(3);
        connection.send("last words");
    });
    let terse = tcp("default_backend a", &backend("a", &server));
    let mut client = Client::connect(terse.address("web"));
    client.send(vec![b'x'; 10 << 20]);
    assert_eq!(client.rest(), b"last words");
    terse.end();
}
