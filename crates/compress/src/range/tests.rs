use super::*;
use crate::testing::{Setup, lines, request};

const GZIP: &str = "compression algo gzip";

/// The fields that go to the server, but for Accept-Encoding.
fn guarded(setup: &Setup, head: &str) -> String {
    let mut ask = request(head);
    let offer = setup.offer(&ask);
    let before = lines(&ask.fields);
    let edited = guard(&mut ask, &offer, &setup.effective());
    assert_eq!(edited, lines(&ask.fields) != before);
    ask.fields.remove(b"Accept-Encoding");
    lines(&ask.fields)
}

#[test]
fn ranges_that_could_join_two_representations_go() {
    let setup = Setup::new(GZIP);
    const CODED: &str = "Accept-Encoding: gzip\n";
    const PLAIN: &str = "";
    for (accept, fields, dropped) in [
        // If-Range: a strong tag is the server's own, whatever its suffix.
        (CODED, "Range: bytes=5-\nIf-Range: \"x\"", false),
        (CODED, "Range: bytes=5-\nIf-Range: \"x-gzip\"", false),
        (PLAIN, "Range: bytes=5-\nIf-Range: \"x\"", false),
        (CODED, "Range: bytes=5-\nIf-Range: W/\"x\"", true),
        (PLAIN, "Range: bytes=5-\nIf-Range: W/\"x\"", true),
        (CODED, "Range: bytes=5-\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT", true),
        (PLAIN, "Range: bytes=5-\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT", true),
        (CODED, "Range: bytes=5-9\nIf-Range: ", true),
        (CODED, "Range: bytes=5-\nIf-Range: \"x", true),
        (CODED, "Range: bytes=5-\nIf-Range: \"x\"\nIf-Range: \"y\"", true),
        // If-Unmodified-Since, unless a strong If-Match makes it void.
        (PLAIN, "Range: bytes=5-9\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT", true),
        (CODED, "Range: bytes=5-\nIf-Unmodified-Since: x\nIf-Match: \"x\"", false),
        (CODED, "Range: bytes=5-\nIf-Match: \"x\"", false),
        (CODED, "Range: bytes=5-\nIf-Match: *", true),
        (CODED, "Range: bytes=5-\nIf-Match: \"x\", W/\"y\"", true),
        // Alone.
        (CODED, "Range: bytes=5-", true),
        (CODED, "Range: Bytes = 5-", true),
        (PLAIN, "Range: bytes=5-", false),
        (CODED, "Range: bytes=0-", false),
        (CODED, "Range: bytes=5-9", false),
        (CODED, "Range: bytes=-5", false),
        (CODED, "Range: bytes=0-1,5-", false),
        (CODED, "Range: lines=5-", false),
        ("Accept-Encoding: identity\n", "Range: bytes=5-", false),
        ("Accept-Encoding: gzip;q=0\n", "Range: bytes=5-", false),
    ] {
        let rest = guarded(&setup, &format!("GET /\n{accept}{fields}"));
        assert_eq!(!rest.contains("Range: "), dropped, "{accept}{fields}");
        assert!(!dropped || !rest.contains("If-Range"), "{rest}");
        let other = format!("PUT /\n{accept}{fields}");
        assert!(guarded(&setup, &other).contains("Range: "), "another method is left alone");
        let off = Setup::new("compression algo identity");
        assert!(guarded(&off, &format!("GET /\n{accept}{fields}")).contains("Range: "), "nothing of ours is held");
    }
}

#[test]
fn weak_tags_pass_from_those_who_take_every_coding() {
    let one = Setup::new(GZIP);
    let two = Setup::new("compression algo gzip deflate");
    const TAGS: &str = "If-None-Match: W/\"x\", \"y\"\nIf-Modified-Since: z";
    for (setup, accept, sent, expected) in [
        (&one, "gzip", TAGS, TAGS),
        (&one, "br", TAGS, "If-Modified-Since: z\nIf-None-Match: \"y\""),
        (&two, "gzip", TAGS, "If-Modified-Since: z\nIf-None-Match: \"y\""),
        (&two, "gzip, deflate;q=0.1", TAGS, TAGS),
        (&two, "*", TAGS, TAGS),
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
            assert_eq!(guarded(setup, &head), expected, "{head}");
        }
        let head = format!("PUT /\nAccept-Encoding: {accept}\n{sent}");
        assert_eq!(guarded(setup, &head), sent);
    }
}

#[test]
fn suffixes_come_off_where_the_coding_would_be_chosen() {
    let setup = Setup::new("compression algo gzip deflate\ncompression etag suffix");
    for (accept, sent, expected) in [
        ("gzip", "W/\"x;terse=gzip\"", "W/\"x\""),
        ("gzip", "W/\"x;terse=gzip\", \"y\"", "W/\"x\", \"y\""),
        ("gzip", "W/\"x;terse=deflate\"", "W/\"x;terse=deflate\""),
        ("gzip;q=0.5, deflate", "W/\"x;terse=gzip\"", "W/\"x;terse=gzip\""),
        ("br", "W/\"x;terse=gzip\"", "W/\"x;terse=gzip\""),
        ("br", "W/\"x\"", "W/\"x\""),
        ("gzip", "\"x-gzip\"", "\"x-gzip\""),
        ("gzip", "\"x;terse=gzip\"", "\"x;terse=gzip\""),
        ("gzip", "*", "*"),
    ] {
        let head = format!("GET /\nAccept-Encoding: {accept}\nIf-None-Match: {sent}");
        assert_eq!(guarded(&setup, &head), format!("If-None-Match: {expected}"), "{accept}");
    }
    assert_eq!(guarded(&setup, "GET /\nAccept-Encoding: gzip\nRange: bytes=5-\nIf-Range: W/\"x;terse=gzip\""), "");
}

#[test]
fn what_guards_a_change_is_left_alone() {
    let setup = Setup::new(GZIP);
    for fields in ["If-Match: W/\"x\"", "If-Match: \"x\"", "If-None-Match: *", "If-Unmodified-Since: x"] {
        assert_eq!(guarded(&setup, &format!("PUT /\nAccept-Encoding: gzip\n{fields}")), fields);
    }
    assert_eq!(guarded(&setup, "GET /\nAccept-Encoding: gzip\nIf-Match: W/\"x\""), "If-Match: W/\"x\"");
}
