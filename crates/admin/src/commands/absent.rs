//! Commands of HAProxy's that are not built, each with what to use instead.

use crate::command;
use crate::words::Word;

/// A command that is not built.
pub(crate) struct Absent {
    /// Words that it begins with.
    pub(crate) name: &'static str,
    /// Reason, or a replacement.
    pub(crate) reason: &'static str,
}

/// Entry that matches some words. The longest match wins.
pub(crate) fn find(words: &[Word]) -> Option<&'static Absent> {
    let entries = ABSENT.iter().filter_map(|absent| Some((absent, command::behind(absent.name, words)?)));
    entries.min_by_key(|(_, args)| args.len()).map(|(absent, _)| absent)
}

const ABSENT: &[Absent] = &[
    absent("acme", "certificates are not ordered here; use a client such as certbot"),
    absent("add ssl ech", ECH),
    absent("debug", INTERNALS),
    absent("del ssl ech", ECH),
    absent("hard-reload", MASTER),
    absent("reload", MASTER),
    absent("set anon", "nothing is hidden in answers"),
    absent("set ssl ech", ECH),
    absent("show proc", MASTER),
    absent("show quic", "there is no QUIC"),
    absent("show ssl ech", ECH),
    absent("show ssl providers", INTERNALS),
    absent("trace", INTERNALS),
];

const fn absent(name: &'static str, reason: &'static str) -> Absent {
    Absent { name, reason }
}

const INTERNALS: &str = "it looks into HAProxy's own code";
const MASTER: &str = "it is a command of the master's command line (-S)";
const ECH: &str = "the system's OpenSSL has no encrypted hellos";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn what_is_absent_is_not_there() {
        let mut names = HashSet::new();
        for absent in ABSENT {
            let words: Vec<Word> = absent.name.split(' ').map(Word::from).collect();
            assert!(command::find(&words).is_none(), "{}", absent.name);
            assert!(names.insert(absent.name) && !absent.reason.ends_with('.'), "{}", absent.name);
        }
    }

    #[test]
    fn the_longest_entry_is_meant() {
        let find = |text: &str| find(&text.split(' ').map(Word::from).collect::<Vec<_>>()).map(|absent| absent.name);
        assert_eq!(find("show quic x"), Some("show quic"));
        assert_eq!(find("show ssl ech x"), Some("show ssl ech"));
        assert_eq!(find("show ssl"), None);
        assert_eq!(find("foo"), None);
    }
}
