use super::*;
use crate::decode::settings::{Decompression, Responses};
use crate::decode::{self, policy as decoding};
use crate::testing::{Setup, lines, request};

const GZIP: &str = "compression algo gzip";
const WEAKEN: &str = "compression algo gzip\ncompression etag weaken";

/// The fields that go to the server, but for Accept-Encoding, and whether a part may be joined.
fn guarded(setup: &Setup, head: &str) -> (String, bool) {
    let mut ask = request(head);
    let offer = setup.offer(&ask);
    let joins = guard(&mut ask, Some(&offer), None, setup.effective().etag());
    ask.fields.remove(b"Accept-Encoding");
    (lines(&ask.fields), joins)
}

/// Treatment of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Stays,
    /// A part that comes is looked at.
    Watched,
    Goes,
}

#[test]
fn ranges_that_could_join_two_representations_are_watched() {
    use Fate::{Goes, Stays, Watched};
    const CODED: &str = "Accept-Encoding: gzip\n";
    const PLAIN: &str = "";
    for (accept, fields, marked, weakened) in [
        // If-Range: a strong tag is the server's own, whatever its suffix.
        (CODED, "Range: bytes=5-\nIf-Range: \"x\"", Stays, Stays),
        (CODED, "Range: bytes=5-\nIf-Range: \"x-gzip\"", Stays, Stays),
        (PLAIN, "Range: bytes=5-\nIf-Range: \"x\"", Stays, Stays),
        (CODED, "Range: bytes=5-\nIf-Range: W/\"x\"", Watched, Goes),
        (PLAIN, "Range: bytes=5-\nIf-Range: W/\"x\"", Watched, Goes),
        (PLAIN, "Range: bytes=5-\nIf-Range: W/\"x;terse=gzip\"", Goes, Goes),
        (CODED, "Range: bytes=5-\nIf-Range: \"x;terse=gzip\"", Goes, Goes),
        (CODED, "Range: bytes=5-\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT", Watched, Watched),
        (PLAIN, "Range: bytes=5-\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT", Watched, Watched),
        (CODED, "Range: bytes=5-9\nIf-Range: ", Watched, Watched),
        (CODED, "Range: bytes=5-\nIf-Range: \"x", Watched, Watched),
        (CODED, "Range: bytes=5-\nIf-Range: \"x\"\nIf-Range: \"y\"", Watched, Watched),
        // If-Unmodified-Since, unless a strong If-Match makes it void.
        (PLAIN, "Range: bytes=5-9\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT", Watched, Watched),
        (CODED, "Range: bytes=5-\nIf-Unmodified-Since: x\nIf-Match: \"x\"", Stays, Stays),
        (CODED, "Range: bytes=5-\nIf-Match: \"x\"", Stays, Stays),
        (CODED, "Range: bytes=5-\nIf-Match: *", Watched, Watched),
        (CODED, "Range: bytes=5-\nIf-Match: \"x\", W/\"y\"", Watched, Goes),
        (CODED, "Range: bytes=5-9\nIf-Match: W/\"x;terse=gzip\"", Goes, Goes),
        // Alone.
        (CODED, "Range: bytes=5-", Watched, Watched),
        (CODED, "Range: Bytes = 5-", Watched, Watched),
        (PLAIN, "Range: bytes=5-", Stays, Stays),
        (CODED, "Range: bytes=0-", Stays, Stays),
        (CODED, "Range: bytes=5-9", Stays, Stays),
        (CODED, "Range: bytes=-5", Stays, Stays),
        (CODED, "Range: bytes=0-1,5-", Stays, Stays),
        (CODED, "Range: lines=5-", Stays, Stays),
        ("Accept-Encoding: identity\n", "Range: bytes=5-", Stays, Stays),
        ("Accept-Encoding: gzip;q=0\n", "Range: bytes=5-", Stays, Stays),
    ] {
        for (lines, expected) in [(GZIP, marked), (WEAKEN, weakened)] {
            let setup = Setup::new(lines);
            let fate = |head: &str| match guarded(&setup, head) {
                (rest, joins) if rest.contains("Range: ") => {
                    if joins {
                        Watched
                    } else {
                        Stays
                    }
                }
                (rest, joins) => {
                    assert!(!joins && !rest.contains("If-Range"), "{rest}");
                    Goes
                }
            };
            assert_eq!(fate(&format!("GET /\n{accept}{fields}")), expected, "{lines}: {accept}{fields}");
            let with_body = fate(&format!("GET /\nContent-Length: 1\n{accept}{fields}"));
            assert_eq!(with_body, if expected == Watched { Goes } else { expected }, "it cannot be sent again");
            assert_eq!(fate(&format!("PUT /\n{accept}{fields}")), Stays, "another method is left alone");
        }
        let off = Setup::new("compression algo identity");
        let (rest, joins) = guarded(&off, &format!("GET /\n{accept}{fields}"));
        assert!(rest.contains("Range: ") && !joins, "nothing of ours is held");
    }
}

#[test]
fn marks_come_off_where_the_client_can_use_the_coding() {
    let setup = Setup::new("compression algo br gzip deflate");
    for (accept, sent, expected) in [
        ("gzip", "W/\"x;terse=gzip\"", "\"x\""),
        ("gzip", "W/\"x;terse=w-gzip\"", "W/\"x\""),
        ("gzip", "\"x;terse=gzip\"", "\"x\""),
        ("gzip", "W/\"x;terse=gzip\", \"y\"", "\"x\", \"y\""),
        ("gzip", "\"x\", W/\"x;terse=gzip\"", "\"x\""),
        ("gzip, br", "W/\"x;terse=gzip\", W/\"x;terse=br\"", "\"x\""),
        ("gzip", "W/\"x;terse=deflate\"", "W/\"x;terse=deflate\""),
        ("gzip;q=0.5, deflate", "W/\"x;terse=gzip\"", "\"x\""),
        ("zstd", "W/\"x;terse=gzip\"", "W/\"x;terse=gzip\""),
        ("", "W/\"x;terse=identity\"", "\"x\""),
        ("", "W/\"x\"", "W/\"x\""),
        ("", "\"x\", y", "\"x\", y"),
        ("gzip", "\"x-gzip\"", "\"x-gzip\""),
        ("gzip", "*", "*"),
    ] {
        for method in ["GET", "HEAD"] {
            let head = format!("{method} /\nAccept-Encoding: {accept}\nIf-None-Match: {sent}");
            assert_eq!(guarded(&setup, &head).0, format!("If-None-Match: {expected}"), "{accept}");
        }
    }
}

#[test]
fn what_guards_a_change_finds_the_servers_tag() {
    for (lines, sent, expected) in [
        (GZIP, "W/\"x;terse=gzip\"", "\"x\""),
        (GZIP, "W/\"x;terse=w-br\"", "W/\"x\""),
        (GZIP, "W/\"x\"", "W/\"x\""),
        (GZIP, "\"x\"", "\"x\""),
        (GZIP, "*", "*"),
        (WEAKEN, "W/\"x\"", "\"x\", W/\"x\""),
        (WEAKEN, "W/\"x;terse=gzip\"", "\"x\""),
    ] {
        let setup = Setup::new(lines);
        for (method, field) in
            [("PUT", "If-Match"), ("DELETE", "If-Match"), ("PATCH", "If-None-Match"), ("GET", "If-Match"), ("HEAD", "If-Match")]
        {
            // The client's codings do not matter: it does not ask for the representation that the tag names.
            let (rest, _) = guarded(&setup, &format!("{method} /\n{field}: {sent}"));
            assert_eq!(rest, format!("{field}: {expected}"), "{lines} | {method}");
        }
    }
    assert_eq!(guarded(&Setup::new(GZIP), "PUT /\nIf-Unmodified-Since: x").0, "If-Unmodified-Since: x");
}

/// RFC 4918 section 10.4: `If` guards a change by tags in brackets.
#[test]
fn what_webdav_guards_a_change_by_finds_the_servers_tag() {
    let setup = Setup::new(GZIP);
    for (sent, expected) in [
        ("([W/\"x;terse=gzip\"])", "([\"x\"])"),
        ("(<urn:uuid:1> [W/\"x;terse=w-gzip\"]) (Not [W/\"y;terse=gzip\"])", "(<urn:uuid:1> [W/\"x\"]) (Not [\"y\"])"),
        ("</a[> ([\"x;terse=gzip\"])", "</a[> ([\"x\"])"),
        ("</[\"x;terse=gzip\"]> ([\"x\"])", "</[\"x;terse=gzip\"]> ([\"x\"])"),
        ("([W/\"x\"] [\"x-gzip\"])", "([W/\"x\"] [\"x-gzip\"])"),
        ("([\"x;terse=gzip\"", "([\"x;terse=gzip\""),
        ("<a ([\"x;terse=gzip\"])", "<a ([\"x;terse=gzip\"])"),
    ] {
        for method in ["PUT", "LOCK", "MOVE"] {
            assert_eq!(guarded(&setup, &format!("{method} /\nIf: {sent}")).0, format!("If: {expected}"), "{method} {sent}");
        }
    }
}

#[test]
fn weakened_tags_pass_from_those_who_take_every_coding() {
    let one = Setup::new(WEAKEN);
    let two = Setup::new("compression algo gzip deflate\ncompression etag weaken");
    const TAGS: &str = "If-None-Match: W/\"x\", \"y\"\nIf-Modified-Since: z";
    const BOTH: &str = "If-Modified-Since: z\nIf-None-Match: \"x\", W/\"x\", \"y\"";
    for (setup, accept, sent, expected) in [
        (&one, "gzip", TAGS, BOTH),
        (&one, "br", TAGS, "If-Modified-Since: z\nIf-None-Match: \"y\""),
        (&two, "gzip", TAGS, "If-Modified-Since: z\nIf-None-Match: \"y\""),
        (&two, "gzip, deflate;q=0.1", TAGS, BOTH),
        (&two, "*", TAGS, BOTH),
        (&one, "", "If-None-Match: W/\"x\"\nIf-Modified-Since: z", ""),
        (&one, "", "If-None-Match: \"x\"\nIf-Modified-Since: z", "If-None-Match: \"x\"\nIf-Modified-Since: z"),
        (&one, "", "If-None-Match: *", "If-None-Match: *"),
        (&one, "", "If-None-Match: \"x\", y", ""),
        (&one, "", "If-Modified-Since: z", "If-Modified-Since: z"),
        (&one, "gzip", "If-None-Match: \"x\", y", "If-None-Match: \"x\", y"),
        (&one, "", "If-None-Match: \"a\"\nIf-None-Match: W/\"b\", \"c\"", "If-None-Match: \"a\", \"c\""),
    ] {
        for method in ["GET", "HEAD"] {
            let head = format!("{method} /\nAccept-Encoding: {accept}\n{sent}");
            assert_eq!(guarded(setup, &head).0, expected, "{head}");
        }
    }
}

#[test]
fn decoded_representations_have_tags_of_their_own_too() {
    let on = Decompression { response: Some(Responses::On), ..Decompression::default() };
    let settings = decode::Effective::new(Some(&on), None);
    for (fields, expected, joins) in [
        ("If-None-Match: W/\"x;terse=identity\"", "If-None-Match: \"x\"", false),
        ("If-None-Match: W/\"x;terse=br\"", "If-None-Match: W/\"x;terse=br\"", false),
        ("Range: bytes=5-\nIf-Range: W/\"x;terse=identity\"", "", false),
        ("Range: bytes=5-", "Range: bytes=5-", true),
        ("Range: bytes=0-", "Range: bytes=0-", false),
    ] {
        let mut get = request(&format!("GET /\n{fields}"));
        let ask = decoding::ask(&get, &settings);
        assert_eq!(guard(&mut get, None, ask.as_deref(), EtagMode::Suffix), joins, "{fields}");
        assert_eq!(lines(&get.fields), expected);
    }
}
