//! Index that a value is looked up in: the patterns of a reference, compiled for one way of matching. A copy shares almost
//! all of it.

use super::Matching;
use super::entry::Posting;
use super::network::Networks;
use super::numbers::Numbers;
use super::ordered::Ordered;
use super::parse::Pattern;
use super::texts::{Texts, lowered};
use crate::regexp::Regexp;
use crate::value::Value;
use memchr::memmem::Finder;

/// Compiled patterns.
#[derive(Clone, Debug)]
pub(super) enum Index {
    /// `found`, `bool`: patterns have no meaning.
    Nothing,
    Texts(Texts),
    Parts {
        ignore_case: bool,
        parts: Ordered<Finder<'static>>,
    },
    Numbers(Numbers),
    Lengths(Numbers),
    Networks(Networks),
    Regexes(Ordered<Regexp>),
}

impl Index {
    /// An index without patterns.
    pub(super) fn new(matching: Matching, ignore_case: bool) -> Index {
        match matching {
            Matching::Found | Matching::Bool => Index::Nothing,
            Matching::Int => Index::Numbers(Numbers::new()),
            Matching::Len => Index::Lengths(Numbers::new()),
            Matching::Ip => Index::Networks(Networks::new()),
            Matching::Sub => Index::Parts { ignore_case, parts: Ordered::default() },
            Matching::Reg | Matching::Regm => Index::Regexes(Ordered::default()),
            _ => Index::Texts(Texts::new(matching, ignore_case)),
        }
    }

    /// Adds a pattern; it replaces a pattern of the same number.
    pub(super) fn insert(&mut self, pattern: Pattern, posting: Posting) {
        match (self, pattern) {
            (Index::Texts(texts), Pattern::Text(text)) => texts.insert(&text, posting),
            (Index::Parts { parts, .. }, Pattern::Text(text)) => parts.insert(Finder::new(&text).into_owned(), posting),
            (Index::Numbers(numbers) | Index::Lengths(numbers), Pattern::Range(range)) => numbers.insert(range, posting),
            (Index::Networks(networks), Pattern::Network(network)) => networks.insert(network, posting),
            (Index::Regexes(regexes), Pattern::Regex(regex)) => regexes.insert(*regex, posting),
            _ => {}
        }
    }

    /// Removes the pattern under some numbers, in ascending order.
    pub(super) fn remove(&mut self, pattern: Pattern, ids: &[u64]) {
        match (self, pattern) {
            (Index::Texts(texts), Pattern::Text(text)) => texts.remove(&text, ids),
            (Index::Parts { parts, .. }, _) => parts.remove(ids),
            (Index::Numbers(numbers) | Index::Lengths(numbers), Pattern::Range(range)) => numbers.remove(range, ids),
            (Index::Networks(networks), Pattern::Network(network)) => networks.remove(network, ids),
            (Index::Regexes(regexes), _) => regexes.remove(ids),
            _ => {}
        }
    }

    /// The entry that a value matches, which is of the type that the way of matching expects.
    #[inline]
    pub(super) fn find(&self, value: &Value<'_>) -> Option<&Posting> {
        match (self, value) {
            (Index::Texts(texts), Value::Str(text) | Value::Bin(text) | Value::Method(text)) => texts.find(text),
            (Index::Numbers(numbers), Value::Int(n)) => numbers.find(*n),
            (Index::Numbers(numbers), Value::Bool(b)) => numbers.find(i64::from(*b)),
            (Index::Lengths(numbers), Value::Str(text)) => numbers.find(i64::try_from(text.len()).unwrap_or(i64::MAX)),
            (Index::Networks(networks), Value::Addr(address)) => networks.find(*address),
            (Index::Regexes(regexes), Value::Str(text)) => regexes.find(|regex| regex.is_match(text)),
            (Index::Parts { ignore_case, parts }, Value::Str(text)) => {
                if *ignore_case && text.iter().any(u8::is_ascii_uppercase) {
                    let text = lowered(text);
                    return parts.find(|part| part.find(&text).is_some());
                }
                parts.find(|part| part.find(text).is_some())
            }
            _ => None,
        }
    }

    /// Whether entries lie in a table, not in a list: `get map` shows it.
    pub(super) fn is_tree(matching: Matching, ignore_case: bool) -> bool {
        match matching {
            Matching::Str | Matching::Beg => !ignore_case,
            Matching::Ip => true,
            _ => false,
        }
    }
}
