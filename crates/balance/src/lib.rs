//! Servers: the choice of a server for a request, its queues, and its health.
//!
//! A backend's servers are a [`Farm`]. Its configuration ([`FarmSettings`]) never changes. What changes at run time
//! (health, administrative state, weights, connections in use, counters) is in atomics of the [`Server`]s, so that all
//! workers share one farm. The set of servers changes too: see [`membership`].
//!
//! A request's way through here:
//!
//! ```text
//! Farm::find (cookie) -> Farm::claim -> Grant::Now(Claim)         connect
//!                                    -> Grant::Wait(Waiter)       await: Ok(Claim) or Retry (choose again)
//!                                    -> Grant::Full | NoServer    another server, or 503
//! Farm::mark (Set-Cookie) on the response; dropping the Claim frees the slot and wakes the next waiter
//! ```
//!
//! Invariants:
//! * Choosing, claiming and releasing take no lock unless the server has a `maxconn` that is reached.
//! * A slot is held by exactly one [`Claim`], also while it travels to a waiter: dropping either at any time loses none.
//! * A server's state changes only through the pure transitions of [`state`], under one lock of the farm. The order
//!   that the algorithms walk is rebuilt there and swapped, never edited.
//! * No clock is read on the request path: changes and checks bring their time as an argument.

pub mod address;
mod aim;
pub mod algorithm;
pub mod announcement;
mod change;
pub mod check;
pub mod counters;
pub mod destination;
pub mod durations;
pub mod exhaustion;
pub mod farm;
#[cfg(test)]
mod fixture;
pub mod guid;
pub mod idle;
pub mod keywords;
pub mod membership;
pub mod news;
pub mod persistence;
pub mod queue;
pub mod report;
pub mod restore;
pub mod server;
pub mod settings;
pub mod signature;
mod slot;
pub mod socks4;
pub mod state;
pub mod table;

pub use address::{Address, connect_abstract};
pub use aim::Aim;
pub use algorithm::Key;
pub use announcement::{Announcement, AnnouncementVersion, Announcer, Manner, TlsFields};
pub use counters::{Count, Counters};
pub use destination::{Destination, Port};
pub use durations::{Durations, Span};
pub use farm::{Ending, Ends, Farm, FarmContext, Journal, Level};
pub use keywords::KEYWORDS;
pub use membership::{NotAdded, NotRemoved, NotRenamed, Picked, Servers, Wardens};
pub use persistence::{Affinity, CookieFound, CookieSent};
pub use queue::{Claim, Grant, Precedence, Retry, Waiter, Want};
pub use server::Server;
pub use settings::{FarmSettings, Resolver, ServerSettings};
pub use state::{Admin, AdminOrder, Operation, State};
