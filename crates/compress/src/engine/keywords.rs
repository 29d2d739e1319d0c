//! The lines of an `engine` section, and `compression engine`.

use super::{Choice, EngineSettings, Source, Verify};
use crate::settings::{Compression, Directions};
use std::path::PathBuf;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};

/// The table, for the program to join with the others.
pub const KEYWORDS: &[Keyword] = &[
    engine(
        "library",
        "<path>",
        "Loads this shared library with zlib's API: a compression card's driver, or another zlib.",
        library,
    ),
    engine("device", "cuda [<number>]", "Compresses on a GPU of NVIDIA's, the first one unless another is named.", device),
    engine(
        "in-process",
        "",
        "Loads the library into this process. Without it, it runs in a process of its own, which can be killed when it hangs.",
        in_process,
    ),
    engine(
        "threads",
        "<number>",
        "Jobs that the library is given at a time, each on a thread, or batches that a device has; 4 without it.",
        threads,
    ),
    engine("jobs", "<number>", "Jobs that are handed over and not done, at most; 4 without it, 32 for a device.", jobs),
    engine("maxqueue", "<number>", "Jobs that wait to be handed over; software does the others. 64 without it.", max_queue),
    engine(
        "deadline",
        "<time>",
        "Gives a job to software that is not done so long after its body was whole; 1s without it.",
        deadline,
    ),
    engine("smallest", "<size>", "Leaves smaller bodies to software; 16k without it, 128k for a device.", smallest),
    engine("largest", "<size>", "Leaves larger bodies to software; 8m without it.", largest),
    engine(
        "verify",
        "none | checksum | full",
        "Says what of a result is looked at before it is sent: the checksum that it states, or all of it, decompressed; checksum \
         without it.",
        verify,
    ),
    engine(
        "fallback",
        "<level>",
        "The level at which software does what the engine does not, 0 (stored) to 9; without it the level of the response.",
        fallback,
    ),
    engine("fall", "<number>", "Failures in a row that take the engine out; 3 without it.", fall),
    engine("rise", "<number>", "Probes in a row that the engine has to pass to come back; 1 without it.", rise),
    engine("inter", "<time>", "The pause before a probe, doubled by each that fails, up to 64 times; 1s without it.", inter),
    Keyword {
        name: "compression engine",
        old_names: &[],
        sections: Sections::PROXY,
        arguments: "<name> | none",
        summary: "Has whole bodies of the codings gzip, deflate and raw-deflate compressed by an `engine` section.",
        kind: Kind::Done(choose),
    },
];

const fn engine(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::ENGINE, arguments, summary, kind: Kind::Done(parser) }
}

fn settings<'s>(scope: &'s mut Scope<'_>) -> &'s mut EngineSettings {
    scope.section.settings.entry::<EngineSettings>()
}

fn library(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    let path = args.need("<path>")?;
    // A bare name would be looked for in folders that depend on the environment.
    if !path.starts_with('/') {
        return Err(args.fault(format!("'{path}' is not an absolute path")));
    }
    let source = Source::Library(PathBuf::from(path));
    choose_source(args, scope, source, place)
}

fn device(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    match args.need("'cuda'")? {
        "cuda" => {}
        other => return Err(args.fault(format!("expects 'cuda', not '{other}'"))),
    }
    let number = if args.peek().is_none() { 0 } else { number(args, 0..=MAX_DEVICE)? };
    choose_source(args, scope, Source::Cuda(number as u32), place)
}

fn choose_source(args: &Args<'_>, scope: &mut Scope<'_>, source: Source, place: terse_config::Place) -> Result<(), Fault> {
    let settings = settings(scope);
    let is_other =
        matches!((&settings.source, &source), (Source::Library(_), Source::Cuda(_)) | (Source::Cuda(_), Source::Library(_)));
    if is_other {
        return Err(args.fault("an engine has a 'library' or a 'device', not both"));
    }
    (settings.source, settings.source_place) = (source, place);
    Ok(())
}

fn in_process(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).in_process = true;
    Ok(())
}

fn number(args: &mut Args<'_>, range: std::ops::RangeInclusive<i64>) -> Result<usize, Fault> {
    let n = args.integer("<number>", range)?;
    usize::try_from(n).map_err(|_| args.fault(format!("{n} is too large")))
}

fn threads(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).threads = number(args, 1..=MAX_JOBS)?;
    Ok(())
}

fn jobs(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).said_jobs = Some(number(args, 1..=MAX_JOBS)?);
    Ok(())
}

fn max_queue(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).max_queue = number(args, 0..=1 << 20)?;
    Ok(())
}

fn deadline(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).deadline = time(args)?;
    Ok(())
}

fn inter(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).inter = time(args)?;
    Ok(())
}

fn time(args: &mut Args<'_>) -> Result<std::time::Duration, Fault> {
    let time = args.time("<time>")?;
    if time.is_zero() || time.as_secs() > MAX_SECONDS {
        return Err(args.fault(format!("'{}' is not between 1us and {MAX_SECONDS}s", args.taken())));
    }
    Ok(time)
}

fn smallest(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).said_smallest = Some(size(args)?);
    Ok(())
}

fn largest(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).largest = size(args)?;
    Ok(())
}

fn size(args: &mut Args<'_>) -> Result<usize, Fault> {
    let bytes = args.size("<size>")?;
    let fits = usize::try_from(bytes).ok().filter(|bytes| *bytes <= crate::body::MAX_COLLECT_BYTES);
    fits.ok_or_else(|| args.fault(format!("{bytes} is above the limit of {}", crate::body::MAX_COLLECT_BYTES)))
}

fn verify(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).verify = match args.need("'none', 'checksum' or 'full'")? {
        "none" => Verify::None,
        "checksum" => Verify::Checksum,
        "full" => Verify::Full,
        other => return Err(args.fault(format!("expects 'none', 'checksum' or 'full', not '{other}'"))),
    };
    Ok(())
}

fn fallback(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).fallback = u8::try_from(args.integer("<level>", 0..=9)?).ok();
    Ok(())
}

fn fall(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).fall = count(args)?;
    Ok(())
}

fn rise(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).rise = count(args)?;
    Ok(())
}

fn count(args: &mut Args<'_>) -> Result<u32, Fault> {
    let n = args.integer("<number>", 1..=1000)?;
    u32::try_from(n).map_err(|_| args.fault(format!("{n} is too large")))
}

fn choose(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    let name = args.need("<name>")?;
    let compression = scope.section.settings.entry::<Compression>();
    compression.directions.get_or_insert(Directions { request: false, response: true });
    compression.engine = Some(if name == "none" { Choice::Software } else { Choice::Named(name.into(), place) });
    Ok(())
}

/// Each may hold two bodies of the largest size in shared memory.
const MAX_JOBS: i64 = 256;

/// A machine has fewer.
const MAX_DEVICE: i64 = 255;

/// A longer time is no help to any response.
const MAX_SECONDS: u64 = 3600;
