//! Fetches and aliases of log formats that need to know the stream, its proxies or its server.

use terse_sample::{Alias, Fetch};

/// The fetches.
pub const FETCHES: &[Fetch] = &[];

/// The aliases.
pub const ALIASES: &[Alias] = &[];
