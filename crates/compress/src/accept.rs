//! Accept-Encoding.

/// Elements of Accept-Encoding that are read.
pub const MAX_ELEMENTS: usize = 64;
