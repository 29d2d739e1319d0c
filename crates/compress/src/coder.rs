//! The work itself: coders with three interfaces.
//!
//! A [`Coder`] is incremental, for streams; a whole body at once goes through [`Engine::whole`], which libdeflate does in
//! less time and to fewer bytes, or, where that would hold a thread for long, through [`Parts`]. [`Pool`] keeps their states,
//! which cost more to make than a small body costs to compress.
//!
//! [`ENGINES`] has an entry for each coding: a new coding adds an entry here and an entry in [`crate::coding::CODINGS`].

mod blocks;
mod brotli;
pub mod dcz;
mod deflate;
pub mod fast;
mod frame;
mod identity;
pub mod names;
mod parts;
mod pool;
mod primed;
mod stream;
mod whole;
mod zstd;

#[cfg(test)]
pub(crate) mod conformance;

pub use fast::Fast;
pub use parts::{MakeParts, Parts};
pub use pool::{Pool, Tuning};

use crate::coding::{Coding, Level};
use frame::Format;
use std::sync::Arc;

/// The bytes that have to be decodable when a push returns.
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

/// The part of the body that a coder keeps when it makes itself small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Its last bytes, so that later bytes can still refer to them: [`Coder::history_memory`].
    History,
    /// Only the bytes that the format demands.
    Nothing,
}

/// An incremental coder of a body.
pub trait Coder: Send {
    /// Takes all of `input`, appends the output to `out`. After `Flush::Finish` only [`Coder::reset`] may follow.
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault>;

    /// Bytes whose coding a push of so many causes: of a coder that keeps blocks those of the blocks that they fill, which may be none, or many
    /// that it was given before.
    fn due(&self, bytes: usize, _flush: Flush) -> usize {
        bytes
    }

    /// Begins another body.
    fn reset(&mut self);

    /// Gives back the memory that it can do without until the next push, which will come out larger for it. Only to be called
    /// when the last push was flushed.
    fn lighten(&mut self, keep: Keep);

    /// Whether a push of a few bytes takes a short time in any case. Others keep bytes until they are a block, and code that in a single push,
    /// which may take many milliseconds: [`Coder::due`].
    fn is_prompt(&self) -> bool {
        false
    }

    /// Whether the time of a push goes with its bytes alone, so that it can be done in slices of some microseconds.
    fn is_steady(&self) -> bool {
        self.is_prompt()
    }

    /// Bytes of a body up to which it had better be pushed at once, where all of it is there.
    fn whole_bytes(&self) -> usize {
        0
    }

    /// Whether its level can change while it goes on.
    fn can_ease(&self) -> bool {
        false
    }

    /// Tries less hard from the next push on, or harder again, up to its own level, in steps that are the coder's. Only to be called when the last
    /// push was flushed.
    fn ease(&mut self, _less: bool) {}

    /// Whether its level is below that which it was made for.
    fn is_eased(&self) -> bool {
        false
    }

    /// Bytes of memory held now.
    fn memory(&self) -> usize;

    /// Bytes of memory held while pushing.
    fn full_memory(&self) -> usize;

    /// Bytes of memory held after [`Coder::lighten`] with [`Keep::History`].
    fn history_memory(&self) -> usize;
}

/// Makes an incremental coder of a body, whose length may be known.
pub type MakeStream = fn(Level, Option<u64>, &Arc<Pool>) -> Box<dyn Coder>;

/// Appends the coded form of a whole body to a buffer.
pub type CodeWhole = fn(&[u8], Level, &Pool, &mut Vec<u8>) -> Result<(), CoderFault>;

/// Implementation of a coding.
pub struct Engine {
    /// The coding.
    pub coding: Coding,
    /// Its incremental face.
    pub stream: MakeStream,
    /// Its face for whole bodies.
    pub whole: CodeWhole,
    /// Its interface for large bodies.
    pub parts: MakeParts,
    /// Nanoseconds a byte of the incremental coder on text, by level; levels beyond the last cost as much as the last.
    pub stream_cost_ns: &'static [u16],
    /// The same for whole bodies.
    pub whole_cost_ns: &'static [u16],
    /// The same for a body that is coded in a much quicker way than others at its level; `None` if it is not.
    pub quick_cost_ns: fn(Level, &[u8]) -> Option<u16>,
}

/// The engines, in the order of [`Coding`].
pub const ENGINES: &[Engine] = &[
    deflate_engine(
        Coding::Gzip,
        |level, _, pool| deflate::stream(Format::Gzip, level, pool),
        |input, level, pool, out| whole::code(Format::Gzip, input, level, pool, out),
        |input, level, pool| parts::own(Format::Gzip, input, level, pool),
    ),
    deflate_engine(
        Coding::Deflate,
        |level, _, pool| deflate::stream(Format::Zlib, level, pool),
        |input, level, pool, out| whole::code(Format::Zlib, input, level, pool, out),
        |input, level, pool| parts::own(Format::Zlib, input, level, pool),
    ),
    deflate_engine(
        Coding::RawDeflate,
        |level, _, pool| deflate::stream(Format::Raw, level, pool),
        |input, level, pool, out| whole::code(Format::Raw, input, level, pool, out),
        |input, level, pool| parts::own(Format::Raw, input, level, pool),
    ),
    Engine {
        coding: Coding::Zstd,
        stream: zstd::stream,
        whole: zstd::whole,
        parts: zstd::parts,
        stream_cost_ns: zstd::COST_NS,
        whole_cost_ns: zstd::COST_NS,
        quick_cost_ns: |_, _| None,
    },
    Engine {
        coding: Coding::Brotli,
        stream: brotli::stream,
        whole: brotli::whole,
        parts: |body, level, pool| Some(brotli::parts(body, level, pool)),
        stream_cost_ns: brotli::COST_NS,
        whole_cost_ns: brotli::COST_NS,
        quick_cost_ns: |_, _| None,
    },
    Engine {
        coding: Coding::Identity,
        stream: |_, _, _| Box::new(identity::Identity),
        whole: |input, _, _, out| {
            out.extend_from_slice(input);
            Ok(())
        },
        parts: |_, _, _| None,
        stream_cost_ns: &[0],
        whole_cost_ns: &[0],
        quick_cost_ns: |_, _| None,
    },
    // Its coder needs a dictionary, which these faces have no place for: dcz::stream makes it.
    Engine {
        coding: Coding::Dcz,
        stream: |_, _, _| Box::new(dcz::Lacking),
        whole: |_, _, _, _| Err(CoderFault),
        parts: |_, _, _| None,
        stream_cost_ns: zstd::COST_NS,
        whole_cost_ns: zstd::COST_NS,
        quick_cost_ns: |_, _| None,
    },
];

const fn deflate_engine(coding: Coding, stream: MakeStream, whole: CodeWhole, parts: MakeParts) -> Engine {
    let (stream_cost_ns, whole_cost_ns) = (&deflate::COST_NS, &whole::COST_NS);
    Engine { coding, stream, whole, parts, stream_cost_ns, whole_cost_ns, quick_cost_ns: whole::quick_cost_ns }
}

impl Engine {
    /// The engine of a coding.
    pub const fn of(coding: Coding) -> &'static Engine {
        &ENGINES[coding as usize]
    }

    /// About how long a stream's push takes, in nanoseconds.
    pub fn stream_ns(&self, level: Level, bytes: usize) -> u64 {
        cost(self.stream_cost_ns, level, bytes)
    }

    /// About how long a whole body takes, in nanoseconds.
    pub fn whole_ns(&self, level: Level, bytes: usize) -> u64 {
        cost(self.whole_cost_ns, level, bytes)
    }

    /// About how long this whole body takes, in nanoseconds.
    pub fn body_ns(&self, level: Level, body: &[u8]) -> u64 {
        match (self.quick_cost_ns)(level, body) {
            Some(ns) => u64::from(ns).saturating_mul(body.len() as u64),
            None => self.whole_ns(level, body.len()),
        }
    }
}

fn cost(table: &[u16], level: Level, bytes: usize) -> u64 {
    let ns = table.get(usize::from(level.0)).or(table.last()).copied().unwrap_or(0);
    u64::from(ns).saturating_mul(bytes as u64)
}
