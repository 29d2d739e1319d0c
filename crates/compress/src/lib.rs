//! The decision to compress a body, and the work of compressing.
//!
//! The phases of a response in this crate, driven by the proxy:
//!
//! ```text
//!  request head ──> policy::offer ──> Offer ──> range::guard, head::offload (edits toward the server)
//!                                       │
//!  response head ─────────────> policy::decide ──> Verdict ── Pass(reason) ──> head::apply (Vary at most)
//!                                       │              └───── Compress(plan) ─> head::apply, Compressor
//!                                       └── Look(plan): wait for the first bytes, policy::look ──> the same
//!
//!  body ──> Compressor: feed, pause, finish ──> output in place, or a Job of the offload queue to wait for
//! ```
//!
//! A job goes to the software of [`coder::ENGINES`], or, where an `engine` section is set, first to a [`device::Device`].
//!
//! Invariants:
//! * Policy, heads and coders are pure: no sockets, threads, clocks or environment. Only [`offload`] has threads, and
//!   [`memory::Raiser`] a single one; they and [`spent`] read clocks.
//! * Every response that is not compressed has a single [`Reason`].
//! * All bytes that the server sent before a pause can be decoded by the client once the pause was reported
//!   ([`Compressor::pause`]).
//! * No client joins bytes of two representations: [`range`] writes the rules down.
//! * No input of a peer panics here.
//! * Memory that a body needs, for collected bytes and a coder's state, counts against a [`Budget`]; a refusal costs bytes on
//!   the wire, never the response. Beside it there is only output that was not taken yet, and the few idle states of a
//!   [`Pool`].

pub mod accept;
pub mod agent;
pub mod body;
pub mod budget;
pub mod coder;
pub mod coding;
mod collected;
pub mod counters;
pub mod decode;
pub mod device;
pub mod dictionary;
pub mod engine;
pub mod etag;
pub mod head;
mod idle;
pub mod keywords;
pub mod memory;
mod named;
pub mod offload;
pub mod pace;
pub mod policy;
pub mod range;
pub mod reason;
pub mod settings;
pub mod slots;
pub mod sniff;
pub mod spent;

#[cfg(test)]
mod testing;

pub use body::{Compressor, Fault, Output, Step, Workplace};
pub use budget::{Budget, Limit, Within};
pub use coder::{Pool, Tuning};
pub use coding::{Coding, Level};
pub use counters::{Counters, Rate};
pub use device::Device;
pub use engine::{EngineId, EngineSettings};
pub use idle::Idle;
pub use keywords::KEYWORDS;
pub use memory::{Memory, Recall};
pub use offload::{Hand, Job, Queue};
pub use pace::Pace;
pub use policy::{Decision, Hop, Layer, Link, Load, Mode, Offer, Plan, Verdict};
pub use reason::Reason;
pub use settings::{Compression, Effective, Process};
