//! Blocks of a file in PEM (RFC 7468).
//!
//! OpenSSL passes over blocks that it does not look for, and of some kinds it reads the first block alone. Here no block is
//! passed over that may hold a certificate: a block of an unknown kind is refused by its name. Text that is commented out
//! is no block.

use crate::certificate::{Unusable, said};
use crate::raw;
use openssl::x509::X509;
use std::borrow::Cow;
use std::path::Path;

/// A block: its label, and all of its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Block<'p> {
    pub(crate) label: Cow<'p, str>,
    pub(crate) text: &'p [u8],
}

/// The blocks of a file. A head begins a line, as for OpenSSL, or follows the end of another block at once: with a `#`
/// before it, it is no head. A block without its end extends to the end of the file.
pub(crate) fn blocks(pem: &[u8]) -> impl Iterator<Item = Block<'_>> {
    let mut rest = pem.strip_prefix(UTF8_MARK).unwrap_or(pem);
    std::iter::from_fn(move || {
        let block = &rest[head(rest)?..];
        let head = block[BEGIN.len()..].split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        let label = head.strip_suffix(DASHES).unwrap_or(head);
        let end = [b"-----END ", label, DASHES].concat();
        let len = find(block, &end).map_or(block.len(), |at| at + end.len());
        rest = &block[len..];
        Some(Block { label: String::from_utf8_lossy(label), text: &block[..len] })
    })
}

impl Block<'_> {
    /// Whether it is a certificate, in any of OpenSSL's forms.
    fn is_certificate(&self) -> bool {
        ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"].contains(&&*self.label)
    }

    /// Whether it is a private key, of whatever kind.
    pub(crate) fn is_key(&self) -> bool {
        self.label.ends_with("PRIVATE KEY")
    }

    /// Whether it is a list of revoked certificates.
    pub(crate) fn is_revocation(&self) -> bool {
        self.label == "X509 CRL"
    }

    /// Whether it is a group to exchange keys in.
    pub(crate) fn is_group(&self) -> bool {
        ["DH PARAMETERS", "X9.42 DH PARAMETERS"].contains(&&*self.label)
    }

    /// Whether there is no certificate in it.
    fn has_none(&self) -> bool {
        let others = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST", "EC PARAMETERS", "DSA PARAMETERS"];
        self.is_key()
            || self.is_revocation()
            || self.is_group()
            || self.label.ends_with("PUBLIC KEY")
            || others.contains(&&*self.label)
    }
}

/// The certificates of a file, in their order.
///
/// # Errors
/// A certificate cannot be read, or there is a block that is no certificate and may hold one.
pub(crate) fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<X509>, Unusable> {
    let mut found = Vec::new();
    for block in blocks(pem) {
        if block.is_certificate() {
            let certificate = raw::certificate_from_pem(block.text);
            found.push(certificate.map_err(|error| Unusable::new(path, format!("it cannot be read as PEM: {}", said(&error))))?);
        } else if !block.has_none() {
            let label: String = block.label.chars().filter(|c| !c.is_control()).take(LABEL_CHARS).collect();
            return Err(Unusable::new(path, format!("'{label}' in it is not read: certificates are in PEM as 'CERTIFICATE'")));
        }
    }
    Ok(found)
}

/// Offset of the next head: at the start, or at the start of a line.
fn head(rest: &[u8]) -> Option<usize> {
    let lines = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(lines).find(|at| rest[*at..].starts_with(BEGIN))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|part| part == what)
}

const BEGIN: &[u8] = b"-----BEGIN ";
/// The mark of UTF-8 that some editors put at a file's start.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const DASHES: &[u8] = b"-----";
/// Most characters of a label that are shown.
const LABEL_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;
    use crate::testing::{Kind, pair};

    fn labelled(pem: &[u8], label: &str) -> Vec<u8> {
        String::from_utf8(pem.to_vec()).unwrap().replace("CERTIFICATE", label).into_bytes()
    }

    fn count(pem: &[u8]) -> Result<usize, String> {
        certificates(Path::new("x"), pem).map(|found| found.len()).map_err(|Unusable(reason)| reason)
    }

    #[test]
    fn certificates_have_several_names() {
        let pem = pair(Kind::Ecdsa, "a.test", &[]).certificate;
        let old = labelled(&pem, "X509 CERTIFICATE");
        let trusted = labelled(&pem, "TRUSTED CERTIFICATE");
        assert_eq!(count(&[&pem[..], &old, &trusted].concat()), Ok(3));
        let text = [b"subject: a".as_slice(), b"\n", &old, b"between\n", &trusted].concat();
        let returns = String::from_utf8(text).unwrap().replace('\n', "\r\n");
        assert_eq!(count(returns.as_bytes()), Ok(2));
        assert_eq!(count(&[b"\xef\xbb\xbf", &pem[..]].concat()), Ok(1), "a mark of UTF-8");
        for label in ["CERTIFCATE", "PKCS7", "CMS", "ATTRIBUTE CERTIFICATE", "x"] {
            let reason = count(&[&pem[..], &labelled(&pem, label)].concat()).unwrap_err();
            assert!(reason.starts_with(&format!("'x': '{label}' in it is not read")), "{reason}");
        }
        for label in ["CERTIFICATE REQUEST", "PUBLIC KEY", "RSA PRIVATE KEY", "EC PARAMETERS", "DH PARAMETERS", "X509 CRL"] {
            assert_eq!(count(&[&labelled(&pem, label), &pem[..]].concat()), Ok(1), "{label}");
        }
        assert_eq!(count(b""), Ok(0));
    }

    #[test]
    fn what_is_commented_out_is_no_block() {
        let pem = pair(Kind::Ecdsa, "a.test", &[]).certificate;
        let text = String::from_utf8(pem.clone()).unwrap();
        let lines: String = text.lines().map(|line| format!("#{line}\n")).collect();
        for before in ["#", "# ", "retired: ", " ", "\t", "\u{feff}#", "a\n#"] {
            assert_eq!(count(format!("{before}{text}").as_bytes()), Ok(0), "{before:?}");
            assert_eq!(count(format!("{before}{text}{text}").as_bytes()), Ok(1), "{before:?}");
            assert_eq!(count(format!("{text}{before}{text}{text}").as_bytes()), Ok(2), "{before:?}");
            assert_eq!(count(format!("{before}{text}").replace('\n', "\r\n").as_bytes()), Ok(0), "{before:?}");
        }
        assert_eq!(count(lines.as_bytes()), Ok(0));
        assert_eq!(count(format!("{lines}{text}{lines}").as_bytes()), Ok(1));
        assert_eq!(count(&[b"#", &labelled(&pem, "x")[..]].concat()), Ok(0));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let pem = pair(Kind::Ecdsa, "a.test", &[]).certificate;
        let whole = pem.trim_ascii_end();
        for damaged in [&whole[..whole.len() - 1], &whole[..whole.len() / 2], &whole[..30]] {
            let reason = count(&[&pem[..], damaged].concat()).unwrap_err();
            assert!(reason.starts_with("'x': it cannot be read as PEM"), "{reason}");
        }
        // No line between two.
        assert_eq!(count(&[whole, &pem].concat()), Ok(2));
    }
}
