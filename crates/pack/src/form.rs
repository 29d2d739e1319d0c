//! The formats of files.

use std::ops::RangeInclusive;

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// gzip (RFC 1952).
    Gzip,
    /// zstd (RFC 8878).
    Zstd,
    /// Brotli (RFC 7932). It has no magic number: it is known by a suffix or an option only.
    Brotli,
}

impl Form {
    /// All formats.
    pub const ALL: [Form; 3] = [Form::Gzip, Form::Zstd, Form::Brotli];

    /// Name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Form::Gzip => "gzip",
            Form::Zstd => "zstd",
            Form::Brotli => "brotli",
        }
    }

    /// Suffix of its files' names.
    pub fn suffix(self) -> &'static str {
        match self {
            Form::Gzip => ".gz",
            Form::Zstd => ".zst",
            Form::Brotli => ".br",
        }
    }

    /// Levels of the format. gzip's 10 to 12 are far slower than 9, and their output is a few per cent smaller.
    pub fn levels(self) -> RangeInclusive<u8> {
        match self {
            Form::Gzip => 1..=12,
            Form::Zstd => 1..=19,
            Form::Brotli => 1..=11,
        }
    }

    /// Default level.
    pub fn default_level(self) -> u8 {
        match self {
            Form::Gzip => 6,
            Form::Zstd => 3,
            Form::Brotli => 5,
        }
    }

    /// The format that begins with these bytes.
    pub fn of_magic(first: &[u8]) -> Option<Form> {
        match first {
            [0x1f, 0x8b, ..] => Some(Form::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Form::Zstd),
            // A frame to skip (section 3.1.2).
            [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50 => Some(Form::Zstd),
            _ => None,
        }
    }
}
