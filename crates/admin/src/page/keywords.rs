//! The keywords of the statistics page.

use super::Page;
use super::access::{AccessRule, RuleKind, credential};
use super::settings::{Link, PageSettings};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, TimeUnit, Word};
use terse_proxy::settings::ProxySettings;
use terse_sample::{Condition, Needs};

/// The table.
pub(crate) const KEYWORDS: &[Keyword] = &[
    done(
        "stats enable",
        "",
        "Shows figures on a page; by default at '/haproxy?stats'. So does every other 'stats' line.",
        |args, scope| {
            args.end()?;
            edit(scope, |_| {})
        },
    ),
    done("stats uri", "<prefix>", "What targets of the page begin with.", |args, scope| {
        let uri = args.need("<prefix>")?.to_owned();
        edit(scope, |page| page.uri = uri)
    }),
    done("stats auth", "<user>:<password>", "Who may see the page; one line for each.", |args, scope| {
        let pair = args.need_bytes("<user>:<password>")?;
        if !pair.contains(&b':') {
            return Err(args.fault("expects '<user>:<password>'"));
        }
        let credential = credential(pair);
        edit(scope, |page| page.credentials.push(credential))
    }),
    done("stats realm", "<text>", "What the page's password is asked for with.", |args, scope| {
        let realm = args.need("<text>")?.to_owned();
        edit(scope, |page| page.realm = Some(realm))
    }),
    done("stats refresh", "<time>", "How often browsers load the page again; seconds without a unit.", |args, scope| {
        let time = args.time_in("<time>", TimeUnit::Seconds)?;
        edit(scope, |page| page.refresh = Some(time).filter(|time| time.as_secs() > 0))
    }),
    done("stats hide-version", "", "The page does not say the version; so by default.", |args, scope| {
        args.end()?;
        edit(scope, |page| page.version = false)
    }),
    done("stats show-version", "", "The page says the version.", |args, scope| {
        args.end()?;
        edit(scope, |page| page.version = true)
    }),
    done(
        "stats show-desc",
        "[<text>]...",
        "The page shows a text; without one, that of 'description' in 'global'.",
        |args, scope| {
            let words: Vec<_> = args.take_rest().iter().map(Word::display).collect();
            edit(scope, |page| page.description = Some(Some(words.join(" ")).filter(|text| !text.is_empty())))
        },
    ),
    done(
        "stats show-node",
        "[<name>]",
        "The page shows a name; without one, that of 'node' in 'global', or the machine's.",
        |args, scope| {
            let name = args.take().map(str::to_owned);
            edit(scope, |page| page.node = Some(name))
        },
    ),
    done("stats show-legends", "", "The page shows addresses, cookies and algorithms.", |args, scope| {
        args.end()?;
        edit(scope, |page| page.legends = true)
    }),
    done(
        "stats scope",
        "<proxy> | .",
        "The proxies that the page shows and changes, '.' for its own; one line for each.",
        |args, scope| {
            let name = args.need("<proxy>")?.to_owned();
            edit(scope, |page| page.scope.push(name))
        },
    ),
    Keyword {
        sections: Sections::PROXY_ONLY,
        ..done("stats admin", "if | unless <condition>", "When servers may be changed on the page.", |args, scope| {
            match Condition::parse(args, scope, Needs::REQUEST)? {
                Some(condition) => edit(scope, |page| page.admin.push(condition)),
                None => Err(args.fault("expects 'if' or 'unless' and a condition")),
            }
        })
    },
    Keyword {
        sections: Sections::PROXY_ONLY,
        ..done(
            "stats http-request",
            "allow | deny | auth [realm <text>] [if | unless <condition>]",
            "Who may see the page; the first line whose condition holds decides.",
            rule,
        )
    },
    done("stats show-modules", "", "Shows the page; no column of it is hidden without this line.", |args, scope| {
        args.end()?;
        edit(scope, |_| {})
    }),
];

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

/// Changes the settings of the section's page, and makes the page anew.
fn edit(scope: &mut Scope<'_>, change: impl FnOnce(&mut PageSettings)) -> Result<(), Fault> {
    let link = scope.shared.entry::<Link>().clone();
    let settings: &mut PageSettings = scope.section.settings.entry();
    change(settings);
    let page = Page { settings: Arc::new(settings.clone()), link };
    scope.section.settings.entry::<ProxySettings>().service = Some(Arc::new(page));
    Ok(())
}

fn rule(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let kind = match args.need("'allow', 'deny' or 'auth'")? {
        "allow" => RuleKind::Allow,
        "deny" => RuleKind::Deny,
        "auth" if args.accept("realm") => RuleKind::Auth(Some(args.need("<text>")?.to_owned())),
        "auth" => RuleKind::Auth(None),
        word => return Err(args.fault(format!("'{word}' is not 'allow', 'deny' or 'auth'"))),
    };
    let condition = Condition::parse(args, scope, Needs::REQUEST)?;
    args.end()?;
    edit(scope, |page| page.rules.push(Arc::new(AccessRule { kind, condition })))
}

#[cfg(test)]
mod tests;
