use super::*;
use crate::Effective;
use crate::testing::{Setup, request, response};
use std::collections::HashSet;
use terse_message::Version;

const GET: &str = "GET /\nAccept-Encoding: gzip";
const OK: &str = "200\nContent-Type: text/plain\nContent-Length: 100";

fn plan(coding: Coding, level: u8) -> Plan {
    Plan { coding, level: Level(level) }
}

/// Every case of a response by its head: configuration, request, response, reason, whether Vary is due.
const CASES: &[(&str, &str, &str, Reason, bool)] = &[
    ("", GET, OK, Reason::NotConfigured, false),
    ("compression algo gzip\ncompression direction request", GET, OK, Reason::Direction, false),
    ("compression type text/plain", GET, OK, Reason::NoAlgorithm, false),
    ("compression algo gzip", "GET / HTTP/1.0\nAccept-Encoding: gzip", OK, Reason::ClientVersion, true),
    ("compression algo gzip", "GET /\nAccept-Encoding: gzip\nUser-Agent: Mozilla/4", OK, Reason::Agent, true),
    (
        "compression algo gzip\ncompression disable-agent ^bad",
        "GET /\nAccept-Encoding: gzip\nUser-Agent: bad/1",
        OK,
        Reason::Agent,
        true,
    ),
    ("compression algo gzip\ncompression proxied off", "GET /\nAccept-Encoding: gzip\nVia: 1.1 x", OK, Reason::Proxied, true),
    (
        "compression algo gzip\ncompression proxied expired no-cache no-store private auth no_etag no_last_modified",
        "GET /\nAccept-Encoding: gzip\nVia: 1.1 x",
        "200\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nETag: \"1\"\nContent-Length: 100",
        Reason::Proxied,
        true,
    ),
    ("compression algo gzip", "GET /\nAccept-Encoding: gzip\nCache-Control: no-transform", OK, Reason::RequestNoTransform, true),
    ("compression algo gzip", "GET /", OK, Reason::NoAcceptEncoding, true),
    ("compression algo gzip", "GET /\nAccept-Encoding: identity", OK, Reason::ClientIdentity, true),
    ("compression algo gzip", "GET /\nAccept-Encoding: gzip;q=0", OK, Reason::CodingRefused, true),
    ("compression algo gzip", "GET /\nAccept-Encoding: br", OK, Reason::NoCommonCoding, true),
    ("compression algo gzip", GET, "101\nUpgrade: websocket", Reason::Upgrade, false),
    ("compression algo gzip", "CONNECT h:1\nAccept-Encoding: gzip", "200", Reason::Upgrade, false),
    ("compression algo gzip", GET, "204", Reason::NoBody, false),
    ("compression algo gzip", GET, "304", Reason::NoBody, true),
    ("compression algo gzip", GET, "304\nCache-Control: no-transform", Reason::NoBody, false),
    ("compression algo gzip", "PUT /\nAccept-Encoding: gzip", "304", Reason::NoBody, false),
    ("compression algo gzip\ncompression type text/", GET, "304", Reason::NoBody, true),
    ("compression algo gzip\ncompression type text/", GET, "304\nContent-Type: image/png", Reason::NoBody, false),
    ("compression algo gzip", GET, "103", Reason::NoBody, false),
    ("compression algo gzip", GET, "200\nContent-Length: 0", Reason::NoBody, false),
    ("compression algo gzip", GET, "226\nContent-Length: 100", Reason::Status, false),
    ("compression on\ncompression off", GET, OK, Reason::NotConfigured, false),
    ("compression on", GET, "200\nContent-Type: image/png", Reason::CompressedType, false),
    ("compression on", GET, "200\nContent-Type: audio/midi", Reason::TypeNotListed, false),
    ("compression on", GET, "200\nContent-Type: application/x-zip; a=b", Reason::CompressedType, false),
    ("compression on", GET, "200\nContent-Type: application/octet-stream", Reason::TypeNotListed, false),
    (
        "compression on",
        GET,
        "200\nContent-Type: application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Reason::CompressedType,
        false,
    ),
    ("compression on", GET, OK, Reason::TooSmall, false),
    ("compression algo gzip", GET, "206\nContent-Length: 100", Reason::Partial, true),
    ("compression algo gzip", GET, "206\nContent-Type: multipart/byteranges; boundary=x", Reason::Partial, true),
    ("compression algo gzip", GET, "206\nContent-Type: multipart/mixed; boundary=x", Reason::Partial, false),
    ("compression algo gzip\ncompression minsize-res 10", GET, "206\nContent-Range: bytes 0-1/9", Reason::Partial, false),
    ("compression algo gzip\ncompression minsize-res 9", GET, "206\nContent-Range: bytes 0-1/9", Reason::Partial, true),
    ("compression algo gzip\ncompression minsize-res 9", GET, "206\nContent-Range: bytes 0-1/*", Reason::Partial, true),
    ("compression algo gzip\ncompression type text/", "GET /\nIf-Range: x", "206", Reason::Partial, true),
    ("compression algo gzip\ncompression type text/", GET, "206", Reason::Partial, false),
    ("compression algo gzip\ncompression type text/", GET, "206\nContent-Type: video/mp4", Reason::Partial, false),
    ("compression algo gzip", GET, "200\nContent-Range: bytes 0-1/9", Reason::Partial, false),
    ("compression algo gzip", GET, "200\nContent-Encoding: something", Reason::AlreadyCoded, false),
    ("compression algo gzip", GET, "200\nContent-Encoding: identity, , x-gzip", Reason::AlreadyCoded, false),
    ("compression algo gzip", GET, "200\nCache-Control: max-age=1, No-Transform", Reason::NoTransform, false),
    ("compression algo gzip", GET, "200\nETag: \"invalid", Reason::InvalidEtag, false),
    ("compression algo gzip", GET, "200\nETag: \"one\"\nETag: \"two\"", Reason::MultipleEtags, false),
    ("compression algo gzip\ncompression type text/plain", GET, "200", Reason::MissingType, false),
    ("compression algo gzip\ncompression type text/plain", GET, "200\nContent-Type: text/css", Reason::TypeNotListed, false),
    ("compression algo gzip", GET, "200\nContent-Type: Multipart/mixed; boundary=a", Reason::Multipart, false),
    ("compression algo gzip", GET, "200\nContent-Type: application/grpc+proto", Reason::Grpc, false),
    ("compression algo gzip\ncompression type application/grpc", GET, "200\nContent-Type: application/GRPC", Reason::Grpc, false),
    (
        "compression algo gzip\ncompression type application/grpc",
        GET,
        "200\nContent-Type: application/grpc; x=y",
        Reason::Grpc,
        false,
    ),
    ("compression algo gzip\ncompression type application/", GET, "200\nContent-Type: application/grpc-web", Reason::Grpc, false),
    ("compression algo gzip", GET, "200\nContent-Type: application/grpc-web-text", Reason::Grpc, false),
    ("compression algo gzip\ncompression minsize-res 101", GET, OK, Reason::TooSmall, false),
    ("compression algo gzip\ncompression minsize-res 101", "HEAD /\nAccept-Encoding: gzip", OK, Reason::TooSmall, false),
];

#[test]
fn every_reason_is_reached() {
    let mut reached = HashSet::new();
    for (lines, ask, answer, reason, varies) in CASES {
        let mut answer = response(answer);
        let ask = request(ask);
        if ask.method() == b"HEAD" {
            answer.body = terse_message::BodyLength::None;
        }
        let verdict = Setup::new(lines).decide(&ask, &answer);
        assert_eq!(verdict, Verdict { decision: Decision::Pass(*reason), varies: *varies }, "{lines} | {ask:?} | {answer:?}");
        reached.insert(*reason);
    }

    let setup = Setup::new("compression algo gzip\ncompression minsize-res 50\nglobal: maxcomprate 1\nmaxcompcpuusage 90");
    let effective = setup.effective();
    for (load, reason) in [
        (Load { bytes_per_second: 1025, ..Load::IDLE }, Reason::RateBrake),
        (Load { idle_percent: 9, ..Load::IDLE }, Reason::CpuBrake),
        (Load { memory_full: true, ..Load::IDLE }, Reason::BufferLimit),
    ] {
        let verdict = decide(&setup.offer(&request(GET)), &response(OK), &load, &effective, || true);
        assert_eq!(verdict, Verdict { decision: Decision::Pass(reason), varies: true });
        reached.insert(reason);
    }

    let forbidden = decide(&setup.offer(&request(GET)), &response(OK), &Load::IDLE, &effective, || false);
    assert_eq!(forbidden, Verdict::pass(Reason::Condition));
    let part = decide(&setup.offer(&request(GET)), &response("206"), &Load::IDLE, &effective, || false);
    assert_eq!(part, Verdict::pass(Reason::Partial), "no client is sent this compressed");
    let head = setup.decide(&request("HEAD /\nAccept-Encoding: gzip"), &response(OK));
    assert_eq!(head, Verdict { decision: Decision::Head(plan(Coding::Gzip, 6)), varies: true });
    reached.extend(head.reason());
    let as_haproxy = crate::settings::Process { as_haproxy: true, ..crate::settings::Process::default() };
    for (answer, reason) in [
        ("200 HTTP/1.0\nContent-Length: 100", Reason::ServerVersion),
        ("200 close", Reason::UntilClose),
        ("404\nContent-Length: 100", Reason::Status),
    ] {
        let gzip = Setup::new("compression algo gzip");
        let verdict = gzip.decide_with(&as_haproxy, &request(GET), &response(answer));
        assert_eq!(verdict, Verdict::pass(reason), "{answer}");
        assert!(matches!(gzip.decide(&request(GET), &response(answer)).decision, Decision::Look(_)), "{answer}");
        reached.insert(reason);
    }
    let left =
        Setup::new("compression algo gzip").decide_with(&as_haproxy, &request("HEAD /\nAccept-Encoding: gzip"), &response(OK));
    assert_eq!(left, Verdict { decision: Decision::Pass(Reason::Head), varies: true });
    reached.insert(Reason::Condition);

    let verdict = setup.decide(&request(GET), &response("200"));
    for (first, whole, reason) in [
        (&b"\x1f\x8b\x08"[..], None, Reason::Magic),
        (b"short", Some(5), Reason::TooSmall),
        (b"", Some(0), Reason::NoBody),
        (&crate::sniff::tests::noise(4096), None, Reason::Entropy),
    ] {
        assert_eq!(look(&verdict, first, whole, &effective).reason(), Some(reason));
        reached.insert(reason);
    }

    let linked = offer(&request(GET), None, Link { compresses: true, ..Link::default() }, &effective);
    assert_eq!(linked.want, Err(Reason::LinkCompresses));
    reached.insert(Reason::LinkCompresses);
    let off = offer(&request(GET), None, Link { mode: Mode::Off, ..Link::default() }, &effective);
    assert_eq!(off.want, Err(Reason::SwitchedOff));
    reached.insert(Reason::SwitchedOff);
    let long = format!("GET /\nAccept-Encoding: {}", "a,".repeat(100));
    assert_eq!(setup.offer(&request(&long)).want, Err(Reason::AcceptEncodingLimit));
    reached.insert(Reason::AcceptEncodingLimit);
    // The proxy's own answers are not asked about.
    reached.insert(Reason::OwnAnswer);
    // What a connection has is the proxy's to know.
    reached.insert(Reason::CoderLimit);

    let missed: Vec<_> = Reason::ALL.iter().filter(|reason| !reached.contains(reason)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn what_is_compressed() {
    for (lines, ask, answer, expected) in [
        ("compression algo gzip", GET, OK, plan(Coding::Gzip, 6)),
        ("compression algo gzip", GET, "203", plan(Coding::Gzip, 6)),
        ("compression algo gzip", GET, "200\nContent-Type: text/event-stream", plan(Coding::Gzip, 6)),
        ("compression algo gzip deflate", "GET /\nAccept-Encoding: deflate, gzip;q=0.9", OK, plan(Coding::Deflate, 6)),
        (
            "compression algo gzip\ncompression type text/PLAIN",
            GET,
            "200\nContent-Type: Text/Plain; charset=x",
            plan(Coding::Gzip, 6),
        ),
        ("compression algo gzip\ncompression minsize-res 100", GET, OK, plan(Coding::Gzip, 6)),
        ("compression algo gzip\ncompression level gzip 2", "POST /\nAccept-Encoding: gzip", OK, plan(Coding::Gzip, 2)),
        (
            "compression algo gzip\ncompression http-version 1.0",
            "GET / HTTP/1.0\nAccept-Encoding: gzip",
            "200 HTTP/1.0",
            plan(Coding::Gzip, 6),
        ),
        (
            "compression algo gzip\ncompression proxied expired",
            "GET /\nAccept-Encoding: gzip\nVia: 1.1 x",
            "200\nDate: Sun, 06 Nov 1994 08:49:37 GMT\nExpires: Sun, 06 Nov 1994 08:49:37 GMT",
            plan(Coding::Gzip, 6),
        ),
        (
            "compression algo gzip\ncompression proxied expired",
            "GET /\nAccept-Encoding: gzip\nVia: 1.1 x",
            "200\nExpires: 0",
            plan(Coding::Gzip, 6),
        ),
        (
            "compression algo gzip\ncompression proxied auth",
            "GET /\nAccept-Encoding: gzip\nVia: 1.1 x\nAuthorization: Basic x",
            OK,
            plan(Coding::Gzip, 6),
        ),
    ] {
        let setup = Setup::new(lines);
        let verdict = setup.decide(&request(ask), &response(answer));
        assert_eq!(verdict, Verdict { decision: Decision::Look(expected), varies: true }, "{lines} | {ask} | {answer}");
        let settled = Verdict { decision: Decision::Compress(expected), varies: true };
        assert_eq!(look(&verdict, b"plain text", None, &setup.effective()), settled);
        assert_eq!(look(&verdict, b"", None, &setup.effective()), settled, "nothing came in time");
        assert_eq!(look(&settled, b"\x1f\x8b\x08", None, &setup.effective()), settled, "settled is settled");
        let blind = Setup::new(&format!("compression sniff off\n{lines}"));
        assert_eq!(blind.decide(&request(ask), &response(answer)), settled);
    }
}

#[test]
fn on_is_a_whole_section() {
    let auto = |coding| {
        let on = Setup::new("compression on");
        Plan { coding, level: on.effective().level(coding, Some(5000), crate::Pace::Steady) }
    };
    for (lines, ask, answer, coding) in [
        ("compression on", "GET /\nAccept-Encoding: gzip, deflate, br, zstd", "200\nContent-Type: text/css", Coding::Zstd),
        ("compression on", "GET /\nAccept-Encoding: gzip, br", "200\nContent-Type: application/wasm", Coding::Brotli),
        ("compression on", "GET / HTTP/1.0\nAccept-Encoding: gzip", "404\nContent-Type: text/html", Coding::Gzip),
        ("compression on", GET, "200 HTTP/1.0\nContent-Type: application/problem+json; charset=utf-8", Coding::Gzip),
        ("compression on\ncompression type image/x-raw", GET, "200\nContent-Type: image/x-raw", Coding::Gzip),
        ("compression off\ncompression on", GET, "200\nContent-Type: application/atom+XML", Coding::Gzip),
        // A section's own setting counts, before `on` or after it.
        (
            "compression algo gzip\ncompression on",
            "GET /\nAccept-Encoding: gzip, zstd",
            "200\nContent-Type: text/html",
            Coding::Gzip,
        ),
        ("compression on\ncompression algo gzip", "GET /\nAccept-Encoding: gzip, br", "200\nContent-Type: text/html", Coding::Gzip),
    ] {
        let answer = format!("{answer}\nContent-Length: 5000");
        let verdict = Setup::new(lines).decide(&request(ask), &response(&answer));
        assert_eq!(verdict.decision, Decision::Look(auto(coding)), "{lines} | {ask} | {answer}");
    }
    let small = Setup::new("compression on\ncompression minsize-res 0").decide(&request(GET), &response(OK));
    assert!(matches!(small.decision, Decision::Look(_)));
    let suffix = Setup::new("compression algo gzip\ncompression type +JSON");
    for (name, is_listed) in
        [("a/b+json", true), ("a/b+Json ;q=1", true), ("a/json", false), ("a/b; c=+json", false), ("+json", false)]
    {
        let verdict = suffix.decide(&request(GET), &response(&format!("200\nContent-Type: {name}")));
        assert_eq!(verdict.reason().is_none(), is_listed, "{name}");
    }
}

#[test]
fn off_of_the_backend_is_off() {
    let (on, off) = (Setup::new("compression on"), Setup::new("compression off"));
    let (on, off, process) = (on.listen(), off.listen(), crate::settings::Process::default());
    for (front, back, is_on) in
        [(on, off, false), (off, on, true), (on, None, true), (off, None, false), (None, off, false), (off, off, false)]
    {
        assert_eq!(Effective::new(front, back, &process).is_configured(), is_on, "{front:?} {back:?}");
    }
}

#[test]
fn identity_is_for_those_who_take_nothing_else() {
    let alone = Setup::new("compression algo identity");
    let passed = Verdict { decision: Decision::Compress(plan(Coding::Identity, 0)), varies: false };
    assert_eq!(alone.decide(&request("GET /"), &response(OK)), passed);
    let both = Setup::new("compression algo identity gzip");
    assert_eq!(both.decide(&request("GET /"), &response(OK)), Verdict { varies: true, ..passed });
    assert_eq!(both.decide(&request(GET), &response(OK)).decision, Decision::Look(plan(Coding::Gzip, 6)));
}

#[test]
fn requests_have_reasons_too() {
    const ON: &str =
        "compression direction both\ncompression algo-req gzip\ncompression type-req text/plain\ncompression minsize-req 800";
    const POST: &str = "POST /\nContent-Type: text/plain\nContent-Length: 800";
    for (lines, ask, reason) in [
        ("", POST, Reason::NotConfigured),
        ("compression algo gzip", POST, Reason::Direction),
        ("compression direction both", POST, Reason::NoAlgorithm),
        (ON, "POST / HTTP/1.0\nContent-Type: text/plain\nContent-Length: 800", Reason::ClientVersion),
        (ON, "CONNECT h:1", Reason::Upgrade),
        (ON, "GET /\nUpgrade: websocket", Reason::Upgrade),
        (ON, "HEAD /", Reason::Head),
        (ON, "GET /", Reason::NoBody),
        (ON, "POST /\nContent-Type: text/plain\nContent-Length: 799", Reason::TooSmall),
        (ON, "PUT /\nContent-Length: 800\nContent-Range: bytes 0-799/1000", Reason::Partial),
        (ON, "POST /\nContent-Length: 800\nContent-Encoding: br", Reason::AlreadyCoded),
        (ON, "POST /\nContent-Length: 800\nCache-Control: no-transform", Reason::RequestNoTransform),
        (ON, "POST /\nContent-Length: 800", Reason::MissingType),
        (ON, "POST /\nContent-Length: 800\nContent-Type: image/png", Reason::CompressedType),
        (ON, "POST /\nContent-Length: 800\nContent-Type: application/grpc", Reason::Grpc),
    ] {
        let setup = Setup::new(lines);
        let verdict = decide_request(&request(ask), Link::default(), &Load::IDLE, &setup.effective(), || true);
        assert_eq!(verdict, Verdict { decision: Decision::Pass(reason), varies: false }, "{ask}");
    }
    let setup = Setup::new(ON);
    let verdict = |head: &str| decide_request(&request(head), Link::default(), &Load::IDLE, &setup.effective(), || true);
    assert_eq!(verdict(POST).decision, Decision::Look(plan(Coding::Gzip, 6)));
    let waiting = format!("{POST}\nExpect: 100-continue");
    assert_eq!(verdict(&waiting).decision, Decision::Compress(plan(Coding::Gzip, 6)));
    assert_eq!(look_request(&verdict(POST), b"short", Some(5), &setup.effective()).reason(), Some(Reason::TooSmall));
    let linked =
        decide_request(&request(POST), Link { compresses: true, ..Link::default() }, &Load::IDLE, &setup.effective(), || true);
    assert_eq!(linked.reason(), Some(Reason::LinkCompresses));
}

#[test]
fn what_names_no_coding_is_plain_and_what_is_listed_by_name_is_meant() {
    let setup = Setup::new("compression algo gzip\ncompression type text/ application/grpc-web application/grpcs");
    for answer in [
        "200\nContent-Type: text/a\nContent-Encoding:",
        "200\nContent-Type: text/a\nContent-Encoding: ,",
        "200\nContent-Type: text/a\nContent-Encoding: Identity\nContent-Encoding: identity, IDENTITY",
        "200\nContent-Type: application/grpc-web-text+proto",
        "200\nContent-Type: application/GRPC-Web",
        "200\nContent-Type: application/grpcs",
    ] {
        let verdict = setup.decide(&request(GET), &response(answer));
        assert_eq!(verdict.decision, Decision::Look(plan(Coding::Gzip, 6)), "{answer}");
    }
}

#[test]
fn a_body_without_a_length_is_measured_where_there_is_a_least() {
    let blind = Setup::new("compression algo gzip\ncompression sniff off\ncompression minsize-res 1000");
    let verdict = blind.decide(&request(GET), &response("200"));
    assert!(matches!(verdict.decision, Decision::Look(_)));
    let looked = |whole| look(&verdict, b"\x1f\x8b\x08", whole, &blind.effective());
    assert_eq!(looked(Some(999)).reason(), Some(Reason::TooSmall));
    for enough in [Some(1000), None] {
        assert!(matches!(looked(enough).decision, Decision::Compress(_)), "nothing is sniffed");
    }
    assert!(matches!(blind.decide(&request(GET), &response("200\nContent-Length: 1000")).decision, Decision::Compress(_)));
}

#[test]
fn newer_versions_are_above_the_lowest() {
    let mut ask = request(GET);
    ask.version = Version::Http2;
    let setup = Setup::new("compression algo gzip");
    assert!(matches!(setup.decide(&ask, &response(OK)).decision, Decision::Look(_)));
}
