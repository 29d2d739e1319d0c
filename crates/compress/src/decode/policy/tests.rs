use super::*;
use crate::decode::settings::Decompression;
use crate::testing::{Setup, request, response};
use crate::{Load, policy as compression};

const ON: Decompression = Decompression {
    response: Some(Responses::On),
    request: None,
    accept: None,
    response_max_bytes: None,
    request_max_bytes: None,
    max_ratio: None,
};

fn asked(head: &str) -> Box<Ask> {
    ask(&request(head), &Effective::new(Some(&ON), None)).unwrap()
}

/// The codings that are undone, and how many stay.
fn undone(decision: Decision) -> Option<(Vec<Coding>, usize)> {
    match decision {
        Decision::Decode(plan) => Some((plan.codings().to_vec(), plan.keep)),
        _ => None,
    }
}

#[test]
fn nothing_is_asked_where_nothing_is_decoded() {
    let get = request("GET /");
    assert!(ask(&get, &Effective::new(None, None)).is_none());
    let off = Decompression { response: Some(Responses::Off), ..ON };
    assert!(ask(&get, &Effective::new(Some(&ON), Some(&off))).is_none());
    assert!(decide_request(&get, false, &Effective::new(Some(&ON), None)).is_none());
}

#[test]
fn what_the_client_does_not_take_is_undone_from_outside() {
    use Coding::{Brotli, Deflate, Gzip, Zstd};
    for (accepts, coding, expected) in [
        ("", "gzip", Some((vec![Gzip], 0))),
        ("br", "X-GZIP", Some((vec![Gzip], 0))),
        ("gzip;q=0, *", "gzip", Some((vec![Gzip], 0))),
        ("gzip", "gzip", None),
        ("*", "deflate", None),
        ("br", "deflate", Some((vec![Deflate], 0))),
        ("br", "br, gzip", Some((vec![Gzip], 1))),
        ("gzip", "br, gzip", Some((vec![Gzip, Brotli], 0))),
        ("br, gzip", "br, identity, gzip", None),
        ("gzip", "gzip, zstd, zstd", Some((vec![Zstd, Zstd], 1))),
    ] {
        let ask = asked(&format!("GET /\nAccept-Encoding: {accepts}"));
        let decision = decide(&ask, &response(&format!("200\nContent-Encoding: {coding}")), false);
        assert_eq!(undone(decision), expected, "{coding} for {accepts}");
        if expected.is_none() {
            assert_eq!(decision, Decision::Pass(Reason::Accepted));
        }
    }
}

#[test]
fn each_reason_has_its_case() {
    for (asks, answers, reason) in [
        ("GET /", "200", Reason::NotCoded),
        ("GET /", "200\nContent-Encoding: identity", Reason::NotCoded),
        ("GET /\nAccept-Encoding: gzip", "200\nContent-Encoding: gzip", Reason::Accepted),
        ("GET /", "200\nContent-Encoding: compress", Reason::UnknownCoding),
        ("GET /", "200\nContent-Encoding: gzip, aes128gcm", Reason::UnknownCoding),
        ("GET /", "200\nContent-Encoding: gzip, gzip, gzip, gzip", Reason::TooManyCodings),
        ("GET /", "200\nContent-Encoding: a, a, a, a, a, a, a, a, a", Reason::TooManyCodings),
        ("GET /", "304\nContent-Encoding: gzip", Reason::NoBody),
        ("GET /", "204\nContent-Encoding: gzip", Reason::NoBody),
        ("GET /", "200\nContent-Encoding: gzip\nContent-Length: 0", Reason::NoBody),
        ("GET /\nRange: bytes=5-9", "206\nContent-Encoding: gzip", Reason::Partial),
        ("GET /", "200\nContent-Encoding: gzip\nContent-Range: bytes 0-1/2", Reason::Partial),
        ("GET /", "101\nContent-Encoding: gzip", Reason::Upgrade),
        ("CONNECT a:1", "200\nContent-Encoding: gzip", Reason::Upgrade),
        ("GET /", "200\nContent-Encoding: gzip\nCache-Control: public, No-Transform", Reason::NoTransform),
        ("GET /\nCache-Control: no-transform", "200\nContent-Encoding: gzip", Reason::RequestNoTransform),
        ("GET /", "200\nContent-Encoding: gzip\nContent-Type: application/grpc", Reason::Grpc),
    ] {
        let decision = decide(&asked(asks), &response(answers), false);
        assert_eq!(decision, Decision::Pass(reason), "{asks:?} {answers:?}");
    }
    let coded = response("500\nContent-Encoding: gzip");
    assert_eq!(decide(&asked("GET /"), &coded, true), Decision::Pass(Reason::BufferLimit));
    assert_eq!(undone(decide(&asked("GET /"), &coded, false)), Some((vec![Coding::Gzip], 0)), "any status with a body");
}

/// Parts of coded bytes go to no client that might join them with decoded ones.
#[test]
fn parts_that_may_be_joined_are_refused() {
    let part = response("206\nContent-Encoding: gzip\nContent-Range: bytes 5-9/10");
    for (fields, refused) in [
        ("Range: bytes=5-", true),
        ("Range: bytes=5-9", false),
        ("Range: bytes=0-", false),
        ("Range: bytes=5-9\nIf-Range: W/\"x\"", true),
        ("Range: bytes=5-9\nIf-Range: Tue, 01 Jan 2019 00:00:00 GMT", true),
        ("Range: bytes=5-\nIf-Range: \"x\"", false),
        ("Range: bytes=5-9\nIf-Unmodified-Since: Tue, 01 Jan 2019 00:00:00 GMT", true),
        ("Range: bytes=5-\nIf-Match: \"x\"", false),
    ] {
        let decision = decide(&asked(&format!("GET /\n{fields}")), &part, false);
        let expected = if refused { Decision::Refuse } else { Decision::Pass(Reason::Partial) };
        assert_eq!(decision, expected, "{fields:?}");
        let taker = asked(&format!("GET /\nAccept-Encoding: gzip\n{fields}"));
        assert_eq!(decide(&taker, &part, false), Decision::Pass(Reason::Accepted));
    }
    // Parts of plain bytes are those of the plain representation.
    let plain = response("206\nContent-Range: bytes 5-9/10");
    assert_eq!(decide(&asked("GET /\nRange: bytes=5-"), &plain, false), Decision::Pass(Reason::NotCoded));
}

#[test]
fn requests_lose_what_servers_cannot_take() {
    use Coding::{Brotli, Gzip};
    let settings = Decompression { request: Some(vec![Gzip]), ..Decompression::default() };
    let settings = Effective::new(None, Some(&settings));
    for (fields, expected) in [
        ("Content-Encoding: gzip", Ok((vec![Gzip], 0))),
        ("Content-Encoding: br, gzip", Ok((vec![Gzip], 1))),
        ("Content-Encoding: gzip, br", Ok((vec![Brotli, Gzip], 0))),
        ("Content-Encoding: br", Err(Reason::Accepted)),
        ("Content-Encoding: compress", Err(Reason::Accepted)),
        ("Content-Encoding: gzip, compress", Err(Reason::UnknownCoding)),
        ("Content-Encoding: gzip, gzip, gzip, gzip", Err(Reason::TooManyCodings)),
        ("Content-Encoding: gzip\nContent-Length: 0", Err(Reason::NoBody)),
        ("Content-Encoding: gzip\nUpgrade: x", Err(Reason::Upgrade)),
        ("Content-Encoding: gzip\nContent-Range: bytes 0-1/2", Err(Reason::Partial)),
        ("Content-Encoding: gzip\nCache-Control: no-transform", Err(Reason::RequestNoTransform)),
        ("Content-Encoding: gzip\nContent-Type: application/grpc+proto", Err(Reason::Grpc)),
        ("X: y", Err(Reason::NotCoded)),
    ] {
        let mut post = request(&format!("POST /\n{fields}"));
        if post.body == BodyLength::None {
            post.body = BodyLength::Framed;
        }
        let decision = decide_request(&post, false, &settings).unwrap();
        match expected {
            Ok(expected) => assert_eq!(undone(decision), Some(expected), "{fields:?}"),
            Err(reason) => assert_eq!(decision, Decision::Pass(reason), "{fields:?}"),
        }
        if matches!(decision, Decision::Decode(_)) {
            assert_eq!(decide_request(&post, true, &settings), Some(Decision::Pass(Reason::BufferLimit)));
        }
    }
}

#[test]
fn a_better_coding_is_worth_decoding_for() {
    let setup = Setup::new("compression algo br gzip\ncompression type text/");
    let effective = setup.effective();
    let decide_better = |accepts: &str, answers: &str| {
        let head = format!("GET /\nAccept-Encoding: {accepts}");
        let offer = compression::offer(&request(&head), None, Default::default(), &effective);
        undone_plan(recode(&asked(&head), &offer, &response(answers), &Load::IDLE, &effective))
    };
    let coded = "200\nContent-Type: text/css\nContent-Encoding: gzip";
    assert_eq!(decide_better("gzip, br", coded), Some(vec![Coding::Gzip]));
    for (accepts, answers) in [
        ("gzip", coded),
        ("gzip, br;q=0.5", coded),
        ("gzip, br", "200\nContent-Type: text/css\nContent-Encoding: br"),
        ("gzip, br", "200\nContent-Type: image/png\nContent-Encoding: gzip"),
        ("gzip, br", "200\nContent-Type: text/css\nContent-Encoding: gzip\nCache-Control: no-transform"),
        ("gzip, br", "206\nContent-Type: text/css\nContent-Encoding: gzip"),
        ("gzip, br", "200\nContent-Type: text/css"),
    ] {
        assert_eq!(decide_better(accepts, answers), None, "{accepts} {answers:?}");
    }
}

fn undone_plan(plan: Option<Plan>) -> Option<Vec<Coding>> {
    plan.map(|plan| plan.codings().to_vec())
}
