//! Keys of tickets that processes share: `tls-ticket-keys`.
//!
//! ```text
//! oldest   current   next       a ticket is made with the current key, and taken with any
//!    \        |        |
//!   wiped  oldest   current   next = a new one        a turn: every process that shares them makes it at its own time
//! ```
//!
//! The next key is there before tickets are made with it: so a process that has not turned yet understands one that has.
//!
//! Invariants:
//! * A key is in no message and in no `Debug`; its holders here overwrite it before its memory is given back. The stats
//!   socket's buffers, through which keys come and are shown, are not overwritten.
//! * Sessions are named after the proof that their clients had to show (`offer`), so that keys can be shared by lines that
//!   ask for less.

use crate::certificate::{Unusable, read};
use crate::secret::Secret;
use crate::vault::files::{Key, key};
use arc_swap::ArcSwap;
use openssl::base64;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslRef};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The keys of a file, for all lines that name it.
pub(crate) struct TicketKeys {
    /// The file, as commands write it.
    pub(crate) file: Key,
    ring: ArcSwap<Ring>,
}

/// The keys at a time: the oldest, the current, the next.
#[derive(Clone)]
pub(crate) struct Ring([TicketKey; 3]);

/// A key: its name, a key of AES, and one of the checksum.
#[derive(Clone)]
pub(crate) struct TicketKey(Secret);

/// Reason why a key is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadTicketKey {
    /// The text is not base64.
    Encoding,
    /// The key is neither 48 nor 80 bytes long, or not as long as the others.
    Size,
}

impl TicketKeys {
    /// Reads a file: a key a line. Of more than three the last ones count.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(crate) fn load(path: &Path) -> Result<TicketKeys, Unusable> {
        let text = read(path)?;
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let mut keys: Vec<TicketKey> = Vec::new();
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let key = TicketKey::parse(line).and_then(|key| match keys.first().is_none_or(|first| first.len() == key.len()) {
                true => Ok(key),
                false => Err(BadTicketKey::Size),
            });
            keys.push(key.map_err(|wrong| {
                let reason = match wrong {
                    BadTicketKey::Encoding => "unable to decode base64 key on line",
                    BadTicketKey::Size => "wrong sized key on line",
                };
                Unusable::new(path, format!("{reason} {number}: keys are 48 bytes in base64 (AES-128) or all 80 (AES-256)"))
            })?);
            // Keys that do not count are forgotten at once.
            if keys.len() > 3 {
                keys.remove(0);
            }
        }
        let few = |_| Unusable::new(path, "please supply at least 3 keys in the tls-tickets-file");
        let ring = <[TicketKey; 3]>::try_from(keys).map_err(few)?;
        Ok(TicketKeys { file: key(path), ring: ArcSwap::from_pointee(Ring(ring)) })
    }

    /// The keys as they are now.
    pub(crate) fn ring(&self) -> Arc<Ring> {
        self.ring.load_full()
    }

    /// Makes the next key the current one, and this one the next.
    ///
    /// # Errors
    /// The key cannot be read, or is of another size.
    pub(crate) fn turn(&self, encoded: &[u8]) -> Result<(), BadTicketKey> {
        let key = TicketKey::parse(encoded)?;
        if key.len() != self.ring().current().len() {
            return Err(BadTicketKey::Size);
        }
        self.ring.rcu(|ring| {
            let [_, current, next] = &ring.0;
            Ring([current.clone(), next.clone(), key.clone()])
        });
        Ok(())
    }
}

impl Ring {
    /// The key that tickets are made with.
    pub(crate) fn current(&self) -> &TicketKey {
        &self.0[1]
    }

    /// The key of a name, and whether tickets are made with it.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(&TicketKey, bool)> {
        [1, 2, 0].into_iter().find(|at| self.0[*at].name() == name).map(|at| (&self.0[at], at == 1))
    }

    /// The keys in base64, from the oldest to the next, for readers that may see them.
    pub(crate) fn encoded(&self) -> [Secret; 3] {
        // A key fits in one line, which OpenSSL ends with a line feed or does not.
        [0, 1, 2].map(|at| {
            let mut text = Secret::from(base64::encode_block(&self.0[at].0));
            text.cut(text.trim_ascii_end().len());
            text
        })
    }
}

impl TicketKey {
    fn parse(encoded: &[u8]) -> Result<TicketKey, BadTicketKey> {
        // A blank line is a key of no bytes.
        let text = std::str::from_utf8(encoded).map_err(|_| BadTicketKey::Encoding)?;
        let decoded = if text.is_empty() { Vec::new() } else { base64::decode_block(text).map_err(|_| BadTicketKey::Encoding)? };
        let secret = Secret::from(decoded);
        if [AES_128, AES_256].contains(&secret.len()) { Ok(TicketKey(secret)) } else { Err(BadTicketKey::Size) }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Name of the key in tickets.
    pub(crate) fn name(&self) -> &[u8] {
        &self.0[..NAME_BYTES]
    }

    /// The key of AES, and that of the checksum: as long as each other.
    pub(crate) fn secrets(&self) -> (&[u8], &[u8]) {
        let rest = &self.0[NAME_BYTES..];
        rest.split_at(rest.len() / 2)
    }
}

static KEYS: LazyLock<Option<Index<Ssl, Arc<TicketKeys>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// Gives a connection the keys of its tickets.
pub(crate) fn lend(ssl: &mut SslRef, keys: &Arc<TicketKeys>) {
    if let Some(index) = *KEYS {
        ssl.set_ex_data(index, keys.clone());
    }
}

/// The keys of a connection's tickets.
pub(crate) fn lent(ssl: &SslRef) -> Option<&TicketKeys> {
    ssl.ex_data((*KEYS)?).map(|keys| &**keys)
}

/// Length of the name that a ticket begins with.
pub(crate) const NAME_BYTES: usize = 16;
/// A name and two keys of 16 bytes.
const AES_128: usize = 48;
/// A name and two keys of 32 bytes.
const AES_256: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: &[String]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        file
    }

    fn line(byte: u8, len: usize) -> String {
        base64::encode_block(&vec![byte; len]).replace('\n', "")
    }

    fn shown(keys: &TicketKeys) -> [String; 3] {
        keys.ring().encoded().map(|key| String::from_utf8(key.to_vec()).unwrap())
    }

    #[test]
    fn the_last_three_count_and_turn() {
        let file = file(&[line(1, 80), line(2, 80), line(3, 80), line(4, 80)]);
        let keys = TicketKeys::load(file.path()).unwrap();
        assert_eq!(shown(&keys), [line(2, 80), line(3, 80), line(4, 80)]);
        let (ring, before) = (keys.ring(), [3; 16]);
        assert!(ring.find(&before).is_some_and(|(_, is_current)| is_current) && ring.find(&[1; 16]).is_none());
        assert_eq!(ring.current().secrets(), (&[3; 32][..], &[3; 32][..]));
        assert_eq!(keys.turn(line(5, 80).as_bytes()), Ok(()));
        assert_eq!(keys.turn(line(6, 48).as_bytes()), Err(BadTicketKey::Size));
        assert_eq!(keys.turn(b"?"), Err(BadTicketKey::Encoding));
        assert_eq!(shown(&keys), [line(3, 80), line(4, 80), line(5, 80)]);
        assert!(keys.ring().find(&before).is_some_and(|(_, is_current)| !is_current));
    }

    #[test]
    fn what_is_wrong_is_told_without_the_key() {
        let long = line(7, 80);
        for (lines, reason) in [
            (vec![], "wrong sized key on line 1"),
            (vec![line(1, 48), line(2, 48)], "at least 3 keys"),
            (vec![line(1, 48), line(2, 48), long.clone()], "wrong sized key on line 3"),
            (vec![line(1, 48), String::new(), line(2, 48)], "wrong sized key on line 2"),
            (vec![line(1, 49); 3], "wrong sized key on line 1"),
            (vec![long.clone(), long.clone(), format!("{long}!")], "unable to decode base64 key on line 3"),
        ] {
            let file = file(&lines);
            let wrong = TicketKeys::load(file.path()).err().unwrap().0;
            assert!(wrong.contains(reason) && wrong.contains(file.path().to_str().unwrap()), "{wrong}");
            assert!(!wrong.contains(&long[..20]), "{wrong}");
        }
        assert!(TicketKeys::load(Path::new("/nowhere/keys")).err().unwrap().0.contains("No such file"));
    }
}
