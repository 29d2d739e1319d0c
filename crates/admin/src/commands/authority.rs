//! Authorities (`ca-file`), and their revocations (`crl-file`), exchanged while the process runs.

use super::certificate::{aborted, about, command, committed, file, listed, reason};
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use terse_tls::{Refusal, TrustKind};

pub(super) const COMMANDS: &[Command] = &[
    command("set ssl ca-file", "set ssl ca-file <file> <payload>", "take authorities, to be committed", Level::Admin, |call| {
        set(call, Kind::CA, false)
    }),
    command("add ssl ca-file", "add ssl ca-file <file> <payload>", "take more authorities", Level::Admin, |call| {
        set(call, Kind::CA, true)
    }),
    command("commit ssl ca-file", "commit ssl ca-file <file>", "use the authorities that were taken", Level::Admin, |call| {
        commit(call, Kind::CA)
    }),
    command("abort ssl ca-file", "abort ssl ca-file <file>", "forget the authorities that were taken", Level::Admin, |call| {
        abort(call, Kind::CA)
    }),
    command("new ssl ca-file", "new ssl ca-file <file>", "make room for authorities", Level::Admin, |call| make(call, Kind::CA)),
    command("del ssl ca-file", "del ssl ca-file <file>", "forget authorities that nobody uses", Level::Admin, |call| {
        remove(call, Kind::CA)
    }),
    command(
        "show ssl ca-file",
        "show ssl ca-file [[*]<file>[:<index>]]",
        "list files of authorities, or show one",
        Level::Operator,
        |call| show(call, Kind::CA),
    ),
    command(
        "set ssl crl-file",
        "set ssl crl-file <file> <payload>",
        "take lists of revoked certificates, to be committed",
        Level::Admin,
        |call| set(call, Kind::CRL, false),
    ),
    command("commit ssl crl-file", "commit ssl crl-file <file>", "use the lists that were taken", Level::Admin, |call| {
        commit(call, Kind::CRL)
    }),
    command("abort ssl crl-file", "abort ssl crl-file <file>", "forget the lists that were taken", Level::Admin, |call| {
        abort(call, Kind::CRL)
    }),
    command("new ssl crl-file", "new ssl crl-file <file>", "make room for lists of revoked certificates", Level::Admin, |call| {
        make(call, Kind::CRL)
    }),
    command("del ssl crl-file", "del ssl crl-file <file>", "forget lists that nobody uses", Level::Admin, |call| {
        remove(call, Kind::CRL)
    }),
    command(
        "show ssl crl-file",
        "show ssl crl-file [[*]<file>[:<index>]]",
        "list files of revoked certificates, or show one",
        Level::Operator,
        |call| show(call, Kind::CRL),
    ),
];

/// Kind of file in a command.
#[derive(Clone, Copy)]
struct Kind {
    kind: TrustKind,
    /// Name in commands: `ca-file`.
    word: &'static str,
    /// Name in messages: `CA`.
    name: &'static str,
}

impl Kind {
    const CA: Kind = Kind { kind: TrustKind::Authorities, word: "ca-file", name: "CA" };
    const CRL: Kind = Kind { kind: TrustKind::Revoked, word: "crl-file", name: "CRL" };

    /// The file of a command.
    fn file<'a>(self, call: &Call<'a>, verb: &str) -> Result<&'a str, Message> {
        file(call, &format!("'{verb} ssl {}' expects a filename", self.word))
    }
}

fn set(call: &mut Call<'_>, kind: Kind, more: bool) -> Outcome {
    let payload = call.client.payload.take();
    let (name, Some(payload)) = (call.arg(0), payload.filter(|_| !call.arg(0).is_empty())) else {
        let Kind { word, name, .. } = kind;
        return Err(Message::error(format!("'set ssl {word}' expects a filename and {name}s as a payload")));
    };
    let reason = match call.context.plan.vault.set_trusted(kind.kind, name, &payload, more) {
        Ok(begins) => {
            let verb = if begins { "created" } else { "updated" };
            return Ok(Answer::Said(Message::info(format!("transaction {verb} for {} {name}!", kind.name))));
        }
        Err(Refusal::Other(ongoing)) => about(&ongoing, "set", name),
        Err(Refusal::Unknown) => format!("Can't replace a {} file which is not referenced by the configuration!", kind.name),
        Err(refusal) => format!("{}\nInvalid payload", reason(refusal)),
    };
    Err(Message::error(format!("{reason}\nCan't update {name}!")))
}

fn commit(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let name = kind.file(call, "commit")?;
    committed(name, call.context.plan.vault.commit_trusted(kind.kind, name))
}

fn abort(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let name = kind.file(call, "abort")?;
    aborted(name, call.context.plan.vault.abort_trusted(kind.kind, name))
}

fn make(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let name = kind.file(call, "new")?;
    match call.context.plan.vault.new_trusted(kind.kind, name) {
        Ok(()) => Ok(Answer::Said(Message::info(format!("New {} file created '{name}'!", kind.name)))),
        Err(_) => Err(Message::error(format!("{} file '{name}' already exists!", kind.name))),
    }
}

fn remove(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let name = kind.file(call, "del")?;
    let what = kind.name;
    let reason = match call.context.plan.vault.delete_trusted(kind.kind, name) {
        Ok(()) => return Ok(Answer::Said(Message::info(format!("{what} file '{name}' deleted!")))),
        Err(Refusal::Ongoing) => format!("ongoing transaction for the {what} file '{name}'"),
        Err(Refusal::Unknown) => format!("{what} file '{name}' doesn't exist!"),
        Err(_) => format!("{what} file '{name}' in use, can't be deleted!"),
    };
    Err(Message::error(format!("Can't remove the {what} file: {reason}")))
}

fn show(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let vault = &call.context.plan.vault;
    let asked = call.arg(0);
    if asked.is_empty() {
        let (names, counts) = vault.trusted(kind.kind);
        let counted = |(name, count): (&String, &usize)| match kind.kind {
            TrustKind::Authorities => format!("{name} - {count} certificate(s)"),
            TrustKind::Revoked => name.clone(),
        };
        let all: Vec<String> = names.ongoing.iter().chain(&names.all).zip(&counts).map(counted).collect();
        let (ongoing, all) = all.split_at(usize::from(names.ongoing.is_some()));
        return Ok(Answer::Text(listed(ongoing.first().map(String::as_str), all.iter().map(String::as_str))));
    }
    let (name, only) = match asked.split_once(':') {
        None => (asked, None),
        Some((name, number)) => {
            let number = number.parse().ok().filter(|number| *number > 0);
            let wrong = || Message::error(format!("wrong {} index after colons in '{asked}'!", kind.name));
            (name, Some(number.ok_or_else(wrong)?))
        }
    };
    let missing = || Message::error(format!("Can't display the {} file : Not found!", kind.name));
    vault.show_trusted(kind.kind, name, only).map(Answer::Text).ok_or_else(missing)
}
