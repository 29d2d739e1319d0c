//! The fields of RFC 9842, as structured fields (RFC 9651).
//!
//! `Available-Dictionary` and `Dictionary-ID` are a client's, `Use-As-Dictionary` is a server's. A field that is not as the RFC has it
//! is ignored as a whole. Parameters are read and mean nothing.

use crate::hash::Hash;
use crate::pattern::{self, Pattern};
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};
use std::time::Duration;

/// The most characters of a dictionary's id (RFC 9842 section 2.1.3).
pub const MOST_ID: usize = 1024;

/// The most bytes of `Available-Dictionary` that are looked at: the hash takes 46.
const MOST_AVAILABLE: usize = 256;

/// The most bytes of the fields with texts in them, each of whose characters may be escaped.
const MOST_FIELD: usize = 8 * 1024;

/// The most names of a list `match-dest`.
const MOST_DESTINATIONS: usize = 32;

/// A field that is not as the RFC has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// The hash in `Available-Dictionary`: one field with one byte sequence of 32 bytes.
///
/// # Errors
/// It is anything else.
pub fn available<'v>(values: impl Iterator<Item = &'v [u8]>) -> Result<Hash, Malformed> {
    match item(values, MOST_AVAILABLE)? {
        BareItem::ByteSequence(bytes) => bytes.try_into().map(Hash).map_err(|_| Malformed),
        _ => Err(Malformed),
    }
}

/// The text in `Dictionary-ID`.
///
/// # Errors
/// It is none, or too long.
pub fn id<'v>(values: impl Iterator<Item = &'v [u8]>) -> Result<String, Malformed> {
    match item(values, MOST_FIELD)? {
        BareItem::String(id) if id.as_str().len() <= MOST_ID => Ok(id.as_str().to_owned()),
        _ => Err(Malformed),
    }
}

/// The item that a field is which stands in one line: two lines would be a list.
fn item<'v>(mut values: impl Iterator<Item = &'v [u8]>, most: usize) -> Result<BareItem, Malformed> {
    let value = values.next().filter(|value| value.len() <= most).ok_or(Malformed)?;
    if values.next().is_some() {
        return Err(Malformed);
    }
    Parser::new(value).parse::<Item>().map(|item| item.bare_item).map_err(|_| Malformed)
}

/// What `Use-As-Dictionary` says: that its answer may serve as a dictionary, and for what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UseAs {
    /// `match`: for requests to these.
    pub pattern: Pattern,
    /// `match-dest`: of these kinds (Fetch's destinations); none: of any kind.
    pub destinations: Vec<String>,
    /// `id`: what the client says beside the hash; may be empty.
    pub id: String,
    /// `ttl`: for how long. RFC 9842 does not have it; drafts that came after it do.
    pub ttl: Option<Duration>,
}

impl UseAs {
    /// For requests that match.
    pub fn of(pattern: Pattern) -> UseAs {
        UseAs { pattern, destinations: Vec::new(), id: String::new(), ttl: None }
    }

    /// Reads the field.
    ///
    /// # Errors
    /// It is no dictionary of a structured field, has no `match` that a pattern of ours says too, or another `type` than `raw`.
    pub fn read(value: &[u8]) -> Result<UseAs, Malformed> {
        if value.len() > MOST_FIELD {
            return Err(Malformed);
        }
        let members: Dictionary = Parser::new(value).parse().map_err(|_| Malformed)?;
        let text = |key: &str| match members.get(key) {
            None => Ok(None),
            Some(ListEntry::Item(Item { bare_item: BareItem::String(text), .. })) => Ok(Some(text.as_str())),
            Some(_) => Err(Malformed),
        };
        let pattern = Pattern::new(text("match")?.ok_or(Malformed)?).map_err(|_| Malformed)?;
        let destinations = match members.get("match-dest") {
            None => Vec::new(),
            Some(ListEntry::InnerList(list)) if list.items.len() <= MOST_DESTINATIONS => {
                let names = list.items.iter().map(|item| match &item.bare_item {
                    BareItem::String(name) => Ok(name.as_str().to_owned()),
                    _ => Err(Malformed),
                });
                names.collect::<Result<_, _>>()?
            }
            Some(_) => return Err(Malformed),
        };
        match members.get("type") {
            None => {}
            Some(ListEntry::Item(Item { bare_item: BareItem::Token(kind), .. })) if kind.as_str() == "raw" => {}
            Some(_) => return Err(Malformed),
        }
        let id = text("id")?.unwrap_or_default();
        let ttl = match members.get("ttl") {
            None => None,
            Some(ListEntry::Item(Item { bare_item: BareItem::Integer(seconds), .. })) => {
                let seconds = u64::try_from(i64::from(*seconds)).map_err(|_| Malformed)?;
                Some(Duration::from_secs(seconds))
            }
            Some(_) => return Err(Malformed),
        };
        if id.len() > MOST_ID {
            return Err(Malformed);
        }
        Ok(UseAs { pattern, destinations, id: id.to_owned(), ttl })
    }

    /// The field.
    pub fn write(&self) -> String {
        let mut out = format!("match={}", quoted(self.pattern.as_str()));
        if !self.destinations.is_empty() {
            let names: Vec<String> = self.destinations.iter().map(|name| quoted(name)).collect();
            out += &format!(", match-dest=({})", names.join(" "));
        }
        if !self.id.is_empty() {
            out += &format!(", id={}", quoted(&self.id));
        }
        if let Some(ttl) = self.ttl {
            out += &format!(", ttl={}", ttl.as_secs());
        }
        out
    }
}

/// Why a text cannot be an id.
pub fn id_fault(id: &str) -> Option<String> {
    if id.len() > MOST_ID {
        return Some(format!("it has more than {MOST_ID} characters"));
    }
    (!id.bytes().all(pattern::is_printable)).then(|| "a field can hold printable ASCII alone".into())
}

/// A structured field's text. Characters that it cannot hold are never put into it: [`id_fault`], [`Pattern::new`].
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = ":ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";

    fn available_in(values: &[&str]) -> Result<Hash, Malformed> {
        available(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn one_field_with_one_sequence_of_32_bytes() {
        let hash = Hash::of(b"abc");
        for value in [HASH, " :ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=: ", &format!("{HASH};a=1;b")] {
            assert_eq!(available_in(&[value]), Ok(hash), "{value}");
        }
        let long = format!("{HASH};a=\"{}\"", "x".repeat(300));
        for values in [
            &[][..],
            &[""],
            &["abc"],
            &["\"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=\""],
            &["ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="],
            &[":ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa:"],
            &[":ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0AAAA=:"],
            &[":ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="],
            &["::"],
            &[HASH, HASH],
            &["(:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:)"],
            &[&format!("{HASH}, {HASH}")],
            &[&format!("{HASH} x")],
            &[&long],
        ] {
            assert_eq!(available_in(values), Err(Malformed), "{values:?}");
        }
    }

    #[test]
    fn an_id_is_a_text_of_at_most_1024_characters() {
        let read = |value: &str| id([value.as_bytes()].into_iter());
        assert_eq!(read(r#""a\"b\\""#).as_deref(), Ok(r#"a"b\"#));
        assert_eq!(read(&format!("\"{}\"", "x".repeat(1024))).map(|id| id.len()), Ok(1024));
        for value in [&format!("\"{}\"", "x".repeat(1025)), "id", "1", "\"a", "\"\u{e9}\""] {
            assert_eq!(read(value), Err(Malformed), "{value}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut use_as = UseAs::of(Pattern::new("/a/*.js?v=*").unwrap());
        assert_eq!(use_as.write(), r#"match="/a/*.js?v=*""#);
        use_as.destinations = vec!["script".into(), "".into()];
        use_as.id = r#"a"b\c"#.into();
        use_as.ttl = Some(Duration::from_secs(604_800));
        assert_eq!(use_as.write(), r#"match="/a/*.js?v=*", match-dest=("script" ""), id="a\"b\\c", ttl=604800"#);
        assert_eq!(UseAs::read(use_as.write().as_bytes()), Ok(use_as));
    }

    #[test]
    fn members_have_their_types() {
        let read = |value: &str| UseAs::read(value.as_bytes());
        assert_eq!(read(r#"match="/x", type=raw, other=?1"#), Ok(UseAs::of(Pattern::new("/x").unwrap())));
        for value in [
            "",
            "match",
            "match=/x",
            r#"id="x""#,
            r#"match="/x", type=zstd"#,
            r#"match="/x", type="raw""#,
            r#"match="/x", match-dest="script""#,
            r#"match="/x", match-dest=(script)"#,
            r#"match="/x", id=a"#,
            r#"match="/x", ttl=-1"#,
            r#"match="/x", ttl=1.5"#,
            r#"match="/(a|b)""#,
            r#"match="https://other.example/*""#,
        ] {
            assert_eq!(read(value), Err(Malformed), "{value}");
        }
    }

    #[test]
    fn ids_that_no_field_can_hold_are_told() {
        assert_eq!(id_fault("release 7"), None);
        assert!(id_fault("\u{e9}").is_some() && id_fault("a\n").is_some() && id_fault(&"x".repeat(1025)).is_some());
    }
}
