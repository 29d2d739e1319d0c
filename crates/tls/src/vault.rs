//! Files of certificates, authorities and lists: read once, shared by all lines that name them, and exchanged while the
//! process runs.
//!
//! ```text
//! configuration -> read: files -> Files -> contexts of bind lines and servers
//! stats socket  -> set: a draft -> commit: Files with the draft -> contexts of all its users -> if none fails: they are installed
//! ```
//!
//! Invariants:
//! * Files are read only while the plan is built: a process that has given up its rights can still change certificates.
//! * A file that cannot be used replaces nothing: either all users of a file get their new contexts, or none does.
//! * Workers do not wait for a change: each bind line and each server has one place that they read.

pub(crate) mod answers;
mod authorities;
mod certificates;
pub(crate) mod files;
mod lists;
mod names;
mod reading;
mod tickets;
mod tokens;
pub(crate) mod updates;

use crate::acceptor::Acceptor;
use crate::certificate::{Draft, Issuers, Unusable};
use crate::connector::Connector;
use crate::settings::Global;
use crate::tickets::TicketKeys;
use crate::trust::Trusted;
use files::{Files, Key, Version};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;
use updates::Updates;

pub use crate::trust::TrustKind;
pub use certificates::Names;
pub(crate) use reading::folder_key;
pub use tokens::{TokenCertificate, Tokens};
pub use updates::{Fetched, Question};

/// Files that were read, their users, and pending changes.
pub struct Vault {
    global: Global,
    issuers: Issuers,
    held: Mutex<Held>,
    updates: Mutex<Updates>,
    /// The set of certificates whose answers are fetched may have changed.
    changed: Notify,
}

#[derive(Default)]
pub(crate) struct Held {
    files: Files,
    /// Files that cannot be used, for lines that name them again while the configuration is read.
    unusable: HashMap<PathBuf, Unusable>,
    acceptors: Vec<Weak<Acceptor>>,
    connectors: Vec<Weak<Connector>>,
    /// The certificate that is being changed.
    draft: Option<(Key, Draft)>,
    /// The authorities and the revocation lists that are being changed.
    drafts: [Option<(Key, Trusted)>; 2],
    /// Keys of tickets, in the order in which files were read.
    tickets: Vec<Arc<TicketKeys>>,
    /// `ocsp-update` of `crt-store` sections.
    store_updates: HashMap<Key, bool>,
    /// Certificates that verify and decrypt tokens.
    for_tokens: BTreeSet<Key>,
    tokens: Arc<Tokens>,
}

/// Reason why a change is not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no change to commit or to abort.
    NoTransaction,
    /// Another file is being changed: this one.
    Other(String),
    /// No such file exists.
    Unknown,
    /// Such a file exists already.
    Exists,
    /// The file is being changed.
    Ongoing,
    /// The file is in use.
    Used,
    /// The payload cannot be used, and the reason; the content in use stays.
    Payload(String),
    /// The parts do not belong together; they can still be completed.
    Mismatch(String),
    /// The contexts cannot be made, and the reason; those in use stay.
    Contexts(String),
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

/// Users of a changed file, which get new contexts.
pub(crate) enum Touched<'a> {
    /// Lines that show this certificate.
    Certificate(&'a str),
    /// Lines that show any of these.
    Certificates(&'a [Key]),
    /// Lines that use these authorities, or these revocation lists.
    Trusted(Option<&'a Arc<Version>>),
    /// Lines that name this list or folder.
    List(&'a str),
}

impl Vault {
    /// An empty vault, under the settings of `global`.
    pub fn new(global: Global) -> Vault {
        Vault { issuers: Issuers::load(&global), global, held: Mutex::default(), updates: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn global(&self) -> &Global {
        &self.global
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificate of a name, to verify signatures with.
    #[cfg(test)]
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<crate::certificate::Certificate>> {
        self.held().files.certificate(name).ok().cloned()
    }
}

impl Held {
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// Adds a `bind` line that is to get new contexts.
    pub(crate) fn enrol(&mut self, acceptor: &Arc<Acceptor>) {
        self.acceptors.push(Arc::downgrade(acceptor));
    }

    /// The same of a server.
    pub(crate) fn enrol_server(&mut self, connector: &Arc<Connector>) {
        self.connectors.retain(|connector| connector.strong_count() > 0);
        self.connectors.push(Arc::downgrade(connector));
    }

    pub(crate) fn acceptors(&self) -> impl Iterator<Item = Arc<Acceptor>> {
        self.acceptors.iter().filter_map(Weak::upgrade)
    }

    /// Whether any line uses it.
    fn is_used(&self, touched: &Touched<'_>) -> bool {
        self.acceptors().any(|acceptor| acceptor.uses(touched))
            || self.connectors.iter().filter_map(Weak::upgrade).any(|connector| connector.uses(touched))
    }

    /// Makes new contexts for all users of a changed file, and installs them; returns their number.
    fn change(&mut self, files: Files, touched: &Touched<'_>, global: &Global) -> Result<usize, Unusable> {
        let mut offers = Vec::new();
        for acceptor in self.acceptors().filter(|acceptor| acceptor.uses(touched)) {
            let offer = acceptor.prepare(&files, global)?;
            offers.push((acceptor, offer));
        }
        let kept = self.acceptors().filter(|acceptor| !offers.iter().any(|(changed, _)| Arc::ptr_eq(changed, acceptor)));
        let kept: Vec<_> = kept.map(|acceptor| acceptor.offer()).collect();
        let lines = kept.iter().flat_map(|offer| &offer.lines).chain(offers.iter().flat_map(|(_, offer)| &offer.lines));
        if let Some(reason) = self.quarrel(lines, &global.ocsp) {
            return Err(Unusable(reason));
        }
        let mut securings = Vec::new();
        for connector in self.connectors.iter().filter_map(Weak::upgrade).filter(|connector| connector.uses(touched)) {
            let securing = connector.prepare(&files, global)?;
            securings.push((connector, securing));
        }
        let count = offers.len() + securings.len();
        offers.into_iter().for_each(|(acceptor, offer)| acceptor.adopt(offer));
        securings.into_iter().for_each(|(connector, securing)| connector.adopt(securing));
        self.files = files;
        Ok(count)
    }
}
