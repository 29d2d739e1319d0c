//! What the values of an ACL are compared with: entries of files, in the order of `-f`, then those of the line.

use super::{Matching, Way};
use crate::cast;
use crate::value::Value;
use std::sync::Arc;

/// Patterns.
#[derive(Clone, Debug)]
pub struct Patterns {
    matching: Matching,
    ways: Box<[Arc<Way>]>,
}

impl Patterns {
    /// Those that these ways of matching have in common; all of them match in that way.
    pub(crate) fn new(matching: Matching, ways: Vec<Arc<Way>>) -> Patterns {
        Patterns { matching, ways: ways.into() }
    }

    /// How values are compared.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// Whether a value matches one of them.
    #[inline]
    pub fn matches(&self, value: Value<'_>) -> bool {
        match self.matching {
            Matching::Found => true,
            Matching::Bool => value.into_bool() == Some(true),
            matching => cast::cast(value, matching.expects()).is_some_and(|value| self.ways.iter().any(|way| way.holds(&value))),
        }
    }
}
