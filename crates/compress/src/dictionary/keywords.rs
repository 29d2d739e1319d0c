//! The lines of a `dictionary` section, and `compression dictionary`.

use super::store::{self, Place};
use super::{Draft, Given, Line, MOST_HOSTS, RESERVED};
use crate::keywords::memory_bytes;
use crate::settings::{Compression, Directions, Process};
use std::path::PathBuf;
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};
use terse_dictionary::{LEARNED, MOST_BYTES, Origin, Pattern, field};

/// The table, for the program to join with the others.
pub const KEYWORDS: &[Keyword] = &[
    dictionary("file", "<path>", "Has the bytes of this file as the dictionary, as they are; at most 4 MB.", file),
    dictionary(
        "match",
        "<pattern>",
        "Says which requests the dictionary is for: a path, in which `*` stands for anything; without a query, with any.",
        pattern,
    ),
    dictionary(
        "match-dest",
        "<destination>...",
        "Says for which kinds of requests the dictionary is, by Fetch's names: script, style, document; without it, for all.",
        destinations,
    ),
    dictionary("id", "<text>", "The name that clients send back beside the hash; none without it.", id),
    dictionary(
        "path",
        "<prefix>",
        "Publishes the dictionary under this path, with the digits of its hash behind it; /.dictionary/ without it.",
        path,
    ),
    dictionary(
        "host",
        "<name>[:<port>]...",
        "Says for which hosts the dictionary is; without it, for all that reach the proxies which name it. Lines add up.",
        hosts,
    ),
    Keyword {
        name: "compression dictionary",
        old_names: &[],
        sections: Sections::PROXY,
        arguments: "off | [secure] {auto | <name>}...",
        summary: "Compresses for clients that hold these dictionaries, by dcz (RFC 9842), and tells pages' clients of them; auto: also for \
                  clients that hold an earlier release of a public file. Only over TLS; secure: it ends before this program.",
        kind: Kind::Done(choose),
    },
    Keyword {
        name: "tune.dictionary.memory",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<size>",
        summary: "The memory of dictionaries that are learned (compression dictionary auto), of all proxies; 64m without it, 0: none.",
        kind: Kind::Done(memory),
    },
    Keyword {
        name: "dictionary-store",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<folder> [size <size>]",
        summary: "Keeps learned dictionaries (compression dictionary auto) in this folder, over restarts and for all nodes that share it; 256m \
                  without a size. Without the line they are in memory alone.",
        kind: Kind::Done(store),
    },
];

const fn dictionary(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::DICTIONARY, arguments, summary, kind: Kind::Done(parser) }
}

fn draft<'s>(scope: &'s mut Scope<'_>) -> &'s mut Draft {
    scope.section.settings.entry::<Draft>()
}

fn file(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    let path = args.need("<path>")?;
    once(args, "file", draft(scope).file.is_some())?;
    draft(scope).file = Some((PathBuf::from(path), place));
    Ok(())
}

/// Refuses the second line of a keyword.
fn once(args: &Args<'_>, name: &str, is_there: bool) -> Result<(), Fault> {
    match is_there {
        true => Err(args.fault(format!("a dictionary has one '{name}'")).hint("a second 'dictionary' section has another")),
        false => Ok(()),
    }
}

fn pattern(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = args.need("<pattern>")?;
    let pattern = Pattern::new(text).map_err(|fault| args.fault(format!("'{text}': {fault}")).hint(fault.hint()))?;
    once(args, "match", draft(scope).pattern.is_some())?;
    draft(scope).pattern = Some(pattern);
    Ok(())
}

fn destinations(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    loop {
        let word = args.need("<destination>")?;
        if !DESTINATIONS.contains(&word) {
            let fault = args.fault(format!("'{word}' is not a destination that Fetch knows"));
            return Err(fault.hint(format!("one of {}", DESTINATIONS.join(", "))));
        }
        let list = &mut draft(scope).destinations;
        if !list.iter().any(|known| known == word) {
            list.push(word.to_owned());
        }
        if args.peek().is_none() {
            return Ok(());
        }
    }
}

/// The destinations of requests (Fetch section 2.2.5).
const DESTINATIONS: [&str; 22] = [
    "audio",
    "audioworklet",
    "document",
    "embed",
    "font",
    "frame",
    "iframe",
    "image",
    "json",
    "manifest",
    "object",
    "paintworklet",
    "report",
    "script",
    "serviceworker",
    "sharedworker",
    "style",
    "text",
    "track",
    "video",
    "worker",
    "xslt",
];

fn id(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = args.need("<text>")?;
    if let Some(reason) = field::id_fault(text) {
        return Err(args.fault(format!("'{text}' cannot be an id: {reason}")));
    }
    once(args, "id", !draft(scope).id.is_empty())?;
    draft(scope).id = text.to_owned();
    Ok(())
}

fn path(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = args.need("<prefix>")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let is_path = text.starts_with('/')
        && text.ends_with('/')
        && !text.starts_with("//")
        && !text.split('/').any(|part| matches!(part, "." | ".."));
    if !is_path || text.len() > MOST_PATH || !text.bytes().all(is_plain) {
        let fault =
            args.fault(format!("'{text}' is not a path that begins and ends with '/' and holds letters, digits and any of -._~/"));
        return Err(fault.hint("such as /.dictionary/"));
    }
    once(args, "path", draft(scope).path.is_some())?;
    draft(scope).path = Some(text.into());
    Ok(())
}

/// The most bytes of `path`.
const MOST_PATH: usize = 256;

fn hosts(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    loop {
        let word = args.need("<name>[:<port>]")?;
        let origin = Origin::of(word.as_bytes(), true);
        let origin = origin.ok_or_else(|| args.fault(format!("'{word}' is not a host")).hint("such as www.example.org:8443"))?;
        let list = &mut draft(scope).origins;
        if list.len() == MOST_HOSTS {
            return Err(args.fault(format!("a dictionary has at most {MOST_HOSTS} hosts")));
        }
        if !list.contains(&origin) {
            list.push(origin);
        }
        if args.peek().is_none() {
            return Ok(());
        }
    }
}

fn choose(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let is_off = args.accept("off");
    let is_secure = !is_off && args.accept("secure");
    let (mut names, mut is_auto): (Vec<(Arc<str>, _)>, bool) = (Vec::new(), false);
    while !is_off && (!is_auto && names.is_empty() || args.peek().is_some()) {
        let place = args.place(&scope.place);
        if args.accept(LEARNED) {
            is_auto = true;
            continue;
        }
        let name = args.need("<name>")?;
        if RESERVED.contains(&name) {
            return Err(args.fault(format!("'{name}' is no name of a dictionary here")));
        }
        if !names.iter().any(|(known, _)| **known == *name) {
            names.push((name.into(), place));
        }
    }
    let compression = scope.section.settings.entry::<Compression>();
    compression.directions.get_or_insert(Directions { request: false, response: true });
    compression.dictionary = Some(Line { is_secure, names, given: Arc::new(Given::default()), is_auto, learner: None });
    Ok(())
}

fn store(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = args.need("<folder>")?;
    let folder = PathBuf::from(text);
    if !folder.is_absolute() {
        return Err(args
            .fault(format!("'{text}' is not a path from the root"))
            .hint("a daemon has no folder of its own: write /var/lib/terse/dictionaries"));
    }
    let mut place = Place { folder, most_bytes: store::DEFAULT_BYTES };
    if args.accept("size") {
        place.most_bytes = args.size("<size>")?;
        if place.most_bytes < MOST_BYTES {
            return Err(args.fault(format!("one dictionary may have {MOST_BYTES} bytes")).hint("such as 256m"));
        }
    }
    let process = scope.section.settings.entry::<Process>();
    if process.dictionary_store.replace(place).is_some() {
        return Err(args.fault("there is one folder for all learned dictionaries"));
    }
    Ok(())
}

fn memory(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    scope.section.settings.entry::<Process>().dictionary_bytes = memory_bytes(args)?;
    Ok(())
}
