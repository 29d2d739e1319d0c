//! The decompressor: `inflate` and its kin.
//!
//! ```text
//!   api ──> stream: head and tail of the body ──> terse_deflate::decode: the body
//!    │        └──> wrap: gzip's head, field by field
//!    └────> back: inflateBack, whose window is the program's own room
//! ```

pub mod api;
pub mod back;
mod state;
mod stream;
mod wrap;

#[cfg(test)]
mod tests;

use std::ffi::CStr;
use terse_deflate::decode::Flaw;

/// zlib's message for a flaw.
fn message(flaw: Flaw) -> &'static CStr {
    match flaw {
        Flaw::Block => c"invalid block type",
        Flaw::Stored => c"invalid stored block lengths",
        Flaw::Counts => c"too many length or distance symbols",
        Flaw::LengthCodes => c"invalid code lengths set",
        Flaw::Repeat => c"invalid bit length repeat",
        Flaw::NoEnd => c"invalid code -- missing end-of-block",
        Flaw::SymbolCodes => c"invalid literal/lengths set",
        Flaw::DistanceCodes => c"invalid distances set",
        Flaw::Symbol => c"invalid literal/length code",
        Flaw::DistanceSymbol => c"invalid distance code",
        Flaw::Distance => c"invalid distance too far back",
    }
}
