//! The rows of `show stat` and of the statistics page.

use crate::figures::{Column, Figure, Kind, Row};
use crate::halves::{self, Half};
use crate::rates::Rates;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use terse_balance::check::CheckStatus;
use terse_balance::settings::{Balance, FarmSettings};
use terse_balance::{Count, Durations, Farm, Server, Span, report};
use terse_compress::decode::counters::{Counters as Decoded, Side};
use terse_proxy::counters::{Tally, Totals};
use terse_proxy::plan::{Backend, Bind, Frontend, Plan};
use terse_proxy::settings::Mode;
use terse_tls::{Acceptor, Connector, HandshakeCounts};

/// From where figures are looked at.
pub(crate) struct Sight<'a> {
    /// The proxies.
    pub(crate) plan: &'a Plan,
    /// What happens in a second, where that is watched.
    pub(crate) rates: Option<&'a Rates>,
    /// Whether the process has stopped to listen.
    pub(crate) is_stopping: bool,
    /// Whether addresses, cookies and algorithms are shown: HAProxy keeps them from those who may only look at what is no secret.
    pub(crate) legends: bool,
    /// When.
    pub(crate) now: Instant,
}

/// Which rows are wanted.
pub(crate) struct Selection<'a> {
    /// Of which proxies.
    pub(crate) proxies: &'a dyn Fn(Half<'_>) -> bool,
    /// Two to the power of each wanted kind's number.
    pub(crate) kinds: i64,
    /// A server's number, or an address's.
    pub(crate) server: Option<u32>,
    /// Only servers that are up.
    pub(crate) up: bool,
    /// No servers in maintenance.
    pub(crate) no_maint: bool,
}

impl Selection<'_> {
    fn wants(&self, kind: Kind) -> bool {
        self.kinds & (1 << kind.number()) != 0
    }

    fn wants_server(&self, server: &Server) -> bool {
        self.server.is_none_or(|id| id == server.id())
            && (server.is_up() || !self.up)
            && (!server.admin().is_maint() || !self.no_maint)
    }
}

impl Sight<'_> {
    /// The rows of a selection, in the order of the configuration; a backend's servers stand before it.
    pub(crate) fn rows(&self, selection: &Selection<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        for half in halves::of(self.plan).into_iter().filter(|half| (selection.proxies)(*half)) {
            match half {
                Half::Front(index, front) => {
                    if selection.wants(Kind::Frontend) {
                        rows.push(self.frontend(index, front));
                    }
                    if selection.wants(Kind::Address) {
                        let binds = self.plan.binds.iter().filter(|bind| bind.frontend == index);
                        let wanted = binds.filter(|bind| selection.server.is_none_or(|id| id == bind.id));
                        rows.extend(wanted.filter_map(|bind| self.address(front, bind)));
                    }
                }
                Half::Back(index, back) => {
                    if selection.wants(Kind::Server) {
                        let servers = back.farm.servers().iter().filter(|server| selection.wants_server(server));
                        rows.extend(servers.map(|server| self.server(index, back, server)));
                    }
                    if selection.wants(Kind::Backend) {
                        rows.push(self.backend(index, back));
                    }
                }
            }
        }
        rows
    }

    /// A frontend's row.
    fn frontend(&self, index: usize, front: &Frontend) -> Row {
        let mut row = Row::new(Kind::Frontend, front.id, 0);
        let totals = front.tally.totals();
        half(&mut row, &front.name, "FRONTEND", front.mode, &totals, &front.tally);
        let binds = self.plan.binds.iter().filter(|bind| bind.frontend == index);
        handshakes(&mut row, binds.filter_map(|bind| bind.tls.as_deref()).map(Acceptor::counts));
        row.set(Column::DeniedConnections, Figure::counter(totals.denied_connections));
        row.set(Column::DeniedSessions, Figure::counter(totals.denied_sessions));
        let limit = Some(front.tally.limit()).filter(|limit| *limit != 0).unwrap_or(self.plan.process.maxconn);
        row.set(Column::CurrentLimit, Figure::limit(limit));
        row.set(Column::RequestErrors, Figure::counter(totals.request_errors));
        if front.mode == Mode::Http {
            row.set(Column::Intercepted, Figure::counter(totals.intercepted));
        }
        row.set(Column::Status, Figure::text("SGPV", if self.is_stopping { "STOP" } else { "OPEN" }));
        row.set(Column::RateLimit, Figure::limit(front.session_rate.as_ref().map_or(0, |(limit, _)| *limit as usize)));
        row.set(Column::Connections, Figure::counter(totals.connections));
        let (mine, other) = match front.mode {
            Mode::Http => ([Column::SessionsH1, Column::RequestsH1], [Column::SessionsOther, Column::RequestsOther]),
            Mode::Tcp | Mode::Log => ([Column::SessionsOther, Column::RequestsOther], [Column::SessionsH1, Column::RequestsH1]),
        };
        row.set(mine[0], Figure::counter(totals.sessions));
        row.set(mine[1], Figure::counter(totals.requests));
        other.into_iter().for_each(|column| row.set(column, Figure::counter(0)));
        if let Some(rates) = self.rates.and_then(|rates| rates.frontends.get(index)) {
            row.set(Column::Rate, Figure::rate(rates.sessions.now()));
            row.set(Column::RateMax, Figure::maximum(rates.sessions.most()));
            row.set(Column::ConnectionRate, Figure::rate(rates.connections.now()));
            row.set(Column::ConnectionRateMax, Figure::maximum(rates.connections.most()));
            if front.mode == Mode::Http {
                row.set(Column::RequestRate, Figure::rate(rates.requests.now()));
                row.set(Column::RequestRateMax, Figure::maximum(rates.requests.most()));
            }
        }
        row
    }

    /// An address's row, if it is counted on its own.
    fn address(&self, front: &Frontend, bind: &Bind) -> Option<Row> {
        let totals = bind.tally.as_deref()?.totals();
        let limit = bind.settings.maxconn.unwrap_or(0);
        let mut row = Row::new(Kind::Address, front.id, bind.id);
        common(&mut row, &front.name, &bind.label(), front.mode, &totals);
        handshakes(&mut row, bind.tls.as_deref().into_iter().map(Acceptor::counts));
        row.set(Column::DeniedConnections, Figure::counter(totals.denied_connections));
        row.set(Column::DeniedSessions, Figure::counter(totals.denied_sessions));
        row.set(Column::CurrentLimit, Figure::limit(limit));
        row.set(Column::RequestErrors, Figure::counter(totals.request_errors));
        let is_full = limit != 0 && totals.current >= limit as u64;
        let status = if self.is_stopping {
            "WAITING"
        } else if is_full {
            "FULL"
        } else {
            "OPEN"
        };
        row.set(Column::Status, Figure::text("SGPV", status));
        if self.legends {
            row.set(Column::Address, Figure::text("CGSV", shown(&bind.settings.address)));
        }
        Some(row)
    }

    /// A backend's row.
    fn backend(&self, index: usize, back: &Backend) -> Row {
        let mut row = Row::new(Kind::Backend, back.id, 0);
        let (totals, farm) = (back.tally.totals(), &back.farm);
        half(&mut row, &back.name, "BACKEND", back.mode, &totals, &back.tally);
        let ((queued, queued_max), (active, backup)) = (farm.queued(), farm.up());
        let (since, down) = report::backend_times(farm, self.now);
        // Backup servers count only while no other is up.
        let usable = |server: &&std::sync::Arc<Server>| server.is_eligible() && server.settings().backup == (active == 0);
        let weight: u32 = farm.servers().iter().filter(usable).map(|server| server.weight()).sum();
        let sum = |count| farm.servers().iter().map(|server| server.counters.total(count)).sum::<u64>();
        let is_up = farm.is_up() || farm.servers().is_empty();
        handshakes(&mut row, farm.servers().iter().filter_map(|server| server.connector()).map(Connector::counts));
        row.set(Column::Queued, Figure::gauge(queued));
        row.set(Column::QueuedMax, Figure::maximum(queued_max));
        row.set(Column::ConnectErrors, Figure::counter(totals.connect_errors));
        row.set(Column::ResponseErrors, Figure::counter(totals.response_errors));
        row.set(Column::Retries, Figure::counter(totals.retries));
        row.set(Column::Redispatches, Figure::counter(totals.redispatches));
        row.set(Column::Status, Figure::text("SGPV", if is_up { "UP" } else { "DOWN" }));
        row.set(Column::Weight, Figure::small("MaPV", weight));
        row.set(Column::UserWeight, Figure::small("MaPV", weight));
        row.set(Column::Active, Figure::gauge(active));
        row.set(Column::Backup, Figure::gauge(backup));
        row.set(Column::WentDown, Figure::counter(farm.counters.total(Count::WentDown)));
        row.set(Column::LastChange, Figure::age(since.as_secs()));
        row.set(Column::Downtime, Figure::small("MCPV", if is_up && farm.servers().is_empty() { 0 } else { down.as_secs() }));
        row.set(Column::Balanced, Figure::counter(sum(Count::Balanced)));
        row.set(Column::ClientAborts, Figure::counter(totals.client_aborts));
        row.set(Column::ServerAborts, Figure::counter(totals.server_aborts));
        durations(&mut row, farm, &farm.durations, self.now);
        row.set(Column::Connects, Figure::counter(sum(Count::Connects)));
        row.set(Column::Reuses, Figure::counter(sum(Count::Reuses)));
        if let Some(rate) = self.rates.and_then(|rates| rates.backends.get(index)) {
            row.set(Column::Rate, Figure::rate(rate.now()));
            row.set(Column::RateMax, Figure::maximum(rate.most()));
        }
        if self.legends {
            if let Some(cookie) = &farm.settings().cookie {
                row.set(Column::Cookie, Figure::text("CNSV", &*cookie.name));
            }
            row.set(Column::Algorithm, Figure::text("CGSV", algorithm(farm.settings())));
        }
        row
    }

    /// A server's row.
    fn server(&self, index: usize, back: &Backend, server: &Server) -> Row {
        let mut row = Row::new(Kind::Server, back.id, server.id());
        let settings = server.settings();
        row.set(Column::Proxy, Figure::name(&*back.name));
        row.set(Column::Service, Figure::name(&**server.name()));
        row.set(Column::Queued, Figure::gauge(server.queued()));
        row.set(Column::QueuedMax, Figure::maximum(server.queued_max()));
        row.set(Column::Current, Figure::gauge(server.served()));
        row.set(Column::CurrentMax, Figure::maximum(server.served_max()));
        if server.maxconn() != 0 {
            row.set(Column::CurrentLimit, Figure::limit(server.maxconn()));
        }
        if settings.maxqueue != 0 {
            row.set(Column::QueueLimit, Figure::small("CLSV", settings.maxqueue));
        }
        for (column, count) in COUNTS {
            row.set(*column, Figure::counter(server.counters.total(*count)));
        }
        row.set(Column::Status, Figure::text("SGPV", report::status(server)));
        row.set(Column::Weight, Figure::small("MaPV", server.weight()));
        row.set(Column::UserWeight, Figure::small("MaPV", server.weight()));
        row.set(Column::Active, Figure::small("SGPV", u8::from(!settings.backup)));
        row.set(Column::Backup, Figure::small("SGPV", u8::from(settings.backup)));
        row.set(Column::LastChange, Figure::age(report::since_change(&back.farm, server, self.now).as_secs()));
        durations(&mut row, &back.farm, &server.durations, self.now);
        handshakes(&mut row, server.connector().into_iter().map(Connector::counts));
        mode(&mut row, back.mode);
        if back.mode == Mode::Http {
            for (column, count) in HTTP_COUNTS {
                row.set(*column, Figure::counter(server.counters.total(*count)));
            }
        }
        if settings.check.enabled {
            checks(&mut row, back, server, self.now);
        }
        if let Some(rate) = self.rates.and_then(|rates| rates.servers.get(index)?.get(server.index())) {
            row.set(Column::Rate, Figure::rate(rate.now()));
            row.set(Column::RateMax, Figure::maximum(rate.most()));
        }
        if let Some(most) = settings.pool.max_idle {
            row.set(Column::IdleLimit, Figure::limit(most));
        }
        if self.legends {
            let address = server.address().destination().map_or("unix".into(), |destination| destination.to_string());
            row.set(Column::Address, Figure::text("CGSV", address));
            if let Some(cookie) = &settings.cookie {
                row.set(Column::Cookie, Figure::text("CNSV", &**cookie));
            }
        }
        row
    }
}

/// An address as statistics show it: those of every host as 0.0.0.0, paths and names not at all.
fn shown(address: &str) -> String {
    let address = match address.split_once('@') {
        Some(("unix" | "abns" | "abnsz" | "fd" | "sockpair", _)) => return "unix".into(),
        Some((_, address)) => address,
        None if address.starts_with('/') => return "unix".into(),
        None => address,
    };
    match address.rsplit_once(':') {
        Some(("" | "*", port)) => format!("0.0.0.0:{port}"),
        _ => address.into(),
    }
}

/// What frontends and backends have alike.
fn half(row: &mut Row, name: &str, service: &str, kind: Mode, totals: &Totals, tally: &Tally) {
    common(row, name, service, kind, totals);
    if kind == Mode::Http {
        row.set(Column::Status1xx, Figure::counter(totals.status_1xx));
        row.set(Column::Status2xx, Figure::counter(totals.status_2xx));
        row.set(Column::Status3xx, Figure::counter(totals.status_3xx));
        row.set(Column::Status4xx, Figure::counter(totals.status_4xx));
        row.set(Column::Status5xx, Figure::counter(totals.status_5xx));
        row.set(Column::StatusOther, Figure::counter(totals.status_other));
        row.set(Column::Requests, Figure::counter(totals.requests));
        row.set(Column::RewriteFailures, Figure::counter(totals.rewrite_failures));
        row.set(Column::CacheLookups, Figure::counter(totals.cache_lookups));
        row.set(Column::CacheHits, Figure::counter(totals.cache_hits));
        row.set(Column::CacheHints, Figure::counter(totals.cache_hints));
        let compression = tally.compression();
        row.set(Column::CompressIn, Figure::counter(compression.bytes_in.load(Relaxed)));
        row.set(Column::CompressOut, Figure::counter(compression.bytes_out.load(Relaxed)));
        row.set(Column::CompressBypass, Figure::counter(compression.bypassed.load(Relaxed)));
        row.set(Column::CompressResponses, Figure::counter(compression.compressed.load(Relaxed)));
        let Decoded { request, response } = tally.decompression();
        let sum = |of: fn(&Side) -> &AtomicU64| Figure::counter(of(&request).load(Relaxed) + of(&response).load(Relaxed));
        row.set(Column::DecodeIn, sum(|side| &side.bytes_in));
        row.set(Column::DecodeOut, sum(|side| &side.bytes_out));
        row.set(Column::DecodedRequests, Figure::counter(request.decoded.load(Relaxed)));
        row.set(Column::DecodedResponses, Figure::counter(response.decoded.load(Relaxed)));
        row.set(Column::Bombs, sum(|side| &side.bombs));
    }
}

/// What addresses have too.
fn common(row: &mut Row, name: &str, service: &str, kind: Mode, totals: &Totals) {
    row.set(Column::Proxy, Figure::name(name));
    row.set(Column::Service, Figure::name(service));
    row.set(Column::Current, Figure::gauge(totals.current));
    row.set(Column::CurrentMax, Figure::maximum(totals.current_max));
    row.set(Column::Sessions, Figure::counter(totals.sessions));
    row.set(Column::BytesIn, Figure::counter(totals.bytes_in));
    row.set(Column::BytesOut, Figure::counter(totals.bytes_out));
    row.set(Column::DeniedRequests, Figure::counter(totals.denied_requests));
    row.set(Column::DeniedResponses, Figure::counter(totals.denied_responses));
    mode(row, kind);
}

/// How long streams took, and when the last one came.
fn durations(row: &mut Row, farm: &Farm, durations: &Durations, now: Instant) {
    if let Some(since) = farm.since_last_s(durations, now) {
        row.set(Column::LastSession, Figure::age(since));
    }
    for (span, average, most) in [
        (Span::Queue, Column::QueueTime, Column::QueueTimeMax),
        (Span::Connect, Column::ConnectTime, Column::ConnectTimeMax),
        (Span::Response, Column::ResponseTime, Column::ResponseTimeMax),
        (Span::Total, Column::TotalTime, Column::TotalTimeMax),
    ] {
        row.set(average, Figure::small("MaPV", durations.average_ms(span)));
        row.set(most, Figure::small("MMPV", durations.most_ms(span)));
    }
}

/// What the handshakes of some lines have come to.
fn handshakes<'a>(row: &mut Row, lines: impl Iterator<Item = &'a HandshakeCounts>) {
    let mut sums = [0; 5];
    for HandshakeCounts { made, resumed, failed, stapled, staple_failed } in lines {
        let counts = [made, resumed, failed, stapled, staple_failed];
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count.load(Relaxed));
    }
    let columns = [Column::TlsMade, Column::TlsResumed, Column::TlsFailed, Column::Stapled, Column::StapleFailed];
    columns.into_iter().zip(sums).for_each(|(column, sum)| row.set(column, Figure::counter(sum)));
}

fn mode(row: &mut Row, mode: Mode) {
    row.set(
        Column::Mode,
        Figure::text(
            "CGSV",
            match mode {
                Mode::Http => "http",
                Mode::Tcp => "tcp",
                Mode::Log => "log",
            },
        ),
    );
}

fn checks(row: &mut Row, back: &Backend, server: &Server, now: Instant) {
    let (check, last) = (&server.settings().check, server.last_check());
    row.set(Column::FailedChecks, Figure::counter(server.counters.total(Count::FailedChecks)));
    row.set(Column::WentDown, Figure::counter(server.counters.total(Count::WentDown)));
    row.set(Column::Downtime, Figure::small("MCPV", report::downtime(&back.farm, server, now).as_secs()));
    row.set(Column::CheckStatus, Figure::text("MOPV", last.status.code()));
    row.set(Column::CheckText, Figure::text("MOPV", last.status.text()));
    row.set(Column::CheckRise, Figure::small("CGSV", check.rise));
    row.set(Column::CheckFall, Figure::small("CGSV", check.fall));
    row.set(Column::CheckHealth, Figure::small("CGSV", server.state().health));
    if last.status != CheckStatus::Initial {
        row.set(Column::CheckDuration, Figure::small("MDPV", last.duration.as_millis()));
        row.set(Column::LastCheck, Figure::text("MOPV", last.info));
        if last.code != 0 {
            row.set(Column::CheckCode, Figure::small("MOPV", last.code));
        }
    }
}

/// What a server counts in both modes.
const COUNTS: &[(Column, Count)] = &[
    (Column::Sessions, Count::Sessions),
    (Column::BytesIn, Count::BytesIn),
    (Column::BytesOut, Count::BytesOut),
    (Column::DeniedResponses, Count::DeniedResponses),
    (Column::RewriteFailures, Count::RewriteFailures),
    (Column::ConnectErrors, Count::ConnectErrors),
    (Column::ResponseErrors, Count::ResponseErrors),
    (Column::Retries, Count::Retries),
    (Column::Redispatches, Count::Redispatches),
    (Column::Balanced, Count::Balanced),
    (Column::ClientAborts, Count::ClientAborts),
    (Column::ServerAborts, Count::ServerAborts),
    (Column::Connects, Count::Connects),
    (Column::Reuses, Count::Reuses),
];

/// What a server counts of requests.
const HTTP_COUNTS: &[(Column, Count)] = &[
    (Column::Status1xx, Count::Status1xx),
    (Column::Status2xx, Count::Status2xx),
    (Column::Status3xx, Count::Status3xx),
    (Column::Status4xx, Count::Status4xx),
    (Column::Status5xx, Count::Status5xx),
    (Column::StatusOther, Count::StatusOther),
    (Column::Requests, Count::Requests),
];

/// The configuration's word.
fn algorithm(settings: &FarmSettings) -> &'static str {
    match settings.balance {
        Balance::RoundRobin => "roundrobin",
        Balance::StaticRoundRobin => "static-rr",
        Balance::Key => settings.key.as_ref().map_or("hash", |key| key.word),
        Balance::LeastConn => "leastconn",
        Balance::First => "first",
        Balance::Source => "source",
        Balance::Uri(_) => "uri",
        Balance::Random(_) => "random",
        Balance::Sticky => "sticky",
        Balance::LogHash => "log-hash",
    }
}
