//! Compression of heads (RFC 7541).
//!
//! The decoder writes each field as the line `name: value CR LF` behind the lines before, which is how [`terse_message::Fields`] keeps a
//! head. The encoder appends blocks to the output; a block that was appended changes the table and must be sent.

mod decode;
mod encode;
mod facts;
mod huffman;
mod integer;
mod table;

pub use decode::{Decoder, Line, Stop};
pub use encode::Encoder;

/// What the table may hold before a SETTINGS frame says otherwise (RFC 9113 section 6.5.2), and at most.
pub const TABLE_BYTES: usize = 4096;

/// What an entry costs beside its bytes (RFC 7541 section 4.1).
const ENTRY_BYTES: usize = 32;

#[cfg(test)]
mod tests;
