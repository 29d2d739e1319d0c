//! Stick tables that several processes share: `peers` sections, by HAProxy's peers protocol, version 2.1.
//!
//! ```text
//! workers --touch--> Table::changed --> Recent (of a table, in order) --+--> Session <--> a peer
//!                                                                       +--> Session <--> another peer
//! Session --learn--> Table
//! ```
//!
//! [`run`] is one task on the control thread; each connection is a task of it around a `Session`, which uses no socket
//! and no clock.
//!
//! Invariants:
//! * Data that was learnt from a peer is not passed on. Changes made here are sent to every peer, and again after a
//!   connection broke, from the last update that the peer has acknowledged.
//! * An entry waits for a peer at most once: its data at the time of sending is sent. A table's list of changes is
//!   never longer than the table may be, and expired entries leave it, acknowledged or not.
//! * Between two processes there is one connection.
//! * Everything that a peer sends is bounded: a message, a table's number, a name.

mod definition;
mod group;
mod hello;
mod herald;
mod integer;
mod lesson;
mod link;
mod message;
mod recent;
mod run;
mod session;
mod settings;
mod update;

pub use group::{Group, Peer, SharedTable};
pub use lesson::Stage;
pub use link::{Door, Stream};
pub use run::{Listening, ListeningSocket, descriptors, run};
pub use settings::{PeerLine, PeersSettings};
