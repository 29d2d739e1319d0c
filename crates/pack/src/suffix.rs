//! Names of compressed files and of their contents.

use crate::form::Form;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Known suffixes, their replacements, and their formats.
const KNOWN: &[(&str, &str, Form)] = &[
    (".gz", "", Form::Gzip),
    (".z", "", Form::Gzip),
    ("-gz", "", Form::Gzip),
    ("-z", "", Form::Gzip),
    ("_z", "", Form::Gzip),
    (".tgz", ".tar", Form::Gzip),
    (".taz", ".tar", Form::Gzip),
    (".zst", "", Form::Zstd),
    (".tzst", ".tar", Form::Zstd),
    (".br", "", Form::Brotli),
];

/// Name of a compressed file without its suffix, and the suffix's format; `own` is the suffix of `-S`.
pub(crate) fn stripped(name: &Path, own: Option<&OsStr>) -> Option<(PathBuf, Option<Form>)> {
    let bytes = name.as_os_str().as_bytes();
    let known = KNOWN.iter().map(|&(suffix, instead, form)| (suffix.as_bytes(), instead, Some(form)));
    own.map(|own| (own.as_bytes(), "", None)).into_iter().chain(known).find_map(|(suffix, instead, form)| {
        let stem = strip(bytes, suffix)?;
        let mut stem = stem.to_vec();
        stem.extend_from_slice(instead.as_bytes());
        Some((PathBuf::from(OsString::from_vec(stem)), form))
    })
}

/// Name of the compressed form of `name`.
pub(crate) fn added(name: &Path, form: Form, own: Option<&OsStr>) -> PathBuf {
    let mut longer = name.as_os_str().to_owned();
    longer.push(own.unwrap_or(form.suffix().as_ref()));
    PathBuf::from(longer)
}

/// The suffix that a name already has, which keeps it from being compressed again.
pub(crate) fn present<'a>(name: &'a Path, own: Option<&OsStr>) -> Option<&'a OsStr> {
    let bytes = name.as_os_str().as_bytes();
    let known = KNOWN.iter().map(|(suffix, ..)| suffix.as_bytes());
    let found = own.map(OsStr::as_bytes).into_iter().chain(known).find_map(|suffix| strip(bytes, suffix))?;
    Some(OsStr::from_bytes(&bytes[found.len()..]))
}

/// `name` without `suffix`, in whatever case that is written, if a name is left before it.
fn strip<'a>(name: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
    let (stem, end) = name.split_at(name.len().checked_sub(suffix.len())?);
    (end.eq_ignore_ascii_case(suffix) && stem.last().is_some_and(|&byte| byte != b'/')).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_come_and_go() {
        let gone =
            |name: &str| stripped(name.as_ref(), None).map(|(name, form)| (name.to_str().unwrap().to_owned(), form.unwrap()));
        assert_eq!(gone("a/b.gz"), Some(("a/b".into(), Form::Gzip)));
        assert_eq!(gone("B.GZ"), Some(("B".into(), Form::Gzip)));
        assert_eq!(gone("x.tgz"), Some(("x.tar".into(), Form::Gzip)));
        assert_eq!(gone("x.tar.zst"), Some(("x.tar".into(), Form::Zstd)));
        assert_eq!(gone("x.js.br"), Some(("x.js".into(), Form::Brotli)));
        for none in ["x", "a/.gz", ".gz", "gz"] {
            assert_eq!(gone(none), None, "{none}");
        }
        assert_eq!(stripped("x.foo".as_ref(), Some(".foo".as_ref())).unwrap().0, Path::new("x"));
        assert_eq!(added("x".as_ref(), Form::Zstd, None), Path::new("x.zst"));
        assert_eq!(added("x".as_ref(), Form::Gzip, Some("-s".as_ref())), Path::new("x-s"));
        assert_eq!(present("x.tgz".as_ref(), None), Some(".tgz".as_ref()));
        assert_eq!(present("x.txt".as_ref(), None), None);
    }
}
