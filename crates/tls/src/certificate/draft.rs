//! A certificate on its way: its parts, which must belong together in the end.

use super::{Certificate, Issuers, Keyed, Sources, Unusable, id, said};
use crate::answer::CertificateId;
use crate::hello::sized;
use crate::pem::{self, Block, certificates};
use openssl::dh::Dh;
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Params, Private};
use openssl::x509::{X509, X509Ref};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate on its way: its parts come one by one, from files or from the stats socket.
#[derive(Clone)]
pub(crate) struct Draft {
    /// The name that it is called by.
    pub(crate) path: PathBuf,
    pub(crate) leaf: Option<X509>,
    pub(crate) chain: Vec<X509>,
    pub(crate) chain_path: Option<PathBuf>,
    pub(crate) key: Option<PKey<Private>>,
    pub(crate) dh: Option<Arc<Dh<Params>>>,
    pub(crate) ocsp: Option<Vec<u8>>,
    issuer: Option<X509>,
    timestamps: Option<Arc<[u8]>>,
    pub(crate) sources: Sources,
    /// The certificate and its key have come together.
    pub(crate) is_whole: bool,
}

impl Draft {
    /// A draft without any part.
    pub(crate) fn empty(path: &Path) -> Draft {
        Draft {
            path: path.to_owned(),
            leaf: None,
            chain: Vec::new(),
            chain_path: None,
            key: None,
            dh: None,
            ocsp: None,
            issuer: None,
            timestamps: None,
            sources: Sources::default(),
            is_whole: false,
        }
    }

    /// A draft with the parts of a certificate.
    pub(crate) fn of(certificate: &Certificate) -> Draft {
        Draft {
            path: certificate.path.clone(),
            leaf: Some(certificate.leaf.clone()),
            chain: certificate.chain.clone(),
            chain_path: certificate.chain_path.clone(),
            key: certificate.key.clone(),
            dh: certificate.dh.clone(),
            ocsp: certificate.ocsp.clone(),
            issuer: certificate.issuer.clone(),
            timestamps: certificate.timestamps.clone(),
            sources: certificate.sources.clone(),
            is_whole: false,
        }
    }

    /// Takes a certificate, its chain, its key if it is there, and parameters. Parts of another certificate are dropped,
    /// but for a key, which may belong to this one too.
    ///
    /// # Errors
    /// The first fault; then nothing has changed.
    pub(crate) fn take_pem(&mut self, path: &Path, pem: &[u8], issuers: &Issuers) -> Result<(), Unusable> {
        let mut found = certificates(path, pem)?.into_iter();
        let leaf = found.next().ok_or_else(|| Unusable::new(path, "there is no certificate in it"))?;
        let (key, group) = (key_in(path, pem)?, group_in(path, pem)?);
        (self.chain, self.chain_path) = (found.collect(), None);
        if self.chain.is_empty()
            && let Some((path, chain)) = issuers.above(&leaf)
        {
            (self.chain, self.chain_path) = (chain.clone(), Some(path.clone()));
        }
        if issuers.skips_roots {
            self.chain.retain(|certificate| !is_root(certificate));
        }
        self.leaf = Some(leaf);
        self.is_whole = key.is_some();
        self.key = key.or(self.key.take());
        self.dh = group.map(Arc::new);
        (self.ocsp, self.issuer, self.timestamps) = (None, None, None);
        Ok(())
    }

    /// Takes a key.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(crate) fn take_key(&mut self, path: &Path, pem: &[u8]) -> Result<(), Unusable> {
        let key = key_in(path, pem)?;
        self.key = Some(key.ok_or_else(|| Unusable::new(path, "there is no private key in it"))?);
        Ok(())
    }

    /// Takes the certificate of the issuer.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn take_issuer(&mut self, path: &Path, pem: &[u8]) -> Result<(), Unusable> {
        let first = certificates(path, pem)?.into_iter().next();
        self.issuer = Some(first.ok_or_else(|| Unusable::new(path, "there is no certificate in it"))?);
        Ok(())
    }

    /// Takes timestamps of logs.
    ///
    /// # Errors
    /// They do not have the form of a list (RFC 6962 section 3.3).
    pub(crate) fn take_timestamps(&mut self, path: &Path, bytes: Vec<u8>) -> Result<(), Unusable> {
        match is_list_of_timestamps(&bytes) {
            true => self.timestamps = Some(bytes.into()),
            false => return Err(Unusable::new(path, "it is no list of signed timestamps")),
        }
        Ok(())
    }

    /// Its identifier in answers about its state.
    pub(crate) fn id(&self) -> Option<CertificateId> {
        id(self.leaf.as_ref()?, &self.chain, self.issuer.as_ref())
    }

    /// Keeps the answer about the state of the certificate that was there before, and its issuer, if it is this one, too.
    pub(crate) fn inherit(&mut self, before: &Certificate) {
        let issuer = before.issued_by().ok();
        let id = self.leaf.as_ref().zip(issuer).and_then(|(leaf, issuer)| CertificateId::new(leaf, issuer));
        if self.ocsp.is_none() && id.is_some() && id == before.id() {
            self.ocsp = before.ocsp.clone();
            self.issuer = self.issuer.take().or_else(|| before.issuer.clone());
        }
    }

    /// The certificate, if its parts belong together.
    ///
    /// # Errors
    /// The reason why they do not.
    pub(crate) fn finish(self, keyed: Keyed) -> Result<Certificate, Unusable> {
        let path = &self.path;
        let leaf = self.leaf.ok_or_else(|| Unusable::new(path, "there is no certificate"))?;
        if self.key.is_none() && keyed == Keyed::Always {
            return Err(Unusable::new(path, "there is no private key"));
        }
        let key = self.key;
        let public = leaf.public_key().map_err(|error| Unusable::new(path, format!("the certificate's key: {}", said(&error))))?;
        if key.as_ref().is_some_and(|key| !public.public_eq(key)) {
            // Not to be equal is an error to OpenSSL.
            drop(ErrorStack::get());
            let (from, of) = match self.sources.key.as_ref().filter(|from| Some(*from) != self.sources.certificate.as_ref()) {
                None => (path, String::new()),
                Some(from) => (from, format!(" of '{}'", path.display())),
            };
            return Err(Unusable::new(from, format!("the private key does not belong to the certificate{of}")));
        }
        if self.issuer.as_ref().is_some_and(|issuer| issuer.issued(&leaf) != openssl::x509::X509VerifyResult::OK) {
            drop(ErrorStack::get());
            return Err(Unusable::new(self.sources.issuer.as_ref().unwrap_or(path), "it is not who has signed the certificate"));
        }
        let Draft { path, chain, chain_path, dh, ocsp, issuer, timestamps, sources, .. } = self;
        Ok(Certificate { path, leaf, chain, chain_path, key, dh, ocsp, issuer, timestamps, sources })
    }
}

/// The key of a file in PEM, if there is one.
fn key_in(path: &Path, pem: &[u8]) -> Result<Option<PKey<Private>>, Unusable> {
    // A key of an elliptic curve may follow a block of its own for the curve.
    let Some(block) = pem::blocks(pem).find(Block::is_key) else { return Ok(None) };
    let asked = Cell::new(false);
    let key = PKey::private_key_from_pem_callback(block.text, |_| {
        asked.set(true);
        Ok(0)
    });
    match key {
        Ok(key) => Ok(Some(key)),
        Err(_) if asked.get() => {
            Err(Unusable::new(path, "the private key is encrypted, and nobody is there to be asked for a password"))
        }
        Err(_) => {
            Err(Unusable::new(path, "the private key cannot be read: it is damaged, or of a kind that OpenSSL does not know"))
        }
    }
}

/// Diffie-Hellman parameters of a file in PEM, if there are any.
fn group_in(path: &Path, pem: &[u8]) -> Result<Option<Dh<Params>>, Unusable> {
    let Some(block) = pem::blocks(pem).find(Block::is_group) else { return Ok(None) };
    let unread = |error| Unusable::new(path, format!("'{}' in it cannot be read: {}", block.label, said(&error)));
    Dh::params_from_pem(block.text).map(Some).map_err(unread)
}

/// Whether bytes are a list of items, each after its length, after the length of all.
fn is_list_of_timestamps(bytes: &[u8]) -> bool {
    let Some((mut list, [])) = sized(bytes, 2).filter(|(list, _)| !list.is_empty()) else { return false };
    while let Some((_, behind)) = sized(list, 2).filter(|(item, _)| !item.is_empty()) {
        list = behind;
    }
    list.is_empty()
}

fn is_root(certificate: &X509Ref) -> bool {
    certificate.issued(certificate) == openssl::x509::X509VerifyResult::OK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_timestamps() {
        for (bytes, is_list) in [
            (&[0, 3, 0, 1, 7][..], true),
            (&[0, 6, 0, 1, 7, 0, 1, 8], true),
            (&[], false),
            (&[0, 0], false),
            (&[0, 2, 0, 0], false),
            (&[0, 3, 0, 2, 7], false),
            (&[0, 4, 0, 1, 7], false),
            (&[0, 4, 0, 1, 7, 0], false),
        ] {
            assert_eq!(is_list_of_timestamps(bytes), is_list, "{bytes:?}");
        }
    }
}
