//! The keywords of proxies that belong to no other family: names, listeners, routes, timeouts, a proxy's own answers.
//!
//! A family is a file with a table; [`KEYWORDS`] joins them and those of this crate's other folders. HAProxy lets lines for
//! one half of a proxy stand in the other and only warns that they have no effect there; so do these.

mod accepted;
mod attempts;
pub mod bind;
mod compression;
pub(crate) mod conformance;
mod fcgi;
mod forwarded;
mod identity;
mod limits;
mod options;
pub(crate) mod pages;
pub(crate) mod peers;
mod probes;
mod refused;
mod routing;
pub(crate) mod spelling;
mod stick;
mod timeouts;

use crate::settings::ProxySettings;
use terse_config::{Keyword, Kind, Parser, Scope, Sections};

/// All tables of this crate.
pub const KEYWORDS: &[&[Keyword]] = &[
    identity::KEYWORDS,
    bind::KEYWORDS,
    routing::KEYWORDS,
    stick::KEYWORDS,
    limits::KEYWORDS,
    crate::limits::KEYWORDS,
    crate::descriptors::KEYWORDS,
    timeouts::KEYWORDS,
    options::KEYWORDS,
    probes::KEYWORDS,
    forwarded::KEYWORDS,
    compression::KEYWORDS,
    crate::filter::keywords::KEYWORDS,
    crate::cache::KEYWORDS,
    attempts::KEYWORDS,
    pages::KEYWORDS,
    peers::KEYWORDS,
    accepted::KEYWORDS,
    spelling::KEYWORDS,
    conformance::KEYWORDS,
    fcgi::KEYWORDS,
    refused::KEYWORDS,
    crate::log::KEYWORDS,
    crate::log::PROFILE_KEYWORDS,
    crate::log::RING_KEYWORDS,
    crate::log::FORWARD_KEYWORDS,
    crate::rules::keywords::KEYWORDS,
    terse_names::KEYWORDS,
];

/// A keyword of any proxy's section that is built.
const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

/// The same, and `no` before it takes it back.
const fn switch(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { kind: Kind::Switch(parser), ..done(name, "", summary, parser) }
}

/// The same keyword, known under these old names too.
const fn formerly(old_names: &'static [&'static str], keyword: Keyword) -> Keyword {
    Keyword { old_names, ..keyword }
}

/// The section's settings.
fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut ProxySettings {
    scope.section.settings.entry()
}

/// Whether the section has a front half; for a section without, a remark is made that the line has no effect there.
fn in_front(scope: &mut Scope<'_>) -> bool {
    has_half(scope, Sections::FRONT, "frontend")
}

/// Whether the section has a back half; for a section without, a remark is made that the line has no effect there.
fn in_back(scope: &mut Scope<'_>) -> bool {
    has_half(scope, Sections::BACK, "backend")
}

fn has_half(scope: &mut Scope<'_>, sections: Sections, half: &str) -> bool {
    let section = &scope.section;
    if sections.has(section.kind) {
        return true;
    }
    let text = format!("ignored because {} '{}' has no {half} capability", section.kind.name(), section.name);
    scope.warn(0, text);
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use terse_config::{Config, Environment, Loader, Section, Settings, Severity, Source};

    /// Loads a text by this crate's tables and those below it. Problems are `line! reason` for alerts, `line? reason` for warnings.
    pub(crate) fn load_with(text: &str, shared: Settings) -> (Config, Vec<String>) {
        let tables = KEYWORDS.iter().copied().chain([
            terse_sample::KEYWORDS,
            terse_balance::KEYWORDS,
            terse_compress::KEYWORDS,
            terse_compress::decode::KEYWORDS,
        ]);
        let loader = Loader { tables: tables.collect(), environment: Environment::default() };
        let source = Source { name: "test".into(), bytes: text.into() };
        let (config, diagnostics) = loader.load(&[source], shared);
        (config, said(diagnostics.iter()))
    }

    /// Formats each problem as a line.
    pub(crate) fn said<'a>(diagnostics: impl Iterator<Item = &'a terse_config::Diagnostic>) -> Vec<String> {
        diagnostics
            .map(|d| {
                let line = d.place.as_ref().map_or(0, |place| place.line);
                let mark = if d.severity == Severity::Alert { '!' } else { '?' };
                format!("{line}{mark} {}", d.reason)
            })
            .collect()
    }

    /// Loads a text.
    pub(crate) fn load(text: &str) -> (Config, Vec<String>) {
        load_with(text, Settings::default())
    }

    /// The last section of a text that loads without a remark.
    pub(crate) fn last(text: &str) -> Section {
        let (mut config, said) = load(text);
        assert_eq!(said, [""; 0], "{text}");
        config.sections.pop().unwrap()
    }

    /// The proxy settings of the last section of a text that loads without a remark.
    pub(crate) fn proxy(text: &str) -> ProxySettings {
        last(text).settings.take().unwrap_or_default()
    }

    /// The remarks about the lines of a section of that kind.
    pub(crate) fn said_in(section: &str, lines: &str) -> Vec<String> {
        load(&format!("{section}\n{lines}\n")).1
    }

    #[test]
    fn no_name_stands_twice_for_a_section() {
        let mut seen = std::collections::HashMap::new();
        for keyword in KEYWORDS.iter().copied().flatten() {
            for name in keyword.old_names.iter().chain([&keyword.name]) {
                let sections: &mut u32 = seen.entry(*name).or_default();
                assert_eq!(*sections & keyword.sections.0, 0, "{name}");
                *sections |= keyword.sections.0;
            }
        }
    }

    #[test]
    fn every_reason_is_a_clause() {
        for keyword in KEYWORDS.iter().copied().flatten() {
            if let Kind::Accepted(reason) | Kind::Refused(reason) = keyword.kind {
                assert!(!reason.is_empty() && !reason.ends_with('.'), "{}: {reason}", keyword.name);
            }
            assert!(keyword.summary.ends_with('.'), "{}: {}", keyword.name, keyword.summary);
        }
    }

    #[test]
    fn lines_for_the_other_half_are_ignored_with_a_warning() {
        for line in
            ["bind :80", "monitor-uri /x", "default_backend x", "timeout client 1s", "option http-ignore-probes", "maxconn 9"]
        {
            let said = said_in("backend b", line);
            assert!(said.len() == 1 && said[0].contains("ignored because backend 'b' has no frontend capability"), "{said:?}");
        }
        for line in ["retries 2", "timeout server 1s", "option redispatch", "http-reuse safe", "option prefer-last-server"] {
            let said = said_in("frontend f", line);
            assert!(said.len() == 1 && said[0].contains("ignored because frontend 'f' has no backend capability"), "{said:?}");
        }
    }
}
