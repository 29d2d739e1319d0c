//! Figures for programs: `;api=NAME`, JSON. Fields are only ever added; bytes and microseconds are integers, states are
//! strings.

use super::advice::{self, Advice, Servers};
use super::change::ACTIONS;
use super::settings::PageSettings;
use crate::context::Context;
use crate::figures::{Column, Kind, Row, Value};
use crate::history::unix_ms;
use crate::rows::{Sight, Walk};
use crate::savings::Savings;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use terse_compress::offload::Standing;
use terse_proxy::plan::Plan;
use terse_proxy::types::{OfType, Ratio};
use terse_tls::COUNTERS;

/// `summary`: activity of the whole process at a glance.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    v: u8,
    /// Identity of the process: counters restart when it changes.
    run: String,
    now_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    uptime_s: u64,
    stopping: bool,
    busy_permille: u64,
    connections: Connections,
    #[serde(flatten)]
    savings: Savings,
    engines: Vec<OfEngine>,
    records: Records,
    servers: Servers,
    advice: Vec<Advice>,
    /// `look`, or `change` where servers may be changed.
    rights: &'static str,
}

#[derive(Serialize)]
struct Connections {
    now: usize,
    limit: usize,
}

#[derive(Serialize)]
struct OfEngine {
    name: String,
    state: &'static str,
    jobs: u64,
    falls: u64,
}

/// Bytes of TLS records that are compressed.
#[derive(Serialize)]
struct Records {
    #[serde(rename = "in")]
    bytes_in: u64,
    #[serde(rename = "out")]
    bytes_out: u64,
}

/// View of the process for a page.
pub(super) struct View<'a> {
    pub(super) context: &'a Context,
    pub(super) settings: &'a PageSettings,
    pub(super) shows: &'a dyn Fn(&str) -> bool,
    pub(super) may_change: bool,
}

impl View<'_> {
    /// Savings of compression, of the proxies that are shown.
    pub(super) fn savings(&self) -> Savings {
        match self.settings.scope.is_empty() {
            true => Savings::of(self.context),
            false => Savings::within(self.context, Some(self.shows)),
        }
    }

    /// Identity of the process.
    pub(super) fn run(&self) -> String {
        let started = self.context.process.started_at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        format!("{}.{}", self.context.process.pid, started.as_secs())
    }

    pub(super) fn summary(&self) -> Summary<'_> {
        let Context { process, plan, rates, .. } = self.context;
        let savings = self.savings();
        let (servers, advice) = advice::find(plan, Some(&savings), self.shows);
        let lanes = self.context.queue.iter().flat_map(|queue| queue.engines());
        let is_shown = self.settings.version;
        Summary {
            v: 1,
            run: self.run(),
            now_ms: unix_ms(),
            version: is_shown.then_some(&process.own_version),
            language: is_shown.then_some(&process.version),
            uptime_s: process.started.elapsed().as_secs(),
            stopping: self.context.host.is_stopping(),
            busy_permille: rates.busy.now().min(1000),
            connections: Connections { now: self.context.connections.load(Relaxed), limit: plan.limits.connections.load(Relaxed) },
            savings,
            engines: lanes
                .map(|lane| OfEngine {
                    name: lane.settings().name.to_string(),
                    state: word(lane.standing()),
                    jobs: lane.numbers().jobs.load(Relaxed),
                    falls: lane.numbers().falls.load(Relaxed),
                })
                .collect(),
            records: Records { bytes_in: COUNTERS.records_plain.load(Relaxed), bytes_out: COUNTERS.records_packed.load(Relaxed) },
            servers,
            advice,
            rights: if self.may_change { "change" } else { "look" },
        }
    }
}

/// `types`: types of answers that were not compressed, the heaviest first.
#[derive(Serialize)]
pub(super) struct Types {
    v: u8,
    types: Vec<TypeOf>,
}

#[derive(Serialize)]
struct TypeOf {
    #[serde(rename = "type")]
    name: Box<str>,
    reason: &'static str,
    answers: u64,
    bytes: u64,
    /// Size of a sample after gzip, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_permille: Option<u64>,
}

/// Types of the whole process.
pub(super) fn types(plan: &Plan) -> Types {
    let of = |of: OfType| TypeOf {
        name: of.name,
        reason: of.reason.name(),
        answers: of.answers,
        bytes: of.bytes,
        sample_permille: of.ratio.map(Ratio::permille),
    };
    Types { v: 1, types: plan.types.all().into_iter().map(of).collect() }
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Starting => "STARTING",
        Standing::Up => "UP",
        Standing::Down => "DOWN",
        Standing::Probing => "PROBING",
    }
}

/// `servers`: some entries of a list.
#[derive(Serialize)]
pub(super) struct List {
    v: u8,
    servers: Vec<OfServer>,
    /// Index of the next entries; `None` at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

#[derive(Serialize)]
struct OfServer {
    backend: String,
    name: String,
    id: u32,
    state: String,
    since_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Check>,
    sessions: u64,
    queue: u64,
    #[serde(rename = "in")]
    bytes_in: u64,
    #[serde(rename = "out")]
    bytes_out: u64,
    weight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<String>,
}

#[derive(Serialize)]
struct Check {
    /// HAProxy's code of the check: `L7OK`.
    code: String,
    status: u64,
    text: String,
    duration_ms: u64,
}

/// Servers of a walk, `count` of them from index `from` on.
pub(super) fn servers(sight: &Sight<'_>, mut walk: Walk, from: usize, count: usize) -> List {
    walk.skip(from);
    let servers: Vec<_> = std::iter::from_fn(|| walk.next(sight)).take(count).map(|row| of_server(&row)).collect();
    let next = (servers.len() == count && walk.next(sight).is_some()).then_some(from + count);
    List { v: 1, servers, next }
}

/// Kinds of rows: servers alone.
pub(super) const SERVERS: i64 = 1 << Kind::Server.number();

fn of_server(row: &Row) -> OfServer {
    let check = row.get(Column::CheckStatus).map(|status| Check {
        code: status.value.to_string(),
        status: number(row, Column::CheckCode),
        text: text(row, Column::LastCheck).unwrap_or_default(),
        duration_ms: number(row, Column::CheckDuration),
    });
    OfServer {
        backend: text(row, Column::Proxy).unwrap_or_default(),
        name: text(row, Column::Service).unwrap_or_default(),
        id: row.id,
        state: text(row, Column::Status).unwrap_or_default(),
        since_s: number(row, Column::LastChange),
        check,
        sessions: number(row, Column::Current),
        queue: number(row, Column::Queued),
        bytes_in: number(row, Column::BytesIn),
        bytes_out: number(row, Column::BytesOut),
        weight: number(row, Column::Weight),
        addr: text(row, Column::Address),
    }
}

/// Number in a row; 0 where it is not known.
pub(super) fn number(row: &Row, column: Column) -> u64 {
    match row.get(column).map(|figure| &figure.value) {
        Some(Value::Small(n) | Value::Large(n)) => *n,
        Some(Value::Text(_)) | None => 0,
    }
}

/// Text in a row.
pub(super) fn text(row: &Row, column: Column) -> Option<String> {
    row.get(column).map(|figure| figure.value.to_string())
}

/// `proxies`: frontends and backends.
#[derive(Serialize)]
pub(super) struct Proxies {
    v: u8,
    proxies: Vec<OfProxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

#[derive(Serialize)]
struct OfProxy {
    name: String,
    id: u32,
    side: &'static str,
    mode: String,
    state: String,
    sessions: u64,
    requests: u64,
    #[serde(rename = "in")]
    bytes_in: u64,
    #[serde(rename = "out")]
    bytes_out: u64,
    compression: Compressed,
}

#[derive(Serialize)]
struct Compressed {
    answers: u64,
    #[serde(rename = "in")]
    bytes_in: u64,
    #[serde(rename = "out")]
    bytes_out: u64,
}

/// Proxies of a walk, `count` of them from index `from` on.
pub(super) fn proxies(sight: &Sight<'_>, mut walk: Walk, from: usize, count: usize) -> Proxies {
    walk.skip(from);
    let proxies: Vec<_> = std::iter::from_fn(|| walk.next(sight)).take(count).map(|row| of_proxy(&row)).collect();
    let next = (proxies.len() == count && walk.next(sight).is_some()).then_some(from + count);
    Proxies { v: 1, proxies, next }
}

/// Kinds of rows: proxies' halves alone.
pub(super) const PROXIES: i64 = 1 << Kind::Frontend.number() | 1 << Kind::Backend.number();

fn of_proxy(row: &Row) -> OfProxy {
    OfProxy {
        name: text(row, Column::Proxy).unwrap_or_default(),
        id: row.proxy,
        side: if row.kind == Kind::Frontend { "frontend" } else { "backend" },
        mode: text(row, Column::Mode).unwrap_or_default(),
        state: text(row, Column::Status).unwrap_or_default(),
        sessions: number(row, Column::Current),
        requests: number(row, Column::Requests),
        bytes_in: number(row, Column::BytesIn),
        bytes_out: number(row, Column::BytesOut),
        compression: Compressed {
            answers: number(row, Column::CompressResponses),
            bytes_in: number(row, Column::CompressIn),
            bytes_out: number(row, Column::CompressOut),
        },
    }
}

/// Order of a POST to `server`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    backend: String,
    servers: Vec<String>,
    action: String,
    weight: Option<u32>,
}

/// Changes servers, all or none; returns their number, or the status and the reason of a refusal.
///
/// # Errors
/// 400: it is no order; 403: the backend is not shown here; 404: there is no such backend, or no such server.
pub(super) fn change(plan: &Plan, body: &[u8], shows: &dyn Fn(&str) -> bool) -> Result<usize, (u16, String)> {
    let order: Order = serde_json::from_slice(body).map_err(|error| (400, error.to_string()))?;
    let Order { backend, servers, action, weight } = order;
    if !shows(&backend) {
        return Err((403, "this backend is not shown here".into()));
    }
    let backends = plan.backends.now();
    let found = backends.iter().find(|back| *back.name == *backend).ok_or((404, format!("there is no backend '{backend}'")))?;
    if servers.is_empty() {
        return Err((400, "'servers' names no server".into()));
    }
    let servers = servers.iter().map(|name| {
        let known = found.farm.servers().pick(|server| **server.name() == **name);
        known.ok_or_else(|| (404, format!("backend '{backend}' has no server '{name}'")))
    });
    let servers: Vec<_> = servers.collect::<Result<_, _>>()?;
    match (action.as_str(), weight) {
        ("weight", Some(weight)) if weight <= MOST_WEIGHT => {
            servers.iter().for_each(|server| found.farm.set_weight(server, weight, Instant::now()));
        }
        ("weight", _) => return Err((400, format!("'weight' has to be a number up to {MOST_WEIGHT}"))),
        (word, _) => {
            let known = ACTIONS.iter().find(|(known, ..)| *known == word).map(|(.., action)| *action);
            let action = known.ok_or_else(|| (400, format!("there is no action '{word}'")))?;
            servers.iter().for_each(|server| action.apply(found, server));
        }
    }
    Ok(servers.len())
}

/// HAProxy's limit.
const MOST_WEIGHT: u32 = 256;
