//! Answers of an authority about a certificate's state (OCSP, RFC 6960): the certificate that each is for, and its content.

use crate::certificate::{Unusable, said};
use crate::der::{self, Element, INTEGER, OBJECT, OCTETS, SEQUENCE};
use crate::raw;
use data_encoding::{HEXLOWER, HEXUPPER};
use openssl::asn1::Asn1Time;
use openssl::ocsp::{OcspResponse, OcspResponseStatus};
use openssl::sha::sha1;
use openssl::x509::X509;
use std::fmt::Write as _;

/// Identifier of a certificate (`CertID`, RFC 6960 section 4.1.1): its number, and hashes of its issuer's name and key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CertificateId(Vec<u8>);

impl CertificateId {
    /// The identifier of a certificate, by SHA-1, which is the hash that answers have.
    pub(crate) fn new(leaf: &X509, issuer: &X509) -> Option<CertificateId> {
        let (leaf, issuer) = (leaf.to_der().ok()?, issuer.to_der().ok()?);
        let [serial, name, _] = parts(&leaf)?;
        let [_, _, key] = parts(&issuer)?;
        // The bits of the key, without the count of unused bits of the last byte.
        let bits = der::elements(key.content).nth(1)?.content.get(1..)?;
        let algorithm = [der::encode(OBJECT, SHA1), der::encode(0x05, b"")].concat();
        let id = [
            der::encode(SEQUENCE, &algorithm),
            der::encode(OCTETS, &sha1(&der::encode(name.tag, name.content))),
            der::encode(OCTETS, &sha1(bits)),
            der::encode(serial.tag, serial.content),
        ];
        Some(CertificateId(der::encode(SEQUENCE, &id.concat())))
    }

    /// The identifier in an answer. A hash has no parameters, which are written as NULL or not at all (RFC 5754 section 2):
    /// here always as NULL.
    fn parse(content: &[u8]) -> Option<CertificateId> {
        let mut parts = der::elements(content);
        let hash = der::elements(parts.next()?.content).next().filter(|hash| hash.tag == OBJECT)?;
        let algorithm = [der::encode(OBJECT, hash.content), der::encode(0x05, b"")].concat();
        let mut id = der::encode(SEQUENCE, &algorithm);
        for tag in [OCTETS, OCTETS, INTEGER] {
            let part = parts.next().filter(|part| part.tag == tag)?;
            id.extend(der::encode(tag, part.content));
        }
        Some(CertificateId(der::encode(SEQUENCE, &id)))
    }

    /// Hexadecimal digits of the identifier, as commands write it.
    pub(crate) fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// Its parts, a line each.
    pub(crate) fn lines(&self) -> String {
        let whole = der::elements(&self.0).next().map_or(&[][..], |whole| whole.content);
        let mut parts = der::elements(whole).skip(1).map(|part| part.content);
        let mut text = String::new();
        for what in ["Issuer Name Hash", "Issuer Key Hash", "Serial Number"] {
            let _ = writeln!(text, "    {what}: {}", HEXUPPER.encode(parts.next().unwrap_or_default()));
        }
        text
    }
}

/// An answer that can be given to clients.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Identifier of its certificate.
    pub(crate) id: CertificateId,
    /// The answer in DER.
    pub(crate) der: Vec<u8>,
    single: Single,
}

/// The part of an answer about that certificate (`SingleResponse`, RFC 6960 section 4.2.1).
#[derive(Debug)]
struct Single {
    /// Whether its authority knows the certificate: as good, or as revoked.
    is_known: bool,
    /// Time from which the state holds (thisUpdate).
    since: String,
    /// Time of the next answer (nextUpdate), if one is given.
    until: Option<String>,
}

impl Answer {
    /// Parses an answer.
    ///
    /// # Errors
    /// The bytes are no answer, or one that its authority could not give.
    pub(crate) fn parse(der: Vec<u8>) -> Result<Answer, Unusable> {
        let bad = |reason: &str| Unusable(format!("OCSP response: {reason}"));
        let response = OcspResponse::from_der(&der).map_err(|error| bad(&said(&error)))?;
        if response.status() != OcspResponseStatus::SUCCESSFUL {
            return Err(bad("OCSP response status not successful"));
        }
        match single(&der) {
            Some((id, single)) => Ok(Answer { id, der, single }),
            None => Err(bad("it does not speak of exactly one certificate")),
        }
    }

    /// Parses an answer that is to be given to clients from now on.
    ///
    /// # Errors
    /// It does not know the certificate, or its time has not come, or is over, or as good as over.
    pub(crate) fn fresh(der: Vec<u8>, now_s: i64) -> Result<Answer, Unusable> {
        let bad = |reason: &str| Err(Unusable(format!("OCSP single response: {reason}")));
        let answer = Answer::parse(der)?;
        let Single { is_known, since, until } = &answer.single;
        let Some(until) = until else { return bad("missing nextupdate") };
        let soon = now_s + SKEW_S;
        match (seconds(since), seconds(until)) {
            _ if !is_known => bad("certificate status is unknown"),
            (Some(since), _) if since > soon => bad("not valid yet"),
            (Some(_), Some(until)) if until > soon => Ok(answer),
            (Some(_), Some(_)) => bad(&format!("no longer valid. Must be valid during at least {SKEW_S}s")),
            _ => bad("its times cannot be read"),
        }
    }

    /// Whether no newer answer is due yet: clients refuse a site that gives an older one, and not one that gives none.
    pub(crate) fn is_current(&self, now_s: i64) -> bool {
        self.until_s().is_some_and(|until| until > now_s)
    }

    /// Time from which the state holds, in seconds since 1970.
    pub(crate) fn since_s(&self) -> Option<i64> {
        seconds(&self.single.since)
    }

    /// Time of the next answer, in seconds since 1970.
    pub(crate) fn until_s(&self) -> Option<i64> {
        seconds(self.single.until.as_deref()?)
    }
}

/// A time of an answer, `20260101000000Z`, in seconds since 1970. Of all that the type could hold, answers have this alone
/// (RFC 6960 section 4.2.2.1), and the `openssl` crate panics at some of the rest.
fn seconds(time: &str) -> Option<i64> {
    let digits = time.strip_suffix('Z').filter(|digits| digits.len() == 14 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let passed = Asn1Time::from_str(&format!("{digits}Z")).and_then(|time| Asn1Time::from_unix(0)?.diff(&time)).ok()?;
    Some(i64::from(passed.days) * 86_400 + i64::from(passed.secs))
}

/// Tolerated difference between the clocks of authorities or clients and ours, in seconds.
pub(crate) const SKEW_S: i64 = 300;

/// The text of an answer, as OpenSSL writes it. `None` if it is none.
pub(crate) fn text(der: &[u8]) -> Option<String> {
    let text = raw::answer_text(&*OcspResponse::from_der(der).ok()?)?;
    // An empty line would end the answer of a command.
    Some(text.lines().filter(|line| !line.trim().is_empty()).flat_map(|line| [line, "\n"]).collect())
}

/// The certificate that an answer is about, if it is an answer, and its content.
fn single(der: &[u8]) -> Option<(CertificateId, Single)> {
    let first = |bytes: &'_ [u8]| -> Option<Vec<u8>> { der::elements(bytes).next().map(|element| element.content.to_vec()) };
    // OCSPResponse { status, [0] { ResponseBytes { type, BasicOCSPResponse { ResponseData ... } } } }
    let response = first(der)?;
    let bytes = first(der::elements(&response).nth(1)?.content)?;
    let basic = first(der::elements(&bytes).nth(1).filter(|octets| octets.tag == OCTETS)?.content)?;
    let data = first(&basic)?;
    // Parts with other tags precede the list of responses: a version, the responder, a time.
    let list = der::elements(&data).find(|part| part.tag == SEQUENCE)?;
    let mut responses = der::elements(list.content);
    let one = responses.next()?;
    let id = CertificateId::parse(&first(one.content)?)?;
    // SingleResponse { certID, certStatus, thisUpdate, [0] nextUpdate, ... }
    let mut parts = der::elements(one.content).skip(1);
    let is_known = [GOOD, REVOKED].contains(&parts.next()?.tag);
    let since = String::from_utf8(parts.next().filter(|part| part.tag == TIME)?.content.to_vec()).ok()?;
    let until = parts.next().filter(|part| part.tag == NEXT_UPDATE);
    let until = until.and_then(|part| first(part.content)).and_then(|time| String::from_utf8(time).ok());
    responses.next().is_none().then_some((id, Single { is_known, since, until }))
}

/// `[0]`, without content.
const GOOD: u8 = 0x80;
/// `[1]`, with when and why.
const REVOKED: u8 = 0xa1;
/// `GeneralizedTime`
const TIME: u8 = 0x18;
/// `[0]`, with an element in it.
const NEXT_UPDATE: u8 = 0xa0;

/// A certificate's number, its issuer's name, and its key.
fn parts(certificate: &[u8]) -> Option<[Element<'_>; 3]> {
    let whole = der::elements(certificate).next().filter(|whole| whole.tag == SEQUENCE)?;
    let signed = der::elements(whole.content).next()?;
    let mut parts = der::elements(signed.content).skip_while(|part| part.tag != INTEGER);
    let (serial, _, issuer, _, _, key) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some([serial, issuer, key])
}

/// 1.3.14.3.2.26
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kind, pair};
    use openssl::hash::MessageDigest;
    use openssl::ocsp::{OcspCertId, OcspRequest};

    #[test]
    fn an_id_is_openssls() {
        for kind in [Kind::Rsa, Kind::Ecdsa] {
            let certificate = X509::from_pem(&pair(kind, "a.test", &[]).certificate).unwrap();
            let id = CertificateId::new(&certificate, &certificate).unwrap();
            let mut request = OcspRequest::new().unwrap();
            let theirs = OcspCertId::from_cert(MessageDigest::sha1(), &certificate, &certificate).unwrap();
            request.add_id(theirs).unwrap();
            let request = request.to_der().unwrap();
            assert!(request.windows(id.0.len()).any(|part| part == id.0), "{}", id.hex());
            assert_eq!(id.lines().lines().count(), 3);
        }
    }

    #[test]
    fn an_id_is_the_same_however_its_hash_is_written() {
        let certificate = X509::from_pem(&pair(Kind::Ecdsa, "a.test", &[]).certificate).unwrap();
        let id = CertificateId::new(&certificate, &certificate).unwrap();
        let content = der::elements(&id.0).next().unwrap().content;
        let (algorithm, rest) = content.split_at(11);
        assert_eq!(CertificateId::parse(content).as_ref(), Some(&id));
        let bare = der::encode(SEQUENCE, &der::encode(OBJECT, SHA1));
        assert_eq!(CertificateId::parse(&[&bare, rest].concat()).as_ref(), Some(&id));
        let other = der::encode(SEQUENCE, &der::encode(OBJECT, &SHA1[1..]));
        assert_ne!(CertificateId::parse(&[&other, rest].concat()).as_ref(), Some(&id));
        for cut in [algorithm, &content[..content.len() - 1], rest, b""] {
            assert_eq!(CertificateId::parse(cut), None);
        }
    }

    #[test]
    fn times_have_one_form() {
        assert_eq!(seconds("19700101000000Z"), Some(0));
        assert_eq!(seconds("20260101000001Z"), Some(1_767_225_601));
        assert_eq!(seconds("29990101000000Z"), Some(32_472_144_000));
        for time in [
            "",
            "Z",
            "\0",
            "20260101000000\0",
            "2026010100000\0Z",
            "20260101000000Z\0",
            "20261301000000Z",
            "20260101000000",
            "260101000000Z",
        ] {
            assert_eq!(seconds(time), None, "{time:?}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bytes in [&b""[..], b"nothing", &[0x30, 3, 0x0a, 1, 6], &[0x30, 3, 0x0a, 1, 0]] {
            assert!(Answer::parse(bytes.to_vec()).is_err(), "{bytes:?}");
        }
    }
}
