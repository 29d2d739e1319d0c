//! Certificates exchanged while the process runs: a transaction, which ends by a commit or an abort.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write as _;
use terse_tls::Refusal;

pub(super) const COMMANDS: &[Command] = &[
    command("set ssl cert", "set ssl cert <file> <payload>", "take a certificate, to be committed", Level::Admin, set),
    command("commit ssl cert", "commit ssl cert <file>", "use the certificate that was taken", Level::Admin, commit),
    command("abort ssl cert", "abort ssl cert <file>", "forget the certificate that was taken", Level::Admin, abort),
    command("new ssl cert", "new ssl cert <file>", "make room for a certificate", Level::Admin, make),
    command("del ssl cert", "del ssl cert <file>", "forget a certificate that nobody uses", Level::Admin, remove),
    command("show ssl cert", "show ssl cert [[*]<file>]", "list certificates, or show one", Level::Operator, show),
    command("dump ssl cert", "dump ssl cert [*]<file>", "show a certificate and its key in PEM", Level::Admin, dump),
    command("add ssl jwt", "add ssl jwt <file>", "let a certificate verify and decrypt tokens", Level::Admin, allow),
    command("del ssl jwt", "del ssl jwt <file>", "let a certificate be none for tokens", Level::Admin, forbid),
    command("show ssl jwt", "show ssl jwt", "list the certificates for tokens", Level::Operator, allowed),
];

pub(super) const fn command(
    name: &'static str,
    usage: &'static str,
    summary: &'static str,
    level: Level,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, usage, summary, level, run }
}

/// The file of a command, in its first argument.
pub(super) fn file<'a>(call: &Call<'a>, missing: &str) -> Result<&'a str, Message> {
    match call.arg(0) {
        "" => Err(Message::error(missing)),
        name => Ok(name),
    }
}

/// Answer to a commit, which makes new contexts.
pub(super) fn committed(name: &str, outcome: Result<usize, Refusal>) -> Outcome {
    let reason = match outcome {
        Ok(count) => return Ok(Answer::Text(format!("Committing {name}{}\nSuccess!\n", ".".repeat(count)))),
        Err(Refusal::Contexts(reason)) => return Ok(Answer::Text(format!("Committing {name}\n{reason}\nFailed!\n"))),
        Err(Refusal::NoTransaction) => "No ongoing transaction! !".into(),
        Err(Refusal::Other(ongoing)) => about(&ongoing, "set", name),
        Err(refusal) => reason(refusal),
    };
    Err(Message::error(format!("{reason}\nCan't commit {name}!")))
}

/// Answer to an abort.
pub(super) fn aborted(name: &str, outcome: Result<(), Refusal>) -> Outcome {
    match outcome {
        Ok(()) => Ok(Answer::Said(Message::info(format!("Transaction aborted for certificate '{name}'!")))),
        Err(Refusal::NoTransaction) => Err(Message::error("No ongoing transaction!")),
        Err(Refusal::Other(ongoing)) => Err(Message::error(about(&ongoing, "abort a transaction for", name))),
        Err(refusal) => Err(Message::error(reason(refusal))),
    }
}

pub(super) fn about(ongoing: &str, what: &str, name: &str) -> String {
    format!("The ongoing transaction is about '{ongoing}' but you are trying to {what} '{name}'")
}

/// Message of a refusal without a text of its own.
pub(super) fn reason(refusal: Refusal) -> String {
    match refusal {
        Refusal::Payload(reason) | Refusal::Mismatch(reason) | Refusal::Contexts(reason) => reason,
        Refusal::NoTransaction => "No ongoing transaction!".into(),
        Refusal::Other(ongoing) => format!("The ongoing transaction is about '{ongoing}'"),
        Refusal::Unknown => "It doesn't exist!".into(),
        Refusal::Exists => "It already exists!".into(),
        Refusal::Ongoing => "There is an ongoing transaction about it".into(),
        Refusal::Used => "It is in use!".into(),
    }
}

/// A list of files, with the one that is being changed before them.
pub(super) fn listed<'n>(ongoing: Option<&str>, all: impl Iterator<Item = &'n str>) -> String {
    let mut text = ongoing.map(|name| format!("# transaction\n*{name}\n")).unwrap_or_default();
    text.push_str("# filename\n");
    all.for_each(|name| {
        let _ = writeln!(text, "{name}");
    });
    text
}

fn set(call: &mut Call<'_>) -> Outcome {
    let payload = call.client.payload.take();
    let (name, Some(payload)) = (call.arg(0), payload.filter(|_| !call.arg(0).is_empty())) else {
        return Err(Message::error("'set ssl cert' expects a filename and a certificate as a payload"));
    };
    let reason = match call.context.plan.vault.set_certificate(name, &payload) {
        Ok((name, true)) => return Ok(Answer::Said(Message::info(format!("Transaction created for certificate {name}!")))),
        Ok((name, false)) => return Ok(Answer::Said(Message::info(format!("Transaction updated for certificate {name}!")))),
        Err(Refusal::Other(ongoing)) => about(&ongoing, "set", name),
        Err(Refusal::Unknown) => "Can't replace a certificate which is not referenced by the configuration!".into(),
        Err(refusal) => format!("{}\nCan't load the payload", reason(refusal)),
    };
    Err(Message::error(format!("{reason}\nCan't update {name}!")))
}

fn commit(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'commit ssl cert' expects a filename")?;
    committed(name, call.context.plan.vault.commit_certificate(name))
}

fn abort(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'abort ssl cert' expects a filename")?;
    aborted(name, call.context.plan.vault.abort_certificate(name))
}

fn make(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'new ssl cert' expects a filename")?;
    match call.context.plan.vault.new_certificate(name) {
        Ok(()) => Ok(Answer::Said(Message::info(format!("New empty certificate store '{name}'!")))),
        Err(_) => Err(Message::error(format!("Certificate '{name}' already exists!"))),
    }
}

fn remove(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'del ssl cert' expects a certificate name")?;
    let reason = match call.context.plan.vault.delete_certificate(name) {
        Ok(()) => return Ok(Answer::Said(Message::info(format!("Certificate '{name}' deleted!")))),
        Err(Refusal::Ongoing) => format!("ongoing transaction for the certificate '{name}'"),
        Err(Refusal::Unknown) => format!("certificate '{name}' doesn't exist!"),
        Err(_) => format!("certificate '{name}' in use, can't be deleted!"),
    };
    Err(Message::error(format!("Can't remove the certificate: {reason}")))
}

fn show(call: &mut Call<'_>) -> Outcome {
    let vault = &call.context.plan.vault;
    match call.arg(0) {
        "" => {
            let names = vault.certificates();
            Ok(Answer::Text(listed(names.ongoing.as_deref(), names.all.iter().map(String::as_str))))
        }
        name => {
            let shown = vault.show_certificate(name).or_else(|| vault.show_answer_beside(name));
            shown.map(Answer::Text).ok_or_else(missing)
        }
    }
}

fn dump(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'dump ssl cert' expects a filename")?;
    call.context.plan.vault.dump_certificate(name).map(Answer::Text).ok_or_else(missing)
}

fn allow(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'add ssl jwt' expects a filename")?;
    set_allowed(call, name, true)
}

fn forbid(call: &mut Call<'_>) -> Outcome {
    let name = file(call, "'del ssl jwt' expects a filename")?;
    set_allowed(call, name, false)
}

fn set_allowed(call: &Call<'_>, name: &str, is_allowed: bool) -> Outcome {
    let outcome = call.context.plan.vault.allow_tokens(name, is_allowed);
    outcome.map(|()| Answer::Text(String::new())).map_err(|_| Message::error(format!("Certificate '{name}' doesn't exist!")))
}

fn allowed(call: &mut Call<'_>) -> Outcome {
    let names = call.context.plan.vault.token_certificates();
    Ok(Answer::Text(listed(None, names.iter().map(String::as_str))))
}

fn missing() -> Message {
    Message::error("Can't display the certificate: Not found or the certificate is a bundle!")
}
