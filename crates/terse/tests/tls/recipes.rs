//! Operators' usual rules on facts about TLS: headers for servers, rules on certificates' errors.

use crate::certificates::{Kind, Pair, authority, expired, revoked, signed};
use crate::support::client::Client;
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, program};
use crate::talk::Ask;
use std::io::{Read, Write};

/// The fields of an answer whose names begin so, sorted.
fn fields(answer: &str) -> Vec<String> {
    let mut fields: Vec<String> =
        answer.lines().filter(|line| line.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("x-"))).map(str::to_lowercase).collect();
    fields.sort();
    fields
}

fn asked(terse: &Terse, shown: Option<&Pair>) -> String {
    let mut stream = Ask { name: Some("a.test"), shown, ..Ask::default() }.connect(terse.address("web")).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn process(rules: &str, words: &str, files: &[(&str, Vec<u8>)]) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{plain}}\n \
         bind fd@${{web}} ssl crt a.pem ca-file root.pem crl-file crl.pem verify optional {words}\n{rules} http-request return status 200\n"
    );
    files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content)).listen("web").listen("plain")
}

/// Headers for servers are the same as HAProxy's.
#[test]
fn headers_tell_servers_of_tls() {
    let root = authority("root");
    let (good, late, taken_back) =
        (signed(Kind::Ecdsa, &["good"], &root), expired("late", &root), signed(Kind::Rsa, &["back"], &root));
    let files = [
        ("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()),
        ("root.pem", root.certificate_pem()),
        ("crl.pem", revoked(&[&taken_back], &root)),
    ];
    let rules: String = [
        "X-SSL %[ssl_fc]",
        "X-SSL-Client-Used %[ssl_c_used]",
        "X-SSL-Client-Verify %[ssl_c_verify]",
        "X-SSL-Client-Error %[ssl_c_err]",
        "X-SSL-Client-DN %[ssl_c_s_dn]",
        "X-SSL-Client-CN %[ssl_c_s_dn(cn)]",
        "X-SSL-Client-LDAP %[ssl_c_s_dn(,0,rfc2253)]",
        "X-SSL-Issuer %[ssl_c_i_dn]",
        "X-SSL-Client-NotBefore %[ssl_c_notbefore]",
        "X-SSL-Client-NotAfter %[ssl_c_notafter]",
        "X-SSL-Client-SHA1 %[ssl_c_sha1,hex]",
        "X-Forwarded-Proto %[ssl_fc,iif(https,http)]",
        "X-Name %[ssl_fc_sni]",
        "X-Proto https if { ssl_fc }",
        "X-Valid yes if { ssl_c_used } { ssl_c_verify 0 }",
        "X-Whole-DN yes if { ssl_c_s_dn -m str /CN=good }",
        "X-Known yes if { ssl_c_s_dn(cn) -m beg goo }",
    ]
    .iter()
    .map(|header| format!(" http-after-response set-header {header}\n"))
    .collect();
    let seen = |terse: &Terse| {
        let mut plain = Client::connect(terse.address("plain"));
        plain.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let response = plain.response("GET");
        let plain = ["X-SSL", "X-Forwarded-Proto", "X-Proto"].map(|name| response.field(name).map(str::to_owned));
        let secure = [None, Some(&good), Some(&late), Some(&taken_back)].map(|shown| fields(&asked(terse, shown)));
        (plain, secure)
    };
    let terse = process(&rules, "crt-ignore-err 10,23", &files).start();
    let (plain, secure) = seen(&terse);
    assert_eq!(plain, [Some("0".into()), Some("http".into()), None]);
    let tells = |client: usize, field: &str| secure[client].iter().any(|found| found == field);
    for (client, field) in [
        (0, "x-ssl-client-used: 0"),
        (1, "x-valid: yes"),
        (1, "x-ssl-client-cn: good"),
        (1, "x-whole-dn: yes"),
        (1, "x-known: yes"),
        (2, "x-ssl-client-verify: 10"),
        (2, "x-ssl-client-dn: /cn=late"),
        (3, "x-ssl-client-verify: 23"),
        (3, "x-forwarded-proto: https"),
        (3, "x-proto: https"),
    ] {
        assert!(tells(client, field), "{client} {field}: {:?}", secure[client]);
    }
    assert!(!tells(0, "x-valid: yes") && !tells(2, "x-valid: yes") && !tells(3, "x-known: yes"));
    terse.end();
    if let Some(haproxy) = program::find("haproxy") {
        let theirs = process(&rules, "crt-ignore-err 10,23", &files).program(&haproxy).start();
        assert_eq!(seen(&theirs), (plain, secure), "haproxy");
    }
}

/// Rules may call errors by their names, which Debian's haproxy does not know yet.
#[test]
fn errors_of_certificates_have_names() {
    let root = authority("root");
    let (good, late, taken_back) =
        (signed(Kind::Ecdsa, &["good"], &root), expired("late", &root), signed(Kind::Ecdsa, &["back"], &root));
    let files = [
        ("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()),
        ("root.pem", root.certificate_pem()),
        ("crl.pem", revoked(&[&taken_back], &root)),
    ];
    let rules = " acl cert_expired ssl_c_verify,x509_v_err_str -m str X509_V_ERR_CERT_HAS_EXPIRED\n \
                 acl cert_revoked ssl_c_verify,x509_v_err_str -m str X509_V_ERR_CERT_REVOKED\n \
                 acl cert_ok ssl_c_verify,x509_v_err_str -m str X509_V_OK\n \
                 http-after-response add-header X-SSL Ok if cert_ok\n http-after-response add-header X-SSL Expired if cert_expired\n \
                 http-after-response add-header X-SSL Revoked if cert_revoked\n \
                 http-after-response set-header X-Error %[ssl_c_verify,x509_v_err_str]\n \
                 http-after-response set-header X-Others %[ssl_c_san] if { ssl_c_used } { ssl_c_verify 0 }\n \
                 http-after-response set-header X-Crt %[ssl_fc_crtname] if { ssl_fc_crtname -m beg -i A. }\n";
    let words = "crt-ignore-err X509_V_ERR_CERT_REVOKED,X509_V_ERR_CERT_HAS_EXPIRED";
    let terse = process(rules, words, &files).start();
    for (shown, expected) in [
        (None, &["x-crt: a.pem", "x-error: x509_v_ok", "x-ssl: ok"][..]),
        (Some(&good), &["x-crt: a.pem", "x-error: x509_v_ok", "x-others: dns:good", "x-ssl: ok"]),
        (Some(&late), &["x-crt: a.pem", "x-error: x509_v_err_cert_has_expired", "x-ssl: expired"]),
        (Some(&taken_back), &["x-crt: a.pem", "x-error: x509_v_err_cert_revoked", "x-ssl: revoked"]),
    ] {
        assert_eq!(fields(&asked(&terse, shown)), expected);
    }
    terse.end();
}
