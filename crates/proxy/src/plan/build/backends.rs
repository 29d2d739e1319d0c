//! Back halves, and their farms.

use super::drafts::Draft;
use super::logs::{self, Logs, Speaker};
use super::{Building, Host, pages, tracking};
use crate::counters::Tally;
use crate::log::{FormatText, Journal};
use crate::plan::Backend;
use crate::plan::introduction;
use crate::registry::{Registries, Streams};
use crate::rules::restrict;
use crate::settings::{Mode, SwitchTarget};
use crate::stick::{StickSettings, Sticking};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use terse_balance::algorithm::settings::Balance;
use terse_balance::settings::ObservedLayer;
use terse_balance::{Ending, Ends, Farm, FarmContext, Server, Wardens};
use terse_compress::memory::Owner;
use terse_config::near::nearest;
use terse_config::{Diagnostic, Diagnostics, Severity};
use terse_http::h1::Spellings;
use terse_message::Who;
use terse_sample::{LogFormat, Needs, Usage};
use terse_tls::{Connector, ServerTls};

/// The back halves, in order.
pub(super) fn build(drafts: &mut [Draft], workshop: &Workshop, building: &mut Building<'_>) -> Vec<Arc<Backend>> {
    let mut backends: Vec<Arc<Backend>> = Vec::new();
    for draft in drafts.iter_mut().filter(|draft| draft.back.is_some()) {
        let backend = build_one(draft, workshop, building);
        backends.push(Arc::new(backend));
    }
    tracking::settle(drafts, &backends, building);
    backends
}

/// The frontends that may send to each backend, by their places: [`Plan::settle`](crate::plan::Plan::settle) computes
/// `fullconn` from them. A `use_backend` with an expression does not count for the backends that it may name, as in HAProxy.
pub(super) fn senders(drafts: &[Draft], backends: &[Arc<Backend>]) -> Vec<Vec<usize>> {
    let mut senders = vec![Vec::new(); backends.len()];
    for (front, draft) in drafts.iter().filter(|draft| draft.front.is_some()).enumerate() {
        let named = draft.proxy.switches.iter().filter_map(|switch| match &switch.target {
            SwitchTarget::Name(name) => Some(name.as_str()),
            SwitchTarget::Format(_) => None,
        });
        let default = draft.proxy.default_backend.as_ref().map(|(name, _)| name.as_str());
        let names: HashSet<&str> = named.chain(default).collect();
        for (at, backend) in backends.iter().enumerate() {
            let sends = names.contains(&*backend.name) || (draft.back == Some(at) && default.is_none());
            senders[at].extend(sends.then_some(front));
        }
    }
    senders
}

fn build_one(draft: &mut Draft, workshop: &Workshop, building: &mut Building<'_>) -> Backend {
    let own = Own::of(draft, &mut building.logs, building.diagnostics);
    let backend = workshop.backend(draft, own, building.error_sets, building.diagnostics);
    let farm = &backend.farm;
    match backend.mode {
        Mode::Log => {
            building.logs.settle(draft, farm, building.diagnostics);
            for server in farm.servers().iter().filter(|server| server.settings().tls.enabled) {
                let reason = format!("{}: server '{}' says 'ssl', and logs are sent without TLS", draft.label(), server.name());
                building.diagnostics.alert(&draft.place, reason);
            }
        }
        Mode::Http | Mode::Tcp => refuse_log_words(draft, farm, building.diagnostics),
    }
    find_checks(farm, building);
    tell_of_portless_checks(draft, farm, building.diagnostics);
    farm.servers().iter().for_each(|server| introduce(server, farm, draft, building));
    backend
}

/// Parts of a backend that its lines alone do not give.
#[derive(Clone)]
pub(super) struct Own {
    journal: Arc<Journal>,
    unique_id: Option<LogFormat>,
}

impl Own {
    /// Opens the log of a section, and compiles its formats.
    pub(super) fn of(draft: &Draft, logs: &mut Logs<'_>, diagnostics: &mut Diagnostics) -> Own {
        let journal = Arc::new(logs.journal(&draft.log, diagnostics));
        // Only checks use it: a fault in it is reported where requests have it.
        let (format, own) = (draft.log.unique_id_format.as_ref(), (&draft.name, &draft.acls));
        let unique_id = logs.compile(format, (Needs::REQUEST, Usage::Id), own, &mut Diagnostics::default());
        Own { journal, unique_id }
    }
}

/// Means that all backends are made with.
pub(super) struct Workshop {
    pub(super) host: Host,
    /// Spelling of field names for the proxies that set it.
    spellings: Option<Arc<Spellings>>,
    speaker: Arc<Speaker>,
    /// Observers of their servers.
    pub(super) wardens: Arc<Wardens>,
    /// The way to the streams that end with a server.
    pub(super) registries: Arc<Registries>,
}

impl Workshop {
    pub(super) fn new(host: &Host, spellings: &Option<Arc<Spellings>>) -> Workshop {
        let speaker = Speaker::new(&host.sinks);
        Workshop {
            host: host.clone(),
            spellings: spellings.clone(),
            speaker,
            wardens: Arc::default(),
            registries: Arc::new(Registries::new(host.workers)),
        }
    }

    /// Makes a backend, whose number is the place of its draft among backends. Faults are reported.
    pub(super) fn backend(&self, draft: &mut Draft, own: Own, error_sets: &pages::Sets, diagnostics: &mut Diagnostics) -> Backend {
        let Own { journal, unique_id } = own;
        let mut timeouts = draft.proxy.timeouts;
        // The old keyword for the connect timeout set these, too.
        timeouts.queue = timeouts.queue.or(timeouts.connect);
        timeouts.tarpit = timeouts.tarpit.or(timeouts.connect);
        let context = FarmContext {
            id: draft.id,
            has_own_id: draft.proxy.id.is_some(),
            name: draft.name.clone(),
            kind: draft.noun(),
            connect_timeout: timeouts.connect,
            journal: logs::farm_journal(journal.clone(), self.speaker.clone(), &self.host),
            started: self.host.started,
            wardens: self.wardens.clone(),
            ends: ends(&self.registries),
        };
        let farm = Farm::new(context, std::mem::take(&mut draft.farm));
        let sticking = sticking(std::mem::take(&mut draft.stick), &farm, diagnostics);
        let observes = farm.servers().iter().any(|server| server.settings().observe.layer == Some(ObservedLayer::Responses));
        let proxy = &draft.proxy;
        Backend {
            spellings: self.spellings.clone().filter(|_| proxy.options.spells_for_servers),
            unique_id,
            name: draft.name.clone(),
            guid: draft.proxy.guid.as_ref().map(|guid| guid.name.clone()),
            description: draft.proxy.description.as_deref().map(Arc::from),
            number: draft.back.unwrap_or_default(),
            id: draft.id,
            order: draft.order,
            mode: proxy.mode,
            farm,
            sticking,
            observes: AtomicBool::new(observes),
            timeouts,
            options: proxy.options,
            forwarded_for: proxy.forwarded_for.clone(),
            original_to: proxy.original_to.clone(),
            forwarded: proxy.forwarded.clone(),
            name_header: proxy.name_header.clone(),
            retries: proxy.retries.unwrap_or(DEFAULT_RETRIES),
            redispatch: proxy.redispatch,
            retry_on: proxy.retry_on.clone().unwrap_or_default(),
            reuse: proxy.reuse.unwrap_or_default(),
            is_published: AtomicBool::new(!proxy.unpublished),
            is_referenced: AtomicBool::new(false),
            tcp: proxy.tcp.clone(),
            looks: draft.acls.needs(),
            filters: proxy.filters.clone(),
            request_rules: restrict::rule(proxy.unusual_names).into_iter().chain(proxy.request_rules.iter().cloned()).collect(),
            response_rules: proxy.response_rules.clone(),
            after_rules: proxy.after_rules.clone(),
            service: proxy.service.clone(),
            pages: pages::of(&draft.errors, error_sets, diagnostics),
            compression: draft.compression.clone(),
            decompression: draft.decompression.clone(),
            hop: draft.hop,
            compression_conditions: proxy.compression.clone(),
            owner: Owner::new(&self.host.body_key, &draft.name),
            twin: draft.front,
            has_table: draft.table.is_some(),
            journal,
            tally: Tally::new(self.host.workers),
            place: draft.place.clone(),
        }
    }
}

/// Ends the streams of a server, on all workers.
fn ends(registries: &Arc<Registries>) -> Ends {
    let registries = registries.clone();
    Arc::new(move |server, why| {
        let who = match why {
            Ending::Down => Who::Down,
            Ending::Replaced => Who::Replaced,
        };
        registries.end(Streams::OnServer(server.slot()), who);
    })
}

/// Refuses settings that are for servers of logs alone.
pub(super) fn refuse_log_words(draft: &Draft, farm: &Farm, diagnostics: &mut Diagnostics) {
    let label = draft.label();
    for server in farm.servers().iter().filter(|server| server.settings().log.datagrams) {
        let reason = format!("{label}: server '{}' is reached over datagrams, which only 'mode log' sends", server.name());
        diagnostics.alert(&draft.place, reason);
    }
    if matches!(farm.settings().balance, Balance::Sticky | Balance::LogHash) {
        diagnostics.alert(&draft.place, format!("{label}: 'balance sticky' and 'balance log-hash' are for 'mode log'"));
    }
}

/// Reports checks without a port: checks have no client whose port they could go to. A server at the client's own address is
/// accepted, as HAProxy does, and found down.
fn tell_of_portless_checks(draft: &Draft, farm: &Farm, diagnostics: &mut Diagnostics) {
    for server in farm.servers().iter() {
        let check = &server.settings().check;
        let Some(destination) = server.address().destination().filter(|destination| destination.fixed_port().is_none()) else {
            continue;
        };
        let has_port = check.port.or(check.address_port).is_some();
        if !check.enabled || has_port || farm.script_of(server).names_its_ports() {
            continue;
        }
        let reason = format!("{}: server '{}' has neither service port nor check port", draft.label(), server.name());
        let severity = match check.address.unwrap_or(destination.ip).is_unspecified() {
            true => Severity::Notice,
            false => Severity::Alert,
        };
        let hint = "'port' on its line says where checks go";
        diagnostics.push(Diagnostic::new(severity, &draft.place, reason).hint(Some(hint)));
    }
}

/// Gives servers the checks of the sections that their lines name.
fn find_checks(farm: &Farm, building: &mut Building<'_>) {
    for server in farm.servers().iter() {
        let Some((name, place)) = &server.settings().check.section else { continue };
        match building.checks.get(name) {
            Some(probe) => server.check_by(probe),
            None => building.diagnostics.alert(place, format!("unable to find healthcheck section '{name}'")),
        }
    }
}

/// Prepares a server for its first connection.
fn introduce(server: &Server, farm: &Farm, draft: &Draft, building: &mut Building<'_>) {
    let Building { vault, logs, diagnostics, checks, .. } = building;
    let section = server.settings().check.section.as_ref().and_then(|(name, _)| checks.get(name));
    let probe = section.unwrap_or(&farm.settings().probe);
    let place = server.settings().place.as_ref().unwrap_or(&draft.place);
    let tls = &server.settings().tls;
    if !tls.enabled && tls.check != Some(true) {
        vault.find_trusted_of_server(tls, diagnostics);
    }
    let backend = introduction::Surroundings { probe, hop: draft.hop, mode: draft.proxy.mode, place };
    let mut compile = |text: &FormatText, diagnostics: &mut Diagnostics| {
        let have = (Needs::REQUEST.or(Needs::SERVER), Usage::Text);
        logs.compile(Some(text), have, (&draft.name, &draft.acls), diagnostics)
    };
    let secure = |tls: &ServerTls, diagnostics: &mut Diagnostics| Connector::build(tls, place, vault, diagnostics);
    introduction::of(server.settings(), &backend, &secure, &mut compile, diagnostics).give(server);
}

/// The lines about servers of requests; a server that is named must be there.
fn sticking(rules: StickSettings, farm: &Farm, diagnostics: &mut Diagnostics) -> Option<Box<Sticking>> {
    Sticking::new(rules, farm, |rule, name| {
        let servers = farm.servers();
        let near = nearest(name, servers.iter().map(|server| &**server.name()));
        let hint = near.first().map(|near| format!("did you mean '{near}'?"));
        let reason = format!("unable to find server '{name}' in backend '{}' referenced in a 'use-server' rule", farm.name());
        diagnostics.push(Diagnostic::new(Severity::Alert, &rule.place, reason).hint(hint));
    })
}

/// HAProxy's.
const DEFAULT_RETRIES: u32 = 3;
