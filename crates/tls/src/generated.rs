//! Certificates that are made for names that no certificate has (`generate-certificates`), signed by an authority of the
//! line's own.
//!
//! A made certificate has the key of the certificate that is shown by default. So its connection goes on with that one's
//! context, and only the shown certificate differs. A signature costs the worker a fraction of a millisecond, so made
//! certificates are remembered; the least recently used are dropped first.

use crate::certificate::{Certificate, Unusable, read, said};
use crate::pem::{self, Block, certificates};
use crate::raw;
use crate::settings::Passphrase;
use crate::vault::answers::now_s;
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private, Public};
use openssl::ssl::{Ssl, SslRef};
use openssl::x509::extension::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName, SubjectKeyIdentifier,
};
use openssl::x509::{X509, X509Name};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An authority that signs made certificates.
pub(crate) struct Authority {
    certificate: X509,
    /// The certificates above it.
    chain: Vec<X509>,
    key: PKey<Private>,
}

/// Makes certificates for the names of clients, and remembers them.
pub(crate) struct Maker {
    authority: Arc<Authority>,
    /// Certificates whose keys they have: those that are shown by default, one of each kind of key.
    of: Vec<Arc<Certificate>>,
    made: Mutex<Made>,
}

/// The made certificates, by name, and in the order of their last use.
struct Made {
    by_name: HashMap<Arc<str>, (u64, Arc<Shown>)>,
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    limit: usize,
}

/// Certificates that a client of a name is shown: one for each kind of key.
pub(crate) struct Shown {
    certificates: Vec<X509>,
    /// The authority that has signed them, and those above it.
    chain: Vec<X509>,
    made: Instant,
}

impl Authority {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn load(path: &Path, passphrase: Option<&Passphrase>) -> Result<Authority, Unusable> {
        let pem = read(path)?;
        let mut found = certificates(path, &pem)?.into_iter();
        let certificate = found.next().ok_or_else(|| Unusable::new(path, "there is no certificate in it"))?;
        let block = pem::blocks(&pem).find(Block::is_key);
        let block = block.ok_or_else(|| Unusable::new(path, "there is no private key in it"))?;
        // An empty passphrase keeps OpenSSL from asking at the terminal.
        let passphrase = passphrase.map_or(&b""[..], |passphrase| passphrase.0.as_bytes());
        let key = PKey::private_key_from_pem_passphrase(block.text, passphrase);
        let key = key.map_err(|_| Unusable::new(path, "the private key cannot be read, or 'ca-sign-pass' is not its password"))?;
        let public = certificate.public_key().map_err(|error| Unusable::new(path, said(&error)))?;
        if !public.public_eq(&key) {
            drop(ErrorStack::get());
            return Err(Unusable::new(path, "the private key does not belong to the certificate"));
        }
        Ok(Authority { certificate, chain: found.collect(), key })
    }

    /// The certificate itself.
    pub(crate) fn certificate(&self) -> &X509 {
        &self.certificate
    }

    /// A certificate for a name and a key.
    fn sign(&self, name: &str, key: &PKey<Public>) -> Result<X509, ErrorStack> {
        let mut builder = X509::builder()?;
        let mut serial = BigNum::new()?;
        serial.rand(SERIAL_BITS, MsbOption::MAYBE_ZERO, false)?;
        builder.set_version(2)?;
        builder.set_serial_number(&*serial.to_asn1_integer()?)?;
        builder.set_not_before(&*Asn1Time::from_unix(now_s() - DAY_S)?)?;
        builder.set_not_after(&*Asn1Time::from_unix(now_s() + VALID_DAYS * DAY_S)?)?;
        // As HAProxy has it: the authority's subject, and the name after it, where the result is not too long. A subject is
        // not its issuer's.
        let mut subject = X509Name::builder()?;
        for entry in self.certificate.subject_name().entries() {
            subject.append_entry(entry)?;
        }
        match name.len() <= COMMON_NAME_BYTES {
            true => subject.append_entry_by_nid(Nid::COMMONNAME, name)?,
            false => subject.append_entry_by_nid(Nid::SERIALNUMBER, &serial.to_hex_str()?)?,
        }
        builder.set_subject_name(&subject.build())?;
        builder.set_issuer_name(self.certificate.subject_name())?;
        builder.set_pubkey(key)?;
        builder.append_extension(BasicConstraints::new().critical().build()?)?;
        let mut usage = KeyUsage::new();
        usage.critical().digital_signature();
        if key.id() == Id::RSA {
            usage.key_encipherment();
        }
        builder.append_extension(usage.build()?)?;
        builder.append_extension(ExtendedKeyUsage::new().server_auth().build()?)?;
        let subject = SubjectKeyIdentifier::new().build(&builder.x509v3_context(Some(&self.certificate), None))?;
        builder.append_extension(subject)?;
        if self.certificate.subject_key_id().is_some() {
            let context = builder.x509v3_context(Some(&self.certificate), None);
            let issuer = AuthorityKeyIdentifier::new().keyid(true).build(&context)?;
            builder.append_extension(issuer)?;
        }
        let names = SubjectAlternativeName::new().dns(name).build(&builder.x509v3_context(None, None))?;
        builder.append_extension(names)?;
        let digest = match self.key.id() {
            Id::ED25519 | Id::ED448 => MessageDigest::null(),
            _ => MessageDigest::sha256(),
        };
        builder.sign(&self.key, digest)?;
        Ok(builder.build())
    }
}

impl Maker {
    /// A maker of certificates with the keys of these, which remembers so many.
    pub(crate) fn new(authority: Arc<Authority>, of: Vec<Arc<Certificate>>, limit: usize) -> Maker {
        let made = Made { by_name: HashMap::new(), by_use: BTreeMap::new(), uses: 0, limit };
        Maker { authority, of, made: Mutex::new(made) }
    }

    /// Whether it makes them with these keys.
    pub(crate) fn is_of(&self, certificates: &[Arc<Certificate>]) -> bool {
        self.of.len() == certificates.len() && self.of.iter().zip(certificates).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The certificates that a client that asks for a name is shown; `None` where that is no host's name, or OpenSSL makes
    /// none.
    pub(crate) fn shown(&self, name: &str) -> Option<Arc<Shown>> {
        let name = name.to_ascii_lowercase();
        if !is_host(&name) {
            return None;
        }
        if let Some(shown) = self.made().find(&name) {
            return Some(shown);
        }
        // Not under the lock: other workers need not wait for a signature.
        let sign = |of: &Arc<Certificate>| self.authority.sign(&name, &of.leaf.public_key()?);
        let certificates = self.of.iter().map(sign).collect::<Result<Vec<_>, _>>().ok()?;
        let chain = std::iter::once(&self.authority.certificate).chain(&self.authority.chain).cloned().collect();
        let shown = Arc::new(Shown { certificates, chain, made: Instant::now() });
        self.made().keep(&name, shown.clone());
        Some(shown)
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Made {
    fn find(&mut self, name: &str) -> Option<Arc<Shown>> {
        let (name, (used, shown)) = self.by_name.get_key_value(name).map(|(name, kept)| (name.clone(), kept.clone()))?;
        self.by_use.remove(&used);
        if shown.made.elapsed() > REMEMBERED {
            self.by_name.remove(&name);
            return None;
        }
        self.keep(&name, shown.clone());
        Some(shown)
    }

    fn keep(&mut self, name: &str, shown: Arc<Shown>) {
        let name: Arc<str> = name.into();
        self.uses += 1;
        if let Some((used, _)) = self.by_name.insert(name.clone(), (self.uses, shown)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.uses, name);
        while self.by_name.len() > self.limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.by_name.remove(&oldest);
        }
    }
}

impl Shown {
    /// Makes a connection show it, in place of those of its context that have the same keys.
    pub(crate) fn show(&self, ssl: &mut SslRef) -> Result<(), ErrorStack> {
        for certificate in &self.certificates {
            ssl.set_certificate(certificate)?;
            raw::set_chain(ssl, &self.chain)?;
        }
        if let Some(index) = *SHOWN {
            ssl.set_ex_data(index, ());
        }
        Ok(())
    }
}

static SHOWN: LazyLock<Option<Index<Ssl, ()>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// Whether a connection was given a certificate that was made.
pub(crate) fn is_given(ssl: &SslRef) -> bool {
    (*SHOWN).is_some_and(|index| ssl.ex_data(index).is_some())
}

/// Whether a certificate may be signed for a name that any client asks for.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_inside) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Validity of a certificate, in days; browsers take 398 days at most.
const VALID_DAYS: i64 = 365;
const DAY_S: i64 = 86_400;

/// Time after which another certificate is made.
const REMEMBERED: Duration = Duration::from_secs(30 * 86_400);

/// The longest common name (RFC 5280 appendix A.1, ub-common-name).
const COMMON_NAME_BYTES: usize = 64;

/// RFC 5280 section 4.1.2.2 allows 20 bytes.
const SERIAL_BITS: i32 = 127;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Global;
    use crate::testing::{Kind, pair};

    fn maker(limit: usize) -> Maker {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, kind| {
            let pair = pair(kind, name, &[]);
            std::fs::write(folder.path().join(name), [pair.certificate, pair.key].concat()).unwrap();
            folder.path().join(name)
        };
        let global = Global::default();
        let issuers = crate::certificate::Issuers::load(&global);
        let load = |path: &Path| Arc::new(Certificate::load(path, &global, &issuers).unwrap());
        let of = vec![load(&write("rsa", Kind::Rsa)), load(&write("ecdsa", Kind::Ecdsa))];
        let authority = Authority::load(&write("root", Kind::Ecdsa), None).unwrap();
        Maker::new(Arc::new(authority), of, limit)
    }

    #[test]
    fn certificates_are_for_a_name_and_signed() {
        let maker = maker(10);
        let long = format!("{}.{}.test", "a".repeat(50), "b".repeat(50));
        for name in ["a.test", &long] {
            let shown = maker.shown(&name.to_uppercase()).unwrap();
            assert_eq!(shown.certificates.len(), 2);
            for (certificate, of) in shown.certificates.iter().zip(&maker.of) {
                assert!(certificate.public_key().unwrap().public_eq(&of.leaf.public_key().unwrap()));
                assert!(certificate.verify(&maker.authority.key).unwrap());
                let names = certificate.subject_alt_names().unwrap();
                assert_eq!(names.iter().filter_map(|name| name.dnsname()).collect::<Vec<_>>(), [name]);
                let subject: Vec<_> = certificate.subject_name().entries().map(|entry| entry.data().to_string().unwrap()).collect();
                assert_eq!((subject.len(), &*subject[0], subject[1] == name), (2, "root", name.len() <= 64));
                assert_ne!(certificate.subject_name().to_der().unwrap(), certificate.issuer_name().to_der().unwrap());
            }
        }
    }

    #[test]
    fn those_that_are_used_are_remembered() {
        let maker = maker(2);
        let (a, b) = (maker.shown("a").unwrap(), maker.shown("b").unwrap());
        assert!(Arc::ptr_eq(&a, &maker.shown("A").unwrap()));
        maker.shown("c").unwrap();
        assert!(Arc::ptr_eq(&a, &maker.shown("a").unwrap()) && !Arc::ptr_eq(&b, &maker.shown("b").unwrap()));
        let made = maker.made();
        assert_eq!((made.by_name.len(), made.by_use.len()), (2, 2));
    }

    #[test]
    fn names_of_hosts() {
        for name in ["a", "a.test", "xn--a-b.test", "1.2"] {
            assert!(is_host(name), "{name}");
        }
        let (label, name) = ("a".repeat(64), ["a"; 128].join("."));
        for name in ["", ".", "a..b", "a.", "*.a", "a,DNS:b", "a:b", "a b", "-a", "a-", "ä", "a_b", &label, &name] {
            assert!(!is_host(name), "{name}");
        }
    }

    #[test]
    fn authorities_that_cannot_sign() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root");
        let (one, other) = (pair(Kind::Ecdsa, "root", &[]), pair(Kind::Ecdsa, "root", &[]));
        let key = PKey::private_key_from_pem(&one.key).unwrap();
        let locked = key.private_key_to_pem_pkcs8_passphrase(openssl::symm::Cipher::aes_128_cbc(), b"secret").unwrap();
        let load = |bytes: &[&[u8]], passphrase: Option<&str>| {
            std::fs::write(&path, bytes.concat()).unwrap();
            let passphrase = passphrase.map(|text| Passphrase(text.into()));
            Authority::load(&path, passphrase.as_ref()).map(drop).map_err(|Unusable(reason)| reason)
        };
        assert!(load(&[&one.certificate], None).unwrap_err().contains("there is no private key in it"));
        assert!(load(&[&one.key], None).unwrap_err().contains("there is no certificate in it"));
        assert!(load(&[&one.certificate, &other.key], None).unwrap_err().contains("does not belong"));
        assert!(load(&[&one.certificate, &locked], None).unwrap_err().contains("'ca-sign-pass'"));
        assert!(load(&[&one.certificate, &locked], Some("wrong")).unwrap_err().contains("'ca-sign-pass'"));
        assert_eq!(load(&[&one.certificate, &locked], Some("secret")), Ok(()));
    }
}
