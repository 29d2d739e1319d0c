//! Maps and the patterns of ACLs: shown and changed.

use crate::answer::{Answer, Message, Outcome, Pieces};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::words::Word;
use std::fmt::Write as _;
use std::sync::Arc;
use terse_sample::pattern::{Entry, Found, Reference, Refusal, Way};

pub(super) const COMMANDS: &[Command] = &[
    command("show map", "show map [[@<ver>] <map>]", "list maps, or the entries of one", |call| show(call, Kind::Map)),
    command("show acl", "show acl [[@<ver>] <acl>]", "list ACLs, or the patterns of one", |call| show(call, Kind::Acl)),
    command("get map", "get map <map> <value>", "show what a value is found to match", |call| get(call, Kind::Map)),
    command("get acl", "get acl <acl> <value>", "show what a value is found to match", |call| get(call, Kind::Acl)),
    command("add map", "add map [@<ver>] <map> <key> <val>", "add an entry, or one for each line of a payload", |call| {
        add(call, Kind::Map)
    }),
    command("add acl", "add acl [@<ver>] <acl> <pattern>", "add a pattern, or one for each line of a payload", |call| {
        add(call, Kind::Acl)
    }),
    command("set map", "set map <map> [<key>|#<ref>] <value>", "change the value of entries", set),
    command("del map", "del map <map> [<key>|#<ref>]", "remove entries", |call| remove(call, Kind::Map)),
    command("del acl", "del acl <acl> [<key>|#<ref>]", "remove patterns", |call| remove(call, Kind::Acl)),
    command("clear map", "clear map [@<ver>] <map>", "remove all entries", |call| clear(call, Kind::Map)),
    command("clear acl", "clear acl [@<ver>] <acl>", "remove all patterns", |call| clear(call, Kind::Acl)),
    command("prepare map", "prepare map <map>", "begin a version that will take the place of all entries", |call| {
        prepare(call, Kind::Map)
    }),
    command("prepare acl", "prepare acl <acl>", "begin a version that will take the place of all patterns", |call| {
        prepare(call, Kind::Acl)
    }),
    command("commit map", "commit map @<ver> <map>", "let a version take the place of all entries", |call| commit(call, Kind::Map)),
    command("commit acl", "commit acl @<ver> <acl>", "let a version take the place of all patterns", |call| {
        commit(call, Kind::Acl)
    }),
];

const fn command(name: &'static str, usage: &'static str, summary: &'static str, run: fn(&mut Call<'_>) -> Outcome) -> Command {
    Command { name, usage, summary, level: Level::Admin, run }
}

/// Kind of reference in a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Map,
    Acl,
}

impl Kind {
    /// Name in messages.
    const fn word(self) -> &'static str {
        match self {
            Kind::Map => "map",
            Kind::Acl => "ACL",
        }
    }

    fn has(self, reference: &Reference) -> bool {
        match self {
            Kind::Map => reference.is_map(),
            Kind::Acl => reference.is_acl(),
        }
    }

    /// Reference that an argument names, by `#<id>` or by its name.
    fn find(self, call: &Call<'_>, name: &str) -> Result<Arc<Reference>, Message> {
        self.find_if(call, name, |reference| self.has(reference))
    }

    /// Reference of either kind: as in HAProxy, some commands do not distinguish them.
    fn find_any(self, call: &Call<'_>, name: &str) -> Result<Arc<Reference>, Message> {
        self.find_if(call, name, Reference::is_used)
    }

    fn find_if(self, call: &Call<'_>, name: &str, is_meant: impl Fn(&Reference) -> bool) -> Result<Arc<Reference>, Message> {
        let found = call.context.plan.patterns.find(name).filter(|reference| is_meant(reference));
        found.ok_or_else(|| Message::error(format!("Unknown {} identifier. Please use #<id> or <file>.", self.word())))
    }
}

/// Takes `@<ver>` off the front of the arguments.
fn version(args: &[Word]) -> Result<(Option<u32>, &[Word]), Message> {
    match args.split_first() {
        Some((first, rest)) if first.starts_with('@') => {
            let number = first[1..].parse().map_err(|_| Message::error("Malformed version number."))?;
            Ok((Some(number), rest))
        }
        _ => Ok((None, args)),
    }
}

/// Number of an entry, if an argument has the form of lists: `#0x1000`.
fn entry(text: &str) -> Result<Option<u64>, Message> {
    let Some(digits) = text.strip_prefix("#0x") else { return Ok(None) };
    let malformed = || Message::error("Malformed identifier. Please use #<id> or <file>.");
    u64::from_str_radix(digits, 16).map(Some).map_err(|_| malformed())
}

fn show(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let (version, args) = version(call.args)?;
    let Some(name) = args.first() else {
        if version.is_some() {
            kind.find(call, "")?;
        }
        return Ok(Answer::Text(list(call, kind)));
    };
    let reference = kind.find(call, name)?;
    let number = version.unwrap_or_else(|| reference.description().current);
    let mut behind = None;
    // Entry by entry would be slow, all at once could be much.
    call.client.pieces = Some(Pieces::new(move || {
        let entries = reference.entries(Some(number), behind, PIECE_ENTRIES);
        behind = entries.last().map(|entry| entry.id);
        behind.map(|_| entries.iter().flat_map(|entry| line(entry)).collect::<Vec<u8>>())
    }));
    Ok(Answer::Done)
}

/// Number of entries that are written at a time.
const PIECE_ENTRIES: usize = 256;

fn list(call: &Call<'_>, kind: Kind) -> String {
    let mut text = String::from("# id (file) description\n");
    for reference in call.context.plan.patterns.all().iter().filter(|reference| kind.has(reference)) {
        let what = reference.description();
        let _ = writeln!(
            text,
            "{} ({}) {}. curr_ver={} next_ver={} entry_cnt={}",
            what.id, what.name, what.text, what.current, what.next, what.entries
        );
    }
    text
}

fn line(entry: &Entry) -> Vec<u8> {
    let mut line = format!("0x{:x} ", entry.id).into_bytes();
    line.extend(shown(&entry.key));
    if let Some(value) = &entry.value {
        line.push(b' ');
        line.extend(shown(value));
    }
    line.push(b'\n');
    line
}

/// Escapes bytes that could end the line or control the terminal; all else is shown as it is, text or not.
fn shown(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if byte.is_ascii_control() && *byte != b'\t' { b'.' } else { *byte }).collect()
}

fn get(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let [name, value, ..] = call.args else {
        return Err(Message::error(format!("Missing {} identifier and/or key.", kind.word())));
    };
    let reference = kind.find_any(call, name)?;
    let found = reference.look_up(value.bytes());
    Ok(Answer::Bytes(found.iter().flat_map(|(way, found)| found_line(way, found.as_ref(), kind)).collect()))
}

fn found_line(way: &Way, found: Option<&Found>, kind: Kind) -> Vec<u8> {
    let (verb, noun) = if kind == Kind::Map { ("found", "key") } else { ("match", "pattern") };
    let case = if way.ignores_case() { "insensitive" } else { "sensitive" };
    let mut line = format!("type={}, case={case}, {verb}=", way.matching().name()).into_bytes();
    let Some(found) = found else {
        line.extend(b"no\n");
        return line;
    };
    let quoted = |bytes: &[u8]| [b"\"".as_slice(), &shown(bytes), b"\""].concat();
    line.extend(format!("yes, idx={}, {noun}=", if way.is_tree() { "tree" } else { "list" }).bytes());
    line.extend(found.entry.as_ref().map_or_else(|| b"unknown".to_vec(), |entry| quoted(&entry.key)));
    if kind == Kind::Map {
        let value = found.entry.as_ref().and_then(|entry| entry.value.as_ref());
        match value.zip(found.kind) {
            Some((value, kind)) => {
                line.extend([b", value=".as_slice(), &quoted(value), format!(", type=\"{kind}\"").as_bytes()].concat())
            }
            None => line.extend(b", value=none"),
        }
    }
    line.push(b'\n');
    line
}

fn add(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let payload = call.client.payload.take();
    let (version, args) = version(call.args)?;
    let (name, rest) = args.split_first().map_or(("", args), |(name, rest)| (name.as_str(), rest));
    let is_whole = match (&payload, kind) {
        (Some(_), _) => !name.is_empty(),
        (None, Kind::Map) => rest.len() >= 2,
        (None, Kind::Acl) => !rest.is_empty(),
    };
    if !is_whole {
        return Err(Message::error(match kind {
            Kind::Map => {
                "'add map' expects three parameters (map identifier, key and value) or one parameter (map identifier) and a payload"
            }
            Kind::Acl => "'add acl' expects two parameters: ACL identifier and pattern.",
        }));
    }
    let reference = if kind == Kind::Map { kind.find(call, name)? } else { kind.find_any(call, name)? };
    if kind == Kind::Acl && reference.has_values() {
        return Err(Message::error(
            "This ACL is shared with a map containing samples. You must use the command 'add map' to add values.",
        ));
    }
    let entries = match &payload {
        Some(lines) => payload_entries(lines, kind)?,
        None => vec![(rest[0].bytes(), rest.get(1).filter(|_| kind == Kind::Map).map(Word::bytes))],
    };
    reference.add(version, entries).map_err(|refusal| match refusal {
        Refusal::Future => {
            let kind = if kind == Kind::Map { "map" } else { "acl" };
            Message::error(format!("Version number in the future, please use 'prepare {kind}' before."))
        }
        refusal => Message::error(format!("{refusal}.")),
    })?;
    Ok(Answer::Done)
}

/// A key, and the value of a map.
type Pair<'p> = (&'p [u8], Option<&'p [u8]>);

/// An entry for each line that is not empty.
fn payload_entries(payload: &[u8], kind: Kind) -> Result<Vec<Pair<'_>>, Message> {
    let lines = payload.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            if kind == Kind::Acl {
                return Ok((line, None));
            }
            let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
            let (key, value) = (&line[..end], line[end..].trim_ascii_start());
            if value.is_empty() {
                return Err(Message::error(format!("Missing value for key '{}'.", String::from_utf8_lossy(&shown(key)))));
            }
            Ok((key, Some(value)))
        })
        .collect()
}

fn set(call: &mut Call<'_>) -> Outcome {
    let [name, key, value, ..] = call.args else {
        return Err(Message::error("'set map' expects three parameters: map identifier, key and value."));
    };
    let reference = Kind::Map.find(call, name)?;
    let outcome = match entry(key)? {
        Some(id) => reference.set_entry(id, value.bytes()),
        None => reference.set(key.bytes(), value.bytes()),
    };
    outcome.map_err(|refusal| Message::error(format!("{refusal}.")))?;
    Ok(Answer::Done)
}

fn remove(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let [name, key, ..] = call.args else {
        return Err(Message::error(format!("This command expects two parameters: {} identifier and key.", kind.word())));
    };
    let reference = kind.find(call, name)?;
    let removed = match entry(key)? {
        Some(id) => reference.remove_entry(id),
        None => reference.remove(key.bytes()),
    };
    if removed { Ok(Answer::Done) } else { Err(Message::error("Key not found.")) }
}

fn clear(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let (version, args) = version(call.args)?;
    let name = args.first().ok_or_else(|| Message::error(format!("Missing {} identifier.", kind.word())))?;
    kind.find(call, name)?.clear(version);
    Ok(Answer::Done)
}

fn prepare(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let number = kind.find(call, call.arg(0))?.prepare();
    Ok(Answer::Said(Message::info(format!("New version created: {number}"))))
}

fn commit(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let (version, args) = version(call.args)?;
    let version = version.ok_or_else(|| Message::error("Missing version number."))?;
    let name = args.first().ok_or_else(|| Message::error(format!("Missing {} identifier.", kind.word())))?;
    let committed = kind.find(call, name)?.commit(version);
    committed.map_err(|_| Message::error("Version number out of range."))?;
    Ok(Answer::Done)
}

#[cfg(test)]
mod tests;
