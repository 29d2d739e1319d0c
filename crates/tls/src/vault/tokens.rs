//! Certificates that verify and decrypt tokens (`jwt on`).
//!
//! Expressions look here at each request, so a reader takes no lock: the vault publishes its certificates whenever they
//! change.

use super::files::{Key, key};
use super::{Held, Refusal, Vault};
use crate::certificate::{Certificate, Keyed, Sources};
use arc_swap::ArcSwap;
use openssl::pkey::{PKey, Private, Public};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The certificates of a process, as readers of tokens see them.
#[derive(Default)]
pub struct Tokens {
    known: ArcSwap<HashMap<Key, TokenCertificate>>,
    /// Names that expressions have, which need no `jwt on`.
    named: Mutex<BTreeSet<Box<str>>>,
}

/// Use of a certificate for tokens.
#[derive(Clone)]
pub enum TokenCertificate {
    /// The certificate verifies tokens by its key, and decrypts them by the private key where that is there.
    Allowed {
        /// Its key.
        public: PKey<Public>,
        /// The private key.
        private: Option<PKey<Private>>,
    },
    /// The certificate exists, and is not for tokens.
    Forbidden,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, TokenCertificate::Forbidden) { "Forbidden" } else { "Allowed" })
    }
}

impl Tokens {
    /// Notes the name that an expression has: if there is such a certificate, it is for tokens.
    pub fn name(&self, name: &str) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into());
    }

    /// The certificate of that name.
    pub fn find(&self, name: &str) -> Option<TokenCertificate> {
        self.known.load().get(name).cloned()
    }
}

impl Vault {
    /// The same vault, which publishes its certificates here.
    pub fn telling(self, tokens: Arc<Tokens>) -> Vault {
        self.held().tokens = tokens;
        self
    }

    /// Allows the certificates that expressions name, once the configuration is read, and reads those that no line names.
    /// Whether a file can be read was checked for the expression; a file that holds a key alone is not a certificate's.
    pub fn settle_tokens(&self) {
        let mut held = self.held();
        let named = std::mem::take(&mut *held.tokens.named.lock().unwrap_or_else(PoisonError::into_inner));
        for name in named.iter().filter(|name| !name.starts_with('@')) {
            if !held.files.certificates.contains_key(&**name) {
                let path = Path::new(&**name);
                let sources = Sources { certificate: Some(path.to_owned()), ..Sources::default() };
                let read = Certificate::load_from(path, sources, false, Keyed::AtWill, &self.issuers);
                held.files.certificates.extend(read.ok().map(|read| (key(path), Some(Arc::new(read)))));
            }
        }
        let found: Vec<Key> = held.files.certificates.keys().filter(|name| named.contains(&***name)).cloned().collect();
        held.for_tokens.extend(found);
        held.publish();
    }

    /// Certificates that are for tokens, in the order of their bytes.
    pub fn token_certificates(&self) -> Vec<String> {
        self.held().for_tokens.iter().map(ToString::to_string).collect()
    }

    /// Allows or forbids a certificate for tokens.
    ///
    /// # Errors
    /// There is no such certificate.
    pub fn allow_tokens(&self, name: &str, is_allowed: bool) -> Result<(), Refusal> {
        let mut held = self.held();
        let key = held.files.certificates.get_key_value(name).map(|(key, _)| key.clone()).ok_or(Refusal::Unknown)?;
        match is_allowed {
            true => held.for_tokens.insert(key),
            false => held.for_tokens.remove(&key),
        };
        held.publish();
        Ok(())
    }
}

impl Held {
    /// Publishes the present certificates for readers of tokens.
    pub(super) fn publish(&self) {
        let seen = |name: &Key| {
            let certificate = self.files.certificates.get(name).and_then(Option::as_ref).filter(|_| self.for_tokens.contains(name));
            let allowed = certificate.and_then(|certificate| {
                Some(TokenCertificate::Allowed { public: certificate.leaf.public_key().ok()?, private: certificate.key.clone() })
            });
            (name.clone(), allowed.unwrap_or(TokenCertificate::Forbidden))
        };
        self.tokens.known.store(Arc::new(self.files.certificates.keys().map(seen).collect()));
    }
}
