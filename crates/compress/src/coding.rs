//! The codings that terse can apply: an entry of a table each.

/// A content coding as the configuration names it (`compression algo`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Coding {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `deflate`: the zlib format (RFC 1950), as RFC 9110 section 8.4.1.2 defines the token.
    Deflate,
    /// `raw-deflate`: RFC 1951 without a wrapper under the token `deflate`, which some old clients mean by it.
    RawDeflate,
    /// `zstd` (RFC 8878, RFC 9659).
    Zstd,
    /// `br` (RFC 7932).
    Brotli,
    /// `identity`: the bytes pass through the compressor unchanged, without a length. For debugging, as with HAProxy.
    Identity,
    /// `dcz` (RFC 9842): zstd with a dictionary that the client has. No line of the configuration names it, and `*` does not mean it:
    /// [`crate::policy::offer`] chooses it where the client has one of ours.
    Dcz,
}

/// The effort of a coder. Its meaning is the coding's: zlib's 1 to 9 for the deflate family, zstd's 1 to 19, brotli's 0 to 9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Level(pub u8);

/// Properties of a coding.
#[derive(Debug)]
pub struct Entry {
    /// The coding.
    pub coding: Coding,
    /// The configuration's keyword.
    pub word: &'static str,
    /// The token on the wire, in Accept-Encoding and Content-Encoding; empty for `identity`, which is never announced.
    pub token: &'static str,
    /// Other names that clients use for the token (RFC 9110 section 8.4.1.3).
    pub aliases: &'static [&'static str],
    /// The levels that the configuration may name.
    pub levels: std::ops::RangeInclusive<u8>,
    /// The level when the configuration sets none.
    pub default_level: Level,
    /// Whether its levels have the same meaning as zlib's.
    pub has_zlib_levels: bool,
}

/// The codings, in the order of [`Coding`].
pub const CODINGS: &[Entry] = &[
    Entry { aliases: &["x-gzip"], ..zlibs(Coding::Gzip, "gzip", "gzip") },
    zlibs(Coding::Deflate, "deflate", "deflate"),
    zlibs(Coding::RawDeflate, "raw-deflate", "deflate"),
    entry(Coding::Zstd, "zstd", "zstd", 1..=19, 6),
    entry(Coding::Brotli, "br", "br", 0..=9, 6),
    entry(Coding::Identity, "identity", "", 0..=0, 0),
    entry(Coding::Dcz, "dcz", "dcz", 1..=19, 6),
];

const fn zlibs(coding: Coding, word: &'static str, token: &'static str) -> Entry {
    Entry { has_zlib_levels: true, ..entry(coding, word, token, 1..=9, 6) }
}

const fn entry(
    coding: Coding,
    word: &'static str,
    token: &'static str,
    levels: std::ops::RangeInclusive<u8>,
    default: u8,
) -> Entry {
    Entry { coding, word, token, aliases: &[], levels, default_level: Level(default), has_zlib_levels: false }
}

impl Coding {
    /// Its properties.
    pub const fn entry(self) -> &'static Entry {
        &CODINGS[self as usize]
    }

    /// The coding of a keyword of the configuration.
    pub fn of_word(word: &str) -> Option<Coding> {
        Coding::ordinary().find(|coding| coding.word() == word)
    }

    /// The codings that need nothing beside the body.
    pub fn ordinary() -> impl Iterator<Item = Coding> {
        CODINGS.iter().map(|entry| entry.coding).filter(|coding| !coding.has_dictionary())
    }

    /// Whether it needs a dictionary.
    pub const fn has_dictionary(self) -> bool {
        matches!(self, Coding::Dcz)
    }

    /// The configuration's keyword; also the value of the sample fetch `res.comp_algo`.
    pub const fn word(self) -> &'static str {
        self.entry().word
    }

    /// The token on the wire; empty for `identity`.
    pub const fn token(self) -> &'static str {
        self.entry().token
    }

    /// Whether it leaves the bytes as they are.
    pub const fn is_identity(self) -> bool {
        matches!(self, Coding::Identity)
    }

    /// Whether an element of Accept-Encoding names it.
    pub fn is_named(self, name: &[u8]) -> bool {
        let entry = self.entry();
        let same = |token: &str| !token.is_empty() && name.eq_ignore_ascii_case(token.as_bytes());
        same(entry.token) || entry.aliases.iter().copied().any(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, entry) in CODINGS.iter().enumerate() {
            assert_eq!(entry.coding as usize, i);
            assert_eq!(Coding::of_word(entry.word), Some(entry.coding).filter(|coding| !coding.has_dictionary()));
        }
    }

    #[test]
    fn names_in_any_case_and_by_alias() {
        assert!(Coding::Gzip.is_named(b"X-GZip"));
        assert!(Coding::RawDeflate.is_named(b"DEFLATE"));
        assert!(!Coding::Identity.is_named(b""));
        assert!(!Coding::Gzip.is_named(b"gzipped"));
    }
}
