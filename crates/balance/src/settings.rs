//! What the configuration says of a backend's servers.

use crate::announcement::Announcement;
use crate::check::Probe;
use crate::persistence::CookieSettings;
use crate::server::Address;
use crate::state::Rules;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use terse_config::{Place, Setting};

/// A backend's servers and how they are used. In a `defaults` section: everything but the servers.
#[derive(Clone, Default, Debug)]
pub struct FarmSettings {
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash: Hash,
    /// The servers, in order.
    pub servers: Vec<ServerSettings>,
    /// What `default-server` gives to the servers after it.
    pub template: ServerSettings,
    /// `cookie`.
    pub cookie: Option<CookieSettings>,
    /// `option allbackups`: all backup servers work, not only the first that is up.
    pub all_backups: bool,
    /// `option persist`: a cookie's server is tried even when it is down.
    pub persist: bool,
    /// What a health check says and expects.
    pub probe: Probe,
    /// `timeout check`: for what follows the connection; connecting then has its own time.
    pub check_timeout: Option<Duration>,
    /// The converters of `balance log-hash`, and where they stand.
    pub log_hash: Option<(Arc<str>, Place)>,
    /// `option log-health-checks`: each change of a check's result is logged, not only the server's.
    pub log_health_checks: bool,
}

impl Setting for FarmSettings {
    fn inherit(&self) -> FarmSettings {
        let probe = Probe { inherited: true, ..self.probe.clone() };
        FarmSettings { servers: Vec::new(), probe, ..self.clone() }
    }
}

/// A `server` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSettings {
    /// Its name, unique in the backend.
    pub name: Arc<str>,
    /// Where it listens.
    pub address: Address,
    /// `id`: its number in statistics; without it, its place in the backend, from 1.
    pub id: Option<u32>,
    /// `cookie`: what the persistence cookie says for it.
    pub cookie: Option<Arc<str>>,
    /// `weight`, 0 to 256. 0: only persistence sends it requests.
    pub weight: u32,
    /// `maxconn`: requests at a time; 0: no limit.
    pub maxconn: u32,
    /// `maxqueue`: requests that wait for this very server; 0: no limit.
    pub maxqueue: u32,
    /// `backup`: used when no other server is up.
    pub backup: bool,
    /// `disabled`: starts in maintenance.
    pub disabled: bool,
    /// `non-stick`: stick tables do not learn it.
    pub non_stick: bool,
    /// `check` and its words.
    pub check: CheckSettings,
    /// Idle connections.
    pub pool: PoolSettings,
    /// What a server of logs needs to know.
    pub log: LogWords,
    /// What it is told in front of a connection's first byte (`send-proxy`).
    pub announcement: Announcement,
}

/// What concerns servers in `mode log` and in `ring` sections.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogWords {
    /// Its address is one of datagrams: `udp@`.
    pub datagrams: bool,
    /// `log-proto octet-count`: a line's length before each (RFC 6587), instead of a line feed behind it.
    pub octet_count: bool,
    /// `log-bufsize`: bytes of lines that may wait for it.
    pub buffer_bytes: Option<usize>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            name: Arc::from(""),
            address: Address::default(),
            id: None,
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
        }
    }
}

/// What becomes of connections to a server between two requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolSettings {
    /// `pool-max-conn`: idle connections of each worker; `None`: any number.
    pub max_idle: Option<u32>,
    /// `pool-purge-delay`: how long one is kept, 5 s.
    pub purge_delay: Duration,
    /// `max-reuse`: requests after the first that one may carry; `None`: any number.
    pub max_reuse: Option<u32>,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        PoolSettings { max_idle: None, purge_delay: Duration::from_secs(5), max_reuse: None }
    }
}

impl ServerSettings {
    /// What its changes of state depend on.
    pub fn rules(&self) -> Rules {
        Rules { checked: self.check.enabled, rise: self.check.rise, fall: self.check.fall }
    }
}

/// When and where a server's health is checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckSettings {
    /// `check`.
    pub enabled: bool,
    /// `inter`: between two checks of a server that is well, 2 s.
    pub inter: Duration,
    /// `fastinter`: between two checks while the state is changing; `inter` when not given.
    pub fastinter: Option<Duration>,
    /// `downinter`: between two checks of a server that is down; `inter` when not given.
    pub downinter: Option<Duration>,
    /// `rise`: checks that must pass before it is up, 2.
    pub rise: u32,
    /// `fall`: checks that must fail before it is down, 3.
    pub fall: u32,
    /// `port`: where checks connect instead.
    pub port: Option<u16>,
    /// `addr`: where checks connect instead.
    pub address: Option<IpAddr>,
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
        }
    }
}

/// `balance`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Balance {
    /// `roundrobin` and `static-rr`: each in turn, as often as its weight says.
    #[default]
    RoundRobin,
    /// `leastconn`: the one with the fewest requests for its weight.
    LeastConn,
    /// `first`: the first one with a free slot.
    First,
    /// `source`: by the client's address.
    Source,
    /// `uri`: by the target.
    Uri(UriKey),
    /// `random(<draws>)`: the least loaded of so many drawn.
    Random(u8),
    /// `sticky`: the first that came up, for as long as it stays; one that comes back goes to the end. For logs.
    Sticky,
    /// `log-hash`: by what converters make of a line. For logs.
    LogHash,
}

/// Which part of the target `balance uri` looks at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UriKey {
    /// `whole`: with the query.
    pub whole: bool,
    /// `path-only`: without scheme and authority.
    pub path_only: bool,
    /// `len`: that many bytes; 0: all.
    pub len: usize,
    /// `depth`: that many directories; 0: all.
    pub depth: usize,
}

/// `hash-type`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hash {
    /// How a number finds its server.
    pub method: HashMethod,
    /// How a key becomes a number.
    pub function: HashFunction,
    /// `avalanche`: the number's bits are mixed once more.
    pub avalanche: bool,
    /// `hash-preserve-affinity`: which servers a consistent hash passes over.
    pub affinity: HashAffinity,
}

/// When a consistent hash goes on to the next server of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashAffinity {
    /// `always`: never, while the server is up.
    #[default]
    Always,
    /// `maxconn`: when all its slots are in use.
    MaxConn,
    /// `maxqueue`: when its queue is full, too.
    MaxQueue,
}

/// How a hash finds its server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashMethod {
    /// `map-based`: a place in the table of all servers that are up; most keys move when one goes.
    #[default]
    Map,
    /// `consistent`: a place on a ring; only the keys of a server that goes move.
    Consistent,
}

/// How a key is hashed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashFunction {
    /// `sdbm`
    #[default]
    Sdbm,
    /// `djb2`
    Djb2,
    /// `crc32`
    Crc32,
    /// `none`: the key is the number.
    None,
}

/// How names of servers become addresses when the configuration is read: the program puts one into the shared settings. Without
/// one, only literal addresses are understood.
#[derive(Clone, Default)]
pub struct Resolver(pub Option<Arc<ResolveFn>>);

/// The addresses of a name, best first.
pub type ResolveFn = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

impl Setting for Resolver {
    fn inherit(&self) -> Resolver {
        self.clone()
    }
}
