use super::*;
use crate::decode::policy;
use crate::decode::settings::{Decompression, Responses};
use crate::testing::{lines, request, response};

fn settings(accept: &[Coding]) -> Decompression {
    Decompression { response: Some(Responses::On), accept: Some(accept.to_vec()), ..Decompression::default() }
}

fn asked(head: &str) -> Box<Ask> {
    policy::ask(&request(head), &Effective::new(Some(&settings(&[])), None)).unwrap()
}

/// The fields of a response once it was judged and edited.
fn edited(asks: &str, answers: &str) -> String {
    let (ask, mut response) = (asked(asks), response(answers));
    let decision = policy::decide(&ask, &response, false);
    apply(&mut response, &ask, &decision, EtagMode::Suffix);
    if let Decision::Decode(_) = decision {
        assert!(!matches!(response.body, BodyLength::Exact(_)), "{answers:?}");
    }
    lines(&response.fields)
}

#[test]
fn what_speaks_of_coded_bytes_goes() {
    for (answers, expected) in [
        ("200\nContent-Encoding: gzip\nContent-Length: 5", "Vary: Accept-Encoding"),
        (
            "200\nContent-Encoding: gzip\nETag: \"x\"\nAccept-Ranges: bytes\nVary: Cookie",
            "ETag: W/\"x;terse=identity\"\nVary: Cookie,Accept-Encoding",
        ),
        ("200\nContent-Encoding: gzip\nETag: W/\"x\"\nVary: *", "ETag: W/\"x;terse=w-identity\"\nVary: *"),
        ("200\nContent-Encoding: gzip\nETag: x\nETag: \"y\"", "ETag: W/\"y;terse=identity\"\nVary: Accept-Encoding"),
        (
            "200\nContent-Encoding: gzip\nContent-MD5: a\nDigest: b\nContent-Digest: c\nRepr-Digest: d\nLast-Modified: e",
            "Last-Modified: e\nVary: Accept-Encoding",
        ),
        ("200\nContent-Encoding: identity, br\nContent-Encoding: gzip", "Vary: Accept-Encoding"),
    ] {
        assert_eq!(edited("GET /", answers), expected, "{answers:?}");
    }
    let kept = edited("GET /\nAccept-Encoding: br, zstd", "200\nContent-Encoding: br, zstd, gzip\nETag: \"x\"");
    assert_eq!(kept, "ETag: W/\"x;terse=zstd\"\nContent-Encoding: br, zstd\nVary: Accept-Encoding");
    assert_eq!(edited("PUT /", "200\nContent-Encoding: gzip\nETag: \"x\""), "ETag: \"x\"\nVary: Accept-Encoding");
}

#[test]
fn a_known_length_becomes_unknown() {
    let mut answer = response("200\nContent-Encoding: gzip\nContent-Length: 5");
    let ask = asked("GET /");
    let decision = policy::decide(&ask, &answer, false);
    apply(&mut answer, &ask, &decision, EtagMode::Suffix);
    assert_eq!((answer.body, answer.fields.first(Known::ContentLength)), (BodyLength::Framed, None));
    let mut head = response("200\nContent-Encoding: gzip\nContent-Length: 5");
    head.body = BodyLength::None;
    let ask = asked("HEAD /");
    let decision = policy::decide(&ask, &head, false);
    apply(&mut head, &ask, &decision, EtagMode::Suffix);
    assert_eq!((head.body, lines(&head.fields)), (BodyLength::None, "Vary: Accept-Encoding".into()));
}

#[test]
fn what_is_not_decoded_stays_but_for_vary() {
    for (asks, answers, expected) in [
        (
            "GET /\nAccept-Encoding: gzip",
            "200\nContent-Encoding: gzip\nETag: \"x\"",
            "Content-Encoding: gzip\nETag: \"x\"\nVary: Accept-Encoding",
        ),
        ("GET /", "200\nETag: \"x\"", "ETag: \"x\""),
        ("GET /", "200\nContent-Encoding: x\nContent-MD5: y", "Content-Encoding: x\nContent-MD5: y"),
        (
            "GET /\nRange: bytes=1-2",
            "206\nContent-Encoding: gzip\nLast-Modified: a",
            "Content-Encoding: gzip\nVary: Accept-Encoding",
        ),
        (
            "GET /\nRange: bytes=1-2",
            "206\nContent-Encoding: gzip\nLast-Modified: a\nETag: \"x\"",
            "Content-Encoding: gzip\nLast-Modified: a\nETag: \"x\"\nVary: Accept-Encoding",
        ),
    ] {
        assert_eq!(edited(asks, answers), expected, "{asks:?} {answers:?}");
    }
}

#[test]
fn a_304_names_the_tag_that_the_client_has() {
    for (asked, answers, expected) in [
        ("W/\"x;terse=identity\"", "304\nETag: \"x\"", "ETag: W/\"x;terse=identity\"\nVary: Accept-Encoding"),
        (
            "W/\"y\", W/\"x;terse=w-identity\"",
            "304\nETag: W/\"x\"\nAccept-Ranges: bytes",
            "ETag: W/\"x;terse=w-identity\"\nVary: Accept-Encoding",
        ),
        ("W/\"x;terse=br\"", "304\nETag: \"x\"", "ETag: \"x\"\nVary: Accept-Encoding"),
        ("\"x\"", "304\nETag: \"x\"", "ETag: \"x\"\nVary: Accept-Encoding"),
        ("\"x\", W/\"x\"", "304\nETag: \"x\"", "ETag: \"x\"\nVary: Accept-Encoding"),
        ("W/\"x\"", "304\nETag: W/\"x\"", "ETag: W/\"x\"\nVary: Accept-Encoding"),
        ("\"x\"", "304\nETag: \"x\"\nVary: Cookie", "ETag: \"x\"\nVary: Cookie,Accept-Encoding"),
    ] {
        assert_eq!(edited(&format!("GET /\nIf-None-Match: {asked}"), answers), expected, "{asked} {answers:?}");
    }
}

/// A cache has the 200: its 304 has the fields of that (RFC 9110 section 15.4.5).
#[test]
fn a_304_for_a_known_response_has_its_tag_and_vary() {
    let coded = "200\nContent-Encoding: gzip\nETag: \"x\"\nContent-Length: 5";
    for (asks, whole, expected) in [
        ("GET /", coded, "ETag: W/\"x;terse=identity\"\nVary: Accept-Encoding"),
        ("GET /\nAccept-Encoding: gzip", coded, "ETag: \"x\"\nVary: Accept-Encoding"),
        ("GET /\nCache-Control: no-transform", coded, "ETag: \"x\"\nVary: Accept-Encoding"),
        ("GET /", "200\nETag: \"x\"\nContent-Length: 5", "ETag: \"x\""),
        ("GET /", "200\nContent-Encoding: gzip\nCache-Control: no-transform\nContent-Length: 5", "ETag: \"x\""),
        ("GET /\nIf-None-Match: W/\"x;terse=identity\"", coded, "ETag: W/\"x;terse=identity\"\nVary: Accept-Encoding"),
    ] {
        let mut ask = asked(asks);
        ask.know(&response(whole));
        let mut answer = response("304\nETag: \"x\"");
        let decision = policy::decide(&ask, &answer, false);
        apply(&mut answer, &ask, &decision, EtagMode::Suffix);
        assert_eq!(lines(&answer.fields), expected, "{asks:?} {whole:?}");
    }
}

#[test]
fn servers_are_asked_for_more() {
    use Coding::{Brotli, Deflate, Gzip};
    for (codings, fields, expected) in [
        (&[Brotli, Gzip][..], "", "Accept-Encoding: br, gzip"),
        (&[Gzip], "Accept-Encoding: x-gzip;q=0, br;q=0.5\nAccept-Encoding: identity", "Accept-Encoding: br;q=0.5, identity, gzip"),
        (&[Gzip], "Accept-Encoding:", "Accept-Encoding: gzip"),
        (&[Gzip], "Accept-Encoding: gzip;q=0.1", "Accept-Encoding: gzip;q=0.1"),
        (&[Deflate], "Accept-Encoding: *", "Accept-Encoding: *"),
        (&[], "Accept-Encoding: br", "Accept-Encoding: br"),
        (&[Gzip], "Range: bytes=0-1", "Range: bytes=0-1"),
        (&[Gzip], "If-None-Match: \"x\"", "If-None-Match: \"x\""),
        (&[Gzip], "If-None-Match: W/\"x;terse=identity\"", "If-None-Match: W/\"x;terse=identity\"\nAccept-Encoding: gzip"),
        (&[Gzip], "Upgrade: websocket", "Upgrade: websocket"),
        (&[Gzip], "Cache-Control: no-transform", "Cache-Control: no-transform"),
    ] {
        let mut get = request(&format!("GET /\n{fields}"));
        let settings = settings(codings);
        let settings = Effective::new(Some(&settings), None);
        let ask = policy::ask(&get, &settings).unwrap();
        widen(&mut get, &ask, &settings);
        assert_eq!(lines(&get.fields), expected, "{fields:?}");
    }
}

#[test]
fn a_request_keeps_what_stays_coded() {
    let settings = Decompression { request: Some(vec![Coding::Gzip]), ..Decompression::default() };
    let mut post = request("POST /\nContent-Encoding: br, gzip\nContent-Length: 9\nContent-Digest: x\nETag: \"x\"");
    let decision = policy::decide_request(&post, false, &Effective::new(Some(&settings), None));
    let Some(Decision::Decode(plan)) = decision else { panic!("{decision:?}") };
    apply_request(&mut post, plan);
    assert_eq!((post.body, &lines(&post.fields)[..]), (BodyLength::Framed, "ETag: \"x\"\nContent-Encoding: br"));
}
