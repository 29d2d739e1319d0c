//! Sections, and the whole file.

use crate::diagnostic::Place;
use crate::environment::Environment;
use crate::keyword::Keyword;
use crate::settings::Settings;
use std::fmt;
use std::sync::Arc;

/// The kinds of section that hold keywords.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum SectionKind {
    /// `global`: the process.
    Global = 1,
    /// `defaults`: settings that the proxies after it start with.
    Defaults = 2,
    /// `frontend`: listeners.
    Frontend = 4,
    /// `backend`: servers.
    Backend = 8,
    /// `listen`: both in one.
    Listen = 16,
    /// `http-errors`: named sets of error files.
    HttpErrors = 32,
    /// `ring`: events in memory.
    Ring = 64,
    /// `log-forward`: syslog messages that are passed on.
    LogForward = 128,
    /// `log-profile`: format of a log target's lines.
    LogProfile = 256,
    /// `userlist`: users and their passwords.
    UserList = 512,
    /// `engine`: other engines of compression.
    Engine = 1024,
    /// `fcgi-app`: parameters of a FastCGI application.
    FcgiApp = 2048,
    /// `resolvers`: name servers.
    Resolvers = 4096,
    /// `cache`: responses in memory.
    Cache = 8192,
    /// `crt-store`: certificates, and the files of their parts.
    CrtStore = 16384,
    /// `healthcheck`: methods of checking servers.
    HealthCheck = 32768,
    /// `peers`: processes that share stick tables.
    Peers = 65536,
    /// `dictionary`: bytes that clients hold, for compression.
    Dictionary = 131_072,
}

/// A set of kinds of section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sections(pub u32);

impl Sections {
    /// `global` alone.
    pub const GLOBAL: Sections = Sections(1);
    /// `defaults`, `frontend`, `backend`, `listen`.
    pub const PROXY: Sections = Sections(2 | 4 | 8 | 16);
    /// `defaults`, `frontend`, `listen`.
    pub const FRONT: Sections = Sections(2 | 4 | 16);
    /// `defaults`, `backend`, `listen`.
    pub const BACK: Sections = Sections(2 | 8 | 16);
    /// `frontend` alone.
    pub const FRONTEND: Sections = Sections(SectionKind::Frontend as u32);
    /// `backend` alone.
    pub const BACKEND: Sections = Sections(SectionKind::Backend as u32);
    /// `frontend`, `listen`.
    pub const FRONT_ONLY: Sections = Sections(4 | 16);
    /// `backend`, `listen`.
    pub const BACK_ONLY: Sections = Sections(8 | 16);
    /// `frontend`, `backend`, `listen`.
    pub const PROXY_ONLY: Sections = Sections(4 | 8 | 16);
    /// `http-errors`.
    pub const HTTP_ERRORS: Sections = Sections(32);
    /// `ring`.
    pub const RING: Sections = Sections(64);
    /// `log-forward`.
    pub const LOG_FORWARD: Sections = Sections(128);
    /// `log-profile`.
    pub const LOG_PROFILE: Sections = Sections(256);
    /// `userlist`.
    pub const USER_LIST: Sections = Sections(512);
    /// `engine`.
    pub const ENGINE: Sections = Sections(1024);
    /// `fcgi-app`.
    pub const FCGI_APP: Sections = Sections(2048);
    /// `resolvers`.
    pub const RESOLVERS: Sections = Sections(4096);
    /// `cache`.
    pub const CACHE: Sections = Sections(8192);
    /// `crt-store`.
    pub const CRT_STORE: Sections = Sections(16384);
    /// `healthcheck`.
    pub const HEALTH_CHECK: Sections = Sections(32768);
    /// `peers`.
    pub const PEERS: Sections = Sections(65536);
    /// `dictionary`.
    pub const DICTIONARY: Sections = Sections(131_072);

    /// The kinds in the set, in the manual's order.
    pub fn kinds(self) -> impl Iterator<Item = SectionKind> {
        SectionKind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    /// Whether a kind is in the set.
    pub const fn has(self, kind: SectionKind) -> bool {
        self.0 & kind as u32 != 0
    }

    /// The union of both sets.
    pub const fn or(self, other: Sections) -> Sections {
        Sections(self.0 | other.0)
    }
}

impl fmt::Display for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.kinds().map(SectionKind::name).collect();
        f.write_str(&names.join(","))
    }
}

impl SectionKind {
    /// All kinds, in the manual's order.
    pub const ALL: [SectionKind; 18] = [
        SectionKind::Global,
        SectionKind::Defaults,
        SectionKind::Frontend,
        SectionKind::Listen,
        SectionKind::Backend,
        SectionKind::HttpErrors,
        SectionKind::Ring,
        SectionKind::LogForward,
        SectionKind::LogProfile,
        SectionKind::UserList,
        SectionKind::Engine,
        SectionKind::Dictionary,
        SectionKind::FcgiApp,
        SectionKind::Resolvers,
        SectionKind::Cache,
        SectionKind::CrtStore,
        SectionKind::HealthCheck,
        SectionKind::Peers,
    ];

    /// The kind that a word opens.
    pub fn from_name(word: &str) -> Option<SectionKind> {
        SectionKind::ALL.into_iter().find(|kind| kind.name() == word)
    }

    /// The word that opens it.
    pub const fn name(self) -> &'static str {
        match self {
            SectionKind::Global => "global",
            SectionKind::Defaults => "defaults",
            SectionKind::Frontend => "frontend",
            SectionKind::Backend => "backend",
            SectionKind::Listen => "listen",
            SectionKind::HttpErrors => "http-errors",
            SectionKind::Ring => "ring",
            SectionKind::LogForward => "log-forward",
            SectionKind::LogProfile => "log-profile",
            SectionKind::UserList => "userlist",
            SectionKind::Engine => "engine",
            SectionKind::Dictionary => "dictionary",
            SectionKind::FcgiApp => "fcgi-app",
            SectionKind::Resolvers => "resolvers",
            SectionKind::Cache => "cache",
            SectionKind::CrtStore => "crt-store",
            SectionKind::HealthCheck => "healthcheck",
            SectionKind::Peers => "peers",
        }
    }

    /// Whether it has listeners.
    pub const fn is_front(self) -> bool {
        matches!(self, SectionKind::Frontend | SectionKind::Listen)
    }

    /// Whether it is a proxy: the settings of `defaults` are for proxies alone.
    pub const fn is_proxy(self) -> bool {
        self.is_front() || self.is_back()
    }

    /// Whether it has servers.
    pub const fn is_back(self) -> bool {
        matches!(self, SectionKind::Backend | SectionKind::Listen)
    }
}

/// A section and the settings of its keywords.
pub struct Section {
    /// Its kind.
    pub kind: SectionKind,
    /// Its name; empty for `global` and nameless `defaults`.
    pub name: Arc<str>,
    /// Its beginning.
    pub place: Place,
    /// The settings of its keywords, on top of those of its defaults.
    pub settings: Settings,
    /// The lines of a proxy that were read, in order: their keywords and places. Those of its defaults are not among them,
    /// nor are lines that take something back.
    pub lines: Vec<(&'static Keyword, Place)>,
    /// Whether a line was refused, of this section or of the defaults that it begins with: its settings are not known in
    /// full.
    pub doubtful: bool,
}

impl Section {
    /// A section that begins there with these settings.
    pub(crate) fn new(kind: SectionKind, name: Arc<str>, place: Place, settings: Settings) -> Section {
        Section { kind, name, place, settings, lines: Vec::new(), doubtful: false }
    }
}

/// A `defaults` section with a name, which sections may begin with.
pub struct Base {
    /// The section.
    pub section: Section,
    /// The kind of the first section that began with it.
    pub heir: Option<SectionKind>,
}

impl Base {
    /// The reasons why a section of that kind cannot begin with it.
    pub fn objections(&self, kind: SectionKind) -> impl Iterator<Item = String> {
        let Section { name, place, settings, .. } = &self.section;
        settings.heirs().filter_map(move |heirs| {
            let first = self.heir.filter(|first| heirs.one_side && *first != kind);
            let already = match first {
                _ if !heirs.kinds.has(kind) => String::new(),
                Some(first) => format!(": a {} does already", first.name()),
                None => return None,
            };
            let (because, file, line) = (heirs.because, &place.file, place.line);
            Some(format!("cannot begin with defaults section '{name}' (declared at {file}:{line}), which holds {because}{already}"))
        })
    }
}

/// A configuration, read.
pub struct Config {
    /// All `global` sections in one.
    pub global: Section,
    /// `frontend`, `backend`, `listen` and the other named sections, in order.
    pub sections: Vec<Section>,
    /// `defaults` sections with names, in order.
    pub bases: Vec<Base>,
    /// Settings that belong to no section: names of variables, tables of samples.
    pub shared: Settings,
    /// Tuning keywords in use that have no effect here: the place, and the reason (listed by `-V`).
    pub accepted: Vec<(Place, &'static str)>,
    /// The environment as the last line left it.
    pub environment: Environment,
}
