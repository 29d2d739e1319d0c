//! Clients that cost more than they send: each is stopped at a limit, which is counted and logged by its name.

use super::client::Client;
use super::support::proxy::DEFAULTS;
use super::support::{Terse, until};
use terse_http::h2::{Code, Glitch, PREFACE};
use terse_lab::hostile::{flood_once, floods, frames};

#[test]
fn each_ends_at_its_limit() {
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stderr format raw local0\nlisten web\n bind fd@${{web}} proto h2\n \
         http-request return status 200 if METH_GET\n server none 127.0.0.1:1 disabled\n"
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    for flood in floods() {
        let counter = |glitch: Glitch| {
            let words = glitch.name().split(' ').map(|word| word[..1].to_uppercase() + &word[1..]);
            terse.info(&format!("Http2Limit{}", words.collect::<String>()))
        };
        let before = flood.limit.map(counter);
        let outcome = flood_once(terse.address("web"), &flood);
        assert!(outcome.is_expected(&flood), "{}: {outcome:?}", flood.name);
        if let Some(glitch) = flood.limit.filter(|_| outcome.code == Some(Code::ENHANCE_YOUR_CALM)) {
            assert_eq!(Some(counter(glitch)), before.map(|before| before + 1), "{}", flood.name);
            let line = format!("HTTP/2 connection closed: {}", glitch.name());
            until(flood.name, || terse.stderr().contains(&line).then_some(()));
        }
    }
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/").status(), 200, "all others are served");
    until("the end of the others", || (terse.info("Http2CurrConnections") == 1).then_some(()));
    terse.end();
}

#[test]
fn many_cookies_are_a_head_that_is_too_large() {
    let terse = super::support::proxy::listen("http-request return status 200");
    let mut client = Client::connect(terse.address("web"));
    let mut asked = super::client::request("GET", "/", &[]);
    (0..1000).for_each(|n| asked.fields.push(b"Cookie", format!("a{n}").as_bytes()));
    assert_eq!(client.ask(&asked).status(), 431);
    assert_eq!(client.get("/").status(), 200);
    terse.end();
}

#[test]
fn all_oddities_together_have_a_limit_where_a_line_sets_one() {
    let text = format!(
        "global\n nbthread 1\n tune.h2.fe.glitches-threshold 50\n{DEFAULTS} log stderr format raw local0\nlisten web\n bind fd@${{web}}\n \
         http-request return status 200 content-type text/plain lf-string %[fc_glitches]\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    let mut priority = Vec::new();
    frames::priority(1, 3, &mut priority);
    client.raw(&priority.repeat(7));
    assert_eq!(client.get("/").text(), "7");
    client.raw(&priority.repeat(50));
    assert!(client.ends());
    assert_eq!(client.goaway.map(|(_, code)| code), Some(Code::ENHANCE_YOUR_CALM));
    until("the line", || terse.stderr().contains("HTTP/2 connection closed: glitches").then_some(()));
    terse.end();
}

#[test]
fn what_is_no_preface_ends_the_connection() {
    let terse = Terse::with(&format!("{DEFAULTS}\nlisten web\n bind fd@${{web}} proto h2\n http-request return status 200\n"))
        .listen("web")
        .start();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &PREFACE[..10], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n"] {
        let mut client = super::support::client::Client::connect(terse.address("web"));
        client.send(bytes);
        client.stream().shutdown(std::net::Shutdown::Write).unwrap();
        assert!(super::support::is_closed(client.stream(), super::support::PATIENCE));
    }
    assert_eq!(Client::connect(terse.address("web")).get("/").status(), 200);
    terse.end();
}
