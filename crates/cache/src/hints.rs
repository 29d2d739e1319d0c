//! Early hints (RFC 8297): the Link fields of a resource's responses, sent to the next client while the server still prepares
//! its response.
//!
//! Hints outlive their response: when that goes to make room, they stay, as long as there are not too many of them.

use super::Key;
use super::room::Space;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use terse_message::{Fields, list};

/// Values of Link.
pub(super) type Hints = Arc<[Box<[u8]>]>;

/// Hints without a response; the least lately used go first.
#[derive(Default)]
pub(super) struct Remembered {
    resources: HashMap<Key, (u64, Hints, Space)>,
    order: BTreeMap<u64, Key>,
    next: u64,
}

impl Remembered {
    /// Keeps hints, of at most so many resources.
    pub(super) fn keep(&mut self, key: Key, hints: Hints, space: Space, most: usize) {
        self.forget(&key);
        while self.order.len() >= most.max(1) {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.resources.remove(&oldest);
        }
        self.order.insert(self.next, key);
        self.resources.insert(key, (self.next, hints, space));
        self.next += 1;
    }

    /// The hints of a resource.
    pub(super) fn of(&mut self, key: &Key) -> Option<Hints> {
        let (used, hints, _) = self.resources.get_mut(key)?;
        self.order.remove(used);
        *used = self.next;
        self.order.insert(self.next, *key);
        self.next += 1;
        Some(hints.clone())
    }

    pub(super) fn forget(&mut self, key: &Key) {
        if let Some((used, ..)) = self.resources.remove(key) {
            self.order.remove(&used);
        }
    }

    /// Makes room; false where there is nothing.
    pub(super) fn pop_oldest(&mut self) -> bool {
        self.order.pop_first().inspect(|(_, key)| drop(self.resources.remove(key))).is_some()
    }

    /// The resources, the least lately used first, and the bytes that each takes.
    pub(super) fn list(&self) -> Vec<(Key, usize)> {
        self.order.values().filter_map(|key| Some((*key, self.resources.get(key)?.2.bytes()))).collect()
    }
}

/// The hints of a response, a value for each of its fields that has some.
pub(super) fn of(fields: &Fields) -> Option<Hints> {
    let value = |value| {
        let links: Vec<_> = list::elements(value).filter(|link| is_hint(link)).collect();
        (!links.is_empty()).then(|| links.join(&b", "[..]).into_boxed_slice())
    };
    let hints: Hints = fields.values(b"Link").filter_map(value).collect();
    (!hints.is_empty()).then_some(hints)
}

/// Whether a link (RFC 8288 section 3) is useful to a browser ahead of the response: by the first of its `rel` parameters.
fn is_hint(link: &[u8]) -> bool {
    let Some(end) = link.strip_prefix(b"<").and_then(|rest| memchr::memchr(b'>', rest)) else { return false };
    for parameter in list::parameters(&link[end + 2..]) {
        let Some(at) = memchr::memchr(b'=', parameter) else { continue };
        if !parameter[..at].trim_ascii().eq_ignore_ascii_case(b"rel") {
            continue;
        }
        let value = parameter[at + 1..].trim_ascii();
        let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        let relations = quoted.unwrap_or(value);
        // Several stand in quotes, with nothing round them.
        if relations != relations.trim_ascii() || quoted.is_none() && relations.iter().any(u8::is_ascii_whitespace) {
            return false;
        }
        let known = |one: &[u8]| RELATIONS.iter().any(|relation| one.eq_ignore_ascii_case(relation.as_bytes()));
        return relations.split(u8::is_ascii_whitespace).any(known);
    }
    false
}

const RELATIONS: [&str; 5] = ["preload", "preconnect", "dns-prefetch", "modulepreload", "prefetch"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_are_worth_it() {
        for (value, hints) in [
            ("<a>; rel=\"preload prefetch\"", Some("<a>; rel=\"preload prefetch\"")),
            ("<a>; crossorigin; REL = Preload", Some("<a>; crossorigin; REL = Preload")),
            ("<a>; rel=stylesheet, , <b>; rel=preload", Some("<b>; rel=preload")),
            ("<a>; rel=preload,<b>; rel=prefetch", Some("<a>; rel=preload, <b>; rel=prefetch")),
            ("<a>; rel=preload; rel=x", Some("<a>; rel=preload; rel=x")),
            ("<a>; rel=x; rel=preload", None),
            ("<a>; rel=preload prefetch", None),
            ("<a>; rel=\" preload\"", None),
            ("</a>; title=\"x\\\"; rel=preload; y=\\\"z\"", None),
            ("</a,b>; rel=preload", None),
            ("<a", None),
            ("<a>", None),
            ("<a>; rel", None),
            ("a; rel=preload", None),
        ] {
            let mut fields = Fields::default();
            fields.push(b"Link", value.as_bytes());
            let found = of(&fields).map(|hints| String::from_utf8_lossy(&hints[0]).into_owned());
            assert_eq!(found.as_deref(), hints, "{value}");
        }
    }
}
