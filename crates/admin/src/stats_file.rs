//! Files of statistics: counters that outlive a process (`stats-file`, `dump stats-file`).
//!
//! ```text
//! #fe guid,stot,bin,        the columns of what follows: frontends and addresses; or `#be`: backends and servers
//! guid-web,1024,77,         one thing, by its `guid`
//! // ...                    a comment
//! ```
//!
//! The names of columns are those of `show stat`, so HAProxy's files can be read, and terse's by HAProxy. Unknown
//! subjects and columns are ignored, and so are values that are not numbers.

use crate::figures::Column;
use crate::rows::COUNTS;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use terse_balance::{Count, Server};
use terse_proxy::counters::{Counter, Counters, Tally};
use terse_proxy::plan::{Backend, Plan};

/// Sets the counters of a plan that has not begun to serve to the values of a file.
///
/// # Errors
/// It is not a file of statistics, or exceeds [`MOST_BYTES`].
pub fn load(plan: &Plan, bytes: &[u8]) -> Result<(), String> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("larger than {MOST_BYTES} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
    let known = Known::of(plan);
    let (mut side, mut columns): (Option<Side>, Vec<Option<Column>>) = (None, Vec::new());
    // The last line for a subject counts.
    let mut last: HashMap<(Side, &str), Vec<(Column, u64)>> = HashMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(head) = line.strip_prefix('#') {
            let (word, names) = head.split_once(' ').unwrap_or((head, ""));
            side = Side::of_word(word);
            columns = names.split(',').skip(1).take(Column::ALL.len()).map(column_named).collect();
            continue;
        }
        let Some(side) = side else { continue };
        let mut values = line.split(',');
        let guid = values.next().unwrap_or_default();
        let found = columns.iter().zip(values).filter_map(|(column, value)| Some(((*column)?, value.parse().ok()?)));
        if known.has(side, guid) {
            last.entry((side, guid)).or_default().extend(found);
        }
    }
    for ((side, guid), found) in last {
        // Of two values of a column the later counts.
        let found: HashMap<usize, (Column, u64)> =
            found.into_iter().map(|(column, value)| (column as usize, (column, value))).collect();
        found.into_values().for_each(|(column, value)| known.set(side, guid, column, value));
    }
    Ok(())
}

/// The file's text.
pub(crate) fn dump(plan: &Plan) -> String {
    let mut out = String::new();
    head(Side::Front, &mut out);
    for front in &plan.frontends {
        line(front.guid.as_deref(), Side::Front, &mut out, |column| of_tally(&front.tally, column));
    }
    for bind in &plan.binds {
        let Some(tally) = &bind.tally else { continue };
        line(bind.settings.guid().as_deref(), Side::Front, &mut out, |column| of_tally(tally, column));
    }
    // An empty line would end the answer.
    out.push_str("//\n");
    head(Side::Back, &mut out);
    for back in plan.backends.now().iter() {
        for server in back.farm.servers().iter() {
            let guid = server.settings().guid.as_ref().map(|guid| &*guid.name);
            line(guid, Side::Back, &mut out, |column| count_of(column).map(|count| server.counters.total(count)));
        }
        line(back.guid.as_deref(), Side::Back, &mut out, |column| of_backend(back, column));
    }
    out
}

/// Limit of a file: thousands of times the size for a large configuration.
pub const MOST_BYTES: u64 = 64 << 20;

/// Half of the configuration that a line belongs to: a `listen` has a line in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Side {
    Front,
    Back,
}

impl Side {
    fn of_word(word: &str) -> Option<Side> {
        match word {
            "fe" => Some(Side::Front),
            "be" => Some(Side::Back),
            _ => None,
        }
    }

    fn columns(self) -> impl Iterator<Item = Column> {
        let both = TALLIED.iter().filter(move |(_, sides, _)| sides.contains(&self)).map(|(column, ..)| *column);
        let more = if self == Side::Back { SERVERS } else { &[] };
        both.chain(more.iter().copied())
    }
}

/// Subjects that have a name.
struct Known<'a> {
    fronts: HashMap<String, &'a Tally>,
    backs: HashMap<Arc<str>, Arc<Backend>>,
    servers: HashMap<String, Arc<Server>>,
}

impl<'a> Known<'a> {
    fn of(plan: &'a Plan) -> Known<'a> {
        let mut known = Known { fronts: HashMap::new(), backs: HashMap::new(), servers: HashMap::new() };
        for front in &plan.frontends {
            known.fronts.extend(front.guid.as_ref().map(|guid| (guid.to_string(), &front.tally)));
        }
        for bind in &plan.binds {
            known.fronts.extend(bind.settings.guid().zip(bind.tally.as_deref()));
        }
        for back in plan.backends.now().iter() {
            known.backs.extend(back.guid.as_ref().map(|guid| (guid.clone(), back.clone())));
            for server in back.farm.servers().iter() {
                known.servers.extend(server.settings().guid.as_ref().map(|guid| (guid.name.to_string(), server.clone())));
            }
        }
        known
    }

    fn has(&self, side: Side, guid: &str) -> bool {
        match side {
            Side::Front => self.fronts.contains_key(guid),
            Side::Back => self.backs.contains_key(guid) || self.servers.contains_key(guid),
        }
    }

    fn set(&self, side: Side, guid: &str, column: Column, value: u64) {
        match side {
            Side::Front => self.fronts.get(guid).into_iter().for_each(|tally| set(tally, column, value)),
            Side::Back => {
                if let Some(back) = self.backs.get(guid) {
                    match column {
                        Column::WentDown => back.farm.counters.add(Count::WentDown, value),
                        _ => set(&back.tally, column, value),
                    }
                }
                if let (Some(server), Some(count)) = (self.servers.get(guid), count_of(column)) {
                    server.counters.add(count, value);
                }
            }
        }
    }
}

/// Storage of a counter of a proxy or an address.
enum Place {
    Own(fn(&Counters) -> &Counter),
    Compression(fn(&terse_compress::Counters) -> &AtomicU64),
}

/// Columns that proxies and addresses count, and their sides.
const TALLIED: &[(Column, &[Side], Place)] = &[
    (Column::Sessions, BOTH, Place::Own(|c| &c.sessions)),
    (Column::BytesIn, BOTH, Place::Own(|c| &c.bytes_in)),
    (Column::BytesOut, BOTH, Place::Own(|c| &c.bytes_out)),
    (Column::DeniedRequests, BOTH, Place::Own(|c| &c.denied_requests)),
    (Column::DeniedResponses, BOTH, Place::Own(|c| &c.denied_responses)),
    (Column::RequestErrors, FRONT, Place::Own(|c| &c.request_errors)),
    (Column::ConnectErrors, BACK, Place::Own(|c| &c.connect_errors)),
    (Column::ResponseErrors, BACK, Place::Own(|c| &c.response_errors)),
    (Column::Retries, BACK, Place::Own(|c| &c.retries)),
    (Column::Redispatches, BACK, Place::Own(|c| &c.redispatches)),
    (Column::Status1xx, BOTH, Place::Own(|c| &c.status_1xx)),
    (Column::Status2xx, BOTH, Place::Own(|c| &c.status_2xx)),
    (Column::Status3xx, BOTH, Place::Own(|c| &c.status_3xx)),
    (Column::Status4xx, BOTH, Place::Own(|c| &c.status_4xx)),
    (Column::Status5xx, BOTH, Place::Own(|c| &c.status_5xx)),
    (Column::StatusOther, BOTH, Place::Own(|c| &c.status_other)),
    (Column::Requests, BOTH, Place::Own(|c| &c.requests)),
    (Column::ClientAborts, BACK, Place::Own(|c| &c.client_aborts)),
    (Column::ServerAborts, BACK, Place::Own(|c| &c.server_aborts)),
    (Column::CompressIn, BOTH, Place::Compression(|c| &c.bytes_in)),
    (Column::CompressOut, BOTH, Place::Compression(|c| &c.bytes_out)),
    (Column::CompressBypass, BOTH, Place::Compression(|c| &c.bypassed)),
    (Column::CompressResponses, BOTH, Place::Compression(|c| &c.compressed)),
    (Column::Connections, FRONT, Place::Own(|c| &c.connections)),
    (Column::Intercepted, FRONT, Place::Own(|c| &c.intercepted)),
    (Column::DeniedConnections, FRONT, Place::Own(|c| &c.denied_connections)),
    (Column::DeniedSessions, FRONT, Place::Own(|c| &c.denied_sessions)),
    (Column::RewriteFailures, BOTH, Place::Own(|c| &c.rewrite_failures)),
    (Column::CacheLookups, BOTH, Place::Own(|c| &c.cache_lookups)),
    (Column::CacheHits, BOTH, Place::Own(|c| &c.cache_hits)),
    (Column::CacheHints, BOTH, Place::Own(|c| &c.cache_hints)),
];

/// Columns that servers count, too; a backend's are the sums of its servers', except for the times that it went down.
const SERVERS: &[Column] = &[Column::FailedChecks, Column::WentDown, Column::Balanced, Column::Connects, Column::Reuses];

const BOTH: &[Side] = &[Side::Front, Side::Back];
const FRONT: &[Side] = &[Side::Front];
const BACK: &[Side] = &[Side::Back];

fn place(column: Column) -> Option<&'static Place> {
    TALLIED.iter().find(|(named, ..)| *named == column).map(|(_, _, place)| place)
}

fn set(tally: &Tally, column: Column, value: u64) {
    match place(column) {
        Some(Place::Own(counter)) => counter(tally.of(0)).add(value),
        Some(Place::Compression(counter)) => drop(counter(&tally.of(0).compression).fetch_add(value, Relaxed)),
        None => {}
    }
}

fn of_tally(tally: &Tally, column: Column) -> Option<u64> {
    Some(match place(column)? {
        Place::Own(counter) => tally.sum(*counter),
        Place::Compression(counter) => counter(&tally.compression()).load(Relaxed),
    })
}

fn of_backend(back: &Backend, column: Column) -> Option<u64> {
    match column {
        Column::WentDown => Some(back.farm.counters.total(Count::WentDown)),
        _ => of_tally(&back.tally, column),
    }
}

fn count_of(column: Column) -> Option<Count> {
    COUNTS.iter().find(|(named, ..)| *named == column).map(|(_, count, _)| *count)
}

fn column_named(name: &str) -> Option<Column> {
    Column::ALL.iter().copied().find(|column| column.name() == name)
}

fn head(side: Side, out: &mut String) {
    let word = if side == Side::Front { "fe" } else { "be" };
    let _ = write!(out, "#{word} guid,");
    for column in side.columns() {
        let _ = write!(out, "{},", column.name());
    }
    out.push('\n');
}

fn line(guid: Option<&str>, side: Side, out: &mut String, value: impl Fn(Column) -> Option<u64>) {
    let Some(guid) = guid else { return };
    let _ = write!(out, "{guid},");
    for column in side.columns() {
        if let Some(value) = value(column) {
            let _ = write!(out, "{value}");
        }
        out.push(',');
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::Talk;

    const NAMED: &str = "
defaults
 mode http
 timeout client 5s
 timeout server 5s
 timeout connect 1s
frontend fe
 guid g-fe
 option socket-stats
 bind 127.0.0.1:80,127.0.0.1:81 guid-prefix g-l
listen l
 guid g-l
 bind 127.0.0.1:82
 server a 127.0.0.1:1 guid g-a check
 server b 127.0.0.1:2
";

    #[test]
    fn what_was_dumped_is_loaded() {
        let mut talk = Talk::new(NAMED);
        let plan = talk.context.plan.clone();
        plan.frontends[0].tally.of(0).requests.add(7);
        plan.frontends[0].tally.of(1).requests.add(3);
        plan.binds[1].tally.as_ref().unwrap().of(0).sessions.add(5);
        plan.frontends[1].tally.of(0).compression.count_compressed(terse_compress::Coding::Gzip, 100, 20);
        plan.backends.now()[0].tally.of(0).sessions.add(11);
        plan.backends.now()[0].farm.counters.add(Count::WentDown, 2);
        let server = &plan.backends.now()[0].farm.servers()[0];
        server.counters.add(Count::Connects, 4);
        server.counters.bump_status(404);
        let file = talk.says("dump stats-file");
        assert_eq!(file.lines().filter(|line| line.starts_with("g-")).count(), 6, "{file}");
        let other = Talk::new(NAMED).context;
        load(&other.plan, file.as_bytes()).unwrap();
        assert_eq!(dump(&other.plan), dump(&plan));
        assert_eq!(other.plan.frontends[0].tally.totals().requests, 10);
        assert_eq!(other.plan.binds[1].tally.as_ref().unwrap().totals().sessions, 5);
        assert_eq!(other.plan.backends.now()[0].farm.servers()[0].counters.total(Count::Status4xx), 1);
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        let talk = Talk::new(NAMED);
        let plan = &talk.context.plan;
        let text = "g-fe,9\n#fe guid,stot,nothing,bin\n// a comment\ng-fe,1024,5,7,9,9\n\ng-fe,abc,\ng-a,1,1,1\nother,1\n\
                    #me guid,stot\ng-fe,3\n#be guid,none,stot\ng-a,3,4\ng-fe,1,1\ng-l,1,18446744073709551616\n";
        load(plan, text.as_bytes()).unwrap();
        let totals = plan.frontends[0].tally.totals();
        assert_eq!((totals.sessions, totals.bytes_in), (1024, 7));
        let back = &plan.backends.now()[0];
        assert_eq!((back.tally.totals().sessions, back.farm.servers()[0].counters.total(Count::Sessions)), (0, 4));
        assert!(load(plan, b"\xff").is_err());
        load(plan, b"").unwrap();
    }
}
