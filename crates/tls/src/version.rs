//! Versions of the protocol, and the range that the keywords of the configuration make of them.
//!
//! Three families of keywords set them: `ssl-min-ver` and `ssl-max-ver`, `no-tlsv12` and its like, `force-tlsv12` and its
//! like. They are merged to one range, as OpenSSL needs it. A version switched off in the middle of the range is reported
//! to have no effect.

use openssl::ssl::SslVersion;

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// SSL 3.0, which OpenSSL is built without.
    Ssl3,
    /// TLS 1.0 (RFC 2246).
    Tls10,
    /// TLS 1.1 (RFC 4346).
    Tls11,
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// Keywords that limit the versions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VersionWords {
    /// `ssl-min-ver`, `force-tlsv12`.
    pub min: Option<Version>,
    /// `ssl-max-ver`, `force-tlsv12`.
    pub max: Option<Version>,
    /// `no-tlsv12` and its like: a bit each.
    pub without: u8,
}

impl Version {
    /// All, the oldest first.
    pub const ALL: [Version; 5] = [Version::Ssl3, Version::Tls10, Version::Tls11, Version::Tls12, Version::Tls13];

    /// Name of the version, as `ssl-min-ver` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Ssl3 => "SSLv3",
            Version::Tls10 => "TLSv1.0",
            Version::Tls11 => "TLSv1.1",
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }

    /// The version of that name.
    pub fn from_name(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.name() == name)
    }

    pub(crate) const fn openssl(self) -> SslVersion {
        match self {
            Version::Ssl3 => SslVersion::SSL3,
            Version::Tls10 => SslVersion::TLS1,
            Version::Tls11 => SslVersion::TLS1_1,
            Version::Tls12 => SslVersion::TLS1_2,
            Version::Tls13 => SslVersion::TLS1_3,
        }
    }
}

impl VersionWords {
    /// Allows this version alone.
    pub fn force(&mut self, version: Version) {
        (self.min, self.max) = (Some(version), Some(version));
    }

    /// Forbids this version.
    pub fn switch_off(&mut self, version: Version) {
        self.without |= 1 << version as u8;
    }

    /// Whether no keyword was given.
    pub fn is_silent(&self) -> bool {
        *self == VersionWords::default()
    }

    /// Takes from `other` the settings that are missing here.
    pub(crate) fn settle(&mut self, other: &VersionWords) {
        self.min = self.min.or(other.min);
        self.max = self.max.or(other.max);
        self.without |= other.without;
    }

    /// The oldest and the newest version; `oldest` where the keywords name none.
    ///
    /// # Errors
    /// The reason: no version is left, or there is a hole between them.
    pub fn range(&self, oldest: Version) -> Result<(Version, Version), String> {
        let newest = self.max.unwrap_or(Version::Tls13);
        // A newest version that is older than the default means itself alone.
        let oldest = self.min.unwrap_or(oldest.min(newest));
        let is_on = |version: &Version| self.without & (1 << *version as u8) == 0;
        let left: Vec<_> =
            Version::ALL.into_iter().filter(|version| (oldest..=newest).contains(version) && is_on(version)).collect();
        let (Some(min), Some(max)) = (left.first(), left.last()) else {
            return Err(format!("all versions of TLS are switched off between {} and {}", oldest.name(), newest.name()));
        };
        if *max as usize - *min as usize + 1 != left.len() {
            return Err(format!("versions between {} and {} cannot be switched off", min.name(), max.name()));
        }
        Ok((*min, *max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_to_a_range() {
        let none = VersionWords::default();
        let range = |words: &VersionWords, other: &VersionWords| {
            let mut words = *words;
            words.settle(other);
            words.range(Version::Tls12)
        };
        assert_eq!(range(&none, &none), Ok((Version::Tls12, Version::Tls13)));
        let mut words = none;
        words.switch_off(Version::Tls13);
        assert_eq!(range(&words, &none), Ok((Version::Tls12, Version::Tls12)));
        words.min = Some(Version::Tls11);
        assert_eq!(range(&words, &none), Ok((Version::Tls11, Version::Tls12)));
        words.force(Version::Tls13);
        assert!(range(&words, &none).unwrap_err().contains("all versions"));
        let global = VersionWords { min: Some(Version::Tls11), ..none };
        assert_eq!(range(&none, &global), Ok((Version::Tls11, Version::Tls13)));
        assert_eq!(range(&VersionWords { min: Some(Version::Tls13), ..none }, &global), Ok((Version::Tls13, Version::Tls13)));
        assert_eq!(range(&VersionWords { max: Some(Version::Tls10), ..none }, &none), Ok((Version::Tls10, Version::Tls10)));
        let mut hole = global;
        hole.switch_off(Version::Tls12);
        assert!(range(&hole, &none).unwrap_err().contains("between"));
    }
}
