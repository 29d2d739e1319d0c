//! Logs: where lines go, how they are framed, and what a section says about them.
//!
//! Data flow: `log` and its relatives ([`KEYWORDS`]) fill a [`LogSettings`] of each section -> the plan compiles the formats
//! ([`FormatText`]) and opens a [`Journal`] for each proxy over the process's [`Sinks`] -> each worker owns a [`Logger`] and sends
//! finished lines through it.
//!
//! Invariants:
//! * Sending never blocks a worker: sockets are told not to wait, descriptors are written by a thread of their own behind a bounded
//!   queue. A line that cannot go at once is dropped and counted ([`Sinks::dropped`]).
//! * One line is one datagram or one write.
//! * Header forms and levels as HAProxy's `log` keyword documents them; RFC 3164, RFC 5424.
//! * Nothing here knows what a line says: formats are compiled and filled elsewhere.

mod address;
mod clock;
mod formats;
mod header;
mod journal;
mod keywords;
mod level;
mod sampling;
mod sender;
mod settings;
mod sinks;
mod target;

pub use address::Address;
pub use clock::{LocalTime, Zone};
pub use formats::{CONNECT_HTTP_FORMAT, CONNECT_TCP_FORMAT, FORMAT_VARIABLES, FormatText};
pub use formats::{HTTP_CLF_FORMAT, HTTP_FORMAT, HTTPS_FORMAT, TCP_CLF_FORMAT, TCP_FORMAT};
pub use header::Form;
pub use journal::{Journal, OpenError};
pub use keywords::KEYWORDS;
pub use level::{Facility, Level};
pub use sampling::Sampling;
pub use sender::Logger;
pub use settings::{Capture, CookieCapture, HostName, LogLine, LogSettings, TrafficFormat};
pub use sinks::Sinks;
pub use target::Target;
