//! The keywords of all crates, joined; and the output of `-dK`.

use crate::environment::host_name;
use crate::files::Disk;
use crate::process;
use crate::support;
use std::fmt::Write;
use std::sync::Arc;
use terse_config::{Environment, Keyword, Kind, SectionKind, keyword, reference};
use terse_sample::registry::ConverterKind;
use terse_sample::{Constants, FetchKind, Registry};

/// The tables of all crates.
pub fn tables() -> Vec<&'static [Keyword]> {
    let mut tables = vec![
        process::keywords::KEYWORDS,
        process::http2::KEYWORDS,
        process::accepted::KEYWORDS,
        process::refused::KEYWORDS,
        process::variables::KEYWORDS,
    ];
    tables.extend(terse_proxy::KEYWORDS);
    tables.extend(terse_admin::KEYWORDS);
    tables.extend(terse_crypto::KEYWORDS);
    tables.extend([
        terse_lua::KEYWORDS,
        terse_tls::KEYWORDS,
        terse_tls::STORE_KEYWORDS,
        terse_balance::KEYWORDS,
        terse_compress::KEYWORDS,
        terse_compress::decode::KEYWORDS,
        terse_sample::KEYWORDS,
    ]);
    tables.push(terse_compress::engine::KEYWORDS);
    tables.push(terse_compress::dictionary::KEYWORDS);
    tables
}

/// Returns the fetches, converters and aliases of all crates, with what they may know of the process.
pub fn samples(environment: &Environment) -> Registry {
    let mut registry = Registry::default();
    registry.constants = Arc::new(Constants {
        hostname: host_name(),
        environment: environment.variables.clone(),
        pid: std::process::id(),
        threads: 0,
    });
    terse_proxy::samples::FETCHES.iter().for_each(|table| registry.add_fetches(table));
    terse_proxy::samples::ALIASES.iter().for_each(|table| registry.add_aliases(table));
    terse_proxy::samples::CONVERTERS.iter().for_each(|table| registry.add_converters(table));
    terse_crypto::CONVERTERS.iter().for_each(|table| registry.add_converters(table));
    terse_crypto::FETCHES.iter().for_each(|table| registry.add_fetches(table));
    registry.files = Some(Arc::new(Disk));
    registry
}

/// Returns the output of `-dK` for a list of classes, separated by commas.
pub fn dump(classes: &str) -> String {
    let mut text = String::new();
    for class in classes.split(',') {
        match class {
            "help" => text.push_str(HELP),
            "all" => CLASSES.iter().for_each(|(_, dump)| dump(&mut text)),
            _ => match CLASSES.iter().find(|(name, _)| *name == class) {
                Some((_, dump)) => dump(&mut text),
                None if class == "manual" => text.push_str(&manual()),
                None if class == "support" => text.push_str(&support::page()),
                None => {}
            },
        }
    }
    text
}

/// Returns the manual's reference: keywords, and the arguments within lines.
fn manual() -> String {
    let keywords = reference::markdown(&tables());
    let words = [
        terse_proxy::keywords::bind::reference(),
        terse_balance::keywords::reference(),
        terse_tls::keywords::reference(),
        terse_proxy::rules::keywords::reference(),
        terse_sample::reference::markdown(&samples(&Environment::default())),
    ];
    format!("{MANUAL}\n{keywords}\n## Words within lines\n\n{}", words.join("\n"))
}

const MANUAL: &str = "\
# Reference

Written by `terse -dKmanual` from the tables that the program reads configurations by; do not edit it. A keyword is *done*; or
*accepted*: it cannot change anything here, and its entry says why; or *refused*: it is understood and not built, and its entry says
why, or what to write instead.
";

type Dump = fn(&mut String);

const CLASSES: &[(&str, Dump)] = &[("cfg", configuration), ("cnv", converters), ("smp", fetches)];

const HELP: &str = "\
# List of supported keyword classes:
all: list all keywords
cfg: configuration keywords
cnv: sample converter keywords
smp: sample fetch functions
manual: the reference of the configuration language, in Markdown
support: each keyword of HAProxy's and what becomes of it, in Markdown
";

/// Appends the keywords section by section, in the form of a configuration: refused keywords are comments.
fn configuration(text: &mut String) {
    text.push_str("# List of registered configuration keywords:\n");
    for kind in SectionKind::ALL {
        let _ = writeln!(text, "{}", kind.name());
        let mut keywords: Vec<_> = keyword::all(&tables()).filter(|keyword| keyword.sections.has(kind)).collect();
        keywords.sort_by_key(|keyword| keyword.name);
        for keyword in keywords {
            let lead = if matches!(keyword.kind, Kind::Refused(_)) { "\t# " } else { "\t" };
            let line = format!("{lead}{} {}", keyword.name, keyword.arguments);
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
}

fn fetches(text: &mut String) {
    text.push_str("# List of registered sample fetch functions:\n");
    for fetch in samples(&Environment::default()).fetches() {
        let lead = if matches!(fetch.kind, FetchKind::Refused(_)) { "\t# " } else { "\t" };
        let _ = writeln!(text, "{lead}{}: {}", fetch.name, fetch.output.name());
    }
}

fn converters(text: &mut String) {
    text.push_str("# List of registered sample converter functions:\n");
    for converter in samples(&Environment::default()).converters() {
        let lead = if matches!(converter.kind, ConverterKind::Refused(_)) { "\t# " } else { "\t" };
        let _ = writeln!(text, "{lead}{}: {} => {}", converter.name, converter.input.name(), converter.output.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn no_two_crates_bring_the_same_keyword() {
        let mut seen: HashMap<&str, u32> = HashMap::new();
        for keyword in tables().into_iter().flatten() {
            for name in keyword.old_names.iter().chain([&keyword.name]) {
                let sections = seen.entry(name).or_default();
                assert_eq!(*sections & keyword.sections.0, 0, "{name} stands twice");
                *sections |= keyword.sections.0;
            }
        }
    }

    #[test]
    fn the_reference_in_the_manual_is_what_the_tables_say() {
        let written = include_str!("../../../docs/reference.md");
        assert!(written == dump("manual"), "docs/reference.md is old: make docs");
    }

    #[test]
    fn texts_are_written_in_one_way() {
        for keyword in tables().into_iter().flatten() {
            assert!(keyword.summary.ends_with('.'), "{}", keyword.name);
            if let Kind::Accepted(why) | Kind::Refused(why) = keyword.kind {
                assert!(!why.ends_with('.') && !why.is_empty(), "{}", keyword.name);
            }
        }
    }

    #[test]
    fn the_dump_names_sections_and_keywords() {
        let text = dump("cfg");
        assert!(text.contains("\nglobal\n") && text.contains("\tmaxconn <number>\n"), "{text}");
        assert!(dump("help").contains("cfg:"));
        assert!(dump("smp,cnv").contains("\n\tpath: string\n") && dump("all").contains("\tlower: string => string\n"));
        assert!(dump("manual").starts_with("# "));
    }
}
