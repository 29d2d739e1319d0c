//! Conformance cases for every compression engine, whatever its interface: a single list of cases. Not part of the product.
//!
//! ```text
//!  a crate with engines: an adapter for each face ──> Whole   ──> whole::CASES  ──┐
//!                                                     Streams ──> stream::CASES ──┼──> decode: decoders that share no line with
//!                                                     Reader  ──> reader::CASES ──┘    the engines
//! ```
//!
//! A case is a function and a sentence. An adapter declares its abilities (levels, a bound, room that is given); cases for
//! other abilities are skipped.
//!
//! Invariant: nothing here knows an engine, so that every crate can use it for its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a case that cannot go on fails")]

pub mod bodies;
pub mod decode;
pub mod reader;
pub mod stream;
pub mod whole;

pub use reader::Reader;
pub use stream::{Flush, Stream, Streams};
pub use whole::Whole;

/// Format of an engine's output.
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
    /// RFC 8878, frames one after the other.
    ZstdFrames,
    /// RFC 7932.
    Brotli,
    /// The bytes as they are.
    Identity,
}

/// A case: the property, and the function that checks it.
pub type Case<Face> = (&'static str, fn(&Face));

/// Tries all cases on an adapter. A failure names the case and the adapter.
fn run<Face: ?Sized>(name: &str, cases: &[Case<Face>], face: &Face) {
    for (what, case) in cases {
        // Shown where the case fails.
        println!("{name}: {what}");
        case(face);
    }
}

/// The level that an adapter calls usual: 6, or the nearest that it has.
fn usual(levels: &[u8]) -> u8 {
    levels.iter().copied().min_by_key(|level| level.abs_diff(6)).unwrap()
}

#[cfg(test)]
mod tests;
