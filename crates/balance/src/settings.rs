//! Settings of a backend's servers.

use crate::address::Address;
use crate::algorithm::settings::{Balance, Hash, HashKey, RingKey};
use crate::announcement::Announcement;
use crate::check::Probe;
use crate::guid::Guid;
use crate::persistence::CookieSettings;
use crate::signature::Signature;
use crate::state::{InitialState, Rules};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use terse_config::{Place, Setting};
use terse_message::{FieldName, Protocol};
use terse_tls::ServerTls;

/// A backend's servers and how they are used. In a `defaults` section: everything but the servers.
#[derive(Clone, Default, Debug)]
pub struct FarmSettings {
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash: Hash,
    /// The servers, in order.
    pub servers: Vec<ServerSettings>,
    /// Names of the servers.
    pub names: HashSet<Arc<str>>,
    /// Names of the servers whose lines set `id`, by that number.
    pub numbered: HashMap<u32, Arc<str>>,
    /// Settings that `default-server` gives to the servers after it.
    pub template: ServerSettings,
    /// Settings of each `default-server name`, which servers ask for by name.
    pub named_templates: BTreeMap<Arc<str>, ServerSettings>,
    /// `cookie`.
    pub cookie: Option<CookieSettings>,
    /// `option allbackups`: all backup servers work, not only the first that is up.
    pub all_backups: bool,
    /// `option persist`: a cookie's server is tried even when it is down.
    pub persist: bool,
    /// Requests and expectations of a health check.
    pub probe: Probe,
    /// `timeout check`: time after the connection; connecting then has its own time.
    pub check_timeout: Option<Duration>,
    /// The converters of `balance log-hash`, and their place in the configuration.
    pub log_hash: Option<(Arc<str>, Place)>,
    /// Key of `balance hash` and its kin: an expression of the request.
    pub key: Option<HashKey>,
    /// `hash-balance-factor`: limit of a server of a consistent hash, in percent of the mean load; 0: none.
    pub hash_balance_percent: u32,
    /// `fullconn`: number of requests at which servers get their whole `maxconn`; `None`: a tenth of what frontends may
    /// send.
    pub fullconn: Option<u32>,
    /// `dynamic-cookie-key`
    pub cookie_key: Option<Arc<str>>,
    /// `source`: default of servers whose lines have none.
    pub source: SourceSettings,
    /// `load-server-state-from-file`: source of servers' states.
    pub states: StateSource,
    /// `server-state-file-name`; without it the backend's name.
    pub state_file: Option<Arc<str>>,
    /// `option log-health-checks`: each change of a check's result is logged, not only the server's.
    pub log_health_checks: bool,
}

impl FarmSettings {
    /// Argument of `balance`.
    pub fn balance_name(&self) -> &'static str {
        match self.balance {
            Balance::RoundRobin => "roundrobin",
            Balance::StaticRoundRobin => "static-rr",
            Balance::Key => self.key.as_ref().map_or("hash", |key| key.word),
            Balance::LeastConn => "leastconn",
            Balance::First => "first",
            Balance::Source => "source",
            Balance::Uri(_) => "uri",
            Balance::Random(_) => "random",
            Balance::Sticky => "sticky",
            Balance::LogHash => "log-hash",
        }
    }
}

impl Setting for FarmSettings {
    fn inherit(&self) -> FarmSettings {
        let probe = Probe { inherited: true, ..self.probe.clone() };
        FarmSettings { servers: Vec::new(), names: HashSet::new(), numbered: HashMap::new(), probe, ..self.clone() }
    }
}

/// Source of the states of servers when the process starts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum StateSource {
    /// The servers' lines.
    #[default]
    None,
    /// The file of the process.
    Global,
    /// The backend's own file.
    Local,
}

/// A `server` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSettings {
    /// Name, unique in the backend.
    pub name: Arc<str>,
    /// Place of its line in the configuration, if it has one.
    pub place: Option<Place>,
    /// Address of the server.
    pub address: Address,
    /// `id`: number in statistics; without it, the place in the backend, from 1.
    pub id: Option<u32>,
    /// `guid`.
    pub guid: Option<Guid>,
    /// `hash-key`: source of its places on the ring of a consistent hash.
    pub ring_key: RingKey,
    /// `cookie`: value of the persistence cookie for the server.
    pub cookie: Option<Arc<str>>,
    /// `weight`, 0 to 256. 0: only persistence sends it requests.
    pub weight: u32,
    /// `maxconn`: requests at a time; 0: no limit.
    pub maxconn: u32,
    /// `maxqueue`: requests that wait for this server alone; 0: no limit.
    pub maxqueue: u32,
    /// `backup`: used when no other server is up.
    pub backup: bool,
    /// `disabled`: starts in maintenance.
    pub disabled: bool,
    /// `non-stick`: stick tables do not learn it.
    pub non_stick: bool,
    /// `check` and its arguments.
    pub check: CheckSettings,
    /// Idle connections.
    pub pool: PoolSettings,
    /// Settings of a server of logs.
    pub log: LogWords,
    /// PROXY header before a connection's first byte (`send-proxy`).
    pub announcement: Announcement,
    /// TLS arguments.
    pub tls: ServerTls,
    /// DNS name, where the line has one.
    pub name_in_dns: Option<Arc<str>>,
    /// Resolution of the name to an address.
    pub resolution: ResolutionSettings,
    /// `minconn`: its limit while the backend has little to do; 0: always `maxconn`.
    pub minconn: u32,
    /// `slowstart`: time in which the weight grows when the server comes up.
    pub slowstart: Duration,
    /// `track`: the server whose state is taken, and the keyword's place in the configuration.
    pub track: Option<(Arc<str>, Place)>,
    /// `init-state`
    pub initial: InitialState,
    /// `observe` and its related keywords.
    pub observe: ObserveSettings,
    /// `on-marked-down shutdown-sessions`
    pub ends_sessions: bool,
    /// `on-marked-up shutdown-backup-sessions`
    pub ends_backup_sessions: bool,
    /// `source`, `interface`
    pub source: SourceSettings,
    /// `socks4`: the proxy that connections go through.
    pub socks4: Option<SocketAddr>,
    /// `tcp-ut`: limit of time that sent data may lack an acknowledgement.
    pub user_timeout: Option<Duration>,
    /// `tcp-md5sig`: signature of segments.
    pub signature: Option<Signature>,
    /// `redir`: prefix of the path in a redirect that sends the client to the server itself.
    pub redirect: Option<Box<[u8]>>,
    /// `cc`: algorithm of congestion control.
    pub congestion: Option<Box<str>>,
    /// `agent-check` and its arguments.
    pub agent: AgentSettings,
    /// `proto`: the version of HTTP that the server speaks, whatever ALPN selects.
    pub protocol: Option<Protocol>,
    /// `ws`: version of HTTP for WebSocket.
    pub websocket: WebSocket,
    /// `idle-ping`: interval of pings on a silent connection of HTTP/2; zero: none.
    pub idle_ping: Duration,
    /// `shard`: the part of tables that a peer is sent; 0: all.
    pub shard: u32,
}

/// `ws`: the version of HTTP that WebSocket is spoken over to a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WebSocket {
    /// `auto`: HTTP/1 where ALPN lets it, else the server's.
    #[default]
    Auto,
    /// `h1`
    Http1,
    /// `h2`
    Http2,
}

/// Resolution of a server's name to its address.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ResolutionSettings {
    /// `init-addr`; empty: `last,libc`, and `none` where there are `resolvers`.
    pub init: Vec<InitialAddress>,
    /// `resolvers`: the section that is asked at run time, and the keyword's place in the configuration.
    pub resolvers: Option<(Arc<str>, Place)>,
    /// `resolve-prefer ipv4`; otherwise IPv6.
    pub prefer_v4: bool,
    /// `resolve-net`: networks whose addresses come first.
    pub networks: Arc<[(IpAddr, u8)]>,
    /// `resolve-opts allow-dup-ip`: servers of a name may share an address.
    pub shares_addresses: bool,
    /// `resolve-opts ignore-weight`: weights of SRV records do not count.
    pub ignores_weights: bool,
}

impl ResolutionSettings {
    /// Methods that find a first address; the default, where none is set, leaves out files of states. A server whose
    /// name is resolved at run time can start without an address.
    pub fn initial(&self) -> &[InitialAddress] {
        match &*self.init {
            [] if self.resolvers.is_some() => &[InitialAddress::System, InitialAddress::None],
            written => written,
        }
    }
}

/// Source of a server's first address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialAddress {
    /// `last`: from a file of states, which is read when all servers are there.
    Last,
    /// `libc`: from the system.
    System,
    /// `none`: it starts without one, and down.
    None,
    /// This one.
    Ip(IpAddr),
}

/// Passive health checks by requests (`observe`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObserveSettings {
    /// `observe`
    pub layer: Option<ObservedLayer>,
    /// `error-limit`: limit of consecutive errors, 10.
    pub error_limit: u32,
    /// `on-error`
    pub on_error: OnError,
}

impl Default for ObserveSettings {
    fn default() -> ObserveSettings {
        ObserveSettings { layer: None, error_limit: 10, on_error: OnError::FailCheck }
    }
}

/// `observe`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ObservedLayer {
    /// `layer4`: whether the server accepts connections.
    Connections,
    /// `layer7`: also the responses.
    Responses,
}

/// `on-error`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnError {
    /// `fastinter`: the next check comes soon.
    FastInter,
    /// `fail-check`: it counts as a failed check, too.
    FailCheck,
    /// `sudden-death`: one more failed check brings it down.
    SuddenDeath,
    /// `mark-down`: it is down.
    MarkDown,
}

/// Source address of connections to a server.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SourceSettings {
    /// `source`: this address; with port 0 any port of it.
    pub address: Option<SocketAddr>,
    /// The last port, where the source is a range of them.
    pub last_port: u16,
    /// `interface`: this network device.
    pub interface: Option<Arc<str>>,
    /// `usesrc`: client address that servers see.
    pub guise: Option<Guise>,
}

/// Address that a server sees as that of its client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guise {
    /// `clientip`: the client's, from any port.
    ClientIp,
    /// `client`: the client's, from its port.
    Client,
    /// This one; with port 0 from any port.
    Address(SocketAddr),
    /// `hdr_ip(name,occurrence)`: one of the addresses in a field, counted from 1, or from the last as -1.
    Field(FieldName, i32),
}

impl SourceSettings {
    /// Whether it is a range of ports.
    pub fn has_range(&self) -> bool {
        self.address.is_some_and(|address| address.port() < self.last_port)
    }
}

/// `agent-check` and its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentSettings {
    /// `agent-check`
    pub enabled: bool,
    /// `agent-port`
    pub port: Option<u16>,
    /// `agent-addr`
    pub address: Option<IpAddr>,
    /// `agent-inter`: interval between two agent checks, 2 s.
    pub inter: Duration,
    /// `agent-send`: text sent first.
    pub send: Arc<[u8]>,
}

impl Default for AgentSettings {
    fn default() -> AgentSettings {
        AgentSettings { enabled: false, port: None, address: None, inter: Duration::from_secs(2), send: Arc::default() }
    }
}

/// Settings of servers in `mode log` and in `ring` sections.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogWords {
    /// Whether the address is one of datagrams: `udp@`.
    pub datagrams: bool,
    /// `log-proto octet-count`: a line's length before each (RFC 6587), instead of a line feed after it.
    pub octet_count: bool,
    /// `log-bufsize`: bytes of lines that may wait for it.
    pub buffer_bytes: Option<usize>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            name: Arc::from(""),
            place: None,
            address: Address::default(),
            id: None,
            guid: None,
            cookie: None,
            weight: 1,
            maxconn: 0,
            maxqueue: 0,
            backup: false,
            disabled: false,
            non_stick: false,
            check: CheckSettings::default(),
            pool: PoolSettings::default(),
            log: LogWords::default(),
            announcement: Announcement::default(),
            tls: ServerTls::default(),
            name_in_dns: None,
            resolution: ResolutionSettings::default(),
            minconn: 0,
            slowstart: Duration::ZERO,
            track: None,
            initial: InitialState::default(),
            observe: ObserveSettings::default(),
            ends_sessions: false,
            ends_backup_sessions: false,
            source: SourceSettings::default(),
            socks4: None,
            user_timeout: None,
            signature: None,
            ring_key: RingKey::Id,
            redirect: None,
            congestion: None,
            agent: AgentSettings::default(),
            protocol: None,
            websocket: WebSocket::default(),
            idle_ping: Duration::ZERO,
            shard: 0,
        }
    }
}

/// Limits of idle connections to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolSettings {
    /// `pool-max-conn`: idle connections of each worker; `None`: any number.
    pub max_idle: Option<u32>,
    /// `pool-low-conn`: idle connections of each worker beyond those that it needs.
    pub low: u32,
    /// `pool-conn-name`: an expression, and its place in the configuration.
    pub name: Option<(Arc<str>, Place)>,
    /// `pool-purge-delay`: time that an idle connection is kept, 5 s.
    pub purge_delay: Duration,
    /// `max-reuse`: requests after the first that a connection may carry; `None`: any number.
    pub max_reuse: Option<u32>,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        PoolSettings { max_idle: None, low: 0, name: None, purge_delay: Duration::from_secs(5), max_reuse: None }
    }
}

impl ServerSettings {
    /// Whether checks to this place use TLS, where their own line does not set it. They do as `check-ssl` sets, or as
    /// requests do where both go to the same place.
    pub fn checks_over_tls(&self) -> bool {
        self.tls.check.unwrap_or(self.tls.enabled && self.check.port.is_none() && self.check.address.is_none())
    }

    /// Whether a connection may be one of HTTP/2: by `proto`, or by what ALPN may select.
    pub fn may_speak_http2(&self) -> bool {
        match self.protocol {
            Some(protocol) => protocol == Protocol::Http2,
            None => self.tls.enabled && self.tls.alpn.iter().flatten().any(|name| &**name == Protocol::Http2.alpn()),
        }
    }

    /// Whether an address from a file of states goes before the server's own: `last` precedes the method that found
    /// that one (`init-addr`).
    pub(crate) fn prefers_last(&self) -> bool {
        let (init, own) = (&self.resolution.init, self.address.destination().map(|found| found.ip));
        let is_given = init.iter().any(|method| matches!(method, InitialAddress::Ip(ip) if Some(*ip) == own));
        let found = |method: &InitialAddress| match method {
            InitialAddress::Last => false,
            InitialAddress::System => !self.is_unresolved() && !is_given,
            InitialAddress::None => self.is_unresolved(),
            InitialAddress::Ip(ip) => Some(*ip) == own,
        };
        let mut tried = init.iter().take_while(|method| !found(method));
        init.is_empty() || tried.any(|method| *method == InitialAddress::Last)
    }

    /// Whether only a file of states can still give it an address, and it may not start without one.
    pub fn needs_last(&self) -> bool {
        let has = |method| self.resolution.init.contains(&method);
        self.is_unresolved() && has(InitialAddress::Last) && !has(InitialAddress::None)
    }

    /// Settings that transitions of its state depend on.
    pub fn rules(&self) -> Rules {
        Rules {
            checked: self.check.enabled,
            rise: self.check.rise,
            fall: self.check.fall,
            initial: self.initial,
            slow: !self.slowstart.is_zero(),
        }
    }

    /// Whether the address depends on the destination that a client asked for.
    pub fn follows_clients(&self) -> bool {
        matches!(self.address, Address::AsAsked(destination) if !self.is_unresolved() || destination.fixed_port().is_none())
    }

    /// Whether its address is still to be found: its name was not looked up, or not found.
    pub fn is_unresolved(&self) -> bool {
        self.name_in_dns.is_some() && self.address.destination().is_some_and(|destination| destination.ip.is_unspecified())
    }
}

/// Time and destination of health checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckSettings {
    /// `check`.
    pub enabled: bool,
    /// `inter`: interval between two checks of a server that is well, 2 s.
    pub inter: Duration,
    /// `fastinter`: interval between two checks while the state is changing; `inter` when not given.
    pub fastinter: Option<Duration>,
    /// `downinter`: interval between two checks of a server that is down; `inter` when not given.
    pub downinter: Option<Duration>,
    /// `rise`: checks that must pass before it is up, 2.
    pub rise: u32,
    /// `fall`: checks that must fail before it is down, 3.
    pub fall: u32,
    /// `port`: port of checks, in place of the server's.
    pub port: Option<u16>,
    /// `addr`: address of checks, in place of the server's.
    pub address: Option<IpAddr>,
    /// The port of `addr`; `port` takes its place.
    pub address_port: Option<u16>,
    /// `check-via-socks4`
    pub via_socks4: bool,
    /// `check-proto`: the version of HTTP that checks speak; that of `proto` where it is not given.
    pub protocol: Option<Protocol>,
    /// `healthcheck`: the section of the checks' steps, and the keyword's place in the configuration.
    pub section: Option<(Arc<str>, Place)>,
}

impl Default for CheckSettings {
    fn default() -> CheckSettings {
        CheckSettings {
            enabled: false,
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            rise: 2,
            fall: 3,
            port: None,
            address: None,
            address_port: None,
            via_socks4: false,
            protocol: None,
            section: None,
        }
    }
}

/// Resolution of servers' names when the configuration is read: the program puts a resolver into the shared settings.
/// Without it, only literal addresses are understood.
#[derive(Clone, Default)]
pub struct Resolver(pub Option<Arc<ResolveFn>>);

impl Resolver {
    /// The first address of a name.
    pub(crate) fn first(&self, name: &str) -> Option<IpAddr> {
        self.0.as_ref()?(name).first().copied()
    }
}

/// The addresses of a name, best first.
pub type ResolveFn = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

impl Setting for Resolver {
    fn inherit(&self) -> Resolver {
        self.clone()
    }
}
