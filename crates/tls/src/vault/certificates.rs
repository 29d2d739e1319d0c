//! Certificates listed, shown, exchanged, made and removed.

use super::answers::now_s;
use super::files::{Files, Key};
use super::{Held, Refusal, Touched, Vault};
use crate::answer::Answer;
use crate::certificate::{Certificate, Draft, Keyed, check_dates};
use crate::report;
use crate::secret::Secret;
use openssl::base64;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// The names of files of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// The file that is being changed.
    pub ongoing: Option<String>,
    /// All, in the order of their bytes.
    pub all: Vec<String>,
}

/// Kind of a part of a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Pem,
    Key,
    Ocsp,
    Issuer,
    Timestamps,
}

impl Vault {
    /// The certificates.
    pub fn certificates(&self) -> Names {
        let held = self.held();
        let ongoing = held.draft.as_ref().map(|(name, _)| name.to_string());
        Names { ongoing, all: held.files.certificates.keys().map(ToString::to_string).collect() }
    }

    /// Content of a certificate, and its source. `*` before its name: as it is being changed.
    pub fn show_certificate(&self, name: &str) -> Option<String> {
        let held = self.held();
        let (name, is_draft) = asked(name);
        let draft = held.draft_of(name, is_draft)?;
        let is_used = || held.is_used(&Touched::Certificate(name));
        let status = match draft.leaf {
            None => "Empty",
            Some(_) if is_draft => "Uncommitted",
            Some(_) if is_used() => "Used",
            Some(_) if held.for_tokens.contains(name) => "Used for JWT verification",
            Some(_) => "Unused",
        };
        let mut text = format!("Filename: {}{name}\n", if is_draft { "*" } else { "" });
        let sources = &draft.sources;
        let sources = [
            ("Crt", &sources.certificate),
            ("Key", &sources.key),
            ("OCSP", &sources.ocsp),
            ("OCSP Issuer", &sources.issuer),
            ("SCTL", &sources.timestamps),
        ];
        for (what, path) in sources.into_iter().filter_map(|(what, path)| Some((what, path.as_ref()?))) {
            let _ = writeln!(text, "{what} filename: {}", path.display());
        }
        let updates = if held.is_updated(name, &self.global().ocsp) { "on" } else { "off" };
        let tokens = if held.for_tokens.contains(name) { "on" } else { "off" };
        let _ = writeln!(text, "Option: ocsp-update {updates}\nOption: jwt {tokens}\nStatus: {status}");
        if let Some(path) = &draft.chain_path {
            let _ = writeln!(text, "Chain Filename: {}", path.display());
        }
        if let Some(leaf) = &draft.leaf {
            text.push_str(&report::certificate(leaf, &draft.chain));
            if let Some(id) = draft.id().filter(|_| draft.ocsp.is_some()) {
                let _ = writeln!(text, "OCSP Response Key: {}", id.hex());
            }
        }
        Some(text)
    }

    /// A certificate in PEM: its key, itself and those above it. `*` before its name: as it is being changed.
    pub fn dump_certificate(&self, name: &str) -> Option<String> {
        let held = self.held();
        let (name, is_draft) = asked(name);
        let draft = held.draft_of(name, is_draft)?;
        let key = draft.key.iter().filter_map(|key| key.private_key_to_pem_pkcs8().ok());
        let pem = key.chain(draft.leaf.iter().chain(&draft.chain).filter_map(|certificate| certificate.to_pem().ok()));
        let mut text = Secret::default();
        pem.map(Secret::from).for_each(|pem| text.extend(&pem));
        Some(text.into_text())
    }

    /// Takes a certificate, or a file beside it by the end of its name, to be committed. Returns its name, and whether this
    /// begins the change.
    ///
    /// # Errors
    /// It cannot be read, or another one is being changed, or there is none of that name.
    pub fn set_certificate(&self, name: &str, payload: &[u8]) -> Result<(String, bool), Refusal> {
        let mut held = self.held();
        let (stem, part) = part(name);
        // The name of a file beside a certificate may have lost its extension.
        let with_extension = (part != Part::Pem && self.global().extra_replaces_extension).then(|| format!("{stem}.crt"));
        let (key, mut draft, begins) = match &held.draft {
            Some((key, draft)) if **key == *stem || with_extension.as_deref() == Some(key) => (key.clone(), draft.clone(), false),
            Some((key, _)) => return Err(Refusal::Other(key.to_string())),
            None => {
                let find = |name: &str| held.files.certificates.get_key_value(name);
                let found = find(stem).or_else(|| find(with_extension.as_deref()?)).ok_or(Refusal::Unknown)?;
                (found.0.clone(), draft(found), true)
            }
        };
        let path = Path::new(name);
        let taken = match part {
            Part::Pem => draft.take_pem(path, payload, &self.issuers),
            Part::Key => draft.take_key(path, payload),
            Part::Ocsp => {
                draft.ocsp = Some(Answer::fresh(decoded(payload)?, now_s()).map_err(|wrong| Refusal::Payload(wrong.0))?.der);
                Ok(())
            }
            Part::Issuer => draft.take_issuer(path, payload),
            Part::Timestamps => draft.take_timestamps(path, decoded(payload)?),
        };
        let dated = || match &draft.leaf {
            Some(leaf) if part == Part::Pem => check_dates(path, leaf, self.global()),
            _ => Ok(()),
        };
        taken.and_then(|()| dated()).map_err(|wrong| Refusal::Payload(wrong.0))?;
        held.draft = Some((key.clone(), draft));
        Ok((key.to_string(), begins))
    }

    /// Replaces the certificate by the pending one, for all its users; returns how many got new contexts.
    ///
    /// # Errors
    /// There is no pending change, or it cannot be used.
    pub fn commit_certificate(&self, name: &str) -> Result<usize, Refusal> {
        let mut held = self.held();
        let held = &mut *held;
        let (key, draft) = held.draft.as_ref().ok_or(Refusal::NoTransaction)?;
        if **key != *name {
            return Err(Refusal::Other(key.to_string()));
        }
        let (mut draft, is_whole) = (draft.clone(), draft.is_whole);
        if let Some(Some(before)) = held.files.certificates.get(key) {
            draft.inherit(before);
        }
        // Lines that show it need the key; tokens are verified without.
        let keyed = if held.is_used(&Touched::Certificate(name)) { Keyed::Always } else { Keyed::AtWill };
        let certificate = draft.finish(keyed).and_then(|found| found.check_dates(&self.global).map(|()| found));
        let certificate = match certificate {
            Ok(certificate) => certificate,
            Err(wrong) => {
                // A missing part may still come; otherwise the draft is dropped.
                held.draft.take_if(|_| is_whole);
                return Err(Refusal::Mismatch(wrong.0));
            }
        };
        let (key, mut files) = (key.clone(), held.files.clone());
        files.certificates.insert(key.clone(), Some(Arc::new(certificate)));
        // Whatever the result: the next change begins anew.
        held.draft = None;
        let changed = held.change(files, &Touched::Certificate(&key), &self.global).map_err(|wrong| Refusal::Contexts(wrong.0))?;
        held.publish();
        self.changed.notify_one();
        Ok(changed)
    }

    /// Drops the pending change.
    ///
    /// # Errors
    /// There is none.
    pub fn abort_certificate(&self, name: &str) -> Result<(), Refusal> {
        let mut held = self.held();
        match &held.draft {
            None => Err(Refusal::NoTransaction),
            Some((key, _)) if **key != *name => Err(Refusal::Other(key.to_string())),
            Some(_) => {
                held.draft = None;
                Ok(())
            }
        }
    }

    /// Makes room for a certificate.
    ///
    /// # Errors
    /// The certificate exists already.
    pub fn new_certificate(&self, name: &str) -> Result<(), Refusal> {
        let mut held = self.held();
        if held.files.certificates.contains_key(name) {
            return Err(Refusal::Exists);
        }
        held.files.certificates.insert(name.into(), None);
        held.publish();
        Ok(())
    }

    /// Forgets a certificate.
    ///
    /// # Errors
    /// It is in use, or being changed, or does not exist.
    pub fn delete_certificate(&self, name: &str) -> Result<(), Refusal> {
        let mut held = self.held();
        if held.draft.as_ref().is_some_and(|(key, _)| **key == *name) {
            return Err(Refusal::Ongoing);
        }
        if !held.files.certificates.contains_key(name) {
            return Err(Refusal::Unknown);
        }
        let is_listed = |files: &Files| {
            let mut lines = files.lists.values().flat_map(|list| &list.lines);
            lines.any(|line| *line.certificate == *name)
        };
        if held.is_used(&Touched::Certificate(name)) || is_listed(&held.files) || held.for_tokens.contains(name) {
            return Err(Refusal::Used);
        }
        held.files.certificates.remove(name);
        held.publish();
        Ok(())
    }
}

impl Held {
    /// A certificate's parts, as they are or as they are being changed.
    pub(super) fn draft_of(&self, name: &str, is_draft: bool) -> Option<Draft> {
        match is_draft {
            true => self.draft.as_ref().filter(|(key, _)| **key == *name).map(|(_, draft)| draft.clone()),
            false => self.files.certificates.get_key_value(name).map(draft),
        }
    }
}

/// The certificate that a name belongs to, and the part that it names.
fn part(name: &str) -> (&str, Part) {
    match name.rsplit_once('.') {
        Some((stem, "key")) => (stem, Part::Key),
        Some((stem, "ocsp")) => (stem, Part::Ocsp),
        Some((stem, "issuer")) => (stem, Part::Issuer),
        Some((stem, "sctl")) => (stem, Part::Timestamps),
        _ => (name, Part::Pem),
    }
}

/// Name that is asked for: `*name` is being changed, and `\*name` is called so.
pub(super) fn asked(name: &str) -> (&str, bool) {
    let (name, is_draft) = name.strip_prefix('*').map_or((name, false), |name| (name, true));
    (name.strip_prefix('\\').unwrap_or(name), is_draft)
}

fn draft((key, certificate): (&Key, &Option<Arc<Certificate>>)) -> Draft {
    certificate.as_ref().map_or_else(|| Draft::empty(Path::new(&**key)), |certificate| Draft::of(certificate))
}

/// Base64 over any number of lines.
pub(super) fn decoded(payload: &[u8]) -> Result<Vec<u8>, Refusal> {
    let text: String = payload.iter().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| char::from(*byte)).collect();
    let bytes = base64::decode_block(&text).ok().filter(|bytes| !bytes.is_empty());
    bytes.ok_or_else(|| Refusal::Payload("it is not written in base64".into()))
}
