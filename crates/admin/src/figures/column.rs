//! The columns of `show stat`: HAProxy 3's names in HAProxy's order, which programs rely on by number.

macro_rules! columns {
    ($($variant:ident = $name:literal $text:literal,)*) => {
        /// A column of `show stat`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub(crate) enum Column { $($variant,)* }

        impl Column {
            /// All columns, in their order.
            pub(crate) const ALL: &'static [Column] = &[$(Column::$variant,)*];

            /// Name of the column.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Column::$variant => $name,)* }
            }

            /// Description of the column.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Column::$variant => $text,)* }
            }
        }
    };
}

columns! {
    Proxy = "pxname" "Name of the proxy",
    Service = "svname" "FRONTEND, BACKEND, or name of the server",
    Queued = "qcur" "Requests that wait now",
    QueuedMax = "qmax" "Most requests that waited",
    Current = "scur" "Sessions now",
    CurrentMax = "smax" "Most sessions at a time",
    CurrentLimit = "slim" "Limit of sessions at a time",
    Sessions = "stot" "Sessions since the start",
    BytesIn = "bin" "Bytes from clients",
    BytesOut = "bout" "Bytes to clients",
    DeniedRequests = "dreq" "Requests denied by rules",
    DeniedResponses = "dresp" "Responses denied by rules",
    RequestErrors = "ereq" "Requests that were malformed, too slow or broken off",
    ConnectErrors = "econ" "Connections to servers that failed",
    ResponseErrors = "eresp" "Responses that were malformed or broken off",
    Retries = "wretr" "Attempts after the first",
    Redispatches = "wredis" "Requests sent to another server than the first",
    Status = "status" "OPEN, UP, DOWN, NOLB, MAINT, DRAIN or no check",
    Weight = "weight" "Weight of the server, or of the backend's usable servers together",
    Active = "act" "Usable servers that are no backup; for a server 1 if it is no backup",
    Backup = "bck" "Usable backup servers; for a server 1 if it is a backup",
    FailedChecks = "chkfail" "Checks that failed while the server was up",
    WentDown = "chkdown" "Times that it went down",
    LastChange = "lastchg" "Seconds since it went up or down",
    Downtime = "downtime" "Seconds that it was down altogether",
    QueueLimit = "qlimit" "Limit of requests that wait for the server",
    Process = "pid" "Number of the process: 1",
    ProxyId = "iid" "Number of the proxy",
    ServiceId = "sid" "Number of the server in its proxy",
    Throttle = "throttle" "Percentage that a slowly starting server takes",
    Balanced = "lbtot" "Requests that the algorithm sent here",
    Tracked = "tracked" "The server whose state it follows",
    Type = "type" "0 frontend, 1 backend, 2 server",
    Rate = "rate" "Sessions in the last second",
    RateLimit = "rate_lim" "Limit of new sessions a second",
    RateMax = "rate_max" "Most sessions in a second",
    CheckStatus = "check_status" "Outcome of the last check",
    CheckCode = "check_code" "Code that the last check was answered with",
    CheckDuration = "check_duration" "Milliseconds that the last check took",
    Status1xx = "hrsp_1xx" "Responses 100 to 199",
    Status2xx = "hrsp_2xx" "Responses 200 to 299",
    Status3xx = "hrsp_3xx" "Responses 300 to 399",
    Status4xx = "hrsp_4xx" "Responses 400 to 499",
    Status5xx = "hrsp_5xx" "Responses 500 to 599",
    StatusOther = "hrsp_other" "Responses with other statuses",
    AnalysisFailures = "hanafail" "Failures seen in traffic",
    RequestRate = "req_rate" "Requests in the last second",
    RequestRateMax = "req_rate_max" "Most requests in a second",
    Requests = "req_tot" "Requests since the start",
    ClientAborts = "cli_abrt" "Transfers broken off by clients",
    ServerAborts = "srv_abrt" "Transfers broken off by servers",
    CompressIn = "comp_in" "Bytes of responses that went into compressors",
    CompressOut = "comp_out" "Bytes that came out of them",
    CompressBypass = "comp_byp" "Bytes that were not compressed for want of time or memory",
    CompressResponses = "comp_rsp" "Responses compressed",
    LastSession = "lastsess" "Seconds since the last session",
    LastCheck = "last_chk" "What the last check was answered",
    LastAgent = "last_agt" "What the last check of the agent was answered",
    QueueTime = "qtime" "Average milliseconds in queues",
    ConnectTime = "ctime" "Average milliseconds to connect",
    ResponseTime = "rtime" "Average milliseconds to the response",
    TotalTime = "ttime" "Average milliseconds of a session",
    AgentStatus = "agent_status" "Outcome of the last check of the agent",
    AgentCode = "agent_code" "Code that the agent answered with",
    AgentDuration = "agent_duration" "Milliseconds that the last check of the agent took",
    CheckText = "check_desc" "Outcome of the last check in words",
    AgentText = "agent_desc" "Outcome of the last check of the agent in words",
    CheckRise = "check_rise" "Checks that must pass to bring the server up",
    CheckFall = "check_fall" "Checks that must fail to bring the server down",
    CheckHealth = "check_health" "0, down, to rise + fall - 1, well",
    AgentRise = "agent_rise" "The same of the agent",
    AgentFall = "agent_fall" "The same of the agent",
    AgentHealth = "agent_health" "The same of the agent",
    Address = "addr" "Address of the server",
    Cookie = "cookie" "Name of the backend's cookie, or value of the server's",
    Mode = "mode" "tcp or http",
    Algorithm = "algo" "How the backend chooses servers",
    ConnectionRate = "conn_rate" "Connections in the last second",
    ConnectionRateMax = "conn_rate_max" "Most connections in a second",
    Connections = "conn_tot" "Connections since the start",
    Intercepted = "intercepted" "Requests answered by the proxy itself",
    DeniedConnections = "dcon" "Connections refused by rules",
    DeniedSessions = "dses" "Sessions refused by rules",
    RewriteFailures = "wrew" "Fields that rules could not write",
    Connects = "connect" "Connections made to servers",
    Reuses = "reuse" "Requests that went over a connection that was there already",
    CacheLookups = "cache_lookups" "Look-ups in caches",
    CacheHits = "cache_hits" "Answers from caches",
    IdleConnections = "srv_icur" "Idle connections to the server",
    IdleLimit = "src_ilim" "Limit of idle connections to the server",
    QueueTimeMax = "qtime_max" "Most milliseconds in a queue",
    ConnectTimeMax = "ctime_max" "Most milliseconds to connect",
    ResponseTimeMax = "rtime_max" "Most milliseconds to a response",
    TotalTimeMax = "ttime_max" "Most milliseconds of a session",
    InternalErrors = "eint" "Errors of this program",
    UnsafeIdle = "idle_conn_cur" "Idle connections whose safety is not known",
    SafeIdle = "safe_conn_cur" "Idle connections that are safe to use",
    UsedConnections = "used_conn_cur" "Connections in use",
    NeededConnections = "need_conn_est" "Connections that are likely to be needed",
    UserWeight = "uweight" "Weight as configured or set",
    ServersUp = "agg_server_status" "Servers by status",
    ServerChecks = "agg_server_check_status" "Servers by check, under an old name",
    Checks = "agg_check_status" "Servers by check",
    Revision = "srid" "How often the server's number was used again",
    SessionsOther = "sess_other" "Sessions of other protocols",
    SessionsH1 = "h1sess" "Sessions of HTTP/1",
    SessionsH2 = "h2sess" "Sessions of HTTP/2",
    SessionsH3 = "h3sess" "Sessions of HTTP/3",
    RequestsOther = "req_other" "Requests of other protocols",
    RequestsH1 = "h1req" "Requests of HTTP/1",
    RequestsH2 = "h2req" "Requests of HTTP/2",
    RequestsH3 = "h3req" "Requests of HTTP/3",
    Protocol = "proto" "Protocol of the address",
    PrivateIdle = "priv_idle_cur" "Idle connections that belong to one client",
    RequestBytesIn = "reqbin" "Bytes of requests received",
    RequestBytesOut = "reqbout" "Bytes of requests sent",
    ResponseBytesIn = "resbin" "Bytes of responses received",
    ResponseBytesOut = "resbout" "Bytes of responses sent",
    CacheHints = "cache_hint_hits" "Early hints from caches",
    End = "-" "What follows has no fixed place",
    DecodeIn = "decomp_in" "Bytes that went into decoders, of requests and responses",
    DecodeOut = "decomp_out" "Bytes that came out of them",
    DecodedRequests = "decomp_req" "Requests' bodies decoded",
    DecodedResponses = "decomp_rsp" "Responses decoded",
    Bombs = "decomp_bomb" "Of these those that came out larger than they may",
    TlsMade = "ssl_sess" "TLS handshakes that were made",
    TlsResumed = "ssl_reused_sess" "Of these those that went on with a session of before",
    TlsFailed = "ssl_failed_handshake" "TLS handshakes that failed or were too slow",
    Stapled = "ssl_ocsp_staple" "Answers about our certificate's state that clients were sent",
    StapleFailed = "ssl_failed_ocsp_staple" "Answers that were not sent because their time was over",
    SplicedIn = "h1_spliced_bytes_in" "Bytes from this side's connections that went through pipes",
    SplicedOut = "h1_spliced_bytes_out" "Bytes to this side's connections that went through pipes",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_places_those_that_programs_know() {
        let names: HashSet<_> = Column::ALL.iter().map(|column| column.name()).collect();
        assert_eq!(names.len(), Column::ALL.len());
        for (i, column) in Column::ALL.iter().enumerate() {
            assert_eq!(*column as usize, i);
            assert!(!column.text().is_empty() && !column.name().contains(','));
        }
        // The manual's numbers.
        for (column, place) in [
            (Column::Sessions, 7),
            (Column::Status, 17),
            (Column::Type, 32),
            (Column::CheckStatus, 36),
            (Column::Requests, 48),
            (Column::LastSession, 55),
            (Column::Address, 73),
            (Column::Connections, 79),
            (Column::InternalErrors, 94),
            (Column::Revision, 103),
            (Column::RequestBytesIn, 114),
            (Column::CacheHints, 118),
            (Column::End, 119),
        ] {
            assert_eq!(column as usize, place, "{}", column.name());
        }
    }
}
