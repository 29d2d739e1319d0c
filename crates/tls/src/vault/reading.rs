//! Reading of the files that lines name, while the plan is built.

use super::files::{Key, List, ListLine, Version, key};
use super::{Held, Vault};
use crate::certificate::{Certificate, Keyed, Unusable, read};
use crate::list::{self, Entry};
use crate::settings::{BindTls, CertificateKind, FileName, Global, Own, ServerTls};
use crate::store::{self, Parts, Settled};
use crate::tickets::TicketKeys;
use crate::trust::{TrustKind, Trusted};
use openssl::dh::Dh;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terse_config::{Diagnostics, Place, Section};

impl Vault {
    /// Reads all files that a `bind` line names; reports faults, and returns whether there are none.
    pub(crate) fn read_bind(&self, tls: &BindTls, diagnostics: &mut Diagnostics) -> bool {
        let mut reader = Reader { vault: self, held: &mut self.held(), wrong: Vec::new(), remarks: Vec::new() };
        let base = self.global.crt_base.as_deref();
        for word in &tls.certificates {
            let path = word.file.path(base);
            match word.kind {
                CertificateKind::List => reader.list(&path, tls, &word.file.place),
                CertificateKind::Files | CertificateKind::Default if path.is_dir() => reader.folder(&path, &word.file.place),
                CertificateKind::Files | CertificateKind::Default => {
                    reader.certificates(&path, &word.file.place);
                }
            }
        }
        reader.own(&tls.own, None);
        reader.ticket_keys(tls.ticket_keys.as_ref());
        reader.tell(diagnostics)
    }

    /// Reads the Diffie-Hellman parameters that `global` names.
    pub fn read_parameters(&self, diagnostics: &mut Diagnostics) {
        let mut reader = Reader { vault: self, held: &mut self.held(), wrong: Vec::new(), remarks: Vec::new() };
        reader.dh();
        reader.tell(diagnostics);
    }

    /// Reports faults of the authorities of a `bind` line without `ssl`: they are not used, but they are expected to be
    /// there.
    pub fn find_trusted_of_bind(&self, tls: &BindTls, diagnostics: &mut Diagnostics) {
        let mut reader = Reader { vault: self, held: &mut self.held(), wrong: Vec::new(), remarks: Vec::new() };
        reader.own(&tls.own, None);
        reader.tell(diagnostics);
    }

    /// The same of a `server` line.
    pub fn find_trusted_of_server(&self, tls: &ServerTls, diagnostics: &mut Diagnostics) {
        let mut reader = Reader { vault: self, held: &mut self.held(), wrong: Vec::new(), remarks: Vec::new() };
        reader.trusted(TrustKind::Authorities, tls.ca_file.as_ref(), None);
        reader.trusted(TrustKind::Revoked, tls.crl_file.as_ref(), None);
        reader.tell(diagnostics);
    }

    /// Reads the certificates of `crt-store` sections.
    pub fn read_stores(&self, sections: Vec<Section>, diagnostics: &mut Diagnostics) {
        let held = &mut self.held();
        for Settled { name, sources, load } in sections.into_iter().flat_map(|section| store::settle(section, &self.global)) {
            let place = &load.certificate.place;
            if held.files.certificates.contains_key(&name) {
                diagnostics.alert(place, format!("'load' in section 'crt-store': store '{name}' was already defined"));
                continue;
            }
            let keyed = if load.for_tokens { Keyed::AtWill } else { Keyed::Always };
            let loaded = Certificate::load_from(Path::new(&*name), sources, true, keyed, &self.issuers);
            match loaded.and_then(|found| found.check_dates(&self.global).map(|()| found)) {
                Ok(certificate) => {
                    held.store_updates.extend(load.updates.map(|updates| (name.clone(), updates)));
                    held.for_tokens.extend(load.for_tokens.then(|| name.clone()));
                    held.files.certificates.insert(name, Some(Arc::new(certificate)));
                }
                Err(Unusable(reason)) => diagnostics.alert(place, format!("unable to load certificate {reason}")),
            }
        }
    }

    /// The same of a `server` line.
    pub(crate) fn read_server(&self, tls: &ServerTls, diagnostics: &mut Diagnostics) -> bool {
        let mut reader = Reader { vault: self, held: &mut self.held(), wrong: Vec::new(), remarks: Vec::new() };
        if let Some(file) = &tls.certificate {
            reader.certificates(&file.path(self.global.crt_base.as_deref()), &file.place);
        }
        reader.trusted(TrustKind::Authorities, tls.ca_file.as_ref(), None);
        reader.trusted(TrustKind::Revoked, tls.crl_file.as_ref(), None);
        reader.tell(diagnostics)
    }
}

struct Reader<'v> {
    vault: &'v Vault,
    held: &'v mut Held,
    wrong: Vec<(Place, String)>,
    /// Remarks, which are reported without further effect.
    remarks: Vec<(Place, String)>,
}

/// Reason why a certificate is not used.
enum Unfit {
    /// Its time is over, or has not come.
    Date(Unusable),
    Other(Unusable),
}

impl Reader<'_> {
    fn tell(self, diagnostics: &mut Diagnostics) -> bool {
        let is_whole = self.wrong.is_empty();
        self.remarks.into_iter().for_each(|(place, remark)| diagnostics.warn(&place, remark));
        self.wrong.into_iter().for_each(|(place, reason)| diagnostics.alert(&place, reason));
        is_whole
    }

    /// Reads a certificate, or those of a bundle; returns their names.
    fn certificates(&mut self, path: &Path, place: &Place) -> Vec<Key> {
        let is_held = self.held.files.certificates.contains_key(&key(path));
        let parts = if is_held { vec![path.to_owned()] } else { bundle(path, &self.vault.global) };
        let names: Vec<Key> = parts.iter().filter_map(|part| self.certificate(part, place)).collect();
        if parts != [path] {
            self.held.files.bundles.insert(key(path), names.clone());
        }
        names
    }

    fn certificate(&mut self, path: &Path, place: &Place) -> Option<Key> {
        let (Unfit::Date(reason) | Unfit::Other(reason)) = match self.load(path) {
            Ok(name) => return Some(name),
            Err(unfit) => unfit,
        };
        self.wrong.push((place.clone(), format!("unable to load certificate {}", reason.0)));
        self.held.unusable.insert(path.to_owned(), reason);
        None
    }

    fn load(&mut self, path: &Path) -> Result<Key, Unfit> {
        let name = key(path);
        if self.held.files.certificates.contains_key(&name) {
            return Ok(name);
        }
        if let Some(failed) = self.held.unusable.get(path) {
            return Err(Unfit::Other(failed.clone()));
        }
        let Vault { global, issuers, .. } = self.vault;
        let certificate = match name.starts_with('@') {
            true => Err(Unusable::new(path, "no 'crt-store' has it")),
            false => Certificate::load(path, global, issuers),
        };
        let certificate = certificate.map_err(Unfit::Other)?;
        certificate.check_dates(global).map_err(Unfit::Date)?;
        self.held.files.certificates.insert(name.clone(), Some(Arc::new(certificate)));
        Ok(name)
    }

    /// Reads a certificate whose parts a line of a list names; no others are looked for.
    fn composed(&mut self, path: &Path, parts: &Parts, place: &Place) -> Option<Key> {
        let Vault { global, issuers, .. } = self.vault;
        let sources = parts.sources(path.to_owned(), global.crt_base.as_deref(), global.key_base.as_deref());
        let name = key(path);
        let failed = match self.held.files.certificates.get(&name) {
            Some(Some(held)) if sources.are_among(&held.sources) => return Some(name),
            Some(_) => Unusable::new(path, "another line has read it, with other parts"),
            None => {
                let loaded = Certificate::load_from(path, sources, true, Keyed::Always, issuers);
                match loaded.and_then(|found| found.check_dates(global).map(|()| found)) {
                    Ok(certificate) => {
                        self.held.files.certificates.insert(name.clone(), Some(Arc::new(certificate)));
                        return Some(name);
                    }
                    Err(reason) => reason,
                }
            }
        };
        self.wrong.push((place.clone(), format!("unable to load certificate {}", failed.0)));
        None
    }

    fn dh(&mut self) {
        let Some(file) = self.vault.global.dh_file.as_ref().filter(|_| self.held.files.dh.is_none()) else { return };
        let path = file.path(None);
        let none = |_| Unusable::new(&path, "there are no Diffie-Hellman parameters in it");
        match read(&path).and_then(|pem| Dh::params_from_pem(&pem).map_err(none)) {
            Ok(dh) => self.held.files.dh = Some(Arc::new(dh)),
            Err(Unusable(reason)) => self.wrong.push((file.place.clone(), reason)),
        }
    }

    fn ticket_keys(&mut self, file: Option<&FileName>) {
        let Some(file) = file.filter(|file| self.held.ticket_keys(&file.name).is_none()) else { return };
        match TicketKeys::load(&file.path(None)) {
            Ok(keys) => self.held.tickets.push(Arc::new(keys)),
            Err(Unusable(reason)) => self.wrong.push((file.place.clone(), format!("'tls-ticket-keys': {reason}"))),
        }
    }

    fn list(&mut self, path: &Path, tls: &BindTls, place: &Place) {
        let name = key(path);
        if let Some(list) = self.held.files.lists.get(&name) {
            // The files that its lines name were read then; keywords of this line's own may name more.
            let entries: Vec<_> = list.lines.iter().map(|line| line.entry.clone()).collect();
            entries.iter().for_each(|entry| self.entry_words(entry, tls, place));
            return;
        }
        let list::Read { entries, lines: last_number } = match list::load(path) {
            Ok(read) => read,
            Err(wrong) => {
                self.wrong.extend(wrong.into_iter().map(|Unusable(reason)| (place.clone(), format!("crt-list {reason}"))));
                return;
            }
        };
        let mut lines = Vec::new();
        for (number, entry) in entries {
            let file = FileName { name: entry.file.clone(), place: place.clone() };
            let path = file.path(self.vault.global.crt_base.as_deref());
            let names = match entry.parts.is_empty() {
                true => self.certificates(&path, place),
                false => self.composed(&path, &entry.parts, place).into_iter().collect(),
            };
            self.entry_words(&entry, tls, place);
            self.held.for_tokens.extend(names.iter().filter(|_| entry.for_tokens).cloned());
            let entry = Arc::new(entry);
            lines.extend(names.into_iter().map(|certificate| ListLine { number, certificate, entry: entry.clone() }));
        }
        self.held.files.lists.insert(name, Arc::new(List { is_folder: false, lines, last_number }));
    }

    fn entry_words(&mut self, entry: &Entry, tls: &BindTls, place: &Place) {
        match entry.own(tls, place) {
            Ok(own) => own.iter().for_each(|own| self.own(own, Some(place))),
            Err(reason) => self.wrong.push((place.clone(), reason)),
        }
    }

    fn folder(&mut self, path: &Path, place: &Place) {
        let name = folder_key(path);
        if self.held.files.lists.contains_key(&name) {
            return;
        }
        let files = folder(path).unwrap_or_else(|Unusable(reason)| {
            self.wrong.push((place.clone(), format!("unable to load certificate {reason}")));
            Vec::new()
        });
        let mut late = Vec::new();
        let mut names: Vec<Key> = Vec::new();
        for file in &files {
            match self.load(file) {
                Err(Unfit::Date(reason)) => late.push((file, reason)),
                _ => names.extend(self.certificate(file, place)),
            }
        }
        if names.is_empty() {
            late.drain(..).for_each(|(file, _)| drop(self.certificate(file, place)));
        }
        let left_out = |(_, Unusable(reason))| (place.clone(), format!("a certificate of the folder is left out: {reason}"));
        self.remarks.extend(late.into_iter().map(left_out));
        let line = |(at, certificate): (usize, Key)| {
            let entry = Arc::new(Entry::bare(&certificate));
            ListLine { number: at + 1, certificate, entry }
        };
        let lines: Vec<_> = names.into_iter().enumerate().map(line).collect();
        let last_number = lines.len();
        self.held.files.lists.insert(name, Arc::new(List { is_folder: true, lines, last_number }));
    }

    fn own(&mut self, own: &Own, place: Option<&Place>) {
        self.trusted(TrustKind::Authorities, own.ca_file.as_ref(), place);
        self.trusted(TrustKind::Authorities, own.ca_verify_file.as_ref(), place);
        self.trusted(TrustKind::Revoked, own.crl_file.as_ref(), place);
    }

    fn trusted(&mut self, kind: TrustKind, file: Option<&FileName>, place: Option<&Place>) {
        let Some(file) = file else { return };
        let path = file.path(self.vault.global.ca_base.as_deref());
        let name = (kind, key(&path));
        if self.held.files.trusted.contains_key(&name) {
            return;
        }
        let failed = self.held.unusable.get(&path).cloned();
        match failed.map_or_else(|| Trusted::load(kind, &path), Err) {
            Ok(content) => {
                self.held.files.trusted.insert(name, Some(Arc::new(Version::new(content))));
            }
            Err(reason) => {
                self.wrong.push((place.unwrap_or(&file.place).clone(), reason.0.clone()));
                self.held.unusable.insert(path, reason);
            }
        }
    }
}

/// The name of a folder, without slashes at its end.
pub(crate) fn folder_key(path: &Path) -> Key {
    key(path).trim_end_matches('/').into()
}

/// The files of a folder that hold certificates, in the order of their names' bytes; those of one bundle follow each other.
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

/// A file; where it does not exist, the files that hold it for each kind of key (`ssl-load-extra-files bundle`).
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
    use crate::settings::CertificateWord;
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
        let vault = Vault::new(Global::default());
        let read = |path: &Path| {
            let file = FileName { name: key(path), place: Place::nowhere() };
            let certificates = vec![CertificateWord { file, kind: CertificateKind::Files }];
            let mut diagnostics = Diagnostics::default();
            vault.read_bind(&BindTls { certificates, ..BindTls::default() }, &mut diagnostics);
            diagnostics.iter().map(|wrong| wrong.reason.clone()).collect::<Vec<_>>()
        };
        assert_eq!(read(folder.path()), [""; 0]);
        let name = |name: &str| key(&at(name));
        let lines = vault.held().files.lists[&key(folder.path())].lines.clone();
        let found: Vec<_> = lines.iter().map(|line| line.certificate.clone()).collect();
        assert_eq!(found, [name("a.pem.ecdsa"), name("a.pem.rsa"), name("b.pem")]);
        let before = vault.certificate(&name("a.pem.ecdsa")).unwrap();
        assert_eq!(read(&at("a.pem")), [""; 0]);
        let held = vault.held();
        assert_eq!(held.files.certificates_of(&name("a.pem")), [name("a.pem.rsa"), name("a.pem.ecdsa")]);
        assert!(Arc::ptr_eq(held.files.certificate(&name("a.pem.ecdsa")).unwrap(), &before), "read once");
        drop(held);
        assert!(read(&at("missing.pem"))[0].contains("No such file"));
    }
}
