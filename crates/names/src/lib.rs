//! Names that become addresses at run time: `resolvers` sections, and the effects of their answers.
//!
//! ```text
//! ResolversSettings (a section) -> Resolvers (its name servers, memory) -> Line (a name server: sockets, questions in flight, counters)
//! servers with `resolvers` -> Watches (names, each asked for once) -> records, assignment -> Farm::set_address, Farm::set_resolved
//! `do-resolve` in rules    -> Resolvers::address
//! ```
//!
//! Messages are read and written by a library; the questions, the times at which they are repeated, and the choice of
//! answers are decided here.
//!
//! Invariants:
//! * An answer counts if it comes from the name server that was asked, with the number and the name of the question.
//! * Sockets are the control thread's, one for a name server, whichever thread asks ([`run`]).
//! * All input from a name server is bounded: bytes of a message, records of an answer, steps of a chain of aliases.
//! * Only addresses of servers change; the plan does not.

mod assignment;
mod client;
mod counters;
mod keywords;
mod known;
mod line;
mod message;
mod records;
mod sections;
mod settings;
mod watch;

pub use client::{Families, Resolvers, Status};
pub use counters::COUNT_NAMES;
pub use keywords::KEYWORDS;
pub use sections::settle;
pub use settings::{FamilySettings, NameServer, ResolversSettings, ResolversUses};
pub use watch::run;
