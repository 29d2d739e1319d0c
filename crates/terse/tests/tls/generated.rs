//! Certificates that are made for names that no certificate has.

use crate::certificates::{Kind, Pair, authority, signed};
use crate::figures::command;
use crate::stores::timestamps;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use crate::talk::{Ask, Outcome, common_name};
use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use std::net::TcpStream;

/// A process whose `web` has these arguments after `ssl`; `root.pem` signs.
fn configured(words: &str, root: &Pair, files: &[(&str, Vec<u8>)]) -> Terse {
    let text = format!(
        "global\n nbthread 1\n ssl-security-level 0\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl {words}\n http-request return status 200\n"
    );
    let terse = files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content));
    terse.file("root.pem", root.pem()).listen("web")
}

/// Certificate for a client that trusts the authority and looks at the name, by certificates of one kind of key.
fn trusted(terse: &Terse, name: &str, version: SslVersion, signatures: &str, root: &Pair) -> Option<X509> {
    let mut connector = SslConnector::builder(SslMethod::tls_client()).unwrap();
    let mut store = X509StoreBuilder::new().unwrap();
    store.add_cert(root.certificate.clone()).unwrap();
    connector.set_verify_cert_store(store.build()).unwrap();
    connector.set_min_proto_version(Some(version)).unwrap();
    connector.set_max_proto_version(Some(version)).unwrap();
    connector.set_sigalgs_list(signatures).unwrap();
    let stream = TcpStream::connect(terse.address("web")).unwrap();
    stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    connector.build().connect(name, stream).ok()?.ssl().peer_certificate()
}

fn subject(terse: &Terse, name: Option<&str>) -> Option<String> {
    match (Ask { name, ..Ask::default() }).outcome(terse.address("web")) {
        Outcome::Served { subject, .. } => Some(subject),
        Outcome::Refused => None,
    }
}

#[test]
fn unknown_names_get_certificates() {
    let root = authority("root");
    let (rsa, ec, known) =
        (signed(Kind::Rsa, &["default"], &root), signed(Kind::Ecdsa, &["default"], &root), signed(Kind::Ecdsa, &["known"], &root));
    let terse = configured(
        "crt both.pem crt known.pem generate-certificates ca-sign-file root.pem",
        &root,
        &[("both.pem.rsa", rsa.pem()), ("both.pem.ecdsa", ec.pem()), ("known.pem", known.pem())],
    );
    let terse = terse.start();
    let long = format!("{}.{}.test", "a".repeat(50), "b".repeat(50));
    for name in ["a.test", "b.test", &long] {
        for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
            for (signatures, of) in [("RSA-PSS+SHA256:RSA+SHA256", &rsa), ("ECDSA+SHA256", &ec)] {
                let certificate = trusted(&terse, name, version, signatures, &root);
                let certificate = certificate.unwrap_or_else(|| panic!("{name} {version:?} {signatures}"));
                assert!(certificate.public_key().unwrap().public_eq(&of.key), "{name} {version:?} {signatures}");
                assert_eq!(certificate.subject_alt_names().unwrap()[0].dnsname(), Some(name));
                assert_eq!(common_name(&certificate), "root", "the authority's, as with HAProxy");
            }
        }
    }
    // Known names, clients without a name, and texts that are no host's name get a certificate that exists.
    assert_eq!(subject(&terse, Some("known")).as_deref(), Some("known"));
    assert_eq!(subject(&terse, None).as_deref(), Some("default"));
    for name in ["*.test", "a,DNS:b", "a..b"] {
        assert_eq!(subject(&terse, Some(name)).as_deref(), Some("default"), "{name}");
    }
    terse.end();
}

/// Logs have seen the certificate that is shown by default, not one that was made.
#[test]
fn made_certificates_have_no_timestamps() {
    let root = authority("root");
    let site = signed(Kind::Ecdsa, &["a.test"], &root);
    let words = "crt a.pem generate-certificates ca-sign-file root.pem";
    let terse = configured(words, &root, &[("a.pem", site.pem()), ("a.pem.sctl", vec![0, 3, 0, 1, 7])]).start();
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        assert_eq!(timestamps(&terse, version, "a.test"), [0, 3, 0, 1, 7], "{version:?}");
        assert_eq!(timestamps(&terse, version, "b.test"), [0u8; 0], "{version:?}");
    }
    terse.end();
}

/// A generated certificate has the key of the current default, and is one and the same as long as that is.
#[test]
fn made_certificates_follow_the_default() {
    let root = authority("root");
    let (old, new) = (signed(Kind::Ecdsa, &["old"], &root), signed(Kind::Ecdsa, &["new"], &root));
    let words = "crt a.pem generate-certificates ca-sign-file root.pem strict-sni";
    let terse = configured(words, &root, &[("a.pem", old.pem())]).start();
    let get = || trusted(&terse, "a.test", SslVersion::TLS1_3, "ECDSA+SHA256", &root).unwrap();
    let first = get();
    assert!(first.to_der().unwrap() == get().to_der().unwrap() && first.public_key().unwrap().public_eq(&old.key));
    let pem = String::from_utf8(new.pem()).unwrap();
    command(&terse, &format!("set ssl cert a.pem <<\n{}\n", pem.trim_end()));
    assert_eq!(command(&terse, "commit ssl cert a.pem"), "Committing a.pem.\nSuccess!\n\n");
    assert!(get().public_key().unwrap().public_eq(&new.key));
    // 'strict-sni' refuses clients for which no certificate can be made.
    assert_eq!((subject(&terse, None), subject(&terse, Some("*.test"))), (None, None));
    terse.end();
}

#[test]
fn what_is_wrong_is_said() {
    let root = authority("root");
    for (words, code, reason) in [
        ("crt a.pem generate-certificates", 1, "nobody signs them: add 'ca-sign-file <file>'"),
        ("crt a.pem generate-certificates ca-sign-file none.pem", 1, "'ca-sign-file': 'none.pem': No such file"),
        ("crt a.pem generate-certificates ca-sign-file key.pem", 1, "'key.pem': there is no certificate in it"),
        ("strict-sni generate-certificates ca-sign-file root.pem", 1, "takes the key of a certificate that is shown by default"),
        ("crt a.pem ca-sign-file root.pem", 0, "'ca-sign-file' does nothing without 'generate-certificates'"),
    ] {
        let pair = signed(Kind::Ecdsa, &["a"], &root);
        let terse =
            Terse::with(&format!("{DEFAULTS}\nfrontend web\n bind 127.0.0.1:0 ssl {words}\n http-request return status 200\n"));
        let terse = terse.file("a.pem", pair.pem()).file("key.pem", pair.key_pem()).file("root.pem", root.pem());
        let finished = terse.arg(&["-c"]).run();
        assert!(finished.code() == Some(code) && finished.stderr.contains(reason), "{words}: {}", finished.stderr);
    }
}
