//! Formats, read and written.

use super::*;
use crate::testing::Bench;

#[test]
fn formats() {
    let mut bench = Bench::new();
    for (text, usage, expected) in [
        ("plain", Usage::Http, "plain"),
        ("100%%", Usage::Http, "100%"),
        ("%ci:%cp [%HM]", Usage::Log, "198.51.100.7:1234 [GET]"),
        ("a  b", Usage::Log, "a b"),
        ("a  b", Usage::Http, "a  b"),
        ("a   %ST   b", Usage::Log, "a 404 b"),
        ("%{+X}o  %cp  %[req.hdr(none)]", Usage::Id, "04D2 "),
        ("%{+Q}HM %{+Q}ST", Usage::Log, "\"GET\" 404"),
        ("%{+Q}o %HM %{-Q}HM %[path]", Usage::Log, "\"GET\" GET \"/dir/file.html\""),
        ("%[path,field(2,/)]-%[status]", Usage::Text, "dir-404"),
        ("%[req.hdr(none)]|%[var(txn.none)]", Usage::Http, "|"),
        ("%[req.hdr(none)]", Usage::Log, "-"),
        ("%{+Q}[req.hdr(none)]", Usage::Log, "\"\""),
        ("%[str('a\nb')]", Usage::Http, "a%0Ab"),
        ("%[str('a\nb')]", Usage::Text, "a\nb"),
        ("%{+E}[str('\\\"]')]", Usage::Text, r#"\\\"\]"#),
        ("%{+X}cp %{+X}ci", Usage::Log, "04D2 C6336407"),
        ("%(name)ci %(n:sint)[status]", Usage::Log, "198.51.100.7 404"),
        ("%HP%HQ %HV", Usage::Log, "/dir/file.html?a=1&b=two%20x&a=3&C=4 HTTP/1.1"),
        ("[%[str(a]b)]]", Usage::Text, "[a]b]"),
        ("", Usage::Log, ""),
        ("x\n", Usage::Text, "x\n"),
    ] {
        assert_eq!(bench.write(text, usage), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let mut bench = Bench::new();
    for (text, said) in [
        ("%", "no such format alias '%'"),
        ("50% off", "'%%'"),
        ("%zz", "no such format alias '%zz'"),
        ("%[path", "expected ']'"),
        ("%[path x]", "expected ']' after 'path'"),
        ("%[pathe]", "unknown fetch method 'pathe' in 'pathe'"),
        ("%[req.hdrr(x)] and more", "in 'req.hdrr(x)'"),
        ("%[req.hdrr(a]b,'c)]',d)] and more", r"in 'req.hdrr(a]b,\'c)]\',d)'"),
        ("%[path,lowr]", "unknown converter 'lowr' in 'lowr'"),
        ("%[src,lower,add(x", "converter 'add': expected ')' at the end of '(x'"),
        ("%[lua.foo]", "unknown fetch method 'lua.foo'"),
        ("%[path,lua.foo(a)]", "unknown converter 'lua.foo'"),
        ("%{+Q", "missing '}'"),
        ("%(a b)ci", "invalid character"),
        ("%(a:int)ci", "unknown item type 'int'"),
    ] {
        let fault = bench.format(text, Usage::Log).expect_err(text);
        assert!(fault.reason.contains(said), "{text}: {}", fault.reason);
    }
    bench.have = Needs::REQUEST;
    assert!(bench.format("%ST", Usage::Log).unwrap_err().reason.contains("the response's head"));
    assert!(bench.format("%[status]", Usage::Log).unwrap_err().reason.contains("the response's head"));
}

#[test]
fn objects() {
    let mut bench = Bench::new();
    for (text, expected) in [
        ("%{+json}o %(a)[path] text %ci %(b)ST %(c)[int(-7)]", r#"{"a": "/dir/file.html", "b": 404, "c": -7}"#),
        (r#"%{+json}o %(a)[bool(true)] %(b)[req.hdr(none)] %(c)[bin(61225c0a)]"#, r#"{"a": true, "b": "", "c": "a\"\\\u000a"}"#),
        (
            "%{+json}o %(a:str)[int(5)] %(b:sint)[str(abc)] %(c:bool)[int(2)] %(d:raw)[str(x y)]",
            r#"{"a": "5", "b": 0, "c": true, "d": x y}"#,
        ),
        ("%{+json}o %{-json}(a)ci", "no such format alias"),
        ("%{+json}o %(a){+Q,+X}cp %(b)HM %(c){+X}ci %(d:str)ST", r#"{"a": "04D2", "b": "GET", "c": "C6336407", "d": "404"}"#),
        (r#"%{+json,+E}o %(a)[bin(5d5c)] %(b:bool)ST %(c:sint)HM"#, r#"{"a": "]\\", "b": true, "c": "GET"}"#),
        ("%{+json}o %(a)ci %{-json}o %(b)HM", r#""198.51.100.7" GET"#),
        ("x %{+json}[path] %(n){+json}ST", "x \"/dir/file.html\" 404"),
        ("%{+json}o", "{}"),
        (
            "%{+cbor}o %(a)[str(p)] %(b)[int(500)] %(c)[int(-7)] %(d)[bool(true)] %(e)[bin(00ff)] %(f)[req.hdr(none)]",
            "BF616161706162 1901F4 6163 26 6164 F5 6165 4200FF 6166 F6 FF",
        ),
        ("%{+cbor}[int(70000)] %{+cbor}[int(9223372036854775807)] %{+cbor}[int(24)]", "1A00011170 1B7FFFFFFFFFFFFFFF 1818"),
    ] {
        match bench.format(text, Usage::Log) {
            Ok(_) if text.contains("cbor}o") => assert_eq!(bench.write(text, Usage::Log), expected.replace(' ', ""), "{text}"),
            Ok(_) => assert_eq!(bench.write(text, Usage::Log), expected, "{text}"),
            Err(fault) => assert!(fault.reason.contains(expected), "{text}: {}", fault.reason),
        }
    }
    let format = bench.format("%{+cbor,+bin}o %(a)[int(1)]", Usage::Log).unwrap();
    let mut out = Vec::new();
    format.write(&bench.env(), &mut out);
    assert_eq!(out, [0xbf, 0x61, b'a', 1, 0xff]);
    // A type is of an encoding only.
    assert_eq!(bench.write("%(n:sint)[str(12abc)]", Usage::Text), "12abc");
    assert_eq!(bench.write("%(n:sint){+json}[str(12abc)]", Usage::Text), "12");
    // A field's value has no encoding.
    assert_eq!(bench.write("%{+json}o %(a)[int(1)]x%{+cbor}[int(1)]", Usage::Http), " 1x1");
    assert_eq!(bench.format("%{+json}o", Usage::Log).unwrap().as_text(), None);
}

/// Effect of each flag, by the kind of item and the usage.
#[test]
fn flags() {
    let mut bench = Bench::new();
    bench.set("txn.odd", Value::str(b"a\"]\\"));
    for (text, log, http) in [
        ("%{+Q}[var(txn.odd)]", r#""a"]\""#, r#"a"]\"#),
        ("%{+E}[var(txn.odd)]", r#"a\"\]\\"#, r#"a\"\]\\"#),
        ("%{+Q,+E}[var(txn.odd)]", r#""a\"\]\\""#, r#"a\"\]\\"#),
        ("%{+Q}[req.hdr(none)]", r#""""#, ""),
        ("%{+M}[req.hdr(none)]", "-", ""),
        ("%{-M}[req.hdr(none)]", "", ""),
        ("%{+X}[int(255)]%{+X}[src]", "255198.51.100.7", "255198.51.100.7"),
        ("%{+Q}ci %{+Q}cp", r#""198.51.100.7" 1234"#, r#""198.51.100.7" 1234"#),
        ("%{+Q,+X}ci %{+Q,+X}cp", "C6336407 04D2", "C6336407 04D2"),
        ("%{+X}fi", "00000000000000000000000000000001", "00000000000000000000000000000001"),
        ("%{+X}ST", "404", "404"),
        ("%{+bin}o%[bin(41004201)]", "A\0B\x01", "A%00B%01"),
        ("%{+bin}[bin(410042)]", "A", "A"),
        ("%{+bin}o%(n:str)[bin(410042)]", "A", "A"),
        (
            "%{+Q}o%ci%{-Q}ci%{+Q}[path]",
            "\"198.51.100.7\"198.51.100.7\"/dir/file.html\"",
            "\"198.51.100.7\"198.51.100.7/dir/file.html",
        ),
    ] {
        assert_eq!(bench.write(text, Usage::Log), log, "{text}");
        assert_eq!(bench.write(text, Usage::Http), http, "{text}");
        assert_eq!(bench.write(text, Usage::Id), http, "{text}");
    }
    assert!(bench.warnings.is_empty());
}

#[test]
fn flags_that_are_not_known_are_said_to_have_no_effect() {
    for (text, unknown) in [("%{+Z}ci", "'+Z' in '%{+Z}'"), ("%{+QX}ci", "'+QX'"), ("%{Q}ci", "'Q'"), ("%{+X,+jsn}o", "'+jsn'")] {
        let mut bench = Bench::new();
        bench.format(text, Usage::Log).unwrap();
        let said: Vec<_> = bench.warnings.iter().map(|fault| &*fault.reason).collect();
        assert!(matches!(&*said, [one] if one.contains(unknown)), "{text}: {said:?}");
    }
    assert_eq!(Bench::new().write("%{+QX}ci", Usage::Log), "198.51.100.7");
}

#[test]
fn blanks_between_what_is_empty() {
    let mut bench = Bench::new();
    for (text, expected) in
        [(" a  b ", "a b "), ("a %[req.hdr(none)] b", "a  b"), ("%[str(x )] b", "x  b"), ("%{-M}[req.hdr(none)] b", " b")]
    {
        assert_eq!(bench.write(text, Usage::Id), expected, "{text}");
    }
}

#[test]
fn first_lines_cannot_break_a_log() {
    let mut bench = Bench::new();
    bench.request.set_target(b"http://h/\"#\xe9?");
    assert_eq!(bench.write("%HP|%HPO|%HQ|%{+Q}HU", Usage::Log), "http://h/#22#23#E9|/#22#23#E9|?|\"http://h/#22#23#E9?\"");
    bench.request.set_target(b"/\"]\\?]");
    assert_eq!(bench.write("%{+E}HU|%{+Q,+E}HP", Usage::Log), r#"/#22\]\\?\]|"/#22\]\\""#);
    let format = bench.format("%HM %HU", Usage::Log).unwrap();
    let mut out = Vec::new();
    format.write(&Env { request: None, ..bench.env() }, &mut out);
    assert_eq!(out, b"<BADREQ> <BADREQ>");
}

#[test]
fn what_a_format_holds() {
    let mut bench = Bench::new();
    let format = bench.format("%[path] %ST", Usage::Text).unwrap();
    assert_eq!(format.needs(), Needs::REQUEST.or(Needs::RESPONSE));
    assert_eq!(format.as_text(), None);
    assert_eq!(bench.format("a%%b", Usage::Text).unwrap().as_text(), Some(&b"a%b"[..]));
    assert_eq!(LogFormat::text(b"%raw").as_text(), Some(&b"%raw"[..]));
}
