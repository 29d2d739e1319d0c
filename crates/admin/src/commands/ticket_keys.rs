//! Keys of tickets that processes share.

use super::certificate::command;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use terse_tls::BadTicketKey;

pub(super) const COMMANDS: &[Command] = &[
    command("show tls-keys", "show tls-keys [<file>|#<id>|*]", "list files of keys of tickets, or show keys", Level::Admin, show),
    command(
        "set ssl tls-key",
        "set ssl tls-key <file>|#<id> <key>",
        "take the next key of tickets, in base64; what was the next is used from now on",
        Level::Admin,
        set,
    ),
];

fn show(call: &mut Call<'_>) -> Outcome {
    let vault = &call.context.plan.vault;
    match call.arg(0) {
        "" => Ok(Answer::Text(vault.list_ticket_keys())),
        which => vault.show_ticket_keys(which).map(Answer::Text).ok_or_else(|| unknown("show tls-keys")),
    }
}

fn set(call: &mut Call<'_>) -> Outcome {
    let (which, key) = (call.arg(0), call.arg(1));
    if key.is_empty() {
        return Err(Message::error("'set ssl tls-key' expects a filename and the new TLS key in base64 encoding."));
    }
    match call.context.plan.vault.turn_ticket_keys(which, key.as_bytes()) {
        None => Err(unknown("set ssl tls-key")),
        Some(Err(BadTicketKey::Encoding)) => Err(Message::error("'set ssl tls-key' received invalid base64 encoded TLS key.")),
        Some(Err(BadTicketKey::Size)) => Err(Message::error("'set ssl tls-key' received a key of wrong size.")),
        Some(Ok(())) => Ok(Answer::Said(Message::info("TLS ticket key updated!"))),
    }
}

fn unknown(name: &str) -> Message {
    Message::error(format!("'{name}' unable to locate referenced filename"))
}
