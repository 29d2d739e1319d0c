//! What browsers make of dictionaries (RFC 9842): Chromium, with a case for each thing that is relied on, so that another version tells what
//! it changed.
//!
//! A page goes through the cases in one session, over HTTP/2 and HTTP/1.1, and sends what came of each. What a request said of dictionaries
//! is returned in its answer. The hash of each decoded body is compared with that of the origin's.

use crate::certificates::{Kind, authority, signed};
use crate::dictionaries::{available, decode, script};
use crate::support::program::{Running, find};
use crate::support::proxy::DEFAULTS;
use crate::support::server::{Request, Server};
use crate::support::{Terse, until};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex};
use terse_dictionary::{Hash, MAGIC};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

const PAGE: &str = include_str!("browsers.html");

/// The body of an address: the number at its end says which.
fn body(path: &str) -> Vec<u8> {
    script(path.bytes().last().map_or(0, |digit| u32::from(digit.wrapping_sub(b'0'))))
}

fn hash(bytes: &[u8]) -> String {
    openssl::base64::encode_block(&Hash::of(bytes).0)
}

/// A `dcz` body with the first release as the dictionary, of two blocks; and the length of the first one with all before it.
fn dcz(window_log: u32, checksum: bool) -> (Vec<u8>, usize) {
    let (old, new) = (script(1), script(2));
    let mut state = CCtx::create();
    state.set_parameter(CParameter::WindowLog(window_log)).unwrap();
    state.set_parameter(CParameter::ChecksumFlag(checksum)).unwrap();
    state.ref_prefix(&old).unwrap();
    let mut room = vec![0; 1 << 20];
    let mut out = OutBuffer::around(&mut room[..]);
    let (first, second) = new.split_at(new.len() / 2);
    let mut input = InBuffer::around(first);
    while input.pos < first.len() {
        state.compress_stream(&mut out, &mut input).unwrap();
    }
    while state.flush_stream(&mut out).unwrap() > 0 {}
    let middle = out.pos();
    let mut input = InBuffer::around(second);
    while input.pos < second.len() {
        state.compress_stream(&mut out, &mut input).unwrap();
    }
    while state.end_stream(&mut out).unwrap() > 0 {}
    let head = [&MAGIC[..], &Hash::of(&old).0].concat();
    let length = head.len() + middle;
    ([head, out.as_slice().to_vec()].concat(), length)
}

/// A `dcz` body with a fault.
fn faulty(kind: &str) -> Vec<u8> {
    let (mut coded, middle) = dcz(if kind == "window" { 24 } else { 20 }, !kind.ends_with("bare"));
    match kind {
        "hash" => coded[MAGIC.len()] ^= 1,
        // The frame names a dictionary by its number, as one with a dictionary of zstd's own format does.
        "formatted" => {
            let descriptor = MAGIC.len() + 32 + 4;
            assert_eq!(coded[descriptor] & 0x23, 0, "neither a number nor a single segment");
            coded[descriptor] |= 1;
            coded.insert(descriptor + 2, 7);
        }
        "damaged" | "damaged-bare" => {
            // Where a decoder without a checksum does not object.
            let bare = dcz(20, false).0;
            let at = (MAGIC.len() + 40..bare.len()).find(|at| {
                let mut damaged = bare.clone();
                damaged[*at] ^= 1;
                decode(&damaged, &script(1)).is_some_and(|body| body != script(2))
            });
            coded[at.expect("a byte that only a checksum guards")] ^= 1;
        }
        "cut-bare" => coded.truncate(middle),
        _ => {}
    }
    coded
}

/// The origin's answer.
fn answer(request: &Request) -> Vec<u8> {
    let path = request.target.split('?').next().unwrap_or_default();
    let (name, last) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
    let announces = last == "1" || matches!(path, "/new/2" | "/chain/3");
    let fresh = match name {
        "private" => "Cache-Control: private, max-age=3600\r\n",
        "cookie" => "Cache-Control: max-age=3600\r\nSet-Cookie: a=b\r\n",
        "vary" => "Cache-Control: max-age=3600\r\nVary: X-Other\r\n",
        "swr" => "Cache-Control: max-age=0, stale-while-revalidate=3600\r\n",
        "nostore" => "Cache-Control: no-store, max-age=3600\r\n",
        "nocache" => "Cache-Control: no-cache, max-age=3600\r\n",
        "unfresh" => "",
        _ => "Cache-Control: max-age=3600\r\n",
    };
    let more = match name {
        "type" => ", type=other",
        "ttl" => ", ttl=0",
        _ => "",
    };
    let use_as = if announces { format!("{fresh}Use-As-Dictionary: match=\"/{name}/*\"{more}\r\n") } else { String::new() };
    let (kind, body) = match (name, last) {
        ("linked", "page") => ("text/html", PAGE.into()),
        ("bad", "1" | "2") => ("text/javascript", body(last)),
        ("bad", fault) => ("text/javascript\r\nContent-Encoding: dcz", faulty(fault)),
        ("cors", _) => ("text/javascript\r\nAccess-Control-Allow-Origin: *", body(last)),
        _ => ("text/javascript", body(last)),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{use_as}Content-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

/// A proxy with a listener for each version of HTTP, and what the page reports.
struct Cases {
    server: Server,
    terse: Terse,
    reports: Arc<Mutex<Vec<Value>>>,
    /// The hash of the listeners' public key, by which Chromium trusts them.
    key: String,
}

impl Cases {
    fn start() -> Cases {
        let reports: Arc<Mutex<Vec<Value>>> = Arc::default();
        let told = reports.clone();
        let server = Server::answering(move |request| {
            if request.target == "/report" {
                told.lock().unwrap().push(serde_json::from_slice(&request.body).unwrap());
            }
            answer(request)
        });
        let listens = ["h2", "http/1.1"].map(|alpn| {
            format!(
                "listen {0}\n bind fd@${{{0}}} ssl crt a.pem alpn {alpn}\n compression on\n compression dictionary app linked\n server one {1}\n \
                 http-request set-var(txn.available) req.fhdr(available-dictionary)\n http-request set-var(txn.accept) req.fhdr(accept-encoding)\n \
                 http-after-response set-header X-Available %[var(txn.available)]\n http-after-response set-header X-Accept %[var(txn.accept)]\n \
                 http-after-response set-header Access-Control-Expose-Headers *\n",
                alpn.replace("http/1.1", "h1"),
                server.address()
            )
        });
        let dictionaries =
            "dictionary app\n file app-1.js\n match /chain/*\ndictionary linked\n file linked.js\n match /linked/*\n";
        let pair = signed(Kind::Ecdsa, &["localhost"], &authority("root"));
        let text = format!("global\n nbthread 1\n{DEFAULTS}\n{dictionaries}{}", listens.concat());
        let terse = Terse::with(&text).file("a.pem", pair.pem()).file("app-1.js", script(1)).file("linked.js", script(5));
        let key = pair.certificate.public_key().unwrap().public_key_to_der().unwrap();
        Cases { server, terse: terse.listen("h2").listen("h1").start(), reports, key: hash(&key) }
    }

    /// The address of a page that goes through a table and on to the next one; its name is what reports have.
    fn page(&self, (table, host, listener): (&str, &str, &str), kind: &str, next: &str) -> String {
        let port = self.terse.address(listener).port();
        let tries = if kind == "host" && !table.ends_with("offered") { "&tries=10" } else { "" };
        let next: String = next.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("https://{host}:{port}/linked/page?table={table}&kind={kind}&other=127.0.0.1:{port}{tries}&next={next}")
    }

    /// Starts Chromium at a page.
    fn browse(&self, chromium: &Path, name: &str, switches: &[&str], page: &str) -> Running {
        let folder = self.terse.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let usual = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0", &profile];
        let hosts = "--host-resolver-rules=MAP *.test 127.0.0.1, MAP *.localhost 127.0.0.1";
        Running::start(chromium, &[&usual[..], &[hosts], switches, &[page]].concat(), &folder)
    }

    /// What came of a case, once the page has told it.
    fn told(&self, table: &str, name: &str) -> Value {
        let is_it = |report: &&Value| report["table"] == table && report["name"] == name;
        until(&format!("{table}: {name}"), || self.reports.lock().unwrap().iter().find(is_it).map(|report| report["got"].clone()))
    }

    /// Checks a case of two answers: the second offers the first.
    fn check_offer(&self, table: &str, name: &str, (first, second): (&str, &str)) {
        let got = self.told(table, name);
        let case = format!("{table}: {name}: {got}");
        assert_eq!(got["first"]["hash"], *hash(&body(first)), "{case}");
        assert_eq!(got["second"]["hash"], *hash(&body(second)), "{case}");
        assert_eq!(got["second"]["offered"], *available(&body(first)), "the decoded body's hash: {case}");
        let accepted = got["second"]["accept"].as_str().unwrap();
        assert!(accepted.contains("dcb") && accepted.contains("dcz"), "both, and only then: {case}");
    }

    /// Checks all cases of one version of HTTP.
    fn check(&self, table: &str, protocol: &str) {
        for name in ["plain", "nostore", "nocache", "unfresh", "type", "cors"] {
            if name == "nostore" {
                // In the order of the page, so that each is waited for no longer than a case takes.
                for name in ["fresh", "private", "cookie", "vary", "swr", "ttl", "star"] {
                    self.check_offer(table, name, ("1", "2"));
                }
            }
            if name == "cors" {
                self.check_differences(table, protocol);
                self.check_faults(table);
            }
            let got = self.told(table, name);
            assert_eq!((&got["offered"], &got["hash"]), (&"".into(), &(*hash(&body("2"))).into()), "{table}: {name}: {got}");
            assert!(!got["accept"].as_str().unwrap().contains("dc"), "{table}: {name}: {got}");
        }
        self.told(table, "end");
        let first = &self.told(table, "fresh")["first"];
        assert!(first["coding"] != "" && first["coding"] != "dcz", "it came in an ordinary coding: {first}");
    }

    fn check_differences(&self, table: &str, protocol: &str) {
        self.check_offer(table, "newest", ("2", "3"));
        for name in ["difference", "linked"] {
            let got = self.told(table, name);
            assert_eq!((&got["coding"], &got["hash"]), (&"dcz".into(), &(*hash(&body("2"))).into()), "{table}: {name}: {got}");
        }
        let got = self.told(table, "script");
        assert_eq!((&got["loaded"], &got["protocol"]), (&true.into(), &protocol.into()), "{table}: {got}");
        assert_eq!(got["decoded"], body("2").len(), "{table}: {got}");
        assert!(got["encoded"].as_u64().is_some_and(|bytes| bytes < 10_000), "a difference: {table}: {got}");
        let requests = self.server.requests();
        let of_script = requests.iter().rfind(|request| request.target == "/chain/script-2").unwrap();
        let said = ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"].map(|name| of_script.field(name));
        assert_eq!(said, [Some("same-origin"), Some("no-cors"), Some("script")]);
        self.check_offer(table, "chain", ("3", "4"));
        assert_eq!(self.told(table, "chain")["first"]["coding"], "dcz", "a difference is a dictionary, too");
    }

    fn check_faults(&self, table: &str) {
        let good = self.told(table, "bad-good");
        assert_eq!((&good["coding"], &good["hash"]), (&"dcz".into(), &(*hash(&script(2))).into()), "{table}: {good}");
        for name in ["hash", "formatted", "window", "damaged"] {
            let got = self.told(table, &format!("bad-{name}"));
            assert_eq!(got["failed"], true, "{table}: {name}: {got}");
        }
        // Why each of our frames has a checksum and its length.
        let damaged = self.told(table, "bad-damaged-bare");
        assert_eq!(damaged["failed"], false, "wrong bytes, and no error: {table}: {damaged}");
        assert_ne!(damaged["hash"], *hash(&script(2)), "{table}: {damaged}");
        let cut = self.told(table, "bad-cut-bare");
        assert_eq!((&cut["failed"], &cut["length"]), (&false.into(), &(script(2).len() / 2).into()), "{table}: {cut}");
    }
}

/// Chromium, in one session: each version of HTTP, then hosts.
#[test]
fn chromium_does_what_is_relied_on() {
    let Some(chromium) = find("chromium") else { return };
    let cases = Cases::start();
    let trusted = format!("--ignore-certificate-errors-spki-list={}", cases.key);
    let tables = [
        ("h1", "localhost", "h1"),
        ("below-offered", "some.localhost", "h1"),
        ("address-offered", "127.0.0.1", "h2"),
        ("other", "other.test", "h2"),
    ];
    let next = tables
        .iter()
        .rev()
        .fold(String::new(), |next, table| cases.page(*table, if table.0 == "h1" { "whole" } else { "host" }, &next));
    let first = cases.page(("h2", "localhost", "h2"), "whole", &next);
    let browser = cases.browse(&chromium, "session", &[&trusted], &first);
    cases.check("h2", "h2");
    cases.check("h1", "http/1.1");
    for table in ["below-offered", "address-offered", "other"] {
        let got = cases.told(table, "host");
        assert_eq!(got["hash"], *hash(&body("2")), "{table}: {got}");
        assert_eq!(got["offered"] != "", table.ends_with("offered"), "a host with a private root: {table}: {got}");
    }
    drop(browser);
    let asked = |name: &str| cases.server.requests().iter().filter(|request| request.target == format!("/bad/{name}")).count();
    for name in ["hash", "formatted", "window", "damaged"] {
        assert_eq!(asked(name), 2, "once in each version, and not again: {name}");
    }
    cases.terse.end();
}

/// The switches that other tests of browsers rely on.
#[test]
fn chromiums_switches_do_what_they_say() {
    let Some(chromium) = find("chromium") else { return };
    let cases = Cases::start();
    let page = cases.page(("errors", "localhost", "h2"), "host", "");
    let browser = cases.browse(&chromium, "errors", &["--ignore-certificate-errors"], &page);
    assert_eq!(cases.told("errors", "host")["offered"], "", "it switches dictionaries off");
    drop(browser);
    let page = cases.page(("other-offered", "other.test", "h2"), "host", "");
    let trusted = format!("--ignore-certificate-errors-spki-list={}", cases.key);
    let roots = "--disable-features=CompressionDictionaryTransportRequireKnownRootCert";
    let browser = cases.browse(&chromium, "other", &[&trusted, roots], &page);
    let got = cases.told("other-offered", "host");
    assert_eq!((&got["offered"], &got["hash"]), (&(*available(&body("1"))).into(), &(*hash(&body("2"))).into()), "{got}");
    drop(browser);
    cases.terse.end();
}
