//! An entry of a reference, and its place in an index.

use crate::octets::Octets;
use crate::value::Value;
use std::net::IpAddr;
use std::sync::Arc;

/// A line of a file, or a pattern of a line of the configuration. It never changes: a new value is a new entry of the same number.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number in its reference, in the order of arrival; never used again.
    pub id: u64,
    /// The pattern, as it was written.
    pub key: Octets<'static>,
    /// The value, as it was written; maps have one.
    pub value: Option<Octets<'static>>,
}

/// An entry in an index, with its value in the form that the index's users want.
#[derive(Clone, Debug)]
pub(super) struct Posting {
    pub(super) entry: Arc<Entry>,
    pub(super) made: Made,
}

/// Value of an entry, converted at load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Made {
    /// The value is not used.
    Nothing,
    /// The value is text: the entry has it.
    Text,
    /// A number.
    Int(i64),
    /// An address.
    Addr(IpAddr),
}

impl Posting {
    /// Number of the entry.
    pub(super) fn id(&self) -> u64 {
        self.entry.id
    }

    /// The value; true as a number where the entry has none.
    #[inline]
    pub(super) fn value(&self) -> Value<'static> {
        match self.made {
            Made::Int(n) => Value::Int(n),
            Made::Addr(address) => Value::Addr(address),
            Made::Text => self.entry.value.clone().map_or(Value::Int(1), Value::Str),
            Made::Nothing => Value::Int(1),
        }
    }
}
