//! The dynamic table of both directions (RFC 7541 section 2.3.2).

use super::{ENTRY_BYTES, TABLE_BYTES};
use std::collections::VecDeque;

/// Entries from the newest on, their bytes in one buffer.
#[derive(Debug)]
pub(super) struct Table {
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// Each entry as a line of a head: `name: value CR LF`.
    bytes: Vec<u8>,
    /// Bytes that were cut off in front of `bytes`, since the connection began.
    cut: usize,
    size: usize,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: usize,
    name: u32,
    value: u32,
    /// Hashes of the name and of both, for [`Table::find`].
    hashes: (u32, u32),
}

/// Match of the table for a field that is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Match {
    /// Name and value, the newest entry being 0.
    Field(usize),
    /// The name alone.
    Name(usize),
}

/// Bytes of a line in addition to name and value.
const LINE_BYTES: usize = 4;

impl Default for Table {
    fn default() -> Table {
        Table { entries: VecDeque::new(), bytes: Vec::new(), cut: 0, size: 0, limit: TABLE_BYTES }
    }
}

impl Table {
    /// The entry of that age, the newest being 0.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(age + 1)?;
        let entry = self.entries.get(place)?;
        let from = &self.bytes[entry.at - self.cut..];
        let (name, rest) = from.split_at(entry.name as usize);
        Some((name, &rest[2..2 + entry.value as usize]))
    }

    /// The same as a line of a head, and the length of its name.
    #[inline]
    pub(super) fn line(&self, age: usize) -> Option<(&[u8], usize)> {
        let place = self.entries.len().checked_sub(age + 1)?;
        let entry = self.entries.get(place)?;
        let at = entry.at - self.cut;
        Some((&self.bytes[at..at + (entry.name + entry.value) as usize + LINE_BYTES], entry.name as usize))
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Sets its size; the oldest entries beyond it are removed.
    pub(super) fn resize(&mut self, limit: usize) {
        self.limit = limit;
        self.evict(0);
    }

    /// Adds an entry. One that is larger than the table empties it (RFC 7541 section 4.4).
    pub(super) fn add(&mut self, name: &[u8], value: &[u8], hashes: (u32, u32)) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        self.evict(size);
        if size > self.limit {
            return;
        }
        let at = self.cut + self.bytes.len();
        for part in [name, b": ", value, b"\r\n"] {
            self.bytes.extend_from_slice(part);
        }
        self.entries.push_back(Entry { at, name: name.len() as u32, value: value.len() as u32, hashes });
        self.size += size;
    }

    /// The newest entry with that name and value, or else with that name.
    pub(super) fn find(&self, name: &[u8], value: &[u8], hashes: (u32, u32)) -> Option<Match> {
        let mut named = None;
        for (age, entry) in self.entries.iter().rev().enumerate().filter(|(_, entry)| entry.hashes.0 == hashes.0) {
            let same = |(known, held): (&[u8], &[u8])| (known == name, held == value);
            match self.get(age).map(same) {
                Some((true, true)) if entry.hashes.1 == hashes.1 => return Some(Match::Field(age)),
                Some((true, _)) => named = named.or(Some(Match::Name(age))),
                _ => {}
            }
        }
        named
    }

    fn evict(&mut self, more: usize) {
        while self.size + more > self.limit {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.size -= (oldest.name + oldest.value) as usize + ENTRY_BYTES;
        }
        let unused = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.at - self.cut);
        // Moving costs a copy of the bytes that stay, so it waits until more bytes than that are unused.
        if unused > 0 && unused >= self.bytes.len() - unused {
            self.bytes.drain(..unused);
            self.cut += unused;
        }
    }
}

/// The hashes of a name, and of name and value.
pub(super) fn hashes(name: &[u8], value: &[u8]) -> (u32, u32) {
    let named = mix(name.len() as u64, name);
    ((named >> 32) as u32, (mix(named ^ value.len() as u64, value) >> 32) as u32)
}

/// Mixes a text into a hash, eight bytes at a time; the last eight may overlap those before.
#[inline]
fn mix(hash: u64, text: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, _) = text.as_chunks::<8>();
    match (text.last_chunk::<8>(), text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(last), ..) => {
            let hash = words.iter().fold(hash, |hash, word| step(hash, u64::from_le_bytes(*word)));
            step(hash, u64::from_le_bytes(*last))
        }
        (_, Some(first), Some(last)) => {
            step(hash, u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)))
        }
        _ => text.iter().fold(hash, |hash, byte| step(hash, u64::from(*byte))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_entries_go_and_the_buffer_stays_small() {
        let mut table = Table::default();
        for i in 0..10_000u32 {
            let value = i.to_string();
            table.add(b"name", value.as_bytes(), hashes(b"name", value.as_bytes()));
            assert_eq!(table.get(0), Some((&b"name"[..], value.as_bytes())));
            assert!(table.size <= TABLE_BYTES && table.bytes.len() <= 2 * TABLE_BYTES);
        }
        assert_eq!(table.find(b"name", b"9990", hashes(b"name", b"9990")), Some(Match::Field(9)));
        assert_eq!(table.find(b"name", b"1", hashes(b"name", b"1")), Some(Match::Name(0)));
        assert_eq!(table.find(b"other", b"1", hashes(b"other", b"1")), None);
        table.add(&[b'x'; 5000], b"", (0, 0));
        assert_eq!((table.get(0), table.size), (None, 0));
    }
}
