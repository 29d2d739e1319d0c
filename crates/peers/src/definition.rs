//! Descriptions of a table's entries in updates.

use crate::integer;
use crate::message::MOST_BYTES;
use terse_balance::table::{Data, KeyKind, Shape, Table};

/// A table, as a process describes it to the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Definition {
    /// Number that its sender has given it.
    pub(crate) number: u64,
    /// Name among the peers.
    pub(crate) name: String,
    /// Type of keys: a number of the protocol, and a number of bytes.
    pub(crate) key: (u64, u64),
    /// Data of entries, in order, and the number of elements of each; an unknown kind ends the list.
    pub(crate) data: Vec<(Data, u32)>,
}

/// Type of key, in the protocol's numbers. Text has a NUL at its end there.
pub(crate) const fn key(kind: KeyKind) -> (u64, u64) {
    match kind {
        KeyKind::Integer => (INTEGER, 4),
        KeyKind::Ip => (4, 4),
        KeyKind::Ipv6 => (5, 16),
        KeyKind::Text(length) => (TEXT, length as u64 + 1),
        KeyKind::Binary(length) => (7, length as u64),
    }
}

/// Appends the description of a table.
pub(crate) fn write(number: u64, name: &str, table: &Table, to: &mut Vec<u8>) {
    integer::put(number, to);
    integer::put(name.len() as u64, to);
    to.extend_from_slice(name.as_bytes());
    let (kind, length) = key(table.settings().key);
    integer::put(kind, to);
    integer::put(length, to);
    integer::put(table.layout().stored().fold(0, |bits, stored| bits | 1 << stored.data as u32), to);
    integer::put(table.settings().expire_ms.map_or(0, u64::from), to);
    for stored in table.layout().stored() {
        let (array, rate) = (stored.data.is_array(), stored.data.shape() == Shape::Rate);
        if array || rate {
            integer::put(stored.data as u64, to);
        }
        if array {
            integer::put(stored.elements.into(), to);
        }
        if rate {
            integer::put(stored.period_ms.into(), to);
        }
    }
}

/// Parses a description; `None` when it is malformed.
pub(crate) fn read(mut body: &[u8]) -> Option<Definition> {
    let from = &mut body;
    let number = integer::take(from)?;
    let name = text(from)?;
    let key = (integer::take(from)?, integer::take(from)?);
    let bits = integer::take(from)?;
    // The oldest versions send nothing more.
    let _expire = integer::take(from);
    let mut data: Vec<(Data, u32)> = Vec::new();
    for bit in 0..u64::BITS as usize {
        match Data::ALL.get(bit) {
            _ if bits >> bit & 1 == 0 => {}
            Some(kind) => data.push((*kind, 1)),
            None => break,
        }
    }
    while let Some(kind) = integer::take(from) {
        let Some(kind) = usize::try_from(kind).ok().and_then(|kind| Data::ALL.get(kind)) else { break };
        if kind.is_array() {
            let elements = u32::try_from(integer::take(from)?).ok().filter(|elements| *elements <= MOST_ELEMENTS)?;
            data.iter_mut().filter(|(of, _)| of == kind).for_each(|(_, of)| *of = elements);
        }
        if kind.shape() == Shape::Rate {
            integer::take(from)?;
        }
    }
    (key.1 <= MOST_BYTES as u64).then_some(Definition { number, name, key, data })
}

/// Parses a name: a length and so many bytes. A name with control characters is refused: it is shown to operators.
pub(crate) fn text(from: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(integer::take(from)?).ok().filter(|length| *length <= MOST_NAME_BYTES)?;
    let (name, rest) = from.split_at_checked(length)?;
    *from = rest;
    String::from_utf8(name.to_vec()).ok().filter(|name| !name.contains(char::is_control))
}

/// Keys that are integers.
pub(crate) const INTEGER: u64 = 2;
/// Keys that are text.
pub(crate) const TEXT: u64 = 6;
/// Names of tables and servers are shorter.
const MOST_NAME_BYTES: usize = 4096;
/// HAProxy's limit of counters by number.
const MOST_ELEMENTS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::table;
    use proptest::prelude::*;

    fn written(line: &str) -> Vec<u8> {
        let mut body = Vec::new();
        write(3, "t", &table("t", line), &mut body);
        body
    }

    /// Bytes that HAProxy sends for such tables.
    #[test]
    fn descriptions_are_haproxys() {
        assert_eq!(written("type ip size 9 store gpc0,gpc0_rate(7s)"), b"\x03\x01t\x04\x04\x0c\x00\x03\xf8\xa6\x02");
        assert_eq!(written("type integer size 9 expire 10s store gpt0"), b"\x03\x01t\x02\x04\x02\xf0\xe2\x03");
        assert_eq!(written("type string size 9 store gpc0"), b"\x03\x01t\x06\x20\x04\x00");
        let arrays = b"\x03\x01t\x06\x0a\xf0\xf1\xfe\x6e\x00\x16\x01\x17\x03\x18\x02\xf0\xe2\x03";
        assert_eq!(written("type string len 9 size 9 store gpc(3),gpc_rate(2,10s),gpt(1)"), arrays);
    }

    #[test]
    fn a_description_is_read_as_it_is_written() {
        let read = read(&written("type binary len 5 size 9 store gpc(3),gpc_rate(2,10s),conn_cur,server_key")).unwrap();
        let data = vec![(Data::ConnCur, 1), (Data::ServerKey, 1), (Data::Gpc, 3), (Data::GpcRate, 2)];
        assert_eq!(read, Definition { number: 3, name: "t".into(), key: (7, 5), data });
    }

    #[test]
    fn names_have_no_control_characters() {
        assert_eq!(text(&mut &b"\x02a\xc3\xa9"[..]), None, "it is cut");
        assert_eq!(text(&mut &b"\x03a\xc3\xa9"[..]).as_deref(), Some("a\u{e9}"));
        for wrong in [&b"\x03a\nb"[..], b"\x03a\x1bb", b"\x01\x7f", b"\x02\xc2\x85", b"\x01\0"] {
            assert_eq!(text(&mut &*wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_not_known_ends_the_list() {
        let mut body = b"\x01\x01t\x04\x04".to_vec();
        integer::put(1 << 2 | 1 << 60, &mut body);
        assert_eq!(read(&body).unwrap().data, [(Data::Gpc0, 1)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(body: Vec<u8>) {
            let _ = read(&body);
        }
    }
}
