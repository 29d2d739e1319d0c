//! Sections `crt-store`, and what stands beside certificates.

use crate::certificates::{Kind, authority, signed};
use crate::figures::command;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use crate::talk::{Ask, Outcome};
use openssl::ssl::{ExtensionContext, Ssl, SslContext, SslMethod, SslRef, SslVersion};
use openssl::x509::X509Ref;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

#[test]
fn certificates_are_called_by_their_stores() {
    let root = authority("root");
    let pair = |name: &str| signed(Kind::Ecdsa, &[name], &root);
    let (one, two, three, four) = (pair("one"), pair("two"), pair("three"), pair("four"));
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt one.pem crt @/second crt @web/third crt @web/four.pem\n http-request return status 200\n\
         crt-store\n load crt one.pem key one.other\n load crt two.pem alias second\n\
         crt-store web\n crt-base \"${{dir}}\"\n key-base \"${{dir}}\"\n load crt three.pem key three.private alias third\n \
         load crt four.pem\n"
    );
    let terse = Terse::with(&text)
        // The key in it is another one's: 'key' goes before it.
        .file("one.pem", [one.certificate_pem(), two.key_pem()].concat())
        .file("one.other", one.key_pem())
        .file("two.pem", two.pem())
        .file("three.pem", three.certificate_pem())
        .file("three.private", three.key_pem())
        .file("four.pem", four.pem());
    let terse = terse.listen("web").start();
    for name in ["one", "two", "three", "four"] {
        let Outcome::Served { subject, .. } = (Ask { name: Some(name), ..Ask::default() }).outcome(terse.address("web")) else {
            panic!("{name}")
        };
        assert_eq!(subject, name);
    }
    assert_eq!(command(&terse, "show ssl cert"), "# filename\n@/second\n@web/four.pem\n@web/third\none.pem\n\n");
    let said = command(&terse, "show ssl cert @web/third");
    assert!(said.contains("/three.pem\nKey filename: ") && said.contains("/three.private\n"), "{said}");
    terse.end();
}

/// What a rule calls the certificate that was shown.
#[test]
fn certificates_have_names() {
    let root = authority("root");
    let pem = |kind, name| signed(kind, &[name], &root).pem();
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\ncrt-store web\n load crt two.pem alias second\n\
         frontend web\n bind fd@${{web}} ssl crt one.pem crt @web/second crt both.pem\n \
         http-request return status 200 hdr Named %[ssl_fc_crtname]\n"
    );
    let terse = Terse::with(&text).file("one.pem", pem(Kind::Ecdsa, "one")).file("two.pem", pem(Kind::Rsa, "two"));
    let terse = terse.file("both.pem.rsa", pem(Kind::Rsa, "both")).file("both.pem.ecdsa", pem(Kind::Ecdsa, "both"));
    let terse = terse.listen("web").start();
    for (name, signatures, named) in [
        ("one", None, "one.pem"),
        ("two", None, "@web/second"),
        ("both", None, "both.pem.ecdsa"),
        ("both", Some("RSA-PSS+SHA256"), "both.pem.rsa"),
    ] {
        let mut stream = Ask { name: Some(name), signatures, ..Ask::default() }.connect(terse.address("web")).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.to_lowercase().contains(&format!("named: {named}\r\n")), "{name}: {answer}");
    }
    terse.end();
}

#[test]
fn what_is_wrong_is_said() {
    let root = authority("root");
    let (one, two) = (signed(Kind::Ecdsa, &["one"], &root), signed(Kind::Ecdsa, &["two"], &root));
    for (lines, words, reason) in [
        ("load crt one.pem key two.key", "one.pem", "two.key': the private key does not belong to the certificate of 'one.pem'"),
        ("load crt one.pem alias x\n load crt one.pem alias x", "@/x", "store '@/x' was already defined"),
        ("load key two.key", "one.pem", "mandatory 'crt' parameter not found"),
        ("load crt one.pem\n crt-base /", "one.pem", "it can't be used after a load line"),
        ("load crt one.pem alias x", "@/y", "'@/y': no 'crt-store' has it"),
        ("load crt one.pem acme le", "one.pem", "'acme' is not supported"),
        ("load crt one.pem sctl two.key", "one.pem", "two.key': it is no list of signed timestamps"),
        ("load crt one.pem alias /x", "one.pem", "'/' is forbidden as the first character"),
    ] {
        let text = format!(
            "crt-store\n {lines}\ndefaults\n mode http\n timeout client 1s\nfrontend web\n bind 127.0.0.1:0 ssl crt {words}\n"
        );
        let finished = Terse::with(&text).file("one.pem", one.pem()).file("two.key", two.key_pem()).arg(&["-c"]).run();
        assert!(finished.code() == Some(1) && finished.stderr.contains(reason), "{lines}: {}", finished.stderr);
    }
}

/// What a client gets that asks for timestamps (RFC 6962).
fn timestamps(terse: &Terse, version: SslVersion) -> Vec<u8> {
    let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
    let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
    context.set_max_proto_version(Some(version)).unwrap();
    let when = ExtensionContext::CLIENT_HELLO | ExtensionContext::TLS1_2_SERVER_HELLO | ExtensionContext::TLS1_3_CERTIFICATE;
    let found = seen.clone();
    let note = move |_: &mut SslRef, _, bytes: &[u8], _: Option<(usize, &X509Ref)>| {
        found.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    };
    context.add_custom_ext(18, when, |_, _, _| Ok(Some([0u8; 0])), note).unwrap();
    let stream = TcpStream::connect(terse.address("web")).unwrap();
    stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    Ssl::new(&context.build()).unwrap().connect(stream).unwrap();
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[test]
fn timestamps_and_issuers_belong_to_certificates() {
    let (root, other) = (authority("root"), authority("other"));
    let pair = signed(Kind::Ecdsa, &["a.test"], &root);
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("a.pem", [pair.pem(), root.certificate_pem()].concat()).file("a.pem.sctl", [0, 3, 0, 1, 7]);
    let terse = terse.listen("web").start();
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        assert_eq!(timestamps(&terse, version), [0, 3, 0, 1, 7], "{version:?}");
    }
    let set = |name: &str, payload: &str| command(&terse, &format!("set ssl cert {name} <<\n{payload}\n"));
    assert!(set("a.pem.sctl", "AAA=").contains("it is no list of signed timestamps"));
    assert!(set("a.pem.sctl", "!").contains("it is not written in base64"));
    assert_eq!(set("a.pem.sctl", "AAQAAggJ"), "Transaction created for certificate a.pem!\n\n");
    let pem = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    set("a.pem.issuer", &pem(other.certificate_pem()));
    let said = command(&terse, "commit ssl cert a.pem");
    assert_eq!(said, "'a.pem': it is not who has signed the certificate\nCan't commit a.pem!\n\n");
    set("a.pem.issuer", &pem(root.certificate_pem()));
    assert_eq!(command(&terse, "commit ssl cert a.pem"), "Committing a.pem.\nSuccess!\n\n");
    assert_eq!(timestamps(&terse, SslVersion::TLS1_3), [0, 4, 0, 2, 8, 9]);
    terse.end();
}
