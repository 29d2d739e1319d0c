//! Runs a case through both programs, and finds the differences.

use super::figures;
use super::server::{seen, start};
use super::support::program::find;
use super::support::proxy::DEFAULTS;
use super::support::server::Server;
use super::support::{Terse, until};
use super::talk::{Exchange, talk};
use rustix::process::Signal;
use std::path::Path;

/// A configuration and the requests to it.
pub(crate) struct Case {
    /// Lines of `listen web`; `{a}` is the address of the first server, and so on. Other sections may follow.
    pub(crate) lines: String,
    /// Requests: see [`super::talk`].
    pub(crate) requests: &'static [&'static str],
    /// Differences that terse may have, each with the reason.
    pub(crate) allowed: &'static [(Allowed, &'static str)],
}

/// A difference that is meant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Allowed {
    /// In this field of responses that are not compressed.
    Plain(&'static str),
    /// In this field of responses.
    Field(&'static str),
    /// In the order in which servers were chosen, not in how often.
    Order,
    /// In the outcome of this request.
    Request(&'static str),
    /// In what servers see of requests whose first line contains this.
    Seen(&'static str),
}

impl Case {
    fn allows(&self, difference: Allowed) -> bool {
        self.allowed.iter().any(|(allowed, _)| *allowed == difference)
    }
}

/// Outcome of a case with one proxy.
#[derive(PartialEq, Debug)]
struct Outcome {
    exchanges: Vec<Exchange>,
    seen: Vec<String>,
    logged: Vec<String>,
    counters: Vec<String>,
}

/// Runs cases through both; fails with all differences.
pub(crate) fn compare(cases: &[Case]) {
    compare_with(cases, false);
}

/// The same, and compares `show stat` once all connections have ended.
pub(crate) fn compare_counters(cases: &[Case]) {
    compare_with(cases, true);
}

fn compare_with(cases: &[Case], counts: bool) {
    let named = std::env::var_os("HAPROXY").map(Into::into);
    let Some(haproxy) = named.or_else(|| find("haproxy")) else { return };
    let mut differences = Vec::new();
    for case in cases {
        let found = match (run(case, Some(&haproxy), counts), run(case, None, counts)) {
            (Ok(reference), Ok(ours)) => differ(&reference, &ours, case),
            (reference, ours) => {
                let refusal = |outcome: Result<Outcome, String>| outcome.err().unwrap_or("nothing".into());
                vec![format!("haproxy refuses {}", refusal(reference)), format!("terse refuses {}", refusal(ours))]
            }
        };
        if !found.is_empty() {
            differences.push(format!("{}\n    {}", case.lines.trim(), found.join("\n    ")));
        }
    }
    assert!(differences.is_empty(), "{} of {} cases differ\n{}", differences.len(), cases.len(), differences.join("\n"));
}

/// Returns the outcome of a case; if its configuration is refused, the message.
fn run(case: &Case, program: Option<&Path>, counts: bool) -> Result<Outcome, String> {
    let servers = start(3);
    let mut process = prepare(&case.lines, &servers, program).start();
    let address = process.address("web");
    let Some(exchanges) = talk(address, case.requests, || process.is_running()) else {
        return Err(process.stderr().lines().find(|line| line.starts_with("[ALERT]")).unwrap_or_default().to_owned());
    };
    let counters = if counts { figures::rows(&process) } else { Vec::new() };
    // It ends when all has been written.
    process.signal(Signal::USR1);
    let of_streams = |line: &&str| !line.starts_with("Proxy ");
    let logged = process.wait().stdout.lines().filter(of_streams).map(str::to_owned).collect();
    until("connections to close", || (servers.iter().map(Server::open).sum::<usize>() == 0).then_some(()));
    Ok(Outcome { exchanges, seen: seen(&servers), logged, counters })
}

/// terse, or another program, with these lines in front of these servers.
fn prepare(lines: &str, servers: &[Server], program: Option<&Path>) -> Terse {
    let mut text = format!(
        "global\n nbthread 1\n maxconn 1000\n stats socket fd@${{cli}} level admin\n{DEFAULTS} balance roundrobin\nlisten web\n bind fd@${{web}}\n{lines}\n"
    );
    for (server, name) in servers.iter().zip('a'..) {
        text = text.replace(&format!("{{{name}}}"), &server.address().to_string());
    }
    let process = Terse::with(&text).listen("web").listen("cli").arg(&["-db"]);
    match program {
        Some(path) => process.program(path),
        None => process,
    }
}

fn differ(reference: &Outcome, ours: &Outcome, case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    for (theirs, ours) in reference.exchanges.iter().zip(&ours.exchanges) {
        let is_meant = case.allowed.iter().any(|(allowed, _)| matches!(allowed, Allowed::Request(text) if *text == ours.request));
        let (theirs, ours) = (normal(theirs, case), normal(ours, case));
        if theirs != ours && !is_meant {
            found.push(ours.request.clone());
            let mut show = |what: &str, theirs: String, ours: String| {
                if theirs != ours {
                    found.push(format!("  {what}: haproxy {theirs}"));
                    found.push(format!("  {:width$}  terse   {ours}", "", width = what.len()));
                }
            };
            show("status", theirs.status.to_string(), ours.status.to_string());
            show("fields", format!("{:?}", theirs.fields), format!("{:?}", ours.fields));
            show("body", format!("{:.200?}", theirs.body), format!("{:.200?}", ours.body));
            show("interim", format!("{:?}", theirs.interim), format!("{:?}", ours.interim));
            show("trailers", format!("{:?}", theirs.trailers), format!("{:?}", ours.trailers));
        }
    }
    lines_differ("seen", seen_by(reference, case), seen_by(ours, case), &mut found);
    lines_differ("logged", reference.logged.clone(), ours.logged.clone(), &mut found);
    lines_differ("counted", reference.counters.clone(), ours.counters.clone(), &mut found);
    found
}

/// Returns the requests that servers have seen, without what may differ.
fn seen_by(outcome: &Outcome, case: &Case) -> Vec<String> {
    let is_meant =
        |line: &str| case.allowed.iter().any(|(allowed, _)| matches!(allowed, Allowed::Seen(part) if line.contains(part)));
    let mut seen: Vec<String> = outcome.seen.iter().filter(|line| !is_meant(line)).map(|line| in_own_version(line)).collect();
    if case.allows(Allowed::Order) {
        // The number of times that each was chosen counts, not the requests.
        seen.iter_mut().for_each(|line| line.truncate(1));
        seen.sort();
    }
    seen
}

/// A request as it goes on in the version of an intermediary (RFC 9112 section 2.3), where HAProxy keeps the client's.
fn in_own_version(line: &str) -> String {
    match line.contains(" HTTP/1.0 [") && line.contains("(\"host\", ") {
        true => line.replace(" HTTP/1.0 [", " HTTP/1.1 [").replace("(\"connection\", \"keep-alive\"), ", ""),
        false => line.to_owned(),
    }
}

pub(crate) fn lines_differ(what: &str, theirs: Vec<String>, ours: Vec<String>, found: &mut Vec<String>) {
    if theirs != ours {
        let missing =
            |lines: &[String], others: &[String]| lines.iter().filter(|line| !others.contains(line)).cloned().collect::<Vec<_>>();
        found.push(format!("{what} by {} lines with haproxy, {} with terse", theirs.len(), ours.len()));
        found.extend(missing(&theirs, &ours).into_iter().map(|line| format!("  {what} with haproxy alone: {line}")));
        found.extend(missing(&ours, &theirs).into_iter().map(|line| format!("  {what} with terse alone:   {line}")));
    }
}

/// An exchange without what may differ.
fn normal(exchange: &Exchange, case: &Case) -> Exchange {
    let mut normal = exchange.clone();
    let is_coded = exchange.fields.iter().any(|(name, _)| name == "content-encoding");
    let is_page =
        exchange.status >= 400 && exchange.fields.iter().any(|(name, value)| name == "content-type" && value == "text/html");
    normal.fields.retain(|(name, _)| {
        !case.allowed.iter().any(|(allowed, _)| match allowed {
            Allowed::Field(field) => field == name,
            Allowed::Plain(field) => field == name && !is_coded,
            Allowed::Order => name == "x-server",
            Allowed::Request(_) | Allowed::Seen(_) => false,
        })
    });
    if is_page {
        // Error pages have the same content in other words.
        normal.fields.retain(|(name, _)| name != "content-length");
        normal.body.clear();
    }
    if case.allows(Allowed::Order) {
        normal.body.clear();
    }
    normal
}
