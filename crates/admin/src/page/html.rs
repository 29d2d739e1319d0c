//! The page as a browser shows it: a table for each proxy. No scripts, nothing fetched from elsewhere.

use super::change::{ACTIONS, Outcome};
use super::query::Query;
use super::settings::PageSettings;
use crate::context::Context;
use crate::figures::{Column, Kind, Row};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// What stands around the tables.
pub(super) struct Head<'a> {
    pub(super) settings: &'a PageSettings,
    /// The process, where it is known.
    pub(super) context: Option<&'a Context>,
    pub(super) query: &'a Query,
    /// Whether servers may be changed.
    pub(super) may_change: bool,
}

/// The page.
pub(super) fn page(head: &Head<'_>, rows: &[Row]) -> String {
    let mut out =
        String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Statistics</title>\n<style>");
    out.push_str(STYLE);
    out.push_str("</style></head><body>\n");
    title(head, &mut out);
    links(head, &mut out);
    if let Some(code) = &head.query.outcome {
        let _ = writeln!(out, "<p class=\"outcome\">{}</p>", Outcome::text(code));
    }
    for proxy in rows.chunk_by(|a, b| a.proxy == b.proxy) {
        table(head, proxy, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

fn title(head: &Head<'_>, out: &mut String) {
    let Head { settings, context, .. } = head;
    let process = context.map(|context| &context.process);
    out.push_str("<h1>Statistics");
    if let Some(process) = process.filter(|_| settings.version) {
        out.push_str(" of ");
        escape(&process.name, out);
        out.push(' ');
        escape(&process.version, out);
    }
    let node = settings.node.as_ref().and_then(|own| own.as_deref().or(process.map(|process| &*process.node)));
    if let Some(node) = node {
        out.push_str(" on ");
        escape(node, out);
    }
    out.push_str("</h1>\n");
    let description = settings.description.as_ref();
    if let Some(text) = description.and_then(|own| own.as_deref().or(process.and_then(|process| process.description.as_deref()))) {
        out.push_str("<p>");
        escape(text, out);
        out.push_str("</p>\n");
    }
    if let Some(context) = context {
        let up = context.process.started.elapsed().as_secs();
        let _ = writeln!(
            out,
            "<p>Process {}, {} workers, up {}d {}h{:02}m{:02}s, {} of {} connections</p>",
            context.process.pid,
            context.plan.process.workers,
            up / 86400,
            up / 3600 % 24,
            up / 60 % 60,
            up % 60,
            context.connections.load(Relaxed),
            context.plan.limits.connections.load(Relaxed),
        );
    }
}

fn links(head: &Head<'_>, out: &mut String) {
    let Query { up, no_maint, .. } = *head.query;
    let here = Query { outcome: None, ..head.query.clone() };
    let mut link = |query: &Query, more: &str, text: &str| {
        out.push_str("<a href=\"");
        escape(&head.settings.uri, out);
        escape(&query.link(None), out);
        let _ = write!(out, "{more}\">{text}</a> ");
    };
    link(&here, "", "Refresh now");
    link(&Query { up: !up, ..here.clone() }, "", if up { "Show all servers" } else { "Hide servers that are down" });
    let text = if no_maint { "Show servers in maintenance" } else { "Hide servers in maintenance" };
    link(&Query { no_maint: !no_maint, ..here.clone() }, "", text);
    if head.settings.refresh.is_some() {
        let text = if here.refresh { "Stop refreshing" } else { "Refresh again" };
        link(&Query { refresh: !here.refresh, ..here.clone() }, "", text);
    }
    link(&here, ";csv", "CSV");
    link(&here, ";json", "JSON");
    out.push('\n');
}

fn table(head: &Head<'_>, rows: &[Row], out: &mut String) {
    let Some(first) = rows.first() else { return };
    let form = head.may_change && rows.iter().any(|row| row.kind == Kind::Server);
    out.push_str("<h2>");
    escape(&text(first, Column::Proxy), out);
    out.push_str("</h2>\n");
    if form {
        out.push_str("<form method=\"post\" action=\"");
        escape(&head.settings.uri, out);
        escape(&Query { outcome: None, ..head.query.clone() }.link(None), out);
        out.push_str("\">\n");
    }
    out.push_str("<table><thead><tr><th rowspan=\"2\"></th>");
    for (group, columns) in GROUPS {
        let _ = write!(out, "<th colspan=\"{}\">{group}</th>", columns.len());
    }
    out.push_str("</tr>\n<tr>");
    for (label, column) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
        let _ = write!(out, "<th title=\"{}\">{label}</th>", column.text());
    }
    out.push_str("</tr></thead><tbody>\n");
    rows.iter().for_each(|row| line(row, form, out));
    out.push_str("</tbody></table>\n");
    if form {
        buttons(first, out);
    }
}

fn line(row: &Row, form: bool, out: &mut String) {
    let status = text(row, Column::Status);
    let class = match (row.kind, status.split([' ', '/']).next().unwrap_or_default()) {
        (Kind::Server, "UP") if status != "UP" => "going",
        (_, "UP" | "OPEN") => "up",
        (_, "DOWN" | "STOP") => "down",
        (_, "MAINT") => "maint",
        (_, "DRAIN" | "NOLB") => "drain",
        _ => "unchecked",
    };
    let name = text(row, Column::Service);
    let _ = write!(out, "<tr class=\"{class}\"><th title=\"");
    for column in [Column::Address, Column::Cookie, Column::Algorithm, Column::Mode] {
        let value = text(row, column);
        if !value.is_empty() {
            let _ = write!(out, "{}: ", column.name());
            escape(&value, out);
            out.push(' ');
        }
    }
    out.push_str("\">");
    if form && row.kind == Kind::Server {
        out.push_str("<label><input type=\"checkbox\" name=\"s\" value=\"");
        escape(&name, out);
        out.push_str("\"> ");
        escape(&name, out);
        out.push_str("</label>");
    } else {
        escape(&name, out);
    }
    out.push_str("</th>");
    for (_, column) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
        out.push_str("<td>");
        escape(&text(row, *column), out);
        out.push_str("</td>");
    }
    out.push_str("</tr>\n");
}

fn buttons(row: &Row, out: &mut String) {
    out.push_str("<p>With the chosen servers: <select name=\"action\"><option value=\"\"></option>");
    for (word, label, _) in ACTIONS.iter().filter(|(_, label, _)| !label.is_empty()) {
        let _ = write!(out, "<option value=\"{word}\">{label}</option>");
    }
    let _ =
        writeln!(out, "</select> <input type=\"hidden\" name=\"b\" value=\"#{}\"> <button>Apply</button></p>\n</form>", row.proxy);
}

fn text(row: &Row, column: Column) -> String {
    row.get(column).map(|figure| figure.value.to_string()).unwrap_or_default()
}

/// Writes a text that means nothing but itself, inside and outside of quotes.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// The columns that the page shows, by group.
const GROUPS: &[(&str, &[(&str, Column)])] = &[
    ("Queue", &[("Cur", Column::Queued), ("Max", Column::QueuedMax), ("Limit", Column::QueueLimit)]),
    ("Sessions a second", &[("Cur", Column::Rate), ("Max", Column::RateMax)]),
    (
        "Sessions",
        &[
            ("Cur", Column::Current),
            ("Max", Column::CurrentMax),
            ("Limit", Column::CurrentLimit),
            ("Total", Column::Sessions),
            ("Chosen", Column::Balanced),
        ],
    ),
    ("Bytes", &[("In", Column::BytesIn), ("Out", Column::BytesOut)]),
    ("Compressed", &[("In", Column::CompressIn), ("Out", Column::CompressOut), ("Answers", Column::CompressResponses)]),
    ("Denied", &[("Req", Column::DeniedRequests), ("Resp", Column::DeniedResponses)]),
    ("Errors", &[("Req", Column::RequestErrors), ("Conn", Column::ConnectErrors), ("Resp", Column::ResponseErrors)]),
    ("Again", &[("Retr", Column::Retries), ("Redis", Column::Redispatches)]),
    (
        "Server",
        &[
            ("Status", Column::Status),
            ("Since (s)", Column::LastChange),
            ("Last check", Column::CheckStatus),
            ("Weight", Column::Weight),
            ("Act", Column::Active),
            ("Bck", Column::Backup),
            ("Failed", Column::FailedChecks),
            ("Went down", Column::WentDown),
            ("Down (s)", Column::Downtime),
        ],
    ),
];

const STYLE: &str = "\
body{font:13px sans-serif;margin:1em}h1{font-size:1.4em}h2{font-size:1.1em;margin:1.2em 0 .2em}\
table{border-collapse:collapse}th,td{border:1px solid #bbb;padding:.1em .4em;text-align:right;white-space:nowrap}\
thead th{background:#eee;text-align:center}tbody th{text-align:left}.up{background:#d6f5d6}.going{background:#fff3c4}\
.down{background:#f9c9c9}.maint{background:#e3d1b8}.drain{background:#cfe2f9}.outcome{background:#fff3c4;padding:.4em}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_mean_themselves() {
        let mut out = String::new();
        escape("<a href='x'>\"&", &mut out);
        assert_eq!(out, "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }
}
