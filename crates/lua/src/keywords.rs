//! `lua-load`, `lua-load-per-thread`, `lua-prepend-path`, `tune.lua.*`.

use crate::library::Library;
use crate::state::PathKind;
use mlua::StdLib;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use terse_admin::Link;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, Setting};
use terse_proxy::script::Scripts;
use terse_sample::Registry;

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    done("lua-load", "<file> [<argument>]...", "Loads a Lua script, into one state that all workers share.", |args, scope| {
        load(args, scope, false)
    }),
    done(
        "lua-load-per-thread",
        "<file> [<argument>]...",
        "Loads a Lua script into a state of each worker's own.",
        |args, scope| load(args, scope, true),
    ),
    done("lua-prepend-path", "<path> [path | cpath]", "Where else Lua looks for modules, before all others.", prepend),
    done(
        "tune.lua.bool-sample-conversion",
        "normal | pre-3.1-bug",
        "Whether Lua sees truth as a boolean, or as a number.",
        booleans,
    ),
    done(
        "tune.lua.burst-timeout",
        "<time>",
        "The longest that a script computes without waiting or making way for others.",
        |args, scope| time(args, scope, |tuning| &mut tuning.burst),
    ),
    done("tune.lua.forced-yield", "<number>", "After how many instructions of a script the clock is looked at.", |args, scope| {
        let number = args.integer("<number>", 1..=i64::from(u32::MAX >> 1))?;
        args.end()?;
        loaded(scope).library.tune(|tuning| tuning.forced_yield = u32::try_from(number).ok());
        Ok(())
    }),
    done("tune.lua.log.loggers", "on | off", "Whether lines of scripts go to the logs.", |args, scope| {
        let on = switch(args)?;
        loaded(scope).library.tune(|tuning| tuning.to_loggers = on);
        Ok(())
    }),
    done(
        "tune.lua.log.stderr",
        "on | auto | off",
        "Whether lines of scripts go to standard error; 'auto': where no log takes them.",
        |args, scope| {
            let to = match args.accept("auto") {
                true => args.end().map(|()| None)?,
                false => Some(switch(args)?),
            };
            loaded(scope).library.tune(|tuning| tuning.to_stderr = to);
            Ok(())
        },
    ),
    done("tune.lua.maxmem", "<MiB>", "The most memory of a state of Lua.", |args, scope| {
        let mebibytes = args.integer("<MiB>", 0..=1 << 20)?;
        args.end()?;
        loaded(scope).library.tune(|tuning| tuning.memory_bytes = usize::try_from(mebibytes << 20).unwrap_or(usize::MAX));
        Ok(())
    }),
    done("tune.lua.openlibs", "all | none | <library>[,<library>]...", "Which of Lua's libraries scripts have.", libraries),
    done(
        "tune.lua.service-timeout",
        "<time>",
        "The longest that a service of a script runs, not counting what it waits for.",
        |args, scope| time(args, scope, |tuning| &mut tuning.service),
    ),
    done("tune.lua.session-timeout", "<time>", "The same for actions, fetches and converters.", |args, scope| {
        time(args, scope, |tuning| &mut tuning.session)
    }),
    done("tune.lua.task-timeout", "<time>", "The same for tasks.", |args, scope| time(args, scope, |tuning| &mut tuning.task)),
];

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Done(parser) }
}

/// The scripts of the configuration that is being read.
#[derive(Clone, Default)]
struct Loaded {
    library: Arc<Library>,
    /// `tune.lua.bool-sample-conversion` was set.
    knows_truth: bool,
}

impl Setting for Loaded {
    fn inherit(&self) -> Loaded {
        self.clone()
    }
}

fn loaded<'a>(scope: &'a mut Scope<'_>) -> &'a mut Loaded {
    scope.shared.entry()
}

fn load(args: &mut Args<'_>, scope: &mut Scope<'_>, per_thread: bool) -> Result<(), Fault> {
    let at = args.position();
    let file = PathBuf::from(args.need("<file>")?);
    let mut words = Vec::new();
    while let Some(word) = args.take() {
        words.push(word.to_owned());
    }
    let Loaded { library, knows_truth } = loaded(scope).clone();
    if !knows_truth && !library.is_loaded() {
        let warning = Fault::new(at, "scripts see truth of fetches and converters as a number, HAProxy's way of old");
        scope.warnings.push(warning.hint("say 'tune.lua.bool-sample-conversion normal' above, or 'pre-3.1-bug' to keep to it"));
    }
    library.lead(scope.shared.entry::<Link>().clone());
    let registry: &mut Registry = scope.shared.entry();
    if let Err(reason) = library.load(registry, file, words, per_thread) {
        scope.shared.entry::<Scripts>().has_failed = true;
        return Err(Fault::new(at, reason));
    }
    registry.scripts = Some(library.clone());
    scope.shared.entry::<Scripts>().library = Some(library);
    Ok(())
}

fn prepend(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let path = args.need("<path>")?.to_owned();
    let kind = match args.take() {
        None | Some("path") => PathKind::Path,
        Some("cpath") => {
            args.changes_nothing("modules in C are not loaded");
            PathKind::CPath
        }
        Some(other) => return Err(args.fault(format!("expects 'path' or 'cpath', not '{other}'"))),
    };
    args.end()?;
    loaded(scope).library.prepend(kind, path).map_err(|reason| Fault::new(0, reason))
}

fn booleans(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let normal = match args.need("'normal' or 'pre-3.1-bug'")? {
        "normal" => true,
        "pre-3.1-bug" => false,
        other => return Err(args.fault(format!("expects 'normal' or 'pre-3.1-bug', not '{other}'"))),
    };
    args.end()?;
    let loaded = loaded(scope);
    loaded.knows_truth = true;
    loaded.library.tune(|tuning| tuning.booleans = normal);
    Ok(())
}

fn time(
    args: &mut Args<'_>,
    scope: &mut Scope<'_>,
    of: fn(&mut crate::tuning::Tuning) -> &mut Option<Duration>,
) -> Result<(), Fault> {
    let time = args.time("<time>")?;
    args.end()?;
    // 0 is no limit.
    loaded(scope).library.tune(|tuning| *of(tuning) = Some(time).filter(|time| !time.is_zero()));
    Ok(())
}

fn switch(args: &mut Args<'_>) -> Result<bool, Fault> {
    let on = match args.need("'on' or 'off'")? {
        "on" => true,
        "off" => false,
        other => return Err(args.fault(format!("expects 'on' or 'off', not '{other}'"))),
    };
    args.end()?;
    Ok(on)
}

const LIBRARIES: &[(&str, StdLib)] = &[
    ("table", StdLib::TABLE),
    ("io", StdLib::IO),
    ("os", StdLib::OS),
    ("string", StdLib::STRING),
    ("math", StdLib::MATH),
    ("utf8", StdLib::UTF8),
    ("package", StdLib::PACKAGE),
    // Only the functions of this library that need no trust exist: each state has them.
    ("debug", StdLib::NONE),
];

fn libraries(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let words = args.need("<library>")?;
    let libraries = match words {
        "all" => StdLib::ALL_SAFE,
        "none" => StdLib::NONE,
        words => {
            let mut libraries = StdLib::NONE;
            for word in words.split(',') {
                let names = || LIBRARIES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                match LIBRARIES.iter().find(|(name, _)| *name == word) {
                    Some((_, library)) => libraries |= *library,
                    None => return Err(args.fault(format!("'{word}' is no library of Lua")).hint(format!("one of {}", names()))),
                }
            }
            libraries
        }
    };
    args.end()?;
    if loaded(scope).library.is_loaded() {
        return Err(args.fault("comes too late: a script is loaded above").hint("put it before 'lua-load'"));
    }
    loaded(scope).library.tune(|tuning| tuning.libraries = libraries);
    Ok(())
}
