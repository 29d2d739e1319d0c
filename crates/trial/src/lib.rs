//! What every compression engine has to pass, behind whatever face it has: one list of cases. Not part of the product.
//!
//! ```text
//!  a crate with engines: an adapter for each face ──> Whole   ──> whole::CASES  ──┐
//!                                                     Streams ──> stream::CASES ──┼──> decode: decoders that share no line with
//!                                                     Reader  ──> reader::CASES ──┘    the engines
//! ```
//!
//! A case is a function and a sentence. A face says what it can (levels, a bound, room that is given); what it has not is passed by.
//!
//! Invariant: nothing here knows an engine, so that every crate can use it for its own.

#![allow(clippy::unwrap_used, reason = "a case that cannot go on fails")]

pub mod bodies;
pub mod decode;
pub mod reader;
pub mod stream;
pub mod whole;

pub use reader::Reader;
pub use stream::{Flush, Stream, Streams};
pub use whole::Whole;

/// What an engine makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// RFC 1952, one member whose head has no optional fields.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 1951.
    Raw,
    /// RFC 8878, one frame.
    Zstd,
    /// RFC 8878, frames one behind the other.
    ZstdFrames,
    /// RFC 7932.
    Brotli,
    /// The bytes as they are.
    Identity,
}

/// A case: what holds, and the function that sees to it.
pub type Case<Face> = (&'static str, fn(&Face));

/// Tries all cases on one face. What fails says which and whose.
fn run<Face: ?Sized>(name: &str, cases: &[Case<Face>], face: &Face) {
    for (what, case) in cases {
        // Shown where the case fails.
        println!("{name}: {what}");
        case(face);
    }
}

/// A level that a face calls usual: 6, or the nearest that it has.
fn usual(levels: &[u8]) -> u8 {
    levels.iter().copied().min_by_key(|level| level.abs_diff(6)).unwrap()
}

#[cfg(test)]
mod tests;
