//! Sections `crt-store`, and files beside certificates.

use crate::certificates::{Kind, Pair, authority, signed};
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

/// Names that rules have for the certificate that was shown.
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
        ("load crt one.key jwt on", "one.pem", "one.key': No such file"),
        ("load crt only.pem jwt on alias x", "@/x", "there is no private key"),
        ("load crt only.pem alias x", "one.pem", "there is no private key in it"),
        ("load crt one.pem acme le", "one.pem", "'acme' is not supported"),
        ("load crt one.pem sctl two.key", "one.pem", "two.key': it is no list of signed timestamps"),
        ("load crt one.pem alias /x", "one.pem", "'/' is forbidden as the first character"),
    ] {
        let text = format!(
            "crt-store\n {lines}\ndefaults\n mode http\n timeout client 1s\nfrontend web\n bind 127.0.0.1:0 ssl crt {words}\n"
        );
        let finished = Terse::with(&text).file("one.pem", one.pem()).file("two.key", two.key_pem());
        let finished = finished.file("only.pem", one.certificate_pem()).arg(&["-c"]).run();
        assert!(finished.code() == Some(1) && finished.stderr.contains(reason), "{lines}: {}", finished.stderr);
    }
}

/// Timestamps (RFC 6962) for a client of a name that asks for them.
pub(crate) fn timestamps(terse: &Terse, version: SslVersion, name: &str) -> Vec<u8> {
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
    let mut ssl = Ssl::new(&context.build()).unwrap();
    ssl.set_hostname(name).unwrap();
    ssl.connect(stream).unwrap();
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
        assert_eq!(timestamps(&terse, version, "a.test"), [0, 3, 0, 1, 7], "{version:?}");
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
    assert_eq!(timestamps(&terse, SslVersion::TLS1_3, "a.test"), [0, 4, 0, 2, 8, 9]);
    terse.end();
}

/// A token that a key signs with ES256, and a rule's verdict on it by three names of certificates.
#[test]
fn certificates_of_stores_verify_tokens() {
    let root = authority("root");
    let (one, two) = (signed(Kind::Ecdsa, &["one"], &root), signed(Kind::Ecdsa, &["two"], &root));
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n \
         bind 127.0.0.1:0 ssl crt shown.pem\n http-request set-var(txn.t) http_auth_bearer\n \
         http-request set-var(txn.c) req.hdr(certificate)\n \
         http-request return status 200 content-type text/plain lf-string \
         \"%[var(txn.t),jwt_verify_cert(ES256,@tokens/one)] %[var(txn.t),jwt_verify_cert(ES256,txn.c)]\"\n \
         http-after-response set-header also %[var(txn.t),jwt_verify_cert(ES256,file.pem)]\n\
         crt-store tokens\n load crt one.pem alias one jwt on\n load crt one.pem key one.key alias forbidden\n"
    );
    let terse = Terse::with(&text).file("one.pem", one.certificate_pem()).file("one.key", one.key_pem());
    let terse = terse.file("shown.pem", two.pem()).file("file.pem", two.certificate_pem()).listen("web").start();
    let verdicts = |pair: &Pair, certificate: &str| {
        let mut stream = TcpStream::connect(terse.address("web")).unwrap();
        let head = format!("Authorization: Bearer {}\r\nCertificate: {certificate}", token(pair));
        stream.write_all(format!("GET / HTTP/1.0\r\n{head}\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.rsplit("\r\n").next().unwrap().to_owned()
    };
    assert_eq!(verdicts(&one, "@tokens/one"), "1 1");
    assert_eq!(verdicts(&one, "@tokens/forbidden"), "1 -7");
    assert_eq!(verdicts(&one, "shown.pem"), "1 -7");
    assert_eq!(verdicts(&one, "none.pem"), "1 -5");
    assert_eq!(verdicts(&two, "@tokens/one"), "0 0");
    // A file that an expression names need not be named elsewhere.
    assert_eq!((verdicts(&two, "file.pem"), verdicts(&one, "file.pem")), ("0 1".into(), "1 0".into()));
    assert_eq!(command(&terse, "show ssl jwt"), "# filename\n@tokens/one\nfile.pem\n\n");
    let said = command(&terse, "show ssl cert @tokens/one");
    assert!(said.contains("\nOption: jwt on\nStatus: Used for JWT verification\n"), "{said}");
    assert!(command(&terse, "del ssl cert @tokens/one").contains("in use, can't be deleted!"));
    // A certificate that is exchanged verifies at once, without a key of its own.
    let pem = String::from_utf8(two.certificate_pem()).unwrap();
    command(&terse, &format!("set ssl cert @tokens/one <<\n{}\n", pem.trim_end()));
    assert_eq!(command(&terse, "commit ssl cert @tokens/one"), "Committing @tokens/one\nSuccess!\n\n");
    assert_eq!((verdicts(&two, "@tokens/one"), verdicts(&one, "@tokens/one")), ("1 1".into(), "0 0".into()));
    // Others come and go.
    command(&terse, "new ssl cert late.pem");
    assert_eq!(verdicts(&two, "late.pem"), "1 -7");
    command(&terse, &format!("set ssl cert late.pem <<\n{}\n", pem.trim_end()));
    command(&terse, "commit ssl cert late.pem");
    assert_eq!((command(&terse, "add ssl jwt late.pem"), verdicts(&two, "late.pem")), ("\n".into(), "1 1".into()));
    assert_eq!((command(&terse, "del ssl jwt late.pem"), verdicts(&two, "late.pem")), ("\n".into(), "1 -7".into()));
    assert!(command(&terse, "add ssl jwt none.pem").contains("'none.pem' doesn't exist"));
    command(&terse, "del ssl cert late.pem");
    assert_eq!(verdicts(&two, "late.pem"), "1 -5");
    terse.end();
}

/// The sender of a token chooses its algorithm, and knows the names of certificates.
#[test]
fn names_of_certificates_are_no_secrets() {
    let site = signed(Kind::Ecdsa, &["one"], &authority("root"));
    let text = format!(
        "{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n bind 127.0.0.1:0 ssl crt shown\n http-request set-var(txn.t) http_auth_bearer\n \
         http-request set-var(txn.a) req.hdr(algorithm)\n http-request set-var(txn.c) req.hdr(certificate)\n \
         http-request return status 200 content-type text/plain lf-string \"%[var(txn.t),jwt_verify(txn.a,txn.c)]\"\n"
    );
    let terse = Terse::with(&text).file("shown", site.pem()).listen("web").start();
    for (name, verdict) in [("shown", "-2"), ("hidden", "1")] {
        let key = openssl::pkey::PKey::hmac(name.as_bytes()).unwrap();
        let code = |text: &str| {
            let signer = openssl::sign::Signer::new(openssl::hash::MessageDigest::sha256(), &key);
            signer.unwrap().sign_oneshot_to_vec(text.as_bytes()).unwrap()
        };
        let mut stream = TcpStream::connect(terse.address("web")).unwrap();
        let head = format!("Authorization: Bearer {}\r\nAlgorithm: HS256\r\nCertificate: {name}", encoded("HS256", code));
        stream.write_all(format!("GET / HTTP/1.0\r\n{head}\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with(&format!("\r\n\r\n{verdict}")), "{name}: {answer}");
    }
    terse.end();
}

#[test]
fn certificates_for_tokens_must_be_there() {
    let pair = signed(Kind::Ecdsa, &["one"], &authority("root"));
    for (expression, reason) in [
        ("jwt_verify_cert(ES256,@tokens/none)", "'@tokens/none': no 'crt-store' has it"),
        ("jwt_decrypt_cert(@tokens/none)", "'@tokens/none': no 'crt-store' has it"),
        ("jwt_verify_cert(ES256,none.pem)", "cannot read 'none.pem'"),
        ("jwt_verify_cert(ES256,key.pem)", "'key.pem' holds no certificate in PEM"),
    ] {
        let text = format!(
            "crt-store tokens\n load crt one.pem alias one jwt on\n{DEFAULTS}\nfrontend web\n bind 127.0.0.1:0\n \
             http-request return status 200 hdr verdict %[str(x),{expression}]\n"
        );
        let terse = Terse::with(&text).file("one.pem", pair.certificate_pem()).file("key.pem", pair.key_pem());
        let finished = terse.arg(&["-c"]).run();
        assert!(finished.code() == Some(1) && finished.stderr.contains(reason), "{expression}: {}", finished.stderr);
    }
}

/// A token of a pair, signed with ES256.
fn token(pair: &Pair) -> String {
    encoded("ES256", |text| {
        let mut signer = openssl::sign::Signer::new(openssl::hash::MessageDigest::sha256(), &pair.key).unwrap();
        let numbers = openssl::ecdsa::EcdsaSig::from_der(&signer.sign_oneshot_to_vec(text.as_bytes()).unwrap()).unwrap();
        [numbers.r().to_vec_padded(32).unwrap(), numbers.s().to_vec_padded(32).unwrap()].concat()
    })
}

/// A token that names this algorithm, with its signature.
fn encoded(algorithm: &str, sign: impl FnOnce(&str) -> Vec<u8>) -> String {
    let url = |bytes: &[u8]| openssl::base64::encode_block(bytes).replace('+', "-").replace('/', "_").replace('=', "");
    let text = format!("{}.{}", url(format!(r#"{{"alg":"{algorithm}"}}"#).as_bytes()), url(b"{}"));
    format!("{text}.{}", url(&sign(&text)))
}
