use crate::registry::Needs;
use crate::testing::Bench;

#[test]
fn fetches_of_one_exchange() {
    let mut bench = Bench::new();
    bench.acl("slash", "path_beg /").unwrap();
    for (text, expected) in [
        ("method", Some("GET")),
        ("path", Some("/dir/file.html")),
        ("pathq", Some("/dir/file.html?a=1&b=two%20x&a=3&C=4")),
        ("query", Some("a=1&b=two%20x&a=3&C=4")),
        ("query(with_qm)", Some("?a=1&b=two%20x&a=3&C=4")),
        ("url", Some("/dir/file.html?a=1&b=two%20x&a=3&C=4")),
        ("req.ver", Some("1.1")),
        ("req.proto_http", Some("1")),
        ("base", Some("Example.com:8080/dir/file.html")),
        ("base32+src,hex,length", Some("16")),
        ("status", Some("404")),
        ("res.ver", Some("1.1")),
        ("src", Some("198.51.100.7")),
        ("src_port", Some("1234")),
        ("dst", Some("::1")),
        ("dst_port", Some("443")),
        ("req.hdr(host)", Some("Example.com:8080")),
        ("req.hdr(x-list)", Some("four")),
        ("req.hdr(x-list,1)", Some("one")),
        ("req.hdr(x-list,2)", Some("\"t,wo\"")),
        ("req.hdr(x-list,3)", Some("")),
        ("req.hdr(x-list,5)", Some("four")),
        ("req.hdr(x-list,6)", None),
        ("req.hdr(x-list,-2)", Some("three")),
        ("req.hdr(x-list,-5)", Some("one")),
        ("req.hdr(x-list,-6)", None),
        ("req.hdr(x-empty)", Some("")),
        ("req.hdr(x-none)", None),
        ("req.fhdr(x-list)", Some("four")),
        ("req.fhdr(x-list,1)", Some("one, \"t,wo\" ,, three")),
        ("req.fhdr(x-list,-2)", Some("one, \"t,wo\" ,, three")),
        ("req.fhdr(x-list,3)", None),
        ("req.hdr_cnt(x-list)", Some("5")),
        ("req.fhdr_cnt(x-list)", Some("2")),
        ("req.hdr_cnt(x-none)", Some("0")),
        ("req.hdr_val(x-num)", Some("34")),
        ("req.hdr_val(x-num,1)", Some("12")),
        ("req.hdr_ip(x-addr)", Some("2001:db8::1")),
        ("req.hdr_ip(x-addr,2)", Some("192.0.2.1")),
        ("req.hdr_ip(x-addr,1)", None),
        ("res.hdr_names", Some("server,set-cookie,set-cookie")),
        ("res.hdr_names(:)", Some("server:set-cookie:set-cookie")),
        ("res.hdrs", Some("server: s1\r\nset-cookie: s=1; Path=/\r\nset-cookie: t=2\r\n\r\n")),
        ("res.hdr(server)", Some("s1")),
        ("shdr(server)", Some("s1")),
        ("req.cook(c1)", Some("v3")),
        ("req.cook(c2)", Some("\"v;2\"")),
        ("req.cook()", Some("v1")),
        ("req.cook(c9)", None),
        ("req.cook_cnt(c1)", Some("2")),
        ("req.cook_cnt()", Some("3")),
        ("req.cook_names", Some("c1,c2,c1")),
        ("res.cook(s)", Some("1")),
        ("res.cook(Path)", None),
        ("res.cook_names", Some("s,t")),
        ("scook_val(t)", Some("2")),
        ("url_param(a)", Some("1")),
        ("urlp(b)", Some("two%20x")),
        ("urlp(c)", None),
        ("urlp(c,?,i)", Some("4")),
        ("urlp()", Some("1")),
        ("urlp_val(a)", Some("1")),
        ("url_ip", None),
        ("http_auth_type", Some("Basic")),
        ("http_auth_user", Some("user")),
        ("http_auth_pass", Some("pa:ss")),
        ("http_auth_bearer", None),
        ("str(a b)", Some("a b")),
        ("str", Some("")),
        ("int(-5)", Some("-5")),
        ("bool(TRUE)", Some("1")),
        ("bool(0)", Some("0")),
        ("bin(616263)", Some("abc")),
        ("ipv4(1.2.3.4)", Some("1.2.3.4")),
        ("ipv6(::1)", Some("::1")),
        ("meth(PUT)", Some("PUT")),
        ("always_true", Some("1")),
        ("always_false", Some("0")),
        ("date", Some("1770091506")),
        ("date(10)", Some("1770091516")),
        ("date(10,ms)", Some("1770091506799")),
        ("date(0,us)", Some("1770091506789012")),
        ("date_us", Some("789012")),
        ("rand(1000)", Some("4")),
        ("uuid", Some("01234567-89ab-4def-8123-456789abcdef")),
        ("uuid(7)", Some("019c21ac-ec65-7def-8123-456789abcdef")),
        ("hostname", Some("box")),
        ("env(HOME)", Some("/root")),
        ("env(NONE)", None),
        ("pid", Some("42")),
        ("nbproc", Some("1")),
        ("var(txn.none)", None),
        ("var(txn.none,default)", Some("default")),
        ("acl(slash)", Some("1")),
        ("acl(!slash)", Some("0")),
        ("acl(slash,TRUE)", Some("1")),
    ] {
        assert_eq!(bench.eval(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn hdr_follows_the_message_that_is_processed() {
    let mut bench = Bench::new();
    for (have, expected) in [
        (Needs::REQUEST, Some("Example.com:8080")),
        (Needs::REQUEST.or(Needs::RESPONSE), None),
        (Needs::ALL, Some("Example.com:8080")),
    ] {
        bench.have = have;
        assert_eq!(bench.eval("hdr(host)").as_deref(), expected);
    }
    bench.have = Needs::RESPONSE;
    assert_eq!(bench.eval("hdr(server)").as_deref(), Some("s1"));
    assert_eq!(bench.eval("cookie(t)").as_deref(), Some("2"));
    // In an ACL it is always the request's, which has gone here.
    assert!(!bench.holds("{ hdr(host) -m beg Example }") && !bench.holds("{ hdr(server) s1 }") && bench.holds("{ cookie(t) 2 }"));
    bench.have = Needs::REQUEST;
    assert!(bench.holds("{ hdr(host) -m beg Example }") && bench.holds("{ hdr_beg(host) Example }"));
}

#[test]
fn blanks_that_rules_wrote_around_a_value_are_no_part_of_it() {
    let mut bench = Bench::new();
    bench.request.fields.push(b"X-Blank", b" a , b ");
    for (text, expected) in [("req.fhdr(x-blank)", "a , b"), ("req.hdr(x-blank)", "b"), ("req.hdr(x-blank,1)", "a")] {
        assert_eq!(bench.eval(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn absolute_targets() {
    let mut bench = Bench::new();
    bench.request.set_target(b"http://192.0.2.9:81/x");
    assert_eq!(bench.eval("url_ip").as_deref(), Some("192.0.2.9"));
    assert_eq!(bench.eval("url_port").as_deref(), Some("81"));
    assert_eq!(bench.eval("path").as_deref(), Some("/x"));
    bench.request.set_target(b"example.com:443");
    assert_eq!(bench.eval("path"), None);
}

#[test]
fn nothing_is_there_yet() {
    let mut bench = Bench::new();
    let texts: Vec<&str> = bench.registry.fetches().iter().filter(|f| !f.needs.is_none()).map(|f| f.name).collect();
    for text in texts {
        let Ok(expr) = bench.expr(text) else { continue };
        let env = crate::Env { request: None, response: None, ..bench.env() };
        assert_eq!(expr.eval(&env), None, "{text}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let mut bench = Bench::new();
    for (text, said) in [
        ("", "missing fetch method"),
        ("pat", "unknown fetch method 'pat'"),
        ("int(x)", "failed to parse 'x' as type 'integer'"),
        ("int", "expected type 'integer' at position 1, but got nothing"),
        ("str(a,b)", "expected ')'"),
        ("str(a", "expected ')'"),
        ("path(x)", "expected"),
        ("bool(maybe)", "'maybe'"),
        ("bin(123)", "hexadecimal"),
        ("var(foo.x)", "scope"),
        ("var(txn.a b)", "invalid character ' '"),
        ("req.hdr(a,-11)", "-10"),
        ("uuid(5)", "version 5"),
        ("date(0,h)", "'h'"),
        ("acl(nope)", "no such ACL"),
        ("path lower", "missing comma"),
        ("path,lowr", "unknown converter 'lowr'"),
        ("query(x)", "with_qm"),
    ] {
        let fault = bench.expr(text).expect_err(text);
        assert!(fault.reason.contains(said), "{text}: {}", fault.reason);
    }
    assert_eq!(bench.expr("pth").unwrap_err().hint.as_deref(), Some("did you mean 'path'?"));
    assert_eq!(bench.expr("path,lowr").unwrap_err().hint.as_deref(), Some("did you mean 'lower'?"));
}
