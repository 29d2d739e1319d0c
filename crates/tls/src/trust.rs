//! Whom certificates of the other end must come from, and which were revoked.

use crate::certificate::{Unusable, certificates, read, said};
use openssl::stack::Stack;
use openssl::x509::store::{X509Lookup, X509Store, X509StoreBuilder};
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509Name};
use std::path::{Path, PathBuf};

/// The authorities of a file, of the files of a folder, or of the system (`@system-ca`).
pub(crate) fn authorities(path: &Path) -> Result<Vec<X509>, Unusable> {
    let path = if path == Path::new("@system-ca") { system() } else { path.to_owned() };
    let mut found = Vec::new();
    for file in files(&path)? {
        found.extend(certificates(&file, &read(&file)?)?);
    }
    match found.is_empty() {
        true => Err(Unusable(format!("'{}': there is no certificate in it", path.display()))),
        false => Ok(found),
    }
}

/// A store of these authorities, with what was revoked.
pub(crate) fn store(authorities: &[X509], revoked: Option<&Path>) -> Result<X509Store, Unusable> {
    let failed = |error| Unusable(format!("authorities cannot be kept: {}", said(&error)));
    let mut builder = X509StoreBuilder::new().map_err(failed)?;
    for authority in authorities {
        builder.add_cert(authority.clone()).map_err(failed)?;
    }
    if let Some(path) = revoked {
        // OpenSSL has no words for why: the file is looked at first.
        read(path)?;
        let lookup = builder.add_lookup(X509Lookup::file()).map_err(failed)?;
        lookup.load_crl_file(path, openssl::ssl::SslFiletype::PEM).map_err(|error| {
            Unusable(format!("'{}': there is no list of revoked certificates in it: {}", path.display(), said(&error)))
        })?;
        builder.set_flags(X509VerifyFlags::CRL_CHECK | X509VerifyFlags::CRL_CHECK_ALL).map_err(failed)?;
    }
    Ok(builder.build())
}

/// The names of authorities, as clients are told them.
pub(crate) fn subjects(authorities: &[X509]) -> Stack<X509Name> {
    let Ok(mut names) = Stack::new() else { unreachable!("OpenSSL has no memory for an empty list") };
    for authority in authorities {
        if let Ok(name) = authority.subject_name().to_owned() {
            let _ = names.push(name);
        }
    }
    names
}

/// Where the system keeps the authorities that it trusts.
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
