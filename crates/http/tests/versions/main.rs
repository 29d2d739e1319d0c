//! Messages from one version to the other: each case of `corpus.txt`, and each byte at each place.
//!
//! HTTP/2 comes from frames that are written by hand, and the frames that we write are read by the crate `hpack`. A message
//! that passes goes there and back: the other version reads the same message.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod bytes;
mod cases;
mod wire;

use cases::{Case, Expected};

#[test]
fn each_case_becomes_what_it_must() {
    let cases = cases::read(include_str!("corpus.txt"));
    assert!(cases.len() > 100);
    let wrong: Vec<String> = cases.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Failure of a case that is not as it must be.
fn wrong(case: &Case) -> Option<String> {
    let became = match (case.to_http2, &*case.kind) {
        (false, "request") => wire::request_to_http1(&case.pairs(), true),
        (false, "post") => wire::request_to_http1(&case.pairs(), false),
        (false, "trailers") => wire::trailers_to_http1(&case.pairs()),
        (false, kind) => wire::response_to_http1(&case.pairs(), method(kind)),
        (true, "request") => wire::request_to_http2(&case.head()).map(wire::listed),
        (true, "trailers") => wire::trailers_to_http2(&case.head()).map(wire::listed),
        (true, kind) => wire::response_to_http2(&case.head(), method(kind)).map(wire::listed),
    };
    let expected = match &case.expected {
        Expected::Lines(lines) => Ok(lines.clone()),
        Expected::Refused(why) => Err(why.clone()),
    };
    (became != expected).then(|| format!("{}: {became:?} instead of {expected:?}", case.name))
}

/// The method that a response answers.
fn method(kind: &str) -> &'static str {
    match kind {
        "response" => "GET",
        "head" => "HEAD",
        "connect" => "CONNECT",
        other => panic!("a kind of case: {other}"),
    }
}
