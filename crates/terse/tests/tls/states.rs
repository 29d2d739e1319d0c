//! Answers about certificates' states (OCSP), stapled to handshakes and exchanged on the stats socket.

use crate::certificates::{Kind, Pair, authority, signed};
use crate::figures::command;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use openssl::base64::encode_block;
use openssl::hash::MessageDigest;
use openssl::ocsp::{OcspCertId, OcspRequest};
use openssl::sign::Signer;
use openssl::ssl::{ExtensionContext, Ssl, SslContext, SslContextBuilder, SslMethod, SslVerifyMode, SslVersion, StatusType};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let head = match content.len() {
        len @ 0..0x80 => vec![tag, len as u8],
        // Signed bytes must be written in the usual form.
        len @ 0x80..0x100 => vec![tag, 0x81, len as u8],
        len => vec![tag, 0x82, (len >> 8) as u8, len as u8],
    };
    [head, content.to_vec()].concat()
}

/// An answer (RFC 6960 section 4.2.1), signed by the certificate's authority.
pub fn answer(site: &Pair, root: &Pair, state: &[u8]) -> Vec<u8> {
    answer_until(site, root, state, b"20250101000000Z", Some(FAR))
}

pub const FAR: &[u8; 15] = b"29990101000000Z";

/// The same, with its time and that of the next one.
pub fn answer_until(site: &Pair, root: &Pair, state: &[u8], since: &[u8; 15], until: Option<&[u8; 15]>) -> Vec<u8> {
    let mut request = OcspRequest::new().unwrap();
    request.add_id(OcspCertId::from_cert(MessageDigest::sha1(), &site.certificate, &root.certificate).unwrap()).unwrap();
    // The question's identifier is within four sequences.
    let id = request.to_der().unwrap()[8..].to_vec();
    let now = element(0x18, since);
    let until = until.map(|time| element(0xa0, &element(0x18, time))).unwrap_or_default();
    let single = element(0x30, &[&id, state, &now, &until].concat());
    // The signer is named by the hash of the key that the question has, after an algorithm and the hash of a name.
    let by = element(0xa2, &element(0x04, &id[2 + 11 + 22 + 2..][..20]));
    let data = element(0x30, &[by, now, element(0x30, &single)].concat());
    let algorithm = element(0x30, &element(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]));
    let mut signer = Signer::new(MessageDigest::sha256(), &root.key).unwrap();
    let signature = [vec![0], signer.sign_oneshot_to_vec(&data).unwrap()].concat();
    let basic = element(0x30, &[data, algorithm, element(0x03, &signature)].concat());
    let kind = element(0x06, &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01]);
    let bytes = element(0xa0, &element(0x30, &[kind, element(0x04, &basic)].concat()));
    element(0x30, &[element(0x0a, &[0]), bytes].concat())
}

pub const GOOD: &[u8] = &[0x80, 0];
pub const REVOKED: &[u8] = b"\xa1\x11\x18\x0f20260101000000Z";

const UNKNOWN: &[u8] = &[0x82, 0];

/// The state that a client is shown beside the certificate.
pub fn stapled(terse: &Terse) -> Option<Vec<u8>> {
    stapled_at(terse, "web")
}

fn stapled_at(terse: &Terse, name: &str) -> Option<Vec<u8>> {
    let context = SslContext::builder(SslMethod::tls_client()).unwrap();
    stapled_to(context, terse, name)
}

fn stapled_to(mut context: SslContextBuilder, terse: &Terse, name: &str) -> Option<Vec<u8>> {
    context.set_verify(SslVerifyMode::NONE);
    let mut ssl = Ssl::new(&context.build()).unwrap();
    ssl.set_status_type(StatusType::OCSP).unwrap();
    let stream = ssl.connect(TcpStream::connect(terse.address(name)).unwrap()).unwrap();
    stream.ssl().ocsp_status().map(<[u8]>::to_vec)
}

#[test]
fn answers_are_stapled_shown_and_exchanged() {
    let root = authority("root");
    let (site, other) = (signed(Kind::Ecdsa, &["a.test"], &root), signed(Kind::Ecdsa, &["b.test"], &root));
    let (good, revoked) = (answer(&site, &root, GOOD), answer(&site, &root, REVOKED));
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("a.pem", site.pem()).file("a.pem.ocsp", &good).file("a.pem.issuer", root.certificate_pem());
    let terse = terse.listen("web").start();
    assert_eq!(stapled(&terse).as_ref(), Some(&good));
    let listed = command(&terse, "show ssl ocsp-response");
    assert!(listed.contains("Certificate path : a.pem\n") && listed.contains("\n    Issuer Key Hash: "), "{listed}");
    let id = listed.lines().find_map(|line| line.strip_prefix("Certificate ID key : ")).unwrap().to_owned();
    let of_another =
        command(&terse, &format!("set ssl ocsp-response {}", encode_block(&answer(&other, &root, GOOD)).replace('\n', "")));
    assert!(of_another.contains("does not match any certificate"), "{of_another}");
    assert!(command(&terse, "set ssl ocsp-response AAAA").contains("OCSP response: "));
    assert_eq!(stapled(&terse).as_ref(), Some(&good));
    let said = command(&terse, &format!("set ssl ocsp-response {}", encode_block(&revoked).replace('\n', "")));
    assert!(said.contains("OCSP Response updated!"), "{said}");
    assert_eq!(stapled(&terse).as_ref(), Some(&revoked));
    for name in [&*id, "a.pem"] {
        let shown = command(&terse, &format!("show ssl ocsp-response {name}"));
        assert!(shown.contains("Cert Status: revoked\n"), "{shown}");
    }
    assert_eq!(command(&terse, &format!("show ssl ocsp-response base64 {id}")).trim(), encode_block(&revoked).replace('\n', ""));
    assert!(command(&terse, "show ssl cert a.pem").contains(&format!("OCSP Response Key: {id}\n")));
    assert!(command(&terse, "show ssl cert a.pem.ocsp").contains("Cert Status: revoked\n"));
    terse.end();
}

#[test]
fn answers_that_help_nobody_are_not_stapled() {
    let root = authority("root");
    let (site, other) = (signed(Kind::Ecdsa, &["a.test"], &root), signed(Kind::Ecdsa, &["b.test"], &root));
    let text = format!("{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n");
    let with = |state: &[u8], since, until| answer_until(&site, &root, state, since, until);
    let past = b"20250101000000Z";
    for (bytes, is_given, said) in [
        (answer(&site, &root, GOOD), true, ""),
        (with(GOOD, past, Some(b"20250102000000Z")), false, "OCSP single response: no longer valid"),
        (with(GOOD, past, None), false, "OCSP single response: missing nextupdate"),
        (answer(&other, &root, GOOD), false, "it speaks of another certificate"),
        (b"nothing".to_vec(), false, "OCSP response: "),
    ] {
        let terse = Terse::with(&text).file("a.pem", site.pem()).file("a.pem.ocsp", &bytes);
        let terse = terse.file("a.pem.issuer", root.certificate_pem()).listen("web").start();
        assert_eq!(stapled(&terse), is_given.then(|| bytes.clone()), "{said}");
        let stderr = terse.stderr();
        assert!(stderr.contains(said) && stderr.contains("are not given the answer") != said.is_empty(), "{stderr}");
        terse.end();
    }
}

/// The answers that were there stay, and so do those of all certificates that another one speaks of.
#[test]
fn answers_that_help_nobody_are_not_taken() {
    let root = authority("root");
    let site = signed(Kind::Ecdsa, &["a.test"], &root);
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem\n bind fd@${{other}} ssl crt b.pem\n http-request return status 200\n"
    );
    let first = answer(&site, &root, GOOD);
    let terse = ["a.pem", "b.pem"].iter().fold(Terse::with(&text), |terse, name| {
        let terse = terse.file(name, site.pem()).file(&format!("{name}.ocsp"), &first);
        terse.file(&format!("{name}.issuer"), root.certificate_pem())
    });
    let terse = terse.listen("web").listen("other").start();
    let set = |bytes: &[u8]| command(&terse, &format!("set ssl ocsp-response {}", encode_block(bytes).replace('\n', "")));
    let with = |state: &[u8], since, until| answer_until(&site, &root, state, since, until);
    let past = b"20250101000000Z";
    for (bytes, said) in [
        (with(UNKNOWN, past, Some(FAR)), "OCSP single response: certificate status is unknown"),
        (with(GOOD, past, None), "OCSP single response: missing nextupdate"),
        (with(GOOD, past, Some(b"20250102000000Z")), "OCSP single response: no longer valid"),
        (with(GOOD, b"29980101000000Z", Some(FAR)), "OCSP single response: not valid yet"),
        (with(GOOD, b"2025-01-01 0:00", Some(FAR)), "OCSP single response: its times cannot be read"),
        (with(GOOD, b"20250101000000\0", Some(FAR)), "OCSP single response: its times cannot be read"),
        (with(GOOD, past, Some(b"\x0029990101000000")), "OCSP single response: its times cannot be read"),
    ] {
        let answered = set(&bytes);
        assert!(answered.contains(said), "{said}: {answered}");
        assert_eq!(stapled(&terse).as_ref(), Some(&first), "{said}");
    }
    let second = with(REVOKED, past, Some(FAR));
    assert!(set(&second).contains("OCSP Response updated!"));
    for name in ["web", "other"] {
        assert_eq!(stapled_at(&terse, name).as_ref(), Some(&second), "{name}");
    }
    let counted = command(&terse, "show stat");
    let columns: Vec<&str> = counted.lines().next().unwrap().split(',').collect();
    let at = columns.iter().position(|column| *column == "ssl_ocsp_staple").unwrap();
    let row: Vec<&str> = counted.lines().find(|line| line.starts_with("web,FRONTEND,")).unwrap().split(',').collect();
    assert_eq!(row[at], "9");
    terse.end();
}

/// Of two certificates of a name, a client gets the state and timestamps of the certificate that it is shown.
#[test]
fn each_kind_of_key_has_its_own_answer_and_timestamps() {
    let root = authority("root");
    let text = format!("{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n");
    let (mut terse, mut beside) = (Terse::with(&text), Vec::new());
    for (name, kind, mark) in [("a.pem.rsa", Kind::Rsa, 1), ("a.pem.ecdsa", Kind::Ecdsa, 2)] {
        let site = signed(kind, &["a.test"], &root);
        let (answer, timestamps) = (answer(&site, &root, GOOD), vec![0, 3, 0, 1, mark]);
        terse = terse.file(name, site.pem()).file(&format!("{name}.ocsp"), &answer).file(&format!("{name}.sctl"), &timestamps);
        terse = terse.file(&format!("{name}.issuer"), root.certificate_pem());
        beside.push((answer, timestamps));
    }
    let terse = terse.listen("web").start();
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        for (algorithms, (answer, timestamps)) in ["RSA-PSS+SHA256:RSA+SHA256", "ECDSA+SHA256"].iter().zip(&beside) {
            let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
            context.set_max_proto_version(Some(version)).unwrap();
            context.set_sigalgs_list(algorithms).unwrap();
            let got: Arc<Mutex<Vec<u8>>> = Arc::default();
            let seen = got.clone();
            let places =
                ExtensionContext::CLIENT_HELLO | ExtensionContext::TLS1_2_SERVER_HELLO | ExtensionContext::TLS1_3_CERTIFICATE;
            let asked = context.add_custom_ext(
                18,
                places,
                |_, _, _| Ok(Some(Vec::new())),
                move |_, _, bytes, _| {
                    *seen.lock().unwrap() = bytes.to_vec();
                    Ok(())
                },
            );
            asked.unwrap();
            assert_eq!(stapled_to(context, &terse, "web").as_ref(), Some(answer), "{version:?} {algorithms}");
            assert_eq!(*got.lock().unwrap(), *timestamps, "{version:?} {algorithms}");
        }
    }
    terse.end();
}

/// A certificate that is set again is the same one, and so is the answer about its state.
#[test]
fn the_answer_stays_with_its_certificate() {
    let root = authority("root");
    let (site, other) = (signed(Kind::Ecdsa, &["a.test"], &root), signed(Kind::Ecdsa, &["a.test"], &root));
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n"
    );
    let good = answer(&site, &root, GOOD);
    let terse = Terse::with(&text).file("a.pem", site.pem()).file("a.pem.ocsp", &good).file("a.pem.issuer", root.certificate_pem());
    let terse = terse.listen("web").start();
    for (pair, expected) in [(&site, Some(&good)), (&other, None)] {
        let set = format!("set ssl cert a.pem <<\n{}\n", String::from_utf8(pair.pem()).unwrap());
        assert!(command(&terse, &set).contains("Transaction created"));
        let said = command(&terse, "commit ssl cert a.pem");
        assert!(said.contains("Success!"), "{said}");
        assert_eq!(stapled(&terse).as_ref(), expected);
    }
    terse.end();
}
