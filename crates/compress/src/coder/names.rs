//! Names of the software, for people who ask for the coders.

use super::fast;
use crate::coding::Coding;

/// The coders of a coding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The coding.
    pub coding: Coding,
    /// What codes streams; without blanks.
    pub stream: String,
    /// Coder of whole bodies; without blanks.
    pub whole: String,
}

/// The names of all codings but `identity`.
pub fn all() -> impl Iterator<Item = Name> {
    let codings = [Coding::Gzip, Coding::Deflate, Coding::RawDeflate, Coding::Zstd, Coding::Brotli];
    codings.into_iter().map(|coding| {
        let (stream, whole) = match coding {
            Coding::Gzip | Coding::Deflate | Coding::RawDeflate => (streams(), deflate()),
            Coding::Zstd | Coding::Dcz => (zstd(), zstd()),
            Coding::Brotli => (brotli(), brotli()),
            Coding::Identity => ("none".into(), "none".into()),
        };
        Name { coding, stream, whole }
    })
}

/// Our own coder, and zlib-rs.
fn streams() -> String {
    concat!("rows-", env!("CARGO_PKG_VERSION"), ",zlib-rs-", env!("ZLIB_RS_VERSION")).to_owned()
}

/// libdeflate, and our own coder, which has this program's version.
fn deflate() -> String {
    let mut name = concat!("libdeflate-", env!("LIBDEFLATE_VERSION"), ",rows-", env!("CARGO_PKG_VERSION")).to_owned();
    if let Some(fast) = fast::installed() {
        name.push(',');
        name.push_str(&fast.name().replace(' ', "_"));
    }
    name
}

fn zstd() -> String {
    format!("zstd-{}", zstd_safe::version_string())
}

fn brotli() -> String {
    concat!("mbrotli-", env!("MBROTLI_VERSION")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coder_has_a_version() {
        for name in all() {
            for coder in [&name.stream, &name.whole].into_iter().flat_map(|names| names.split(',')) {
                let (_, version) = coder.rsplit_once('-').unwrap();
                let numbers: Vec<_> = version.split('.').map(str::parse::<u16>).collect();
                assert!(numbers.len() >= 2 && numbers.iter().all(Result::is_ok), "{coder}");
            }
        }
    }
}
