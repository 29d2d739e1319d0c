//! Readings of requests: the forms that are refused, and those that are taken and corrected.
//!
//! **Invariant:** a request is forwarded in the form of RFC 9112, so that no server finds another message in it. A length
//! that does not count is removed, and the connection on which it came carries no other message.

use super::target::Targets;
use terse_message::Conformance;

/// Forms of requests that a proxy takes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// Bytes that targets may hold.
    pub targets: Targets,
    /// Rules that apply where the RFC leaves a choice, or HAProxy does not keep to it.
    pub conformance: Conformance,
}

impl Reading {
    /// Whether HAProxy's reading applies.
    pub(super) fn is_haproxy(self) -> bool {
        self.conformance == Conformance::HAProxy
    }
}
