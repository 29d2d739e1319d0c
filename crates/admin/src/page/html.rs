//! The page for browsers: savings of compression, advice, and a table for each proxy. It is complete without its
//! script, which requests parts of it again (`;part=top`, `;part=rows`); nothing is fetched from other hosts.

mod table;
mod top;

use super::access::credential;
use super::api::View;
use super::change::Outcome;
use super::listing::{Source, Writer};
use super::query::Query;
use super::settings::PageSettings;
use crate::figures::Row;
use crate::numbers::escape;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// Content of a page and the rights of its reader.
pub(super) struct Page {
    pub(super) settings: Arc<PageSettings>,
    pub(super) query: Query,
    /// Proxy that it belongs to.
    pub(super) own: Arc<str>,
    /// Whether servers may be changed.
    pub(super) may_change: bool,
}

/// The whole page, row by row.
pub(super) struct Whole {
    page: Page,
    tables: table::Tables,
}

/// Rows alone, for the script.
pub(super) struct Rows {
    tables: table::Tables,
}

impl Whole {
    pub(super) fn new(page: Page) -> Whole {
        let tables = table::Tables::new(page.settings.uri.clone(), page.query.clone(), page.may_change, 0);
        Whole { page, tables }
    }
}

impl Rows {
    pub(super) fn new(page: &Page) -> Rows {
        Rows { tables: table::Tables::new(page.settings.uri.clone(), page.query.clone(), page.may_change, page.query.from) }
    }
}

impl Writer for Whole {
    fn begin(&mut self, source: &Source, out: &mut String) {
        self.page.head(source, out);
        links(&self.page, out);
        out.push_str(
            "</header>\n<p id=\"again\" class=\"bar\" hidden>The process is another one: its counters have started anew.</p>\n",
        );
        if let Some(code) = &self.page.query.outcome {
            let _ = writeln!(out, "<p class=\"bar\" role=\"status\">{}</p>", Outcome::text(code));
        }
        out.push_str("<div id=\"top\">");
        self.page.top(source, out);
        out.push_str("</div>\n<main>\n");
    }

    fn row(&mut self, source: &Source, row: &Row, out: &mut String) {
        self.tables.row(source, row, out);
    }

    fn end(&mut self, out: &mut String) {
        self.tables.close(out);
        out.push_str("</main>\n");
        out.push_str(KEYS);
        out.push_str("<script>");
        out.push_str(SCRIPT);
        out.push_str("</script></body></html>\n");
    }
}

impl Writer for Rows {
    fn begin(&mut self, _: &Source, out: &mut String) {
        out.push_str("<table><tbody>\n");
    }

    fn row(&mut self, _: &Source, row: &Row, out: &mut String) {
        self.tables.line(row, false, out);
    }

    fn end(&mut self, out: &mut String) {
        out.push_str("</tbody></table>\n");
    }
}

impl Page {
    fn shows(&self, name: &str) -> bool {
        self.settings.shows(name, &self.own)
    }

    /// The part about the whole process.
    pub(super) fn part(&self, source: &Source) -> String {
        let mut out = String::from("<div data-run=\"");
        out.push_str(&self.run(source));
        out.push_str("\" data-title=\"");
        escape(&self.title(source), &mut out);
        out.push_str("\">");
        self.top(source, &mut out);
        out.push_str("</div>\n");
        out
    }

    fn top(&self, source: &Source, out: &mut String) {
        let shows = |name: &str| self.shows(name);
        match source.context.as_deref() {
            Some(context) => {
                let view = View { context, settings: &self.settings, shows: &shows, may_change: self.may_change };
                top::write(&view, out);
            }
            None => out.push_str("<p>The process starts.</p>"),
        }
    }

    fn run(&self, source: &Source) -> String {
        let shows = |_: &str| true;
        let run = |context| View { context, settings: &self.settings, shows: &shows, may_change: false }.run();
        source.context.as_deref().map(run).unwrap_or_default()
    }

    /// Title of the tab: with the number of servers that are down.
    fn title(&self, source: &Source) -> String {
        let (servers, _) = super::advice::find(&source.plan, None, &|name| self.shows(name));
        let name = self.name(source);
        if servers.down > 0 { format!("({}) {name}", servers.down) } else { name }
    }

    fn name(&self, source: &Source) -> String {
        let process = source.context.as_deref().map(|context| &context.process);
        let mut name = String::from("terse");
        if let Some(process) = process.filter(|_| self.settings.version) {
            name += &format!(" {}", process.own_version);
        }
        let node = self.settings.node.as_ref().and_then(|own| own.as_deref().or(process.map(|process| &*process.node)));
        if let Some(node) = node {
            name += &format!(" on {node}");
        }
        name
    }

    fn head(&self, source: &Source, out: &mut String) {
        out.push_str("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
        escape(&self.title(source), out);
        out.push_str("</title>\n");
        if let Some(refresh) = self.settings.refresh.filter(|_| self.query.refresh) {
            // The script updates changed parts, and leaves ticks where they are.
            let _ = writeln!(out, "<noscript><meta http-equiv=\"refresh\" content=\"{}\"></noscript>", refresh.as_secs());
        }
        out.push_str("<style>");
        out.push_str(STYLE);
        out.push_str("</style></head>\n<body data-run=\"");
        out.push_str(&self.run(source));
        out.push_str("\" data-here=\"");
        escape(&self.settings.uri, out);
        escape(&Query { outcome: None, ..self.query.clone() }.link(None), out);
        out.push_str("\">\n<header><h1>");
        escape(&self.name(source), out);
        out.push_str("</h1>");
        let process = source.context.as_deref().map(|context| &context.process);
        let description = self.settings.description.as_ref();
        if let Some(text) =
            description.and_then(|own| own.as_deref().or(process.and_then(|process| process.description.as_deref())))
        {
            out.push_str("<span class=\"dim\">");
            escape(text, out);
            out.push_str("</span>");
        }
    }
}

fn links(page: &Page, out: &mut String) {
    let here = Query { outcome: None, ..page.query.clone() };
    let Query { up, no_maint, columns, .. } = here;
    let links = [
        (Query { up: !up, ..here.clone() }, "", if up { "All servers" } else { "Only servers that are up" }),
        (Query { no_maint: !no_maint, ..here.clone() }, "", if no_maint { "With maintenance" } else { "Without maintenance" }),
        (Query { columns: !columns, ..here.clone() }, "", if columns { "Fewer columns" } else { "HAProxy's columns" }),
        (here.clone(), ";csv", "CSV"),
        (here.clone(), ";json", "JSON"),
    ];
    out.push_str("\n<nav>");
    for (query, more, text) in links {
        out.push_str("<a href=\"");
        escape(&page.settings.uri, out);
        escape(&query.link(None), out);
        let _ = write!(out, "{more}\">{text}</a> ");
    }
    out.push_str(
        "</nav>\n<input id=\"filter\" type=\"search\" placeholder=\"Filter ( / )\" aria-label=\"Filter\" hidden>\
         <button id=\"live\" type=\"button\" aria-live=\"polite\" hidden>live</button>",
    );
}

/// Content security policy: the page's own style and script, and requests to its own address.
pub(super) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| credential(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'self'",
        hash(SCRIPT),
        hash(STYLE),
    )
});

const STYLE: &str = include_str!("console.css");
const SCRIPT: &str = include_str!("console.js");
const KEYS: &str = "<details id=\"keys\"><summary>Keys</summary><p><kbd>/</kbd> filter, <kbd>j</kbd> <kbd>k</kbd> next and last row, \
    <kbd>x</kbd> tick, <kbd>d</kbd> drain, <kbd>r</kbd> ready, <kbd>m</kbd> maintenance, <kbd>p</kbd> pause</p></details>\n";
