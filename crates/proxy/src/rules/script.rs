//! Actions that programs add: `lua.NAME`, `use-service lua.NAME`; and the built-in services.

use super::{ANY, Action, ActionWord, CONTENT, Flow, REQUEST, RuleSet, SERVER_CONTENT, done};
use crate::script::{Applet, BuiltIn, Library, Scripts};
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Scope};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done(
        "lua.",
        ANY | CONTENT | SERVER_CONTENT,
        "<name> [<argument>]...",
        "Calls an action that a Lua script has registered.",
        call,
    ),
    done(
        "use-service",
        REQUEST | CONTENT,
        "lua.<name> | prometheus-exporter",
        "Answers by a service that a Lua script has registered, or with figures for Prometheus.",
        use_service,
    ),
];

struct UseService {
    service: Arc<dyn Applet>,
}

impl Action for UseService {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Perform(self.service.clone())
    }

    fn is_final(&self) -> bool {
        true
    }

    fn is_service(&self) -> bool {
        true
    }
}

fn call(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let name = args.taken().trim_start_matches(LUA);
    library(args, scope)?.action(name, args, set)
}

fn use_service(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let word = args.need("<service>")?;
    let Some(name) = word.strip_prefix(LUA) else {
        return Ok(Box::new(UseService { service: built_in(word, args, scope, set)? }));
    };
    Ok(Box::new(UseService { service: library(args, scope)?.service(name, args, set)? }))
}

/// A service of this program.
fn built_in(word: &str, args: &Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Arc<dyn Applet>, Fault> {
    let known = scope.shared.entry::<BuiltIn>().0.clone();
    let Some((_, make)) = known.iter().find(|(name, _)| *name == word) else {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("'{name}'")).collect();
        let hint = format!("services are {}, and those of Lua scripts, 'lua.<name>'", names.join(", "));
        return Err(args.fault(format!("service '{word}' is not supported: it is not built")).hint(hint));
    };
    match set {
        RuleSet::Request => Ok(make(&mut *scope.shared)),
        _ => Err(args.fault(format!("service '{word}' speaks HTTP")).hint("write it behind 'http-request'")),
    }
}

fn library(args: &Args<'_>, scope: &mut Scope<'_>) -> Result<Arc<dyn Library>, Fault> {
    let Scripts { library, has_failed } = scope.shared.entry::<Scripts>().clone();
    let hint = match has_failed {
        true => "the script that was to be loaded above has a fault",
        false => "load one with 'lua-load' in a 'global' section above",
    };
    library.ok_or_else(|| args.fault("no Lua script is loaded").hint(hint))
}

const LUA: &str = "lua.";
