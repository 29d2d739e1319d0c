//! Caches: `cache` sections, `cache-use`, `cache-store`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use support::client::{Client, Response};
use support::gzip::gunzip;
use support::proxy::{DEFAULTS, sections};
use support::server::{Request, Server};
use support::{PATIENCE, Terse, until};

/// A server that counts: each answer has another number in its body.
fn counting(head: impl Fn(&Request) -> String + Send + Sync + 'static) -> Server {
    let count = AtomicUsize::new(0);
    Server::answering(move |request| {
        let body = format!("{} ", count.fetch_add(1, SeqCst)).repeat(400);
        format!("HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n{body}", head(request), body.len())
    })
}

const RULES: &str = " http-request cache-use c\n http-response cache-store c\n http-response set-header X-Hit %[res.cache_hit]\n \
                     http-response set-header X-Name %[res.cache_name]\n";
const CACHE: &str = "cache c\n total-max-size 4\n max-object-size 100000\n max-age 3600\n process-vary on\n";

fn started(server: &Server, lines: &str) -> Terse {
    let backend = format!("backend b\n{lines}\n{RULES}\n server s {}\n{CACHE}", server.address());
    sections(" default_backend b", &backend)
}

/// The number of the server's answer, and whether it came from the cache.
fn number(response: &Response) -> (usize, bool) {
    let text = response.text();
    (text.split(' ').next().unwrap().parse().unwrap(), response.field("x-hit") == Some("1"))
}

/// The cache's copy is there when the client has all of it.
fn fresh(client: &mut Client, path: &str) -> (usize, bool) {
    number(&client.get(path, &[]))
}

#[test]
fn an_answer_comes_back_with_its_age() {
    let server = counting(|_| "Cache-Control: max-age=60\r\nAge: 7\r\nConnection: x-hop\r\nX-Hop: 1\r\n".into());
    let terse = started(&server, "");
    let mut client = terse.client();
    let first = client.get("/", &[]);
    let second = client.get("/", &[]);
    assert_eq!((number(&first), number(&second)), ((0, false), (0, true)));
    assert_eq!((second.field("x-name"), second.field("x-hop")), (Some("c"), None));
    assert!(second.field("age").unwrap().parse::<u64>().unwrap() >= 7);
    assert!(second.field("date").is_some());
    client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    let head = client.response("HEAD");
    assert_eq!((head.field("x-hit"), head.field("content-length")), (Some("1"), Some(first.body.len().to_string().as_str())));
    for (path, fields) in [("/other", &[][..]), ("/", &[("Authorization", "x")]), ("/", &[("Cache-Control", "no-cache")])] {
        assert!(!number(&client.get(path, fields)).1, "{path} {fields:?}");
    }
    assert_eq!(server.requests().len(), 4);
    terse.end();
}

/// A response to an authenticated request goes to others if the server has allowed that (RFC 9111 section 3.5).
#[test]
fn an_authorized_answer_is_for_others_if_it_says_so() {
    for (control, shared) in [("", false), ("proxy-revalidate, ", false), ("must-revalidate, ", true), ("public, ", true)] {
        let server = counting(move |_| format!("Cache-Control: {control}max-age=60\r\n"));
        let terse = started(&server, "");
        let mut client = terse.client();
        assert_eq!(number(&client.get("/", &[("Authorization", "Basic x")])), (0, false));
        assert_eq!(fresh(&mut client, "/").1, shared, "{control}");
        drop(client);
        terse.end();
    }
}

#[test]
fn a_chunked_answer_is_kept_and_a_broken_one_is_not() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
            connection.send(head);
            if request.target == "/broken" {
                return;
            }
            connection.send("4\r\ndefg\r\n0\r\nX-Trailer: t\r\n\r\n");
        }
    });
    let terse = started(&server, "");
    for hit in ["0", "1"] {
        let response = terse.client().get("/", &[]);
        assert_eq!((response.text().as_str(), response.field("x-hit")), ("abcdefg", Some(hit)));
    }
    for _ in 0..2 {
        let mut client = terse.client();
        client.send("GET /broken HTTP/1.1\r\nHost: test\r\n\r\n");
        let rest = String::from_utf8_lossy(&client.rest()).to_ascii_lowercase();
        assert!(rest.contains("x-hit: 0"), "{rest}");
    }
    terse.end();
}

/// A large body, read slowly, is the same whether it is recorded or stored, while another client changes it.
#[test]
fn a_slow_reader_gets_all_of_what_was_stored() {
    let body: Vec<u8> = (0..90_000u32).map(|n| (n % 251) as u8).collect();
    let sent = body.clone();
    let server = Server::answering(move |request| match request.method.as_str() {
        "GET" => {
            let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n", sent.len());
            [head.as_bytes(), &sent].concat()
        }
        _ => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
    });
    let terse = started(&server, "");
    assert!(terse.client().get("/", &[]).body == body);
    let mut slow = terse.client();
    slow.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let head = slow.head();
    assert_eq!(head.field("x-hit"), Some("1"));
    let mut other = terse.client();
    other.send("DELETE / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(other.response("DELETE").status, 204);
    assert!(slow.with_body(head, "GET").body == body);
    assert_eq!(other.get("/", &[]).field("x-hit"), Some("0"), "it was deleted");
    terse.end();
}

/// A response that was requested before a change, and begins after it, may be older than the change.
#[test]
fn an_answer_that_a_change_has_overtaken_is_not_kept() {
    let (release, released) = mpsc::channel();
    let (count, released) = (AtomicUsize::new(0), Mutex::new(released));
    let server = Server::answering(move |request| {
        if request.method != "GET" {
            return "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
        }
        let number = count.fetch_add(1, SeqCst);
        if number == 0 {
            released.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        }
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\n{number}")
    });
    let terse = started(&server, "");
    let (mut early, mut other) = (terse.client(), terse.client());
    early.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("a request at the server", || Some(()).filter(|()| server.requests().len() == 1));
    other.send("DELETE / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(other.response("DELETE").status, 204);
    release.send(()).unwrap();
    assert_eq!(number(&early.response("GET")), (0, false));
    assert_eq!([fresh(&mut other, "/"), fresh(&mut other, "/")], [(1, false), (1, true)]);
    drop((early, other));
    terse.end();
}

#[test]
fn tags_are_right_with_compression_and_without() {
    let fields = "ETag: \"v1\"\r\nContent-Type: text/plain\r\nCache-Control: max-age=60\r\n";
    for (lines, tag) in [
        (" compression algo gzip\n", "W/\"v1;terse=gzip\""),
        (" compression algo br gzip\n", "W/\"v1;terse=gzip\""),
        (" compression algo gzip\n compression etag weaken\n", "W/\"v1\""),
        (" filter cache c\n filter compression\n compression algo gzip\n", "W/\"v1;terse=gzip\""),
    ] {
        let server = counting(|_| fields.into());
        let terse = started(&server, lines);
        let mut client = terse.client();
        let gzip = ("Accept-Encoding", "gzip");
        for hit in [false, true] {
            let mut coded = client.get("/", &[gzip]);
            assert_eq!((coded.field("etag"), coded.field("content-encoding")), (Some(tag), Some("gzip")), "{lines}");
            assert_eq!(coded.field("vary"), Some("Accept-Encoding"));
            coded.body = gunzip(&coded.body);
            assert_eq!(number(&coded), (0, hit), "{lines}");
        }
        let plain = client.get("/", &[]);
        assert_eq!((plain.field("etag"), plain.field("content-encoding"), number(&plain)), (Some("\"v1\""), None, (0, true)));
        // A client that holds either form is told that it is still current, by the tag that it holds.
        for (asked, fields) in [(tag, &[gzip][..]), ("\"v1\"", &[]), ("\"v1\"", &[gzip])] {
            let fields = [&[("If-None-Match", asked)], fields].concat();
            let held = client.get("/", &fields);
            assert_eq!((held.status, held.field("etag"), held.body.len()), (304, Some(asked), 0), "{lines} {fields:?}");
            assert_eq!((held.field("x-hit"), held.field("content-type")), (Some("1"), None));
            assert_eq!(held.field("vary"), Some("Accept-Encoding"), "as the 200 has it");
        }
        // The answer to HEAD has the head of GET's.
        for accepted in [&[gzip][..], &[]] {
            let lines = accepted.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
            client.send(format!("HEAD / HTTP/1.1\r\nHost: test\r\n{lines}\r\n"));
            let (head, get) = (client.response("HEAD"), client.get("/", accepted));
            for name in ["etag", "vary", "content-encoding", "content-length", "content-type", "x-hit"] {
                assert_eq!(head.field(name), get.field(name), "{name} {accepted:?}");
            }
        }
        assert_eq!(client.get("/", &[("If-None-Match", "\"v2\"")]).status, 200);
        assert_eq!(server.requests().len(), 1);
        terse.end();
    }
}

/// A variant that a server has chosen for one Accept-Encoding is not for requests with another (RFC 9111 section 4.1). Under
/// `http-conformance haproxy` it is, as long as they take it.
#[test]
fn a_servers_variants_are_for_those_who_negotiate_them() {
    for (global, absent_hits) in [("", "0"), ("global\n http-conformance haproxy\n", "1")] {
        let server = Server::answering(|request| {
            let coded = request.field("accept-encoding").is_some_and(|value| value.contains("gzip"));
            let vary = if request.target == "/varies" { "Vary: Accept-Encoding\r\n" } else { "" };
            let coding = if coded { "Content-Encoding: gzip\r\n" } else { "" };
            let body = if coded { "coded" } else { "plain" };
            format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{vary}{coding}Content-Length: 5\r\n\r\n{body}")
        });
        let text = format!(
            "{global}{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{RULES}\n http-response set-header X-Hit %[res.cache_hit]\n server s {}\n{CACHE}",
            server.address()
        );
        let terse = Terse::with(&text).listen("web").start();
        let mut client = terse.client();
        let mut ask = |path: &str, fields: &[(&str, &str)]| {
            let response = client.get(path, fields);
            (response.text(), response.field("x-hit").unwrap().to_owned())
        };
        let said = |body: &str, hit: &str| (body.to_owned(), hit.to_owned());
        for path in ["/varies", "/silent"] {
            assert_eq!(ask(path, &[("Accept-Encoding", "gzip")]), said("coded", "0"));
            assert_eq!(ask(path, &[("Accept-Encoding", "gzip")]), said("coded", "1"), "{global}{path}");
            let absent = if absent_hits == "1" { said("coded", "1") } else { said("plain", "0") };
            assert_eq!(ask(path, &[]), absent, "{global}{path}");
        }
        drop(client);
        terse.end();
    }
}

/// Facts that compression knows by tags alone hold for stored responses, too.
#[test]
fn a_cache_behind_compression_is_refused() {
    let text = format!("{DEFAULTS}\nlisten l\n bind :0\n filter compression\n filter cache c\n compression algo gzip\n{CACHE}");
    let said = Terse::with(&text).arg(&["-c"]).run().expect(1).stderr;
    assert!(said.contains("a cache cannot stand behind compression"), "{said}");
    for (lines, problem) in [
        ("listen l\n bind :0\n http-request cache-use d\n", "unable to find the cache 'd'"),
        ("listen l\n bind :0\n http-request cache-use if TRUE\n", "expects the name of a cache"),
        ("cache e\n max-age 5\n", "cache 'e': says no 'total-max-size'"),
        ("cache e\n total-max-size 1\n max-object-size 600000\n", "more than a half"),
        ("cache c\n total-max-size 1\n", "'c'"),
    ] {
        let said = Terse::with(&format!("{DEFAULTS}\n{lines}\n{CACHE}")).arg(&["-c"]).run().expect(1).stderr;
        assert!(said.contains(problem), "{lines}: {said}");
    }
}

#[test]
fn rules_judge_what_comes_from_the_cache() {
    let server = counting(|_| "Cache-Control: max-age=60\r\n".into());
    let lines = " http-response add-header X-Before b\n http-response deny deny_status 403 if { res.cache_hit } { capture.req.uri /no }\n \
                 http-after-response add-header X-After a\n cookie SRV insert\n";
    let terse = started(&server, lines);
    let mut client = terse.client();
    assert!(client.get("/", &[]).field("set-cookie").is_some());
    let stored = client.get("/", &[]);
    let every = |response: &Response, name: &str| response.fields.iter().filter(|(one, _)| one.eq_ignore_ascii_case(name)).count();
    // The rule before 'cache-store' has run twice, as its field shows.
    assert_eq!((every(&stored, "x-before"), every(&stored, "x-after"), every(&stored, "set-cookie")), (2, 1, 0));
    assert_eq!((client.get("/no", &[]).status, client.get("/no", &[]).status), (200, 403));
    assert!(fresh(&mut client, "/").1);
    terse.end();
}

/// Each cache knows a request as it was when it was asked, whatever rules make of it for the next one.
#[test]
fn each_cache_keeps_what_it_was_asked_for() {
    let server = Server::answering(|request| {
        let body = format!("{} {}", request.method, request.target);
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let frontend = " http-request cache-use a\n http-response set-header X-Name %[res.cache_name]\n default_backend b";
    for store in ["a", "b"] {
        let backend = format!(
            "backend b\n http-request set-path /two if {{ path /one }}\n http-request cache-use b\n http-response cache-store {store}\n \
             server s {}\n\
             cache a\n total-max-size 1\ncache b\n total-max-size 1\n",
            server.address()
        );
        let terse = sections(frontend, &backend);
        let mut client = terse.client();
        let mut ask = |method: &str, path: &str| {
            client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
            let response = client.response(method);
            (response.text(), response.field("x-name").unwrap_or("").to_owned())
        };
        let hit = |hit: bool| ("GET /two".to_owned(), if hit { store } else { "" }.to_owned());
        assert_eq!(ask("GET", "/one"), hit(false));
        assert_eq!(ask("GET", "/one"), hit(true), "{store}");
        // The cache in front has been asked for nothing but /one.
        assert_eq!(ask("GET", "/two"), hit(store == "b"), "{store}");
        assert_eq!(ask("GET", "/two"), hit(true), "{store}");
        // Both forget the targets that they were asked for.
        assert_eq!(ask("DELETE", "/one").0, "DELETE /two");
        assert_eq!(ask("GET", "/one"), hit(false), "{store}");
        drop(client);
        terse.end();
    }
}

/// A frontend's cache answers before a backend is chosen; its actions are counted, shown and logged.
#[test]
fn what_caches_do_can_be_seen() {
    let server = counting(|_| "Cache-Control: max-age=60\r\n".into());
    let text = format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nfrontend web\n log stdout format raw local0\n \
         log-format \"%b %s %ST %tsc %[res.cache_name]\"\n bind fd@${{web}}\n{RULES} default_backend b\n\
         backend b\n server s {}\n{CACHE}",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut client = terse.client();
    for (at, hit) in [false, true, true].into_iter().enumerate() {
        assert_eq!(fresh(&mut client, "/"), (0, hit), "{at}");
    }
    let lines = until("three lines", || Some(terse.stdout()).filter(|text| text.lines().count() == 3));
    assert_eq!(lines, "b s 200 ---- -\nweb <CACHE> 200 LR-- c\nweb <CACHE> 200 LR-- c\n");
    let shown = terse.command("show cache");
    let head = shown.lines().next().unwrap();
    assert!(head.contains(": c (shctx:0x") && head.contains("available blocks:409"), "{shown}");
    assert_eq!(shown.matches(" hash:").count(), 1, "{shown}");
    let stat = terse.command("show stat");
    let mut rows = stat.lines();
    let names: Vec<_> = rows.next().unwrap().split(',').collect();
    let front: Vec<_> = rows.next().unwrap().split(',').collect();
    let column = |name| names.iter().position(|one| *one == name).and_then(|at| front.get(at).copied());
    assert_eq!((column("cache_lookups"), column("cache_hits")), (Some("3"), Some("2")));
    drop(client);
    terse.end();
}

/// Many clients at once, on two workers: every answer is whole, and the server is asked less often than they ask.
#[test]
fn many_clients_share_what_is_stored() {
    let server = counting(|_| "Cache-Control: max-age=60\r\n".into());
    let backend =
        format!("backend b\n{RULES}\n server s {}\ncache c\n total-max-size 1\n max-object-size 4000\n", server.address());
    let text = format!("global\n nbthread 2\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n default_backend b\n{backend}");
    let terse = Terse::with(&text).listen("web").start();
    let (told, heard) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (mut client, told) = (terse.client(), told.clone());
            scope.spawn(move || {
                for round in 0..50 {
                    let response = client.get(&format!("/{}", round % 5), &[]);
                    let text = response.text();
                    let first = text.split(' ').next().unwrap();
                    assert!(text.split_terminator(' ').all(|one| one == first) && text.len() >= 800, "{text}");
                    told.send(response.field("x-hit") == Some("1")).unwrap();
                }
            });
        }
    });
    drop(told);
    let hits = heard.iter().filter(|hit| *hit).count();
    assert_eq!(hits + server.requests().len(), 400);
    assert!(hits > 300, "{hits}");
    terse.end();
}

#[test]
fn a_stale_answer_is_not_given() {
    let server = counting(|_| "Cache-Control: max-age=1\r\n".into());
    let terse = started(&server, "");
    let mut client = terse.client();
    let (first, _) = fresh(&mut client, "/");
    until("a stale answer", || Some(()).filter(|()| fresh(&mut client, "/").0 > first));
    terse.end();
}

/// Links that a response has named are sent ahead of the next one, when that comes from the server.
#[test]
fn hints_go_ahead() {
    let server = counting(|_| "Cache-Control: max-age=60\r\nLink: </a.css>; rel=preload\r\n".into());
    let backend = format!(
        "backend b\n http-request cache-use c no-early-hints if {{ path /quiet }}\n http-request cache-use c unless {{ path /quiet }}\n \
         http-response cache-store c\n server s {}\ncache c\n total-max-size 1\n early-hints only\n",
        server.address()
    );
    let terse = sections(" default_backend b", &backend);
    let mut client = terse.client();
    assert_eq!(client.get("/", &[]).status, 200);
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let hints = client.head();
    assert_eq!((hints.status, hints.field("link")), (103, Some("</a.css>; rel=preload")));
    assert_eq!(client.response("GET").status, 200);
    assert_eq!(client.get("/quiet", &[]).status, 200);
    client.send("GET /quiet HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.head().status, 200, "a rule has said so");
    drop(client);
    let mut client = terse.client();
    client.send("GET /other HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.head().status, 200);
    terse.end();
}
