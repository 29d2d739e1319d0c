//! Learned dictionaries as files: a head that says whose they are and which requests they are for, then the bytes.
//!
//! ```text
//!   name    the hash's 64 digits, '-', 16 digits of the origin's hash
//!   head    terse dictionary 1
//!           https://www.example.org
//!           /assets/app.*.js
//!           (an empty line)
//! ```
//!
//! A file is what its name says, or it is none: the hash is made of its bytes again, the second part of its origin.

use crate::{Hash, Origin, Pattern, pattern};
use data_encoding::HEXLOWER;
use std::fmt;
use std::sync::Arc;

/// The first line.
const FORM: &str = "terse dictionary 1";

/// Bytes of the longest head: the form, an origin, a pattern.
pub const MOST_HEAD: usize = FORM.len() + 2 * pattern::MOST_BYTES;

/// Characters of a name.
const NAME_LENGTH: usize = 64 + 1 + 16;

/// A dictionary as it is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Whose dictionary it is.
    pub origin: Origin,
    /// The requests that it is for.
    pub pattern: Pattern,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

/// What a file says of its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Whose dictionary it is.
    pub origin: Origin,
    /// The requests that it is for.
    pub pattern: Pattern,
}

/// Why a file is no learned dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Its head is none of this form.
    Head,
    /// It is not what its name says.
    Name,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Head => "its head is not that of a learned dictionary",
            Damage::Name => "its bytes or its origin are not those of its name",
        })
    }
}

/// The name of the file of that origin's dictionary.
pub fn name(origin: &Origin, hash: &Hash) -> String {
    let origin = Hash::of(origin.to_string().as_bytes());
    format!("{hash}-{}", HEXLOWER.encode(&origin.short()))
}

/// Whether a name may be that of such a file.
pub fn is_name(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.len() == NAME_LENGTH && name.bytes().enumerate().all(|(at, byte)| if at == 64 { byte == b'-' } else { is_digit(byte) })
}

/// The head of a dictionary's file.
pub fn head(origin: &Origin, pattern: &Pattern) -> String {
    format!("{FORM}\n{origin}\n{}\n\n", pattern.as_str())
}

/// Reads the head of a file; returns also where its bytes begin.
///
/// # Errors
/// It has none.
pub fn read_head(file: &[u8]) -> Result<(Head, usize), Damage> {
    let begin = &file[..file.len().min(MOST_HEAD)];
    let end = begin.windows(2).position(|pair| pair == b"\n\n").ok_or(Damage::Head)?;
    let text = std::str::from_utf8(&begin[..end]).map_err(|_| Damage::Head)?;
    let mut lines = text.split('\n');
    let (form, origin, pattern) = (lines.next(), lines.next(), lines.next());
    if form != Some(FORM) || lines.next().is_some() {
        return Err(Damage::Head);
    }
    let host = origin.and_then(|origin| origin.strip_prefix("https://")).ok_or(Damage::Head)?;
    let origin = Origin::of(host.as_bytes(), true).ok_or(Damage::Head)?;
    let pattern = Pattern::new(pattern.ok_or(Damage::Head)?).map_err(|_| Damage::Head)?;
    Ok((Head { origin, pattern }, end + 2))
}

/// Reads a file of that name; returns also its bytes and their hash.
///
/// # Errors
/// It is no learned dictionary, or another one.
pub fn read<'f>(file_name: &str, file: &'f [u8]) -> Result<(Head, Hash, &'f [u8]), Damage> {
    let (head, begin) = read_head(file)?;
    let bytes = &file[begin..];
    let hash = Hash::of(bytes);
    match name(&head.origin, &hash) == file_name {
        true => Ok((head, hash, bytes)),
        false => Err(Damage::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(host: &str, pattern: &str, bytes: &[u8]) -> (String, Vec<u8>) {
        let origin = Origin::of(host.as_bytes(), true).unwrap();
        let head = head(&origin, &Pattern::new(pattern).unwrap());
        (name(&origin, &Hash::of(bytes)), [head.as_bytes(), bytes].concat())
    }

    #[test]
    fn what_was_written_is_read() {
        for (host, pattern) in [("a.test", "/*.js"), ("a.test:8443", "/a/*.css"), ("[::1]:444", "/*"), (&*"a".repeat(255), "/x")] {
            for bytes in [&b""[..], b"\n\n", b"abc\n\ndef"] {
                let (name, file) = file(host, pattern, bytes);
                assert!(is_name(&name), "{name}");
                let (head, hash, read) = read(&name, &file).unwrap();
                assert_eq!(
                    (head.origin, head.pattern.as_str(), read),
                    (Origin::of(host.as_bytes(), true).unwrap(), pattern, bytes)
                );
                assert_eq!(hash, Hash::of(bytes));
            }
        }
        let long = format!("/{}", "a".repeat(pattern::MOST_BYTES - 1));
        let (name, file) = file(&"h".repeat(255), &long, b"x");
        assert!(read(&name, &file).is_ok());
    }

    #[test]
    fn another_files_name_and_each_changed_byte_are_seen() {
        let (name, file) = file("a.test", "/*.js", b"the bytes");
        assert_eq!(read(&super::tests::file("b.test", "/*.js", b"the bytes").0, &file), Err(Damage::Name));
        assert_eq!(read(&super::tests::file("a.test", "/*.js", b"the byte").0, &file), Err(Damage::Name));
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1;
            match read(&name, &changed) {
                Err(_) => {}
                // A pattern that is too wide costs bytes, and never makes wrong ones.
                Ok((head, _, bytes)) => assert!(bytes == b"the bytes" && head.pattern.as_str() != "/*.js", "{at}"),
            }
        }
        for end in 0..file.len() {
            assert!(read(&name, &file[..end]).is_err(), "cut at {end}");
        }
        for wrong in [
            "",
            "terse dictionary 2\nhttps://a\n/x\n\n",
            "terse dictionary 1\nhttp://a\n/x\n\n",
            "terse dictionary 1\nhttps://a\nx\n\n",
        ] {
            assert_eq!(read(&name, wrong.as_bytes()), Err(Damage::Head), "{wrong}");
        }
    }

    #[test]
    fn other_files_have_other_names() {
        let digits = "0".repeat(64);
        assert!(is_name(&format!("{digits}-{}", "f".repeat(16))));
        for wrong in
            ["", ".", "..", "README", &digits, &format!("{digits}-{}", "F".repeat(16)), &format!("{digits}/{}", "f".repeat(16))]
        {
            assert!(!is_name(wrong), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_file_panics(file in any::<Vec<u8>>(), lines in "(terse dictionary 1\n)?(https://[a-z:0-9\\[\\].]{0,9}\n)?(/[a-z*?]{0,9}\n)?\n*[a-z]{0,9}") {
            for file in [&file[..], lines.as_bytes()] {
                if let Ok((head, begin)) = read_head(file) {
                    prop_assert!(begin <= file.len() && head.pattern.as_str().len() <= pattern::MOST_BYTES);
                }
            }
        }
    }
}
