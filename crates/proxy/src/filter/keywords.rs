//! `filter bwlim-in`, `filter bwlim-out`, `filter trace`; and the filters that need unbuilt features.

use super::share::Share;
use super::{Direction, FilterSettings, LimitKind, LimitSettings, Side, TraceSettings};
use crate::cache::CacheName;
use crate::settings::ProxySettings;
use crate::track::name::{TableName, Want};
use std::sync::Arc;
use std::time::Duration;
use terse_balance::table::Data;
use terse_compress::Compression;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, near};
use terse_sample::{Expr, Needs, Registry};

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    done(
        "filter bwlim-in",
        LIMIT,
        "Limits how fast bodies of requests go on, where 'set-bandwidth-limit' says so.",
        |args, scope| limit(args, scope, Direction::In),
    ),
    done(
        "filter bwlim-out",
        LIMIT,
        "Limits how fast bodies of responses go on, where 'set-bandwidth-limit' says so.",
        |args, scope| limit(args, scope, Direction::Out),
    ),
    done(
        "filter trace",
        "[name <name>] [random-forwarding] [max-fwd <bytes>] [hexdump] [quiet]",
        "Writes on standard error what goes through, and forwards it in pieces of any size.",
        trace,
    ),
    done("filter cache", "<cache>", "Says where a cache stands among filters; it is always before compression.", cache),
    refused("filter fcgi-app", "Speaks FastCGI to servers.", "FastCGI is not spoken"),
    refused("filter lua", "Lets a function in Lua see bodies.", "filters in Lua are not built"),
    refused("filter opentelemetry", "Tells a collector of spans.", "no spans are made"),
    refused("filter opentracing", "Tells a collector of spans.", "no spans are made"),
    refused("filter spoe", "Asks an agent.", "SPOE is not built"),
    done("filter", "<name> ...", "Adds a filter.", unknown),
];

const LIMIT: &str =
    "<name> {default-limit <bytes> default-period <time> | limit <bytes> key <expression> [table <table>]} [min-size <bytes>]";

fn limit(args: &mut Args<'_>, scope: &mut Scope<'_>, direction: Direction) -> Result<(), Fault> {
    let name = args.need("<name>")?.to_owned();
    let at = args.position().saturating_sub(1);
    let (mut bytes, mut period, mut least_bytes) = (None, None, 0);
    let (mut shared, mut key, mut table) = (None, None, None);
    while let Some(word) = args.take() {
        match word {
            "default-limit" => bytes = Some(args.size("<bytes>")?).filter(|bytes| *bytes > 0),
            "default-period" => period = Some(args.time("<time>")?).filter(|period| *period > Duration::ZERO),
            "min-size" => least_bytes = usize::try_from(args.size("<bytes>")?).unwrap_or(usize::MAX),
            "limit" => shared = Some(args.size("<bytes>")?).filter(|bytes| *bytes > 0),
            "key" => key = Some(Expr::parse(args, scope, Needs::REQUEST)?),
            "table" => table = Some(args.need("<table>")?),
            _ => {
                let known = ["default-limit", "default-period", "limit", "key", "table", "min-size"];
                return Err(near::hinted(args.fault(format!("unknown parameter '{word}'")), word, known));
            }
        }
    }
    let kind = match (bytes, period, shared, key) {
        (Some(bytes), Some(period), None, None) if table.is_none() => LimitKind::Stream { bytes, period },
        (None, None, Some(bytes), Some(key)) => LimitKind::Shared(share(bytes, key, table, direction, scope)),
        _ => {
            let reason = "expects either 'default-limit' and 'default-period', or 'limit' and 'key', more than 0";
            return Err(Fault::new(at, format!("'{name}' {reason}")));
        }
    };
    let side = side(scope);
    let place = scope.place.clone();
    let limit = filters(scope).limit(&name, &place);
    limit
        .declared
        .set(LimitSettings { direction, side, kind, least_bytes })
        .map_err(|_| Fault::new(at, format!("another filter of this section has the name '{name}'")))
}

/// A limit that streams share by a table: another section's, or that of this section.
fn share(bytes: u64, key: Expr, table: Option<&str>, direction: Direction, scope: &mut Scope<'_>) -> Share {
    let data = if direction == Direction::In { Data::BytesInRate } else { Data::BytesOutRate };
    let (section, place) = (scope.section.name.clone(), scope.place.clone());
    let registry: &mut Registry = scope.shared.entry();
    TableName::note(table, &section, Want::Keys(key.output(), "filter".into()), &place, registry);
    let table = TableName::note(table, &section, Want::Rate(data), &place, registry);
    Share { bytes, key: Arc::new(key), table, data }
}

fn trace(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let mut trace =
        TraceSettings { name: "TRACE".into(), side: side(scope), quiet: false, random: false, dumps: false, most_bytes: 0 };
    while let Some(word) = args.take() {
        match word {
            "name" => trace.name = args.need("<name>")?.into(),
            "random-forwarding" => trace.random = true,
            "max-fwd" => trace.most_bytes = args.integer("<bytes>", 0..=i64::from(i32::MAX))? as usize,
            "hexdump" => trace.dumps = true,
            "quiet" => trace.quiet = true,
            _ => {
                let known = ["name", "random-forwarding", "max-fwd", "hexdump", "quiet"];
                return Err(near::hinted(args.fault(format!("unknown parameter '{word}'")), word, known));
            }
        }
    }
    filters(scope).traces.push(Arc::new(trace));
    Ok(())
}

/// A cache stores the response as the server sent it, so no other place is possible.
fn cache(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let at = args.position();
    let name = CacheName::parse(args, scope)?;
    if side(scope) == Side::Behind {
        return Err(Fault::new(at, "a cache cannot stand behind compression").hint("put this line before the one of compression"));
    }
    let caches = &mut filters(scope).caches;
    if caches.iter().any(|one| one.name == name.name) {
        return Err(Fault::new(at, format!("the filter of cache '{}' stands twice in this proxy", name.name)));
    }
    caches.push(name);
    args.end()
}

fn unknown(args: &mut Args<'_>, _: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    let known = ["bwlim-in", "bwlim-out", "cache", "comp-req", "comp-res", "compression", "trace"];
    Err(near::hinted(args.fault(format!("unknown filter '{name}'")), name, known))
}

/// Without a line for compression, it comes last.
fn side(scope: &mut Scope<'_>) -> Side {
    match scope.section.settings.get::<Compression>().is_some_and(|compression| compression.filters.is_some()) {
        true => Side::Behind,
        false => Side::Before,
    }
}

fn filters<'a>(scope: &'a mut Scope<'_>) -> &'a mut FilterSettings {
    Arc::make_mut(&mut scope.section.settings.entry::<ProxySettings>().filters)
}

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY_ONLY, arguments, summary, kind: Kind::Done(parser) }
}

const fn refused(name: &'static str, summary: &'static str, why: &'static str) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments: "...", summary, kind: Kind::Refused(why) }
}
