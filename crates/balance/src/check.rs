//! Health checks: periodic requests to a server, expectations of its answers, and their consequences.
//!
//! ```text
//! Probe (settings) -> Script (steps) -> attempt (sockets) -> LastCheck -> Farm::record_check -> the server's state
//! ```

mod agent;
mod attempt;
mod expect;
mod http2;
mod probe;
mod program;
pub(crate) mod protocol;
mod running;
mod schedule;
mod stream;

pub(crate) use expect::bytes_of;
pub use expect::{Expect, Expectation, FormatMatch, Pattern, Telling};
pub use probe::{Assigned, HttpRequest, Probe, ProbeKind, Script, Step, StepTls};
pub use program::{Entrance, Program, Programs};
pub use protocol::Answer;
pub use schedule::{Watchers, run};

use crate::farm::Farm;
use crate::server::Server;
use crate::state::{Event, Operation};
use std::any::Any;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use terse_sample::{ProcessStore, World};

/// View of the process for checks.
pub trait Surroundings: Send + Sync {
    /// The variables of the process.
    fn variables(&self) -> &ProcessStore;
    /// Time and randomness.
    fn world(&self) -> &dyn World;
    /// Data of the checked server for expressions.
    fn subject(&self, _farm: &Farm, _server: &Arc<Server>) -> Box<dyn Any + Send + Sync> {
        Box::new(())
    }
    /// Address and mode of a backend's entrance.
    fn entrance(&self, _farm: &Farm) -> Entrance {
        Entrance::default()
    }
    /// The name of this node (`node`).
    fn node(&self) -> String {
        String::new()
    }
}

/// Result of a check. The numbers are those of `show servers state`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum CheckStatus {
    /// No check has been made.
    #[default]
    Initial = 1,
    /// An agent has answered, without a report of whether its server is up.
    Checked = 3,
    /// Requests failed (`observe`).
    Observed = 4,
    /// The connection broke.
    SocketError = 5,
    /// Connected.
    L4Ok = 6,
    /// Did not connect in time.
    L4Timeout = 7,
    /// Could not connect.
    L4Connection = 8,
    /// Made a TLS handshake.
    L6Ok = 9,
    /// Did not make one in time.
    L6Timeout = 10,
    /// Made none.
    L6Response = 11,
    /// Did not answer in time.
    L7Timeout = 12,
    /// Answered against the expectation, or in another protocol.
    L7Response = 13,
    /// Answered as expected.
    L7Ok = 15,
    /// Answered that it takes no new clients.
    L7OkStopping = 16,
    /// Answered with a status that was not expected.
    L7Status = 17,
    /// A program could not be started, or reported failure.
    ProgramError = 18,
    /// A program exceeded its time limit.
    ProgramTimeout = 19,
    /// A program reported success.
    ProgramOk = 20,
}

impl CheckStatus {
    /// Possible results of a check: all but [`CheckStatus::Initial`].
    pub const OUTCOMES: [CheckStatus; 16] = [
        CheckStatus::Observed,
        CheckStatus::SocketError,
        CheckStatus::L4Ok,
        CheckStatus::L4Timeout,
        CheckStatus::L4Connection,
        CheckStatus::L6Ok,
        CheckStatus::L6Timeout,
        CheckStatus::L6Response,
        CheckStatus::L7Timeout,
        CheckStatus::L7Response,
        CheckStatus::L7Ok,
        CheckStatus::L7OkStopping,
        CheckStatus::L7Status,
        CheckStatus::ProgramError,
        CheckStatus::ProgramTimeout,
        CheckStatus::ProgramOk,
    ];

    /// The status of that number; an unknown one, of another version, gives [`CheckStatus::Initial`].
    pub(crate) fn of_number(number: u32) -> CheckStatus {
        CheckStatus::OUTCOMES.into_iter().find(|status| *status as u32 == number).unwrap_or_default()
    }

    /// Code in `show stat`'s column `check_status`.
    pub const fn code(self) -> &'static str {
        self.words().0
    }

    /// Text of the log and of `check_desc`.
    pub const fn text(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            CheckStatus::Initial => ("INI", "Initializing"),
            CheckStatus::Checked => ("CHECKED", "No status change"),
            CheckStatus::SocketError => ("SOCKERR", "Socket error"),
            CheckStatus::L4Ok => ("L4OK", "Layer4 check passed"),
            CheckStatus::L4Timeout => ("L4TOUT", "Layer4 timeout"),
            CheckStatus::L4Connection => ("L4CON", "Layer4 connection problem"),
            CheckStatus::L6Ok => ("L6OK", "Layer6 check passed"),
            CheckStatus::L6Timeout => ("L6TOUT", "Layer6 timeout"),
            CheckStatus::L6Response => ("L6RSP", "Layer6 invalid response"),
            CheckStatus::L7Timeout => ("L7TOUT", "Layer7 timeout"),
            CheckStatus::L7Response => ("L7RSP", "Layer7 invalid response"),
            CheckStatus::L7Ok => ("L7OK", "Layer7 check passed"),
            CheckStatus::L7OkStopping => ("L7OKC", "Layer7 check conditionally passed"),
            CheckStatus::L7Status => ("L7STS", "Layer7 wrong status"),
            CheckStatus::ProgramError => ("PROCERR", "External check error"),
            CheckStatus::ProgramTimeout => ("PROCTOUT", "External check timeout"),
            CheckStatus::ProgramOk => ("PROCOK", "External check passed"),
            CheckStatus::Observed => ("HANA", "Health analyze"),
        }
    }

    /// Number of the result in `show servers state`: 0 none, 1 neither, 2 failed, 3 passed, 4 conditionally passed.
    pub const fn result(self) -> u8 {
        match self {
            CheckStatus::Initial => 0,
            CheckStatus::Checked => 1,
            CheckStatus::L4Ok | CheckStatus::L6Ok | CheckStatus::L7Ok | CheckStatus::ProgramOk => 3,
            CheckStatus::L7OkStopping => 4,
            _ => 2,
        }
    }

    /// Whether the check passed.
    pub const fn is_pass(self) -> bool {
        self.result() >= 3
    }

    /// Whether a code of the protocol belongs to the status.
    pub const fn has_code(self) -> bool {
        // As in HAProxy, the last kinds.
        self as u8 >= CheckStatus::L7Ok as u8
    }

    /// Event for a server in that state. A server that is down does not come up only to stop.
    pub(crate) fn event(self, operation: Operation) -> Event {
        match self {
            CheckStatus::L7OkStopping if operation == Operation::Stopped => Event::Failed,
            CheckStatus::L7OkStopping => Event::PassedStopping,
            status if status.is_pass() => Event::Passed,
            _ => Event::Failed,
        }
    }
}

/// Outcome of a server's last check. Written as in the log: `, reason: ..., code: ..., info: "...", check duration:
/// ...`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LastCheck {
    /// Result.
    pub status: CheckStatus,
    /// Code of the server's answer, such as 200; 0 without one.
    pub code: u16,
    /// Details; may be empty.
    pub info: String,
    /// Duration of the check.
    pub duration: Duration,
}

impl fmt::Display for LastCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", reason: {}", self.status.text())?;
        if self.status.has_code() {
            write!(f, ", code: {}", self.code)?;
        }
        if !self.info.is_empty() {
            f.write_str(", info: \"")?;
            for letter in self.info.chars() {
                match letter {
                    '"' | '\0'..=' ' | '\x7f' if letter != ' ' => write!(f, "<{:02X}>", u32::from(letter))?,
                    letter => f.write_char(letter)?,
                }
            }
            f.write_str("\"")?;
        }
        match self.status {
            // No check was made.
            CheckStatus::Observed => Ok(()),
            _ => write!(f, ", check duration: {}ms", self.duration.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_as_in_the_log() {
        let refused = LastCheck { status: CheckStatus::L4Connection, info: "a \"b\"".into(), ..LastCheck::default() };
        assert_eq!(refused.to_string(), r#", reason: Layer4 connection problem, info: "a <22>b<22>", check duration: 0ms"#);
        let ok = LastCheck { status: CheckStatus::L7Ok, code: 200, duration: Duration::from_micros(1900), ..LastCheck::default() };
        assert_eq!(ok.to_string(), ", reason: Layer7 check passed, code: 200, check duration: 1ms");
    }

    #[test]
    fn a_server_that_is_down_cannot_stop() {
        assert_eq!(CheckStatus::L7OkStopping.event(Operation::Running), Event::PassedStopping);
        assert_eq!(CheckStatus::L7OkStopping.event(Operation::Stopped), Event::Failed);
    }
}
