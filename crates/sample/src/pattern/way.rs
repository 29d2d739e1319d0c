//! A way of matching the entries of a reference, shared by all users that match them so.

use super::Matching;
use super::entry::{Entry, Made, Posting};
use super::index::Index;
use super::parse::{Pattern, Resolve};
use crate::cast;
use crate::octets::Octets;
use crate::regexp;
use crate::value::Value;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// A way of matching.
pub struct Way {
    matching: Matching,
    ignore_case: bool,
    output: Output,
    index: ArcSwap<Index>,
    /// The addresses of hosts that patterns name: they are looked up once.
    hosts: Mutex<HashMap<String, Ipv4Addr>>,
}

/// Type that a map's values are converted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// The values are not used: an ACL, or a map that gives keys.
    Nothing,
    /// Text.
    Text,
    /// Whole numbers.
    Int,
    /// Addresses.
    Addr,
}

/// Match of a value, for people.
#[derive(Clone, Debug)]
pub struct Found {
    /// The entry, if the way of matching uses entries at all.
    pub entry: Option<Arc<Entry>>,
    /// The value's type, if there is a value.
    pub kind: Option<&'static str>,
}

impl Way {
    pub(super) fn new(matching: Matching, ignore_case: bool, output: Output) -> Way {
        let index = ArcSwap::from_pointee(Index::new(matching, ignore_case));
        Way { matching, ignore_case, output, index, hosts: Mutex::default() }
    }

    pub(super) fn is(&self, matching: Matching, ignore_case: bool, output: Output) -> bool {
        (self.matching, self.ignore_case, self.output) == (matching, ignore_case, output)
    }

    /// Method of comparing values.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// Whether case is ignored.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Whether entries are looked up in a table and not tried one after the other, as HAProxy counts.
    pub fn is_tree(&self) -> bool {
        Index::is_tree(self.matching, self.ignore_case)
    }

    /// An index without entries.
    pub(super) fn empty(&self) -> Arc<Index> {
        Arc::new(Index::new(self.matching, self.ignore_case))
    }

    /// Publishes another index for look-ups.
    pub(super) fn publish(&self, index: &Arc<Index>) {
        self.index.store(index.clone());
    }

    /// Compiles a key for this way; the error is the reason why it is invalid. An expression takes time.
    pub(super) fn pattern(&self, key: &[u8], resolve: Resolve<'_>) -> Result<Pattern, String> {
        let resolve = |host: &str| self.address(host, resolve);
        Pattern::parse(key, self.matching, self.ignore_case, &resolve)
    }

    /// The posting of an entry; the error is the reason why its value is invalid.
    pub(super) fn posting(&self, entry: &Arc<Entry>) -> Result<Posting, String> {
        let made = match (self.output, &entry.value) {
            (Output::Nothing, _) | (_, None) => Made::Nothing,
            (Output::Text, Some(_)) => Made::Text,
            (Output::Int, Some(value)) => Made::Int(int(value).ok_or_else(|| unable(value))?),
            (Output::Addr, Some(value)) => Made::Addr(cast::whole_addr(value).ok_or_else(|| unable(value))?),
        };
        Ok(Posting { entry: entry.clone(), made })
    }

    /// The pattern of an entry that was compiled before, for its removal: patterns that are found by their number alone are
    /// not compiled again.
    pub(super) fn pattern_of(&self, entry: &Entry) -> Pattern {
        match self.matching {
            Matching::Reg | Matching::Regm | Matching::Sub => Pattern::Nothing,
            matching => {
                let resolve = |host: &str| self.address(host, &|_| None);
                Pattern::parse(&entry.key, matching, self.ignore_case, &resolve).unwrap_or(Pattern::Nothing)
            }
        }
    }

    fn address(&self, host: &str, resolve: Resolve<'_>) -> Option<Ipv4Addr> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = hosts.get(host) {
            return Some(*address);
        }
        let address = resolve(host)?;
        hosts.insert(host.to_owned(), address);
        Some(address)
    }

    /// Whether a value of the type that [`Matching::expects`] matches an entry.
    #[inline]
    pub(super) fn holds(&self, value: &Value<'_>) -> bool {
        self.index.load().find(value).is_some()
    }

    /// The value of the entry that a value matches.
    pub fn value(&self, value: Value<'_>) -> Option<Value<'static>> {
        let value = cast::cast(value, self.matching.expects())?;
        let index = self.index.load();
        if self.matching == Matching::Regm {
            return Self::expand(&index, &value);
        }
        index.find(&value).map(Posting::value)
    }

    /// The key of the entry that a value matches.
    pub fn key(&self, value: Value<'_>) -> Option<Octets<'static>> {
        let value = cast::cast(value, self.matching.expects())?;
        self.index.load().find(&value).map(|posting| posting.entry.key.clone())
    }

    /// The match of a text.
    pub fn look_up(&self, text: &[u8]) -> Option<Found> {
        let value = cast::cast(Value::str(text), self.matching.expects())?;
        match self.matching {
            Matching::Found => None,
            Matching::Bool => value.into_bool()?.then_some(Found { entry: None, kind: None }),
            _ => self.index.load().find(&value).map(|posting| Found {
                entry: Some(posting.entry.clone()),
                kind: match posting.made {
                    Made::Nothing => None,
                    Made::Text => Some("str"),
                    Made::Int(_) => Some("sint"),
                    Made::Addr(address) => Some(if address.is_ipv4() { "ipv4" } else { "ipv6" }),
                },
            }),
        }
    }

    /// The value of the entry that a text matches, as a template for the matches of the expression's groups.
    fn expand(index: &Index, value: &Value<'_>) -> Option<Value<'static>> {
        let (Index::Regexes(regexes), Value::Str(text)) = (index, value) else { return None };
        let (captures, posting) = regexes.find_map(|regex| regex.captures(text))?;
        let mut out = Vec::new();
        regexp::expand(posting.entry.value.as_deref().unwrap_or_default(), &captures, &mut out);
        Some(Value::Str(Octets::from(out)))
    }
}

/// A whole number alone, held at the ends of 64 bits. No digits are 0, as in HAProxy.
fn int(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let is_number = digits.iter().all(u8::is_ascii_digit);
    if text.is_empty() { Some(0) } else { cast::leading_int(text).filter(|_| is_number) }
}

fn unable(value: &[u8]) -> String {
    format!("unable to parse '{}'", value.escape_ascii())
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.index.load())
    }
}
