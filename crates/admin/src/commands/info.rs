//! `show info`: figures of the process, in HAProxy's order and places.
//!
//! HAProxy's counts of features that are not built show as 0, which is true; figures of its internals have no line.

use crate::answer::{Answer, Outcome};
use crate::command::{Call, Command};
use crate::context::Context;
use crate::figures::{Figure, Value, json, typed};
use crate::settings::Level;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, UNIX_EPOCH};
use terse_peers::Peer;
use terse_proxy::connection::counters::{COUNTERS as HTTP2, NO_PONG, SERVERS};
use terse_tls::COUNTERS;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show info",
    usage: "show info [desc|json|typed|float]*",
    summary: "show the figures of the process",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let has = |word: &str| call.args.iter().any(|arg| arg == word);
    let (texts, float) = (has("desc"), has("float"));
    let now = Snapshot::new(call.context, Instant::now(), float);
    let known = || ITEMS.iter().filter_map(|item| Some((item, (item.figure)(&now)?)));
    let mut out = String::new();
    if has("json") {
        let figures: Vec<_> = known().collect();
        json::figures(figures.iter().map(|(item, figure)| (item.place, item.name, figure)), &mut out);
    } else if has("typed") {
        known().for_each(|(item, figure)| typed::line(item.place, item.name, &figure, texts.then_some(item.text), &mut out));
    } else {
        for (item, figure) in known() {
            let _ = write!(out, "{}: {}", item.name, figure.value);
            if texts {
                let _ = write!(out, ":\"{}\"", item.text);
            }
            out.push('\n');
        }
    }
    Ok(Answer::Text(out))
}

/// All lines: name, description, and the figure.
pub(crate) fn figures(context: &Context) -> Vec<(&'static str, &'static str, Figure)> {
    let now = Snapshot::new(context, Instant::now(), false);
    ITEMS.iter().filter_map(|item| Some((item.name, item.text, (item.figure)(&now)?))).collect()
}

/// Source of the figures.
struct Snapshot<'a> {
    context: &'a Context,
    uptime: Duration,
    /// Whether times have fractions of seconds.
    float: bool,
    connections: u64,
    requests: u64,
    streams: u64,
    bytes_out: u64,
    spliced_out: u64,
}

impl<'a> Snapshot<'a> {
    fn new(context: &'a Context, now: Instant, float: bool) -> Snapshot<'a> {
        let uptime = now.saturating_duration_since(context.process.started);
        let mut snapshot =
            Snapshot { context, uptime, float, connections: 0, requests: 0, streams: 0, bytes_out: 0, spliced_out: 0 };
        for front in &context.plan.frontends {
            let totals = front.tally.totals();
            snapshot.connections += totals.connections;
            snapshot.requests += totals.requests;
            snapshot.bytes_out += totals.bytes_out;
            snapshot.spliced_out += totals.spliced_out;
        }
        let backends = &context.plan.backends;
        snapshot.spliced_out += backends.spliced_out.load(Relaxed);
        for totals in backends.now().iter().map(|back| back.tally.totals()) {
            snapshot.spliced_out += totals.spliced_out;
            snapshot.streams += totals.current;
        }
        snapshot
    }

    fn seconds(&self, marks: &'static str, time: Duration) -> Figure {
        match self.float {
            true => Figure::text(marks, format!("{}.{:06}", time.as_secs(), time.subsec_micros())),
            false => Figure::small(marks, time.as_secs()),
        }
    }
}

/// A line.
struct Item {
    place: usize,
    name: &'static str,
    text: &'static str,
    figure: fn(&Snapshot<'_>) -> Option<Figure>,
}

const fn item(place: usize, name: &'static str, text: &'static str, figure: fn(&Snapshot<'_>) -> Option<Figure>) -> Item {
    Item { place, name, text, figure }
}

const ITEMS: &[Item] = &[
    item(0, "Name", "Name of the program whose place this one takes: tools look for it", |_| Some(Figure::text("POSV", "HAProxy"))),
    item(1, "Version", "Version of the program", |s| Some(Figure::text("POSV", &*s.context.process.version))),
    item(2, "Release_date", "Day of the version", |s| Some(Figure::text("POSV", &*s.context.process.release_date))),
    item(3, "Nbthread", "Workers", |s| Some(Figure::small("CGSV", s.context.plan.process.workers))),
    item(4, "Nbproc", "Processes: always 1", |_| Some(Figure::small("CGSV", 1))),
    item(5, "Process_num", "Number of the process: always 1", |_| Some(Figure::small("KGPV", 1))),
    item(6, "Pid", "Number that the system knows the process by", |s| Some(Figure::small("SGPV", s.context.process.pid))),
    item(7, "Uptime", "How long the process runs", |s| {
        let t = s.uptime.as_secs();
        Some(Figure::text("MDPV", format!("{}d {}h{:02}m{:02}s", t / 86400, t / 3600 % 24, t / 60 % 60, t % 60)))
    }),
    item(8, "Uptime_sec", "How long the process runs, in seconds", |s| Some(s.seconds("MDPV", s.uptime))),
    item(9, "Memmax_MB", "Limit of the process's data in MB (-m); 0: none", |s| Some(Figure::limit(s.context.process.memory_mib))),
    item(10, "PoolAlloc_MB", "Memory that buffers hold, in MB", |s| Some(Figure::gauge(s.context.plan.memory.used() >> 20))),
    item(11, "PoolUsed_MB", "Memory that buffers hold, in MB", |s| Some(Figure::gauge(s.context.plan.memory.used() >> 20))),
    item(12, "PoolFailed", "Buffers that there was no room for", |s| Some(Figure::small("MCPV", s.context.plan.memory.refused()))),
    item(13, "Ulimit-n", "Limit of descriptors", |s| Some(Figure::limit(s.context.process.descriptors))),
    item(14, "Maxsock", "Descriptors that all the process may do takes", |s| Some(Figure::limit(s.context.process.sockets))),
    item(15, "Maxconn", "Limit of clients' connections", |s| Some(Figure::limit(s.context.plan.limits.connections.load(Relaxed)))),
    item(16, "Hard_maxconn", "The most that this limit may be raised to", |s| Some(Figure::limit(s.context.plan.process.maxconn))),
    item(17, "CurrConns", "Clients' connections now", |s| Some(Figure::gauge(s.context.connections.load(Relaxed)))),
    item(18, "CumConns", "Connections since the start, those to stats sockets too", |s| {
        Some(Figure::small("MCPV", s.connections + s.context.tally.clients.load(Relaxed)))
    }),
    item(19, "CumReq", "Requests since the start, commands too", |s| {
        Some(Figure::small("MCPV", s.requests + s.context.tally.commands.load(Relaxed)))
    }),
    item(20, "MaxSslConns", "Limit of TLS connections, 0: any number", |s| {
        Some(Figure::limit(s.context.plan.limits.tls_connections))
    }),
    item(21, "CurrSslConns", "TLS connections now", |_| {
        Some(Figure::gauge(COUNTERS.clients.load(Relaxed) + COUNTERS.servers.load(Relaxed)))
    }),
    item(22, "CumSslConns", "TLS connections since the start", |_| {
        Some(Figure::small("MCPV", COUNTERS.all_clients.load(Relaxed) + COUNTERS.all_servers.load(Relaxed)))
    }),
    item(23, "Maxpipes", "Limit of pipes", |s| Some(Figure::limit(s.context.plan.pipes.most))),
    item(24, "PipesUsed", "Pipes in use", |s| Some(Figure::gauge(s.context.plan.pipes.used()))),
    item(25, "PipesFree", "Pipes kept", |s| Some(Figure::gauge(s.context.plan.pipes.kept()))),
    item(26, "ConnRate", "Connections in the last second", |s| Some(Figure::rate(s.context.rates.connections.now()))),
    item(27, "ConnRateLimit", "Limit of connections a second, 0: any number", |s| {
        Some(Figure::limit(s.context.plan.limits.connection_rate.limit()))
    }),
    item(28, "MaxConnRate", "Most connections in a second", |s| Some(Figure::maximum(s.context.rates.connections.most()))),
    item(29, "SessRate", "Sessions in the last second", |s| Some(Figure::rate(s.context.rates.sessions.now()))),
    item(30, "SessRateLimit", "Limit of sessions a second, 0: any number", |s| {
        Some(Figure::limit(s.context.plan.limits.session_rate.limit()))
    }),
    item(31, "MaxSessRate", "Most sessions in a second", |s| Some(Figure::maximum(s.context.rates.sessions.most()))),
    item(32, "SslRate", "TLS sessions in the last second", |s| Some(Figure::rate(s.context.rates.tls.clients.now()))),
    item(33, "SslRateLimit", "Limit of TLS sessions a second, 0: any number", |s| {
        Some(Figure::limit(s.context.plan.limits.tls_rate.limit()))
    }),
    item(34, "MaxSslRate", "Most TLS sessions in a second", |s| Some(Figure::maximum(s.context.rates.tls.clients.most()))),
    item(35, "SslFrontendKeyRate", "TLS keys made with clients in the last second", |s| {
        Some(Figure::rate(s.context.rates.tls.client_keys.now()))
    }),
    item(36, "SslFrontendMaxKeyRate", "Most TLS keys made with clients in a second", |s| {
        Some(Figure::maximum(s.context.rates.tls.client_keys.most()))
    }),
    item(37, "SslFrontendSessionReuse_pct", "TLS sessions of clients used again, percent", |s| {
        Some(Figure::gauge(s.context.rates.tls_reuse_percent()))
    }),
    item(38, "SslBackendKeyRate", "TLS keys made with servers in the last second", |s| {
        Some(Figure::rate(s.context.rates.tls.server_keys.now()))
    }),
    item(39, "SslBackendMaxKeyRate", "Most TLS keys made with servers in a second", |s| {
        Some(Figure::maximum(s.context.rates.tls.server_keys.most()))
    }),
    item(40, "SslCacheLookups", "Look-ups of TLS sessions", |_| {
        Some(Figure::small("MCPV", COUNTERS.cache_hits.load(Relaxed) + COUNTERS.cache_misses.load(Relaxed)))
    }),
    item(41, "SslCacheMisses", "Look-ups of TLS sessions that found none", |_| {
        Some(Figure::small("MCPV", COUNTERS.cache_misses.load(Relaxed)))
    }),
    item(42, "CompressBpsIn", "Bytes into compressors in the last second", |s| {
        Some(Figure::rate(s.context.rates.compress_in.now()))
    }),
    item(43, "CompressBpsOut", "Bytes out of compressors in the last second", |s| {
        Some(Figure::rate(s.context.rates.compress_out.now()))
    }),
    item(44, "CompressBpsRateLim", "Limit of bytes into compressors a second; 0: none", |s| {
        Some(Figure::limit(s.context.plan.process.compression.most_rate.kbytes().saturating_mul(1024)))
    }),
    item(45, "ZlibMemUsage", "Memory that compressors hold, in bytes", |s| {
        Some(Figure::gauge(s.context.plan.coders_memory.limit().used()))
    }),
    item(46, "MaxZlibMemUsage", "Limit of compressors' memory in bytes; 0: that of buffers", |s| {
        Some(Figure::limit(s.context.plan.process.compression.max_memory_bytes))
    }),
    item(47, "Tasks", "Tasks of the workers: one for each connection, one for each listener", |s| {
        Some(Figure::gauge(s.context.connections.load(Relaxed) + s.context.host.listeners()))
    }),
    item(48, "Run_queue", "Jobs that wait for a thread of compression", waiting_jobs),
    item(49, "Idle_pct", "How much of the workers' time is left, percent", |s| {
        Some(Figure::small("MaPV", 100u64.saturating_sub(s.context.rates.busy.now() / 10)))
    }),
    item(50, "node", "Name of the machine", |s| Some(Figure::text("COSV", &*s.context.process.node))),
    item(51, "description", "What the configuration says about the machine", |s| {
        s.context.process.description.as_deref().map(|text| Figure::text("COSV", text))
    }),
    item(52, "Stopping", "1 once the process has stopped to listen", |s| {
        Some(Figure::gauge(u8::from(s.context.host.is_stopping())))
    }),
    item(53, "Jobs", "Connections and listeners", |s| {
        Some(Figure::gauge(s.context.connections.load(Relaxed) + s.context.host.listeners()))
    }),
    item(54, "Unstoppable Jobs", "Of these those that a stop does not end", zero_gauge),
    item(55, "Listeners", "Listeners", |s| Some(Figure::gauge(s.context.host.listeners()))),
    item(56, "ActivePeers", "Peers that are known", |s| Some(Figure::gauge(peers(s.context, |_| true)))),
    item(57, "ConnectedPeers", "Peers that are connected", |s| Some(Figure::gauge(peers(s.context, Peer::is_connected)))),
    item(58, "DroppedLogs", "Lines of logs that could not be sent", |s| Some(Figure::gauge(s.context.plan.sinks.dropped()))),
    item(59, "BusyPolling", "Whether workers poll all the time: no", zero_gauge),
    item(60, "FailedResolutions", "Names that could not be looked up", zero_gauge),
    item(61, "TotalBytesOut", "Bytes to clients since the start", |s| {
        Some(Figure { value: Value::Large(s.bytes_out), ..Figure::gauge(0) })
    }),
    item(62, "TotalSplicedBytesOut", "Of these those that went through pipes", |s| {
        Some(Figure { value: Value::Large(s.spliced_out), ..Figure::gauge(0) })
    }),
    item(63, "BytesOutRate", "Bytes to clients in the last second", |s| {
        Some(Figure { value: Value::Large(s.context.rates.bytes_out.now()), ..Figure::rate(0) })
    }),
    item(64, "DebugCommandsIssued", "Debug commands", zero_gauge),
    item(65, "CumRecvLogs", "Lines of logs received", |s| {
        let received = s.context.plan.syslog.forwarders.iter().map(|forwarder| forwarder.received.messages.load(Relaxed));
        Some(Figure::counter(received.sum()))
    }),
    item(66, "Build info", "Version of the program", |s| Some(Figure::text("POSV", &*s.context.process.version))),
    item(67, "Memmax_bytes", "Limit of the process's data in bytes (-m); 0: none", |s| {
        Some(Figure { value: Value::Large(s.context.process.memory_mib.saturating_mul(1 << 20)), ..Figure::limit(0) })
    }),
    item(68, "PoolAlloc_bytes", "Memory that buffers hold, in bytes", |s| {
        Some(Figure { value: Value::Large(s.context.plan.memory.used() as u64), ..Figure::gauge(0) })
    }),
    item(69, "PoolUsed_bytes", "Memory that buffers hold, in bytes", |s| {
        Some(Figure { value: Value::Large(s.context.plan.memory.used() as u64), ..Figure::gauge(0) })
    }),
    item(70, "Start_time_sec", "When the process started, in seconds since 1970", |s| {
        Some(s.seconds("MDPV", s.context.process.started_at.duration_since(UNIX_EPOCH).unwrap_or_default()))
    }),
    item(71, "Tainted", "Whether anything was changed that must not be: no", zero_gauge),
    item(72, "TotalWarnings", "Warnings while the process started", |s| {
        let said = s.context.host.startup_log();
        Some(Figure::gauge(said.lines().filter(|line| line.starts_with("[WARNING]")).count()))
    }),
    item(74, "BootTime_ms", "Milliseconds from the start until workers serve", |s| {
        Some(Figure::small("MDPV", s.context.process.boot_ms))
    }),
    item(75, "Niced_tasks", "Of these those whose thread has a lower priority: all", waiting_jobs),
    item(76, "CurrStreams", "Requests and TCP sessions now", |s| {
        Some(Figure { value: Value::Large(s.streams), ..Figure::gauge(0) })
    }),
    item(77, "CumStreams", "Requests and TCP sessions since the start", |s| Some(Figure::counter(s.requests))),
    item(81, "NbThreadGroups", "Groups of workers: always 1", |_| Some(Figure::small("CGSV", 1))),
    item(82, "BufferLimit_bytes", "Limit of the memory that buffers hold, in bytes", |s| {
        Some(Figure { value: Value::Large(s.context.plan.memory.bytes() as u64), ..Figure::limit(0) })
    }),
    item(83, "DecompressBpsIn", "Bytes into decoders in the last second", |s| {
        Some(Figure::rate(s.context.rates.decompress_in.now()))
    }),
    item(84, "DecompressBpsOut", "Bytes out of decoders in the last second", |s| {
        Some(Figure::rate(s.context.rates.decompress_out.now()))
    }),
    item(85, "RegexGivenUp", "Matches of regular expressions that took too many steps back", |_| {
        Some(Figure::gauge(terse_sample::regexp::given_up()))
    }),
    item(86, "TlsCompressedConns", "TLS connections since the start whose records were compressed", |_| {
        Some(Figure::counter(COUNTERS.records_clients.load(Relaxed) + COUNTERS.records_servers.load(Relaxed)))
    }),
    item(87, "TlsCompressionBytesIn", "Bytes into records that are compressed", |_| {
        Some(Figure::counter(COUNTERS.records_plain.load(Relaxed)))
    }),
    item(88, "TlsCompressionBytesOut", "Bytes that they came to", |_| Some(Figure::counter(COUNTERS.records_packed.load(Relaxed)))),
    item(89, "TlsCompressionOffered", "Clients that offered it where a line says 'detect' or 'allow'", |_| {
        Some(Figure::counter(COUNTERS.records_offered.load(Relaxed)))
    }),
    item(90, "TlsCompressionNoRoom", "TLS connections that went without it, for want of memory", |_| {
        Some(Figure::counter(COUNTERS.records_no_room.load(Relaxed)))
    }),
    item(
        91,
        "TlsReadsHeld",
        "Times that a TLS connection was not read because its other end did not take TLS's own answers",
        |_| Some(Figure::counter(COUNTERS.reads_held.load(Relaxed))),
    ),
    item(92, "TlsOverfull", "TLS connections that were closed because more than may had to wait to be sent", |_| {
        Some(Figure::counter(COUNTERS.overfull.load(Relaxed)))
    }),
    item(93, "TlsFailedHandshakes", "TLS handshakes with clients and servers that failed or were too slow", |_| {
        Some(Figure::counter(COUNTERS.client_failures.load(Relaxed) + COUNTERS.server_failures.load(Relaxed)))
    }),
    item(
        94,
        "TlsRenegotiationsRefused",
        "Times that a client asked for another TLS handshake, and was told that there is none",
        |_| Some(Figure::counter(COUNTERS.renegotiations.load(Relaxed))),
    ),
    item(95, "Terse_version", "Version of this program, whose language is that of HAProxy's version", |s| {
        Some(Figure::text("POSV", &*s.context.process.own_version))
    }),
    item(100, "Http2CurrConnections", "Clients' connections of HTTP/2 now", |_| {
        Some(Figure { value: Value::Large(HTTP2.connections.now()), ..Figure::gauge(0) })
    }),
    item(101, "Http2CumConnections", "Clients' connections of HTTP/2 since the start", |_| {
        Some(Figure::counter(HTTP2.connections.all()))
    }),
    item(102, "Http2CumStreams", "Streams that clients have opened on them", |_| Some(Figure::counter(HTTP2.streams.get()))),
    item(103, "Http2Malformed", "Streams whose heads were malformed, and which were reset", |_| {
        Some(Figure::counter(HTTP2.malformed.get()))
    }),
    item(104, "Http2ResetsReceived", "Streams that clients have reset", |_| Some(Figure::counter(HTTP2.resets_received.get()))),
    item(105, "Http2ResetsSent", "Streams that were reset for an error of the client's", |_| {
        Some(Figure::counter(HTTP2.resets_sent.get()))
    }),
    item(106, "Http2Failures", "Connections that were ended for an error of the client's, limits included", |_| {
        Some(Figure::counter(HTTP2.failures.get()))
    }),
    item(107, "Http2LimitUnfinishedStreams", "Connections that were ended at the limit 'unfinished streams'", |_| {
        Some(limit("unfinished streams"))
    }),
    item(108, "Http2LimitContinuations", "Connections that were ended at the limit 'continuations'", |_| {
        Some(limit("continuations"))
    }),
    item(109, "Http2LimitHeaderBlock", "Connections that were ended at the limit 'header block'", |_| Some(limit("header block"))),
    item(110, "Http2LimitHead", "Connections that were ended at the limit 'head'", |_| Some(limit("head"))),
    item(111, "Http2LimitPings", "Connections that were ended at the limit 'pings'", |_| Some(limit("pings"))),
    item(112, "Http2LimitSettings", "Connections that were ended at the limit 'settings'", |_| Some(limit("settings"))),
    item(113, "Http2LimitEmptyData", "Connections that were ended at the limit 'empty data'", |_| Some(limit("empty data"))),
    item(114, "Http2LimitTinyData", "Connections that were ended at the limit 'tiny data'", |_| Some(limit("tiny data"))),
    item(115, "Http2LimitWindowUpdates", "Connections that were ended at the limit 'window updates'", |_| {
        Some(limit("window updates"))
    }),
    item(116, "Http2LimitTinyWindows", "Connections that were ended at the limit 'tiny windows'", |_| Some(limit("tiny windows"))),
    item(117, "Http2LimitPriorities", "Connections that were ended at the limit 'priorities'", |_| Some(limit("priorities"))),
    item(118, "Http2LimitFramesOfClosedStreams", "Connections that were ended at the limit 'frames of closed streams'", |_| {
        Some(limit("frames of closed streams"))
    }),
    item(119, "Http2LimitGoaways", "Connections that were ended at the limit 'goaways'", |_| Some(limit("goaways"))),
    item(120, "Http2LimitUnknownFrames", "Connections that were ended at the limit 'unknown frames'", |_| {
        Some(limit("unknown frames"))
    }),
    item(121, "Http2LimitGlitches", "Connections that were ended at the limit 'glitches'", |_| Some(limit("glitches"))),
    item(122, "Http2LimitUnansweredPings", "Connections whose idle client did not answer a PING ('idle-ping')", |_| {
        Some(limit(NO_PONG))
    }),
    item(123, "PatternsAdded", "Entries of maps and lists that were added", |s| Some(patterns(s).0)),
    item(124, "PatternsFreed", "Entries of maps and lists that are gone", |s| Some(patterns(s).1)),
    item(125, "Http2ServerCurrConnections", "Servers' connections of HTTP/2 now", |_| {
        Some(Figure { value: Value::Large(SERVERS.connections.now()), ..Figure::gauge(0) })
    }),
    item(126, "Http2ServerCumConnections", "Servers' connections of HTTP/2 since the start", |_| {
        Some(Figure::counter(SERVERS.connections.all()))
    }),
    item(127, "Http2ServerCumStreams", "Streams that were opened on them", |_| Some(Figure::counter(SERVERS.streams.get()))),
    item(128, "Http2ServerResetsReceived", "Streams that servers have reset or refused", |_| {
        Some(Figure::counter(SERVERS.resets_received.get()))
    }),
    item(
        129,
        "Http2ServerResetsSent",
        "Streams that were reset here: for an error of the server's, or since nobody waits for them",
        |_| Some(Figure::counter(SERVERS.resets_sent.get())),
    ),
    item(130, "Http2ServerFailures", "Connections that were ended for an error of the server's, limits included", |_| {
        Some(Figure::counter(SERVERS.failures.get()))
    }),
    item(131, "Http2ServerLimits", "Connections that were ended since their server went to a limit; the log names it", |_| {
        Some(Figure::counter(SERVERS.at_limits()))
    }),
    item(132, "MemoryStops", "Times that nothing was accepted since little of the memory of -m was left", |s| {
        Some(Figure::counter(s.context.plan.limits.memory.stops()))
    }),
];

/// Entries of maps and lists: those added, and those removed.
fn patterns(s: &Snapshot<'_>) -> (Figure, Figure) {
    let all = s.context.plan.patterns.all();
    let counts = all.iter().map(|reference| reference.counts());
    let (added, freed) = counts.fold((0, 0), |(added, freed), (more, gone)| (added + more, freed + gone));
    (Figure::counter(added), Figure::counter(freed))
}

/// Number of connections that were ended at a limit of HTTP/2.
fn limit(name: &str) -> Figure {
    Figure::counter(HTTP2.ended_at(name))
}

/// Jobs in the queue of compression. Workers have no other queue: they have gone through theirs by the time of the
/// command.
fn waiting_jobs(s: &Snapshot<'_>) -> Option<Figure> {
    Some(Figure::gauge(s.context.queue.as_ref().map_or(0, |queue| queue.numbers().waiting.load(Relaxed))))
}

/// Number of peers for which `holds` is true.
fn peers(context: &Context, holds: impl Fn(&Peer) -> bool) -> usize {
    let groups = context.plan.peers.iter().map(|circle| &circle.group);
    groups.flat_map(|group| &group.peers).filter(|peer| holds(peer)).count()
}

fn zero_gauge(_: &Snapshot<'_>) -> Option<Figure> {
    Some(Figure::gauge(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn places_grow_and_names_are_unique() {
        assert!(ITEMS.is_sorted_by(|a, b| a.place < b.place));
        let names: std::collections::HashSet<_> = ITEMS.iter().map(|item| item.name).collect();
        assert_eq!(names.len(), ITEMS.len());
    }

    #[test]
    fn lines_as_programs_know_them() {
        let mut talk = Talk::new(WEB);
        talk.context.plan.frontends[0].tally.of(0).requests.add(41);
        let said = talk.says("show info");
        for line in [
            "Name: HAProxy",
            "Terse_version: 0.9.0",
            "Tasks: 6",
            "Run_queue: 0",
            "ZlibMemUsage: 0",
            "Version: 3.5-dev5",
            "Nbthread: 2",
            "Pid: 1234",
            "Maxconn: 100",
            "CurrConns: 3",
            "CumReq: 42",
        ] {
            assert!(said.lines().any(|own| own == line), "{line}: {said}");
        }
        assert!(said.contains("\nUptime: 0d 0h00m0") && said.contains("\nNbThreadGroups: 1\n") && said.ends_with("\n\n"), "{said}");
        assert!(!said.contains("description"));
    }

    #[test]
    fn other_forms() {
        let mut talk = Talk::new(WEB);
        let typed = talk.says("show info typed");
        assert!(typed.starts_with("0.Name.1:POSV:str:HAProxy\n1.Version.1:POSV:str:3.5-dev5\n"), "{typed}");
        assert!(talk.says("show info typed desc").starts_with("0.Name.1:POSV:str:HAProxy:\"Name of the program "));
        assert!(talk.says("show info desc").starts_with("Name: HAProxy:\"Name of the program "));
        assert!(talk.says("show info json").starts_with("[{\"field\":{\"pos\":0,\"name\":\"Name\"},\"processNum\":1,"));
        let float = talk.says("show info float");
        let uptime = float.lines().find_map(|line| line.strip_prefix("Uptime_sec: ")).unwrap();
        assert_eq!(uptime.split_once('.').unwrap().1.len(), 6);
    }
}
