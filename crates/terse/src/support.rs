//! The matrix of support: each keyword of HAProxy, and whether it is done here, accepted or refused.
//!
//! The names are facts, kept in a file beside this one by class; their support comes from the tables that the program reads
//! configurations by. A name that is in no table is refused as any unknown keyword is.

use crate::keywords::{samples, tables};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use terse_config::params::Standing;
use terse_config::{Environment, IDLE_SECTIONS, Keyword, Kind, REFUSED_SECTIONS, SectionKind, Sections, keyword, reference};
use terse_sample::FetchKind;
use terse_sample::registry::ConverterKind;

/// The page of the manual.
pub fn page() -> String {
    let known = Known::new();
    let mut rows = String::new();
    let mut sums = String::from("| | done | accepted | refused | unknown |\n|---|---|---|---|---|\n");
    for (class, title) in CLASSES {
        let standings: BTreeMap<&str, Option<Standing>> = names(class).map(|name| (name, known.standing(class, name))).collect();
        let count =
            |kind| standings.values().filter(|standing| standing.map_or("unknown", |standing| standing.kind) == kind).count();
        let counts = ["done", "accepted", "refused", "unknown"].map(count);
        let _ = writeln!(sums, "| {title} | {} | {} | {} | {} |", counts[0], counts[1], counts[2], counts[3]);
        let _ = write!(rows, "\n## {title}\n\n| | | |\n|---|---|---|\n");
        for (name, standing) in standings {
            let (kind, reason) = standing.map_or(("unknown", None), |standing| (standing.kind, standing.reason));
            let _ = writeln!(rows, "| `{name}` | {kind} | {} |", reference::plain(reason.unwrap_or_default()).replace('|', "\\|"));
        }
    }
    format!("{HEAD}\n{sums}{rows}")
}

const HEAD: &str = "\
# What of HAProxy's language is there

Written by `terse -dKsupport` from the tables that the program reads configurations by; do not edit it. Each keyword of HAProxy 3.5 is
*done*; or *accepted*: it cannot change anything here, and the reason says why; or *refused* by its name with the reason, or with what
to write instead; or *unknown*: refused as any word is that nobody knows. What terse has beyond HAProxy is in the
[reference](reference.md).
";

/// Classes of names, in the order of the page: the class in the file of names, and its title.
const CLASSES: [(&str, &str); 10] = [
    ("section", "Sections"),
    ("global", "Keywords of `global`"),
    ("proxy", "Keywords of proxies"),
    ("bind", "Words of `bind`"),
    ("server", "Words of `server`"),
    ("rule", "Actions of rules"),
    ("filter", "Filters"),
    ("resolvers", "Keywords of `resolvers`"),
    ("fetch", "Fetches"),
    ("converter", "Converters"),
];

/// Returns the names of a class: the lines after its line `[class]`, up to the next.
fn names(class: &str) -> impl Iterator<Item = &'static str> {
    let mut inside = false;
    NAMES.lines().filter(move |line| match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        Some(name) => {
            inside = name == class;
            false
        }
        None => inside,
    })
}

const NAMES: &str = include_str!("support/haproxy.txt");

/// All keywords that the program knows.
struct Known {
    keywords: Vec<&'static Keyword>,
    words: HashMap<(&'static str, &'static str), Standing>,
}

impl Known {
    fn new() -> Known {
        let mut words = HashMap::new();
        for (class, standings) in
            [("bind", terse_proxy::keywords::bind::standings()), ("server", terse_balance::keywords::standings())]
        {
            words.extend(standings.into_iter().map(|standing| ((class, standing.name.trim_end_matches('(')), standing)));
        }
        let registry = samples(&Environment::default());
        for fetch in registry.fetches() {
            let (kind, reason) = match fetch.kind {
                FetchKind::Refused(reason) => ("refused", Some(reason)),
                _ => ("done", None),
            };
            let standing = Standing { name: fetch.name, kind, reason };
            words.extend(std::iter::once(fetch.name).chain(fetch.also.iter().copied()).map(|name| (("fetch", name), standing)));
        }
        for converter in registry.converters() {
            let (kind, reason) = match converter.kind {
                ConverterKind::Refused(reason) => ("refused", Some(reason)),
                _ => ("done", None),
            };
            words.insert(("converter", converter.name), Standing { name: converter.name, kind, reason });
        }
        Known { keywords: keyword::all(&tables()).collect(), words }
    }

    fn standing(&self, class: &str, name: &'static str) -> Option<Standing> {
        match class {
            "section" => section(name),
            "global" => self.keyword(name, Sections::GLOBAL),
            "proxy" => self.keyword(name, Sections::PROXY).or_else(|| {
                let (keyword, step) = name.split_once(' ')?;
                terse_balance::keywords::step_standing(keyword, step)
            }),
            "resolvers" => self.keyword(name, Sections::RESOLVERS),
            "filter" => self.filter(name),
            "rule" => {
                let (set, action) = name.rsplit_once(' ')?;
                terse_proxy::rules::keywords::standing(set, action)
            }
            _ => {
                let class = CLASSES.iter().find(|(known, _)| *known == class)?.0;
                self.words.get(&(class, name)).copied()
            }
        }
    }

    /// Finds a keyword of that name or old name. If all keywords of that name have a second argument, it is the first of them that
    /// is done. Otherwise it is the keyword whose arguments the name ends with.
    fn keyword(&self, name: &'static str, sections: Sections) -> Option<Standing> {
        let here = || self.keywords.iter().filter(|keyword| keyword.sections.0 & sections.0 != 0);
        let called = |keyword: &&&Keyword| keyword.name == name || keyword.old_names.contains(&name);
        let begins = |keyword: &&&Keyword| keyword.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
        let found = here().find(called).or_else(|| {
            let mut family: Vec<_> = here().filter(begins).collect();
            family.sort_by_key(|keyword| matches!(keyword.kind, Kind::Refused(_)));
            family.first().copied()
        });
        let takes = |keyword: &&&Keyword| {
            let argument = name.strip_prefix(keyword.name).and_then(|rest| rest.strip_prefix(' '));
            argument.is_some_and(|argument| keyword.arguments.starts_with(argument))
        };
        let found = found.or_else(|| here().find(takes))?;
        Some(Standing { name, kind: found.kind.name(), reason: found.kind.reason() })
    }

    fn filter(&self, name: &'static str) -> Option<Standing> {
        let keyword = self.keywords.iter().find(|keyword| keyword.name.strip_prefix("filter ") == Some(name))?;
        Some(Standing { name, kind: keyword.kind.name(), reason: keyword.kind.reason() })
    }
}

fn section(name: &'static str) -> Option<Standing> {
    if SectionKind::from_name(name).is_some() {
        return Some(Standing { name, kind: "done", reason: None });
    }
    if let Some((_, reason)) = IDLE_SECTIONS.iter().find(|(idle, _)| *idle == name) {
        return Some(Standing { name, kind: "accepted", reason: Some(reason) });
    }
    let (_, reason) = REFUSED_SECTIONS.iter().find(|(refused, _)| *refused == name)?;
    Some(Standing { name, kind: "refused", reason: Some(reason) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_manual_is_what_the_tables_say() {
        assert!(page() == include_str!("../../../docs/support.md"), "docs/support.md is old: make docs");
    }

    #[test]
    fn every_kind_of_word_is_found() {
        let known = Known::new();
        let kind = |class: &str, name| known.standing(class, name).map(|standing| standing.kind);
        for (class, name, expected) in [
            ("section", "resolvers", "done"),
            ("section", "peers", "done"),
            ("section", "mailers", "accepted"),
            ("global", "maxconn", "done"),
            ("proxy", "timeout client", "done"),
            ("proxy", "contimeout", "done"),
            ("proxy", "http-request", "done"),
            ("proxy", "persist rdp-cookie", "done"),
            ("bind", "name", "done"),
            ("server", "slowstart", "done"),
            ("server", "namespace", "refused"),
            ("rule", "http-request set-var", "done"),
            ("rule", "http-request send-spoe-group", "refused"),
            ("filter", "spoe", "refused"),
            ("resolvers", "hold", "done"),
            ("fetch", "path", "done"),
            ("converter", "lower", "done"),
        ] {
            assert_eq!(kind(class, name), Some(expected), "{class} {name}");
        }
        assert!(CLASSES.iter().all(|(class, _)| names(class).count() > 5));
    }
}
