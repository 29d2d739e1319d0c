//! A table for each proxy: its halves, addresses and servers.

use crate::figures::{Column, Kind, Row};
use crate::numbers::{age, bytes, count, escape, exact, percent};
use crate::page::api::{number, text};
use crate::page::change::ACTIONS;
use crate::page::listing::Source;
use crate::page::query::Query;
use crate::savings::permille;
use std::fmt::Write;

/// Writer of tables, as rows come.
pub(super) struct Tables {
    uri: String,
    query: Query,
    may_change: bool,
    open: Option<Open>,
    /// Index of the next row among all.
    at: usize,
}

/// The table that is open.
#[derive(Clone, Copy)]
struct Open {
    proxy: u32,
    has_form: bool,
}

impl Tables {
    pub(super) fn new(uri: String, query: Query, may_change: bool, at: usize) -> Tables {
        Tables { uri, query, may_change, open: None, at }
    }

    /// Writes a row, in the table of its proxy.
    pub(super) fn row(&mut self, source: &Source, row: &Row, out: &mut String) {
        if self.open.is_none_or(|open| open.proxy != row.proxy) {
            self.close(out);
            self.begin(source, row, out);
        }
        self.line(row, self.open.is_some_and(|open| open.has_form), out);
    }

    fn begin(&mut self, source: &Source, row: &Row, out: &mut String) {
        let has_servers = |id| source.plan.backends.now().iter().any(|back| back.id == id && !back.farm.servers().is_empty());
        let has_form = self.may_change && has_servers(row.proxy);
        self.open = Some(Open { proxy: row.proxy, has_form });
        out.push_str("<section><h2>");
        escape(&text(row, Column::Proxy).unwrap_or_default(), out);
        let side = if row.kind == Kind::Frontend { "frontend" } else { "backend" };
        let _ = write!(out, " <small>{side}, mode {}", text(row, Column::Mode).unwrap_or_default());
        if let Some(algorithm) = text(row, Column::Algorithm) {
            let _ = write!(out, ", {algorithm}");
        }
        out.push_str("</small></h2>\n");
        if has_form {
            out.push_str("<form method=\"post\" action=\"");
            escape(&self.uri, out);
            escape(&Query { outcome: None, ..self.query.clone() }.link(None), out);
            out.push_str("\">\n");
        }
        out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"");
        escape(&text(row, Column::Proxy).unwrap_or_default(), out);
        let _ = write!(out, "\"><table{}><thead>", if self.query.columns { "" } else { " class=\"even\"" });
        match self.query.columns {
            true => all_heads(out),
            false => {
                out.push_str("<tr><th scope=\"col\" class=\"l\">Name</th>");
                for (label, class) in COLUMNS {
                    let _ = write!(out, "<th scope=\"col\" class=\"{class}\">{label}</th>");
                }
                out.push_str("</tr>");
            }
        }
        out.push_str("</thead><tbody>\n");
    }

    /// Ends the table that is open.
    pub(super) fn close(&mut self, out: &mut String) {
        let Some(open) = self.open.take() else { return };
        out.push_str("</tbody></table></div>\n");
        if open.has_form {
            out.push_str("<p class=\"act\"><label>With the ticked ones <select name=\"action\"><option value=\"\"></option>");
            for (word, label, _) in ACTIONS.iter().filter(|(_, label, _)| !label.is_empty()) {
                let _ = write!(out, "<option value=\"{word}\">{label}</option>");
            }
            let _ = write!(
                out,
                "</select></label> <input type=\"hidden\" name=\"b\" value=\"#{}\"> <button>Apply</button></p>\n</form>\n",
                open.proxy
            );
        }
        out.push_str("</section>\n");
    }

    /// Writes a single row.
    pub(super) fn line(&mut self, row: &Row, has_form: bool, out: &mut String) {
        let name = text(row, Column::Service).unwrap_or_default();
        let class = if matches!(row.kind, Kind::Frontend | Kind::Backend) { " class=\"half\"" } else { "" };
        let _ = write!(out, "<tr data-n=\"{}\"{class} data-k=\"", self.at);
        self.at += 1;
        escape(&text(row, Column::Proxy).unwrap_or_default(), out);
        out.push('/');
        escape(&name, out);
        out.push_str("\"><th scope=\"row\" title=\"");
        for column in [Column::Address, Column::Cookie] {
            if let Some(value) = text(row, column) {
                let _ = write!(out, "{}: ", column.name());
                escape(&value, out);
                out.push(' ');
            }
        }
        out.push_str("\">");
        if has_form && row.kind == Kind::Server {
            out.push_str("<label><input type=\"checkbox\" name=\"s\" value=\"");
            escape(&name, out);
            out.push_str("\"> ");
            escape(&name, out);
            out.push_str("</label>");
        } else {
            escape(&name, out);
        }
        out.push_str("</th>");
        match self.query.columns {
            true => {
                for (_, column) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
                    out.push_str("<td>");
                    escape(&text(row, *column).unwrap_or_default(), out);
                    out.push_str("</td>");
                }
            }
            false => cells(row, out),
        }
        out.push_str("</tr>\n");
    }
}

/// The cells of [`COLUMNS`].
fn cells(row: &Row, out: &mut String) {
    let status = text(row, Column::Status).unwrap_or_default();
    let (class, shape) = look(row.kind, &status);
    let _ = write!(out, "<td class=\"l\"><span class=\"s {class}\">{shape} ");
    escape(&status, out);
    out.push_str("</span>");
    if row.get(Column::LastChange).is_some() {
        let _ = write!(out, " <span class=\"dim\">{}</span>", age(number(row, Column::LastChange)));
    }
    out.push_str("</td>");
    check(row, out);
    let plain = |label: &str, text: &str, out: &mut String| {
        let _ = match text.is_empty() {
            true => write!(out, "<td></td>"),
            false => write!(out, "<td data-l=\"{label}\">{text}</td>"),
        };
    };
    let known = |column| row.get(column).map(|_| number(row, column));
    let counted = |column| known(column).map(count).unwrap_or_default();
    plain("sessions", &counted(Column::Current), out);
    plain("a second", &counted(Column::Rate), out);
    plain("queue", &known(Column::Queued).filter(|n| *n > 0).map(count).unwrap_or_default(), out);
    for (label, column) in [("in", Column::BytesIn), ("out", Column::BytesOut)] {
        let n = number(row, column);
        let _ = write!(out, "<td data-l=\"{label}\">");
        exact(&bytes(n), n, " bytes", out);
        out.push_str("</td>");
    }
    let (before, after) = (number(row, Column::CompressIn), number(row, Column::CompressOut));
    let saved = before.saturating_sub(after);
    let of_all = permille(saved, number(row, Column::BytesOut).saturating_add(saved));
    plain("saved", &if before > 0 { percent(of_all) } else { String::new() }, out);
    let errors =
        [Column::RequestErrors, Column::ConnectErrors, Column::ResponseErrors].map(|column| number(row, column)).iter().sum();
    plain("errors", &if errors > 0 { count(errors) } else { String::new() }, out);
    plain("weight", &known(Column::Weight).map(count).unwrap_or_default(), out);
}

/// The last check, in HAProxy's words.
fn check(row: &Row, out: &mut String) {
    let Some(status) = text(row, Column::CheckStatus) else { return out.push_str("<td class=\"l\"></td>") };
    let info = text(row, Column::LastCheck).unwrap_or_default();
    out.push_str("<td class=\"l check\" title=\"");
    escape(&info, out);
    out.push_str("\">");
    escape(&status, out);
    if row.get(Column::CheckCode).is_some() {
        let _ = write!(out, "/{}", number(row, Column::CheckCode));
    }
    if row.get(Column::CheckDuration).is_some() {
        let _ = write!(out, " in {} ms", number(row, Column::CheckDuration));
    }
    if !info.is_empty() {
        out.push_str(" <span class=\"dim\">");
        escape(&info, out);
        out.push_str("</span>");
    }
    out.push_str("</td>");
}

/// Colour and shape of a state: never by colour alone.
fn look(kind: Kind, status: &str) -> (&'static str, char) {
    match (kind, status.split([' ', '/']).next().unwrap_or_default()) {
        (Kind::Server, "UP") if status != "UP" => ("going", '◐'),
        (Kind::Server, "DOWN") if status.contains('/') => ("going", '◐'),
        (_, "UP" | "OPEN") => ("up", '●'),
        (_, "DOWN" | "STOP") => ("down", '▲'),
        (_, "MAINT" | "PAUSED") => ("maint", '■'),
        (_, "DRAIN" | "NOLB") => ("drain", '◆'),
        _ => ("unchecked", '○'),
    }
}

fn all_heads(out: &mut String) {
    out.push_str("<tr><th rowspan=\"2\"></th>");
    for (group, columns) in GROUPS {
        let _ = write!(out, "<th colspan=\"{}\" scope=\"colgroup\">{group}</th>", columns.len());
    }
    out.push_str("</tr>\n<tr>");
    for (label, column) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
        let _ = write!(out, "<th scope=\"col\" title=\"{}\">{label}</th>", column.text());
    }
    out.push_str("</tr>");
}

/// Columns of the page, after the name.
const COLUMNS: &[(&str, &str)] = &[
    ("State", "l"),
    ("Check", "l"),
    ("Sessions", ""),
    ("A second", ""),
    ("Queue", ""),
    ("In", ""),
    ("Out", ""),
    ("Saved", ""),
    ("Errors", ""),
    ("Weight", ""),
];

/// HAProxy's columns, by group.
const GROUPS: &[(&str, &[(&str, Column)])] = &[
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
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_a_shape_of_their_own() {
        let of = |kind, status| look(kind, status);
        assert_eq!(of(Kind::Server, "UP"), ("up", '●'));
        assert_eq!(of(Kind::Server, "UP 1/3"), ("going", '◐'));
        assert_eq!(of(Kind::Server, "DOWN"), ("down", '▲'));
        assert_eq!(of(Kind::Server, "DOWN 1/2"), ("going", '◐'));
        assert_eq!(of(Kind::Server, "MAINT (via a/b)"), ("maint", '■'));
        assert_eq!(of(Kind::Server, "DRAIN"), ("drain", '◆'));
        assert_eq!(of(Kind::Server, "no check"), ("unchecked", '○'));
        assert_eq!(of(Kind::Frontend, "OPEN"), ("up", '●'));
    }
}
