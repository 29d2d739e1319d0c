//! `stick`, `use-server`, `force-persist`, `ignore-persist`, `persist rdp-cookie`; and the settings of `global` about
//! counters of stick tables.

use super::{done, in_back};
use crate::rules::RuleSet;
use crate::rules::order::{self, Turn};
use crate::stick::{PersistRule, Persistence, ServerRule, ServerTarget, StickRule, StickSettings};
use crate::track::TrackSettings;
use crate::track::codes::Codes;
use crate::track::name::{TableName, Want};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Parser, Scope, Sections, Word};
use terse_sample::{Condition, Expr, LogFormat, Registry, Usage};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    stick(
        "stick on",
        "Sends requests of a key to the server that a stick table knows, and lets the table learn it.",
        |args, scope| rule(args, scope, true, true, RuleSet::Request),
    ),
    stick("stick match", "Sends requests of a key to the server that a stick table knows.", |args, scope| {
        rule(args, scope, true, false, RuleSet::Request)
    }),
    Keyword {
        old_names: &["stick store"],
        ..stick("stick store-request", "Lets a stick table learn the server of a request's key.", |args, scope| {
            rule(args, scope, false, true, RuleSet::Request)
        })
    },
    stick("stick store-response", "Lets a stick table learn the server of a response's key.", |args, scope| {
        rule(args, scope, false, true, RuleSet::Response)
    }),
    proxy(
        "use-server",
        "<server> {if | unless} <condition>",
        "Sends requests to a server; the name may hold expressions.",
        use_server,
    ),
    proxy(
        "force-persist",
        "{if | unless} <condition>",
        "Lets persistence send requests to servers that are down.",
        |args, scope| persistence(args, scope, Persistence::Force),
    ),
    proxy("ignore-persist", "{if | unless} <condition>", "Lets requests go without the persistence cookie.", |args, scope| {
        persistence(args, scope, Persistence::Ignore)
    }),
    Keyword {
        sections: Sections::BACK,
        ..done("persist", "rdp-cookie[(<name>)]", "Sends RDP clients to the server that their cookie, 'msts', names.", persist)
    },
    global("tune.stick-counters", "<number>", "How many keys a stream or a connection may track at a time.", |args, scope| {
        let slots = args.integer("<number>", 0..=MOST_SLOTS)?;
        scope.shared.entry::<TrackSettings>().slots = usize::try_from(slots).unwrap_or_default();
        Ok(())
    }),
    global("http-err-codes", "[+ | -]<range>[,...] [...]", "Which statuses count as errors of clients.", |args, scope| {
        codes(args, scope, |settings| &mut settings.errors)
    }),
    global("http-fail-codes", "[+ | -]<range>[,...] [...]", "Which statuses count as failures of servers.", |args, scope| {
        codes(args, scope, |settings| &mut settings.failures)
    }),
];

const fn stick(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    proxy(name, "<key> [table <table>] [if | unless <condition>]", summary, parser)
}

const fn proxy(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { sections: Sections::PROXY_ONLY, ..done(name, arguments, summary, parser) }
}

const fn global(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { sections: Sections::GLOBAL, ..done(name, arguments, summary, parser) }
}

fn rule(args: &mut Args<'_>, scope: &mut Scope<'_>, matches: bool, stores: bool, set: RuleSet) -> Result<(), Fault> {
    let key = Expr::parse(args, scope, set.have())?;
    let name = if args.accept("table") { Some(args.need("<table>")?) } else { None };
    let condition = Condition::parse(args, scope, set.have())?;
    args.end()?;
    if !in_back(scope) {
        return Ok(());
    }
    let section = scope.section.name.clone();
    let registry: &mut Registry = scope.shared.entry();
    let table = TableName::note(name, &section, Want::Servers(key.output()), &scope.place, registry);
    let rule = Arc::new(StickRule { key, table, condition, matches, stores });
    let settings = settings(scope);
    match set {
        RuleSet::Response => settings.responses.push(rule),
        _ => settings.requests.push(rule),
    }
    Ok(())
}

fn use_server(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    let format = LogFormat::parse(args, scope, RuleSet::Request.have(), Usage::Text)?;
    let target = match format.as_text() {
        Some(name) => ServerTarget::Name(String::from_utf8_lossy(name).into_owned()),
        None => ServerTarget::Format(format),
    };
    let condition = Condition::parse(args, scope, RuleSet::Request.have())?;
    args.end()?;
    if condition.is_none() {
        return Err(args.fault("expects 'if' or 'unless' and a condition").hint("'if TRUE' holds for every request"));
    }
    if in_back(scope) {
        order::note(Turn::Server, scope);
        settings(scope).servers.push(Arc::new(ServerRule { target, condition, place }));
    }
    Ok(())
}

fn persistence(args: &mut Args<'_>, scope: &mut Scope<'_>, word: Persistence) -> Result<(), Fault> {
    let Some(condition) = Condition::parse(args, scope, RuleSet::Request.have())? else {
        return Err(Fault::new(args.position().saturating_sub(1), "expects 'if' or 'unless' and a condition"));
    };
    if in_back(scope) {
        settings(scope).persistence.push(Arc::new(PersistRule { word, condition }));
    }
    Ok(())
}

fn persist(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let word = args.need("rdp-cookie")?;
    let inside = word.strip_prefix("rdp-cookie").and_then(|rest| match rest {
        "" => Some(DEFAULT_TOKEN),
        rest => rest.strip_prefix('(')?.strip_suffix(')'),
    });
    let Some(name) = inside else { return Err(args.fault(format!("'{word}' is not 'rdp-cookie' or 'rdp-cookie(<name>)'"))) };
    if name.is_empty() {
        return Err(args.fault("a cookie's name cannot be empty"));
    }
    let words = [Word { bytes: format!("req.rdp_cookie({name})").into_bytes(), span: 0..0 }];
    let token = Expr::parse(&mut Args::new(&words, 0), scope, RuleSet::Request.have()).map_err(|fault| args.fault(fault.reason))?;
    args.end()?;
    if in_back(scope) {
        settings(scope).token = Some(Arc::new(token));
    }
    Ok(())
}

fn codes(args: &mut Args<'_>, scope: &mut Scope<'_>, of: fn(&mut TrackSettings) -> &mut Codes) -> Result<(), Fault> {
    args.need("<range>")?;
    args.seek(args.position() - 1);
    while let Some(word) = args.take() {
        of(scope.shared.entry::<TrackSettings>()).change(word).map_err(|reason| args.fault(reason))?;
    }
    Ok(())
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut StickSettings {
    scope.section.settings.entry()
}

/// The cookie of terminal servers that redirect by token.
const DEFAULT_TOKEN: &str = "msts";
/// Room for more would be taken in each stream that tracks.
const MOST_SLOTS: i64 = 100;

#[cfg(test)]
mod tests {
    use super::super::tests::{last, said_in};
    use super::*;
    use terse_config::Setting as _;

    #[test]
    fn lines_of_a_backend() {
        let settings: StickSettings = last(
            "backend b\n stick-table type ip size 1\n stick on src\n stick match src table b if TRUE\n \
             stick store-request hdr(x),lower\n stick store-response res.hdr(x)\n \
             use-server s if { path /a }\n use-server %[path] unless TRUE\n force-persist if TRUE\n ignore-persist unless TRUE\n",
        )
        .settings
        .take()
        .unwrap();
        let flags: Vec<_> = settings.requests.iter().map(|rule| (rule.matches, rule.stores, rule.condition.is_some())).collect();
        assert_eq!(flags, [(true, true, false), (true, false, true), (false, true, false)]);
        assert_eq!((settings.responses.len(), settings.servers.len()), (1, 2));
        let words: Vec<_> = settings.persistence.iter().map(|rule| rule.word).collect();
        assert_eq!(words, [Persistence::Force, Persistence::Ignore]);
        assert!(!settings.is_empty() && settings.inherit().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("stick on", "expects <expression>"),
            ("stick on srcc", "unknown fetch method 'srcc'"),
            ("stick on src table", "expects <table>"),
            ("stick on src tabel b", "'tabel'"),
            ("stick on res.hdr(x)", "needs the response's head"),
            ("persist", "expects rdp-cookie"),
            ("persist rdp", "is not 'rdp-cookie'"),
            ("persist rdp-cookie(", "is not 'rdp-cookie'"),
            ("persist rdp-cookie()", "cannot be empty"),
            ("use-server", "expects"),
            ("use-server s", "expects 'if' or 'unless'"),
            ("force-persist", "expects 'if' or 'unless'"),
            ("ignore-persist when x", "expects 'if' or 'unless'"),
        ] {
            let problems = said_in("backend b", line);
            assert!(problems.len() == 1 && problems[0].contains(said), "{line}: {problems:?}");
        }
        for line in ["http-err-codes", "http-fail-codes 99", "tune.stick-counters 1000"] {
            assert_eq!(said_in("global", line).len(), 1, "{line}");
        }
        let said = said_in("frontend f", "stick on src");
        assert!(said.len() == 1 && said[0].contains("has no backend capability"), "{said:?}");
    }
}
