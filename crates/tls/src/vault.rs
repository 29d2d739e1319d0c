//! Files of certificates, authorities and lists: read once, shared by whoever names them, and exchanged while the process runs.
//!
//! ```text
//! configuration -> read: files -> Files -> contexts of bind lines and servers
//! stats socket  -> set: a draft -> commit: Files with the draft -> contexts of all who use it -> if none fails: they take their places
//! ```
//!
//! Invariants:
//! * Nothing is read but while the plan is built: a process that has given up its rights can still change certificates.
//! * What cannot be used takes nothing's place: either all who use a file get their new contexts, or nobody does.
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

/// What was read of files, who uses it, and what is about to change.
pub struct Vault {
    global: Global,
    issuers: Issuers,
    held: Mutex<Held>,
    updates: Mutex<Updates>,
    /// Whose answers are fetched may have changed.
    changed: Notify,
}

#[derive(Default)]
pub(crate) struct Held {
    files: Files,
    /// What cannot be used, for those who name it again while the configuration is read.
    unusable: HashMap<PathBuf, Unusable>,
    acceptors: Vec<Weak<Acceptor>>,
    connectors: Vec<Weak<Connector>>,
    /// The certificate that is being changed.
    draft: Option<(Key, Draft)>,
    /// The authorities that are being changed, and what they have revoked.
    drafts: [Option<(Key, Trusted)>; 2],
    /// Keys of tickets, in the order in which files were read.
    tickets: Vec<Arc<TicketKeys>>,
    /// What `crt-store` sections say of `ocsp-update`.
    store_updates: HashMap<Key, bool>,
    /// Certificates that verify and decrypt tokens.
    for_tokens: BTreeSet<Key>,
    tokens: Arc<Tokens>,
}

/// Why a change is not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is nothing to commit or to abort.
    NoTransaction,
    /// Another file is being changed: this one.
    Other(String),
    /// There is no such file.
    Unknown,
    /// There is such a file already.
    Exists,
    /// It is being changed.
    Ongoing,
    /// It is in use.
    Used,
    /// What was sent cannot be used, and why; what is in use stays.
    Payload(String),
    /// The parts do not belong together; they can still be completed.
    Mismatch(String),
    /// The contexts cannot be made, and why; what is in use stays.
    Contexts(String),
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

/// Who gets new contexts.
pub(crate) enum Touched<'a> {
    /// Those who show this certificate.
    Certificate(&'a str),
    /// Those who show any of these.
    Certificates(&'a [Key]),
    /// Those who trust these authorities, or know what they have revoked.
    Trusted(Option<&'a Arc<Version>>),
    /// Those who name this list or folder.
    List(&'a str),
}

impl Vault {
    /// An empty one, under what `global` says.
    pub fn new(global: Global) -> Vault {
        Vault { issuers: Issuers::load(&global), global, held: Mutex::default(), updates: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn global(&self) -> &Global {
        &self.global
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificate of a name, for those who verify signatures with it.
    #[cfg(test)]
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<crate::certificate::Certificate>> {
        self.held().files.certificate(name).ok().cloned()
    }
}

impl Held {
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// Remembers who is to get new contexts.
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

    /// Whether anybody uses it.
    fn is_used(&self, touched: &Touched<'_>) -> bool {
        self.acceptors().any(|acceptor| acceptor.uses(touched))
            || self.connectors.iter().filter_map(Weak::upgrade).any(|connector| connector.uses(touched))
    }

    /// Makes new contexts of all who use what has changed, and lets them take their places; how many.
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
