//! `peers` sections: this process, its peers, the tables that they share.

use super::{Building, logs};
use crate::keywords::bind;
use crate::keywords::peers::PeersPlaces;
use crate::log::LogSettings;
use crate::plan::Circle;
use crate::settings::BindSettings;
use std::sync::Arc;
use terse_balance::table::{Table, TableSettings};
use terse_balance::{Address, ServerSettings};
use terse_config::{Diagnostics, Place, Section, SectionKind};
use terse_peers::{Door, Group, Peer, PeerLine, PeersSettings, SharedTable};
use terse_tls::{Acceptor, Connector};
use tokio::sync::Notify;

/// A section on its way.
pub(super) struct Draft {
    pub(super) name: Arc<str>,
    place: Place,
    settings: PeersSettings,
    places: PeersPlaces,
    log: LogSettings,
    /// Notified when one of its tables changes.
    wake: Arc<Notify>,
    /// Its tables: the name among the peers, and the name in rules.
    shared: Vec<(String, Arc<str>)>,
}

/// Takes the sections out of a configuration.
pub(super) fn take(sections: &mut Vec<Section>) -> Vec<Draft> {
    let own = sections.extract_if(.., |section| section.kind == SectionKind::Peers);
    let draft = |mut section: Section| Draft {
        name: section.name,
        place: section.place,
        settings: section.settings.take().unwrap_or_default(),
        places: section.settings.take().unwrap_or_default(),
        log: section.settings.take().unwrap_or_default(),
        wake: Arc::default(),
        shared: Vec::new(),
    };
    own.map(draft).collect()
}

impl Draft {
    /// Takes the tables of its own lines, by the names that rules call them.
    pub(super) fn tables(&mut self) -> Vec<(Arc<str>, TableSettings)> {
        let named = |(name, settings)| (Arc::from(format!("{}/{name}", self.name)), settings);
        std::mem::take(&mut self.settings.tables).into_iter().map(named).collect()
    }

    /// Shares a table. Tables of the section's own lines have a slash before their names among the peers, so that a backend's
    /// table may have the same name.
    pub(super) fn share(&mut self, table: Table) -> Table {
        let name = table.name();
        let among = match name.strip_prefix(&*self.name).filter(|rest| rest.starts_with('/')) {
            Some(rest) => rest.to_owned(),
            None => name.to_string(),
        };
        self.shared.push((among, name.clone()));
        if self.settings.disabled { table } else { table.shared(self.wake.clone()) }
    }
}

/// The sections that have a remote peer, or that a peer may connect to.
pub(super) fn build(drafts: Vec<Draft>, tables: &[Arc<Table>], building: &mut Building<'_>, complete: bool) -> Vec<Circle> {
    let mut circles = Vec::new();
    for draft in drafts {
        circles.extend(circle(draft, tables, building, complete));
    }
    circles
}

fn circle(draft: Draft, tables: &[Arc<Table>], building: &mut Building<'_>, complete: bool) -> Option<Circle> {
    let Draft { name, place, settings, places, log, wake, shared } = draft;
    let own_name = building.host.local_peer.clone();
    let find = |name: &str| tables.iter().find(|table| **table.name() == *name).cloned();
    let shared: Vec<SharedTable> = shared
        .into_iter()
        .filter_map(|(among, name)| {
            let table = find(&name)?;
            let aside = table.settings().write_to.as_deref().and_then(find);
            Some(SharedTable::new(among, table, aside))
        })
        .collect();
    if settings.disabled {
        return None;
    }
    let Some(own) = settings.peers.iter().find(|peer| peer.name == own_name) else {
        shared.iter().for_each(|shared| shared.table.stop_sharing());
        if complete {
            let reason = format!("peers '{name}' share nothing: none is called '{own_name}', as this process is");
            let hint = "'-L' on the command line or 'localpeer' in 'global' says what it is called; else it is the host's name";
            let diagnostic = terse_config::Diagnostic::new(terse_config::Severity::Warning, &place, reason);
            building.diagnostics.push(diagnostic.hint(Some(hint.to_owned())));
        }
        return None;
    };
    let binds = binds(own, &places, &name, &place, building.diagnostics);
    let own_door = own.server.as_ref().map(|server| door(server, &own.place, building));
    let mut peers = Vec::new();
    for peer in settings.peers.iter().filter(|peer| peer.name != own_name) {
        let Some(server) = &peer.server else {
            let reason = format!("'{}' has no address, and is not this process, which is called '{own_name}'", peer.name);
            building.diagnostics.alert(&peer.place, reason);
            continue;
        };
        peers.push(Peer::new(peer.name.clone(), door(server, &peer.place, building), server.shard));
    }
    let acceptor = |bind: &BindSettings| {
        let mut build = || Acceptor::build(&bind.tls, false, (&name, &bind.place), &building.vault, building.diagnostics);
        bind.tls.enabled.then(&mut build).flatten()
    };
    let acceptors = binds.iter().map(acceptor).collect();
    let journal = Arc::new(building.logs.journal(&log, building.diagnostics));
    let speaker = logs::Speaker::new(&building.host.sinks);
    let host = building.host.clone();
    let journal = logs::farm_journal(journal, speaker, &super::Host { notices: None, ..host });
    let mut group = Group::new(name, own_name, peers, shared, building.host.started);
    group.own_door = own_door;
    group.shards = settings.shards;
    group.acceptors = acceptors;
    group.wake = wake;
    group.journal = Some(journal);
    Some(Circle { group: Arc::new(group), binds })
}

fn door(server: &ServerSettings, place: &Place, building: &mut Building<'_>) -> Door {
    let connector = || Connector::build(&server.tls, place, &building.vault, building.diagnostics);
    Door { address: server.address.clone(), connector: server.tls.enabled.then(connector).flatten() }
}

/// Addresses at which this process listens: those of `bind` lines, or that of its own line.
fn binds(own: &PeerLine, places: &PeersPlaces, name: &str, place: &Place, diagnostics: &mut Diagnostics) -> Vec<BindSettings> {
    match (&own.server, &places.binds[..]) {
        (Some(server), []) => {
            let template = places.template.clone().unwrap_or_else(|| bind::blank(own.place.clone()));
            let address = match &server.address {
                Address::AsAsked(destination) => format!("{}:{}", "*", destination.port.number()),
                address => address.to_string(),
            };
            vec![BindSettings { address, place: own.place.clone(), ..template }]
        }
        (Some(_), binds) => {
            diagnostics.warn(&own.place, "its address is passed over: this process listens where the 'bind' line says");
            binds.to_vec()
        }
        (None, []) => {
            diagnostics.warn(place, format!("peers '{name}' cannot be reached here: there is no 'bind' line"));
            Vec::new()
        }
        (None, binds) => binds.to_vec(),
    }
}
