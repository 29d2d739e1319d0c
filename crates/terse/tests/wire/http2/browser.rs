//! A real browser: what Chromium reports about its responses, over HTTP/2 and TLS. It is left out where it is not installed, with a
//! message.

use super::certificates::{Kind, authority, signed};
use super::support::Terse;
use super::support::program::{find, run};
use super::support::proxy::DEFAULTS;
use super::support::server::Server;

const TEXT: &str = "a line of text that comes again\n";

/// Page that asks for a text, and writes the outcome into itself.
const PAGE: &str = "<!doctype html><body>waiting<script>
fetch('/text').then(async response => {
    const text = await response.text();
    const entry = performance.getEntriesByName(location.origin + '/text')[0];
    const coding = response.headers.get('content-encoding');
    document.body.textContent = 'got ' + [entry.nextHopProtocol, coding, entry.encodedBodySize < 500, text.length].join(' ') + ' end';
});
</script>";

#[test]
fn chromium_takes_br_and_zstd_over_http2() {
    let Some(chromium) = find("chromium") else { return };
    let text = TEXT.repeat(1000);
    let server = Server::answering(move |request| {
        let (kind, body) = match request.target.as_str() {
            "/" => ("text/html", PAGE),
            "/text" => ("text/plain", text.as_str()),
            _ => ("text/plain", ""),
        };
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let listens = ["br", "zstd"].map(|coding| {
        format!(
            "listen {coding}\n bind fd@${{{coding}}} ssl crt a.pem\n filter compression\n compression algo {coding} gzip\n \
             compression type text/\n server one {}\n",
            server.address()
        )
    });
    let pem = signed(Kind::Ecdsa, &["localhost"], &authority("root")).pem();
    let text = format!("global\n nbthread 1\n{DEFAULTS}\n{}", listens.concat());
    let terse = Terse::with(&text).file("a.pem", pem).listen("br").listen("zstd").start();
    for coding in ["br", "zstd"] {
        let url = format!("https://localhost:{}/", terse.address(coding).port());
        let profile = format!("--user-data-dir={}", terse.path(&format!("profile-{coding}")).display());
        let usual =
            ["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", "--virtual-time-budget=10000", &profile];
        let said = run(&chromium, &[&usual[..], &["--dump-dom", &url]].concat());
        let expected = format!("got h2 {coding} true {} end", TEXT.len() * 1000);
        assert!(said.stdout.contains(&expected), "{expected}: {} {}", said.stdout, said.stderr);
        let picture = terse.path(&format!("{coding}.png"));
        run(&chromium, &[&usual[..], &[&format!("--screenshot={}", picture.display()), &url]].concat());
        assert!(std::fs::read(picture).unwrap().starts_with(b"\x89PNG"));
    }
    terse.end();
}
