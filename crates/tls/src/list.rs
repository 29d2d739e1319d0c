//! Lists of certificates (`crt-list`): a file a line, with words of its own in brackets, and the names that it is for.
//!
//! ```text
//! # comment
//! site.pem [alpn http/1.1 verify none] *.example.org !www.example.org
//! ```

use crate::certificate::{Unusable, read};
use crate::keywords;
use crate::names::Name;
use crate::settings::{BindTls, FileName};
use std::path::Path;
use terse_config::Place;

/// A line of a list.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The certificate.
    pub(crate) file: FileName,
    /// The words of the `bind` line, and over them those of this one; `None`: it has none.
    pub(crate) tls: Option<BindTls>,
    /// The names that it is for; empty: those of the certificate.
    pub(crate) names: Vec<Name>,
}

/// Reads a list. `tls` is what the `bind` line says, and `place` where it names the list.
pub(crate) fn load(path: &Path, tls: &BindTls, place: &Place) -> Result<Vec<Entry>, Vec<Unusable>> {
    let bytes = read(path).map_err(|wrong| vec![wrong])?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        match entry(line.trim(), tls, place) {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => {}
            Err(reason) => wrong.push(Unusable(format!("'{}' line {}: {reason}", path.display(), number + 1))),
        }
    }
    if wrong.is_empty() { Ok(entries) } else { Err(wrong) }
}

fn entry(line: &str, tls: &BindTls, place: &Place) -> Result<Option<Entry>, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, mut rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if name.starts_with('[') {
        return Err("it begins with words in brackets, not with a file".into());
    }
    rest = rest.trim_start();
    let mut own = None;
    if let Some(bracketed) = rest.strip_prefix('[') {
        let (words, behind) = bracketed.split_once(']').ok_or("a bracket is not closed")?;
        let mut changed = tls.clone();
        keywords::listed(words, place, &mut changed)?;
        own = (!words.trim().is_empty()).then_some(changed);
        rest = behind;
    }
    let names = rest.split_whitespace().map(Name::parse).collect();
    Ok(Some(Entry { file: FileName { name: name.into(), place: place.clone() }, tls: own, names }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Verify;

    fn read_line(line: &str) -> Result<Option<Entry>, String> {
        entry(line, &BindTls::default(), &Place::nowhere())
    }

    #[test]
    fn files_words_and_names() {
        let entry = read_line("a.pem [verify none ssl-min-ver TLSv1.3] *.a.test !b.a.test").unwrap().unwrap();
        assert_eq!((&*entry.file.name, entry.names.len()), ("a.pem", 2));
        assert_eq!(entry.tls.unwrap().own.verify, Some(Verify::None));
        let bare = read_line("a.pem").unwrap().unwrap();
        assert!(bare.tls.is_none() && bare.names.is_empty());
        assert!(read_line("a.pem [] a.test").unwrap().unwrap().tls.is_none());
        assert!(read_line("").unwrap().is_none() && read_line("# a").unwrap().is_none());
        for (line, reason) in [
            ("a.pem [verify none a.test", "not closed"),
            ("[verify none] a.pem", "not with a file"),
            ("a.pem [nonsense]", "'nonsense'"),
            ("a.pem [strict-sni]", "'strict-sni'"),
            ("a.pem [verify maybe]", "maybe"),
        ] {
            assert!(read_line(line).unwrap_err().contains(reason), "{line}");
        }
    }
}
