use super::*;
use crate::policy;
use crate::testing::{Setup, lines, request, response};

const GZIP: &str = "compression algo gzip";
const GET: &str = "GET /\nAccept-Encoding: gzip";

/// The head that a client gets.
fn sent(setup: &Setup, ask: &str, answer: &str) -> (String, BodyLength) {
    let (ask, mut answer) = (request(ask), response(answer));
    let verdict = setup.decide(&ask, &answer);
    let verdict = policy::look(&verdict, b"plain", false, &setup.effective());
    apply(&mut answer, &setup.offer(&ask), &verdict, &setup.effective());
    (lines(&answer.fields), answer.body)
}

#[test]
fn a_compressed_response_says_so_and_drops_what_no_longer_holds() {
    let setup = Setup::new(GZIP);
    let answer = "200\nContent-Type: text/plain\nContent-Length: 100\nAccept-Ranges: bytes\nContent-MD5: x\nContent-Digest: x\n\
                  Repr-Digest: x\nDigest: x\nLast-Modified: x\nETag: \"123\"";
    let expected = "Content-Type: text/plain\nLast-Modified: x\nETag: W/\"123\"\nContent-Encoding: gzip\nVary: Accept-Encoding";
    assert_eq!(sent(&setup, GET, answer), (expected.into(), BodyLength::Unknown));
    let deflate = Setup::new("compression algo raw-deflate");
    let (head, _) = sent(&deflate, "GET /\nAccept-Encoding: deflate", "200");
    assert_eq!(head, "Content-Encoding: deflate\nVary: Accept-Encoding");
}

#[test]
fn tags_become_weak() {
    let setup = Setup::new(GZIP);
    for (tag, expected) in [("\"123\"", "W/\"123\""), ("W/\"456\"", "W/\"456\""), ("\"W/789\"", "W/\"W/789\""), ("\"\"", "W/\"\"")]
    {
        let (head, _) = sent(&setup, GET, &format!("200\nETag: {tag}"));
        assert!(head.starts_with(&format!("ETag: {expected}\n")), "{head}");
    }
    for tag in ["\"invalid", "invalid", "W/invalid\""] {
        let (head, _) = sent(&setup, GET, &format!("200\nETag: {tag}"));
        assert_eq!(head, format!("ETag: {tag}"));
    }
}

#[test]
fn vary_is_merged() {
    let setup = Setup::new(GZIP);
    for (before, expected) in [
        ("", "Vary: Accept-Encoding"),
        ("Vary: accept-encoding", "Vary: accept-encoding"),
        ("Vary: Other", "Vary: Other,Accept-Encoding"),
        ("Vary: Accept-Encoding,Other", "Vary: Accept-Encoding,Other"),
        ("Vary: One\nVary: Two", "Vary: One\nVary: Two,Accept-Encoding"),
        ("Vary: *", "Vary: *"),
        ("Vary: ", "Vary: Accept-Encoding"),
    ] {
        let plain = sent(&setup, "GET /", &format!("200\n{before}"));
        assert_eq!(plain, (expected.into(), BodyLength::Unknown), "as it is for a client that takes no coding");
        let (coded, _) = sent(&setup, GET, &format!("200\n{before}"));
        assert_eq!(coded.replace("Content-Encoding: gzip", "").replace("\n\n", "\n").trim(), expected);
    }
}

#[test]
fn vary_is_for_what_varies() {
    for (config, ask, answer) in [
        ("compression algo gzip\ncompression vary off", GET, "200\nContent-Encoding: br"),
        ("compression algo gzip\ncompression vary off", "GET /", "200\nContent-Length: 100"),
        ("compression algo gzip\ncompression type text/plain", GET, "200\nContent-Type: text/html"),
        (GZIP, GET, "200\nETag: \"1\"\nETag: \"1\""),
        (GZIP, GET, "404\nContent-Length: 100"),
        ("compression algo identity", "GET /", "200\nContent-Type: text/plain"),
        ("", GET, "200\nContent-Length: 100"),
    ] {
        let (head, _) = sent(&Setup::new(config), ask, answer);
        assert!(!head.contains("Vary"), "{config} | {ask} | {answer}: {head}");
    }
}

#[test]
fn identity_only_loses_the_length() {
    let setup = Setup::new("compression algo identity");
    let answer = "200\nContent-Length: 50000\nAccept-Ranges: bytes\nETag: \"1\"";
    assert_eq!(sent(&setup, "GET /", answer), ("Accept-Ranges: bytes\nETag: \"1\"".into(), BodyLength::Unknown));
}

#[test]
fn the_answer_to_head_keeps_length_and_tag() {
    let setup = Setup::new(GZIP);
    let (ask, mut answer) = (request("HEAD /\nAccept-Encoding: gzip"), response("200\nContent-Length: 100\nETag: \"1\""));
    answer.body = BodyLength::None;
    let verdict = setup.decide(&ask, &answer);
    apply(&mut answer, &setup.offer(&ask), &verdict, &setup.effective());
    assert_eq!(lines(&answer.fields), "Content-Length: 100\nETag: \"1\"\nVary: Accept-Encoding");
    assert_eq!(answer.body, BodyLength::None);
}

#[test]
fn a_304_speaks_of_what_the_client_has() {
    let weaken = Setup::new(GZIP);
    let suffix = Setup::new("compression algo gzip\ncompression etag suffix");
    for (setup, asked, tag, expected) in [
        (&weaken, "W/\"x\"", "\"x\"", "ETag: W/\"x\"\nVary: Accept-Encoding"),
        (&weaken, "\"a\", W/\"x\"", "\"x\"", "ETag: W/\"x\"\nVary: Accept-Encoding"),
        (&weaken, "\"x\"", "\"x\"", "ETag: \"x\""),
        (&weaken, "\"x\", W/\"x\"", "\"x\"", "ETag: \"x\""),
        (&weaken, "W/\"x\"", "W/\"x\"", "ETag: W/\"x\""),
        (&weaken, "*", "\"x\"", "ETag: \"x\""),
        (&weaken, "W/\"x\"", "\"x\"\nVary: Other", "ETag: W/\"x\"\nVary: Other,Accept-Encoding"),
        (&weaken, "\"x\"", "\"x\"\nVary: Other\nRepr-Digest: y", "ETag: \"x\"\nVary: Other,Accept-Encoding"),
        (&suffix, "W/\"x;terse=gzip\"", "\"x\"", "ETag: W/\"x;terse=gzip\"\nVary: Accept-Encoding"),
        (&suffix, "W/\"x;terse=deflate\"", "\"x\"", "ETag: \"x\""),
        (&suffix, "W/\"x\"", "\"x\"", "ETag: \"x\""),
    ] {
        let ask = format!("{GET}\nIf-None-Match: {asked}");
        let (head, _) = sent(setup, &ask, &format!("304\nETag: {tag}"));
        assert_eq!(head, expected, "{asked} | {tag}");
    }
    let off = Setup::new("");
    assert_eq!(sent(&off, &format!("{GET}\nIf-None-Match: W/\"x\""), "304\nETag: \"x\"\nDigest: y").0, "ETag: \"x\"\nDigest: y");
}

#[test]
fn a_part_has_no_date_to_be_joined_by() {
    let setup = Setup::new("compression algo gzip\ncompression type text/");
    for (answer, kept) in [
        ("206\nContent-Type: text/plain\nLast-Modified: x", false),
        ("206\nLast-Modified: x", false),
        ("206\nContent-Type: multipart/byteranges; boundary=x\nLast-Modified: x", false),
        ("206\nContent-Type: text/plain\nETag: W/\"1\"\nLast-Modified: x", false),
        ("206\nContent-Type: text/plain\nETag: \"1\"\nLast-Modified: x", true),
        ("206\nContent-Type: image/png\nLast-Modified: x", true),
        ("206\nContent-Type: text/plain\nContent-Encoding: br\nLast-Modified: x", true),
    ] {
        let (head, _) = sent(&setup, "GET /", answer);
        assert_eq!(head.contains("Last-Modified"), kept, "{answer}");
    }
}

#[test]
fn offload_hides_accept_encoding_from_the_server() {
    for (config, ask, hidden) in [
        ("compression algo gzip\ncompression offload", GET, true),
        ("compression algo gzip\ncompression offload", "GET /\nAccept-Encoding: br", false),
        ("compression algo identity\ncompression offload", GET, false),
        (GZIP, GET, false),
    ] {
        let (setup, mut ask) = (Setup::new(config), request(ask));
        let offer = setup.offer(&ask);
        offload(&mut ask, &offer, &setup.effective());
        assert_eq!(!ask.fields.has(Known::AcceptEncoding), hidden, "{config}");
    }
}

#[test]
fn requests_and_trailers() {
    let mut ask = request("POST /\nContent-Length: 9\nContent-Digest: x\nContent-Type: text/plain");
    apply_request(&mut ask, Plan { coding: Coding::Gzip, level: crate::Level(6) });
    assert_eq!(lines(&ask.fields), "Content-Type: text/plain\nContent-Encoding: gzip");
    assert_eq!(ask.body, BodyLength::Unknown);
    let mut trailers = response("200\nRepr-Digest: x\nServer-Timing: y").fields;
    apply_trailers(&mut trailers);
    assert_eq!(lines(&trailers), "Server-Timing: y");
}
