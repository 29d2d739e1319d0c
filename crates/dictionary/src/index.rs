//! Dictionaries by origin and hash.
//!
//! The hash is what a client says; the origin is where it was sent to. Both together are the key: one origin's client never gets an
//! answer that refers to another's dictionary, though it is in memory.

use crate::{Dictionary, Hash};
use std::collections::HashMap;
use std::sync::Arc;

/// A scheme, a host and a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    is_secure: bool,
    host: Box<[u8]>,
    port: u16,
}

impl Origin {
    /// The origin of a request with that `Host`; none where it is no host. Letters are small, as in URLs.
    pub fn of(host: &[u8], is_secure: bool) -> Option<Origin> {
        let behind = if host.starts_with(b"[") { host.iter().position(|byte| *byte == b']')? } else { 0 };
        let (name, port) = match host[behind..].iter().position(|byte| *byte == b':') {
            Some(at) => (&host[..behind + at], Some(&host[behind + at + 1..])),
            None => (host, None),
        };
        let is_named = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'@' | b'\\' | b'"');
        if name.is_empty() || name.len() > MOST_HOST || !name.iter().all(is_named) {
            return None;
        }
        let usual = if is_secure { 443 } else { 80 };
        let port = match port {
            None | Some(b"") => usual,
            Some(digits) if digits.iter().all(u8::is_ascii_digit) => std::str::from_utf8(digits).ok()?.parse().ok()?,
            Some(_) => return None,
        };
        Some(Origin { is_secure, host: name.to_ascii_lowercase().into(), port })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scheme, usual) = if self.is_secure { ("https", 443) } else { ("http", 80) };
        // All bytes are graphic ASCII.
        write!(f, "{scheme}://{}", String::from_utf8_lossy(&self.host))?;
        match self.port {
            port if port == usual => Ok(()),
            port => write!(f, ":{port}"),
        }
    }
}

/// The longest name of a host.
const MOST_HOST: usize = 255;

/// What an index holds at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Dictionaries, one in several origins once.
    pub entries: usize,
    /// Bytes of dictionaries, each counted once.
    pub bytes: usize,
}

/// An index that would hold more than it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// There are as many entries as may be.
    Entries(usize),
    /// There are as many bytes as may be.
    Bytes(usize),
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Full::Entries(most) => write!(f, "there are more than {most} dictionaries"),
            Full::Bytes(most) => write!(f, "the dictionaries have more than {most} bytes"),
        }
    }
}

/// Dictionaries by origin and hash.
#[derive(Clone, Debug)]
pub struct Index {
    limits: Limits,
    bytes: usize,
    /// Dictionaries, whatever number of origins they have.
    count: usize,
    entries: HashMap<(Option<Origin>, Hash), Arc<Dictionary>>,
}

impl Index {
    /// An empty one.
    pub fn new(limits: Limits) -> Index {
        Index { limits, bytes: 0, count: 0, entries: HashMap::new() }
    }

    /// Adds a dictionary of an origin; without one, of every origin that this index is asked for. What is there already stays.
    ///
    /// # Errors
    /// There is no room.
    pub fn add(&mut self, origin: Option<Origin>, dictionary: &Arc<Dictionary>) -> Result<(), Full> {
        let key = (origin, *dictionary.hash());
        if self.entries.contains_key(&key) {
            return Ok(());
        }
        // One of several origins counts once.
        if !self.entries.keys().any(|(_, hash)| hash == dictionary.hash()) {
            if self.count >= self.limits.entries {
                return Err(Full::Entries(self.limits.entries));
            }
            let bytes = self.bytes.saturating_add(dictionary.bytes().len());
            if bytes > self.limits.bytes {
                return Err(Full::Bytes(self.limits.bytes));
            }
            (self.bytes, self.count) = (bytes, self.count + 1);
        }
        self.entries.insert(key, dictionary.clone());
        Ok(())
    }

    /// The dictionary that a client of that origin has, by its hash.
    pub fn find(&self, origin: &Origin, hash: &Hash) -> Option<&Arc<Dictionary>> {
        self.entries.get(&(Some(origin.clone()), *hash)).or_else(|| self.entries.get(&(None, *hash)))
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::UseAs;
    use crate::pattern::Pattern;
    use proptest::prelude::*;

    fn dictionary(bytes: &[u8]) -> Arc<Dictionary> {
        Arc::new(Dictionary::new("d".into(), UseAs::of(Pattern::new("/*").unwrap()), "/", bytes.to_vec()))
    }

    #[test]
    fn hosts_in_any_case_and_with_their_usual_port() {
        let of = |host: &str| Origin::of(host.as_bytes(), true);
        assert_eq!(of("A.example"), of("a.example:443"));
        assert_eq!(of("[::1]:8443"), Some(Origin { is_secure: true, host: (*b"[::1]").into(), port: 8443 }));
        assert_eq!(of("[::1]"), of("[::1]:"));
        assert_ne!(of("a.example"), of("a.example:8443"));
        assert_ne!(of("a.example:80"), Origin::of(b"a.example:80", false));
        for host in ["", ":443", "a b", "a/b", "a:x", "a:65536", "a:-1", "u@a", "[::1"] {
            assert_eq!(of(host), None, "{host}");
        }
        assert_eq!(of(&"a".repeat(300)), None);
        let told = ["A.example", "[::1]:8443"].map(|host| of(host).unwrap().to_string());
        assert_eq!(told, ["https://a.example", "https://[::1]:8443"]);
    }

    #[test]
    fn another_origins_dictionary_is_not_found() {
        let limits = Limits { entries: 3, bytes: 100 };
        let (a, b) = (Origin::of(b"a", true).unwrap(), Origin::of(b"b", true).unwrap());
        let (of_a, of_all) = (dictionary(b"one"), dictionary(b"two"));
        let mut index = Index::new(limits);
        index.add(Some(a.clone()), &of_a).unwrap();
        index.add(None, &of_all).unwrap();
        assert!(index.find(&a, of_a.hash()).is_some() && index.find(&b, of_a.hash()).is_none());
        assert!(index.find(&a, of_all.hash()).is_some() && index.find(&b, of_all.hash()).is_some());
        assert!(index.find(&a, &Hash::of(b"three")).is_none());
    }

    #[test]
    fn no_more_than_its_limits() {
        let mut index = Index::new(Limits { entries: 2, bytes: 10 });
        index.add(None, &dictionary(&[1; 6])).unwrap();
        assert_eq!(index.add(None, &dictionary(&[1; 6])), Ok(()), "it is there");
        assert_eq!(index.add(None, &dictionary(&[2; 5])), Err(Full::Bytes(10)));
        index.add(None, &dictionary(&[3; 4])).unwrap();
        assert_eq!(index.add(None, &dictionary(&[])), Err(Full::Entries(2)));
        assert_eq!(index.bytes(), 10);
        assert_eq!(index.add(Origin::of(b"a", true), &dictionary(&[1; 6])), Ok(()), "another origin's is the same one");
        assert_eq!(index.bytes(), 10);
        assert_eq!(Full::Entries(2).to_string(), "there are more than 2 dictionaries");
    }

    proptest! {
        #[test]
        fn no_host_panics(host in any::<Vec<u8>>()) {
            let _ = Origin::of(&host, true);
        }
    }
}
