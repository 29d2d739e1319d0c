//! The configuration's keywords: HAProxy's `compression`, its filters and its tuning, and the settings that nginx's gzip
//! options need beside them.

use crate::coding::{Coding, Level};
use crate::memory::Memory;
use crate::policy::Mode;
use crate::range::EtagMode;
use crate::settings::{
    Compression, Directions, LevelWord, MemoryLine, MemoryPlace, Process, Proxied, ProxiedWhen, RateCap, Switch,
};
use regex::bytes::Regex;
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, SectionKind, Sections};
use terse_message::Version;

/// The table, for the program to join with the others.
pub const KEYWORDS: &[Keyword] = &[
    proxy(
        "compression on",
        "",
        "Compresses responses by zstd, br or gzip, with automatic levels, from 256 bytes, where their type is one that shrinks. Other \
         lines of the section change that; their types add up.",
        switch_on,
    ),
    proxy("compression off", "", "Compresses nothing, whatever the section has inherited and its frontend says.", switch_off),
    proxy(
        "compression algo",
        "<coding>...",
        "Names the codings for responses, best first: zstd, br, gzip, deflate, raw-deflate, identity. Lines add up.",
        algorithms,
    ),
    proxy("compression algo-res", "<coding>...", "The same as `compression algo`.", algorithms),
    proxy("compression algo-req", "<coding>", "Names the coding for the bodies of requests toward the server.", request_algorithm),
    proxy(
        "compression type",
        "<type>...",
        "Names the types of responses that are compressed, by the first characters of Content-Type or by a suffix (+json); without it, \
         all but multipart ones. Lines add up.",
        types,
    ),
    proxy("compression type-res", "<type>...", "The same as `compression type`.", types),
    proxy(
        "compression type-req",
        "<type>...",
        "Names the types of requests' bodies that are compressed; without it, all.",
        request_types,
    ),
    proxy("compression minsize-res", "<size>", "Leaves responses alone that are known to be smaller.", min_size),
    proxy("compression minsize-req", "<size>", "Leaves requests' bodies alone that are known to be smaller.", request_min_size),
    proxy("compression offload", "", "Keeps servers from compressing: takes Accept-Encoding from what is sent to them.", offload),
    proxy(
        "compression direction",
        "request | response | both",
        "Says which bodies are compressed; without it, responses.",
        direction,
    ),
    proxy("filter compression", "", "Compresses requests and responses as `compression` says.", filter_both),
    proxy("filter comp-req", "", "Compresses requests as `compression` says.", filter_request),
    proxy("filter comp-res", "", "Compresses responses as `compression` says.", filter_response),
    proxy(
        "compression level",
        "auto | <coding> { <level> | auto }",
        "Says how hard a coding tries: zlib's levels 1 to 9 (`tune.comp.maxlevel` or 6 without it), zstd's 1 to 19 (6), br's 0 to 9 (6); \
         auto: by the body's size and the load.",
        level,
    ),
    proxy(
        "compression memory",
        "{ on | off | <size> } [shared]",
        "Remembers compressed bodies, in the process's memory or in one of this line's own; on without it. shared: one user's own too.",
        memory,
    ),
    proxy(
        "compression vary",
        "on | off",
        "Adds `Vary: Accept-Encoding` to each response that is compressed for some clients; on without it.",
        vary,
    ),
    proxy(
        "compression sniff",
        "on | off",
        "Looks at the first bytes of a body, and leaves alone what is compressed already; on without it.",
        sniff,
    ),
    proxy(
        "compression http-version",
        "1.0 | 1.1",
        "The lowest version of a client that is sent compressed bodies; 1.1 without it.",
        http_version,
    ),
    proxy(
        "compression disable-agent",
        "<regex>...",
        "Sends plain bytes to clients whose User-Agent matches, beside the browsers before Internet Explorer 7. Lines add up.",
        disable_agent,
    ),
    proxy(
        "compression proxied",
        "any | off | { expired | no-cache | no-store | private | no_last_modified | no_etag | auth }...",
        "Says when responses to requests that came through another proxy (with Via) are compressed; any without it.",
        proxied,
    ),
    proxy(
        "compression collect",
        "<size>",
        "Says how much of a body is held to be compressed as a whole, while the server does not pause; 256k without it, 0: nothing.",
        collect,
    ),
    proxy(
        "compression etag",
        "suffix | weaken",
        "Says what becomes of a compressed response's ETag: weak with the coding's name in it, or weak and no more; suffix without it.",
        etag,
    ),
    proxy(
        "http-compression",
        "auto | off | force",
        "Who compresses on the hop to clients (frontend) or servers (backend): auto, the default: TLS records where they do, content \
         coding elsewhere; off: nobody; force: both, for experiments.",
        hop_mode,
    ),
    global(
        "tune.comp.maxlevel",
        "<1-9>",
        "The level of gzip and deflate where none is named; the highest for every coding, zstd and br too.",
        max_level,
    ),
    global("maxcomprate", "<kbytes>", "Compresses no further bodies while more kilobytes a second enter; 0: no limit.", max_rate),
    global("maxcompcpuusage", "<percent>", "Compresses no further bodies while a thread is busier; 100: no limit.", max_cpu),
    global("maxzlibmem", "<mbytes>", "The memory that compression may hold, in megabytes; 0: the process's limit.", max_memory),
    global(
        "tune.zlib.memlevel",
        "<1-9>",
        "zlib's memory level for streams; 6 without it. Whole bodies have their own.",
        memory_level,
    ),
    global("tune.zlib.windowsize", "<8-15>", "zlib's window for streams, as a power of two; 15 without it.", window_bits),
    global(
        "tune.comp.threads",
        "<number>",
        "Threads that compress larger bodies; one for each processor without it, 0: none. Workers that leave no processor free do gzip and deflate streams themselves.",
        threads,
    ),
    global(
        "tune.comp.memory",
        "<size>",
        "The memory of compressed bodies that proxies share; 64m without it, 0: none.",
        common_memory,
    ),
    global("tune.comp.nice", "<0-19>", "How far these threads stand back behind the others; 4 without it.", nice),
    global("tune.comp.queue", "<number>", "Jobs that may wait for these threads; 1024 without it.", queue),
    global(
        "tune.comp.coders",
        "<number>",
        "Streams of a client's connection that are compressed at a time, 32 without it; others pass as they are. Whole bodies do not count.",
        coders,
    ),
];

const fn proxy(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

const fn global(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Done(parser) }
}

/// The section's setting. Its first keyword turns responses on, as with HAProxy.
fn section<'s>(scope: &'s mut Scope<'_>) -> &'s mut Compression {
    let compression = scope.section.settings.entry::<Compression>();
    compression.directions.get_or_insert(Directions { request: false, response: true });
    if !compression.is_on() {
        compression.switch = None;
    }
    compression
}

fn switch_on(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).switch = Some(Switch::On);
    Ok(())
}

fn switch_off(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    *scope.section.settings.entry::<Compression>() = Compression { switch: Some(Switch::Off), ..Compression::default() };
    Ok(())
}

fn process<'s>(scope: &'s mut Scope<'_>) -> &'s mut Process {
    scope.section.settings.entry::<Process>()
}

fn algorithms(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let list = &mut section(scope).response.algorithms;
    loop {
        let coding = coding(args)?;
        if !list.contains(&coding) {
            list.push(coding);
        }
        if args.peek().is_none() {
            return Ok(());
        }
    }
}

fn request_algorithm(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let coding = coding(args)?;
    section(scope).request.algorithms.push(coding);
    Ok(())
}

fn coding(args: &mut Args<'_>) -> Result<Coding, Fault> {
    let word = args.need("<coding>")?;
    Coding::of_word(word).ok_or_else(|| {
        let fault = args.fault(format!("'{word}' is not a supported algorithm"));
        match meant(word) {
            _ if terse_dictionary::is_coding(word.as_bytes()) => fault.hint("'compression dictionary' brings dcz"),
            Some(meant) => fault.hint(format!("did you mean '{meant}'?")),
            None => {
                let known: Vec<_> = Coding::ordinary().map(Coding::word).collect();
                fault.hint(format!("one of {}", known.join(", ")))
            }
        }
    })
}

/// The codings that an argument means which is no coding's name: another name, or several with commas between them.
fn meant(word: &str) -> Option<String> {
    let parts = word.split(',').filter(|part| !part.is_empty());
    let names = parts.map(|part| {
        let part = part.trim().to_ascii_lowercase();
        OTHER_NAMES.iter().find(|(other, _)| *other == part).map_or(part, |(_, name)| (*name).to_owned())
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty() && names.iter().all(|name| Coding::of_word(name).is_some())).then(|| names.join(" "))
}

/// Names of codings elsewhere, and ours.
const OTHER_NAMES: [(&str, &str); 7] = [
    ("gz", "gzip"),
    ("x-gzip", "gzip"),
    ("brotli", "br"),
    ("bro", "br"),
    ("zstandard", "zstd"),
    ("zst", "zstd"),
    ("zlib", "deflate"),
];

fn types(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    read_types(args, &mut section(scope).response.types)
}

fn request_types(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    read_types(args, &mut section(scope).request.types)
}

fn read_types(args: &mut Args<'_>, list: &mut Vec<Box<[u8]>>) -> Result<(), Fault> {
    loop {
        list.push(args.need_bytes("<type>")?.to_ascii_lowercase().into());
        if args.peek().is_none() {
            return Ok(());
        }
    }
}

fn min_size(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).response.min_bytes = Some(args.size("<size>")?);
    Ok(())
}

fn request_min_size(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).request.min_bytes = Some(args.size("<size>")?);
    Ok(())
}

fn offload(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    if scope.section.kind == SectionKind::Defaults {
        scope.warn(1, "'offload' ignored in 'defaults' section");
    }
    section(scope).offload = true;
    Ok(())
}

fn direction(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let (request, response) = match args.need("'request', 'response' or 'both'")? {
        "request" => (true, false),
        "response" => (false, true),
        "both" => (true, true),
        other => return Err(args.fault(format!("expects 'request', 'response' or 'both', not '{other}'"))),
    };
    section(scope).directions = Some(Directions { request, response });
    Ok(())
}

fn filter_both(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let compression = scope.section.settings.entry::<Compression>();
    if compression.filters.is_some() {
        return Err(Fault::new(1, "cannot stand twice in a proxy"));
    }
    compression.filters = Some(Directions { request: true, response: true });
    Ok(())
}

fn filter_request(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    one_filter(scope, |directions| &mut directions.request)
}

fn filter_response(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    one_filter(scope, |directions| &mut directions.response)
}

/// A filter of a direction turns that direction on, and no other that was not on before.
fn one_filter(scope: &mut Scope<'_>, pick: fn(&mut Directions) -> &mut bool) -> Result<(), Fault> {
    let compression = scope.section.settings.entry::<Compression>();
    let filter = pick(compression.filters.get_or_insert_default());
    if std::mem::replace(filter, true) {
        return Err(Fault::new(1, "cannot stand twice in a proxy"));
    }
    *pick(compression.directions.get_or_insert_default()) = true;
    Ok(())
}

fn level(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    if args.accept("auto") {
        let with_levels = Coding::ordinary().filter(|coding| !coding.is_identity());
        with_levels.for_each(|coding| section(scope).levels[coding as usize] = Some(LevelWord::Auto));
        return Ok(());
    }
    let coding = coding(args)?;
    let levels = coding.entry().levels.clone();
    if coding.is_identity() {
        return Err(args.fault("'identity' has no levels"));
    }
    let word = if args.accept("auto") {
        LevelWord::Auto
    } else {
        LevelWord::Fixed(Level(number(args, "<level>", i64::from(*levels.start())..=i64::from(*levels.end()))?))
    };
    section(scope).levels[coding as usize] = Some(word);
    Ok(())
}

fn memory(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = if args.accept("off") {
        MemoryPlace::Off
    } else if args.accept("on") {
        MemoryPlace::Common
    } else {
        match memory_bytes(args)? {
            0 => MemoryPlace::Off,
            bytes => MemoryPlace::Own(Arc::new(Memory::new(bytes))),
        }
    };
    let shared = args.accept("shared");
    section(scope).memory = Some(MemoryLine { place, shared });
    Ok(())
}

fn common_memory(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).memory_bytes = memory_bytes(args)?;
    Ok(())
}

/// A size that a memory can have: 0, or room for a body.
pub(crate) fn memory_bytes(args: &mut Args<'_>) -> Result<usize, Fault> {
    let bytes = args.size("'on', 'off' or <size>")?;
    match usize::try_from(bytes) {
        Ok(0) => Ok(0),
        Ok(bytes) if (LEAST_MEMORY_BYTES..=MOST_MEMORY_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(args.fault(format!("{bytes} is not 0, and not between {LEAST_MEMORY_BYTES} and {MOST_MEMORY_BYTES}"))),
    }
}

/// Less would hold next to nothing: a forgotten unit is more likely.
const LEAST_MEMORY_BYTES: usize = 64 << 10;
const MOST_MEMORY_BYTES: usize = 1 << 40;

fn on_off(args: &mut Args<'_>) -> Result<Option<bool>, Fault> {
    match args.need("'on' or 'off'")? {
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => Err(args.fault(format!("expects 'on' or 'off', not '{other}'"))),
    }
}

fn vary(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).vary = on_off(args)?;
    Ok(())
}

fn sniff(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).sniff = on_off(args)?;
    Ok(())
}

fn http_version(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let version = match args.need("'1.0' or '1.1'")? {
        "1.0" => Version::Http10,
        "1.1" => Version::Http11,
        other => return Err(args.fault(format!("expects '1.0' or '1.1', not '{other}'"))),
    };
    section(scope).http_version = Some(version);
    Ok(())
}

fn disable_agent(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    loop {
        let text = args.need("<regex>")?;
        let regex = Regex::new(text).map_err(|error| args.fault(format!("'{text}' is no regular expression: {error}")))?;
        section(scope).disabled_agents.push(regex);
        if args.peek().is_none() {
            return Ok(());
        }
    }
}

fn proxied(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    if args.accept("any") {
        section(scope).proxied = Some(Proxied::Any);
        return Ok(());
    }
    let mut when = ProxiedWhen::default();
    if !args.accept("off") {
        loop {
            let flag = match args.need("'any', 'off' or conditions")? {
                "expired" => &mut when.expired,
                "no-cache" => &mut when.no_cache,
                "no-store" => &mut when.no_store,
                "private" => &mut when.private,
                "no_last_modified" => &mut when.no_last_modified,
                "no_etag" => &mut when.no_etag,
                "auth" => &mut when.auth,
                other => return Err(args.fault(format!("'{other}' is no condition of 'proxied'"))),
            };
            *flag = true;
            if args.peek().is_none() {
                break;
            }
        }
    }
    section(scope).proxied = Some(Proxied::When(when));
    Ok(())
}

fn hop_mode(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    *scope.section.settings.entry::<Mode>() = match args.need("'auto', 'off' or 'force'")? {
        "auto" => Mode::Auto,
        "off" => Mode::Off,
        "force" => {
            args.warn("'http-compression force' compresses what is compressed: it is for experiments");
            Mode::Force
        }
        other => return Err(args.fault(format!("expects 'auto', 'off' or 'force', not '{other}'"))),
    };
    Ok(())
}

fn collect(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let bytes = args.size("<size>")?;
    match usize::try_from(bytes).ok().filter(|&bytes| bytes <= crate::body::MAX_COLLECT_BYTES) {
        Some(bytes) => {
            section(scope).collect_bytes = Some(bytes);
            Ok(())
        }
        None => Err(args.fault(format!("{bytes} is above the limit of {}", crate::body::MAX_COLLECT_BYTES))),
    }
}

fn etag(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let mode = match args.need("'weaken' or 'suffix'")? {
        "weaken" => EtagMode::Weaken,
        "suffix" => EtagMode::Suffix,
        other => return Err(args.fault(format!("expects 'weaken' or 'suffix', not '{other}'"))),
    };
    section(scope).etag = Some(mode);
    Ok(())
}

/// A whole number in a range that fits the type.
fn number<T: TryFrom<i64>>(args: &mut Args<'_>, what: &str, range: std::ops::RangeInclusive<i64>) -> Result<T, Fault> {
    let n = args.integer(what, range)?;
    T::try_from(n).map_err(|_| args.fault(format!("{what}: {n} is too large")))
}

fn max_level(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).max_level = Some(number(args, "<level>", 1..=9)?);
    Ok(())
}

fn max_rate(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let kbytes = number(args, "<kbytes>", 0..=i64::MAX / 1024)?;
    // Another value: the sections before keep theirs.
    process(scope).most_rate = RateCap::default();
    process(scope).most_rate.set(kbytes);
    Ok(())
}

fn max_cpu(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).max_cpu_percent = number(args, "<percent>", 0..=100)?;
    Ok(())
}

fn max_memory(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let megabytes: usize = number(args, "<mbytes>", 0..=i64::MAX >> 20)?;
    process(scope).max_memory_bytes = megabytes << 20;
    Ok(())
}

fn memory_level(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).memory_level = number(args, "<level>", 1..=9)?;
    Ok(())
}

fn window_bits(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).window_bits = number(args, "<bits>", 8..=15)?;
    Ok(())
}

fn threads(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).threads = Some(number(args, "<number>", 0..=1024)?);
    Ok(())
}

fn nice(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).nice = number(args, "<nice>", 0..=19)?;
    Ok(())
}

fn queue(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).queue_depth = number(args, "<number>", 1..=1 << 20)?;
    Ok(())
}

fn coders(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).coders = number(args, "<number>", 1..=1 << 20)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pace;
    use crate::testing::load;

    fn level(effective: crate::Effective<'_>, coding: Coding) -> Level {
        effective.level(coding, None, Pace::Steady)
    }

    #[test]
    fn the_table_is_sound() {
        assert_eq!(terse_config::keyword::tables_are_sound(&[KEYWORDS]), [""; 0]);
    }

    #[test]
    fn haproxys_lines_mean_what_they_mean_there() {
        let (config, said) = load(
            &[KEYWORDS],
            "global\n tune.comp.maxlevel 9\n maxcomprate 100\n maxzlibmem 2\n\
             defaults\n compression algo gzip\n\
             backend b\n compression algo deflate gzip\n compression type text/HTML text/plain\n compression minsize-res 1k\n\
             compression direction both\n compression algo-req gzip\n compression offload\n",
        );
        assert_eq!(said, [""; 0]);
        let back = config.sections[0].settings.get::<Compression>().unwrap();
        let process = config.global.settings.get::<Process>().unwrap();
        let effective = crate::Effective::new(None, Some(back), process);
        assert_eq!(effective.response_codings(), [Coding::Gzip, Coding::Deflate]);
        assert_eq!(effective.response_types(), [b"text/html"[..].into(), b"text/plain"[..].into()] as [Box<[u8]>; 2]);
        assert_eq!(effective.response_min_bytes(), 1024);
        assert_eq!(effective.request_coding(), Some(Coding::Gzip));
        assert_eq!(effective.directions(), Directions { request: true, response: true });
        assert_eq!(level(effective, Coding::Gzip), Level(9));
        assert!(effective.offload());
        assert_eq!((process.most_rate.kbytes(), process.max_memory_bytes), (100, 2 << 20));
    }

    #[test]
    fn our_own_lines() {
        let (config, said) = load(
            &[KEYWORDS],
            "listen l\n compression algo gzip\n compression level gzip 4\n compression vary off\n compression sniff off\n\
             compression http-version 1.0\n compression disable-agent ^curl 'old browser'\n compression proxied no-store auth\n\
             compression collect 64k\n compression etag suffix\n",
        );
        assert_eq!(said, [""; 0]);
        let listen = config.sections[0].settings.get::<Compression>();
        let process = Process { max_level: Some(3), ..Process::default() };
        let effective = crate::Effective::new(listen, listen, &process);
        assert_eq!(level(effective, Coding::Gzip), Level(3));
        assert_eq!(level(crate::Effective::new(listen, listen, &Process::default()), Coding::Gzip), Level(4));
        assert_eq!(level(effective, Coding::Deflate), Level(3));
        assert_eq!(level(effective, Coding::Identity), Level(0));
        assert!(!effective.vary() && !effective.sniff());
        assert_eq!(effective.http_version(), Version::Http10);
        assert_eq!(effective.disabled_agents().len(), 2);
        assert_eq!(effective.proxied(), Proxied::When(ProxiedWhen { no_store: true, auth: true, ..ProxiedWhen::default() }));
        assert_eq!((effective.collect_bytes(Coding::Gzip), effective.etag()), (65536, EtagMode::Suffix));
    }

    #[test]
    fn the_levels_that_are_told_are_those_that_hold() {
        let told = KEYWORDS.iter().find(|keyword| keyword.name == "compression level").unwrap().summary;
        for coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli] {
            let entry = coding.entry();
            let range = format!("{} to {} ", entry.levels.start(), entry.levels.end());
            let (_, behind) = told.split_once(&range).unwrap();
            let default = behind.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty()).unwrap();
            assert_eq!(default, entry.default_level.0.to_string(), "{coding:?}");
        }
    }

    #[test]
    fn zlibs_scale_is_not_that_of_others() {
        let levels = |max| {
            let process = Process { max_level: Some(max), ..Process::default() };
            [Coding::Gzip, Coding::Zstd, Coding::Brotli].map(|coding| level(crate::Effective::new(None, None, &process), coding).0)
        };
        assert_eq!((levels(1), levels(9)), ([1, 1, 1], [9, 6, 6]));
    }

    #[test]
    fn levels_by_the_load() {
        let (config, said) =
            load(&[KEYWORDS], "listen l\n compression level auto\n compression level gzip 2\n compression level br auto\n");
        assert_eq!(said, [""; 0]);
        let listen = config.sections[0].settings.get::<Compression>();
        for (max_level, rushed, leisurely) in [(None, 3, 6), (Some(4), 3, 4)] {
            let process = Process { max_level, ..Process::default() };
            let effective = crate::Effective::new(listen, listen, &process);
            assert_eq!(level(effective, Coding::Gzip), Level(2));
            let zstd = |pace| effective.level(Coding::Zstd, Some(100_000), pace);
            assert!(zstd(Pace::Rushed) <= Level(rushed) && zstd(Pace::Leisurely) >= Level(leisurely));
            assert_eq!(effective.most_level(), Level(max_level.unwrap_or(u8::MAX)));
            let plan = |coding| crate::Plan { coding, level: Level(2) };
            let least = |coding, pace| effective.least_level(plan(coding), pace);
            assert_eq!((least(Coding::Gzip, Pace::Rushed), least(Coding::Zstd, Pace::Rushed)), (Level(2), Level(0)));
            assert_eq!(least(Coding::Zstd, Pace::Steady), Level(2));
        }
    }

    #[test]
    fn a_line_makes_one_memory_for_all_who_inherit_it() {
        let (config, said) = load(
            &[KEYWORDS],
            "global\n tune.comp.memory 1m\ndefaults\n compression memory 2m shared\nbackend a\n compression algo gzip\nbackend b\n\
             backend c\n compression memory 3m\nbackend d\n compression memory off\nbackend e\n compression memory on\n",
        );
        assert_eq!(said, [""; 0]);
        assert_eq!(config.global.settings.get::<Process>().unwrap().memory_bytes, 1 << 20);
        let line = |i: usize| config.sections[i].settings.get::<Compression>().unwrap().memory.clone().unwrap();
        let own = |i| match line(i).place {
            MemoryPlace::Own(memory) => memory,
            other => panic!("{other:?}"),
        };
        assert!(Arc::ptr_eq(&own(0), &own(1)) && line(0).shared && !line(2).shared);
        assert_eq!((own(0).bytes(), own(2).bytes()), (2 << 20, 3 << 20));
        assert!(matches!((line(3).place, line(4).place), (MemoryPlace::Off, MemoryPlace::Common)));
    }

    #[test]
    fn filters_choose_directions() {
        for (lines, request, response) in [
            ("compression algo gzip", false, true),
            ("compression direction request", true, false),
            ("filter comp-req\n compression algo-req gzip", true, false),
            ("compression algo gzip\n filter comp-req", true, false),
            ("filter comp-res\n compression algo gzip", false, true),
            ("filter compression\n compression algo gzip\n compression direction both", true, true),
            ("filter compression\n compression algo gzip", false, true),
        ] {
            let (config, said) = load(&[KEYWORDS], &format!("backend b\n {lines}\n"));
            assert_eq!(said, [""; 0], "{lines}");
            let directions = config.sections[0].settings.get::<Compression>().unwrap().directions();
            assert_eq!((directions.request, directions.response), (request, response), "{lines}");
        }
    }

    #[test]
    fn offload_in_defaults_is_ignored_with_a_warning() {
        let (config, said) = load(&[KEYWORDS], "defaults\n compression algo gzip\n compression offload\nbackend b\n");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(!config.sections[0].settings.get::<Compression>().unwrap().offload);
    }

    #[test]
    fn other_names_of_codings_are_understood() {
        for (word, hint) in [
            ("gz", "did you mean 'gzip'?"),
            ("Brotli", "did you mean 'br'?"),
            ("gzip,br", "did you mean 'gzip br'?"),
            ("brotli, gzip", "did you mean 'br gzip'?"),
            ("zstandard,", "did you mean 'zstd'?"),
            ("lz4", "one of gzip, deflate, raw-deflate, zstd, br, identity"),
            ("gzip,lz4", "one of gzip, deflate, raw-deflate, zstd, br, identity"),
            (",", "one of gzip, deflate, raw-deflate, zstd, br, identity"),
        ] {
            let (_, diagnostics) = crate::testing::read(&[KEYWORDS], &format!("backend b\n compression algo '{word}'\n"));
            assert_eq!(diagnostics.iter().filter_map(|said| said.hint.clone()).collect::<Vec<_>>(), [hint], "{word}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for line in [
            "compression algo",
            "compression algo brotli",
            "compression on now",
            "compression off gzip",
            "compression type",
            "compression minsize-res many",
            "compression direction up",
            "compression level gzip 10",
            "compression level identity 1",
            "compression level identity auto",
            "compression level auto 6",
            "compression level gzip best",
            "compression memory",
            "compression memory 64",
            "compression memory maybe",
            "compression memory on for all",
            "compression vary",
            "compression sniff maybe",
            "compression http-version 2",
            "compression disable-agent (",
            "compression proxied sometimes",
            "compression proxied off auth",
            "compression collect 1g",
            "compression etag strong",
            "compression offload now",
            "http-compression",
            "http-compression on",
            "http-compression force",
            "filter compression\n filter comp-req",
        ] {
            let (_, said) = load(&[KEYWORDS], &format!("backend b\n {line}\n"));
            assert_eq!(said.len(), 1, "{line}: {said:?}");
        }
        for line in ["tune.comp.maxlevel 0", "maxcompcpuusage 101", "tune.zlib.windowsize 16", "maxcomprate -1"] {
            let (_, said) = load(&[KEYWORDS], &format!("global\n {line}\n"));
            assert_eq!(said.len(), 1, "{line}: {said:?}");
        }
    }
}
