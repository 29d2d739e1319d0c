//! Answers about certificates' states (OCSP), stapled to handshakes and exchanged on the stats socket.

use crate::certificates::{Kind, Pair, authority, signed};
use crate::figures::command;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use openssl::base64::encode_block;
use openssl::hash::MessageDigest;
use openssl::ocsp::{OcspCertId, OcspRequest};
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVerifyMode, StatusType};
use std::net::TcpStream;

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let head = match content.len() {
        len @ 0..0x80 => vec![tag, len as u8],
        len => vec![tag, 0x82, (len >> 8) as u8, len as u8],
    };
    [head, content.to_vec()].concat()
}

/// An answer (RFC 6960 section 4.2.1) that nobody has signed: clients of these tests look at its bytes.
fn answer(site: &Pair, root: &Pair, state: &[u8]) -> Vec<u8> {
    answer_until(site, root, state, None)
}

/// The same, with the time of the next one.
fn answer_until(site: &Pair, root: &Pair, state: &[u8], until: Option<&[u8; 15]>) -> Vec<u8> {
    let mut request = OcspRequest::new().unwrap();
    request.add_id(OcspCertId::from_cert(MessageDigest::sha1(), &site.certificate, &root.certificate).unwrap()).unwrap();
    // What it asks for stands within four sequences.
    let id = request.to_der().unwrap()[8..].to_vec();
    let now = element(0x18, b"20260101000000Z");
    let until = until.map(|time| element(0xa0, &element(0x18, time))).unwrap_or_default();
    let single = element(0x30, &[&id, state, &now, &until].concat());
    let by = element(0xa2, &element(0x04, &[7; 20]));
    let data = element(0x30, &[by, now, element(0x30, &single)].concat());
    let algorithm = element(0x30, &element(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]));
    let basic = element(0x30, &[data, algorithm, element(0x03, &[0, 1])].concat());
    let kind = element(0x06, &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01]);
    let bytes = element(0xa0, &element(0x30, &[kind, element(0x04, &basic)].concat()));
    element(0x30, &[element(0x0a, &[0]), bytes].concat())
}

const GOOD: &[u8] = &[0x80, 0];
const REVOKED: &[u8] = b"\xa1\x11\x18\x0f20260101000000Z";

/// What a client is shown beside the certificate.
fn stapled(terse: &Terse) -> Option<Vec<u8>> {
    let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
    context.set_verify(SslVerifyMode::NONE);
    let mut ssl = Ssl::new(&context.build()).unwrap();
    ssl.set_status_type(StatusType::OCSP).unwrap();
    let stream = ssl.connect(TcpStream::connect(terse.address("web")).unwrap()).unwrap();
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
    assert!(listed.contains("Certificate path : a.pem\n") && listed.contains("      Issuer Key Hash: "), "{listed}");
    let id = listed.lines().find_map(|line| line.strip_prefix("  Certificate ID key : ")).unwrap().to_owned();
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
    let current = answer_until(&site, &root, GOOD, Some(b"29990101000000Z"));
    for (bytes, is_given, said) in [
        (current, true, ""),
        (answer_until(&site, &root, GOOD, Some(b"20260102000000Z")), false, ""),
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
