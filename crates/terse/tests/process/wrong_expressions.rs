//! Wrong expressions: each is refused when the file is read, with file, line, the wrong word and the words expected there, and none
//! hides the next.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::Terse;

/// An expression, and texts that the message must have.
const WRONG: &[(&str, &[&str])] = &[
    // Names.
    ("pth", &["unknown fetch method 'pth'", "did you mean 'path'?"]),
    ("req.hdrs_cnt(host)", &["unknown fetch method 'req.hdrs_cnt'", "did you mean 'req.hdr_cnt'?"]),
    ("lower", &["unknown fetch method 'lower'", "it is a converter"]),
    ("path,lowr", &["unknown converter 'lowr'", "did you mean 'lower'?"]),
    ("path,url", &["unknown converter 'url'", "it is a fetch method"]),
    (",lower", &["missing fetch method in ',lower'"]),
    ("(a)", &["missing fetch method in '(a)'"]),
    // Parentheses and commas.
    ("path(", &["'path'", "expected ')' at the end of '('"]),
    ("str(a", &["'str'", "expected ')' at the end of '(a'"]),
    ("str(a)b", &["missing comma before 'b' in 'str(a)b'"]),
    ("req.hdr(host", &["'req.hdr'", "expected ')' at the end of '(host'"]),
    ("req.hdr(host,1,2)", &["'req.hdr'", "2 arguments at most", "before ',2)'"]),
    ("path(1)", &["'path'", "no arguments", "before '1)'"]),
    ("path,lower(1)", &["'lower'", "no arguments", "before '1)'"]),
    // Types of arguments.
    ("req.hdr(host,x)", &["'req.hdr'", "'x'", "'integer' at position 2"]),
    ("req.hdr(host,-11)", &["'req.hdr'", "-11", "-10 or more"]),
    ("int(abc)", &["'int'", "'abc'", "'integer' at position 1"]),
    ("int", &["'int'", "'integer' at position 1", "got nothing"]),
    ("bool(maybe)", &["'bool'", "'maybe' is not 'true', 'false', '0' or '1'"]),
    ("bin(0)", &["'bin'", "'0' is not an even number of hexadecimal digits"]),
    ("bin(zz)", &["'bin'", "'zz'"]),
    ("ipv4(1.2.3)", &["'ipv4'", "'1.2.3'", "IPv4 address"]),
    ("ipv6(1.2.3.4)", &["'ipv6'", "'1.2.3.4'", "IPv6 address"]),
    ("src,ipmask(33)", &["'ipmask'", "'33'", "IPv4 mask"]),
    ("src,ipmask", &["'ipmask'", "IPv4 mask", "got nothing"]),
    ("method,add(1)", &["'add' cannot be applied", "type integer, not method"]),
    ("path,field(1)", &["'field'", "got 1/2", "'string' expected"]),
    ("path,field(x,/)", &["'field'", "'x'", "'integer' at position 1"]),
    ("path,iif(a)", &["'iif'", "got 1/2"]),
    // Values of arguments.
    ("path,field(0,/)", &["'field'", "must not be 0"]),
    ("path,bytes(-1)", &["'bytes'", "must not be negative"]),
    ("path,word(1,)", &["'word'", "delimiters must not be empty"]),
    ("path,regsub((,x)", &["'regsub'", "regular expression '('", "unclosed group"]),
    ("path,regsub(a,b,z)", &["'regsub'", "invalid flag 'z'", "'i' and 'g'"]),
    ("path,digest(md6)", &["'digest'", "'md6'", "md5, sha1, sha224"]),
    ("path,hmac(sha256,%)", &["'hmac'", "base 64"]),
    ("path,sha2(100)", &["'sha2'", "224, 256, 384 or 512 bits, not 100"]),
    ("path,be2dec(:,9)", &["'be2dec'", "between 1 and 8", "9"]),
    ("path,url_enc(form)", &["'url_enc'", "expects 'query', not 'form'"]),
    ("path,json(utf7)", &["'json'", "'utf7'", "ascii, utf8, utf8s, utf8p, utf8ps"]),
    ("path,json_query(a)", &["'json_query'", "'a' is not a path"]),
    ("path,param(a,&&)", &["'param'", "'&&'", "one character"]),
    ("path,rfc7239_field(port)", &["'rfc7239_field'", "for, by, host or proto, not 'port'"]),
    ("path,protobuf(x)", &["'protobuf'", "'x' is not a number of a field"]),
    ("path,fix_tag_value(MsgTyp)", &["'MsgTyp'", "did you mean 'MsgType'?"]),
    ("path,mqtt_field_value(connect,usrname)", &["'usrname'", "did you mean 'username'?"]),
    ("path,aes_gcm_enc(64,a,b,txn.t)", &["'aes_gcm_enc'", "128, 192 or 256 bits, not 64"]),
    ("path,jwt_verify(XX256,k)", &["'jwt_verify'", "'XX256'", "HS256"]),
    ("path,http_date(0,x)", &["'http_date'", "'s', 'ms' or 'us', not 'x'"]),
    ("date(0,h)", &["'date'", "'s', 'ms' or 'us', not 'h'"]),
    ("fc_rtt(s)", &["'fc_rtt'", "'us' or 'ms', not 's'"]),
    ("uuid(5)", &["'uuid'", "version 5"]),
    ("srv_conn", &["'srv_conn'", "the name of a server"]),
    // Variables.
    ("var(foo.x)", &["'var'", "'foo.x'", "must start with its scope"]),
    ("var()", &["'var'", "'variable' at position 1", "got nothing"]),
    ("int(1),add(foo.x)", &["'add'", "'foo.x'"]),
    ("path,set-var(foo.x)", &["'set-var'", "'foo.x'"]),
    // Fetches that are not available there, and features that are not built.
    ("status", &["'status' needs the response's head"]),
    ("bytes_out", &["'bytes_out' needs the response's head"]),
    ("bc.timer.connect", &["'bc.timer.connect' needs the server"]),
    ("req.timer.queue", &["'req.timer.queue' needs the server"]),
    ("res.bytes_in", &["'res.bytes_in' needs the response's head"]),
    ("res.timer.hdr", &["'res.timer.hdr' needs the response's head"]),
    ("res.timer.data", &["'res.timer.data' needs the response's head"]),
    ("res.hdr(server),lower", &["'res.hdr(server),lower' needs the response's head"]),
    ("51d.all(x)", &["'51d.all' is not supported", "databases"]),
    ("path,capture-req(x)", &["'capture-req'", "'x'"]),
    ("path,when(sometimes)", &["'when'", "unknown condition 'sometimes'", "forwarded"]),
    ("path,when(acl,nothing)", &["'when'", "no such ACL: 'nothing'"]),
    ("str(a),da-csv-conv", &["'da-csv-conv' is not supported", "databases of devices"]),
    ("internal.htx.size", &["'internal.htx.size' is not supported"]),
];

#[test]
fn wrong_expressions_are_told_with_their_places() {
    // A bracket is closed by the format, so that expressions of any form can be inside.
    let escaped =
        |text: &str| text.chars().map(|c| if "\"'\\# ".contains(c) { format!("\\{c}") } else { c.into() }).collect::<String>();
    let head = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\nfrontend f\n bind 127.0.0.1:1\n";
    let lines: String = WRONG.iter().map(|(text, _)| format!(" http-request set-var(txn.x) {}\n", escaped(text))).collect();
    let checked = Terse::with(&format!("{head}{lines}")).arg(&["-c"]).run();
    assert_eq!(checked.code(), Some(1));
    let first = head.lines().count() + 1;
    for (i, (text, said)) in WRONG.iter().enumerate() {
        let place = format!("/terse.cfg:{}] : 'http-request' : ", first + i);
        let told = checked.stderr.lines().find(|line| line.contains(&place)).unwrap_or_else(|| panic!("nothing is said of {text}"));
        let missing: Vec<_> = said.iter().filter(|part| !told.contains(**part)).collect();
        assert!(missing.is_empty(), "{text}: {told}\nlacks {missing:?}");
    }
}

#[test]
fn names_that_are_not_there_are_told_with_those_that_are_near() {
    let text = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\nfrontend web\n bind 127.0.0.1:1\n \
                default_backend apps\n http-request deny if { nbsrv(app) 0 } or { srv_is_up(apps/oen) } or { fe_conn(wbe) 1 } or { path,debug(x,evnets) x }\n\
                ring events\n size 4096\nbackend apps\n server one 127.0.0.1:1\n";
    let checked = Terse::with(text).arg(&["-c"]).run();
    assert_eq!(checked.code(), Some(1));
    for (reason, hint) in [
        ("unable to find backend 'app'", "did you mean 'apps'?"),
        ("unable to find server 'oen' in backend 'apps'", "did you mean 'one'?"),
        ("unable to find frontend 'wbe'", "did you mean 'web'?"),
        ("there is no ring 'evnets'", "did you mean 'events'?"),
    ] {
        let told =
            checked.stderr.lines().any(|line| line.contains(reason) && line.contains(hint) && line.contains("/terse.cfg:9]"));
        assert!(told, "{reason}: {}", checked.stderr);
    }
}
