//! Answers that refer to a dictionary which the client holds (RFC 9842), over TLS and behind another program's.

use crate::certificates::{Kind, authority, signed};
use crate::support::client::{Client, Response};
use crate::support::origin::{Origin, Request};
use crate::support::program::{curl, find, run};
use crate::support::proxy::DEFAULTS;
use crate::support::server::Server;
use crate::support::{Terse, until};
use std::io::Write;
use std::net::TcpStream;
use terse_dictionary::{Hash, MAGIC};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// A script, and its next release: one line of sixty is another.
fn script(release: u32) -> Vec<u8> {
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

fn available(dictionary: &[u8]) -> String {
    format!(":{}:", openssl::base64::encode_block(&Hash::of(dictionary).0))
}

/// What a client that holds the dictionary makes of a body; none where it objects. It takes no window above 8 MB.
fn decode(body: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
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

const CODINGS: (&str, &str) = ("Accept-Encoding", "gzip, br, zstd, dcb, dcz");

fn ask(client: &mut Client, host: &str, path: &str, fields: &[(&str, &str)]) -> Response {
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

/// Page that fetches a script, then its next release until it comes as a difference, and writes the outcome into itself.
const PAGE: &str = "<!doctype html><body>waiting<script>
(async () => {
    await (await fetch('/app/app-1.js')).arrayBuffer();
    for (let i = 0; i < 200; i++) {
        const url = '/app/app-2.js?' + i;
        const response = await fetch(url);
        const body = await response.arrayBuffer();
        const coding = response.headers.get('content-encoding');
        if (coding === 'dcz' || i === 199) {
            const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', body));
            const hash = Array.from(digest, byte => byte.toString(16).padStart(2, '0')).join('');
            const entry = performance.getEntriesByName(location.origin + url)[0];
            document.body.textContent = 'got ' + [entry.nextHopProtocol, coding, entry.encodedBodySize < 10000, hash].join(' ') + ' end';
            break;
        }
        await new Promise(done => setTimeout(done, 100));
    }
})();
</script>";

/// Chromium keeps the earlier release, which a rule announces, and decodes the difference, over both versions of HTTP.
#[test]
fn chromium_takes_the_difference() {
    let Some(chromium) = find("chromium") else { return };
    let server = Server::answering(|request| {
        let (kind, body) = match request.target.split('?').next().unwrap_or_default() {
            "/" => ("text/html", PAGE.into()),
            "/app/app-1.js" => ("text/javascript\r\nCache-Control: max-age=3600", script(1)),
            "/app/app-2.js" => ("text/javascript\r\nCache-Control: max-age=3600", script(2)),
            _ => ("text/plain", Vec::new()),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body].concat()
    });
    let listens = ["h2", "http/1.1"].map(|alpn| {
        format!(
            "listen {0}\n bind fd@${{{0}}} ssl crt a.pem alpn {alpn}\n compression on\n compression dictionary app\n server one {1}\n \
             http-request set-var(txn.path) path\n \
             http-response set-header Use-As-Dictionary 'match=\"/app/*\"' if {{ var(txn.path) -m str /app/app-1.js }}\n",
            alpn.replace("http/1.1", "h1"),
            server.address()
        )
    });
    let dictionary = "dictionary app\n file app-1.js\n match /app/*\n";
    let pair = signed(Kind::Ecdsa, &["localhost"], &authority("root"));
    let text = format!("global\n nbthread 1\n{DEFAULTS}\n{dictionary}{}", listens.concat());
    let terse = Terse::with(&text).file("a.pem", pair.pem()).file("app-1.js", script(1)).listen("h2").listen("h1").start();
    let key = pair.certificate.public_key().unwrap().public_key_to_der().unwrap();
    let trusted = format!("--ignore-certificate-errors-spki-list={}", openssl::base64::encode_block(&Hash::of(&key).0));
    for (listener, protocol) in [("h2", "h2"), ("h1", "http/1.1")] {
        let url = format!("https://localhost:{}/", terse.address(listener).port());
        let profile = format!("--user-data-dir={}", terse.path(&format!("profile-{listener}")).display());
        let usual =
            ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom", &trusted, &profile];
        let said = run(&chromium, &[&usual[..], &[&url]].concat());
        let expected = format!("got {protocol} dcz true {} end", Hash::of(&script(2)).hex());
        assert!(said.stdout.contains(&expected), "{expected}: {} {}", said.stdout, said.stderr);
    }
    terse.end();
}
