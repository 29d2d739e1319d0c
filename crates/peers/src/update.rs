//! Entries on the wire: a key, and its data, in the order of its table's description.

use crate::definition::{self, Definition, INTEGER, TEXT};
use crate::integer;
use std::collections::HashMap;
use std::sync::Arc;
use terse_balance::table::{Data, Entry, KeyKind, Part, Shape, Stored, Table};

/// Names that were sent already: a peer keeps a limited number, by numbers from 1.
#[derive(Default, Debug)]
pub(crate) struct SentNames {
    numbers: HashMap<Arc<str>, u64>,
    names: Vec<Arc<str>>,
    /// Number of the next new name.
    next: usize,
}

/// Received names, by their numbers.
#[derive(Default, Debug)]
pub(crate) struct KnownNames(HashMap<u64, Arc<str>>);

/// A received entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Update {
    /// Number of the change, where the message has it.
    pub(crate) number: Option<u32>,
    /// Milliseconds until the entry expires, where the message has it.
    pub(crate) remaining_ms: Option<u64>,
    /// Key.
    pub(crate) key: Vec<u8>,
    /// Data.
    pub(crate) parts: Vec<(Data, u32, Part)>,
}

/// Appends the body of an update. `number`: the change's, unless it is the one after the last; `timed`: includes the
/// expiry.
pub(crate) fn write(
    table: &Table,
    entry: &Entry,
    (number, timed): (Option<u32>, bool),
    names: &mut SentNames,
    now_ms: u64,
    to: &mut Vec<u8>,
) {
    if let Some(number) = number {
        to.extend(number.to_be_bytes());
    }
    if timed {
        to.extend(u32::try_from(table.remaining_ms(entry, now_ms)).unwrap_or(u32::MAX).to_be_bytes());
    }
    if matches!(table.settings().key, KeyKind::Text(_)) {
        integer::put(entry.key().len() as u64, to);
    }
    to.extend_from_slice(entry.key());
    for Stored { data, elements, .. } in table.layout().stored() {
        for element in 0..elements {
            match table.part(entry, data, element, now_ms) {
                Some(Part::Number(n)) => integer::put(n, to),
                Some(Part::Rate { elapsed_ms, current, previous }) => {
                    [elapsed_ms, current, previous].into_iter().for_each(|n| integer::put(n.into(), to));
                }
                Some(Part::Name(Some(name))) => names.write(&name, to),
                Some(Part::Name(None)) | None => integer::put(0, to),
            }
        }
    }
}

/// Parses the body of an update; `None` when it is malformed.
pub(crate) fn read(
    mut body: &[u8],
    (numbered, timed): (bool, bool),
    definition: &Definition,
    names: &mut KnownNames,
) -> Option<Update> {
    let from = &mut body;
    let number = if numbered { Some(word(from)?) } else { None };
    let remaining_ms = if timed { Some(word(from)?.into()) } else { None };
    let length = match definition.key {
        (TEXT, _) => usize::try_from(integer::take(from)?).ok()?,
        (INTEGER, _) => 4,
        (_, length) => usize::try_from(length).ok()?,
    };
    let (key, rest) = from.split_at_checked(length)?;
    *from = rest;
    let mut parts = Vec::new();
    for (data, elements) in &definition.data {
        for element in 0..*elements {
            let part = match data.shape() {
                Shape::Rate => Part::Rate { elapsed_ms: low(from)?, current: low(from)?, previous: low(from)? },
                Shape::Name => Part::Name(names.read(from)?),
                Shape::Signed | Shape::Count | Shape::Bytes => Part::Number(integer::take(from)?),
            };
            parts.push((*data, element, part));
        }
    }
    Some(Update { number, remaining_ms, key: key.to_vec(), parts })
}

impl Update {
    /// Stores a received entry in a table. A peer's current connections are not stored in a table that counts its own.
    /// In a table that others write to (`aside`), only data that no rule counts is stored.
    pub(crate) fn learn(&self, table: &Table, aside: bool, now_ms: u64) {
        let key = match table.settings().key {
            KeyKind::Text(length) => self.key.get(..self.key.len().min(length)).unwrap_or_default(),
            _ => &self.key,
        };
        let Some(entry) = table.learn(key, self.remaining_ms, now_ms) else { return };
        let is_wanted = |data: Data| match data {
            Data::ServerId | Data::ServerKey | Data::Gpt0 | Data::Gpt => true,
            Data::ConnCur => !aside && table.settings().receives_only,
            _ => !aside,
        };
        for (data, element, part) in self.parts.iter().filter(|(data, ..)| is_wanted(*data)) {
            table.put(&entry, *data, *element, part, now_ms);
        }
    }
}

/// Whether entries of a table have keys of the described type.
pub(crate) fn fits(definition: &Definition, table: &Table) -> bool {
    definition.key == definition::key(table.settings().key)
}

impl SentNames {
    /// Appends a name: its number alone where the peer has it.
    fn write(&mut self, name: &Arc<str>, to: &mut Vec<u8>) {
        let mut entry = Vec::new();
        match self.numbers.get(name) {
            Some(number) => integer::put(*number, &mut entry),
            None => {
                integer::put(self.add(name.clone()), &mut entry);
                integer::put(name.len() as u64, &mut entry);
                entry.extend_from_slice(name.as_bytes());
            }
        }
        integer::put(entry.len() as u64, to);
        to.extend(entry);
    }

    /// A number for a new name: that of the oldest where all are in use.
    fn add(&mut self, name: Arc<str>) -> u64 {
        let at = self.next;
        self.next = (at + 1) % MOST_NAMES;
        match self.names.get_mut(at) {
            Some(place) => drop(self.numbers.remove(&std::mem::replace(place, name.clone()))),
            None => self.names.push(name.clone()),
        }
        self.numbers.insert(name, at as u64 + 1);
        at as u64 + 1
    }
}

impl KnownNames {
    /// Takes a name off the front: none, a known one, or a new one with its number.
    fn read(&mut self, from: &mut &[u8]) -> Option<Option<Arc<str>>> {
        let length = usize::try_from(integer::take(from)?).ok()?;
        let (mut entry, rest) = from.split_at_checked(length)?;
        *from = rest;
        if entry.is_empty() {
            return Some(None);
        }
        let number = integer::take(&mut entry).filter(|number| (1..=MOST_NAMES as u64).contains(number))?;
        if entry.is_empty() {
            return Some(self.0.get(&number).cloned());
        }
        let name: Arc<str> = definition::text(&mut entry)?.into();
        self.0.insert(number, name.clone());
        Some(Some(name))
    }
}

fn word(from: &mut &[u8]) -> Option<u32> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u32::from_be_bytes(*bytes))
}

/// A number that is kept in 32 bits.
fn low(from: &mut &[u8]) -> Option<u32> {
    integer::take(from).map(|n| n as u32)
}

/// Limit of names that HAProxy keeps.
const MOST_NAMES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::table;
    use proptest::prelude::*;

    fn defined(table: &Table) -> Definition {
        let mut body = Vec::new();
        definition::write(1, "t", table, &mut body);
        definition::read(&body).unwrap()
    }

    /// Bytes that HAProxy sends for such an entry.
    #[test]
    fn updates_are_haproxys() {
        let table = table("t", "type string size 9 store server_id,server_key");
        let mut names = SentNames::default();
        let mut write = |key: &str, server: &str| {
            let entry = table.obtain(key.as_bytes(), 0).unwrap();
            table.set(&entry, Data::ServerId, 0, 1, 0);
            table.set_name(&entry, Data::ServerKey, server);
            let mut body = Vec::new();
            write(&table, &entry, (Some(1), true), &mut names, 0, &mut body);
            body
        };
        assert_eq!(write("one", "srv1"), b"\0\0\0\x01\0\0\0\0\x03one\x01\x06\x01\x04srv1");
        assert_eq!(write("two", "srv2"), b"\0\0\0\x01\0\0\0\0\x03two\x01\x06\x02\x04srv2");
        assert_eq!(write("three", "srv1"), b"\0\0\0\x01\0\0\0\0\x05three\x01\x01\x01");
    }

    #[test]
    fn a_table_learns_what_another_holds() {
        const LINE: &str = "type ip size 9 expire 10s store gpc0,conn_cur,conn_rate(10s),gpt(2),server_key,bytes_in_cnt";
        let (ours, theirs, aside) = (table("t", LINE), table("t", LINE), table("t", LINE));
        let entry = ours.obtain(&[10, 0, 0, 1], 1000).unwrap();
        ours.set(&entry, Data::Gpc0, 0, 7, 1000);
        ours.set(&entry, Data::ConnCur, 0, 3, 1000);
        ours.add(&entry, Data::ConnRate, 0, 5, 1000);
        ours.set(&entry, Data::Gpt, 1, 9, 1000);
        ours.set(&entry, Data::BytesInCnt, 0, 1 << 40, 1000);
        ours.set_name(&entry, Data::ServerKey, "one");
        let mut body = Vec::new();
        write(&ours, &entry, (None, true), &mut SentNames::default(), 3000, &mut body);
        let update = read(&body, (false, true), &defined(&ours), &mut KnownNames::default()).unwrap();
        assert_eq!((update.number, update.remaining_ms), (None, Some(8000)));
        let (now_ms, later_ms) = (500_000, 504_000);
        update.learn(&theirs, false, now_ms);
        let learnt = theirs.find(&[10, 0, 0, 1], now_ms).unwrap();
        let read = |data, element| theirs.read(&learnt, data, element, later_ms);
        assert_eq!(theirs.remaining_ms(&learnt, now_ms), 8000);
        assert_eq!([read(Data::Gpc0, 0), read(Data::ConnCur, 0), read(Data::Gpt, 1)], [Some(7), Some(0), Some(9)]);
        assert_eq!([read(Data::ConnRate, 0), read(Data::BytesInCnt, 0)], [Some(5), Some(1 << 40)]);
        assert_eq!(theirs.name_of(&learnt, Data::ServerKey).as_deref(), Some("one"));
        update.learn(&aside, true, now_ms);
        let learnt = aside.find(&[10, 0, 0, 1], now_ms).unwrap();
        assert_eq!([Data::Gpc0, Data::Gpt].map(|data| aside.read(&learnt, data, 0, now_ms)), [Some(0), Some(0)]);
        assert_eq!(aside.read(&learnt, Data::Gpt, 1, now_ms), Some(9));
    }

    #[test]
    fn names_get_their_numbers_again_and_again() {
        let (mut sent, mut known) = (SentNames::default(), KnownNames::default());
        for round in 0..3 {
            for n in 0..300 {
                let name: Arc<str> = format!("server{}", n % 200).into();
                let mut bytes = Vec::new();
                sent.write(&name, &mut bytes);
                assert_eq!(known.read(&mut &bytes[..]), Some(Some(name)), "{round} {n}");
            }
        }
        assert_eq!((sent.names.len(), sent.numbers.len()), (MOST_NAMES, MOST_NAMES));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(body: Vec<u8>, numbered: bool, timed: bool) {
            let table = table("t", "type string size 9 store conn_rate(1s),server_key,gpc(3)");
            let _ = read(&body, (numbered, timed), &defined(&table), &mut KnownNames::default());
        }
    }
}
