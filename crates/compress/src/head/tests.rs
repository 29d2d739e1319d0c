use super::*;
use crate::policy;
use crate::testing::{Setup, lines, request, response};

const GZIP: &str = "compression algo gzip";
const GET: &str = "GET /\nAccept-Encoding: gzip";

/// The head that a client gets.
fn sent(setup: &Setup, ask: &str, answer: &str) -> (String, BodyLength) {
    let (ask, mut answer) = (request(ask), response(answer));
    let verdict = setup.decide(&ask, &answer);
    let verdict = policy::look(&verdict, b"plain", None, &setup.effective());
    apply(&mut answer, &setup.offer(&ask), &verdict, &setup.effective());
    (lines(&answer.fields), answer.body)
}

#[test]
fn a_compressed_response_says_so_and_drops_what_no_longer_holds() {
    let setup = Setup::new(GZIP);
    let answer = "200\nContent-Type: text/plain\nContent-Length: 100\nAccept-Ranges: bytes\nContent-MD5: x\nContent-Digest: x\n\
                  Repr-Digest: x\nDigest: x\nLast-Modified: x\nETag: \"123\"";
    let expected =
        "Content-Type: text/plain\nLast-Modified: x\nETag: W/\"123;terse=gzip\"\nContent-Encoding: gzip\nVary: Accept-Encoding";
    assert_eq!(sent(&setup, GET, answer), (expected.into(), BodyLength::Framed));
    let deflate = Setup::new("compression algo raw-deflate");
    let (head, _) = sent(&deflate, "GET /\nAccept-Encoding: deflate", "200");
    assert_eq!(head, "Content-Encoding: deflate\nVary: Accept-Encoding");
}

#[test]
fn tags_become_weak() {
    let setup = Setup::new(GZIP);
    let weaken = Setup::new("compression algo gzip\ncompression etag weaken");
    for (tag, marked, weakened) in [
        ("\"123\"", "W/\"123;terse=gzip\"", "W/\"123\""),
        ("W/\"456\"", "W/\"456;terse=w-gzip\"", "W/\"456\""),
        ("\"W/789\"", "W/\"W/789;terse=gzip\"", "W/\"W/789\""),
        ("\"\"", "W/\";terse=gzip\"", "W/\"\""),
        ("W/\"x;terse=identity\"", "W/\"x;terse=gzip\"", "W/\"x;terse=identity\""),
    ] {
        for (setup, expected) in [(&setup, marked), (&weaken, weakened)] {
            let (head, _) = sent(setup, GET, &format!("200\nETag: {tag}"));
            assert!(head.starts_with(&format!("ETag: {expected}\n")), "{head}");
            for method in ["PUT", "POST", "PATCH", "DELETE"] {
                let (head, _) = sent(setup, &format!("{method} /\nAccept-Encoding: gzip"), &format!("201\nETag: {tag}"));
                assert_eq!(head, format!("ETag: {tag}\nContent-Encoding: gzip\nVary: Accept-Encoding"));
            }
        }
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
        assert_eq!(plain, (expected.into(), BodyLength::Framed), "as it is for a client that takes no coding");
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
        (GZIP, GET, "226\nContent-Length: 100"),
        ("compression algo identity", "GET /", "200\nContent-Type: text/plain"),
        ("", GET, "200\nContent-Length: 100"),
    ] {
        let (head, _) = sent(&Setup::new(config), ask, answer);
        assert!(!head.contains("Vary"), "{config} | {ask} | {answer}: {head}");
    }
}

/// Under `http-conformance haproxy` it is for compressed responses only.
#[test]
fn vary_is_for_what_is_compressed() {
    for (ask, answer, is_told) in [
        (GET, "200\nContent-Length: 100", true),
        ("GET /", "200\nContent-Length: 100", false),
        ("GET /\nAccept-Encoding: invalid", "200\nContent-Length: 100", false),
        (GET, "304\nContent-Type: text/plain", false),
        (GET, "206\nContent-Range: bytes 0-9/100", false),
    ] {
        let (by_rfc, _) = sent(&Setup::new(GZIP), ask, answer);
        let (head, _) = sent(&Setup::new(GZIP).like_haproxy(), ask, answer);
        assert!(by_rfc.contains("Vary"), "{ask} | {answer}: {by_rfc}");
        assert_eq!(head.contains("Vary"), is_told, "{ask} | {answer}: {head}");
    }
}

#[test]
fn identity_only_loses_the_length() {
    let setup = Setup::new("compression algo identity");
    let answer = "200\nContent-Length: 50000\nAccept-Ranges: bytes\nETag: \"1\"";
    assert_eq!(sent(&setup, "GET /", answer), ("Accept-Ranges: bytes\nETag: \"1\"".into(), BodyLength::Framed));
}

#[test]
fn the_answer_to_head_has_the_head_of_get() {
    let setup = Setup::new(GZIP);
    let (ask, mut answer) = (request("HEAD /\nAccept-Encoding: gzip"), response("200\nContent-Length: 100\nETag: \"1\""));
    answer.body = BodyLength::None;
    let verdict = setup.decide(&ask, &answer);
    apply(&mut answer, &setup.offer(&ask), &verdict, &setup.effective());
    assert_eq!(lines(&answer.fields), "ETag: W/\"1;terse=gzip\"\nContent-Encoding: gzip\nVary: Accept-Encoding");
    let ask = request("HEAD /\nAccept-Encoding: br");
    let mut answer = response("200\nContent-Length: 100\nETag: \"1\"");
    let verdict = setup.decide(&ask, &answer);
    answer.body = BodyLength::None;
    apply(&mut answer, &setup.offer(&ask), &verdict, &setup.effective());
    assert_eq!(lines(&answer.fields), "Content-Length: 100\nETag: \"1\"\nVary: Accept-Encoding");
    assert_eq!(answer.body, BodyLength::None);
}

#[test]
fn a_304_speaks_of_what_the_client_has() {
    let suffix = Setup::new("compression algo gzip br");
    let weaken = Setup::new("compression algo gzip\ncompression etag weaken");
    const VARY: &str = "\nVary: Accept-Encoding";
    for (setup, asked, answer, tag) in [
        (&weaken, "W/\"x\"", "\"x\"", "W/\"x\""),
        (&weaken, "\"a\", W/\"x\"", "\"x\"", "W/\"x\""),
        (&weaken, "\"x\"", "\"x\"", "\"x\""),
        (&weaken, "\"x\", W/\"x\"", "\"x\"", "\"x\""),
        (&weaken, "W/\"x\"", "W/\"x\"", "W/\"x\""),
        (&weaken, "*", "\"x\"", "W/\"x\""),
        (&suffix, "W/\"x;terse=gzip\"", "\"x\"", "W/\"x;terse=gzip\""),
        (&suffix, "\"x;terse=gzip\"", "\"x\"", "W/\"x;terse=gzip\""),
        (&suffix, "\"x\", W/\"x;terse=gzip\"", "\"x\"", "W/\"x;terse=gzip\""),
        (&suffix, "W/\"x;terse=w-gzip\"", "W/\"x\"", "W/\"x;terse=w-gzip\""),
        (&suffix, "W/\"x;terse=identity\"", "\"x\"", "W/\"x;terse=identity\""),
        (&suffix, "W/\"x;terse=br\"", "\"x\"", "\"x\""),
        (&suffix, "W/\"y;terse=gzip\"", "\"x\"", "\"x\""),
        (&suffix, "W/\"x\"", "W/\"x\"", "W/\"x\""),
        (&suffix, "*", "\"x\"", "W/\"x;terse=gzip\""),
    ] {
        let ask = format!("{GET}\nIf-None-Match: {asked}");
        let (head, _) = sent(setup, &ask, &format!("304\nETag: {answer}\nRepr-Digest: y\nContent-Length: 5"));
        assert_eq!(head, format!("ETag: {tag}{VARY}"), "{asked} | {answer}");
    }
    // A client that names no tag gets that of GET's 200.
    let dated = "GET /\nAccept-Encoding: br\nIf-Modified-Since: x";
    assert_eq!(sent(&suffix, dated, "304\nETag: \"x\"").0, format!("ETag: W/\"x;terse=br\"{VARY}"));
    assert_eq!(
        sent(&suffix, "GET /\nIf-Modified-Since: x", "304\nETag: \"x\"\nContent-Length: 5").0,
        format!("ETag: \"x\"\nContent-Length: 5{VARY}")
    );
    let unlisted = Setup::new("compression algo gzip\ncompression type text/");
    assert_eq!(sent(&unlisted, GET, "304\nContent-Type: image/png\nETag: \"x\"").0, "Content-Type: image/png\nETag: \"x\"");
    let off = Setup::new("");
    assert_eq!(sent(&off, &format!("{GET}\nIf-None-Match: W/\"x\""), "304\nETag: \"x\"\nDigest: y").0, "ETag: \"x\"\nDigest: y");
}

#[test]
fn a_cache_knows_what_the_304_is_about() {
    let setup = Setup::new("compression algo gzip\ncompression type text/");
    for (stored, varies) in [("200\nContent-Type: text/a", true), ("200\nContent-Type: image/png", false)] {
        let (ask, mut answer) = (request(GET), response("304\nETag: \"x\""));
        let mut offer = setup.offer(&ask);
        offer.know(&setup.decide(&ask, &response(stored)));
        let verdict = policy::decide(&offer, &answer, &crate::Load::IDLE, &setup.effective(), || true);
        apply(&mut answer, &offer, &verdict, &setup.effective());
        assert_eq!(answer.fields.has(Known::Vary), varies, "{stored}");
    }
}

#[test]
fn a_part_has_no_date_to_be_joined_by() {
    let setup = Setup::new("compression algo gzip\ncompression type text/\ncompression minsize-res 10");
    for (answer, kept) in [
        ("206\nContent-Type: text/plain\nLast-Modified: x", false),
        // Its 200 has no type either, and is not compressed: without If-Range it would have one (RFC 9110 section 15.3.7).
        ("206\nLast-Modified: x", true),
        ("206\nContent-Type: multipart/byteranges; boundary=x\nLast-Modified: x", false),
        ("206\nContent-Type: text/plain\nETag: W/\"1\"\nLast-Modified: x", false),
        ("206\nContent-Type: text/plain\nETag: \"1\"\nLast-Modified: x", true),
        ("206\nContent-Type: image/png\nLast-Modified: x", true),
        ("206\nContent-Type: text/plain\nContent-Range: bytes 5-8/9\nLast-Modified: x", true),
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
    assert_eq!(ask.body, BodyLength::Framed);
    let mut ask = request("POST /\nContent-Encoding: identity\nTrailer: Content-Digest\nTrailer: Server-Timing, Repr-Digest");
    apply_request(&mut ask, Plan { coding: Coding::Gzip, level: crate::Level(6) });
    assert_eq!(lines(&ask.fields), "Content-Encoding: gzip\nTrailer: Server-Timing");
    let mut trailers = response("200\nRepr-Digest: x\nServer-Timing: y").fields;
    apply_trailers(&mut trailers);
    assert_eq!(lines(&trailers), "Server-Timing: y");
}
