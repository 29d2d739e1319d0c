//! Undoing content codings (RFC 9110 section 8.4): responses for clients that cannot take them, requests' bodies for servers that
//! cannot.
//!
//! ```text
//!  request head ──> policy::ask ──> Ask ──> head::widen (Accept-Encoding toward the server)
//!                                    │
//!  response head ──────────> policy::decide ──> Pass(reason)  ──> head::pass (Vary, what 304 and 206 say)
//!                                               Refuse        ──> the whole is asked for: bytes of two representations would be joined
//!                                               Decode(plan)  ──> head::apply, Decompressor
//!
//!  request head ──> policy::decide_request ──> Pass(reason), or Decode(plan) ──> head::apply_request, Decompressor
//!
//!  body ──> Decompressor: push, finish ──> its output, piece by piece
//! ```
//!
//! Invariants:
//! * No call makes more than [`body::PIECE_BYTES`] of output, whatever the input.
//! * When a decoder asks for input, all output that can be decoded so far has come out: a sender's pause needs no flush.
//! * Input is hostile: an error has a name ([`Flaw`]), nothing panics, and no state is larger than its format's window allows
//!   on the web (32 KB for deflate, 8 MB for zstd by RFC 9659, 16 MB for br by RFC 7932).
//! * A state counts against the [`crate::Budget`] for as long as a body holds it.

pub mod body;
mod brotli;
mod chain;
pub mod counters;
mod deflate;
mod gzip;
pub mod head;
mod inflate;
pub mod keywords;
mod place;
pub mod policy;
pub mod reason;
pub mod settings;
mod zstd;

#[cfg(test)]
mod conformance;

pub use body::{Decompressor, Fault, Limits};
pub use counters::Counters;
pub use keywords::KEYWORDS;
pub use place::Place;
pub use policy::{Ask, Decision, Plan};
pub use reason::Reason;
pub use settings::{Decompression, Effective};

use crate::coding::Coding;

/// An incremental decoder of a body.
pub trait Decoder {
    /// Decodes from the front of `input` and appends up to `room` bytes, more than 0, to `out`.
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw>;

    /// Whether the body may end here.
    fn is_complete(&self) -> bool;

    /// Begins another body.
    fn reset(&mut self);

    /// Bytes of memory held now.
    fn memory(&self) -> usize;
}

/// Progress of a push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes of the input that are done with; the rest has to be pushed again.
    pub taken: usize,
    /// The reason why it stopped.
    pub next: Next,
}

/// The reason why a decoder stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// All input was taken, and nothing more is known without further bytes.
    Input,
    /// The room is used: push again, even if there is no input left.
    Room,
    /// The body has ended; the rest of the input does not belong to it.
    Ended,
}

/// Flaw of coded bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flaw {
    /// They do not begin as the coding does.
    Format,
    /// They are none of the coding's.
    Corrupt,
    /// The checksum is that of other bytes.
    Checksum,
    /// The length at the end differs.
    Length,
    /// They end too early.
    Truncated,
    /// Bytes follow the end.
    Trailing,
    /// They want a larger window than the web allows.
    Window,
    /// They were made with a dictionary.
    Dictionary,
    /// The head of a gzip member is longer than [`gzip::MAX_HEAD_BYTES`].
    Head,
}

impl Flaw {
    /// The stable short name: `truncated`.
    pub const fn name(self) -> &'static str {
        match self {
            Flaw::Format => "bad-format",
            Flaw::Corrupt => "corrupt",
            Flaw::Checksum => "bad-checksum",
            Flaw::Length => "bad-length",
            Flaw::Truncated => "truncated",
            Flaw::Trailing => "trailing-bytes",
            Flaw::Window => "window",
            Flaw::Dictionary => "dictionary",
            Flaw::Head => "long-head",
        }
    }
}

/// A decoder of a coding; none for `identity` and `dcz`, and when there is no memory for its state.
pub fn decoder(coding: Coding) -> Option<Box<dyn Decoder>> {
    Some(match coding {
        Coding::Gzip => Box::new(gzip::Gzip::new()),
        Coding::Deflate | Coding::RawDeflate => Box::new(deflate::Deflate::new()),
        Coding::Zstd => Box::new(zstd::Zstd::new()?),
        Coding::Brotli => Box::new(brotli::Brotli::new()),
        Coding::Identity | Coding::Dcz => return None,
    })
}

/// Room of output that is tried at a time: little at first, since room is filled with zeros before, and a body of thousands
/// of empty members would pay for each.
struct Piece(usize);

impl Piece {
    const fn first() -> Piece {
        Piece(MIN_PIECE_BYTES)
    }

    /// The next piece's length, within the room that there is.
    fn next(&mut self, room: usize) -> usize {
        let bytes = self.0.min(room);
        self.0 = self.0.saturating_mul(2);
        bytes
    }
}

/// The least that is tried at a time.
const MIN_PIECE_BYTES: usize = 2048;
