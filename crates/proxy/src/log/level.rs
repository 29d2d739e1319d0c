//! Syslog's severities and facilities, by the names of HAProxy's `log` keyword.

use std::fmt;

/// Severity of a line; smaller is worse (RFC 5424 section 6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Level {
    /// `emerg`
    Emergency,
    /// `alert`
    Alert,
    /// `crit`
    Critical,
    /// `err`
    Error,
    /// `warning`
    Warning,
    /// `notice`
    Notice,
    /// `info`
    Info,
    /// `debug`
    Debug,
}

impl Level {
    /// All of them, the worst first.
    pub const ALL: [Level; 8] =
        [Level::Emergency, Level::Alert, Level::Critical, Level::Error, Level::Warning, Level::Notice, Level::Info, Level::Debug];

    /// Their names in the configuration, in the same order.
    pub const NAMES: [&'static str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

    /// The level of that name.
    pub fn parse(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == word)
    }

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        Level::NAMES[self as usize]
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which part of a system speaks: syslog's number, 0 to 23 (RFC 5424 section 6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Facility(u8);

impl Facility {
    /// The names in the order of their numbers.
    pub const NAMES: [&'static str; 24] = [
        "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit", "alert",
        "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
    ];

    /// The facility of that name.
    pub fn parse(word: &str) -> Option<Facility> {
        (0..).zip(Facility::NAMES).find(|(_, name)| *name == word).map(|(number, _)| Facility(number))
    }

    /// The number between `<` and `>` before a line.
    pub const fn priority(self, level: Level) -> u8 {
        (self.0 << 3) | level as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(Level::parse("err"), Some(Level::Error));
        assert_eq!(Level::parse("error"), None);
        assert!(Level::Alert < Level::Info);
        let local0 = Facility::parse("local0").unwrap();
        assert_eq!(local0.priority(Level::Info), 134);
        assert_eq!(Facility::parse("local7").unwrap().priority(Level::Debug), 191);
        assert_eq!(Facility::parse("kern").unwrap().priority(Level::Emergency), 0);
        assert_eq!(Facility::parse("local8"), None);
    }
}
