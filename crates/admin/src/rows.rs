//! The rows of `show stat` and of the statistics page.

use crate::figures::{Column, Figure, Kind, Row};
use crate::halves::{self, Half};
use crate::rates::Rates;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use terse_balance::check::CheckStatus;
use terse_balance::{Count, Durations, Farm, Server, Span, report};
use terse_compress::decode::counters::{Counters as Decoded, Side};
use terse_proxy::counters::{Tally, Totals};
use terse_proxy::gate::State;
use terse_proxy::plan::{Backend, Bind, Frontend, Plan};
use terse_proxy::settings::Mode;
use terse_tls::{Acceptor, Connector, HandshakeCounts};

/// Source and settings of figures.
pub(crate) struct Sight<'a> {
    /// The proxies.
    pub(crate) plan: &'a Plan,
    /// Rates per second, where they are sampled.
    pub(crate) rates: Option<&'a Rates>,
    /// Whether the process has stopped listening.
    pub(crate) is_stopping: bool,
    /// Whether addresses, cookies and algorithms are shown: HAProxy hides them from clients of the lowest level.
    pub(crate) legends: bool,
    /// Time of the figures.
    pub(crate) now: Instant,
}

/// Selection of rows.
pub(crate) struct Selection<'a> {
    /// Filter of proxies.
    pub(crate) proxies: &'a dyn Fn(Half<'_>) -> bool,
    /// Sum of two to the power of each wanted kind's number.
    pub(crate) kinds: i64,
    /// Number of a server or an address.
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

/// Iterator over the rows of a selection, one at a time. Those of thousands of servers are too much for one turn of a
/// worker, and for memory.
pub(crate) struct Walk {
    steps: VecDeque<Step>,
    /// Limit of rows.
    left: usize,
}

/// Next step.
enum Step {
    Frontend(usize),
    /// An address, by its place among the plan's.
    Address(usize),
    /// Servers of a backend, from this place on.
    Servers(Arc<Backend>, Vec<Arc<Server>>, usize),
    Backend(Arc<Backend>),
}

impl Walk {
    /// Walks over the present proxies and servers. Servers that come later are not included.
    pub(crate) fn new(plan: &Plan, selection: &Selection<'_>) -> Walk {
        let mut steps = VecDeque::new();
        let backends = plan.backends.now();
        for half in halves::of(plan, &backends).into_iter().filter(|half| (selection.proxies)(*half)) {
            match half {
                Half::Front(index, _) => {
                    if selection.wants(Kind::Frontend) {
                        steps.push_back(Step::Frontend(index));
                    }
                    if selection.wants(Kind::Address) {
                        let binds = plan.binds.iter().enumerate().filter(|(_, bind)| bind.frontend == index);
                        // An address that is not counted on its own has no row.
                        let counted = binds.filter(|(_, bind)| bind.tally.is_some());
                        let wanted = counted.filter(|(_, bind)| selection.server.is_none_or(|id| id == bind.id));
                        steps.extend(wanted.map(|(place, _)| Step::Address(place)));
                    }
                }
                Half::Back(back) => {
                    if selection.wants(Kind::Server) {
                        let servers = back.farm.servers();
                        let wanted = servers.iter().filter(|server| selection.wants_server(server)).cloned().collect();
                        steps.push_back(Step::Servers(back.clone(), wanted, 0));
                    }
                    if selection.wants(Kind::Backend) {
                        steps.push_back(Step::Backend(back.clone()));
                    }
                }
            }
        }
        Walk { steps, left: usize::MAX }
    }

    /// Skips so many rows, without making them.
    pub(crate) fn skip(&mut self, mut rows: usize) {
        while rows > 0 {
            match self.steps.front_mut() {
                Some(Step::Servers(_, servers, at)) if servers.len() - *at > rows => {
                    *at += rows;
                    return;
                }
                Some(Step::Servers(_, servers, at)) => rows -= servers.len() - *at,
                Some(Step::Frontend(_) | Step::Address(_) | Step::Backend(_)) => rows -= 1,
                None => return,
            }
            self.steps.pop_front();
        }
    }

    /// Sets the limit of rows.
    pub(crate) fn limit(&mut self, rows: usize) {
        self.left = rows;
    }

    /// The next row; `None` after the last.
    pub(crate) fn next(&mut self, sight: &Sight<'_>) -> Option<Row> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let row = match self.steps.front_mut()? {
                Step::Frontend(index) => sight.plan.frontends.get(*index).map(|front| sight.frontend(*index, front)),
                Step::Address(place) => {
                    let bind = sight.plan.binds.get(*place);
                    bind.and_then(|bind| sight.address(sight.plan.frontends.get(bind.frontend)?, bind))
                }
                Step::Servers(back, servers, at) => {
                    if let Some(server) = servers.get(*at) {
                        *at += 1;
                        return Some(sight.server(back, server));
                    }
                    None
                }
                Step::Backend(back) => Some(sight.backend(back)),
            };
            self.steps.pop_front();
            if row.is_some() {
                return row;
            }
        }
    }
}

impl Sight<'_> {
    /// The rows of a selection, in the order of the configuration; a backend's servers come before it.
    pub(crate) fn rows(&self, selection: &Selection<'_>) -> Vec<Row> {
        let mut walk = Walk::new(self.plan, selection);
        std::iter::from_fn(|| walk.next(self)).collect()
    }

    /// A frontend's row.
    pub(crate) fn frontend(&self, index: usize, front: &Frontend) -> Row {
        let mut row = Row::new(Kind::Frontend, front.id, 0);
        let totals = front.tally.totals();
        half(&mut row, &front.name, "FRONTEND", front.mode, &totals, &front.tally);
        let binds = self.plan.binds.iter().filter(|bind| bind.frontend == index);
        handshakes(&mut row, binds.filter_map(|bind| bind.tls.as_deref()).map(Acceptor::counts));
        row.set(Column::DeniedConnections, Figure::counter(totals.denied_connections));
        row.set(Column::DeniedSessions, Figure::counter(totals.denied_sessions));
        let limit =
            Some(front.tally.limit()).filter(|limit| *limit != 0).unwrap_or_else(|| self.plan.limits.connections.load(Relaxed));
        row.set(Column::CurrentLimit, Figure::limit(limit));
        row.set(Column::RequestErrors, Figure::counter(totals.request_errors));
        if front.mode != Mode::Http {
            row.set(Column::Requests, Figure::counter(0));
        }
        if front.mode == Mode::Http {
            row.set(Column::Intercepted, Figure::counter(totals.intercepted));
        }
        let status = match front.gate.state() {
            _ if self.is_stopping => "STOP",
            State::Open => "OPEN",
            State::Paused => "PAUSED",
            State::Closed => "STOP",
        };
        row.set(Column::Status, Figure::text("SGPV", status));
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
    pub(crate) fn address(&self, front: &Frontend, bind: &Bind) -> Option<Row> {
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
    pub(crate) fn backend(&self, back: &Backend) -> Row {
        let mut row = Row::new(Kind::Backend, back.id, 0);
        let (totals, farm) = (back.tally.totals(), &back.farm);
        half(&mut row, &back.name, "BACKEND", back.mode, &totals, &back.tally);
        let ((queued, queued_max), (active, backup)) = (farm.queued(), farm.up());
        let (since, down) = report::backend_times(farm, self.now);
        // Backup servers count only while no other is up.
        let usable = |server: &&std::sync::Arc<Server>| server.is_eligible() && server.settings().backup == (active == 0);
        let weight: u32 = farm.servers().iter().filter(usable).map(|server| server.weight()).sum();
        let of_gone = |count| farm.counters.total(count);
        let sum = |count| of_gone(count) + farm.servers().iter().map(|server| server.counters.total(count)).sum::<u64>();
        let is_up = farm.is_up() || farm.servers().is_empty();
        let of_servers = farm.servers();
        let of_servers = of_servers.iter().filter_map(|server| server.connector()).map(Connector::counts);
        handshakes(&mut row, of_servers.chain([&farm.handshakes]));
        row.set(Column::Queued, Figure::gauge(queued));
        row.set(Column::QueuedMax, Figure::maximum(queued_max));
        row.set(Column::CurrentLimit, Figure::limit(farm.full() as usize));
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
        if !farm.servers().is_empty() {
            row.set(Column::Downtime, Figure::small("MCPV", down.as_secs()));
        }
        row.set(Column::Balanced, Figure::counter(sum(Count::Balanced)));
        row.set(Column::ClientAborts, Figure::counter(totals.client_aborts));
        row.set(Column::ServerAborts, Figure::counter(totals.server_aborts));
        durations(&mut row, farm, &farm.durations, self.now);
        row.set(Column::Connects, Figure::counter(sum(Count::Connects)));
        row.set(Column::Reuses, Figure::counter(sum(Count::Reuses)));
        if let Some(rates) = self.rates.and_then(|rates| rates.of_backend(back)) {
            row.set(Column::Rate, Figure::rate(rates.sessions.now()));
            row.set(Column::RateMax, Figure::maximum(rates.sessions.most()));
        }
        if self.legends {
            if let Some(cookie) = &farm.settings().cookie {
                row.set(Column::Cookie, Figure::text("CNSV", &*cookie.name));
            }
            row.set(Column::Algorithm, Figure::text("CGSV", farm.settings().balance_name()));
        }
        row
    }

    /// A server's row.
    pub(crate) fn server(&self, back: &Backend, server: &Server) -> Row {
        let mut row = Row::new(Kind::Server, back.id, server.id());
        for column in Column::ALL {
            if let Some(figure) = self.of_server(back, server, *column) {
                row.set(*column, figure);
            }
        }
        handshakes(&mut row, server.connector().into_iter().map(Connector::counts));
        row
    }

    /// Figure in a column of a server's row, except for those that identify the server: alone it costs a fraction of
    /// the row.
    pub(crate) fn of_server(&self, back: &Backend, server: &Server, column: Column) -> Option<Figure> {
        let settings = server.settings();
        let (check, last) = (&settings.check, || server.last_check());
        // Checks pause in maintenance.
        let is_checked = check.enabled && server.is_checked();
        let is_shown = is_checked && !server.admin().is_maint();
        let checked = || is_shown.then_some(());
        let was_checked = || Some(last()).filter(|last| is_shown && last.status != CheckStatus::Initial);
        let asked = || Some(server.last_agent()).filter(|_| settings.agent.enabled && server.is_asked());
        let rate = || self.rates.and_then(|rates| Some(rates.of_backend(back)?.servers.of(server)));
        let count = COUNTS.iter().find(|(counted, ..)| *counted == column);
        if let Some((_, count, kind)) = count {
            return kind.holds(back, server).then(|| Figure::counter(server.counters.total(*count)));
        }
        Some(match column {
            Column::Proxy => Figure::name(&*back.name),
            Column::Service => Figure::name(&**server.name()),
            Column::Queued => Figure::gauge(server.queued()),
            Column::QueuedMax => Figure::maximum(server.queued_max()),
            Column::Current => Figure::gauge(server.served()),
            Column::CurrentMax => Figure::maximum(server.served_max()),
            Column::CurrentLimit => Figure::limit(Some(server.maxconn()).filter(|limit| *limit != 0)?),
            Column::QueueLimit => Figure::small("CLSV", Some(settings.maxqueue).filter(|limit| *limit != 0)?),
            Column::Status => Figure::text("SGPV", report::status(server)),
            Column::Weight | Column::UserWeight => Figure::small("MaPV", server.weight()),
            Column::Active => Figure::small("SGPV", u8::from(!settings.backup)),
            Column::Backup => Figure::small("SGPV", u8::from(settings.backup)),
            Column::LastChange => Figure::age(report::since_change(&back.farm, server, self.now).as_secs()),
            Column::Mode => mode(back.mode),
            Column::LastSession => Figure::age(back.farm.since_last_s(&server.durations, self.now)?),
            Column::Downtime => {
                is_checked.then_some(())?;
                Figure::small("MCPV", report::downtime(&back.farm, server, self.now).as_secs())
            }
            Column::CheckStatus => checked().map(|()| Figure::text("MOPV", last().status.code()))?,
            Column::CheckText => checked().map(|()| Figure::text("MOPV", last().status.text()))?,
            Column::CheckRise => checked().map(|()| Figure::small("CGSV", check.rise))?,
            Column::CheckFall => checked().map(|()| Figure::small("CGSV", check.fall))?,
            Column::CheckHealth => checked().map(|()| Figure::small("CGSV", server.state().health))?,
            Column::CheckDuration => Figure::small("MDPV", was_checked()?.duration.as_millis()),
            Column::LastCheck => Figure::text("MOPV", was_checked()?.info),
            Column::AgentStatus => asked().map(|answer| Figure::text("MOPV", answer.status.code()))?,
            Column::AgentText => asked().map(|answer| Figure::text("MOPV", answer.status.text()))?,
            Column::LastAgent => asked().map(|answer| Figure::text("MOPV", answer.info))?,
            Column::AgentCode => Figure::small("MOPV", asked().filter(|answer| answer.status.has_code())?.code),
            Column::AgentDuration => {
                Figure::small("MDPV", asked().filter(|answer| answer.status != CheckStatus::Initial)?.duration.as_millis())
            }
            Column::AgentRise | Column::AgentFall => asked().map(|_| Figure::small("CGSV", 1u8))?,
            Column::AgentHealth => asked().map(|_| Figure::small("CGSV", u8::from(!server.state().denied)))?,
            Column::Tracked => Figure::text("CNSV", server.leader_name()?),
            Column::CheckCode => Figure::small("MOPV", Some(was_checked()?).filter(|last| last.status.has_code())?.code),
            Column::Rate => Figure::rate(rate()?.now()),
            Column::RateMax => Figure::maximum(rate()?.most()),
            Column::Throttle => Figure::small("MaPV", server.throttle_percent()?),
            Column::IdleLimit => Figure::limit(settings.pool.max_idle?),
            Column::IdleConnections | Column::SafeIdle => Figure::gauge(server.idle.shared()),
            // Idle connections have ended their last response well: there are no unsafe ones.
            Column::UnsafeIdle => Figure::gauge(0),
            Column::PrivateIdle => Figure::gauge(server.idle.own()),
            Column::UsedConnections => Figure::gauge(server.served()),
            Column::NeededConnections => Figure::gauge(server.idle.needed()),
            Column::Address if self.legends => {
                let address = server.address().destination().map_or("unix".into(), |destination| destination.to_string());
                Figure::text("CGSV", address)
            }
            Column::Cookie if self.legends => Figure::text("CNSV", back.farm.cookie_of(server)?.into_owned()),
            _ => {
                let (_, span, most) = SPANS
                    .iter()
                    .flat_map(|(span, average, most)| [(*average, *span, false), (*most, *span, true)])
                    .find(|(named, ..)| *named == column)?;
                duration(&server.durations, span, most)
            }
        })
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

/// Columns that frontends and backends share.
fn half(row: &mut Row, name: &str, service: &str, kind: Mode, totals: &Totals, tally: &Tally) {
    common(row, name, service, kind, totals);
    row.set(Column::SplicedIn, Figure::counter(totals.spliced_in));
    row.set(Column::SplicedOut, Figure::counter(totals.spliced_out));
    if kind == Mode::Http {
        row.set(Column::Status1xx, Figure::counter(totals.status_1xx));
        row.set(Column::Status2xx, Figure::counter(totals.status_2xx));
        row.set(Column::Status3xx, Figure::counter(totals.status_3xx));
        row.set(Column::Status4xx, Figure::counter(totals.status_4xx));
        row.set(Column::Status5xx, Figure::counter(totals.status_5xx));
        row.set(Column::StatusOther, Figure::counter(totals.status_other));
        row.set(Column::Requests, Figure::counter(totals.requests));
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

/// Columns that addresses have, too.
fn common(row: &mut Row, name: &str, service: &str, kind: Mode, totals: &Totals) {
    row.set(Column::Proxy, Figure::name(name));
    row.set(Column::Service, Figure::name(service));
    row.set(Column::Current, Figure::gauge(totals.current));
    row.set(Column::CurrentMax, Figure::maximum(totals.current_max));
    row.set(Column::Sessions, Figure::counter(totals.sessions));
    row.set(Column::BytesIn, Figure::counter(totals.bytes_in));
    row.set(Column::BytesOut, Figure::counter(totals.bytes_out));
    row.set(Column::RequestBytesIn, Figure::counter(totals.bytes_in));
    row.set(Column::RequestBytesOut, Figure::counter(totals.bytes_to_server));
    row.set(Column::ResponseBytesIn, Figure::counter(totals.bytes_from_server));
    row.set(Column::ResponseBytesOut, Figure::counter(totals.bytes_out));
    row.set(Column::DeniedRequests, Figure::counter(totals.denied_requests));
    row.set(Column::DeniedResponses, Figure::counter(totals.denied_responses));
    row.set(Column::InternalErrors, Figure::counter(totals.internal_errors));
    row.set(Column::RewriteFailures, Figure::counter(totals.rewrite_failures));
    row.set(Column::Mode, mode(kind));
}

/// Durations of streams, and the time of the last.
fn durations(row: &mut Row, farm: &Farm, durations: &Durations, now: Instant) {
    if let Some(since) = farm.since_last_s(durations, now) {
        row.set(Column::LastSession, Figure::age(since));
    }
    for (span, average, most) in SPANS {
        row.set(*average, duration(durations, *span, false));
        row.set(*most, duration(durations, *span, true));
    }
}

fn duration(durations: &Durations, span: Span, most: bool) -> Figure {
    match most {
        true => Figure::small("MMPV", durations.most_ms(span)),
        false => Figure::small("MaPV", durations.average_ms(span)),
    }
}

/// Handshake counts of some lines.
fn handshakes<'a>(row: &mut Row, lines: impl Iterator<Item = &'a HandshakeCounts>) {
    let mut sums = [0; 5];
    for HandshakeCounts { made, resumed, failed, stapled, staple_failed } in lines {
        let counts = [made, resumed, failed, stapled, staple_failed];
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count.load(Relaxed));
    }
    let columns = [Column::TlsMade, Column::TlsResumed, Column::TlsFailed, Column::Stapled, Column::StapleFailed];
    columns.into_iter().zip(sums).for_each(|(column, sum)| row.set(column, Figure::counter(sum)));
}

/// The columns of times: averages, and the longest.
pub(crate) const SPANS: &[(Span, Column, Column)] = &[
    (Span::Queue, Column::QueueTime, Column::QueueTimeMax),
    (Span::Connect, Column::ConnectTime, Column::ConnectTimeMax),
    (Span::Response, Column::ResponseTime, Column::ResponseTimeMax),
    (Span::Total, Column::TotalTime, Column::TotalTimeMax),
];

fn mode(mode: Mode) -> Figure {
    let word = match mode {
        Mode::Http => "http",
        Mode::Tcp => "tcp",
        Mode::Log => "log",
    };
    Figure::text("CGSV", word)
}

/// Condition under which a server has a count to show.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Always,
    InHttp,
    WhenChecked,
    WhenObserved,
}

impl Counted {
    /// Whether this server has it.
    pub(crate) fn holds(self, back: &Backend, server: &Server) -> bool {
        match self {
            Counted::Always => true,
            Counted::InHttp => back.mode == Mode::Http,
            Counted::WhenChecked => server.settings().check.enabled && server.is_checked(),
            Counted::WhenObserved => server.settings().observe.layer.is_some(),
        }
    }
}

/// Counts of a server, by column.
pub(crate) const COUNTS: &[(Column, Count, Counted)] = &[
    (Column::Sessions, Count::Sessions, Counted::Always),
    (Column::BytesIn, Count::BytesIn, Counted::Always),
    (Column::BytesOut, Count::BytesOut, Counted::Always),
    (Column::RequestBytesIn, Count::BytesIn, Counted::Always),
    (Column::RequestBytesOut, Count::BytesToServer, Counted::Always),
    (Column::ResponseBytesIn, Count::BytesFromServer, Counted::Always),
    (Column::ResponseBytesOut, Count::BytesOut, Counted::Always),
    (Column::DeniedResponses, Count::DeniedResponses, Counted::Always),
    (Column::RewriteFailures, Count::RewriteFailures, Counted::Always),
    (Column::ConnectErrors, Count::ConnectErrors, Counted::Always),
    (Column::ResponseErrors, Count::ResponseErrors, Counted::Always),
    (Column::Retries, Count::Retries, Counted::Always),
    (Column::Redispatches, Count::Redispatches, Counted::Always),
    (Column::Balanced, Count::Balanced, Counted::Always),
    (Column::ClientAborts, Count::ClientAborts, Counted::Always),
    (Column::ServerAborts, Count::ServerAborts, Counted::Always),
    (Column::InternalErrors, Count::InternalErrors, Counted::Always),
    (Column::Connects, Count::Connects, Counted::Always),
    (Column::Reuses, Count::Reuses, Counted::Always),
    (Column::Status1xx, Count::Status1xx, Counted::InHttp),
    (Column::Status2xx, Count::Status2xx, Counted::InHttp),
    (Column::Status3xx, Count::Status3xx, Counted::InHttp),
    (Column::Status4xx, Count::Status4xx, Counted::InHttp),
    (Column::Status5xx, Count::Status5xx, Counted::InHttp),
    (Column::StatusOther, Count::StatusOther, Counted::InHttp),
    (Column::Requests, Count::Requests, Counted::InHttp),
    (Column::FailedChecks, Count::FailedChecks, Counted::WhenChecked),
    (Column::WentDown, Count::WentDown, Counted::WhenChecked),
    (Column::AnalysisFailures, Count::AnalysisFailures, Counted::WhenObserved),
];
