//! Answers about certificates' states (OCSP), which clients are shown beside them.

use super::certificate::{command, file, reason};
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use terse_tls::Refusal;

pub(super) const COMMANDS: &[Command] = &[
    command(
        "show ssl ocsp-response",
        "show ssl ocsp-response [[text|base64] <id|path>]",
        "list answers about certificates' states, or show one",
        Level::Operator,
        show,
    ),
    command(
        "set ssl ocsp-response",
        "set ssl ocsp-response <response|payload>",
        "take an answer about a certificate's state, in base64",
        Level::Admin,
        set,
    ),
    command(
        "show ssl ocsp-updates",
        "show ssl ocsp-updates",
        "list answers that are fetched, and what came of it",
        Level::Operator,
        |call| Ok(Answer::Text(call.context.plan.vault.list_updates())),
    ),
    command(
        "update ssl ocsp-response",
        "update ssl ocsp-response <file>",
        "fetch the answer about a certificate's state now",
        Level::Admin,
        update,
    ),
];

fn update(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'update ssl ocsp-response' expects a filename")?;
    match call.context.plan.vault.update_now(name) {
        Ok(()) => Ok(Answer::Done),
        Err(Refusal::Unknown) => {
            Err(Message::error("Unknown certificate! 'update ssl ocsp-response' expects an already known certificate file name."))
        }
        Err(refusal) => Err(Message::error(reason(refusal))),
    }
}

fn show(call: &mut Call<'_>) -> Outcome {
    let vault = &call.context.plan.vault;
    let (in_base64, name) = match (call.arg(0), call.arg(1)) {
        ("", _) => return Ok(Answer::Text(vault.list_answers())),
        ("base64", name) => (true, name),
        ("text", name) if !name.is_empty() => (false, name),
        (name, _) => (false, name),
    };
    let unknown = || Message::error("Certificate ID or path does not match any certificate.");
    vault.show_answer(name, in_base64).map(Answer::Text).ok_or_else(unknown)
}

fn set(call: &mut Call<'_>) -> Outcome {
    let payload = call.client.payload.take().unwrap_or_else(|| call.arg(0).to_owned().into());
    if payload.is_empty() {
        return Err(Message::error("'set ssl ocsp-response' expects response in base64 encoding."));
    }
    match call.context.plan.vault.set_answer(&payload) {
        Ok(()) => Ok(Answer::Said(Message::info("OCSP Response updated!"))),
        Err(refusal) => Err(Message::error(reason(refusal))),
    }
}
