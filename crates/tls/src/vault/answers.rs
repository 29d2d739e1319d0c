//! Answers about certificates' states: listed, shown, exchanged.

use super::certificates::{asked, decoded};
use super::{Refusal, Touched, Vault};
use crate::answer::{self, Answer};
use crate::certificate::Draft;
use openssl::base64;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

impl Vault {
    /// The certificates that have an answer and whose issuer is known: what they are called in answers, and where they stand.
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
            let _ = write!(
                text,
                "  Certificate ID key : {}\n  Certificate path : {name}\n    Certificate ID:\n{}",
                id.hex(),
                id.lines()
            );
        }
        text
    }

    /// An answer by what its certificate is called in answers, or by its file.
    pub fn show_answer(&self, name: &str, in_base64: bool) -> Option<String> {
        let held = self.held();
        let mut certificates = held.files.certificates.iter().filter_map(|(file, certificate)| Some((file, certificate.as_ref()?)));
        let is_it = |file: &str, id: Option<String>| file == name || id.as_deref() == Some(name);
        let (_, found) = certificates
            .find(|(file, certificate)| certificate.ocsp.is_some() && is_it(file, certificate.id().map(|id| id.hex())))?;
        let der = found.ocsp.as_deref()?;
        if in_base64 { Some(base64::encode_block(der).replace('\n', "") + "\n") } else { answer::text(der) }
    }

    /// The answer that stands beside a certificate, by the name of its file. `*` before it: as it is being changed.
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
        let answer = Answer::parse(decoded(payload)?).map_err(|wrong| Refusal::Payload(wrong.0))?;
        let mut held = self.held();
        let meant: Vec<_> =
            held.files.certificates.iter().filter_map(|(name, found)| Some((name.clone(), found.clone()?))).collect();
        let mut any = false;
        for (name, certificate) in meant.into_iter().filter(|(_, certificate)| certificate.id().as_ref() == Some(&answer.id)) {
            let mut draft = Draft::of(&certificate);
            draft.ocsp = Some(answer.der.clone());
            let changed = draft.finish().map_err(|wrong| Refusal::Mismatch(wrong.0))?;
            let mut files = held.files.clone();
            files.certificates.insert(name.clone(), Some(Arc::new(changed)));
            held.change(files, &Touched::Certificate(&name), self.global()).map_err(|wrong| Refusal::Contexts(wrong.0))?;
            any = true;
        }
        let unknown = "OCSP single response: Certificate ID does not match any certificate or issuer";
        if any { Ok(()) } else { Err(Refusal::Payload(unknown.into())) }
    }
}
