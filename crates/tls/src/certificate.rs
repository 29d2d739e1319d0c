//! A certificate, the chain above it, and its key: read from files, checked to belong together.

mod draft;

pub(crate) use draft::Draft;

use crate::answer::{Answer, CertificateId};
use crate::pem::certificates;
use crate::report;
use crate::secret::Secret;
use crate::settings::Global;
use openssl::asn1::Asn1Time;
use openssl::dh::Dh;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Params, Private};
use openssl::x509::{X509, X509Ref};
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate that can be shown.
pub(crate) struct Certificate {
    /// The file, or another name that it is called by.
    pub(crate) path: PathBuf,
    /// The certificate itself.
    pub(crate) leaf: X509,
    /// The certificates above it, in order, without it.
    pub(crate) chain: Vec<X509>,
    /// The file of `issuers-chain-path` that these come from.
    pub(crate) chain_path: Option<PathBuf>,
    /// Its key; `None`: the certificate only verifies the signatures of others, those of tokens.
    pub(crate) key: Option<PKey<Private>>,
    /// Diffie-Hellman parameters of the file.
    pub(crate) dh: Option<Arc<Dh<Params>>>,
    /// An answer of its authority about its state, in DER (RFC 6960).
    pub(crate) ocsp: Option<Vec<u8>>,
    /// The certificate of its issuer, where it was named apart.
    pub(crate) issuer: Option<X509>,
    /// Timestamps of logs that have seen it, as TLS carries them (RFC 6962 section 3.3).
    pub(crate) timestamps: Option<Arc<[u8]>>,
    /// The files that were read for it.
    pub(crate) sources: Sources,
}

/// Use of a certificate, which decides whether it needs its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keyed {
    /// The certificate is shown, so its key is required.
    Always,
    /// The certificate may only verify tokens, so its key may be missing.
    AtWill,
}

/// The files that a certificate was read from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sources {
    /// The certificate and its chain.
    pub(crate) certificate: Option<PathBuf>,
    /// Its key.
    pub(crate) key: Option<PathBuf>,
    /// The answer about its state.
    pub(crate) ocsp: Option<PathBuf>,
    /// The certificate of its issuer.
    pub(crate) issuer: Option<PathBuf>,
    /// Timestamps.
    pub(crate) timestamps: Option<PathBuf>,
}

impl Sources {
    /// Whether each file that is named here has been read for `read` too.
    pub(crate) fn are_among(&self, read: &Sources) -> bool {
        let parts = |of: &Sources| [&of.certificate, &of.key, &of.ocsp, &of.issuer, &of.timestamps].map(Clone::clone);
        parts(self).iter().zip(parts(read)).all(|(named, read)| named.is_none() || *named == read)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reason why a file cannot be used. The text names the file and the reason, and never any of its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unusable(pub(crate) String);

impl Unusable {
    pub(crate) fn new(path: &Path, reason: impl fmt::Display) -> Unusable {
        Unusable(format!("'{}': {reason}", path.display()))
    }
}

impl Certificate {
    /// Reads a file and the files beside it.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn load(path: &Path, global: &Global, issuers: &Issuers) -> Result<Certificate, Unusable> {
        let beside = |extension: &str, read: bool| read.then(|| beside(path, extension, global));
        let ocsp = beside("ocsp", global.extra.ocsp).filter(|file| file.is_file());
        let sources = Sources {
            certificate: Some(path.to_owned()),
            key: beside("key", global.extra.key),
            // The issuer is of interest only where there is an answer.
            issuer: beside("issuer", global.extra.issuer && ocsp.is_some()).filter(|file| file.is_file()),
            ocsp,
            timestamps: beside("sctl", global.extra.sctl).filter(|file| file.is_file()),
        };
        Certificate::load_from(path, sources, false, Keyed::Always, issuers)
    }

    /// Reads a certificate from these files; the key is in the first one, or in its own, which goes first if it `overrides`.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn load_from(
        path: &Path,
        mut sources: Sources,
        overrides: bool,
        keyed: Keyed,
        issuers: &Issuers,
    ) -> Result<Certificate, Unusable> {
        let file = sources.certificate.clone().unwrap_or_else(|| path.to_owned());
        let mut draft = Draft::empty(path);
        draft.take_pem(&file, &read(&file)?, issuers)?;
        if draft.key.is_some() && !(overrides && sources.key.is_some()) {
            sources.key = Some(file);
        } else if keyed == Keyed::Always || sources.key.is_some() {
            let other = sources.key.as_ref().filter(|other| other.exists()).ok_or_else(|| {
                let beside = sources.key.as_ref().map(|other| format!(", and no file '{}'", other.display())).unwrap_or_default();
                Unusable::new(&file, format!("there is no private key in it{beside}"))
            })?;
            draft.take_key(other, &read(other)?)?;
        }
        if let Some(ocsp) = &sources.ocsp {
            draft.ocsp = Some(read(ocsp)?.to_vec()).filter(|bytes| !bytes.is_empty());
        }
        if let Some(issuer) = &sources.issuer {
            draft.take_issuer(issuer, &read(issuer)?)?;
        }
        if let Some(file) = &sources.timestamps {
            draft.take_timestamps(file, read(file)?.to_vec())?;
        }
        draft.sources = sources;
        draft.finish(keyed)
    }

    /// The names that it is for: common names and alternative ones, in lower case.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let alternative = self.leaf.subject_alt_names();
        let alternative = alternative.iter().flatten().filter_map(|name| name.dnsname().map(str::to_ascii_lowercase));
        let common = self.leaf.subject_name().entries_by_nid(Nid::COMMONNAME);
        let common = common.filter_map(|entry| Some(entry.data().to_string().ok()?.to_ascii_lowercase()));
        for name in alternative.chain(common) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Its identifier in answers about its state; `None` where the issuer is not known.
    pub(crate) fn id(&self) -> Option<CertificateId> {
        id(&self.leaf, &self.chain, self.issuer.as_ref())
    }

    /// The certificate of its issuer.
    pub(crate) fn issued_by(&self) -> Result<&X509, ErrorStack> {
        issued_by(&self.leaf, &self.chain, self.issuer.as_ref()).ok_or_else(ErrorStack::get)
    }

    /// The answer about its state in the file beside it; an error where that is no answer, or one about another
    /// certificate.
    pub(crate) fn answer(&self) -> Option<Result<Answer, Unusable>> {
        let answer = Answer::parse(self.ocsp.clone()?);
        Some(answer.and_then(|answer| match self.id() {
            Some(id) if id != answer.id => Err(Unusable("OCSP response: it speaks of another certificate".into())),
            _ => Ok(answer),
        }))
    }

    /// Reason why clients are not given the answer in the file beside it, where there is one.
    pub(crate) fn answer_fault(&self, now_s: i64) -> Option<Unusable> {
        let fresh = Answer::fresh(self.ocsp.clone()?, now_s);
        fresh.and_then(|_| self.answer().transpose()).err()
    }

    /// Whether its peers will accept it now, as far as its dates go.
    ///
    /// # Errors
    /// The reason why they will not, unless `global` takes it nevertheless.
    pub(crate) fn check_dates(&self, global: &Global) -> Result<(), Unusable> {
        check_dates(self.sources.certificate.as_ref().unwrap_or(&self.path), &self.leaf, global)
    }

    /// Kind of its key: of each kind a context can have one.
    pub(crate) fn kind(&self) -> Id {
        self.key.as_ref().map_or_else(|| self.leaf.public_key().map_or(Id::RSA, |key| key.id()), |key| key.id())
    }
}

/// Whether the time of a certificate has come, and is not over.
///
/// # Errors
/// The reason why it cannot be used now, unless `global` takes it nevertheless.
pub(crate) fn check_dates(path: &Path, leaf: &X509Ref, global: &Global) -> Result<(), Unusable> {
    if global.takes_expired {
        return Ok(());
    }
    let unknown = |_| Unusable::new(path, "the certificate's dates cannot be read");
    let now = Asn1Time::days_from_now(0).map_err(unknown)?;
    let fault = if leaf.not_after().compare(&now).map_err(unknown)?.is_lt() {
        format!("has expired: its time was over on {}", leaf.not_after())
    } else if leaf.not_before().compare(&now).map_err(unknown)?.is_gt() {
        format!("is not valid yet: its time begins on {}", leaf.not_before())
    } else {
        return Ok(());
    };
    let subject = report::line(leaf.subject_name());
    let accept = "'ssl-expired-certificates accept' in 'global' takes it nevertheless";
    Err(Unusable::new(path, format!("the certificate of '{subject}' {fault}; {accept}")))
}

fn id(leaf: &X509, chain: &[X509], issuer: Option<&X509>) -> Option<CertificateId> {
    CertificateId::new(leaf, issued_by(leaf, chain, issuer)?)
}

fn issued_by<'c>(leaf: &X509, chain: &'c [X509], issuer: Option<&'c X509>) -> Option<&'c X509> {
    let is_above = |above: &&X509| above.issued(leaf) == openssl::x509::X509VerifyResult::OK;
    chain.iter().chain(issuer).find(is_above)
}

/// Certificates that complete chains (`issuers-chain-path`): read once, since certificates may come when files cannot be
/// read any more.
#[derive(Default)]
pub(crate) struct Issuers {
    chains: Vec<(PathBuf, Vec<X509>)>,
    skips_roots: bool,
}

impl Issuers {
    /// Reads the files of a folder; a file that is no chain is passed over.
    pub(crate) fn load(global: &Global) -> Issuers {
        let files = global.issuers.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        let mut paths: Vec<_> = files.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.is_file());
        paths.sort();
        let chain = |path: PathBuf| certificates(&path, &read(&path).ok()?).ok().map(|chain| (path, chain));
        Issuers { chains: paths.into_iter().filter_map(chain).collect(), skips_roots: global.skips_roots }
    }

    /// The chain above a certificate: the first that begins with its issuer.
    fn above(&self, leaf: &X509Ref) -> Option<&(PathBuf, Vec<X509>)> {
        let is_issuer = |first: &X509| first.issued(leaf) == openssl::x509::X509VerifyResult::OK;
        self.chains.iter().find(|(_, chain)| chain.first().is_some_and(is_issuer))
    }
}

impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.chains.iter().map(|(path, _)| path)).finish()
    }
}

/// A whole file, if it is one that can be kept.
pub(crate) fn read(path: &Path) -> Result<Secret, Unusable> {
    let failed = |error: io::Error| Unusable::new(path, error.to_string().split(" (os error").next().unwrap_or_default());
    let file = std::fs::File::open(path).map_err(failed)?;
    // There is room for all of it at once: it need not move, and leaves nothing where it was. A device has no length.
    let len = file.metadata().map_or(0, |known| known.len()).min(FILE_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    // A file without an end, such as a device, must not fill the memory.
    let done = file.take(FILE_BYTES + 1).read_to_end(&mut bytes);
    let bytes = Secret::from(bytes);
    done.map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(Unusable::new(path, format!("it has more than {FILE_BYTES} bytes")));
    }
    Ok(bytes)
}

/// The path of a file beside a certificate's.
fn beside(path: &Path, extension: &str, global: &Global) -> PathBuf {
    if global.extra_replaces_extension && path.extension().is_some_and(|found| found == "crt") {
        return path.with_extension(extension);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// OpenSSL's text of an error, without the data that it read: a reason, never data.
pub(crate) fn said(error: &ErrorStack) -> String {
    let reason = error.errors().first().and_then(openssl::error::Error::reason);
    reason.unwrap_or("OpenSSL gives no reason").to_owned()
}

/// The largest file: a bundle of thousands of authorities.
const FILE_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kind, Pair, pair};

    fn written(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn load(path: &Path, global: &Global) -> Result<Certificate, Unusable> {
        Certificate::load(path, global, &Issuers::load(global))
    }

    fn refused(content: &[u8]) -> String {
        let (_folder, path) = written("site.pem", content);
        let Unusable(reason) = load(&path, &Global::default()).unwrap_err();
        let file = format!("'{}': ", path.display());
        reason.strip_prefix(&file).unwrap_or_else(|| panic!("{reason}")).to_owned()
    }

    #[test]
    fn a_file_with_both_is_loaded() {
        let Pair { certificate, key, .. } = pair(Kind::Rsa, "a.test", &["*.b.test", "A.TEST"]);
        let (_folder, path) = written("site.pem", &[key, certificate].concat());
        let loaded = load(&path, &Global::default()).unwrap();
        assert_eq!(loaded.names(), ["*.b.test", "a.test"]);
        assert_eq!((loaded.kind(), loaded.chain.len()), (Id::RSA, 0));
        assert!(!format!("{loaded:?}").contains("PRIVATE"));
    }

    #[test]
    fn the_key_may_stand_beside_it() {
        let Pair { certificate, key, .. } = pair(Kind::Ecdsa, "a.test", &[]);
        let (folder, path) = written("site.crt", &certificate);
        let Unusable(reason) = load(&path, &Global::default()).unwrap_err();
        assert!(reason.contains("there is no private key in it, and no file"), "{reason}");
        std::fs::write(folder.path().join("site.crt.key"), &key).unwrap();
        assert!(load(&path, &Global::default()).is_ok());
        let replaced = Global { extra_replaces_extension: true, ..Global::default() };
        assert!(load(&path, &replaced).is_err());
        std::fs::write(folder.path().join("site.key"), &key).unwrap();
        assert!(load(&path, &replaced).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_with_the_file() {
        let Pair { certificate, key, .. } = pair(Kind::Ecdsa, "a.test", &[]);
        let other = pair(Kind::Ecdsa, "a.test", &[]);
        let encrypted = PKey::private_key_from_pem(&key).unwrap();
        let encrypted = encrypted.private_key_to_pem_pkcs8_passphrase(openssl::symm::Cipher::aes_128_cbc(), b"secret").unwrap();
        assert_eq!(refused(b""), "there is no certificate in it");
        assert_eq!(refused(&key), "there is no certificate in it");
        assert!(refused(&certificate).starts_with("there is no private key in it"));
        assert_eq!(refused(&[&certificate[..], &other.key].concat()), "the private key does not belong to the certificate");
        assert!(refused(&[&certificate[..], &encrypted].concat()).contains("encrypted"));
        let damaged = String::from_utf8(key.clone()).unwrap().replacen("MIG", "MIH", 1);
        assert!(refused(&[&certificate[..], damaged.as_bytes()].concat()).contains("the private key cannot be read"));
        let damaged = String::from_utf8(certificate).unwrap().replace("MII", "!!!");
        assert!(refused(&[damaged.as_bytes(), &key].concat()).contains("it cannot be read as PEM"));
        let missing = load(Path::new("/nonexistent/x.pem"), &Global::default()).unwrap_err();
        assert_eq!(missing.0, "'/nonexistent/x.pem': No such file or directory");
    }

    #[test]
    fn dates_are_looked_at() {
        let (over, early) = (crate::testing::expired("a.test"), crate::testing::early("a.test"));
        for (Pair { certificate, key }, reason) in
            [(over, "the certificate of '/CN=a.test' has expired"), (early, "the certificate of '/CN=a.test' is not valid yet")]
        {
            let (_folder, path) = written("site.pem", &[certificate, key].concat());
            let loaded = load(&path, &Global::default()).unwrap();
            let Unusable(said) = loaded.check_dates(&Global::default()).unwrap_err();
            assert!(said.contains(reason) && said.contains("'ssl-expired-certificates accept'"), "{said}");
            assert_eq!(loaded.check_dates(&Global { takes_expired: true, ..Global::default() }), Ok(()));
        }
    }
}
