//! How requests are read: what is refused, and what is taken and put right.
//!
//! **Invariant:** what is taken goes on as RFC 9112 writes it, so that no server finds another message in it. A length that does not
//! count is removed, and the connection on which it came carries no other message.

use super::target::Targets;
use terse_message::Conformance;

/// What a proxy takes of requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// What targets may hold.
    pub targets: Targets,
    /// Whose word counts where the RFC leaves a choice, or HAProxy does not keep to it.
    pub conformance: Conformance,
}

impl Reading {
    /// Whether HAProxy's reading counts.
    pub(super) fn is_haproxy(self) -> bool {
        self.conformance == Conformance::HAProxy
    }
}
