//! Answers that refer to a dictionary which the client holds (RFC 9842), over TLS and behind another program's.

use crate::certificates::{Kind, authority, signed};
use crate::support::client::{Client, Response};
use crate::support::origin::{Origin, Request};
use crate::support::program::curl;
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, until};
use std::io::Write;
use std::net::TcpStream;
use terse_dictionary::{Hash, MAGIC};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// A script, and its next release: one line of sixty is another.
pub(crate) fn script(release: u32) -> Vec<u8> {
    let line = |i: u32| {
        let seed = if release > 1 && i.is_multiple_of(60) { i + release * 1_000_003 } else { i };
        format!("function f{:x}() {{ return {}; }}\n", seed.wrapping_mul(2_654_435_761), seed % 977).into_bytes()
    };
    (0..1500).flat_map(line).collect()
}

fn answer(request: &Request, stream: &mut TcpStream) {
    let path = request.line.split(' ').nth(1).unwrap_or_default();
    let (kind, body) = match path {
        "/app/page" => ("text/html", b"<p>some text of a page that is long enough to be worth it</p>\n".repeat(20)),
        _ => ("text/javascript", script(2)),
    };
    let more = match path {
        "/app/own" => "Content-Encoding: dcz\r\nUse-As-Dictionary: match=\"/own/*\"\r\nCache-Control: max-age=60\r\n",
        _ => "ETag: \"x\"\r\n",
    };
    let asks_again = request.field("If-None-Match") == Some("\"x\"");
    let _ = if asks_again {
        write!(stream, "HTTP/1.1 304 Not Modified\r\n{more}\r\n")
    } else {
        let chunked = path.ends_with("chunked");
        let length = if chunked { "Transfer-Encoding: chunked".into() } else { format!("Content-Length: {}", body.len()) };
        let mut message = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}{length}\r\n\r\n").into_bytes();
        match chunked {
            true => body
                .chunks(3000)
                .for_each(|piece| message.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())),
            false => message.extend(&body),
        }
        message.extend(if chunked { &b"0\r\n\r\n"[..] } else { b"" });
        stream.write_all(&message)
    };
}

/// A process with two backends, each with a dictionary of its own, behind `plain`, which another program gives TLS, and `web`.
fn terse(origin: &Origin, lines: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stdout format raw local0\n\
         cache c\n total-max-size 4\n max-age 60\n\
         dictionary one\n file one.dict\n match /app/*\n id \"first one\"\n\
         dictionary two\n file two.dict\n match /*\n\
         frontend web\n bind fd@${{plain}}\n bind fd@${{web}} ssl crt a.pem alpn h2,http/1.1\n compression on\n\
         http-after-response set-header Why %[res.comp_dictionary]\n log-format \"%HU <%[res.comp_dictionary]> %[res.comp_memory]\"\n\
         use_backend b2 if {{ hdr(host) two.test }}\n default_backend b1\n\
         backend b1\n compression dictionary secure one\n{lines}\n server s {0}\n\
         backend b2\n compression dictionary secure two\n{lines}\n server s {0}\n",
        origin.address()
    );
    let pem = signed(Kind::Ecdsa, &["localhost"], &authority("root")).pem();
    let terse =
        Terse::with(&text).file("a.pem", pem).file("one.dict", script(1)).file("two.dict", b"bytes of another site".repeat(9));
    terse.listen("plain").listen("web").listen("cli").start()
}

pub(crate) fn available(dictionary: &[u8]) -> String {
    format!(":{}:", openssl::base64::encode_block(&Hash::of(dictionary).0))
}

/// What a client that holds the dictionary makes of a body; none where it objects. It takes no window above 8 MB.
pub(crate) fn decode(body: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    let frames = body.strip_prefix(&MAGIC)?.strip_prefix(&Hash::of(dictionary).0)?;
    let mut state = DCtx::create();
    state.set_parameter(DParameter::WindowLogMax(23)).unwrap();
    state.ref_prefix(dictionary).unwrap();
    let (mut input, mut out, mut left) = (InBuffer::around(frames), Vec::new(), 1);
    let mut piece = vec![0; 1 << 17];
    while left != 0 || input.pos < frames.len() {
        let before = input.pos;
        let mut room = OutBuffer::around(&mut piece[..]);
        left = state.decompress_stream(&mut room, &mut input).ok()?;
        let given = room.pos();
        out.extend_from_slice(&piece[..given]);
        if given == 0 && input.pos == before {
            return None;
        }
    }
    Some(out)
}

pub const CODINGS: (&str, &str) = ("Accept-Encoding", "gzip, br, zstd, dcb, dcz");

pub fn ask(client: &mut Client, host: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"));
    client.response("GET")
}

#[test]
fn an_answer_is_the_difference_to_what_its_client_holds() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let (old, new) = (script(1), script(2));
    let held = available(&old);
    let mut client = Client::connect(terse.address("plain"));
    let mut sizes = Vec::new();
    for path in ["/app/2.js", "/app/2.js", "/app/2.js", "/app/chunked"] {
        let response =
            ask(&mut client, "one.test", path, &[CODINGS, ("Available-Dictionary", &held), ("Dictionary-ID", "\"first one\"")]);
        assert_eq!((response.field("content-encoding"), response.field("why")), (Some("dcz"), Some("used")), "{path}");
        assert_eq!(response.field("vary"), Some("Accept-Encoding,Available-Dictionary"));
        let tag = format!("W/\"x;terse=dcz-{}\"", &Hash::of(&old).hex()[..16]);
        assert_eq!(response.field("etag"), Some(&*tag));
        assert!(decode(&response.body, &old).is_some_and(|body| body == new), "{path}: other bytes");
        sizes.push(response.body.len());
        let again = ask(
            &mut client,
            "one.test",
            path,
            &[CODINGS, ("Available-Dictionary", &held), ("If-None-Match", response.field("etag").unwrap())],
        );
        assert_eq!((again.status, again.field("etag")), (304, Some(&*tag)));
        assert_eq!(again.field("vary"), Some("Accept-Encoding,Available-Dictionary"));
    }
    for request in origin.requests() {
        let said = ["Available-Dictionary", "Dictionary-ID", "dcz"].iter().any(|word| request.head.contains(word));
        assert!(!said, "the server has nothing to do with it: {}", request.head);
    }
    let ordinary = ask(&mut client, "one.test", "/app/2.js", &[CODINGS]);
    assert_eq!((ordinary.field("content-encoding"), ordinary.field("why")), (Some("zstd"), Some("none")));
    assert!(sizes.iter().all(|size| size * 5 < ordinary.body.len()), "{sizes:?} beside {}", ordinary.body.len());
    let logged = until("log lines", || {
        let lines: Vec<String> =
            terse.stdout().lines().filter(|line| line.starts_with("/app/2.js <used>")).map(String::from).collect();
        (lines.len() >= 3).then_some(lines)
    });
    assert!(logged.iter().any(|line| line.ends_with(" hit")), "the third one needs no coder: {logged:?}");
    let shown = terse.told("show dictionary");
    let line =
        shown.lines().find(|line| line.starts_with("one ")).unwrap_or_else(|| panic!("{shown}")).split(' ').collect::<Vec<_>>();
    assert_eq!((line[1], line[3], line[6], line[7]), (&*Hash::of(&old).hex(), "/app/*", "8", "4"), "{shown}");
    terse.end();
}

#[test]
fn over_tls_in_both_versions_of_http() {
    let Some(curl) = curl() else { return };
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let (old, url) = (script(1), format!("https://localhost:{}", terse.address("web").port()));
    let (held, body) = (format!("Available-Dictionary: {}", available(&old)), terse.path("body"));
    for version in ["--http1.1", "--http2"] {
        let words = ["-sk", version, "-H", "Accept-Encoding: gzip, dcz", "-H", &held, "-D", "-", "-o"];
        let said = curl(&[&words[..], &[body.to_str().unwrap(), &format!("{url}/app/2.js")]].concat());
        let head = said.stdout.to_ascii_lowercase();
        assert!(head.contains("content-encoding: dcz") && head.contains("why: used"), "{version}: {head} {}", said.stderr);
        let body = decode(&std::fs::read(&body).unwrap(), &old);
        assert!(body.is_some_and(|body| body == script(2)), "{version}: other bytes");
    }
    let page = curl(&["-sk", "-D", "-", "-o", "/dev/null", &format!("{url}/app/page")]).stdout;
    let path = format!("/.dictionary/{}", Hash::of(&old).hex());
    assert!(page.to_ascii_lowercase().contains(&format!("link: <{path}>; rel=\"compression-dictionary\"")), "{page}");
    let said = curl(&["-sk", "-D", "-", "-o", body.to_str().unwrap(), &format!("{url}{path}")]).stdout.to_ascii_lowercase();
    for line in [
        "cache-control: public, max-age=604800",
        "x-content-type-options: nosniff",
        "use-as-dictionary: match=\"/app/*\", id=\"first one\"",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(std::fs::read(&body).unwrap() == old, "the dictionary itself");
    terse.end();
}

#[test]
fn each_byte_that_changes_on_the_way_is_noticed() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let (old, new) = (script(1), script(2));
    let mut client = Client::connect(terse.address("plain"));
    for path in ["/app/2.js", "/app/chunked"] {
        let body = ask(&mut client, "one.test", path, &[CODINGS, ("Available-Dictionary", &available(&old))]).body;
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged, &old).is_none_or(|body| body == new), "{path}: byte {at} of {}", body.len());
        }
    }
    terse.end();
}

#[test]
fn another_sites_hash_changes_nothing() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let mut client = Client::connect(terse.address("plain"));
    let (one, two) = (script(1), b"bytes of another site".repeat(9));
    for (host, others, own) in [("one.test", &two, &one), ("two.test", &one, &two)] {
        let without = ask(&mut client, host, "/app/2.js", &[CODINGS]);
        let with = ask(&mut client, host, "/app/2.js", &[CODINGS, ("Available-Dictionary", &available(others))]);
        assert_eq!(with.field("why"), Some("unknown"));
        assert!(with.body == without.body, "{host}");
        let fields = |response: &Response| {
            let told =
                response.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("why") && !name.eq_ignore_ascii_case("date"));
            told.cloned().collect::<Vec<_>>()
        };
        assert_eq!(fields(&with), fields(&without));
        let path = |bytes: &[u8]| format!("/.dictionary/{}", Hash::of(bytes).hex());
        assert!(ask(&mut client, host, &path(own), &[]).body == *own);
        assert!(ask(&mut client, host, &path(others), &[]).body != *others, "it is the other site's");
    }
    let passed = origin.requests().iter().filter(|request| request.field("Available-Dictionary").is_some()).count();
    assert_eq!(passed, 2, "it may be one of the server's own");
    terse.end();
}

#[test]
fn what_is_no_dictionary_field_is_none() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let mut client = Client::connect(terse.address("plain"));
    let held = available(&script(1));
    let long = format!(":{}:", "A".repeat(5000));
    for value in [
        "",
        "x",
        "::",
        ":AAAA:",
        "\"x\"",
        &held[1..],
        &held[..held.len() - 1],
        &format!("{held}, {held}"),
        &format!("({held})"),
        &long,
    ] {
        let response = ask(&mut client, "one.test", "/app/2.js", &[CODINGS, ("Available-Dictionary", value)]);
        assert_eq!((response.field("content-encoding"), response.field("why")), (Some("zstd"), Some("malformed")), "{value}");
    }
    let twice = [CODINGS, ("Available-Dictionary", &*held), ("Available-Dictionary", &held)];
    assert_eq!(ask(&mut client, "one.test", "/app/2.js", &twice).field("why"), Some("malformed"));
    let star = [("Accept-Encoding", "*"), ("Available-Dictionary", &*held)];
    assert_eq!(ask(&mut client, "one.test", "/app/2.js", &star).field("why"), Some("refused"));
    let other = [CODINGS, ("Available-Dictionary", &*held), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")];
    assert_eq!(ask(&mut client, "one.test", "/app/2.js", &other).field("why"), Some("opaque"));
    terse.end();
}

#[test]
fn a_servers_own_passes_and_is_not_kept() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, " http-request cache-use c\n http-response cache-store c");
    let mut client = Client::connect(terse.address("plain"));
    let own = available(b"the server's own");
    for times in 1..=2 {
        let response = ask(&mut client, "one.test", "/app/own", &[CODINGS, ("Available-Dictionary", &own)]);
        assert_eq!((response.field("content-encoding"), response.field("why")), (Some("dcz"), Some("unknown")));
        assert_eq!(response.field("use-as-dictionary"), Some("match=\"/own/*\""));
        assert!(response.body == script(2), "it passes as it is");
        let requests = origin.requests();
        assert_eq!(requests.len(), times, "no cache answers with it");
        let last = requests.last().unwrap();
        assert_eq!((last.field("Available-Dictionary"), last.field("Accept-Encoding")), (Some(&*own), Some(CODINGS.1)));
    }
    terse.end();
}

#[test]
fn what_a_dictionary_was_no_help_for_is_sent_in_its_ordinary_form() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let mut client = Client::connect(terse.address("plain"));
    let held = available(&b"bytes of another site".repeat(9));
    let mut ask = |path: &str| ask(&mut client, "two.test", path, &[CODINGS, ("Available-Dictionary", &held)]);
    let first = ask("/app/2.js");
    assert_eq!((first.field("content-encoding"), first.field("why")), (Some("dcz"), Some("used")), "its head was gone by then");
    for _ in 0..3 {
        let next = ask("/app/2.js");
        assert_eq!((next.field("content-encoding"), next.field("why")), (Some("zstd"), Some("not-worth")));
        assert_eq!(next.field("vary"), Some("Accept-Encoding,Available-Dictionary"));
        assert!(next.body.len() <= first.body.len() + first.body.len() / 9);
    }
    assert_eq!(ask("/app/other.js").field("why"), Some("used"), "another address is another pair");
    assert_eq!(ask("/app/2.js").field("why"), Some("not-worth"));
    let shown = terse.told("show dictionary");
    let line = shown.lines().find(|line| line.starts_with("two ")).unwrap_or_else(|| panic!("{shown}"));
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words[7], words[11], words[12]), ("2", "4", "2"), "used, not worth, notes: {shown}");
    terse.end();
}

#[test]
fn what_dictionaries_have_done_is_shown_and_cleared() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let mut client = Client::connect(terse.address("plain"));
    let (old, held) = (script(1), available(&script(1)));
    for fields in [&[CODINGS, ("Available-Dictionary", &*held)][..], &[CODINGS], &[CODINGS, ("Available-Dictionary", "x")]] {
        ask(&mut client, "one.test", "/app/2.js", fields);
    }
    ask(&mut client, "one.test", "/app/page", &[CODINGS]);
    let told = |line: &str| serde_json::from_str::<serde_json::Value>(&terse.told(line)).unwrap();
    let shown = until("figures", || {
        let shown = told("show dictionary json");
        (shown["proxies"][1]["outcomes"]["none"] == 2).then_some(shown)
    });
    let one = &shown["dictionaries"][0];
    assert_eq!((&one["announced"], &one["offered"], &one["used"]), (&1.into(), &1.into(), &1.into()), "{shown}");
    assert!(one["in"].as_u64() == Some(script(2).len() as u64) && one["out"].as_u64().is_some_and(|out| out > 40), "{shown}");
    assert!(one["age_s"].as_u64().is_some_and(|age| age < 1000), "{shown}");
    let backend = &shown["proxies"].as_array().unwrap().iter().find(|proxy| proxy["name"] == "b1").unwrap();
    assert_eq!((&backend["count"], &backend["held"]), (&1.into(), &old.len().into()), "{shown}");
    assert_eq!((&backend["outcomes"]["used"], &backend["outcomes"]["malformed"]), (&1.into(), &1.into()), "{shown}");
    let all = &told("show compression json")["dictionaries"];
    assert_eq!((&all["count"], &all["used"], &all["offered"]), (&2.into(), &1.into(), &1.into()), "{all}");
    assert_eq!(terse.told("clear dictionary nope").trim(), "No such dictionary.");
    assert_eq!(terse.told("clear dictionary one").trim(), "1 dictionaries: figures at 0, 0 notes forgotten.");
    let cleared = told("show dictionary json");
    assert_eq!((&cleared["dictionaries"][0]["used"], &cleared["dictionaries"][0]["bytes"]), (&0.into(), &old.len().into()));
    terse.end();
}
