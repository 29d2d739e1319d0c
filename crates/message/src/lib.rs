//! Messages as values: heads, lengths of bodies, and the causes of an abort.
//!
//! All types here are common to `http`, `sample`, `compress` and `proxy`. No code here knows a version of the protocol's
//! wire format, a socket, a clock or the configuration.
//!
//! Invariants:
//! * A head owns one buffer of bytes; its fields are places in it. Reading a field never allocates.
//! * Bytes put into a head by [`Fields::push`] and its siblings cannot contain CR, LF or NUL. They are replaced by blanks,
//!   so no rule of a configuration can split a message (RFC 9110 section 5.5).

pub mod abort;
pub mod body;
pub mod date;
pub mod fields;
pub mod head;
pub mod hop;
pub mod list;
pub mod malformed;
pub mod name;
pub mod protocol;
pub mod status;
pub mod text;

pub use abort::{Abort, Cause, Phase, Who};
pub use fields::Fields;
pub use head::{BodyLength, Request, Response, Version};
pub use hop::Persistence;
pub use malformed::{Conformance, Malformed};
pub use name::{FieldName, Known, KnownSet};
pub use protocol::Protocol;
