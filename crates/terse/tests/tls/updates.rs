//! Answers about certificates' states that are fetched: `ocsp-update`.

use crate::certificates::{Kind, Pair, answered, authority, signed};
use crate::figures::command;
use crate::states::{FAR, GOOD, REVOKED, answer, answer_until, stapled};
use crate::support::proxy::DEFAULTS;
use crate::support::server::Server;
use crate::support::{Terse, until};
use openssl::base64::decode_block;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

/// An OCSP responder that sends the answers which the test gives it.
struct Responder {
    server: Server,
    says: Arc<Mutex<Vec<u8>>>,
}

impl Responder {
    fn start() -> Responder {
        let says: Arc<Mutex<Vec<u8>>> = Arc::default();
        let said = says.clone();
        Responder { server: Server::answering(move |_| said.lock().unwrap().clone()), says }
    }

    fn says(&self, head: &str, body: &[u8]) {
        *self.says.lock().unwrap() = [format!("HTTP/1.1 {head}\r\n").as_bytes(), body].concat();
    }

    fn answers(&self, der: &[u8]) {
        self.says(&format!("200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\n", der.len()), der);
    }

    fn url(&self) -> String {
        format!("http://{}/ocsp/", self.server.address())
    }
}

/// A process with a certificate in a list, whose issuer is known and for which there is no answer yet.
fn process(global: &str, list: &str, site: &Pair, root: &Pair) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n log stderr format raw local0\n {global}\n{DEFAULTS}\n\
         frontend web\n bind fd@${{web}} ssl crt-list list\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("list", list).file("a.pem", [site.pem(), root.certificate_pem()].concat());
    terse.listen("web").start()
}

fn logged(terse: &Terse, line: &str) {
    until(line, || terse.stderr().contains(&format!("<OCSP-UPDATE> a.pem {line}\n")).then_some(()));
}

#[test]
fn answers_are_fetched_and_given_to_clients() {
    let (responder, root) = (Responder::start(), authority("root"));
    let site = answered("a.test", &root, &responder.url());
    let (good, revoked) = (answer(&site, &root, GOOD), answer(&site, &root, REVOKED));
    responder.answers(&good);
    let terse = process("", "a.pem [ocsp-update on] a.test\n", &site, &root);
    logged(&terse, "1 \"Update successful\" 0 1");
    assert_eq!(stapled(&terse).as_ref(), Some(&good));
    let listed = command(&terse, "show ssl ocsp-updates");
    let row: Vec<&str> = listed.lines().nth(1).unwrap().split(" | ").collect();
    assert!(row[0].starts_with("30") && row[2].ends_with(" +0000") && row[3].ends_with(" +0000"), "{listed}");
    assert_eq!((row[1], &row[4..]), ("a.pem", &["1", "0", "1", "Update successful"][..]));
    assert!(command(&terse, "show ssl cert a.pem").contains("Option: ocsp-update on\n"));
    // The question is in the target.
    let asked = responder.server.requests()[0].line.clone();
    let encoded = asked.strip_prefix("GET /ocsp/").and_then(|rest| rest.strip_suffix(" HTTP/1.1")).unwrap();
    let der = decode_block(&encoded.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")).unwrap();
    let id: Vec<u8> = (0..row[0].len()).step_by(2).map(|at| u8::from_str_radix(&row[0][at..at + 2], 16).unwrap()).collect();
    assert!(der.windows(id.len()).any(|part| part == id));
    // Chunks are taken, too, and a command does not wait for the time.
    let chunked =
        format!("200 OK\r\nContent-Type: application/ocsp-response\r\nTransfer-Encoding: chunked\r\n\r\n{:x}", revoked.len());
    responder.says(&chunked, &[&revoked[..], b"\r\n0\r\n\r\n"].concat());
    assert_eq!(command(&terse, "update ssl ocsp-response a.pem"), "\n");
    logged(&terse, "1 \"Update successful\" 0 2");
    assert_eq!(stapled(&terse).as_ref(), Some(&revoked));
    assert!(command(&terse, "update ssl ocsp-response b.pem").contains("Unknown certificate!"));
    terse.end();
}

/// The first responder has an answer only once the second one is asked.
#[test]
fn a_slow_responder_holds_nobody_up() {
    let (root, other) = (authority("root"), Arc::new(Responder::start()));
    let (says, asked): (Arc<Mutex<Vec<u8>>>, _) = (Arc::default(), other.clone());
    let said = says.clone();
    let server = Server::answering(move |_| {
        until("the other question", || (!asked.server.requests().is_empty()).then_some(()));
        said.lock().unwrap().clone()
    });
    let slow = Responder { server, says };
    let sites = [answered("a.test", &root, &slow.url()), answered("b.test", &root, &other.url())];
    slow.answers(&answer(&sites[0], &root, GOOD));
    other.answers(&answer(&sites[1], &root, GOOD));
    let pem = |site: &Pair| [site.pem(), root.certificate_pem()].concat();
    let text = format!(
        "global\n nbthread 1\n ocsp-update.mode on\n stats socket \"${{dir}}/stats\" level admin\n log stderr format raw local0\n\
         {DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem crt b.pem\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("a.pem", pem(&sites[0])).file("b.pem", pem(&sites[1])).listen("web").start();
    for file in ["a.pem", "b.pem"] {
        let line = format!("<OCSP-UPDATE> {file} 1 \"Update successful\" 0 1\n");
        until(&line, || terse.stderr().contains(&line).then_some(()));
    }
    terse.end();
}

/// Names of responders are looked up by `resolvers default`, where there is one.
#[test]
fn responders_are_looked_up_by_the_default_resolvers() {
    is_found("", &[]);
}

/// An address of IPv6 at which no server answers is not the end.
#[test]
fn responders_are_reached_over_ipv4_where_ipv6_leads_nowhere() {
    is_found("dns-accept-family ipv4,ipv6\n", &[&[0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16][..], &[0; 15], &[1]].concat());
}

/// A responder is found whose name has this record of IPv6.
fn is_found(global: &str, v6: &[u8]) {
    let (responder, root) = (Responder::start(), authority("root"));
    let site = answered("a.test", &root, &format!("http://ocsp.test:{}/ocsp/", responder.server.address().port()));
    responder.answers(&answer(&site, &root, GOOD));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let v6 = v6.to_vec();
    std::thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&here(&bytes[..len], &v6), from);
        }
    });
    let resolvers = format!("ocsp-update.mode on\n {global}resolvers default\n nameserver ns {address}\n");
    let terse = process(&resolvers, "a.pem a.test\n", &site, &root);
    logged(&terse, "1 \"Update successful\" 0 1");
    terse.end();
}

/// The answer of a name server (RFC 1035) that knows every name at 127.0.0.1, and with this record of IPv6, if any.
fn here(question: &[u8], v6: &[u8]) -> Vec<u8> {
    let name_end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
    let asked = &question[12..name_end + 5];
    let is_v4 = asked[asked.len() - 4..] == [0, 1, 0, 1];
    let found: &[u8] = if is_v4 { &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1] } else { v6 };
    let head = [&question[..2], &[0x81, 0x80, 0, 1, 0, u8::from(!found.is_empty()), 0, 0, 0, 0]].concat();
    [&head, asked, found].concat()
}

#[test]
fn what_is_no_good_answer_is_not_given_to_anybody() {
    let (responder, root) = (Responder::start(), authority("root"));
    let site = answered("a.test", &root, &responder.url());
    let good = answer(&site, &root, GOOD);
    responder.says("404 Not Found\r\nContent-Length: 0\r\n", b"");
    let terse = process("ocsp-update.mode on", "a.pem a.test\n", &site, &root);
    logged(&terse, "2 \"HTTP error\" 1 0");
    let nul = answer_until(&site, &root, GOOD, b"20250101000000\0", Some(b"29990101000000\0"));
    let stranger = Pair { certificate: root.certificate.clone(), key: authority("root").key };
    let kind =
        |kind: &str, body: &[u8]| (format!("200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len()), body.to_vec());
    let answers = [
        (kind("text/html", &good), "3 \"Missing \\\"ocsp-response\\\" header\" 2 0"),
        (kind("application/ocsp-response", &answer(&site, &stranger, GOOD)), "4 \"OCSP response check failure\" 3 0"),
        (kind("application/ocsp-response", b"nothing"), "4 \"OCSP response check failure\" 4 0"),
        (("200 OK\r\nContent-Length: 99999999\r\n".to_owned(), Vec::new()), "2 \"HTTP error\" 5 0"),
        (("200 \u{1}".to_owned(), Vec::new()), "2 \"HTTP error\" 6 0"),
        (kind("application/ocsp-response", &nul), "4 \"OCSP response check failure\" 7 0"),
    ];
    for ((head, body), line) in answers {
        responder.says(&head, &[b"\r\n", &body[..]].concat());
        command(&terse, "update ssl ocsp-response a.pem");
        logged(&terse, line);
        assert_eq!(stapled(&terse), None, "{line}");
    }
    responder.answers(&good);
    command(&terse, "update ssl ocsp-response a.pem");
    logged(&terse, "1 \"Update successful\" 7 1");
    assert_eq!(stapled(&terse).as_ref(), Some(&good));
    // An attacker between may send an older answer.
    responder.answers(&answer_until(&site, &root, GOOD, b"20241231235959Z", Some(FAR)));
    command(&terse, "update ssl ocsp-response a.pem");
    logged(&terse, "4 \"OCSP response check failure\" 8 1");
    assert_eq!(stapled(&terse).as_ref(), Some(&good));
    terse.end();
}

/// An answer in a file that is too old to be sent is as good as none.
#[test]
fn a_newer_answer_than_that_of_the_file_is_fetched_at_once() {
    let (responder, root) = (Responder::start(), authority("root"));
    let site = answered("a.test", &root, &responder.url());
    let good = answer(&site, &root, GOOD);
    responder.answers(&good);
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n log stderr format raw local0\n{DEFAULTS}\n\
         frontend web\n bind fd@${{web}} ssl crt a.pem ocsp-update on\n http-request return status 200\n"
    );
    let old = answer_until(&site, &root, GOOD, b"20240101000000Z", Some(b"20240102000000Z"));
    let terse = Terse::with(&text).file("a.pem", [site.pem(), root.certificate_pem()].concat()).file("a.pem.ocsp", old);
    let terse = terse.listen("web").start();
    logged(&terse, "1 \"Update successful\" 0 1");
    assert_eq!(stapled(&terse).as_ref(), Some(&good));
    terse.end();
}

#[test]
fn what_keeps_answers_from_being_fetched_is_told() {
    let root = authority("root");
    let place = "http://127.0.0.1:1/";
    let by_https = "https://127.0.0.1/";
    for (responder, above, said) in [
        (place, true, ""),
        (place, false, "nobody knows who has signed it"),
        (by_https, true, "the certificate names nobody who answers by http"),
    ] {
        let site = answered("a.test", &root, responder);
        let above = if above { root.certificate_pem() } else { Vec::new() };
        let text = format!("{DEFAULTS}\nfrontend web\n bind 127.0.0.1:1 ssl crt a.pem ocsp-update on\n");
        let finished = Terse::with(&text).file("a.pem", [site.pem(), above].concat()).arg(&["-c"]).run();
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
        assert!(
            finished.stderr.contains(said) && finished.stderr.contains("ocsp-update") != said.is_empty(),
            "{}",
            finished.stderr
        );
    }
}

/// A setting that is on or off for one certificate must be the same wherever the certificate is named.
#[test]
fn one_certificate_is_fetched_for_or_not() {
    let root = authority("root");
    let pem = signed(Kind::Ecdsa, &["a.test"], &root).pem();
    for (global, list, bind, is_right) in [
        ("", "a.pem [ocsp-update on]", "crt a.pem", false),
        ("ocsp-update.mode on", "a.pem [ocsp-update off]", "crt a.pem", false),
        ("", "a.pem [ocsp-update on]\na.pem b.test", "", false),
        ("", "a.pem [ocsp-update on]", "crt a.pem ocsp-update on", true),
        ("ocsp-update.mode on", "a.pem [ocsp-update on]", "crt a.pem", true),
        ("ocsp-update.mindelay 5\n ocsp-update.maxdelay 10", "a.pem [ocsp-update off]", "crt a.pem", true),
        ("ocsp-update.maxdelay 10", "a.pem", "", false),
    ] {
        let text = format!(
            "global\n {global}\n{DEFAULTS}\nfrontend web\n bind 127.0.0.1:1 ssl crt-list list {bind}\n\
             frontend other\n bind 127.0.0.1:1 ssl crt-list list\n"
        );
        let terse = Terse::with(&text).file("list", format!("{list}\n")).file("a.pem", &pem);
        let finished = terse.arg(&["-c"]).run();
        assert_eq!(finished.code() == Some(0), is_right, "{global} {list} {bind}: {}", finished.stderr);
        assert!(is_right || finished.stderr.contains("ocsp-update"), "{}", finished.stderr);
    }
}
