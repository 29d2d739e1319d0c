//! Files that were read, by their names. A change is made on a copy: contexts are made from it, and it replaces this one if
//! all of them can be made.

use crate::certificate::{Certificate, Unusable};
use crate::list::Entry;
use crate::trust::{TrustKind, Trusted};
use openssl::dh::Dh;
use openssl::pkey::Params;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The name of a file, as commands write it.
pub(crate) type Key = Arc<str>;

/// The files that were read.
#[derive(Clone, Default)]
pub(crate) struct Files {
    /// Certificates with keys; `None`: a certificate that is still to be filled.
    pub(crate) certificates: BTreeMap<Key, Option<Arc<Certificate>>>,
    /// The files of a bundle, by the name that they have in common.
    pub(crate) bundles: BTreeMap<Key, Vec<Key>>,
    /// Authorities and revocation lists; `None`: still to be filled.
    pub(crate) trusted: BTreeMap<(TrustKind, Key), Option<Arc<Version>>>,
    /// Lists of certificates, and folders.
    pub(crate) lists: BTreeMap<Key, Arc<List>>,
    /// Diffie-Hellman parameters of certificates that have none of their own (`ssl-dh-param-file`).
    pub(crate) dh: Option<Arc<Dh<Params>>>,
}

/// Authorities or revocation lists at a time.
pub(crate) struct Version {
    /// The authorities or lists.
    pub(crate) content: Trusted,
    /// A hash of the content: the same in each process.
    pub(crate) digest: [u8; 32],
}

impl Version {
    pub(crate) fn new(content: Trusted) -> Version {
        Version { digest: content.digest(), content }
    }
}

/// A list of certificates.
#[derive(Clone)]
pub(crate) struct List {
    /// Whether it is a folder: its lines are names of files, each there once.
    pub(crate) is_folder: bool,
    /// Its lines, with the numbers that they have in the file.
    pub(crate) lines: Vec<ListLine>,
    /// The last number that was given.
    pub(crate) last_number: usize,
}

/// A line of a list. A bundle's files are lines of their own, with one number.
#[derive(Clone)]
pub(crate) struct ListLine {
    pub(crate) number: usize,
    pub(crate) certificate: Key,
    pub(crate) entry: Arc<Entry>,
}

/// The name that commands know a file by.
pub(crate) fn key(path: &Path) -> Key {
    path.to_string_lossy().into()
}

impl Files {
    /// The names of the certificates that a name in the configuration stands for.
    pub(crate) fn certificates_of<'f>(&'f self, name: &'f Key) -> &'f [Key] {
        self.bundles.get(name).map_or(std::slice::from_ref(name), Vec::as_slice)
    }

    /// A certificate.
    ///
    /// # Errors
    /// It is not there, or not filled.
    pub(crate) fn certificate(&self, name: &str) -> Result<&Arc<Certificate>, Unusable> {
        match self.certificates.get(name) {
            Some(Some(certificate)) => Ok(certificate),
            Some(None) => Err(Unusable(format!("certificate '{name}' is empty!"))),
            None => Err(Unusable(format!("certificate '{name}' does not exist!"))),
        }
    }

    /// Authorities or revocation lists.
    ///
    /// # Errors
    /// They are not there, or not filled.
    pub(crate) fn trusted(&self, kind: TrustKind, path: &Path) -> Result<&Arc<Version>, Unusable> {
        let found = self.trusted.get(&(kind, key(path))).and_then(Option::as_ref);
        found.ok_or_else(|| Unusable(format!("unable to load {}: it was not read when the process started", path.display())))
    }
}
