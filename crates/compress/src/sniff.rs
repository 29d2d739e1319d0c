//! The look at the first bytes.

/// Bytes that the look wants at most.
pub const LOOK_BYTES: usize = 4096;
