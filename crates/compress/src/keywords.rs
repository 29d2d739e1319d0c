//! The configuration's words.

use terse_config::Keyword;

/// The table, for the program to join with the others.
pub const KEYWORDS: &[Keyword] = &[];
