//! The keywords of `cache` sections.

use super::{CacheSettings, EarlyHints};
use terse_config::{Keyword, Kind, Parser, Scope, Sections};

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    keyword("total-max-size", "<megabytes>", "The memory of the cache, 1 to 4095 megabytes.", |args, scope| {
        settings(scope).total_mbytes = u32::try_from(args.integer("<megabytes>", 1..=4095)?).ok();
        args.end()
    }),
    keyword(
        "max-object-size",
        "<bytes>",
        "The most bytes of a response that is kept, head and body; a 256th of the cache by default, at most a half.",
        |args, scope| {
            settings(scope).max_object_bytes = usize::try_from(args.integer("<bytes>", 0..=i64::from(u32::MAX))?).ok();
            args.end()
        },
    ),
    keyword("max-age", "<seconds>", "The longest that a response is kept, 60 seconds by default.", |args, scope| {
        settings(scope).max_age = u64::try_from(args.integer("<seconds>", 0..=i64::from(i32::MAX))?).ok();
        args.end()
    }),
    keyword(
        "process-vary",
        "{ on | off }",
        "Keeps responses that vary on Accept-Encoding, Referer or Origin; off, which is the default, none that vary.",
        |args, scope| {
            settings(scope).vary = match args.need("<on|off>")? {
                "on" => true,
                "off" => false,
                word => return Err(args.fault(format!("expects 'on' or 'off', not '{word}'"))),
            };
            args.end()
        },
    ),
    keyword(
        "early-hints",
        "{ on | off | only } [ratio <percent>]",
        "Tells clients ahead of a server's response what its last one has named in Link; 'only' keeps no responses. Off by default.",
        |args, scope| {
            settings(scope).early_hints = match args.need("<on|off|only>")? {
                "on" => EarlyHints::On,
                "off" => EarlyHints::Off,
                "only" => EarlyHints::Only,
                word => return Err(args.fault(format!("expects 'on', 'off' or 'only', not '{word}'"))),
            };
            if args.accept("ratio") {
                settings(scope).hint_percent = usize::try_from(args.integer("<percent>", 1..=99)?).ok();
            }
            args.end()
        },
    ),
    keyword("max-secondary-entries", "<number>", "The most responses of one resource that vary, 10 by default.", |args, scope| {
        settings(scope).max_variants = usize::try_from(args.integer("<number>", 1..=i64::from(i32::MAX))?).ok();
        args.end()
    }),
];

const fn keyword(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::CACHE, arguments, summary, kind: Kind::Done(parser) }
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut CacheSettings {
    scope.section.settings.entry()
}
