//! Front halves, and the addresses that they listen on.

use super::drafts::Draft;
use super::{Building, pages, references};
use crate::counters::Tally;
use crate::gate::Gate;
use crate::plan::{Backend, Bind, Frontend};
use crate::rules::restrict;
use crate::settings::{BindSettings, Mode, Switch, SwitchTarget};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use terse_compress::Mode as HopMode;
use terse_compress::counters::Rate;
use terse_http::h1::{Reading, Targets};
use terse_tls::Acceptor;
use terse_tls::settings::Policy;

/// The front halves, in order, and all their addresses.
pub(super) fn build(drafts: &[Draft], backends: &[Arc<Backend>], building: &mut Building<'_>) -> (Vec<Frontend>, Vec<Bind>) {
    let mut frontends = Vec::new();
    let mut binds: Vec<Bind> = Vec::new();
    for draft in drafts {
        for (rule, name, place) in draft.proxy.idle_targets.iter().filter(|_| draft.back.is_some()) {
            references::backend(name, rule, place, draft, drafts, building.diagnostics);
        }
        let Some(frontend) = draft.front else { continue };
        for (settings, id) in draft.proxy.binds.iter().zip(numbers(&draft.proxy.binds)) {
            if let Some(reason) = misfit(settings, draft.is_http()) {
                building.diagnostics.alert(&settings.place, format!("{}: {reason}", draft.label()));
            }
            let mut settings = settings.clone();
            settings.backlog = settings.backlog.or(draft.proxy.backlog);
            let tally = draft.proxy.options.count_by_address.then(|| Arc::new(Tally::new(building.host.workers)));
            let tls = acceptor(&settings, draft, building);
            if !settings.tls.enabled {
                building.vault.find_trusted_of_bind(&settings.tls, building.diagnostics);
            }
            binds.push(Bind { index: binds.len(), frontend, id, settings, tls, tally, connections: Arc::default() });
        }
        let frontend = build_one(draft, drafts, backends, building);
        let named = frontend.switches.iter().filter_map(|(_, backend)| *backend).chain(frontend.default_backend);
        named.filter_map(|number| backends.get(number)).for_each(|backend| backend.refer());
        frontends.push(frontend);
    }
    (frontends, binds)
}

/// The TLS acceptor of an address, if its line has `ssl`.
fn acceptor(bind: &BindSettings, draft: &Draft, building: &mut Building<'_>) -> Option<Arc<Acceptor>> {
    let http = draft.proxy.mode == Mode::Http;
    let mut tls = Cow::Borrowed(&bind.tls);
    if draft.hop == HopMode::Off && tls.own.common.records == Policy::Allow {
        tls.to_mut().own.common.records = Policy::Detect;
    }
    tls.enabled.then(|| Acceptor::build(&tls, http, (&draft.name, &bind.place), &building.vault, building.diagnostics))?
}

/// Setting of an address's line that does not fit its frontend's mode.
fn misfit(bind: &BindSettings, is_http: bool) -> Option<&'static str> {
    match is_http {
        true => bind.carries_bytes.then_some("'proto none' is for connections of mode tcp"),
        false => {
            bind.protocol.map(|_| "'proto' names a version of HTTP, and connections of mode tcp are none: 'mode http' is missing")
        }
    }
}

/// The numbers of a frontend's addresses: their `id`, or else the first from their place on that no other has.
fn numbers(binds: &[BindSettings]) -> Vec<u32> {
    let mut taken: HashSet<u32> = binds.iter().filter_map(|bind| bind.id).collect();
    let mut next = 1;
    let number = |bind: &BindSettings| {
        let id = bind.id.unwrap_or_else(|| {
            while !taken.insert(next) {
                next += 1;
            }
            next
        });
        next += 1;
        id
    };
    binds.iter().map(number).collect()
}

fn build_one(draft: &Draft, drafts: &[Draft], backends: &[Arc<Backend>], building: &mut Building<'_>) -> Frontend {
    let proxy = &draft.proxy;
    if proxy.mode == Mode::Log {
        building.diagnostics.alert(&draft.place, format!("{}: mode 'log' is for backends", draft.label()));
    }
    let mut timeouts = proxy.timeouts;
    timeouts.tarpit = timeouts.tarpit.or(timeouts.connect);
    let default_backend = match &proxy.default_backend {
        Some((name, place)) => references::backend(name, "default_backend", place, draft, drafts, building.diagnostics),
        None => draft.back,
    };
    Frontend {
        name: draft.name.clone(),
        guid: draft.proxy.guid.as_ref().map(|guid| guid.name.clone()),
        description: draft.proxy.description.as_deref().map(Arc::from),
        id: draft.id,
        order: draft.order,
        mode: proxy.mode,
        timeouts,
        options: proxy.options,
        forwarded_for: proxy.forwarded_for.clone(),
        original_to: proxy.original_to.clone(),
        switches: switches(draft, drafts, building),
        default_backend,
        gate: Gate::default(),
        own_backend: draft.back.and_then(|number| backends.get(number)).cloned(),
        forced_switches: proxy.forced_switches.clone(),
        tcp: proxy.tcp.clone(),
        looks: draft.acls.needs(),
        filters: proxy.filters.clone(),
        request_rules: restrict::rule(proxy.unusual_names).into_iter().chain(proxy.request_rules.iter().cloned()).collect(),
        response_rules: proxy.response_rules.clone(),
        after_rules: proxy.after_rules.clone(),
        service: proxy.service.clone(),
        // For a `listen` section its back half reports the faults in them.
        pages: match draft.back {
            Some(_) => pages::of(&draft.errors, building.error_sets, &mut Default::default()),
            None => pages::of(&draft.errors, building.error_sets, building.diagnostics),
        },
        reading: Reading {
            targets: if proxy.options.loose_targets { Targets::Loose } else { Targets::Strict },
            conformance: building.conformance,
        },
        spellings: building.spellings.clone().filter(|_| proxy.options.spells_for_clients),
        monitor_uri: proxy.monitor_uri.clone(),
        monitor_failures: proxy.monitor_failures.clone(),
        compression: draft.compression.clone(),
        decompression: draft.decompression.clone(),
        hop: draft.hop,
        compression_conditions: proxy.compression.clone(),
        log: building.logs.plan(draft, building.diagnostics),
        own_connections: proxy.own_connections.unwrap_or(MOST_OWN),
        session_rate: proxy.session_rate.filter(|limit| *limit > 0).map(|limit| (limit, Rate::default())),
        tally: Tally::limited(building.host.workers, proxy.maxconn.unwrap_or(0)),
        place: draft.place.clone(),
    }
}

/// The `use_backend` lines, with the backends that they always mean. Lines with disabled backends are passed over.
fn switches(draft: &Draft, drafts: &[Draft], building: &mut Building<'_>) -> Vec<(Arc<Switch>, Option<usize>)> {
    let mut resolved = Vec::with_capacity(draft.proxy.switches.len());
    for switch in &draft.proxy.switches {
        let SwitchTarget::Name(name) = &switch.target else {
            resolved.push((switch.clone(), None));
            continue;
        };
        let backend = references::backend(name, "use_backend", &switch.place, draft, drafts, building.diagnostics);
        resolved.extend(backend.map(|backend| (switch.clone(), Some(backend))));
    }
    resolved
}

/// The most idle connections of a session's own, where no line sets it.
const MOST_OWN: usize = 5;
