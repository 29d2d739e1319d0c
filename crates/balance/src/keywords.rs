//! The keywords of backends that concern servers.

use terse_config::Keyword;

/// The table.
pub const KEYWORDS: &[Keyword] = &[];
