//! Authorities that certificates of the other end must come from, and the certificates that were revoked.

use crate::certificate::{Unusable, read, said};
use crate::pem::{self, Block, certificates};
use crate::raw;
use openssl::error::ErrorStack;
use openssl::sha::Sha256;
use openssl::stack::Stack;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509Crl, X509Name};
use std::path::{Path, PathBuf};

/// Content of a `ca-file` or of a `crl-file`.
pub(crate) enum Trusted {
    /// Authorities.
    Authorities(Vec<X509>),
    /// Lists of the certificates that they have revoked.
    Revoked(Vec<X509Crl>),
}

/// Kind of a file of trust.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TrustKind {
    /// `ca-file`, `ca-verify-file`
    Authorities,
    /// `crl-file`
    Revoked,
}

impl Trusted {
    /// Reads a file, a folder, or the authorities of the system (`@system-ca`).
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub(crate) fn load(kind: TrustKind, path: &Path) -> Result<Trusted, Unusable> {
        match kind {
            TrustKind::Authorities => authorities(path).map(Trusted::Authorities),
            TrustKind::Revoked => Trusted::parse(kind, path, &read(path)?),
        }
    }

    /// Reads PEM.
    ///
    /// # Errors
    /// It holds nothing of that kind, or a block that cannot be read.
    pub(crate) fn parse(kind: TrustKind, path: &Path, pem: &[u8]) -> Result<Trusted, Unusable> {
        match kind {
            TrustKind::Authorities => {
                let mut all = Vec::new();
                add(&mut all, certificates(path, pem)?);
                let none = || Unusable::new(path, "there is no certificate in it");
                if all.is_empty() { Err(none()) } else { Ok(Trusted::Authorities(all)) }
            }
            TrustKind::Revoked => {
                let failed = |error: &ErrorStack| {
                    Unusable::new(path, format!("there is no list of revoked certificates in it: {}", said(error)))
                };
                let lists = pem::blocks(pem)
                    .filter(Block::is_revocation)
                    .map(|block| X509Crl::from_pem(block.text))
                    .collect::<Result<Vec<_>, _>>();
                let lists = lists.map_err(|error| failed(&error))?;
                let none = || Unusable::new(path, "there is no list of revoked certificates in it");
                if lists.is_empty() { Err(none()) } else { Ok(Trusted::Revoked(lists)) }
            }
        }
    }

    /// The authorities; none of a `crl-file`.
    pub(crate) fn authorities(&self) -> &[X509] {
        match self {
            Trusted::Authorities(all) => all,
            Trusted::Revoked(_) => &[],
        }
    }

    /// The lists of revoked certificates; none of a `ca-file`.
    pub(crate) fn revoked(&self) -> &[X509Crl] {
        match self {
            Trusted::Authorities(_) => &[],
            Trusted::Revoked(lists) => lists,
        }
    }

    /// Number of certificates or lists.
    pub(crate) fn len(&self) -> usize {
        self.authorities().len() + self.revoked().len()
    }

    /// A hash of all of it.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        self.authorities().iter().for_each(|one| hash.update(&raw::trusted_der(one)));
        // OpenSSL can write all that it has read.
        self.revoked().iter().filter_map(|list| list.to_der().ok()).for_each(|der| hash.update(&der));
        hash.finish()
    }

    /// Adds authorities to these, each once. Revocation lists are replaced.
    pub(crate) fn and(&self, more: Trusted) -> Trusted {
        match (self, more) {
            (Trusted::Authorities(all), Trusted::Authorities(more)) => {
                let mut all = all.clone();
                add(&mut all, more);
                Trusted::Authorities(all)
            }
            (_, more) => more,
        }
    }
}

fn add(all: &mut Vec<X509>, more: Vec<X509>) {
    for authority in more {
        if !all.contains(&authority) {
            all.push(authority);
        }
    }
}

/// The authorities of a file, of the files of a folder, or of the system.
fn authorities(path: &Path) -> Result<Vec<X509>, Unusable> {
    let path = if path == Path::new("@system-ca") { system() } else { path.to_owned() };
    let mut found = Vec::new();
    for file in files(&path)? {
        add(&mut found, certificates(&file, &read(&file)?)?);
    }
    match found.is_empty() {
        true => Err(Unusable::new(&path, "there is no certificate in it")),
        false => Ok(found),
    }
}

/// A store of these authorities, with revocation lists.
pub(crate) fn store<'a>(authorities: impl Iterator<Item = &'a X509>, revoked: Option<&[X509Crl]>) -> Result<X509Store, Unusable> {
    let failed = |error| Unusable(format!("authorities cannot be kept: {}", said(&error)));
    let mut builder = X509StoreBuilder::new().map_err(failed)?;
    for authority in authorities {
        builder.add_cert(authority.clone()).map_err(failed)?;
    }
    if let Some(lists) = revoked {
        for list in lists {
            raw::add_revoked(&mut builder, list).map_err(failed)?;
        }
        builder.set_flags(X509VerifyFlags::CRL_CHECK | X509VerifyFlags::CRL_CHECK_ALL).map_err(failed)?;
    }
    Ok(builder.build())
}

/// The names of authorities, as they are sent to clients.
pub(crate) fn subjects(authorities: &[X509]) -> Stack<X509Name> {
    let Ok(mut names) = Stack::new() else { unreachable!("OpenSSL has no memory for an empty list") };
    for authority in authorities {
        if let Ok(name) = authority.subject_name().to_owned() {
            let _ = names.push(name);
        }
    }
    names
}

/// Path where the system keeps the authorities that it trusts.
fn system() -> PathBuf {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.unwrap_or_else(|| PathBuf::from("/etc/ssl/certs/ca-certificates.crt"))
}

/// The file, or those of a folder in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Unusable> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let listed = std::fs::read_dir(path).map_err(|error| Unusable(format!("'{}': {error}", path.display())))?;
    let mut files: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.retain(|file| {
        file.extension().is_some_and(|extension| ["pem", "crt", "cer", "crl"].iter().any(|known| extension == *known))
    });
    files.sort();
    Ok(files)
}
