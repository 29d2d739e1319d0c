//! Compression dictionaries of RFC 9842: bytes that client and server both hold.
//!
//! ```text
//!   Use-As-Dictionary: match="/app/*"         <- field::UseAs, pattern::Pattern: an answer that later ones may refer to
//!   Available-Dictionary: :pZGm1A...:         <- field::available, a Hash: the client has it
//!   Content-Encoding: dcz                     <- MAGIC, the hash, a zstd frame that was made with the dictionary
//! ```
//!
//! Invariants:
//! * The crate is pure: bytes are arguments; there are no sockets, files, clocks or threads.
//! * A dictionary is found by its origin and its hash together ([`Index::find`], [`versions::Versions::find`]): the hash alone is the client's
//!   choice.
//! * What cannot be read as the RFC has it is no field at all. No input panics, and each field has a limit of bytes.

pub mod field;
mod hash;
mod index;
mod notes;
pub mod pattern;
pub mod release;
pub mod stored;
pub mod versions;

pub use hash::Hash;
pub use index::{Full, Index, Limits, Origin};
pub use notes::Notes;
pub use pattern::Pattern;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first bytes of a `dcz` body (RFC 9842 section 5): a skippable frame of zstd, whose 32 bytes are the dictionary's hash.
pub const MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];

/// The most bytes of a dictionary. Tables of level 6 do not see over more: one of 16 MB made bodies a tenth larger than none.
pub const MOST_BYTES: u64 = 4 << 20;

/// The name of learned dictionaries: the word that asks for them.
pub const LEARNED: &str = "auto";

/// The codings that need a dictionary.
pub const CODINGS: [&str; 2] = ["dcb", "dcz"];

/// Whether a coding's name is that of one that needs a dictionary.
pub fn is_coding(name: &[u8]) -> bool {
    CODINGS.iter().any(|coding| name.eq_ignore_ascii_case(coding.as_bytes()))
}

/// A dictionary: bytes, their hash, and what they are for.
#[derive(Debug)]
pub struct Dictionary {
    /// What the configuration calls it; [`LEARNED`] for one that it does not have.
    pub name: Arc<str>,
    /// What clients are told of it.
    pub use_as: field::UseAs,
    /// The path under which it is published; empty for one that is not.
    pub path: Box<str>,
    /// What it has done.
    pub counters: Counters,
    /// What it was no help for.
    pub notes: Notes,
    /// When it was taken in, in seconds since 1970; 0 until somebody with a clock says so.
    pub since_s: AtomicU64,
    bytes: Arc<[u8]>,
    hash: Hash,
}

/// What a dictionary has done.
#[derive(Default, Debug)]
pub struct Counters {
    /// Answers that named it to their clients.
    pub announced: AtomicU64,
    /// Times that it was fetched from here.
    pub fetched: AtomicU64,
    /// Requests whose clients have it.
    pub offered: AtomicU64,
    /// Answers that refer to it.
    pub used: AtomicU64,
    /// Answers that did not refer to it, because that was no help before.
    pub not_worth: AtomicU64,
    /// Bytes of answers that refer to it before they were coded, and behind that.
    pub bytes: [AtomicU64; 2],
}

impl Counters {
    /// Counts an answer that refers to the dictionary.
    pub fn count_used(&self, input: u64, output: u64) {
        self.used.fetch_add(1, Relaxed);
        self.bytes[0].fetch_add(input, Relaxed);
        self.bytes[1].fetch_add(output, Relaxed);
    }

    /// Sets all to 0.
    pub fn clear(&self) {
        let all = [&self.announced, &self.fetched, &self.offered, &self.used, &self.not_worth, &self.bytes[0], &self.bytes[1]];
        all.into_iter().for_each(|number| number.store(0, Relaxed));
    }
}

impl Dictionary {
    /// The dictionary of those bytes, published below the prefix of a path.
    pub fn new(name: Arc<str>, use_as: field::UseAs, prefix: &str, bytes: Vec<u8>) -> Dictionary {
        let hash = Hash::of(&bytes);
        let path = format!("{prefix}{}", hash.hex()).into();
        Dictionary {
            name,
            use_as,
            path,
            counters: Counters::default(),
            notes: Notes::default(),
            since_s: AtomicU64::new(0),
            bytes: bytes.into(),
            hash,
        }
    }

    /// A learned one, whose bytes have that hash. It is not published: its clients have it from their server.
    pub fn learned(use_as: field::UseAs, hash: Hash, bytes: Arc<[u8]>) -> Dictionary {
        Dictionary {
            name: LEARNED.into(),
            use_as,
            path: "".into(),
            counters: Counters::default(),
            notes: Notes::default(),
            since_s: AtomicU64::new(0),
            bytes,
            hash,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Their hash.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_its_path_is_its_hash() {
        let use_as = field::UseAs::of(Pattern::new("/a/*").unwrap());
        let dictionary = Dictionary::new("d".into(), use_as, "/.dictionary/", b"abc".to_vec());
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(&*dictionary.path, format!("/.dictionary/{hex}"));
        assert_eq!((dictionary.hash().hex().as_str(), &dictionary.bytes()[..]), (hex, &b"abc"[..]));
        dictionary.counters.count_used(100, 7);
        assert_eq!(dictionary.counters.bytes[1].load(Relaxed), 7);
        dictionary.counters.clear();
        assert_eq!(dictionary.counters.used.load(Relaxed), 0);
    }

    #[test]
    fn codings_in_any_case() {
        assert!(is_coding(b"DCZ") && is_coding(b"dcb") && !is_coding(b"zstd") && !is_coding(b""));
    }
}
