//! Keys and certificates, made anew for each test.

use openssl::asn1::{Asn1Object, Asn1OctetString, Asn1Time};
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{AuthorityKeyIdentifier, BasicConstraints, SubjectAlternativeName, SubjectKeyIdentifier};
use openssl::x509::{X509, X509CrlBuilder, X509Extension, X509Name, X509RevokedBuilder};
use std::time::{SystemTime, UNIX_EPOCH};

/// A certificate and its key.
pub struct Pair {
    pub certificate: X509,
    pub key: PKey<Private>,
}

impl Pair {
    /// Both, in PEM.
    pub fn pem(&self) -> Vec<u8> {
        [self.certificate.to_pem().unwrap(), self.key_pem()].concat()
    }

    /// The certificate, in PEM.
    pub fn certificate_pem(&self) -> Vec<u8> {
        self.certificate.to_pem().unwrap()
    }

    /// The key, in PEM.
    pub fn key_pem(&self) -> Vec<u8> {
        self.key.private_key_to_pem_pkcs8().unwrap()
    }
}

/// Kind of key.
#[derive(Clone, Copy)]
pub enum Kind {
    Rsa,
    Ecdsa,
    /// Too short a key for OpenSSL's usual security level.
    Short,
}

/// An authority.
pub fn authority(name: &str) -> Pair {
    made(&Wanted { kind: Kind::Ecdsa, name, others: &[], days: (-10, 30), is_authority: true, responder: None }, None)
}

/// A certificate for names; the first is its common name.
pub fn signed(kind: Kind, names: &[&str], by: &Pair) -> Pair {
    made(&Wanted { kind, name: names[0], others: names, days: (-10, 30), is_authority: false, responder: None }, Some(by))
}

/// An authority below another one.
pub fn intermediate(name: &str, by: &Pair) -> Pair {
    made(&Wanted { kind: Kind::Ecdsa, name, others: &[], days: (-10, 30), is_authority: true, responder: None }, Some(by))
}

/// A certificate whose key is too short.
pub fn weak(name: &str, by: &Pair) -> Pair {
    signed(Kind::Short, &[name], by)
}

/// A certificate whose subject has these entries.
pub fn entitled(entries: &[(&str, &str)], by: &Pair) -> Pair {
    let Pair { certificate: like, key } = signed(Kind::Ecdsa, &["x.test"], by);
    let mut subject = X509Name::builder().unwrap();
    for (kind, value) in entries {
        subject.append_entry_by_text(kind, value).unwrap();
    }
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_serial_number(like.serial_number()).unwrap();
    builder.set_subject_name(&subject.build()).unwrap();
    builder.set_issuer_name(like.issuer_name()).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.set_not_before(like.not_before()).unwrap();
    builder.set_not_after(like.not_after()).unwrap();
    builder.sign(&by.key, MessageDigest::sha256()).unwrap();
    Pair { certificate: builder.build(), key }
}

/// An authority below another one; its certificate has `number` other names of this label.
pub fn wide(name: &str, label: &str, number: usize, by: &Pair) -> Pair {
    let others: Vec<String> = (0..number).map(|number| format!("{label}.{number}")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    made(&Wanted { kind: Kind::Ecdsa, name, others: &others, days: (-10, 30), is_authority: true, responder: None }, Some(by))
}

/// A certificate with the place where answers about its state are.
pub fn answered(name: &str, by: &Pair, responder: &str) -> Pair {
    let wanted =
        Wanted { kind: Kind::Ecdsa, name, others: &[name], days: (-10, 30), is_authority: false, responder: Some(responder) };
    made(&wanted, Some(by))
}

/// A certificate that has expired.
pub fn expired(name: &str, by: &Pair) -> Pair {
    made(&Wanted { kind: Kind::Ecdsa, name, others: &[name], days: (-10, -1), is_authority: false, responder: None }, Some(by))
}

/// A certificate that is not valid yet.
pub fn early(name: &str, by: &Pair) -> Pair {
    made(&Wanted { kind: Kind::Ecdsa, name, others: &[name], days: (1, 30), is_authority: false, responder: None }, Some(by))
}

/// A list of certificates that their authority has taken back, in PEM.
pub fn revoked(certificates: &[&Pair], by: &Pair) -> Vec<u8> {
    let mut list = X509CrlBuilder::new().unwrap();
    list.set_issuer_name(by.certificate.subject_name()).unwrap();
    list.set_last_update(&at(-1)).unwrap();
    list.set_next_update(&at(30)).unwrap();
    for pair in certificates {
        let mut entry = X509RevokedBuilder::new().unwrap();
        entry.set_serial_number(pair.certificate.serial_number()).unwrap();
        entry.set_revocation_date(&at(-1)).unwrap();
        list.add_revoked(entry.build()).unwrap();
    }
    let context = X509::builder().unwrap();
    let context = context.x509v3_context(Some(&by.certificate), None);
    list.append_extension(AuthorityKeyIdentifier::new().keyid(true).build(&context).unwrap()).unwrap();
    // CRLNumber (RFC 5280 section 5.2.3): the integer 1.
    let identifier = Asn1Object::from_str("2.5.29.20").unwrap();
    let number = Asn1OctetString::new_from_bytes(&[2, 1, 1]).unwrap();
    list.append_extension(X509Extension::new_from_der(&identifier, false, &number).unwrap()).unwrap();
    list.sort().unwrap();
    list.sign(&by.key, MessageDigest::sha256()).unwrap();
    list.build().unwrap().to_pem().unwrap()
}

struct Wanted<'a> {
    kind: Kind,
    name: &'a str,
    others: &'a [&'a str],
    /// Begin and end of its validity, in days from now.
    days: (i64, i64),
    is_authority: bool,
    /// Address of the responder for its state.
    responder: Option<&'a str>,
}

fn made(wanted: &Wanted<'_>, by: Option<&Pair>) -> Pair {
    let key = match wanted.kind {
        Kind::Rsa => PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap(),
        Kind::Short => PKey::from_rsa(Rsa::generate(1024).unwrap()).unwrap(),
        Kind::Ecdsa => {
            let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
            PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
        }
    };
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_nid(Nid::COMMONNAME, wanted.name).unwrap();
    let name = name.build();
    let mut serial = BigNum::new().unwrap();
    serial.rand(120, MsbOption::MAYBE_ZERO, false).unwrap();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_serial_number(&serial.to_asn1_integer().unwrap()).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(by.map_or(&name, |by| by.certificate.subject_name())).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.set_not_before(&at(wanted.days.0)).unwrap();
    builder.set_not_after(&at(wanted.days.1)).unwrap();
    if wanted.is_authority {
        builder.append_extension(BasicConstraints::new().critical().ca().build().unwrap()).unwrap();
        let identifier = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None)).unwrap();
        builder.append_extension(identifier).unwrap();
    }
    if !wanted.others.is_empty() {
        let mut others = SubjectAlternativeName::new();
        for other in wanted.others {
            match other.parse::<std::net::IpAddr>() {
                Ok(_) => others.ip(other),
                Err(_) => others.dns(other),
            };
        }
        let others = others.build(&builder.x509v3_context(None, None)).unwrap();
        builder.append_extension(others).unwrap();
    }
    if let Some(responder) = wanted.responder {
        // AuthorityInfoAccess (RFC 5280 section 4.2.2.1): id-ad-ocsp and a URI.
        let place = [&[0x86, responder.len() as u8][..], responder.as_bytes()].concat();
        let method = [&[0x06, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1][..], &place].concat();
        let access = [&[0x30, method.len() as u8 + 2, 0x30, method.len() as u8][..], &method].concat();
        let identifier = Asn1Object::from_str("1.3.6.1.5.5.7.1.1").unwrap();
        let access = Asn1OctetString::new_from_bytes(&access).unwrap();
        builder.append_extension(X509Extension::new_from_der(&identifier, false, &access).unwrap()).unwrap();
    }
    builder.sign(by.map_or(&key, |by| &by.key), MessageDigest::sha256()).unwrap();
    Pair { certificate: builder.build(), key }
}

/// So many days from now.
fn at(days: i64) -> Asn1Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    Asn1Time::from_unix(now + days * 86_400).unwrap()
}
