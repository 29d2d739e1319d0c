//! Answers about certificates' states: listed, shown, exchanged.

use super::certificates::{asked, decoded};
use super::{Refusal, Touched, Vault};
use crate::answer::{self, Answer};
use crate::base64;
use crate::certificate::{Draft, Keyed};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

impl Vault {
    /// The certificates that have an answer and whose issuer is known: their identifiers in answers, and their files.
    pub fn list_answers(&self) -> String {
        let held = self.held();
        let mut known = BTreeMap::new();
        for (name, certificate) in &held.files.certificates {
            if let Some(id) = certificate.as_ref().filter(|found| found.ocsp.is_some()).and_then(|found| found.id()) {
                known.entry(id).or_insert(name);
            }
        }
        let mut text = String::from("# Certificate IDs\n");
        for (id, name) in known {
            let _ = write!(text, "Certificate ID key : {}\nCertificate path : {name}\n  Certificate ID:\n{}", id.hex(), id.lines());
        }
        text
    }

    /// An answer by the identifier of its certificate in answers, or by its file.
    pub fn show_answer(&self, name: &str, in_base64: bool) -> Option<String> {
        let held = self.held();
        let mut certificates = held.files.certificates.iter().filter_map(|(file, certificate)| Some((file, certificate.as_ref()?)));
        let is_it = |file: &str, id: Option<String>| file == name || id.as_deref() == Some(name);
        let (_, found) = certificates
            .find(|(file, certificate)| certificate.ocsp.is_some() && is_it(file, certificate.id().map(|id| id.hex())))?;
        let der = found.ocsp.as_deref()?;
        if in_base64 { Some(base64(der) + "\n") } else { answer::text(der) }
    }

    /// The answer beside a certificate, by the name of its file. `*` before it: as it is being changed.
    pub fn show_answer_beside(&self, name: &str) -> Option<String> {
        let (name, is_draft) = asked(name);
        let draft = self.held().draft_of(name.strip_suffix(".ocsp")?, is_draft)?;
        answer::text(draft.ocsp.as_deref()?)
    }

    /// Takes an answer, in base64, for the certificates that it speaks of: clients get it from now on.
    ///
    /// # Errors
    /// It cannot be used, or there is no such certificate.
    pub fn set_answer(&self, payload: &[u8]) -> Result<(), Refusal> {
        self.take_answer(decoded(payload)?)
    }

    /// The same in DER.
    pub(crate) fn take_answer(&self, der: Vec<u8>) -> Result<(), Refusal> {
        let answer = Answer::fresh(der, now_s()).map_err(|wrong| Refusal::Payload(wrong.0))?;
        let mut held = self.held();
        let mut files = held.files.clone();
        let mut changed = Vec::new();
        for (name, found) in &mut files.certificates {
            let Some(certificate) = found.as_ref().filter(|certificate| certificate.id().as_ref() == Some(&answer.id)) else {
                continue;
            };
            let mut draft = Draft::of(certificate);
            draft.ocsp = Some(answer.der.clone());
            *found = Some(Arc::new(draft.finish(Keyed::AtWill).map_err(|wrong| Refusal::Mismatch(wrong.0))?));
            changed.push(name.clone());
        }
        if changed.is_empty() {
            let unknown = "OCSP single response: Certificate ID does not match any certificate or issuer";
            return Err(Refusal::Payload(unknown.into()));
        }
        held.change(files, &Touched::Certificates(&changed), self.global()).map_err(|wrong| Refusal::Contexts(wrong.0))?;
        Ok(())
    }
}

/// Seconds since 1970.
pub(crate) fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
