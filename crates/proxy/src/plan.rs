//! The configuration as the workers use it: compiled, checked, immutable.

pub mod build;
mod introduction;
mod newcomer;
mod removal;
pub mod roll;

use crate::cache::Cache;
use crate::connection::settings::Http2Settings;
use crate::counters::Tally;
use crate::descriptors::Descriptors;
use crate::filter::FilterSettings;
use crate::forwarded::Forwarded;
use crate::gate::Gate;
use crate::io::PipeLimit;
use crate::limits::Limits;
use crate::log::{Journal, Level, Sinks, Syslog};
use crate::registry::Registries;
use crate::reply::Pages;
use crate::rules::Rule;
use crate::script::Library;
use crate::service::Service;
use crate::settings::{
    BindSettings, CompressionConditions, ForwardedFor, Mode, Options, RetryOn, Reuse, Switch, TcpRules, Timeouts,
};
use crate::splice::Spliced;
use crate::stick::Sticking;
use crate::track::TrackSettings;
use crate::types::Types;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;
use terse_balance::Farm;
use terse_balance::table::Table;
use terse_compress::Mode as HopMode;
use terse_compress::counters::Rate;
use terse_compress::decode::Decompression;
use terse_compress::dictionary::Stock;
use terse_compress::memory::Owner;
use terse_compress::{Compression, Limit, Memory, Within};
use terse_config::Place;
use terse_http::h1::{Reading, Spellings};
use terse_message::FieldName;
use terse_names::Resolvers;
use terse_sample::pattern::References;
use terse_sample::{Condition, Language, LogFormat, Needs, ProcessStore};
use terse_tls::settings::Defaults;
use terse_tls::{Acceptor, Vault};

use build::Templates;
pub use removal::NotRemoved;
use roll::Backends;

/// Divisor of the memory for compressed TLS records' part: the rest is for buffers, which all streams need.
pub const RECORDS_SHARE: usize = 4;

/// Everything that a worker needs to know.
pub struct Plan {
    /// Frontends and the front halves of `listen`, in order.
    pub frontends: Vec<Frontend>,
    /// Backends and the back halves of `listen`.
    pub backends: Backends,
    /// The frontends that may send to each backend of the configuration, by their places.
    senders: Vec<Vec<usize>>,
    /// Templates of backends that are added at run time.
    pub templates: Templates,
    /// Addresses to listen on, of all frontends.
    pub binds: Vec<Bind>,
    /// Stick tables, in the order of their lines.
    pub tables: Vec<Arc<Table>>,
    /// The groups of peers that share them, in the order of sections.
    pub peers: Vec<Circle>,
    /// Settings of `global` for tracking.
    pub tracking: TrackSettings,
    /// When the process started: the time of tables is counted from here.
    pub started: Instant,
    /// Variables of the process.
    pub process_variables: ProcessStore,
    /// The language in which the stats socket sets them.
    pub language: Language,
    /// Settings of `global`.
    pub process: ProcessPlan,
    /// Its limits, with their present values.
    pub limits: Limits,
    /// The way to the workers' open streams.
    pub registries: Arc<Registries>,
    /// Writers of log lines.
    pub sinks: Arc<Sinks>,
    /// The log of the process: lines that belong to no proxy.
    pub journal: Journal,
    /// Parts of logs that run beside the workers.
    pub syslog: Syslog,
    /// The process-wide limit of buffering.
    pub memory: Arc<Limit>,
    /// The limit of pipes, and how many there are.
    pub pipes: Arc<PipeLimit>,
    /// The limit of descriptors, and connections to servers against it.
    pub descriptors: Arc<Descriptors>,
    /// Its part for the coders of compressed TLS records: one part in [`RECORDS_SHARE`].
    pub records_memory: Arc<Within>,
    /// The same for coders and the bodies that they hold: `maxzlibmem`, or any number of bytes.
    pub coders_memory: Arc<Within>,
    /// The memory of compressed bodies of proxies without their own (`tune.comp.memory`).
    pub bodies: Option<Arc<Memory>>,
    /// Types of answers that went as they were.
    pub types: Types,
    /// Dictionaries of compression, in the order of their sections.
    pub dictionaries: Stock,
    /// Caches of responses, in the order of their sections.
    pub caches: Vec<Arc<Cache>>,
    /// The names of disabled backends, of which nothing else is known.
    pub disabled_backends: Vec<Arc<str>>,
    /// The pages of `http-errors` sections, by their names.
    pub error_sets: HashMap<Arc<str>, Pages>,
    /// Resolvers of names at run time.
    pub resolvers: Vec<Arc<Resolvers>>,
    /// Patterns of ACLs and maps, which change at run time.
    pub patterns: References,
    /// Certificates, which change at run time.
    pub vault: Arc<Vault>,
    /// Settings of `global` for servers that speak TLS.
    pub tls_defaults: Defaults,
    /// The registrations of Lua scripts.
    pub scripts: Option<Arc<dyn Library>>,
    /// Computing time of each worker, in percent of the last second.
    pub busy_percents: Box<[AtomicU8]>,
}

/// A `peers` section at work.
#[derive(Debug)]
pub struct Circle {
    /// The peers and their shared tables.
    pub group: Arc<terse_peers::Group>,
    /// Addresses at which this process listens for the other peers.
    pub binds: Vec<BindSettings>,
}

impl Plan {
    /// Computes the limits that follow from the connections of the process, and of each proxy without a limit of its own
    /// (`-N`; 0: those of the process): without `fullconn`, servers get their whole `maxconn` at a tenth of the connections
    /// that frontends may send to their backend.
    pub fn settle(&self, connections: usize, of_proxies: usize) {
        let silent = self.frontends.iter().filter(|frontend| frontend.tally.limit() == 0);
        silent.for_each(|frontend| frontend.tally.set_limit(of_proxies));
        let most = |front: &usize| match self.frontends.get(*front).map_or(0, |frontend| frontend.tally.limit()) {
            0 => connections,
            limit => limit,
        };
        for (backend, senders) in self.backends.now().iter().zip(&self.senders) {
            let sum: usize = senders.iter().map(most).sum();
            backend.farm.set_full(u32::try_from(sum.div_ceil(10)).unwrap_or(u32::MAX).max(1));
        }
    }
}

/// Settings of `global` for the workers.
#[derive(Clone, Debug)]
pub struct ProcessPlan {
    /// Number of workers.
    pub workers: usize,
    /// `maxconn`: connections of all clients that the process can have at a time; 0: any. [`Limits`] has the number that it
    /// takes.
    pub maxconn: usize,
    /// `tune.bufsize`: bytes of a buffer, and so of a head.
    pub buffer_bytes: usize,
    /// `tune.maxrewrite`: a head shares `buffer_bytes` with the waiting part of its body, except for so many bytes, which are
    /// always there for rules. `None`: it shares them with nothing.
    pub rewrite_bytes: Option<usize>,
    /// `tune.memory.buffers`: bytes that may wait in the process.
    pub memory_bytes: usize,
    /// Compression's part.
    pub compression: terse_compress::settings::Process,
    /// HTTP/2 with clients.
    pub http2: Http2Settings,
    /// `tune.h2.be.*`.
    pub http2_servers: Http2Settings,
    /// Whether an expression asks for the cost of tasks.
    pub measures_tasks: bool,
}

/// A frontend.
pub struct Frontend {
    /// Its name.
    pub name: Arc<str>,
    /// Its number in statistics.
    pub id: u32,
    /// `guid`.
    pub guid: Option<Arc<str>>,
    /// `description`.
    pub description: Option<Arc<str>>,
    /// Its place among all proxies of the configuration; both halves of a `listen` have the same.
    pub order: usize,
    /// Its kind of traffic.
    pub mode: Mode,
    /// Its timeouts.
    pub timeouts: Timeouts,
    /// Its switches.
    pub options: Options,
    /// Whether it takes connections.
    pub gate: Gate,
    /// `option forwardfor`.
    pub forwarded_for: Option<ForwardedFor>,
    /// `option originalto`.
    pub original_to: Option<ForwardedFor>,
    /// `use_backend`, with the numbers of backends whose names are known.
    pub switches: Vec<(Arc<Switch>, Option<usize>)>,
    /// `force-be-switch`
    pub forced_switches: Vec<Condition>,
    /// `default_backend`, or for a `listen` its own back half, by its number.
    pub default_backend: Option<usize>,
    /// Of a `listen` its back half.
    pub own_backend: Option<Arc<Backend>>,
    /// `tcp-request`, `tcp-response`.
    pub tcp: TcpRules,
    /// Data that its expressions look at.
    pub looks: Needs,
    /// `filter` lines but those of compression.
    pub filters: Arc<FilterSettings>,
    /// `http-request`.
    pub request_rules: Vec<Arc<Rule>>,
    /// `http-response`.
    pub response_rules: Vec<Arc<Rule>>,
    /// `http-after-response`.
    pub after_rules: Vec<Arc<Rule>>,
    /// Service that answers requests itself, after the rules.
    pub service: Option<Arc<dyn Service>>,
    /// Error pages.
    pub pages: Pages,
    /// Strictness of the parser of requests.
    pub reading: Reading,
    /// Spelling of field names for clients (`option h1-case-adjust-bogus-client`).
    pub spellings: Option<Arc<Spellings>>,
    /// `monitor-uri`.
    pub monitor_uri: Option<Vec<u8>>,
    /// `monitor fail`.
    pub monitor_failures: Vec<Condition>,
    /// Settings of compression.
    pub compression: Option<Arc<Compression>>,
    /// Settings of decompression.
    pub decompression: Option<Arc<Decompression>>,
    /// `http-compression`: the layer that compresses on its hop.
    pub hop: HopMode,
    /// When bodies are compressed.
    pub compression_conditions: CompressionConditions,
    /// Its log.
    pub log: LogPlan,
    /// Its counters, and the limit of connections.
    pub tally: Tally,
    /// `max-session-srv-conns`: the most idle connections to servers that a session keeps for itself.
    pub own_connections: usize,
    /// `rate-limit sessions`: the most connections that are taken in a second, and how many there were.
    pub session_rate: Option<(u64, Rate)>,
    /// Place of its section in the configuration.
    pub place: Place,
}

/// A backend.
pub struct Backend {
    /// Its name.
    pub name: Arc<str>,
    /// Which backend of the process it is: a number that no other ever has ([`roll`]).
    pub number: usize,
    /// Its number in statistics.
    pub id: u32,
    /// `guid`.
    pub guid: Option<Arc<str>>,
    /// `description`.
    pub description: Option<Arc<str>>,
    /// Its place among all proxies of the configuration; both halves of a `listen` have the same.
    pub order: usize,
    /// Its kind of traffic.
    pub mode: Mode,
    /// Whether rules of other proxies may choose it.
    pub is_published: AtomicBool,
    /// Whether the configuration refers to it: then it stays.
    is_referenced: AtomicBool,
    /// Its servers.
    pub farm: Arc<Farm>,
    /// Which of them requests go to, as `stick` and `use-server` lines have it.
    pub sticking: Option<Box<Sticking>>,
    /// Whether requests are evidence of the health of any of them.
    pub observes: AtomicBool,
    /// `unique-id-format`, for its checks.
    pub unique_id: Option<LogFormat>,
    /// Its timeouts.
    pub timeouts: Timeouts,
    /// Its switches.
    pub options: Options,
    /// `option forwardfor`.
    pub forwarded_for: Option<ForwardedFor>,
    /// `option originalto`.
    pub original_to: Option<ForwardedFor>,
    /// `option forwarded`.
    pub forwarded: Option<Arc<Forwarded>>,
    /// `http-send-name-header`: the field that tells a server its name.
    pub name_header: Option<FieldName>,
    /// `retries`.
    pub retries: u32,
    /// `option redispatch`.
    pub redispatch: i32,
    /// `retry-on`.
    pub retry_on: RetryOn,
    /// `http-reuse`.
    pub reuse: Reuse,
    /// `tcp-request`, `tcp-response`.
    pub tcp: TcpRules,
    /// Data that its expressions look at.
    pub looks: Needs,
    /// `filter` lines but those of compression.
    pub filters: Arc<FilterSettings>,
    /// `http-request`.
    pub request_rules: Vec<Arc<Rule>>,
    /// `http-response`.
    pub response_rules: Vec<Arc<Rule>>,
    /// `http-after-response`.
    pub after_rules: Vec<Arc<Rule>>,
    /// Service that answers requests itself, after the rules.
    pub service: Option<Arc<dyn Service>>,
    /// Error pages.
    pub pages: Pages,
    /// Spelling of field names for servers (`option h1-case-adjust-bogus-server`).
    pub spellings: Option<Arc<Spellings>>,
    /// Settings of compression.
    pub compression: Option<Arc<Compression>>,
    /// Settings of decompression.
    pub decompression: Option<Arc<Decompression>>,
    /// `http-compression`: the layer that compresses on its hop.
    pub hop: HopMode,
    /// When bodies are compressed.
    pub compression_conditions: CompressionConditions,
    /// Owner of its servers' bodies, in memories of compressed bodies.
    pub owner: Owner,
    /// Whether it is the back half of this frontend: a `listen`.
    pub twin: Option<usize>,
    /// Whether it has a stick table: a table of its name may be a frontend's.
    has_table: bool,
    /// The log of its servers' changes.
    pub journal: Arc<Journal>,
    /// Its counters.
    pub tally: Tally,
    /// Place of its section in the configuration.
    pub place: Place,
}

/// An address to listen on.
#[derive(Clone, Debug)]
pub struct Bind {
    /// Its place in [`Plan::binds`].
    pub index: usize,
    /// Its frontend.
    pub frontend: usize,
    /// `id`, or else the next that is free in its frontend.
    pub id: u32,
    /// Settings of its line.
    pub settings: BindSettings,
    /// TLS acceptor of its connections; `None`: plain text.
    pub tls: Option<Arc<Acceptor>>,
    /// Counters of its own traffic; counted only under `option socket-stats`.
    pub tally: Option<Arc<Tally>>,
    /// Connections now, of all workers; counted only under a `maxconn`.
    pub connections: Arc<AtomicUsize>,
}

impl Bind {
    /// Its name in statistics: `name`, or else its number.
    pub fn label(&self) -> Cow<'_, str> {
        match &self.settings.name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("sock-{}", self.id)),
        }
    }

    /// Counts a connection against `maxconn`; false when it is reached and counts.
    pub fn admit(&self, beyond_limits: bool) -> bool {
        let Some(limit) = self.settings.maxconn else { return true };
        let admitted = self.connections.fetch_add(1, Relaxed) < limit || beyond_limits;
        if !admitted {
            self.leave();
        }
        admitted
    }

    /// Counts the end of an admitted connection.
    pub fn leave(&self) {
        if self.settings.maxconn.is_some() {
            self.connections.fetch_sub(1, Relaxed);
        }
    }
}

/// A frontend's log.
pub struct LogPlan {
    /// Targets of its lines; empty: there are none.
    pub journal: Journal,
    /// The line of a transaction; `None`: the short line of accepted connections.
    pub format: Option<LogFormat>,
    /// The line of a connection that was accepted, where transactions have none.
    pub connect_format: Option<LogFormat>,
    /// The line of a connection that failed before there was a transaction.
    pub error_format: Option<LogFormat>,
    /// The beginning of the line that such a connection has without it.
    pub failure_format: Option<LogFormat>,
    /// `log-format-sd`.
    pub structured_data: Option<LogFormat>,
    /// `unique-id-format`.
    pub unique_id: Option<LogFormat>,
    /// `unique-id-header`.
    pub unique_id_header: Option<Arc<[u8]>>,
    /// The level of lines.
    pub level: Level,
    /// The switches and captures, as they were written.
    pub settings: crate::log::LogSettings,
}

impl Frontend {
    /// Whether there are rules or a service for its requests, beside the rules on their first bytes.
    pub fn is_judged(&self) -> bool {
        !self.request_rules.is_empty() || self.service.is_some()
    }
}

impl Backend {
    /// Records that the configuration refers to it.
    pub(crate) fn refer(&self) {
        self.is_referenced.store(true, Relaxed);
    }

    /// Whether there are rules or a service for requests that came in by the frontend of this index. Rules that the two
    /// halves of a `listen` share have run already.
    pub fn is_judged(&self, by: usize) -> bool {
        let rules = !self.request_rules.is_empty() || !self.tcp.content.is_empty();
        self.twin != Some(by) && (rules || self.service.is_some())
    }
}

impl Plan {
    /// Computing time of the workers, in percent of the last second, on the average.
    pub fn busy_percent(&self) -> u8 {
        let sum: usize = self.busy_percents.iter().map(|busy| usize::from(busy.load(Relaxed))).sum();
        (sum / self.busy_percents.len().max(1)) as u8
    }

    /// The log of lines that are no client's: that of `global`, or else of the first frontend that logs.
    pub fn own_journal(&self) -> Option<&Journal> {
        let own = self.frontends.iter().map(|frontend| &frontend.log.journal).find(|journal| !journal.is_empty());
        if self.journal.is_empty() { own } else { Some(&self.journal) }
    }

    /// The connections whose bytes may go through pipes. Each proxy without a limit of its own has `of_proxies` (`-N`; 0:
    /// those of the process). A backend that may be added counts where no proxy allows it.
    pub fn spliced(&self, of_proxies: usize) -> Spliced {
        let mut spliced = Spliced::default();
        for frontend in self.frontends.iter().filter(|frontend| frontend.options.splice.any()) {
            match frontend.tally.limit() {
                0 if of_proxies == 0 => spliced.is_open = true,
                0 => spliced.frontends += of_proxies,
                limit => spliced.frontends = spliced.frontends.saturating_add(limit),
            }
        }
        for backend in self.backends.now().iter().filter(|backend| backend.options.splice.any()) {
            match backend.farm.said_full() {
                Some(full) => spliced.backends = spliced.backends.saturating_add(full as usize),
                None => spliced.open_backends += 1,
            }
        }
        spliced.is_open |= spliced == Spliced::default() && self.templates.splices;
        spliced
    }

    /// Whether any proxy sets compression, or a backend does that may be added.
    pub fn compresses(&self) -> bool {
        self.templates.compresses
            || self.frontends.iter().any(|front| front.compression.as_deref().is_some_and(Compression::is_on))
            || self.backends.now().iter().any(|back| back.compression.as_deref().is_some_and(Compression::is_on))
    }

    /// The time of tables at that moment, in milliseconds.
    pub fn table_ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    /// The addresses to listen on.
    pub fn binds(&self) -> &[Bind] {
        &self.binds
    }

    /// Number of servers in all backends.
    pub fn server_count(&self) -> usize {
        self.backends.now().iter().map(|backend| backend.farm.servers().len()).sum()
    }
}
