//! Patterns of an ACL: entries of files, in the order of `-f`, then those of the line.

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
    /// The patterns of these ways of matching; all of them match by `matching`.
    pub(crate) fn new(matching: Matching, ways: Vec<Arc<Way>>) -> Patterns {
        Patterns { matching, ways: ways.into() }
    }

    /// Method of comparing values.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// Whether a value matches any of them.
    #[inline]
    pub fn matches(&self, value: Value<'_>) -> bool {
        match self.matching {
            Matching::Found => true,
            Matching::Bool => value.into_bool() == Some(true),
            matching => cast::cast(value, matching.expects()).is_some_and(|value| self.ways.iter().any(|way| way.holds(&value))),
        }
    }
}
