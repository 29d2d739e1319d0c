//! Listener to log: the only crate that moves bytes between sockets.
//!
//! A request's phases, each in a file of [`phase`], in this order:
//!
//! ```text
//! accept -> read the head -> request rules -> choose the backend -> choose the server, queue -> connect
//!        -> send -> read the response's head -> response rules -> compression -> body -> log
//! ```
//!
//! Shape: a [`worker`] is a thread with a tokio runtime. It accepts on its own listeners, and each client's connection is a
//! task of it, a [`session`]; each request in it is a [`stream::Stream`]. The configuration is a single immutable
//! [`plan::Plan`] in an `Arc`.
//!
//! Invariants:
//! * Nothing that a request touches is shared between workers, except servers (limits, queues, health) and counters.
//! * An idle connection holds no buffer, no stream and no variables.
//! * No phase knows the version of the protocol: heads on the wire and framing are [`exchange`]'s, below it [`connection`] and [`terse_io`].
//! * Every byte that waits counts against the process-wide limit.
//! * A stream that ends early has a cause ([`terse_message::Abort`]), and the cause ends in the log.

pub mod access;
pub mod captures;
pub mod changes;
pub mod checked;
pub mod connection;
pub mod counters;
pub mod deferral;
pub mod descriptors;
pub mod effort;
pub mod evidence;
pub mod exchange;
pub mod facts;
pub mod figures;
pub mod filter;
pub mod forwarded;
pub mod gate;
pub mod inspection;
pub mod keywords;
pub mod limits;
pub mod log;
pub mod meter;
pub mod ocsp;
pub mod phase;
pub mod plan;
pub mod registry;
pub mod reply;
pub mod rules;
pub mod samples;
pub mod script;
pub mod server;
pub mod service;
pub mod session;
pub mod settings;
pub mod spares;
pub mod splice;
pub mod stick;
pub mod stream;
pub mod traceparent;
pub mod track;
#[cfg(test)]
mod trial;
pub mod tunnel;
pub mod types;
pub mod worker;

pub use keywords::KEYWORDS;

use terse_cache as cache;
use terse_io as io;
