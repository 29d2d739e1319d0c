//! Actions that are understood and not built, each with the reason, or with a replacement.

use super::{ANY, ActionKind, ActionWord, BOTH, CONNECTION, CONTENT, SERVER_CONTENT, SESSION};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    later("attach-srv", SESSION, "Gives the connection to a server.", "servers connect to no one here"),
    later("expect-netscaler-cip", CONNECTION, "Reads a NetScaler header.", "NetScaler's protocol is not spoken"),
    later("ot-group", ANY | CONTENT | SERVER_CONTENT, "Traces by OpenTracing.", "traces are not sent"),
    later("send-spoe-group", BOTH | CONTENT | SERVER_CONTENT, "Asks an agent.", "SPOE is not built"),
];

const fn later(name: &'static str, sets: u16, summary: &'static str, reason: &'static str) -> ActionWord {
    ActionWord { name, sets, arguments: "...", summary, kind: ActionKind::Refused(reason) }
}
