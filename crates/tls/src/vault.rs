//! Certificates by their files: each is read once, whoever names it.

use crate::certificate::{Certificate, Unusable};
use crate::settings::Global;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was read of files that hold certificates with keys.
#[derive(Debug)]
pub struct Vault {
    pub(crate) global: Global,
    loaded: HashMap<PathBuf, Result<Arc<Certificate>, Unusable>>,
}

impl Vault {
    /// An empty one, under what `global` says.
    pub fn new(global: Global) -> Vault {
        Vault { global, loaded: HashMap::new() }
    }

    /// The certificates that a name stands for: a file, a bundle of files by the kinds of their keys, or a folder. Those that cannot be
    /// used are told one by one.
    pub(crate) fn all_of(&mut self, path: &Path) -> (Vec<Arc<Certificate>>, Vec<Unusable>) {
        let files = if path.is_dir() { folder(path) } else { Ok(bundle(path, &self.global)) };
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        match files {
            Ok(files) => {
                for file in files {
                    match self.load(&file) {
                        Ok(certificate) => found.push(certificate),
                        Err(reason) => wrong.push(reason),
                    }
                }
            }
            Err(reason) => wrong.push(reason),
        }
        (found, wrong)
    }

    /// The certificate of a file.
    pub(crate) fn load(&mut self, file: &Path) -> Result<Arc<Certificate>, Unusable> {
        let global = &self.global;
        let load = || Certificate::load(file, global).map(Arc::new);
        self.loaded.entry(file.to_owned()).or_insert_with(load).clone()
    }
}

/// The files of a folder that hold certificates, in the order of their names' bytes; those of one bundle stand together.
fn folder(path: &Path) -> Result<Vec<PathBuf>, Unusable> {
    let failed = |error| Unusable(format!("'{}': {error}", path.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let reserved = bytes.starts_with(b".") || RESERVED.iter().any(|end| bytes.ends_with(end.as_bytes()));
        if !reserved && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// A file; where there is none, those that hold it for each kind of key (`ssl-load-extra-files bundle`).
fn bundle(path: &Path, global: &Global) -> Vec<PathBuf> {
    if global.extra.bundle && !path.exists() {
        let of = |kind: &&str| {
            let mut name = path.as_os_str().to_owned();
            name.push(kind);
            PathBuf::from(name)
        };
        let parts: Vec<_> = BUNDLE.iter().map(of).filter(|part| part.exists()).collect();
        if !parts.is_empty() {
            return parts;
        }
    }
    vec![path.to_owned()]
}

/// Ends of names that do not hold certificates.
const RESERVED: &[&str] = &[".key", ".issuer", ".ocsp", ".sctl"];

/// Ends of names within a bundle.
const BUNDLE: &[&str] = &[".rsa", ".ecdsa", ".dsa"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kind, pair};

    #[test]
    fn files_bundles_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, kind| {
            let pair = pair(kind, "a.test", &[]);
            std::fs::write(at(name), [pair.certificate, pair.key].concat()).unwrap();
        };
        write("b.pem", Kind::Ecdsa);
        write("a.pem.rsa", Kind::Rsa);
        write("a.pem.ecdsa", Kind::Ecdsa);
        std::fs::write(at("b.pem.key"), "no certificate").unwrap();
        std::fs::write(at(".hidden"), "neither").unwrap();
        let mut vault = Vault::new(Global::default());
        let names = |found: &[Arc<Certificate>]| -> Vec<String> {
            found.iter().map(|c| c.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        let (all, wrong) = vault.all_of(folder.path());
        assert_eq!((names(&all), wrong.len()), (vec!["a.pem.ecdsa".into(), "a.pem.rsa".into(), "b.pem".into()], 0));
        let (both, _) = vault.all_of(&at("a.pem"));
        assert_eq!(names(&both), ["a.pem.rsa", "a.pem.ecdsa"]);
        assert!(Arc::ptr_eq(&all[1], &both[0]), "read once");
        std::fs::write(at("c.pem"), "nothing").unwrap();
        let (some, wrong) = vault.all_of(folder.path());
        assert_eq!((some.len(), wrong.len()), (3, 1));
        assert!(vault.all_of(&at("missing.pem")).1[0].0.contains("No such file"));
    }
}
