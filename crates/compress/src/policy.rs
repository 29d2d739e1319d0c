//! The decision: a pure function of the request's head, the response's head, the first bytes, the configuration and the load.
//!
//! It is taken in steps, because the facts come in steps: [`offer`] reads the request before it is edited and sent on; [`decide`]
//! reads the response's head; where that leaves it open, [`look`] reads the first bytes. [`decide_request`] is the same for a
//! request's own body.
//!
//! Facts of the resource are judged before facts of the client. So a verdict knows whether the answer would have been another
//! one for another Accept-Encoding: exactly then the response needs `Vary: Accept-Encoding` (RFC 9110 section 12.5.5),
//! compressed or not.

mod facts;
pub mod hop;
mod offer;
mod request;
mod response;

pub use hop::{Body, Hop, Layer, Link, Mode, hop};
pub use offer::{Offer, offer};
pub use request::{decide_request, look_request};
pub use response::{decide, look, usage};

pub(crate) use facts::{agent_is_broken, codings, forbids_transform, has_directive, has_prefix, is_grpc};
pub use facts::{is_coded, media_type};
pub(crate) use offer::Method;

use crate::coding::{Coding, Level};
use crate::pace::Pace;
use crate::reason::Reason;

/// The compression to apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The coding.
    pub coding: Coding,
    /// The level.
    pub level: Level,
}

/// The decision about a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is compressed.
    Compress(Plan),
    /// It is compressed if its first bytes do not say otherwise: wait for some, then ask [`look`].
    Look(Plan),
    /// It stays as it is.
    Pass(Reason),
    /// It is the answer to HEAD: there is no body, and the head is that of the compressed answer to GET (RFC 9110 section 9.3.2).
    Head(Plan),
}

/// A decision, and whether it hangs on Accept-Encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The decision about the body.
    pub decision: Decision,
    /// Whether another Accept-Encoding could have led to another decision.
    pub varies: bool,
}

/// Load of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Bytes that entered coders in the last second, process-wide.
    pub bytes_per_second: u64,
    /// The part of its time that the thread was idle, in percent.
    pub idle_percent: u8,
    /// Whether the limit of memory is reached.
    pub memory_full: bool,
    /// Time that there is for a body.
    pub pace: Pace,
}

impl Load {
    /// Nothing to do.
    pub const IDLE: Load = Load { bytes_per_second: 0, idle_percent: 100, memory_full: false, pace: Pace::Steady };
}

impl Verdict {
    pub(crate) const fn pass(reason: Reason) -> Verdict {
        Verdict { decision: Decision::Pass(reason), varies: false }
    }

    /// Why the body stays as it is.
    pub const fn reason(&self) -> Option<Reason> {
        match self.decision {
            Decision::Pass(reason) => Some(reason),
            Decision::Head(_) => Some(Reason::Head),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
