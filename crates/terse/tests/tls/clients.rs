//! `bind ... ssl`.

use crate::certificates::{Kind, Pair, authority, expired, revoked, signed};
use crate::support::client::Client;
use crate::support::proxy::DEFAULTS;
use crate::support::server::Server;
use crate::support::{Terse, program, until};
use crate::talk::{Ask, Outcome};
use openssl::ssl::SslVersion;
use std::io::{Read, Write};
use std::path::Path;

const VERSIONS: [SslVersion; 4] = [SslVersion::TLS1, SslVersion::TLS1_1, SslVersion::TLS1_2, SslVersion::TLS1_3];

/// A process whose `web` has these arguments after `ssl`, with files beside it.
fn proxy(words: &str, files: &[(&str, Vec<u8>)]) -> Terse {
    with("", words, files)
}

fn with(global: &str, words: &str, files: &[(&str, Vec<u8>)]) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl {words}\n \
         http-request return status 200 content-type text/plain string ok\n"
    );
    files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content)).listen("web")
}

/// The same process twice: ours, and Debian's haproxy if it is there. Both must do the same for each client.
#[track_caller]
fn alike(words: &str, files: &[(&str, Vec<u8>)], asks: &[Ask<'_>]) -> Vec<Outcome> {
    let ours = proxy(words, files).start();
    let outcomes: Vec<_> = asks.iter().map(|ask| ask.outcome(ours.address("web"))).collect();
    ours.end();
    if let Some(haproxy) = program::find("haproxy") {
        let theirs = proxy(words, files).program(&haproxy).start();
        // It goes with its owner: it leaves signals to the system.
        for (number, (ask, ours)) in asks.iter().zip(&outcomes).enumerate() {
            let theirs = ask.outcome(theirs.address("web"));
            // Before version 3, haproxy offers no protocols by itself.
            assert_eq!(without_protocol(ours), without_protocol(&theirs), "client {number}: {words}");
        }
    }
    outcomes
}

fn without_protocol(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused => "refused".into(),
        Outcome::Served { subject, key, version, resumed, status, .. } => format!("{subject} {key} {version} {resumed} {status}"),
    }
}

fn subject(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Served { subject, .. } => subject,
        Outcome::Refused => "refused",
    }
}

#[test]
fn sessions_stay_with_their_words_where_records_may_be_compressed() {
    let root = authority("root");
    let pem = |name: &str| signed(Kind::Ecdsa, &[name], &root).pem();
    let files = [
        ("list", b"a.pem [verify none] a.test\nb.pem [verify required ca-file root.pem] b.test\n".to_vec()),
        ("a.pem", pem("a.test")),
        ("b.pem", pem("b.test")),
        ("root.pem", root.certificate_pem()),
    ];
    let terse = proxy("crt-list list tls-compression allow", &files).start();
    let ask = |name| Ask { name: Some(name), version: Some(SslVersion::TLS1_2), ..Ask::default() };
    let mut stream = ask("a.test").connect(terse.address("web")).unwrap();
    let session = stream.ssl().session().unwrap().to_owned();
    // Otherwise OpenSSL takes the session for cut off, and does not offer it again.
    stream.shutdown().unwrap();
    let again = |name| Ask { session: Some(&session), ..ask(name) }.outcome(terse.address("web"));
    let same = again("a.test");
    assert!(matches!(same, Outcome::Served { resumed: true, .. }), "{same:?}");
    assert_eq!(again("b.test"), Outcome::Refused);
    terse.end();
}

#[test]
fn names_that_are_only_excluded_leave_none() {
    let root = authority("root");
    let pem = |name: &str| signed(Kind::Ecdsa, &[name], &root).pem();
    let files = [
        ("list", b"a.pem !*\nb.pem !x.test\nc.pem\n".to_vec()),
        ("a.pem", pem("a.test")),
        ("b.pem", pem("b.test")),
        ("c.pem", pem("c.test")),
    ];
    let asks = ["a.test", "b.test", "c.test"].map(|name| Ask { name: Some(name), ..Ask::default() });
    let shown = |words: &str| alike(words, &files, &asks).iter().map(|outcome| subject(outcome).to_owned()).collect::<Vec<_>>();
    assert_eq!(shown("crt-list list"), ["a.test", "a.test", "c.test"]);
    assert_eq!(shown("crt-list list strict-sni"), ["refused", "refused", "c.test"]);
}

#[test]
fn curl_gets_what_it_asks_for() {
    let Some(curl) = program::curl() else { return };
    let root = authority("root");
    let site = signed(Kind::Rsa, &["localhost", "127.0.0.1"], &root);
    let terse = proxy("crt site.pem", &[("site.pem", site.pem()), ("root.pem", root.certificate_pem())]).start();
    let (url, roots) = (format!("https://{}/", terse.address("web")), terse.path("root.pem"));
    for version in ["1.2", "1.3"] {
        let said = curl(&["-s", "--cacert", roots.to_str().unwrap(), "--tls-max", version, "-w", " %{http_version}", &url, &url]);
        assert_eq!((said.stdout.as_str(), said.code), ("ok 2ok 2", Some(0)), "{}", said.stderr);
    }
    terse.end();
}

#[test]
fn names_choose_certificates() {
    let root = authority("root");
    let pem = |names: &[&str]| signed(Kind::Ecdsa, names, &root).pem();
    let files = [("a.pem", pem(&["a.test"])), ("w.pem", pem(&["*.w.test"])), ("x.pem", pem(&["x.w.test", "b.test"]))];
    let names = ["a.test", "x.w.test", "y.w.test", "z.y.w.test", "B.TEST", "unknown.test"];
    let mut asks: Vec<_> = names.iter().map(|name| Ask { name: Some(name), ..Ask::default() }).collect();
    asks.push(Ask::default());
    let words = "crt a.pem crt w.pem crt x.pem";
    let served = alike(words, &files, &asks);
    let subjects: Vec<_> = served.iter().map(subject).collect();
    assert_eq!(subjects, ["a.test", "x.w.test", "*.w.test", "a.test", "x.w.test", "a.test", "a.test"]);
    let strict = alike(&format!("{words} strict-sni"), &files, &asks);
    let subjects: Vec<_> = strict.iter().map(subject).collect();
    assert_eq!(subjects, ["a.test", "x.w.test", "*.w.test", "refused", "x.w.test", "refused", "refused"]);
}

#[test]
fn each_kind_of_key_is_served_to_those_who_want_it() {
    let root = authority("root");
    let files =
        [("rsa.pem", signed(Kind::Rsa, &["a.test"], &root).pem()), ("ec.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem())];
    let asks = [
        Ask { name: Some("a.test"), ..Ask::default() },
        Ask { name: Some("a.test"), signatures: Some("RSA-PSS+SHA256:RSA+SHA256"), ..Ask::default() },
        Ask { name: Some("a.test"), signatures: Some("ECDSA+SHA256"), ..Ask::default() },
        Ask { name: Some("a.test"), version: Some(SslVersion::TLS1_2), ciphers: Some("aRSA"), ..Ask::default() },
    ];
    let served = alike("crt rsa.pem crt ec.pem", &files, &asks);
    let keys: Vec<_> = served.iter().map(|one| if let Outcome::Served { key, .. } = one { *key } else { "" }).collect();
    assert_eq!(keys, ["ec", "rsa", "ec", "rsa"]);
}

#[test]
fn versions_are_those_that_the_words_allow() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Rsa, &["a.test"], &root).pem())];
    let asks = VERSIONS.map(|version| Ask { version: Some(version), ..Ask::default() });
    for (words, served) in [
        ("", [false, false, true, true]),
        ("ssl-min-ver TLSv1.3", [false, false, false, true]),
        ("ssl-max-ver TLSv1.2", [false, false, true, false]),
        ("no-tlsv13", [false, false, true, false]),
        ("force-tlsv13", [false, false, false, true]),
        ("ssl-min-ver TLSv1.0 ciphers ALL:@SECLEVEL=0", [true, true, true, true]),
        ("ssl-min-ver TLSv1.1 ssl-max-ver TLSv1.1 ciphers ALL:@SECLEVEL=0", [false, true, false, false]),
    ] {
        let outcomes = alike(&format!("crt a.pem {words}"), &files, &asks);
        let all: Vec<_> = outcomes.iter().map(|outcome| *outcome != Outcome::Refused).collect();
        assert_eq!(all, served, "{words}");
    }
}

#[test]
fn weak_ciphers_and_rare_groups_are_for_those_who_ask() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Rsa, &["a.test"], &root).pem()), ("root.pem", root.certificate_pem())];
    let version = Some(SslVersion::TLS1_2);
    let weak = ["AES256-GCM-SHA384", "ECDHE-RSA-AES128-SHA256", "AES128-SHA"];
    let weak = weak.map(|cipher| Ask { version, ciphers: Some(cipher), ..Ask::default() });
    let rare = [SslVersion::TLS1_2, SslVersion::TLS1_3];
    let rare = rare.map(|only| Ask { version: Some(only), groups: Some("P-521"), ciphers: Some("ECDHE"), ..Ask::default() });
    for (words, takes_weak, takes_rare) in [
        ("", false, false),
        ("ciphers DEFAULT", true, false),
        ("ssl-min-ver TLSv1.1", true, false),
        ("ssl-max-ver TLSv1.2", true, false),
        ("curves X25519:P-521", false, true),
        // A client's certificate may be of such a group.
        ("verify optional ca-file root.pem", false, true),
    ] {
        let terse = proxy(&format!("crt a.pem {words}"), &files).start();
        let is_served = |ask: &Ask<'_>| ask.outcome(terse.address("web")) != Outcome::Refused;
        assert_eq!(weak.each_ref().map(is_served), [takes_weak; 3], "{words}");
        assert_eq!(rare.each_ref().map(is_served), [takes_rare; 2], "{words}");
        assert!(is_served(&Ask { version, ..Ask::default() }), "{words}");
        terse.end();
    }
}

#[test]
fn clients_show_certificates() {
    let (root, stranger) = (authority("root"), authority("stranger"));
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()), ("root.pem", root.certificate_pem())];
    let good = signed(Kind::Ecdsa, &["good"], &root);
    let bad = [expired("late", &root), signed(Kind::Ecdsa, &["strange"], &stranger)];
    let taken_back = signed(Kind::Ecdsa, &["back"], &root);
    let shown: [Option<&Pair>; 5] = [None, Some(&good), Some(&bad[0]), Some(&bad[1]), Some(&taken_back)];
    let files = [&files[..], &[("crl.pem", revoked(&[&taken_back], &root))]].concat();
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        let asks = shown.map(|shown| Ask { shown, version: Some(version), ..Ask::default() });
        for (words, served) in [
            ("verify none", [true, true, true, true, true]),
            ("verify optional", [true, true, false, false, true]),
            ("verify required", [false, true, false, false, true]),
            ("verify required crl-file crl.pem", [false, true, false, false, false]),
            ("verify required crt-ignore-err 10", [false, true, true, false, true]),
            ("verify optional crt-ignore-err all ca-ignore-err all", [true, true, true, true, true]),
        ] {
            let outcomes = alike(&format!("crt a.pem ca-file root.pem {words}"), &files, &asks);
            let all: Vec<_> = outcomes.iter().map(|outcome| *outcome != Outcome::Refused).collect();
            assert_eq!(all, served, "{words} {version:?}");
        }
    }
}

#[test]
fn protocols_are_those_that_are_spoken() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem())];
    // HTTP/2 has tests of its own.
    let all = b"\x08http/1.0\x08http/1.1\x04mine";
    for (words, protocol) in [
        ("", Some(&b"http/1.1"[..])),
        ("alpn http/1.0,http/1.1", Some(b"http/1.0")),
        ("alpn h3,http/1.1", Some(b"http/1.1")),
        ("alpn mine,http/1.1", Some(b"mine")),
        ("no-alpn", None),
    ] {
        let terse = proxy(&format!("crt a.pem {words}"), &files).start();
        let ask = Ask { protocols: Some(all), ..Ask::default() };
        let Outcome::Served { protocol: got, .. } = ask.outcome(terse.address("web")) else { panic!("{words}") };
        assert_eq!(got.as_deref(), protocol, "{words}");
        assert_eq!(
            terse.stderr().contains("'alpn h3': only HTTP/1 and HTTP/2 are spoken to clients"),
            words.contains("h3"),
            "{words}"
        );
        terse.end();
    }
    let refused = proxy("crt a.pem alpn h3", &files).run().expect(1);
    assert!(
        refused.stderr.contains("'alpn h3': only HTTP/1 and HTTP/2 are spoken to clients: add 'h2,http/1.1'"),
        "{}",
        refused.stderr
    );
}

#[test]
fn sessions_are_resumed_with_tickets_and_without() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem())];
    for words in ["", "no-tls-tickets"] {
        let terse = proxy(&format!("crt a.pem {words}"), &files).start();
        let ask = Ask { version: Some(SslVersion::TLS1_2), ..Ask::default() };
        let mut first = ask.connect(terse.address("web")).unwrap();
        first.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        first.read_to_end(&mut Vec::new()).unwrap();
        let session = first.ssl().session().unwrap().to_owned();
        let again = Ask { session: Some(&session), ..ask };
        assert!(again.connect(terse.address("web")).unwrap().ssl().session_reused(), "{words}");
        terse.end();
    }
}

#[test]
fn failures_are_logged_in_haproxys_words() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()), ("root.pem", root.certificate_pem())];
    let words = "crt a.pem ca-file root.pem verify required\n log stderr format raw local0\n option httplog";
    let terse = proxy(words, &files).start();
    let mut plain = terse.client();
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until("garbage to be told", || {
        terse.stderr().contains("web/1: SSL handshake failure (error:0A00009C:SSL routines::http request)\n").then_some(())
    });
    let stranger = authority("stranger");
    let shown = expired("late", &root);
    let _ = Ask { shown: Some(&shown), ..Ask::default() }.outcome(terse.address("web"));
    until("a late certificate to be told", || terse.stderr().contains("web/1: SSL client certificate not trusted\n").then_some(()));
    let shown = signed(Kind::Ecdsa, &["strange"], &stranger);
    let _ = Ask { shown: Some(&shown), ..Ask::default() }.outcome(terse.address("web"));
    until("a stranger to be told", || (terse.stderr().matches("web/1: SSL client").count() == 2).then_some(()));
    drop(terse.client());
    until("a silent one to be told", || terse.stderr().contains("web/1: Connection closed during SSL handshake\n").then_some(()));
    terse.end();
}

/// The certificate of a client that was refused is known too.
#[test]
fn who_was_refused_is_known() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()), ("root.pem", root.certificate_pem())];
    let words = "crt a.pem ca-file root.pem verify required\n log stderr format raw local0\n option httplog\n error-log-format \"%[fc_err] %[ssl_c_s_dn(CN)]\"";
    let terse = proxy(words, &files).start();
    let shown = signed(Kind::Ecdsa, &["strange"], &authority("stranger"));
    let _ = Ask { shown: Some(&shown), ..Ask::default() }.outcome(terse.address("web"));
    until("a stranger to be told", || terse.stderr().contains("31 strange\n").then_some(()));
    terse.end();
}

#[test]
fn slow_handshakes_end() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem())];
    let words = "crt a.pem\n timeout client-hs 20ms\n log stderr format raw local0\n option httplog";
    let terse = proxy(words, &files).start();
    let mut slow = terse.client();
    slow.send(b"\x16\x03\x01");
    assert!(slow.is_closed());
    until("it to be told", || terse.stderr().contains("web/1: Timeout during SSL handshake\n").then_some(()));
    terse.end();
}

#[test]
fn bodies_go_both_ways_whole() {
    let Some(curl) = program::curl() else { return };
    let root = authority("root");
    let body: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = body.clone();
    let server = Server::answering(move |request| {
        assert_eq!(request.body.len(), sent.len());
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len()).into_bytes();
        answer.extend_from_slice(&request.body);
        answer
    });
    let text =
        format!("global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem\n server s {}\n", server.address());
    let terse =
        Terse::with(&text).file("a.pem", signed(Kind::Rsa, &["a.test"], &root).pem()).file("body", &body).listen("web").start();
    let url = format!("https://{}/", terse.address("web"));
    let (upload, got) = (terse.path("body"), terse.path("got"));
    for version in ["1.2", "1.3"] {
        let data = format!("@{}", upload.display());
        let said = curl(&["-sk", "--tls-max", version, "--data-binary", &data, "-H", "Expect:", "-o", got.to_str().unwrap(), &url]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(std::fs::read(Path::new(&got)).unwrap() == body, "TLS {version}");
    }
    terse.end();
}

#[test]
fn a_proxy_head_comes_before_the_hello() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem())];
    let terse = proxy("crt a.pem accept-proxy\n http-response set-header From %[src]", &files);
    let terse = terse.start();
    let mut stream = std::net::TcpStream::connect(terse.address("web")).unwrap();
    stream.write_all(b"PROXY TCP4 192.0.2.7 203.0.113.9 4000 443\r\n").unwrap();
    let mut context = openssl::ssl::SslContext::builder(openssl::ssl::SslMethod::tls_client()).unwrap();
    context.set_verify(openssl::ssl::SslVerifyMode::NONE);
    let mut secured = openssl::ssl::Ssl::new(&context.build()).unwrap().connect(stream).unwrap();
    secured.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    secured.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    terse.end();
}

#[test]
fn lists_give_certificates_names_and_words() {
    let root = authority("root");
    let pem = |name: &str| signed(Kind::Ecdsa, &[name], &root).pem();
    let list = "# two of them\n\na.pem\nw.pem [verify required ca-file root.pem ssl-max-ver TLSv1.2] *.w.test !x.w.test\nx.pem x.w.test y.test\n";
    let files = [
        ("a.pem", pem("a.test")),
        ("w.pem", pem("w.test")),
        ("x.pem", pem("x.test")),
        ("root.pem", root.certificate_pem()),
        ("list", list.into()),
    ];
    let client = signed(Kind::Ecdsa, &["client"], &root);
    let named = |name| Ask { name: Some(name), ..Ask::default() };
    let asks = [
        named("a.test"),
        named("b.w.test"),
        Ask { shown: Some(&client), ..named("b.w.test") },
        Ask { version: Some(SslVersion::TLS1_3), shown: Some(&client), ..named("b.w.test") },
        named("x.w.test"),
        named("y.test"),
        named("x.test"),
        named("w.test"),
    ];
    let served = alike("crt-list list", &files, &asks);
    let subjects: Vec<_> = served.iter().map(subject).collect();
    assert_eq!(subjects, ["a.test", "refused", "w.test", "refused", "x.test", "x.test", "a.test", "a.test"]);
}

/// The key exchange that a line of a list names is used for its names, in both versions, and for no others.
#[test]
fn lists_say_how_keys_are_exchanged() {
    let root = authority("root");
    let list = "a.pem a.test\nb.pem [curves P-384] b.test\nc.pem [ecdhe P-521 ktls on] c.test\n\
                d.pem [ciphersuites TLS_AES_128_GCM_SHA256 ciphers ECDHE-RSA-AES128-GCM-SHA256] d.test\ne.pem [sigalgs RSA-PSS+SHA384] e.test\n";
    let names = ["a", "b", "c", "d", "e"];
    let pems = names.map(|name| (format!("{name}.pem"), signed(Kind::Rsa, &[&format!("{name}.test")], &root).pem()));
    let mut files: Vec<(&str, Vec<u8>)> = pems.iter().map(|(name, pem)| (&**name, pem.clone())).collect();
    files.push(("list", list.into()));
    let terse = proxy("crt-list list curves X25519:P-256:P-384", &files).start();
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        let goes = |name: &str, groups: Option<&str>, signatures: Option<&str>| {
            let ask = Ask { name: Some(name), version: Some(version), groups, signatures, ..Ask::default() };
            let stream = ask.connect(terse.address("web"))?;
            Some((stream.ssl().current_cipher()?.name(), stream.ssl().peer_tmp_key().ok()?.bits()))
        };
        for (name, groups, signatures, goes_so) in [
            ("a.test", Some("X25519"), None, true),
            ("b.test", Some("X25519"), None, false),
            ("b.test", Some("X25519:P-384"), None, true),
            ("c.test", Some("P-256:P-384:X25519"), None, false),
            ("c.test", Some("P-256:P-521"), None, true),
            ("e.test", None, Some("RSA-PSS+SHA256"), false),
            ("e.test", None, Some("RSA-PSS+SHA384"), true),
            ("a.test", None, Some("RSA-PSS+SHA256"), true),
        ] {
            assert_eq!(goes(name, groups, signatures).is_some(), goes_so, "{version:?} {name} {groups:?} {signatures:?}");
        }
        assert_eq!(goes("b.test", Some("X25519:P-384"), None).unwrap().1, 384);
        assert!(goes("d.test", None, None).unwrap().0.contains("128"));
        assert!(goes("a.test", None, None).unwrap().0.contains("256"));
    }
    terse.end();
}

/// A client that has shown no certificate for one name does not get in under another by the session from the first.
#[test]
fn sessions_do_not_cross_words() {
    let root = authority("root");
    let pem = |name: &str| signed(Kind::Ecdsa, &[name], &root).pem();
    let list = "open.pem\nclosed.pem [verify required ca-file root.pem] closed.test\n";
    let files = [
        ("open.pem", pem("open.test")),
        ("closed.pem", pem("closed.test")),
        ("root.pem", root.certificate_pem()),
        ("list", list.into()),
    ];
    for words in ["", "no-tls-tickets"] {
        let terse = proxy(&format!("crt-list list {words}"), &files).start();
        for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
            let ask = Ask { version: Some(version), name: Some("open.test"), ..Ask::default() };
            let mut first = ask.connect(terse.address("web")).unwrap();
            first.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
            first.read_to_end(&mut Vec::new()).unwrap();
            let session = first.ssl().session().unwrap().to_owned();
            let closed = Ask { session: Some(&session), name: Some("closed.test"), ..ask };
            assert_eq!(closed.outcome(terse.address("web")), Outcome::Refused, "{words} {version:?}");
        }
        terse.end();
    }
}

#[test]
fn the_first_request_tells_the_time_of_the_handshake() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem())];
    let terse = proxy("crt a.pem\n log stderr format raw local0\n log-format \"took %Th\"", &files).start();
    let stream = std::net::TcpStream::connect(terse.address("web")).unwrap();
    let mut context = openssl::ssl::SslContext::builder(openssl::ssl::SslMethod::tls_client()).unwrap();
    context.set_verify(openssl::ssl::SslVerifyMode::NONE);
    let mut secured = openssl::ssl::Ssl::new(&context.build()).unwrap().connect(stream).unwrap();
    secured.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\nHost: a\r\n\r\n").unwrap();
    secured.read_to_end(&mut Vec::new()).unwrap();
    let lines = until("two lines", || Some(terse.stderr()).filter(|said| said.matches("took").count() == 2));
    let times: Vec<u64> = lines.lines().filter_map(|line| line.strip_prefix("took ")?.parse().ok()).collect();
    assert!(times.len() == 2 && times[1] == 0, "{lines}");
    terse.end();
}

/// Servers are told of the client's TLS by the PROXY protocol.
#[test]
fn servers_are_told_of_the_clients_tls() {
    let root = authority("root");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem ca-file root.pem verify optional\n \
         server s {} send-proxy-v2-ssl-cn proxy-v2-options ssl-cipher,cert-key,authority\n",
        listener.local_addr().unwrap()
    );
    let site = signed(Kind::Rsa, &["a.test"], &root).pem();
    let terse = Terse::with(&text).file("a.pem", site).file("root.pem", root.certificate_pem()).listen("web").start();
    let shown = signed(Kind::Ecdsa, &["the client"], &root);
    let (name, protocols) = (Some("a.test"), Some(&b"\x08http/1.1"[..]));
    let ask = Ask { name, protocols, shown: Some(&shown), version: Some(SslVersion::TLS1_2), ..Ask::default() };
    let mut client = ask.connect(terse.address("web")).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    let mut head = [0; 16];
    server.read_exact(&mut head).unwrap();
    let mut rest = vec![0; usize::from(u16::from_be_bytes([head[14], head[15]]))];
    server.read_exact(&mut rest).unwrap();
    // After two addresses and ports: the protocol and the name that the client has asked for.
    let told = rest[12..].strip_prefix(b"\x01\0\x08http/1.1\x02\0\x06a.test").unwrap();
    // TLS, with a certificate in the session and on this connection, which is valid.
    assert_eq!((told[0], &told[3..8]), (0x20, &[7, 0, 0, 0, 0][..]), "{told:?}");
    let mut fields = Vec::new();
    let mut at = &told[8..];
    while let [kind, high, low, behind @ ..] = at {
        let (value, behind) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        fields.push((*kind, String::from_utf8_lossy(value).into_owned()));
        at = behind;
    }
    let cipher = client.ssl().current_cipher().unwrap().name();
    let expected = [(0x21, "TLSv1.2"), (0x22, "the client"), (0x25, "RSA2048"), (0x23, cipher)];
    assert_eq!(fields, expected.map(|(kind, value)| (kind, value.to_owned())));
    terse.end();
}

/// A response to a client without TLS is no response for clients with TLS.
#[test]
fn a_cache_tells_https_from_http() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok");
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n bind fd@${{plain}}\n \
         http-request cache-use c\n http-response cache-store c\n default_backend b\nbackend b\n server s {}\n\
         cache c\n total-max-size 1\n",
        server.address()
    );
    let site = signed(Kind::Ecdsa, &["a.test"], &authority("root"));
    let terse = Terse::with(&text).file("a.pem", site.pem()).listen("web").listen("plain").start();
    let plain = || assert_eq!(Client::connect(terse.address("plain")).get("/", &[]).status, 200);
    let secured = || {
        let mut stream = Ask::default().connect(terse.address("web")).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("ok"), "{answer}");
    };
    for _ in 0..2 {
        plain();
        assert_eq!(server.requests().len(), 1);
    }
    for _ in 0..2 {
        secured();
        assert_eq!(server.requests().len(), 2);
    }
    terse.end();
}
