//! `terse check FILE... [--json]`: what a configuration does, for people and for programs.
//!
//! `-c` keeps HAProxy's texts and exit codes, which tools read. This prints more: the listening addresses, where requests go, what
//! is compressed, which keywords have no effect and why.

use crate::args::{Action, Arguments};
use crate::configuration::{self, Configuration, Findings};
use crate::report::{Report, print};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use terse_compress::Effective;
use terse_config::{Diagnostic, Place, Severity};
use terse_proxy::plan::{Backend, Frontend};
use terse_proxy::settings::{Mode, Switch, SwitchTarget};

/// Summary of a configuration. Fields are only ever added.
#[derive(Serialize, Debug)]
struct Summary {
    v: u32,
    /// True if it can be served, even if there are warnings.
    valid: bool,
    problems: Vec<Problem>,
    listens: Vec<Listens>,
    goes: Vec<Goes>,
    servers: Vec<Servers>,
    compresses: Vec<Compresses>,
    /// Certificates that expire within [`SOON`].
    ends_soon: Vec<Certificate>,
    no_effect: Vec<NoEffect>,
}

#[derive(Serialize, Debug)]
struct Problem {
    severity: &'static str,
    #[serde(flatten)]
    at: Option<At>,
    word: String,
    reason: String,
    hint: Option<String>,
}

#[derive(Serialize, Debug)]
struct At {
    file: String,
    line: u32,
}

#[derive(Serialize, Debug)]
struct Listens {
    frontend: String,
    address: String,
    tls: bool,
}

#[derive(Serialize, Debug)]
struct Goes {
    frontend: String,
    /// `None`: the name is made for each request, of an expression.
    backend: Option<String>,
    /// Condition as written, `if` or `unless` first; empty: otherwise.
    condition: String,
    #[serde(flatten)]
    at: Option<At>,
}

#[derive(Serialize, Debug)]
struct Servers {
    backend: String,
    balance: &'static str,
    servers: usize,
    checked: usize,
    backup: usize,
    cookie: Option<String>,
}

#[derive(Serialize, Debug)]
struct Compresses {
    proxy: String,
    codings: Vec<&'static str>,
    /// Number of listed types; 0: any.
    types: usize,
    min_bytes: u64,
}

#[derive(Serialize, Debug)]
struct Certificate {
    name: String,
    file: String,
    ends: String,
}

#[derive(Serialize, Debug)]
struct NoEffect {
    word: String,
    #[serde(flatten)]
    at: At,
    why: &'static str,
}

/// Checks, and ends with 0 where the files are valid, with 1 where they are not. 2: nothing listens, or the arguments are no files.
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut as_json = false;
    for word in words {
        match word.to_str() {
            Some("--json") => as_json = true,
            Some("-f") => {}
            Some("--help" | "-h") => {
                print("usage: terse check FILE... [--json]\n");
                return ExitCode::SUCCESS;
            }
            Some(option) if option.starts_with('-') => return misuse(&format!("{option}: unknown option")),
            _ => files.push(word.into()),
        }
    }
    if files.is_empty() {
        return misuse("expects FILE... [--json]");
    }
    let report = if as_json { Report::silent() } else { Report::default() };
    let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ");
    let arguments = Arguments { program: "terse".into(), action: Action::Check, files, ..Arguments::default() };
    let Ok(sources) = configuration::sources(&arguments, &report) else {
        if as_json {
            print(format!(
                "{{\"v\":1,\"valid\":false,\"problems\":[{{\"severity\":\"alert\",\"reason\":\"cannot read {}\"}}]}}\n",
                names.escape_default()
            ));
        }
        return ExitCode::FAILURE;
    };
    let findings = configuration::find(&arguments, &sources, &report);
    report.diagnostics(&findings.diagnostics);
    let summary = Summary::new(&findings);
    match as_json {
        true => print(format!("{}\n", serde_json::to_string(&summary).unwrap_or_default())),
        false => print(summary.text(&names)),
    }
    match findings.configuration {
        Some(configuration) if summary.valid && !configuration.listens() => ExitCode::from(2),
        Some(_) if summary.valid => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn misuse(reason: &str) -> ExitCode {
    eprintln!("terse check: {reason}");
    ExitCode::from(2)
}

impl Summary {
    fn new(findings: &Findings) -> Summary {
        let mut summary = Summary {
            v: 1,
            valid: findings.is_valid(),
            problems: findings.diagnostics.iter().map(problem).collect(),
            listens: Vec::new(),
            goes: Vec::new(),
            servers: Vec::new(),
            compresses: Vec::new(),
            ends_soon: Vec::new(),
            no_effect: findings.accepted.iter().filter_map(no_effect).collect(),
        };
        if let Some(configuration) = findings.configuration.as_ref().filter(|_| summary.valid) {
            summary.fill(configuration);
        }
        summary
    }

    fn fill(&mut self, configuration: &Configuration) {
        let plan = &configuration.plan;
        let backends = plan.backends.now();
        for bind in plan.binds() {
            let frontend = plan.frontends.get(bind.frontend);
            self.listens.push(Listens {
                frontend: frontend.map_or_else(String::new, |frontend| frontend.name.to_string()),
                address: bind.settings.address.clone(),
                tls: bind.tls.is_some(),
            });
        }
        for frontend in &plan.frontends {
            self.goes.extend(frontend.switches.iter().map(|(switch, _)| goes(frontend, switch)));
            if let Some(backend) = frontend.default_backend.and_then(|number| backends.iter().find(|back| back.number == number)) {
                let has_own = backend.name == frontend.name && backend.farm.servers().is_empty();
                let otherwise = Goes {
                    frontend: frontend.name.to_string(),
                    backend: Some(backend.name.to_string()),
                    condition: String::new(),
                    at: None,
                };
                self.goes.extend((!has_own).then_some(otherwise));
            }
            self.compress(
                &frontend.name,
                frontend.mode,
                Effective::new(frontend.compression.as_deref(), None, &plan.process.compression),
            );
        }
        for backend in backends.iter() {
            self.servers.extend(servers(backend));
            if backend.twin.is_none() {
                self.compress(
                    &backend.name,
                    backend.mode,
                    Effective::new(None, backend.compression.as_deref(), &plan.process.compression),
                );
            }
        }
        let soon = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + SOON;
        let mut seen = BTreeMap::new();
        for line in plan.vault.names(None, i64::try_from(soon.as_secs()).ok()).lines().skip(1) {
            if let [_, name, _, _, file, ends, ..] = line.split('\t').collect::<Vec<_>>()[..] {
                seen.entry(file.to_owned()).or_insert_with(|| (name.to_owned(), ends.to_owned()));
            }
        }
        self.ends_soon.extend(seen.into_iter().map(|(file, (name, ends))| Certificate { name, file, ends }));
    }

    fn compress(&mut self, proxy: &str, mode: Mode, settings: Effective<'_>) {
        let codings: Vec<_> = settings.response_codings().iter().map(|coding| coding.word()).collect();
        if mode == Mode::Http && !codings.is_empty() {
            let (types, min_bytes) = (settings.response_types().len(), settings.response_min_bytes());
            self.compresses.push(Compresses { proxy: proxy.to_owned(), codings, types, min_bytes });
        }
    }

    /// A line a fact, in columns.
    fn text(&self, names: &str) -> String {
        let count = |severity| self.problems.iter().filter(|problem| problem.severity == severity).count();
        let plural = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let files: BTreeSet<&str> = self
            .no_effect
            .iter()
            .map(|word| &word.at)
            .chain(self.goes.iter().filter_map(|goes| goes.at.as_ref()))
            .map(|at| &*at.file)
            .collect();
        let place = |at: &At| if files.len() > 1 { format!("{}:{}", at.file, at.line) } else { format!("line {}", at.line) };
        let mut text = format!("{names}   {}", if self.valid { "valid" } else { "not valid" });
        for (severity, one) in [("alert", "error"), ("warning", "warning"), ("notice", "note")] {
            if count(severity) > 0 {
                let _ = write!(text, ", {}", plural(count(severity), one));
            }
        }
        text.push('\n');
        let mut last = "";
        let mut line = |heading: &'static str, what: String| {
            let _ = writeln!(text, "{:<10} {}", if heading == last { "" } else { heading }, what.trim_end());
            last = heading;
        };
        for Listens { frontend, address, tls } in &self.listens {
            line("listens", format!("{frontend:<16} {address}{}", if *tls { " TLS" } else { "" }));
        }
        for Goes { frontend, backend, condition, at } in &self.goes {
            let backend = backend.as_deref().unwrap_or("(by an expression)");
            let condition = if condition.is_empty() { "otherwise" } else { condition };
            let at = at.as_ref().map_or_else(String::new, place);
            line("goes", format!("{frontend:<16} -> {backend:<18} {condition:<32} {at}"));
        }
        for Servers { backend, balance, servers, checked, backup, cookie } in &self.servers {
            let mut what = format!("{backend:<16} {}, {balance}", plural(*servers, "server"));
            let _ = match checked {
                0 => write!(what, ", none checked"),
                _ if checked == servers => write!(what, ", checked"),
                _ => write!(what, ", {checked} checked"),
            };
            if *backup > 0 {
                let _ = write!(what, ", {backup} backup");
            }
            if let Some(cookie) = cookie {
                let _ = write!(what, ", cookie {cookie}");
            }
            line("servers", what);
        }
        for Compresses { proxy, codings, types, min_bytes } in &self.compresses {
            let types = if *types == 0 { "any type".into() } else { plural(*types, "type") };
            let from = if *min_bytes > 0 { format!(" from {min_bytes} bytes") } else { String::new() };
            line("shrinks", format!("{proxy:<16} {} for {types}{from}", codings.join(", ")));
        }
        if self.valid && self.compresses.is_empty() {
            line("shrinks", "nothing: add 'compression on'".into());
        }
        for Certificate { name, file, ends } in &self.ends_soon {
            line("ends soon", format!("{name:<16} {file}: {ends}"));
        }
        for NoEffect { word, at, why } in &self.no_effect {
            line("no effect", format!("{word:<32} {}: {why}", place(at)));
        }
        text
    }
}

fn at(place: &Place) -> Option<At> {
    (place.line > 0).then(|| At { file: place.file.to_string(), line: place.line })
}

fn problem(diagnostic: &Diagnostic) -> Problem {
    let place = diagnostic.place.as_ref();
    let severity = match diagnostic.severity {
        Severity::Notice => "notice",
        Severity::Warning => "warning",
        Severity::Alert => "alert",
    };
    let word = place.and_then(|place| place.text.get(place.span.clone())).unwrap_or_default();
    Problem {
        severity,
        at: place.and_then(at),
        word: word.to_owned(),
        reason: diagnostic.reason.clone(),
        hint: diagnostic.hint.clone(),
    }
}

fn no_effect((place, why): &(Place, &'static str)) -> Option<NoEffect> {
    let word = place.text.get(place.span.clone()).unwrap_or_default();
    Some(NoEffect { word: word.to_owned(), at: at(place)?, why })
}

fn goes(frontend: &Frontend, switch: &Switch) -> Goes {
    let backend = match &switch.target {
        SwitchTarget::Name(name) => Some(name.clone()),
        SwitchTarget::Format(_) => None,
    };
    // The line itself: `use_backend NAME if ...`.
    let words = switch.place.text.split_once('#').map_or(&*switch.place.text, |(line, _)| line);
    let words: Vec<&str> = words.split_whitespace().collect();
    let from = words.iter().position(|word| matches!(*word, "if" | "unless")).filter(|_| switch.condition.is_some());
    let condition = from.map_or_else(String::new, |from| words[from..].join(" "));
    Goes { frontend: frontend.name.to_string(), backend, condition, at: at(&switch.place) }
}

fn servers(backend: &Backend) -> Option<Servers> {
    let (all, settings) = (backend.farm.servers(), backend.farm.settings());
    let of = |is: fn(&terse_balance::Server) -> bool| all.iter().filter(|server| is(server)).count();
    (!all.is_empty()).then(|| Servers {
        backend: backend.name.to_string(),
        balance: settings.balance_name(),
        servers: all.len(),
        checked: of(|server| server.settings().check.enabled || server.settings().track.is_some()),
        backup: of(|server| server.settings().backup),
        cookie: settings.cookie.as_ref().map(|cookie| cookie.name.to_string()),
    })
}

/// Remaining lifetime below which a certificate gets a line.
const SOON: Duration = Duration::from_secs(30 * 24 * 3600);
