//! What the software is called: for people who ask what compresses.

use super::fast;
use crate::coding::Coding;

/// The coders of one coding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The coding.
    pub coding: Coding,
    /// What codes streams.
    pub stream: String,
    /// What codes whole bodies; without blanks.
    pub whole: String,
}

/// Those of all codings but `identity`.
pub fn all() -> impl Iterator<Item = Name> {
    let codings = [Coding::Gzip, Coding::Deflate, Coding::RawDeflate, Coding::Zstd, Coding::Brotli];
    codings.into_iter().map(|coding| {
        let (stream, whole) = match coding {
            Coding::Gzip | Coding::Deflate | Coding::RawDeflate => ("zlib-rs".into(), deflate()),
            Coding::Zstd => (zstd(), zstd()),
            Coding::Brotli => ("brotli".into(), "brotli".into()),
            Coding::Identity => ("none".into(), "none".into()),
        };
        Name { coding, stream, whole }
    })
}

fn deflate() -> String {
    match fast::installed() {
        Some(fast) => format!("libdeflate,rows,{}", fast.name().replace(' ', "_")),
        None => "libdeflate,rows".into(),
    }
}

fn zstd() -> String {
    format!("zstd-{}", zstd_safe::version_string())
}
