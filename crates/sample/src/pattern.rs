//! Patterns that values are compared with, in ACLs and in maps.
//!
//! ```text
//! a file, or the patterns of one line        ways of matching              look-up
//!
//!   Reference  (name or number) ----------->  Way: str                 -->  Index, published through a pointer
//!     versions: entries by number, by key     Way: beg, ignoring case  -->  Index
//!                                                  ^
//!                                                  |
//!                                         Patterns of an ACL, a map
//! ```
//!
//! A [`Reference`] owns the entries. Each user of it brings a [`Way`] of matching, and all users that match in the same way
//! share one. An [`index::Index`] never changes once it is published. A change makes a new index that shares all but a few
//! hundred entries with the old ([`table`]), and a single pointer is swapped. So a look-up never waits, and a change of a
//! map of 100,000 entries copies some hundred pointers.
//!
//! Order: entries are numbered as they come. `str` and `bin` take the first of equal entries, `beg` and `ip` the longest
//! that matches, all others the first that matches; `beg` too when it ignores case.

mod entry;
mod file;
mod index;
mod lengths;
mod network;
mod numbers;
mod ordered;
mod parse;
mod patterns;
mod reference;
mod references;
mod table;
mod texts;
mod version;
mod way;

pub use entry::Entry;
pub use file::PATTERN_BYTES;
pub use patterns::Patterns;
pub use reference::{Columns, Description, MOST_ENTRIES, Reference, Refusal};
pub use references::{Change, References};
pub use way::{Found, Output, Way};

pub(crate) use parse::{hex, number};
pub(crate) use references::Use;

use crate::value::Type;

/// Method of comparing values with patterns (`-m <method>`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matching {
    /// `found`: there is a value.
    Found,
    /// `bool`: it is true.
    Bool,
    /// `int`: it lies in one of the ranges.
    Int,
    /// `ip`: it lies in one of the networks.
    Ip,
    /// `bin`: it is one of the strings, which are written in hexadecimal digits.
    Bin,
    /// `len`: its length lies in one of the ranges.
    Len,
    /// `str`: it is one of the strings.
    Str,
    /// `sub`: one of the strings is in it.
    Sub,
    /// `dir`: one of the strings is between its slashes.
    Dir,
    /// `dom`: one of the strings is between its dots.
    Dom,
    /// `end`: it ends with one of the strings.
    End,
    /// `beg`: it begins with one of the strings.
    Beg,
    /// `reg`: one of the regular expressions matches.
    Reg,
    /// `regm`: the same, and the value of a map is a template for its groups' matches.
    Regm,
    /// Method that is one of the strings; the default for methods.
    Method,
}

impl Matching {
    /// The method of that name.
    pub fn named(name: &str) -> Option<Matching> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, matching)| *matching)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(_, matching)| *matching == self);
        // Methods are compared as strings are.
        named.map_or("str", |(name, _)| name)
    }

    /// The method that values of a type are matched with when none is named.
    pub const fn of(kind: Type) -> Option<Matching> {
        match kind {
            Type::Bool => Some(Matching::Bool),
            Type::Int => Some(Matching::Int),
            Type::Addr | Type::Ipv4 | Type::Ipv6 => Some(Matching::Ip),
            Type::Str => Some(Matching::Str),
            Type::Method => Some(Matching::Method),
            Type::Any | Type::Bin => None,
        }
    }

    /// The type that it compares.
    pub const fn expects(self) -> Type {
        match self {
            Matching::Found => Type::Any,
            Matching::Bool | Matching::Int => Type::Int,
            Matching::Ip => Type::Addr,
            Matching::Bin => Type::Bin,
            Matching::Method => Type::Method,
            _ => Type::Str,
        }
    }

    /// Whether it compares texts, so that it can ignore case.
    pub const fn is_of_text(self) -> bool {
        !matches!(self, Matching::Found | Matching::Bool | Matching::Int | Matching::Ip | Matching::Bin | Matching::Len)
    }
}

const NAMES: [(&str, Matching); 14] = [
    ("found", Matching::Found),
    ("bool", Matching::Bool),
    ("int", Matching::Int),
    ("ip", Matching::Ip),
    ("bin", Matching::Bin),
    ("len", Matching::Len),
    ("str", Matching::Str),
    ("sub", Matching::Sub),
    ("dir", Matching::Dir),
    ("dom", Matching::Dom),
    ("end", Matching::End),
    ("beg", Matching::Beg),
    ("reg", Matching::Reg),
    ("regm", Matching::Regm),
];

#[cfg(test)]
mod tests;
