//! Compression of heads (RFC 7541).
//!
//! The decoder writes each field as the line `name: value CR LF` after the earlier lines, which is the form of a head in
//! [`terse_message::Fields`]. The encoder appends blocks to the output; a block that was appended changes the table and
//! must be sent.

mod decode;
mod encode;
mod facts;
mod huffman;
mod integer;
mod table;

pub use decode::{Decoder, Line, Stop};
pub use encode::Encoder;

/// Size of the table before a SETTINGS frame changes it (RFC 9113 section 6.5.2), and at most.
pub const TABLE_BYTES: usize = 4096;

/// Cost of an entry in addition to its bytes (RFC 7541 section 4.1).
const ENTRY_BYTES: usize = 32;

#[cfg(test)]
mod tests;
