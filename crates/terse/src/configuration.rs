//! From the files to a configuration that the process can run.

use crate::args::quick::{CONSOLE, Quick};
use crate::args::{Action, Arguments, Service};
use crate::environment::{LOCAL_PEER, environment};
use crate::listening;
use crate::process::identity::Identity;
use crate::process::limits::{self, Limits, Memory, Wishes};
use crate::process::variables::ProcessVariables;
use crate::process::{ProcessSettings, sys, workers};
use crate::report::Report;
use crate::sockets::{self, Wanted};
use crate::{circles, engines, files, keywords, restored};
use rustix::thread::CapabilitySet;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use terse_admin::{AdminSettings, Consoles, prometheus, stats_file};
use terse_balance::Resolver;
use terse_compress::EngineSettings;
use terse_config::{Config, Diagnostic, Diagnostics, Environment, Loader, Place, Settings, Severity, Source};
use terse_io::PipeLimit;
use terse_names::FamilySettings;
use terse_proxy::log::Sinks;
use terse_proxy::plan::build::{Host, build};
use terse_proxy::plan::{Backend, Plan};
use terse_proxy::script::BuiltIn;

/// A configuration that can be run.
pub struct Configuration {
    /// Configuration of the workers.
    pub plan: Plan,
    /// Settings of the process from `global`.
    pub process: ProcessSettings,
    /// User, group and root folder of the process.
    pub identity: Identity,
    /// Limits of the process.
    pub limits: Limits,
    /// Listening addresses: the lines of the plan, followed by those of stats sockets.
    pub wanted: Vec<Wanted>,
    /// Settings of stats sockets from `global`.
    pub admin: AdminSettings,
    /// The variables of the environment, as the configuration has left them.
    pub environment: Vec<(String, String)>,
}

impl Configuration {
    /// True if traffic can come in.
    pub fn listens(&self) -> bool {
        let datagrams = self.plan.syslog.forwarders.iter().any(|forwarder| !forwarder.settings.datagrams.is_empty());
        datagrams || !self.wanted.is_empty()
    }

    /// Lowers the limits to fewer descriptors than were wanted; returns the number of connections for which these suffice, if
    /// smaller.
    pub fn settle_for(&mut self, descriptors: u64) -> Option<u32> {
        let limits = &mut self.limits;
        limits.descriptors = descriptors;
        self.plan.descriptors = Arc::new(self.plan.descriptors.lowered(count(descriptors)));
        let connections = limits.connections_within(descriptors);
        *self.plan.limits.connections.get_mut() = connections as usize;
        (connections < limits.connections).then_some(connections)
    }
}

/// Result of reading configuration files.
pub struct Findings {
    /// The configuration, if the files can be understood.
    pub configuration: Option<Configuration>,
    /// Faults and warnings.
    pub diagnostics: Diagnostics,
    /// Keywords that change nothing here, and the reasons.
    pub accepted: Vec<(Place, &'static str)>,
    /// True if a warning is an error: `-dW`, `zero-warning`.
    zero_warning: bool,
}

impl Findings {
    /// True if the configuration can be run.
    pub fn is_valid(&self) -> bool {
        let too_bad = if self.zero_warning { Severity::Warning } else { Severity::Alert };
        self.configuration.is_some() && self.diagnostics.worst() < Some(too_bad)
    }
}

/// There is no configuration to run. All faults have been reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unusable;

/// Remarks about a configuration that can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remarks {
    /// There were warnings.
    pub warnings: bool,
}

/// Reads the files that the command line names.
///
/// # Errors
/// [`Unusable`], once all files that cannot be read have been reported.
pub fn sources(arguments: &Arguments, report: &Report) -> Result<Vec<Source>, Unusable> {
    if let Some(folder) = &arguments.folder
        && let Err(error) = std::env::set_current_dir(folder)
    {
        report.alert(format_args!("Could not change to directory {} : {error}", folder.display()));
        return Err(Unusable);
    }
    if !arguments.quick.servers.is_empty() {
        return Ok(vec![Source { name: "--to".into(), bytes: quick(arguments).file().into_bytes() }]);
    }
    files::read(&arguments.files).map_err(|missing| {
        missing.iter().for_each(|missing| report.alert(format_args!("config : {missing}")));
        Unusable
    })
}

/// Returns the options that replace a file. A console without an address moves to the next free port if another program has the
/// usual one. The log of the start tells its address.
fn quick(arguments: &Arguments) -> Quick {
    let mut quick = arguments.quick.clone();
    let is_first = arguments.old.is_empty() && arguments.takeover.is_none() && arguments.service == Service::Plain;
    if quick.console.is_none() && arguments.action == Action::Run && is_first {
        quick.console = sockets::free(CONSOLE).map(|address| Some(address.to_string()));
    }
    quick
}

/// Interprets the files. All their faults are reported in one run.
///
/// # Errors
/// [`Unusable`], once all reasons have been reported.
pub fn understand(arguments: &Arguments, sources: &[Source], report: &Report) -> Result<(Configuration, Remarks), Unusable> {
    let Findings { configuration, diagnostics, zero_warning, .. } = find(arguments, sources, report);
    report.diagnostics(&diagnostics);
    let worst = diagnostics.worst();
    match configuration {
        Some(_) if worst == Some(Severity::Warning) && zero_warning => {
            report.alert("Some warnings were found and 'zero-warning' is set. Aborting.");
            Err(Unusable)
        }
        Some(configuration) if worst < Some(Severity::Alert) => {
            Ok((configuration, Remarks { warnings: worst == Some(Severity::Warning) }))
        }
        _ => {
            report.alert("config : Fatal errors found in configuration.");
            Err(Unusable)
        }
    }
}

/// Interprets the files without reporting their faults.
pub fn find(arguments: &Arguments, sources: &[Source], report: &Report) -> Findings {
    let here = std::env::current_dir();
    let findings = load(arguments, sources, report);
    // `default-path` lines have led elsewhere.
    if let Ok(here) = here {
        let _ = std::env::set_current_dir(here);
    }
    findings
}

fn load(arguments: &Arguments, sources: &[Source], report: &Report) -> Findings {
    let mut environment = environment(arguments, sources);
    environment.variables.extend(terse_proxy::log::FORMAT_VARIABLES.map(|(name, text)| (name.to_owned(), text.to_owned())));
    let (mut config, mut diagnostics) = read(sources, &environment);
    // `console` expands to sections, which come after all files.
    let consoles = config.global.settings.get::<Consoles>().and_then(Consoles::lines);
    let with_consoles: Vec<Source>;
    let sources = match consoles {
        Some(lines) => {
            with_consoles = sources.iter().cloned().chain([Source { name: "console".into(), bytes: lines.into_bytes() }]).collect();
            (config, diagnostics) = read(&with_consoles, &environment);
            &with_consoles[..]
        }
        None => sources,
    };
    // A peer's name from the file is known to all of its lines, like one from the command line.
    let named = config.global.settings.get::<ProcessSettings>().and_then(|process| process.localpeer.clone());
    if let Some(name) = named.filter(|_| arguments.localpeer.is_none()) {
        environment.variables.insert(LOCAL_PEER.to_owned(), name);
        (config, diagnostics) = read(sources, &environment);
    }
    if arguments.only_ipv4 {
        config.shared.entry::<FamilySettings>().accepted = Some((true, false));
    }
    if arguments.trusts_servers {
        config.global.settings.entry::<terse_tls::Global>().server_verify = false;
    }
    for (place, why) in &config.accepted {
        let word = place.text.get(place.span.clone()).unwrap_or_default();
        report.detail(format_args!("config : [{}:{}] : '{word}' changes nothing here: {why}", place.file, place.line));
    }
    let variables: ProcessVariables = config.global.settings.take().unwrap_or_default();
    let process: ProcessSettings = config.global.settings.take().unwrap_or_default();
    let zero_warning = arguments.zero_warning || process.zero_warning;
    let accepted = std::mem::take(&mut config.accepted);
    let configuration = plan(arguments, config, process, report, &mut diagnostics);
    if let Some(configuration) = &configuration {
        variables.apply(&configuration.plan.process_variables);
    }
    Findings { configuration, diagnostics, accepted, zero_warning }
}

/// Reads the `engine` sections of files. Everything else in them is parsed, but not interpreted.
///
/// # Errors
/// The faults of the files, a line each.
pub fn engines(paths: &[PathBuf]) -> Result<Vec<EngineSettings>, String> {
    let sources = files::read(paths).map_err(|missing| missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let arguments = Arguments::default();
    let (mut config, mut diagnostics) = read(&sources, &environment(&arguments, &sources));
    let engines = terse_compress::engine::settle(&mut config.sections, &mut diagnostics);
    let alerts = diagnostics.iter().filter(|diagnostic| diagnostic.severity >= Severity::Alert);
    let line = |alert: &Diagnostic| match &alert.place {
        Some(place) => format!("[{}:{}] {}", place.file, place.line, alert.reason),
        None => alert.reason.clone(),
    };
    let alerts: Vec<String> = alerts.map(line).collect();
    if alerts.is_empty() { Ok(engines.to_vec()) } else { Err(alerts.join("\n")) }
}

fn read(sources: &[Source], environment: &Environment) -> (Config, Diagnostics) {
    let mut shared = Settings::default();
    *shared.entry() = keywords::samples(environment);
    shared.entry::<BuiltIn>().0.push((prometheus::NAME, prometheus::service));
    *shared.entry() = Resolver(Some(Arc::new(resolve)));
    Loader { tables: keywords::tables(), environment: environment.clone() }.load(sources, shared)
}

/// Returns a key from the system's random numbers, which no other process knows.
fn random_key(diagnostics: &mut Diagnostics) -> [u8; 32] {
    let mut key = [0; 32];
    match rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty()) {
        // Up to 256 bytes come at once.
        Ok(got) if got == key.len() => {}
        _ => diagnostics.alert(&Place::nowhere(), "the system gives no random bytes"),
    }
    key
}

/// The addresses of a server's name, as the system has them.
fn resolve(name: &str) -> Vec<IpAddr> {
    (name, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
}

fn plan(
    arguments: &Arguments,
    mut config: Config,
    process: ProcessSettings,
    report: &Report,
    diagnostics: &mut Diagnostics,
) -> Option<Configuration> {
    let identity = Identity::resolve(process.user.as_ref(), process.group.as_ref(), diagnostics);
    let buffer_bytes = process.buffer_bytes.unwrap_or(BUFFER_BYTES);
    let memory_bytes = process.memory_bytes.unwrap_or_else(|| limits::buffer_memory(arguments.memory_limit_mib));
    let said = report.clone();
    let host = Host {
        workers: workers::count(&process),
        maxconn: arguments.maxconn.or(process.maxconn).unwrap_or(0) as usize,
        buffer_bytes,
        rewrite_bytes: process.rewrite_bytes,
        memory_bytes,
        http2: process.http2,
        http2_servers: process.http2_servers,
        body_key: random_key(diagnostics),
        tag: arguments.program.clone(),
        started: Instant::now(),
        sinks: Sinks::new(sys::duplicate),
        notices: Some(Arc::new(move |_, line| said.warn(line))),
        local_peer: config.environment.variables.get(LOCAL_PEER).map_or_else(|| "".into(), |name| name.as_str().into()),
    };
    let tls_sessions = config
        .global
        .settings
        .get::<terse_tls::Global>()
        .map_or_else(|| terse_tls::Global::default().cache_size, |tls| tls.cache_size);
    let admin = AdminSettings::take(&mut config);
    let mut environment: Vec<(String, String)> = config.environment.variables.clone().into_iter().collect();
    environment.sort();
    let mut plan = build(config, &host, diagnostics);
    let mut wanted =
        plan.as_ref().map(|plan| listening::wanted(plan, &admin, &process, arguments, diagnostics)).unwrap_or_default();
    let plan_now = plan.as_mut()?;
    if let Some((file, place)) = &admin.stats_file {
        let loaded = files::bounded(file, stats_file::MOST_BYTES).and_then(|bytes| stats_file::load(plan_now, &bytes));
        if let Err(reason) = loaded {
            diagnostics.warn(place, format!("counters begin at 0: '{file}': {reason}"));
        }
    }
    disguises(plan_now, &process, identity, diagnostics);
    restored::states(plan_now, &process, host.started, diagnostics);
    engines::examine(&plan_now.process.compression.engines, &identity, diagnostics);
    let copies = arguments.no_splice || arguments.no_zero_copy || arguments.no_fast_forward || process.no_splice;
    let of_proxies = arguments.proxy_maxconn.unwrap_or(0) as usize;
    let spliced = (!copies).then(|| plan_now.spliced(of_proxies));
    let fixed = fixed_descriptors(plan_now, &wanted, &admin, host.workers);
    let memory = arguments.memory_limit_mib.map(|mib| memory(mib, plan_now, tls_sessions.into()));
    let limits = match Wishes::new(&process, arguments.maxconn, memory, fixed, spliced).settle() {
        Ok(limits) => limits,
        Err(contradiction) => {
            diagnostics.alert(&Place::nowhere(), contradiction.to_string());
            return None;
        }
    };
    plan_now.process.maxconn = limits.connections as usize;
    plan_now.pipes = Arc::new(PipeLimit::new(limits.pipes as usize, process.pipe_bytes));
    plan_now.descriptors = Arc::new(plan_now.descriptors.limited(count(limits.needed), count(limits.descriptors), count(fixed)));
    *plan_now.limits.connections.get_mut() = limits.connections as usize;
    if let Some(connections) = limits.tls_connections {
        plan_now.limits.tls_connections = connections as usize;
    }
    plan_now.settle(limits.connections as usize, of_proxies);
    listening::settle(&mut wanted, plan_now);
    Some(Configuration { plan: plan?, process, identity, limits, wanted, admin, environment })
}

/// Demands on the memory of `-m`.
fn memory(mib: u64, plan: &Plan, tls_sessions: u64) -> Memory {
    let backends = plan.backends.now();
    let to_servers = backends.iter().any(|backend| backend.farm.servers().iter().any(|server| server.settings().tls.enabled));
    let from_clients = plan.binds().iter().any(|bind| bind.tls.is_some());
    Memory {
        mib,
        buffer_bytes: plan.process.buffer_bytes as u64,
        coders_bytes: plan.process.compression.max_memory_bytes as u64,
        tls_sessions,
        tls_sides: u64::from(from_clients) + u64::from(to_servers),
        tls_connections: plan.limits.tls_connections as u64,
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Servers that are to see other addresses than this machine's need rights that a process loses with root.
fn disguises(plan: &Plan, process: &ProcessSettings, identity: Identity, diagnostics: &mut Diagnostics) {
    let enough = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    if !identity.leaves_root() || process.capabilities.is_some_and(|kept| kept.intersects(enough)) {
        return;
    }
    for backend in plan.backends.now().iter() {
        let servers = backend.farm.servers();
        if let Some(server) = servers.iter().find(|server| server.settings().source.guise.is_some()) {
            let (backend, server) = (&backend.name, server.name());
            let why = format!("server '{backend}/{server}': 'usesrc' needs a right of root that the process gives up by 'user'");
            let place = process.user.as_ref().map_or_else(Place::nowhere, |account| account.place.clone());
            diagnostics.alert(&place, format!("{why}; write 'setcap cap_net_raw' in 'global'"));
        }
    }
}

/// Descriptors that do not belong to connections: listeners and their duplicates, checks and agents, each worker's runtime, logs, engines,
/// clients of stats sockets, sockets to name servers, questions for certificates' states.
fn fixed_descriptors(plan: &Plan, wanted: &[Wanted], admin: &AdminSettings, workers: usize) -> u64 {
    let listeners: usize = wanted.iter().map(|wanted| wanted.count).sum();
    let apart = plan.process.compression.engines.iter().filter(|engine| !engine.in_process);
    let engines: usize = apart.map(terse_card::remote::descriptors).sum();
    let backends = plan.backends.now();
    let agents = |backend: &Arc<Backend>| backend.farm.servers().iter().filter(|server| server.settings().agent.enabled).count();
    let checks = plan.server_count() + backends.iter().map(agents).sum::<usize>();
    let commands = if admin.sockets.is_empty() { 0 } else { admin.maxconn() };
    let messages: usize = plan.syslog.forwarders.iter().map(|forwarder| forwarder.settings.maxconn).sum();
    let peers = circles::descriptors(plan, admin.sockets.len(), wanted);
    let names: usize = plan.resolvers.iter().map(|section| section.descriptors()).sum();
    let apart = commands + messages + peers + plan.syslog.carriers.len() + names + terse_proxy::ocsp::descriptors(plan);
    (2 * listeners + checks + WORKER_DESCRIPTORS * workers + engines + apart) as u64
}

/// HAProxy's default.
const BUFFER_BYTES: usize = 16384;

/// A runtime has four (poll, wake-up, signals), a logger up to three.
const WORKER_DESCRIPTORS: usize = 8;
