//! Further parts of logs, beside the proxies' own lines: rings, profiles, backends of logs, relayed messages.

use super::drafts::Draft;
use super::logs::Logs;
use crate::log::{FormatText, ForwardSettings, Forwarder, LogSettings, Missing, Profile, ProfileSettings, ProfileUse, ProfileUses};
use crate::log::{Received, RingSettings};
use crate::settings::{BindSettings, Mode};
use std::sync::Arc;
use terse_balance::Farm;
use terse_balance::algorithm::settings::{Balance, HashMethod};
use terse_balance::keywords::server::NO_CLIENT;
use terse_config::{Diagnostic, Diagnostics, Place, Section, SectionKind, Settings, Severity};
use terse_sample::{AclSet, Compiler, Expr, Needs, Usage};
use terse_tls::{Acceptor, Connector, Vault};

/// The sections that are about logs and nothing else.
#[derive(Default)]
pub(super) struct Sections {
    rings: Vec<(Arc<str>, Place, RingSettings)>,
    profiles: Vec<(Arc<str>, Option<String>, ProfileSettings)>,
    forwarders: Vec<(Arc<str>, Place, ForwardSettings, LogSettings)>,
    profile_uses: Vec<ProfileUse>,
}

impl Sections {
    /// Takes the sections about logs out of a configuration.
    pub(super) fn take(sections: &mut [Section], shared: &mut Settings) -> Sections {
        let mut own = Sections { profile_uses: shared.take::<ProfileUses>().unwrap_or_default().uses, ..Sections::default() };
        for Section { kind, name, place, settings, .. } in sections {
            let (name, place) = (name.clone(), place.clone());
            match kind {
                SectionKind::Ring => own.rings.push((name, place, settings.take().unwrap_or_default())),
                SectionKind::LogProfile => {
                    let tag = settings.take::<LogSettings>().unwrap_or_default().tag;
                    own.profiles.push((name, tag, settings.take().unwrap_or_default()));
                }
                SectionKind::LogForward => {
                    let log = settings.take().unwrap_or_default();
                    own.forwarders.push((name, place, settings.take().unwrap_or_default(), log));
                }
                _ => {}
            }
        }
        own
    }
}

impl Logs<'_> {
    /// Everything that targets may name: rings, profiles, backends of logs.
    pub(super) fn prepare(&mut self, sections: &Sections, drafts: &[Draft], vault: &Vault, diagnostics: &mut Diagnostics) {
        for (name, place, settings) in &sections.rings {
            let (ring, mut servers) = settings.ring(name, self.host.buffer_bytes, place);
            for (server, settings) in servers.iter_mut().zip(&settings.servers).filter(|(_, settings)| settings.tls.enabled) {
                server.connector = Connector::build(&settings.tls, place, vault, diagnostics);
            }
            if settings.max_len.is_some_and(|len| len > ring.capacity() / 2) {
                diagnostics.warn(place, format!("ring '{name}': events are cut to half the ring, {} bytes", ring.capacity() / 2));
            }
            self.directory.add_ring(ring, servers);
        }
        for (name, tag, settings) in &sections.profiles {
            let acls = AclSet::default();
            let own = (name, &acls);
            let mut compile = |text: &FormatText| self.compile(Some(text), (Needs::ALL, Usage::Log), own, diagnostics);
            let profile = Profile::new(name.clone(), tag.as_deref(), settings, &mut compile);
            self.directory.add_profile(profile);
        }
        for draft in drafts.iter().filter(|draft| draft.proxy.mode == Mode::Log && draft.back.is_some()) {
            self.directory.add_balancer(&draft.name);
        }
        for used in &sections.profile_uses {
            match self.directory.profile(&used.name) {
                // A rule of a defaults section is found once for all proxies that inherit it.
                Ok(profile) => drop(used.found.set(profile)),
                Err(Missing { reason, hint }) => {
                    diagnostics.push(Diagnostic::new(Severity::Alert, &used.place, reason).hint(hint));
                }
            }
        }
    }

    /// The servers of a backend of logs.
    pub(super) fn settle(&mut self, draft: &Draft, farm: &Arc<Farm>, diagnostics: &mut Diagnostics) {
        let label = draft.label();
        let servers = farm.servers();
        let datagrams = servers.iter().filter(|server| server.settings().log.datagrams).count();
        if datagrams > 0 && datagrams < servers.len() {
            diagnostics.alert(&draft.place, format!("{label} mixes servers over datagrams with servers over streams"));
        }
        for server in servers.iter().filter(|server| server.settings().follows_clients()) {
            diagnostics.alert(&draft.place, format!("{label}: server '{}': {NO_CLIENT}", server.name()));
        }
        let settings = farm.settings();
        let known = matches!(settings.balance, Balance::RoundRobin | Balance::Random(_) | Balance::Sticky | Balance::LogHash);
        if !known {
            let reason = format!("{label}: in mode 'log' 'balance' is roundrobin, random, sticky or log-hash");
            diagnostics.alert(&draft.place, reason);
        }
        if settings.balance == Balance::LogHash && settings.hash.method != HashMethod::Map {
            diagnostics.alert(&draft.place, format!("{label}: 'balance log-hash' needs 'hash-type map-based'"));
        }
        let key = settings.log_hash.as_ref().and_then(|(converters, place)| self.converters(converters, place, diagnostics));
        self.directory.settle(&draft.name, farm, key, &draft.place);
    }

    /// An expression that is converters alone: the fetch before them is never asked.
    fn converters(&mut self, converters: &str, place: &Place, diagnostics: &mut Diagnostics) -> Option<Expr> {
        let (acls, mut warnings) = (AclSet::default(), Vec::new());
        let mut compiler = Compiler {
            registry: &mut *self.registry,
            acls: &acls,
            have: Needs::NONE,
            warnings: &mut warnings,
            word: 0,
            section: "".into(),
            place: place.clone(),
        };
        let outcome = compiler.expression(format!("str(line),{converters}").as_bytes());
        for warning in warnings {
            diagnostics.push(Diagnostic::new(Severity::Warning, place, warning.reason).hint(warning.hint));
        }
        outcome
            .map_err(|fault| {
                let reason = format!("'balance log-hash': {}", fault.reason);
                diagnostics.push(Diagnostic::new(Severity::Alert, place, reason).hint(fault.hint));
            })
            .ok()
    }

    /// The `log-forward` sections.
    pub(super) fn forwarders(&mut self, sections: Sections, vault: &Vault, diagnostics: &mut Diagnostics) -> Vec<Arc<Forwarder>> {
        let forwarders = sections.forwarders.into_iter().map(|(name, place, settings, log)| {
            if settings.binds.is_empty() && settings.datagrams.is_empty() {
                diagnostics.warn(&place, format!("log-forward '{name}' has no 'bind' and no 'dgram-bind'"));
            }
            if !settings.binds.is_empty() && settings.client_timeout.is_none() {
                let reason = format!("missing 'timeout client' for log-forward '{name}'");
                let hint = format!("without it, {} silent connections keep all others out", settings.maxconn);
                diagnostics.push(Diagnostic::new(Severity::Notice, &place, reason).hint(Some(hint)));
            }
            let journal = self.journal(&log, diagnostics);
            let mut acceptor = |bind: &BindSettings| {
                let build = || Acceptor::build(&bind.tls, false, (&name, &bind.place), vault, diagnostics);
                bind.tls.enabled.then(build).flatten()
            };
            let acceptors = settings.binds.iter().map(&mut acceptor).collect();
            Arc::new(Forwarder { name, settings, acceptors, journal, received: Received::default() })
        });
        forwarders.collect()
    }
}
