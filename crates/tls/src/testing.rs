//! Keys and certificates for tests, made anew each time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Name};

/// Kind of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Rsa,
    Ecdsa,
}

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// A pair that signs itself.
pub(crate) fn pair(kind: Kind, common: &str, names: &[&str]) -> Pair {
    made(kind, common, names, (-10, 30))
}

/// A pair whose time is over.
pub(crate) fn expired(common: &str) -> Pair {
    made(Kind::Ecdsa, common, &[], (-10, -1))
}

/// A pair whose time has not come.
pub(crate) fn early(common: &str) -> Pair {
    made(Kind::Ecdsa, common, &[], (1, 30))
}

/// A pair that is valid between so many days from now.
fn made(kind: Kind, common: &str, names: &[&str], (from, until): (i64, i64)) -> Pair {
    let key = key(kind);
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_nid(Nid::COMMONNAME, common).unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    let mut serial = BigNum::new().unwrap();
    serial.rand(120, MsbOption::MAYBE_ZERO, false).unwrap();
    builder.set_version(2).unwrap();
    builder.set_serial_number(&serial.to_asn1_integer().unwrap()).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(&key).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    builder.set_not_before(&Asn1Time::from_unix(now + from * DAY_S).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::from_unix(now + until * DAY_S).unwrap()).unwrap();
    builder.append_extension(BasicConstraints::new().ca().build().unwrap()).unwrap();
    if !names.is_empty() {
        let mut alternative = SubjectAlternativeName::new();
        for name in names {
            alternative.dns(name);
        }
        let alternative = alternative.build(&builder.x509v3_context(None, None)).unwrap();
        builder.append_extension(alternative).unwrap();
    }
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    Pair { certificate: builder.build().to_pem().unwrap(), key: key.private_key_to_pem_pkcs8().unwrap() }
}

const DAY_S: i64 = 86_400;

fn key(kind: Kind) -> PKey<Private> {
    match kind {
        Kind::Rsa => PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap(),
        Kind::Ecdsa => {
            let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
            PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
        }
    }
}
