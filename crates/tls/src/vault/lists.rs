//! Lists of certificates and folders, shown and changed.

use super::files::{Key, List, ListLine, key};
use super::{Refusal, Touched, Vault};
use crate::list::Entry;
use crate::settings::FileName;
use std::fmt::Write as _;
use std::sync::Arc;
use terse_config::Place;

impl Vault {
    /// The lists and folders.
    pub fn lists(&self) -> Vec<String> {
        self.held().files.lists.keys().map(ToString::to_string).collect()
    }

    /// The lines of a list, in the form that a file has, or with their numbers.
    pub fn show_list(&self, name: &str, numbers: bool) -> Option<String> {
        let held = self.held();
        let (name, list) = held.files.lists.get_key_value(name.trim_end_matches('/'))?;
        let mut text = format!("# {name}\n");
        for ListLine { number, certificate, entry } in &list.lines {
            text.push_str(certificate);
            if numbers {
                let _ = write!(text, ":{number}");
            }
            if !entry.words.is_empty() {
                let _ = write!(text, " [{}]", entry.words);
            }
            entry.names.iter().for_each(|name| text.extend([" ", name]));
            text.push('\n');
        }
        Some(text)
    }

    /// Adds a line to a list, for all users of the list: returns the certificate, and how many got new contexts.
    ///
    /// # Errors
    /// The line or its certificate cannot be used.
    pub fn add_to_list(&self, name: &str, line: &str) -> Result<(String, usize), Refusal> {
        let mut held = self.held();
        let name = name.trim_end_matches('/');
        let refused = |reason: String| Refusal::Payload(reason);
        let list = held.files.lists.get_key_value(name).map(|(name, list)| (name.clone(), list.clone()));
        let (name, list) = list.ok_or_else(|| refused(format!("crt-list '{name}' does not exist!")))?;
        let entry = Entry::parse(line).map_err(refused)?;
        let entry = entry.ok_or_else(|| refused("'add ssl crtlist' should contain the certificate name in the payload".into()))?;
        let file = FileName { name: entry.file.clone(), place: Place::nowhere() };
        let certificate = key(&file.path(self.global().crt_base.as_deref()));
        let found = held.files.certificate(&certificate);
        found.and_then(|found| found.check_dates(&self.global)).map_err(|wrong| refused(wrong.0))?;
        if !entry.parts.is_empty() {
            let reason = "files are not read while the process runs: 'set ssl cert' takes a certificate's parts";
            return Err(refused(reason.into()));
        }
        if list.is_folder {
            if list.lines.iter().any(|line| line.certificate == certificate) {
                return Err(refused("file already exists in this directory!".into()));
            }
            if !entry.words.is_empty() || !entry.names.is_empty() {
                let reason = "this is a directory, SSL configuration, crt-store keywords and filters are not allowed";
                return Err(refused(reason.into()));
            }
        }
        let mut changed = List::clone(&list);
        changed.last_number += 1;
        let for_tokens = entry.for_tokens.then(|| certificate.clone());
        let line = ListLine { number: changed.last_number, certificate: certificate.clone(), entry: Arc::new(entry) };
        changed.lines.push(line);
        let mut files = held.files.clone();
        files.lists.insert(name.clone(), Arc::new(changed));
        let count = held.change(files, &Touched::List(&name), &self.global).map_err(|wrong| Refusal::Contexts(wrong.0))?;
        if let Some(certificate) = for_tokens {
            held.for_tokens.insert(certificate);
            held.publish();
        }
        self.changed.notify_one();
        Ok((certificate.to_string(), count))
    }

    /// Removes a line of a list, for all users of the list. `number` tells lines of one certificate apart.
    ///
    /// # Errors
    /// There is no such line, or more than one, or it is the default for clients that name no known host.
    pub fn delete_from_list(&self, name: &str, certificate: &str, number: Option<usize>) -> Result<(), Refusal> {
        let mut held = self.held();
        let name = name.trim_end_matches('/');
        let refused = |reason: String| Err(Refusal::Payload(reason));
        let list = held.files.lists.get_key_value(name).map(|(name, list)| (name.clone(), list.clone()));
        let Some((name, list)) = list else { return refused(format!("crt-list '{name}' does not exist!")) };
        held.files.certificate(certificate).map_err(|wrong| Refusal::Payload(wrong.0))?;
        let of: Vec<usize> = (0..list.lines.len()).filter(|at| *list.lines[*at].certificate == *certificate).collect();
        let numbers = || of.iter().map(|at| list.lines[*at].number.to_string()).collect::<Vec<_>>().join(", ");
        let at = match (number, &of[..]) {
            (_, []) => return refused(format!("certificate '{certificate}' can't be found in crt-list '{name}'!")),
            (None, [at]) => *at,
            (None, _) => {
                return refused(format!(
                    "found the certificate '{certificate}' in several entries, please specify a line number preceded by colons ({})!",
                    numbers()
                ));
            }
            (Some(number), _) => match of.iter().find(|at| list.lines[**at].number == number) {
                Some(at) => *at,
                None => {
                    return refused(format!(
                        "found a certificate '{certificate}' but the line number is incorrect, please specify a correct line number preceded by colons ({})!",
                        numbers()
                    ));
                }
            },
        };
        let line = (name.clone(), list.lines[at].number);
        let defaults: String = held.acceptors().filter_map(|acceptor| shown_by_default(&acceptor, &line, certificate)).collect();
        if !defaults.is_empty() {
            return refused(format!(
                "certificate '{certificate}' cannot be deleted, it is used as default certificate by the following frontends:\n{defaults}"
            ));
        }
        let mut changed = List::clone(&list);
        changed.lines.remove(at);
        let mut files = held.files.clone();
        files.lists.insert(name.clone(), Arc::new(changed));
        held.change(files, &Touched::List(&name), &self.global).map_err(|wrong| Refusal::Contexts(wrong.0))?;
        self.changed.notify_one();
        Ok(())
    }
}

/// Place of a `bind` line that shows a line of a list to clients that name no known host.
fn shown_by_default(acceptor: &crate::Acceptor, line: &(Key, usize), certificate: &str) -> Option<String> {
    let offer = acceptor.offer();
    // A certificate for any name can go: the one that the line begins with takes its place.
    let is_meant = |number: &usize| {
        let default = &offer.lines[*number];
        let is_it = default.list.as_ref() == Some(line) && *default.key == *certificate;
        is_it && default.is_first
    };
    let (_, place) = acceptor.line();
    (!offer.strict && offer.defaults.iter().any(is_meant)).then(|| format!("\t- {}:{}\n", place.file, place.line))
}
