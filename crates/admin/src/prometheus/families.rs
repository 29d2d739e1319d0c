//! Metrics and their names: HAProxy's, which dashboards know.

use super::query::Scope;
use crate::figures::Column;

/// A metric of proxies, addresses or servers.
pub(super) struct Metric {
    /// Name after the prefix of its scope.
    name: &'static str,
    scopes: &'static [Scope],
    pub(super) what: What,
}

/// Value of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A column of `show stat`.
    Figure(Column),
    /// A column that is counted in mode http alone.
    OfHttp(Column),
    /// A time, shown in seconds.
    Time(Column, &'static str),
    /// Responses, by their class.
    Responses,
    /// 1 for the current state, 0 for the others.
    State,
    /// 1 for the status of the last check, 0 for the others.
    Check,
    /// 1 for the status of the agent's last check, 0 for the others.
    Agent,
    /// Numbers of servers in each state.
    ServerStates,
    /// Numbers of servers by the status of their last check.
    ServerChecks,
    /// A column that is sent on request only, and the part of the program that counts it.
    Extra(Column, &'static str),
}

impl Metric {
    /// Whether it belongs to this scope.
    pub(super) fn is_of(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Full name.
    pub(super) fn name(&self, scope: Scope) -> String {
        let name = match (self.name, scope) {
            ("active_servers", Scope::Server) => "active",
            ("backup_servers", Scope::Server) => "backup",
            (name, _) => name,
        };
        format!("{}{name}", scope.prefix())
    }

    /// Help text.
    pub(super) fn help(&self) -> &'static str {
        match self.what {
            What::Figure(column) | What::OfHttp(column) | What::Extra(column, _) => column.text(),
            What::Time(_, text) => text,
            What::Responses => "Responses, by the class of their status",
            What::State => "1 for the state that it is in, 0 for the others",
            What::Check => "1 for the outcome of the last check, 0 for the others",
            What::Agent => "1 for the outcome of the agent's last check, 0 for the others",
            What::ServerStates => "Servers, by the state that they are in",
            What::ServerChecks => "Servers, by the outcome of their last check",
        }
    }
}

const ALL: &[Scope] = &[Scope::Frontend, Scope::Address, Scope::Backend, Scope::Server];
const IN_FRONT: &[Scope] = &[Scope::Frontend, Scope::Address];
const PROXIES: &[Scope] = &[Scope::Frontend, Scope::Address, Scope::Backend];
const HALVES: &[Scope] = &[Scope::Frontend, Scope::Backend];
const WITH_SERVERS: &[Scope] = &[Scope::Frontend, Scope::Backend, Scope::Server];
const BEHIND: &[Scope] = &[Scope::Backend, Scope::Server];
const FRONT: &[Scope] = &[Scope::Frontend];
const BACK: &[Scope] = &[Scope::Backend];
const SERVER: &[Scope] = &[Scope::Server];

const fn metric(name: &'static str, scopes: &'static [Scope], what: What) -> Metric {
    Metric { name, scopes, what }
}

const fn figure(name: &'static str, scopes: &'static [Scope], column: Column) -> Metric {
    metric(name, scopes, What::Figure(column))
}

const fn of_http(name: &'static str, scopes: &'static [Scope], column: Column) -> Metric {
    metric(name, scopes, What::OfHttp(column))
}

const fn time(name: &'static str, scopes: &'static [Scope], column: Column, help: &'static str) -> Metric {
    metric(name, scopes, What::Time(column, help))
}

const fn extra(name: &'static str, scopes: &'static [Scope], column: Column, part: &'static str) -> Metric {
    metric(name, scopes, What::Extra(column, part))
}

/// The metrics of proxies, addresses and servers.
pub(super) const METRICS: &[Metric] = &[
    figure("current_queue", BEHIND, Column::Queued),
    figure("max_queue", BEHIND, Column::QueuedMax),
    figure("current_sessions", ALL, Column::Current),
    figure("max_sessions", ALL, Column::CurrentMax),
    figure("limit_sessions", ALL, Column::CurrentLimit),
    figure("sessions_total", ALL, Column::Sessions),
    figure("bytes_in_total", ALL, Column::BytesIn),
    figure("bytes_out_total", ALL, Column::BytesOut),
    figure("requests_denied_total", PROXIES, Column::DeniedRequests),
    figure("responses_denied_total", ALL, Column::DeniedResponses),
    figure("request_errors_total", IN_FRONT, Column::RequestErrors),
    figure("connection_errors_total", BEHIND, Column::ConnectErrors),
    figure("response_errors_total", BEHIND, Column::ResponseErrors),
    figure("retry_warnings_total", BEHIND, Column::Retries),
    figure("redispatch_warnings_total", BEHIND, Column::Redispatches),
    metric("status", ALL, What::State),
    figure("weight", BEHIND, Column::Weight),
    figure("active_servers", BEHIND, Column::Active),
    figure("backup_servers", BEHIND, Column::Backup),
    figure("check_failures_total", SERVER, Column::FailedChecks),
    figure("check_up_down_total", BEHIND, Column::WentDown),
    figure("check_last_change_seconds", BEHIND, Column::LastChange),
    figure("downtime_seconds_total", BEHIND, Column::Downtime),
    figure("queue_limit", SERVER, Column::QueueLimit),
    figure("current_throttle", SERVER, Column::Throttle),
    figure("loadbalanced_total", BEHIND, Column::Balanced),
    figure("current_session_rate", WITH_SERVERS, Column::Rate),
    figure("limit_session_rate", FRONT, Column::RateLimit),
    figure("max_session_rate", WITH_SERVERS, Column::RateMax),
    metric("check_status", SERVER, What::Check),
    figure("check_code", SERVER, Column::CheckCode),
    time("check_duration_seconds", SERVER, Column::CheckDuration, "Seconds that the last check took"),
    metric("agent_status", SERVER, What::Agent),
    figure("agent_code", SERVER, Column::AgentCode),
    time("agent_duration_seconds", SERVER, Column::AgentDuration, "Seconds that the last check of the agent took"),
    metric("http_responses_total", WITH_SERVERS, What::Responses),
    of_http("http_requests_rate_max", FRONT, Column::RequestRateMax),
    of_http("http_requests_total", WITH_SERVERS, Column::Requests),
    figure("client_aborts_total", BEHIND, Column::ClientAborts),
    figure("server_aborts_total", BEHIND, Column::ServerAborts),
    of_http("http_comp_bytes_in_total", HALVES, Column::CompressIn),
    of_http("http_comp_bytes_out_total", HALVES, Column::CompressOut),
    of_http("http_comp_bytes_bypassed_total", HALVES, Column::CompressBypass),
    of_http("http_comp_responses_total", HALVES, Column::CompressResponses),
    figure("last_session_seconds", BEHIND, Column::LastSession),
    time("queue_time_average_seconds", BEHIND, Column::QueueTime, "Average seconds in queues"),
    time("connect_time_average_seconds", BEHIND, Column::ConnectTime, "Average seconds to connect"),
    time("response_time_average_seconds", BEHIND, Column::ResponseTime, "Average seconds to the response"),
    time("total_time_average_seconds", BEHIND, Column::TotalTime, "Average seconds of a session"),
    figure("connections_rate_max", FRONT, Column::ConnectionRateMax),
    figure("connections_total", IN_FRONT, Column::Connections),
    of_http("intercepted_requests_total", FRONT, Column::Intercepted),
    figure("denied_connections_total", IN_FRONT, Column::DeniedConnections),
    figure("denied_sessions_total", IN_FRONT, Column::DeniedSessions),
    figure("failed_header_rewriting_total", ALL, Column::RewriteFailures),
    figure("connection_attempts_total", BEHIND, Column::Connects),
    figure("connection_reuses_total", BEHIND, Column::Reuses),
    of_http("http_cache_lookups_total", HALVES, Column::CacheLookups),
    of_http("http_cache_hits_total", HALVES, Column::CacheHits),
    of_http("http_cache_hint_hits_total", HALVES, Column::CacheHints),
    figure("idle_connections_current", SERVER, Column::IdleConnections),
    figure("idle_connections_limit", SERVER, Column::IdleLimit),
    time("max_queue_time_seconds", BEHIND, Column::QueueTimeMax, "Most seconds in a queue"),
    time("max_connect_time_seconds", BEHIND, Column::ConnectTimeMax, "Most seconds to connect"),
    time("max_response_time_seconds", BEHIND, Column::ResponseTimeMax, "Most seconds to a response"),
    time("max_total_time_seconds", BEHIND, Column::TotalTimeMax, "Most seconds of a session"),
    figure("internal_errors_total", ALL, Column::InternalErrors),
    figure("unsafe_idle_connections_current", SERVER, Column::UnsafeIdle),
    figure("safe_idle_connections_current", SERVER, Column::SafeIdle),
    figure("used_connections_current", SERVER, Column::UsedConnections),
    figure("need_connections_current", SERVER, Column::NeededConnections),
    figure("uweight", BEHIND, Column::UserWeight),
    metric("agg_server_status", BACK, What::ServerStates),
    metric("agg_server_check_status", BACK, What::ServerStates),
    metric("agg_check_status", BACK, What::ServerChecks),
    figure("private_idle_connections_current", SERVER, Column::PrivateIdle),
    figure("req_bytes_in_total", ALL, Column::RequestBytesIn),
    figure("req_bytes_out_total", ALL, Column::RequestBytesOut),
    figure("res_bytes_in_total", ALL, Column::ResponseBytesIn),
    figure("res_bytes_out_total", ALL, Column::ResponseBytesOut),
    extra("decomp_in", HALVES, Column::DecodeIn, "decomp"),
    extra("decomp_out", HALVES, Column::DecodeOut, "decomp"),
    extra("decomp_req", HALVES, Column::DecodedRequests, "decomp"),
    extra("decomp_rsp", HALVES, Column::DecodedResponses, "decomp"),
    extra("decomp_bomb", HALVES, Column::Bombs, "decomp"),
    extra("ssl_sess", PROXIES, Column::TlsMade, "ssl"),
    extra("ssl_reused_sess", PROXIES, Column::TlsResumed, "ssl"),
    extra("ssl_failed_handshake", PROXIES, Column::TlsFailed, "ssl"),
    extra("ssl_ocsp_staple", PROXIES, Column::Stapled, "ssl"),
    extra("ssl_failed_ocsp_staple", PROXIES, Column::StapleFailed, "ssl"),
    extra("h1_spliced_bytes_in", HALVES, Column::SplicedIn, "h1"),
    extra("h1_spliced_bytes_out", HALVES, Column::SplicedOut, "h1"),
];

/// Metrics of the process, without their prefix, and the lines of `show info` that they show.
pub(super) const PROCESS: &[(&str, &str)] = &[
    ("nbthread", "Nbthread"),
    ("nbproc", "Nbproc"),
    ("relative_process_id", "Process_num"),
    ("uptime_seconds", "Uptime_sec"),
    ("pool_failures_total", "PoolFailed"),
    ("max_fds", "Ulimit-n"),
    ("max_sockets", "Maxsock"),
    ("max_connections", "Maxconn"),
    ("hard_max_connections", "Hard_maxconn"),
    ("current_connections", "CurrConns"),
    ("connections_total", "CumConns"),
    ("requests_total", "CumReq"),
    ("max_ssl_connections", "MaxSslConns"),
    ("current_ssl_connections", "CurrSslConns"),
    ("ssl_connections_total", "CumSslConns"),
    ("max_pipes", "Maxpipes"),
    ("pipes_used_total", "PipesUsed"),
    ("pipes_free_total", "PipesFree"),
    ("current_connection_rate", "ConnRate"),
    ("limit_connection_rate", "ConnRateLimit"),
    ("max_connection_rate", "MaxConnRate"),
    ("current_session_rate", "SessRate"),
    ("limit_session_rate", "SessRateLimit"),
    ("max_session_rate", "MaxSessRate"),
    ("current_ssl_rate", "SslRate"),
    ("limit_ssl_rate", "SslRateLimit"),
    ("max_ssl_rate", "MaxSslRate"),
    ("current_frontend_ssl_key_rate", "SslFrontendKeyRate"),
    ("max_frontend_ssl_key_rate", "SslFrontendMaxKeyRate"),
    ("frontend_ssl_reuse", "SslFrontendSessionReuse_pct"),
    ("current_backend_ssl_key_rate", "SslBackendKeyRate"),
    ("max_backend_ssl_key_rate", "SslBackendMaxKeyRate"),
    ("ssl_cache_lookups_total", "SslCacheLookups"),
    ("ssl_cache_misses_total", "SslCacheMisses"),
    ("limit_http_comp", "CompressBpsRateLim"),
    ("current_zlib_memory", "ZlibMemUsage"),
    ("max_zlib_memory", "MaxZlibMemUsage"),
    ("current_tasks", "Tasks"),
    ("current_run_queue", "Run_queue"),
    ("idle_time_percent", "Idle_pct"),
    ("node", "node"),
    ("description", "description"),
    ("stopping", "Stopping"),
    ("jobs", "Jobs"),
    ("unstoppable_jobs", "Unstoppable Jobs"),
    ("listeners", "Listeners"),
    ("active_peers", "ActivePeers"),
    ("connected_peers", "ConnectedPeers"),
    ("dropped_logs_total", "DroppedLogs"),
    ("busy_polling_enabled", "BusyPolling"),
    ("failed_resolutions", "FailedResolutions"),
    ("bytes_out_total", "TotalBytesOut"),
    ("spliced_bytes_out_total", "TotalSplicedBytesOut"),
    ("bytes_out_rate", "BytesOutRate"),
    ("recv_logs_total", "CumRecvLogs"),
    ("build_info", "Build info"),
    ("max_memory_bytes", "Memmax_bytes"),
    ("pool_allocated_bytes", "PoolAlloc_bytes"),
    ("pool_used_bytes", "PoolUsed_bytes"),
    ("start_time_seconds", "Start_time_sec"),
    ("total_warnings", "TotalWarnings"),
    ("nb_thread_groups", "NbThreadGroups"),
    ("patterns_added_total", "PatternsAdded"),
    ("patterns_freed_total", "PatternsFreed"),
    ("http2_current_connections", "Http2CurrConnections"),
    ("http2_connections_total", "Http2CumConnections"),
    ("http2_streams_total", "Http2CumStreams"),
    ("http2_malformed_total", "Http2Malformed"),
    ("http2_resets_received_total", "Http2ResetsReceived"),
    ("http2_resets_sent_total", "Http2ResetsSent"),
    ("http2_failures_total", "Http2Failures"),
    ("http2_limit_unfinished_streams_total", "Http2LimitUnfinishedStreams"),
    ("http2_limit_continuations_total", "Http2LimitContinuations"),
    ("http2_limit_header_block_total", "Http2LimitHeaderBlock"),
    ("http2_limit_head_total", "Http2LimitHead"),
    ("http2_limit_pings_total", "Http2LimitPings"),
    ("http2_limit_settings_total", "Http2LimitSettings"),
    ("http2_limit_empty_data_total", "Http2LimitEmptyData"),
    ("http2_limit_tiny_data_total", "Http2LimitTinyData"),
    ("http2_limit_window_updates_total", "Http2LimitWindowUpdates"),
    ("http2_limit_tiny_windows_total", "Http2LimitTinyWindows"),
    ("http2_limit_priorities_total", "Http2LimitPriorities"),
    ("http2_limit_frames_of_closed_streams_total", "Http2LimitFramesOfClosedStreams"),
    ("http2_limit_goaways_total", "Http2LimitGoaways"),
    ("http2_limit_unknown_frames_total", "Http2LimitUnknownFrames"),
    ("http2_limit_glitches_total", "Http2LimitGlitches"),
    ("http2_limit_unanswered_pings_total", "Http2LimitUnansweredPings"),
    ("http2_server_current_connections", "Http2ServerCurrConnections"),
    ("http2_server_connections_total", "Http2ServerCumConnections"),
    ("http2_server_streams_total", "Http2ServerCumStreams"),
    ("http2_server_resets_received_total", "Http2ServerResetsReceived"),
    ("http2_server_resets_sent_total", "Http2ServerResetsSent"),
    ("http2_server_failures_total", "Http2ServerFailures"),
    ("http2_server_limits_total", "Http2ServerLimits"),
];

/// The classes of responses.
pub(super) const CLASSES: [(Column, &str); 6] = [
    (Column::Status1xx, "1xx"),
    (Column::Status2xx, "2xx"),
    (Column::Status3xx, "3xx"),
    (Column::Status4xx, "4xx"),
    (Column::Status5xx, "5xx"),
    (Column::StatusOther, "other"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_prometheus_takes_them() {
        for scope in Scope::ALL {
            let names: Vec<_> = METRICS.iter().filter(|metric| metric.is_of(scope)).map(|metric| metric.name(scope)).collect();
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{scope:?}");
            assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')));
        }
        let names: HashSet<_> = PROCESS.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), PROCESS.len());
    }
}
