//! HTTP/2 (RFC 9113, RFC 7541, RFC 8441) as a state machine for both sides of a connection, without sockets, clock or tasks.
//!
//! A driver owns the socket and calls:
//!
//! * [`Connection::receive`] with received bytes, until it returns that all are used and there is no event. All bytes are
//!   always used: the driver's buffer is free afterwards. While [`Connection::wants_input`] is false, no more is read until
//!   output has been sent.
//! * [`Connection::output`] and [`Connection::wrote`] for bytes to be sent, after each of the other calls.
//! * [`Connection::is_finished`]: write the remaining output, then close.
//!
//! Per stream: a head is taken right at its event ([`Connection::take_request`], [`Connection::take_response`]). Data waits
//! in the stream's own buffer ([`Connection::data`], [`Connection::take_data`]) and occupies window and budget until
//! [`Connection::consume`]. A stream stays in the table, and counts against the limit, until [`Connection::release`], also
//! after [`Event::Reset`].
//!
//! Invariants:
//! * A header block is encoded when it is appended to the output, and never taken back.
//! * Unconsumed data and windows never exceed [`Limits::receive_budget`], but for the 64 KB that RFC 9113 grants before all else.
//! * There is no queue of frames: the memory of a frame is its bytes in the stream's buffer.
//! * No split of the input changes the content of the events; data may come in other pieces.

mod connection;
mod error;
mod flow;
mod frame;
mod head;
pub mod hpack;
mod limits;
mod receive;
mod receive_control;
mod receive_head;
mod send;
mod settings;
mod stream;

pub use connection::{Connection, Event};
pub use error::{Code, Failure, Malformed};
pub use frame::PREFACE;
pub use limits::{Glitch, Limits};
pub use send::Unavailable;
pub use settings::Settings;
