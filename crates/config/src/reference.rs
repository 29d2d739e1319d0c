//! The manual's reference, written from the tables.

use crate::keyword::{self, Keyword, Kind};
use crate::opening::{IDLE_SECTIONS, REFUSED_SECTIONS};
use crate::params::{Param, ParamKind};
use crate::section::SectionKind;
use std::fmt::Write as _;

/// Markdown: the matrix of keywords and sections, the sections that are refused, and each keyword with its arguments.
pub fn markdown(tables: &[&'static [Keyword]]) -> String {
    let mut keywords: Vec<_> = keyword::all(tables).collect();
    keywords.sort_by_key(|keyword| (keyword.name, keyword.sections.0));
    let mut out = String::from("## Keywords and sections\n\n");
    matrix(&keywords, &mut out);
    out.push_str("\n## Sections that are refused\n\n");
    for (name, reason) in REFUSED_SECTIONS {
        let _ = writeln!(out, "* `{name}`: {}.", plain(reason));
    }
    out.push_str("\n## Sections that are left out, with a warning\n\n");
    for (name, reason) in IDLE_SECTIONS {
        let _ = writeln!(out, "* `{name}`: {}.", plain(reason));
    }
    out.push_str("\n## Keywords\n");
    for keyword in keywords {
        entry(keyword, &mut out);
    }
    out
}

/// Markdown: one table of parameters under a heading.
pub fn parameters<T>(heading: &str, table: &[Param<T>]) -> String {
    let mut params: Vec<_> = table.iter().collect();
    params.sort_by_key(|param| param.name);
    let mut out = format!("### {heading}\n\n");
    for param in params {
        let closing = if param.name.ends_with('(') { "...)" } else { "" };
        let syntax = format!("{}{closing} {}", param.name, param.arguments);
        let _ = write!(out, "* `{}`: {}", syntax.trim_end(), plain(param.summary));
        match param.kind {
            ParamKind::Done(_) => {}
            ParamKind::Accepted(why) => drop(write!(out, " Accepted: {}.", plain(why))),
            ParamKind::Refused(why) => drop(write!(out, " Refused: {}.", plain(why))),
        }
        out.push('\n');
    }
    out
}

/// A sentence as Markdown: text in angle brackets is no tag. Words in backquotes stay as they are.
pub fn plain(sentence: &str) -> String {
    let mut out = String::with_capacity(sentence.len());
    for (at, part) in sentence.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        match at % 2 {
            0 => out.push_str(&part.replace('<', "\\<")),
            _ => out.push_str(part),
        }
    }
    out
}

fn matrix(keywords: &[&Keyword], out: &mut String) {
    let names: Vec<_> = SectionKind::ALL.iter().map(|kind| kind.name()).collect();
    let _ = writeln!(out, "| keyword | {} | |", names.join(" | "));
    let _ = writeln!(out, "|---|{}---|", "---|".repeat(names.len()));
    for keyword in keywords {
        let marks: Vec<_> = SectionKind::ALL.iter().map(|kind| if keyword.sections.has(*kind) { "X" } else { "" }).collect();
        let _ = writeln!(out, "| `{}` | {} | {} |", keyword.name, marks.join(" | "), keyword.kind.name());
    }
}

fn entry(keyword: &Keyword, out: &mut String) {
    let no = if matches!(keyword.kind, Kind::Switch(_)) { "[no] " } else { "" };
    let syntax = format!("{no}{} {}", keyword.name, keyword.arguments);
    let _ = write!(out, "\n### {}\n\n    {}\n\n{}", keyword.name, syntax.trim_end(), plain(keyword.summary));
    match keyword.kind {
        Kind::Done(_) | Kind::Switch(_) => {}
        Kind::Accepted(why) => drop(write!(out, " Accepted, and changes nothing: {}.", plain(why))),
        Kind::Refused(why) => drop(write!(out, " Refused: {}.", plain(why))),
    }
    let sections: Vec<_> = keyword.sections.kinds().map(|kind| format!("`{}`", kind.name())).collect();
    let _ = write!(out, " In {}.", sections.join(", "));
    if !keyword.old_names.is_empty() {
        let _ = write!(out, " Old names, with a warning: `{}`.", keyword.old_names.join("`, `"));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Sections;

    static TABLE: &[Keyword] = &[
        Keyword {
            name: "timeout connect",
            old_names: &["contimeout"],
            sections: Sections::BACK,
            arguments: "<time>",
            summary: "Limits the time to connect.",
            kind: Kind::Done(|_, _| Ok(())),
        },
        Keyword {
            name: "option x",
            old_names: &[],
            sections: Sections::GLOBAL,
            arguments: "",
            summary: "Does x.",
            kind: Kind::Accepted("there is no x"),
        },
    ];

    #[test]
    fn keywords_as_markdown() {
        let text = markdown(&[TABLE]);
        for part in [
            "| keyword | global | defaults | frontend | listen | backend | http-errors | ",
            "| `timeout connect` |  | X |  | X | X |  | ",
            "| `option x` | X |  |  |  |  |  | ",
            "* `mailers`: no mail is sent; watch the logs.\n",
            "\n### option x\n\n    option x\n\nDoes x. Accepted, and changes nothing: there is no x. In `global`.\n",
            "\n### timeout connect\n\n    timeout connect <time>\n\nLimits the time to connect. In `defaults`, `listen`, `backend`. \
             Old names, with a warning: `contimeout`.\n",
        ] {
            assert!(text.contains(part), "{part}\n---\n{text}");
        }
    }

    #[test]
    fn angle_brackets_are_no_tags() {
        assert_eq!(plain("write 'a <name>' or `b <name>` <x>"), "write 'a \\<name>' or `b <name>` \\<x>");
    }

    #[test]
    fn parameters_as_markdown() {
        let table: &[Param<()>] = &[
            Param { name: "weight", arguments: "<n>", summary: "Sets the weight.", kind: ParamKind::Done(|_, _| Ok(())) },
            Param { name: "set-var(", arguments: "<x>", summary: "Sets.", kind: ParamKind::Refused("no") },
        ];
        let expected = "### Of a server\n\n* `set-var(...) <x>`: Sets. Refused: no.\n* `weight <n>`: Sets the weight.\n";
        assert_eq!(parameters("Of a server", table), expected);
    }
}
