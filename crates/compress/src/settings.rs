//! The configuration: a [`Compression`] for each section, a [`Process`] for `global`, joined for a request as [`Effective`].
//!
//! A request passes a frontend and a backend, and both may set `compression`. As with HAProxy the backend's setting goes
//! first, setting by setting; `offload` and `direction` of both are joined.

use crate::coding::{CODINGS, Coding, Level};
use crate::device::Wrapper;
use crate::dictionary;
use crate::engine::{Choice, EngineId, EngineSettings};
use crate::memory::Memory;
use crate::pace::{self, Pace};
use crate::policy::Plan;
use crate::range::EtagMode;
use crate::reason::Reason;
use regex::bytes::Regex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use terse_config::Setting;
use terse_message::Version;

/// Settings of a section for compression.
#[derive(Clone, Default, Debug)]
pub struct Compression {
    /// `compression on|off`. `off` holds until another line of the section turns compression on again.
    pub switch: Option<Switch>,
    /// Responses: `algo`, `algo-res`, `type`, `type-res`, `minsize-res`.
    pub response: Side,
    /// Requests' bodies: `algo-req`, `type-req`, `minsize-req`.
    pub request: Side,
    /// `direction`, once any setting of compression was made.
    pub directions: Option<Directions>,
    /// The `filter` lines, once there is one: a direction without its filter is off.
    pub filters: Option<Directions>,
    /// `offload`: the server shall not compress.
    pub offload: bool,
    /// `level <coding> <n>|auto`, `level auto`, by coding.
    pub levels: [Option<LevelWord>; CODINGS.len()],
    /// `vary on|off`.
    pub vary: Option<bool>,
    /// `sniff on|off`.
    pub sniff: Option<bool>,
    /// `http-version`: the lowest version of a client that is sent compressed bodies.
    pub http_version: Option<Version>,
    /// `disable-agent <regex>...`.
    pub disabled_agents: Vec<Regex>,
    /// `proxied ...`.
    pub proxied: Option<Proxied>,
    /// `collect <size>`: bytes of a body held for work on the whole of it.
    pub collect_bytes: Option<usize>,
    /// `etag weaken|suffix`.
    pub etag: Option<EtagMode>,
    /// `engine`: the engine that compresses whole bodies, beside software.
    pub engine: Option<Choice>,
    /// `memory ...`.
    pub memory: Option<MemoryLine>,
    /// `dictionary ...`.
    pub dictionary: Option<dictionary::Line>,
}

/// Settings of `compression on` and `compression off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Settings that no other line of the section makes are as [`Compression::settled`] has them.
    On,
    /// Nothing is compressed.
    Off,
}

/// Setting of `level` for a coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelWord {
    /// Always this level.
    Fixed(Level),
    /// By the body's size and the load: [`crate::pace`].
    Auto,
}

/// Setting of `memory`: whether compressed bodies are remembered, and the memory.
#[derive(Clone, Debug)]
pub struct MemoryLine {
    /// Which memory.
    pub place: MemoryPlace,
    /// `shared`: bodies for a single user are remembered too.
    pub shared: bool,
}

/// A memory that a `memory` line means.
#[derive(Clone, Debug)]
pub enum MemoryPlace {
    /// `off`: none.
    Off,
    /// `on`, as without a line: the process's.
    Common,
    /// `<size>`: the memory of this line. Sections that inherit the line share it.
    Own(Arc<Memory>),
}

/// The lists of a direction.
#[derive(Clone, Default, Debug)]
pub struct Side {
    /// Codings in the operator's order.
    pub algorithms: Vec<Coding>,
    /// Prefixes of Content-Type and suffixes (`+json`), in small letters; empty: any.
    pub types: Vec<Box<[u8]>>,
    /// Bodies that are known to be smaller stay as they are.
    pub min_bytes: Option<u64>,
}

/// Which bodies are meant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Directions {
    /// Bodies of requests.
    pub request: bool,
    /// Bodies of responses.
    pub response: bool,
}

/// For which requests that came through another proxy (they carry `Via`) responses are compressed: nginx's `gzip_proxied`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proxied {
    /// For all: HAProxy's way, and the default here.
    Any,
    /// When any of these holds; never when no flag is set.
    When(ProxiedWhen),
}

/// The flags of [`Proxied::When`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProxiedWhen {
    /// `expired`: Expires is not after Date, or cannot be read: no cache keeps it.
    pub expired: bool,
    /// `no-cache` in Cache-Control.
    pub no_cache: bool,
    /// `no-store` in Cache-Control.
    pub no_store: bool,
    /// `private` in Cache-Control.
    pub private: bool,
    /// No Last-Modified.
    pub no_last_modified: bool,
    /// No ETag.
    pub no_etag: bool,
    /// The request has Authorization.
    pub auth: bool,
}

/// Settings of `global` for compression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// `tune.comp.maxlevel`: the level where none is named, and the cap where a level is.
    pub max_level: Option<u8>,
    /// `maxcomprate`: limit of the bytes that enter coders in a second.
    pub most_rate: RateCap,
    /// `maxcompcpuusage`: percent of the processor's time; 100: any.
    pub max_cpu_percent: u8,
    /// `maxzlibmem`: bytes that coders may hold; 0: as much as the process's limit lets them.
    pub max_memory_bytes: usize,
    /// `tune.zlib.memlevel`, 1 to 9.
    pub memory_level: u8,
    /// `tune.zlib.windowsize`, 8 to 15: the window is two to the power of it, in bytes.
    pub window_bits: u8,
    /// `tune.comp.threads`: threads of the offload queue; `None`: one for each processor.
    pub threads: Option<usize>,
    /// `tune.comp.nice`: niceness of those threads relative to the workers.
    pub nice: u8,
    /// `tune.comp.queue`: jobs that may wait.
    pub queue_depth: usize,
    /// `tune.comp.coders`: coders that a client's connection may have at a time.
    pub coders: usize,
    /// The `engine` sections, by [`EngineId`].
    pub engines: Arc<[EngineSettings]>,
    /// `tune.comp.memory`: bytes of the memory of compressed bodies that proxies share; 0: none.
    pub memory_bytes: usize,
    /// `tune.dictionary.memory`: bytes of learned dictionaries; 0: nothing is learned.
    pub dictionary_bytes: usize,
    /// `dictionary-store`: the folder of learned dictionaries.
    pub dictionary_store: Option<dictionary::store::Place>,
    /// Treatment of tags without a `compression etag` line.
    pub etag: EtagMode,
    /// `http-conformance haproxy`: heads of answers to HEAD are left alone, as are errors' pages and responses of HTTP/1.0
    /// servers; Vary is added to compressed responses alone.
    pub as_haproxy: bool,
}

/// Kilobytes a second that may enter coders; 0: any number. An operator changes it at run time, so copies share it.
#[derive(Clone, Default, Debug)]
pub struct RateCap(Arc<AtomicU64>);

impl RateCap {
    /// The limit in kilobytes.
    pub fn kbytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Changes it.
    pub fn set(&self, kbytes: u64) {
        self.0.store(kbytes, Relaxed);
    }
}

impl PartialEq for RateCap {
    fn eq(&self, other: &RateCap) -> bool {
        self.kbytes() == other.kbytes()
    }
}

impl Eq for RateCap {}

/// Default of `tune.zlib.memlevel`. A coder codes a block of symbols in a single step, 16,384 of them at 8, zlib's own: 150
/// µs, for which a worker's other clients wait. At 6 it is a quarter: 55 µs, 0.7 % more bytes of a bitmap and 6 % fewer of a
/// table of numbers.
pub(crate) const MEMORY_LEVEL: u8 = 6;

impl Default for Process {
    fn default() -> Process {
        Process {
            max_level: None,
            most_rate: RateCap::default(),
            max_cpu_percent: 100,
            max_memory_bytes: 0,
            memory_level: MEMORY_LEVEL,
            window_bits: 15,
            threads: None,
            nice: crate::offload::DEFAULT_NICE,
            queue_depth: crate::offload::DEFAULT_DEPTH,
            coders: crate::slots::DEFAULT_CODERS,
            engines: Arc::default(),
            memory_bytes: crate::memory::DEFAULT_BYTES,
            dictionary_bytes: dictionary::learning::DEFAULT_MEMORY,
            dictionary_store: None,
            etag: EtagMode::default(),
            as_haproxy: false,
        }
    }
}

impl Process {
    /// Which of its brakes is on: `maxcomprate`, while more bytes a second enter coders, or `maxcompcpuusage`, while the processor is
    /// idle for fewer percent of its time.
    pub fn brake(&self, bytes_per_second: u64, idle_percent: u8) -> Option<Reason> {
        let most = self.most_rate.kbytes();
        if most > 0 && bytes_per_second > most.saturating_mul(1024) {
            Some(Reason::RateBrake)
        } else if idle_percent < 100u8.saturating_sub(self.max_cpu_percent) {
            Some(Reason::CpuBrake)
        } else {
            None
        }
    }
}

impl Setting for Compression {
    fn inherit(&self) -> Compression {
        // HAProxy ignores `offload` in a defaults section, and warns of it.
        Compression { offload: false, ..self.clone() }
    }
}

impl Setting for Process {
    fn inherit(&self) -> Process {
        self.clone()
    }
}

/// A dictionary that is larger wants level 6.
const LARGE_DICTIONARY: usize = 512 << 10;

/// The highest level with a dictionary: reading one takes 2 to 7 ns a byte up to level 9, and 75 to 600 from level 13 on (measured with
/// libzstd 1.5).
const MOST_WITH_DICTIONARY: Level = Level(9);

/// Bytes of a body held for work on the whole of it, where a dictionary is used: a whole body states its length, and can be remembered.
const DICTIONARY_COLLECT_BYTES: usize = 4 << 20;

/// The codings of `compression on`, best first.
pub const ON_CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

/// `minsize-res` of `compression on`, in bytes: below, a coded body hardly fits into fewer packets.
pub const ON_MIN_BYTES: u64 = 256;

/// The types of `compression on`: text, and types that compress as text does.
pub const ON_TYPES: [&str; 28] = [
    "text/",
    "+json",
    "+xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/json",
    "application/jsonl",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
    "application/toml",
    "application/sql",
    "application/graphql",
    "application/wasm",
    "application/protobuf",
    "application/x-protobuf",
    "application/vnd.ms-fontobject",
    "application/font-sfnt",
    "application/x-font-ttf",
    "application/x-font-otf",
    "font/otf",
    "font/ttf",
    "font/collection",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];

impl Compression {
    /// The same with the settings that `compression on` stands for, where the section has none. Types add up with those of
    /// the section.
    #[must_use]
    pub fn settled(mut self) -> Compression {
        if self.switch != Some(Switch::On) {
            return self;
        }
        let response = &mut self.response;
        if response.algorithms.is_empty() {
            response.algorithms = ON_CODINGS.to_vec();
        }
        response.types.extend(ON_TYPES.iter().map(|name| name.as_bytes().into()));
        response.min_bytes.get_or_insert(ON_MIN_BYTES);
        for level in &mut self.levels {
            level.get_or_insert(LevelWord::Auto);
        }
        self.http_version.get_or_insert(Version::Http10);
        self
    }

    /// Whether it can compress anything.
    pub fn is_on(&self) -> bool {
        self.switch != Some(Switch::Off)
    }

    /// The directions that are on: those named, less those whose filter is missing.
    pub fn directions(&self) -> Directions {
        let said = self.directions.unwrap_or(Directions { request: false, response: true });
        match self.filters {
            Some(filters) => Directions { request: said.request && filters.request, response: said.response && filters.response },
            None => said,
        }
    }
}

/// The settings for a request: of its frontend and its backend.
#[derive(Clone, Copy, Debug)]
pub struct Effective<'a> {
    front: Option<&'a Compression>,
    back: Option<&'a Compression>,
    process: &'a Process,
}

impl<'a> Effective<'a> {
    /// Joins them. For a `listen` section both are the same. `compression off` of the backend holds for both.
    pub fn new(front: Option<&'a Compression>, back: Option<&'a Compression>, process: &'a Process) -> Effective<'a> {
        let front = front.filter(|front| front.is_on() && back.is_none_or(Compression::is_on));
        Effective { front, back: back.filter(|back| back.is_on()), process }
    }

    /// Whether there is any setting.
    pub fn is_configured(&self) -> bool {
        self.front.is_some() || self.back.is_some()
    }

    /// The directions that are on.
    pub fn directions(&self) -> Directions {
        self.both().map(Compression::directions).fold(Directions::default(), |all, one| Directions {
            request: all.request || one.request,
            response: all.response || one.response,
        })
    }

    /// The codings for responses, in the operator's order.
    pub fn response_codings(&self) -> &'a [Coding] {
        self.first(|c| (!c.response.algorithms.is_empty()).then_some(&c.response.algorithms[..])).unwrap_or_default()
    }

    /// The coding for requests' bodies: the coding named last, as with HAProxy.
    pub fn request_coding(&self) -> Option<Coding> {
        self.first(|c| c.request.algorithms.last().copied())
    }

    /// The types of responses; empty: any.
    pub fn response_types(&self) -> &'a [Box<[u8]>] {
        self.first(|c| (!c.response.types.is_empty()).then_some(&c.response.types[..])).unwrap_or_default()
    }

    /// The types of requests' bodies; empty: any.
    pub fn request_types(&self) -> &'a [Box<[u8]>] {
        self.first(|c| (!c.request.types.is_empty()).then_some(&c.request.types[..])).unwrap_or_default()
    }

    /// Responses known to be smaller stay as they are.
    pub fn response_min_bytes(&self) -> u64 {
        self.first(|c| c.response.min_bytes).unwrap_or(0)
    }

    /// Requests' bodies known to be smaller stay as they are.
    pub fn request_min_bytes(&self) -> u64 {
        self.first(|c| c.request.min_bytes).unwrap_or(0)
    }

    /// The level for a coding: the set level, or for those with zlib's levels `tune.comp.maxlevel` as HAProxy has it, or the
    /// coding's own default; never above `tune.comp.maxlevel`. The size and the pace count for `auto` alone.
    pub fn level(&self, coding: Coding, bytes: Option<u64>, pace: Pace) -> Level {
        let said = self.level_word(coding).map(|word| match word {
            LevelWord::Fixed(level) => level,
            LevelWord::Auto => pace::level(coding, bytes, pace),
        });
        match self.process.max_level.map(Level) {
            _ if coding.is_identity() => coding.entry().default_level,
            Some(max) if coding.entry().has_zlib_levels => said.map_or(max, |level| level.min(max)),
            Some(max) => said.unwrap_or(coding.entry().default_level).min(max),
            None => said.unwrap_or(coding.entry().default_level),
        }
    }

    /// The level with a dictionary of so many bytes: that of zstd, and no less than what such a dictionary is worth. Nothing where there is
    /// no time for it.
    ///
    /// At level 3 a script of 1.4 MB came out at 36 % of brotli's level 5, at 6 at 4 %; one of 640 KB at level 1 at 122 %.
    pub fn dictionary_level(&self, dictionary: usize, bytes: Option<u64>, pace: Pace) -> Option<Level> {
        if bytes.is_some_and(|bytes| !crate::dictionary::is_worth(dictionary, bytes)) {
            return None;
        }
        let least = if dictionary > LARGE_DICTIONARY { Level(6) } else { Level(3) };
        let level = self.level(Coding::Zstd, bytes, pace);
        let is_capped = self.process.max_level.is_some_and(|most| Level(most) < least);
        let is_rushed = pace == Pace::Rushed && level < least;
        (!is_capped && !is_rushed).then(|| level.clamp(least, MOST_WITH_DICTIONARY))
    }

    /// The dictionaries of the proxy, if it has any.
    pub fn dictionary(&self) -> Option<&'a dictionary::Line> {
        self.first(|c| c.dictionary.as_ref()).filter(|line| line.is_on())
    }

    /// What is said about a coding's level.
    pub fn level_word(&self, coding: Coding) -> Option<LevelWord> {
        self.first(|c| c.levels[coding as usize])
    }

    /// The least level of a remembered form that may be sent. With `auto` it is any while there is little time, because that
    /// form costs nothing; later a better form is made.
    pub fn least_level(&self, plan: Plan, pace: Pace) -> Level {
        match self.level_word(plan.coding) {
            Some(LevelWord::Auto) if pace < Pace::Steady => Level(0),
            _ => plan.level,
        }
    }

    /// The highest level that may be tried in idle time, where `tune.comp.maxlevel` sets it.
    pub fn most_level(&self) -> Level {
        Level(self.process.max_level.unwrap_or(u8::MAX))
    }

    /// The setting of the memory of compressed bodies.
    pub fn memory(&self) -> Option<&'a MemoryLine> {
        self.first(|c| c.memory.as_ref())
    }

    /// Whether the server is kept from compressing.
    pub fn offload(&self) -> bool {
        self.both().any(|c| c.offload)
    }

    /// Whether Vary is kept right.
    pub fn vary(&self) -> bool {
        self.first(|c| c.vary).unwrap_or(true)
    }

    /// Whether the first bytes are looked at.
    pub fn sniff(&self) -> bool {
        self.first(|c| c.sniff).unwrap_or(true)
    }

    /// The lowest version of a client that is sent compressed bodies.
    pub fn http_version(&self) -> Version {
        self.first(|c| c.http_version).unwrap_or(Version::Http11)
    }

    /// The User-Agents that are sent plain bodies, beside those that [`crate::agent`] knows.
    pub fn disabled_agents(&self) -> &'a [Regex] {
        self.first(|c| (!c.disabled_agents.is_empty()).then_some(&c.disabled_agents[..])).unwrap_or_default()
    }

    /// The setting for requests that came through another proxy.
    pub fn proxied(&self) -> Proxied {
        self.first(|c| c.proxied).unwrap_or(Proxied::Any)
    }

    /// Bytes of a body held for work on the whole of it: the set number, or as much as the engine takes of that coding.
    pub fn collect_bytes(&self, coding: Coding) -> usize {
        let engine = || match self.first(|c| c.engine.as_ref()) {
            Some(Choice::Found { largest, .. }) => Wrapper::of(coding).map(|_| (*largest).max(crate::body::DEFAULT_COLLECT_BYTES)),
            _ => None,
        };
        let usual = if coding.has_dictionary() { DICTIONARY_COLLECT_BYTES } else { crate::body::DEFAULT_COLLECT_BYTES };
        self.first(|c| c.collect_bytes).or_else(engine).unwrap_or(usual)
    }

    /// The engine for whole bodies, if it is not software.
    pub fn engine(&self) -> Option<EngineId> {
        match self.first(|c| c.engine.as_ref()) {
            Some(Choice::Found { id, .. }) => Some(*id),
            _ => None,
        }
    }

    /// Treatment of a compressed response's ETag.
    pub fn etag(&self) -> EtagMode {
        self.first(|c| c.etag).unwrap_or(self.process.etag)
    }

    /// Settings of `global`.
    pub fn process(&self) -> &'a Process {
        self.process
    }

    fn both(&self) -> impl Iterator<Item = &'a Compression> {
        self.back.into_iter().chain(self.front)
    }

    fn first<T>(&self, said: impl Fn(&'a Compression) -> Option<T>) -> Option<T> {
        self.both().find_map(said)
    }
}
