//! Name servers.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::figures::{Figure, Marks, json, typed};
use crate::settings::Level;
use crate::words::Word;
use std::fmt::Write;
use terse_names::COUNT_NAMES;
use terse_proxy::plan::Plan;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show resolvers",
    usage: "show resolvers [<section>]",
    summary: "show what name servers were asked, and what they said",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let wanted = call.args.first();
    let sections = call.context.plan.resolvers.iter().filter(|section| wanted.is_none_or(|wanted| *section.name == **wanted));
    let text: String = sections.map(|section| section.report()).collect();
    match text.is_empty() {
        true if wanted.is_some() => Err(Message::error("Can't find that resolvers section")),
        true => Err(Message::error("no resolvers found")),
        false => Ok(Answer::Text(text)),
    }
}

/// `show stat domain resolvers`: a line for each name server.
pub(super) fn statistics(plan: &Plan, words: &[Word]) -> String {
    let has = |wanted: &str| words.iter().any(|word| *word == wanted);
    let names: Vec<&str> = ["id", "pid"].into_iter().chain(COUNT_NAMES.iter().map(|name| column(name))).collect();
    let servers =
        plan.resolvers.iter().flat_map(|section| section.counts().map(|(server, counts)| (&*section.name, server, counts)));
    let rows = servers.map(|(section, server, counts)| {
        let key = [server, section].map(|name| Figure::text("CGPV", name));
        let counts = counts.into_iter().map(|count| Figure { marks: Marks("MGPV"), ..Figure::counter(count) });
        key.into_iter().chain(counts).collect::<Vec<_>>()
    });
    let mut out = String::new();
    if has("json") {
        let rows: Vec<_> = rows.collect();
        json::lists(
            rows.iter().map(|row| names.iter().zip(row).enumerate().map(|(at, (name, figure))| (at, *name, figure))),
            &mut out,
        );
    } else if has("typed") {
        for (at, (name, figure)) in rows.flat_map(|row| names.iter().zip(row).enumerate().collect::<Vec<_>>()) {
            out.push_str("N.");
            typed::line(at, name, &figure, has("desc").then_some(*name), &mut out);
        }
    } else {
        let _ = writeln!(out, "# {},", names.join(","));
        for row in rows {
            let fields: Vec<_> = row.iter().map(|figure| figure.value.to_string()).collect();
            let _ = writeln!(out, "{},", fields.join(","));
        }
    }
    out
}

/// Column name of a figure; one differs from that of `show resolvers`.
pub(crate) fn column(name: &'static str) -> &'static str {
    if name == "snd_error" { "send_error" } else { name }
}
