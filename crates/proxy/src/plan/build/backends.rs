//! Back halves, and their farms.

use super::drafts::Draft;
use super::logs::{self, Speaker};
use super::{Building, pages};
use crate::counters::Tally;
use crate::log::FormatText;
use crate::plan::{Announcer, Backend};
use crate::rules::restrict;
use crate::settings::Mode;
use crate::stick::{StickSettings, Sticking};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use terse_balance::announcement::AnnouncedField;
use terse_balance::settings::Balance;
use terse_balance::{Farm, FarmContext, Server};
use terse_compress::memory::Owner;
use terse_config::near::nearest;
use terse_config::{Diagnostic, Diagnostics, Severity};
use terse_sample::{Needs, Usage};

/// The back halves, in order.
pub(super) fn build(drafts: &mut [Draft], building: &mut Building<'_>) -> Vec<Backend> {
    let speaker = Speaker::new(&building.host.sinks);
    let mut backends: Vec<Backend> = Vec::new();
    let mut first_server = 0;
    for draft in drafts.iter_mut().filter(|draft| draft.back.is_some()) {
        let backend = build_one(draft, first_server, &speaker, building);
        first_server += backend.farm.servers().len();
        backends.push(backend);
    }
    backends
}

fn build_one(draft: &mut Draft, first_server: usize, speaker: &Arc<Speaker>, building: &mut Building<'_>) -> Backend {
    let journal = Arc::new(building.logs.journal(&draft.log, building.diagnostics));
    let proxy = &draft.proxy;
    let mut timeouts = proxy.timeouts;
    // The old word for the time to connect was one for these too.
    timeouts.queue = timeouts.queue.or(timeouts.connect);
    timeouts.tarpit = timeouts.tarpit.or(timeouts.connect);
    let context = FarmContext {
        id: draft.id,
        name: draft.name.clone(),
        kind: draft.noun(),
        connect_timeout: timeouts.connect,
        journal: logs::farm_journal(journal.clone(), speaker.clone(), building.host),
        started: building.host.started,
    };
    let mode = proxy.mode;
    let farm = Farm::new(context, std::mem::take(&mut draft.farm));
    match mode {
        Mode::Log => building.logs.settle(draft, &farm, building.diagnostics),
        Mode::Http | Mode::Tcp => refuse_log_words(draft, &farm, building.diagnostics),
    }
    let sticking = sticking(std::mem::take(&mut draft.stick), &farm, building.diagnostics);
    let proxy = &draft.proxy;
    Backend {
        announcers: announcers(&farm, draft, building),
        name: draft.name.clone(),
        id: draft.id,
        order: draft.order,
        mode: proxy.mode,
        farm,
        sticking,
        first_server,
        timeouts,
        options: proxy.options,
        forwarded_for: proxy.forwarded_for.clone(),
        original_to: proxy.original_to.clone(),
        forwarded: proxy.forwarded.clone(),
        retries: proxy.retries.unwrap_or(DEFAULT_RETRIES),
        redispatch: proxy.redispatch,
        retry_on: proxy.retry_on.clone().unwrap_or_default(),
        reuse: proxy.reuse.unwrap_or_default(),
        is_published: AtomicBool::new(!proxy.unpublished),
        tcp: proxy.tcp.clone(),
        looks: draft.acls.needs(),
        filters: proxy.filters.clone(),
        request_rules: restrict::rule(proxy.unusual_names).into_iter().chain(proxy.request_rules.iter().cloned()).collect(),
        response_rules: proxy.response_rules.clone(),
        after_rules: proxy.after_rules.clone(),
        service: proxy.service.clone(),
        pages: pages::of(&draft.errors, building.error_sets, building.diagnostics),
        compression: draft.compression.clone(),
        decompression: draft.decompression.clone(),
        compression_conditions: proxy.compression.clone(),
        owner: Owner::new(&building.host.body_key, &draft.name),
        twin: draft.front,
        journal,
        tally: Tally::new(building.host.workers),
        place: draft.place.clone(),
    }
}

/// What only servers of logs have.
fn refuse_log_words(draft: &Draft, farm: &Farm, diagnostics: &mut Diagnostics) {
    let label = draft.label();
    for server in farm.servers().iter().filter(|server| server.settings().log.datagrams) {
        let reason = format!("{label}: server '{}' is reached over datagrams, which only 'mode log' sends", server.name());
        diagnostics.alert(&draft.place, reason);
    }
    if matches!(farm.settings().balance, Balance::Sticky | Balance::LogHash) {
        diagnostics.alert(&draft.place, format!("{label}: 'balance sticky' and 'balance log-hash' are for 'mode log'"));
    }
}

/// What servers are told by the PROXY protocol, with its formats compiled.
fn announcers(farm: &Farm, draft: &Draft, building: &mut Building<'_>) -> Vec<Option<Box<Announcer>>> {
    let announcer = |server: &Arc<Server>| {
        let told = server.settings().announcement.clone();
        told.version?;
        let mut fields = Vec::new();
        for AnnouncedField { kind, format, place } in &told.fields {
            let text = FormatText { text: format.to_vec(), place: place.clone() };
            let have = (Needs::REQUEST.or(Needs::SERVER), Usage::Text);
            fields.extend(
                building
                    .logs
                    .compile(Some(&text), have, (&draft.name, &draft.acls), building.diagnostics)
                    .map(|format| (*kind, format)),
            );
        }
        Some(Box::new(Announcer { told, fields }))
    };
    farm.servers().iter().map(announcer).collect()
}

/// The lines about servers of requests; a server that is named must be there.
fn sticking(rules: StickSettings, farm: &Farm, diagnostics: &mut Diagnostics) -> Option<Box<Sticking>> {
    Sticking::new(rules, farm, |rule, name| {
        let near = nearest(name, farm.servers().iter().map(|server| &**server.name()));
        let hint = near.first().map(|near| format!("did you mean '{near}'?"));
        let reason = format!("unable to find server '{name}' in backend '{}' referenced in a 'use-server' rule", farm.name());
        diagnostics.push(Diagnostic::new(Severity::Alert, &rule.place, reason).hint(hint));
    })
}

/// HAProxy's.
const DEFAULT_RETRIES: u32 = 3;
