//! The work itself: coders behind two faces.
//!
//! [`Coder`] is incremental, for streams; [`Whole`] takes a body at once, which libdeflate does in less time and to fewer bytes.
//! [`Pool`] keeps their states, which cost more to make than a small body costs to compress.

mod pool;

pub use pool::{Pool, Tuning};

/// What has to be decodable when a push returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Nothing: as the coder likes.
    None,
    /// All input so far.
    Sync,
    /// All input, and the body ends.
    Finish,
}

/// A coder broke. It never happens with a sound engine; the stream cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoderFault;

/// An incremental coder of one body.
pub trait Coder: Send {
    /// Takes all of `input`, appends what comes out to `out`. After `Flush::Finish` only [`Coder::reset`] may follow.
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault>;

    /// Begins another body.
    fn reset(&mut self);

    /// Gives back what memory it can do without until the next push. To be called right after `Flush::Sync`; what the coder has
    /// learnt of the body may be lost in part, so the next bytes come out larger.
    fn lighten(&mut self);

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}

/// A coder of whole bodies.
pub trait Whole: Send {
    /// Appends the coded form of `input` to `out`.
    fn code(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CoderFault>;

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}
