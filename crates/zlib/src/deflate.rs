//! The compressor: `deflate` and its kin.

pub mod api;
mod header;
pub(crate) mod piece;
mod state;
mod stream;

#[cfg(test)]
mod tests;

/// zlib's head for a whole body.
pub(crate) fn zlib_head(level: u8) -> Vec<u8> {
    header::zlib(15, level, false, None)
}
