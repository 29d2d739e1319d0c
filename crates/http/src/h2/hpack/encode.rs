//! Fields to header blocks (RFC 7541 section 6).

use super::facts::STATIC;
use super::table::{Match, Table, hashes};
use super::{TABLE_BYTES, huffman, integer};

/// Encoder of a connection. The blocks that it has appended must be sent, in their order.
#[derive(Debug, Default)]
pub struct Encoder {
    pub(super) table: Table,
    /// The least and the last size that the peer has set since the last block (RFC 7541 section 4.2).
    resized: Option<(usize, usize)>,
}

impl Encoder {
    /// Takes SETTINGS_HEADER_TABLE_SIZE of the peer; more than [`TABLE_BYTES`] is not made use of.
    pub fn resize(&mut self, size: usize) {
        let size = size.min(TABLE_BYTES);
        match &mut self.resized {
            Some((least, last)) => (*least, *last) = (size.min(*least), size),
            None if size == self.table.limit() => {}
            None => self.resized = Some((size, size)),
        }
    }

    /// Begins a block: announces changes of the table's size.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((least, last)) = self.resized.take() else { return };
        for size in [Some(least).filter(|least| *least < last), Some(last)].into_iter().flatten() {
            self.table.resize(size);
            integer::put(size, 5, 0x20, out);
        }
    }

    /// Appends a field, whose name is in small letters.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let fixed = static_match(name, value);
        if let Some(Match::Field(index)) = fixed {
            return integer::put(index, 7, 0x80, out);
        }
        self.append(name, value, (fixed, Storing::of(name, value)), out);
    }

    /// Appends a field that no hop may put into a table, as its sender asks for (RFC 7541 section 6.2.3).
    pub fn never_indexed(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let named = match static_match(name, value) {
            Some(Match::Field(index)) => Some(Match::Name(index)),
            other => other,
        };
        self.append(name, value, (named, Storing::Never), out);
    }

    fn append(&mut self, name: &[u8], value: &[u8], (fixed, storing): (Option<Match>, Storing), out: &mut Vec<u8>) {
        debug_assert!(!name.iter().any(u8::is_ascii_uppercase));
        let hashes = hashes(name, value);
        let found = match (storing, fixed) {
            (Storing::Kept, _) | (_, None) => self.table.find(name, value, hashes),
            _ => None,
        };
        let index = match (found, fixed) {
            (Some(Match::Field(age)), _) if storing == Storing::Kept => return integer::put(age + DYNAMIC, 7, 0x80, out),
            (_, Some(Match::Name(index))) => index,
            (Some(Match::Name(age) | Match::Field(age)), _) => age + DYNAMIC,
            _ => 0,
        };
        match storing {
            Storing::Kept => integer::put(index, 6, 0x40, out),
            Storing::Once => integer::put(index, 4, 0x00, out),
            Storing::Never => integer::put(index, 4, 0x10, out),
        }
        if index == 0 {
            text(name, out);
        }
        text(value, out);
        if storing == Storing::Kept {
            self.table.add(name, value, hashes);
        }
    }
}

/// The index of the newest entry of the dynamic table.
const DYNAMIC: usize = STATIC.len() + 1;

/// Treatment of a field by the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Storing {
    Kept,
    /// Its value is another one each time.
    Once,
    /// Its value is secret and could be guessed by the sizes of blocks (RFC 7541 section 7.1.3).
    Never,
}

impl Storing {
    fn of(name: &[u8], value: &[u8]) -> Storing {
        match name {
            b"authorization" | b"proxy-authorization" => Storing::Never,
            b"cookie" | b"set-cookie" if value.len() < GUESSED_BYTES => Storing::Never,
            b":path" | b"content-length" | b"date" | b"etag" | b"last-modified" | b"age" | b"expires" | b"set-cookie"
            | b"location" | b"content-range" | b"if-modified-since" | b"if-none-match" | b"x-request-id" => Storing::Once,
            _ if value.len() > KEPT_BYTES => Storing::Once,
            _ => Storing::Kept,
        }
    }
}

/// Shorter secrets can be guessed.
const GUESSED_BYTES: usize = 20;

/// A longer value would push out many others.
const KEPT_BYTES: usize = 1024;

fn static_match(name: &[u8], value: &[u8]) -> Option<Match> {
    let first = STATIC_FIRST[static_slot(name.len(), *name.first()?, *name.last()?)];
    let mut at = usize::from(first);
    let mut named = None;
    while at != 0 {
        let (known, held) = STATIC[at - 1];
        if known == name {
            if held == value {
                return Some(Match::Field(at));
            }
            named = named.or(Some(Match::Name(at)));
        }
        at = usize::from(STATIC_NEXT[at - 1]);
    }
    named
}

const fn static_slot(length: usize, first: u8, last: u8) -> usize {
    (length * 5 + first as usize * 3 + last as usize) % 128
}

/// The first entry of each slot, and the next one of each entry; 0 is none.
static STATIC_FIRST: [u8; 128] = CHAINS.0;
static STATIC_NEXT: [u8; 61] = CHAINS.1;

const CHAINS: ([u8; 128], [u8; 61]) = {
    let (mut first, mut next) = ([0u8; 128], [0u8; 61]);
    let mut i = STATIC.len();
    while i > 0 {
        let name = STATIC[i - 1].0;
        let slot = static_slot(name.len(), name[0], name[name.len() - 1]);
        next[i - 1] = first[slot];
        first[slot] = i as u8;
        i -= 1;
    }
    (first, next)
};

fn text(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::put(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::put(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
