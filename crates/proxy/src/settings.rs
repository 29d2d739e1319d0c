//! The settings of a proxy, as its keywords leave them.

use crate::filter::FilterSettings;
use crate::forwarded::Forwarded;
use crate::reply::Page;
use crate::rules::Rule;
use crate::service::Service;
use crate::splice::SpliceOptions;
use socket2::TcpKeepalive;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use terse_balance::guid::Guid;
use terse_balance::signature::Signature;
use terse_config::{Heirs, Place, Sections, Setting};
use terse_message::{FieldName, Protocol};
use terse_sample::{Condition, LogFormat};
use terse_tls::BindTls;

/// Treatment of request fields whose names hold more than letters, digits and dashes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UnusualNames {
    /// They are passed on.
    #[default]
    Preserve,
    /// They are left out.
    Delete,
    /// The request is refused.
    Reject,
}

/// A proxy's settings: of `defaults`, `frontend`, `backend` and `listen` sections.
#[derive(Clone, Default)]
pub struct ProxySettings {
    /// `mode`.
    pub mode: Mode,
    /// Whether a line sets it.
    pub says_mode: bool,
    /// `timeout ...`.
    pub timeouts: Timeouts,
    /// Switches: `option ...`.
    pub options: Options,
    /// `option http-restrict-req-hdr-names`.
    pub unusual_names: UnusualNames,
    /// `option forwardfor`: the client's address.
    pub forwarded_for: Option<ForwardedFor>,
    /// `option originalto`: the address that the client connected to.
    pub original_to: Option<ForwardedFor>,
    /// `option forwarded`: parameters of an element of Forwarded.
    pub forwarded: Option<Arc<Forwarded>>,
    /// `retries`: attempts after the first.
    pub retries: Option<u32>,
    /// `option redispatch [interval]`: 0 never, n every nth retry, -n every nth from the last.
    pub redispatch: i32,
    /// `retry-on`.
    pub retry_on: Option<RetryOn>,
    /// `http-reuse`.
    pub reuse: Option<Reuse>,
    /// `http-send-name-header`
    pub name_header: Option<FieldName>,
    /// `rate-limit sessions`: 0: any.
    pub session_rate: Option<u64>,
    /// `max-session-srv-conns`: the most idle connections to servers that a session keeps for itself.
    pub own_connections: Option<usize>,
    /// `maxconn`: of a frontend.
    pub maxconn: Option<usize>,
    /// `backlog`: connections that the kernel may hold.
    pub backlog: Option<u32>,
    /// `bind` lines.
    pub binds: Vec<BindSettings>,
    /// `default_backend`.
    pub default_backend: Option<(String, Place)>,
    /// `use_backend`, in order.
    pub switches: Vec<Arc<Switch>>,
    /// The backends that `default_backend` and `use_backend` lines name which have no effect, because they stand in a backend: the keyword,
    /// the name and its place.
    pub idle_targets: Vec<(&'static str, String, Place)>,
    /// `force-be-switch`: when any of these holds, backends that are not published are chosen too.
    pub forced_switches: Vec<Condition>,
    /// `be-unpublished`
    pub unpublished: bool,
    /// `tcp-request`, `tcp-response`.
    pub tcp: TcpRules,
    /// When bodies are compressed.
    pub compression: CompressionConditions,
    /// `filter` lines but those of compression, in order.
    pub filters: Arc<FilterSettings>,
    /// `http-request`, in order, those of the defaults first.
    pub request_rules: Vec<Arc<Rule>>,
    /// `http-response`.
    pub response_rules: Vec<Arc<Rule>>,
    /// `http-after-response`.
    pub after_rules: Vec<Arc<Rule>>,
    /// Service that answers requests itself, after the `http-request` rules: `stats ...`.
    pub service: Option<Arc<dyn Service>>,
    /// `monitor-uri`.
    pub monitor_uri: Option<Vec<u8>>,
    /// `monitor fail`: when any of these holds, the monitor gets a failure.
    pub monitor_failures: Vec<Condition>,
    /// `disabled`.
    pub disabled: bool,
    /// `id`.
    pub id: Option<u32>,
    /// `guid`.
    pub guid: Option<Guid>,
    /// `description`.
    pub description: Option<String>,
}

impl Setting for ProxySettings {
    fn inherit(&self) -> ProxySettings {
        ProxySettings {
            binds: Vec::new(),
            switches: Vec::new(),
            idle_targets: Vec::new(),
            filters: Arc::default(),
            id: None,
            guid: None,
            ..self.clone()
        }
    }

    /// Rules are for frontends or for backends: a section that is both would run them twice.
    fn heirs(&self) -> Heirs {
        let tcp = &self.tcp;
        let early = !tcp.connection.is_empty() || !tcp.session.is_empty();
        let late = !tcp.server_content.is_empty();
        let http = [&self.request_rules, &self.response_rules, &self.after_rules];
        let (kinds, because) = match (early, late) {
            (true, true) => (Sections(0), "rules on connections of clients and of servers"),
            (true, false) => (Sections::FRONTEND, "'tcp-request connection' or 'tcp-request session' rules"),
            (false, true) => (Sections::BACKEND, "'tcp-response content' rules"),
            (false, false) if !tcp.content.is_empty() || http.iter().any(|rules| !rules.is_empty()) => {
                (Sections::FRONTEND.or(Sections::BACKEND), "rules")
            }
            (false, false) => return Heirs::ANY,
        };
        Heirs { kinds, one_side: true, because }
    }
}

/// Conditions of compression: all of them must hold.
#[derive(Clone, Default, Debug)]
pub struct CompressionConditions {
    /// `compression if`, `compression unless`: of responses.
    pub response: Vec<Condition>,
    /// `compression if-req`, `compression unless-req`: of requests' bodies.
    pub request: Vec<Condition>,
}

/// Rules on connections and on their first bytes, in order, those of the defaults first.
#[derive(Clone, Default)]
pub struct TcpRules {
    /// `tcp-request connection`
    pub connection: Vec<Arc<Rule>>,
    /// `tcp-request session`
    pub session: Vec<Arc<Rule>>,
    /// `tcp-request content`
    pub content: Vec<Arc<Rule>>,
    /// `tcp-request inspect-delay`: time limit of their wait for bytes; `None`: they do not wait.
    pub inspect_delay: Option<Duration>,
    /// `tcp-response content`
    pub server_content: Vec<Arc<Rule>>,
    /// `tcp-response inspect-delay`
    pub server_delay: Option<Duration>,
}

/// Error pages of a proxy or of an `http-errors` section, in order: of two for the same status, the later holds.
#[derive(Clone, Default, Debug)]
pub struct ErrorSettings {
    /// `errorfile`, `errorloc302`, `errorloc303`, `errorfiles`, `http-error`.
    pub sources: Vec<ErrorSource>,
}

impl Setting for ErrorSettings {
    fn inherit(&self) -> ErrorSettings {
        self.clone()
    }
}

/// Source of an error page.
#[derive(Clone, Debug)]
pub enum ErrorSource {
    /// This page is sent in the place of a status.
    Page(u16, Page),
    /// Earlier pages for this status do not hold any more.
    BuiltIn(u16),
    /// The pages of an `http-errors` section.
    Set(ErrorSetUse),
}

/// An `http-errors` section, used by name.
#[derive(Clone, Debug)]
pub struct ErrorSetUse {
    /// Its name.
    pub name: String,
    /// The statuses that are meant; empty: all that it has.
    pub statuses: Vec<u16>,
    /// Place of the use in the configuration.
    pub place: Place,
}

/// Uses of `http-errors` sections by rules, in the shared settings: the plan reports those that do not exist.
#[derive(Clone, Default, Debug)]
pub struct ErrorSetUses {
    /// All of them.
    pub uses: Vec<ErrorSetUse>,
}

impl Setting for ErrorSetUses {
    fn inherit(&self) -> ErrorSetUses {
        self.clone()
    }
}

/// `mode`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// Bytes.
    #[default]
    Tcp,
    /// Requests and responses.
    Http,
    /// Lines of logs: of backends alone.
    Log,
}

/// `timeout ...`; `None`: no limit.
#[derive(Clone, Copy, Default, Debug)]
pub struct Timeouts {
    /// `client`: limit of the client's silence.
    pub client: Option<Duration>,
    /// `client-fin`: the same once either direction is closed.
    pub client_fin: Option<Duration>,
    /// `client-hs`: for a TLS handshake; `client` when not given.
    pub client_handshake: Option<Duration>,
    /// `connect`: to a server.
    pub connect: Option<Duration>,
    /// `http-keep-alive`: between two requests.
    pub keep_alive: Option<Duration>,
    /// `http-request`: for a whole head.
    pub request: Option<Duration>,
    /// `queue`: for a free slot; `connect` when not given.
    pub queue: Option<Duration>,
    /// `server`: limit of the server's silence.
    pub server: Option<Duration>,
    /// `server-fin`: the same once either direction is closed.
    pub server_fin: Option<Duration>,
    /// `tarpit`: time for which a tarpitted request is held; `connect` when not given.
    pub tarpit: Option<Duration>,
    /// `tunnel`: limit of a tunnel's silence; `client` and `server` when not given.
    pub tunnel: Option<Duration>,
}

/// Continuation of the connections to clients and servers after a response.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ConnectionMode {
    /// `option http-keep-alive`, and the default: both sides go on.
    #[default]
    KeepAlive,
    /// `option http-server-close`: the client's goes on.
    ServerClose,
    /// `option httpclose`: neither does.
    Close,
}

/// Switches: `option <name>`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// `http-keep-alive`, `http-server-close`, `httpclose`.
    pub connection: Option<ConnectionMode>,
    /// `contstats`: bytes are counted while they pass.
    pub count_while_passing: bool,
    /// `socket-stats`: each address has counters of its own.
    pub count_by_address: bool,
    /// `abortonclose`: a client that closes is not served any more; see [`Options::aborts_on_close`].
    pub abort_on_close: Option<bool>,
    /// `disable-h2-upgrade`: a preface of HTTP/2 on a connection of HTTP/1 is not taken for it.
    pub no_http2_preface: bool,
    /// `http-ignore-probes`: browsers' speculative connections get no 408.
    pub ignore_probes: bool,
    /// `prefer-last-server`.
    pub prefer_last_server: bool,
    /// `max-keep-alive-queue`: requests that may wait for the last server before another is taken.
    pub most_queued: Option<u32>,
    /// `idle-close-on-response`: a draining worker waits for the next request of clients that are idle.
    pub keeps_idle: bool,
    /// `http-pretend-keepalive`: requests do not announce to servers that their connections will be closed.
    pub pretend_keep_alive: bool,
    /// `tcpka`, `clitcpka`: TCP's own probes of clients.
    pub client_probes: Probes,
    /// `tcpka`, `srvtcpka`: TCP's own probes of servers.
    pub server_probes: Probes,
    /// `http-buffer-request`: the request's body is read first.
    pub buffer_request: bool,
    /// `http-use-proxy-header`: fields for proxies in requests with absolute targets are for this proxy.
    pub proxy_header: bool,
    /// `accept-unsafe-violations-in-http-request`: targets may hold fragments and text beyond ASCII.
    pub loose_targets: bool,
    /// `h1-case-adjust-bogus-client`: names of fields are spelled as `global` has them.
    pub spells_for_clients: bool,
    /// `h1-case-adjust-bogus-server`: the same towards servers.
    pub spells_for_servers: bool,
    /// `nolinger`.
    pub no_linger: bool,
    /// `independent-streams`: a silent side of a tunnel is not kept alive by the other.
    pub independent: bool,
    /// `splice-auto`, `splice-request`, `splice-response`: bytes that go around the process.
    pub splice: SpliceOptions,
    /// `traceparent`: a request without a sound field gets one.
    pub traces: bool,
    /// `checkcache`: responses whose cookie a cache might give to others are blocked.
    pub check_cache: bool,
    /// `http-drop-request-trailers`, `http-drop-response-trailers`.
    pub drop_trailers: DropTrailers,
}

impl Options {
    /// Whether the close of a client's half ends its request: where it is not set, in mode http only.
    pub fn aborts_on_close(&self, mode: Mode) -> bool {
        self.abort_on_close.unwrap_or(mode == Mode::Http)
    }
}

/// Messages whose trailers are not passed on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DropTrailers {
    /// Those of requests.
    pub requests: bool,
    /// Those of responses.
    pub responses: bool,
}

/// TCP's own probes of a silent peer; the system's values where none are set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Probes {
    /// `clitcpka`, `srvtcpka`.
    pub on: bool,
    /// `clitcpka-idle`, `srvtcpka-idle`: the silence before the first probe.
    pub idle: Option<Duration>,
    /// `clitcpka-intvl`, `srvtcpka-intvl`: the time between two probes.
    pub interval: Option<Duration>,
    /// `clitcpka-cnt`, `srvtcpka-cnt`: probes without an answer after which the connection is dead.
    pub count: Option<u32>,
}

impl Probes {
    /// The options for a socket, where they are asked for.
    pub fn asked(self) -> Option<TcpKeepalive> {
        self.on.then(|| self.times())
    }

    fn times(self) -> TcpKeepalive {
        let mut times = TcpKeepalive::new();
        if let Some(idle) = self.idle {
            times = times.with_time(idle);
        }
        if let Some(interval) = self.interval {
            times = times.with_interval(interval);
        }
        if let Some(count) = self.count {
            times = times.with_retries(count);
        }
        times
    }
}

/// `option forwardfor`, `option originalto`: a field of requests that carries an address.
#[derive(Clone, Debug)]
pub struct ForwardedFor {
    /// `header`: the field's name, without it X-Forwarded-For or X-Original-To.
    pub header: Arc<[u8]>,
    /// `except`: addresses of this network are not written.
    pub except: Option<(IpAddr, u8)>,
    /// `if-none`: only where the request has no such field.
    pub if_none: bool,
}

/// `http-reuse`: when a request may go on a connection that carried another client's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Reuse {
    /// Never.
    Never,
    /// Not the first request of a session.
    #[default]
    Safe,
    /// The first request too, on connections that have proven themselves.
    Aggressive,
    /// Always.
    Always,
}

/// `retry-on`: after which failures a request is sent again, beside connections that could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryOn {
    /// `conn-failure`: no connection.
    pub connect: bool,
    /// `empty-response`: closed before the first byte.
    pub empty: bool,
    /// `junk-response`: a malformed response.
    pub junk: bool,
    /// `response-timeout`: no response in time.
    pub timeout: bool,
    /// `0rtt-rejected`: early data that the server did not take.
    pub early: bool,
    /// Statuses that are tried again.
    pub statuses: Vec<u16>,
}

impl RetryOn {
    /// Whether a request is sent again that its server may have taken.
    pub fn after_sending(&self) -> bool {
        self.empty || self.junk || self.timeout || !self.statuses.is_empty()
    }
}

impl Default for RetryOn {
    fn default() -> RetryOn {
        RetryOn { connect: true, empty: false, junk: false, timeout: false, early: false, statuses: Vec::new() }
    }
}

/// `use_backend <name> [if | unless <condition>]`
pub struct Switch {
    /// The backend's name, which may hold expressions.
    pub target: SwitchTarget,
    /// When.
    pub condition: Option<Condition>,
    /// Place of its line in the configuration.
    pub place: Place,
}

/// Target of `use_backend`.
pub enum SwitchTarget {
    /// A backend, by name.
    Name(String),
    /// A name that is made for each request.
    Format(LogFormat),
}

/// A `bind` line: a single address of it.
#[derive(Clone, Debug)]
pub struct BindSettings {
    /// The address as it is written: `:80`, `*:80`, `127.0.0.1:80`, `[::1]:80`, `/path`, `unix@/path`, `abns@name`, `fd@3`.
    pub address: String,
    /// `name`: for statistics.
    pub name: Option<String>,
    /// `id`: for statistics.
    pub id: Option<u32>,
    /// `guid-prefix`.
    pub guid_prefix: Option<Guid>,
    /// Which of its line's addresses it is.
    pub of_line: usize,
    /// `maxconn`.
    pub maxconn: Option<usize>,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `interface`.
    pub interface: Option<String>,
    /// `mode`: of a unix socket's file.
    pub mode: Option<u32>,
    /// `user` or `uid`: of a unix socket's file.
    pub user: Option<String>,
    /// `group` or `gid`: of a unix socket's file.
    pub group: Option<String>,
    /// `v4v6` or `v6only`.
    pub v6only: Option<bool>,
    /// `transparent`.
    pub transparent: bool,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// `tcp-ss`: the kernel keeps the packets that open connections; 1 from the IP header on, 2 from the Ethernet header on.
    pub save_syn: u8,
    /// `tfo`.
    pub fast_open: bool,
    /// `mss`.
    pub mss: Option<u32>,
    /// `tcp-ut`: time limit of sent bytes without an acknowledgement.
    pub user_timeout: Option<Duration>,
    /// `idle-ping`: interval of pings to idle clients of HTTP/2.
    pub idle_ping: Option<Duration>,
    /// `tcp-md5sig`: signature of segments.
    pub signature: Option<Signature>,
    /// `cc`: TCP's congestion control.
    pub congestion: Option<String>,
    /// `accept-proxy`: connections begin with a head of the PROXY protocol.
    pub accept_proxy: bool,
    /// `proto`: the version of HTTP that is spoken from the first byte on.
    pub protocol: Option<Protocol>,
    /// `proto none`: its connections never become connections of HTTP.
    pub carries_bytes: bool,
    /// `process`, `thread`: which workers accept; 0 means all.
    pub workers: u64,
    /// Its keywords of TLS.
    pub tls: BindTls,
    /// Place of its line in the configuration.
    pub place: Place,
}

impl BindSettings {
    /// Its name in files of statistics.
    pub fn guid(&self) -> Option<String> {
        self.guid_prefix.as_ref().map(|prefix| format!("{}-{}", prefix.name, self.of_line))
    }
}
