//! Lists of certificates (`crt-list`): a file a line, with keywords of its own in brackets, and the names that it is for.
//!
//! ```text
//! # comment
//! site.pem [alpn http/1.1 verify none] *.example.org !www.example.org
//! ```

use crate::certificate::{Unusable, read};
use crate::keywords::{self, Listed};
use crate::names::Name;
use crate::settings::{BindTls, Own};
use crate::store::Parts;
use std::path::Path;
use std::sync::Arc;
use terse_config::Place;

/// A line of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The certificate, as it is written.
    pub(crate) file: Arc<str>,
    /// Its own keywords, with single blanks; empty: it has none.
    pub(crate) words: Arc<str>,
    /// The names that it is for, as they are written; empty: those of the certificate.
    pub(crate) names: Arc<[Box<str>]>,
    /// `ocsp-update`, among its keywords.
    pub(crate) updates: Option<bool>,
    /// Files of its parts, as its keywords name them.
    pub(crate) parts: Parts,
    /// `jwt`, among its keywords.
    pub(crate) for_tokens: bool,
}

impl Entry {
    /// A certificate alone.
    pub(crate) fn bare(file: &str) -> Entry {
        let (parts, names) = (Parts::default(), Arc::default());
        Entry { file: file.into(), words: "".into(), names, updates: None, parts, for_tokens: false }
    }

    /// Its keywords over those of a `bind` line; `None`: it has none.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub(crate) fn own(&self, tls: &BindTls, place: &Place) -> Result<Option<Own>, String> {
        if self.words.is_empty() {
            return Ok(None);
        }
        let mut changed = tls.clone();
        let Listed { parts, for_tokens } = keywords::listed(&self.words, place, &mut changed)?;
        // Keywords that do not concern handshakes leave them as they are.
        let says_more = changed.ocsp_update.is_some() || !parts.is_empty() || for_tokens;
        Ok(Some(changed.own).filter(|own| !says_more || *own != tls.own))
    }

    /// The names that it is for.
    pub(crate) fn names(&self) -> Vec<Name> {
        self.names.iter().map(|name| Name::parse(name)).collect()
    }

    /// Reads a line; `None` for an empty line and for a comment.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(crate) fn parse(line: &str) -> Result<Option<Entry>, String> {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return Ok(None);
        }
        let (file, mut rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if file.starts_with('[') {
            return Err("it begins with words in brackets, not with a file".into());
        }
        rest = rest.trim_start();
        let mut words = String::new();
        if let Some(bracketed) = rest.strip_prefix('[') {
            let (inside, behind) = bracketed.split_once(']').ok_or("a bracket is not closed")?;
            words = inside.split_whitespace().collect::<Vec<_>>().join(" ");
            rest = behind;
        }
        let names = rest.split_whitespace().map(Into::into).collect();
        let mut said = BindTls::default();
        let Listed { parts, for_tokens } = keywords::listed(&words, &Place::nowhere(), &mut said)?;
        let updates = said.ocsp_update;
        Ok(Some(Entry { file: file.into(), words: words.into(), names, updates, parts, for_tokens }))
    }
}

/// A list as a file has it.
pub(crate) struct Read {
    /// Its lines, with their numbers.
    pub(crate) entries: Vec<(usize, Entry)>,
    /// Number of all lines of the file, with those that are empty or comments.
    pub(crate) lines: usize,
}

/// Reads a list.
///
/// # Errors
/// All faults of it.
pub(crate) fn load(path: &Path) -> Result<Read, Vec<Unusable>> {
    let bytes = read(path).map_err(|wrong| vec![wrong])?;
    let text = String::from_utf8_lossy(&bytes);
    if text.lines().any(|line| line.trim_start().starts_with("-----BEGIN ")) {
        // It may be a key, whose lines must not come back as names of files that are missing.
        return Err(vec![Unusable::new(path, "it holds PEM and is no list of certificates")]);
    }
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        match Entry::parse(line) {
            Ok(Some(entry)) => entries.push((number + 1, entry)),
            Ok(None) => {}
            Err(reason) => wrong.push(Unusable(format!("'{}' line {}: {reason}", path.display(), number + 1))),
        }
    }
    if wrong.is_empty() { Ok(Read { entries, lines: text.lines().count() }) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Verify;

    #[test]
    fn files_words_and_names() {
        let parse = |line: &str| Entry::parse(line);
        let own = |entry: &Entry| entry.own(&BindTls::default(), &Place::nowhere()).unwrap();
        let entry = parse("a.pem [verify none  ssl-min-ver TLSv1.3] *.a.test !b.a.test # comment").unwrap().unwrap();
        assert_eq!((&*entry.file, &*entry.words, entry.names().len()), ("a.pem", "verify none ssl-min-ver TLSv1.3", 2));
        assert_eq!(own(&entry).unwrap().verify, Some(Verify::None));
        let bare = parse("a.pem").unwrap().unwrap();
        assert_eq!((&bare, own(&bare)), (&Entry::bare("a.pem"), None));
        let composed = parse("a.pem [key b.key ocsp-update on sctl c] a.test").unwrap().unwrap();
        let names = [&composed.parts.key, &composed.parts.timestamps].map(|part| part.as_ref().map(|file| &*file.name));
        assert_eq!((names, own(&composed), composed.updates), ([Some("b.key"), Some("c")], None, Some(true)));
        let groups = parse("a.pem [curves P-384:P-256] a.test").unwrap().unwrap();
        assert_eq!(own(&groups).unwrap().common.curves.as_deref(), Some("P-384:P-256"));
        assert!(own(&parse("a.pem [] a.test").unwrap().unwrap()).is_none());
        assert!(parse("").unwrap().is_none() && parse("# a").unwrap().is_none());
        for (line, reason) in [
            ("a.pem [verify none a.test", "not closed"),
            ("[verify none] a.pem", "not with a file"),
            ("a.pem [nonsense]", "'nonsense'"),
            ("a.pem [strict-sni]", "'strict-sni'"),
            ("a.pem [verify maybe]", "maybe"),
            ("a.pem [alias x]", "'alias'"),
            ("a.pem [key]", "<file>"),
        ] {
            assert!(parse(line).unwrap_err().contains(reason), "{line}");
        }
    }
}
