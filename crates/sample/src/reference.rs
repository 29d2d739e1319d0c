//! The manual's reference of expressions, written from the tables.

use crate::argument::Param;
use crate::registry::{AliasKind, ConverterKind, FetchKind, Registry};
use std::fmt::Write as _;
use terse_config::reference::plain;

/// Markdown: a list each of fetches, converters and aliases of log formats.
pub fn markdown(registry: &Registry) -> String {
    let mut out = String::from("### Fetches\n\n");
    list(
        &mut out,
        registry.fetches().into_iter().map(|fetch| {
            let reason = match fetch.kind {
                FetchKind::One(_) | FetchKind::Each(..) => None,
                FetchKind::Refused(reason) => Some(reason),
            };
            let also: String = fetch.also.iter().map(|name| format!(", `{name}`")).collect();
            let types = format!(" ({})", fetch.output.name());
            (format!("`{}{}`{also}", fetch.name, parameters(fetch.params)), entry(&types, fetch.summary, reason))
        }),
    );
    out.push_str("\n### Converters\n\n");
    list(
        &mut out,
        registry.converters().into_iter().map(|converter| {
            let reason = match converter.kind {
                ConverterKind::Done(_) | ConverterKind::Arithmetic(_) => None,
                ConverterKind::Refused(reason) => Some(reason),
            };
            let types = format!(" ({} to {})", converter.input.name(), converter.output.name());
            (format!("`{}{}`", converter.name, parameters(converter.params)), entry(&types, converter.summary, reason))
        }),
    );
    out.push_str("\n### Aliases of log formats\n\n");
    list(
        &mut out,
        registry.aliases().into_iter().map(|alias| {
            let reason = if let AliasKind::Refused(reason) = alias.kind { Some(reason) } else { None };
            (format!("`%{}`", alias.name), entry("", alias.summary, reason))
        }),
    );
    out
}

/// Writes names and their descriptions; names with the same description share a line.
fn list(out: &mut String, entries: impl Iterator<Item = (String, String)>) {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (name, text) in entries {
        match lines.iter_mut().find(|(_, said)| *said == text) {
            Some((names, _)) => {
                let _ = write!(names, ", {name}");
            }
            None => lines.push((name, text)),
        }
    }
    for (names, text) in lines {
        let _ = writeln!(out, "* {names}{text}");
    }
}

/// Description of a name.
fn entry(types: &str, summary: &str, reason: Option<&str>) -> String {
    match reason {
        None => format!("{types}: {}", plain(summary)),
        Some(reason) => format!(": {} Refused: {}.", plain(summary), plain(reason)),
    }
}

/// `(<string>[,<integer>])`, or an empty text.
fn parameters(params: &[Param]) -> String {
    let Some((first, rest)) = params.split_first() else { return String::new() };
    let mut out = String::from("(");
    let mut open = 0;
    for (param, comma) in [(first, "")].into_iter().chain(rest.iter().map(|param| (param, ","))) {
        if !param.required {
            out.push('[');
            open += 1;
        }
        let _ = write!(out, "{comma}<{}>", param.kind.name());
    }
    out.push_str(&"]".repeat(open));
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parameters_types_and_reasons() {
        let text = markdown(&Registry::default());
        for line in
            ["* `req.hdr([<header name>[,<integer>]])`", "* `lower` (string to string): ", "* `%ci`: The client's address.\n"]
        {
            assert!(text.contains(&format!("\n{line}")), "{line}\n---\n{text}");
        }
        assert!(text.contains(" Refused: "), "{text}");
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with("### ") || line.ends_with('.')), "{text}");
    }
}
