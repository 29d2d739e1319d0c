//! Logs: targets of lines, their framing, and the settings of a section.
//!
//! Data flow: `log` and its relatives ([`KEYWORDS`]) fill a [`LogSettings`] of each section -> the plan compiles the formats
//! ([`FormatText`]) and opens a [`Journal`] for each proxy over the objects that targets name (a [`Directory`]) -> each
//! worker owns a [`Logger`] and sends finished lines through it. Slow work (servers over streams, messages from elsewhere) is
//! the [`Courier`]'s.
//!
//! ```text
//!   worker -> Logger --> datagram socket
//!                   \--> Sinks: a queue and a thread for each descriptor
//!                   \--> Ring --> Courier: a Carrier for each server over a stream
//!                                    ^
//!   syslog over UDP or TCP ----------+--> Forwarder -> Logger -> ...
//! ```
//!
//! Invariants:
//! * Sending never blocks a worker: sockets are told not to wait, descriptors are written by a thread of their own from a
//!   bounded queue. A line that cannot go at once is dropped and counted ([`Sinks::dropped`]).
//! * A line is a single datagram or a single write.
//! * Header forms and levels as HAProxy's `log` keyword documents them; RFC 3164, RFC 5424.
//! * This module does not know the content of a line: formats are compiled and filled elsewhere.

mod address;
mod balancer;
mod carrier;
mod clock;
mod courier;
mod directory;
mod formats;
mod forward;
mod header;
mod journal;
mod keywords;
mod level;
mod message;
mod origin;
mod profile;
mod ring;
mod rings;
mod sampling;
mod sender;
mod settings;
mod sinks;
mod target;
mod time;

pub use address::Address;
pub use carrier::{Carrier, Peer};
pub use clock::{LocalTime, Zone};
pub use courier::{Courier, Intake, IntakeSocket, Syslog};
pub use directory::{Directory, Missing, ServerOfRing};
pub use formats::{CONNECT_HTTP_FORMAT, CONNECT_TCP_FORMAT, FAILURE_FORMAT, FORMAT_VARIABLES, FormatText};
pub use formats::{HTTP_CLF_FORMAT, HTTP_FORMAT, HTTPS_FORMAT, TCP_CLF_FORMAT, TCP_FORMAT};
pub use forward::KEYWORDS as FORWARD_KEYWORDS;
pub use forward::{DatagramBind, ForwardSettings, Forwarder, HostRule, Received};
pub use header::Form;
pub use journal::{Journal, OpenError};
pub use keywords::KEYWORDS;
pub use level::{Facility, Level};
pub use origin::{Origin, Steps};
pub use profile::KEYWORDS as PROFILE_KEYWORDS;
pub use profile::{Profile, ProfileSettings, ProfileUse, ProfileUses, Step, StepSettings};
pub use ring::{Framing, Reader, Ring};
pub use rings::KEYWORDS as RING_KEYWORDS;
pub use rings::RingSettings;
pub use sampling::Sampling;
pub use sender::{Line, Logger};
pub use settings::{Capture, CookieCapture, HostName, LogLine, LogSettings, TrafficFormat};
pub use sinks::Sinks;
pub use target::Target;
