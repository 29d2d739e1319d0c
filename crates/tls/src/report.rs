//! Certificates, and lists of those that were revoked, as the stats socket shows them: HAProxy's lines.

use crate::dn::Dn;
use crate::raw;
use crate::shown::{Shown, Whose};
use data_encoding::HEXUPPER;
use openssl::asn1::Asn1TimeRef;
use openssl::nid::Nid;
use openssl::pkey::Id;
use openssl::x509::{X509, X509CrlRef, X509NameRef, X509Ref};
use std::fmt::Write as _;

/// A certificate and the names of those above it.
pub(crate) fn certificate(leaf: &X509, chain: &[X509]) -> String {
    let shown = Shown(leaf.clone());
    let name = |shown: &Shown, whose| shown.dn(whose).line().map(|name| clean(&String::from_utf8_lossy(&name))).unwrap_or_default();
    let mut text = String::new();
    let _ = writeln!(text, "Serial: {}", shown.serial().map(|bytes| HEXUPPER.encode(&bytes)).unwrap_or_default());
    let _ = writeln!(text, "notBefore: {}", leaf.not_before());
    let _ = writeln!(text, "notAfter: {}", leaf.not_after());
    let _ = writeln!(text, "Subject Alternative Name: {}", shown.other_names().map(|names| clean(&names)).unwrap_or_default());
    let _ = writeln!(text, "Algorithm: {}", algorithm(leaf));
    let _ = writeln!(text, "SHA1 FingerPrint: {}", shown.sha1().map(|bytes| HEXUPPER.encode(&bytes)).unwrap_or_default());
    let _ = writeln!(text, "Subject: {}", name(&shown, Whose::Subject));
    let _ = writeln!(text, "Issuer: {}", name(&shown, Whose::Issuer));
    for above in chain.iter().map(|above| Shown(above.clone())) {
        let _ = writeln!(text, "Chain Subject: {}", name(&above, Whose::Subject));
        let _ = writeln!(text, "Chain Issuer: {}", name(&above, Whose::Issuer));
    }
    text
}

/// A list of revoked certificates.
pub(crate) fn revoked(list: &X509CrlRef) -> String {
    let (version, algorithm) = raw::revoked_form(list);
    let mut text = String::new();
    let _ = writeln!(text, "Version {version}");
    let _ = writeln!(text, "Signature Algorithm: {}", algorithm.long_name().unwrap_or("UNDEF"));
    let _ = writeln!(text, "Issuer: {}", line(list.issuer_name()));
    let _ = writeln!(text, "Last Update: {}", list.last_update());
    let _ = writeln!(text, "Next Update: {}", list.next_update().map(Asn1TimeRef::to_string).unwrap_or_default());
    let entries = list.get_revoked().into_iter().flatten();
    let mut any = false;
    for entry in entries {
        if !std::mem::replace(&mut any, true) {
            text.push_str("Revoked Certificates:\n");
        }
        let serial = entry.serial_number().to_bn().map(|number| HEXUPPER.encode(&number.to_vec())).unwrap_or_default();
        let _ = writeln!(text, "    Serial Number: {serial}\n        Revocation Date: {}", entry.revocation_date());
    }
    if !any {
        text.push_str("No Revoked Certificates.\n");
    }
    text
}

/// Kind of a certificate's key: `rsa`, `ecdsa`, `dsa`.
pub(crate) fn key_kind(leaf: &X509Ref) -> &'static str {
    match leaf.public_key().map(|key| key.id()) {
        Ok(Id::RSA) => "rsa",
        Ok(Id::DSA) => "dsa",
        _ => "ecdsa",
    }
}

/// `RSA2048`, `EC256`
fn algorithm(leaf: &X509Ref) -> String {
    let Ok(key) = leaf.public_key() else { return String::new() };
    match key.id() {
        Id::RSA => format!("RSA{}", key.bits()),
        Id::EC => format!("EC{}", key.bits()),
        Id::DSA => format!("DSA{}", key.bits()),
        other => Nid::from_raw(other.as_raw()).short_name().unwrap_or("UNDEF").to_owned(),
    }
}

/// A name as one line: `/C=FR/CN=Authority`.
pub(crate) fn line(name: &X509NameRef) -> String {
    clean(&String::from_utf8_lossy(&Dn::of(name).line().unwrap_or_default()))
}

/// Cleans a text: a name of a certificate may hold any bytes, but an answer has no lines but its own.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '.' } else { c }).collect()
}
