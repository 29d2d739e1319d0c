//! The fields of a head: one buffer and an index.
//!
//! A head is parsed once and usually sent on with few changes. So the buffer keeps each field as the line `name: value CR
//! LF`, in the order of arrival. [`Fields::write_to`] copies runs of untouched lines at once: a head without edits is a
//! single `memcpy`. An edited or added field is appended to the buffer as a new line and the index points there. A removed
//! field is only taken out of the index.

use crate::name::{FieldName, Known, KnownSet, is_token};
use crate::text::control_at;
use std::ops::Range;

/// The fields of a message's head, in order, names matched without regard to case (RFC 9110 section 5).
#[derive(Clone, Default, Debug)]
pub struct Fields {
    bytes: Vec<u8>,
    index: Vec<Field>,
    /// The bits ([`Known::with_bit`]) of all names that were ever put in: most questions are for names that are not there.
    seen: u64,
}

/// Place of a field in the buffer: the line is `bytes[name][": "][value]["\r\n"]`, blanks round the value as they came.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: u32,
    name_len: u32,
    value: u32,
    value_len: u32,
    known: Known,
    is_secret: bool,
}

impl Fields {
    /// An empty list of fields, for messages without any.
    pub fn none() -> &'static Fields {
        static NONE: Fields = Fields { bytes: Vec::new(), index: Vec::new(), seen: 0 };
        &NONE
    }

    /// Removes all fields, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.index.clear();
        self.seen = 0;
    }

    /// Becomes a copy of others, in the memory that is there.
    pub fn copy_from(&mut self, others: &Fields) {
        self.bytes.clone_from(&others.bytes);
        self.index.clone_from(&others.index);
        self.seen = others.seen;
    }

    /// Adds the field whose name and value lie at these places of a head. Fields are added in the order of the head, which
    /// [`Fields::load`] takes when all of them were found.
    pub fn index_line(&mut self, head: &[u8], name: Range<usize>, value: Range<usize>) {
        debug_assert!(name.end <= value.start && value.end <= head.len());
        let (known, bit) = Known::with_bit(&head[name.clone()]);
        self.seen |= bit;
        self.index.push(Field {
            name: name.start as u32,
            name_len: name.len() as u32,
            value: value.start as u32,
            value_len: value.len() as u32,
            known,
            is_secret: false,
        });
    }

    /// Marks the last field as one that no hop may keep in a table of heads that others share (RFC 7541 section 6.2.3).
    /// Another value that it is given is as secret.
    pub fn mark_secret(&mut self) {
        if let Some(last) = self.index.last_mut() {
            last.is_secret = true;
        }
    }

    /// Whether the `i`th field was marked as secret.
    pub fn is_secret(&self, i: usize) -> bool {
        self.index.get(i).is_some_and(|field| field.is_secret)
    }

    /// Takes a head as it was read, whose fields were found: it becomes the buffer.
    pub fn load(&mut self, head: &[u8]) {
        debug_assert!(self.bytes.is_empty());
        self.bytes.extend_from_slice(head);
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes of memory that the head holds, used or reserved.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.index.capacity() * size_of::<Field>()
    }

    /// All fields, in order, as (name, value).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        self.index.iter().map(|f| (self.name_of(f), self.value_of(f)))
    }

    /// The name and value of the `i`th field.
    pub fn at(&self, i: usize) -> Option<(&[u8], &[u8])> {
        self.index.get(i).map(|f| (self.name_of(f), self.value_of(f)))
    }

    /// The line of the `i`th field as it goes out, without its end.
    pub fn line(&self, i: usize) -> Option<&[u8]> {
        let field = self.index.get(i)?;
        self.bytes.get(field.name as usize..(field.value + field.value_len) as usize)
    }

    /// The value of the first field of that name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.positions(name).next().map(|i| self.value_of(&self.index[i]))
    }

    /// The values of all fields of that name, in order.
    pub fn values<'a, 'n>(&'a self, name: &'n [u8]) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        self.positions(name).map(|i| self.value_of(&self.index[i]))
    }

    /// The places, for [`Fields::at`] and [`Fields::replace`], of all fields of that name.
    pub fn positions<'a, 'n>(&'a self, name: &'n [u8]) -> impl DoubleEndedIterator<Item = usize> + use<'a, 'n> {
        let (known, bit) = Known::with_bit(name);
        self.index_if_seen(bit).iter().enumerate().filter_map(move |(i, f)| {
            let same = f.known == known && (known != Known::Other || self.name_of(f).eq_ignore_ascii_case(name));
            same.then_some(i)
        })
    }

    /// The value of the first field of a known name.
    pub fn first(&self, name: Known) -> Option<&[u8]> {
        self.index_if_seen(name.bit()).iter().find(|f| f.known == name).map(|f| self.value_of(f))
    }

    /// The values of all fields of a known name.
    pub fn every(&self, name: Known) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.index_if_seen(name.bit()).iter().filter(move |f| f.known == name).map(|f| self.value_of(f))
    }

    /// Whether a field of a known name is there.
    #[inline]
    pub fn has(&self, name: Known) -> bool {
        self.seen & name.bit() != 0 && self.holds(name)
    }

    fn holds(&self, name: Known) -> bool {
        self.index.iter().any(|f| f.known == name)
    }

    /// Whether any of these known names may be there; false is certain.
    #[inline]
    pub fn may_have(&self, names: KnownSet) -> bool {
        self.seen & names.bits() != 0
    }

    /// The index to search for a name: empty, when it was never put in.
    fn index_if_seen(&self, bit: u64) -> &[Field] {
        if self.seen & bit == 0 { &[] } else { &self.index }
    }

    /// Adds a field at the end. CR, LF and NUL become blanks; a name that is no token (RFC 9110 section 5.6.2) adds nothing.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        if let Some(field) = self.append_line(name, value) {
            self.index.push(field);
        }
    }

    /// The same for a name that was checked before.
    pub fn push_named(&mut self, name: &FieldName, value: &[u8]) {
        let field = self.append_valid(name.bytes(), name.with_bit(), value);
        self.index.push(field);
    }

    /// Removes all fields of that name, then adds a single one.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.push(name, value);
    }

    /// The same for a name that was checked before.
    pub fn set_named(&mut self, name: &FieldName, value: &[u8]) {
        self.remove_named(name);
        self.push_named(name, value);
    }

    /// Gives the `i`th field a new value; it keeps its place and its name.
    pub fn replace(&mut self, i: usize, value: &[u8]) {
        let Some(old) = self.index.get(i).copied() else { return };
        let name = self.name_of(&old).to_vec();
        if let Some(field) = self.append_line(&name, value) {
            self.index[i] = Field { is_secret: old.is_secret, ..field };
        }
    }

    /// Removes all fields of that name; returns how many there were.
    pub fn remove(&mut self, name: &[u8]) -> usize {
        self.remove_of(Known::with_bit(name), name)
    }

    /// The same for a name that was checked before.
    pub fn remove_named(&mut self, name: &FieldName) -> usize {
        self.remove_of(name.with_bit(), name.bytes())
    }

    /// Removes all fields of a known name; returns how many there were.
    pub fn remove_known(&mut self, name: Known) -> usize {
        self.remove_of((name, name.bit()), b"")
    }

    fn remove_of(&mut self, (known, bit): (Known, u64), name: &[u8]) -> usize {
        if self.seen & bit == 0 {
            return 0;
        }
        let (before, bytes) = (self.index.len(), &self.bytes);
        self.index.retain(|f| match known {
            // Most names differ in length already.
            Known::Other => f.name_len as usize != name.len() || !bytes[f.name_range()].eq_ignore_ascii_case(name),
            known => f.known != known,
        });
        before - self.index.len()
    }

    /// Removes the `i`th field.
    pub fn remove_at(&mut self, i: usize) {
        if i < self.index.len() {
            self.index.remove(i);
        }
    }

    /// Keeps the fields for which `keep(name, value)` holds; returns how many were removed.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> usize {
        let before = self.index.len();
        let bytes = &self.bytes;
        self.index.retain(|f| keep(&bytes[f.name_range()], &bytes[f.value_range()]));
        before - self.index.len()
    }

    /// Writes the fields as HTTP/1 lines, each `name: value CR LF`, without the empty line that ends a head.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut run: Option<Range<usize>> = None;
        for f in &self.index {
            let line = f.name as usize..(f.value + f.value_len) as usize;
            match &mut run {
                // The next line begins right after this one's CR LF: it belongs to the same run.
                Some(r) if r.end + 2 == line.start && &self.bytes[r.end..line.start] == b"\r\n" => r.end = line.end,
                other => {
                    if let Some(r) = other.replace(line) {
                        out.extend_from_slice(&self.bytes[r]);
                        out.extend_from_slice(b"\r\n");
                    }
                }
            }
        }
        if let Some(r) = run {
            out.extend_from_slice(&self.bytes[r]);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// The whole buffer, for the heads' first lines.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Puts bytes of a first line after the fields; returns their place. CR, LF and NUL become blanks.
    pub(crate) fn append(&mut self, text: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        blank_controls(&mut self.bytes[start..]);
        start..self.bytes.len()
    }

    fn append_line(&mut self, name: &[u8], value: &[u8]) -> Option<Field> {
        let valid = !name.is_empty() && name.iter().all(|&b| is_token(b));
        valid.then(|| self.append_valid(name, Known::with_bit(name), value))
    }

    fn append_valid(&mut self, name: &[u8], (known, bit): (Known, u64), value: &[u8]) -> Field {
        // The lines before must end where this one begins, or a run could not be told from a gap. Lines added here always
        // carry their own CR LF, and a loaded head ends with one.
        let start = self.bytes.len();
        self.bytes.reserve(name.len() + value.len() + 4);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        let value_at = self.append(value);
        self.bytes.extend_from_slice(b"\r\n");
        self.seen |= bit;
        Field {
            name: start as u32,
            name_len: name.len() as u32,
            value: value_at.start as u32,
            value_len: value_at.len() as u32,
            known,
            is_secret: false,
        }
    }

    fn name_of(&self, f: &Field) -> &[u8] {
        &self.bytes[f.name_range()]
    }

    fn value_of(&self, f: &Field) -> &[u8] {
        &self.bytes[f.value_range()]
    }
}

impl Field {
    fn name_range(&self) -> Range<usize> {
        self.name as usize..(self.name + self.name_len) as usize
    }

    fn value_range(&self) -> Range<usize> {
        self.value as usize..(self.value + self.value_len) as usize
    }
}

fn blank_controls(bytes: &mut [u8]) {
    // There are none nearly always.
    let Some(mut at) = control_at(bytes) else { return };
    while let Some(i) = memchr::memchr3(b'\r', b'\n', 0, &bytes[at..]) {
        bytes[at + i] = b' ';
        at += i + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Fields {
        let raw = b"GET / HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\nAccept: */*\r\n\r\n";
        let mut f = Fields::default();
        f.index_line(raw, 16..20, 22..23);
        f.index_line(raw, 25..30, 33..34);
        f.index_line(raw, 37..43, 45..48);
        f.load(raw);
        f
    }

    fn written(f: &Fields) -> String {
        let mut out = Vec::new();
        f.write_to(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn untouched_fields_are_written_in_order() {
        assert_eq!(written(&loaded()), "Host: a\r\nX-One:  1\r\nAccept: */*\r\n");
    }

    #[test]
    fn edits_keep_the_order_of_the_others() {
        let mut f = loaded();
        f.replace(0, b"b");
        assert_eq!(written(&f), "Host: b\r\nX-One:  1\r\nAccept: */*\r\n");
        f.set(b"x-one", b"2");
        assert_eq!(written(&f), "Host: b\r\nAccept: */*\r\nx-one: 2\r\n");
        assert_eq!(f.remove(b"ACCEPT"), 1);
        assert_eq!(f.first(Known::Host), Some(&b"b"[..]));
        assert_eq!(written(&f), "Host: b\r\nx-one: 2\r\n");
    }

    #[test]
    fn secrets_stay_secret() {
        let mut f = loaded();
        f.mark_secret();
        f.push(b"B", b"c");
        f.replace(2, b"other");
        f.remove_at(1);
        assert_eq!([0, 1, 2, 3].map(|i| f.is_secret(i)), [false, true, false, false]);
        assert_eq!(written(&f), "Host: a\r\nAccept: other\r\nB: c\r\n");
    }

    #[test]
    fn no_value_can_split_a_message() {
        let mut f = Fields::default();
        f.push(b"A", b"1\r\nEvil: 2\0");
        f.push(b"Bad name", b"x");
        f.push(b"", b"x");
        assert_eq!(written(&f), "A: 1  Evil: 2 \r\n");
    }

    #[test]
    fn known_names_are_found_in_any_case() {
        assert_eq!(Known::of(b"content-LENGTH"), Known::ContentLength);
        assert_eq!(Known::of(b"content-lengths"), Known::Other);
        assert_eq!(Known::Etag.name(), "ETag");
    }
}
