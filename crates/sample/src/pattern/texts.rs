//! Texts that are compared whole, at their ends, or between delimiters: `str`, `bin`, `beg`, `end`, `dir`, `dom`, methods.
//!
//! All of them are look-ups of parts of the value in one table. The parts are the whole of it, its prefixes and suffixes of
//! the lengths that keys have, or the text between two delimiters.

use super::Matching;
use super::entry::Posting;
use super::lengths::Lengths;
use super::table::Table;
use smallvec::SmallVec;

/// Texts.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    matching: Matching,
    ignore_case: bool,
    table: Table,
    lengths: Lengths,
}

impl Texts {
    /// An empty set.
    pub(super) fn new(matching: Matching, ignore_case: bool) -> Texts {
        Texts { matching, ignore_case: ignore_case && matching.is_of_text(), table: Table::new(), lengths: Lengths::default() }
    }

    /// Adds a text; it replaces one of the same number.
    pub(super) fn insert(&mut self, text: &[u8], posting: Posting) {
        self.with_key(text, |texts, key| {
            if texts.table.insert(key, posting) {
                texts.lengths.add(key.len());
            }
        });
    }

    /// Removes the texts of some numbers, in ascending order.
    pub(super) fn remove(&mut self, text: &[u8], ids: &[u64]) {
        self.with_key(text, |texts, key| texts.lengths.remove(key.len(), texts.table.remove(key, ids)));
    }

    /// The entry that a value matches.
    pub(super) fn find(&self, text: &[u8]) -> Option<&Posting> {
        if self.folds(text) {
            return self.find_exact(&lowered(text));
        }
        self.find_exact(text)
    }

    #[inline]
    fn find_exact(&self, text: &[u8]) -> Option<&Posting> {
        match self.matching {
            Matching::Beg if !self.ignore_case => self.prefixes(text).rev().find_map(|key| self.table.find(key)),
            Matching::Beg => first(self.prefixes(text).filter_map(|key| self.table.find(key))),
            Matching::End => {
                let suffixes = self.lengths.up_to(text.len()).map(|len| &text[text.len() - len..]);
                first(suffixes.filter_map(|key| self.table.find(key)))
            }
            Matching::Dir => self.find_word(text, DIR),
            Matching::Dom => self.find_word(text, DOM),
            _ => self.table.find(text).filter(|_| self.lengths.has_from(text.len())),
        }
    }

    fn prefixes<'t>(&self, text: &'t [u8]) -> impl DoubleEndedIterator<Item = &'t [u8]> {
        self.lengths.up_to(text.len()).map(|len| &text[..len])
    }

    /// The first entry that is a word, or words with delimiters between them, of the text.
    fn find_word(&self, text: &[u8], delimiters: &[u8]) -> Option<&Posting> {
        let is_edge = |at: usize| text.get(at).is_none_or(|byte| delimiters.contains(byte));
        let starts = (0..text.len()).filter(|&at| !is_edge(at) && at.checked_sub(1).is_none_or(is_edge));
        first(starts.flat_map(|start| {
            let ends = self.lengths.up_to(text.len() - start).map(move |len| start + len).filter(move |&end| is_edge(end));
            ends.filter_map(move |end| self.table.find(&text[start..end]))
        }))
    }

    /// Calls `then` with the key of a pattern; not for a pattern without matches.
    fn with_key(&mut self, text: &[u8], then: impl FnOnce(&mut Texts, &[u8])) {
        let text = match self.matching {
            Matching::Dir => trim(text, DIR),
            Matching::Dom => trim(text, DOM),
            _ => text,
        };
        if text.is_empty() && matches!(self.matching, Matching::Dir | Matching::Dom) {
            return;
        }
        if self.folds(text) { then(self, &lowered(text)) } else { then(self, text) }
    }

    /// Whether a text must be put into small letters first. Known methods are never written in others.
    #[inline]
    fn folds(&self, text: &[u8]) -> bool {
        self.ignore_case
            && text.iter().any(u8::is_ascii_uppercase)
            && !(self.matching == Matching::Method && METHODS.contains(&text))
    }
}

/// The posting with the least number.
fn first<'p>(postings: impl Iterator<Item = &'p Posting>) -> Option<&'p Posting> {
    postings.min_by_key(|posting| posting.id())
}

/// The text in small letters, without allocation up to the length of most fields.
pub(super) fn lowered(text: &[u8]) -> SmallVec<[u8; 256]> {
    let mut lowered = SmallVec::from_slice(text);
    lowered.make_ascii_lowercase();
    lowered
}

fn trim<'a>(text: &'a [u8], delimiters: &[u8]) -> &'a [u8] {
    let start = text.iter().take_while(|b| delimiters.contains(b)).count();
    let end = text.iter().rev().take_while(|b| delimiters.contains(b)).count();
    text.get(start..text.len() - end).unwrap_or_default()
}

const DIR: &[u8] = b"/?";
const DOM: &[u8] = b"/?.:";
const METHODS: &[&[u8]] = &[b"OPTIONS", b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"TRACE", b"CONNECT"];
