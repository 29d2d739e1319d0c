//! From a configuration to a plan: names found, formats compiled, halves told apart.
//!
//! ```text
//! sections -> drafts (settings, number, index of the back half) -> remarks -> backends and their farms -> frontends and their binds
//! ```
//!
//! Nothing is opened but logs: names of syslog servers are looked up, descriptors found.

mod backends;
mod caches;
mod drafts;
mod frontends;
mod guids;
mod logs;
mod pages;
mod peers;
mod references;
mod remarks;
mod syslog;
mod tables;
mod templates;
mod tracking;

pub use templates::{Templates, Wanted};

use crate::connection::settings::Http2Settings;
use crate::descriptors::Descriptors;
use crate::effort::Asked;
use crate::keywords::conformance::ConformanceSettings;
use crate::keywords::spelling::SpellingSettings;
use crate::limits::Limits;
use crate::log::{Directory, LogSettings, Sinks, Syslog};
use crate::plan::roll::Backends;
use crate::plan::{Plan, ProcessPlan, RECORDS_SHARE};
use crate::script::Scripts;
use crate::track::TrackSettings;
use crate::track::name::Known;
use crate::types::Types;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use terse_balance::FarmSettings;
use terse_balance::check::{Probe, ProbeKind};
use terse_balance::keywords::base::Purge;
use terse_compress::range::EtagMode;
use terse_compress::{Limit, Memory, Within};
use terse_config::{Config, Diagnostic, Diagnostics, SectionKind, Severity};
use terse_http::h1::Spellings;
use terse_message::Conformance;
use terse_sample::vars;
use terse_sample::{Language, ProcessStore, Registry};
use terse_tls::Vault;
use terse_tls::settings::Defaults;

/// Facts of the program and settings of `global` that the plan depends on.
#[derive(Clone)]
pub struct Host {
    /// Number of workers.
    pub workers: usize,
    /// `maxconn`: connections of the process; 0: any.
    pub maxconn: usize,
    /// `tune.bufsize`.
    pub buffer_bytes: usize,
    /// `tune.maxrewrite`, where it is set.
    pub rewrite_bytes: Option<usize>,
    /// `tune.memory.buffers`.
    pub memory_bytes: usize,
    /// `tune.h2.fe.*`.
    pub http2: Http2Settings,
    /// `tune.h2.be.*`.
    pub http2_servers: Http2Settings,
    /// A key that is known to this process alone, for the names of compressed bodies.
    pub body_key: [u8; 32],
    /// The program's name in log lines, when no `log-tag` gives another.
    pub tag: String,
    /// When the process started.
    pub started: Instant,
    /// Destination of log lines.
    pub sinks: Arc<Sinks>,
    /// A further destination of lines about servers, such as standard error.
    pub notices: Option<terse_balance::Journal>,
    /// Name of this process for the other processes of `peers` sections.
    pub local_peer: Arc<str>,
}

/// Builds the plan. All faults are reported; `None` if there is any.
///
/// `diagnostics` holds the reports of the configuration's parser. It may hold alerts: then further faults are reported, but
/// not names that seem to be missing, because they may stand in a line that was refused.
pub fn build(config: Config, host: &Host, diagnostics: &mut Diagnostics) -> Option<Plan> {
    let Config { mut global, mut sections, bases, mut shared, .. } = config;
    let complete = diagnostics.worst() != Some(Severity::Alert);
    let global_log = global.settings.take::<LogSettings>().unwrap_or_default();
    let variables = global.settings.take::<vars::Limits>().unwrap_or_default();
    let spellings = global.settings.take::<SpellingSettings>().unwrap_or_default().settle(diagnostics);
    let ConformanceSettings(conformance) = global.settings.take().unwrap_or_default();
    let limits = Limits::new(global.settings.take().unwrap_or_default());
    limits.connections.store(host.maxconn, Relaxed);
    let descriptors = global.settings.take().unwrap_or_default();
    let mut compression = global.settings.take::<terse_compress::settings::Process>().unwrap_or_default();
    if conformance == Conformance::HAProxy {
        (compression.etag, compression.as_haproxy) = (EtagMode::Weaken, true);
    }
    compression.engines = terse_compress::engine::settle(&mut sections, diagnostics);
    let files = shared.entry::<Registry>().files.clone();
    let read = |path: &str, most| match &files {
        Some(files) => files.read_at_most(path, most),
        None => Err("files cannot be read here".into()),
    };
    let dictionaries = terse_compress::dictionary::settle(&mut sections, &read, diagnostics);
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    dictionaries.all().for_each(|dictionary| dictionary.since_s.store(now_s, Relaxed));
    dictionaries.learner().limit(compression.dictionary_bytes);
    dictionaries.learner().keep_in(compression.dictionary_store.take());
    let log_sections = syslog::Sections::take(&mut sections, &mut shared);
    let error_sets = pages::sets(&sections);
    pages::check_uses(&shared, &error_sets, diagnostics);
    let resolver_sections: Vec<_> = sections.extract_if(.., |section| section.kind == SectionKind::Resolvers).collect();
    let stores: Vec<_> = sections.extract_if(.., |section| section.kind == SectionKind::CrtStore).collect();
    let checks = sections.extract_if(.., |section| section.kind == SectionKind::HealthCheck);
    let checks =
        checks.map(|mut section| (section.name.clone(), section.settings.take::<FarmSettings>().unwrap_or_default().probe));
    let checks: HashMap<_, _> = checks.collect();
    let caches = caches::build(&mut sections, &host.body_key, complete, diagnostics);
    let mut circles = peers::take(&mut sections);
    let mut drafts = drafts::of(sections, diagnostics);
    let purge = shared.take::<Purge>().unwrap_or_default();
    for draft in drafts.iter().filter(|draft| draft.kind.is_back() && draft.farm.probe.kind == ProbeKind::Program) {
        if let Some((place, reason)) = draft.farm.probe.program.fault() {
            diagnostics.alert(place, reason);
        }
    }
    if purge.servers {
        drafts.iter_mut().for_each(|draft| draft.farm.purge());
    }
    let named = |draft: &drafts::Draft| {
        let servers = draft.farm.servers.iter().filter_map(|server| server.resolution.resolvers.clone());
        servers.collect::<Vec<_>>()
    };
    let named = drafts.iter().flat_map(named).collect();
    let resolvers = terse_names::settle(resolver_sections, &mut shared, named, complete, diagnostics);
    guids::check(&drafts, diagnostics);
    let turns: Vec<_> = drafts.iter().map(|draft| remarks::turns(draft, &drafts)).collect();
    for (draft, turns) in drafts.iter_mut().zip(turns).filter(|_| complete) {
        remarks::of(draft, turns, &global_log, diagnostics);
    }
    let tracking = shared.take::<TrackSettings>().unwrap_or_default();
    let workshop = backends::Workshop::new(host, &spellings);
    let tokens = shared.entry::<Registry>().own();
    let vault = Vault::new(global.settings.take::<terse_tls::Global>().unwrap_or_default()).telling(tokens);
    let mut building = Building {
        host,
        logs: logs::Logs {
            global: &global_log,
            host,
            registry: shared.entry::<Registry>(),
            directory: Directory::new(&host.sinks, host.buffer_bytes),
        },
        error_sets: &error_sets,
        checks: &checks,
        spellings,
        conformance,
        vault: Arc::new(vault),
        diagnostics,
    };
    building.vault.read_parameters(building.diagnostics);
    building.vault.read_stores(stores, building.diagnostics);
    building.logs.prepare(&log_sections, &drafts, &building.vault, building.diagnostics);
    let backends = backends::build(&mut drafts, &workshop, &mut building);
    let senders = backends::senders(&drafts, &backends);
    let (frontends, binds) = frontends::build(&drafts, &backends, &mut building);
    let journal = building.logs.journal(&global_log, building.diagnostics);
    let forwarders = building.logs.forwarders(log_sections, &building.vault, building.diagnostics);
    building.vault.settle_tokens();
    // Formats of logs name tables and rings too: they are compiled by now.
    let references = std::mem::take(&mut building.logs.registry.references);
    references::rings(&references, &mut building.logs.directory, complete, building.diagnostics);
    for reference in references.iter().filter(|_| complete) {
        if let Some(reason) = reference.problem.and_then(|problem| problem(&*reference.to)) {
            building.diagnostics.push(Diagnostic::new(Severity::Alert, &reference.place, reason));
        }
    }
    references::names(&references, &drafts, (&frontends, &backends), complete, building.diagnostics);
    caches::find(&references, &caches, complete, building.diagnostics);
    let measures_tasks = references.iter().any(|reference| reference.to.is::<Asked>());
    let tables = tables::build(&mut drafts, &mut circles, references, complete, building.diagnostics);
    let peers = peers::build(circles, &tables, &mut building, complete);
    let _ = building.logs.registry.own::<Known>().0.set(tables.clone());
    // From here on, names in expressions are looked up at once, and a name that is not found refuses no file.
    let bases = if purge.proxies || !complete { Vec::new() } else { bases };
    let registries = workshop.registries.clone();
    let templates = Templates::new(bases, workshop, purge.servers, (&compression.engines, &dictionaries), &mut building.logs);
    let of_templates = std::mem::take(&mut building.logs.registry.references);
    references::rings(&of_templates, &mut building.logs.directory, false, building.diagnostics);
    let vault = building.vault.clone();
    let (rings, carriers) = building.logs.directory.into_parts();
    if diagnostics.worst() == Some(Severity::Alert) {
        return None;
    }
    let disabled = drafts.iter().filter(|draft| draft.kind.is_back() && draft.back.is_none());
    let disabled_backends = disabled.map(|draft| draft.name.clone()).collect();
    let scripts = shared.take::<Scripts>().unwrap_or_default().library;
    let tls_defaults = shared.take::<Defaults>().unwrap_or_default();
    let registry = shared.entry::<Registry>();
    let process_variables = ProcessStore::new(registry.names.clone(), variables);
    let patterns = registry.patterns.clone();
    for (place, reason) in patterns.finish() {
        diagnostics.push(Diagnostic::new(Severity::Warning, &place, format!("{reason}: this rule changes nothing that matters")));
    }
    let bodies = Some(compression.memory_bytes).filter(|bytes| *bytes > 0).map(|bytes| Arc::new(Memory::new(bytes)));
    let memory = Arc::new(Limit::new(host.memory_bytes));
    let coders_bytes = Some(compression.max_memory_bytes).filter(|bytes| *bytes > 0).unwrap_or(usize::MAX);
    let plan = Plan {
        senders,
        bodies,
        caches,
        dictionaries,
        busy_percents: (0..host.workers.max(1)).map(|_| AtomicU8::new(0)).collect(),
        tables,
        peers,
        tracking,
        started: host.started,
        language: Language::new(registry, &process_variables),
        frontends,
        backends: Backends::new(backends),
        templates,
        binds,
        process_variables,
        limits,
        registries,
        process: ProcessPlan {
            workers: host.workers.max(1),
            maxconn: host.maxconn,
            buffer_bytes: host.buffer_bytes,
            // HAProxy's rule: at least half of a buffer is for the bytes that come.
            rewrite_bytes: host.rewrite_bytes.map(|bytes| bytes.min(host.buffer_bytes / 2)),
            memory_bytes: host.memory_bytes,
            compression,
            http2: host.http2,
            http2_servers: host.http2_servers,
            measures_tasks,
        },
        sinks: host.sinks.clone(),
        syslog: Syslog { rings, carriers: carriers.into_iter().map(Arc::new).collect(), forwarders },
        journal,
        coders_memory: Arc::new(Within::new(memory.clone(), coders_bytes)),
        records_memory: Arc::new(Within::new(memory.clone(), host.memory_bytes / RECORDS_SHARE)),
        memory,
        pipes: Arc::default(),
        descriptors: Arc::new(Descriptors::new(descriptors, host.workers.max(1))),
        disabled_backends,
        types: Types::new(host.workers),
        error_sets,
        resolvers,
        patterns,
        vault,
        tls_defaults,
        scripts,
    };
    plan.settle(host.maxconn, 0);
    Some(plan)
}

/// State of the construction.
struct Building<'a> {
    host: &'a Host,
    logs: logs::Logs<'a>,
    error_sets: &'a pages::Sets,
    /// Spelling of field names for the proxies that set it.
    spellings: Option<Arc<Spellings>>,
    /// `http-conformance`
    conformance: Conformance,
    /// `healthcheck` sections.
    checks: &'a HashMap<Arc<str>, Probe>,
    /// Certificates.
    vault: Arc<Vault>,
    diagnostics: &'a mut Diagnostics,
}

#[cfg(test)]
mod tests;
