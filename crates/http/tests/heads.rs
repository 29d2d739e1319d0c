//! Heads that must be understood, and heads that must be refused.

use proptest::prelude::*;
use terse_http::h1::{Parsed, Reading, Targets, encode, parse_request, parse_request_with, parse_response};
use terse_message::{BodyLength, Conformance, Known, Malformed, Request, Response, Version};

fn request(text: &str) -> Result<(Parsed, Request), Malformed> {
    let mut request = Request::default();
    parse_request(text.as_bytes(), &mut request).map(|parsed| (parsed, request))
}

fn response(text: &str, method: &str) -> Result<Response, Malformed> {
    let mut response = Response::default();
    match parse_response(text.as_bytes(), method.as_bytes(), &mut response)? {
        Parsed::Complete(n) if n == text.len() => Ok(response),
        other => panic!("{other:?} of {text:?}"),
    }
}

#[test]
fn requests_in_every_form() {
    let (parsed, r) = request("\r\nGET /a?b HTTP/1.1\r\nHost: h\r\nX:\r\nY:  z \r\n\r\nrest").unwrap();
    assert_eq!(parsed, Parsed::Complete(44));
    assert_eq!((r.method(), r.target(), r.version, r.body), (&b"GET"[..], &b"/a?b"[..], Version::Http11, BodyLength::None));
    assert_eq!(r.fields.get(b"x"), Some(&b""[..]));
    assert_eq!(r.fields.get(b"y"), Some(&b"z"[..]));
    for ok in [
        "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://h:80/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://H/ HTTP/1.1\r\nHost: h:80\r\n\r\n",
        "GET http://u:p@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET https://h:443/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: :8443example.org\r\n\r\n",
    ] {
        assert!(matches!(request(ok), Ok((Parsed::Complete(n), _)) if n == ok.len()), "{ok:?}: {:?}", request(ok));
    }
    assert_eq!(request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n").unwrap().1.body, BodyLength::Exact(10));
    assert_eq!(request("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n").unwrap().1.body, BodyLength::Framed);
}

#[test]
fn smuggling_and_broken_requests_are_refused() {
    use Malformed::*;
    let host = "Host: h\r\n";
    for (line, fields, why) in [
        ("POST / HTTP/1.1", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", Framing),
        ("POST / HTTP/1.1", "Content-Length: 3\r\nContent-Length: 3\r\n", ContentLength),
        ("POST / HTTP/1.1", "Content-Length: 3, 3\r\n", ContentLength),
        ("POST / HTTP/1.1", "Content-Length: +3\r\n", ContentLength),
        ("POST / HTTP/1.1", "Content-Length: -3\r\n", ContentLength),
        ("POST / HTTP/1.1", "Content-Length: 0x3\r\n", ContentLength),
        ("POST / HTTP/1.1", "Content-Length:\r\n", ContentLength),
        ("POST / HTTP/1.1", "Content-Length: 99999999999999999999\r\n", ContentLength),
        ("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n", Framing),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked, chunked\r\n", Framing),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked, gzip\r\n", Framing),
        ("POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n", TransferCoding),
        ("POST / HTTP/1.1", "Transfer-Encoding: xchunked\r\n", Framing),
        ("POST / HTTP/1.1", "Transfer-Encoding:\r\n", Framing),
        ("GET / HTTP/1.1", "A : b\r\n", FieldName),
        ("GET / HTTP/1.1", "A: b\r\n c\r\n", Folding),
        ("GET / HTTP/1.1", "A: b\0c\r\n", FieldValue),
        ("GET / HTTP/1.1", "A: b\rc\r\n", FieldValue),
        ("GET / HTTP/1.1", "A: b\n", LineEnd),
        ("GET / HTTP/1.1", ": b\r\n", FieldName),
        ("GET / HTTP/1.1", "Host: other\r\n", Host),
        ("GET http://g/ HTTP/1.1", "", Host),
        ("GET http://h:81/ HTTP/1.1", "", Host),
        ("GET * HTTP/1.1", "", Target),
        ("GET a HTTP/1.1", "", Target),
        ("GET /a#b HTTP/1.1", "", Target),
        ("CONNECT / HTTP/1.1", "", Target),
        ("CONNECT h HTTP/1.1", "", Target),
        ("CONNECT h:80 HTTP/1.1", "Content-Length: 3\r\n", Framing),
        ("CONNECT h:80 HTTP/1.0", "Content-Length: 3\r\n", Framing),
        ("CONNECT h:80 HTTP/1.1", "Content-Length: x\r\n", ContentLength),
        ("CONNECT h:80 HTTP/1.1", "Transfer-Encoding: chunked\r\n", Framing),
        ("CONNECT h:80 HTTP/1.1", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", Framing),
        ("CONNECT h:80 HTTP/1.0", "Transfer-Encoding: chunked\r\n", Framing),
        ("OPTIONS */x HTTP/1.1", "", Target),
        ("GET / HTTP/2.0", "", Version),
        ("GET / HTTP/1.1x", "", LineEnd),
        ("GET / http/1.1", "", Version),
        ("G{T / HTTP/1.1", "", Method),
    ] {
        let text = format!("{line}\r\n{host}{fields}\r\n");
        assert!(matches!(request(&text), Err(found) if found == why), "{text:?}: {:?}", request(&text));
    }
    for (text, why) in [
        ("GET / HTTP/1.1\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: a:1b\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: :1b:2\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: :1b/c\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: :1c@d\r\n\r\n", Host),
        ("GET http://:1b/ HTTP/1.1\r\nHost: :1b\r\n\r\n", Target),
        ("GET http://:80/ HTTP/1.1\r\nHost: :80\r\n\r\n", Target),
        ("GET / HTTP/1.1\nHost: h\r\n\r\n", LineEnd),
        ("GET / HTTP/1.1\r\nHost: h\r\n\n", LineEnd),
        ("GET / HTTP/1.1\r\nHost: h\n\r\n", LineEnd),
        ("GET / HTTP/1.1\nHost", LineEnd),
        ("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", LineEnd),
        ("\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", FirstLine),
    ] {
        assert!(matches!(request(text), Err(found) if found == why), "{text:?}: {:?}", request(text));
    }
    // A CONNECT has no length: it may send one of 0, and its server is sent none.
    let (_, empty) = request("CONNECT h:80 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert!(empty.body == BodyLength::None && !empty.fields.has(Known::ContentLength) && !empty.must_close);
    let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(200));
    assert!(matches!(request(&many), Err(TooManyFields)));
}

/// However `chunked` was written, it is forwarded in the form that every reader understands.
#[test]
fn chunks_are_told_in_one_way() {
    let odd = [":chunked", ":\tchunked", ": CHUNKED", ": ,chunked", ": chunked,", ": chunked \r\nTransfer-Encoding: ,"];
    for value in odd {
        let (_, request) = request(&format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding{value}\r\n\r\n")).unwrap();
        let response = response(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding{value}\r\n\r\n"), "GET").unwrap();
        for fields in [&request.fields, &response.fields] {
            let mut out = Vec::new();
            fields.write_to(&mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(text.ends_with("Transfer-Encoding: chunked\r\n"), "{value:?}: {text:?}");
            assert_eq!(text.matches("Transfer").count(), 1, "{value:?}: {text:?}");
        }
    }
    let (_, usual) = request("POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\nA: b\r\n\r\n").unwrap();
    assert_eq!(usual.fields.line(1), Some(&b"transfer-encoding: chunked"[..]));
}

#[test]
fn loose_targets_may_hold_fragments_and_text_and_no_more() {
    let loosely = |line: &str| {
        let mut request = Request::default();
        let text = format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n");
        let loose = Reading { targets: Targets::Loose, ..Reading::default() };
        parse_request_with(text.as_bytes(), &mut request, loose).map(|_| request.target().to_vec())
    };
    for target in [
        "/#a",
        "/a#b#c?d",
        "/#@g/",
        "/ä",
        "/?ö=€",
        "/\u{10ffff}",
        "/\u{d7ff}\u{e000}",
        "http://h/#a",
        "http://h/ä",
        "http://h?#a",
        "http://h#a",
        "http://h:80#",
    ] {
        let line = format!("GET {target}");
        assert_eq!(loosely(&line).as_deref(), Ok(target.as_bytes()));
        assert!(request(&format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n")).is_err(), "{target}");
    }
    for odd in [
        &b"/\xff\xfe"[..],
        b"/\xc3",
        b"/\xa9",
        b"/..\xc0\xaf",
        b"/..\xe0\x80\xaf",
        b"/..\xf0\x80\x80\xaf",
        b"/\xed\xa0\x80",
        b"/\xed\xbf\xbf?a",
        b"/?q=\xf4\x90\x80\x80",
        b"/?q=\xf5\x80\x80\x80",
        b"/#\xfc\x80\x80\x80\x80\xaf",
        b"/\xe2\x82?",
        b"/\xc2\x85",
        b"http://h/\xc0\xaf",
    ] {
        let text = [b"GET ", odd, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
        for conformance in [Conformance::Rfc, Conformance::HAProxy] {
            let loose = Reading { targets: Targets::Loose, conformance };
            let parsed = parse_request_with(&text, &mut Request::default(), loose);
            assert_eq!(parsed, Err(Malformed::Target), "{}", odd.escape_ascii());
        }
    }
    for line in [
        "GET /a\0b",
        "GET /a\tb",
        "GET /a b",
        "GET /a\x7fb",
        "GET /a\rb",
        "GET #a",
        "GET *#a",
        "GET http://h#a/",
        "GET http://g#@h/",
        "GET http://h#@g",
        "GET http://h#:81",
        "GET http://h#?a",
        "GET http://h#ä",
        "GET http://g#h",
        "GET http://ä@h/",
        "GET http://hä/",
        "OPTIONS *#a",
        "CONNECT h:80#a",
        "CONNECT ä:80",
    ] {
        assert!(loosely(line).is_err(), "{line:?}");
    }
}

fn as_haproxy(text: &str) -> Result<Request, Malformed> {
    let mut request = Request::default();
    let reading = Reading { conformance: Conformance::HAProxy, ..Reading::default() };
    match parse_request_with(text.as_bytes(), &mut request, reading)? {
        Parsed::Complete(n) if n == text.len() => Ok(request),
        other => panic!("{other:?} of {text:?}"),
    }
}

fn sent(request: &Request) -> String {
    let mut out = Vec::new();
    encode::request_head(request, encode::request_version(request, true), encode::Connection::Implied, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn what_haproxy_takes_goes_on_as_the_rfc_has_it() {
    for (text, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
        ("POST  /1 \t HTTP/1.1\r\nHost: h\r\n\r\n", "POST /1 HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n",
        ),
        ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 000, 00\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
        ("GET http://u:p@h:80 HTTP/1.1\r\nHost: h:\r\n\r\n", "GET http://u:p@h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("GET https://h:80/ HTTP/1.1\r\nHost: h:80\r\n\r\n", "GET https://h:80/ HTTP/1.1\r\nHost: h:80\r\n\r\n"),
        ("GET http://h/ HTTP/1.1\r\nHost: h:80\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: h:80\r\n\r\n"),
        ("GET http://h?a HTTP/1.1\r\n\r\n", "GET http://h?a HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("GET http://:?a HTTP/1.1\r\nHost: :80\r\n\r\n", "GET /?a HTTP/1.1\r\nHost: \r\n\r\n"),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("CONNECT h:81 HTTP/1.1\r\n\r\n", "CONNECT h:81 HTTP/1.1\r\nHost: h:81\r\n\r\n"),
        ("CONNECT h:80 HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "CONNECT h:80 HTTP/1.0\r\nHost: h\r\n\r\n"),
    ] {
        assert_eq!(as_haproxy(text).map(|request| sent(&request)).as_deref(), Ok(expected), "{text:?}");
        assert!(matches!(request(expected), Ok((Parsed::Complete(_), _))), "{expected:?}");
    }
    for text in [
        "POST / HTTP/1.1\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
    ] {
        let taken = as_haproxy(text).unwrap();
        assert!(taken.must_close && taken.body == BodyLength::Framed && !taken.fields.has(Known::ContentLength), "{text:?}");
    }
    for (text, closes) in [
        ("CONNECT h:80 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", false),
        ("CONNECT h:80 HTTP/1.1\r\nContent-Length: 3\r\n\r\n", true),
        ("CONNECT h:80 HTTP/1.1\r\nContent-Length: 3, 3\r\nTransfer-Encoding: chunked\r\n\r\n", true),
        ("CONNECT h:80 HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", true),
    ] {
        let taken = as_haproxy(text).unwrap();
        assert_eq!((taken.body, taken.must_close), (BodyLength::None, closes), "{text:?}");
        assert!(!taken.fields.has(Known::ContentLength) && !taken.fields.has(Known::TransferEncoding), "{text:?}");
    }
    use Malformed::*;
    for (text, why) in [
        ("CONNECT h:80 HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", TransferCoding),
        ("POST / HTTP/1.1\r\nContent-Length: 3, 4\r\n\r\n", ContentLength),
        ("POST / HTTP/1.1\r\nContent-Length: 3,\r\n\r\n", ContentLength),
        ("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 04\r\n\r\n", ContentLength),
        ("POST / HTTP/1.1\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n", ContentLength),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", Framing),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", TransferCoding),
        ("GET /a b HTTP/1.1\r\n\r\n", Target),
        ("GET  HTTP/1.1\r\n\r\n", Target),
        ("GET http://u@:80/ HTTP/1.1\r\nHost:\r\n\r\n", Target),
        ("GET http://:u@:80/ HTTP/1.1\r\nHost:\r\n\r\n", Target),
        ("GET http://h/ HTTP/1.1\r\nHost: g\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", Host),
    ] {
        assert_eq!(as_haproxy(text).map(|_| ()), Err(why), "{text:?}");
    }
    assert_eq!((TransferCoding.status(Conformance::Rfc), TransferCoding.status(Conformance::HAProxy)), (501, 422));
}

#[test]
fn responses_and_their_bodies() {
    for (text, method, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", BodyLength::Exact(5)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "GET", BodyLength::Exact(0)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", BodyLength::None),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", BodyLength::None),
        ("HTTP/1.1 204\r\n\r\n", "GET", BodyLength::None),
        ("HTTP/1.1 101 S\r\n\r\n", "GET", BodyLength::None),
        ("HTTP/1.1 200 \r\n\r\n", "CONNECT", BodyLength::None),
        ("HTTP/1.0 200 OK\r\n\r\n", "GET", BodyLength::UntilClose),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", BodyLength::Framed),
    ] {
        assert_eq!(response(text, method).unwrap().body, body, "{text:?}");
    }
    let both = response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET").unwrap();
    assert!(!both.fields.has(Known::ContentLength) && both.body == BodyLength::Framed && both.must_close);
    assert!(response("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET").unwrap().must_close);
    assert!(!response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET").unwrap().must_close);
    for bad in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n",
        "HTTP/1.1 2x0 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
    ] {
        assert!(response(bad, "GET").is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn any_prefix_is_partial_or_refused(cut in 0usize..60) {
        let text = "\r\n\r\nGET /a?b HTTP/1.1\r\nHost: h\r\nX: y\r\nAccept: */*\r\n\r\n";
        let cut = cut.min(text.len() - 1);
        prop_assert!(matches!(request(&text[..cut]), Ok((Parsed::Partial, _))));
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_request(&bytes, &mut Request::default());
        let _ = parse_response(&bytes, b"GET", &mut Response::default());
    }

    #[test]
    fn a_head_of_odd_bytes_is_refused_or_unambiguous(noise in "[ -~\t\r\n\0]{0,40}") {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {noise}\r\n\r\n");
        if let Ok((Parsed::Complete(_), r)) = request(&text) {
            let mut out = Vec::new();
            terse_http::h1::encode::request_head(&r, r.version, terse_http::h1::encode::Connection::Implied, &mut out);
            let mut again = Request::default();
            prop_assert_eq!(parse_request(&out, &mut again), Ok(Parsed::Complete(out.len())));
            prop_assert_eq!(r.fields.iter().collect::<Vec<_>>(), again.fields.iter().collect::<Vec<_>>());
        }
    }
}

/// Lines as clients write them, and as they do not.
fn odd_head() -> impl Strategy<Value = String> {
    let first = prop_oneof![
        4 => Just("GET / HTTP/1.1\r\n".to_owned()),
        1 => "(GET|P@ST|)[ \t]{0,2}[ -~é]{0,6}[ ]{0,2}(HTTP/1.[012]|HTTP/2)[ ]?(\r\n|\n|\r)",
    ];
    let line = prop_oneof![
        3 => "[A-Za-z-]{1,8}:[ \t]{0,2}[ -~é]{0,12}[ \t]{0,2}\r\n",
        1 => "[ -~\t]{0,4}[:]?[ -~\t\r\n\0\u{7f}]{0,6}(\r\n|\n|\r)?",
    ];
    (first, prop::collection::vec(line, 0..4)).prop_map(|(first, lines)| format!("{first}Host: h\r\n{}\r\n", lines.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// `httparse` is more forgiving. Where both take a head, they agree; a head that only `httparse` takes is refused for a
    /// reason of ours.
    #[test]
    fn heads_say_what_another_parser_finds_in_them(head in odd_head()) {
        let mut slots = [httparse::EMPTY_HEADER; 64];
        let mut theirs = httparse::Request::new(&mut slots);
        let found = theirs.parse(head.as_bytes());
        match request(&head) {
            Ok((Parsed::Complete(n), ours)) => {
                prop_assert_eq!(found, Ok(httparse::Status::Complete(n)));
                prop_assert_eq!(ours.method(), theirs.method.unwrap_or_default().as_bytes());
                prop_assert_eq!(ours.target(), theirs.path.unwrap_or_default().as_bytes());
                let fields: Vec<_> = theirs.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
                prop_assert_eq!(ours.fields.iter().collect::<Vec<_>>(), fields);
            }
            Ok((Parsed::Partial, _)) => prop_assert_eq!(found, Ok(httparse::Status::Partial)),
            Err(why) => {
                use Malformed::{ContentLength, FieldName, FieldValue, Framing, Host, LineEnd, Target, TransferCoding};
                let ours = matches!(why, LineEnd | Target | Host | ContentLength | Framing | TransferCoding);
                // A name or value that has not ended yet may be refused before its line ends.
                let early = matches!((why, &found), (FieldName | FieldValue, Ok(httparse::Status::Partial)));
                prop_assert!(found.is_err() || ours || early, "{:?} of {:?}", why, head);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A request that HAProxy's reading takes is, as it is forwarded, one message for a reader that keeps to the RFC.
    /// HAProxy's reading takes all that the RFC's takes.
    #[test]
    fn what_haproxys_reading_takes_is_one_message(
        line in "(GET|OPTIONS|CONNECT) {1,2}(/a|\\*|https?://(u@)?(h|\\[::1\\])?(:|:80|:443|:8)?(/|\\?a)?|h:(80|8)) {1,2}HTTP/1\\.[01]",
        fields in prop::collection::vec(
            "(Host: ?(h|\\[::1\\])?(:|:80|:443|:8)?|Content-Length: [34](, ?3)?|Transfer-Encoding:[ \t]{0,2},?(gzip, )?(chunked|CHUNKED)?[ \t]?,?|A: b)", 0..4),
    ) {
        let text = format!("{line}\r\n{}\r\n", fields.iter().map(|field| format!("{field}\r\n")).collect::<String>());
        match as_haproxy(&text) {
            Ok(taken) => {
                let sent = sent(&taken);
                let (parsed, again) = request(&sent).map_err(|why| TestCaseError::fail(format!("{why:?} of {sent:?}")))?;
                prop_assert_eq!(parsed, Parsed::Complete(sent.len()));
                prop_assert_eq!((again.method(), again.body), (taken.method(), taken.body));
                let is_chunked = again.fields.has(Known::TransferEncoding);
                prop_assert!(!again.fields.has(Known::ContentLength) || !is_chunked);
                prop_assert_eq!(sent.matches("Transfer-Encoding:").count(), usize::from(is_chunked));
                prop_assert_eq!(sent.matches("\r\nTransfer-Encoding: chunked\r\n").count(), usize::from(is_chunked));
            }
            Err(why) => prop_assert!(request(&text).is_err(), "{:?} of {:?}", why, text),
        }
    }
}
