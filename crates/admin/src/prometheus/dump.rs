//! Figures in their order, a piece at a time.

use super::families::{CLASSES, METRICS, Metric, PROCESS, What};
use super::own::{self, View};
use super::query::{Query, Scope};
use super::text::{self, Number};
use crate::commands::{info, resolvers};
use crate::context::Context;
use crate::figures::{Column, Figure, Row, Value};
use crate::halves::{self, Half};
use crate::rows::{COUNTS, Counted, SPANS, Sight};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use terse_balance::check::CheckStatus;
use terse_balance::state::Operation;
use terse_balance::{Count, Server, Span};
use terse_names::COUNT_NAMES;
use terse_proxy::plan::Backend;

/// Progress of an answer.
pub(super) struct Dump {
    query: Query,
    /// Frontends, addresses and backends, which are few: their figures are taken once.
    proxies: Vec<Proxy>,
    /// Servers at the start of the answer.
    servers: Vec<Listed>,
    /// Labels of servers, concatenated, as they are first needed: each is used in some sixty samples.
    labels: String,
    /// Compression of proxies, once it is asked for.
    own: Option<Vec<own::Proxy>>,
    /// Indices of the next scope and metric, and of the server within servers' metrics.
    at: (usize, usize, usize),
}

/// A server, its backend, and the range of its labels.
struct Listed {
    back: Arc<Backend>,
    server: Arc<Server>,
    labels: Range<usize>,
}

impl Listed {
    /// Appends its labels; returns their range. A turn has time for some hundreds.
    fn label(&self, descriptions: bool, all: &mut String) -> Range<usize> {
        let mut labels = vec![("proxy", &*self.back.name)];
        labels.extend(self.back.description.as_deref().filter(|_| descriptions).map(|text| ("desc", text)));
        labels.push(("server", &**self.server.name()));
        let begin = all.len();
        all.push_str(&text::labels(&labels));
        begin..all.len()
    }
}

struct Proxy {
    scope: Scope,
    row: Row,
    is_http: bool,
    description: Option<Arc<str>>,
    /// The backend itself.
    backend: Option<Arc<Backend>>,
}

impl Dump {
    pub(super) fn new(context: &Context, query: Query) -> Dump {
        let sight = sight(context);
        let mut dump = Dump { query, proxies: Vec::new(), servers: Vec::new(), labels: String::new(), own: None, at: (0, 0, 0) };
        let backends = context.plan.backends.now();
        for half in halves::of(&context.plan, &backends) {
            dump.take(&sight, half);
        }
        dump
    }

    fn take(&mut self, sight: &Sight<'_>, half: Half<'_>) {
        let proxy = |scope, row: Row, backend| {
            let is_http = matches!(row.get(Column::Mode), Some(Figure { value: Value::Text(mode), .. }) if mode == "http");
            Proxy { scope, row, is_http, description: half.description().cloned(), backend }
        };
        match half {
            Half::Front(index, front) => {
                self.proxies.push(proxy(Scope::Frontend, sight.frontend(index, front), None));
                let binds = sight.plan.binds.iter().filter(|bind| bind.frontend == index);
                self.proxies.extend(binds.filter_map(|bind| Some(proxy(Scope::Address, sight.address(front, bind)?, None))));
            }
            Half::Back(back) => {
                self.proxies.push(proxy(Scope::Backend, sight.backend(back), Some(back.clone())));
                if self.query.wants(Scope::Server) {
                    for server in back.farm.servers().iter().filter(|server| !self.query.no_maint || !server.admin().is_maint()) {
                        self.servers.push(Listed { back: back.clone(), server: server.clone(), labels: 0..0 });
                    }
                }
            }
        }
    }

    /// The next piece; an empty one after the last.
    pub(super) fn next(&mut self, context: &Context, out: &mut String) {
        while out.len() < PIECE_BYTES {
            let (scope_at, metric_at, _) = self.at;
            let Some(&scope) = Scope::ALL.get(scope_at) else { return };
            let more = self.query.wants(scope)
                && match scope {
                    Scope::Process => self.process(context, out),
                    Scope::Frontend | Scope::Address | Scope::Backend => self.proxies(scope, metric_at, out),
                    Scope::Server => self.servers(context, metric_at, out),
                    Scope::Table => self.tables(context, out),
                    Scope::Resolver => self.resolvers(context, out),
                    Scope::Own => self.own(context, metric_at, out),
                };
            if !more {
                self.at = (scope_at + 1, 0, 0);
            }
        }
    }

    /// Writes the head of a metric, if it is asked for.
    fn begins(&self, name: &str, help: &str, out: &mut String) -> bool {
        let wanted = self.query.wants_metric(name);
        if wanted {
            text::head(name, help, out);
        }
        wanted
    }

    /// Metrics of the whole process, in one piece.
    fn process(&self, context: &Context, out: &mut String) -> bool {
        let figures = info::figures(context);
        let description = context.process.description.as_deref();
        let shown = description.filter(|_| self.query.descriptions);
        for (name, line) in PROCESS {
            let name = format!("{}{name}", Scope::Process.prefix());
            let Some((_, help, figure)) = figures.iter().find(|(known, ..)| known == line) else { continue };
            let mut labels = Vec::new();
            let value = match (*line, &figure.value) {
                ("node", Value::Text(node)) => {
                    labels.push(("node", node.as_str()));
                    Number::Whole(1)
                }
                ("Build info", Value::Text(version)) => {
                    labels.push(("version", version.as_str()));
                    Number::Whole(1)
                }
                ("description", _) => Number::Whole(1),
                _ => number(Some(figure)),
            };
            labels.extend(description.filter(|_| *line == "description").or(shown).map(|text| ("desc", text)));
            if self.begins(&name, help, out) {
                text::sample(&name, &text::labels(&labels), None, value, out);
            }
        }
        let (mut bytes_in, mut bytes_out) = (0, 0);
        for front in &context.plan.frontends {
            let compression = front.tally.compression();
            bytes_in += compression.bytes_in.load(Relaxed);
            bytes_out += compression.bytes_out.load(Relaxed);
        }
        let labels: Vec<_> = shown.map(|text| ("desc", text)).into_iter().collect();
        for (name, help, value) in [
            ("haproxy_process_http_comp_bytes_in_total", Column::CompressIn.text(), bytes_in),
            ("haproxy_process_http_comp_bytes_out_total", "Bytes that came out of compressors", bytes_out),
        ] {
            if self.begins(name, help, out) {
                text::sample(name, &text::labels(&labels), None, Number::Whole(value), out);
            }
        }
        false
    }

    /// A metric of frontends, addresses or backends.
    fn proxies(&mut self, scope: Scope, at: usize, out: &mut String) -> bool {
        let Some(metric) = METRICS.get(at) else { return false };
        self.at.1 += 1;
        let name = metric.name(scope);
        if !self.shows(metric, scope) || !self.begins(&name, metric.help(), out) {
            return true;
        }
        for proxy in self.proxies.iter().filter(|proxy| proxy.scope == scope) {
            let text_of = |column| match proxy.row.get(column) {
                Some(Figure { value: Value::Text(text), .. }) => text.as_str(),
                _ => "",
            };
            let mut labels = vec![("proxy", text_of(Column::Proxy))];
            if let Some(text) = proxy.description.as_deref().filter(|_| self.query.descriptions) {
                labels.push(("desc", text));
            }
            if scope == Scope::Address {
                labels.push(("listener", text_of(Column::Service)));
            }
            let labels = text::labels(&labels);
            let mut samples = Samples { name: &name, labels: &labels, out };
            match metric.what {
                What::Figure(column) => samples.add(number(proxy.row.get(column))),
                What::Time(column, _) => samples.add(millis(proxy.row.get(column))),
                What::OfHttp(column) if proxy.is_http => samples.add(number(proxy.row.get(column))),
                What::Extra(column, part) => {
                    if let Some(figure) = proxy.row.get(column) {
                        samples.with("mod", part, number(Some(figure)));
                    }
                }
                What::Responses if proxy.is_http => {
                    CLASSES.iter().for_each(|(column, class)| samples.with("code", class, number(proxy.row.get(*column))));
                }
                What::State => {
                    let now = match (scope, text_of(Column::Status)) {
                        (Scope::Frontend, "STOP") => "DOWN",
                        (Scope::Frontend, _) => "UP",
                        (_, status) => status,
                    };
                    let states: &[&str] = if scope == Scope::Address { &["WAITING", "OPEN", "FULL"] } else { &["DOWN", "UP"] };
                    samples.states(states.iter().map(|state| (*state, u64::from(*state == now))));
                }
                What::ServerStates | What::ServerChecks => {
                    proxy.backend.iter().for_each(|backend| samples.sums(backend, metric.what));
                }
                _ => {}
            }
        }
        true
    }

    /// A metric of servers, as far as a piece goes.
    fn servers(&mut self, context: &Context, at: usize, out: &mut String) -> bool {
        let Some(metric) = METRICS.get(at) else { return false };
        let name = metric.name(Scope::Server);
        let begins = self.at.2 == 0;
        if !self.shows(metric, Scope::Server) || (begins && !self.begins(&name, metric.help(), out)) {
            self.at.1 += 1;
            return true;
        }
        let sight = sight(context);
        let what = OfServer::new(metric.what);
        while let Some(listed) = self.servers.get_mut(self.at.2) {
            self.at.2 += 1;
            if listed.labels.is_empty() {
                listed.labels = listed.label(self.query.descriptions, &mut self.labels);
            }
            let Listed { back, server, labels } = &*listed;
            let mut samples = Samples { name: &name, labels: &self.labels[labels.clone()], out };
            match &what {
                OfServer::Count(count, counted) => samples.add(match counted.holds(back, server) {
                    true => Number::Whole(server.counters.total(*count)),
                    false => Number::None,
                }),
                OfServer::Time(span, false) => samples.add(Number::Millis(server.durations.average_ms(*span))),
                OfServer::Time(span, true) => samples.add(Number::Millis(server.durations.most_ms(*span))),
                OfServer::Other(what) => samples.of_server(&sight, back, server, *what),
            }
            if out.len() >= PIECE_BYTES {
                return true;
            }
        }
        self.at = (self.at.0, at + 1, 0);
        true
    }

    fn tables(&self, context: &Context, out: &mut String) -> bool {
        let now_ms = context.plan.table_ms(Instant::now());
        for (name, help, is_size) in [
            ("haproxy_sticktable_size", "Entries that the table has room for", true),
            ("haproxy_sticktable_used", "Entries in the table", false),
        ] {
            if !self.begins(name, help, out) {
                continue;
            }
            for table in &context.plan.tables {
                let labels = [("name", &**table.name()), ("type", table.settings().key.name())];
                let value = if is_size { table.size() } else { table.used(now_ms) };
                text::sample(name, &text::labels(&labels), None, Number::Whole(value as u64), out);
            }
        }
        false
    }

    fn resolvers(&self, context: &Context, out: &mut String) -> bool {
        for (place, count) in COUNT_NAMES.iter().enumerate() {
            let name = format!("{}{}", Scope::Resolver.prefix(), resolvers::column(count));
            if !self.begins(&name, "What became of questions to the name server, as in 'show resolvers'", out) {
                continue;
            }
            for resolvers in &context.plan.resolvers {
                for (server, counts) in resolvers.counts() {
                    let labels = [("resolver", &*resolvers.name), ("nameserver", server)];
                    text::sample(&name, &text::labels(&labels), None, Number::Whole(counts[place]), out);
                }
            }
        }
        false
    }

    /// A family of metrics that HAProxy does not have.
    fn own(&mut self, context: &Context, at: usize, out: &mut String) -> bool {
        let Some(family) = own::FAMILIES.get(at) else { return false };
        self.at.1 += 1;
        let proxies = self.own.get_or_insert_with(|| own::proxies(context));
        if self.query.wants_metric(family.name) {
            let start = out.len();
            text::head(family.name, family.help, out);
            let begun = out.len();
            (family.samples)(&View::new(context, proxies), &mut text::Sample { name: family.name, out });
            if out.len() == begun {
                out.truncate(start);
            }
        }
        true
    }

    fn shows(&self, metric: &Metric, scope: Scope) -> bool {
        metric.is_of(scope) && (self.query.extra || !matches!(metric.what, What::Extra(..)))
    }
}

/// A metric of servers, looked up once for all of them.
enum OfServer {
    Count(Count, Counted),
    /// Milliseconds: the average, or the longest.
    Time(Span, bool),
    Other(What),
}

impl OfServer {
    fn new(what: What) -> OfServer {
        let found = match what {
            What::Figure(column) => {
                let count = COUNTS.iter().find(|(counted, ..)| *counted == column);
                count.map(|(_, count, counted)| OfServer::Count(*count, *counted))
            }
            What::Time(column, _) => {
                let span = SPANS.iter().find(|(_, average, most)| [*average, *most].contains(&column));
                span.map(|(span, average, _)| OfServer::Time(*span, *average != column))
            }
            _ => None,
        };
        found.unwrap_or(OfServer::Other(what))
    }
}

/// Output of the samples of a metric and a subject.
struct Samples<'a> {
    name: &'a str,
    labels: &'a str,
    out: &'a mut String,
}

impl Samples<'_> {
    fn add(&mut self, value: Number) {
        text::sample(self.name, self.labels, None, value, self.out);
    }

    fn with(&mut self, label: &str, word: &str, value: Number) {
        text::sample(self.name, self.labels, Some((label, word)), value, self.out);
    }

    fn states<'s>(&mut self, states: impl Iterator<Item = (&'s str, u64)>) {
        states.for_each(|(state, count)| self.with("state", state, Number::Whole(count)));
    }

    /// Numbers of a backend's servers in each state.
    fn sums(&mut self, back: &Backend, what: What) {
        let servers = back.farm.servers();
        if servers.is_empty() {
            return;
        }
        match what {
            What::ServerStates => {
                let count = |named| servers.iter().filter(|server| state(server) == named).count() as u64;
                self.states(SERVER_STATES.into_iter().map(|named| (named, count(named))));
            }
            _ => {
                let mut counts = [0; OUTCOMES.len()];
                let places =
                    servers.iter().filter_map(|server| check(server).and_then(|now| OUTCOMES.iter().position(|s| *s == now)));
                places.for_each(|place| counts[place] += 1);
                self.states(OUTCOMES.into_iter().zip(counts).map(|(status, count)| (status.code(), count)));
            }
        }
    }

    fn of_server(&mut self, sight: &Sight<'_>, back: &Backend, server: &Server, what: What) {
        let figure = |column| sight.of_server(back, server, column);
        let is_http = back.mode == terse_proxy::settings::Mode::Http;
        match what {
            // A server without checks has no code.
            What::Figure(Column::CheckCode) if !server.settings().check.enabled => {}
            What::Figure(Column::CheckCode) => self.add(number(figure(Column::CheckCode).as_ref().or(Some(&Figure::gauge(0))))),
            What::Time(Column::CheckDuration, _) => {
                if let Some(time) = figure(Column::CheckDuration) {
                    self.add(millis(Some(&time)));
                }
            }
            // A server without an agent has no figures of it.
            What::Figure(Column::AgentCode) | What::Time(Column::AgentDuration, _) if !server.settings().agent.enabled => {}
            What::Figure(column) => self.add(number(figure(column).as_ref())),
            What::Time(column, _) => self.add(millis(figure(column).as_ref())),
            What::OfHttp(column) if is_http => self.add(number(figure(column).as_ref())),
            What::Responses if is_http => {
                CLASSES.iter().for_each(|(column, class)| self.with("code", class, number(figure(*column).as_ref())));
            }
            What::State => {
                let now = state(server);
                self.states(SERVER_STATES.into_iter().map(|named| (named, u64::from(named == now))));
            }
            What::Check if server.settings().check.enabled => {
                let now = check(server);
                self.states(OUTCOMES.into_iter().map(|status| (status.code(), u64::from(now == Some(status)))));
            }
            What::Agent if server.settings().agent.enabled => {
                let now = server.last_agent().status;
                self.states(OUTCOMES.into_iter().map(|status| (status.code(), u64::from(status == now))));
            }
            _ => {}
        }
    }
}

fn sight(context: &Context) -> Sight<'_> {
    Sight {
        plan: &context.plan,
        rates: Some(&context.rates),
        is_stopping: context.host.is_stopping(),
        legends: false,
        now: Instant::now(),
    }
}

fn number(figure: Option<&Figure>) -> Number {
    match figure.map(|figure| &figure.value) {
        Some(Value::Small(n) | Value::Large(n)) => Number::Whole(*n),
        Some(Value::Text(_)) | None => Number::None,
    }
}

fn millis(figure: Option<&Figure>) -> Number {
    match number(figure) {
        Number::Whole(n) => Number::Millis(n),
        other => other,
    }
}

fn state(server: &Server) -> &'static str {
    let state = server.state();
    match state.operation {
        _ if state.admin.is_maint() => "MAINT",
        Operation::Stopped => "DOWN",
        Operation::Stopping => "NOLB",
        _ if state.admin.is_drain() => "DRAIN",
        _ => "UP",
    }
}

/// Status of the last check; `None` without checks.
fn check(server: &Server) -> Option<CheckStatus> {
    server.settings().check.enabled.then(|| server.last_check().status)
}

const OUTCOMES: [CheckStatus; 16] = CheckStatus::OUTCOMES;
const SERVER_STATES: [&str; 5] = ["DOWN", "UP", "MAINT", "DRAIN", "NOLB"];

/// Approximate size at which a piece is sent.
const PIECE_BYTES: usize = 32 << 10;
