//! Authorities (`ca-file`) and revocation lists (`crl-file`), listed, shown, exchanged, made and removed.

use super::certificates::{Names, asked};
use super::files::{Key, Version};
use super::{Held, Refusal, Touched, TrustKind, Vault};
use crate::report;
use crate::trust::Trusted;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

impl Vault {
    /// The files, each with the number of certificates or lists in it.
    pub fn trusted(&self, kind: TrustKind) -> (Names, Vec<usize>) {
        let held = self.held();
        let draft = held.drafts[index(kind)].as_ref();
        let files: Vec<_> = held.files.trusted.iter().filter(|((of, _), _)| *of == kind).collect();
        let names = Names {
            ongoing: draft.map(|(name, _)| name.to_string()),
            all: files.iter().map(|((_, name), _)| name.to_string()).collect(),
        };
        let counts = files.iter().map(|(_, version)| version.as_ref().map_or(0, |version| version.content.len()));
        (names, draft.iter().map(|(_, content)| content.len()).chain(counts).collect())
    }

    /// Content of a file: all of it, or only the entry of that number. `*` before its name: as it is being changed.
    pub fn show_trusted(&self, kind: TrustKind, name: &str, only: Option<usize>) -> Option<String> {
        let held = self.held();
        let (name, is_draft) = asked(name);
        let key: Key = name.into();
        let version = held.files.trusted.get(&(kind, key));
        let content = match is_draft {
            true => Some(&held.drafts[index(kind)].as_ref().filter(|(of, _)| **of == *name)?.1),
            false => version?.as_ref().map(|version| &version.content),
        };
        let is_used = || held.is_used(&Touched::Trusted(version.and_then(Option::as_ref)));
        let status = match content {
            None => "Empty",
            Some(_) if is_draft => "Uncommitted",
            Some(_) if is_used() => "Used",
            Some(_) => "Unused",
        };
        let mut text = format!("Filename: {}{name}\nStatus: {status}\n", if is_draft { "*" } else { "" });
        let is_meant = |number: usize| only.is_none_or(|only| only == number);
        let Some(content) = content else { return Some(text) };
        for (number, authority) in (1..).zip(content.authorities()).filter(|(number, _)| is_meant(*number)) {
            let _ = write!(text, " \nCertificate #{number}:\n{}", report::certificate(authority, &[]));
        }
        for (number, list) in (1..).zip(content.revoked()).filter(|(number, _)| is_meant(*number)) {
            let _ = write!(text, " \nCertificate Revocation List #{number}:\n{}", report::revoked(list));
        }
        Some(text)
    }

    /// Takes authorities or revocation lists, to be committed: in the place of the present ones, or, with `more`, in
    /// addition to them. Returns the name, and whether this begins the change.
    ///
    /// # Errors
    /// It cannot be read, or another one is being changed, or there is none of that name.
    pub fn set_trusted(&self, kind: TrustKind, name: &str, payload: &[u8], more: bool) -> Result<bool, Refusal> {
        let mut held = self.held();
        let key: Key = name.into();
        let draft = held.drafts[index(kind)].as_ref();
        let before = match draft {
            Some((ongoing, content)) if *ongoing == key => Some(content),
            Some((ongoing, _)) => return Err(Refusal::Other(ongoing.to_string())),
            None => {
                let version = held.files.trusted.get(&(kind, key.clone())).ok_or(Refusal::Unknown)?;
                version.as_ref().map(|version| &version.content)
            }
        };
        let begins = draft.is_none();
        let content = Trusted::parse(kind, Path::new(name), payload).map_err(|wrong| Refusal::Payload(wrong.0))?;
        let content = match before.filter(|_| more) {
            Some(before) => before.and(content),
            None => content,
        };
        held.drafts[index(kind)] = Some((key, content));
        Ok(begins)
    }

    /// Replaces the present content by the pending one, for all its users; returns how many got new contexts.
    ///
    /// # Errors
    /// There is no pending change, or it cannot be used.
    pub fn commit_trusted(&self, kind: TrustKind, name: &str) -> Result<usize, Refusal> {
        let mut held = self.held();
        held.check_draft(kind, name)?;
        let (key, content) = held.drafts[index(kind)].take().ok_or(Refusal::NoTransaction)?;
        let version = Arc::new(Version::new(content));
        let mut files = held.files.clone();
        let before = files.trusted.insert((kind, key), Some(version)).flatten();
        held.change(files, &Touched::Trusted(before.as_ref()), &self.global).map_err(|wrong| Refusal::Contexts(wrong.0))
    }

    /// Drops the pending change.
    ///
    /// # Errors
    /// There is none.
    pub fn abort_trusted(&self, kind: TrustKind, name: &str) -> Result<(), Refusal> {
        let mut held = self.held();
        held.check_draft(kind, name)?;
        held.drafts[index(kind)] = None;
        Ok(())
    }

    /// Makes room for a file.
    ///
    /// # Errors
    /// The file exists already.
    pub fn new_trusted(&self, kind: TrustKind, name: &str) -> Result<(), Refusal> {
        let mut held = self.held();
        let key = (kind, Key::from(name));
        if held.files.trusted.contains_key(&key) {
            return Err(Refusal::Exists);
        }
        held.files.trusted.insert(key, None);
        Ok(())
    }

    /// Forgets a file.
    ///
    /// # Errors
    /// It is in use, or being changed, or does not exist.
    pub fn delete_trusted(&self, kind: TrustKind, name: &str) -> Result<(), Refusal> {
        let mut held = self.held();
        let key = (kind, Key::from(name));
        if held.drafts[index(kind)].as_ref().is_some_and(|(ongoing, _)| *ongoing == key.1) {
            return Err(Refusal::Ongoing);
        }
        let version = held.files.trusted.get(&key).ok_or(Refusal::Unknown)?;
        if held.is_used(&Touched::Trusted(version.as_ref())) {
            return Err(Refusal::Used);
        }
        held.files.trusted.remove(&key);
        Ok(())
    }
}

impl Held {
    fn check_draft(&self, kind: TrustKind, name: &str) -> Result<(), Refusal> {
        match &self.drafts[index(kind)] {
            None => Err(Refusal::NoTransaction),
            Some((ongoing, _)) if **ongoing != *name => Err(Refusal::Other(ongoing.to_string())),
            Some(_) => Ok(()),
        }
    }
}

const fn index(kind: TrustKind) -> usize {
    match kind {
        TrustKind::Authorities => 0,
        TrustKind::Revoked => 1,
    }
}
